//! Figures that iperf3 computes from its counters before it prints; shared by its text and its JSON.

use core::time::Duration;

use linerate_model::event::TestStart;
use linerate_model::parameters::{TestDirection, TestProtocol};
use linerate_model::report::{StreamReport, TestReport};
use linerate_model::sample::{IntervalReport, StreamInterval};
use linerate_model::stream::{EndpointRole, StreamDescription, StreamId, StreamRole};
use linerate_units::{ByteCount, PacketCount, SegmentCount, StreamCount};

/// Seconds as iperf3 represents them: whole seconds plus whole microseconds (`iperf_time_in_secs`).
#[expect(clippy::cast_precision_loss, reason = "exact for the first 285 million years")]
pub(crate) fn seconds(time: Duration) -> f64 {
    time.as_secs() as f64 + f64::from(time.subsec_micros()) / 1_000_000.0
}

/// The length of an interval as iperf3 has it: in a C `float` (`interval_duration`).
#[expect(clippy::cast_possible_truncation, reason = "iperf3's precision")]
pub(crate) fn interval_seconds(interval: &IntervalReport) -> f64 {
    let whole = |time: Duration| Duration::from_micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    f64::from(seconds(whole(interval.end).saturating_sub(whole(interval.start))) as f32)
}

/// The rate in bit/s; zero over no time.
pub(crate) fn bits_per_second(bytes: ByteCount, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes.as_f64() / seconds * 8.0 } else { 0.0 }
}

/// A time in milliseconds.
#[expect(clippy::cast_precision_loss, reason = "exact up to 104 days")]
pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

/// A part in percent, multiplied before it is divided as iperf3 does; zero of nothing.
pub(crate) fn percent(part: PacketCount, whole: PacketCount) -> f64 {
    if whole.is_zero() { 0.0 } else { 100.0 * part.as_f64() / whole.as_f64() }
}

/// Properties that stay constant through a test.
#[derive(Clone, Debug)]
pub(crate) struct TestContext {
    pub(crate) side: EndpointRole,
    pub(crate) protocol: TestProtocol,
    direction: TestDirection,
    pub(crate) parallel: StreamCount,
    streams: Vec<StreamDescription>,
    interval: Option<Duration>,
}

impl TestContext {
    pub(crate) fn of(start: &TestStart) -> Self {
        Self {
            side: start.side,
            protocol: start.parameters.protocol,
            direction: start.parameters.direction,
            parallel: start.parameters.parallel,
            streams: start.streams.clone(),
            interval: start.interval,
        }
    }

    pub(crate) fn is_bidirectional(&self) -> bool {
        self.direction == TestDirection::Bidirectional
    }

    /// Roles of this end, one per direction. In a bidirectional test a client's first streams send, a server's first
    /// streams receive, and they are shown in this order.
    pub(crate) fn roles(&self) -> &'static [StreamRole] {
        match (self.direction, self.side) {
            (TestDirection::Forward, EndpointRole::Client) | (TestDirection::Reverse, EndpointRole::Server) => {
                &[StreamRole::Sender]
            }
            (TestDirection::Forward, EndpointRole::Server) | (TestDirection::Reverse, EndpointRole::Client) => {
                &[StreamRole::Receiver]
            }
            (TestDirection::Bidirectional, EndpointRole::Client) => &[StreamRole::Sender, StreamRole::Receiver],
            (TestDirection::Bidirectional, EndpointRole::Server) => &[StreamRole::Receiver, StreamRole::Sender],
        }
    }

    pub(crate) fn socket(&self, stream: StreamId) -> i32 {
        self.streams.iter().find(|description| description.id == stream).map_or(-1, |description| description.socket)
    }

    /// True when an interval is shown. iperf3 drops the final interval when it is shorter than a tenth of the nominal
    /// one and carried no data (`iperf_print_intermediate`).
    pub(crate) fn shows(&self, interval: &IntervalReport) -> bool {
        let nominal = self.interval.unwrap_or_default();
        interval.length() >= nominal / 10 || interval.streams.iter().any(|stream| !stream.bytes.is_zero())
    }
}

/// The streams of one direction during one interval, added up.
#[derive(Clone, Debug, Default)]
pub(crate) struct IntervalSum {
    pub(crate) bytes: ByteCount,
    /// `None` when no stream of the group reports it.
    pub(crate) retransmits: Option<SegmentCount>,
    pub(crate) packets: PacketCount,
    pub(crate) lost: PacketCount,
    /// Mean over the streams, in milliseconds.
    pub(crate) jitter_ms: f64,
}

impl IntervalSum {
    pub(crate) fn of(streams: &[&StreamInterval], parallel: StreamCount) -> Self {
        let mut sum = Self::default();
        let mut jitter_ms = 0.0;
        for stream in streams {
            sum.bytes += stream.bytes;
            if let Some(retransmits) = stream.tcp.as_ref().and_then(|tcp| tcp.retransmits) {
                sum.retransmits = Some(sum.retransmits.unwrap_or_default() + retransmits);
            }
            if let Some(udp) = &stream.udp {
                sum.packets += udp.packets;
                sum.lost += udp.lost.unwrap_or_default();
                jitter_ms += udp.jitter.map_or(0.0, milliseconds);
            }
        }
        sum.jitter_ms = jitter_ms / parallel.as_f64().max(1.0);
        sum
    }
}

/// The streams of one role, in order of creation.
pub(crate) fn intervals_of(interval: &IntervalReport, role: StreamRole) -> Vec<&StreamInterval> {
    interval.streams.iter().filter(|stream| stream.role == role).collect()
}

/// The three durations of iperf3's summary, in seconds. All are the first stream's, also for the others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EndTimes {
    pub(crate) local: f64,
    pub(crate) sender: f64,
    pub(crate) receiver: f64,
}

impl EndTimes {
    pub(crate) fn of(report: &TestReport) -> Self {
        let Some(first) = report.streams.first() else { return Self::default() };
        let sent = first.sent.map(|side| seconds(side.duration));
        let received = first.received.map(|side| seconds(side.duration));
        let local = if first.description.role == StreamRole::Sender { sent } else { received };
        Self {
            local: local.or(sent).or(received).unwrap_or_default(),
            sender: sent.or(received).unwrap_or_default(),
            receiver: received.or(sent).unwrap_or_default(),
        }
    }
}

/// The streams of one direction over the whole test.
#[derive(Debug)]
pub(crate) struct DirectionEnd<'a> {
    /// Role of this end.
    pub(crate) role: StreamRole,
    pub(crate) streams: Vec<&'a StreamReport>,
    /// True when retransmissions of this direction are shown: a server shows only its own, since it prints before it
    /// knows the client's.
    pub(crate) has_retransmits: bool,
}

impl<'a> DirectionEnd<'a> {
    pub(crate) fn of(report: &'a TestReport, context: &TestContext, role: StreamRole) -> Self {
        let streams: Vec<_> = report.streams.iter().filter(|stream| stream.description.role == role).collect();
        let known = streams.iter().any(|stream| retransmits(stream).is_some());
        Self {
            role,
            streams,
            has_retransmits: known && (role == StreamRole::Sender || context.side == EndpointRole::Client),
        }
    }

    pub(crate) fn retransmits(&self) -> SegmentCount {
        self.streams.iter().filter_map(|stream| retransmits(stream)).sum()
    }

    pub(crate) fn bytes_sent(&self) -> ByteCount {
        self.streams.iter().map(|stream| bytes_sent(stream)).sum()
    }

    pub(crate) fn bytes_received(&self) -> ByteCount {
        self.streams.iter().map(|stream| bytes_received(stream)).sum()
    }

    pub(crate) fn packets_sent(&self) -> PacketCount {
        self.streams.iter().map(|stream| UdpEnd::of(stream).sent).sum()
    }

    pub(crate) fn packets_expected(&self) -> PacketCount {
        self.streams.iter().map(|stream| UdpEnd::of(stream).expected).sum()
    }

    /// The sender's count where it is known, else the receiver's.
    pub(crate) fn packets(&self) -> PacketCount {
        self.streams.iter().map(|stream| UdpEnd::of(stream).packets()).sum()
    }

    /// Lost packets of the streams whose receiver reported them; `None` when none did.
    pub(crate) fn lost(&self) -> Option<PacketCount> {
        let known: Vec<_> = self.streams.iter().filter_map(|stream| UdpEnd::of(stream).lost).collect();
        (!known.is_empty()).then(|| known.into_iter().sum())
    }

    /// Mean over the streams, in milliseconds.
    pub(crate) fn jitter_ms(&self, parallel: StreamCount) -> f64 {
        let total: f64 = self.streams.iter().map(|stream| UdpEnd::of(stream).jitter_ms).sum();
        total / parallel.as_f64().max(1.0)
    }
}

/// The peer's congestion control, as far as it is shown: a server prints before it knows the client's.
pub(crate) fn remote_congestion<'a>(context: &TestContext, report: &'a TestReport) -> Option<&'a String> {
    report.remote_congestion.as_ref().filter(|_| context.side == EndpointRole::Client)
}

pub(crate) fn retransmits(stream: &StreamReport) -> Option<SegmentCount> {
    stream.tcp.as_ref().and_then(|tcp| tcp.retransmits)
}

pub(crate) fn bytes_sent(stream: &StreamReport) -> ByteCount {
    stream.sent.map_or(ByteCount::ZERO, |side| side.bytes)
}

pub(crate) fn bytes_received(stream: &StreamReport) -> ByteCount {
    stream.received.map_or(ByteCount::ZERO, |side| side.bytes)
}

/// One UDP stream at the end, in iperf3's terms: counts that were not reported are zero.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UdpEnd {
    pub(crate) sent: PacketCount,
    pub(crate) expected: PacketCount,
    /// `None` when the receiver did not report it.
    pub(crate) lost: Option<PacketCount>,
    pub(crate) jitter_ms: f64,
    pub(crate) out_of_order: PacketCount,
}

impl UdpEnd {
    pub(crate) fn of(stream: &StreamReport) -> Self {
        let Some(udp) = &stream.udp else { return Self::default() };
        let sent = udp.sent.unwrap_or_default();
        let Some(received) = &udp.received else { return Self { sent, ..Self::default() } };
        Self {
            sent,
            expected: received.expected,
            lost: received.lost,
            jitter_ms: milliseconds(received.jitter),
            out_of_order: received.out_of_order.unwrap_or_default(),
        }
    }

    pub(crate) fn packets(&self) -> PacketCount {
        if self.sent.is_zero() { self.expected } else { self.sent }
    }
}

/// Share of a file that was transferred, in whole percent, truncated; 100 for an empty file.
#[expect(clippy::cast_possible_truncation, reason = "iperf3 truncates; `as` saturates")]
pub(crate) fn whole_percent(moved: ByteCount, size: ByteCount) -> i64 {
    if size.is_zero() { 100 } else { (moved.as_f64() / size.as_f64() * 100.0) as i64 }
}
