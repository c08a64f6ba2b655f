//! What held a run back, in a few words with the number that decides.

use linerate_model::limit::{Limit, LimitShares};
use linerate_units::Ratio;

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

/// The verdict of a run, at most 44 characters, and its colour.
pub(super) fn words(shares: Option<&LimitShares>) -> (String, Paint) {
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
