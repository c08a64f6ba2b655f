//! What one linerate tells another about a running test (the extension channel).
//!
//! The shapes here are what travels; they convert to and from the types of [`crate::sample`], [`crate::tcp_info`] and
//! the plain types [`FarEnd`] and [`FarStreamEnd`] below. Times are whole nanoseconds, sizes bytes, rates whole bit/s,
//! shares fractions of one, and what is not known is `null`. A reader ignores keys that it does not know and takes a
//! missing one as `null`, so that keys can be added without a new [`SCHEMA`].

mod parts;

use core::time::Duration;
use std::collections::BTreeMap;

use linerate_units::{ByteCount, PacketCount};
use serde::{Deserialize, Serialize};

pub use parts::{Distribution, LimitShares, SocketMemory, SocketSample, TcpInfo, TcpInterval, UdpInterval};

use crate::host::counters::SoftnetRow;
use crate::limit;
use crate::sample;
use crate::schema::nanoseconds;
use crate::stream::{Role, StreamId};
use crate::tcp_info;

/// Version of these shapes. It changes when a key changes its meaning.
pub const SCHEMA: u32 = 1;

/// What the far end alone knows once the test is over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FarEnd {
    /// In order of creation.
    pub streams: Vec<FarStreamEnd>,
    /// The largest number of other bandwidth tests that ran there at the same time.
    pub overlapping_tests: u64,
    /// Its host; only for a client that asked ([`far_details`](crate::parameters::TestParameters::far_details)).
    pub host: Option<HostEvidence>,
}

/// What a host tells of a test: its settings, and what its counters did meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostEvidence {
    /// Release of its kernel.
    pub kernel: Option<String>,
    /// Settings that bound a transfer, by sysctl's names; numbers that belong together have one blank between them.
    pub settings: BTreeMap<String, String>,
    /// By how much the kernel's protocol counters grew, by nstat's names; those that did not grow are left out.
    pub counters: BTreeMap<String, u64>,
    /// Bytes that its interface towards the other end received and sent meanwhile; `None` where that is not known.
    pub interface_bytes: Option<(u64, u64)>,
    /// Share of all its processors that was busy.
    pub busy: Option<f64>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// What its processors could not take in; `None` where that is not known.
    pub receiving: Option<ReceivingEvidence>,
}

/// By how much `/proc/net/softnet_stat` grew during a test, over all processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReceivingEvidence {
    /// Processors that are listed there.
    pub processors: u32,
    /// Packets dropped at a full queue (`net.core.netdev_max_backlog`).
    pub dropped: u64,
    /// Times that a processor stopped with packets left (`net.core.netdev_budget`, `netdev_budget_usecs`).
    pub squeezed: u64,
}

impl ReceivingEvidence {
    /// The sums of the processors' rows.
    #[must_use]
    pub fn of(rows: &[SoftnetRow]) -> Self {
        Self {
            processors: u32::try_from(rows.len()).unwrap_or(u32::MAX),
            dropped: rows.iter().map(|row| row.dropped.get()).sum(),
            squeezed: rows.iter().map(|row| u64::from(row.squeezed)).sum(),
        }
    }

    /// What was added to an earlier reading. The kernel's counters have 32 bits for each processor; where one has wrapped
    /// round or a processor has gone, nothing is known.
    #[must_use]
    pub fn since(self, earlier: Self) -> Option<Self> {
        let same = self.processors == earlier.processors;
        Some(Self {
            processors: self.processors,
            dropped: self.dropped.checked_sub(earlier.dropped).filter(|_| same)?,
            squeezed: self.squeezed.checked_sub(earlier.squeezed)?,
        })
    }
}

/// What the far end alone knows of one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct FarStreamEnd {
    /// Which stream.
    pub stream: StreamId,
    /// The last reading of its socket (TCP).
    pub tcp_info: Option<tcp_info::TcpInfo>,
    /// What held it back as a sender (TCP).
    pub limits: Option<limit::LimitShares>,
    /// Processor time of the thread that moved the data.
    pub thread_cpu: Option<Duration>,
    /// Datagrams that came more than once (UDP receiver).
    pub duplicates: Option<PacketCount>,
    /// Datagrams that came after a higher-numbered one (UDP receiver).
    pub out_of_order: Option<PacketCount>,
    /// Datagrams dropped at the full socket buffer there (UDP receiver).
    pub dropped_in_host: Option<PacketCount>,
}

/// One interval of the far end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Interval {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Nanoseconds from the start of counting.
    pub start: u64,
    /// Nanoseconds from the start of counting.
    pub end: u64,
    /// Whether it belongs to the omitted part.
    #[serde(default)]
    pub omitted: bool,
    /// In order of creation.
    pub streams: Vec<StreamInterval>,
}

/// One stream in one interval of the far end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StreamInterval {
    /// The stream's number.
    pub stream: u32,
    /// Whether the far end sends on it; else it receives.
    pub sender: bool,
    /// Payload bytes.
    pub bytes: u64,
    /// TCP sender.
    #[serde(default)]
    pub tcp: Option<TcpInterval>,
    /// UDP.
    #[serde(default)]
    pub udp: Option<UdpInterval>,
    /// TCP, for a client that asked for details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<Box<SocketSample>>,
}

/// The closing message of the far end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct End {
    /// [`SCHEMA`].
    pub schema: u32,
    /// In order of creation.
    pub streams: Vec<StreamEnd>,
    /// Other bandwidth tests at the same time, at most.
    #[serde(default)]
    pub overlapping_tests: u64,
    /// Its host, for a client that asked for details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostEvidence>,
}

/// One stream in the closing message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StreamEnd {
    /// The stream's number.
    pub stream: u32,
    /// Last reading of the socket.
    #[serde(default)]
    pub tcp_info: Option<TcpInfo>,
    /// What held the sender back.
    #[serde(default)]
    pub limits: Option<LimitShares>,
    /// Nanoseconds of processor time.
    #[serde(default)]
    pub thread_cpu: Option<u64>,
    /// Datagrams.
    #[serde(default)]
    pub duplicates: Option<u64>,
    /// Datagrams.
    #[serde(default)]
    pub out_of_order: Option<u64>,
    /// Datagrams.
    #[serde(default)]
    pub dropped_in_host: Option<u64>,
}

impl From<&sample::IntervalReport> for Interval {
    fn from(report: &sample::IntervalReport) -> Self {
        Self {
            schema: SCHEMA,
            start: nanoseconds(report.start),
            end: nanoseconds(report.end),
            omitted: report.omitted,
            streams: report.streams.iter().map(StreamInterval::from).collect(),
        }
    }
}

impl From<Interval> for sample::IntervalReport {
    fn from(interval: Interval) -> Self {
        Self {
            start: Duration::from_nanos(interval.start),
            end: Duration::from_nanos(interval.end),
            omitted: interval.omitted,
            streams: interval.streams.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<&sample::StreamInterval> for StreamInterval {
    fn from(interval: &sample::StreamInterval) -> Self {
        Self {
            stream: interval.stream.0,
            sender: interval.role == Role::Sender,
            bytes: interval.bytes.get(),
            tcp: interval.tcp.as_ref().map(Into::into),
            udp: interval.udp.as_ref().map(Into::into),
            socket: interval.socket.as_ref().map(|socket| Box::new(SocketSample::from(&**socket))),
        }
    }
}

impl From<StreamInterval> for sample::StreamInterval {
    fn from(interval: StreamInterval) -> Self {
        Self {
            stream: StreamId(interval.stream),
            role: if interval.sender { Role::Sender } else { Role::Receiver },
            bytes: ByteCount::new(interval.bytes),
            tcp: interval.tcp.map(Into::into),
            udp: interval.udp.map(Into::into),
            socket: interval.socket.map(|socket| Box::new((*socket).into())),
        }
    }
}

impl From<&FarEnd> for End {
    fn from(end: &FarEnd) -> Self {
        Self {
            schema: SCHEMA,
            streams: end.streams.iter().map(StreamEnd::from).collect(),
            overlapping_tests: end.overlapping_tests,
            host: end.host.clone(),
        }
    }
}

impl From<End> for FarEnd {
    fn from(end: End) -> Self {
        Self {
            streams: end.streams.into_iter().map(Into::into).collect(),
            overlapping_tests: end.overlapping_tests,
            host: end.host,
        }
    }
}

impl From<&FarStreamEnd> for StreamEnd {
    fn from(end: &FarStreamEnd) -> Self {
        Self {
            stream: end.stream.0,
            tcp_info: end.tcp_info.as_ref().map(Into::into),
            limits: end.limits.as_ref().map(Into::into),
            thread_cpu: end.thread_cpu.map(nanoseconds),
            duplicates: end.duplicates.map(PacketCount::get),
            out_of_order: end.out_of_order.map(PacketCount::get),
            dropped_in_host: end.dropped_in_host.map(PacketCount::get),
        }
    }
}

impl From<StreamEnd> for FarStreamEnd {
    fn from(end: StreamEnd) -> Self {
        Self {
            stream: StreamId(end.stream),
            tcp_info: end.tcp_info.map(Into::into),
            limits: end.limits.and_then(LimitShares::shares),
            thread_cpu: end.thread_cpu.map(Duration::from_nanos),
            duplicates: end.duplicates.map(PacketCount::new),
            out_of_order: end.out_of_order.map(PacketCount::new),
            dropped_in_host: end.dropped_in_host.map(PacketCount::new),
        }
    }
}
