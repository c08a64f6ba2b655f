//! Checks of the counters: load passes our trees, at the set rates.

use linerate_analysis::latency_under_load::{InterfaceTraffic, TrafficContamination};
use linerate_model::direction::Direction;
use linerate_model::load::PhaseKind;
use linerate_units::{BitRate, Ratio, display};

use super::evidence::{PathMeasurement, PhaseMeasurement, PlanDifferenceKind, ShaperEvidence, loading_phase};
use super::finding::{FigureName, FindingFigure, FindingKind, ShaperFinding, direction_name};

pub(super) const DIRECTIONS: [Direction; 2] = [Direction::Up, Direction::Down];

/// Share of the interface's bytes below which a tree counted none of the load.
const MIN_COUNTED_SHARE: f64 = 0.02;
/// Share of the interface's bytes below which traffic bypasses a tree; headers differ by a few percent.
const MIN_COMPLETE_SHARE: f64 = 0.8;
/// Share of the earlier goodput below which a direction is cut off.
const MAX_CUT_OFF_SHARE: f64 = 0.05;
/// Goodput of a shaper in control, as a share of its rate.
const REALISED_SHARES: (f64, f64) = (0.8, 1.1);
/// Share of the set rate that identifies it in the other direction's goodput.
const RECOGNISED_SHARES: (f64, f64) = (0.7, 1.05);
/// Minimum ratio of rates or goodput that is significant.
const MIN_RATIO: f64 = 1.3;
/// Share above which a processor is saturated.
const FULL: f64 = 0.85;

pub(super) fn check(evidence: &ShaperEvidence, found: &mut Vec<ShaperFinding>) {
    differences(evidence, found);
    let shares = DIRECTIONS.map(|direction| counted_share(evidence, direction));
    wrong_interface(evidence, shares, found);
    for (direction, share) in DIRECTIONS.into_iter().zip(shares) {
        check_bypass(evidence, direction, share, found);
        goodput(evidence, direction, found);
    }
    swapped(evidence, found);
    contaminated(evidence, found);
    processor(evidence, found);
}

fn differences(evidence: &ShaperEvidence, found: &mut Vec<ShaperFinding>) {
    for difference in &evidence.differences {
        let kind = match difference.kind {
            PlanDifferenceKind::RedirectMissing => FindingKind::NoRedirect,
            PlanDifferenceKind::RedirectTargetDown => FindingKind::RedirectTargetDown,
            _ => FindingKind::TreeDiffers,
        };
        found.push(ShaperFinding::new(kind, Some(difference.direction), difference.text.clone()));
    }
}

/// Share of the interface's bytes counted by the tree in the phase that loads the direction.
fn counted_share(evidence: &ShaperEvidence, direction: Direction) -> Option<Ratio> {
    (*evidence.set.of(direction))?;
    let phase = loaded(&evidence.after, direction)?;
    let traffic = (*phase.traffic.of(direction))?;
    let tree = (*phase.tree.of(direction))?;
    Ratio::of(tree.bytes.as_f64(), traffic.counted.as_f64())
}

/// Phase that loads a direction, alone if measured.
pub(super) fn loaded(measurement: &PathMeasurement, direction: Direction) -> Option<&PhaseMeasurement> {
    measurement.phase(loading_phase(direction)).or_else(|| measurement.phase(PhaseKind::Both))
}

fn has_moved(share: Option<Ratio>) -> Option<bool> {
    share.map(|share| share.get() >= MIN_COUNTED_SHARE)
}

fn wrong_interface(evidence: &ShaperEvidence, shares: [Option<Ratio>; 2], found: &mut Vec<ShaperFinding>) {
    let still = shares.iter().any(|share| has_moved(*share) == Some(false));
    let none_moved = shares.iter().all(|share| has_moved(*share) != Some(true));
    // With ingress shaping only, a tree without bytes lacks its redirect.
    if !(still && none_moved && evidence.set.up.is_some()) {
        return;
    }
    let words = "The path carried load, and our trees counted none of it: they are on an interface that the load does \
                 not use. Give the interface of the route to the far end.";
    let [up, down] = shares;
    found.push(
        ShaperFinding::new(FindingKind::WrongInterface, None, words)
            .with_share(FigureName::CountedUp, up)
            .with_share(FigureName::CountedDown, down),
    );
}

fn check_bypass(evidence: &ShaperEvidence, direction: Direction, share: Option<Ratio>, found: &mut Vec<ShaperFinding>) {
    let known = |kind: FindingKind| found.iter().any(|finding: &ShaperFinding| finding.kind == kind);
    let Some(counted) = share.filter(|share| share.get() < MIN_COMPLETE_SHARE) else { return };
    if known(FindingKind::WrongInterface)
        || (direction == Direction::Down && (known(FindingKind::NoRedirect) || known(FindingKind::RedirectTargetDown)))
    {
        return;
    }
    let finding = if direction == Direction::Down && counted.get() < MIN_COUNTED_SHARE {
        missing_redirect(evidence)
    } else {
        bypassed(direction)
    };
    found.push(finding.with_share(FigureName::CountedByTheTree, share));
}

fn missing_redirect(evidence: &ShaperEvidence) -> ShaperFinding {
    let rates = [&evidence.before, &evidence.after].map(|of| of.goodput(Direction::Down));
    let cut_off = match rates {
        [Some(before), Some(after)] => after < before * MAX_CUT_OFF_SHARE,
        _ => false,
    };
    if cut_off {
        let words = "No packets are received, and the intermediate device counts none: it is down, and the kernel \
                     drops packets redirected to it. Set it up before the redirect.";
        return ShaperFinding::new(FindingKind::RedirectTargetDown, Some(Direction::Down), words);
    }
    let words = "Received packets do not pass their tree: the redirect to the intermediate device is missing, or \
                 matches nothing.";
    ShaperFinding::new(FindingKind::NoRedirect, Some(Direction::Down), words)
}

fn bypassed(direction: Direction) -> ShaperFinding {
    let words = format!(
        "The interface carried far more {} than our tree counted: flows bypass it. Switch flow offloading and hardware \
         offloading off, or shape in the offloading device.",
        direction_name(direction)
    );
    ShaperFinding::new(FindingKind::Bypassed, Some(direction), words)
}

fn goodput(evidence: &ShaperEvidence, direction: Direction, found: &mut Vec<ShaperFinding>) {
    let (Some(before), Some(after)) = (evidence.before.goodput(direction), evidence.after.goodput(direction)) else {
        return;
    };
    let Some(set) = *evidence.set.of(direction) else { return };
    let floor = evidence.profile.goodput_floor;
    if after < before * floor.get() {
        let words = format!(
            "{} {} remain of {}: less than the required {}.",
            display::rate(after),
            direction_name(direction),
            display::rate(before),
            display::percent(floor)
        );
        let finding = ShaperFinding::new(FindingKind::GoodputBelowFloor, Some(direction), words);
        found.push(
            finding
                .with_rate(FigureName::Before, before)
                .with_rate(FigureName::After, after)
                .with_share(FigureName::Left, after / before),
        );
    }
    let Some(realised) = after / set else { return };
    // A link that never carried the set rate cannot realise it: the rate is above its capacity, which delays show.
    let could = before > set * REALISED_SHARES.0;
    if realised.get() > REALISED_SHARES.1 || (could && realised.get() < REALISED_SHARES.0) {
        let words = format!(
            "{} {} are carried where {} are set: the shaper does not control the rate.",
            display::rate(after),
            direction_name(direction),
            display::rate(set)
        );
        let finding = ShaperFinding::new(FindingKind::NotInControl, Some(direction), words);
        found.push(
            finding
                .with_rate(FigureName::Set, set)
                .with_rate(FigureName::Carried, after)
                .with_share(FigureName::Realised, Some(realised)),
        );
    }
}

/// Detects swapped rates: the direction with the larger rate carries the smaller one despite its capacity.
fn swapped(evidence: &ShaperEvidence, found: &mut Vec<ShaperFinding>) {
    let (Some(up), Some(down)) = (evidence.set.up, evidence.set.down) else { return };
    let (slow, fast, low, high) =
        if up < down { (Direction::Up, Direction::Down, up, down) } else { (Direction::Down, Direction::Up, down, up) };
    let (Some(fast_after), Some(fast_before)) = (evidence.after.goodput(fast), evidence.before.goodput(fast)) else {
        return;
    };
    let recognised = fast_after >= low * RECOGNISED_SHARES.0 && fast_after <= low * RECOGNISED_SHARES.1;
    let unheld = evidence.after.goodput(slow).is_some_and(|rate| rate > low * RECOGNISED_SHARES.1)
        || loaded(&evidence.after, slow).is_some_and(|phase| idle_leaves(phase, slow) == Some(true));
    if high < low * MIN_RATIO || !recognised || fast_before < low * MIN_RATIO || !unheld {
        return;
    }
    let words = format!(
        "{} are carried {}, which is the rate set for {}, and {} is not limited: the two rates are swapped.",
        display::rate(fast_after),
        direction_name(fast),
        direction_name(slow),
        direction_name(slow)
    );
    let finding = ShaperFinding::new(FindingKind::RatesSwapped, None, words)
        .with_rate(FigureName::SetUp, up)
        .with_rate(FigureName::SetDown, down);
    found.push(finding.with_rate(FigureName::CarriedByTheFaster, fast_after));
}

/// True when a direction's leaves were empty; `None` when unknown.
pub(super) fn idle_leaves(phase: &PhaseMeasurement, direction: Direction) -> Option<bool> {
    let tree = (*phase.tree.of(direction))?;
    let backlog = tree.largest_backlog?;
    // Two full packets with headers: passing packets also wait for a moment.
    Some(tree.drops.is_zero() && tree.marks.is_zero() && backlog.get() <= 2 * 1514)
}

fn contaminated(evidence: &ShaperEvidence, found: &mut Vec<ShaperFinding>) {
    let again = evidence.before_again.as_ref();
    let mut worst: Option<(Direction, PhaseKind, TrafficContamination)> = None;
    for measurement in [Some(&evidence.before), Some(&evidence.after), again].into_iter().flatten() {
        for phase in &measurement.phases {
            for direction in DIRECTIONS {
                let Some(traffic) = phase.traffic.of(direction) else { continue };
                let seen = contamination(measurement, phase, direction, traffic);
                let more = worst.is_none_or(|(_, _, most)| seen.others > most.others);
                if seen.spoils && more {
                    worst = Some((direction, phase.kind, seen));
                }
            }
        }
    }
    let Some((direction, kind, seen)) = worst else { return };
    let words = format!(
        "The interface carried other traffic during the measurement ({}, {}): repeat when it is idle.",
        kind.name(),
        direction_name(direction)
    );
    let finding = ShaperFinding::new(FindingKind::Contaminated, Some(direction), words);
    found.push(finding.with_rate(FigureName::Others, seen.others).with_share(FigureName::Share, seen.share));
}

fn contamination(
    of: &PathMeasurement,
    phase: &PhaseMeasurement,
    direction: Direction,
    traffic: &InterfaceTraffic,
) -> TrafficContamination {
    if phase.loads(direction) {
        return TrafficContamination::of(traffic);
    }
    // Acknowledgements of the other direction's load are our own traffic, in addition to the goodput.
    TrafficContamination::when_idle(traffic, of.goodput(direction).unwrap_or(BitRate::ZERO))
}

fn processor(evidence: &ShaperEvidence, found: &mut Vec<ShaperFinding>) {
    let shares = evidence.after.phases.iter().filter_map(|phase| phase.processor);
    let Some(most) = shares.max().filter(|share| share.get() > FULL) else { return };
    let words = "A processor was saturated by the shaper: a lighter queueing discipline or a lower rate may help.";
    found.push(
        ShaperFinding::new(FindingKind::ProcessorFull, None, words)
            .with(FigureName::BusiestProcessor, FindingFigure::Share(most)),
    );
}
