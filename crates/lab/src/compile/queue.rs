//! The lines of the bottleneck's queue.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Mtu, PacketCount};

use super::netem::{self, bits};
use crate::description::{BottleneckQueue, BufferSize, LinkDirection};

/// Properties of the link at the queue.
#[derive(Clone, Copy)]
pub(super) struct QueueContext<'a> {
    pub(super) direction: &'a LinkDirection,
    /// Rate of the bytes that the link layer counts.
    pub(super) rate: BitRate,
    /// Round trip of the path, without queueing.
    pub(super) round_trip: Duration,
    pub(super) mtu: Mtu,
    /// Largest packet that may arrive, as the link layer counts it.
    pub(super) largest: ByteCount,
}

/// Handle of the shaper, below the release at the root.
const SHAPER_HANDLE: &str = "10:";

/// Handle of the queue discipline within the shaper.
const INNER_HANDLE: &str = "100:";

/// True when this direction has a queue of its own. Otherwise packets wait, without a limit, in the stage that sends
/// them at the link's rate.
pub(super) const fn is_needed(direction: &LinkDirection) -> bool {
    direction.rate.is_some() && (direction.buffer.is_some() || !matches!(direction.queue, BottleneckQueue::Fifo))
}

/// Lines that install the queue on `device`.
pub(super) fn lines(device: &str, place: QueueContext<'_>) -> Vec<String> {
    let sizes = netem::size_table(place.direction.layer, place.mtu);
    let root = format!("qdisc add dev {device} root handle 1: {sizes}{}", netem::RELEASE);
    let shaper = format!("qdisc add dev {device} parent 1:1 handle {SHAPER_HANDLE} {}", shaper(place, place.rate));
    let inner = discipline(place)
        .map(|inner| format!("qdisc add dev {device} parent {SHAPER_HANDLE}1 handle {INNER_HANDLE} {inner}"));
    [root, shaper].into_iter().chain(inner).collect()
}

/// Line that changes the rate of the queue of `device`. Queued packets stay, and the buffer keeps its size in bytes
/// from the first rate: a device's memory does not grow with the radio link's rate.
pub(super) fn rate_change(device: &str, place: QueueContext<'_>, rate: BitRate) -> String {
    format!("qdisc change dev {device} parent 1:1 handle {SHAPER_HANDLE} {}", shaper(place, rate))
}

/// Shaper that holds packets to this rate.
pub(super) fn shaper(place: QueueContext<'_>, rate: BitRate) -> String {
    let text = bits(rate);
    if place.direction.queue == BottleneckQueue::Cake {
        // It shapes itself, and only so derives its delay targets.
        let memory = place.buffer().map(|size| format!(" memlimit {}", size.get())).unwrap_or_default();
        return format!("cake bandwidth {text}{memory}");
    }
    // One packet at a time: the next stage sends at the same rate, and would hold the remainder of a burst.
    let burst = place.largest.get() + (rate * TIMER_LATENESS).get().max(1);
    let limit = place.buffer().unwrap_or(NO_LIMIT).get();
    format!("tbf rate {text} burst {burst} limit {limit}")
}

/// Time by which a timer of the guest may be late: its clock has steps of 256 ns, and its timers a least time of 500 ns.
///
/// A bucket fills no further than its size. One of exactly a packet is full when the packet may go, and would lose all
/// time from then until the timer fires: 3 % of a rate of 1 Gbit/s.
const TIMER_LATENESS: Duration = Duration::from_micros(4);

/// Largest limit of the kernel's queues.
const NO_LIMIT: ByteCount = ByteCount::new(u32::MAX as u64);

impl QueueContext<'_> {
    /// Bytes that the link layer counts for a full packet.
    fn full_packet(&self) -> ByteCount {
        self.direction.layer.counted(self.mtu.byte_count())
    }

    fn buffer(&self) -> Option<ByteCount> {
        self.direction.buffer.map(|buffer| buffer.size(self.rate, self.round_trip, self.full_packet()))
    }

    /// Buffer in packets as a limit, or nothing for the discipline's own.
    fn packet_limit(&self) -> String {
        self.packets().map(|packets| format!(" limit {packets}")).unwrap_or_default()
    }

    fn packets(&self) -> Option<PacketCount> {
        self.direction.buffer.map(|buffer| buffer.packets(self.rate, self.round_trip, self.full_packet()))
    }

    /// Time in which the threshold drains, above which the `CoDel` family marks.
    fn threshold_time(&self) -> String {
        let time = self.direction.ecn_threshold.and_then(|threshold| threshold / self.rate);
        time.map(|time| format!(" ce_threshold {}us", time.as_micros().max(1))).unwrap_or_default()
    }
}

/// The discipline within the shaper; `None` for the byte queue that every `tbf` has.
pub(super) fn discipline(place: QueueContext<'_>) -> Option<String> {
    let limit = place.packet_limit();
    match place.direction.queue {
        BottleneckQueue::Fifo => match place.direction.buffer {
            Some(BufferSize::Packets(packets)) => Some(format!("pfifo limit {packets}")),
            _ => None,
        },
        BottleneckQueue::FqCodel => Some(format!("fq_codel{limit} ecn{}", place.threshold_time())),
        BottleneckQueue::Codel => Some(format!("codel{limit} ecn{}", place.threshold_time())),
        BottleneckQueue::Pie => Some(format!("pie{limit} ecn")),
        BottleneckQueue::FqPie => Some(format!("fq_pie{limit} ecn")),
        BottleneckQueue::Sfq => Some(format!("sfq{}", sfq_limit(place))),
        BottleneckQueue::Red => Some(red(place)),
        // The `tc` of older distributions does not know its options.
        BottleneckQueue::DualPi2 => Some("dualpi2".to_owned()),
        // Not in a shaper.
        BottleneckQueue::Cake => None,
    }
}

/// `sfq` takes at most 65408 packets, and 127 of each flow.
fn sfq_limit(place: QueueContext<'_>) -> String {
    place.packets().map(|packets| format!(" limit {}", packets.get().min(65_408))).unwrap_or_default()
}

/// Random early detection. With a threshold, every packet above it is marked and none below, as DCTCP expects of a
/// switch (RFC 8257 §3.1). Without, the probability of a mark rises to 2 % between a sixth and a half of the buffer;
/// above, every packet is marked.
fn red(place: QueueContext<'_>) -> String {
    let packet = place.full_packet().get();
    let buffer = place.buffer().unwrap_or(NO_LIMIT).get();
    let (low, high, average_packet, burst, probability) = if let Some(threshold) = place.direction.ecn_threshold {
        // A burst of as many packets as the threshold has makes `tc` choose the shortest average, which weights the
        // newest length of the queue by half.
        let threshold = threshold.get();
        let average_packet = threshold.div_ceil((threshold / packet).max(1));
        (threshold, threshold + 1, average_packet, threshold.div_ceil(average_packet), "1")
    } else {
        // Recommended by tc-red(8).
        let average_packet = packet.max(1000);
        let low = (buffer / 6).max(2 * average_packet);
        let high = (buffer / 2).max(low + 1);
        (low, high, average_packet, (2 * low + high) / (3 * average_packet) + 1, "0.02")
    };
    // Only the decay of the average of an idle queue; `tc` reads no more than 32 bits of byte/s.
    let bandwidth = bits(place.rate.min(BitRate::from_bits_per_second(34e9)));
    format!(
        "red limit {buffer} min {low} max {high} avpkt {average_packet} burst {burst} probability {probability} bandwidth \
         {bandwidth} ecn"
    )
}
