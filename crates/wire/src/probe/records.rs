//! Reports about a stream of packets.

use core::time::Duration;

use linerate_units::{ByteCount, PacketCount, TypeOfService, WallTime};
use serde::{Deserialize, Serialize};

use super::orders::StreamNumber;
use super::scalar::{bytes, maybe_packets, maybe_wall, nanos, packets, rate, wall};

/// Maximum number of packets that a session keeps of all its recorded streams together.
pub const MAX_SESSION_RECORDS: usize = 250_000;

/// Record of one received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketRecord {
    /// Sequence number, from 0.
    pub sequence: u32,
    /// Sending time according to the packet, on the sender's realtime clock.
    pub sent: WallTime,
    /// Arrival time in the receiver's kernel, on the receiver's realtime clock.
    pub arrived: WallTime,
    /// UDP payload.
    pub size: ByteCount,
    /// Time to live (hop limit) on arrival; `None` where the kernel did not report it.
    pub time_to_live: Option<u8>,
    /// Type-of-service octet on arrival; `None` where the kernel did not report it.
    pub type_of_service: Option<TypeOfService>,
}

/// A part of a stream's records, in the order of arrival.
///
/// In a message each field of a record is a column. Numbers and times are differences from the previous record (from
/// zero, for the first); sizes, times to live and octets have a single entry when all are equal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RecordColumns", into = "RecordColumns")]
pub struct RecordBatch {
    /// Number of the stream.
    pub stream: StreamNumber,
    /// Records, at most [`RecordBatch::MOST`].
    pub packets: Vec<PacketRecord>,
    /// True for the last part.
    pub last: bool,
    /// Packets received without a record, above the session's limit.
    pub not_kept: PacketCount,
    /// Datagrams dropped by the receiver's kernel for lack of buffer space while the stream was received; `None` when
    /// unknown.
    pub dropped_in_host: Option<PacketCount>,
}

impl RecordBatch {
    /// Maximum number of packets in one message.
    pub const MOST: usize = 1024;
}

/// Serialised form of [`RecordBatch`].
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RecordColumns {
    stream: StreamNumber,
    #[serde(default)]
    sequence: Vec<i64>,
    #[serde(default)]
    sent: Vec<i64>,
    #[serde(default)]
    arrived: Vec<i64>,
    #[serde(default)]
    size: Vec<u32>,
    #[serde(default)]
    ttl: Vec<Option<u8>>,
    #[serde(default)]
    tos: Vec<Option<u8>>,
    last: bool,
    #[serde(default)]
    not_kept: u64,
    #[serde(default)]
    dropped_in_host: Option<u64>,
}

impl From<RecordBatch> for RecordColumns {
    fn from(records: RecordBatch) -> Self {
        let packets = &records.packets;
        Self {
            stream: records.stream,
            sequence: differences(packets.iter().map(|packet| u64::from(packet.sequence))),
            sent: differences(packets.iter().map(|packet| wall::whole(packet.sent))),
            arrived: differences(packets.iter().map(|packet| wall::whole(packet.arrived))),
            size: compress_column(packets.iter().map(|packet| u32::try_from(packet.size.get()).unwrap_or(u32::MAX))),
            ttl: compress_column(packets.iter().map(|packet| packet.time_to_live)),
            tos: compress_column(packets.iter().map(|packet| packet.type_of_service.map(TypeOfService::get))),
            last: records.last,
            not_kept: records.not_kept.get(),
            dropped_in_host: records.dropped_in_host.map(PacketCount::get),
        }
    }
}

impl TryFrom<RecordColumns> for RecordBatch {
    type Error = &'static str;

    fn try_from(columns: RecordColumns) -> Result<Self, Self::Error> {
        let count = columns.sequence.len();
        if count > Self::MOST {
            return Err("a message has at most 1024 records");
        }
        if columns.sent.len() != count || columns.arrived.len() != count {
            return Err("the columns of the records are of different lengths");
        }
        let (size, ttl, tos) = (
            expand_column(columns.size, count)?,
            expand_column(columns.ttl, count)?,
            expand_column(columns.tos, count)?,
        );
        let mut packets = Vec::with_capacity(count);
        let (mut sequence, mut sent, mut arrived) = (0_u64, 0_u64, 0_u64);
        for index in 0..count {
            sequence = sequence.wrapping_add_signed(columns.sequence[index]);
            sent = sent.wrapping_add_signed(columns.sent[index]);
            arrived = arrived.wrapping_add_signed(columns.arrived[index]);
            packets.push(PacketRecord {
                sequence: u32::try_from(sequence).map_err(|_| "a packet's number has 32 bits")?,
                sent: wall::from_whole(sent),
                arrived: wall::from_whole(arrived),
                size: ByteCount::new(u64::from(size[index])),
                time_to_live: ttl[index],
                type_of_service: tos[index].map(TypeOfService::new),
            });
        }
        Ok(Self {
            stream: columns.stream,
            packets,
            last: columns.last,
            not_kept: PacketCount::new(columns.not_kept),
            dropped_in_host: columns.dropped_in_host.map(PacketCount::new),
        })
    }
}

/// Differences of successive values.
fn differences(values: impl Iterator<Item = u64>) -> Vec<i64> {
    let mut before = 0_u64;
    values.map(|value| value.wrapping_sub(core::mem::replace(&mut before, value)).cast_signed()).collect()
}

/// The values, or a single one when all are equal.
fn compress_column<T: PartialEq + Copy>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.collect();
    if values.windows(2).all(|pair| pair[0] == pair[1]) {
        values.truncate(1);
    }
    values
}

/// The reverse of [`compress_column`].
fn expand_column<T: Copy>(values: Vec<T>, count: usize) -> Result<Vec<T>, &'static str> {
    match values.len() {
        length if length == count => Ok(values),
        1 => Ok(vec![values[0]; count]),
        _ => Err("the columns of the records are of different lengths"),
    }
}

/// Counts of a received stream so far. Sums are since the stream's start, delays since the last feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamFeedback {
    /// Number of the stream.
    pub stream: StreamNumber,
    /// Time of this message, since the request to receive the stream.
    #[serde(rename = "t", with = "nanos")]
    pub time: Duration,
    /// Packets received, duplicates included.
    #[serde(with = "packets")]
    pub packets: PacketCount,
    /// UDP payload of these packets.
    #[serde(with = "bytes")]
    pub bytes: ByteCount,
    /// Highest number seen; `None` before the first packet.
    #[serde(default)]
    pub highest: Option<u32>,
    /// Sending time of the packet with that number, on its sender's realtime clock; `None` when unknown.
    #[serde(default, rename = "sent", with = "maybe_wall")]
    pub highest_sent: Option<WallTime>,
    /// Packets received before already.
    #[serde(rename = "dup", with = "packets")]
    pub duplicates: PacketCount,
    /// Packets received after a higher-numbered one, duplicates not counted (RFC 4737 §3.3).
    #[serde(rename = "late", with = "packets")]
    pub reordered: PacketCount,
    /// Smallest difference of arrival and sending time since the last feedback, on two clocks: only its changes are
    /// meaningful. In nanoseconds; `None` when no packet was received.
    #[serde(default, rename = "min")]
    pub least_delay: Option<i64>,
    /// Largest such difference.
    #[serde(default, rename = "max")]
    pub most_delay: Option<i64>,
    /// Arrival time of the first packet of the stream.
    #[serde(default, with = "maybe_wall")]
    pub first: Option<WallTime>,
    /// Arrival time of the latest packet.
    #[serde(default, with = "maybe_wall")]
    pub newest: Option<WallTime>,
    /// Datagrams dropped by the receiver's kernel at the socket, for lack of buffer space or a wrong checksum (its
    /// counters `RcvbufErrors` and `InCsumErrors` distinguish them); `None` when unknown.
    #[serde(default, rename = "drop", with = "maybe_packets")]
    pub dropped_in_host: Option<PacketCount>,
    /// True when the stream is over: the reply to `stop`.
    #[serde(default)]
    pub last: bool,
}

impl StreamFeedback {
    /// Checks that the fields are consistent.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.highest.is_none() && self.highest_sent.is_some() {
            return Err("a sending time of the highest number without the number");
        }
        Ok(())
    }

    /// Packets not received, of those up to the highest number.
    #[must_use]
    pub fn lost(&self) -> PacketCount {
        let expected = self.highest.map_or(0, |highest| u64::from(highest) + 1);
        PacketCount::new(expected) - (self.packets - self.duplicates)
    }
}

/// Report of a stream that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SentReport {
    /// Number of the stream.
    pub stream: StreamNumber,
    /// Packets accepted by the kernel.
    #[serde(with = "packets")]
    pub packets: PacketCount,
    /// UDP payload of these packets.
    #[serde(with = "bytes")]
    pub bytes: ByteCount,
    /// Sending time of the first packet, on the sender's realtime clock; `None` when none was sent.
    #[serde(default, with = "maybe_wall")]
    pub first: Option<WallTime>,
    /// Sending time of the last packet.
    #[serde(default, with = "maybe_wall")]
    pub newest: Option<WallTime>,
    /// Packets refused by the kernel as larger than the path MTU (`EMSGSIZE`).
    #[serde(with = "packets")]
    pub refused_too_large: PacketCount,
    /// Packets refused by the sending host for lack of buffers (`ENOBUFS`): a loss in the host, not on the path.
    #[serde(with = "packets")]
    pub refused_no_room: PacketCount,
    /// Latest requested payload rate.
    #[serde(with = "rate")]
    pub rate: linerate_units::BitRate,
}
