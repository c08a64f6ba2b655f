use core::time::Duration;

use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Ratio};

/// Why the path's own limit was not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The sending host sent less than it was asked to.
    Sender,
    /// The receiving host dropped what the path had delivered.
    Receiver,
    /// The highest rate that was allowed arrived.
    MaximumRate,
    /// The allowed time was over.
    Duration,
    /// The allowed bytes were sent.
    Bytes,
}

/// What the figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// The path's capacity: more was sent than arrived, and what arrived did not grow.
    Path,
    /// A lower bound: at least this much arrived, and this ended the search.
    AtLeast(Reason),
    /// Nothing can be said: too little arrived.
    Unknown,
}

/// What arrived between two reports, for a picture of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// When the report came, by the driver's clock.
    pub at: MonotonicTime,
    /// The rate at which these packets had been sent.
    pub sent: BitRate,
    /// The rate at which they arrived.
    pub received: BitRate,
}

/// The result of a search. All rates are of IP packets, with IP and UDP headers.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The capacity, or the highest rate that was seen to arrive; `None` when nothing can be said.
    pub capacity: Option<BitRate>,
    /// Which of both.
    pub bound: Bound,
    /// The time over which it was measured: about a second, less where the limits did not allow that (RFC 9097 §6).
    pub sub_interval: Duration,
    /// The rate that was sent in that time.
    pub sent_rate: Option<BitRate>,
    /// The loss in that time: mostly what was sent beyond the capacity.
    pub loss: Option<Ratio>,
    /// The loss when less than the capacity was sent: the path's own.
    pub loss_below_capacity: Option<Ratio>,
    /// Whether others' traffic that does not yield showed at the bottleneck: then the capacity is what it leaves over.
    /// Less than about a tenth of the link does not show, and is partly pushed out.
    pub shared: bool,
    /// How much the delay grew above its smallest value of the whole search, at the lowest and the highest of the measured
    /// time: the bottleneck's queue. The round-trip time grew by as much.
    pub delay_growth: Option<(Duration, Duration)>,
    /// Copies of packets, in the whole search.
    pub duplicates: PacketCount,
    /// Packets that arrived late, in the whole search.
    pub reordered: PacketCount,
    /// Packets that were lost at the receiving host, in the whole search; `None` when it does not tell.
    pub receiver_dropped: Option<PacketCount>,
    /// Whether the sending host sent as much as it was asked to.
    pub sender_kept_up: bool,
    /// IP bytes that were asked to be sent: an upper bound of the search's traffic.
    pub asked_for: ByteCount,
    /// How long the search took.
    pub elapsed: Duration,
    /// What arrived, report by report.
    pub readings: Vec<Reading>,
}
