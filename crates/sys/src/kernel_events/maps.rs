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
/// Positions in the state of a processor's software interrupts: begin, vector plus one, then time and runs of each.
pub(super) const SOFTIRQ_BEGIN: i16 = 0;
pub(super) const SOFTIRQ_VECTOR: i16 = 8;
pub(super) const SOFTIRQ_TIMES: i16 = 16;
const SOFTIRQ_SIZE: u32 = 16 + 16 * 16;

/// Positions of the triggers of retransmissions.
pub(super) const BY_TIMER: i16 = 0;
pub(super) const BY_ACKNOWLEDGEMENT: i16 = 8;

/// Largest number of threads, tasks, drop locations and ports that are told apart; later ones are not counted.
const MAX_THREADS: u32 = 4096;
pub(super) const MAX_ROWS: u32 = 1024;
/// Packets in queueing disciplines whose times are remembered; the oldest are forgotten beyond.
const MAX_QUEUED: u32 = 16_384;

/// All maps of one watch.
#[derive(Debug)]
pub(super) struct EventMaps {
    /// Threads of the program: number to the time since which it waits, or zero.
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
}

impl EventMaps {
    pub(super) fn new() -> Result<Self> {
        let distribution = || Map::new(MapKind::ProcessorArray, 4, DELAY_SIZE, 1);
        Ok(Self {
            threads: Map::new(MapKind::Hash, 4, 8, MAX_THREADS)?,
            run_queue: distribution()?,
            occupants: Map::new(MapKind::Hash, 24, 24, MAX_ROWS)?,
            softirqs: Map::new(MapKind::ProcessorArray, 4, SOFTIRQ_SIZE, 1)?,
            drops: Map::new(MapKind::Hash, 16, 8, MAX_ROWS)?,
            full_sockets: Map::new(MapKind::Hash, 4, 8, MAX_ROWS)?,
            queued: Map::new(MapKind::LeastRecentlyUsedHash, 8, 8, MAX_QUEUED)?,
            qdisc: distribution()?,
            retransmissions: Map::new(MapKind::ProcessorArray, 4, 16, 1)?,
        })
    }
}
