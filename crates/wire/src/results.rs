//! The results document: the counts of each host, exchanged at the end (iperf3 `send_results`, `get_results`).

use core::time::Duration;
use std::collections::BTreeSet;

use linerate_model::report::{CpuUtilization, ServerOutput};
use linerate_model::stream::StreamId;
use linerate_units::{ByteCount, PacketCount, Ratio, SegmentCount, StreamCount};

use crate::error::ErrorCode;
use crate::json::{self, JsonError, JsonObject, JsonWriter, required};

/// Results of one host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestResults {
    /// CPU utilization of that host's process.
    pub cpu: CpuUtilization,
    /// True when that host, as a sender, can count retransmitted segments; `None` for a receiver.
    pub sender_has_retransmits: Option<bool>,
    /// Congestion control of that host (TCP).
    pub congestion_used: Option<String>,
    /// The server's output, if requested by the client.
    pub server_output: Option<ServerOutput>,
    /// Results of each stream, in order of creation.
    pub streams: Vec<StreamCounts>,
}

/// Counts of one host on one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamCounts {
    /// The stream.
    pub id: StreamId,
    /// Payload bytes, without the omitted part.
    pub bytes: ByteCount,
    /// Retransmitted segments; `None` for a receiver, or when the system does not report them.
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

/// Error in a peer's results document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResultsError {
    /// The document is malformed.
    #[error("the peer's results document {0}")]
    Malformed(String),
    /// The document reports a stream that this test does not have.
    #[error("the peer reported results for stream {}, which this test does not have", .0.0)]
    UnknownStream(StreamId),
    /// The document reports one stream twice.
    #[error("the peer reported results for stream {} twice", .0.0)]
    DuplicateStream(StreamId),
}

impl ResultsError {
    /// iperf3's error number.
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

/// Encodes the results document, with keys in iperf3's order.
#[must_use]
pub fn encode(results: &TestResults) -> String {
    let mut document = JsonWriter::new();
    document.format_double("cpu_util_total", results.cpu.total.percent());
    document.format_double("cpu_util_user", results.cpu.user.percent());
    document.format_double("cpu_util_system", results.cpu.system.percent());
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

fn encode_stream(stream: &StreamCounts) -> String {
    let mut object = JsonWriter::new();
    object.integer("id", stream.id.0);
    object.integer("bytes", stream.bytes.get());
    object.integer("retransmits", stream.retransmits.map_or(-1, |count| i128::from(count.get())));
    object.format_double("jitter", stream.jitter.as_secs_f64());
    // iperf3 requires both of the omitted figures or neither.
    let omitted = stream.omitted_lost.zip(stream.omitted_packets);
    object.integer("errors", stream.lost.get());
    if let Some((lost, _)) = omitted {
        object.integer("omitted_errors", lost.get());
    }
    object.integer("packets", stream.packets.get());
    if let Some((_, packets)) = omitted {
        object.integer("omitted_packets", packets.get());
    }
    object.format_double("start_time", stream.start.unwrap_or_default().as_secs_f64());
    if let Some(end) = stream.end {
        object.format_double("end_time", end.as_secs_f64());
    }
    object.finish()
}

/// Parses a peer's results document for a test of `streams` streams over both directions.
///
/// Required and optional keys are iperf3's. A count must not be negative, except −1 for "unknown", which iperf3 3.12
/// writes as 2^64 − 1. A stream without results is valid: its figures are unknown.
pub fn decode(document: &[u8], streams: StreamCount) -> Result<TestResults, ResultsError> {
    let text = json::text(document)?;
    let root = JsonObject::parse(&text)?;
    let most = streams.to_usize();
    // One element more than allowed, so that the error names it.
    let elements = required("streams", root.array("streams", most.saturating_add(1))?)?;
    let results = TestResults {
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

fn check_ids(results: &[StreamCounts], streams: usize) -> Result<(), ResultsError> {
    let mut missing: BTreeSet<_> = (0..streams).map(StreamId::nth).collect();
    for (index, StreamCounts { id, .. }) in results.iter().enumerate() {
        if !missing.remove(id) {
            let seen = results[..index].iter().any(|earlier| earlier.id == *id);
            return Err(if seen { ResultsError::DuplicateStream(*id) } else { ResultsError::UnknownStream(*id) });
        }
    }
    Ok(())
}

fn server_output(root: &JsonObject<'_>) -> Result<Option<ServerOutput>, JsonError> {
    let json = root.object("server_output_json")?.map(|json| ServerOutput::Json(json.to_owned()));
    let text = root.string("server_output_text")?.map(ServerOutput::Text);
    Ok(json.or(text))
}

fn decode_stream(text: &str) -> Result<StreamCounts, ResultsError> {
    let object = JsonObject::parse(text)?;
    let omitted = match (count(&object, "omitted_errors")?, count(&object, "omitted_packets")?) {
        (Some(lost), Some(packets)) => Some((lost, packets)),
        (None, None) => None,
        (Some(_), None) => return Err(JsonError::Missing("omitted_packets").into()),
        (None, Some(_)) => return Err(JsonError::Missing("omitted_errors").into()),
    };
    let id = required("id", object.integer("id")?)?;
    Ok(StreamCounts {
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

/// A count, or −1 for "unknown", which iperf3 3.12 writes without its sign.
fn count_or_unknown(object: &JsonObject<'_>, key: &'static str) -> Result<Option<u64>, JsonError> {
    let value = required(key, object.integer(key)?)?;
    if value == -1 || value == i128::from(u64::MAX) { Ok(None) } else { count(object, key) }
}

/// A count. A number above 63 bits is a negative number without its sign.
fn count(object: &JsonObject<'_>, key: &'static str) -> Result<Option<u64>, JsonError> {
    let Some(value) = object.integer(key)? else { return Ok(None) };
    let count = i64::try_from(value).ok().and_then(|value| u64::try_from(value).ok());
    count.map(Some).ok_or(JsonError::WrongType { key, expected: "0 or more" })
}

/// A time in seconds, at most 584 years.
fn seconds(object: &JsonObject<'_>, key: &'static str) -> Result<Option<Duration>, JsonError> {
    let Some(value) = object.parse_number(key)? else { return Ok(None) };
    let time = Duration::try_from_secs_f64(value).ok().filter(|time| u64::try_from(time.as_nanos()).is_ok());
    time.map(Some).ok_or(JsonError::WrongType { key, expected: "a time in seconds" })
}

fn percentage(object: &JsonObject<'_>, key: &'static str) -> Result<Ratio, JsonError> {
    let value = required(key, object.parse_number(key)?)?;
    Ratio::from_percent(value).ok_or(JsonError::WrongType { key, expected: "0 or more percent" })
}
