//! What probes say: whether what people use the path for became faster, and not only what is put first.

use core::time::Duration;

use linerate_model::latency_under_load::{Class, Grade};
use linerate_model::schema::load::PhaseKind;
use linerate_model::statistics::{Bootstrap, Margin, Signed, Statistic, Verdict, compare};
use linerate_model::throughput::Flow;
use linerate_units::{BitRate, Ratio, display};

use super::carried::{DIRECTIONS, idle_leaves, loaded};
use super::evidence::{Evidence, Family, Measurement, PhaseReading, own_phase};
use super::finding::{Figure, Finding, Kind, word};

/// Phases with load.
pub(super) const LOADED: [PhaseKind; 3] = [PhaseKind::Down, PhaseKind::Up, PhaseKind::Both];
pub(super) const FAMILIES: [Family; 2] = [Family::Four, Family::Six];
/// A delay that fell to less than this share of before became better.
const BETTER: f64 = 0.5;
/// One of which more than this share is left did not.
const AS_BEFORE: f64 = 0.7;
/// Differences of delays that do not matter.
const UNNOTICED: Duration = Duration::from_millis(2);
/// Fewest seconds of readings to judge by.
const FEWEST_BLOCKS: usize = 5;
/// How far two measurements of an unchanged path may lie apart: of the delay, in time, of the goodput.
const DRIFT: f64 = 0.25;
const DRIFT_TIME: Duration = Duration::from_millis(10);
const DRIFT_RATE: f64 = 0.10;
/// How much more than predicted is no surprise: of it, and in time.
const PREDICTED: (f64, Duration) = (1.5, Duration::from_millis(5));

/// A reading that a verdict goes by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Worst {
    pub(super) phase: PhaseKind,
    pub(super) class: Class,
    pub(super) family: Family,
    pub(super) graded: Duration,
}

/// The largest uplift of all phases under load, of the classes for which `keep` holds; `None` when none was measured.
pub(super) fn worst(of: &Measurement, phases: &[PhaseKind], keep: impl Fn(Class) -> bool) -> Option<Worst> {
    let phases = of.phases.iter().filter(|phase| phases.contains(&phase.kind));
    let readings =
        phases.flat_map(|phase| phase.classes.iter().map(|reading| (phase.kind, reading.class, reading.family)));
    readings
        .filter(|(_, class, _)| keep(*class))
        .filter_map(|(phase, class, family)| {
            let graded = of.uplift(phase, class, family)?.graded();
            Some(Worst { phase, class, family, graded })
        })
        .max_by_key(|worst| worst.graded)
}

pub(super) fn check(evidence: &Evidence, found: &mut Vec<Finding>) {
    gained(evidence, found);
    for direction in DIRECTIONS {
        above_the_line(evidence, direction, found);
        prediction(evidence, direction, found);
    }
    only_prioritised(evidence, found);
    ipv6(evidence, found);
    drift(evidence, found);
}

fn gained(evidence: &Evidence, found: &mut Vec<Finding>) {
    let worst = [&evidence.before, &evidence.after].map(|of| worst(of, &LOADED, Class::counts));
    let [Some(before), Some(after)] = worst else {
        let words = "Neither UDP best effort nor TCP in-band was measured both before and after: ICMP and EF alone say nothing, \
                     as shapers and providers put them first.";
        found.push(Finding::new(Kind::TooFewReadings, None, words));
        return;
    };
    let finding = |kind, words: String| {
        let finding = Finding::new(kind, None, words);
        finding.with_time("before", before.graded).with_time("after", after.graded)
    };
    let both = format!("{} before, {} after", display::duration(before.graded), display::duration(after.graded));
    if Grade::of(before.graded) == Grade::APlus && after.graded <= before.graded + UNNOTICED {
        found.push(finding(
            Kind::NothingToGain,
            format!("The delay that load adds was low without the shaper: {both}."),
        ));
        return;
    }
    match better(evidence, before) {
        None => {
            found.push(finding(Kind::TooFewReadings, "Too few seconds were measured to compare delays.".to_owned()));
        }
        Some(false) => {
            let words = format!("The delay that load adds (95th percentile, worst class) is not lower: {both}.");
            found.push(finding(Kind::NotBetter, words));
        }
        Some(true) if after.graded > evidence.profile.largest_uplift => {
            let asked = display::duration(evidence.profile.largest_uplift);
            found.push(finding(
                Kind::StillLate,
                format!("The delay that load adds is lower, but above {asked}: {both}."),
            ));
        }
        Some(true) => {}
    }
}

/// Whether what was worst before is lower now, beyond chance; `None` of too few readings.
fn better(evidence: &Evidence, worst: Worst) -> Option<bool> {
    let sample = |of: &Measurement| of.reading(worst.phase, worst.class, worst.family).map(super::ClassReading::sample);
    let (before, after) = (sample(&evidence.before)?, sample(&evidence.after)?);
    if before.blocks().min(after.blocks()) < FEWEST_BLOCKS {
        return None;
    }
    let statistic = Statistic::Percentile(Ratio::new(0.95).unwrap_or_default());
    let bootstrap = Bootstrap::with_seed(evidence.seed);
    let comparison = compare(&before, &after, statistic, Margin::Absolute(UNNOTICED), &bootstrap)?;
    Some(comparison.verdict == Verdict::Different && comparison.difference.negative)
}

/// What load adds in one direction: one way where the far end tells it, else to the round trip.
fn added(of: &Measurement, phase: &PhaseReading, direction: Flow) -> Option<Duration> {
    let reading = phase.classes.iter().find(|reading| reading.class == Class::UdpBestEffort)?;
    let one_way = |kind| of.reading(kind, reading.class, reading.family).and_then(|of| of.one_way.as_ref());
    if let (Some(rest), Some(load)) = (one_way(PhaseKind::Idle), one_way(phase.kind)) {
        return Some(Signed::between(rest.of(direction).median, load.of(direction).p95).or_zero());
    }
    Some(of.uplift(phase.kind, reading.class, reading.family)?.graded())
}

fn above_the_line(evidence: &Evidence, direction: Flow, found: &mut Vec<Finding>) {
    let misplaced = |finding: &Finding| match finding.kind {
        Kind::WrongInterface => true,
        Kind::NoRedirect | Kind::RedirectTargetDown => direction == Flow::Down,
        Kind::Bypassed => finding.direction == Some(direction),
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
        "Our leaves {} were empty, and nothing was dropped or marked in them, while probes were late by {}: the rate is above \
         what the path carries, so the queue stands behind our shaper. Lower it.",
        word(direction),
        display::duration(added)
    );
    let finding =
        Finding::new(Kind::AboveTheLine, Some(direction), words).with_rate("set", set).with_time("added", added);
    found.push(match before {
        Some(before) => finding.with_rate("carried_before", before),
        None => finding,
    });
}

fn prediction(evidence: &Evidence, direction: Flow, found: &mut Vec<Finding>) {
    let Some(predicted) = *evidence.predicted.of(direction) else { return };
    let family = FAMILIES
        .into_iter()
        .find_map(|family| evidence.after.uplift(own_phase(direction), Class::UdpBestEffort, family));
    let Some(measured) = family.map(|uplift| uplift.mean.or_zero()) else { return };
    if measured <= predicted.mul_f64(PREDICTED.0) + PREDICTED.1 {
        return;
    }
    let words = format!(
        "Load {} adds {} to best-effort probes on average, where the plan predicts {}.",
        word(direction),
        display::duration(measured),
        display::duration(predicted)
    );
    let finding = Finding::new(Kind::PredictionMissed, Some(direction), words);
    found.push(finding.with_time("predicted", predicted).with_time("measured", measured));
}

fn only_prioritised(evidence: &Evidence, found: &mut Vec<Finding>) {
    for phase in LOADED {
        let of = |of: &Measurement, counts: bool| worst(of, &[phase], |class| class.counts() == counts);
        let (Some(first_before), Some(first_after)) = (of(&evidence.before, false), of(&evidence.after, false)) else {
            continue;
        };
        let (Some(before), Some(after)) = (of(&evidence.before, true), of(&evidence.after, true)) else { continue };
        let late = evidence.profile.largest_uplift;
        let fooled = first_before.graded > late
            && first_after.graded <= first_before.graded.mul_f64(BETTER)
            && after.graded > late
            && after.graded > before.graded.mul_f64(AS_BEFORE);
        if !fooled {
            continue;
        }
        let words = format!(
            "Only what is put first became faster ({}): ping shows {} where everything else waits {}.",
            phase.name(),
            display::duration(first_after.graded),
            display::duration(after.graded)
        );
        let finding = Finding::new(Kind::OnlyPrioritisedBetter, None, words);
        found.push(finding.with_time("first", first_after.graded).with_time("others", after.graded));
        return;
    }
}

fn ipv6(evidence: &Evidence, found: &mut Vec<Finding>) {
    for phase in LOADED {
        let of =
            |of: &Measurement, family| of.uplift(phase, Class::UdpBestEffort, family).map(|uplift| uplift.graded());
        let pair = |family| Some((of(&evidence.before, family)?, of(&evidence.after, family)?));
        let (Some(four), Some(six)) = (pair(Family::Four), pair(Family::Six)) else { continue };
        let late = evidence.profile.largest_uplift;
        let better = four.0 > late && four.1 <= four.0.mul_f64(BETTER);
        if !better || six.1 <= late || six.1 <= six.0.mul_f64(AS_BEFORE) {
            continue;
        }
        let words = format!(
            "IPv4 became faster ({}) and IPv6 did not: {} against {}. A filter matches IPv4 only.",
            phase.name(),
            display::duration(four.1),
            display::duration(six.1)
        );
        let finding = Finding::new(Kind::Ipv6Unshaped, None, words);
        found.push(finding.with_time("ipv4", four.1).with_time("ipv6", six.1));
        return;
    }
}

fn drift(evidence: &Evidence, found: &mut Vec<Finding>) {
    let Some(again) = &evidence.before_again else { return };
    for direction in DIRECTIONS {
        let (Some(first), Some(second)) = (evidence.before.goodput(direction), again.goodput(direction)) else {
            continue;
        };
        let apart = (first - second) + (second - first);
        if apart > first * DRIFT_RATE {
            let words = format!(
                "Without the shaper {} were carried {} at first and {} at the end: the path has changed meanwhile.",
                display::rate(first),
                word(direction),
                display::rate(second)
            );
            let finding = Finding::new(Kind::Drift, Some(direction), words);
            found.push(finding.with_rate("first", first).with_rate("second", second));
            return;
        }
    }
    if let Some(finding) = drift_of_delay(evidence, again) {
        found.push(finding);
    }
}

fn drift_of_delay(evidence: &Evidence, again: &Measurement) -> Option<Finding> {
    let worst = worst(&evidence.before, &LOADED, Class::counts)?;
    let sample = |of: &Measurement| of.reading(worst.phase, worst.class, worst.family).map(super::ClassReading::sample);
    let (first, second) = (sample(&evidence.before)?, sample(again)?);
    let margin = Margin::Relative(Ratio::new(DRIFT).unwrap_or_default());
    let comparison = compare(&first, &second, Statistic::Median, margin, &Bootstrap::with_seed(evidence.seed))?;
    let far = comparison.difference.magnitude > DRIFT_TIME.max(comparison.before.mul_f64(DRIFT));
    if comparison.verdict != Verdict::Different || !far {
        return None;
    }
    let words = format!(
        "Without the shaper the median delay under load was {} at first and {} at the end: the path has changed meanwhile.",
        display::duration(comparison.before),
        display::duration(comparison.after)
    );
    let finding = Finding::new(Kind::Drift, None, words);
    Some(finding.with("difference", Figure::Time(comparison.difference)))
}

/// The goodput of a measurement as a share of what is set.
pub(super) fn realised(of: &Measurement, direction: Flow, set: BitRate) -> Option<Ratio> {
    of.goodput(direction)? / set
}
