//! Verdict of a run, in a few words with the deciding number.

use linerate_model::diagnosis::{CauseLocation, TransferDiagnosis};
use linerate_model::direction::Direction;
use linerate_model::limit::{LimitShares, TransferLimit};
use linerate_model::quic::{QuicResult, TransportCause, TransportVerdict};
use linerate_model::throughput::{ThroughputResult, ThroughputRun};
use linerate_units::{Ratio, StreamCount, display};

use super::style::TextColour;

/// Whole percent.
pub(super) fn whole_percent(ratio: Ratio) -> String {
    format!("{:.0} %", ratio.percent())
}

/// Cause of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitCause {
    SenderProcessor,
    ReceiverProcessor,
    SendBuffer,
    ReceiveWindow,
    CongestionWindow,
    NothingToSend,
}

impl LimitCause {
    /// Maps in the order of [`LimitShares::verdict`], which names a full processor before everything else.
    pub(super) fn of(shares: &LimitShares) -> Self {
        if shares.is_sender_cpu_bound() {
            return Self::SenderProcessor;
        }
        if shares.is_receiver_cpu_bound() {
            return Self::ReceiverProcessor;
        }
        match shares.verdict() {
            TransferLimit::Sender => Self::SendBuffer,
            TransferLimit::Receiver => Self::ReceiveWindow,
            TransferLimit::Network => Self::CongestionWindow,
            TransferLimit::Application => Self::NothingToSend,
        }
    }
}

/// Verdict of a run, at most 44 characters, and its colour. The limit shares have the number; where the diagnosis,
/// which has more data, names another place, the diagnosis counts.
pub(super) fn verdict_text(run: &ThroughputRun) -> (String, TextColour) {
    let shares = run.limits();
    let place =
        run.diagnosis.as_ref().and_then(TransferDiagnosis::main_verdict).map(|verdict| verdict.cause.location());
    let watched = shares.as_ref().map(|shares| place_of(shares.verdict()));
    match place.filter(|place| watched != Some(*place)) {
        Some(CauseLocation::Application) => ("application-limited".to_owned(), TextColour::Cyan),
        Some(CauseLocation::Sender) => ("sender-limited".to_owned(), TextColour::Yellow),
        Some(CauseLocation::Receiver) => ("receiver-limited".to_owned(), TextColour::Yellow),
        Some(CauseLocation::Hosts) => ("limited by the hosts".to_owned(), TextColour::Yellow),
        Some(CauseLocation::Network | CauseLocation::Nowhere) => ("network-limited".to_owned(), TextColour::Green),
        Some(CauseLocation::Unknown) | None => limit_text(shares.as_ref()),
    }
}

fn place_of(limit: TransferLimit) -> CauseLocation {
    match limit {
        TransferLimit::Application => CauseLocation::Application,
        TransferLimit::Sender => CauseLocation::Sender,
        TransferLimit::Receiver => CauseLocation::Receiver,
        TransferLimit::Network => CauseLocation::Network,
    }
}

/// Verdict text from the limit shares.
fn limit_text(shares: Option<&LimitShares>) -> (String, TextColour) {
    let Some(shares) = shares else { return ("limit unknown".to_owned(), TextColour::Dim) };
    match LimitCause::of(shares) {
        LimitCause::SenderProcessor => {
            (format!("sender-limited: {}", cpu_text(shares.sender_cpu, shares.sender_wait)), TextColour::Yellow)
        }
        LimitCause::ReceiverProcessor => {
            (format!("receiver-limited: {}", cpu_text(shares.receiver_cpu, shares.receiver_wait)), TextColour::Yellow)
        }
        LimitCause::SendBuffer => {
            (format!("sender-limited: buffer full {} of time", whole_percent(shares.send_buffer)), TextColour::Yellow)
        }
        LimitCause::ReceiveWindow => (
            format!("receiver-limited: window full {} of time", whole_percent(shares.receive_window)),
            TextColour::Yellow,
        ),
        LimitCause::CongestionWindow => {
            (format!("network-limited, {} of the time", whole_percent(shares.network)), TextColour::Green)
        }
        LimitCause::NothingToSend => {
            (format!("application-limited: idle {} of time", whole_percent(shares.application)), TextColour::Cyan)
        }
    }
}

/// `CPU busy 97 %` of a thread that ran, `waits for CPU 66 %` of one that could have.
fn cpu_text(cpu: Option<Ratio>, wait: Option<Ratio>) -> String {
    let share = |ratio: Option<Ratio>| ratio.map_or_else(String::new, |ratio| format!(" {}", whole_percent(ratio)));
    if wait > cpu { format!("waits for CPU{}", share(wait)) } else { format!("CPU busy{}", share(cpu)) }
}

/// Summary of the whole series in one sentence: the best rate of each direction, and its limit.
///
/// `Up 941 Mbit/s over 4 streams (network-limited, 98 % of the time), down 430 Mbit/s over one stream (limit unknown).`
#[must_use]
pub fn sentence(result: &ThroughputResult) -> String {
    let parts: Vec<String> =
        [Direction::Up, Direction::Down].into_iter().filter_map(|flow| best(result, flow)).collect();
    let text = if parts.is_empty() { "nothing was measured".to_owned() } else { parts.join(", ") };
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.{}", letters.as_str(), result.quic.as_ref().map_or_else(String::new, transports))
}

/// ` QUIC: up the same, down processor-bound.`
fn transports(quic: &QuicResult) -> String {
    let verdicts: Vec<String> = quic.verdicts.iter().map(transport).collect();
    if verdicts.is_empty() { String::new() } else { format!(" QUIC: {}.", verdicts.join(", ")) }
}

fn transport(verdict: &TransportVerdict) -> String {
    let direction = verdict.direction.map_or_else(String::new, |direction| format!("{} ", direction.name()));
    format!("{direction}{}", title(verdict.cause))
}

const fn title(cause: TransportCause) -> &'static str {
    match cause {
        TransportCause::UdpBlocked => "UDP blocked",
        TransportCause::UdpBufferSmall => "UDP buffer small",
        TransportCause::ProcessorBound => "processor-bound",
        TransportCause::UdpThrottled => "UDP throttled",
        TransportCause::SlowerUnexplained => "slower",
        TransportCause::QuicFaster => "faster",
        TransportCause::Same => "the same",
    }
}

/// Best run of a direction, as text.
fn best(result: &ThroughputResult, flow: Direction) -> Option<String> {
    let rate = |run: &ThroughputRun| run.rate().map(|measured| measured.rate);
    let run =
        result.runs.iter().filter(|run| run.direction == flow && rate(run).is_some()).max_by_key(|run| rate(run))?;
    let direction = match flow {
        Direction::Up => "up",
        Direction::Down => "down",
    };
    let streams =
        if run.streams == StreamCount::new(1) { "one stream".to_owned() } else { format!("{} streams", run.streams) };
    let (limit, _) = verdict_text(run);
    Some(format!("{direction} {} over {streams} ({limit})", display::rate(rate(run)?)))
}
