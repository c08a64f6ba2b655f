//! `linerate test HOST`: up and down, one stream and several, and what limits each.

mod diagnosis;

use std::time::Duration;

use linerate_engine::client::{self, Acquaintance, ClientOptions};
use linerate_engine::{Error, client::ClientOutcome};
use linerate_model::event::{Event, TestStart};
use linerate_model::parameters::{Direction, EndCondition, TestParameters};
use linerate_model::report::{Termination, TestReport};
use linerate_model::sample::IntervalReport;
use linerate_model::schema::run::{RunDocument, RunEnvironment, RunFacts};
use linerate_model::schema::throughput::ThroughputDocument;
use linerate_model::stream::Role;
use linerate_model::summary::Distribution;
use linerate_model::throughput::{Flow, ThroughputResult, ThroughputRun};
use linerate_report::throughput_text::{self, Progress, Style};
use linerate_sys::clock;
use linerate_sys::signals::Interrupts;
use linerate_units::{BitRate, ByteCount, MonotonicTime, Mss, SegmentCount, StreamCount, WallTime};

use crate::app::TestArguments;
use crate::cmd::measurement::{interrupts, own_arguments, print_json};
use crate::console;
use crate::exit::Exit;
use crate::surroundings::{OwnTraffic, Surroundings};

/// The live line moves this often, and readings are taken so when nothing else is asked for: whether somebody watches
/// does not change the document.
const INTERVAL: Duration = Duration::from_millis(200);

/// A server that sends tells of what only its kernel knows this often when nothing else is asked for: on a slow path, its
/// word travels beside the data.
const FAR_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the series.
pub(crate) fn run(arguments: &TestArguments) -> Exit {
    let stop = match interrupts() {
        Ok(stop) => stop,
        Err(exit) => return exit,
    };
    let style = if arguments.common.quiet { None } else { console::progress_style() };
    let begun = Begun::now(arguments);
    let mut series = Series { arguments, style, handshakes: Vec::new(), runs: Vec::new(), linerate: false };
    let mut failure = None;
    for (flow, streams) in plan(arguments) {
        failure = series.run(flow, streams, stop);
        if failure.is_some() || stop.pending().is_some() {
            break;
        }
    }
    let interrupted = stop.pending().is_some();
    let measured = series.runs.iter().any(|run| run.start.is_some());
    let result = series.into_result();
    if measured || failure.is_none() {
        show(arguments, &result);
    }
    if measured {
        let run = begun.finish(&result, failure.as_ref());
        arguments.common.keep(&run);
    }
    if let Some(error) = &failure {
        console::error(&error.to_string(), error.advice());
    }
    match (failure.is_some(), interrupted, measured) {
        (true, _, false) => Exit::Unable,
        (true, ..) | (_, true, _) => Exit::Partial,
        _ if misses_threshold(arguments, &result) => Exit::Missed,
        _ => Exit::Success,
    }
}

fn plan(arguments: &TestArguments) -> Vec<(Flow, StreamCount)> {
    let flows: &[Flow] = match (arguments.up, arguments.down) {
        (true, _) => &[Flow::Up],
        (_, true) => &[Flow::Down],
        _ => &[Flow::Up, Flow::Down],
    };
    let counts = if arguments.parallel > 1 { vec![1, arguments.parallel] } else { vec![1] };
    counts.into_iter().flat_map(|count| flows.iter().map(move |flow| (*flow, StreamCount::new(count)))).collect()
}

fn show(arguments: &TestArguments, result: &ThroughputResult) {
    if arguments.common.json {
        print_json(&ThroughputDocument::new(env!("CARGO_PKG_VERSION"), result));
    } else {
        console::data(&throughput_text::result_text(result, console::data_style()));
    }
}

fn misses_threshold(arguments: &TestArguments, result: &ThroughputResult) -> bool {
    let best = |flow: Flow| {
        let rates = result.runs.iter().filter(|run| run.flow == flow).filter_map(|run| Some(run.rate()?.rate));
        rates.max().unwrap_or(BitRate::ZERO)
    };
    [(Flow::Up, arguments.min_up), (Flow::Down, arguments.min_down)]
        .into_iter()
        .any(|(flow, least)| least.is_some_and(|least| best(flow) < least))
}

struct Series<'a> {
    arguments: &'a TestArguments,
    /// `None`: nobody watches.
    style: Option<Style>,
    handshakes: Vec<Duration>,
    runs: Vec<ThroughputRun>,
    linerate: bool,
}

impl Series<'_> {
    /// Does one run, and again while the server is busy; the error is why it could not be done or was broken off.
    fn run(&mut self, flow: Flow, streams: StreamCount, stop: Interrupts) -> Option<Error> {
        let server = if self.runs.is_empty() { Acquaintance::New } else { Acquaintance::Known };
        client::when_free(server, Some(stop), || (self.run_once(flow, streams, stop), ())).0
    }

    fn run_once(&mut self, flow: Flow, streams: StreamCount, stop: Interrupts) -> Option<Error> {
        let options = self.options(flow, streams);
        let mut watch = Watch::new(flow, streams, options.parameters.end.time_limit(), self.style);
        let outcome = client::run(&options, Some(&stop), &mut |event| watch.event(event));
        if self.style.is_some() {
            console::progress("");
        }
        let ClientOutcome { error, handshake_rtts, .. } = outcome;
        self.handshakes.extend(handshake_rtts);
        let Watch { start, intervals, report, .. } = watch;
        self.linerate |= start.as_ref().is_some_and(|start: &TestStart| start.peer_is_linerate);
        if let Some(report) = report {
            let diagnosis = diagnosis::explain(&options.parameters, &intervals, &report);
            self.runs.push(ThroughputRun { flow, streams, start, intervals, report, diagnosis });
        }
        error
    }

    fn options(&self, flow: Flow, streams: StreamCount) -> ClientOptions {
        let arguments = self.arguments;
        let far_interval = arguments.interval.unwrap_or(match flow {
            Flow::Up => INTERVAL,
            Flow::Down => FAR_INTERVAL,
        });
        let parameters = TestParameters {
            direction: match flow {
                Flow::Up => Direction::Forward,
                Flow::Down => Direction::Reverse,
            },
            end: EndCondition::Time(arguments.time),
            omit: arguments.omit,
            parallel: streams,
            window: arguments.window,
            congestion: arguments.congestion.clone(),
            far_interval: Some(far_interval),
            far_details: far_interval >= INTERVAL && self.details_are_light(flow, streams, far_interval),
            ..TestParameters::default()
        };
        let target = arguments.common.target(&arguments.host);
        ClientOptions::new(&target, parameters, Some(arguments.interval.unwrap_or(INTERVAL)))
    }

    /// Whether what the far end tells of its sockets is little beside what the run moves, as far as earlier runs tell: it
    /// travels with the data of a download, and beside the acknowledgements of an upload.
    fn details_are_light(&self, flow: Flow, streams: StreamCount, far_interval: Duration) -> bool {
        /// What is told of one socket, at most.
        const OF_EACH: ByteCount = ByteCount::new(1400);
        let most = match flow {
            Flow::Up => 0.05,
            Flow::Down => 0.01,
        };
        let earlier = self.runs.iter().filter(|run| run.flow == flow).filter_map(|run| Some(run.rate()?.rate));
        let told = (OF_EACH * streams.get()).rate_over(far_interval);
        earlier.max().is_none_or(|rate| told <= rate * most)
    }

    fn into_result(mut self) -> ThroughputResult {
        ThroughputResult {
            host: self.arguments.host.clone(),
            port: self.arguments.common.port,
            peer_is_linerate: self.linerate,
            idle_rtt: Distribution::of(&mut self.handshakes),
            runs: self.runs,
        }
    }
}

/// The series when it began.
struct Begun {
    at: WallTime,
    since: MonotonicTime,
    surroundings: Surroundings,
}

impl Begun {
    fn now(arguments: &TestArguments) -> Self {
        let surroundings = arguments.common.surroundings(&arguments.host);
        Self { at: clock::realtime_now(), since: clock::monotonic_now(), surroundings }
    }

    /// What is kept of the whole.
    fn finish(self, result: &ThroughputResult, failure: Option<&Error>) -> RunDocument {
        let duration = clock::monotonic_now().since(self.since);
        let near = self.surroundings.finish(own_traffic(result));
        let facts = RunFacts {
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: self.at,
            duration,
            arguments: own_arguments(),
            termination: (&ending(result, failure)).into(),
            verdict: throughput_text::sentence(result),
            environment: RunEnvironment { near: Some(near), far: None, lab: None },
        };
        RunDocument::from_throughput(facts, result)
    }
}

/// How the series ended: as the first run that did not end as asked, else as what kept a further one from starting.
fn ending(result: &ThroughputResult, failure: Option<&Error>) -> Termination {
    let of_runs = result.runs.iter().map(|run| &run.report.termination);
    let broken = of_runs.into_iter().find(|termination| **termination != Termination::Complete).cloned();
    let failed = || Some(Termination::Failed { message: failure?.to_string() });
    broken.or_else(failed).unwrap_or(Termination::Complete)
}

/// What the series itself put on the interface, at most.
fn own_traffic(result: &ThroughputResult) -> OwnTraffic {
    /// The least segment that IPv4 promises.
    const SMALLEST_SEGMENT: Mss = Mss::new(536);
    let mut own = OwnTraffic::default();
    for run in &result.runs {
        let moved: ByteCount =
            run.intervals.iter().flat_map(|interval| &interval.streams).map(|stream| stream.bytes).sum();
        let infos = || run.report.streams.iter().filter_map(|stream| stream.tcp.as_ref()?.last_info.as_ref());
        let segment = match run.flow {
            Flow::Up => infos().filter_map(|info| info.send_mss).min(),
            Flow::Down => infos().filter_map(|info| info.receive_mss).min(),
        };
        let segment = ByteCount::new(u64::from(segment.unwrap_or(SMALLEST_SEGMENT).get()));
        let again = segment * run.retransmits().map_or(0, SegmentCount::get);
        let traffic = match run.flow {
            Flow::Up => OwnTraffic::of_tcp(ByteCount::ZERO, moved + again, segment),
            Flow::Down => OwnTraffic::of_tcp(moved + again, ByteCount::ZERO, segment),
        };
        own = OwnTraffic { received: own.received + traffic.received, sent: own.sent + traffic.sent };
    }
    own
}

/// Follows one run.
struct Watch {
    flow: Flow,
    streams: StreamCount,
    total: Option<Duration>,
    style: Option<Style>,
    rates: Vec<BitRate>,
    /// What was moved since the last of these rates, and in what time.
    since_rate: (ByteCount, Duration),
    retransmits: SegmentCount,
    start: Option<TestStart>,
    intervals: Vec<IntervalReport>,
    report: Option<TestReport>,
}

impl Watch {
    fn new(flow: Flow, streams: StreamCount, total: Option<Duration>, style: Option<Style>) -> Self {
        Self {
            flow,
            streams,
            total,
            style,
            rates: Vec::new(),
            since_rate: (ByteCount::ZERO, Duration::ZERO),
            retransmits: SegmentCount::ZERO,
            start: None,
            intervals: Vec::new(),
            report: None,
        }
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Connected(_) | Event::FarInterval(_) | Event::Debug(_) => {}
            Event::Started(start) => self.start = Some((**start).clone()),
            Event::Interval(interval) => self.interval(interval),
            Event::Warning(text) => console::note(&format!("warning: {text}")),
            Event::Finished(report) => {
                let report = (**report).clone();
                if self.start.is_some() || report.termination == Termination::Complete {
                    self.report = Some(report);
                }
            }
        }
    }

    fn interval(&mut self, interval: &IntervalReport) {
        self.intervals.push(interval.clone());
        let moved: ByteCount = interval.streams.iter().map(|stream| stream.bytes).sum();
        self.since_rate = (self.since_rate.0 + moved, self.since_rate.1 + interval.length());
        let senders = interval.streams.iter().filter(|stream| stream.role == Role::Sender);
        let tcp: Vec<_> = senders.filter_map(|stream| stream.tcp.as_ref()).collect();
        self.retransmits += tcp.iter().filter_map(|tcp| tcp.retransmits).sum();
        let Some(style) = self.style else { return };
        // Nobody sees more, and a line for each reading of 10 ms would cost time.
        if self.since_rate.1 * 10 < INTERVAL * 9 {
            return;
        }
        let (moved, time) = core::mem::take(&mut self.since_rate);
        self.rates.push(moved.rate_over(time));
        let line = throughput_text::progress_line(
            &Progress {
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
