//! Figures of a shaper from two samples; no I/O.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_documents::shaper_status::{ClassStatus, DirectionStatus, ShaperClassName};
use linerate_model::host::processors::ProcessorTicks;
use linerate_shape::link::AccessLink;
use linerate_shape::plan::{PlannedClass, QdiscHandle, ShaperPlan};
use linerate_sys::queue_statistics::{CakeTin, QueueSample};
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, ByteCount, Ratio};

use super::sample::ShaperSample;

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
pub(super) fn of(plan: &ShaperPlan, line: &AccessLink, before: &ShaperSample, after: &ShaperSample) -> ShaperFigures {
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
        let named = |class: &&PlannedClass| class.device == device && class.importance.is_some();
        let leaves: Vec<&PlannedClass> = self
            .plan
            .classes()
            .filter(named)
            .filter(|class| !self.plan.classes().any(|other| is_below(other, class)))
            .collect();
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

fn is_below(other: &PlannedClass, class: &PlannedClass) -> bool {
    other.device == class.device && other.parent == class.handle
}

const fn handle((major, minor): (u16, u16)) -> QdiscHandle {
    QdiscHandle { major, minor }
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
