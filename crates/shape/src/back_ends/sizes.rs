//! Sizes of bursts, quanta, limits and targets (sqm-scripts' rules, which bufferbloat.net recommends).

use core::time::Duration;

use linerate_model::direction::Direction;
use linerate_units::{BitRate, ByteCount};

use super::PlanInputs;
use crate::link::{LinkFraming, LinkLayer};

/// Time that sizes a bucket or quantum, which holds at least one packet.
const BURST_TIME: Duration = Duration::from_millis(1);

/// Maximum quantum: fits into 16 bits, without a warning of HTB.
const MAX_QUANTUM: ByteCount = ByteCount::new(60_000);

/// Serialisation time of a packet that causes no relevant delay: 1500 bytes at 3 Mbit/s.
pub(super) const SHORT: Duration = Duration::from_millis(4);

/// Serialisation time from which a packet dominates the delay of others: 1500 bytes at 0.4 Mbit/s.
pub(super) const SLOW: Duration = Duration::from_millis(30);

/// Maximum delay of a queue without active queue management.
pub(super) const MAX_QUEUE_DELAY: Duration = Duration::from_millis(20);

/// Rate in bit/s below which a quantum smaller than a packet lets small packets pass.
pub(super) const SMALL_QUANTUM_RATE: f64 = 100e6;

/// Largest rate not above `rate` that the kernel represents and `tc` prints exactly: whole bytes per second below
/// 1 Mbit/s, whole kbit/s from there on. At least 8 bit/s.
pub(super) fn representable_rate(rate: BitRate) -> BitRate {
    let bits = rate.bits_per_second();
    let step = if bits < 1e6 { 8.0 } else { 1000.0 };
    BitRate::from_bits_per_second(((bits / step).floor() * step).max(8.0))
}

/// Formats a rate for `tc`.
pub(super) fn rate_argument(rate: BitRate) -> String {
    let bits = rate.whole_bits_per_second();
    if bits >= 1000 && bits.is_multiple_of(1000) { format!("{}kbit", bits / 1000) } else { format!("{bits}bit") }
}

/// Formats a time for `tc`.
pub(super) fn time_argument(time: Duration) -> String {
    format!("{}us", time.as_micros())
}

/// Length of a kernel tick, in which buckets are counted; iproute2 up to 6.14 rounds down.
const KERNEL_TICK: Duration = Duration::from_nanos(64);

/// Depth of a bucket that lets a packet through at once: one full packet as charged, or 1 ms; plus compensation for
/// rounding.
pub(super) fn burst(inputs: &PlanInputs<'_>, rate: BitRate) -> ByteCount {
    inputs.full_packet().max(rate * BURST_TIME) + rate * KERNEL_TICK + ByteCount::new(1)
}

/// Depth of a bucket that spaces packets: 1 ms. HTB sends whenever a bucket is not negative, so it need not hold a
/// packet; if it does, a class's guaranteed and borrowed packets leave together, and a ping behind them waits for both
/// (in the lab, 220 kbit/s on a link of 240: mean 51 ms and longest 109 instead of 42 and 68). A millisecond
/// compensates for late timers.
pub(super) fn spacing_burst(rate: BitRate) -> ByteCount {
    rate * BURST_TIME + rate * KERNEL_TICK + ByteCount::new(1)
}

/// Quantum of a class: one full packet as the kernel counts it, or 1 ms, up to 60 000 bytes.
pub(super) fn quantum(inputs: &PlanInputs<'_>, rate: BitRate) -> ByteCount {
    inputs.full_frame().max(rate * BURST_TIME).min(MAX_QUANTUM.max(inputs.full_frame()))
}

/// Link-layer options for HTB, TBF and the policer, where the kernel counts `header` bytes more than IP; empty without
/// compensation. They take no negative overhead: a link with less overhead than the interface's header is shaped up to
/// 14 bytes per packet too slow.
pub(super) fn link_layer_options(layer: LinkLayer, header: ByteCount) -> String {
    if layer == LinkLayer::NO_OVERHEAD {
        return String::new();
    }
    let overhead = layer.overhead - header;
    let minimum = if layer.minimum.is_zero() { String::new() } else { format!(" mpu {}", layer.minimum.get()) };
    let framing = if layer.framing == LinkFraming::Atm { "atm" } else { "ethernet" };
    format!(" overhead {}{minimum} linklayer {framing}", overhead.get())
}

/// AQM target: a twentieth of the round-trip time, but at least the time of a full packet.
pub(super) fn target(inputs: &PlanInputs<'_>, rate: BitRate, direction: Direction, least: Duration) -> Duration {
    let packet = rate.time_to_send(inputs.full_packet()).unwrap_or_default();
    (*inputs.line.round_trip.of(direction) / 20).max(least).max(packet)
}

/// Target of a queue that PI controls: the requested one, else `least` or more.
pub(super) fn controlled_target(
    inputs: &PlanInputs<'_>,
    rate: BitRate,
    direction: Direction,
    least: Duration,
) -> Duration {
    inputs.policy.queues.target.of(direction).unwrap_or_else(|| target(inputs, rate, direction, least))
}

/// AQM interval: the round-trip time, extended by the extension of the target.
pub(super) fn interval(inputs: &PlanInputs<'_>, direction: Direction, target: Duration) -> Duration {
    (*inputs.line.round_trip.of(direction) / 20 * 19).saturating_add(target)
}

/// Limit of a plain queue: 20 ms, but at least four full packets. With two, one flow at 2 Mbit/s and 50 ms carried 91 %
/// of the rate, and at 200 kbit/s and 0.05 ms 94 %; with four, 97 % and 98 % (docs/shaping.md, "One flow").
pub(super) fn plain_limit(inputs: &PlanInputs<'_>, rate: BitRate) -> ByteCount {
    (inputs.full_frame() * 4).max(rate * MAX_QUEUE_DELAY)
}

/// Limit of a plain queue of a class that receives aggregated packets: it drops one that is larger as a whole, and BBR sends its
/// initial window of ten as one to a near host, again and again. With four packets, a class of 2 to 3 Mbit/s carried 0.66 Mbit/s of
/// BBR over 0.05 ms; with twelve 2.8, as of CUBIC with either.
pub(super) fn aggregate_limit(inputs: &PlanInputs<'_>, rate: BitRate) -> ByteCount {
    plain_limit(inputs, rate).max(inputs.full_frame() * 12)
}

/// Limit of a flow-queueing leaf in packets: 1001 below 100 Mbit/s, 10 240 (the kernel's) from there on.
pub(super) fn packets(rate: BitRate) -> u32 {
    if rate.bits_per_second() < SMALL_QUANTUM_RATE { 1001 } else { 10_240 }
}

/// Quantum of a flow: 300 bytes below 100 Mbit/s, a full frame from there on.
pub(super) fn flow_quantum(inputs: &PlanInputs<'_>, rate: BitRate) -> ByteCount {
    if rate.bits_per_second() < SMALL_QUANTUM_RATE { ByteCount::new(300) } else { inputs.full_frame() }
}

/// Options that were asked for in addition, as arguments of `tc` with a leading blank each.
pub(super) fn further_options(inputs: &PlanInputs<'_>, direction: Direction) -> String {
    let options = inputs.policy.queues.qdisc.of(direction);
    let threshold = options.ce_threshold.map(|time| format!(" ce_threshold {}", time_argument(time)));
    let memory = options.memory.map(|bytes| format!(" memory_limit {bytes}"));
    threshold.unwrap_or_default() + &memory.unwrap_or_default()
}
