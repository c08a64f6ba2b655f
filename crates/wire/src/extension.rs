//! Messages between two linerates in addition to iperf3's protocol.
//!
//! A client whose cookie begins with `linerate` and a known version letter receives a [`ServerHello`] in place of 09. From
//! then on the server may send messages wherever the client waits for a state byte or for the results: the byte
//! [`MARKER`], a 32-bit big-endian length, and a JSON object with one key that names the message:
//!
//! ```text
//! 4C 00 00 00 42 {"hello":{"linerate":1,"version":"0.1.0","features":["interval"]}}
//! ```
//!
//! Where the client waits for results, [`MARKER`] cannot be mistaken for the first byte of a length: the longest
//! document accepted there begins with 01. A message with an unknown name or schema is skipped. The client replies with
//! its parameters only, which then have the key `"linerate"`.

use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use linerate_model::sample::IntervalReport;
use linerate_model::{far, json};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use linerate_model::far::{FarEnd as End, FarStreamEnd as StreamEnd};

/// First byte of a message: `L`, which is not a state of iperf3.
pub const MARKER: u8 = b'L';

/// Version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Most bytes of the reports that one message holds, unpacked: a hundred times what a server sends together.
const MAX_UNPACKED: u64 = 16 << 20;
/// Name of the feature "data in TLS" (`--tls-data`) in a server's hello.
pub const TLS_DATA_FEATURE: &str = "tls_data";

/// Version of the extension's first message.
const PROTOCOL: u32 = 1;

/// The server's first message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerHello {
    /// Version of the extension: 1.
    pub linerate: u32,
    /// Version of the server's program.
    pub version: String,
    /// Names of supported features; unknown ones are ignored.
    #[serde(default)]
    pub features: Vec<String>,
}

impl ServerHello {
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

/// A message from the server to the client.
#[derive(Clone, Debug, PartialEq)]
pub enum ExtensionMessage {
    /// The server is a linerate. First message, once.
    Hello(ServerHello),
    /// Report of one interval at the server.
    Interval(IntervalReport),
    /// Reports of several intervals, together and compressed: sockets repeat most of their figures.
    Intervals(Vec<IntervalReport>),
    /// Report at the end of the test: figures that iperf3's results lack.
    End(End),
}

/// Exactly one key is present; later versions may add others. Reports of another schema must not be an error, so they are
/// read only once their schema is known.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct ExtensionEnvelope {
    #[serde(skip_serializing_if = "Option::is_none")]
    hello: Option<ServerHello>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intervals: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<Value>,
}

fn value(message: &impl Serialize) -> Value {
    json::to_value(message).expect("plain data with string keys is JSON")
}

/// Reads a report of this version's schema; `None` for another one.
fn current<T: DeserializeOwned>(report: Option<Value>) -> Result<Option<T>, UnreadableMessage> {
    let current = report.filter(|report| report.get("schema").and_then(Value::as_u64) == Some(far::SCHEMA.into()));
    current.map(json::from_value).transpose().map_err(UnreadableMessage::new)
}

/// Returns the base64 of the compressed JSON array of these reports.
fn pack(reports: &[IntervalReport]) -> String {
    let all: Vec<far::FarInterval> = reports.iter().cloned().map(far::FarInterval::new).collect();
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let written = encoder.write_all(value(&all).to_string().as_bytes()).and_then(|()| encoder.finish());
    BASE64.encode(written.expect("memory takes all bytes"))
}

/// Reads packed reports of this version's schema; others are skipped.
fn unpack(packed: &str) -> Result<Vec<IntervalReport>, UnreadableMessage> {
    let bytes = BASE64.decode(packed).map_err(UnreadableMessage::new)?;
    let mut document = Vec::new();
    ZlibDecoder::new(&*bytes).take(MAX_UNPACKED).read_to_end(&mut document).map_err(UnreadableMessage::new)?;
    let all: Vec<Value> = json::from_slice(&document).map_err(UnreadableMessage::new)?;
    all.into_iter().filter_map(|report| current(Some(report)).transpose()).collect()
}

impl ExtensionMessage {
    /// Encodes the message with its marker and length.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "plain data without map keys is always JSON")]
    pub fn encode(&self) -> Vec<u8> {
        let mut envelope = ExtensionEnvelope::default();
        match self {
            Self::Hello(hello) => envelope.hello = Some(hello.clone()),
            Self::Interval(report) => envelope.interval = Some(value(&far::FarInterval::new(report.clone()))),
            Self::Intervals(reports) => envelope.intervals = Some(pack(reports)),
            Self::End(end) => envelope.end = Some(value(&far::FarClosing::new(end.clone()))),
        }
        let document = serde_json::to_string(&envelope).expect("plain data with string keys is JSON");
        let mut bytes = vec![MARKER];
        bytes.extend_from_slice(&crate::frame::encode(&document));
        bytes
    }

    /// Decodes a message without its marker and length; `None` for an unknown kind.
    pub fn decode(document: &[u8]) -> Result<Option<Self>, UnreadableMessage> {
        let envelope: ExtensionEnvelope = json::from_slice(document).map_err(UnreadableMessage::new)?;
        if let Some(hello) = envelope.hello {
            return Ok(Some(Self::Hello(hello)));
        }
        if let Some(report) = current(envelope.interval)? {
            return Ok(Some(Self::Interval(report)));
        }
        if let Some(packed) = envelope.intervals {
            return Ok(Some(Self::Intervals(unpack(&packed)?)));
        }
        Ok(current(envelope.end)?.map(Self::End))
    }
}

/// A message whose contents do not fit its name.
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
    use linerate_model::stream::{StreamId, StreamRole};
    use linerate_model::summary::DurationDistribution;
    use linerate_model::tcp_info::{NegotiatedWindowScale, TcpInfo};
    use linerate_units::{BitRate, ByteCount, Mss, Mtu, PacketCount, Ratio, SegmentCount};

    fn round_trip(message: &ExtensionMessage) -> ExtensionMessage {
        let bytes = message.encode();
        assert_eq!(bytes[0], MARKER);
        let length = u32::from_be_bytes(bytes[1..5].try_into().expect("four bytes"));
        assert_eq!(length as usize, bytes.len() - 5);
        ExtensionMessage::decode(&bytes[5..]).expect("readable").expect("known")
    }

    fn interval() -> IntervalReport {
        let ms = Duration::from_millis;
        let samples = DurationDistribution::of(&mut [ms(1), ms(2), ms(9)]);
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
            streams: vec![
                stream(1, StreamRole::Sender, Some(tcp), None),
                stream(3, StreamRole::Receiver, None, Some(udp)),
            ],
        }
    }

    #[test]
    fn intervals_round_trip() {
        let message = ExtensionMessage::Interval(interval());
        assert_eq!(round_trip(&message), message);
    }

    #[test]
    fn intervals_travel_together_in_a_tenth_of_their_bytes() {
        let all = vec![interval(); 40];
        let alone: usize = all.iter().map(|one| ExtensionMessage::Interval(one.clone()).encode().len()).sum();
        let message = ExtensionMessage::Intervals(all);
        assert_eq!(round_trip(&message), message);
        assert!(message.encode().len() * 10 <= alone, "{} of {alone}", message.encode().len());
    }

    #[test]
    fn packed_intervals_of_strangers_are_bounded() {
        let message = |packed: &str| ExtensionMessage::decode(format!(r#"{{"intervals":"{packed}"}}"#).as_bytes());
        let compress = |text: &[u8]| {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(text).and_then(|()| encoder.finish()).map(|bytes| BASE64.encode(bytes)).expect("memory")
        };
        assert_eq!(message(&compress(b"[]")), Ok(Some(ExtensionMessage::Intervals(Vec::new()))));
        let later = compress(br#"[{"schema":3,"start_ns":0,"end_ns":0,"streams":[]}]"#);
        assert_eq!(message(&later), Ok(Some(ExtensionMessage::Intervals(Vec::new()))));
        let blanks = vec![b' '; 64 << 20];
        for packed in ["*", "AAAA", &compress(b"{}"), &compress(b"[5"), &compress(&blanks)] {
            assert!(message(packed).is_err(), "{packed:.20}");
        }
    }

    #[test]
    fn the_end_round_trips() {
        let info = TcpInfo {
            rtt: Some(Duration::from_micros(18_500)),
            send_mss: Some(Mss::new(1448)),
            pacing_rate: Some(BitRate::from_bits_per_second(9.41e9)),
            delivery_rate_application_limited: Some(false),
            window_scale: Some(NegotiatedWindowScale { send: 7, receive: 14 }),
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
            thread_wait: Some(Duration::from_nanos(2)),
            duplicates: Some(PacketCount::new(5)),
            out_of_order: None,
            dropped_in_host: Some(PacketCount::ZERO),
        };
        let message = ExtensionMessage::End(End { streams: vec![stream], overlapping_tests: 2, host: None });
        assert_eq!(round_trip(&message), message);
    }

    #[test]
    fn the_hello_is_as_documented() {
        let hello = ServerHello { linerate: 1, version: "0.1.0".into(), features: vec!["interval".into()] };
        let bytes = ExtensionMessage::Hello(hello).encode();
        let text = r#"{"hello":{"linerate":1,"version":"0.1.0","features":["interval"]}}"#;
        assert_eq!(bytes[5..], *text.as_bytes());
        assert_eq!(bytes[..5], [0x4C, 0, 0, 0, 66]);
    }

    #[test]
    fn additions_of_later_versions_are_skipped() {
        let decode = |text: &str| ExtensionMessage::decode(text.as_bytes());
        assert_eq!(decode(r#"{"probe":{"x":[1]}}"#), Ok(None));
        assert_eq!(decode(r#"{"interval":{"schema":3,"start_ns":0,"end_ns":0,"streams":[]}}"#), Ok(None));
        let later = r#"{"end":{"schema":2,"new":null,"streams":[{"id":1,"newer":{}}]}}"#;
        let Ok(Some(ExtensionMessage::End(end))) = decode(later) else { panic!("readable") };
        assert_eq!((end.streams[0].stream, end.overlapping_tests), (StreamId(1), 0));
        assert!(end.streams[0].tcp_info.is_none() && end.streams[0].duplicates.is_none());
    }

    #[test]
    fn wrong_types_are_an_error() {
        for text in
            ["", "[", r#"{"hello":5}"#, r#"{"hello":{"linerate":"1","version":"x"}}"#, r#"{"end":{"schema":2}}"#]
        {
            assert!(ExtensionMessage::decode(text.as_bytes()).is_err(), "{text}");
        }
    }
}
