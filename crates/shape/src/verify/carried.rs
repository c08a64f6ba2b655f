//! What the counters say: whether load went through our trees, and at the rates that are set.

use linerate_model::latency_under_load::{Contamination, InterfaceTraffic};
use linerate_model::schema::load::PhaseKind;
use linerate_model::throughput::Flow;
use linerate_units::{BitRate, Ratio, display};

use super::evidence::{DifferenceKind, Evidence, Measurement, PhaseReading, own_phase};
use super::finding::{Figure, Finding, Kind, word};

pub(super) const DIRECTIONS: [Flow; 2] = [Flow::Up, Flow::Down];

/// A tree that counted less than this share of the interface's bytes counted nothing of the load.
const NOTHING: f64 = 0.02;
/// Less than this share: something passes by it. Headers are counted alike on both, to a few percent.
const NOT_ALL: f64 = 0.8;
/// A direction whose goodput fell to less than this share of before is cut off.
const CUT_OFF: f64 = 0.05;
/// What a shaper in control carries of its rate, as payload.
const REALISED: (f64, f64) = (0.8, 1.1);
/// The same, to recognise one direction's rate in the other's goodput.
const RECOGNISED: (f64, f64) = (0.7, 1.05);
/// By how much rates or goodput must differ for it to say anything.
const CLEARLY: f64 = 1.3;
/// Above this share a processor is full.
const FULL: f64 = 0.85;

pub(super) fn check(evidence: &Evidence, found: &mut Vec<Finding>) {
    differences(evidence, found);
    let shares = DIRECTIONS.map(|direction| counted_share(evidence, direction));
    wrong_interface(evidence, shares, found);
    for (direction, share) in DIRECTIONS.into_iter().zip(shares) {
        passed_by(evidence, direction, share, found);
        goodput(evidence, direction, found);
    }
    swapped(evidence, found);
    contaminated(evidence, found);
    processor(evidence, found);
}

fn differences(evidence: &Evidence, found: &mut Vec<Finding>) {
    for difference in &evidence.differences {
        let kind = match difference.kind {
            DifferenceKind::RedirectMissing => Kind::NoRedirect,
            DifferenceKind::RedirectTargetDown => Kind::RedirectTargetDown,
            _ => Kind::TreeDiffers,
        };
        found.push(Finding::new(kind, Some(difference.direction), difference.words.clone()));
    }
}

/// In the phase that loads a direction: what its tree counted of what the interface did.
fn counted_share(evidence: &Evidence, direction: Flow) -> Option<Ratio> {
    (*evidence.set.of(direction))?;
    let phase = loaded(&evidence.after, direction)?;
    let traffic = (*phase.traffic.of(direction))?;
    let tree = (*phase.tree.of(direction))?;
    Ratio::of(tree.bytes.as_f64(), traffic.counted.as_f64())
}

/// The phase that loads a direction, alone where that was measured.
pub(super) fn loaded(measurement: &Measurement, direction: Flow) -> Option<&PhaseReading> {
    measurement.phase(own_phase(direction)).or_else(|| measurement.phase(PhaseKind::Both))
}

fn moved(share: Option<Ratio>) -> Option<bool> {
    share.map(|share| share.get() >= NOTHING)
}

fn wrong_interface(evidence: &Evidence, shares: [Option<Ratio>; 2], found: &mut Vec<Finding>) {
    let still = shares.iter().any(|share| moved(*share) == Some(false));
    let none_moved = shares.iter().all(|share| moved(*share) != Some(true));
    // Where only what comes in is shaped, a tree that counts nothing is one without redirect.
    if !(still && none_moved && evidence.set.up.is_some()) {
        return;
    }
    let words = "The path carried load, and our trees counted none of it: they stand on an interface that the load does \
                 not use. Name the one that the route to the far end goes through.";
    let [up, down] = shares;
    found.push(
        Finding::new(Kind::WrongInterface, None, words).with_share("counted_up", up).with_share("counted_down", down),
    );
}

fn passed_by(evidence: &Evidence, direction: Flow, share: Option<Ratio>, found: &mut Vec<Finding>) {
    let known = |kind: Kind| found.iter().any(|finding: &Finding| finding.kind == kind);
    let Some(counted) = share.filter(|share| share.get() < NOT_ALL) else { return };
    if known(Kind::WrongInterface)
        || (direction == Flow::Down && (known(Kind::NoRedirect) || known(Kind::RedirectTargetDown)))
    {
        return;
    }
    let finding =
        if direction == Flow::Down && counted.get() < NOTHING { unredirected(evidence) } else { bypassed(direction) };
    found.push(finding.with_share("counted_by_the_tree", share));
}

fn unredirected(evidence: &Evidence) -> Finding {
    let rates = [&evidence.before, &evidence.after].map(|of| of.goodput(Flow::Down));
    let cut_off = match rates {
        [Some(before), Some(after)] => after < before * CUT_OFF,
        _ => false,
    };
    if cut_off {
        let words = "Nothing comes in any more, and the intermediate device counts nothing: it is down, and the kernel drops \
                     what is redirected to it. Set it up before the redirect.";
        return Finding::new(Kind::RedirectTargetDown, Some(Flow::Down), words);
    }
    let words = "What comes in does not pass the tree that should shape it: the redirect to the intermediate device is \
                 missing, or matches nothing.";
    Finding::new(Kind::NoRedirect, Some(Flow::Down), words)
}

fn bypassed(direction: Flow) -> Finding {
    let words = format!(
        "The interface carried far more {} than our tree counted: flows pass by it. Switch flow offloading and hardware \
         offloading off, or shape where they are done.",
        word(direction)
    );
    Finding::new(Kind::Bypassed, Some(direction), words)
}

fn goodput(evidence: &Evidence, direction: Flow, found: &mut Vec<Finding>) {
    let (Some(before), Some(after)) = (evidence.before.goodput(direction), evidence.after.goodput(direction)) else {
        return;
    };
    let Some(set) = *evidence.set.of(direction) else { return };
    let floor = evidence.profile.goodput_floor;
    if after < before * floor.get() {
        let words = format!(
            "{} {} are left of {}: less than the {} that the profile asks.",
            display::rate(after),
            word(direction),
            display::rate(before),
            display::percent(floor)
        );
        let finding = Finding::new(Kind::GoodputBelowFloor, Some(direction), words);
        found.push(finding.with_rate("before", before).with_rate("after", after).with_share("left", after / before));
    }
    let Some(realised) = after / set else { return };
    // What never carried as much as is set cannot realise it: that is a rate above the line, which delays tell.
    let could = before > set * REALISED.0;
    if realised.get() > REALISED.1 || (could && realised.get() < REALISED.0) {
        let words = format!(
            "{} {} are carried where {} are set: the shaper is not what holds the rate.",
            display::rate(after),
            word(direction),
            display::rate(set)
        );
        let finding = Finding::new(Kind::NotInControl, Some(direction), words);
        found.push(finding.with_rate("set", set).with_rate("carried", after).with_share("realised", Some(realised)));
    }
}

/// The direction with the larger rate carries the smaller rate, though it could do more.
fn swapped(evidence: &Evidence, found: &mut Vec<Finding>) {
    let (Some(up), Some(down)) = (evidence.set.up, evidence.set.down) else { return };
    let (slow, fast, low, high) =
        if up < down { (Flow::Up, Flow::Down, up, down) } else { (Flow::Down, Flow::Up, down, up) };
    let (Some(fast_after), Some(fast_before)) = (evidence.after.goodput(fast), evidence.before.goodput(fast)) else {
        return;
    };
    let recognised = fast_after >= low * RECOGNISED.0 && fast_after <= low * RECOGNISED.1;
    let unheld = evidence.after.goodput(slow).is_some_and(|rate| rate > low * RECOGNISED.1)
        || loaded(&evidence.after, slow).is_some_and(|phase| idle_leaves(phase, slow) == Some(true));
    if high < low * CLEARLY || !recognised || fast_before < low * CLEARLY || !unheld {
        return;
    }
    let words = format!(
        "{} are carried {}, which is the rate set for {}, and {} is not held: the two rates are exchanged.",
        display::rate(fast_after),
        word(fast),
        word(slow),
        word(slow)
    );
    let finding = Finding::new(Kind::RatesSwapped, None, words).with_rate("set_up", up).with_rate("set_down", down);
    found.push(finding.with_rate("carried_by_the_faster", fast_after));
}

/// Whether a direction's leaves held nothing back; `None` when that is not known.
pub(super) fn idle_leaves(phase: &PhaseReading, direction: Flow) -> Option<bool> {
    let tree = (*phase.tree.of(direction))?;
    let backlog = tree.largest_backlog?;
    // Two full packets with their headers: what passes through waits for a moment too.
    Some(tree.drops.is_zero() && tree.marks.is_zero() && backlog.get() <= 2 * 1514)
}

fn contaminated(evidence: &Evidence, found: &mut Vec<Finding>) {
    let again = evidence.before_again.as_ref();
    let mut worst: Option<(Flow, PhaseKind, Contamination)> = None;
    for measurement in [Some(&evidence.before), Some(&evidence.after), again].into_iter().flatten() {
        for phase in &measurement.phases {
            for direction in DIRECTIONS {
                let Some(traffic) = phase.traffic.of(direction) else { continue };
                let seen = contamination(measurement, phase, direction, traffic);
                let more = worst.is_none_or(|(_, _, most)| seen.others > most.others);
                if seen.spoilt && more {
                    worst = Some((direction, phase.kind, seen));
                }
            }
        }
    }
    let Some((direction, kind, seen)) = worst else { return };
    let words = format!(
        "Traffic of others was on the interface while it was measured ({}, {}): measure again when it is quiet.",
        kind.name(),
        word(direction)
    );
    let finding = Finding::new(Kind::Contaminated, Some(direction), words);
    found.push(finding.with_rate("others", seen.others).with_share("share", seen.share));
}

fn contamination(of: &Measurement, phase: &PhaseReading, direction: Flow, traffic: &InterfaceTraffic) -> Contamination {
    if phase.loads(direction) {
        return Contamination::of(traffic);
    }
    // Acknowledgements of the other direction's load are our own as far as they are known: beside what the path carries.
    Contamination::at_rest(traffic, of.goodput(direction).unwrap_or(BitRate::ZERO))
}

fn processor(evidence: &Evidence, found: &mut Vec<Finding>) {
    let shares = evidence.after.phases.iter().filter_map(|phase| phase.processor);
    let Some(most) = shares.max().filter(|share| share.get() > FULL) else { return };
    let words =
        "A processor was full while the shaper ran: a lighter queueing discipline, or a lower rate, may do better.";
    found.push(Finding::new(Kind::ProcessorFull, None, words).with("busiest_processor", Figure::Share(most)));
}
