//! What one TCP connection did between two readings of its socket.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Ratio, SegmentCount};

use crate::limit::LimitShares;
use crate::socket::SocketReading;
use crate::tcp_info::TcpInfo;

/// What happened to a flow between two readings, and where it stood at the second. What the kernel does not tell is
/// `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowChange {
    /// Between the readings.
    pub elapsed: Duration,
    /// Payload that the far end acknowledged.
    pub acknowledged: Option<ByteCount>,
    /// Payload that came from the far end, in order.
    pub received: Option<ByteCount>,
    /// Payload acknowledged per time.
    pub send_rate: Option<BitRate>,
    /// Payload received per time.
    pub receive_rate: Option<BitRate>,
    /// Segments that were sent again.
    pub retransmitted: Option<SegmentCount>,
    /// Bytes sent again as a share of all bytes sent; `None` also when nothing was sent.
    pub retransmission_share: Option<Ratio>,
    /// Smoothed round-trip time at the second reading.
    pub rtt: Option<Duration>,
    /// How much of it is waiting: what it exceeds the smallest round trip by.
    pub queueing: Option<Duration>,
    /// Congestion window at the second reading.
    pub congestion_window: Option<ByteCount>,
    /// On its way and not acknowledged at the second reading.
    pub in_flight: Option<ByteCount>,
    /// The kernel's latest sample of the rate at which data arrived.
    pub delivery_rate: Option<BitRate>,
    /// Shares of the time by what held the sender back, by the kernel's stop-watches.
    pub limits: Option<LimitShares>,
}

impl FlowChange {
    /// What happened from `first` to `last`, readings of one socket that lie `elapsed` apart.
    #[must_use]
    pub fn between(first: &SocketReading, last: &SocketReading, elapsed: Duration) -> Self {
        let (Some(before), Some(after)) = (&first.info, &last.info) else {
            return Self { elapsed, ..Self::default() };
        };
        let acknowledged = grown(before.bytes_acknowledged, after.bytes_acknowledged);
        let received = grown(before.bytes_received, after.bytes_received);
        let rate =
            |bytes: Option<ByteCount>| bytes.filter(|_| !elapsed.is_zero()).map(|bytes| bytes.rate_over(elapsed));
        Self {
            elapsed,
            acknowledged,
            received,
            send_rate: rate(acknowledged),
            receive_rate: rate(received),
            retransmitted: retransmitted(before, after),
            retransmission_share: retransmission_share(first, last),
            rtt: after.rtt,
            queueing: after.rtt.zip(after.min_rtt).map(|(rtt, least)| rtt.saturating_sub(least)),
            congestion_window: after.congestion_window,
            in_flight: last.in_flight(),
            delivery_rate: after.delivery_rate,
            limits: LimitShares::between(before, after, elapsed),
        }
    }

    /// Whether any payload arrived, either way.
    #[must_use]
    pub fn moved(&self) -> bool {
        [self.acknowledged, self.received].into_iter().flatten().any(|bytes| !bytes.is_zero())
    }

    /// Payload per time, both ways together; nothing where nothing is known.
    #[must_use]
    pub fn total_rate(&self) -> BitRate {
        [self.send_rate, self.receive_rate].into_iter().flatten().sum()
    }
}

fn grown(before: Option<ByteCount>, after: Option<ByteCount>) -> Option<ByteCount> {
    after?.checked_sub(before?)
}

fn retransmitted(before: &TcpInfo, after: &TcpInfo) -> Option<SegmentCount> {
    after.retransmits?.get().checked_sub(before.retransmits?.get()).map(SegmentCount::new)
}

/// By bytes where the kernel counts them (Linux 4.19), else by segments with data.
fn retransmission_share(first: &SocketReading, last: &SocketReading) -> Option<Ratio> {
    let (before, after) = (first.info.as_ref()?, last.info.as_ref()?);
    let bytes = grown(before.bytes_retransmitted, after.bytes_retransmitted)
        .zip(grown(before.bytes_sent, after.bytes_sent))
        .map(|(again, sent)| Ratio::of(again.as_f64(), sent.as_f64()));
    bytes.unwrap_or_else(|| {
        let sent = after.data_segments_sent?.get().checked_sub(before.data_segments_sent?.get())?;
        retransmitted(before, after)?.share_of(SegmentCount::new(sent))
    })
}

/// What limits a flow at one moment, with the figure that says so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlowLimit {
    /// Nothing was sent or received, and nothing waits.
    Idle,
    /// It is only being set up or taken down.
    Handshake,
    /// Connections that a listener has not accepted yet, and how many may wait.
    Accepting {
        /// That wait.
        waiting: u64,
        /// That may wait.
        room: u64,
    },
    /// The sending application had nothing to send for this share of the time; `None` when only its latest sample says so.
    Application {
        /// Share of the time.
        share: Option<Ratio>,
    },
    /// The send buffer was full for this share of the time in which data was on its way.
    SendBuffer {
        /// Share of the time; `None` when only its state says so: it is full, and all of it is on its way.
        share: Option<Ratio>,
        /// Its size as the kernel counts it.
        buffer: Option<ByteCount>,
    },
    /// The far end's window was used up for this share of the time in which data was on its way.
    ReceiveWindow {
        /// Share of the time; `None` when the rate alone says so: it is a window per round trip.
        share: Option<Ratio>,
        /// That window.
        window: Option<ByteCount>,
    },
    /// The far end has closed its window: its application does not read.
    ZeroWindow {
        /// Probes without an answer.
        probes: Option<u8>,
    },
    /// The application may send no faster (`SO_MAX_PACING_RATE`).
    Pacing {
        /// The limit.
        rate: BitRate,
    },
    /// Losses keep the congestion window small, without a queue.
    Loss {
        /// Bytes sent again as a share of those sent; `None` when the kernel does not count them.
        share: Option<Ratio>,
    },
    /// The congestion window, that is the path: its rate, or its queue.
    CongestionWindow {
        /// The window.
        window: Option<ByteCount>,
    },
    /// Nothing of what was sent is acknowledged.
    NotMoving {
        /// How often the retransmission timeout was doubled.
        backoff: u8,
        /// Since data was sent last.
        silent: Option<Duration>,
        /// Small segments went through before, and full ones do not: as on a path that swallows large packets.
        black_hole: bool,
    },
    /// Data arrives faster than the application on this host reads.
    SlowReader {
        /// How full the receive buffer is.
        fill: Ratio,
    },
    /// This host's own window: the rate is a window per round trip.
    OwnWindow {
        /// That window.
        window: ByteCount,
    },
    /// Data comes, and this end does not see what holds it back.
    FarEnd,
    /// The kernel says too little.
    Unknown,
}

/// Who chose a buffer's size, as far as readings tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferOrigin {
    /// The size that every socket begins with.
    Initial,
    /// The largest that the kernel makes it by itself.
    Largest,
    /// The kernel adapts it.
    Adapted,
    /// It looks as if the application had set it (`setsockopt`), which ends the adapting.
    SetByApplication,
}

/// What a host's settings make of the buffers of a TCP socket (`tcp_wmem`, `tcp_rmem`): initial and largest size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferSettings {
    /// Of the send buffer; `None` when it could not be read.
    pub send: Option<(ByteCount, ByteCount)>,
    /// Of the receive buffer; `None` when it could not be read.
    pub receive: Option<(ByteCount, ByteCount)>,
}

/// What can be said of one flow at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowState {
    /// What limits it.
    pub limit: FlowLimit,
    /// Who chose the send buffer's size; `None` when it cannot be said.
    pub send_buffer: Option<BufferOrigin>,
    /// Who chose the receive buffer's size; `None` when it cannot be said.
    pub receive_buffer: Option<BufferOrigin>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{FlowKey, Moment, SocketCookie, TcpState, UserId};

    fn reading(info: TcpInfo) -> SocketReading {
        let any = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        SocketReading {
            key: FlowKey { local: any, remote: any, cookie: SocketCookie(1) },
            state: TcpState::Established,
            user: UserId(0),
            inode: None,
            receive_queue: ByteCount::ZERO,
            send_queue: ByteCount::ZERO,
            timer: None,
            info: Some(info),
            moment: Moment::default(),
            memory: None,
            congestion_control: None,
            congestion_state: None,
            type_of_service: None,
            mark: None,
            control_group: None,
        }
    }

    fn counters(acknowledged: u64, received: u64, sent: u64, again: u64, segments: u64) -> TcpInfo {
        let bytes = |count| Some(ByteCount::new(count));
        TcpInfo {
            bytes_acknowledged: bytes(acknowledged),
            bytes_received: bytes(received),
            bytes_sent: bytes(sent),
            bytes_retransmitted: bytes(again),
            retransmits: Some(SegmentCount::new(segments)),
            rtt: Some(Duration::from_millis(25)),
            min_rtt: Some(Duration::from_millis(20)),
            ..TcpInfo::default()
        }
    }

    #[test]
    fn differences_are_rates_and_shares() {
        let first = reading(counters(1000, 500, 1000, 0, 0));
        let last = reading(counters(1_251_000, 125_500, 1_301_000, 13_000, 9));
        let change = FlowChange::between(&first, &last, Duration::from_millis(100));
        assert_eq!(change.send_rate, Some(BitRate::from_bits_per_second(100e6)));
        assert_eq!(change.receive_rate, Some(BitRate::from_bits_per_second(10e6)));
        assert_eq!(change.total_rate(), BitRate::from_bits_per_second(110e6));
        assert_eq!(change.retransmission_share, Ratio::new(0.01));
        assert_eq!(change.retransmitted, Some(SegmentCount::new(9)));
        assert_eq!(change.queueing, Some(Duration::from_millis(5)));
        assert!(change.moved());
    }

    #[test]
    fn without_bytes_the_share_is_of_segments() {
        let with = |again, sent| {
            let count = |number| Some(SegmentCount::new(number));
            reading(TcpInfo { retransmits: count(again), data_segments_sent: count(sent), ..TcpInfo::default() })
        };
        let change = FlowChange::between(&with(1, 100), &with(3, 300), Duration::from_secs(1));
        assert_eq!(change.retransmission_share, Ratio::new(0.01));
    }

    #[test]
    fn what_is_not_known_or_goes_backwards_is_not_zero() {
        let nothing = reading(TcpInfo::default());
        let change = FlowChange::between(&nothing, &nothing, Duration::from_secs(1));
        assert_eq!(change, FlowChange { elapsed: Duration::from_secs(1), ..FlowChange::default() });
        assert!(!change.moved());
        let change = FlowChange::between(
            &reading(counters(10, 10, 10, 10, 10)),
            &reading(counters(9, 9, 9, 9, 9)),
            Duration::from_secs(1),
        );
        assert_eq!((change.send_rate, change.retransmitted, change.retransmission_share), (None, None, None));
        let same = reading(counters(1, 1, 1, 0, 0));
        assert_eq!(FlowChange::between(&same, &same, Duration::ZERO).send_rate, None, "no time has passed");
    }
}
