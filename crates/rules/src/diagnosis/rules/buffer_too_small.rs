//! The window reached what the path holds, and was halved before a queue could form.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, of_whole, percent, size, time, verdict};

/// The window was as large as the path: what is lost then, the window made itself.
const REACHED: f64 = 0.9;

/// The window reached what the path holds, and was halved before a queue could form.
pub(super) const RULE: Rule = Rule {
    id: "buffer-too-small",
    test: "The window reached what the path holds, and was halved before a queue could form.",
    citation: "Appenzeller et al., SIGCOMM 2004: one flow needs a buffer of a bandwidth-delay product",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    if !evidence.loses_without_queue() {
        return None;
    }
    let flight = evidence.largest_in_flight?;
    let at_the_start = evidence.loses_only_at_the_start();
    // Where the capacity is unknown, it is slow start alone that tells.
    let reached = evidence.product().is_some_and(|product| flight.as_f64() >= product.as_f64() * REACHED);
    if !reached && !at_the_start {
        return None;
    }
    let queue = evidence.queueing().map_or("not measured".to_owned(), |(_, high)| time(high));
    let when = if at_the_start {
        "slow start overran it, and nothing was lost since".to_owned()
    } else {
        format!("at {} under way packets are dropped", size(flight))
    };
    let text = format!("The bottleneck's buffer is too small for one flow: {when}, with hardly any queue ({queue}).");
    Some(
        verdict(Cause::BufferTooSmall, Confidence::Medium, text)
            .figure("bandwidth-delay product", evidence.product().map(size))
            .figure("of what the path carries", evidence.used().map(of_whole))
            .figure("sent again", evidence.retransmitted.map(percent))
            .advice("pacing spreads the bursts that the buffer cannot hold (`fq`, BBR); several connections fill the gaps of each other"),
    )
}
