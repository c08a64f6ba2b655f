//! The path is full, and its queue adds a multiple of the round trip.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, of_whole, time, verdict};

/// Where people notice.
const LEAST: Duration = Duration::from_millis(60);

/// The path is full, and its queue adds a multiple of the round trip.
pub(super) const RULE: Rule = Rule {
    id: "bufferbloat",
    test: "The path is full, and its queue adds a multiple of the round trip.",
    citation: "RFC 8290 section 1; reference grades of `linerate load`",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let (median, high) = evidence.queueing()?;
    let base = evidence.base?;
    if high < LEAST || high < base * 2 {
        return None;
    }
    let text = format!(
        "The path is full, and its buffer makes everybody wait: {} at rest, {} under this load.",
        time(base),
        time(base + median)
    );
    Some(
        verdict(Cause::Bufferbloat, Confidence::High, text)
            .figure("queueing, median and 95 %", Some(format!("{}, {}", time(median), time(high))))
            .figure("of what the path carries", evidence.used().map(of_whole))
            .advice("shape the line a little below its rate with a queue that keeps itself short (`linerate shape DEV --up RATE --down RATE`); a faster transfer is not to be had"),
    )
}
