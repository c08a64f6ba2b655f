//! Figures of a shaper from two samples; no I/O.

use core::time::Duration;
use linerate_model::direction::Direction;
use std::collections::{BTreeMap, BTreeSet};

use linerate_documents::shaper_status::{ClassStatus, DirectionStatus, ShaperClassName, TrafficClassStatus};
use linerate_model::environment::QueueStatistics;
use linerate_model::host::processors::ProcessorTicks;
use linerate_shape::link::AccessLink;
use linerate_shape::plan::{PlannedClass, QdiscHandle, ShaperPlan};
use linerate_shape::traffic_classes::TrafficClasses;
use linerate_sys::queue_statistics::{CakeTin, QueueSample};
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, ByteCount, Ratio};

use super::sample::ShaperSample;
use crate::shaping::document::{class_identity, class_rates};

/// Share of the interface's bytes seen by the tree below which traffic bypasses it.
const MAX_BYPASS_SHARE: f64 = 0.8;

/// Rate in bit/s below which traffic is background, such as neighbour discovery.
const MIN_RELEVANT_RATE: f64 = 100e3;

/// Share of the rate in use below which processor load has another cause.
const MIN_USED_SHARE: f64 = 0.2;

/// Share above which a processor is saturated.
const SATURATED_PROCESSOR: f64 = 0.95;

/// Figures and warnings of one shaper.
#[derive(Debug, Default)]
pub(super) struct ShaperFigures {
    pub(super) directions: Vec<DirectionStatus>,
    pub(super) busiest: Option<Ratio>,
    pub(super) warnings: Vec<String>,
}

/// Computes the figures between two samples.
pub(super) fn of(
    (plan, traffic_classes): (&ShaperPlan, &TrafficClasses),
    line: &AccessLink,
    before: &ShaperSample,
    after: &ShaperSample,
) -> ShaperFigures {
    let time = after.at.since(before.at);
    let mut figures = ShaperFigures { busiest: busiest(before, after), ..ShaperFigures::default() };
    for direction in Direction::BOTH {
        let Some((device, set)) = plan.shaped_device(direction).zip(line.rate(direction)) else { continue };
        let now = DirectionSamples { plan, set, time, before: before.tree(direction), after: after.tree(direction) };
        let interface = before.interface.zip(after.interface).map(|(before, after)| {
            let grown = after.since(&before);
            let bytes = if direction == Direction::Up { grown.sent.bytes } else { grown.received.bytes };
            bytes.rate_over(time)
        });
        let carried = now.carried();
        figures.warnings.extend(bypass_warning(direction, device, carried, interface));
        figures.directions.push(DirectionStatus {
            direction,
            device: device.to_owned(),
            set_bits_per_second: set.bits_per_second(),
            carried_bits_per_second: carried.bits_per_second(),
            interface_bits_per_second: interface.map(BitRate::bits_per_second),
            realised: carried.bits_per_second() / set.bits_per_second(),
            classes: now.classes(device),
            traffic_classes: now.traffic_classes(traffic_classes, direction),
        });
    }
    let is_used = figures.directions.iter().any(|one| one.realised > MIN_USED_SHARE);
    if let Some(share) = figures.busiest.filter(|share| is_used && share.get() > SATURATED_PROCESSOR) {
        let text = format!(
            "a processor is {:.0} % busy: the shaper may miss its rate; htb+fq_codel needs less processor time than \
             cake",
            share.percent()
        );
        figures.warnings.push(text);
    }
    figures
}

/// Offloaded flows do not pass the queueing disciplines.
fn bypass_warning(direction: Direction, device: &str, carried: BitRate, interface: Option<BitRate>) -> Option<String> {
    let interface = interface.filter(|rate| rate.bits_per_second() > MIN_RELEVANT_RATE)?;
    (carried.bits_per_second() < interface.bits_per_second() * MAX_BYPASS_SHARE).then(|| {
        format!(
            "{}: the interface carries {} and the shaper on {device} sees {} of it: flows bypass it (flow offloading \
             of the router or the card, or a missing redirect)",
            direction.name(),
            linerate_units::display::rate(interface),
            linerate_units::display::rate(carried)
        )
    })
}

fn busiest(before: &ShaperSample, after: &ShaperSample) -> Option<Ratio> {
    let share = |(number, now): (&u32, &ProcessorTicks)| {
        before.processors.get(number).and_then(|before| now.since(before).busy())
    };
    after.processors.iter().filter_map(share).max_by(|one, other| one.get().total_cmp(&other.get()))
}

/// Samples of one direction.
struct DirectionSamples<'a> {
    plan: &'a ShaperPlan,
    set: BitRate,
    time: Duration,
    before: &'a [QueueSample],
    after: &'a [QueueSample],
}

impl DirectionSamples<'_> {
    /// Rate that left the root.
    fn carried(&self) -> BitRate {
        let root =
            |readings: &[QueueSample]| readings.iter().find(|one| !one.is_class && one.parent.is_none()).cloned();
        match (root(self.before), root(self.after)) {
            (Some(before), Some(after)) => self.rate(before.statistics.sent, after.statistics.sent),
            _ => BitRate::ZERO,
        }
    }

    fn rate(&self, before: ByteCount, after: ByteCount) -> BitRate {
        // Counters restart with a new tree.
        let grown = if after < before { after } else { after - before };
        grown.rate_over(self.time)
    }

    fn classes(&self, device: &str) -> Vec<ClassStatus> {
        let root =
            |readings: &[QueueSample]| readings.iter().find(|one| !one.is_class && one.parent.is_none()).cloned();
        let Some(now) = root(self.after) else { return Vec::new() };
        if !now.tins.is_empty() {
            let before = root(self.before).map(|root| root.tins).unwrap_or_default();
            let count = now.tins.len();
            return now
                .tins
                .iter()
                .enumerate()
                .map(|(number, tin)| self.tin((number, count), before.get(number), tin))
                .collect();
        }
        let parents: BTreeSet<QdiscHandle> =
            self.plan.classes().filter(|class| class.device == device).map(|class| class.parent).collect();
        let is_named = |class: &&PlannedClass| {
            class.device == device && class.importance.is_some() && class.traffic_class.is_none()
        };
        let leaves: Vec<&PlannedClass> =
            self.plan.classes().filter(is_named).filter(|class| !parents.contains(&class.handle)).collect();
        if leaves.is_empty() {
            return vec![self.group(ShaperClassName::All, self.set, &[])];
        }
        let mut groups: Vec<(ShaperClassName, BitRate, Vec<QdiscHandle>)> = Vec::new();
        for class in leaves {
            let name = class.importance.map_or(ShaperClassName::All, ShaperClassName::from);
            let rate = class.ceiling.unwrap_or(class.rate);
            match groups.iter_mut().find(|(known, ..)| *known == name) {
                Some((_, _, handles)) => handles.push(class.handle),
                None => groups.push((name, rate, vec![class.handle])),
            }
        }
        groups.iter().map(|(name, rate, handles)| self.group(*name, *rate, handles)).collect()
    }

    /// Traffic classes, from one list of the kernel's counters. HTB counts what a group sends, not what waits there or is
    /// dropped: that is the sum of its members.
    fn traffic_classes(&self, classes: &TrafficClasses, direction: Direction) -> Vec<TrafficClassStatus> {
        let (before, after) = (class_counters(self.before), class_counters(self.after));
        let planned = self.plan.traffic_classes(direction);
        let counters = |place: &usize, of: &BTreeMap<QdiscHandle, QueueStatistics>| {
            planned.get(place).and_then(|class| of.get(&class.handle)).copied()
        };
        let mut waiting: BTreeMap<usize, WaitingAndDropped> = BTreeMap::new();
        for (place, class) in classes.list().iter().enumerate().rev() {
            let now = counters(&place, &after).unwrap_or_default();
            let since = now.dropped.get().saturating_sub(counters(&place, &before).unwrap_or_default().dropped.get());
            let own = [now.backlog.get(), now.backlog_packets.get(), now.dropped.get(), since];
            let below = waiting.get(&place).copied().unwrap_or_default();
            let total = if class.is_group() { below } else { own };
            waiting.insert(place, total);
            if let Some(group) = class.group {
                let sum = waiting.entry(group).or_default();
                sum.iter_mut().zip(total).for_each(|(sum, more)| *sum += more);
            }
        }
        let status = |(place, class): (&usize, &&PlannedClass)| {
            let (now, then) = (counters(place, &after), counters(place, &before).unwrap_or_default());
            let [backlog_bytes, backlog_packets, dropped, dropped_now] =
                waiting.get(place).copied().unwrap_or_default().map(|count| now.map(|_| count));
            TrafficClassStatus {
                class: class_identity(classes, *place),
                rates: class_rates(class),
                carried_bits_per_second: now.map_or(0.0, |now| self.rate(then.sent, now.sent).bits_per_second()),
                sent_bytes: now.map(|now| now.sent.get()),
                sent_packets: now.map(|now| now.packets.get()),
                dropped,
                dropped_now,
                backlog_bytes,
                backlog_packets,
            }
        };
        planned.iter().map(status).collect()
    }

    /// Sums classes of the same importance; without any, the root alone.
    fn group(&self, name: ShaperClassName, rate: BitRate, handles: &[QdiscHandle]) -> ClassStatus {
        let belongs = |one: &&QueueSample| match handles {
            [] => !one.is_class && one.parent.is_none(),
            handles => one.is_class && handles.contains(&handle(one.handle)),
        };
        let leaf =
            |one: &&QueueSample| !one.is_class && one.parent.is_some_and(|parent| handles.contains(&handle(parent)));
        let sent = |readings: &[QueueSample]| readings.iter().filter(belongs).map(|one| one.statistics.sent).sum();
        let dropped = |readings: &[QueueSample]| -> u64 {
            let of_leaves: u64 = readings.iter().filter(leaf).map(|one| one.statistics.dropped.get()).sum();
            let own: u64 = readings.iter().filter(belongs).map(|one| one.statistics.dropped.get()).sum();
            of_leaves.max(own)
        };
        let backlog: ByteCount = self.after.iter().filter(belongs).map(|one| one.statistics.backlog).sum();
        let marks: Vec<u64> = self
            .after
            .iter()
            .filter(|one| leaf(one) || belongs(one))
            .filter_map(|one| one.marked.map(linerate_units::PacketCount::get))
            .collect();
        let now = dropped(self.after);
        ClassStatus {
            name,
            carried_bits_per_second: self.rate(sent(self.before), sent(self.after)).bits_per_second(),
            backlog_bytes: backlog.get(),
            delay_ns: nanoseconds(rate.time_to_send(backlog).unwrap_or_default()),
            peak_delay_ns: None,
            dropped: now,
            marked: (!marks.is_empty()).then(|| marks.iter().sum()),
            dropped_now: now.saturating_sub(dropped(self.before)),
        }
    }

    fn tin(&self, (number, count): (usize, usize), before: Option<&CakeTin>, now: &CakeTin) -> ClassStatus {
        let sent = before.map_or(ByteCount::ZERO, |before| before.sent);
        let dropped = before.map_or(0, |before| before.dropped.get());
        ClassStatus {
            name: tin_name(number, count),
            carried_bits_per_second: self.rate(sent, now.sent).bits_per_second(),
            backlog_bytes: now.backlog.get(),
            delay_ns: nanoseconds(now.average_delay),
            peak_delay_ns: Some(nanoseconds(now.peak_delay)),
            dropped: now.dropped.get(),
            marked: Some(now.marked.get()),
            dropped_now: now.dropped.get().saturating_sub(dropped),
        }
    }
}

const fn handle((major, minor): (u16, u16)) -> QdiscHandle {
    QdiscHandle { major, minor }
}

/// Bytes and packets that wait, and packets dropped since setup and during the interval.
type WaitingAndDropped = [u64; 4];

/// Counters of each class.
fn class_counters(samples: &[QueueSample]) -> BTreeMap<QdiscHandle, QueueStatistics> {
    samples.iter().filter(|one| one.is_class).map(|one| (handle(one.handle), one.statistics)).collect()
}

/// CAKE's tin names (`tc -s qdisc`), the lowest first.
fn tin_name(number: usize, count: usize) -> ShaperClassName {
    match (count, number) {
        (3 | 4, 0) => ShaperClassName::Bulk,
        (3 | 4, 1) => ShaperClassName::BestEffort,
        (4, 2) => ShaperClassName::Video,
        (3, 2) | (4, 3) => ShaperClassName::Voice,
        _ => ShaperClassName::All,
    }
}
