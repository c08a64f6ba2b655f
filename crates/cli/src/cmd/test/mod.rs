//! `linerate test HOST`: throughput up and down, over one stream and several, with the limit of each.

mod arguments;
mod diagnosis;
mod hosts;
#[cfg(feature = "quic")]
mod quic;

use linerate_model::direction::Direction;
use std::fmt::Write as _;
use std::time::Duration;

use linerate_documents::progress::{EventKind, ProgressEvent};
use linerate_documents::run::{RunDocument, RunEnvironment, RunFacts};
use linerate_engine::client::{self, ClientOptions, PriorContact};
use linerate_engine::surroundings::{LocalEnvironment, OwnTraffic};
use linerate_engine::{Error, client::ClientOutcome};
use linerate_model::event::{TestEvent, TestStart};
use linerate_model::parameters::{EndCondition, TestDirection, TestParameters};
use linerate_model::report::{TestReport, TestTermination};
use linerate_model::sample::IntervalReport;
use linerate_model::stream::StreamRole;
use linerate_model::summary::DurationDistribution;
use linerate_model::throughput::{ThroughputResult, ThroughputRun};
use linerate_report::text::MAX_SUMMARY_LINES;
use linerate_report::throughput_text::{self, TestProgress, TextStyle};
use linerate_sys::clock;
use linerate_sys::signals::InterruptSignals;
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, ByteCount, MonotonicTime, Mss, SegmentCount, StreamCount, WallTime, display};

pub(crate) use arguments::TestArguments;

use crate::cmd::listen::DialedServer;
use crate::cmd::measurement::{interrupts, own_arguments, report_missed};
use crate::console;
use crate::exit::ExitStatus;
use crate::recorder;
use crate::{far_session, progress};

/// Interval of the live line, and default sample interval; it does not depend on a terminal, so that the document is
/// the same.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);

/// Default interval at which a sending server reports its socket statistics: on a slow path, its reports delay the
/// data.
const FAR_SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the series of each host.
pub(crate) fn run(arguments: &TestArguments) -> ExitStatus {
    let stop = match interrupts() {
        Ok(stop) => stop,
        Err(exit) => return exit,
    };
    if let Some(problem) = arguments.problem() {
        console::error(&problem, None);
        return ExitStatus::Unable;
    }
    let server = match arguments.listen.server(&arguments.common, stop) {
        Ok(server) => server,
        Err(exit) => return exit,
    };
    let dialed =
        server.map(|DialedServer { host, common }| TestArguments { hosts: vec![host], common, ..arguments.clone() });
    let arguments = dialed.as_ref().unwrap_or(arguments);
    let mut each = match arguments.of_each_host() {
        Ok(each) => each,
        Err(text) => {
            console::error(&text, None);
            return ExitStatus::Unable;
        }
    };
    match each.as_mut_slice() {
        [alone] => run_alone(alone, stop),
        several => hosts::run(&arguments.hosts, several, stop),
    }
}

fn run_alone(arguments: &mut TestArguments, stop: InterruptSignals) -> ExitStatus {
    let host = arguments.host().to_owned();
    let server = match far_session::of_host(&host, &mut arguments.common) {
        Ok(server) => server,
        Err(exit) => return exit,
    };
    if let Err(exit) = draw(arguments, &host, stop) {
        far_session::close(server);
        return exit;
    }
    let done = measure(arguments, stop, RunDisplay::AsTheyEnd);
    progress::close_picture();
    let exit = conclude_alone(arguments, &done, stop);
    far_session::close(server);
    exit
}

/// Begins the picture of the planned runs, if one is to be drawn.
fn draw(arguments: &TestArguments, host: &str, stop: InterruptSignals) -> Result<(), ExitStatus> {
    let names = planned_names(arguments);
    let planned: Vec<&str> = names.iter().map(String::as_str).collect();
    arguments.common.draw("test", host, arguments.live, &planned, stop)
}

/// Names of all runs, in their order.
fn planned_names(arguments: &TestArguments) -> Vec<String> {
    let names = plan(arguments).into_iter().map(|(flow, streams)| run_name(flow, streams));
    #[cfg(feature = "quic")]
    let names = names.chain(quic::planned_names(arguments));
    names.collect()
}

fn conclude_alone(arguments: &TestArguments, done: &FinishedSeries, stop: InterruptSignals) -> ExitStatus {
    if done.is_measured() || done.failure.is_none() {
        conclude(arguments, &done.result, &done.run, done.lines);
        if done.is_measured() {
            arguments.common.record(&done.run);
        }
    }
    if let Some(error) = &done.failure {
        console::error(&error.to_string(), error.advice());
    }
    if let Some(failure) = &done.quic_failure {
        console::error(failure, None);
    }
    exit_of(arguments, done, stop, "")
}

/// Exit status of a series; reports each missed threshold, after `prefix`.
fn exit_of(arguments: &TestArguments, done: &FinishedSeries, stop: InterruptSignals, prefix: &str) -> ExitStatus {
    let is_failed = done.failure.is_some() || done.quic_failure.is_some();
    match (is_failed, stop.pending().is_some(), done.is_measured()) {
        (true, _, false) => ExitStatus::Unable,
        (true, ..) | (_, true, _) => ExitStatus::Partial,
        _ => {
            let missed = missed_thresholds(arguments, &done.result);
            report_missed(&missed.iter().map(|line| format!("{prefix}{line}")).collect::<Vec<_>>());
            if missed.is_empty() { ExitStatus::Success } else { ExitStatus::Missed }
        }
    }
}

/// Display of runs while a series is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunDisplay {
    /// Each at its end.
    AsTheyEnd,
    /// Not at all.
    None,
}

/// Series that is over.
struct FinishedSeries {
    result: ThroughputResult,
    run: RunDocument,
    failure: Option<Error>,
    /// Reason why the part over QUIC was not measured whole.
    quic_failure: Option<String>,
    /// Lines printed so far.
    lines: usize,
}

impl FinishedSeries {
    /// True when at least one run began.
    fn is_measured(&self) -> bool {
        self.result.runs.iter().any(|run| run.start.is_some())
    }
}

/// Measures one host.
fn measure(arguments: &TestArguments, stop: InterruptSignals, display: RunDisplay) -> FinishedSeries {
    let is_line_shown = !arguments.common.quiet && !progress::has_picture();
    let style = if is_line_shown { console::progress_style() } else { None };
    let begun = SeriesStart::now(arguments);
    let (handshakes, runs) = (Vec::new(), Vec::new());
    let mut series = TestSeries { arguments, style, display, handshakes, runs, linerate: false, lines: 0 };
    let mut failure = None;
    for (flow, streams) in plan(arguments) {
        failure = series.run(flow, streams, stop);
        if failure.is_some() || stop.pending().is_some() {
            break;
        }
    }
    let lines = series.lines;
    #[cfg_attr(not(feature = "quic"), expect(unused_mut, reason = "QUIC adds to it"))]
    let mut result = series.into_result();
    #[cfg_attr(not(feature = "quic"), expect(unused_mut, reason = "QUIC sets it"))]
    let mut quic_failure = None;
    #[cfg(feature = "quic")]
    if arguments.quic && failure.is_none() && stop.pending().is_none() {
        quic_failure = quic::measure(arguments, stop, style, &mut result);
        quic::show(arguments, display, &result);
    }
    let problem = failure.as_ref().map(ToString::to_string).or_else(|| quic_failure.clone());
    let signal = stop.pending().map(linerate_sys::signals::Signal::describe);
    let interrupted = signal.map(|signal| TestTermination::Interrupted { signal: Some(signal) });
    let termination = match ending(&result, problem) {
        TestTermination::Complete => interrupted.unwrap_or(TestTermination::Complete),
        other => other,
    };
    let run = begun.finish(&result, termination);
    FinishedSeries { result, run, failure, quic_failure, lines }
}

/// Runs over TCP: with one stream alone where they are there for comparison.
fn plan(arguments: &TestArguments) -> Vec<(Direction, StreamCount)> {
    plan_of(arguments, if arguments.compares_quic() { 1 } else { arguments.parallel })
}

/// Runs in the requested directions, with one stream and with `parallel`.
fn plan_of(arguments: &TestArguments, parallel: u64) -> Vec<(Direction, StreamCount)> {
    let flows: &[Direction] = match (arguments.up, arguments.down) {
        (true, _) => &[Direction::Up],
        (_, true) => &[Direction::Down],
        _ => &[Direction::Up, Direction::Down],
    };
    let counts = if parallel > 1 { vec![1, parallel] } else { vec![1] };
    counts.into_iter().flat_map(|count| flows.iter().map(move |flow| (*flow, StreamCount::new(count)))).collect()
}

/// Name of a run in events and in the picture.
fn run_name(flow: Direction, streams: StreamCount) -> String {
    let direction = match flow {
        Direction::Up => "up",
        Direction::Down => "down",
    };
    let noun = if streams == StreamCount::new(1) { "stream" } else { "streams" };
    format!("{direction}, {streams} {noun}")
}

/// Prints what follows from all runs, which have been printed one by one, in `lines` lines.
fn conclude(arguments: &TestArguments, result: &ThroughputResult, run: &RunDocument, lines: usize) {
    let (common, style) = (&arguments.common, console::data_style());
    if common.json || common.brief {
        common.show(run);
    } else if common.verbose {
        console::data(&throughput_text::conclusion_details(&for_display(result), style));
    } else {
        let left = MAX_SUMMARY_LINES.saturating_sub(lines);
        console::data(&throughput_text::conclusion(&for_display(result), left, style));
    }
}

/// Returns a line for each threshold that the best run of its direction misses.
fn missed_thresholds(arguments: &TestArguments, result: &ThroughputResult) -> Vec<String> {
    let best = |flow: Direction| {
        let rates = result.runs.iter().filter(|run| run.direction == flow).filter_map(|run| Some(run.rate()?.rate));
        rates.max().unwrap_or(BitRate::ZERO)
    };
    [(Direction::Up, "up", arguments.min_up), (Direction::Down, "down", arguments.min_down)]
        .into_iter()
        .filter_map(|(flow, name, least)| {
            let (least, rate) = (least?, best(flow));
            let missing = BitRate::from_bits_per_second(least.bits_per_second() - rate.bits_per_second());
            let [rate_text, least_text, missing] = [rate, least, missing].map(display::rate);
            (rate < least).then(|| format!("{name} {rate_text} is {missing} less than --min-{name} {least_text}"))
        })
        .collect()
}

struct TestSeries<'a> {
    arguments: &'a TestArguments,
    /// Style of the progress line; `None` without a terminal.
    style: Option<TextStyle>,
    display: RunDisplay,
    handshakes: Vec<Duration>,
    runs: Vec<ThroughputRun>,
    linerate: bool,
    /// Lines printed so far.
    lines: usize,
}

impl TestSeries<'_> {
    /// Performs one run, and retries while the server is busy; returns the error that prevented or ended it.
    fn run(&mut self, flow: Direction, streams: StreamCount, stop: InterruptSignals) -> Option<Error> {
        let server = if self.runs.is_empty() { PriorContact::New } else { PriorContact::Known };
        client::retry_while_busy(server, Some(stop), || (self.run_once(flow, streams, stop), ())).0
    }

    fn run_once(&mut self, flow: Direction, streams: StreamCount, stop: InterruptSignals) -> Option<Error> {
        let options = self.options(flow, streams);
        let mut watch = RunObserver::new(flow, streams, options.parameters.end.time_limit(), self.style);
        let outcome = client::run(&options, Some(&stop), &mut |event| watch.event(event));
        if self.style.is_some() {
            console::progress("");
        }
        let ClientOutcome { error, handshake_rtts, .. } = outcome;
        self.handshakes.extend(handshake_rtts);
        let RunObserver { start, intervals, report, .. } = watch;
        self.linerate |= start.as_ref().is_some_and(|start: &TestStart| start.peer_is_linerate);
        if let Some(report) = report {
            let diagnosis = diagnosis::diagnose_run(&options.parameters, &intervals, &report);
            let run = ThroughputRun { direction: flow, streams, start, intervals, report, diagnosis };
            progress::publish(run_event(&run));
            self.runs.push(run);
            self.show_last_run();
        }
        error
    }

    fn shows_runs(&self) -> bool {
        let common = &self.arguments.common;
        self.display == RunDisplay::AsTheyEnd && !common.json && !common.brief
    }

    /// Prints the latest run, below the heading of the series.
    fn show_last_run(&mut self) {
        let common = &self.arguments.common;
        let Some(run) = self.runs.last().filter(|_| self.shows_runs()) else { return };
        let style = console::data_style();
        let idle = DurationDistribution::of(&mut self.handshakes.clone());
        let mut text = String::new();
        if self.runs.len() == 1 {
            let host = recorder::display_host(self.arguments.host());
            text.push_str(&throughput_text::heading(&host, common.port(), idle.as_ref(), style));
            let tls = run.start.as_ref().and_then(|start| start.tls_data.as_ref()?.cipher_suite.as_ref());
            if let Some(suite) = tls {
                let _ = writeln!(text, "  data in TLS 1.3 ({suite}), encrypted in user space");
            }
        }
        let show = if common.verbose { throughput_text::run_details } else { throughput_text::run_summary };
        text.push_str(&show(run, idle.as_ref(), style));
        self.lines += text.lines().count();
        console::data(&text);
    }

    fn options(&self, flow: Direction, streams: StreamCount) -> ClientOptions {
        let arguments = self.arguments;
        let far_interval = arguments.interval.unwrap_or(match flow {
            Direction::Up => SAMPLE_INTERVAL,
            Direction::Down => FAR_SAMPLE_INTERVAL,
        });
        let parameters = TestParameters {
            direction: match flow {
                Direction::Up => TestDirection::Forward,
                Direction::Down => TestDirection::Reverse,
            },
            end: EndCondition::Time(arguments.time),
            omit: arguments.omit,
            parallel: streams,
            window: arguments.window,
            congestion: arguments.tcp_congestion(),
            tls_data: arguments.tls_data,
            far_interval: Some(far_interval),
            far_details: far_interval >= SAMPLE_INTERVAL && self.far_details_fit(flow, streams, far_interval),
            ..TestParameters::discarding()
        };
        let target = arguments.common.target(arguments.host());
        ClientOptions::new(&target, parameters, Some(arguments.interval.unwrap_or(SAMPLE_INTERVAL)))
    }

    /// True when the far host's socket reports are small compared with the rate of earlier runs: they travel with the
    /// data of a download, and with the acknowledgements of an upload.
    fn far_details_fit(&self, flow: Direction, streams: StreamCount, far_interval: Duration) -> bool {
        /// Largest report of one socket.
        const MAX_SOCKET_REPORT: ByteCount = ByteCount::new(1400);
        let most = match flow {
            Direction::Up => 0.05,
            Direction::Down => 0.01,
        };
        let earlier = self.runs.iter().filter(|run| run.direction == flow).filter_map(|run| Some(run.rate()?.rate));
        let report_rate = (MAX_SOCKET_REPORT * streams.get()).rate_over(far_interval);
        earlier.max().is_none_or(|rate| report_rate <= rate * most)
    }

    fn into_result(mut self) -> ThroughputResult {
        ThroughputResult {
            host: self.arguments.host().to_owned(),
            port: self.arguments.common.port(),
            dialed_in: self.arguments.common.dialed_in,
            peer_is_linerate: self.linerate,
            idle_rtt: DurationDistribution::of(&mut self.handshakes),
            runs: self.runs,
            quic: None,
        }
    }
}

/// Event at the end of a run.
fn run_event(run: &ThroughputRun) -> ProgressEvent {
    let rate = run.rate().map(|measured| measured.rate.bits_per_second());
    let (up, down) = match run.direction {
        Direction::Up => (rate, None),
        Direction::Down => (None, rate),
    };
    ProgressEvent {
        phase: Some(run_name(run.direction, run.streams)),
        up_bits_per_second: up,
        down_bits_per_second: down,
        retransmitted_segments: run.retransmits().map(SegmentCount::get),
        limits: run.limits(),
        ..ProgressEvent::with_text(EventKind::Run, throughput_text::run_result(run))
    }
}

/// Result with the host as the user named it.
fn for_display(result: &ThroughputResult) -> ThroughputResult {
    ThroughputResult { host: recorder::display_host(&result.host), ..result.clone() }
}

/// Start of the series.
struct SeriesStart {
    at: WallTime,
    since: MonotonicTime,
    surroundings: LocalEnvironment,
}

impl SeriesStart {
    fn now(arguments: &TestArguments) -> Self {
        let surroundings = arguments.common.local_environment(arguments.host());
        Self { at: clock::realtime_now(), since: clock::monotonic_now(), surroundings }
    }

    /// History record of the series.
    fn finish(self, result: &ThroughputResult, termination: TestTermination) -> RunDocument {
        let duration = clock::monotonic_now().since(self.since);
        let near = self.surroundings.finish(own_traffic(result));
        let facts = RunFacts {
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: self.at,
            duration,
            arguments: own_arguments(),
            termination,
            verdict: throughput_text::sentence(result),
            environment: RunEnvironment { near: Some(near), far: None, lab: None },
        };
        RunDocument::from_throughput(facts, result)
    }
}

/// Termination of the series: that of the first incomplete run, else the error that prevented another.
fn ending(result: &ThroughputResult, failure: Option<String>) -> TestTermination {
    let of_runs = result.runs.iter().map(|run| &run.report.termination);
    let broken = of_runs.into_iter().find(|termination| **termination != TestTermination::Complete).cloned();
    let failed = || Some(TestTermination::Failed { message: failure? });
    broken.or_else(failed).unwrap_or(TestTermination::Complete)
}

/// Largest traffic of the series on the interface.
fn own_traffic(result: &ThroughputResult) -> OwnTraffic {
    /// Minimum segment size of IPv4.
    const MIN_SEGMENT_SIZE: Mss = Mss::new(536);
    let mut own = OwnTraffic::default();
    for run in &result.runs {
        let moved: ByteCount =
            run.intervals.iter().flat_map(|interval| &interval.streams).map(|stream| stream.bytes).sum();
        let infos = || run.report.streams.iter().filter_map(|stream| stream.tcp.as_ref()?.last_info.as_ref());
        let segment = match run.direction {
            Direction::Up => infos().filter_map(|info| info.send_mss).min(),
            Direction::Down => infos().filter_map(|info| info.receive_mss).min(),
        };
        let segment = ByteCount::new(u64::from(segment.unwrap_or(MIN_SEGMENT_SIZE).get()));
        let retransmitted = segment * run.retransmits().map_or(0, SegmentCount::get);
        let traffic = match run.direction {
            Direction::Up => OwnTraffic::of_tcp(ByteCount::ZERO, moved + retransmitted, segment),
            Direction::Down => OwnTraffic::of_tcp(moved + retransmitted, ByteCount::ZERO, segment),
        };
        own = OwnTraffic { received: own.received + traffic.received, sent: own.sent + traffic.sent };
    }
    own
}

/// Observer of one run.
struct RunObserver {
    flow: Direction,
    streams: StreamCount,
    total: Option<Duration>,
    style: Option<TextStyle>,
    rates: Vec<BitRate>,
    /// Bytes moved since the last of these rates, and their time.
    since_rate: (ByteCount, Duration),
    retransmits: SegmentCount,
    /// Latest figures of a sender at the far end.
    far: Option<ProgressEvent>,
    start: Option<TestStart>,
    intervals: Vec<IntervalReport>,
    report: Option<TestReport>,
}

impl RunObserver {
    fn new(flow: Direction, streams: StreamCount, total: Option<Duration>, style: Option<TextStyle>) -> Self {
        Self {
            flow,
            streams,
            total,
            style,
            rates: Vec::new(),
            since_rate: (ByteCount::ZERO, Duration::ZERO),
            retransmits: SegmentCount::ZERO,
            far: None,
            start: None,
            intervals: Vec::new(),
            report: None,
        }
    }

    fn event(&mut self, event: &TestEvent) {
        match event {
            TestEvent::Connected(_) | TestEvent::Debug(_) => {}
            TestEvent::FarInterval(interval) => {
                self.far = Some(progress::sender_sample(interval)).filter(|_| self.flow == Direction::Down);
            }
            TestEvent::Started(start) => {
                self.start = Some((**start).clone());
                let time = self.total.map(|total| nanoseconds(total + start.parameters.omit));
                progress::publish(ProgressEvent::phase(run_name(self.flow, self.streams), time));
            }
            TestEvent::Interval(interval) => self.interval(interval),
            TestEvent::Warning(text) => {
                console::note(&format!("warning: {text}"));
                progress::publish(ProgressEvent::with_text(EventKind::Note, text));
            }
            TestEvent::Finished(report) => {
                let report = (**report).clone();
                if self.start.is_some() || report.termination == TestTermination::Complete {
                    self.report = Some(report);
                }
            }
        }
    }

    /// Passes the figures on; those of a sender at the far end come with its latest report.
    fn publish(&mut self, interval: &IntervalReport) {
        let own = progress::interval_sample(interval);
        progress::publish(match self.far.take() {
            Some(far) => ProgressEvent { down_bits_per_second: own.down_bits_per_second, ..far },
            None => own,
        });
    }

    fn interval(&mut self, interval: &IntervalReport) {
        if progress::is_followed() {
            self.publish(interval);
        }
        self.intervals.push(interval.clone());
        let moved: ByteCount = interval.streams.iter().map(|stream| stream.bytes).sum();
        self.since_rate = (self.since_rate.0 + moved, self.since_rate.1 + interval.length());
        let senders = interval.streams.iter().filter(|stream| stream.role == StreamRole::Sender);
        let tcp: Vec<_> = senders.filter_map(|stream| stream.tcp.as_ref()).collect();
        self.retransmits += tcp.iter().filter_map(|tcp| tcp.retransmits).sum();
        let Some(style) = self.style else { return };
        // Updates are limited to the visible rate: a line per 10 ms sample would cost time.
        if self.since_rate.1 * 10 < SAMPLE_INTERVAL * 9 {
            return;
        }
        let (moved, time) = core::mem::take(&mut self.since_rate);
        self.rates.push(moved.rate_over(time));
        let line = throughput_text::progress_line(
            &TestProgress {
                flow: self.flow,
                streams: self.streams,
                elapsed: interval.end,
                total: self.total,
                rates: &self.rates,
                rtt: tcp.first().and_then(|tcp| tcp.rtt),
                retransmits: (!tcp.is_empty()).then_some(self.retransmits),
            },
            style,
        );
        console::progress(&line);
    }
}
