use core::time::Duration;

use linerate_model::latency_under_load::{Class, Grade, Uplift};
use linerate_model::schema::load::PhaseKind;
use linerate_model::statistics::{Bootstrap, Comparison, Margin, Statistic, compare};
use linerate_model::throughput::Flow;
use linerate_units::{BitRate, Ratio};

use super::carried::DIRECTIONS;
use super::delays::{FAMILIES, LOADED};
use super::evidence::{ClassReading, Evidence, Family, Measurement};

/// Delays of one class in one phase, before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayRow {
    /// What was loaded.
    pub phase: PhaseKind,
    /// Which probes.
    pub class: Class,
    /// Over which protocol.
    pub family: Family,
    /// What load added without the shaper; `None` when it was not measured.
    pub before: Option<Uplift>,
    /// … and with it.
    pub after: Option<Uplift>,
    /// The grade of each; `None` for classes that a verdict must not go by.
    pub grades: Option<(Grade, Grade)>,
    /// The medians of the round trips, with the interval of their difference.
    pub median: Option<Comparison<Duration>>,
}

/// What was carried in one phase, before and after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateRow {
    /// What was loaded.
    pub phase: PhaseKind,
    /// Which direction.
    pub direction: Flow,
    /// Without the shaper.
    pub before: Option<BitRate>,
    /// With it.
    pub after: Option<BitRate>,
    /// The rate that is set.
    pub set: Option<BitRate>,
    /// What is carried of it.
    pub realised: Option<Ratio>,
}

const CLASSES: [Class; 4] = [Class::Icmp, Class::UdpBestEffort, Class::UdpExpedited, Class::TcpInBand];

pub(super) fn delays(evidence: &Evidence) -> Vec<DelayRow> {
    let mut rows = Vec::new();
    for phase in LOADED {
        for class in CLASSES {
            rows.extend(FAMILIES.into_iter().filter_map(|family| delay(evidence, phase, class, family)));
        }
    }
    rows
}

fn delay(evidence: &Evidence, phase: PhaseKind, class: Class, family: Family) -> Option<DelayRow> {
    let of = |of: &Measurement| of.uplift(phase, class, family);
    let (before, after) = (of(&evidence.before), of(&evidence.after));
    if before.is_none() && after.is_none() {
        return None;
    }
    let grades = before.zip(after).filter(|_| class.counts());
    let grades = grades.map(|(before, after)| (Grade::of(before.graded()), Grade::of(after.graded())));
    let sample = |of: &Measurement| of.reading(phase, class, family).map(ClassReading::sample);
    let median = sample(&evidence.before).zip(sample(&evidence.after)).and_then(|(before, after)| {
        let margin = Margin::Absolute(Duration::from_millis(2));
        compare(&before, &after, Statistic::Median, margin, &Bootstrap::with_seed(evidence.seed))
    });
    Some(DelayRow { phase, class, family, before, after, grades, median })
}

pub(super) fn rates(evidence: &Evidence) -> Vec<RateRow> {
    let mut rows = Vec::new();
    for phase in LOADED {
        for direction in DIRECTIONS {
            let of = |of: &Measurement| of.phase(phase).and_then(|phase| *phase.goodput.of(direction));
            let (before, after) = (of(&evidence.before), of(&evidence.after));
            if before.is_none() && after.is_none() {
                continue;
            }
            let set = *evidence.set.of(direction);
            let realised = after.zip(set).and_then(|(after, set)| after / set);
            rows.push(RateRow { phase, direction, before, after, set, realised });
        }
    }
    rows
}
