//! Document of `linerate watch --json`: every TCP flow of a host over one interval, one document per line.

use std::collections::BTreeMap;

use linerate_model::far::{PacketDrops, SoftirqTime};
use linerate_model::flow::FlowLimitKind;
use linerate_model::socket::TcpState;
use serde::{Deserialize, Serialize};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// The flows of one interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WatchDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Version of linerate that read the host.
    pub linerate_version: String,
    /// End of the interval in nanoseconds since 1970-01-01 00:00 UTC.
    pub at_unix_ns: u64,
    /// Duration of the interval.
    pub interval_ns: u64,
    /// Flows, the fastest first; with `--listen`, the listening sockets.
    pub flows: Vec<WatchFlow>,
    /// Events of the kernel on this host; `null` unless they were requested (`--kernel-events`).
    pub kernel_events: Option<WatchKernelEvents>,
}

/// One socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WatchFlow {
    /// Local endpoint, as ADDRESS:PORT.
    pub local: String,
    /// Remote endpoint.
    pub remote: String,
    /// Unique socket cookie of the kernel, in hexadecimal digits.
    pub cookie: String,
    /// State.
    pub state: TcpState,
    /// Process that has it open; `null` when unknown.
    pub process: Option<WatchProcess>,
    /// Reason why the process is unknown.
    pub process_unknown_because: Option<String>,
    /// User id of the owner.
    pub user: u32,
    /// Control group (its inode) in which it was created.
    pub control_group: Option<u64>,
    /// Firewall mark; `null` also when this process may not read it.
    pub mark: Option<u32>,
    /// Type of service (IPv4) or traffic class (IPv6) of its packets.
    pub type_of_service: Option<u8>,
    /// Payload rate acknowledged by the remote host; rates and shares are `null` for a socket that did not exist at the
    /// start of the interval.
    pub send_bits_per_second: Option<f64>,
    /// Payload rate received.
    pub receive_bits_per_second: Option<f64>,
    /// Payload acknowledged during the interval.
    pub acknowledged_bytes: Option<u64>,
    /// Payload received during the interval.
    pub received_bytes: Option<u64>,
    /// Segments retransmitted during the interval.
    pub retransmitted_segments: Option<u64>,
    /// Retransmitted bytes as a share of those sent during the interval; `null` also when none were.
    pub retransmission_share: Option<f64>,
    /// Smoothed round-trip time.
    pub rtt_ns: Option<u64>,
    /// Smallest round-trip time.
    pub min_rtt_ns: Option<u64>,
    /// Queueing delay: difference of both.
    pub queueing_ns: Option<u64>,
    /// Congestion window.
    pub congestion_window_bytes: Option<u64>,
    /// Bytes in flight.
    pub in_flight_bytes: Option<u64>,
    /// Latest delivery rate sample of the kernel.
    pub delivery_bits_per_second: Option<f64>,
    /// Pacing rate of the kernel.
    pub pacing_bits_per_second: Option<f64>,
    /// Receive window of the remote host.
    pub send_window_bytes: Option<u64>,
    /// Receive window of the local host.
    pub receive_window_bytes: Option<u64>,
    /// Recv-Q: arrived and not read; for a listener, connections in the accept queue.
    pub receive_queue: u64,
    /// Send-Q: written and not acknowledged; for a listener, the length of the accept queue.
    pub send_queue: u64,
    /// Name of the congestion control.
    pub congestion_control: Option<String>,
    /// Events of the kernel for this flow; `null` where they are not traced.
    pub kernel_events: Option<WatchFlowEvents>,
    /// Memory of the socket.
    pub memory: Option<WatchMemory>,
    /// Present limit; `null` for a socket that did not exist at the start of the interval.
    pub limit: Option<WatchLimit>,
}

/// Events of the kernel on this host in one interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WatchKernelEvents {
    /// Reason why nothing is traced; `null` where the other fields count.
    pub unavailable: Option<String>,
    /// Tracepoints that this kernel lacks or refused.
    pub missing: Vec<String>,
    /// Time in software interrupts by processor and vector, longest first.
    pub softirqs: Option<Vec<SoftirqTime>>,
    /// Packets that any network namespace of the host dropped, by reason, most first.
    pub drops: Option<Vec<PacketDrops>>,
}

/// Events of the kernel for one flow in one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WatchFlowEvents {
    /// Time for which the thread of the flow's process that waited most waited for a processor; `null` where the process is
    /// unknown, or was not traced yet.
    pub run_queue_wait_ns: Option<u64>,
    /// The same as a share of the interval.
    pub run_queue_wait_share: Option<f64>,
    /// Packets of this flow that this host dropped, by the kernel's reason; `null` where drops have no flow.
    pub drops: Option<BTreeMap<String, u64>>,
    /// Segments retransmitted by a timer: timeouts, tail loss probes, RACK's reordering timer.
    pub retransmitted_by_timer: Option<u64>,
    /// Segments retransmitted on an acknowledgement.
    pub retransmitted_by_acknowledgement: Option<u64>,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WatchProcess {
    /// Process id.
    pub id: u32,
    /// Name, at most 15 characters.
    pub name: String,
}

/// Memory of a socket as the kernel counts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WatchMemory {
    /// Arrived and not read.
    pub receive_allocated_bytes: u64,
    /// Limit of the receive buffer.
    pub receive_buffer_bytes: u64,
    /// Written and not acknowledged.
    pub send_queued_bytes: u64,
    /// Limit of the send buffer.
    pub send_buffer_bytes: u64,
    /// Packets dropped at this socket.
    pub drops: Option<u64>,
    /// True when the application probably set the size of the send buffer; `null` when unknown.
    pub send_buffer_set: Option<bool>,
    /// Same for the receive buffer.
    pub receive_buffer_set: Option<bool>,
}

/// Limit of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WatchLimit {
    /// Limit.
    pub by: FlowLimitKind,
    /// Summary, with the figure.
    pub summary: String,
    /// Explanation in sentences.
    pub explanation: String,
    /// Shares of the time; `null` on kernels without these counters.
    pub shares: Option<WatchShares>,
}

/// Shares of the interval's time by limit of the sender, from the kernel's chronograph counters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WatchShares {
    /// Nothing to send.
    pub application: f64,
    /// The send buffer was full.
    pub send_buffer: f64,
    /// The remote host's window was exhausted.
    pub receive_window: f64,
    /// The congestion window limited.
    pub network: f64,
}
