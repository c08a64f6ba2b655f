//! Messages between two linerate hosts about a running test (the extension channel).
//!
//! Each message is a report of [`crate::sample`] or a [`FarEnd`] with the version of its schema, in the same keys as in
//! documents: times in whole nanoseconds, sizes in bytes, rates in bit/s, shares as fractions of one, and `null` for
//! unknown values. A reader ignores unknown keys and treats a missing one as `null`, so that keys can be added without
//! a new [`SCHEMA`].

use core::time::Duration;
use std::collections::BTreeMap;

use linerate_units::PacketCount;
use linerate_units::serde::OptionalNanoseconds;
use serde::{Deserialize, Serialize};

use crate::host::counters::SoftnetRow;
use crate::limit::LimitShares;
use crate::sample::IntervalReport;
use crate::stream::StreamId;
use crate::tcp_info::TcpInfo;

mod egress;
mod kernel_events;
mod load;

pub use egress::{LinkEvidence, QueueEvidence, QueueRateLimit};
pub use kernel_events::{
    EventDelay, FullSocketQueue, KernelEvents, PacketDrops, ProgramRunTime, RetransmissionTriggers, RunQueueDelay,
    RunQueueOccupant, SoftirqTime,
};
pub use load::{InterruptedProcessor, ProcessorLoad};

/// Version of these messages. It changes when a key changes its meaning.
pub const SCHEMA: u32 = 2;

/// Final report of the remote host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FarEnd {
    /// Streams in order of creation.
    pub streams: Vec<FarStreamEnd>,
    /// Maximum number of other bandwidth tests on that host at the same time.
    #[serde(default)]
    pub overlapping_tests: u64,
    /// Host evidence; only for a client that requested it
    /// ([`far_details`](crate::parameters::TestParameters::far_details)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Box<HostEvidence>>,
}

/// Evidence of a host about a test: its settings, and the growth of its counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostEvidence {
    /// Kernel release.
    pub kernel: Option<String>,
    /// Settings that bound a transfer, by sysctl name; numbers of a list are separated by single blanks.
    pub settings: BTreeMap<String, String>,
    /// Growth of the kernel's protocol counters, by nstat's names; those that did not grow are left out.
    pub counters: BTreeMap<String, u64>,
    /// Bytes received and sent by its interface towards the peer during the test; `None` where unknown.
    pub interface_bytes: Option<(u64, u64)>,
    /// Utilisation of all its processors, by whatever program.
    pub busy: Option<f64>,
    /// Parts of that utilisation; `None` where unknown.
    pub processors: Option<ProcessorLoad>,
    /// Its interface towards the peer; `None` where unknown.
    pub link: Option<LinkEvidence>,
    /// Queueing disciplines and classes of that interface, disciplines first: those that passed packets or have a rate
    /// limit; `None` where unknown.
    pub queues: Option<Vec<QueueEvidence>>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Receive drops of its processors; `None` where unknown.
    pub receiving: Option<ReceivingEvidence>,
    /// Events that its kernel traced; `None` where tracing was not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_events: Option<KernelEvents>,
}

/// Growth of `/proc/net/softnet_stat` during a test, over all processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReceivingEvidence {
    /// Processors listed there.
    pub processors: u32,
    /// Packets dropped at a full queue (`net.core.netdev_max_backlog`).
    pub dropped: u64,
    /// Number of times that a processor stopped with packets left (`net.core.netdev_budget`, `netdev_budget_usecs`).
    pub squeezed: u64,
}

impl ReceivingEvidence {
    /// Sums the rows of the processors.
    #[must_use]
    pub fn of(rows: &[SoftnetRow]) -> Self {
        Self {
            processors: u32::try_from(rows.len()).unwrap_or(u32::MAX),
            dropped: rows.iter().map(|row| row.dropped.get()).sum(),
            squeezed: rows.iter().map(|row| u64::from(row.squeezed)).sum(),
        }
    }

    /// Difference from an earlier sample. The kernel's counters have 32 bits for each processor; `None` where one has
    /// wrapped or a processor was removed.
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

/// Final report of the remote host about one stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FarStreamEnd {
    /// Stream number.
    #[serde(rename = "id")]
    pub stream: StreamId,
    /// Last sample of its socket (TCP).
    #[serde(default)]
    pub tcp_info: Option<TcpInfo>,
    /// Limits as a sender (TCP).
    #[serde(default)]
    pub limits: Option<LimitShares>,
    /// Processor time of the thread that moved the data.
    #[serde(rename = "thread_cpu_ns", with = "OptionalNanoseconds", default)]
    pub thread_cpu: Option<Duration>,
    /// Time for which that thread could run and waited for a processor.
    #[serde(rename = "thread_wait_ns", with = "OptionalNanoseconds", default)]
    pub thread_wait: Option<Duration>,
    /// Datagrams that arrived more than once (UDP receiver).
    #[serde(default, rename = "duplicate_packets")]
    pub duplicates: Option<PacketCount>,
    /// Datagrams that arrived after a higher-numbered one (UDP receiver).
    #[serde(default, rename = "out_of_order_packets")]
    pub out_of_order: Option<PacketCount>,
    /// Datagrams dropped at the full socket buffer of that host (UDP receiver).
    #[serde(default, rename = "dropped_in_host_packets")]
    pub dropped_in_host: Option<PacketCount>,
}

/// One interval of the remote host, as it is written; a reader checks the schema, and reads the report alone.
#[derive(Clone, Debug, Serialize)]
pub struct FarInterval {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Report of the interval.
    #[serde(flatten)]
    pub report: IntervalReport,
}

impl FarInterval {
    /// Creates the message about `report`.
    #[must_use]
    pub const fn new(report: IntervalReport) -> Self {
        Self { schema: SCHEMA, report }
    }
}

/// Closing message of the remote host, as it is written; a reader checks the schema, and reads the report alone.
#[derive(Clone, Debug, Serialize)]
pub struct FarClosing {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Final report.
    #[serde(flatten)]
    pub end: FarEnd,
}

impl FarClosing {
    /// Creates the message about `end`.
    #[must_use]
    pub const fn new(end: FarEnd) -> Self {
        Self { schema: SCHEMA, end }
    }
}
