//! The lines of the bottleneck's queue.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Mtu, PacketCount};

use super::netem::{self, bits};
use crate::description::{Buffer, Direction, ETHERNET_HEADER, Queue};

/// What is known of the queue's place.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) direction: &'a Direction,
    pub(super) rate: BitRate,
    /// Of the path, without waiting.
    pub(super) round_trip: Duration,
    pub(super) mtu: Mtu,
    /// The largest packet that may come along.
    pub(super) largest: ByteCount,
}

/// Handle of what shapes to the rate, below the release at the root.
const SHAPER: &str = "10:";

/// Handle of the queue discipline within the shaper.
const INNER: &str = "100:";

/// Whether this direction has a queue of its own. Without, packets wait in the stage that sends them at the link's rate,
/// as many as there are.
pub(super) const fn is_needed(direction: &Direction) -> bool {
    direction.rate.is_some() && (direction.buffer.is_some() || !matches!(direction.queue, Queue::Fifo))
}

/// The lines that give `device` the queue.
pub(super) fn lines(device: &str, place: Place<'_>) -> Vec<String> {
    let root = format!("qdisc add dev {device} root handle 1: {}", netem::RELEASE);
    let shaper = format!("qdisc add dev {device} parent 1:1 handle {SHAPER} {}", shaper(place, place.rate));
    let inner =
        discipline(place).map(|words| format!("qdisc add dev {device} parent {SHAPER}1 handle {INNER} {words}"));
    [root, shaper].into_iter().chain(inner).collect()
}

/// The line that gives the queue of `device` another rate. What waits stays, and the buffer has its size in bytes from
/// the first rate: a device's memory does not grow with the air.
pub(super) fn change(device: &str, place: Place<'_>, rate: BitRate) -> String {
    format!("qdisc change dev {device} parent 1:1 handle {SHAPER} {}", shaper(place, rate))
}

/// What holds packets to this rate.
fn shaper(place: Place<'_>, rate: BitRate) -> String {
    let rate = bits(rate);
    if place.direction.queue == Queue::Cake {
        // It shapes itself, and knows its delay targets only so.
        let memory = place.buffer().map(|size| format!(" memlimit {}", size.get())).unwrap_or_default();
        return format!("cake bandwidth {rate}{memory}");
    }
    // One packet at a time: what follows sends at the same rate, and would hold the rest of a burst.
    let burst = place.largest.get();
    let limit = place.buffer().unwrap_or(NO_LIMIT).get();
    format!("tbf rate {rate} burst {burst} limit {limit}")
}

/// The most that the kernel's queues count.
const NO_LIMIT: ByteCount = ByteCount::new(u32::MAX as u64);

impl Place<'_> {
    fn buffer(&self) -> Option<ByteCount> {
        self.direction.buffer.map(|buffer| buffer.size(self.rate, self.round_trip, self.mtu))
    }

    /// The buffer in packets as a limit, or nothing for the discipline's own.
    fn packet_limit(&self) -> String {
        self.packets().map(|packets| format!(" limit {packets}")).unwrap_or_default()
    }

    fn packets(&self) -> Option<PacketCount> {
        self.direction.buffer.map(|buffer| buffer.packets(self.rate, self.round_trip, self.mtu))
    }

    /// The time in which the threshold drains, above which the `CoDel` family marks.
    fn threshold_time(&self) -> String {
        let time = self.direction.ecn_threshold.and_then(|threshold| threshold / self.rate);
        time.map(|time| format!(" ce_threshold {}us", time.as_micros().max(1))).unwrap_or_default()
    }
}

/// The discipline within the shaper; `None` for the byte queue that every `tbf` has.
fn discipline(place: Place<'_>) -> Option<String> {
    let limit = place.packet_limit();
    match place.direction.queue {
        Queue::Fifo => match place.direction.buffer {
            Some(Buffer::Packets(packets)) => Some(format!("pfifo limit {packets}")),
            _ => None,
        },
        Queue::FqCodel => Some(format!("fq_codel{limit} ecn{}", place.threshold_time())),
        Queue::Codel => Some(format!("codel{limit} ecn{}", place.threshold_time())),
        Queue::Pie => Some(format!("pie{limit} ecn")),
        Queue::FqPie => Some(format!("fq_pie{limit} ecn")),
        Queue::Sfq => Some(format!("sfq{}", sfq_limit(place))),
        Queue::Red => Some(red(place)),
        // Not in a shaper.
        Queue::Cake => None,
    }
}

/// `sfq` takes at most 65408 packets, and 127 of each flow.
fn sfq_limit(place: Place<'_>) -> String {
    place.packets().map(|packets| format!(" limit {}", packets.get().min(65_408))).unwrap_or_default()
}

/// Random early detection. With a threshold, every packet above it is marked and none below, as DCTCP expects of a
/// switch (RFC 8257 §3.1). Without, the probability of a mark rises to 2 % between a sixth and a half of the buffer;
/// above, every packet is marked.
fn red(place: Place<'_>) -> String {
    let packet = (place.mtu.byte_count() + ETHERNET_HEADER).get();
    let buffer = place.buffer().unwrap_or(NO_LIMIT).get();
    let (low, high, average_packet, burst, probability) = if let Some(threshold) = place.direction.ecn_threshold {
        // A burst of as many packets as the threshold has makes `tc` choose the shortest average, which takes the
        // newest length of the queue for half.
        let threshold = threshold.get();
        let average_packet = threshold.div_ceil((threshold / packet).max(1));
        (threshold, threshold + 1, average_packet, threshold.div_ceil(average_packet), "1")
    } else {
        // What the manual of tc-red recommends.
        let average_packet = packet.max(1000);
        let low = (buffer / 6).max(2 * average_packet);
        let high = (buffer / 2).max(low + 1);
        (low, high, average_packet, (2 * low + high) / (3 * average_packet) + 1, "0.02")
    };
    // Only the pace at which an idle queue is forgotten; `tc` reads no more than 32 bits of byte/s.
    let bandwidth = bits(place.rate.min(BitRate::from_bits_per_second(34e9)));
    format!(
        "red limit {buffer} min {low} max {high} avpkt {average_packet} burst {burst} probability {probability} bandwidth \
         {bandwidth} ecn"
    )
}
