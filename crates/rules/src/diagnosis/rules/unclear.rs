//! Nothing else fits.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::{Evidence, FULL};
use super::super::words::{With, of_whole, percent, rate, size, time, verdict};

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
        None => format!(
            "The transfer gets {}; without the path's capacity nothing more can be said.",
            rate(evidence.steady)
        ),
    };
    Some(
        verdict(Cause::Unclear, Confidence::Low, text)
            .figure("sent again", evidence.retransmitted.map(percent))
            .figure("queueing", evidence.queueing().map(|(median, _)| time(median)))
            .figure("window offered", evidence.window.map(size))
            .figure("under way", evidence.in_flight.map(size)),
    )
}
