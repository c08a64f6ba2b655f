//! Events by process and by flow in the intervals of a watch.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use linerate_model::far::{KernelEvents, PacketDrops, SoftirqTime};
use linerate_model::flow_events::{FlowEvents, IntervalEvents, TracedFlowKey};
use linerate_model::socket::ProcessId;
use linerate_units::MonotonicTime;

use super::KernelEventWatch;
use super::bpf::{AttachedProgram, ProgramInput};
use super::maps::{
    FLOW_ACKNOWLEDGEMENT, FLOW_DROP, FLOW_TIMER, FLOW_TRIAL, MAX_FLOWS, MAX_PROCESSES, MAX_THREADS, THREAD_PROCESS,
    THREAD_TOTAL, flow_key,
};
use super::programs::{EventScope, TracedProcesses, flows};
use super::read::{number, of_all_time, possible_processors, rows, word};
use super::tracefs::Tracefs;
use super::windows::TracingWindows;
use crate::clock;
use crate::error::Result;

/// Tracepoint at which the trial reads this process's own datagram.
const TRIAL_TRACEPOINT: &str = "net/net_dev_start_xmit";

/// Watch of all flows of the host.
#[derive(Debug)]
pub struct FlowEventWatch {
    watch: KernelEventWatch,
    processes: BTreeSet<u32>,
    read_at: MonotonicTime,
    before: EventTotals,
}

/// Totals since the start.
#[derive(Debug, Default)]
struct EventTotals {
    /// Process and wait by thread.
    threads: HashMap<u32, (u32, u64)>,
    flows: BTreeMap<TracedFlowKey, FlowEvents>,
    /// Events of the host; software interrupts those in the windows.
    host: KernelEvents,
    windows: Duration,
}

impl FlowEventWatch {
    /// Starts to trace drops and retransmissions of all flows, and the waits of the processes that each interval names.
    ///
    /// # Errors
    ///
    /// This process may not trace, the kernel has no tracepoints, or another watch is active.
    pub fn start() -> Result<Self> {
        let scope =
            EventScope { processes: TracedProcesses::Listed, has_flows: true, has_flow_drops: false, interface: None };
        let watch = KernelEventWatch::with_scope(scope)?;
        let read_at = clock::monotonic_now();
        Ok(Self { watch, processes: BTreeSet::new(), read_at, before: EventTotals::default() })
    }

    /// Events since the last call; the waits of processes that are new in `processes` count from now on.
    pub fn interval(&mut self, processes: impl Iterator<Item = ProcessId>) -> IntervalEvents {
        let now = clock::monotonic_now();
        let totals = self.totals();
        let elapsed = now.since(core::mem::replace(&mut self.read_at, now));
        let before = core::mem::replace(&mut self.before, totals);
        let interval = self.since(&before, elapsed);
        self.list(&processes.map(|process| process.0).take(MAX_PROCESSES as usize).collect());
        interval
    }

    fn since(&self, before: &EventTotals, elapsed: Duration) -> IntervalEvents {
        let now = &self.before;
        let mut waits: HashMap<ProcessId, Duration> =
            self.processes.iter().map(|process| (ProcessId(*process), Duration::ZERO)).collect();
        for (thread, (process, total)) in &now.threads {
            let earlier = before.threads.get(thread).filter(|earlier| earlier.0 == *process).map_or(0, |one| one.1);
            let wait = Duration::from_nanos(total.saturating_sub(earlier)).min(elapsed);
            waits.entry(ProcessId(*process)).and_modify(|longest| *longest = wait.max(*longest));
        }
        let grown = |(label, events): (&TracedFlowKey, &FlowEvents)| {
            let events = before.flows.get(label).map_or_else(|| events.clone(), |earlier| events.since(earlier));
            (events != FlowEvents::default()).then_some((*label, events))
        };
        IntervalEvents {
            elapsed,
            waits: self.watch.has("sched/sched_switch").then_some(waits),
            has_flow_drops: self.watch.has_flow_drops && self.watch.has("skb/kfree_skb"),
            has_flow_retransmissions: self.watch.has("tcp/tcp_retransmit_skb")
                && self.watch.has("timer/timer_expire_entry"),
            flows: now.flows.iter().filter_map(grown).collect(),
            host: host_since(now, before, elapsed),
        }
    }

    /// Traces the waits of these processes only.
    fn list(&mut self, wanted: &BTreeSet<u32>) {
        let map = &self.watch.maps.processes;
        for gone in self.processes.difference(wanted) {
            map.remove(&gone.to_ne_bytes());
        }
        for new in wanted.difference(&self.processes) {
            map.insert(&new.to_ne_bytes(), &[1]);
        }
        self.processes.clone_from(wanted);
    }

    fn totals(&self) -> EventTotals {
        let maps = &self.watch.maps;
        let thread = |(key, state): (Vec<u8>, Vec<u64>)| {
            let process = u32::try_from(word(&state, THREAD_PROCESS.unsigned_abs())).ok()?;
            Some((number(&key, 0), (process, word(&state, THREAD_TOTAL.unsigned_abs()))))
        };
        let mut flows: BTreeMap<TracedFlowKey, FlowEvents> = BTreeMap::new();
        for (key, values) in rows(&maps.flows, MAX_FLOWS) {
            let Some(row) = FlowRow::read(&key, word(&values, 0)) else { continue };
            let events = flows.entry(row.label).or_default();
            match row.kind {
                FLOW_TIMER => events.by_timer = row.count,
                FLOW_ACKNOWLEDGEMENT => events.by_acknowledgement = row.count,
                FLOW_DROP => drop(events.drops.insert(self.watch.reason(row.reason), row.count)),
                _ => {}
            }
        }
        EventTotals {
            threads: rows(&maps.threads, MAX_THREADS).into_iter().filter_map(thread).collect(),
            flows,
            host: KernelEvents {
                softirqs: self.watch.softirq_windows.is_some().then(|| self.watch.softirqs(possible_processors())),
                ..self.watch.events()
            },
            windows: self.watch.softirq_windows.as_ref().map(TracingWindows::traced).unwrap_or_default(),
        }
    }
}

/// Row of the events of a flow.
struct FlowRow {
    label: TracedFlowKey,
    kind: i32,
    reason: u32,
    count: u64,
}

impl FlowRow {
    fn read(key: &[u8], count: u64) -> Option<Self> {
        let bytes = |at: i16| key.get(usize::from(at.unsigned_abs())..);
        let port = |at: i16| bytes(at)?.first_chunk().copied().map(u16::from_ne_bytes);
        let kind = number(key, flow_key::KIND.unsigned_abs().into()).cast_signed();
        let remote = port(flow_key::REMOTE_PORT)?;
        Some(Self {
            label: TracedFlowKey {
                local: port(flow_key::LOCAL_PORT)?,
                remote: if matches!(kind, FLOW_DROP | FLOW_TRIAL) { u16::from_be(remote) } else { remote },
                address: Ipv4Addr::from(*bytes(flow_key::REMOTE_ADDRESS)?.first_chunk::<4>()?),
            },
            kind,
            reason: number(key, flow_key::REASON.unsigned_abs().into()),
            count,
        })
    }
}

/// Software interrupts and drops of the host since earlier totals; nothing else is read of an interval.
fn host_since(now: &EventTotals, before: &EventTotals, elapsed: Duration) -> KernelEvents {
    let windows = now.windows.saturating_sub(before.windows);
    let (now, before) = (&now.host, &before.host);
    // Intervals between two windows have none.
    let softirqs = now.softirqs.as_ref().filter(|_| !windows.is_zero()).map(|rows| {
        let earlier = |row: &SoftirqTime| {
            let rows = before.softirqs.as_deref().unwrap_or_default();
            rows.iter().find(|one| one.processor == row.processor && one.vector == row.vector)
        };
        let grown = |row: &SoftirqTime| {
            let earlier = earlier(row).cloned().unwrap_or_default();
            let interrupted = row.interrupted_ns.map(|now| now.saturating_sub(earlier.interrupted_ns.unwrap_or(0)));
            SoftirqTime {
                time_ns: row.time_ns.saturating_sub(earlier.time_ns),
                interrupted_ns: interrupted,
                runs: row.runs.saturating_sub(earlier.runs),
                ..row.clone()
            }
        };
        let mut rows: Vec<SoftirqTime> = rows.iter().map(grown).filter(|row| row.runs > 0).collect();
        rows.sort_by_key(|row| core::cmp::Reverse(row.time_ns));
        of_all_time(rows, windows, elapsed)
    });
    let by_reason = |events: &KernelEvents| {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for drop in events.drops.as_deref().unwrap_or_default() {
            *sums.entry(drop.reason.clone()).or_default() += drop.packets;
        }
        sums
    };
    let drops = now.drops.is_some().then(|| {
        let earlier = by_reason(before);
        let grown = |(reason, packets): (String, u64)| {
            let packets = packets.saturating_sub(earlier.get(&reason).copied().unwrap_or_default());
            (packets > 0).then_some(PacketDrops { reason, location: None, packets })
        };
        let mut drops: Vec<PacketDrops> = by_reason(now).into_iter().filter_map(grown).collect();
        drops.sort_by_key(|drop| core::cmp::Reverse(drop.packets));
        drops
    });
    let traced_ns = now.traced_ns.saturating_sub(before.traced_ns);
    KernelEvents { missing: now.missing.clone(), traced_ns, softirqs, drops, ..KernelEvents::default() }
}

impl KernelEventWatch {
    /// True when the ports of a datagram of this process are found where drops are to be looked up.
    pub(super) fn try_flow_drops(&self, tracefs: &Tracefs, scope: EventScope) -> bool {
        cfg!(target_pointer_width = "64") && self.find_own_datagram(tracefs, scope).unwrap_or(false)
    }

    fn find_own_datagram(&self, tracefs: &Tracefs, scope: EventScope) -> Option<bool> {
        let format = tracefs.format(TRIAL_TRACEPOINT).ok()?;
        let instructions = flows::trial(&format, &self.maps, scope)?;
        let name = (TRIAL_TRACEPOINT, format.id);
        let _program = AttachedProgram::attach(name, ProgramInput::Record, &instructions).ok()?;
        // To itself: the datagram stays on this host, and nothing answers it.
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
        let address = socket.local_addr().ok()?;
        socket.connect(address).ok()?;
        socket.send(&[0]).ok()?;
        let expected = TracedFlowKey { local: address.port(), remote: address.port(), address: Ipv4Addr::LOCALHOST };
        let is_expected = |row: &FlowRow| row.kind == FLOW_TRIAL && row.label == expected;
        let found = rows(&self.maps.flows, MAX_FLOWS);
        Some(found.iter().filter_map(|(key, values)| FlowRow::read(key, word(values, 0))).any(|row| is_expected(&row)))
    }
}
