//! Sampling of a shaper's queueing disciplines and of the processors during a phase.

use linerate_model::direction::Direction;
use std::collections::BTreeMap;

use linerate_engine::load::LoadEvent;
use linerate_model::host::processors::ProcessorTicks;
use linerate_model::load::PhaseKind;
use linerate_shape::verify::{PerDirection, TreeCounters};
use linerate_sys::queue_statistics::{self, QueueSample};
use linerate_units::{ByteCount, PacketCount, Ratio};

use super::super::shaped::ShaperControl;

/// Builds a value per direction.
pub(super) fn both<T>(mut of: impl FnMut(Direction) -> T) -> PerDirection<T> {
    PerDirection { up: of(Direction::Up), down: of(Direction::Down) }
}

/// Counters of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TreeCounts {
    bytes: ByteCount,
    packets: PacketCount,
    drops: PacketCount,
    marks: PacketCount,
    backlog: ByteCount,
}

/// Ingress hooks, which have no queue.
const HOOKS: [&str; 2] = ["ingress", "clsact"];

impl TreeCounts {
    /// Sums an interface: bytes and packets of the root, backlog and drops of the leaves. `None` without a root.
    pub(super) fn of(readings: &[QueueSample]) -> Option<Self> {
        let disciplines = || readings.iter().filter(|one| !one.is_class && !HOOKS.contains(&one.kind.as_str()));
        let root = disciplines().find(|one| one.parent.is_none())?;
        let mut counts = Self { bytes: root.statistics.sent, packets: root.statistics.packets, ..Self::default() };
        // Leaf disciplines only: inner ones repeat the drops of their leaves.
        let hangs_below =
            |leaf: &QueueSample, one: &QueueSample| one.parent.is_some_and(|(major, _)| major == leaf.handle.0);
        let leaves = disciplines().filter(|leaf| {
            leaf.handle.0 == 0 || !disciplines().any(|one| one.handle != leaf.handle && hangs_below(leaf, one))
        });
        for leaf in leaves {
            let tins = leaf.tins.iter().map(|tin| tin.marked).sum();
            counts.drops += leaf.statistics.dropped;
            counts.marks += leaf.marked.unwrap_or(tins);
            counts.backlog += leaf.statistics.backlog;
        }
        Some(counts)
    }
}

/// Samples of one phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SampledPhase {
    pub(super) kind: PhaseKind,
    pub(super) tree: PerDirection<Option<TreeCounters>>,
    pub(super) processor: Option<Ratio>,
}

/// Reads the queues of an interface; the error is a text.
type ReadQueues = Box<dyn FnMut(&str) -> Result<Vec<QueueSample>, String>>;
/// Reads the ticks of each processor since boot.
type ReadTicks = Box<dyn FnMut() -> BTreeMap<u32, ProcessorTicks>>;

/// Samples the trees at each event of a measurement, every tenth of a second.
///
/// Bytes and packets cover the whole phase, like the interface's counters; drops, marks and backlog cover the measured
/// time only, as the start of a load may fill a queue for a moment.
pub(super) struct TreeSampler {
    devices: PerDirection<Option<String>>,
    queues: ReadQueues,
    ticks: ReadTicks,
    running: Option<RunningPhase>,
    done: Vec<SampledPhase>,
    failure: Option<String>,
}

struct RunningPhase {
    kind: PhaseKind,
    began: PerDirection<Option<TreeCounts>>,
    counting: Option<CountedInterval>,
}

struct CountedInterval {
    first: PerDirection<Option<TreeCounts>>,
    last: PerDirection<Option<TreeCounts>>,
    largest: PerDirection<Option<ByteCount>>,
    ticks: (BTreeMap<u32, ProcessorTicks>, BTreeMap<u32, ProcessorTicks>),
}

impl TreeSampler {
    /// Watches this host and the trees of an active shaper.
    pub(super) fn new(shaped: &dyn ShaperControl) -> Self {
        let plan = shaped.plan();
        let device = |flow| plan.shaped_device(flow).filter(|_| shaped.is_up()).map(str::to_owned);
        let queues = |device: &str| queue_statistics::read(device).map_err(|error| error.to_string());
        Self::reading(both(device), Box::new(queues), Box::new(linerate_sys::host::ticks_of_each_processor))
    }

    fn reading(devices: PerDirection<Option<String>>, queues: ReadQueues, ticks: ReadTicks) -> Self {
        Self { devices, queues, ticks, running: None, done: Vec::new(), failure: None }
    }

    pub(super) fn event(&mut self, event: &LoadEvent) {
        match event {
            LoadEvent::Phase(kind) => self.begin(*kind),
            LoadEvent::Counting(..) => self.count(),
            LoadEvent::Progress(_) => self.look(),
            LoadEvent::Announcement { .. } | LoadEvent::Profile(..) | LoadEvent::Note(_) => {}
        }
    }

    fn counts(&mut self) -> PerDirection<Option<TreeCounts>> {
        let devices = self.devices.clone();
        both(|flow| {
            let device = devices.of(flow).as_deref()?;
            match (self.queues)(device) {
                Ok(readings) => TreeCounts::of(&readings),
                Err(reason) => {
                    self.failure.get_or_insert(reason);
                    None
                }
            }
        })
    }

    fn begin(&mut self, kind: PhaseKind) {
        let now = self.counts();
        self.end(now);
        self.running = Some(RunningPhase { kind, began: now, counting: None });
    }

    fn count(&mut self) {
        let (now, ticks) = (self.counts(), (self.ticks)());
        if let Some(running) = &mut self.running {
            let largest = both(|flow| now.of(flow).map(|counts| counts.backlog));
            running.counting = Some(CountedInterval { first: now, last: now, largest, ticks: (ticks.clone(), ticks) });
        }
    }

    fn look(&mut self) {
        if self.running.as_ref().is_none_or(|running| running.counting.is_none()) {
            return;
        }
        let (now, ticks) = (self.counts(), (self.ticks)());
        let Some(counting) = self.running.as_mut().and_then(|running| running.counting.as_mut()) else { return };
        for flow in [Direction::Up, Direction::Down] {
            let seen = now.of(flow).map(|counts| counts.backlog);
            let largest = counting.largest.of_mut(flow);
            *largest = (*largest).max(seen);
        }
        (counting.last, counting.ticks.1) = (now, ticks);
    }

    fn end(&mut self, now: PerDirection<Option<TreeCounts>>) {
        // A busy host may report no progress in a short phase.
        let counting = self.running.as_ref().and_then(|running| running.counting.as_ref());
        if counting.is_some_and(|counting| counting.ticks.0 == counting.ticks.1) {
            self.look();
        }
        let Some(running) = self.running.take() else { return };
        let processor = running.counting.as_ref().and_then(|counting| busiest(&counting.ticks.0, &counting.ticks.1));
        let tree = both(|flow| tree(&running, flow, (*now.of(flow))?));
        self.done.push(SampledPhase { kind: running.kind, tree, processor });
    }

    /// Returns the samples of each phase, and the error if the trees were unreadable.
    pub(super) fn finish(mut self) -> (Vec<SampledPhase>, Option<String>) {
        let now = self.counts();
        self.end(now);
        (self.done, self.failure)
    }
}

fn tree(running: &RunningPhase, flow: Direction, end: TreeCounts) -> Option<TreeCounters> {
    let began = (*running.began.of(flow))?;
    let counting = running.counting.as_ref()?;
    let (first, last) = ((*counting.first.of(flow))?, (*counting.last.of(flow))?);
    Some(TreeCounters {
        bytes: end.bytes - began.bytes,
        packets: end.packets - began.packets,
        drops: last.drops - first.drops,
        marks: last.marks - first.marks,
        largest_backlog: *counting.largest.of(flow),
    })
}

/// Utilisation of the busiest processor; `None` when unknown.
fn busiest(before: &BTreeMap<u32, ProcessorTicks>, after: &BTreeMap<u32, ProcessorTicks>) -> Option<Ratio> {
    let busy = |(number, ticks): (&u32, &ProcessorTicks)| ticks.since(before.get(number)?).busy();
    after.iter().filter_map(busy).max()
}

#[cfg(test)]
mod tests {
    use linerate_engine::load::LoadFigures;
    use linerate_model::environment::QueueStatistics;

    use super::*;

    fn queue(kind: &str, handle: (u16, u16), parent: Option<(u16, u16)>, counted: [u64; 4]) -> QueueSample {
        let [sent, packets, dropped, backlog] = counted;
        let statistics = QueueStatistics {
            sent: ByteCount::new(sent),
            packets: PacketCount::new(packets),
            dropped: PacketCount::new(dropped),
            overlimits: PacketCount::ZERO,
            requeues: PacketCount::ZERO,
            backlog: ByteCount::new(backlog),
            backlog_packets: PacketCount::new(backlog / 1000),
        };
        let is_class = kind == "class";
        QueueSample {
            is_class,
            kind: kind.to_owned(),
            handle,
            parent,
            statistics,
            marked: None,
            tins: Vec::new(),
            limit: None,
        }
    }

    /// HTB with two leaves, the ingress hook, and classes.
    fn hierarchy(base: u64) -> Vec<QueueSample> {
        let marking = QueueSample {
            marked: Some(PacketCount::new(base / 50)),
            ..queue("fq_codel", (0x20, 0), Some((1, 0x20)), [base / 2, base / 20, base / 100, 2000])
        };
        vec![
            queue("htb", (1, 0), None, [base, base / 10, base / 30, 5000]),
            queue("bfifo", (0x10, 0), Some((1, 0x10)), [base / 2, base / 20, base / 200, 3000]),
            marking,
            queue("ingress", (0xffff, 0), Some((0xffff, 0xfff1)), [9, 9, 9, 9]),
            queue("class", (1, 0x10), Some((1, 1)), [base / 2, base / 20, 7, 3000]),
            queue("class", (0x20, 0x7b), None, [1, 1, 1, 1]),
        ]
    }

    #[test]
    fn the_root_sends_and_the_leaves_drop() {
        let counts = TreeCounts::of(&hierarchy(10_000)).expect("a root");
        let expected = TreeCounts {
            bytes: ByteCount::new(10_000),
            packets: PacketCount::new(1000),
            drops: PacketCount::new(50 + 100),
            marks: PacketCount::new(200),
            backlog: ByteCount::new(5000),
        };
        assert_eq!(counts, expected);
        // A lone discipline is its own leaf, whatever its classes.
        let alone = [queue("cake", (1, 0), None, [10, 1, 2, 3]), queue("class", (1, 5), None, [0, 0, 7, 9])];
        let counts = TreeCounts::of(&alone).expect("a root");
        assert_eq!((counts.drops, counts.backlog), (PacketCount::new(2), ByteCount::new(3)));
        assert_eq!(TreeCounts::of(&hierarchy(1)[3..]), None, "ingress has no root");
    }

    #[test]
    fn leaves_below_several_hardware_queues() {
        let below = |minor, handle| queue("cake", (handle, 0), Some((1, minor)), [0, 0, 4, 10]);
        let readings =
            [queue("cake_mq", (1, 0), None, [77, 7, 99, 99]), below(1, 0x8001), below(2, 0x8002), below(3, 0)];
        let counts = TreeCounts::of(&readings).expect("a root");
        assert_eq!((counts.bytes.get(), counts.drops.get(), counts.backlog.get()), (77, 12, 30));
    }

    #[test]
    fn each_part_of_a_phase_counts_its_own() {
        // Each sample adds 1000 bytes; the backlog is largest in the third.
        let mut calls = 0;
        let queues = move |device: &str| {
            calls += 1;
            match device {
                "eth0" => {
                    let backlog = if calls == 3 { 900 } else { 100 };
                    Ok(vec![queue("bfifo", (1, 0), None, [calls * 1000, calls * 10, calls * 2, backlog])])
                }
                _ => Err("no such device".to_owned()),
            }
        };
        let mut tick = 0;
        let ticks = move || {
            tick += 1;
            let busy =
                |share: u64| ProcessorTicks { user: tick * share, idle: tick * (10 - share), ..Default::default() };
            BTreeMap::from([(0, busy(2)), (1, busy(7))])
        };
        let devices = PerDirection { up: Some("eth0".to_owned()), down: None };
        let mut watch = TreeSampler::reading(devices, Box::new(queues), Box::new(ticks));
        let progress = LoadEvent::Progress(LoadFigures::default());
        // Samples: 1 at the beginning, 2 when counting begins, 3 and 4 while it counts, 5 at the end.
        watch.event(&LoadEvent::Phase(PhaseKind::Up));
        watch.event(&progress);
        watch.event(&LoadEvent::Counting(PhaseKind::Up, std::time::Duration::from_secs(1)));
        watch.event(&progress);
        watch.event(&progress);
        watch.event(&LoadEvent::Phase(PhaseKind::Both));
        let (seen, failure) = watch.finish();
        assert_eq!((seen.len(), failure), (2, None));
        let up = seen[0].tree.up.expect("read");
        let figures = (up.bytes.get(), up.packets.get(), up.drops.get(), up.largest_backlog.map(ByteCount::get));
        assert_eq!(figures, (4000, 40, 4, Some(900)));
        assert_eq!((seen[0].kind, seen[0].tree.down), (PhaseKind::Up, None));
        assert_eq!(seen[0].processor, Ratio::new(0.7), "the busiest");
        // The second phase was never measured.
        assert_eq!((seen[1].tree.up, seen[1].processor), (None, None));
        // A busy host reports no progress in a short one.
        let mut tick = 0;
        let ticks = move || {
            tick += 1;
            BTreeMap::from([(0, ProcessorTicks { user: tick, idle: tick, ..Default::default() })])
        };
        let mut watch = TreeSampler::reading(both(|_| None), Box::new(|_| Ok(Vec::new())), Box::new(ticks));
        watch.event(&LoadEvent::Phase(PhaseKind::Up));
        watch.event(&LoadEvent::Counting(PhaseKind::Up, std::time::Duration::from_secs(1)));
        assert_eq!(watch.finish().0[0].processor, Ratio::new(0.5));
        let devices = PerDirection { up: None, down: Some("gone".to_owned()) };
        let mut watch =
            TreeSampler::reading(devices, Box::new(|_| Err("no such device".into())), Box::new(BTreeMap::new));
        watch.event(&LoadEvent::Phase(PhaseKind::Up));
        let (seen, failure) = watch.finish();
        assert_eq!((seen[0].tree.down, failure.as_deref()), (None, Some("no such device")));
    }
}
