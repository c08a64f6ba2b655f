use core::time::Duration;

use linerate_units::{MonotonicTime, PacketCount};

use crate::statistics::Signed;

/// What the receiver has counted. Counts are since the stream's start, so that a report that is missing takes nothing away;
/// delays are of the packets since the report before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// Packets that arrived, duplicates not counted.
    pub packets: PacketCount,
    /// Copies of packets that had arrived before.
    pub duplicates: PacketCount,
    /// Packets that came after one with a higher number (RFC 4737 §3.3).
    pub reordered: PacketCount,
    /// The highest number that arrived, the first packet having 0; `None` before the first.
    pub highest_sequence: Option<u64>,
    /// When the packet with that number was sent, by the sender's clock. `None` when the report does not say: then it is
    /// guessed from the arrival and the delays, which blurs the sent rate while a queue grows.
    pub highest_sent: Option<MonotonicTime>,
    /// When the last packet arrived, by the receiver's clock (the kernel's stamp); `None` before the first.
    pub last_arrival: Option<MonotonicTime>,
    /// The smallest difference of arrival and sending time since the report before, on two clocks.
    pub min_delay: Option<Signed<Duration>>,
    /// The largest.
    pub max_delay: Option<Signed<Duration>>,
    /// Packets that arrived at the receiving host, and were dropped there for want of buffer space; `None` when it does not
    /// tell.
    pub receiver_dropped: Option<PacketCount>,
}
