//! Measurement over QUIC (RFC 9000), and its comparison with TCP over the same path.
//!
//! Both ends count: the receiver the payload, the sender the figures of its connection (RFC 9002). Each end also reports its
//! UDP socket and the processor time of the thread that runs the connection: QUIC is a program, not the kernel.

use core::time::Duration;

use linerate_units::serde::{Nanoseconds, OptionalNanoseconds};
use linerate_units::{BitRate, ByteCount, Port, Ratio};
use serde::{Deserialize, Serialize};

use crate::direction::Direction;
use crate::summary::DurationDistribution;

/// Congestion control of a QUIC sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum QuicCongestionControl {
    /// CUBIC (RFC 9438).
    #[default]
    Cubic,
    /// BBR, version 1.
    Bbr,
    /// `NewReno` (RFC 9002 appendix B).
    NewReno,
}

impl QuicCongestionControl {
    /// Name, as TCP's kernel modules have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::NewReno => "reno",
        }
    }

    /// Congestion control with that name: `cubic`, `bbr`, `reno` or `newreno`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "cubic" => Some(Self::Cubic),
            "bbr" => Some(Self::Bbr),
            "reno" | "newreno" => Some(Self::NewReno),
            _ => None,
        }
    }
}

/// Kind of a QUIC handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum QuicHandshakeKind {
    /// The server's key is new to the client: one round trip.
    Full,
    /// With a ticket of an earlier connection (RFC 8446 section 2.2): one round trip, without signatures.
    Resumed,
    /// With a ticket, and the request in the first packets (RFC 8446 section 2.3).
    ZeroRtt,
}

impl QuicHandshakeKind {
    /// Name for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Resumed => "resumed",
            Self::ZeroRtt => "0-RTT",
        }
    }
}

/// Times of one handshake, since its first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuicHandshake {
    /// Kind that was used: a server that refuses a ticket or early data makes it [`QuicHandshakeKind::Full`] or
    /// [`QuicHandshakeKind::Resumed`].
    pub kind: QuicHandshakeKind,
    /// Time until the client has the server's part of the handshake.
    #[serde(rename = "complete_ns", with = "Nanoseconds")]
    pub complete: Duration,
    /// Time until the answer to the client's first request.
    #[serde(rename = "answer_ns", with = "Nanoseconds")]
    pub answer: Duration,
}

/// Datagrams by the ECN field with which they arrived (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct EcnDatagrams {
    /// Not ECN-capable: the path cleared the field, or the sender found that it does.
    pub not_ect: u64,
    /// ECT(0).
    pub ect0: u64,
    /// ECT(1).
    pub ect1: u64,
    /// Congestion experienced.
    pub ce: u64,
}

impl EcnDatagrams {
    /// Difference to an earlier count.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            not_ect: self.not_ect.saturating_sub(earlier.not_ect),
            ect0: self.ect0.saturating_sub(earlier.ect0),
            ect1: self.ect1.saturating_sub(earlier.ect1),
            ce: self.ce.saturating_sub(earlier.ce),
        }
    }

    /// All datagrams.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.not_ect.saturating_add(self.ect0).saturating_add(self.ect1).saturating_add(self.ce)
    }
}

/// One end of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct QuicEnd {
    /// Payload that this end sent or received while it measured.
    pub bytes: u64,
    /// Time over which it measured.
    #[serde(rename = "duration_ns", with = "Nanoseconds")]
    pub duration: Duration,
    /// Length of the samples.
    #[serde(rename = "sample_ns", with = "Nanoseconds")]
    pub sample: Duration,
    /// Payload in each sample.
    pub sample_bytes: Vec<u64>,
    /// Round trips that the sender's connection measured, one for each sample; `null` at a receiver.
    pub rtt: Option<DurationDistribution>,
    /// Largest congestion window of the sender in bytes; `null` at a receiver.
    pub congestion_window_bytes: Option<u64>,
    /// Congestion control of the sender; `null` at a receiver.
    pub congestion_control: Option<QuicCongestionControl>,
    /// Times that the sender reduced its window; `null` at a receiver.
    pub congestion_events: Option<u64>,
    /// Packets that this end sent.
    pub sent_packets: u64,
    /// Packets that the sender takes for lost, without the probes for the path MTU; `null` at a receiver.
    pub lost_packets: Option<u64>,
    /// Largest UDP payload that the path carries, as far as this end has found.
    pub datagram_bytes: u64,
    /// Datagrams that this end sent, and system calls for them: more than one per call is segmentation offload.
    pub sent_datagrams: u64,
    /// System calls that sent them.
    pub send_calls: u64,
    /// True when the kernel segments datagrams for this socket (`UDP_SEGMENT`).
    pub segmentation_offload: bool,
    /// Datagrams of this connection that arrived, by ECN field; `null` when they were not counted.
    pub ecn: Option<EcnDatagrams>,
    /// Receive buffer of the UDP socket, as the kernel granted it; `null` when it did not report it.
    pub receive_buffer_bytes: Option<u64>,
    /// Send buffer of the UDP socket.
    pub send_buffer_bytes: Option<u64>,
    /// Datagrams that the kernel dropped at the full receive buffer of the socket while this end measured (`SK_MEMINFO_DROPS`).
    pub buffer_drops: Option<u64>,
    /// Processor time of the thread that runs the connection.
    #[serde(rename = "thread_cpu_ns", with = "Nanoseconds")]
    pub thread_cpu: Duration,
    /// Time for which that thread could run and waited for a processor; `null` where the kernel does not count it.
    #[serde(rename = "thread_wait_ns", with = "OptionalNanoseconds")]
    pub thread_wait: Option<Duration>,
    /// Connections on the socket at the end of the transfer, this one included.
    pub connections: u64,
}

impl QuicEnd {
    /// Payload rate at this end; `None` before anything was measured.
    #[must_use]
    pub fn rate(&self) -> Option<BitRate> {
        (!self.duration.is_zero()).then(|| ByteCount::new(self.bytes).rate_over(self.duration))
    }

    /// Share of the time in which its thread ran on a processor.
    #[must_use]
    pub fn processor_share(&self) -> Option<Ratio> {
        self.share(self.thread_cpu)
    }

    /// Share of the time in which its thread ran, or could run and waited for a processor: the use that other programs left it no
    /// processor for is included.
    #[must_use]
    pub fn processor_demand(&self) -> Option<Ratio> {
        self.share(self.thread_cpu.saturating_add(self.thread_wait.unwrap_or_default()))
    }

    fn share(&self, time: Duration) -> Option<Ratio> {
        Ratio::of(time.min(self.duration).as_secs_f64(), self.duration.as_secs_f64())
    }

    /// Share of its packets that it takes for lost.
    #[must_use]
    pub fn loss(&self) -> Option<Ratio> {
        let lost = ByteCount::new(self.lost_packets?.min(self.sent_packets));
        Ratio::of(lost.as_f64(), ByteCount::new(self.sent_packets).as_f64())
    }
}

/// One transfer over one QUIC connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuicRun {
    /// Direction of the payload, seen from the client.
    pub direction: Direction,
    /// Streams of the connection.
    pub streams: u64,
    /// Start of the transfer in nanoseconds since 1970-01-01 00:00 UTC.
    pub started_at_unix_ns: u64,
    /// True when a signal ended it early: its figures are those of the time until then.
    #[serde(default)]
    pub interrupted: bool,
    /// The client's end.
    pub client: QuicEnd,
    /// The server's end.
    pub server: QuicEnd,
}

impl QuicRun {
    /// Sending end.
    #[must_use]
    pub const fn sender(&self) -> &QuicEnd {
        match self.direction {
            Direction::Up => &self.client,
            Direction::Down => &self.server,
        }
    }

    /// Receiving end.
    #[must_use]
    pub const fn receiver(&self) -> &QuicEnd {
        match self.direction {
            Direction::Up => &self.server,
            Direction::Down => &self.client,
        }
    }

    /// Goodput, by the receiver's counters.
    #[must_use]
    pub fn rate(&self) -> Option<BitRate> {
        self.receiver().rate()
    }
}

/// Outcome of the comparison of TCP and QUIC in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TransportCause {
    /// No QUIC packet is answered, while TCP to the same host works.
    UdpBlocked,
    /// The kernel drops datagrams at the receiving UDP socket.
    UdpBufferSmall,
    /// The thread of the connection fills a processor.
    ProcessorBound,
    /// The path drops or delays UDP, and not TCP.
    UdpThrottled,
    /// QUIC is slower, and nothing that was observed explains it.
    SlowerUnexplained,
    /// QUIC is faster.
    QuicFaster,
    /// The same within a tenth.
    Same,
}

/// Verdict of the comparison of TCP and QUIC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransportVerdict {
    /// Direction; `null` when it concerns both.
    pub direction: Option<Direction>,
    /// Cause.
    pub cause: TransportCause,
    /// The cause with its figures, in a sentence.
    pub text: String,
    /// Remedy, where there is one.
    pub remedy: Option<String>,
}

/// QUIC part of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuicResult {
    /// UDP port of the server.
    pub port: Port,
    /// Handshakes, each on a connection of its own.
    pub handshakes: Vec<QuicHandshake>,
    /// Transfers, in the order in which they ran.
    pub runs: Vec<QuicRun>,
    /// Reason why a handshake or a transfer failed.
    pub failure: Option<String>,
    /// True when the failure is that no packet of the server arrived.
    pub unanswered: bool,
    /// True when a signal ended this part early: it has what was measured until then.
    #[serde(default)]
    pub interrupted: bool,
    /// Comparison with TCP.
    pub verdicts: Vec<TransportVerdict>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_what_was_measured() {
        let end = QuicEnd {
            bytes: 1_250_000,
            duration: Duration::from_secs(1),
            thread_cpu: Duration::from_millis(250),
            sent_packets: 1000,
            lost_packets: Some(5),
            ..QuicEnd::default()
        };
        assert_eq!(end.rate(), Some(BitRate::from_bits_per_second(1e7)));
        assert_eq!(end.processor_share().map(Ratio::get), Some(0.25));
        assert_eq!(end.loss().map(Ratio::get), Some(0.005));
        for (wait, demand) in [(None, 0.25), (Some(500), 0.75), (Some(900), 1.0)] {
            let end = QuicEnd { thread_wait: wait.map(Duration::from_millis), ..end.clone() };
            assert_eq!(end.processor_demand().map(Ratio::get), Some(demand), "{wait:?}");
        }
    }

    #[test]
    fn nothing_measured_is_unknown() {
        let end = QuicEnd::default();
        assert_eq!((end.rate(), end.processor_share(), end.loss()), (None, None, None));
        assert_eq!(end.processor_demand(), None);
    }

    #[test]
    fn the_receiver_counts_the_goodput() {
        let end = |bytes| QuicEnd { bytes, duration: Duration::from_secs(8), ..QuicEnd::default() };
        for (direction, expected) in [(Direction::Up, 2.0), (Direction::Down, 1.0)] {
            let run = QuicRun {
                direction,
                streams: 1,
                started_at_unix_ns: 0,
                interrupted: false,
                client: end(1),
                server: end(2),
            };
            assert_eq!(run.rate(), Some(BitRate::from_bits_per_second(expected)));
        }
    }

    #[test]
    fn names_are_those_of_the_kernel() {
        for control in [QuicCongestionControl::Cubic, QuicCongestionControl::Bbr, QuicCongestionControl::NewReno] {
            assert_eq!(QuicCongestionControl::from_name(control.name()), Some(control));
        }
        assert_eq!(QuicCongestionControl::from_name("newreno"), Some(QuicCongestionControl::NewReno));
        assert_eq!(QuicCongestionControl::from_name("vegas"), None);
    }
}
