//! The lines of `netem`: rate, delay and what goes wrong on the way.

use core::time::Duration;

use linerate_units::{BitRate, Ratio};

use crate::description::{Direction, Distribution, Loss, Reorder};

/// More packets than memory would hold: what limits a queue is described, or nothing does.
const NO_LIMIT: u32 = 1_000_000_000;

/// A rate at which no packet takes a nanosecond.
///
/// A `netem` with it delays nothing, but releases the sender's claim on each packet, as a network card does that has
/// sent it. Without that, a queue in the middle of the path would look to the sender like its own, and TCP's small
/// queues would never fill it.
pub(super) const RELEASE: &str = "netem limit 1000000000 rate 1000tbit";

/// A number of percent as `tc` reads it.
pub(super) fn percent(share: Ratio) -> String {
    format!("{}%", share.percent())
}

/// A time in whole microseconds, all that `tc` reads.
pub(super) fn microseconds(time: Duration) -> String {
    format!("{}us", time.as_micros())
}

/// A rate in whole bit/s.
pub(super) fn bits(rate: BitRate) -> String {
    format!("{}bit", rate.whole_bits_per_second())
}

/// The last stage of a direction but for overtaking, and whether it is random; `None` where it would do nothing.
pub(super) fn stage(direction: &Direction) -> Option<(String, bool)> {
    let overtaken = direction.reorder.map_or(Duration::ZERO, |reorder| reorder.by);
    let delay = direction.delay.saturating_sub(overtaken);
    let words: Vec<String> = [
        delay_words(delay, direction),
        direction.loss.and_then(loss_words),
        direction.duplicate.map(|share| format!("duplicate {}", percent(share))),
        direction.corrupt.map(|share| format!("corrupt {}", percent(share))),
        direction.rate.map(|rate| rate_words(rate, direction)),
    ]
    .into_iter()
    .flatten()
    .collect();
    let is_random = direction.jitter.is_some()
        || matches!(direction.loss, Some(Loss::Random(_) | Loss::GilbertElliott { .. }))
        || direction.duplicate.is_some()
        || direction.corrupt.is_some();
    (!words.is_empty()).then(|| (format!("netem limit {NO_LIMIT} {}", words.join(" ")), is_random))
}

/// Where the rate changes, the shaper alone holds it: a change would begin this stage's random numbers anew. A rate at
/// which no packet takes time keeps them in their order.
fn rate_words(rate: BitRate, direction: &Direction) -> String {
    if direction.steps.is_empty() { format!("rate {}", bits(rate)) } else { "rate 1000tbit".to_owned() }
}

fn delay_words(delay: Duration, direction: &Direction) -> Option<String> {
    match direction.jitter {
        Some(jitter) => {
            let shape = match jitter.distribution {
                Distribution::Uniform => String::new(),
                other => format!(" distribution {}", other.name()),
            };
            Some(format!("delay {} {}{shape}", microseconds(delay), microseconds(jitter.by)))
        }
        None if delay.is_zero() => None,
        None => Some(format!("delay {}", microseconds(delay))),
    }
}

/// Losing every so manieth packet is not netem's: a filter counts.
fn loss_words(loss: Loss) -> Option<String> {
    match loss {
        Loss::Random(share) => Some(format!("loss random {}", percent(share))),
        Loss::GilbertElliott { good_to_bad, bad_to_good, loss_in_bad, loss_in_good } => Some(format!(
            "loss gemodel {} {} {} {}",
            percent(good_to_bad),
            percent(bad_to_good),
            percent(loss_in_bad),
            percent(loss_in_good)
        )),
        Loss::Every(_) => None,
    }
}

/// The stage in which a share of packets does not wait, and so overtakes the others.
pub(super) fn overtaking(reorder: Reorder) -> String {
    format!("netem limit {NO_LIMIT} delay {} reorder {}", microseconds(reorder.by), percent(reorder.share))
}
