//! The results document: what each side counted, exchanged at the end (iperf3 `send_results`, `get_results`).

use core::time::Duration;
use std::collections::BTreeSet;

use linerate_model::report::{CpuUtilization, ServerOutput};
use linerate_model::stream::StreamId;
use linerate_units::{ByteCount, PacketCount, Ratio, SegmentCount, StreamCount};

use crate::error::ErrorCode;
use crate::json::{self, JsonError, Object, Writer, required};

/// What one side counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Processor use of that side's process.
    pub cpu: CpuUtilization,
    /// Whether that side, as a sender, can count retransmitted segments; `None` for a receiver.
    pub sender_has_retransmits: Option<bool>,
    /// Congestion control in use on that side (TCP).
    pub congestion_used: Option<String>,
    /// The server's output, when the client has asked for it.
    pub server_output: Option<ServerOutput>,
    /// In order of creation.
    pub streams: Vec<StreamResult>,
}

/// What one side counted on one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamResult {
    /// Which stream.
    pub id: StreamId,
    /// Payload bytes, the omitted part left out.
    pub bytes: ByteCount,
    /// Retransmitted segments; `None` for a receiver, or when the system does not say.
    pub retransmits: Option<SegmentCount>,
    /// Smoothed jitter at the end (UDP receiver).
    pub jitter: Duration,
    /// Lost datagrams, those of the omitted part included (UDP receiver).
    pub lost: PacketCount,
    /// Lost datagrams of the omitted part; `None` from iperf3 before 3.16.
    pub omitted_lost: Option<PacketCount>,
    /// Highest datagram number, the omitted part included (UDP).
    pub packets: PacketCount,
    /// Highest datagram number of the omitted part; `None` from iperf3 before 3.16.
    pub omitted_packets: Option<PacketCount>,
    /// Start of counting, on the stream's own clock: 0 from every known peer.
    pub start: Option<Duration>,
    /// End of counting. Not always measured: riperf3's server repeats the requested time.
    pub end: Option<Duration>,
}

/// Why a peer's document is not a set of results.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResultsError {
    /// It is not the document that it should be.
    #[error("the peer's results document {0}")]
    Malformed(String),
    /// It reports on a stream that this test does not have.
    #[error("the peer reported results for stream {}, which this test does not have", .0.0)]
    UnknownStream(StreamId),
    /// It reports twice on one stream.
    #[error("the peer reported results for stream {} twice", .0.0)]
    DuplicateStream(StreamId),
}

impl ResultsError {
    /// iperf3's number for it.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Malformed(_) => ErrorCode::RECEIVE_RESULTS,
            Self::UnknownStream(_) | Self::DuplicateStream(_) => ErrorCode::STREAM_ID,
        }
    }
}

impl From<JsonError> for ResultsError {
    fn from(error: JsonError) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// The results document, with keys in iperf3's order.
#[must_use]
pub fn encode(results: &Results) -> String {
    let mut document = Writer::new();
    document.double("cpu_util_total", results.cpu.total.percent());
    document.double("cpu_util_user", results.cpu.user.percent());
    document.double("cpu_util_system", results.cpu.system.percent());
    document.integer("sender_has_retransmits", results.sender_has_retransmits.map_or(-1, i8::from));
    if let Some(name) = &results.congestion_used {
        document.string("congestion_used", name);
    }
    match &results.server_output {
        Some(ServerOutput::Text(text)) => document.string("server_output_text", text),
        Some(ServerOutput::Json(json)) => document.raw("server_output_json", json),
        None => {}
    }
    let streams: Vec<_> = results.streams.iter().map(encode_stream).collect();
    document.raw("streams", &format!("[{}]", streams.join(",")));
    document.finish()
}

fn encode_stream(stream: &StreamResult) -> String {
    let mut object = Writer::new();
    object.integer("id", stream.id.0);
    object.integer("bytes", stream.bytes.get());
    object.integer("retransmits", stream.retransmits.map_or(-1, |count| i128::from(count.get())));
    object.double("jitter", stream.jitter.as_secs_f64());
    // iperf3 takes both of the omitted figures or neither.
    let omitted = stream.omitted_lost.zip(stream.omitted_packets);
    object.integer("errors", stream.lost.get());
    if let Some((lost, _)) = omitted {
        object.integer("omitted_errors", lost.get());
    }
    object.integer("packets", stream.packets.get());
    if let Some((_, packets)) = omitted {
        object.integer("omitted_packets", packets.get());
    }
    object.double("start_time", stream.start.unwrap_or_default().as_secs_f64());
    if let Some(end) = stream.end {
        object.double("end_time", end.as_secs_f64());
    }
    object.finish()
}

/// Reads a peer's results document for a test of `streams` streams over both directions.
///
/// Required and optional keys are iperf3's. A count may not be negative, save −1 for "not known", which iperf3 3.12
/// writes as 2^64 − 1. A stream without results is not an error: its figures are unknown.
pub fn decode(document: &[u8], streams: StreamCount) -> Result<Results, ResultsError> {
    let text = json::text(document)?;
    let root = Object::parse(&text)?;
    let most = streams.to_usize();
    // One element more than can be right, so that the wrong one is named.
    let elements = required("streams", root.array("streams", most.saturating_add(1))?)?;
    let results = Results {
        cpu: CpuUtilization {
            total: percentage(&root, "cpu_util_total")?,
            user: percentage(&root, "cpu_util_user")?,
            system: percentage(&root, "cpu_util_system")?,
        },
        sender_has_retransmits: count_or_unknown(&root, "sender_has_retransmits")?.map(|flag| flag != 0),
        congestion_used: root.string("congestion_used")?,
        server_output: server_output(&root)?,
        streams: elements.into_iter().map(decode_stream).collect::<Result<_, _>>()?,
    };
    check_ids(&results.streams, most)?;
    Ok(results)
}

fn check_ids(results: &[StreamResult], streams: usize) -> Result<(), ResultsError> {
    let mut missing: BTreeSet<_> = (0..streams).map(StreamId::nth).collect();
    for (index, StreamResult { id, .. }) in results.iter().enumerate() {
        if !missing.remove(id) {
            let seen = results[..index].iter().any(|earlier| earlier.id == *id);
            return Err(if seen { ResultsError::DuplicateStream(*id) } else { ResultsError::UnknownStream(*id) });
        }
    }
    Ok(())
}

fn server_output(root: &Object<'_>) -> Result<Option<ServerOutput>, JsonError> {
    let json = root.object("server_output_json")?.map(|json| ServerOutput::Json(json.to_owned()));
    let text = root.string("server_output_text")?.map(ServerOutput::Text);
    Ok(json.or(text))
}

fn decode_stream(text: &str) -> Result<StreamResult, ResultsError> {
    let object = Object::parse(text)?;
    let omitted = match (count(&object, "omitted_errors")?, count(&object, "omitted_packets")?) {
        (Some(lost), Some(packets)) => Some((lost, packets)),
        (None, None) => None,
        (Some(_), None) => return Err(JsonError::Missing("omitted_packets").into()),
        (None, Some(_)) => return Err(JsonError::Missing("omitted_errors").into()),
    };
    let id = required("id", object.integer("id")?)?;
    Ok(StreamResult {
        id: StreamId(u32::try_from(id).map_err(|_| ResultsError::UnknownStream(StreamId(u32::MAX)))?),
        bytes: ByteCount::new(required("bytes", count(&object, "bytes")?)?),
        retransmits: count_or_unknown(&object, "retransmits")?.map(SegmentCount::new),
        jitter: required("jitter", seconds(&object, "jitter")?)?,
        lost: PacketCount::new(required("errors", count(&object, "errors")?)?),
        omitted_lost: omitted.map(|(lost, _)| PacketCount::new(lost)),
        packets: PacketCount::new(required("packets", count(&object, "packets")?)?),
        omitted_packets: omitted.map(|(_, packets)| PacketCount::new(packets)),
        start: seconds(&object, "start_time")?,
        end: seconds(&object, "end_time")?,
    })
}

/// A count, or −1 for "not known", which iperf3 3.12 writes without its sign.
fn count_or_unknown(object: &Object<'_>, key: &'static str) -> Result<Option<u64>, JsonError> {
    let value = required(key, object.integer(key)?)?;
    if value == -1 || value == i128::from(u64::MAX) { Ok(None) } else { count(object, key) }
}

/// What does not fit 63 bits is a negative number that has lost its sign.
fn count(object: &Object<'_>, key: &'static str) -> Result<Option<u64>, JsonError> {
    let Some(value) = object.integer(key)? else { return Ok(None) };
    let count = i64::try_from(value).ok().and_then(|value| u64::try_from(value).ok());
    count.map(Some).ok_or(JsonError::WrongType { key, expected: "0 or more" })
}

/// A time in seconds; what is longer than 584 years is not a time.
fn seconds(object: &Object<'_>, key: &'static str) -> Result<Option<Duration>, JsonError> {
    let Some(value) = object.number(key)? else { return Ok(None) };
    let time = Duration::try_from_secs_f64(value).ok().filter(|time| u64::try_from(time.as_nanos()).is_ok());
    time.map(Some).ok_or(JsonError::WrongType { key, expected: "a time in seconds" })
}

fn percentage(object: &Object<'_>, key: &'static str) -> Result<Ratio, JsonError> {
    let value = required(key, object.number(key)?)?;
    Ratio::from_percent(value).ok_or(JsonError::WrongType { key, expected: "0 or more percent" })
}
