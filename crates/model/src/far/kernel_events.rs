//! Evidence from the kernel's tracepoints during a test: where packets and threads waited inside a host.

use serde::{Deserialize, Serialize};

/// Events that a host's kernel traced during a test. Parts that this kernel cannot trace are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct KernelEvents {
    /// Reason why nothing was traced; `None` where the other fields count.
    pub unavailable: Option<String>,
    /// Tracepoints that this kernel lacks or refused.
    pub missing: Vec<String>,
    /// Time that was traced, in nanoseconds.
    pub traced_ns: u64,
    /// Waits of the measuring program's threads for a processor.
    pub run_queue: Option<RunQueueDelay>,
    /// Time of software interrupts by processor and vector, longest first.
    pub softirqs: Option<Vec<SoftirqTime>>,
    /// Packets that any network namespace of the host dropped, by reason and location, most first.
    pub drops: Option<Vec<PacketDrops>>,
    /// Full receive queues of sockets on the whole host, by port, most packets first.
    pub full_sockets: Option<Vec<FullSocketQueue>>,
    /// Time of packets in the queueing discipline of the interface towards the peer.
    pub qdisc: Option<EventDelay>,
    /// Retransmitted TCP segments of the whole host by trigger.
    pub retransmissions: Option<RetransmissionTriggers>,
    /// Cost of tracing by tracepoint; empty unless the kernel counts it (`kernel.bpf_stats_enabled`).
    pub programs: Vec<ProgramRunTime>,
}

/// Time that the program at a tracepoint took, counting included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProgramRunTime {
    /// Tracepoint with its group.
    pub tracepoint: String,
    /// Number of runs.
    pub runs: u64,
    /// Time in nanoseconds.
    pub time_ns: u64,
}

/// Distribution of delays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct EventDelay {
    /// Number of delays.
    pub count: u64,
    /// Sum in nanoseconds.
    pub total_ns: u64,
    /// Longest in nanoseconds.
    pub longest_ns: u64,
    /// Number of delays below 1, 2, 4, … µs, each without those of the earlier bounds; trailing zeros are left out.
    pub histogram: Vec<u64>,
}

/// Waits of threads for a processor, between wake-up or preemption and the next run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RunQueueDelay {
    /// Distribution of the waits.
    pub delay: EventDelay,
    /// Sum of the waits of the thread that waited most, in nanoseconds; `None` from hosts that do not tell threads apart.
    pub thread_total_ns: Option<u64>,
    /// Tasks that ran until the waiting thread did, most time first.
    pub occupants: Vec<RunQueueOccupant>,
}

/// Task that ran on a processor while a measuring thread waited for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RunQueueOccupant {
    /// Name of the task (`comm`); `swapper/N` is an idle processor.
    pub task: String,
    /// Name of its process; `None` where that is the task's own, or the process had ended.
    pub process: Option<String>,
    /// Number of the thread.
    pub thread: u32,
    /// True for a thread of the measuring program itself; `None` from hosts that do not report it.
    pub is_own: Option<bool>,
    /// Processor.
    pub processor: u32,
    /// Number of waits that ended when this task gave way.
    pub waits: u64,
    /// Sum of these waits in nanoseconds.
    pub total_ns: u64,
    /// Longest of them in nanoseconds.
    pub longest_ns: u64,
}

/// Time of a software interrupt on a processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SoftirqTime {
    /// Processor.
    pub processor: u32,
    /// Name of the vector, for example `NET_RX`.
    pub vector: String,
    /// Time in nanoseconds, estimated from one of eight runs in windows of 64 ms in every 512 ms.
    pub time_ns: u64,
    /// Part of the time in which it interrupted threads of the measuring program; `None` from hosts that do not report it.
    pub interrupted_ns: Option<u64>,
    /// Number of runs.
    pub runs: u64,
    /// Name of the interrupt that this processor handled most often meanwhile, of the devices that raise this vector: network
    /// interfaces for `NET_RX` and `NET_TX`, disks for `BLOCK`. `None` where none did, and for other vectors.
    pub interrupt: Option<String>,
}

/// Packets dropped for one reason at one location.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PacketDrops {
    /// Reason by the kernel's name, for example `QDISC_DROP`.
    pub reason: String,
    /// Kernel function; `None` where its symbols are hidden.
    pub location: Option<String>,
    /// Number of packets.
    pub packets: u64,
}

/// Full receive queue of a socket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FullSocketQueue {
    /// Local port (UDP); `None` where the kernel does not report it.
    pub port: Option<u16>,
    /// Packets dropped there.
    pub packets: u64,
}

/// Retransmitted segments by trigger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RetransmissionTriggers {
    /// Sent from a timer: retransmission timeouts, tail loss probes and RACK's reordering timer.
    pub by_timer: u64,
    /// Sent on arrival of an acknowledgement: fast retransmissions, and those that follow a timeout.
    pub by_acknowledgement: u64,
}
