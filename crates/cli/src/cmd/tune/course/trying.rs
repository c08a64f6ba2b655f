//! Trying: candidates of a group, one after the other, measured without and with in turn, and the best of them.

use std::collections::VecDeque;

use linerate_engine::client::ClientOptions;
use linerate_engine::diagnose::{self, DiagnoseOptions, PathSource};
use linerate_model::change::Group;
use linerate_model::parameters::TestParameters;
use linerate_model::statistics::Bootstrap;
use linerate_rules::judge::{self, Decision, Measurement, Pair};
use linerate_rules::tuning::{Data, Inputs, Proposal, Proposed, lid, tightened};
use linerate_sys::clock;

use super::super::{document, measure};
use super::{Course, CourseEvent, Failure, PAUSE, Tried};

/// After so many transfers in a row that came to nothing, the path is not there to be measured.
const MOST_FAILURES: usize = 3;

/// So often a window is made smaller because a path's own buffer filled up.
const MOST_TIGHTENINGS: usize = 3;

impl Course<'_> {
    pub(super) fn try_groups(
        &mut self,
        groups: &[Group],
        proposal: &Proposal,
        inputs: &Inputs,
    ) -> Result<Vec<Tried>, Failure> {
        let mut tried = Vec::new();
        for group in groups {
            // What an earlier group has in force already stays as it is.
            let mut proposal = proposal.clone();
            proposal.changes.retain(|one| !self.in_force.contains(&(one.end, one.change.target.clone())));
            if proposal.groups().contains(group) {
                tried.extend(self.try_candidates(*group, &proposal, inputs)?);
            }
        }
        Ok(tried)
    }

    /// One candidate after the other, until one earns its keep and fills the path, or there is none left: then the best of
    /// those that earned it stays.
    pub(super) fn try_candidates(
        &mut self,
        group: Group,
        proposal: &Proposal,
        inputs: &Inputs,
    ) -> Result<Vec<Tried>, Failure> {
        let mut candidates: VecDeque<Proposal> = candidates(proposal, group).into();
        let mut all: Vec<(Tried, Proposal)> = Vec::new();
        let mut tightenings = 0;
        while let Some(candidate) = candidates.pop_front() {
            let begun = self.begun();
            let one = match self.try_group(group, &candidate, inputs) {
                // What cannot be tried beside the first choice is no reason to lose what has been proven, as long as both
                // ends are there, and as they were.
                Err(failure) if !all.is_empty() && self.stop.pending().is_none() && self.begun() == begun => {
                    self.take_back(group)?;
                    self.guide.event(CourseEvent::Note(format!("not tried: {}", failure.text)));
                    continue;
                }
                outcome => outcome?,
            };
            self.guide.event(CourseEvent::Judged(&one));
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
        self.settle(group, all, inputs)
    }

    /// Has the best of what earned its keep in force, and says of the others that it did better.
    pub(super) fn settle(
        &mut self,
        group: Group,
        all: Vec<(Tried, Proposal)>,
        inputs: &Inputs,
    ) -> Result<Vec<Tried>, Failure> {
        let goodput = |tried: &Tried| tried.judgement.goodput.as_ref().map(|effect| effect.after);
        let kept = all.iter().enumerate().filter(|(_, (tried, _))| tried.is_kept());
        let best = kept.max_by_key(|(_, (tried, _))| goodput(tried)).map(|(index, _)| index);
        if let Some(best) = best {
            let (tried, candidate) = &all[best];
            let each = measure::length(&measure::transfer(&self.settings.transfer, inputs));
            if best + 1 < all.len() {
                self.plan(group, candidate, each)?;
            }
            self.apply(group, each)?;
            self.in_force.extend(tried.changes.iter().map(|one| (one.end, one.change.target.clone())));
        }
        let told = |(index, (mut tried, _)): (usize, (Tried, Proposal))| {
            if tried.is_kept() && best != Some(index) {
                tried.judgement.decision = Decision::RollBack;
                tried.judgement.sentence = format!("Another choice did better. {}", tried.judgement.sentence);
            }
            tried
        };
        Ok(all.into_iter().enumerate().map(told).collect())
    }

    /// Measures without and with a group of changes in turn. Afterwards it is not in force.
    pub(super) fn try_group(&mut self, group: Group, proposal: &Proposal, inputs: &Inputs) -> Result<Tried, Failure> {
        self.guide.event(CourseEvent::Trying { group, proposal });
        let parameters = measure::transfer(&self.settings.transfer, inputs);
        let each = measure::length(&parameters);
        self.plan(group, proposal, each)?;
        let changes = document::changes_text(proposal, group);
        let known = self.settings.measured.iter().find(|known| known.changes == changes);
        let mut pairs = known.map_or_else(Vec::new, |known| known.pairs.clone());
        let objective = self.settings.goal.objective();
        let bootstrap = Bootstrap::with_seed(self.settings.seed);
        let mut failures = 0;
        while judge::more_pairs_needed(&objective, &pairs, self.settings.budget, &bootstrap) {
            let number = pairs.len() + 1;
            let before = self.measure(&parameters, number, false)?;
            self.apply(group, each)?;
            let after = self.measure(&parameters, number, true);
            self.take_back(group)?;
            let after = after?;
            failures = if before.is_some() && after.is_some() { 0 } else { failures + 1 };
            if failures >= MOST_FAILURES {
                return Err(Failure::of("several transfers in a row came to nothing: the far end or the path is gone"));
            }
            pairs.push(Pair { before: or_nothing(before), after: or_nothing(after) });
            self.guide.event(CourseEvent::Pairs { changes: &changes, pairs: &pairs });
        }
        let judgement = judge::judge(&objective, &pairs, &bootstrap);
        let changes: Vec<Proposed> = proposal.changes.iter().filter(|one| one.change.group == group).cloned().collect();
        if judgement.decision != Decision::Keep {
            self.refuted.extend(changes.iter().map(document::change_text));
        }
        Ok(Tried { group, changes, pairs, judgement })
    }

    pub(super) fn measure(
        &mut self,
        parameters: &TestParameters,
        pair: usize,
        with: bool,
    ) -> Result<Option<Measurement>, Failure> {
        self.go_on()?;
        self.renew(measure::length(parameters))?;
        self.forget_metrics();
        clock::sleep_until(clock::monotonic_now() + PAUSE);
        let path = self.path.clone().map_or(PathSource::Unknown, |path| PathSource::Known(Box::new(path)));
        let transfer = ClientOptions::new(&self.settings.target, parameters.clone(), None);
        let guide = &mut *self.guide;
        let outcome = diagnose::run(&DiagnoseOptions { path, transfer }, Some(self.stop), &mut |event| {
            guide.event(CourseEvent::Transfer(&event));
        });
        self.go_on()?;
        let measurement = measure::measurement(&outcome);
        self.guide.event(CourseEvent::Measured { pair, with });
        Ok(measurement)
    }
}

/// What is tried of a group, one after the other until something earns its keep: as proposed, then with the other values.
fn candidates(proposal: &Proposal, group: Group) -> Vec<Proposal> {
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

/// From this share of what the path carries in IP packets on, its payload fills it: headers take up to a twentieth.
const FULL: f64 = 0.92;

/// Whether the transfer has with these changes what the path carries; where that is not known, it counts as full.
fn fills(tried: &Tried, inputs: &Inputs) -> bool {
    let way = if inputs.data == Data::FromFar { &inputs.path.back } else { &inputs.path.out };
    let share =
        tried.judgement.goodput.as_ref().zip(way.capacity).and_then(|(effect, capacity)| effect.after / capacity);
    share.is_none_or(|share| share.get() >= FULL)
}

/// The same with a lid on the window; where there is one already, with one that is as much smaller as the round trip was
/// too long.
fn with_smaller_window(candidate: &Proposal, tried: &Tried, inputs: &Inputs) -> Option<Proposal> {
    let base = tried.pairs.iter().filter_map(|pair| pair.after.base_round_trip).min();
    let under_load = tried.judgement.round_trip.as_ref().map(|effect| effect.after);
    let (mut own, others): (Vec<Proposed>, Vec<Proposed>) =
        candidate.changes.iter().cloned().partition(|one| one.change.group == tried.group);
    if let Some(smaller) = base.zip(under_load).and_then(|(base, load)| tightened(inputs, &own, base, load)) {
        own = smaller;
    } else {
        let lid = lid(inputs, tried.group)?;
        if own.iter().any(|one| one.end == lid.end && one.change.target == lid.change.target) {
            return None;
        }
        own.push(lid);
    }
    Some(Proposal { changes: own.into_iter().chain(others).collect(), ..candidate.clone() })
}

fn or_nothing(measurement: Option<Measurement>) -> Measurement {
    let nothing = || Measurement { disturbed: Some("no transfer came about".to_owned()), ..Measurement::default() };
    measurement.unwrap_or_else(nothing)
}
