//! Reads the maps of a watch.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use linerate_model::far::{
    EventDelay, FullSocketQueue, KernelEvents, PacketDrops, ProgramRunTime, RetransmissionTriggers, RunQueueDelay,
    RunQueueOccupant, SoftirqTime,
};

use super::KernelEventWatch;
use super::bpf::{AttachedProgram, Map};
use super::interrupts::InterruptCounts;
use super::maps::{
    BY_ACKNOWLEDGEMENT, BY_TIMER, DELAY_BUCKETS, DELAY_LONGEST, MAX_ROWS, MAX_THREADS, SOFTIRQ_ROWS, THREAD_TOTAL,
    VECTOR_INTERRUPTED, VECTOR_RUNS, VECTOR_SIZE, VECTOR_TIME, VECTOR_TIMED, VECTORS,
};
use super::programs::UNKNOWN_PORT;
use super::symbols::KernelSymbols;
use crate::clock;

/// Rows that a report has at most in each part.
const MAX_REPORTED: usize = 16;

/// Largest ratio of traced time and windows.
const MAX_FACTOR: f64 = 1000.0;

const ONLY_KEY: [u8; 4] = [0; 4];

impl KernelEventWatch {
    pub(super) fn events(&self) -> KernelEvents {
        let processors = possible_processors();
        let traced = clock::monotonic_now().since(self.started);
        KernelEvents {
            unavailable: None,
            missing: self.missing.clone(),
            traced_ns: u64::try_from(traced.as_nanos()).unwrap_or(u64::MAX),
            run_queue: self.has("sched/sched_switch").then(|| self.run_queue(processors)),
            softirqs: self.softirq_windows.as_ref().map(|windows| {
                let rows = self.softirqs(processors);
                of_all_time(rows, windows.traced(), traced)
            }),
            drops: self.has("skb/kfree_skb").then(|| self.named(self.most_drops(), &KernelSymbols::default())),
            full_sockets: (self.has("udp/udp_fail_queue_rcv_skb") || self.has("sock/sock_rcvqueue_full"))
                .then(|| full_sockets(&self.maps.full_sockets)),
            qdisc: (self.has("qdisc/qdisc_enqueue") && self.has("qdisc/qdisc_dequeue"))
                .then(|| delay(&self.maps.qdisc, processors)),
            retransmissions: (self.has("tcp/tcp_retransmit_skb") && self.has("timer/timer_expire_entry"))
                .then(|| retransmissions(&self.maps.retransmissions, processors)),
            programs: self.program_run_times(),
        }
    }

    /// The same with the kernel functions that dropped packets, whose names take a tenth of a second to read.
    pub(super) fn located_events(&self) -> KernelEvents {
        let events = self.events();
        let most = self.most_drops();
        let addresses: Vec<u64> = most.iter().map(|((_, address), _)| *address).collect();
        let drops = events.drops.as_ref().map(|_| self.named(most, &KernelSymbols::of(&addresses)));
        KernelEvents { drops, ..events }
    }

    fn run_queue(&self, processors: usize) -> RunQueueDelay {
        let threads = rows(&self.maps.threads, MAX_THREADS);
        let own: BTreeSet<u32> = threads.iter().map(|(thread, _)| number(thread, 0)).collect();
        let longest_total = threads.iter().map(|(_, state)| word(state, THREAD_TOTAL.unsigned_abs())).max();
        RunQueueDelay {
            delay: delay(&self.maps.run_queue, processors),
            thread_total_ns: Some(longest_total.unwrap_or_default()),
            occupants: occupants(&self.maps.occupants, &own),
        }
    }

    /// Run times of the programs, where the kernel counts them.
    fn program_run_times(&self) -> Vec<ProgramRunTime> {
        let of = |(tracepoint, program): (&&str, &AttachedProgram)| {
            Some(ProgramRunTime { tracepoint: (*tracepoint).to_owned(), ..program.run_time()? })
        };
        self.programs.iter().filter_map(of).collect()
    }

    /// Software interrupts in the windows.
    pub(super) fn softirqs(&self, processors: usize) -> Vec<SoftirqTime> {
        let interrupts = InterruptCounts::read();
        let states = self.maps.softirqs.values(&ONLY_KEY, processors);
        let mut times = Vec::new();
        for (processor, state) in (0_u32..).zip(&states) {
            for vector in 0..VECTORS.unsigned_abs() {
                let row = SOFTIRQ_ROWS.unsigned_abs() + vector * VECTOR_SIZE.unsigned_abs();
                let figure = |at: i16| word(state, row + at.unsigned_abs());
                let (count, sampled) = (figure(VECTOR_RUNS), figure(VECTOR_TIMED));
                if count == 0 {
                    continue;
                }
                let number = u32::from(vector);
                let vector = self.vectors.get(&number).cloned().unwrap_or_else(|| number.to_string());
                let busiest = |sources| interrupts.busiest_since(&self.interrupts, processor, sources);
                times.push(SoftirqTime {
                    processor,
                    interrupt: self.devices.of_vector(&vector).and_then(busiest),
                    vector,
                    time_ns: of_all_runs(figure(VECTOR_TIME), count, sampled),
                    interrupted_ns: Some(of_all_runs(figure(VECTOR_INTERRUPTED), count, sampled)),
                    runs: count,
                });
            }
        }
        times.sort_by_key(|one| core::cmp::Reverse(one.time_ns));
        times.truncate(MAX_REPORTED);
        times
    }

    /// Reasons and places of most drops, with the number of packets.
    fn most_drops(&self) -> Vec<((u32, u64), u64)> {
        let mut counts: BTreeMap<(u32, u64), u64> = BTreeMap::new();
        for (key, values) in rows(&self.maps.drops, MAX_ROWS) {
            let sum = counts.entry((number(&key, 0), address(&key, 8))).or_default();
            *sum = sum.saturating_add(word(&values, 0));
        }
        let mut most: Vec<((u32, u64), u64)> = counts.into_iter().collect();
        most.sort_by_key(|(_, packets)| core::cmp::Reverse(*packets));
        most.truncate(MAX_REPORTED);
        most
    }

    fn named(&self, drops: Vec<((u32, u64), u64)>, symbols: &KernelSymbols) -> Vec<PacketDrops> {
        let described = |((reason, address), packets): ((u32, u64), u64)| PacketDrops {
            reason: self.reason(reason),
            location: symbols.name_of(address).map(str::to_owned),
            packets,
        };
        drops.into_iter().map(described).collect()
    }

    /// Name of a reason for drops.
    pub(super) fn reason(&self, reason: u32) -> String {
        self.reasons.get(&reason).cloned().unwrap_or_else(|| reason.to_string())
    }
}

/// Software interrupts of all the time, by those in the windows.
pub(super) fn of_all_time(mut rows: Vec<SoftirqTime>, windows: Duration, traced: Duration) -> Vec<SoftirqTime> {
    let factor = traced.as_secs_f64() / windows.as_secs_f64().max(f64::MIN_POSITIVE);
    let of_all = |figure: u64| Duration::from_nanos(figure).mul_f64(factor.clamp(1.0, MAX_FACTOR)).as_nanos();
    let scaled = |figure: u64| u64::try_from(of_all(figure)).unwrap_or(u64::MAX);
    for row in &mut rows {
        (row.time_ns, row.runs) = (scaled(row.time_ns), scaled(row.runs));
        row.interrupted_ns = row.interrupted_ns.map(scaled);
    }
    rows
}

/// Time of all runs, by that of those that were timed.
fn of_all_runs(time_ns: u64, runs: u64, timed: u64) -> u64 {
    let scaled = (u128::from(time_ns) * u128::from(runs)).checked_div(u128::from(timed)).unwrap_or_default();
    u64::try_from(scaled).unwrap_or(u64::MAX)
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

fn occupants(map: &Map, own: &BTreeSet<u32>) -> Vec<RunQueueOccupant> {
    let described = |(key, value): (Vec<u8>, Vec<u64>)| {
        let name = key.get(8..).unwrap_or_default();
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        RunQueueOccupant {
            task: String::from_utf8_lossy(name).into_owned(),
            process: None,
            thread: number(&key, 4),
            is_own: Some(own.contains(&number(&key, 4))),
            processor: number(&key, 0),
            waits: word(&value, 0),
            total_ns: word(&value, 8),
            longest_ns: word(&value, 16),
        }
    };
    let mut occupants: Vec<RunQueueOccupant> = rows(map, MAX_ROWS).into_iter().map(described).collect();
    occupants.sort_by_key(|one| core::cmp::Reverse(one.total_ns));
    occupants.truncate(MAX_REPORTED);
    for one in &mut occupants {
        one.process = process_name(one.thread).filter(|name| *name != one.task);
    }
    occupants
}

/// Name of the process of a thread, while it exists.
fn process_name(thread: u32) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let process: u32 = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())?;
    let name = std::fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

fn full_sockets(map: &Map) -> Vec<FullSocketQueue> {
    let described = |(key, value): (Vec<u8>, Vec<u64>)| {
        let port = Some(number(&key, 0)).filter(|port| *port != UNKNOWN_PORT).and_then(|port| u16::try_from(port).ok());
        FullSocketQueue { port, packets: word(&value, 0) }
    };
    let mut queues: Vec<FullSocketQueue> = rows(map, MAX_ROWS).into_iter().map(described).collect();
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
pub(super) fn rows(map: &Map, limit: u32) -> Vec<(Vec<u8>, Vec<u64>)> {
    let keys = map.keys(limit as usize);
    keys.into_iter().filter_map(|key| map.values(&key, 1).pop().map(|value| (key, value))).collect()
}

pub(super) fn word(value: &[u64], offset: u16) -> u64 {
    value.get(usize::from(offset) / 8).copied().unwrap_or_default()
}

pub(super) fn number(key: &[u8], offset: usize) -> u32 {
    key.get(offset..).and_then(<[u8]>::first_chunk).copied().map_or(0, u32::from_ne_bytes)
}

fn address(key: &[u8], offset: usize) -> u64 {
    key.get(offset..).and_then(<[u8]>::first_chunk).copied().map_or(0, u64::from_ne_bytes)
}

/// Number of processors for which the kernel has values, also of those that are offline.
pub(super) fn possible_processors() -> usize {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let set = linerate_model::host::processors::ProcessorSet::parse_list(&list);
    let highest = set.and_then(|set| set.0.last().copied());
    // Too many cost memory; too few would have the kernel write beyond the buffer.
    highest.map_or(1 << 13, |highest| highest as usize + 1)
}
