//! `linerate test HOST`: throughput up and down, over one stream and several, with the limit of each.

mod arguments;
mod diagnosis;
mod hosts;
mod observer;
#[cfg(feature = "quic")]
mod quic;
mod record;
mod series;

use std::time::Duration;

use linerate_documents::run::RunDocument;
use linerate_engine::Error;
use linerate_model::direction::Direction;
use linerate_model::report::TestTermination;
use linerate_model::throughput::ThroughputResult;
use linerate_report::text::MAX_SUMMARY_LINES;
use linerate_report::throughput_text;
use linerate_sys::signals::InterruptSignals;
use linerate_units::{BitRate, StreamCount, display};

pub(crate) use arguments::TestArguments;

use self::record::SeriesStart;
use self::series::TestSeries;
use crate::cmd::listen::DialedServer;
use crate::cmd::measurement::{interrupts, report_missed};
use crate::exit::ExitStatus;
use crate::{console, far_session, progress, recorder};

/// Interval of the live line, and default sample interval; it does not depend on a terminal, so that the document is
/// the same.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);

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
    let termination = match record::ending(&result, problem) {
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

/// Result with the host as the user named it.
fn for_display(result: &ThroughputResult) -> ThroughputResult {
    ThroughputResult { host: recorder::display_host(&result.host), ..result.clone() }
}
