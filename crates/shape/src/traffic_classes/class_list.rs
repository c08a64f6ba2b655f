//! A list of traffic classes in which every packet has at most one class.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::direction::Direction;
use linerate_units::{BitRate, display};

use super::{ClassRates, ClassSelector};
use crate::verify::PerDirection;

/// Largest number of classes: each needs a handle for its class and one for its queue, and tc users may choose those below
/// 8000 (hexadecimal).
pub const MAX_CLASSES: usize = 16_000;

/// Largest number of selectors of all classes.
const MAX_SELECTORS: usize = 2 * MAX_CLASSES;

/// Largest number of groups above a class (`TC_HTB_MAXDEPTH` without the levels of the plan).
pub const MAX_GROUP_DEPTH: usize = 4;

/// A traffic class, or a group of classes.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficClass {
    /// Name; `None` for a class without one.
    pub name: Option<String>,
    /// Packets; empty for a group.
    pub selectors: Vec<ClassSelector>,
    /// Position of its group in the list; `None` when it is directly below the link.
    pub group: Option<usize>,
    /// Rates; `None` in a direction that leaves its packets to the other traffic.
    pub rates: PerDirection<Option<ClassRates>>,
    /// Position in the input, such as `line 7`.
    pub origin: String,
}

impl TrafficClass {
    /// True for a group.
    #[must_use]
    pub const fn is_group(&self) -> bool {
        self.selectors.is_empty()
    }

    /// Name for messages: its own, or that of its first selector.
    #[must_use]
    pub fn title(&self) -> String {
        let first = || self.selectors.first().map_or_else(String::new, ClassSelector::to_string);
        self.name.clone().unwrap_or_else(first)
    }
}

/// Traffic classes of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrafficClasses {
    list: Vec<TrafficClass>,
    /// True when guaranteed rates above the link's are scaled down.
    pub oversubscribes: bool,
    names: BTreeMap<String, usize>,
    /// First value of each selector's range, with the last one and its class.
    ranges: BTreeMap<(u8, u128), (u128, usize)>,
}

impl TrafficClasses {
    /// The classes, each behind its group.
    #[must_use]
    pub fn list(&self) -> &[TrafficClass] {
        &self.list
    }

    /// True without classes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Position of the group with this name.
    pub(super) fn group(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied().filter(|place| self.list[*place].is_group())
    }

    /// Appends a class. The error is a phrase that does not name the class itself.
    pub fn add(&mut self, class: TrafficClass) -> Result<(), String> {
        if self.list.len() >= MAX_CLASSES {
            return Err(format!("more than {MAX_CLASSES} classes; split them between several interfaces"));
        }
        if self.ranges.len() + class.selectors.len() > MAX_SELECTORS {
            return Err(format!("more than {MAX_SELECTORS} selectors; use prefixes instead of addresses"));
        }
        self.check_name(&class)?;
        self.check_group(&class)?;
        self.check_selectors(&class)?;
        let place = self.list.len();
        if let Some(name) = &class.name {
            self.names.insert(name.clone(), place);
        }
        for (kind, first, last) in class.selectors.iter().map(ClassSelector::range) {
            self.ranges.insert((kind, first), (last, place));
        }
        self.list.push(class);
        Ok(())
    }

    fn check_name(&self, class: &TrafficClass) -> Result<(), String> {
        match class.name.as_ref().and_then(|name| self.names.get_key_value(name)) {
            Some((name, place)) => Err(format!("the name '{name}' is that of {}, too", self.list[*place].origin)),
            None => Ok(()),
        }
    }

    fn check_group(&self, class: &TrafficClass) -> Result<(), String> {
        if Direction::BOTH.iter().all(|direction| class.rates.of(*direction).is_none()) {
            return Err("it has no rate; give its rate down, up or both".to_owned());
        }
        let Some(place) = class.group else { return Ok(()) };
        let group = &self.list[place];
        if self.depth(place) > MAX_GROUP_DEPTH {
            return Err(format!("it is below more than {MAX_GROUP_DEPTH} groups"));
        }
        let lacks =
            |direction: &&Direction| class.rates.of(**direction).is_some() && group.rates.of(**direction).is_none();
        match Direction::BOTH.iter().find(lacks) {
            Some(direction) => {
                Err(format!("it has a rate {}, and its group '{}' has none", direction.name(), group.title()))
            }
            None => Ok(()),
        }
    }

    /// Number of groups from this one to the link.
    fn depth(&self, place: usize) -> usize {
        core::iter::successors(Some(place), |place| self.list[*place].group).take(MAX_GROUP_DEPTH + 2).count()
    }

    fn check_selectors(&self, class: &TrafficClass) -> Result<(), String> {
        let mut own = BTreeSet::new();
        for selector in &class.selectors {
            let (kind, first, last) = selector.range();
            if own.iter().any(|(other, begin, end)| *other == kind && first <= *end && *begin <= last) {
                return Err(format!("{selector} is in it twice"));
            }
            own.insert((kind, first, last));
            // Ranges do not overlap, so only the last one that begins before the end of this one may.
            let before = self.ranges.range((kind, 0)..=(kind, last)).next_back();
            if let Some((_, (end, place))) = before
                && *end >= first
            {
                let other = &self.list[*place];
                let overlaps = |one: &&ClassSelector| {
                    let (other, begin, end) = one.range();
                    other == kind && begin <= last && first <= end
                };
                let theirs = other.selectors.iter().find(overlaps).map_or_else(String::new, ClassSelector::to_string);
                let relation = if theirs == selector.to_string() { "is in" } else { "overlaps" };
                let theirs = if relation == "is in" { String::new() } else { format!("{theirs} of ") };
                return Err(format!("{selector} {relation} {theirs}{} already", other.origin));
            }
        }
        Ok(())
    }

    /// Sums of all groups at once, and of the link last.
    fn sums(&self, direction: Direction) -> Vec<f64> {
        let mut sums = vec![0.0; self.list.len() + 1];
        for class in &self.list {
            if let Some(rates) = class.rates.of(direction) {
                sums[class.group.unwrap_or(self.list.len())] += rates.guaranteed.bits_per_second();
            }
        }
        sums
    }

    /// Fails when a guaranteed rate, or the sum of several, is above their group's or the link's, unless they are scaled.
    pub fn check_sums(&self, link: PerDirection<Option<BitRate>>) -> Result<(), String> {
        if self.oversubscribes {
            return Ok(());
        }
        for direction in Direction::BOTH {
            let sums = self.sums(direction);
            let groups = self.list.iter().enumerate().filter(|(_, class)| class.is_group());
            let groups = groups.filter_map(|(place, group)| {
                let rates = (*group.rates.of(direction))?;
                Some((Some(place), format!("the group '{}' ({})", group.title(), group.origin), rates.guaranteed))
            });
            let link = link.of(direction).map(|rate| (None, "the link".to_owned(), rate));
            let above = |(place, _, rate): &(Option<usize>, String, BitRate)| {
                sums[place.unwrap_or(self.list.len())] > rate.bits_per_second()
            };
            if let Some((place, name, rate)) = groups.chain(link).find(above) {
                let sum = BitRate::from_bits_per_second(sums[place.unwrap_or(self.list.len())]);
                return Err(self.excess((place, &name), direction, (sum, rate)));
            }
        }
        Ok(())
    }

    /// Phrase that names one class above the rate of its group or the link by itself, else the sum of all below.
    fn excess(
        &self,
        (group, name): (Option<usize>, &str),
        direction: Direction,
        (sum, rate): (BitRate, BitRate),
    ) -> String {
        let below = self.list.iter().filter(|class| class.group == group);
        let guaranteed = |class: &TrafficClass| class.rates.of(direction).map(|rates| rates.guaranteed);
        let with_rate: Vec<_> = below.filter_map(|class| Some((class, guaranteed(class)?))).collect();
        let direction = direction.name();
        match with_rate.iter().find(|(_, own)| *own > rate) {
            Some((class, own)) => format!(
                "the class {} has {} {direction} guaranteed, more than the {} of {name}",
                class.title(),
                display::rate(*own),
                display::rate(rate)
            ),
            None => format!(
                "the {} classes below {name} have {} {direction} guaranteed together, more than its {}",
                with_rate.len(),
                display::rate(sum),
                display::rate(rate)
            ),
        }
    }

    /// Guaranteed rate of each class when the link has `link` for them; scaled down where the sum of a group exceeds it.
    #[must_use]
    pub fn scaled(&self, direction: Direction, link: BitRate) -> Vec<Option<ClassRates>> {
        let sums = self.sums(direction);
        let mut scaled: Vec<Option<ClassRates>> = Vec::with_capacity(self.list.len());
        for class in &self.list {
            let above = class.group.map_or(Some(link), |place| scaled[place].map(|rates| rates.guaranteed));
            let sum = sums[class.group.unwrap_or(self.list.len())];
            scaled.push(class.rates.of(direction).zip(above).map(|(rates, above)| {
                let share = (above.bits_per_second() / sum).min(1.0);
                ClassRates { guaranteed: rates.guaranteed * share, ceiling: rates.ceiling }
            }));
        }
        scaled
    }

    /// True when a class is selected by a firewall mark in this direction.
    #[must_use]
    pub fn has_marks(&self, direction: Direction) -> bool {
        let is_mark = |selector: &ClassSelector| matches!(selector, ClassSelector::FirewallMark(_));
        let mut classes = self.list.iter().filter(|class| class.rates.of(direction).is_some());
        classes.any(|class| class.selectors.iter().any(is_mark))
    }
}
