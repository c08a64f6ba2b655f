//! From one plan to another without taking queues down.

use super::{Command, Discipline, Part, Plan};

/// The commands that turn what `old` set up into `new`, for other rates on the same line: each changes a class or a
/// discipline in place, so that no queue loses its packets. Empty when nothing differs; SFQ keeps the length it has.
///
/// `None` when that cannot be done: another back end or device, another number of steps, or a filter that differs (a
/// policer's rate stands in a filter). Then the old plan has to be taken down first.
#[must_use]
pub fn changes(old: &Plan, new: &Plan) -> Option<Vec<Command>> {
    let same = old.back_end == new.back_end && old.device == new.device && old.steps.len() == new.steps.len();
    if !same {
        return None;
    }
    let pairs = old.steps.iter().zip(&new.steps).map(|(old, new)| (&old.part, &new.part));
    let differing = pairs.filter(|(old, new)| old != new && !stays(old, new));
    let needed: Option<Vec<_>> = differing.map(|(old, new)| change(old, new)).collect();
    // From the top downwards when it grows would let leaves exceed their parent for a moment, and so would the other way
    // when it shrinks: between two commands of one batch either is harmless. The plan's order is kept.
    needed
}

/// SFQ cannot be changed in place ("Change operation not supported"): it keeps its length, which matters less than the
/// packets in it.
fn stays(old: &Part, new: &Part) -> bool {
    matches!((old, new), (Part::Discipline(old), Part::Discipline(new)) if old.kind == "sfq" && new.kind == "sfq")
}

fn change(old: &Part, new: &Part) -> Option<Command> {
    match (old, new) {
        (Part::Class(old), Part::Class(new)) => {
            (old.handle == new.handle && old.parent == new.parent && old.device == new.device && old.kind == new.kind)
                .then(|| new.command("change"))
        }
        (Part::Discipline(old), Part::Discipline(new)) => {
            (old.handle == new.handle && old.parent == new.parent && old.device == new.device && old.kind == new.kind)
                .then(|| in_place(new).command("change"))
        }
        _ => None,
    }
}

/// What is fixed once a discipline stands: the kernel refuses to be told again how many flows it tells apart, even when
/// the number is the same (`fq_codel_change`, `fq_pie_change`).
const FIXED: &str = "flows";

fn in_place(discipline: &Discipline) -> Discipline {
    let mut options = discipline.options.clone();
    let counted = |pair: &[String]| pair[0] == FIXED && pair[1].bytes().all(|letter| letter.is_ascii_digit());
    if let Some(at) = options.windows(2).position(counted) {
        options.drain(at..at + 2);
    }
    Discipline { options, ..discipline.clone() }
}
