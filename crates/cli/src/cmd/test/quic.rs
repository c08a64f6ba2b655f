//! `--quic`: the same over QUIC, and its comparison with TCP.

use core::time::Duration;

use linerate_documents::progress::{EventKind, ProgressEvent};
use linerate_engine::probe::{ProbeError, ProbeSession};
use linerate_model::direction::Direction;
use linerate_model::quic::{QuicCongestionControl, QuicHandshakeKind, QuicResult, QuicRun};
use linerate_model::throughput::ThroughputResult;
use linerate_quic::{QuicClient, QuicError, QuicProgress, QuicTarget};
use linerate_report::throughput_text::{self, TestProgress, TextStyle};
use linerate_rules::transport;
use linerate_sys::signals::InterruptSignals;
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, StreamCount, display};
use linerate_wire::quic::{MAX_SAMPLES, QuicOrder, QuicTransferOrder};

use super::{RunDisplay, SAMPLE_INTERVAL, TestArguments, plan_of, run_name};
use crate::{console, progress};

/// Handshakes of each kind.
const HANDSHAKES: usize = 3;

/// Kinds of the handshakes in their order; the first resumed one is full, and brings the ticket.
const KINDS: [(QuicHandshakeKind, usize); 3] = [
    (QuicHandshakeKind::Full, HANDSHAKES),
    (QuicHandshakeKind::Resumed, HANDSHAKES + 1),
    (QuicHandshakeKind::ZeroRtt, HANDSHAKES),
];

/// Congestion control of `-C`.
pub(super) fn congestion_control(arguments: &TestArguments) -> Result<QuicCongestionControl, String> {
    let Some(name) = &arguments.congestion else { return Ok(QuicCongestionControl::default()) };
    QuicCongestionControl::from_name(name)
        .ok_or_else(|| format!("congestion control '{name}' is not available for QUIC (expected cubic, bbr or reno)"))
}

/// Measures over QUIC after TCP; returns the error that prevented or ended it. A signal is none: what was measured until then is
/// in the result.
pub(super) fn measure(
    arguments: &TestArguments,
    stop: InterruptSignals,
    style: Option<TextStyle>,
    result: &mut ThroughputResult,
) -> Option<String> {
    let control = match congestion_control(arguments) {
        Ok(control) => control,
        Err(text) => return Some(text),
    };
    let target = arguments.common.target(arguments.host());
    let opened = ProbeSession::open(&target, Some(stop)).and_then(|session| {
        let ready = session.open_quic(QuicOrder { congestion_control: control })?;
        Ok((session, ready))
    });
    let (session, ready) = match opened {
        Ok(opened) => opened,
        Err(ProbeError::Interrupted) => return None,
        Err(error) => return Some(format!("QUIC: {error}")),
    };
    let target = QuicTarget {
        address: session.peer(),
        bind: target.bind,
        device: target.device.clone(),
        ready,
        congestion_control: control,
    };
    let mut series = QuicSeries {
        arguments,
        style,
        result: QuicResult {
            port: ready.port,
            handshakes: Vec::new(),
            runs: Vec::new(),
            failure: None,
            unanswered: false,
            interrupted: false,
            verdicts: Vec::new(),
        },
    };
    let failure = QuicClient::new(target, Some(stop)).and_then(|client| series.run(&client, stop)).err();
    let mut quic = series.result;
    quic.interrupted = failure == Some(QuicError::Interrupted);
    let failure = failure.filter(|error| *error != QuicError::Interrupted);
    quic.failure = failure.as_ref().map(ToString::to_string);
    quic.unanswered = failure.as_ref().is_some_and(QuicError::is_unanswered);
    quic.verdicts = transport::compare(result, &quic);
    // A blocked port is what was to be found out.
    let is_result = quic.unanswered && !quic.verdicts.is_empty();
    result.quic = Some(quic);
    failure.filter(|_| !is_result).map(|error| format!("QUIC: {error}"))
}

struct QuicSeries<'a> {
    arguments: &'a TestArguments,
    style: Option<TextStyle>,
    result: QuicResult,
}

impl QuicSeries<'_> {
    fn run(&mut self, client: &QuicClient, stop: InterruptSignals) -> Result<(), QuicError> {
        for (kind, number) in KINDS {
            for _ in 0..number {
                self.result.handshakes.push(client.handshake(kind)?);
            }
        }
        for (direction, streams) in plan_of(self.arguments, self.arguments.parallel) {
            if stop.pending().is_some() {
                return Err(QuicError::Interrupted);
            }
            let run = self.transfer(client, direction, streams)?;
            progress::publish(run_event(&run));
            let is_interrupted = run.interrupted;
            self.result.runs.push(run);
            if is_interrupted {
                return Err(QuicError::Interrupted);
            }
        }
        Ok(())
    }

    fn transfer(&self, client: &QuicClient, direction: Direction, streams: StreamCount) -> Result<QuicRun, QuicError> {
        let arguments = self.arguments;
        let order = QuicTransferOrder {
            streams: u16::try_from(streams.get()).unwrap_or(QuicTransferOrder::MAX_STREAMS),
            omit: arguments.omit,
            time: arguments.time,
            sample: sample_time(arguments),
        };
        progress::publish(ProgressEvent::phase(quic_name(direction, streams), Some(nanoseconds(order.total()))));
        let mut rates = Vec::new();
        let run = client.transfer(direction, order, &mut |sample| {
            rates.push(sample.bytes.rate_over(sample.time));
            self.show(direction, streams, &rates, &sample);
        });
        if self.style.is_some() {
            console::progress("");
        }
        run
    }

    /// Shows a sample in the progress line, and publishes it.
    fn show(&self, direction: Direction, streams: StreamCount, rates: &[BitRate], sample: &QuicProgress) {
        let rate = rates.last().map(|rate| rate.bits_per_second());
        let (up, down) = of_direction(direction, rate);
        progress::publish(ProgressEvent {
            up_bits_per_second: up,
            down_bits_per_second: down,
            rtt_ns: sample.rtt.map(nanoseconds),
            ..ProgressEvent::new(EventKind::Sample)
        });
        let Some(style) = self.style else { return };
        let (elapsed, total) = (sample.elapsed, Some(self.arguments.time));
        let progress =
            TestProgress { flow: direction, streams, elapsed, total, rates, rtt: sample.rtt, retransmits: None };
        console::progress(&throughput_text::progress_line(&progress, style));
    }
}

/// Length of the samples: as for TCP, and longer where they would be too many.
fn sample_time(arguments: &TestArguments) -> Duration {
    arguments.interval.unwrap_or(SAMPLE_INTERVAL).max(arguments.time / MAX_SAMPLES + Duration::from_nanos(1))
}

/// Names of the transfers over QUIC, in their order; none without `--quic`.
pub(super) fn planned_names(arguments: &TestArguments) -> impl Iterator<Item = String> {
    let runs = if arguments.quic { plan_of(arguments, arguments.parallel) } else { Vec::new() };
    runs.into_iter().map(|(direction, streams)| quic_name(direction, streams))
}

/// Name of a transfer in events and in the picture.
fn quic_name(direction: Direction, streams: StreamCount) -> String {
    format!("QUIC {}", run_name(direction, streams))
}

fn of_direction(direction: Direction, rate: Option<f64>) -> (Option<f64>, Option<f64>) {
    match direction {
        Direction::Up => (rate, None),
        Direction::Down => (None, rate),
    }
}

fn run_event(run: &QuicRun) -> ProgressEvent {
    let rate = run.rate();
    let (up, down) = of_direction(run.direction, rate.map(BitRate::bits_per_second));
    ProgressEvent {
        phase: Some(quic_name(run.direction, StreamCount::new(run.streams))),
        up_bits_per_second: up,
        down_bits_per_second: down,
        ..ProgressEvent::with_text(EventKind::Run, rate.map_or_else(|| "no data".to_owned(), display::rate))
    }
}

/// Prints the QUIC part below that of TCP.
pub(super) fn show(arguments: &TestArguments, display: RunDisplay, result: &ThroughputResult) {
    let common = &arguments.common;
    let Some(quic) = result.quic.as_ref().filter(|_| display == RunDisplay::AsTheyEnd) else { return };
    if !common.json && !common.brief {
        console::data(&throughput_text::quic_text(quic, console::data_style()));
    }
}
