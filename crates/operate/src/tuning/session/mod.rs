//! Tuning session: explain, propose, try and judge, repeated until no host setting limits.
//!
//! Nothing is printed here: a [`TuningInterface`] receives events and is asked before a host is changed. On any early end,
//! everything tried is rolled back.

mod candidates;
mod hosts;
mod outcome;
mod trials;

use std::time::Duration;

use linerate_engine::client::ClientOptions;
use linerate_engine::diagnose::{self, DiagnoseOptions, PathSource};
use linerate_engine::path::PathOutcome;
use linerate_model::change::{self, ChangeGroup};
use linerate_model::diagnosis::{Cause, CauseLocation};
use linerate_model::direction::Direction;
use linerate_model::path::PathDocument;
use linerate_rules::diagnosis;
use linerate_rules::judge::{PairBudget, TransferMeasurement};
use linerate_rules::tuning::comparison::{GuideComparison, rhel_guide};
use linerate_rules::tuning::{
    HostEnd, ProposedHostChange, TuningHost, TuningInputs, TuningProposal, TuningRefusal, plan,
};
use linerate_sys::signals::InterruptSignals;

pub use outcome::{
    ComparisonMode, DiagnosedTransfer, MeasuredPairs, TrialConsent, TrialCost, TriedGroup, TuningEnd, TuningEvent,
    TuningFailure, TuningInterface, TuningOutcome, TuningRound, TuningSettings,
};

use super::document::ChangeIdentity;
use super::measure;
use super::tuned_host::{ConnectionAddresses, TunedHost};
use crate::diagnose::path_options;

/// Maximum number of causes removed in one session.
const MAX_ROUNDS: usize = 5;

/// Pause between two transfers, for the path to drain.
const TRANSFER_PAUSE: Duration = Duration::from_secs(1);

/// A tuning session.
pub(crate) struct TuningSession<'a> {
    settings: &'a TuningSettings,
    near: &'a mut dyn TunedHost,
    far: Option<&'a mut dyn TunedHost>,
    guide: &'a mut dyn TuningInterface,
    stop: InterruptSignals,
    path: Option<PathDocument>,
    interrupted_path: Option<PathOutcome>,
    connection: Option<ConnectionAddresses>,
    /// Rejected changes. Those of an earlier state of the hosts may be tried again.
    refuted: Vec<ChangeIdentity>,
    /// Candidates that a host refused since the last round.
    refused: Vec<TuningRefusal>,
    /// Targets of confirmed changes.
    in_force: Vec<(HostEnd, change::ChangeTarget)>,
    /// Ends with changes in the current plan.
    ends: Vec<HostEnd>,
    /// Notes for the user, each once.
    notes: Vec<String>,
    touched: bool,
    dry_run: bool,
    /// Number of candidates tried so far.
    candidates: u32,
}

impl<'a> TuningSession<'a> {
    /// Creates a session with these two ends.
    pub(crate) fn new(
        settings: &'a TuningSettings,
        near: &'a mut dyn TunedHost,
        far: Option<&'a mut dyn TunedHost>,
        guide: &'a mut dyn TuningInterface,
        stop: InterruptSignals,
        dry_run: bool,
    ) -> Self {
        let path = settings.path.clone();
        Self {
            settings,
            near,
            far,
            guide,
            stop,
            path,
            interrupted_path: None,
            connection: None,
            refuted: Vec::new(),
            refused: Vec::new(),
            in_force: Vec::new(),
            ends: Vec::new(),
            notes: Vec::new(),
            touched: false,
            dry_run,
            candidates: 0,
        }
    }

    /// Runs the session. Confirmed changes are in effect, but not kept yet: see [`keep`](Self::keep).
    pub(crate) fn run(&mut self) -> TuningOutcome {
        let mut outcome = TuningOutcome {
            ended: TuningEnd::BrokenOff,
            before: None,
            interrupted_path: None,
            rounds: Vec::new(),
            after: None,
            failure: None,
            left: Vec::new(),
            notes: Vec::new(),
            touched: false,
            compared: None,
        };
        match self.rounds(&mut outcome) {
            Ok(ended) => outcome.ended = ended,
            // Without the signal, what it ended at the other end would look like an error of that.
            Err(failure) => {
                let signal = failure.signal.or_else(|| self.stop.pending());
                outcome.failure = Some(TuningFailure { signal, ..failure });
            }
        }
        outcome.interrupted_path = self.interrupted_path.take().filter(|_| outcome.before.is_none());
        if outcome.ended == TuningEnd::Kept && !self.is_confirmed(&outcome) {
            outcome.ended = TuningEnd::NotConfirmed;
        }
        if outcome.ended != TuningEnd::Kept {
            let reason = match (&outcome.failure, outcome.ended) {
                (Some(failure), _) => failure.text.clone(),
                (None, TuningEnd::NotConfirmed) => "not confirmed".to_owned(),
                (None, _) => "not confirmed by measurement".to_owned(),
            };
            outcome.left = self.roll_back(&reason);
        }
        outcome.touched = self.touched;
        outcome.notes = core::mem::take(&mut self.notes);
        outcome
    }

    fn is_confirmed(&mut self, outcome: &TuningOutcome) -> bool {
        // The last trials suffice for the decision.
        outcome
            .rounds
            .iter()
            .rev()
            .find(|round| !round.tried.is_empty())
            .is_none_or(|round| self.guide.confirms(&round.tried))
    }

    fn rounds(&mut self, outcome: &mut TuningOutcome) -> Result<TuningEnd, TuningFailure> {
        for _ in 0..MAX_ROUNDS {
            let seen = self.diagnose()?;
            let inputs = self.inputs(&seen)?;
            let proposals = self.filtered_plan(&inputs, &seen);
            let is_first = outcome.before.is_none();
            let has_changes = proposals.iter().any(|proposal| !proposal.is_empty());
            let shown = merged(&proposals);
            if is_first || has_changes {
                self.guide.event(TuningEvent::Proposed(&shown));
            }
            let next = self.decide_round(&seen, &proposals, &inputs, is_first);
            if is_first {
                outcome.compared = self.compare(&inputs, matches!(next, RoundDecision::Try))?;
            }
            *(if is_first { &mut outcome.before } else { &mut outcome.after }) = Some(seen);
            if let RoundDecision::End(ended) = next {
                if is_first || has_changes {
                    let untried = |proposal| TuningRound { proposal, tried: Vec::new() };
                    outcome.rounds.extend(planned_only(proposals).map(untried));
                }
                return Ok(if is_first { ended } else { TuningEnd::Kept });
            }
            let (was_tried, has_gained) = self.try_proposals(proposals, &inputs, &mut outcome.rounds)?;
            if !has_gained {
                return Ok(match (is_first, was_tried) {
                    (true, true) => TuningEnd::RolledBack,
                    (true, false) => TuningEnd::NoWay,
                    (false, _) => TuningEnd::Kept,
                });
            }
            // With a cause removed, another change may gain what it did not before.
            self.refuted.clear();
        }
        Ok(TuningEnd::Kept)
    }

    /// Tries one cause after the other, and their combination, until a change is kept: the remaining limit is measured
    /// then. Returns whether anything was tried, and whether anything is kept.
    fn try_proposals(
        &mut self,
        proposals: Vec<TuningProposal>,
        inputs: &TuningInputs,
        rounds: &mut Vec<TuningRound>,
    ) -> Result<(bool, bool), TuningFailure> {
        let (mut was_tried, mut has_gained) = (false, false);
        for mut proposal in proposals {
            let groups: Vec<ChangeGroup> =
                proposal.groups().into_iter().filter(|group| self.is_changeable(&proposal, *group, inputs)).collect();
            if has_gained {
                break;
            }
            let tried = self.try_groups(&groups, &proposal, inputs)?;
            was_tried |= !tried.is_empty();
            has_gained = tried.iter().any(TriedGroup::is_kept);
            proposal.refusals.append(&mut self.refused);
            rounds.push(TuningRound { proposal, tried });
        }
        Ok((was_tried, has_gained))
    }

    /// Returns the proposals of the plan that may be tried; at least one, which has the reasons where it is empty.
    fn filtered_plan(&self, inputs: &TuningInputs, seen: &DiagnosedTransfer) -> Vec<TuningProposal> {
        let plan = plan(inputs).into_iter();
        let mut proposals: Vec<TuningProposal> =
            plan.map(|proposal| self.filter_proposal(proposal, inputs, seen)).collect();
        let refusals: Vec<TuningRefusal> =
            proposals.iter_mut().skip(1).flat_map(|proposal| core::mem::take(&mut proposal.refusals)).collect();
        let mut rest = proposals.split_off(1);
        rest.retain(|proposal| !proposal.is_empty());
        if let Some(first) = proposals.first_mut() {
            let new = |refusal: &TuningRefusal| !first.refusals.iter().any(|known| known.text == refusal.text);
            let new: Vec<TuningRefusal> = refusals.into_iter().filter(new).collect();
            first.refusals.extend(new);
        }
        if proposals[0].is_empty() && !rest.is_empty() {
            let reasons = core::mem::take(&mut proposals[0].refusals);
            rest[0].refusals.splice(0..0, reasons);
            return rest;
        }
        proposals.extend(rest);
        proposals
    }

    /// Measures a transfer and explains it.
    fn diagnose(&mut self) -> Result<DiagnosedTransfer, TuningFailure> {
        self.check_interrupt()?;
        let options = DiagnoseOptions {
            path: match &self.path {
                Some(path) => PathSource::Known(Box::new(path.clone())),
                None => PathSource::Measure(Box::new(path_options(self.settings.target.clone(), true))),
            },
            transfer: ClientOptions::new(&self.settings.target, self.settings.transfer.clone(), None),
        };
        self.renew(measure::length(&self.settings.transfer))?;
        self.forget_metrics();
        let begun = crate::diagnose::RunStart::now();
        let guide = &mut *self.guide;
        let outcome =
            diagnose::run(&options, Some(self.stop), &mut |event| guide.event(TuningEvent::Diagnosing(&event)));
        if let Err(failure) = self.check_interrupt() {
            self.interrupted_path = outcome.path;
            return Err(failure);
        }
        if let Some(path) = &outcome.path {
            self.path = Some(path.document.clone());
        }
        let connection = outcome.addresses.map(|(own, peer)| ConnectionAddresses { own, peer });
        self.connection = connection.or(self.connection);
        let Some(observation) = &outcome.observation else {
            let reason = |error: &linerate_engine::Error| {
                let text = error.advice().map_or_else(|| error.to_string(), str::to_owned);
                let has_advice = text.contains("`linerate serve`");
                let advice = "\nRun `linerate serve` on the far end, or an iperf3 server (fewer figures).";
                if has_advice { text } else { text + advice }
            };
            return Err(TuningFailure::of(
                outcome.error.as_ref().map_or_else(|| "no transfer took place".to_owned(), reason),
            ));
        };
        let diagnosis = diagnosis::diagnose(observation);
        let seen = DiagnosedTransfer { outcome, diagnosis, begun };
        self.guide.event(TuningEvent::Diagnosed(&seen));
        Ok(seen)
    }

    fn inputs(&mut self, seen: &DiagnosedTransfer) -> Result<TuningInputs, TuningFailure> {
        let near = self.near.describe(self.connection)?;
        let far: Option<TuningHost> = match &mut self.far {
            Some(far) => Some(far.describe(self.connection.map(ConnectionAddresses::at_peer))?),
            None => None,
        };
        self.note_unreadable(&near, far.as_ref());
        let Some(observation) = &seen.outcome.observation else {
            return Err(TuningFailure::of("no transfer took place"));
        };
        let mut inputs =
            TuningInputs::from_measurement(self.settings.goal, (near, far), observation, seen.diagnosis.clone());
        inputs.one_kernel = self.settings.one_kernel;
        inputs.flows = self.settings.flows.or(inputs.flows);
        Ok(inputs)
    }

    fn note_unreadable(&mut self, near: &TuningHost, far: Option<&TuningHost>) {
        for (end, host) in [(HostEnd::Near, Some(near)), (HostEnd::Far, far)] {
            for text in host.iter().flat_map(|host| &host.unreadable) {
                self.note(format!("{} host: no change is proposed for {text}", end.name()));
            }
        }
    }

    /// Shows a note, unless it has been shown.
    fn note(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.guide.event(TuningEvent::Note(text.clone()));
            self.notes.push(text);
        }
    }

    /// Removes changes that must not or cannot be tried, each with the reason.
    fn filter_proposal(
        &self,
        mut proposal: TuningProposal,
        inputs: &TuningInputs,
        seen: &DiagnosedTransfer,
    ) -> TuningProposal {
        let cause = proposal.cause.or(seen.cause());
        let refuse = |text: String, end| TuningRefusal { rule: None, end, cause, text };
        if proposal.lives_with_the_path() && !self.settings.work_around {
            let offers: Vec<String> =
                proposal.changes.iter().map(|one| format!("{} = {}", one.change.target, one.change.to)).collect();
            let text = format!(
                "The cause is on the path, and is best removed there. Work-arounds on a host: {}; --work-around tries \
                 them.",
                offers.join(", ")
            );
            proposal.changes.clear();
            proposal.refusals.push(refuse(text, None));
        }
        // Several changes together may gain what each alone did not.
        proposal.changes.retain(|one| proposal.is_combination || !self.refuted.contains(&one.into()));
        // A confirmed value is not replaced by another one in the same run.
        let is_kept = |one: &ProposedHostChange| self.in_force.contains(&(one.end, one.change.target.clone()));
        let kept: Vec<ProposedHostChange> = proposal.changes.extract_if(.., |one| is_kept(one)).collect();
        proposal.refusals.extend(kept.iter().map(|one| {
            let text = format!(
                "{} was already changed in this run; another run would try {}.",
                one.change.target, one.change.to
            );
            refuse(text, Some(one.end))
        }));
        let out_of_reach = proposal.groups().into_iter().filter(|group| !self.is_changeable(&proposal, *group, inputs));
        let refusals: Vec<TuningRefusal> = out_of_reach
            .flat_map(|group| proposal.changes_of(HostEnd::Far, Some(group)))
            .filter(|_| !self.dry_run)
            .map(|change| {
                let text = format!(
                    "{} = {} on the far host is not tried: linerate changes it only over your own ssh (--far \
                     ssh:USER@HOST).",
                    change.target, change.to
                );
                refuse(text, Some(HostEnd::Far))
            })
            .collect();
        proposal.refusals.extend(refusals);
        proposal
    }

    /// Decides whether to try, and which groups.
    fn decide_round(
        &mut self,
        seen: &DiagnosedTransfer,
        proposals: &[TuningProposal],
        inputs: &TuningInputs,
        is_first: bool,
    ) -> RoundDecision {
        if proposals.iter().all(TuningProposal::is_empty) {
            let is_of_a_host = seen.cause().is_some_and(Cause::is_of_a_host);
            return RoundDecision::End(if is_of_a_host { TuningEnd::NoWay } else { TuningEnd::NothingToDo });
        }
        let changeable = |proposal: &TuningProposal| {
            let groups = proposal.groups().into_iter();
            groups.filter(|group| self.is_changeable(proposal, *group, inputs)).count()
        };
        let trials: usize = proposals.iter().map(changeable).sum();
        if self.dry_run || trials == 0 {
            return RoundDecision::End(TuningEnd::Planned);
        }
        // Consent to the first plan covers the following rounds.
        if is_first {
            let (shown, effort) = (merged(proposals), self.effort(trials, inputs));
            match self.guide.consents(seen, &shown, &effort) {
                TrialConsent::Yes => {}
                TrialConsent::No => return RoundDecision::End(TuningEnd::Declined),
                TrialConsent::NoTerminal => return RoundDecision::End(TuningEnd::Planned),
            }
        }
        RoundDecision::Try
    }

    /// Compares with a well-known tuning guide where windows limit. With consent, it is tried for one measurement.
    fn compare(
        &mut self,
        inputs: &TuningInputs,
        may_try: bool,
    ) -> Result<Option<(GuideComparison, Option<TransferMeasurement>)>, TuningFailure> {
        let windows = matches!(inputs.cause(), Some(Cause::ReceiveWindow | Cause::SendBuffer));
        let wanted = self.settings.compare != ComparisonMode::No && windows;
        let Some(mut comparison) = wanted.then(|| rhel_guide(inputs)).flatten() else { return Ok(None) };
        let reachable = |one: &ProposedHostChange| one.end == HostEnd::Near || self.far.is_some();
        comparison.changes.retain(|one| reachable(one) && one.change.from.as_ref() != Some(&one.change.to));
        if self.settings.compare != ComparisonMode::Measure || !may_try || comparison.changes.is_empty() {
            return Ok(Some((comparison, None)));
        }
        let parameters = measure::transfer(&self.settings.transfer, inputs);
        let each = measure::length(&parameters);
        let proposal = TuningProposal { changes: comparison.changes.clone(), ..TuningProposal::default() };
        self.guide.event(TuningEvent::Note(format!("For comparison, the settings of {}:", comparison.source)));
        let measured = self
            .plan(ChangeGroup::Buffers, &proposal, each)
            .and_then(|()| self.apply(ChangeGroup::Buffers, each))
            .and_then(|()| self.measure(&parameters, 1, true));
        let left = self.roll_back("tried for a comparison");
        self.check_interrupt()?;
        if !left.is_empty() {
            return Err(TuningFailure::of(left.join("\n")));
        }
        // A failed comparison does not stop the tuning.
        let measured = measured.unwrap_or_else(|failure| {
            self.guide.event(TuningEvent::Note(format!("not compared: {}", failure.text)));
            None
        });
        Ok(Some((comparison, measured)))
    }

    /// True when the group can be tried. Without access to the far host, local changes are tried only when the cause is
    /// not on the far host alone.
    fn is_changeable(&self, proposal: &TuningProposal, group: ChangeGroup, inputs: &TuningInputs) -> bool {
        if self.far.is_some() || proposal.changes_of(HostEnd::Far, Some(group)).is_empty() {
            return true;
        }
        let from_far = inputs.data == Some(Direction::Down);
        let cause_is_far = match proposal.cause.map(Cause::location) {
            Some(CauseLocation::Receiver) => !from_far,
            Some(CauseLocation::Sender) => from_far,
            _ => false,
        };
        !cause_is_far && !proposal.changes_of(HostEnd::Near, Some(group)).is_empty()
    }

    fn effort(&self, trials: usize, inputs: &TuningInputs) -> TrialCost {
        let each = measure::length(&measure::transfer(&self.settings.transfer, inputs)) + TRANSFER_PAUSE;
        let transfers = |pairs: usize| u32::try_from(pairs * 2 * trials + 1).unwrap_or(u32::MAX);
        let PairBudget { fewest, most } = self.settings.budget;
        let ways = [&inputs.path.out, &inputs.path.back];
        let capacity = ways.into_iter().filter_map(|way| way.capacity).max();
        let (least, longest) = (each * transfers(fewest), each * transfers(most));
        TrialCost { time: (least, longest), bytes: capacity.map(|capacity| capacity * longest) }
    }

    fn check_interrupt(&self) -> Result<(), TuningFailure> {
        self.stop.pending().map_or(Ok(()), |signal| Err(TuningFailure::of_signal(signal)))
    }
}

enum RoundDecision {
    End(TuningEnd),
    Try,
}

/// Proposals in one, for the user: all changes in the order of their trials.
fn merged(proposals: &[TuningProposal]) -> TuningProposal {
    let mut all = proposals.first().cloned().unwrap_or_default();
    for proposal in proposals.iter().skip(1) {
        let is_new = |one: &&ProposedHostChange| {
            !all.changes.iter().any(|other| ChangeIdentity::from(other) == ChangeIdentity::from(*one))
        };
        let new: Vec<ProposedHostChange> = proposal.changes.iter().filter(is_new).cloned().collect();
        all.changes.extend(new);
        all.refusals.extend(proposal.refusals.iter().cloned());
    }
    all
}

/// Proposals of a plan that is not tried, without the combination of their changes.
fn planned_only(proposals: Vec<TuningProposal>) -> impl Iterator<Item = TuningProposal> {
    let is_alone = proposals.len() == 1;
    proposals.into_iter().filter(move |proposal| is_alone || !proposal.is_combination)
}
