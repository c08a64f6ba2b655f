//! What stands on a host, as `tc -j` shows it, against what a plan says.

mod parse;

use core::fmt;

use linerate_units::{BitRate, display};

pub use self::parse::{ReadBackError, classes, disciplines, filters};
use crate::plan::{Filter, Goal, Handle, Parent, Plan};

/// A queueing discipline that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenDiscipline {
    /// Its interface.
    pub device: String,
    /// Its kind.
    pub kind: String,
    /// Its handle.
    pub handle: Handle,
    /// Where it hangs; `None` where that was not readable.
    pub parent: Option<Parent>,
    /// The rate it holds by itself; `None` when it states none.
    pub rate: Option<BitRate>,
}

/// A class that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenClass {
    /// Its interface.
    pub device: String,
    /// Its kind.
    pub kind: String,
    /// Its number.
    pub handle: Handle,
    /// What it is guaranteed.
    pub rate: Option<BitRate>,
    /// What it may have.
    pub ceiling: Option<BitRate>,
}

/// A filter that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenFilter {
    /// Its interface.
    pub device: String,
    /// Whose packets it sorts.
    pub parent: Parent,
    /// `ip`, `ipv6`, `all`, as `tc` wrote it.
    pub protocol: String,
    /// Its kind.
    pub kind: String,
    /// The class it sends to.
    pub class: Option<Handle>,
    /// The interface it redirects to.
    pub redirect: Option<String>,
    /// Whether it polices.
    pub polices: bool,
}

/// Everything that was found on an interface and its intermediate device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// Of `tc -j qdisc show`.
    pub disciplines: Vec<SeenDiscipline>,
    /// Of `tc -j class show dev …` for both.
    pub classes: Vec<SeenClass>,
    /// Of `tc -j filter show dev … parent …` for each parent that the plan has filters on.
    pub filters: Vec<SeenFilter>,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// A part of the plan is not there.
    Missing,
    /// What is there has another kind.
    OtherKind,
    /// What is there has another rate.
    OtherRate,
    /// Received packets do not go where they are shaped.
    NoRedirect,
    /// There is something that the plan does not have.
    Foreign,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// On which interface.
    pub device: String,
    /// What is wrong.
    pub fault: Fault,
    /// In words, a sentence without a full stop.
    pub words: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.device, self.words)
    }
}

/// `tc` prints rates from 1 Mbit/s on in whole kbit/s, and the kernel holds whole bytes.
const TOLERANCE: f64 = 0.002;

/// Whether two rates are the same as far as `tc` shows.
fn alike(planned: BitRate, seen: BitRate) -> bool {
    let apart = (planned.bits_per_second() - seen.bits_per_second()).abs();
    apart <= 8.0 || apart <= planned.bits_per_second() * TOLERANCE
}

/// What differs: empty when everything that the plan sets up is there, and nothing else on the same interfaces.
#[must_use]
pub fn compare(plan: &Plan, standing: &Standing) -> Vec<Difference> {
    let mut found = Differences::default();
    compare_disciplines(plan, standing, &mut found);
    compare_classes(plan, standing, &mut found);
    compare_filters(plan, standing, &mut found);
    compare_foreign(plan, standing, &mut found);
    found.0
}

#[derive(Default)]
struct Differences(Vec<Difference>);

impl Differences {
    fn add(&mut self, device: &str, fault: Fault, words: String) {
        self.0.push(Difference { device: device.to_owned(), fault, words });
    }
}

fn place(parent: Parent) -> String {
    match parent {
        Parent::Root => "at the root".to_owned(),
        Parent::Ingress => "for received packets".to_owned(),
        Parent::At(class) => format!("below {class}"),
    }
}

fn compare_disciplines(plan: &Plan, standing: &Standing, found: &mut Differences) {
    for planned in plan.disciplines() {
        let at = place(planned.parent);
        let here = |one: &&SeenDiscipline| one.device == planned.device && one.parent == Some(planned.parent);
        let Some(seen) = standing.disciplines.iter().find(here) else {
            found.add(&planned.device, Fault::Missing, format!("no {} {at}", planned.kind));
            continue;
        };
        if seen.kind != planned.kind {
            found.add(&planned.device, Fault::OtherKind, format!("{} {at} instead of {}", seen.kind, planned.kind));
        } else if let Some(rate) = planned.rate {
            compare_rate(found, &planned.device, &format!("{} {at}", planned.kind), rate, seen.rate);
        }
    }
}

fn compare_rate(found: &mut Differences, device: &str, what: &str, planned: BitRate, seen: Option<BitRate>) {
    let wanted = display::rate(planned);
    match seen {
        None => found.add(device, Fault::OtherRate, format!("{what} states no rate, {wanted} was planned")),
        Some(seen) if !alike(planned, seen) => {
            found.add(device, Fault::OtherRate, format!("{what} has {} instead of {wanted}", display::rate(seen)));
        }
        Some(_) => {}
    }
}

fn compare_classes(plan: &Plan, standing: &Standing, found: &mut Differences) {
    for planned in plan.classes() {
        let here = |one: &&SeenClass| one.device == planned.device && one.handle == planned.handle;
        let Some(seen) = standing.classes.iter().find(here) else {
            found.add(&planned.device, Fault::Missing, format!("no class {}", planned.handle));
            continue;
        };
        let what = format!("class {}", planned.handle);
        if seen.kind != planned.kind {
            found.add(
                &planned.device,
                Fault::OtherKind,
                format!("{what} is of {}, not of {}", seen.kind, planned.kind),
            );
            continue;
        }
        compare_rate(found, &planned.device, &what, planned.rate, seen.rate);
        if let Some(ceiling) = planned.ceiling {
            compare_rate(found, &planned.device, &format!("the ceiling of {what}"), ceiling, seen.ceiling);
        }
    }
}

fn compare_filters(plan: &Plan, standing: &Standing, found: &mut Differences) {
    let seen_on = |device: &str, parent| {
        let device = device.to_owned();
        standing.filters.iter().filter(move |one| one.device == device && one.parent == parent)
    };
    let mut told: Vec<(&str, &str, Option<&Goal>)> = Vec::new();
    for planned in plan.filters() {
        let key = (planned.device.as_str(), planned.protocol.word(), planned.target.as_ref());
        if told.contains(&key) {
            continue;
        }
        told.push(key);
        let mut here = seen_on(&planned.device, planned.parent).filter(|one| one.protocol == planned.protocol.word());
        let protocol = planned.protocol.word();
        match &planned.target {
            Some(Goal::Redirect(to)) if !here.any(|one| one.redirect.as_ref() == Some(to)) => {
                let words = format!("received packets ({protocol}) are not redirected to {to}, so nothing shapes them");
                found.add(&planned.device, Fault::NoRedirect, words);
            }
            Some(Goal::Police) if !here.any(|one| one.polices) => {
                found.add(&planned.device, Fault::Missing, format!("no policer for received packets ({protocol})"));
            }
            Some(Goal::Class(class)) if !here.any(|one| one.class == Some(*class)) => {
                found.add(&planned.device, Fault::Missing, format!("no filter of {protocol} leads to class {class}"));
            }
            Some(Goal::Tin(tin)) if here.next().is_none() => {
                found.add(&planned.device, Fault::Missing, format!("no filter of {protocol} leads to tin {tin}"));
            }
            _ => {}
        }
    }
    compare_counts(plan, standing, found);
}

/// Filters that should be many and are fewer were taken away; more were added.
fn compare_counts(plan: &Plan, standing: &Standing, found: &mut Differences) {
    let mut told: Vec<(&str, &str)> = Vec::new();
    for planned in plan.filters().filter(|one| sorts(one)) {
        let protocol = planned.protocol.word();
        let key = (planned.device.as_str(), protocol);
        if told.contains(&key) {
            continue;
        }
        told.push(key);
        let same = |one: &&Filter| (one.device.as_str(), one.protocol.word()) == key && sorts(one);
        let wanted = plan.filters().filter(same).count();
        let seen = |one: &&SeenFilter| {
            (one.device.as_str(), one.protocol.as_str()) == key && one.parent == planned.parent && one.class.is_some()
        };
        let there = standing.filters.iter().filter(seen).count();
        if there != 0 && there < wanted {
            let words = format!("{there} of {wanted} filters of {protocol} are there");
            found.add(&planned.device, Fault::Missing, words);
        } else if there > wanted {
            let words = format!("{there} filters of {protocol} instead of {wanted}");
            found.add(&planned.device, Fault::Foreign, words);
        }
    }
}

/// Whether a filter sends to a class.
const fn sorts(filter: &Filter) -> bool {
    matches!(filter.target, Some(Goal::Class(_)))
}

fn compare_foreign(plan: &Plan, standing: &Standing, found: &mut Differences) {
    let ours = |device: &str| device == plan.device || Some(device) == plan.intermediate.as_deref();
    for seen in standing.disciplines.iter().filter(|one| ours(&one.device)) {
        // What the kernel attaches by itself has major number 0; under CAKE of several queues each has its own below.
        let below = |parent: Parent| matches!(parent, Parent::At(handle) if plan.disciplines().any(|one| one.kind == "cake_mq" && one.handle.major == handle.major));
        let planned = plan.disciplines().any(|one| one.device == seen.device && Some(one.parent) == seen.parent);
        if seen.handle.major != 0 && !planned && !seen.parent.is_some_and(below) {
            let at = seen.parent.map_or("somewhere".to_owned(), place);
            found.add(&seen.device, Fault::Foreign, format!("{} {} {at} is not of this plan", seen.kind, seen.handle));
        }
    }
    let hierarchical = |device: &str| plan.classes().any(|one| one.device == device);
    for seen in standing.classes.iter().filter(|one| hierarchical(&one.device)) {
        let root = plan.classes().next().map(|one| one.handle.major);
        let known = plan.classes().any(|one| one.device == seen.device && one.handle == seen.handle);
        if !known && Some(seen.handle.major) == root {
            found.add(&seen.device, Fault::Foreign, format!("class {} is not of this plan", seen.handle));
        }
    }
    let received = |one: &&SeenFilter| one.device == plan.device && one.parent == Parent::Ingress;
    for seen in standing.filters.iter().filter(received) {
        let known = plan.filters().any(|one| match &one.target {
            Some(Goal::Redirect(to)) => seen.redirect.as_ref() == Some(to),
            Some(Goal::Police) => seen.polices,
            _ => false,
        });
        if !known && (seen.redirect.is_some() || seen.polices || seen.class.is_some()) {
            let words = format!("a filter {} for received packets is not of this plan", seen.kind);
            found.add(&seen.device, Fault::Foreign, words);
        }
    }
}
