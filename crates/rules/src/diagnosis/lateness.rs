//! Late hosts: share of the time that a transfer's threads waited for a processor, and who had it meanwhile, as the
//! kernel traced it.

use core::cmp::Reverse;
use core::time::Duration;

use linerate_model::far::{KernelEvents, RunQueueOccupant, SoftirqTime};
use linerate_units::{ByteCount, CompactSort, Ratio};

use super::TransferEvidence;
use super::host_load::TransferEnd;
use super::text::{percent_of, printable, time};

/// Share of the waits from which one task, or the transfer itself, is their reason.
const MIN_OCCUPANT_SHARE: f64 = 0.5;
/// Largest number of programs in one text.
const MAX_OCCUPANTS: usize = 2;
/// Share of a processor's time in one software interrupt from which it may be the reason of waits there.
const MIN_SOFTIRQ_SHARE: f64 = 0.3;
/// Share of a processor's time in which software interrupts interrupted the transfer's threads, from which they matter.
const MIN_INTERRUPTED_SHARE: f64 = 0.2;
/// Share of the time by which a sender may be idle beyond its waits.
const MAX_IDLE_BEYOND: f64 = 0.1;

/// Program that ran until threads of the transfer did: the tasks of one name, on all processors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Occupant<'o> {
    /// Task and processor of most of its waits.
    row: &'o RunQueueOccupant,
    /// Share of all waits that ended when this task gave way.
    share: f64,
}

impl<'o> Occupant<'o> {
    /// Occupants of most of the waits, the largest share first.
    fn all(events: &'o KernelEvents) -> Vec<Self> {
        let Some(run_queue) = &events.run_queue else { return Vec::new() };
        let mut rows: Vec<&RunQueueOccupant> = run_queue.occupants.iter().collect();
        rows.sort_compactly_by_key(|row| Reverse(row.total_ns));
        let mut found: Vec<(&RunQueueOccupant, u64)> = Vec::new();
        for row in rows {
            match found.iter_mut().find(|(first, _)| is_same(first, row)) {
                Some((_, total)) => *total = total.saturating_add(row.total_ns),
                None => found.push((row, row.total_ns)),
            }
        }
        found.sort_compactly_by_key(|(_, total)| Reverse(*total));
        let share = |total| share(total, run_queue.delay.total_ns).map(|share| share.min(1.0));
        found.into_iter().filter_map(|(row, total)| Some(Self { row, share: share(total)? })).collect()
    }

    /// True when threads of the transfer's own program waited for each other.
    pub(super) fn is_own(&self) -> bool {
        self.row.is_own == Some(true)
    }

    /// True for a task that explains most of the waits.
    pub(super) fn is_reason(&self) -> bool {
        self.share >= MIN_OCCUPANT_SHARE && !is_idle(self.row)
    }

    /// Text such as `80 % of it behind rt-spinner on processor 1, up to 8.00 ms`.
    fn text(&self) -> String {
        let longest = time(Duration::from_nanos(self.row.longest_ns));
        let processor = self.row.processor;
        let share = percent_of(self.share);
        if is_idle(self.row) {
            let text = "to wake up (power saving, or the hypervisor ran others)";
            return format!("{share} of it for processor {processor} {text}, up to {longest}");
        }
        let own = if self.is_own() { " of this transfer" } else { "" };
        format!("{share} of it behind {}{own} on processor {processor}, up to {longest}", task_name(self.row))
    }
}

/// True for an idle processor.
const fn is_idle(row: &RunQueueOccupant) -> bool {
    row.thread == 0
}

/// True for rows of one program, or of idle processors.
fn is_same(one: &RunQueueOccupant, other: &RunQueueOccupant) -> bool {
    let name = |row: &RunQueueOccupant| (row.process.clone(), row.task.clone());
    is_idle(one) && is_idle(other) || name(one) == name(other) && one.is_own == other.is_own
}

/// Name of a task, with that of its process.
pub(super) fn task_name(row: &RunQueueOccupant) -> String {
    let known = |name: &str| Some(printable(name)).filter(|name| !name.is_empty());
    let task = known(&row.task).unwrap_or_else(|| "a task".to_owned());
    match row.process.as_deref().and_then(known) {
        Some(process) => format!("{task} of {process}"),
        None => task,
    }
}

impl<'o> TransferEvidence<'o> {
    /// Share of the traced time that the thread which waited most waited for a processor.
    pub(super) fn traced_wait(&self, end: TransferEnd) -> Option<Ratio> {
        let events = self.kernel_events(end)?;
        let waited = share(events.run_queue.as_ref()?.thread_total_ns?, events.traced_ns)?;
        Ratio::new(waited.min(1.0))
    }

    /// Program that had the processor in most of the waits at this end.
    pub(super) fn occupant(&self, end: TransferEnd) -> Option<Occupant<'o>> {
        Occupant::all(self.kernel_events(end)?).into_iter().next()
    }

    /// True when the traced waits explain the causes by which a late thread shows: a sender without data, a reader that is
    /// behind.
    pub(super) fn explains_lateness(&self, end: TransferEnd) -> bool {
        let Some(wait) = self.wait_share(end).filter(|_| self.kernel_events(end).is_some()) else { return false };
        let ran = self.thread_share(end).map_or(0.0, Ratio::get);
        let idle = self.shares.map_or(1.0, |shares| shares.application.get());
        match end {
            TransferEnd::Sender => idle <= wait.get() + MAX_IDLE_BEYOND,
            // It waits for as long as it sleeps, at least.
            TransferEnd::Receiver => ran + 2.0 * wait.get() >= 1.0,
        }
    }

    /// Text about who had the processor, for a sentence on waits; empty where that was not traced.
    pub(super) fn occupant_text(&self, end: TransferEnd) -> Option<String> {
        let events = self.kernel_events(end)?;
        let occupants = Occupant::all(events);
        let first = occupants.first()?;
        // A task that explains most of the waits is named alone.
        let named = if first.is_reason() { 1 } else { MAX_OCCUPANTS };
        let list: Vec<String> = occupants.iter().take(named).map(Occupant::text).collect();
        let softirq = softirq_on(events, first.row.processor).map_or_else(String::new, |(one, used)| {
            format!(
                "; processor {} spent {} of the time in {}{}",
                first.row.processor,
                percent_of(used),
                softirq_name(one),
                softirq_purpose(one)
            )
        });
        Some(format!("{}{softirq}", list.join(", ")))
    }

    /// Text about the software interrupt that interrupted the transfer's threads most, where that is much.
    pub(super) fn interruption_text(&self, end: TransferEnd) -> Option<String> {
        let events = self.kernel_events(end)?;
        let one = events.softirqs.as_deref()?.iter().max_by_key(|one| one.interrupted_ns)?;
        let used = share(one.interrupted_ns?, events.traced_ns).filter(|used| *used >= MIN_INTERRUPTED_SHARE)?;
        Some(format!(
            "{} of the time {} on processor {} interrupted it{}",
            percent_of(used),
            softirq_name(one),
            one.processor,
            softirq_purpose(one)
        ))
    }

    /// Software interrupt that takes most of a processor's time, with its share.
    pub(super) fn softirq_of(&self, end: TransferEnd, processor: u32) -> Option<String> {
        let (one, used) = softirq_on(self.kernel_events(end)?, processor)?;
        Some(format!("{}, {} of the time", softirq_name(one), percent_of(used)))
    }
}

fn softirq_on(events: &KernelEvents, processor: u32) -> Option<(&SoftirqTime, f64)> {
    let on = events.softirqs.as_deref()?.iter().filter(|one| one.processor == processor);
    let one = on.max_by_key(|one| one.time_ns)?;
    Some((one, share(one.time_ns, events.traced_ns).filter(|used| *used >= MIN_SOFTIRQ_SHARE)?))
}

/// Name such as `the software interrupt NET_RX (device interrupt eth0-rx-0)`.
pub(super) fn softirq_name(one: &SoftirqTime) -> String {
    let device = one.interrupt.as_deref().map(|name| format!(" (device interrupt {})", printable(name)));
    format!("the software interrupt {}{}", printable(&one.vector), device.unwrap_or_default())
}

/// Work of a software interrupt for the network; empty for vectors of timers, disks and the kernel itself.
fn softirq_purpose(one: &SoftirqTime) -> &'static str {
    if one.vector.starts_with("NET_") { ", for packets of this transfer or of others" } else { "" }
}

pub(super) fn share(part: u64, whole: u64) -> Option<f64> {
    Ratio::of(ByteCount::new(part).as_f64(), ByteCount::new(whole).as_f64()).map(Ratio::get)
}
