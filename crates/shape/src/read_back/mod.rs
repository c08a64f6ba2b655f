//! Comparison of a host's queueing, from `tc -j`, with a plan.

mod options;
mod parse;

use core::fmt::{self, Write as _};
use std::collections::{BTreeMap, BTreeSet};

use linerate_units::{BitRate, display};
use serde_json::{Map, Value};

pub use self::parse::{ReadBackError, classes, disciplines, filters, filters_of_text};
use crate::plan::{FilterTarget, PlannedDiscipline, PlannedFilter, QdiscHandle, ShaperPlan, TcParent};

/// Queueing discipline found on a host.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundDiscipline {
    /// Interface.
    pub device: String,
    /// Kind.
    pub kind: String,
    /// Handle.
    pub handle: QdiscHandle,
    /// Parent; `None` when unreadable.
    pub parent: Option<TcParent>,
    /// Own rate; `None` without one.
    pub rate: Option<BitRate>,
    /// Options as `tc -j` shows them; empty when it shows none.
    pub options: Map<String, Value>,
}

/// Class found on a host.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundClass {
    /// Interface.
    pub device: String,
    /// Kind.
    pub kind: String,
    /// Handle.
    pub handle: QdiscHandle,
    /// Guaranteed rate.
    pub rate: Option<BitRate>,
    /// Ceiling.
    pub ceiling: Option<BitRate>,
}

/// Filter found on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFilter {
    /// Interface.
    pub device: String,
    /// Parent whose packets it classifies.
    pub parent: TcParent,
    /// Protocol as printed by `tc`: `ip`, `ipv6` or `all`.
    pub protocol: String,
    /// Kind.
    pub kind: String,
    /// Target class.
    pub class: Option<QdiscHandle>,
    /// Interface that it redirects to.
    pub redirect: Option<String>,
    /// True for a policer.
    pub polices: bool,
}

/// Queueing found on an interface and its intermediate device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundQueueing {
    /// Disciplines from `tc -j qdisc show`.
    pub disciplines: Vec<FoundDiscipline>,
    /// Classes from `tc -j class show dev …` for both devices.
    pub classes: Vec<FoundClass>,
    /// Filters from `tc -j filter show dev … parent …` for each parent with planned filters.
    pub filters: Vec<FoundFilter>,
}

/// Kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueingFault {
    /// A part of the plan is missing.
    Missing,
    /// The object has another kind.
    OtherKind,
    /// The object has another rate.
    OtherRate,
    /// The object has another option than the one that was asked for.
    OtherOption,
    /// Received packets are not redirected to their shaper.
    NoRedirect,
    /// The object is not part of the plan.
    Foreign,
}

/// Difference from a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueingDifference {
    /// Interface.
    pub device: String,
    /// Kind of difference.
    pub fault: QueueingFault,
    /// Description: a sentence without a full stop.
    pub words: String,
}

impl fmt::Display for QueueingDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.device, self.words)
    }
}

/// Relative tolerance of rates: `tc` prints whole kbit/s from 1 Mbit/s on, and the kernel stores whole bytes.
const TOLERANCE: f64 = 0.002;

/// True when two rates are equal within `tc`'s precision.
fn are_equal(planned: BitRate, seen: BitRate) -> bool {
    let apart = (planned.bits_per_second() - seen.bits_per_second()).abs();
    apart <= 8.0 || apart <= planned.bits_per_second() * TOLERANCE
}

/// Number of differences of one kind that are listed for a device; the others are counted.
const MAX_LISTED: usize = 4;

/// Returns the differences: empty when exactly the plan's objects exist on its interfaces. Below a missing discipline
/// nothing else is reported missing.
#[must_use]
pub fn compare(plan: &ShaperPlan, standing: &FoundQueueing) -> Vec<QueueingDifference> {
    let mut found = DifferenceList::default();
    compare_disciplines(plan, standing, &mut found);
    compare_classes(plan, standing, &mut found);
    compare_filters(plan, standing, &mut found);
    compare_foreign(plan, standing, &mut found);
    found.shortened()
}

/// True when the device has the discipline at the root to which classes and filters of the plan belong.
fn has_root(plan: &ShaperPlan, standing: &FoundQueueing, device: &str) -> bool {
    let root = |one: &&PlannedDiscipline| one.device == device && one.parent == TcParent::Root;
    plan.disciplines().find(root).is_none_or(|planned| {
        standing
            .disciplines
            .iter()
            .any(|one| one.device == device && one.parent == Some(TcParent::Root) && one.kind == planned.kind)
    })
}

#[derive(Default)]
struct DifferenceList(Vec<QueueingDifference>);

impl DifferenceList {
    fn add(&mut self, device: &str, fault: QueueingFault, words: String) {
        self.0.push(QueueingDifference { device: device.to_owned(), fault, words });
    }

    /// The differences, of which those of a kind on one device are counted from the [`MAX_LISTED`]th on.
    fn shortened(self) -> Vec<QueueingDifference> {
        let mut short: Vec<(QueueingDifference, usize)> = Vec::new();
        for difference in self.0 {
            let is_alike = |(one, _): &&mut (QueueingDifference, usize)| {
                one.device == difference.device && one.fault == difference.fault
            };
            let listed = short.iter_mut().filter(|one| is_alike(one)).count();
            match short.iter_mut().rfind(is_alike) {
                Some((_, others)) if listed == MAX_LISTED => *others += 1,
                _ => short.push((difference, 0)),
            }
        }
        short.into_iter().map(|(one, others)| one.with_others(others)).collect()
    }
}

impl QueueingDifference {
    fn with_others(mut self, others: usize) -> Self {
        if others > 0 {
            let _ = write!(self.words, ", and {others} more like it");
        }
        self
    }
}

fn parent_text(parent: TcParent) -> String {
    match parent {
        TcParent::Root => "at the root".to_owned(),
        TcParent::Ingress => "for received packets".to_owned(),
        TcParent::At(class) => format!("below {class}"),
    }
}

/// Devices of the plan that have its root.
fn rooted_devices<'p>(plan: &'p ShaperPlan, standing: &FoundQueueing) -> BTreeSet<&'p str> {
    let devices = [Some(plan.device.as_str()), plan.intermediate.as_deref()];
    devices.into_iter().flatten().filter(|device| has_root(plan, standing, device)).collect()
}

fn compare_disciplines(plan: &ShaperPlan, standing: &FoundQueueing, found: &mut DifferenceList) {
    let rooted = rooted_devices(plan, standing);
    let is_compared = |planned: &&PlannedDiscipline| {
        !matches!(planned.parent, TcParent::At(_)) || rooted.contains(planned.device.as_str())
    };
    let mut by_place: BTreeMap<(&str, Option<TcParent>), &FoundDiscipline> = BTreeMap::new();
    for one in &standing.disciplines {
        by_place.entry((&one.device, one.parent)).or_insert(one);
    }
    for planned in plan.disciplines().filter(is_compared) {
        let at = parent_text(planned.parent);
        let Some(seen) = by_place.get(&(planned.device.as_str(), Some(planned.parent))) else {
            found.add(&planned.device, QueueingFault::Missing, format!("no {} {at}", planned.kind));
            continue;
        };
        if seen.kind != planned.kind {
            found.add(
                &planned.device,
                QueueingFault::OtherKind,
                format!("{} {at} instead of {}", seen.kind, planned.kind),
            );
            continue;
        }
        if let Some(rate) = planned.rate {
            compare_rate(found, &planned.device, &format!("{} {at}", planned.kind), rate, seen.rate);
        }
        for difference in options::differences(planned, &seen.options) {
            let words = format!("{} {at} has {difference}", planned.kind);
            found.add(&planned.device, QueueingFault::OtherOption, words);
        }
    }
}

fn compare_rate(found: &mut DifferenceList, device: &str, what: &str, planned: BitRate, seen: Option<BitRate>) {
    let wanted = display::rate(planned);
    match seen {
        None => found.add(device, QueueingFault::OtherRate, format!("{what} has no rate instead of {wanted}")),
        Some(seen) if !are_equal(planned, seen) => {
            found.add(
                device,
                QueueingFault::OtherRate,
                format!("{what} has {} instead of {wanted}", display::rate(seen)),
            );
        }
        Some(_) => {}
    }
}

fn compare_classes(plan: &ShaperPlan, standing: &FoundQueueing, found: &mut DifferenceList) {
    let by_handle: BTreeMap<(&str, QdiscHandle), &FoundClass> =
        standing.classes.iter().map(|one| ((one.device.as_str(), one.handle), one)).collect();
    let rooted = rooted_devices(plan, standing);
    for planned in plan.classes().filter(|planned| rooted.contains(planned.device.as_str())) {
        let Some(seen) = by_handle.get(&(planned.device.as_str(), planned.handle)) else {
            found.add(&planned.device, QueueingFault::Missing, format!("no class {}", planned.handle));
            continue;
        };
        let what = format!("class {}", planned.handle);
        if seen.kind != planned.kind {
            found.add(
                &planned.device,
                QueueingFault::OtherKind,
                format!("{what} is of kind {} instead of {}", seen.kind, planned.kind),
            );
            continue;
        }
        compare_rate(found, &planned.device, &what, planned.rate, seen.rate);
        if let Some(ceiling) = planned.ceiling {
            compare_rate(found, &planned.device, &format!("the ceiling of {what}"), ceiling, seen.ceiling);
        }
    }
}

fn compare_filters(plan: &ShaperPlan, standing: &FoundQueueing, found: &mut DifferenceList) {
    let seen_on = |device: &str, parent| {
        let device = device.to_owned();
        standing.filters.iter().filter(move |one| one.device == device && one.parent == parent)
    };
    let selected: BTreeSet<(&str, TcParent, &str, QdiscHandle)> = standing
        .filters
        .iter()
        .filter_map(|one| Some((one.device.as_str(), one.parent, one.protocol.as_str(), one.class?)))
        .collect();
    let rooted = rooted_devices(plan, standing);
    let mut compared: BTreeSet<(&str, &str, Option<&FilterTarget>)> = BTreeSet::new();
    let is_compared =
        |planned: &&PlannedFilter| planned.parent == TcParent::Ingress || rooted.contains(planned.device.as_str());
    for planned in plan.filters().filter(is_compared) {
        if !compared.insert((planned.device.as_str(), planned.protocol.keyword(), planned.target.as_ref())) {
            continue;
        }
        let mut here =
            seen_on(&planned.device, planned.parent).filter(|one| one.protocol == planned.protocol.keyword());
        let protocol = planned.protocol.keyword();
        let is_selected =
            |class: &QdiscHandle| selected.contains(&(planned.device.as_str(), planned.parent, protocol, *class));
        match &planned.target {
            Some(FilterTarget::Redirect(to)) if !here.any(|one| one.redirect.as_ref() == Some(to)) => {
                let elsewhere = seen_on(&planned.device, planned.parent).find_map(|one| one.redirect.as_deref());
                let words = match elsewhere {
                    Some(other) => format!(
                        "received packets ({protocol}) are redirected to {other} instead of {to}, so nothing shapes them: \
                         delete that filter (`tc filter show dev {} ingress`), or everything for received packets (`tc \
                         qdisc del dev {} ingress`), and set the shaper up again",
                        planned.device, planned.device
                    ),
                    None => format!("received packets ({protocol}) are not redirected to {to}, so nothing shapes them"),
                };
                found.add(&planned.device, QueueingFault::NoRedirect, words);
            }
            Some(FilterTarget::Police) if !here.any(|one| one.polices) => {
                found.add(
                    &planned.device,
                    QueueingFault::Missing,
                    format!("no policer for received packets ({protocol})"),
                );
            }
            Some(FilterTarget::Class(class)) if !is_selected(class) => {
                found.add(
                    &planned.device,
                    QueueingFault::Missing,
                    format!("no {protocol} filter selects class {class}"),
                );
            }
            Some(FilterTarget::Tin(tin)) if here.next().is_none() => {
                found.add(&planned.device, QueueingFault::Missing, format!("no {protocol} filter selects tin {tin}"));
            }
            _ => {}
        }
    }
    compare_counts(plan, standing, found);
}

/// Compares filter counts: fewer were removed, more were added.
fn compare_counts(plan: &ShaperPlan, standing: &FoundQueueing, found: &mut DifferenceList) {
    let mut told: Vec<(&str, &str)> = Vec::new();
    for planned in plan.filters().filter(|one| selects_class(one)) {
        let protocol = planned.protocol.keyword();
        let key = (planned.device.as_str(), protocol);
        if told.contains(&key) {
            continue;
        }
        told.push(key);
        let same = |one: &&PlannedFilter| (one.device.as_str(), one.protocol.keyword()) == key && selects_class(one);
        let wanted = plan.filters().filter(same).count();
        let seen = |one: &&FoundFilter| {
            (one.device.as_str(), one.protocol.as_str()) == key && one.parent == planned.parent && one.class.is_some()
        };
        let there = standing.filters.iter().filter(seen).count();
        if there != 0 && there < wanted {
            let words = format!("{there} of {wanted} {protocol} filters exist");
            found.add(&planned.device, QueueingFault::Missing, words);
        } else if there > wanted {
            let words = format!("{there} {protocol} filters instead of {wanted}");
            found.add(&planned.device, QueueingFault::Foreign, words);
        }
    }
}

/// True when a filter selects a class.
const fn selects_class(filter: &PlannedFilter) -> bool {
    matches!(filter.target, Some(FilterTarget::Class(_)))
}

fn compare_foreign(plan: &ShaperPlan, standing: &FoundQueueing, found: &mut DifferenceList) {
    let ours = |device: &str| device == plan.device || Some(device) == plan.intermediate.as_deref();
    let places: BTreeSet<(&str, TcParent)> = plan.disciplines().map(|one| (one.device.as_str(), one.parent)).collect();
    let handles: BTreeSet<(&str, QdiscHandle)> = plan.classes().map(|one| (one.device.as_str(), one.handle)).collect();
    for seen in standing.disciplines.iter().filter(|one| ours(&one.device)) {
        // The kernel's own disciplines have major number 0; cake_mq has its own children.
        let below = |parent: TcParent| matches!(parent, TcParent::At(handle) if plan.disciplines().any(|one| one.kind == "cake_mq" && one.handle.major == handle.major));
        let planned = seen.parent.is_some_and(|parent| places.contains(&(seen.device.as_str(), parent)));
        if seen.handle.major != 0 && !planned && !seen.parent.is_some_and(below) {
            let at = seen.parent.map_or("somewhere".to_owned(), parent_text);
            found.add(
                &seen.device,
                QueueingFault::Foreign,
                format!("{} {} {at} is not part of this plan", seen.kind, seen.handle),
            );
        }
    }
    let hierarchical = |device: &str| {
        handles.range((device, QdiscHandle::class(0, 0))..).next().is_some_and(|(name, _)| *name == device)
    };
    for seen in standing.classes.iter().filter(|one| hierarchical(&one.device)) {
        let root = plan.classes().next().map(|one| one.handle.major);
        let known = handles.contains(&(seen.device.as_str(), seen.handle));
        if !known && Some(seen.handle.major) == root {
            found.add(&seen.device, QueueingFault::Foreign, format!("class {} is not part of this plan", seen.handle));
        }
    }
    let received = |one: &&FoundFilter| one.device == plan.device && one.parent == TcParent::Ingress;
    for seen in standing.filters.iter().filter(received) {
        let known = plan.filters().any(|one| match &one.target {
            Some(FilterTarget::Redirect(to)) => seen.redirect.as_ref() == Some(to),
            Some(FilterTarget::Police) => seen.polices,
            _ => false,
        });
        if !known && (seen.redirect.is_some() || seen.polices || seen.class.is_some()) {
            let words = format!("a filter {} for received packets is not part of this plan", seen.kind);
            found.add(&seen.device, QueueingFault::Foreign, words);
        }
    }
}
