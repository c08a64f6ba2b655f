//! What a client can ask for, and the short answers.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_units::{BitRate, ByteCount, PacketCount, Port, TypeOfService};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::scalar::{bytes, maybe_nanos, maybe_packets, nanos, octet, rate};
use crate::cookie::{TOKEN_LENGTH, Token};

/// The number of a stream of packets: the SSID of its STAMP packets (RFC 8972 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StreamNumber(u16);

impl StreamNumber {
    /// Packets without a number, as a sender that knows no SSID sends them: they are reflected.
    pub const NONE: Self = Self(0);
    /// The first number whose packets are recorded, not reflected.
    pub const FIRST_RECORDED: Self = Self(1000);

    /// Stream `number`.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Whether the far end answers each packet of it (0 to 999); else it only records them, if it was told to.
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

/// The number of a load connection, chosen by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConnectionNumber(pub u32);

impl core::fmt::Display for ConnectionNumber {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// A message that says nothing but its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Empty {}

/// A message about a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRef {
    /// Which.
    pub stream: StreamNumber,
}

/// A message about a load connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionRef {
    /// Which.
    pub connection: ConnectionNumber,
}

/// How much is kept of a received stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// Each packet: a [`super::PacketRecord`], up to [`super::MOST_RECORDS`] of all streams together.
    Arrivals,
    /// Sums only, told every 50 ms in a [`super::Feedback`]: for any rate.
    Counts,
}

/// Receive a stream instead of reflecting it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiveOrder {
    /// Which; 1000 or more.
    pub stream: StreamNumber,
    /// How much to keep.
    pub detail: Detail,
}

/// How packets follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// At equal distances (RFC 3432).
    Periodic,
    /// At exponentially distributed distances, a Poisson process (RFC 2330 §11.1.1), from a seed: the same seed gives
    /// the same distances.
    Poisson {
        /// Where the random numbers begin.
        seed: u64,
    },
}

/// Send a stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendOrder {
    /// Which; the SSID of its packets. 1000 or more.
    pub stream: StreamNumber,
    /// UDP payload of each packet: 44 to 65507 bytes (RFC 8762 §4.2.1; a UDP datagram over IPv4).
    #[serde(with = "bytes")]
    pub size: ByteCount,
    /// Payload rate; 1 bit/s to 1 Tbit/s. It can be changed while the stream runs.
    #[serde(with = "rate")]
    pub rate: BitRate,
    /// How packets follow each other. Poisson streams go out one by one, at most 100 000 a second.
    pub spacing: Spacing,
    /// When it ends at the latest.
    #[serde(default)]
    pub limit: SendLimit,
    /// The octet of each packet: DSCP and ECN.
    #[serde(with = "octet")]
    pub type_of_service: TypeOfService,
    /// Whether packets larger than the path's MTU are lost instead of fragmented.
    pub dont_fragment: bool,
}

/// When a stream ends, if nobody stops it before. Without a count it ends after an hour at the latest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendLimit {
    /// After so many packets; at most 2^32 - 1, as they are numbered.
    #[serde(default, with = "maybe_packets")]
    pub count: Option<PacketCount>,
    /// After so long; at most an hour.
    #[serde(default, with = "maybe_nanos")]
    pub duration: Option<Duration>,
}

impl SendOrder {
    /// Smallest packet: a STAMP session-sender packet without extensions (RFC 8762 §4.2.1).
    pub const SMALLEST: ByteCount = ByteCount::new(44);
    /// Largest packet: a UDP datagram over IPv4.
    pub const LARGEST: ByteCount = ByteCount::new(65507);
    /// Highest rate.
    pub const MOST_BITS_PER_SECOND: f64 = 1e12;
    /// Longest stream.
    pub const LONGEST: Duration = Duration::from_secs(3600);
    /// Most packets a second of a Poisson stream.
    pub const MOST_POISSON: f64 = 1e5;

    /// The distance of two packets at the order's rate, in the mean.
    #[must_use]
    pub fn gap(&self) -> Duration {
        self.rate.time_to_send(self.size).unwrap_or(Duration::MAX)
    }

    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.stream.is_reflected() {
            return Err("a stream to send has a number of 1000 or more");
        }
        if self.size < Self::SMALLEST || self.size > Self::LARGEST {
            return Err("a packet has 44 to 65507 bytes");
        }
        check_rate(self.rate)?;
        let packets = self.rate.bytes_per_second() / self.size.as_f64();
        if matches!(self.spacing, Spacing::Poisson { .. }) && packets > Self::MOST_POISSON {
            return Err("a Poisson stream has at most 100 000 packets a second");
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
    if (1.0..=SendOrder::MOST_BITS_PER_SECOND).contains(&bits) { Ok(()) } else { Err("a rate is 1 bit/s to 1 Tbit/s") }
}

/// Change the rate of a stream that is being sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateOrder {
    /// Which.
    pub stream: StreamNumber,
    /// Its payload rate from now on; 1 bit/s to 1 Tbit/s.
    #[serde(with = "rate")]
    pub rate: BitRate,
}

/// Which way a load connection carries bulk data, seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadDirection {
    /// To the server.
    Up,
    /// From the server.
    Down,
}

/// Expect a load connection, and prepare it as its sender or receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadOrder {
    /// Which; a number that the session has not used.
    pub connection: ConnectionNumber,
    /// Which way.
    pub direction: LoadDirection,
    /// Congestion control of the server's end, by the kernel's name; `None` for the system's. Matters when it sends.
    #[serde(default)]
    pub congestion_control: Option<String>,
    /// The octet of its packets, server to client.
    #[serde(with = "octet")]
    pub type_of_service: TypeOfService,
    /// Distance of the readings of `tcp_info` while it sends: 1 ms to 10 s.
    #[serde(with = "nanos")]
    pub sampling: Duration,
}

impl LoadOrder {
    /// Shortest and longest distance of samples.
    pub const SAMPLING: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(10));

    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.sampling < Self::SAMPLING.0 || self.sampling > Self::SAMPLING.1 {
            return Err("samples are taken every millisecond to every ten seconds");
        }
        // TCP_CA_NAME_MAX of the kernel, with its NUL.
        if self.congestion_control.as_ref().is_some_and(|name| name.is_empty() || name.len() > 15) {
            return Err("a congestion control's name has 1 to 15 bytes");
        }
        Ok(())
    }
}

/// The server's shared reflector awaits the client's datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// UDP port to send them to.
    #[serde(with = "port")]
    pub port: Port,
    /// What they must carry, so that the server knows whose they are and that their source is true. Load connections
    /// carry it in their cookie.
    #[serde(with = "token")]
    pub token: Token,
}

/// The client's datagrams have been seen: from now on they reach a socket of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Where they come from, as the server sees it: another address than the client's own when it is translated.
    pub source: SocketAddr,
}

/// A load connection has joined the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReady {
    /// Which.
    pub connection: ConnectionNumber,
    /// The congestion control of the server's end, as the kernel names it; `None` when it does not say.
    #[serde(default)]
    pub congestion_control: Option<String>,
}

/// The server does not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The request's name.
    pub request: String,
    /// The stream it was about.
    #[serde(default)]
    pub stream: Option<StreamNumber>,
    /// The load connection it was about.
    #[serde(default)]
    pub connection: Option<ConnectionNumber>,
    /// Why, in words; the kernel's when it was the kernel.
    pub reason: String,
}

mod port {
    use super::{Deserialize as _, Deserializer, Port, Serializer};
    use serde::de::Error as _;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub(super) fn serialize<S: Serializer>(port: &Port, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u16(port.get())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Port, D::Error> {
        Port::new(u16::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("a port is 1 to 65535"))
    }
}

mod token {
    use super::{Deserialize as _, Deserializer, Serializer, TOKEN_LENGTH, Token};
    use serde::de::Error as _;

    pub(super) fn serialize<S: Serializer>(token: &Token, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(token)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Token, D::Error> {
        let text = String::deserialize(deserializer)?;
        let characters: Option<[u8; TOKEN_LENGTH]> = text.as_bytes().try_into().ok();
        characters.and_then(Token::from_characters).ok_or_else(|| D::Error::custom("that is no token"))
    }
}
