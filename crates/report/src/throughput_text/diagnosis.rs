//! Describes a run's limit: the first verdict, and the shares of the time by sender state.

use linerate_model::diagnosis::{CauseLocation, Confidence, SenderState, TransferDiagnosis};
use linerate_units::display;

use super::verdict::whole_percent;

/// Minimum share that is shown.
const MIN_SHARE: f64 = 0.005;

/// Multiple of the goodput above which a bound is not shown as the next limit: over a loopback, buffers allow petabits.
const MAX_BOUND_RATIO: f64 = 100.0;

/// First verdict with its figure, its confidence and the next limit.
///
/// `The receive window is the limit: 233 kB per 20.1 ms round trip allows 92.7 Mbit/s. Next: the send buffer, 1.05
/// Gbit/s.`
pub(super) fn sentence(diagnosis: &TransferDiagnosis) -> Option<String> {
    let first = diagnosis.main_verdict()?;
    if first.cause.location() == CauseLocation::Unknown {
        return Some(first.text.clone());
    }
    let sure = match first.confidence {
        Confidence::High => "",
        Confidence::Medium => " Confidence: medium.",
        Confidence::Low => " Confidence: low.",
    };
    // A bound below the goodput is outdated: its inputs have changed meanwhile. One far above is irrelevant.
    let near = diagnosis.goodput..diagnosis.goodput * MAX_BOUND_RATIO;
    let next = diagnosis.next.as_ref().filter(|next| near.contains(&next.rate));
    let next = next
        .map_or_else(String::new, |next| format!(" Next limit: {}, {}.", next.kind.title(), display::rate(next.rate)));
    Some(format!("{}{sure}{next}", first.text))
}

/// `window closed 91 %, slow start 5 %, idle 4 % of the time`; `None` where the sender's sockets were not sampled.
pub(super) fn states(diagnosis: &TransferDiagnosis) -> Option<String> {
    let shown = diagnosis.states.iter().filter(|one| one.share.get() >= MIN_SHARE);
    let parts: Vec<String> =
        shown.map(|one| format!("{} {}", state_label(one.state), whole_percent(one.share))).collect();
    (!parts.is_empty()).then(|| format!("{} of the time", parts.join(", ")))
}

/// Display text of a sender state.
const fn state_label(state: SenderState) -> &'static str {
    match state {
        SenderState::Application => "idle",
        SenderState::SendBuffer => "send buffer full",
        SenderState::ReceiveWindow => "window closed",
        SenderState::Stalled => "nothing acknowledged",
        SenderState::Recovery => "repairing losses",
        SenderState::SlowStart => "slow start",
        SenderState::Queueing => "queue on the path",
        SenderState::CongestionWindow => "congestion window",
    }
}
