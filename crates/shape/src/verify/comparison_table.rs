use core::time::Duration;
use linerate_model::address_family::AddressFamily;
use linerate_model::direction::Direction;

use linerate_analysis::latency_under_load::{LatencyClass, LatencyGrade, LatencyUplift};
use linerate_analysis::statistics::{BootstrapSettings, EquivalenceMargin, SampleComparison, SampleStatistic, compare};
use linerate_model::load::PhaseKind;
use linerate_units::{BitRate, Ratio};

use super::counter_checks::DIRECTIONS;
use super::delay_checks::{FAMILIES, LOADED_PHASES};
use super::evidence::{ClassDelays, PathMeasurement, ShaperEvidence};

/// Delays of one class in one phase, before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayRow {
    /// Kind of load.
    pub phase: PhaseKind,
    /// Class of probes.
    pub class: LatencyClass,
    /// IP version.
    pub family: AddressFamily,
    /// Uplift without the shaper; `None` when not measured.
    pub before: Option<LatencyUplift>,
    /// Uplift with the shaper; `None` when not measured.
    pub after: Option<LatencyUplift>,
    /// Grades of both; `None` for classes that do not decide a verdict.
    pub grades: Option<(LatencyGrade, LatencyGrade)>,
    /// Medians of the round trips, with the interval of their difference.
    pub median: Option<SampleComparison<Duration>>,
}

/// Goodput in one phase, before and after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateRow {
    /// Kind of load.
    pub phase: PhaseKind,
    /// Direction.
    pub direction: Direction,
    /// Goodput without the shaper.
    pub before: Option<BitRate>,
    /// Goodput with the shaper.
    pub after: Option<BitRate>,
    /// Set rate.
    pub set: Option<BitRate>,
    /// Goodput as a share of the set rate.
    pub realised: Option<Ratio>,
}

const CLASSES: [LatencyClass; 4] =
    [LatencyClass::Icmp, LatencyClass::UdpBestEffort, LatencyClass::UdpExpeditedForwarding, LatencyClass::TcpInfo];

pub(super) fn delays(evidence: &ShaperEvidence) -> Vec<DelayRow> {
    let mut rows = Vec::new();
    for phase in LOADED_PHASES {
        for class in CLASSES {
            rows.extend(FAMILIES.into_iter().filter_map(|family| delay(evidence, phase, class, family)));
        }
    }
    rows
}

fn delay(evidence: &ShaperEvidence, phase: PhaseKind, class: LatencyClass, family: AddressFamily) -> Option<DelayRow> {
    let of = |of: &PathMeasurement| of.uplift(phase, class, family);
    let (before, after) = (of(&evidence.before), of(&evidence.after));
    if before.is_none() && after.is_none() {
        return None;
    }
    let grades = before.zip(after).filter(|_| class.counts_for_verdict());
    let grades = grades.map(|(before, after)| (LatencyGrade::of(before.graded()), LatencyGrade::of(after.graded())));
    let sample = |of: &PathMeasurement| of.class_delays(phase, class, family).map(ClassDelays::sample);
    let median = sample(&evidence.before).zip(sample(&evidence.after)).and_then(|(before, after)| {
        let margin = EquivalenceMargin::Absolute(Duration::from_millis(2));
        compare(&before, &after, SampleStatistic::Median, margin, &BootstrapSettings::with_seed(evidence.seed))
    });
    Some(DelayRow { phase, class, family, before, after, grades, median })
}

pub(super) fn rates(evidence: &ShaperEvidence) -> Vec<RateRow> {
    let mut rows = Vec::new();
    for phase in LOADED_PHASES {
        for direction in DIRECTIONS {
            let of = |of: &PathMeasurement| of.phase(phase).and_then(|phase| *phase.goodput.of(direction));
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
