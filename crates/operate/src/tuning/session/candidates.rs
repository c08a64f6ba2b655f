//! Candidates of a group, and the choice among those that were tried.

use std::cmp::Reverse;

use linerate_model::change::ChangeGroup;
use linerate_model::direction::Direction;
use linerate_rules::tuning::{ProposedHostChange, TuningInputs, TuningObjective, TuningProposal, lid, tighten_cap};
use linerate_units::BitRate;

use super::TriedGroup;

/// Goodput with the changes of a candidate; `None` where no pair counts.
pub(super) fn reached(tried: &TriedGroup) -> Option<BitRate> {
    tried.judgement.goodput.as_ref().map(|effect| effect.after)
}

/// Index of the confirmed candidate to keep: among those that reach most, within the least gain of the goal, the one
/// with the shortest round trip under load.
pub(super) fn best_kept(objective: &TuningObjective, all: &[(TriedGroup, TuningProposal)]) -> Option<usize> {
    let kept = || all.iter().enumerate().filter(|(_, (tried, _))| tried.is_kept());
    let most = kept().filter_map(|(_, (tried, _))| reached(tried)).max()?;
    let is_near = |tried: &TriedGroup| reached(tried).is_some_and(|rate| is_nearly(objective, rate, most));
    let waits = |tried: &TriedGroup| tried.judgement.round_trip.as_ref().map(|effect| effect.after);
    let near = kept().filter(|(_, (tried, _))| is_near(tried));
    near.min_by_key(|(_, (tried, _))| (waits(tried), Reverse(reached(tried)))).map(|(index, _)| index)
}

/// Index of the candidate that reaches most of those that only fill the path's buffer; `None` where a confirmed one
/// reaches nearly as much.
pub(super) fn fullest(objective: &TuningObjective, all: &[(TriedGroup, TuningProposal)]) -> Option<usize> {
    let filling = all.iter().enumerate().filter(|(_, (tried, _))| tried.judgement.fills_the_path);
    let (index, (tried, _)) = filling.max_by_key(|(_, (tried, _))| reached(tried))?;
    let most = reached(tried)?;
    let mut kept = all.iter().filter(|(other, _)| other.is_kept());
    let is_reached = kept.any(|(other, _)| reached(other).is_some_and(|rate| is_nearly(objective, rate, most)));
    (!is_reached).then_some(index)
}

/// True when a rate is less than the least gain below another one.
fn is_nearly(objective: &TuningObjective, rate: BitRate, most: BitRate) -> bool {
    rate * (1.0 + objective.least_gain.get()) >= most
}

/// Changes of a candidate, for texts.
pub(super) fn changes_text(candidate: &TuningProposal, group: ChangeGroup) -> String {
    let changes = candidate.changes.iter().filter(|one| one.change.group == group);
    let one = |one: &ProposedHostChange| format!("{} {} = {}", one.end.name(), one.change.target, one.change.to);
    changes.map(one).collect::<Vec<_>>().join("; ")
}

/// Candidates of a group, tried until one is confirmed: as proposed, then with the other values.
pub(super) fn candidates(proposal: &TuningProposal, group: ChangeGroup) -> Vec<TuningProposal> {
    let mut all = vec![proposal.clone()];
    for (index, one) in proposal.changes.iter().enumerate().filter(|(_, one)| one.change.group == group) {
        for other in one.other_values() {
            let mut candidate = proposal.clone();
            candidate.changes[index].change = other.clone();
            all.push(candidate);
        }
    }
    all
}

/// Payload share of the path's IP capacity that counts as full: headers take up to a twentieth.
const FULL: f64 = 0.92;

/// True when the transfer fills the path with these changes, or the capacity is unknown.
pub(super) fn fills(tried: &TriedGroup, inputs: &TuningInputs) -> bool {
    let way = if inputs.data == Some(Direction::Down) { &inputs.path.back } else { &inputs.path.out };
    let share =
        tried.judgement.goodput.as_ref().zip(way.capacity).and_then(|(effect, capacity)| effect.after / capacity);
    share.is_none_or(|share| share.get() >= FULL)
}

/// Returns the candidate with a cap on the receive window; an existing cap is reduced by the excess of the round trip.
pub(super) fn with_smaller_window(
    candidate: &TuningProposal,
    tried: &TriedGroup,
    inputs: &TuningInputs,
) -> Option<TuningProposal> {
    let base = tried.pairs.iter().filter_map(|pair| pair.after.base_round_trip).min();
    let under_load = tried.judgement.round_trip.as_ref().map(|effect| effect.after);
    let (mut own, others): (Vec<ProposedHostChange>, Vec<ProposedHostChange>) =
        candidate.changes.iter().cloned().partition(|one| one.change.group == tried.group);
    if let Some(smaller) = base.zip(under_load).and_then(|(base, load)| tighten_cap(inputs, &own, base, load)) {
        own = smaller;
    } else {
        let lid = lid(inputs, tried.group)?;
        if own.iter().any(|one| one.end == lid.end && one.change.target == lid.change.target) {
            return None;
        }
        own.push(lid);
    }
    Some(TuningProposal { changes: own.into_iter().chain(others).collect(), ..candidate.clone() })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_rules::judge::{MeasurementPair, PairBudget, TransferMeasurement, TrialDesign, judge};
    use linerate_rules::tuning::TuningGoal;
    use linerate_units::Ratio;

    use super::*;

    fn measured(megabits: f64, milliseconds: u64) -> TransferMeasurement {
        TransferMeasurement {
            goodput: BitRate::from_bits_per_second(megabits * 1e6),
            round_trip_p95: Some(Duration::from_millis(milliseconds)),
            base_round_trip: Some(Duration::from_millis(20)),
            retransmitted: Some(Ratio::ZERO),
            processor: None,
            disturbed: None,
        }
    }

    /// Trial of a change from 100 Mbit/s at 20 ms to these figures.
    fn tried(megabits: f64, milliseconds: u64) -> (TriedGroup, TuningProposal) {
        let (objective, design) = (TuningGoal::WanBulk.objective(), TrialDesign::new(PairBudget::default(), 1));
        let pair = MeasurementPair::new(measured(100.0, 20), measured(megabits, milliseconds), false);
        let pairs = vec![pair; 8];
        let judgement = judge(&objective, &design, &pairs);
        let group = ChangeGroup::Features;
        (
            TriedGroup { group, changes: Vec::new(), pairs, design, judgement, allows_queue: false },
            TuningProposal::default(),
        )
    }

    /// SACK alone reached 99 % of 300 Mbit/s at 10 ms more, and was rolled back for a cap that reaches 71 %.
    #[test]
    fn a_full_path_is_preferred_over_a_cap_that_only_queues_less() {
        let objective = TuningGoal::WanBulk.objective();
        let (alone, capped, near) = (tried(297.0, 30), tried(213.0, 22), tried(290.0, 22));
        assert!(alone.0.judgement.fills_the_path && capped.0.is_kept() && near.0.is_kept());
        assert_eq!(fullest(&objective, &[alone, capped]), Some(0));
        assert_eq!(fullest(&objective, &[tried(297.0, 30), tried(213.0, 22), near]), None, "the cap is as good");
        assert_eq!(fullest(&objective, &[tried(213.0, 22)]), None);
        assert_eq!(fullest(&objective, &[tried(101.0, 30)]), None, "no gain");
    }

    #[test]
    fn the_best_candidate_reaches_most_then_queues_least() {
        let objective = TuningGoal::WanBulk.objective();
        let best = |all: &[(f64, u64)]| {
            let all: Vec<_> = all.iter().map(|(rate, time)| tried(*rate, *time)).collect();
            best_kept(&objective, &all)
        };
        assert_eq!(best(&[(213.0, 21), (290.0, 24)]), Some(1), "more, within the limit");
        assert_eq!(best(&[(290.0, 24), (285.0, 21)]), Some(1), "nearly as much, with a shorter queue");
        assert_eq!(best(&[(100.0, 20), (297.0, 40)]), None, "neither is kept");
    }
}
