//! In-place change from one plan to another.

use super::{PlanCommand, PlannedDiscipline, PlannedObject, ShaperPlan};

/// Commands that change `old` into `new`, for other rates on the same link: each changes a class or discipline in
/// place, so that no queue loses its packets. Empty when nothing differs; SFQ keeps its limit.
///
/// `None` when impossible: another back end or device, another number of steps, table or options, or a different filter (a policer's rate
/// is part of a filter). Then the old plan has to be removed first.
#[must_use]
pub fn changes(old: &ShaperPlan, new: &ShaperPlan) -> Option<Vec<PlanCommand>> {
    let same = old.back_end == new.back_end && old.device == new.device && old.steps.len() == new.steps.len();
    // Some options are fixed at creation, and one that is left out would stay.
    if !same || old.table != new.table || old.options != new.options {
        return None;
    }
    let pairs = old.steps.iter().zip(&new.steps).map(|(old, new)| (&old.part, &new.part));
    let differing = pairs.filter(|(old, new)| old != new && !is_unchangeable(old, new));
    let needed: Option<Vec<_>> = differing.map(|(old, new)| change(old, new)).collect();
    // Top-down on an increase leaves would exceed their parent for a moment, as would bottom-up on a decrease: between
    // two commands of one batch either is harmless. The plan's order is kept.
    needed
}

/// True for SFQ, which cannot be changed in place ("Change operation not supported"): it keeps its limit, which matters
/// less than its packets.
fn is_unchangeable(old: &PlannedObject, new: &PlannedObject) -> bool {
    matches!((old, new), (PlannedObject::Discipline(old), PlannedObject::Discipline(new)) if old.kind == "sfq" && new.kind == "sfq")
}

fn change(old: &PlannedObject, new: &PlannedObject) -> Option<PlanCommand> {
    match (old, new) {
        (PlannedObject::Class(old), PlannedObject::Class(new)) => {
            (old.handle == new.handle && old.parent == new.parent && old.device == new.device && old.kind == new.kind)
                .then(|| new.command("change"))
        }
        (PlannedObject::Discipline(old), PlannedObject::Discipline(new)) => {
            (old.handle == new.handle && old.parent == new.parent && old.device == new.device && old.kind == new.kind)
                .then(|| in_place(new).command("change"))
        }
        _ => None,
    }
}

/// Option that is fixed at creation: the kernel refuses to change the number of flows, even to the same value
/// (`fq_codel_change`, `fq_pie_change`).
const FIXED_OPTION: &str = "flows";

fn in_place(discipline: &PlannedDiscipline) -> PlannedDiscipline {
    let mut options = discipline.options.clone();
    let counted = |pair: &[String]| pair[0] == FIXED_OPTION && pair[1].bytes().all(|letter| letter.is_ascii_digit());
    if let Some(at) = options.windows(2).position(counted) {
        options.drain(at..at + 2);
    }
    PlannedDiscipline { options, ..discipline.clone() }
}
