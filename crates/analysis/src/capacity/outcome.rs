use core::time::Duration;

use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Ratio};

/// Reason why the limit of the path was not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SearchLimiter {
    /// The sending host sent less than requested.
    Sender,
    /// The receiving host dropped packets that the path had delivered.
    Receiver,
    /// The highest allowed rate arrived.
    MaximumRate,
    /// The allowed time was over.
    Duration,
    /// The allowed bytes were sent.
    Bytes,
}

/// Meaning of the capacity figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CapacityBound {
    /// Capacity of the path: more was sent than arrived, and the received rate did not grow.
    Path,
    /// A lower bound: at least this much arrived, and this ended the search.
    AtLeast(SearchLimiter),
    /// Unknown: too little arrived.
    Unknown,
}

/// Rates between two reports, for a chart of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Arrival time of the report, by the driver's clock.
    pub at: MonotonicTime,
    /// Send rate of these packets.
    pub sent: BitRate,
    /// Receive rate of these packets.
    pub received: BitRate,
}

/// The result of a search. All rates are of IP packets, with IP and UDP headers.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityEstimate {
    /// Capacity, or the highest received rate; `None` when unknown.
    pub capacity: Option<BitRate>,
    /// Meaning of that figure.
    pub bound: CapacityBound,
    /// Time over which it was measured: about a second, less where the limits did not allow that (RFC 9097 §6).
    pub sub_interval: Duration,
    /// Send rate in that time.
    pub sent_rate: Option<BitRate>,
    /// Loss in that time: mostly packets sent beyond the capacity.
    pub loss: Option<Ratio>,
    /// Loss below the capacity: that of the path itself.
    pub loss_below_capacity: Option<Ratio>,
    /// True when traffic that does not yield was detected at the bottleneck: then the capacity excludes that traffic.
    /// Traffic below about a tenth of the link is not detected, and is partly pushed out.
    pub shared: bool,
    /// Growth of the delay above its minimum over the whole search, smallest and largest value of the measured time:
    /// the queue at the bottleneck. The round-trip time grew by as much.
    pub delay_growth: Option<(Duration, Duration)>,
    /// Copies of packets, in the whole search.
    pub duplicates: PacketCount,
    /// Packets that arrived late, in the whole search.
    pub reordered: PacketCount,
    /// Packets lost at the receiving host, in the whole search; `None` when it does not report them.
    pub receiver_dropped: Option<PacketCount>,
    /// True when the sending host kept up with the requested rate.
    pub sender_kept_up: bool,
    /// IP bytes requested to be sent: an upper bound of the traffic of the search.
    pub asked_for: ByteCount,
    /// Duration of the search.
    pub elapsed: Duration,
    /// Rates, report by report.
    pub readings: Vec<RateSample>,
}
