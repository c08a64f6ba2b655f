//! Delays vary at rest by a large part of the round trip.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, of_whole, time, verdict};

/// Less is the hosts' own.
const LEAST: Duration = Duration::from_millis(1);
/// Part of the round trip.
const LARGE: f64 = 0.25;

/// Delays vary at rest by a large part of the round trip.
pub(super) const RULE: Rule = Rule {
    id: "delay-variation",
    test: "Delays vary at rest by a large part of the round trip.",
    citation: "RFC 3393; RFC 5481",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let (_, high) = evidence.observation.path.as_ref()?.usual_round_trip?;
    let base = evidence.base?;
    let spread = high.saturating_sub(base);
    if spread < LEAST || spread < base.mul_f64(LARGE) {
        return None;
    }
    let text = format!(
        "The delay varies although nothing waits: {} at least, {} for the slowest twentieth of packets.",
        time(base),
        time(high)
    );
    Some(
        verdict(Cause::DelayVariation, Confidence::Medium, text)
            .figure("of what the path carries", evidence.used().map(of_whole))
            .advice("on a radio link: its own scheduling; a cable shows what the rest of the path does"),
    )
}
