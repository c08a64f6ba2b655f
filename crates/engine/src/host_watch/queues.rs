//! Queueing disciplines and classes through which a test's packets leave the host.

use core::time::Duration;
use std::collections::BTreeMap;

use linerate_model::environment::QueueStatistics;
use linerate_model::far::QueueEvidence;
use linerate_sys::queue_statistics::{QueueSample, QueueWatch};
use linerate_units::{CompactSort, MonotonicTime, Ratio};

/// Time between two looks at the backlog.
const SAMPLING_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum number of queues that are reported: those that sent the most.
const MAX_QUEUES: usize = 32;

/// A discipline or class is known by its category and handle; those that the kernel made have no handle of their own, and
/// are told apart by their parent.
type QueueKey = (bool, (u16, u16), Option<(u16, u16)>);

/// Queues of one interface since the start of a test.
pub(super) struct EgressWatch {
    watch: QueueWatch,
    at_start: BTreeMap<QueueKey, QueueStatistics>,
    /// Most bytes that waited, and the number of samples at which packets waited.
    backlogs: BTreeMap<QueueKey, (u64, u32)>,
    samples: u32,
    next_sample: MonotonicTime,
}

/// Queues of an interface; `None` where it has none, as a loopback device, or the kernel refuses.
fn read_queues(index: u32, interface: &str) -> Option<(QueueWatch, Vec<QueueSample>)> {
    let mut watch = QueueWatch::of_index(index, interface).ok()?;
    let queues = watch.read().ok()?;
    queues.iter().any(|queue| queue.kind != "noqueue").then_some((watch, queues))
}

/// True when packets of an interface pass a queueing discipline.
pub(super) fn has_queue(index: u32, interface: &str) -> bool {
    read_queues(index, interface).is_some()
}

impl EgressWatch {
    /// Reads the counters; `None` where the interface has no queue, or the kernel refuses.
    pub(super) fn start(index: u32, interface: &str, now: MonotonicTime) -> Option<Self> {
        let (watch, queues) = read_queues(index, interface)?;
        let at_start = queues.iter().map(|queue| (key(queue), queue.statistics)).collect();
        Some(Self { watch, at_start, backlogs: BTreeMap::new(), samples: 0, next_sample: now + SAMPLING_INTERVAL })
    }

    /// Looks at the backlog, if it is time.
    pub(super) fn sample(&mut self, now: MonotonicTime) {
        if now < self.next_sample {
            return;
        }
        self.next_sample = now + SAMPLING_INTERVAL;
        let Ok(queues) = self.watch.read() else { return };
        self.samples += 1;
        for queue in &queues {
            let (peak, waiting) = self.backlogs.entry(key(queue)).or_default();
            let backlog = queue.statistics.backlog.get();
            *peak = backlog.max(*peak);
            *waiting += u32::from(backlog > 0);
        }
    }

    /// Growth since the start, disciplines first; `None` when the kernel refuses.
    pub(super) fn finish(mut self) -> Option<Vec<QueueEvidence>> {
        let queues = self.watch.read().ok()?;
        let mut found: Vec<QueueEvidence> = queues.iter().map(|queue| self.evidence(queue)).collect();
        found.retain(|queue| queue.sent_bytes > 0 || queue.limit.is_some());
        found.sort_compactly_by_key(|queue| core::cmp::Reverse(queue.sent_bytes));
        found.truncate(MAX_QUEUES);
        found.sort_compactly_by_key(|queue| queue.is_class);
        Some(found)
    }

    fn evidence(&self, queue: &QueueSample) -> QueueEvidence {
        let before = self.at_start.get(&key(queue)).copied().unwrap_or_default();
        let (peak, waiting) = self.backlogs.get(&key(queue)).copied().unwrap_or_default();
        let now = &queue.statistics;
        let (major, minor) = queue.handle;
        QueueEvidence {
            kind: queue.kind.clone(),
            is_class: queue.is_class,
            handle: if minor == 0 { format!("{major:x}:") } else { format!("{major:x}:{minor:x}") },
            limit: queue.limit,
            sent_bytes: now.sent.get().saturating_sub(before.sent.get()),
            dropped_packets: now.dropped.get().saturating_sub(before.dropped.get()),
            peak_backlog_bytes: peak.max(now.backlog.get()),
            backlog_share: Ratio::of(f64::from(waiting), f64::from(self.samples)).map(Ratio::get),
        }
    }
}

fn key(queue: &QueueSample) -> QueueKey {
    (queue.is_class, queue.handle, queue.parent)
}
