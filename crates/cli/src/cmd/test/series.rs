//! The runs of one host: their order is the caller's.

use std::fmt::Write as _;
use std::time::Duration;

use linerate_documents::progress::{EventKind, ProgressEvent};
use linerate_engine::Error;
use linerate_engine::client::{self, ClientOptions, ClientOutcome, PriorContact};
use linerate_model::direction::Direction;
use linerate_model::event::TestStart;
use linerate_model::parameters::{EndCondition, TestDirection, TestParameters};
use linerate_model::summary::DurationDistribution;
use linerate_model::throughput::{ThroughputResult, ThroughputRun};
use linerate_report::throughput_text::{self, TextStyle};
use linerate_sys::signals::InterruptSignals;
use linerate_units::{ByteCount, SegmentCount, StreamCount};

use super::observer::RunObserver;
use super::{RunDisplay, SAMPLE_INTERVAL, TestArguments, diagnosis, run_name};
use crate::{console, progress, recorder};

/// Longest default interval at which a sending server reports its socket statistics: on a slow path, its reports delay the
/// data. Number of reports of a shorter test, as far as they are small compared with the data.
const MAX_FAR_SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
const FAR_REPORTS: u32 = 10;
/// Number of reports without which the diagnosis of a run knows no usual state of its sender.
const MIN_FAR_REPORTS: u32 = 3;

/// Largest report of one socket, and largest share of the data's rate that a sender's reports take.
const MAX_SOCKET_REPORT: ByteCount = ByteCount::new(1400);
const MAX_REPORTED_SHARE: f64 = 0.01;

/// Runs of one host, one after another.
pub(super) struct TestSeries<'a> {
    pub(super) arguments: &'a TestArguments,
    /// Style of the progress line; `None` without a terminal.
    pub(super) style: Option<TextStyle>,
    pub(super) display: RunDisplay,
    pub(super) handshakes: Vec<Duration>,
    pub(super) runs: Vec<ThroughputRun>,
    pub(super) linerate: bool,
    /// Lines printed so far.
    pub(super) lines: usize,
}

impl TestSeries<'_> {
    /// Performs one run, and retries while the server is busy; returns the error that prevented or ended it.
    pub(super) fn run(&mut self, flow: Direction, streams: StreamCount, stop: InterruptSignals) -> Option<Error> {
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
            let diagnosis = diagnosis::diagnose_run(&options.parameters, &intervals, &report, &self.handshakes);
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
        let far_interval = arguments.interval.unwrap_or_else(|| match flow {
            Direction::Up => SAMPLE_INTERVAL,
            Direction::Down => self.far_sample_interval(streams),
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

    /// Returns the interval of a sending server's reports: short in a short test, if they are small compared with the rate of
    /// earlier runs of either direction; where there are none, few.
    fn far_sample_interval(&self, streams: StreamCount) -> Duration {
        let wanted = (self.arguments.time / FAR_REPORTS).clamp(SAMPLE_INTERVAL, MAX_FAR_SAMPLE_INTERVAL);
        let few = self.arguments.time / MIN_FAR_REPORTS;
        let slowest = self.runs.iter().filter_map(|run| Some(run.rate()?.rate)).min();
        let reports = MAX_SOCKET_REPORT * streams.get();
        let least = slowest.and_then(|rate| (rate * MAX_REPORTED_SHARE).time_to_send(reports));
        wanted.max(least.unwrap_or(few)).min(MAX_FAR_SAMPLE_INTERVAL)
    }

    /// True when the far host's socket reports are small compared with the rate of earlier runs: they travel with the
    /// data of a download, and with the acknowledgements of an upload.
    fn far_details_fit(&self, flow: Direction, streams: StreamCount, far_interval: Duration) -> bool {
        let most = match flow {
            Direction::Up => 0.05,
            Direction::Down => MAX_REPORTED_SHARE,
        };
        let earlier = self.runs.iter().filter(|run| run.direction == flow).filter_map(|run| Some(run.rate()?.rate));
        let report_rate = (MAX_SOCKET_REPORT * streams.get()).rate_over(far_interval);
        earlier.max().is_none_or(|rate| report_rate <= rate * most)
    }

    pub(super) fn into_result(mut self) -> ThroughputResult {
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
