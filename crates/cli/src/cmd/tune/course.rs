//! The course of a tuning: explain, propose, try, judge, and again until nothing on a host limits any more.
//!
//! Nothing is printed here: a [`Guide`] is told what happens, and asked before a host is touched. Whatever ends the course
//! early, everything that was tried is taken back.

mod ends;
mod told;
mod trying;

use std::net::IpAddr;
use std::time::Duration;

use linerate_engine::client::ClientOptions;
use linerate_engine::diagnose::{self, DiagnoseOptions, PathSource};
use linerate_model::change::{self, Group};
use linerate_model::diagnosis::{Cause, Place};
use linerate_model::schema::path::PathDocument;
use linerate_rules::diagnosis;
use linerate_rules::judge::{Budget, Decision, Measurement};
use linerate_rules::tuning::comparison::{Comparison, guide};
use linerate_rules::tuning::{End, Host, Inputs, Proposal, Proposed, Refusal, propose};
use linerate_sys::signals::Interrupts;

pub(crate) use told::{
    Compare, Consent, CourseEvent, CourseOutcome, Effort, Ended, Failure, Guide, MeasuredPairs, RoundDone, Seen,
    Settings, Tried,
};

use super::measure;
use super::party::Party;
use crate::cmd::diagnose::path_options;

/// After so many causes removed one after the other, whoever asks again asks for something else.
const MOST_ROUNDS: usize = 5;

/// The path has this long to become quiet between two transfers.
const PAUSE: Duration = Duration::from_secs(1);

/// A course that is under way.
pub(crate) struct Course<'a> {
    settings: &'a Settings,
    near: &'a mut dyn Party,
    far: Option<&'a mut dyn Party>,
    guide: &'a mut dyn Guide,
    stop: Interrupts,
    path: Option<PathDocument>,
    addresses: Option<(IpAddr, IpAddr)>,
    /// What did not earn its keep, as text.
    refuted: Vec<String>,
    /// What has earned it.
    in_force: Vec<(End, change::Target)>,
    /// The ends that have changes in the plan that is tried.
    ends: Vec<End>,
    touched: bool,
    dry_run: bool,
}

impl<'a> Course<'a> {
    /// With these two ends.
    pub(crate) fn new(
        settings: &'a Settings,
        near: &'a mut dyn Party,
        far: Option<&'a mut dyn Party>,
        guide: &'a mut dyn Guide,
        stop: Interrupts,
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
            addresses: None,
            refuted: Vec::new(),
            in_force: Vec::new(),
            ends: Vec::new(),
            touched: false,
            dry_run,
        }
    }

    /// Runs it to its end. What stays is in force, and not kept yet: see [`keep`](Self::keep).
    pub(crate) fn run(&mut self) -> CourseOutcome {
        let mut outcome = CourseOutcome {
            ended: Ended::BrokenOff,
            before: None,
            rounds: Vec::new(),
            after: None,
            failure: None,
            left: Vec::new(),
            touched: false,
            compared: None,
        };
        match self.rounds(&mut outcome) {
            Ok(ended) => outcome.ended = ended,
            Err(failure) => outcome.failure = Some(failure),
        }
        if outcome.ended == Ended::Kept && !self.is_confirmed(&outcome) {
            outcome.ended = Ended::NotConfirmed;
        }
        if outcome.ended != Ended::Kept {
            let reason = match (&outcome.failure, outcome.ended) {
                (Some(failure), _) => failure.text.clone(),
                (None, Ended::NotConfirmed) => "not confirmed".to_owned(),
                (None, _) => "it did not earn its keep".to_owned(),
            };
            outcome.left = self.roll_back(&reason);
        }
        outcome.touched = self.touched;
        outcome
    }

    fn is_confirmed(&mut self, outcome: &CourseOutcome) -> bool {
        // The last trials are enough to decide by.
        outcome
            .rounds
            .iter()
            .rev()
            .find(|round| !round.tried.is_empty())
            .is_none_or(|round| self.guide.confirms(&round.tried))
    }

    fn rounds(&mut self, outcome: &mut CourseOutcome) -> Result<Ended, Failure> {
        for _ in 0..MOST_ROUNDS {
            let seen = self.diagnose()?;
            let inputs = self.inputs(&seen)?;
            let proposal = self.what_can_be_tried(propose(&inputs), &seen);
            let is_first = outcome.before.is_none();
            if is_first || !proposal.is_empty() {
                self.guide.event(CourseEvent::Proposed(&proposal));
            }
            let next = self.consider(&seen, &proposal, &inputs, is_first);
            if is_first {
                outcome.compared = self.compare(&inputs, matches!(next, Next::Try(_)))?;
            }
            *(if is_first { &mut outcome.before } else { &mut outcome.after }) = Some(seen);
            let groups = match next {
                Next::End(ended) => {
                    if is_first || !proposal.is_empty() {
                        outcome.rounds.push(RoundDone { proposal, tried: Vec::new() });
                    }
                    return Ok(if is_first { ended } else { Ended::Kept });
                }
                Next::Try(groups) => groups,
            };
            let tried = self.try_groups(&groups, &proposal, &inputs)?;
            let has_gained = tried.iter().any(|tried| tried.judgement.decision == Decision::Keep);
            outcome.rounds.push(RoundDone { proposal, tried });
            if !has_gained {
                return Ok(if is_first { Ended::RolledBack } else { Ended::Kept });
            }
        }
        Ok(Ended::Kept)
    }

    /// Measures a transfer and explains it.
    fn diagnose(&mut self) -> Result<Seen, Failure> {
        self.go_on()?;
        let options = DiagnoseOptions {
            path: match &self.path {
                Some(path) => PathSource::Known(Box::new(path.clone())),
                None => PathSource::Measure(path_options(self.settings.target.clone(), true)),
            },
            transfer: ClientOptions::new(&self.settings.target, self.settings.transfer.clone(), None),
        };
        self.renew(measure::length(&self.settings.transfer))?;
        self.forget_metrics();
        let begun = crate::cmd::diagnose::document::Begun::now();
        let guide = &mut *self.guide;
        let outcome =
            diagnose::run(&options, Some(self.stop), &mut |event| guide.event(CourseEvent::Diagnosing(&event)));
        self.go_on()?;
        if let Some(path) = &outcome.path {
            self.path = Some(path.document.clone());
        }
        self.addresses = outcome.addresses.or(self.addresses);
        let Some(observation) = &outcome.observation else {
            let reason = |error: &linerate_engine::Error| {
                let text = error.advice().map_or_else(|| error.to_string(), str::to_owned);
                format!("{text}\nThe far end has to run `linerate serve`, or an iperf3 server, which tells less.")
            };
            return Err(Failure::of(
                outcome.error.as_ref().map_or_else(|| "no transfer came about".to_owned(), reason),
            ));
        };
        let diagnosis = diagnosis::diagnose(observation);
        let seen = Seen { outcome, diagnosis, begun };
        self.guide.event(CourseEvent::Diagnosed(&seen));
        Ok(seen)
    }

    fn inputs(&mut self, seen: &Seen) -> Result<Inputs, Failure> {
        let peers = self.addresses;
        let near = self.near.host(peers.map(|(_, far)| far))?;
        let far: Option<Host> = match &mut self.far {
            Some(far) => Some(far.host(peers.map(|(near, _)| near))?),
            None => None,
        };
        let Some(observation) = &seen.outcome.observation else { return Err(Failure::of("no transfer came about")) };
        let mut inputs = Inputs::measured(self.settings.goal, (near, far), observation, seen.diagnosis.clone());
        inputs.one_kernel = self.settings.one_kernel;
        inputs.flows = self.settings.flows.or(inputs.flows);
        Ok(inputs)
    }

    /// Leaves out what must not or cannot be tried, each with the reason.
    fn what_can_be_tried(&self, mut proposal: Proposal, seen: &Seen) -> Proposal {
        let refuse = |text: String, end| Refusal { rule: None, end, cause: seen.cause(), text };
        if proposal.lives_with_the_path() && !self.settings.work_around {
            let offers: Vec<String> =
                proposal.changes.iter().map(|one| format!("{} = {}", one.change.target, one.change.to)).collect();
            let text = format!(
                "The cause is on the path, and is best removed there. What a host could do to live with it: {}; \
                 --work-around tries it.",
                offers.join(", ")
            );
            proposal.changes.clear();
            proposal.refusals.push(refuse(text, None));
        }
        proposal.changes.retain(|one| !self.refuted.contains(&super::document::change_text(one)));
        // What was proven with one value is not put at stake for another one in the same run.
        let is_kept = |one: &Proposed| self.in_force.contains(&(one.end, one.change.target.clone()));
        let kept: Vec<Proposed> = proposal.changes.extract_if(.., |one| is_kept(one)).collect();
        proposal.refusals.extend(kept.iter().map(|one| {
            let text = format!(
                "{} was changed in this run already; another run would try {}.",
                one.change.target, one.change.to
            );
            refuse(text, Some(one.end))
        }));
        proposal
    }

    /// Whether to try, and which groups.
    fn consider(&mut self, seen: &Seen, proposal: &Proposal, inputs: &Inputs, is_first: bool) -> Next {
        if proposal.is_empty() {
            let is_of_a_host = seen.cause().is_some_and(Cause::is_of_a_host);
            return Next::End(if is_of_a_host { Ended::NoWay } else { Ended::NothingToDo });
        }
        let groups: Vec<Group> =
            proposal.groups().into_iter().filter(|group| self.can_be_changed(proposal, *group, seen)).collect();
        if self.dry_run || groups.is_empty() {
            return Next::End(Ended::Planned);
        }
        // Who has agreed to the first plan has agreed to go on until it works.
        if is_first {
            match self.guide.consents(seen, proposal, &self.effort(&groups, inputs)) {
                Consent::Yes => {}
                Consent::No => return Next::End(Ended::Declined),
                Consent::Nobody => return Next::End(Ended::Planned),
            }
        }
        Next::Try(groups)
    }

    /// What a well-known guide would do, where windows limit. It is tried for one measurement, where that was agreed to.
    fn compare(
        &mut self,
        inputs: &Inputs,
        may_try: bool,
    ) -> Result<Option<(Comparison, Option<Measurement>)>, Failure> {
        let windows = matches!(inputs.cause(), Some(Cause::ReceiveWindow | Cause::SendBuffer));
        let wanted = self.settings.compare != Compare::No && windows;
        let Some(mut comparison) = wanted.then(|| guide(inputs)).flatten() else { return Ok(None) };
        let reachable = |one: &Proposed| one.end == End::Near || self.far.is_some();
        comparison.changes.retain(|one| reachable(one) && one.change.from.as_ref() != Some(&one.change.to));
        if self.settings.compare != Compare::Measure || !may_try || comparison.changes.is_empty() {
            return Ok(Some((comparison, None)));
        }
        let parameters = measure::transfer(&self.settings.transfer, inputs);
        let each = measure::length(&parameters);
        let proposal = Proposal { changes: comparison.changes.clone(), ..Proposal::default() };
        self.guide.event(CourseEvent::Note(format!("For comparison, what the {} would set:", comparison.source)));
        let measured = self
            .plan(Group::Buffers, &proposal, each)
            .and_then(|()| self.apply(Group::Buffers, each))
            .and_then(|()| self.measure(&parameters, 1, true));
        let left = self.roll_back("tried for a comparison");
        self.go_on()?;
        if !left.is_empty() {
            return Err(Failure::of(left.join("\n")));
        }
        // A comparison that cannot be made is no reason not to tune.
        let measured = measured.unwrap_or_else(|failure| {
            self.guide.event(CourseEvent::Note(format!("not compared: {}", failure.text)));
            None
        });
        Ok(Some((comparison, measured)))
    }

    /// Without a way to the far host, changes there cannot be made; those here are worth a trial only where the cause is
    /// not over there alone.
    fn can_be_changed(&self, proposal: &Proposal, group: Group, seen: &Seen) -> bool {
        if self.far.is_some() || proposal.of(End::Far, Some(group)).is_empty() {
            return true;
        }
        let from_far = seen.outcome.observation.as_ref().is_some_and(|observation| observation.asked.from_far);
        let cause_is_far = match seen.cause().map(Cause::place) {
            Some(Place::Receiver) => !from_far,
            Some(Place::Sender) => from_far,
            _ => false,
        };
        !cause_is_far && !proposal.of(End::Near, Some(group)).is_empty()
    }

    fn effort(&self, groups: &[Group], inputs: &Inputs) -> Effort {
        let each = measure::length(&measure::transfer(&self.settings.transfer, inputs)) + PAUSE;
        let transfers = |pairs: usize| u32::try_from(pairs * 2 * groups.len() + 1).unwrap_or(u32::MAX);
        let Budget { fewest, most } = self.settings.budget;
        let ways = [&inputs.path.out, &inputs.path.back];
        let capacity = ways.into_iter().filter_map(|way| way.capacity).max();
        let (least, longest) = (each * transfers(fewest), each * transfers(most));
        Effort { time: (least, longest), bytes: capacity.map(|capacity| capacity * longest) }
    }

    fn go_on(&self) -> Result<(), Failure> {
        match self.stop.pending() {
            Some(signal) => {
                Err(Failure { signal: Some(signal), ..Failure::of(format!("broken off: {}", signal.words())) })
            }
            None => Ok(()),
        }
    }
}

enum Next {
    End(Ended),
    Try(Vec<Group>),
}
