//! Trials: candidates of a group in order, measured without and with the changes in turn, and the best of them.

use std::collections::VecDeque;

use linerate_engine::client::ClientOptions;
use linerate_engine::diagnose::{self, DiagnoseOptions, PathSource};
use linerate_model::change::ChangeGroup;
use linerate_model::parameters::TestParameters;
use linerate_rules::judge::{self, MeasurementPair, TransferMeasurement, TrialDecision, TrialDesign};
use linerate_rules::tuning::{ProposedHostChange, TuningInputs, TuningObjective, TuningProposal, TuningRefusal};
use linerate_sys::clock;

use super::super::document::ChangeIdentity;
use super::super::measure;
use super::candidates::{best_kept, candidates, changes_text, fills, fullest, reached, with_smaller_window};
use super::{TRANSFER_PAUSE, TriedGroup, TuningEvent, TuningFailure, TuningSession};

/// Consecutive failed transfers after which the path counts as gone.
const MOST_FAILURES: usize = 3;

/// Maximum number of window reductions for a filled path buffer.
const MOST_TIGHTENINGS: usize = 3;

impl TuningSession<'_> {
    pub(super) fn try_groups(
        &mut self,
        groups: &[ChangeGroup],
        proposal: &TuningProposal,
        inputs: &TuningInputs,
    ) -> Result<Vec<TriedGroup>, TuningFailure> {
        let mut tried = Vec::new();
        for group in groups {
            // Changes in effect from an earlier group stay.
            let mut proposal = proposal.clone();
            proposal.changes.retain(|one| !self.in_force.contains(&(one.end, one.change.target.clone())));
            if proposal.groups().contains(group) {
                tried.extend(self.try_candidates(*group, &proposal, inputs)?);
            }
        }
        Ok(tried)
    }

    /// Tries candidates until one is confirmed and fills the path, or none is left; then keeps the best confirmed one
    /// in effect.
    pub(super) fn try_candidates(
        &mut self,
        group: ChangeGroup,
        proposal: &TuningProposal,
        inputs: &TuningInputs,
    ) -> Result<Vec<TriedGroup>, TuningFailure> {
        let mut candidates: VecDeque<TuningProposal> = candidates(proposal, group).into();
        let mut all: Vec<(TriedGroup, TuningProposal)> = Vec::new();
        let mut tightenings = 0;
        while let Some(candidate) = candidates.pop_front() {
            let begun = self.begun();
            let one = match self.try_group(group, &candidate, inputs) {
                // A failing alternative does not discard confirmed changes, as long as both ends are available and
                // unchanged.
                Err(failure) if !all.is_empty() && self.stop.pending().is_none() && self.begun() == begun => {
                    self.take_back(group)?;
                    self.refuse_candidate(group, &candidate, &failure);
                    continue;
                }
                // Such as a congestion control that the kernel cannot load. A lost host is no longer on trial.
                Err(failure) if failure.is_refused && self.stop.pending().is_none() && self.are_planned_on_trial() => {
                    self.take_back(group)?;
                    self.refuse_candidate(group, &candidate, &failure);
                    continue;
                }
                outcome => outcome?,
            };
            self.guide.event(TuningEvent::Judged(&one));
            if one.judgement.fills_the_path
                && tightenings < MOST_TIGHTENINGS
                && let Some(smaller) = with_smaller_window(&candidate, &one, inputs)
            {
                tightenings += 1;
                candidates.push_front(smaller);
            }
            let is_enough = one.is_kept() && fills(&one, inputs);
            all.push((one, candidate));
            if is_enough {
                break;
            }
        }
        self.allow_queue(group, &mut all, inputs)?;
        self.settle(group, all, inputs)
    }

    /// Reports a candidate that could not be applied, with the reason, and does not propose it again.
    fn refuse_candidate(&mut self, group: ChangeGroup, candidate: &TuningProposal, failure: &TuningFailure) {
        let identities = ChangeIdentity::of_group(candidate, group);
        let text = format!("Not tried: {}: {}.", changes_text(candidate, group), failure.text.trim_end_matches('.'));
        self.refuted.extend(identities);
        self.guide.event(TuningEvent::Note(text.clone()));
        self.refused.push(TuningRefusal { rule: None, end: None, cause: candidate.cause, text });
    }

    /// Judges the candidate that reaches most again, where only its queue was against it and no other one reaches
    /// nearly as much: bulk goals allow that queue for a larger gain.
    fn allow_queue(
        &mut self,
        group: ChangeGroup,
        all: &mut [(TriedGroup, TuningProposal)],
        inputs: &TuningInputs,
    ) -> Result<(), TuningFailure> {
        let objective = self.settings.goal.objective();
        let Some((index, with_queue)) = fullest(&objective, all).zip(objective.with_queue()) else { return Ok(()) };
        let (tried, candidate) = &all[index];
        let parameters = measure::transfer(&self.settings.transfer, inputs);
        self.guide.event(TuningEvent::Note(format!(
            "No cap on the window reaches as much as {}: judged with its queue, which the goal {} allows for a larger \
             gain.",
            changes_text(candidate, group),
            self.settings.goal.name()
        )));
        self.plan(group, candidate, measure::length(&parameters))?;
        let changes = ChangeIdentity::of_group(candidate, group);
        let (design, mut pairs) = (tried.design, tried.pairs.clone());
        self.measure_pairs(group, &parameters, &changes, (&with_queue, &design), &mut pairs)?;
        let judgement = judge::judge(&with_queue, &design, &pairs);
        let tried = &mut all[index].0;
        if judgement.decision == TrialDecision::Keep {
            self.refuted.retain(|one| !changes.contains(one));
        }
        (tried.pairs, tried.judgement, tried.allows_queue) = (pairs, judgement, true);
        self.guide.event(TuningEvent::Judged(tried));
        Ok(())
    }

    /// Applies the best confirmed candidate, and marks the others as outperformed.
    pub(super) fn settle(
        &mut self,
        group: ChangeGroup,
        mut all: Vec<(TriedGroup, TuningProposal)>,
        inputs: &TuningInputs,
    ) -> Result<Vec<TriedGroup>, TuningFailure> {
        let best = best_kept(&self.settings.goal.objective(), &all);
        let others = all.iter().enumerate().filter(|(index, (tried, _))| tried.is_kept() && best != Some(*index));
        let runner_up = others.map(|(_, (tried, _))| tried).max_by_key(|tried| reached(tried));
        let printed = best.zip(runner_up).map(|(best, runner_up)| {
            let tried = &all[best].0;
            let objective = self.settings.goal.objective();
            let objective = objective.with_queue().filter(|_| tried.allows_queue).unwrap_or(objective);
            (best, judge::judge_best(&objective, &tried.design, &tried.pairs, &runner_up.judgement))
        });
        if let Some((best, judgement)) = printed {
            all[best].0.judgement = judgement;
        }
        if let Some(best) = best {
            let (tried, candidate) = &all[best];
            let each = measure::length(&measure::transfer(&self.settings.transfer, inputs));
            self.plan(group, candidate, each)?;
            self.apply(group, each)?;
            self.in_force.extend(tried.changes.iter().map(|one| (one.end, one.change.target.clone())));
        }
        let told = |(index, (mut tried, _)): (usize, (TriedGroup, TuningProposal))| {
            if tried.is_kept() && best != Some(index) {
                tried.judgement.decision = TrialDecision::RollBack;
                tried.judgement.sentence = format!(
                    "Another candidate reaches more, or nearly as much with a shorter queue. {}",
                    tried.judgement.sentence
                );
            }
            tried
        };
        Ok(all.into_iter().enumerate().map(told).collect())
    }

    /// Measures without and with a group of changes, in random order within each pair. Afterwards it is not in effect.
    pub(super) fn try_group(
        &mut self,
        group: ChangeGroup,
        proposal: &TuningProposal,
        inputs: &TuningInputs,
    ) -> Result<TriedGroup, TuningFailure> {
        self.guide.event(TuningEvent::Trying { group, proposal });
        let parameters = measure::transfer(&self.settings.transfer, inputs);
        let each = measure::length(&parameters);
        self.plan(group, proposal, each)?;
        let changes = ChangeIdentity::of_group(proposal, group);
        let known = self.settings.measured.iter().find(|known| known.changes == changes);
        let mut pairs = known.map_or_else(Vec::new, |known| known.pairs.clone());
        let objective = self.settings.goal.objective();
        self.candidates += 1;
        let design = TrialDesign { budget: self.settings.budget, candidate: self.candidates, seed: self.settings.seed };
        self.measure_pairs(group, &parameters, &changes, (&objective, &design), &mut pairs)?;
        let judgement = judge::judge(&objective, &design, &pairs);
        let changes: Vec<ProposedHostChange> =
            proposal.changes.iter().filter(|one| one.change.group == group).cloned().collect();
        if judgement.decision != TrialDecision::Keep {
            self.refuted.extend(changes.iter().map(ChangeIdentity::from));
        }
        Ok(TriedGroup { group, changes, pairs, design, judgement, allows_queue: false })
    }

    /// Measures pairs until a decision is possible, or the budget is spent.
    fn measure_pairs(
        &mut self,
        group: ChangeGroup,
        parameters: &TestParameters,
        changes: &[ChangeIdentity],
        (objective, design): (&TuningObjective, &TrialDesign),
        pairs: &mut Vec<MeasurementPair>,
    ) -> Result<(), TuningFailure> {
        let mut failures = 0;
        while judge::more_pairs_needed(objective, design, pairs) {
            let changed_first = design.is_changed_first(pairs.len());
            let (before, after) = self.measure_pair(group, parameters, pairs.len() + 1, changed_first)?;
            failures = if before.is_some() && after.is_some() { 0 } else { failures + 1 };
            if failures >= MOST_FAILURES {
                return Err(TuningFailure::of("several consecutive transfers failed: the far end or the path is gone"));
            }
            pairs.push(MeasurementPair::new(or_nothing(before), or_nothing(after), changed_first));
            self.guide.event(TuningEvent::Pairs { changes, pairs });
        }
        Ok(())
    }

    /// Measures one pair: without the changes, and with them.
    fn measure_pair(
        &mut self,
        group: ChangeGroup,
        parameters: &TestParameters,
        pair: usize,
        changed_first: bool,
    ) -> Result<(Option<TransferMeasurement>, Option<TransferMeasurement>), TuningFailure> {
        let early = if changed_first { None } else { Some(self.measure(parameters, pair, false)?) };
        self.apply(group, measure::length(parameters))?;
        let after = self.measure(parameters, pair, true);
        self.take_back(group)?;
        let after = after?;
        let before = match early {
            Some(before) => before,
            None => self.measure(parameters, pair, false)?,
        };
        Ok((before, after))
    }

    pub(super) fn measure(
        &mut self,
        parameters: &TestParameters,
        pair: usize,
        with: bool,
    ) -> Result<Option<TransferMeasurement>, TuningFailure> {
        self.check_interrupt()?;
        self.renew(measure::length(parameters))?;
        self.forget_metrics();
        clock::sleep_until(clock::monotonic_now() + TRANSFER_PAUSE);
        let path = self.path.clone().map_or(PathSource::Unknown, |path| PathSource::Known(Box::new(path)));
        let transfer = ClientOptions::new(&self.settings.target, parameters.clone(), None);
        let guide = &mut *self.guide;
        guide.event(TuningEvent::Measuring { pair, with });
        let outcome = diagnose::run(&DiagnoseOptions { path, transfer }, Some(self.stop), &mut |event| {
            guide.event(TuningEvent::Transfer(&event));
        });
        self.check_interrupt()?;
        Ok(measure::measurement(&outcome))
    }
}

fn or_nothing(measurement: Option<TransferMeasurement>) -> TransferMeasurement {
    let nothing = || TransferMeasurement {
        disturbed: Some("no transfer took place".to_owned()),
        ..TransferMeasurement::default()
    };
    measurement.unwrap_or_else(nothing)
}
