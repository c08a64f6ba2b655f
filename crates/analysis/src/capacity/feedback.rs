use core::time::Duration;

use linerate_units::{MonotonicTime, PacketCount};

use crate::statistics::SignedDifference;

/// Counters of the receiver. Counts are since the start of the stream, so that a missing report loses nothing; delays
/// cover the packets since the previous report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverFeedback {
    /// Packets that arrived, without duplicates.
    pub packets: PacketCount,
    /// Copies of packets that had arrived before.
    pub duplicates: PacketCount,
    /// Packets that arrived after one with a higher number (RFC 4737 §3.3).
    pub reordered: PacketCount,
    /// The highest number that arrived, the first packet having 0; `None` before the first.
    pub highest_sequence: Option<u64>,
    /// Send time of the packet with that number, by the sender's clock. `None` when the report does not contain it:
    /// then it is estimated from the arrival and the delays, which blurs the sent rate while a queue grows.
    pub highest_sent: Option<MonotonicTime>,
    /// Arrival time of the last packet, by the receiver's clock (the kernel's time stamp); `None` before the first.
    pub last_arrival: Option<MonotonicTime>,
    /// Smallest difference of arrival and send time since the previous report, on two clocks.
    pub min_delay: Option<SignedDifference<Duration>>,
    /// Largest such difference.
    pub max_delay: Option<SignedDifference<Duration>>,
    /// Packets dropped by the receiving host for want of buffer space; `None` when it does not report them.
    pub receiver_dropped: Option<PacketCount>,
}
