//! What held a run back, in a few words with the number that decides.

use linerate_model::diagnosis::{Diagnosis, Place};
use linerate_model::limit::{Limit, LimitShares};
use linerate_model::throughput::{Flow, ThroughputResult, ThroughputRun};
use linerate_units::{Ratio, StreamCount, display};

use super::style::Paint;

/// Whole percent.
pub(super) fn whole_percent(ratio: Ratio) -> String {
    format!("{:.0} %", ratio.percent())
}

/// Why a verdict was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    SenderProcessor,
    ReceiverProcessor,
    SendBuffer,
    ReceiveWindow,
    CongestionWindow,
    NothingToSend,
}

impl Cause {
    /// In the order of [`LimitShares::verdict`], which names a full processor before everything else.
    pub(super) fn of(shares: &LimitShares) -> Self {
        if is_full(shares.sender_cpu) {
            return Self::SenderProcessor;
        }
        if is_full(shares.receiver_cpu) {
            return Self::ReceiverProcessor;
        }
        match shares.verdict() {
            Limit::Sender => Self::SendBuffer,
            Limit::Receiver => Self::ReceiveWindow,
            Limit::Network => Self::CongestionWindow,
            Limit::Application => Self::NothingToSend,
        }
    }
}

/// Whether [`LimitShares::verdict`] takes this processor for full: alone it then makes the sender the limit.
fn is_full(cpu: Option<Ratio>) -> bool {
    let application = Ratio::new(1.0).unwrap_or_default();
    LimitShares { sender_cpu: cpu, application, ..LimitShares::default() }.verdict() == Limit::Sender
}

/// The verdict of a run, at most 44 characters, and its colour. The stop-watches have the number; where the diagnosis,
/// which knows more than they do, comes to another end, it is the diagnosis that counts.
pub(super) fn words(run: &ThroughputRun) -> (String, Paint) {
    let shares = run.limits();
    let place = run.diagnosis.as_ref().and_then(Diagnosis::first).map(|verdict| verdict.cause.place());
    let watched = shares.as_ref().map(|shares| place_of(shares.verdict()));
    match place.filter(|place| watched != Some(*place)) {
        Some(Place::Application) => ("application-limited".to_owned(), Paint::Cyan),
        Some(Place::Sender) => ("sender-limited".to_owned(), Paint::Yellow),
        Some(Place::Receiver) => ("receiver-limited".to_owned(), Paint::Yellow),
        Some(Place::Hosts) => ("limited by the hosts".to_owned(), Paint::Yellow),
        Some(Place::Network | Place::Nowhere) => ("network-limited".to_owned(), Paint::Green),
        Some(Place::Unknown) | None => words_of(shares.as_ref()),
    }
}

fn place_of(limit: Limit) -> Place {
    match limit {
        Limit::Application => Place::Application,
        Limit::Sender => Place::Sender,
        Limit::Receiver => Place::Receiver,
        Limit::Network => Place::Network,
    }
}

/// What the stop-watches say.
fn words_of(shares: Option<&LimitShares>) -> (String, Paint) {
    let Some(shares) = shares else { return ("limit unknown".to_owned(), Paint::Dim) };
    let cpu = |cpu: Option<Ratio>| cpu.map_or_else(String::new, |cpu| format!(" {}", whole_percent(cpu)));
    match Cause::of(shares) {
        Cause::SenderProcessor => (format!("sender-limited: CPU busy{}", cpu(shares.sender_cpu)), Paint::Yellow),
        Cause::ReceiverProcessor => (format!("receiver-limited: CPU busy{}", cpu(shares.receiver_cpu)), Paint::Yellow),
        Cause::SendBuffer => {
            (format!("sender-limited: buffer full {} of time", whole_percent(shares.send_buffer)), Paint::Yellow)
        }
        Cause::ReceiveWindow => {
            (format!("receiver-limited: window full {} of time", whole_percent(shares.receive_window)), Paint::Yellow)
        }
        Cause::CongestionWindow => {
            (format!("network-limited, {} of the time", whole_percent(shares.network)), Paint::Green)
        }
        Cause::NothingToSend => {
            (format!("application-limited: idle {} of time", whole_percent(shares.application)), Paint::Cyan)
        }
    }
}

/// What came out of the whole series, in one sentence: the best rate of each direction, and what limits there.
///
/// `Up 941 Mbit/s over 4 streams (network-limited, 98 % of the time), down 430 Mbit/s over one stream (limit unknown).`
#[must_use]
pub fn sentence(result: &ThroughputResult) -> String {
    let parts: Vec<String> = [Flow::Up, Flow::Down].into_iter().filter_map(|flow| best(result, flow)).collect();
    let text = if parts.is_empty() { "nothing was measured".to_owned() } else { parts.join(", ") };
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}

/// The best run of a direction.
fn best(result: &ThroughputResult, flow: Flow) -> Option<String> {
    let rate = |run: &ThroughputRun| run.rate().map(|measured| measured.rate);
    let run = result.runs.iter().filter(|run| run.flow == flow && rate(run).is_some()).max_by_key(|run| rate(run))?;
    let direction = match flow {
        Flow::Up => "up",
        Flow::Down => "down",
    };
    let streams =
        if run.streams == StreamCount::new(1) { "one stream".to_owned() } else { format!("{} streams", run.streams) };
    let (limit, _) = words(run);
    Some(format!("{direction} {} over {streams} ({limit})", display::rate(rate(run)?)))
}
