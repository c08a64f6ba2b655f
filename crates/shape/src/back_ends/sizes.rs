//! How large bursts, quanta, limits and targets are (sqm-scripts' rules, which bufferbloat.net recommends).

use core::time::Duration;

use linerate_units::{BitRate, ByteCount};

use super::Inputs;
use crate::link::{Framing, LinkLayer};

/// A bucket or a turn holds what passes in this time, or one packet.
const BURST_TIME: Duration = Duration::from_millis(1);

/// What fits into 16 bits and HTB does not complain about.
const LARGEST_QUANTUM: ByteCount = ByteCount::new(60_000);

/// A packet that takes no longer than this is in nobody's way: 3 Mbit/s for 1500 bytes.
pub(super) const SHORT: Duration = Duration::from_millis(4);

/// From here on a packet is long enough that what it keeps waiting decides how a line feels: 1.2 Mbit/s for 1500 bytes.
pub(super) const SLOW: Duration = Duration::from_millis(10);

/// How long a queue without a controller may get.
pub(super) const STANDING: Duration = Duration::from_millis(20);

/// Below this, round robin in steps smaller than a packet lets small packets pass.
pub(super) const SMALL_STEPS_BELOW: f64 = 100e6;

/// The largest rate that the kernel holds exactly and `tc` prints exactly, not above `rate`: whole bytes per second below
/// 1 Mbit/s, whole kbit/s from there on. At least 8 bit/s.
pub(super) fn whole(rate: BitRate) -> BitRate {
    let bits = rate.bits_per_second();
    let step = if bits < 1e6 { 8.0 } else { 1000.0 };
    BitRate::from_bits_per_second(((bits / step).floor() * step).max(8.0))
}

/// As `tc` reads it.
pub(super) fn rate_word(rate: BitRate) -> String {
    let bits = rate.whole_bits_per_second();
    if bits >= 1000 && bits.is_multiple_of(1000) { format!("{}kbit", bits / 1000) } else { format!("{bits}bit") }
}

/// As `tc` reads it.
pub(super) fn time_word(time: Duration) -> String {
    format!("{}us", time.as_micros())
}

/// The kernel counts buckets in ticks of this length, and iproute2 up to 6.14 rounds them down.
const TICK: Duration = Duration::from_nanos(64);

/// The depth of a bucket that lets a packet through at once: one full packet as it is charged, or 1 ms; and what rounding
/// takes away again.
pub(super) fn burst(inputs: &Inputs<'_>, rate: BitRate) -> ByteCount {
    inputs.full_packet().max(rate * BURST_TIME) + rate * TICK + ByteCount::new(1)
}

/// The depth of a bucket that keeps packets apart: 1 ms. HTB sends whenever a bucket is not below zero, so it needs no room
/// for a packet; with room for one, what a class sends by right and what it borrows leave together, and a ping behind them
/// waits for both (in the lab, 220 kbit/s on a line of 240: mean 51 ms and longest 109 instead of 42 and 68). A millisecond
/// makes up for timers that are late.
pub(super) fn spacing(rate: BitRate) -> ByteCount {
    rate * BURST_TIME + rate * TICK + ByteCount::new(1)
}

/// What a class sends in its turn: one full packet as the kernel counts it, or 1 ms, up to 60 000 bytes.
pub(super) fn quantum(inputs: &Inputs<'_>, rate: BitRate) -> ByteCount {
    inputs.full_frame().max(rate * BURST_TIME).min(LARGEST_QUANTUM.max(inputs.full_frame()))
}

/// The rate for a shaper that can count bytes and cells but not PTM's 65th byte: 64/65 of it.
pub(super) fn without_ptm(layer: LinkLayer, rate: BitRate) -> BitRate {
    if layer.framing == Framing::Ptm { rate * (64.0 / 65.0) } else { rate }
}

/// How HTB, TBF and the policer are told what the line makes of a packet of which the kernel counts `header` bytes more
/// than IP; empty when nothing is to be said. They take no negative overhead: a line that adds less than the interface's
/// own header is counted up to 14 bytes a packet too slow.
pub(super) fn layer_words(layer: LinkLayer, header: ByteCount) -> String {
    if layer == LinkLayer::default() {
        return String::new();
    }
    let overhead = layer.overhead - header;
    let minimum = if layer.minimum.is_zero() { String::new() } else { format!(" mpu {}", layer.minimum.get()) };
    let framing = if layer.framing == Framing::Atm { "atm" } else { "ethernet" };
    format!(" overhead {}{minimum} linklayer {framing}", overhead.get())
}

/// The delay that a controlled queue aims at: a twentieth of the round-trip time, but never less than a full packet takes.
pub(super) fn target(inputs: &Inputs<'_>, rate: BitRate, least: Duration) -> Duration {
    let packet = rate.time_to_send(inputs.full_packet()).unwrap_or_default();
    (inputs.line.round_trip / 20).max(least).max(packet)
}

/// The time in which it judges: the round-trip time, and longer by what the target is longer.
pub(super) fn interval(inputs: &Inputs<'_>, target: Duration) -> Duration {
    (inputs.line.round_trip / 20 * 19).saturating_add(target)
}

/// What a plain queue may hold: 20 ms, but two full packets at least.
pub(super) fn plain_limit(inputs: &Inputs<'_>, rate: BitRate) -> ByteCount {
    (inputs.full_frame() * 2).max(rate * STANDING)
}

/// How many full packets a flow-queueing leaf may hold: 1001 below 100 Mbit/s, 10 240 (the kernel's) from there on.
pub(super) fn packets(rate: BitRate) -> u32 {
    if rate.bits_per_second() < SMALL_STEPS_BELOW { 1001 } else { 10_240 }
}

/// What a flow sends in its turn: 300 bytes below 100 Mbit/s, a full frame from there on.
pub(super) fn flow_quantum(inputs: &Inputs<'_>, rate: BitRate) -> ByteCount {
    if rate.bits_per_second() < SMALL_STEPS_BELOW { ByteCount::new(300) } else { inputs.full_frame() }
}
