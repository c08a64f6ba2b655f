//! What limited a run, in words: the first verdict, and the shares of the time by what the sender was doing.

use linerate_model::diagnosis::{Confidence, Diagnosis, Place, State};
use linerate_units::display;

use super::verdict::whole_percent;

/// Smaller shares are no news.
const LEAST_SHARE: f64 = 0.005;

/// From this multiple of the goodput on, a bound does not come next: over a loopback, buffers allow petabits.
const FAR_ABOVE: f64 = 100.0;

/// The first verdict with its figure, how sure it is, and what would come next.
///
/// `The receive window is the limit: 233 kB per 20.1 ms round trip allows 92.7 Mbit/s. Next: the send buffer, 1.05 Gbit/s.`
pub(super) fn sentence(diagnosis: &Diagnosis) -> Option<String> {
    let first = diagnosis.first()?;
    if first.cause.place() == Place::Unknown {
        return Some(first.text.clone());
    }
    let sure = match first.confidence {
        Confidence::High => "",
        Confidence::Medium => " Confidence: medium.",
        Confidence::Low => " Confidence: low.",
    };
    // A bound below what arrived is none: what it was computed from has changed meanwhile. One far above is no news.
    let near = diagnosis.goodput..diagnosis.goodput * FAR_ABOVE;
    let next = diagnosis.next.as_ref().filter(|next| near.contains(&next.rate));
    let next = next.map_or_else(String::new, |next| format!(" Next: {}, {}.", next.name, display::rate(next.rate)));
    Some(format!("{}{sure}{next}", first.text))
}

/// `window closed 91 %, slow start 5 %, idle 4 % of the time`; `None` where the sender's sockets were not seen.
pub(super) fn states(diagnosis: &Diagnosis) -> Option<String> {
    let shown = diagnosis.states.iter().filter(|(_, share)| share.get() >= LEAST_SHARE);
    let parts: Vec<String> =
        shown.map(|(state, share)| format!("{} {}", short(*state), whole_percent(*share))).collect();
    (!parts.is_empty()).then(|| format!("{} of the time", parts.join(", ")))
}

/// What the sender was doing, in two or three words.
const fn short(state: State) -> &'static str {
    match state {
        State::Application => "idle",
        State::SendBuffer => "send buffer full",
        State::ReceiveWindow => "window closed",
        State::Stalled => "nothing acknowledged",
        State::Recovery => "repairing losses",
        State::SlowStart => "slow start",
        State::Queueing => "queue on the path",
        State::CongestionWindow => "congestion window",
    }
}
