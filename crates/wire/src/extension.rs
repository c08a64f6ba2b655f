//! What two linerates tell each other besides iperf3's protocol.
//!
//! A client whose cookie begins with `linerate` and a known version letter gets, in place of 09, a [`Hello`]. From then
//! on the server may send messages wherever the client waits for a state byte or for the results: the byte
//! [`MARKER`], a 32-bit big-endian length, and a JSON object with one key that names the message:
//!
//! ```text
//! 4C 00 00 00 42 {"hello":{"linerate":1,"version":"0.1.0","features":["interval"]}}
//! ```
//!
//! Where the client waits for results, [`MARKER`] cannot be mistaken for the first byte of a length: the longest
//! document accepted there begins with 01. A message with an unknown name or schema is skipped. The client answers
//! nothing but its parameters, which then have the key `"linerate"`.

use linerate_model::sample::IntervalReport;
use linerate_model::schema::far;
use serde::{Deserialize, Serialize};

pub use linerate_model::schema::far::{FarEnd as End, FarStreamEnd as StreamEnd};

/// The byte before a message: `L`, which is no state of iperf3.
pub const MARKER: u8 = b'L';

/// This program's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Version of the extension's first message.
const PROTOCOL: u32 = 1;

/// The server introduces itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the extension: 1.
    pub linerate: u32,
    /// The program's version.
    pub version: String,
    /// What it will do, by name; unknown ones are of no interest.
    #[serde(default)]
    pub features: Vec<String>,
}

impl Hello {
    /// The hello of this program.
    #[must_use]
    pub fn new(features: &[&str]) -> Self {
        Self {
            linerate: PROTOCOL,
            version: VERSION.to_owned(),
            features: features.iter().map(|&feature| feature.to_owned()).collect(),
        }
    }
}

/// What the server tells the client.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// It is a linerate, too. Comes first, once.
    Hello(Hello),
    /// One interval is over there.
    Interval(IntervalReport),
    /// The test is over there: what iperf3's results have no room for.
    End(End),
}

/// Exactly one of them is there; others may be added.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Envelope {
    #[serde(skip_serializing_if = "Option::is_none")]
    hello: Option<Hello>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<far::Interval>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<far::End>,
}

impl Message {
    /// The message with its marker and length.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "plain data without map keys is always JSON")]
    pub fn encode(&self) -> Vec<u8> {
        let mut envelope = Envelope::default();
        match self {
            Self::Hello(hello) => envelope.hello = Some(hello.clone()),
            Self::Interval(report) => envelope.interval = Some(report.into()),
            Self::End(end) => envelope.end = Some(end.into()),
        }
        let document = serde_json::to_string(&envelope).expect("plain data without map keys is JSON");
        let mut bytes = vec![MARKER];
        bytes.extend_from_slice(&crate::frame::encode(&document));
        bytes
    }

    /// Reads a message, without its marker and length; `None` when it is of a kind that this version does not know.
    pub fn decode(document: &[u8]) -> Result<Option<Self>, UnreadableMessage> {
        let envelope: Envelope =
            serde_json::from_slice(document).map_err(|error| UnreadableMessage(error.to_string()))?;
        let current = |schema: u32| schema == far::SCHEMA;
        let interval = envelope.interval.filter(|interval| current(interval.schema));
        let end = envelope.end.filter(|end| current(end.schema));
        Ok(match (envelope.hello, interval, end) {
            (Some(hello), ..) => Some(Self::Hello(hello)),
            (_, Some(interval), _) => Some(Self::Interval(interval.into())),
            (.., Some(end)) => Some(Self::End(end.into())),
            (None, None, None) => None,
        })
    }
}

/// A message that is not what its name says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnreadableMessage(String);

impl UnreadableMessage {
    pub(crate) fn new(reason: impl core::fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use linerate_model::limit::LimitShares;
    use linerate_model::sample::{StreamInterval, TcpInterval, UdpInterval};
    use linerate_model::stream::{Role, StreamId};
    use linerate_model::summary::Distribution;
    use linerate_model::tcp_info::{TcpInfo, WindowScale};
    use linerate_units::{BitRate, ByteCount, Mss, Mtu, PacketCount, Ratio, SegmentCount};

    fn round_trip(message: &Message) -> Message {
        let bytes = message.encode();
        assert_eq!(bytes[0], MARKER);
        let length = u32::from_be_bytes(bytes[1..5].try_into().expect("four bytes"));
        assert_eq!(length as usize, bytes.len() - 5);
        Message::decode(&bytes[5..]).expect("readable").expect("known")
    }

    fn interval() -> IntervalReport {
        let ms = Duration::from_millis;
        let samples = Distribution::of(&mut [ms(1), ms(2), ms(9)]);
        let tcp = TcpInterval {
            retransmits: Some(SegmentCount::new(3)),
            congestion_window: Some(ByteCount::new(14480)),
            rtt: Some(Duration::from_nanos(117_000_001)),
            path_mtu: Some(Mtu::new(1500)),
            rtt_samples: samples,
            ..TcpInterval::default()
        };
        let udp = UdpInterval {
            packets: PacketCount::new(10),
            lost: Some(PacketCount::ZERO),
            jitter: Some(Duration::from_micros(7)),
            dropped_in_host: None,
            duplicates: Some(PacketCount::new(1)),
            out_of_order: Some(PacketCount::new(2)),
        };
        let stream = |id, role, tcp, udp| StreamInterval {
            stream: StreamId(id),
            role,
            bytes: ByteCount::new(u64::MAX),
            tcp,
            udp,
            socket: None,
        };
        IntervalReport {
            start: ms(1000),
            end: Duration::from_nanos(2_000_000_123),
            omitted: true,
            streams: vec![stream(1, Role::Sender, Some(tcp), None), stream(3, Role::Receiver, None, Some(udp))],
        }
    }

    #[test]
    fn intervals_survive() {
        let message = Message::Interval(interval());
        assert_eq!(round_trip(&message), message);
    }

    #[test]
    fn the_end_survives() {
        let info = TcpInfo {
            rtt: Some(Duration::from_micros(18_500)),
            send_mss: Some(Mss::new(1448)),
            pacing_rate: Some(BitRate::from_bits_per_second(9.41e9)),
            delivery_rate_application_limited: Some(false),
            window_scale: Some(WindowScale { send: 7, receive: 14 }),
            ..TcpInfo::default()
        };
        let share = |value| Ratio::new(value).expect("a ratio");
        let limits = LimitShares {
            network: share(0.25),
            receive_window: share(0.75),
            sender_cpu: Some(share(0.1)),
            ..LimitShares::default()
        };
        let stream = StreamEnd {
            stream: StreamId(4),
            tcp_info: Some(info),
            limits: Some(limits),
            thread_cpu: Some(Duration::from_nanos(1)),
            duplicates: Some(PacketCount::new(5)),
            out_of_order: None,
            dropped_in_host: Some(PacketCount::ZERO),
        };
        let message = Message::End(End { streams: vec![stream], overlapping_tests: 2, host: None });
        assert_eq!(round_trip(&message), message);
    }

    #[test]
    fn the_hello_is_as_documented() {
        let hello = Hello { linerate: 1, version: "0.1.0".into(), features: vec!["interval".into()] };
        let bytes = Message::Hello(hello).encode();
        let text = r#"{"hello":{"linerate":1,"version":"0.1.0","features":["interval"]}}"#;
        assert_eq!(bytes[5..], *text.as_bytes());
        assert_eq!(bytes[..5], [0x4C, 0, 0, 0, 66]);
    }

    #[test]
    fn what_a_later_version_adds_is_skipped() {
        let decode = |text: &str| Message::decode(text.as_bytes());
        assert_eq!(decode(r#"{"probe":{"x":[1]}}"#), Ok(None));
        assert_eq!(decode(r#"{"interval":{"schema":2,"start":0,"end":0,"streams":[]}}"#), Ok(None));
        let later = r#"{"end":{"schema":1,"new":null,"streams":[{"stream":1,"newer":{}}]}}"#;
        let Ok(Some(Message::End(end))) = decode(later) else { panic!("readable") };
        assert_eq!((end.streams[0].stream, end.overlapping_tests), (StreamId(1), 0));
        assert!(end.streams[0].tcp_info.is_none() && end.streams[0].duplicates.is_none());
    }

    #[test]
    fn wrong_types_are_an_error() {
        for text in
            ["", "[", r#"{"hello":5}"#, r#"{"hello":{"linerate":"1","version":"x"}}"#, r#"{"end":{"schema":1}}"#]
        {
            assert!(Message::decode(text.as_bytes()).is_err(), "{text}");
        }
    }
}
