//! Nothing else fits.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::{Evidence, FULL};
use super::super::words::{With, of_whole, percent, rate, size, time, verdict};

/// A queue that is no jitter, as for a path that is full.
const LEAST_QUEUE: Duration = Duration::from_millis(1);

/// Nothing else fits.
pub(super) const RULE: Rule =
    Rule { id: "unclear", test: "Nothing else fits.", citation: "what is not known is said", check };

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    evidence.shares?;
    let text = match evidence.used() {
        Some(used) if used < FULL && super::link_rate::RULE.check_is_silent(evidence) => {
            format!("The transfer gets {} of what the path carries, and none of the known causes fits.", of_whole(used))
        }
        Some(_) => return None,
        None => without_capacity(evidence),
    };
    let measure = "`linerate diagnose HOST` measures what the path carries, and so whether it is full";
    let found = verdict(Cause::Unclear, Confidence::Low, text);
    Some(
        if evidence.capacity.is_none() { found.advice(measure) } else { found }
            .figure("sent again", evidence.retransmitted.map(percent))
            .figure("queueing", evidence.queueing().map(|(median, _)| time(median)))
            .figure("window offered", evidence.window.map(size))
            .figure("under way", evidence.in_flight.map(size)),
    )
}

/// What can be said of a transfer whose path was not measured: a queue tells of a bottleneck that has enough to send.
fn without_capacity(evidence: &Evidence<'_>) -> String {
    let standing = evidence
        .queueing()
        .zip(evidence.base)
        .filter(|((median, _), base)| *median > LEAST_QUEUE && *median > base.mul_f64(0.2));
    let rate = rate(evidence.steady);
    match standing {
        Some(((median, _), _)) => format!(
            "No limit of a host shows: the transfer gets {rate}, and a queue of {} stands on the path, which then is most likely full.",
            time(median)
        ),
        None => format!(
            "No limit of a host shows: the transfer gets {rate}, and without the path's capacity nothing more can be said."
        ),
    }
}
