//! Checks of the probes: lower delay for application traffic, not only for prioritised traffic.

use core::time::Duration;
use linerate_model::address_family::AddressFamily;
use linerate_model::direction::Direction;

use linerate_analysis::latency_under_load::{LatencyClass, LatencyGrade};
use linerate_analysis::statistics::{
    BootstrapSettings, ComparisonVerdict, EquivalenceMargin, SampleStatistic, SignedDifference, compare,
};
use linerate_model::load::PhaseKind;
use linerate_units::{BitRate, Ratio, display};

use super::counter_checks::{DIRECTIONS, idle_leaves, loaded};
use super::evidence::{PathMeasurement, PhaseMeasurement, ShaperEvidence, loading_phase};
use super::finding::{FigureName, FindingFigure, FindingKind, ShaperFinding, direction_name};

/// Loaded phases.
pub(super) const LOADED_PHASES: [PhaseKind; 3] = [PhaseKind::Down, PhaseKind::Up, PhaseKind::Both];
pub(super) const FAMILIES: [AddressFamily; 2] = [AddressFamily::Ipv4, AddressFamily::Ipv6];
/// Share of the earlier delay below which it has improved.
const MAX_IMPROVED_SHARE: f64 = 0.5;
/// Share of the earlier delay above which it has not improved.
const MIN_UNCHANGED_SHARE: f64 = 0.7;
/// Irrelevant difference of delays.
const UNNOTICED: Duration = Duration::from_millis(2);
/// Minimum number of one-second blocks of samples for a judgement.
const MIN_BLOCKS: usize = 5;
/// Maximum differences of two measurements of an unchanged path: relative delay, delay, relative goodput.
const MAX_DELAY_DRIFT: f64 = 0.25;
const MAX_DRIFT_TIME: Duration = Duration::from_millis(10);
const MAX_RATE_DRIFT: f64 = 0.10;
/// Tolerance of the prediction: factor and time.
const PREDICTION_TOLERANCE: (f64, Duration) = (1.5, Duration::from_millis(5));

/// Worst delay, on which a verdict is based.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WorstDelay {
    pub(super) phase: PhaseKind,
    pub(super) class: LatencyClass,
    pub(super) family: AddressFamily,
    pub(super) graded: Duration,
}

/// Largest uplift of all loaded phases and the classes selected by `keep`; `None` when not measured.
pub(super) fn worst(
    of: &PathMeasurement,
    phases: &[PhaseKind],
    keep: impl Fn(LatencyClass) -> bool,
) -> Option<WorstDelay> {
    let phases = of.phases.iter().filter(|phase| phases.contains(&phase.kind));
    let readings =
        phases.flat_map(|phase| phase.classes.iter().map(|reading| (phase.kind, reading.class, reading.family)));
    readings
        .filter(|(_, class, _)| keep(*class))
        .filter_map(|(phase, class, family)| {
            let graded = of.uplift(phase, class, family)?.graded();
            Some(WorstDelay { phase, class, family, graded })
        })
        .max_by_key(|worst| worst.graded)
}

pub(super) fn check(evidence: &ShaperEvidence, found: &mut Vec<ShaperFinding>) {
    check_gain(evidence, found);
    for direction in DIRECTIONS {
        check_rate_above_capacity(evidence, direction, found);
        prediction(evidence, direction, found);
    }
    only_prioritised(evidence, found);
    ipv6(evidence, found);
    drift(evidence, found);
}

fn check_gain(evidence: &ShaperEvidence, found: &mut Vec<ShaperFinding>) {
    let worst =
        [&evidence.before, &evidence.after].map(|of| worst(of, &LOADED_PHASES, LatencyClass::counts_for_verdict));
    let [Some(before), Some(after)] = worst else {
        let words = "Neither UDP best effort nor TCP in-band was measured both before and after: ICMP and EF alone are \
                     no evidence, as shapers and providers prioritise them.";
        found.push(ShaperFinding::new(FindingKind::TooFewSamples, None, words));
        return;
    };
    let finding = |kind, words: String| {
        let finding = ShaperFinding::new(kind, None, words);
        finding.with_time(FigureName::Before, before.graded).with_time(FigureName::After, after.graded)
    };
    let both = format!("{} before, {} after", display::duration(before.graded), display::duration(after.graded));
    if LatencyGrade::of(before.graded) == LatencyGrade::APlus && after.graded <= before.graded + UNNOTICED {
        found.push(finding(
            FindingKind::NothingToGain,
            format!("The delay that load adds was low without the shaper: {both}."),
        ));
        return;
    }
    match better(evidence, before) {
        None => {
            found.push(finding(
                FindingKind::TooFewSamples,
                "Too few seconds were measured to compare delays.".to_owned(),
            ));
        }
        Some(false) => {
            let words = format!("The delay that load adds (95th percentile, worst class) is not lower: {both}.");
            found.push(finding(FindingKind::NotBetter, words));
        }
        Some(true) if after.graded > evidence.profile.largest_uplift => {
            let asked = display::duration(evidence.profile.largest_uplift);
            found.push(finding(
                FindingKind::DelayAboveLimit,
                format!("The delay that load adds is lower, but above {asked}: {both}."),
            ));
        }
        Some(true) => {}
    }
}

/// True when the worst delay before is significantly lower now; `None` with too few samples.
fn better(evidence: &ShaperEvidence, worst: WorstDelay) -> Option<bool> {
    let sample =
        |of: &PathMeasurement| of.class_delays(worst.phase, worst.class, worst.family).map(super::ClassDelays::sample);
    let (before, after) = (sample(&evidence.before)?, sample(&evidence.after)?);
    if before.blocks().min(after.blocks()) < MIN_BLOCKS {
        return None;
    }
    let statistic = SampleStatistic::Percentile(Ratio::new(0.95).unwrap_or_default());
    let bootstrap = BootstrapSettings::with_seed(evidence.seed);
    let comparison = compare(&before, &after, statistic, EquivalenceMargin::Absolute(UNNOTICED), &bootstrap)?;
    Some(comparison.verdict == ComparisonVerdict::Different && comparison.difference.negative)
}

/// Delay added by load in one direction: one-way if reported, else of the round trip.
fn added(of: &PathMeasurement, phase: &PhaseMeasurement, direction: Direction) -> Option<Duration> {
    let reading = phase.classes.iter().find(|reading| reading.class == LatencyClass::UdpBestEffort)?;
    let one_way = |kind| of.class_delays(kind, reading.class, reading.family).and_then(|of| of.one_way.as_ref());
    if let (Some(rest), Some(load)) = (one_way(PhaseKind::Idle), one_way(phase.kind)) {
        return Some(SignedDifference::between(rest.of(direction).median, load.of(direction).p95).allow_zero());
    }
    Some(of.uplift(phase.kind, reading.class, reading.family)?.graded())
}

fn check_rate_above_capacity(evidence: &ShaperEvidence, direction: Direction, found: &mut Vec<ShaperFinding>) {
    let misplaced = |finding: &ShaperFinding| match finding.kind {
        FindingKind::WrongInterface => true,
        FindingKind::NoRedirect | FindingKind::RedirectTargetDown => direction == Direction::Down,
        FindingKind::Bypassed => finding.direction == Some(direction),
        _ => false,
    };
    if found.iter().any(misplaced) {
        return;
    }
    let Some(set) = *evidence.set.of(direction) else { return };
    let Some(phase) = loaded(&evidence.after, direction) else { return };
    let Some(added) = added(&evidence.after, phase, direction) else { return };
    let before = evidence.before.goodput(direction);
    let empty = idle_leaves(phase, direction).unwrap_or_else(|| {
        let silent = phase.tree.of(direction).is_some_and(|tree| tree.drops.is_zero() && tree.marks.is_zero());
        silent && before.is_some_and(|before| set > before)
    });
    if added <= evidence.profile.largest_uplift || !empty {
        return;
    }
    let words = format!(
        "Our leaves {} were empty, and nothing was dropped or marked in them, while probes were late by {}: the rate \
         is above the path's capacity, so the queue is behind our shaper. Lower the rate.",
        direction_name(direction),
        display::duration(added)
    );
    let finding = ShaperFinding::new(FindingKind::RateAboveCapacity, Some(direction), words)
        .with_rate(FigureName::Set, set)
        .with_time(FigureName::Added, added);
    found.push(match before {
        Some(before) => finding.with_rate(FigureName::CarriedBefore, before),
        None => finding,
    });
}

fn prediction(evidence: &ShaperEvidence, direction: Direction, found: &mut Vec<ShaperFinding>) {
    let Some(predicted) = *evidence.predicted.of(direction) else { return };
    let family = FAMILIES
        .into_iter()
        .find_map(|family| evidence.after.uplift(loading_phase(direction), LatencyClass::UdpBestEffort, family));
    let Some(measured) = family.map(|uplift| uplift.mean.allow_zero()) else { return };
    if measured <= predicted.mul_f64(PREDICTION_TOLERANCE.0) + PREDICTION_TOLERANCE.1 {
        return;
    }
    let words = format!(
        "Load {} adds {} to best-effort probes on average, where the plan predicts {}.",
        direction_name(direction),
        display::duration(measured),
        display::duration(predicted)
    );
    let finding = ShaperFinding::new(FindingKind::PredictionMissed, Some(direction), words);
    found.push(finding.with_time(FigureName::Predicted, predicted).with_time(FigureName::Measured, measured));
}

fn only_prioritised(evidence: &ShaperEvidence, found: &mut Vec<ShaperFinding>) {
    for phase in LOADED_PHASES {
        let of = |of: &PathMeasurement, counts: bool| worst(of, &[phase], |class| class.counts_for_verdict() == counts);
        let (Some(first_before), Some(first_after)) = (of(&evidence.before, false), of(&evidence.after, false)) else {
            continue;
        };
        let (Some(before), Some(after)) = (of(&evidence.before, true), of(&evidence.after, true)) else { continue };
        let late = evidence.profile.largest_uplift;
        let fooled = first_before.graded > late
            && first_after.graded <= first_before.graded.mul_f64(MAX_IMPROVED_SHARE)
            && after.graded > late
            && after.graded > before.graded.mul_f64(MIN_UNCHANGED_SHARE);
        if !fooled {
            continue;
        }
        let words = format!(
            "Only prioritised traffic became faster ({}): ping shows {} where other traffic waits {}.",
            phase.name(),
            display::duration(first_after.graded),
            display::duration(after.graded)
        );
        let finding = ShaperFinding::new(FindingKind::OnlyPrioritisedBetter, None, words);
        found
            .push(finding.with_time(FigureName::First, first_after.graded).with_time(FigureName::Others, after.graded));
        return;
    }
}

fn ipv6(evidence: &ShaperEvidence, found: &mut Vec<ShaperFinding>) {
    for phase in LOADED_PHASES {
        let of = |of: &PathMeasurement, family| {
            of.uplift(phase, LatencyClass::UdpBestEffort, family).map(|uplift| uplift.graded())
        };
        let pair = |family| Some((of(&evidence.before, family)?, of(&evidence.after, family)?));
        let (Some(four), Some(six)) = (pair(AddressFamily::Ipv4), pair(AddressFamily::Ipv6)) else { continue };
        let late = evidence.profile.largest_uplift;
        let better = four.0 > late && four.1 <= four.0.mul_f64(MAX_IMPROVED_SHARE);
        if !better || six.1 <= late || six.1 <= six.0.mul_f64(MIN_UNCHANGED_SHARE) {
            continue;
        }
        let words = format!(
            "IPv4 became faster ({}) and IPv6 did not: {} against {}. A filter matches IPv4 only.",
            phase.name(),
            display::duration(four.1),
            display::duration(six.1)
        );
        let finding = ShaperFinding::new(FindingKind::Ipv6Unshaped, None, words);
        found.push(finding.with_time(FigureName::Ipv4, four.1).with_time(FigureName::Ipv6, six.1));
        return;
    }
}

fn drift(evidence: &ShaperEvidence, found: &mut Vec<ShaperFinding>) {
    let Some(again) = &evidence.before_again else { return };
    for direction in DIRECTIONS {
        let (Some(first), Some(second)) = (evidence.before.goodput(direction), again.goodput(direction)) else {
            continue;
        };
        let apart = (first - second) + (second - first);
        if apart > first * MAX_RATE_DRIFT {
            let words = format!(
                "Without the shaper {} were carried {} at first and {} at the end: the path has changed.",
                display::rate(first),
                direction_name(direction),
                display::rate(second)
            );
            let finding = ShaperFinding::new(FindingKind::Drift, Some(direction), words);
            found.push(finding.with_rate(FigureName::First, first).with_rate(FigureName::Second, second));
            return;
        }
    }
    if let Some(finding) = drift_of_delay(evidence, again) {
        found.push(finding);
    }
}

fn drift_of_delay(evidence: &ShaperEvidence, again: &PathMeasurement) -> Option<ShaperFinding> {
    let worst = worst(&evidence.before, &LOADED_PHASES, LatencyClass::counts_for_verdict)?;
    let sample =
        |of: &PathMeasurement| of.class_delays(worst.phase, worst.class, worst.family).map(super::ClassDelays::sample);
    let (first, second) = (sample(&evidence.before)?, sample(again)?);
    let margin = EquivalenceMargin::Relative(Ratio::new(MAX_DELAY_DRIFT).unwrap_or_default());
    let comparison =
        compare(&first, &second, SampleStatistic::Median, margin, &BootstrapSettings::with_seed(evidence.seed))?;
    let far = comparison.difference.magnitude > MAX_DRIFT_TIME.max(comparison.before.mul_f64(MAX_DELAY_DRIFT));
    if comparison.verdict != ComparisonVerdict::Different || !far {
        return None;
    }
    let words = format!(
        "Without the shaper the median delay under load was {} at first and {} at the end: the path has changed.",
        display::duration(comparison.before),
        display::duration(comparison.after)
    );
    let finding = ShaperFinding::new(FindingKind::Drift, None, words);
    Some(finding.with(FigureName::Difference, FindingFigure::Time(comparison.difference)))
}

/// Goodput of a measurement as a share of the set rate.
pub(super) fn realised(of: &PathMeasurement, direction: Direction, set: BitRate) -> Option<Ratio> {
    of.goodput(direction)? / set
}
