//! Messages of a QUIC measurement, within its connections.
//!
//! A probe session ([`crate::probe`]) requests the measurement; its answer has the server's port, the hash of its key and two
//! secrets. The [`ConnectionTag`] is the first destination connection identifier (RFC 9000 section 7.2) of each connection:
//! a server does not answer packets without one that it gave out, and each is valid once, so that recorded packets are not
//! answered either. The token is sent encrypted, at the start of the connection's first stream, before the request:
//!
//! ```text
//! SessionToken (27 bytes)  length (32 bits, big-endian)  {"up":{"streams":4,"omit_ns":0,"time_ns":5000000000,"sample_ns":200000000}}
//! ```
//!
//! The server replies on the same stream with a length and a [`QuicReply`]. The receiver decides when the measurement is
//! over: with [`QuicRequest::Up`] the server by its reply, with [`QuicRequest::Down`] the client by finishing the stream. A client
//! that is interrupted finishes it in both directions, and gets the figures until then.

use core::time::Duration;

use linerate_model::json;
use linerate_model::quic::{QuicCongestionControl, QuicEnd};
use linerate_units::serde::Nanoseconds;
use linerate_units::{ByteCount, Port, hexadecimal};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cookie::SessionToken;
use crate::extension::UnreadableMessage;
use crate::frame;
use crate::key_pin::KeyPin;
use crate::probe::{port, token};

/// Name of the feature "QUIC" in a server's hello.
pub const QUIC_FEATURE: &str = "quic";

/// Largest request in a connection.
pub const MAX_REQUEST_LENGTH: ByteCount = ByteCount::from_kibibytes(4);

/// Largest reply in a connection: its samples are numbers of at most 20 digits.
pub const MAX_REPLY_LENGTH: ByteCount = ByteCount::from_kibibytes(64);

/// Most samples of a transfer.
pub const MAX_SAMPLES: u32 = 1000;

/// Bytes of a [`ConnectionTag`] without its number.
const TAG_LENGTH: usize = 16;

/// First destination connection identifiers of a session's connections: a random part, and the number of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionTag([u8; TAG_LENGTH]);

impl ConnectionTag {
    /// Length of an identifier: the longest of QUIC version 1.
    pub const IDENTIFIER_LENGTH: usize = TAG_LENGTH + 4;

    /// Tag from random bytes.
    #[must_use]
    pub const fn random(entropy: [u8; TAG_LENGTH]) -> Self {
        Self(entropy)
    }

    /// Identifier of the connection with this number.
    #[must_use]
    pub fn identifier(self, number: u32) -> [u8; Self::IDENTIFIER_LENGTH] {
        let mut bytes = [0; Self::IDENTIFIER_LENGTH];
        bytes[..TAG_LENGTH].copy_from_slice(&self.0);
        bytes[TAG_LENGTH..].copy_from_slice(&number.to_be_bytes());
        bytes
    }

    /// Tag and number of an identifier; `None` for another length.
    #[must_use]
    pub fn parse(identifier: &[u8]) -> Option<(Self, u32)> {
        let (tag, number) = identifier.split_first_chunk::<TAG_LENGTH>()?;
        Some((Self(*tag), u32::from_be_bytes(number.try_into().ok()?)))
    }
}

impl core::fmt::Debug for ConnectionTag {
    /// Hides the tag, which admits connections, from logs.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Tag(…)")
    }
}

impl Serialize for ConnectionTag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hexadecimal::format(&self.0))
    }
}

impl<'de> Deserialize<'de> for ConnectionTag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_hexadecimal(deserializer).map(Self)
    }
}

fn from_hexadecimal<'de, const N: usize, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; N], D::Error> {
    use serde::de::Error as _;
    let text = String::deserialize(deserializer)?;
    let bytes = hexadecimal::parse(&text).and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| D::Error::custom(format_args!("expected {} hexadecimal digits", 2 * N)))
}

/// Request of a probe session for a QUIC measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuicOrder {
    /// Congestion control of the server where it sends.
    #[serde(default)]
    pub congestion_control: QuicCongestionControl,
}

/// Answer of a probe session: the server expects the session's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuicReady {
    /// UDP port.
    #[serde(with = "port")]
    pub port: Port,
    /// Digest of the server's key: the only one that the client accepts.
    pub key: KeyPin,
    /// Tag of the connections.
    pub tag: ConnectionTag,
    /// First bytes of each connection's first stream.
    #[serde(with = "token")]
    pub token: SessionToken,
}

/// Transfer to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuicTransferOrder {
    /// Streams, each in one direction; 1 to 128.
    pub streams: u16,
    /// Time at the start that does not count.
    #[serde(rename = "omit_ns", with = "Nanoseconds")]
    pub omit: Duration,
    /// Time that counts; at most a day.
    #[serde(rename = "time_ns", with = "Nanoseconds")]
    pub time: Duration,
    /// Length of the samples: at least 10 ms, and at most [`MAX_SAMPLES`] of them.
    #[serde(rename = "sample_ns", with = "Nanoseconds")]
    pub sample: Duration,
}

impl QuicTransferOrder {
    /// Most streams.
    pub const MAX_STREAMS: u16 = 128;
    /// Longest time, with the omitted part.
    pub const MAX_TIME: Duration = Duration::from_secs(86_400);
    /// Shortest sample.
    pub const MIN_SAMPLE: Duration = Duration::from_millis(10);

    /// Time from the first byte to the end.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.omit.saturating_add(self.time)
    }

    fn check(&self) -> Result<(), &'static str> {
        if !(1..=Self::MAX_STREAMS).contains(&self.streams) {
            return Err("a transfer has 1 to 128 streams");
        }
        if self.time.is_zero() || self.total() > Self::MAX_TIME {
            return Err("a transfer takes up to a day");
        }
        if self.sample < Self::MIN_SAMPLE || self.sample.saturating_mul(MAX_SAMPLES) < self.time {
            return Err("a sample takes 10 ms or more, and a transfer has at most 1000");
        }
        Ok(())
    }
}

/// Request at the start of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuicRequest {
    /// Reply at once. The only request that is valid as early data (0-RTT).
    Echo,
    /// Receive on streams that the client opens.
    Up(QuicTransferOrder),
    /// Send on streams that the server opens.
    Down(QuicTransferOrder),
}

/// Reply at the end of a connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuicReply {
    /// To [`QuicRequest::Echo`].
    Echo,
    /// The server's figures of a transfer.
    End(Box<QuicEnd>),
    /// A refusal, with its reason.
    Refused(String),
}

impl QuicRequest {
    /// Encodes the request with its length.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "plain data without map keys is always JSON")]
    pub fn encode(&self) -> Vec<u8> {
        frame::encode(&serde_json::to_string(self).expect("plain data is JSON"))
    }

    /// Decodes a request without its length.
    pub fn decode(document: &[u8]) -> Result<Self, UnreadableMessage> {
        let request: Self = json::from_slice(document).map_err(UnreadableMessage::new)?;
        match &request {
            Self::Up(order) | Self::Down(order) => order.check().map_err(UnreadableMessage::new)?,
            Self::Echo => {}
        }
        Ok(request)
    }
}

impl QuicReply {
    /// Encodes the reply with its length.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "plain data without map keys is always JSON")]
    pub fn encode(&self) -> Vec<u8> {
        frame::encode(&serde_json::to_string(self).expect("plain data is JSON"))
    }

    /// Decodes a reply without its length.
    pub fn decode(document: &[u8]) -> Result<Self, UnreadableMessage> {
        json::from_slice(document).map_err(UnreadableMessage::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: QuicTransferOrder = QuicTransferOrder {
        streams: 4,
        omit: Duration::from_secs(1),
        time: Duration::from_secs(5),
        sample: Duration::from_millis(200),
    };

    fn document(framed: &[u8]) -> &[u8] {
        let (length, document) = framed.split_first_chunk::<4>().expect("a length");
        assert_eq!(u32::from_be_bytes(*length) as usize, document.len());
        document
    }

    #[test]
    fn messages_round_trip() {
        for request in [QuicRequest::Echo, QuicRequest::Up(ORDER), QuicRequest::Down(ORDER)] {
            assert_eq!(QuicRequest::decode(document(&request.encode())), Ok(request));
        }
        let end = QuicEnd { bytes: u64::MAX, sample_bytes: vec![1, 2], lost_packets: Some(3), ..QuicEnd::default() };
        for reply in [QuicReply::Echo, QuicReply::End(Box::new(end)), QuicReply::Refused("full".into())] {
            assert_eq!(QuicReply::decode(document(&reply.encode())), Ok(reply));
        }
    }

    #[test]
    fn requests_are_as_documented() {
        let text = r#"{"up":{"streams":4,"omit_ns":1000000000,"time_ns":5000000000,"sample_ns":200000000}}"#;
        assert_eq!(document(&QuicRequest::Up(ORDER).encode()), text.as_bytes());
        assert_eq!(document(&QuicRequest::Echo.encode()), br#""echo""#);
    }

    #[test]
    fn orders_out_of_range_are_refused() {
        let of = |change: fn(&mut QuicTransferOrder)| {
            let mut order = ORDER;
            change(&mut order);
            QuicRequest::decode(document(&QuicRequest::Down(order).encode()))
                .map(drop)
                .map_err(|error| error.to_string())
        };
        assert_eq!(of(|_| {}), Ok(()));
        assert_eq!(of(|order| order.streams = 0), Err("a transfer has 1 to 128 streams".into()));
        assert_eq!(of(|order| order.streams = 129), Err("a transfer has 1 to 128 streams".into()));
        assert_eq!(of(|order| order.time = Duration::ZERO), Err("a transfer takes up to a day".into()));
        assert_eq!(of(|order| order.omit = Duration::MAX / 2), Err("a transfer takes up to a day".into()));
        assert!(of(|order| order.sample = Duration::from_millis(9)).is_err());
        assert!(of(|order| order.time = Duration::from_secs(201)).is_err(), "1005 samples");
    }

    #[test]
    fn an_identifier_has_its_tag_and_number() {
        let tag = ConnectionTag::random([7; 16]);
        assert_eq!(ConnectionTag::parse(&tag.identifier(0x0102_0304)), Some((tag, 0x0102_0304)));
        for length in (0..=32).filter(|length| *length != ConnectionTag::IDENTIFIER_LENGTH) {
            assert_eq!(ConnectionTag::parse(&vec![7; length]), None, "{length}");
        }
    }

    #[test]
    fn tags_are_hexadecimal() {
        let tag = ConnectionTag::random(core::array::from_fn(|index| u8::try_from(index * 8).expect("below 256")));
        let text = serde_json::to_string(&tag).expect("JSON");
        assert!(text.starts_with("\"00081018"), "{text}");
        assert_eq!(serde_json::from_str::<ConnectionTag>(&text).expect("valid"), tag);
        for wrong in ["\"\"", "\"00\"", &text.replace("0081", "zzzz"), "5"] {
            assert!(serde_json::from_str::<ConnectionTag>(wrong).is_err(), "{wrong}");
        }
    }
}
