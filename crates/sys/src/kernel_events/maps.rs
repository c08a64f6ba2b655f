//! Maps that the programs share with this process, and the positions of figures in their values.

use super::bpf::{Map, MapKind};
use crate::error::Result;

/// Number of histogram buckets; also the largest number of bits of a delay in microseconds.
pub(super) const BUCKETS: i16 = 32;

/// Positions in a distribution of delays (bytes).
pub(super) const DELAY_COUNT: i16 = 0;
pub(super) const DELAY_TOTAL: i16 = 8;
pub(super) const DELAY_LONGEST: i16 = 16;
pub(super) const DELAY_BUCKETS: i16 = 24;
const DELAY_SIZE: u32 = 24 + 32 * 8;

/// Largest number of vectors of software interrupts (`NR_SOFTIRQS` is 10), a power of two.
pub(super) const VECTORS: i16 = 16;
/// Positions in the state of a processor's software interrupts: begin, one while a timer runs, then the rows of the vectors.
pub(super) const SOFTIRQ_BEGIN: i16 = 0;
pub(super) const SOFTIRQ_TIMER: i16 = 8;
pub(super) const SOFTIRQ_ROWS: i16 = 16;
/// Positions in the row of a vector: runs, runs that were timed, their time, and the part of it that interrupted a traced
/// process.
pub(super) const VECTOR_RUNS: i16 = 0;
pub(super) const VECTOR_TIMED: i16 = 8;
pub(super) const VECTOR_TIME: i16 = 16;
pub(super) const VECTOR_INTERRUPTED: i16 = 24;
pub(super) const VECTOR_SIZE: i16 = 32;
const SOFTIRQ_SIZE: u32 = 16 + 16 * 32;

/// Positions in the state of a thread: time since which it waits or zero, sum of its waits, its process.
pub(super) const THREAD_SINCE: i16 = 0;
pub(super) const THREAD_TOTAL: i16 = 8;
pub(super) const THREAD_PROCESS: i16 = 16;
const THREAD_SIZE: u32 = 24;

/// Positions of the triggers of retransmissions.
pub(super) const BY_TIMER: i16 = 0;
pub(super) const BY_ACKNOWLEDGEMENT: i16 = 8;

/// Kinds of events of a flow: dropped packets by reason, retransmissions, and ports that were read as a trial.
pub(super) const FLOW_DROP: i32 = 1;
pub(super) const FLOW_TIMER: i32 = 2;
pub(super) const FLOW_ACKNOWLEDGEMENT: i32 = 3;
pub(super) const FLOW_TRIAL: i32 = 4;

/// Positions in the key of a flow's events. Of drops and trials, the remote port has the network's order.
pub(super) mod flow_key {
    pub(in super::super) const LOCAL_PORT: i16 = 0;
    pub(in super::super) const REMOTE_PORT: i16 = 2;
    pub(in super::super) const REMOTE_ADDRESS: i16 = 4;
    pub(in super::super) const KIND: i16 = 8;
    pub(in super::super) const REASON: i16 = 12;
    pub(in super::super) const SIZE: u32 = 16;
}

/// Largest number of threads, tasks, drop locations and ports that are told apart; later ones are not counted.
pub(super) const MAX_THREADS: u32 = 4096;
pub(super) const MAX_ROWS: u32 = 1024;
/// Flows whose events are counted, and processes whose threads are: the oldest are forgotten beyond.
pub(super) const MAX_FLOWS: u32 = 4096;
pub(super) const MAX_PROCESSES: u32 = 4096;
/// Packets in queueing disciplines whose times are remembered; the oldest are forgotten beyond.
const MAX_QUEUED: u32 = 16_384;

/// All maps of one watch.
#[derive(Debug)]
pub(super) struct EventMaps {
    /// Threads of the traced processes by number.
    pub(super) threads: Map,
    pub(super) run_queue: Map,
    /// Processor, thread and name of a task to waits, total and longest.
    pub(super) occupants: Map,
    pub(super) softirqs: Map,
    /// Reason, protocol and location to packets.
    pub(super) drops: Map,
    /// Port to packets.
    pub(super) full_sockets: Map,
    /// Address of a packet to the time of its arrival in the queueing discipline.
    pub(super) queued: Map,
    pub(super) qdisc: Map,
    pub(super) retransmissions: Map,
    /// Traced processes by number, where they are listed.
    pub(super) processes: Map,
    /// Ports, remote IPv4 address, kind and reason to events.
    pub(super) flows: Map,
}

impl EventMaps {
    /// Creates the maps; those for many processes and flows have no size where one process is traced.
    pub(super) fn new(is_of_flows: bool) -> Result<Self> {
        // The threads of one process are few; those of all processes come and go.
        let threads = if is_of_flows { MapKind::LeastRecentlyUsedHash } else { MapKind::Hash };
        let distribution = || Map::new(MapKind::ProcessorArray, 4, DELAY_SIZE, 1);
        Ok(Self {
            threads: Map::new(threads, 4, THREAD_SIZE, MAX_THREADS)?,
            run_queue: distribution()?,
            occupants: Map::new(MapKind::Hash, 24, 24, MAX_ROWS)?,
            softirqs: Map::new(MapKind::ProcessorArray, 4, SOFTIRQ_SIZE, 1)?,
            drops: Map::new(MapKind::Hash, 16, 8, MAX_ROWS)?,
            full_sockets: Map::new(MapKind::Hash, 4, 8, MAX_ROWS)?,
            queued: Map::new(MapKind::LeastRecentlyUsedHash, 8, 8, MAX_QUEUED)?,
            qdisc: distribution()?,
            retransmissions: Map::new(MapKind::ProcessorArray, 4, 16, 1)?,
            processes: Map::new(MapKind::Hash, 4, 8, if is_of_flows { MAX_PROCESSES } else { 1 })?,
            flows: Map::new(
                MapKind::LeastRecentlyUsedHash,
                flow_key::SIZE,
                8,
                if is_of_flows { MAX_FLOWS } else { 1 },
            )?,
        })
    }
}
