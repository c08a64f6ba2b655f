//! Contents of requests, and the short answers.

use core::time::Duration;
use linerate_model::direction::Direction;
use std::net::SocketAddr;

use linerate_units::{BitRate, ByteCount, PacketCount, Port, TypeOfService};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::scalar::{bytes, maybe_nanos, maybe_packets, nanos, octet, rate};
use crate::cookie::{SessionToken, TOKEN_LENGTH};

/// Number of a stream of packets: the SSID of its STAMP packets (RFC 8972 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StreamNumber(u16);

impl StreamNumber {
    /// Number of packets without an SSID: they are reflected.
    pub const NONE: Self = Self(0);
    /// First number whose packets are recorded, not reflected.
    pub const FIRST_RECORDED: Self = Self(1000);

    /// Stream `number`.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// True when the server reflects each packet of the stream (0 to 999); otherwise it records them on request.
    #[must_use]
    pub const fn is_reflected(self) -> bool {
        self.0 < Self::FIRST_RECORDED.0
    }
}

impl core::fmt::Display for StreamNumber {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// Number of a load connection, chosen by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConnectionNumber(pub u32);

impl core::fmt::Display for ConnectionNumber {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// A message without contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmptyContent {}

/// A message about a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRef {
    /// Number of the stream.
    pub stream: StreamNumber,
}

/// A message about a load connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionRef {
    /// Number of the load connection.
    pub connection: ConnectionNumber,
}

/// Level of detail of the records of a received stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordDetail {
    /// Each packet: a [`super::PacketRecord`], up to `MAX_SESSION_RECORDS` of all streams together.
    Arrivals,
    /// Sums only, reported every 50 ms in a [`super::StreamFeedback`]: for any rate.
    Counts,
}

/// Request to receive a stream instead of reflecting it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiveOrder {
    /// Number of the stream; 1000 or more.
    pub stream: StreamNumber,
    /// Level of detail.
    pub detail: RecordDetail,
}

/// Spacing of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PacketSpacing {
    /// Equal intervals (RFC 3432).
    Periodic,
    /// Exponentially distributed intervals, a Poisson process (RFC 2330 §11.1.1); the same seed gives the same
    /// intervals.
    Poisson {
        /// Seed of the random numbers.
        seed: u64,
    },
    /// Bursts of packets that leave together, at equal intervals; servers with [`super::BURSTS_FEATURE`] know it.
    Bursts {
        /// Packets of a burst, 1 to 64.
        packets: u16,
    },
}

/// Request to send a stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendOrder {
    /// Number of the stream, the SSID of its packets; 1000 or more.
    pub stream: StreamNumber,
    /// UDP payload of each packet: 44 to 65507 bytes (RFC 8762 §4.2.1; a UDP datagram over IPv4).
    #[serde(with = "bytes")]
    pub size: ByteCount,
    /// Payload rate; 1 bit/s to 1 Tbit/s. It can be changed while the stream runs.
    #[serde(with = "rate")]
    pub rate: BitRate,
    /// Spacing of packets. Poisson streams are sent packet by packet, at most 100 000 a second.
    pub spacing: PacketSpacing,
    /// Limit of the stream.
    #[serde(default)]
    pub limit: SendLimit,
    /// Type-of-service octet of each packet: DSCP and ECN.
    #[serde(with = "octet")]
    pub type_of_service: TypeOfService,
    /// True when packets above the path MTU are lost instead of fragmented.
    pub dont_fragment: bool,
}

/// End of a stream that the client does not stop. Without a count it ends after an hour at the latest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendLimit {
    /// Number of packets, at most 2^32 - 1.
    #[serde(default, with = "maybe_packets")]
    pub count: Option<PacketCount>,
    /// Duration, at most an hour.
    #[serde(default, with = "maybe_nanos")]
    pub duration: Option<Duration>,
}

impl SendOrder {
    /// Smallest packet: a STAMP Session-Sender packet without extensions (RFC 8762 §4.2.1).
    pub const MIN_PACKET_SIZE: ByteCount = ByteCount::new(44);
    /// Largest packet: a UDP datagram over IPv4.
    pub const LARGEST: ByteCount = ByteCount::new(65507);
    /// Highest rate.
    pub const MAX_BITS_PER_SECOND: f64 = 1e12;
    /// Most packets of a burst.
    pub const MAX_BURST_PACKETS: u16 = 64;
    /// Longest stream.
    pub const LONGEST: Duration = Duration::from_secs(3600);
    /// Maximum packets per second of a Poisson stream.
    pub const MAX_POISSON_PACKETS_PER_SECOND: f64 = 1e5;

    /// Mean interval between packets at the requested rate.
    #[must_use]
    pub fn gap(&self) -> Duration {
        self.rate.time_to_send(self.size).unwrap_or(Duration::MAX)
    }

    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.stream.is_reflected() {
            return Err("a stream to send has a number of 1000 or more");
        }
        if self.size < Self::MIN_PACKET_SIZE || self.size > Self::LARGEST {
            return Err("a packet has 44 to 65507 bytes");
        }
        check_rate(self.rate)?;
        let packets = self.rate.bytes_per_second() / self.size.as_f64();
        if matches!(self.spacing, PacketSpacing::Poisson { .. }) && packets > Self::MAX_POISSON_PACKETS_PER_SECOND {
            return Err("a Poisson stream has at most 100 000 packets a second");
        }
        let bursts = 1..=Self::MAX_BURST_PACKETS;
        if matches!(self.spacing, PacketSpacing::Bursts { packets } if !bursts.contains(&packets)) {
            return Err("a burst has 1 to 64 packets");
        }
        if self.limit.count.is_some_and(|count| count.is_zero() || count.get() > u64::from(u32::MAX)) {
            return Err("a stream has 1 to 4294967295 packets");
        }
        if self.limit.duration.is_some_and(|time| time.is_zero() || time > Self::LONGEST) {
            return Err("a stream lasts up to an hour");
        }
        Ok(())
    }
}

pub(super) fn check_rate(rate: BitRate) -> Result<(), &'static str> {
    let bits = rate.bits_per_second();
    if (1.0..=SendOrder::MAX_BITS_PER_SECOND).contains(&bits) { Ok(()) } else { Err("a rate is 1 bit/s to 1 Tbit/s") }
}

/// Request to change the rate of a stream that is being sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateOrder {
    /// Number of the stream.
    pub stream: StreamNumber,
    /// New payload rate; 1 bit/s to 1 Tbit/s.
    #[serde(with = "rate")]
    pub rate: BitRate,
}

/// Request to expect a load connection, as its sender or receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadOrder {
    /// Number of the connection, not yet used in the session.
    pub connection: ConnectionNumber,
    /// Direction of the bulk data.
    pub direction: Direction,
    /// Congestion control of the server's socket, by the kernel's name; `None` for the default. Used when the server
    /// sends.
    #[serde(default)]
    pub congestion_control: Option<String>,
    /// Type-of-service octet of its packets, server to client.
    #[serde(with = "octet")]
    pub type_of_service: TypeOfService,
    /// Sampling interval of `tcp_info` on a sender: 1 ms to 10 s.
    #[serde(with = "nanos")]
    pub sampling: Duration,
}

impl LoadOrder {
    /// Shortest and longest sampling interval.
    pub const SAMPLING_RANGE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(10));

    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.sampling < Self::SAMPLING_RANGE.0 || self.sampling > Self::SAMPLING_RANGE.1 {
            return Err("the sampling interval is 1 ms to 10 s");
        }
        // TCP_CA_NAME_MAX of the kernel, with its NUL.
        if self.congestion_control.as_ref().is_some_and(|name| name.is_empty() || name.len() > 15) {
            return Err("a congestion control's name has 1 to 15 bytes");
        }
        Ok(())
    }
}

/// Reply when the server's shared reflector expects the client's datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReflectorOpened {
    /// UDP port of the reflector.
    #[serde(with = "port")]
    pub port: Port,
    /// Token in the datagrams, which identifies the session and confirms their source address. Load connections carry
    /// it in their cookie.
    #[serde(with = "token")]
    pub token: SessionToken,
}

/// Report that the client's datagrams have arrived: from now on they reach a dedicated socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatagramsReady {
    /// Source address as the server sees it: differs from the client's own behind address translation.
    pub source: SocketAddr,
}

/// Report that a load connection has joined the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReady {
    /// Number of the load connection.
    pub connection: ConnectionNumber,
    /// Congestion control of the server's socket, by the kernel's name; `None` when unknown.
    #[serde(default)]
    pub congestion_control: Option<String>,
}

/// Refusal of a request by the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRefused {
    /// Name of the request.
    pub request: String,
    /// Stream of the request.
    #[serde(default)]
    pub stream: Option<StreamNumber>,
    /// Load connection of the request.
    #[serde(default)]
    pub connection: Option<ConnectionNumber>,
    /// Reason, as text; the kernel's message for an error of the kernel.
    pub reason: String,
}

pub(crate) mod port {
    use super::{Deserialize as _, Deserializer, Port, Serializer};
    use serde::de::Error as _;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub(crate) fn serialize<S: Serializer>(port: &Port, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u16(port.get())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Port, D::Error> {
        Port::new(u16::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("a port is 1 to 65535"))
    }
}

/// An optional port.
pub(super) mod maybe_port {
    use super::{Deserialize as _, Deserializer, Port, Serialize as _, Serializer};
    use serde::de::Error as _;

    #[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub(in crate::probe) fn serialize<S: Serializer>(port: &Option<Port>, serializer: S) -> Result<S::Ok, S::Error> {
        port.map(Port::get).serialize(serializer)
    }

    pub(in crate::probe) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Port>, D::Error> {
        let Some(port) = Option::<u16>::deserialize(deserializer)? else { return Ok(None) };
        Port::new(port).map(Some).ok_or_else(|| D::Error::custom("a port is 1 to 65535"))
    }
}

pub(crate) mod token {
    use super::{Deserialize as _, Deserializer, Serializer, SessionToken, TOKEN_LENGTH};
    use serde::de::Error as _;

    pub(crate) fn serialize<S: Serializer>(token: &SessionToken, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(token)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SessionToken, D::Error> {
        let text = String::deserialize(deserializer)?;
        let characters: Option<[u8; TOKEN_LENGTH]> = text.as_bytes().try_into().ok();
        characters.and_then(SessionToken::from_characters).ok_or_else(|| D::Error::custom("invalid token"))
    }
}
