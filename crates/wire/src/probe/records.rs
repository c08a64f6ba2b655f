//! What is known of a stream of packets.

use core::time::Duration;

use linerate_units::{ByteCount, PacketCount, TypeOfService, WallTime};
use serde::{Deserialize, Serialize};

use super::orders::StreamNumber;
use super::scalar::{bytes, maybe_packets, maybe_wall, nanos, packets, rate, wall};

/// Packets that a session keeps of all its recorded streams together, at most.
pub const MOST_RECORDS: usize = 250_000;

/// One packet as its receiver saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketRecord {
    /// Its number, from 0.
    pub sequence: u32,
    /// When its sender says that it sent it, on the sender's civil clock.
    pub sent: WallTime,
    /// When the receiver's kernel received it, on the receiver's civil clock.
    pub arrived: WallTime,
    /// UDP payload.
    pub size: ByteCount,
    /// Time to live (hop limit) on arrival; `None` where the kernel did not say.
    pub time_to_live: Option<u8>,
    /// Type-of-service octet on arrival; `None` where the kernel did not say.
    pub type_of_service: Option<TypeOfService>,
}

/// A part of a stream's records, in the order of arrival.
///
/// In a message each field of a record is a column. Numbers and times are differences from the record before (from zero,
/// for the first); of sizes, times to live and octets there is one entry when it holds for all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Columns", into = "Columns")]
pub struct Records {
    /// Which stream.
    pub stream: StreamNumber,
    /// Up to [`Records::MOST`] of them.
    pub packets: Vec<PacketRecord>,
    /// Whether these are the last ones.
    pub last: bool,
    /// Packets that came and were not kept, as the session had too many.
    pub not_kept: PacketCount,
    /// Datagrams that the receiver's kernel dropped for want of buffer space while the stream was received; `None` when
    /// it does not tell.
    pub dropped_in_host: Option<PacketCount>,
}

impl Records {
    /// Most packets in one message.
    pub const MOST: usize = 1024;
}

/// [`Records`] as they are written.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Columns {
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

impl From<Records> for Columns {
    fn from(records: Records) -> Self {
        let packets = &records.packets;
        Self {
            stream: records.stream,
            sequence: differences(packets.iter().map(|packet| u64::from(packet.sequence))),
            sent: differences(packets.iter().map(|packet| wall::whole(packet.sent))),
            arrived: differences(packets.iter().map(|packet| wall::whole(packet.arrived))),
            size: column(packets.iter().map(|packet| u32::try_from(packet.size.get()).unwrap_or(u32::MAX))),
            ttl: column(packets.iter().map(|packet| packet.time_to_live)),
            tos: column(packets.iter().map(|packet| packet.type_of_service.map(TypeOfService::get))),
            last: records.last,
            not_kept: records.not_kept.get(),
            dropped_in_host: records.dropped_in_host.map(PacketCount::get),
        }
    }
}

impl TryFrom<Columns> for Records {
    type Error = &'static str;

    fn try_from(columns: Columns) -> Result<Self, Self::Error> {
        let count = columns.sequence.len();
        if count > Self::MOST {
            return Err("a message has at most 1024 records");
        }
        if columns.sent.len() != count || columns.arrived.len() != count {
            return Err("the columns of the records are of different lengths");
        }
        let (size, ttl, tos) = (spread(columns.size, count)?, spread(columns.ttl, count)?, spread(columns.tos, count)?);
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

/// Each value less the one before.
fn differences(values: impl Iterator<Item = u64>) -> Vec<i64> {
    let mut before = 0_u64;
    values.map(|value| value.wrapping_sub(core::mem::replace(&mut before, value)).cast_signed()).collect()
}

/// The values, or the one that all are.
fn column<T: PartialEq + Copy>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.collect();
    if values.windows(2).all(|pair| pair[0] == pair[1]) {
        values.truncate(1);
    }
    values
}

/// The reverse of [`column`].
fn spread<T: Copy>(values: Vec<T>, count: usize) -> Result<Vec<T>, &'static str> {
    match values.len() {
        length if length == count => Ok(values),
        1 => Ok(vec![values[0]; count]),
        _ => Err("the columns of the records are of different lengths"),
    }
}

/// What a receiver has counted of a stream so far. Sums are since the stream's start, delays since the last feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    /// Which stream.
    pub stream: StreamNumber,
    /// When this was written, since the receiver was told to receive it.
    #[serde(rename = "t", with = "nanos")]
    pub time: Duration,
    /// Packets, duplicates included.
    #[serde(with = "packets")]
    pub packets: PacketCount,
    /// UDP payload of these.
    #[serde(with = "bytes")]
    pub bytes: ByteCount,
    /// Highest number seen; `None` before the first packet.
    #[serde(default)]
    pub highest: Option<u32>,
    /// When the packet with that number was sent, on its sender's civil clock; `None` when it does not say.
    #[serde(default, rename = "sent", with = "maybe_wall")]
    pub highest_sent: Option<WallTime>,
    /// Packets that had come before.
    #[serde(rename = "dup", with = "packets")]
    pub duplicates: PacketCount,
    /// Packets that came after a higher-numbered one, duplicates not counted (RFC 4737 §3.3).
    #[serde(rename = "late", with = "packets")]
    pub reordered: PacketCount,
    /// Smallest difference of arrival and sending time since the last feedback, on two clocks: only its changes mean
    /// something. In nanoseconds; `None` when nothing came.
    #[serde(default, rename = "min")]
    pub least_delay: Option<i64>,
    /// The largest.
    #[serde(default, rename = "max")]
    pub most_delay: Option<i64>,
    /// When the first packet of the stream came.
    #[serde(default, with = "maybe_wall")]
    pub first: Option<WallTime>,
    /// When the last packet so far came.
    #[serde(default, with = "maybe_wall")]
    pub newest: Option<WallTime>,
    /// Datagrams that the receiver's kernel dropped at the socket: for want of buffer space, or since their checksum was
    /// wrong (its counters `RcvbufErrors` and `InCsumErrors` tell them apart); `None` when it does not tell.
    #[serde(default, rename = "drop", with = "maybe_packets")]
    pub dropped_in_host: Option<PacketCount>,
    /// Whether the stream is over: the answer to `stop`.
    #[serde(default)]
    pub last: bool,
}

impl Feedback {
    /// Whether the fields fit together.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.highest.is_none() && self.highest_sent.is_some() {
            return Err("it says when the highest number was sent, and not which it is");
        }
        Ok(())
    }

    /// Packets that have not come, of those up to the highest number.
    #[must_use]
    pub fn lost(&self) -> PacketCount {
        let expected = self.highest.map_or(0, |highest| u64::from(highest) + 1);
        PacketCount::new(expected) - (self.packets - self.duplicates)
    }
}

/// What became of a stream that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SentReport {
    /// Which stream.
    pub stream: StreamNumber,
    /// Packets that the kernel took.
    #[serde(with = "packets")]
    pub packets: PacketCount,
    /// Their UDP payload.
    #[serde(with = "bytes")]
    pub bytes: ByteCount,
    /// When the first left, on the sender's civil clock; `None` when none did.
    #[serde(default, with = "maybe_wall")]
    pub first: Option<WallTime>,
    /// When the last left.
    #[serde(default, with = "maybe_wall")]
    pub newest: Option<WallTime>,
    /// Packets that the kernel refused as larger than the path's MTU (`EMSGSIZE`).
    #[serde(with = "packets")]
    pub refused_too_large: PacketCount,
    /// Packets that did not leave as the sending host had no room (`ENOBUFS`): its own loss, not the path's.
    #[serde(with = "packets")]
    pub refused_no_room: PacketCount,
    /// The payload rate that it was last told to send.
    #[serde(with = "rate")]
    pub rate: linerate_units::BitRate,
}
