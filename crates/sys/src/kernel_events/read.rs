//! Reads the maps of a watch.

use std::collections::BTreeMap;

use linerate_model::far::{
    EventDelay, FullSocketQueue, KernelEvents, PacketDrops, RetransmissionTriggers, RunQueueDelay, RunQueueOccupant,
    SoftirqTime,
};

use super::KernelEventWatch;
use super::bpf::Map;
use super::interrupts::InterruptCounts;
use super::maps::{BY_ACKNOWLEDGEMENT, BY_TIMER, DELAY_BUCKETS, DELAY_LONGEST, MAX_ROWS, SOFTIRQ_TIMES, VECTORS};
use super::programs::UNKNOWN_PORT;
use super::symbols;
use crate::clock;

/// Rows that a report has at most in each part.
const MAX_REPORTED: usize = 16;

const ONLY_KEY: [u8; 4] = [0; 4];

impl KernelEventWatch {
    pub(super) fn events(&self) -> KernelEvents {
        let processors = possible_processors();
        let traced = clock::monotonic_now().since(self.started);
        KernelEvents {
            unavailable: None,
            missing: self.missing.clone(),
            traced_ns: u64::try_from(traced.as_nanos()).unwrap_or(u64::MAX),
            run_queue: self.has("sched/sched_switch").then(|| RunQueueDelay {
                delay: delay(&self.maps.run_queue, processors),
                occupants: occupants(&self.maps.occupants),
            }),
            softirqs: self.has("irq/softirq_exit").then(|| self.softirqs(processors)),
            drops: self.has("skb/kfree_skb").then(|| self.drops()),
            full_sockets: (self.has("udp/udp_fail_queue_rcv_skb") || self.has("sock/sock_rcvqueue_full"))
                .then(|| full_sockets(&self.maps.full_sockets)),
            qdisc: (self.has("qdisc/qdisc_enqueue") && self.has("qdisc/qdisc_dequeue"))
                .then(|| delay(&self.maps.qdisc, processors)),
            retransmissions: (self.has("tcp/tcp_retransmit_skb") && self.has("irq/softirq_entry"))
                .then(|| retransmissions(&self.maps.retransmissions, processors)),
        }
    }

    fn softirqs(&self, processors: usize) -> Vec<SoftirqTime> {
        let interrupts = InterruptCounts::read();
        let states = self.maps.softirqs.values(&ONLY_KEY, processors);
        let mut times = Vec::new();
        for (processor, state) in (0_u32..).zip(&states) {
            let interrupt = interrupts.busiest_since(&self.interrupts, processor);
            for vector in 0..VECTORS.unsigned_abs() {
                let at = SOFTIRQ_TIMES.unsigned_abs() + vector * 16;
                let (time_ns, runs) = (word(state, at), word(state, at + 8));
                if runs == 0 {
                    continue;
                }
                let number = u32::from(vector);
                let vector = self.vectors.get(&number).cloned().unwrap_or_else(|| number.to_string());
                times.push(SoftirqTime { processor, vector, time_ns, runs, interrupt: interrupt.clone() });
            }
        }
        times.sort_by_key(|one| core::cmp::Reverse(one.time_ns));
        times.truncate(MAX_REPORTED);
        times
    }

    fn drops(&self) -> Vec<PacketDrops> {
        let mut counts: BTreeMap<(u32, u64), u64> = BTreeMap::new();
        for (key, values) in rows(&self.maps.drops) {
            let sum = counts.entry((number(&key, 0), address(&key, 8))).or_default();
            *sum = sum.saturating_add(word(&values, 0));
        }
        let mut most: Vec<((u32, u64), u64)> = counts.into_iter().collect();
        most.sort_by_key(|(_, packets)| core::cmp::Reverse(*packets));
        most.truncate(MAX_REPORTED);
        let addresses: Vec<u64> = most.iter().map(|((_, address), _)| *address).collect();
        let names = if addresses.is_empty() { BTreeMap::new() } else { symbols::names_of(&addresses) };
        let described = |((reason, address), packets): ((u32, u64), u64)| PacketDrops {
            reason: self.reasons.get(&reason).cloned().unwrap_or_else(|| reason.to_string()),
            location: names.get(&address).cloned(),
            packets,
        };
        most.into_iter().map(described).collect()
    }
}

fn delay(map: &Map, processors: usize) -> EventDelay {
    let mut sum = EventDelay::default();
    let first_bucket = usize::from(DELAY_BUCKETS.unsigned_abs()) / 8;
    for value in map.values(&ONLY_KEY, processors) {
        sum.count = sum.count.saturating_add(word(&value, 0));
        sum.total_ns = sum.total_ns.saturating_add(word(&value, 8));
        sum.longest_ns = sum.longest_ns.max(word(&value, DELAY_LONGEST.unsigned_abs()));
        let buckets = value.get(first_bucket..).unwrap_or_default();
        sum.histogram.resize(sum.histogram.len().max(buckets.len()), 0);
        for (whole, part) in sum.histogram.iter_mut().zip(buckets) {
            *whole = whole.saturating_add(*part);
        }
    }
    let used = sum.histogram.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    sum.histogram.truncate(used);
    sum
}

fn occupants(map: &Map) -> Vec<RunQueueOccupant> {
    let described = |(key, value): (Vec<u8>, Vec<u64>)| {
        let name = key.get(8..).unwrap_or_default();
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        RunQueueOccupant {
            task: String::from_utf8_lossy(name).into_owned(),
            thread: number(&key, 4),
            processor: number(&key, 0),
            waits: word(&value, 0),
            total_ns: word(&value, 8),
            longest_ns: word(&value, 16),
        }
    };
    let mut occupants: Vec<RunQueueOccupant> = rows(map).into_iter().map(described).collect();
    occupants.sort_by_key(|one| core::cmp::Reverse(one.total_ns));
    occupants.truncate(MAX_REPORTED);
    occupants
}

fn full_sockets(map: &Map) -> Vec<FullSocketQueue> {
    let described = |(key, value): (Vec<u8>, Vec<u64>)| {
        let port = Some(number(&key, 0)).filter(|port| *port != UNKNOWN_PORT).and_then(|port| u16::try_from(port).ok());
        FullSocketQueue { port, packets: word(&value, 0) }
    };
    let mut queues: Vec<FullSocketQueue> = rows(map).into_iter().map(described).collect();
    queues.sort_by_key(|one| core::cmp::Reverse(one.packets));
    queues.truncate(MAX_REPORTED);
    queues
}

fn retransmissions(map: &Map, processors: usize) -> RetransmissionTriggers {
    let values = map.values(&ONLY_KEY, processors);
    let sum = |offset: i16| values.iter().map(|value| word(value, offset.unsigned_abs())).fold(0, u64::saturating_add);
    RetransmissionTriggers { by_timer: sum(BY_TIMER), by_acknowledgement: sum(BY_ACKNOWLEDGEMENT) }
}

/// All rows of a hash map with one word or more each.
fn rows(map: &Map) -> Vec<(Vec<u8>, Vec<u64>)> {
    let keys = map.keys(MAX_ROWS as usize);
    keys.into_iter().filter_map(|key| map.values(&key, 1).pop().map(|value| (key, value))).collect()
}

fn word(value: &[u64], offset: u16) -> u64 {
    value.get(usize::from(offset) / 8).copied().unwrap_or_default()
}

fn number(key: &[u8], offset: usize) -> u32 {
    key.get(offset..).and_then(<[u8]>::first_chunk).copied().map_or(0, u32::from_ne_bytes)
}

fn address(key: &[u8], offset: usize) -> u64 {
    key.get(offset..).and_then(<[u8]>::first_chunk).copied().map_or(0, u64::from_ne_bytes)
}

/// Number of processors for which the kernel has values, also of those that are offline.
fn possible_processors() -> usize {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let set = linerate_model::host::processors::ProcessorSet::parse_list(&list);
    let highest = set.and_then(|set| set.0.last().copied());
    // Too many cost memory; too few would have the kernel write beyond the buffer.
    highest.map_or(1 << 13, |highest| highest as usize + 1)
}
