//! The lines of `netem`: rate, delay and impairments.

use core::time::Duration;

use linerate_analysis::formulas::SegmentFraming;
use linerate_units::{BitRate, Mtu, Ratio};

use crate::description::{JitterDistribution, LinkDirection, LinkFraming, LinkLayer, LinkReordering, LossModel};

/// More packets than memory would hold: a queue is limited as described, or not at all.
const NO_LIMIT: u32 = 1_000_000_000;

/// A rate at which no packet takes a nanosecond.
///
/// A `netem` with it adds no delay, but releases the sender's claim on each packet, as a network card does after
/// transmission. Otherwise a queue in the middle of the path would look to the sender like its own, and TCP small
/// queues would never fill it.
pub(super) const RELEASE: &str = "netem limit 1000000000 rate 1000tbit";

/// A number of percent as `tc` reads it.
pub(super) fn percent(share: Ratio) -> String {
    format!("{}%", share.percent())
}

/// Table of packet sizes of a link layer, for a root discipline and everything below it; empty for virtual Ethernet. One
/// entry per byte, up to the full packet: the default of `tc` rounds up to four bytes.
pub(super) fn size_table(layer: LinkLayer, mtu: Mtu) -> String {
    if layer.is_virtual_ethernet() {
        return String::new();
    }
    let (overhead, header) = (layer.overhead.get().cast_signed(), SegmentFraming::ETHERNET_HEADER.get().cast_signed());
    let framing = if layer.framing == LinkFraming::Atm { "atm" } else { "ethernet" };
    let largest = (mtu.byte_count() + layer.overhead).get();
    let minimum = if layer.minimum.is_zero() { String::new() } else { format!(" mpu {}", layer.minimum.get()) };
    format!("stab overhead {}{minimum} linklayer {framing} mtu {largest} tsize {} ", overhead - header, largest + 1)
}

/// A time in whole microseconds, the resolution of `tc`.
pub(super) fn microseconds(time: Duration) -> String {
    format!("{}us", time.as_micros())
}

/// A rate in whole bit/s.
pub(super) fn bits(rate: BitRate) -> String {
    format!("{}bit", rate.whole_bits_per_second())
}

/// Last stage of a direction except reordering, and whether it is random; `None` where it would do nothing.
pub(super) fn stage(direction: &LinkDirection) -> Option<(String, bool)> {
    let overtaken = direction.reorder.map_or(Duration::ZERO, |reorder| reorder.by);
    let delay = direction.delay.saturating_sub(overtaken);
    let parameters: Vec<String> = [
        delay_argument(delay, direction),
        direction.loss.and_then(loss_argument),
        direction.duplicate.map(|share| format!("duplicate {}", percent(share))),
        direction.corrupt.map(|share| format!("corrupt {}", percent(share))),
        direction.rate.map(|rate| rate_argument(rate, direction)),
    ]
    .into_iter()
    .flatten()
    .collect();
    let is_random = direction.jitter.is_some()
        || matches!(direction.loss, Some(LossModel::Random(_) | LossModel::GilbertElliott { .. }))
        || direction.duplicate.is_some()
        || direction.corrupt.is_some();
    (!parameters.is_empty()).then(|| (format!("netem limit {NO_LIMIT} {}", parameters.join(" ")), is_random))
}

/// Rate of the stage. A rate that changes is enforced by the shaper only: a change would restart this stage's random numbers;
/// one at which no packet takes time keeps them in their order.
fn rate_argument(rate: BitRate, direction: &LinkDirection) -> String {
    if direction.steps.is_empty() {
        format!("rate {}", bits(direction.layer.counted_rate(rate)))
    } else {
        "rate 1000tbit".to_owned()
    }
}

fn delay_argument(delay: Duration, direction: &LinkDirection) -> Option<String> {
    match direction.jitter {
        Some(jitter) => {
            let shape = match jitter.distribution {
                JitterDistribution::Uniform => String::new(),
                other => format!(" distribution {}", other.name()),
            };
            Some(format!("delay {} {}{shape}", microseconds(delay), microseconds(jitter.by)))
        }
        None if delay.is_zero() => None,
        None => Some(format!("delay {}", microseconds(delay))),
    }
}

/// Periodic loss is not netem's: a filter counts packets.
fn loss_argument(loss: LossModel) -> Option<String> {
    match loss {
        LossModel::Random(share) => Some(format!("loss random {}", percent(share))),
        LossModel::GilbertElliott { good_to_bad, bad_to_good, loss_in_bad, loss_in_good } => Some(format!(
            "loss gemodel {} {} {} {}",
            percent(good_to_bad),
            percent(bad_to_good),
            percent(loss_in_bad),
            percent(loss_in_good)
        )),
        LossModel::Every(_) => None,
    }
}

/// Stage in which a share of packets is not delayed, and so overtakes the others.
pub(super) fn reorder_stage(reorder: LinkReordering) -> String {
    format!("netem limit {NO_LIMIT} delay {} reorder {}", microseconds(reorder.by), percent(reorder.share))
}
