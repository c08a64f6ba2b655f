//! The transfer gets nine tenths of what the path carries, or three quarters with a queue that stands.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::{Evidence, FULL};
use super::super::words::{With, of_whole, percent, rate, time, verdict};

/// With a queue of at least this length, and a fifth of the round trip, this share will do.
const FULL_WITH_QUEUE: f64 = 0.75;
const LEAST_QUEUE: Duration = Duration::from_millis(1);

/// The transfer gets nine tenths of what the path carries, or three quarters with a queue that stands.
pub(super) const RULE: Rule = Rule {
    id: "link-rate",
    test: "The transfer gets nine tenths of what the path carries, or three quarters with a queue that stands.",
    citation: "RFC 5136 section 2.2 (capacity); RFC 6349 section 3.3",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let used = evidence.used()?;
    // While a window comes back from slow start's overshoot, the queue says that the path is full.
    let standing = evidence
        .queueing()
        .zip(evidence.base)
        .is_some_and(|((median, _), base)| median > LEAST_QUEUE && median > base.mul_f64(0.2));
    if used < if standing { FULL_WITH_QUEUE } else { FULL } {
        return None;
    }
    let capacity = evidence.capacity?;
    let text = format!(
        "The path is full: {} of the {} that it carries as payload. Nothing on a host would make this faster.",
        rate(evidence.steady),
        rate(capacity)
    );
    Some(
        verdict(Cause::LinkRate, Confidence::High, text)
            .figure("of what the path carries", Some(of_whole(used)))
            .figure("queueing", evidence.queueing().map(|(median, _)| time(median)))
            .figure("sent again", evidence.retransmitted.map(percent)),
    )
}
