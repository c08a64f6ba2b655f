//! Change of one TCP connection between two samples of its socket.

use core::time::Duration;
use serde::{Deserialize, Serialize};

use linerate_units::{BitRate, ByteCount, Ratio, SegmentCount};

use crate::limit::LimitShares;
use crate::socket::SocketSnapshot;
use crate::tcp_info::TcpInfo;

/// Change of a flow between two samples, and its state at the second. Values that the kernel does not report are
/// `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowChange {
    /// Time between the samples.
    pub elapsed: Duration,
    /// Payload acknowledged by the remote host.
    pub acknowledged: Option<ByteCount>,
    /// Payload received from the remote host, in order.
    pub received: Option<ByteCount>,
    /// Payload acknowledged per time.
    pub send_rate: Option<BitRate>,
    /// Payload received per time.
    pub receive_rate: Option<BitRate>,
    /// Retransmitted segments.
    pub retransmitted: Option<SegmentCount>,
    /// Retransmitted bytes as a share of all sent bytes; `None` also when nothing was sent.
    pub retransmission_share: Option<Ratio>,
    /// Smoothed round-trip time at the second sample.
    pub rtt: Option<Duration>,
    /// Queueing delay: excess over the smallest round trip.
    pub queueing: Option<Duration>,
    /// Congestion window at the second sample.
    pub congestion_window: Option<ByteCount>,
    /// Bytes in flight at the second sample.
    pub in_flight: Option<ByteCount>,
    /// Latest delivery rate sample of the kernel.
    pub delivery_rate: Option<BitRate>,
    /// Shares of the time by limit of the sender, from the kernel's chronograph counters.
    pub limits: Option<LimitShares>,
}

impl FlowChange {
    /// Change from `first` to `last`, samples of one socket taken `elapsed` apart.
    #[must_use]
    pub fn between(first: &SocketSnapshot, last: &SocketSnapshot, elapsed: Duration) -> Self {
        let (Some(before), Some(after)) = (&first.info, &last.info) else {
            return Self { elapsed, ..Self::default() };
        };
        let acknowledged = growth(before.bytes_acknowledged, after.bytes_acknowledged);
        let received = growth(before.bytes_received, after.bytes_received);
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

    /// True when payload arrived in either direction.
    #[must_use]
    pub fn has_moved_data(&self) -> bool {
        [self.acknowledged, self.received].into_iter().flatten().any(|bytes| !bytes.is_zero())
    }

    /// Payload rate of both directions together; zero when unknown.
    #[must_use]
    pub fn total_rate(&self) -> BitRate {
        [self.send_rate, self.receive_rate].into_iter().flatten().sum()
    }
}

fn growth(before: Option<ByteCount>, after: Option<ByteCount>) -> Option<ByteCount> {
    after?.checked_sub(before?)
}

fn retransmitted(before: &TcpInfo, after: &TcpInfo) -> Option<SegmentCount> {
    after.retransmits?.get().checked_sub(before.retransmits?.get()).map(SegmentCount::new)
}

/// Retransmitted share by bytes where the kernel counts them (Linux 4.19), else by segments with data.
fn retransmission_share(first: &SocketSnapshot, last: &SocketSnapshot) -> Option<Ratio> {
    let (before, after) = (first.info.as_ref()?, last.info.as_ref()?);
    let bytes = growth(before.bytes_retransmitted, after.bytes_retransmitted)
        .zip(growth(before.bytes_sent, after.bytes_sent))
        .map(|(again, sent)| Ratio::of(again.as_f64(), sent.as_f64()));
    bytes.unwrap_or_else(|| {
        let sent = after.data_segments_sent?.get().checked_sub(before.data_segments_sent?.get())?;
        retransmitted(before, after)?.share_of(SegmentCount::new(sent))
    })
}

/// Limit of a flow at one moment, with the figure that shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlowLimit {
    /// Nothing was sent or received, and nothing is queued.
    Idle,
    /// The connection is being established or closed.
    Handshake,
    /// Listener with connections that are not accepted yet.
    Accepting {
        /// Connections in the accept queue.
        waiting: u64,
        /// Length of the accept queue.
        room: u64,
    },
    /// The sending application had nothing to send for this share of the time; `None` when only the latest sample shows
    /// it.
    Application {
        /// Share of the time.
        share: Option<Ratio>,
    },
    /// The send buffer was full for this share of the busy time.
    SendBuffer {
        /// Share of the time; `None` when only its state shows it: it is full, and all of it is in flight.
        share: Option<Ratio>,
        /// Size as the kernel counts it.
        buffer: Option<ByteCount>,
    },
    /// The receive window of the remote host was exhausted for this share of the busy time.
    ReceiveWindow {
        /// Share of the time; `None` when the rate alone shows it: it equals one window per round trip.
        share: Option<Ratio>,
        /// Receive window.
        window: Option<ByteCount>,
    },
    /// The remote host has closed its window: its application does not read.
    ZeroWindow {
        /// Unanswered probes.
        probes: Option<u8>,
    },
    /// The pacing rate limits (`SO_MAX_PACING_RATE`).
    Pacing {
        /// The limit.
        rate: BitRate,
    },
    /// Losses keep the congestion window small, without a queue.
    Loss {
        /// Retransmitted bytes as a share of sent bytes; `None` when the kernel does not count them.
        share: Option<Ratio>,
    },
    /// The congestion window limits, that is the path: its rate, or its queue.
    CongestionWindow {
        /// The window.
        window: Option<ByteCount>,
    },
    /// Sent data is not acknowledged.
    NotMoving {
        /// Number of times that the retransmission timeout was doubled.
        backoff: u8,
        /// Time since data was sent last.
        silent: Option<Duration>,
        /// True when small segments passed before and full ones do not: as on a path that drops large packets.
        black_hole: bool,
    },
    /// Data arrives faster than the local application reads.
    SlowReader {
        /// Fill level of the receive buffer.
        fill: Ratio,
    },
    /// The local receive window limits: the rate is one window per round trip.
    OwnWindow {
        /// Receive window.
        window: ByteCount,
    },
    /// Data arrives, and the limit is not visible on the local host.
    FarEnd,
    /// The kernel reports too little.
    Unknown,
}

impl FlowLimit {
    /// Kind, without its figure.
    #[must_use]
    pub const fn kind(&self) -> FlowLimitKind {
        match self {
            Self::Idle => FlowLimitKind::Idle,
            Self::Handshake => FlowLimitKind::Handshake,
            Self::Accepting { .. } => FlowLimitKind::Accepting,
            Self::Application { .. } => FlowLimitKind::Application,
            Self::SendBuffer { .. } => FlowLimitKind::SendBuffer,
            Self::ReceiveWindow { .. } => FlowLimitKind::ReceiveWindow,
            Self::ZeroWindow { .. } => FlowLimitKind::ZeroWindow,
            Self::Pacing { .. } => FlowLimitKind::Pacing,
            Self::Loss { .. } => FlowLimitKind::Loss,
            Self::CongestionWindow { .. } => FlowLimitKind::CongestionWindow,
            Self::NotMoving { .. } => FlowLimitKind::NotMoving,
            Self::SlowReader { .. } => FlowLimitKind::SlowReader,
            Self::OwnWindow { .. } => FlowLimitKind::OwnWindow,
            Self::FarEnd => FlowLimitKind::FarEnd,
            Self::Unknown => FlowLimitKind::Unknown,
        }
    }
}

/// Kinds of [`FlowLimit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FlowLimitKind {
    /// Nothing was sent or received.
    Idle,
    /// The connection is being established or closed.
    Handshake,
    /// Listener with connections that are not accepted yet.
    Accepting,
    /// The sending application had nothing to send.
    Application,
    /// The send buffer was full.
    SendBuffer,
    /// The receive window of the remote host was exhausted.
    ReceiveWindow,
    /// The remote host has closed its window.
    ZeroWindow,
    /// The pacing rate limits.
    Pacing,
    /// Losses keep the congestion window small, without a queue.
    Loss,
    /// The congestion window limits, that is the path.
    CongestionWindow,
    /// Sent data is not acknowledged.
    NotMoving,
    /// Data arrives faster than the local application reads.
    SlowReader,
    /// The local receive window limits.
    OwnWindow,
    /// Data arrives, and the limit is not visible on the local host.
    FarEnd,
    /// The kernel reports too little.
    Unknown,
}

impl FlowLimitKind {
    /// Name in documents and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Handshake => "handshake",
            Self::Accepting => "accepting",
            Self::Application => "application",
            Self::SendBuffer => "send-buffer",
            Self::ReceiveWindow => "receive-window",
            Self::ZeroWindow => "zero-window",
            Self::Pacing => "pacing",
            Self::Loss => "loss",
            Self::CongestionWindow => "congestion-window",
            Self::NotMoving => "not-moving",
            Self::SlowReader => "slow-reader",
            Self::OwnWindow => "own-window",
            Self::FarEnd => "far-end",
            Self::Unknown => "unknown",
        }
    }
}

/// Origin of a buffer's size, as far as samples show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferOrigin {
    /// Initial size of every socket.
    Initial,
    /// Largest size that the kernel chooses itself.
    Largest,
    /// Size adapted by the kernel.
    Adapted,
    /// Size probably set by the application (`setsockopt`), which disables auto-tuning.
    SetByApplication,
}

/// Host settings for the buffers of a TCP socket (`tcp_wmem`, `tcp_rmem`): initial and maximum size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferSettings {
    /// Send buffer; `None` when it could not be read.
    pub send: Option<(ByteCount, ByteCount)>,
    /// Receive buffer; `None` when it could not be read.
    pub receive: Option<(ByteCount, ByteCount)>,
}

/// State of one flow at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowState {
    /// Limit.
    pub limit: FlowLimit,
    /// Origin of the send buffer's size; `None` when unknown.
    pub send_buffer: Option<BufferOrigin>,
    /// Origin of the receive buffer's size; `None` when unknown.
    pub receive_buffer: Option<BufferOrigin>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{FlowKey, InstantTcpState, SocketCookie, TcpState, UserId};

    fn reading(info: TcpInfo) -> SocketSnapshot {
        let any = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        SocketSnapshot {
            key: FlowKey { local: any, remote: any, cookie: SocketCookie(1) },
            state: TcpState::Established,
            user: UserId(0),
            inode: None,
            receive_queue: ByteCount::ZERO,
            send_queue: ByteCount::ZERO,
            timer: None,
            info: Some(info),
            moment: InstantTcpState::default(),
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
        assert!(change.has_moved_data());
    }

    #[test]
    fn without_byte_counters_the_share_is_of_segments() {
        let with = |again, sent| {
            let count = |number| Some(SegmentCount::new(number));
            reading(TcpInfo { retransmits: count(again), data_segments_sent: count(sent), ..TcpInfo::default() })
        };
        let change = FlowChange::between(&with(1, 100), &with(3, 300), Duration::from_secs(1));
        assert_eq!(change.retransmission_share, Ratio::new(0.01));
    }

    #[test]
    fn unknown_or_decreasing_counters_are_not_zero() {
        let nothing = reading(TcpInfo::default());
        let change = FlowChange::between(&nothing, &nothing, Duration::from_secs(1));
        assert_eq!(change, FlowChange { elapsed: Duration::from_secs(1), ..FlowChange::default() });
        assert!(!change.has_moved_data());
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
