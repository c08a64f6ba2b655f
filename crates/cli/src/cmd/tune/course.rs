//! The course of a tuning: explain, propose, try, judge, and again until nothing on a host limits any more.
//!
//! Nothing is printed here: a [`Guide`] is told what happens, and asked before a host is touched. Whatever ends the course
//! early, everything that was tried is taken back.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use linerate_change::Keep;
use linerate_engine::client::ClientOptions;
use linerate_engine::diagnose::{self, DiagnoseEvent, DiagnoseOptions, DiagnoseOutcome, PathSource};
use linerate_engine::probe::Target;
use linerate_model::change::{self, Group, Plan};
use linerate_model::diagnosis::{Cause, Diagnosis, Place};
use linerate_model::parameters::TestParameters;
use linerate_model::schema::path::PathDocument;
use linerate_model::statistics::Bootstrap;
use linerate_rules::diagnosis;
use linerate_rules::judge::{self, Budget, Decision, Judgement, Measurement, Pair};
use linerate_rules::tuning::comparison::{Comparison, guide};
use linerate_rules::tuning::{Data, End, Goal, Host, Inputs, Proposal, Proposed, Refusal, lid, propose, tightened};
use linerate_sys::clock;
use linerate_sys::signals::{Interrupts, Signal};
use linerate_units::{ByteCount, StreamCount};

use super::measure;
use super::party::{Party, PartyError};
use crate::cmd::diagnose::path_options;

/// After so many causes removed one after the other, whoever asks again asks for something else.
const MOST_ROUNDS: usize = 5;

/// Beyond the transfers themselves, the watchdog leaves this much time.
const PATIENCE: Duration = Duration::from_secs(120);

/// After so many transfers in a row that came to nothing, the path is not there to be measured.
const MOST_FAILURES: usize = 3;

/// So often a window is made smaller because a path's own buffer filled up.
const MOST_TIGHTENINGS: usize = 3;

/// The path has this long to become quiet between two transfers.
const PAUSE: Duration = Duration::from_secs(1);

/// What to do.
pub(crate) struct Settings {
    /// What the hosts are for.
    pub(crate) goal: Goal,
    /// Connections that are expected.
    pub(crate) flows: Option<StreamCount>,
    /// Where to.
    pub(crate) target: Target,
    /// The transfer.
    pub(crate) transfer: TestParameters,
    /// Whether both ends are namespaces of one kernel.
    pub(crate) one_kernel: bool,
    /// Whether to try what lives with the path, too.
    pub(crate) work_around: bool,
    /// How many measurements.
    pub(crate) budget: Budget,
    /// Seed of the judge's intervals.
    pub(crate) seed: u64,
    /// The path, where it has been measured already.
    pub(crate) path: Option<PathDocument>,
    /// Pairs that an interrupted run has measured, by group and plan.
    pub(crate) measured: Vec<MeasuredPairs>,
    /// Whether to see what a well-known guide would do where windows limit.
    pub(crate) compare: Compare,
}

/// What to do about somebody else's recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    /// Nothing.
    No,
    /// Compute what it allows.
    Predict,
    /// Measure it, too.
    Measure,
}

/// Pairs of one trial.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MeasuredPairs {
    /// What was tried: the changes as text.
    pub(crate) changes: String,
    /// The measurements.
    pub(crate) pairs: Vec<Pair>,
}

/// Who watches, and is asked.
pub(crate) trait Guide {
    /// Something happened.
    fn event(&mut self, event: CourseEvent<'_>);
    /// Whether to try what is proposed.
    fn consents(&mut self, seen: &Seen, proposal: &Proposal, effort: &Effort) -> Consent;
    /// Whether what was proven is to stay.
    fn confirms(&mut self, trials: &[Tried]) -> bool;
}

/// What a person says to a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    /// Go on.
    Yes,
    /// Leave it.
    No,
    /// There is nobody to ask.
    Nobody,
}

/// What happens.
pub(crate) enum CourseEvent<'a> {
    /// A transfer is diagnosed; the path is measured before, if it is not known.
    Diagnosing(&'a DiagnoseEvent<'a>),
    /// That is over.
    Diagnosed(&'a Seen),
    /// What follows from that, the first time and wherever there is something more to try.
    Proposed(&'a Proposal),
    /// A group of changes is tried.
    Trying {
        /// The group.
        group: Group,
        /// Its changes.
        proposal: &'a Proposal,
    },
    /// A transfer of a trial runs.
    Transfer(&'a DiagnoseEvent<'a>),
    /// A transfer of a trial is over.
    Measured {
        /// Which pair, from one.
        pair: usize,
        /// Whether with the changes.
        with: bool,
    },
    /// All pairs so far.
    Pairs {
        /// The changes as text.
        changes: &'a str,
        /// The measurements.
        pairs: &'a [Pair],
    },
    /// A group was judged.
    Judged(&'a Tried),
    /// Something that a person should know.
    Note(String),
}

/// What a diagnosis saw.
pub(crate) struct Seen {
    /// Its measurements.
    pub(crate) outcome: DiagnoseOutcome,
    /// What follows.
    pub(crate) diagnosis: Diagnosis,
    /// When it began.
    pub(crate) begun: crate::cmd::diagnose::document::Begun,
}

impl Seen {
    /// The first verdict's cause.
    pub(crate) fn cause(&self) -> Option<Cause> {
        self.diagnosis.verdicts.first().map(|verdict| verdict.cause)
    }
}

/// What the proof of a proposal takes, at least and at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Effort {
    /// Time.
    pub(crate) time: (Duration, Duration),
    /// Bytes, where the path's capacity is known: never more than this.
    pub(crate) bytes: Option<ByteCount>,
}

/// A group that was tried.
pub(crate) struct Tried {
    /// The group.
    pub(crate) group: Group,
    /// Its changes, of both hosts.
    pub(crate) changes: Vec<Proposed>,
    /// What was measured.
    pub(crate) pairs: Vec<Pair>,
    /// What it was worth.
    pub(crate) judgement: Judgement,
}

impl Tried {
    /// Whether it earned its keep.
    pub(crate) fn is_kept(&self) -> bool {
        self.judgement.decision == Decision::Keep
    }
}

/// One cause, with what was proposed against it and tried.
pub(crate) struct RoundDone {
    /// What was proposed.
    pub(crate) proposal: Proposal,
    /// What was tried.
    pub(crate) tried: Vec<Tried>,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Nothing on a host limits.
    NothingToDo,
    /// Something on a host limits, and nothing can be changed there.
    NoWay,
    /// Nobody may be asked, or the far end cannot be reached: the plan is all there is.
    Planned,
    /// The person said no.
    Declined,
    /// Something stays.
    Kept,
    /// Nothing has earned its keep.
    RolledBack,
    /// The person did not confirm.
    NotConfirmed,
    /// It was broken off.
    BrokenOff,
}

/// What came out.
pub(crate) struct CourseOutcome {
    /// How it ended.
    pub(crate) ended: Ended,
    /// The first diagnosis.
    pub(crate) before: Option<Seen>,
    /// All rounds.
    pub(crate) rounds: Vec<RoundDone>,
    /// The last diagnosis, with what is kept.
    pub(crate) after: Option<Seen>,
    /// Why it was broken off, or why nothing came about.
    pub(crate) failure: Option<Failure>,
    /// What could not be put back, with the reason.
    pub(crate) left: Vec<String>,
    /// Whether anything was written to a host at any time.
    pub(crate) touched: bool,
    /// What a well-known guide would set, and what was measured with that.
    pub(crate) compared: Option<(Comparison, Option<Measurement>)>,
}

/// Why there is no result.
pub(crate) struct Failure {
    /// In words.
    pub(crate) text: String,
    /// Whether more privilege would help.
    pub(crate) needs_privilege: bool,
    /// The signal that ended it.
    pub(crate) signal: Option<Signal>,
}

impl From<PartyError> for Failure {
    fn from(error: PartyError) -> Self {
        Self { needs_privilege: error.needs_privilege(), text: error.to_string(), signal: None }
    }
}

impl Failure {
    fn of(text: impl Into<String>) -> Self {
        Self { text: text.into(), needs_privilege: false, signal: None }
    }
}

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
        self.plan(Group::Buffers, &proposal, each)?;
        self.apply(Group::Buffers, each)?;
        let measured = self.measure(&parameters, 1, true)?;
        let left = self.roll_back("tried for a comparison");
        if left.is_empty() { Ok(Some((comparison, measured))) } else { Err(Failure::of(left.join("\n"))) }
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

    fn try_groups(&mut self, groups: &[Group], proposal: &Proposal, inputs: &Inputs) -> Result<Vec<Tried>, Failure> {
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
    fn try_candidates(&mut self, group: Group, proposal: &Proposal, inputs: &Inputs) -> Result<Vec<Tried>, Failure> {
        let mut candidates: VecDeque<Proposal> = candidates(proposal, group).into();
        let mut all: Vec<(Tried, Proposal)> = Vec::new();
        let mut tightenings = 0;
        while let Some(candidate) = candidates.pop_front() {
            let one = match self.try_group(group, &candidate, inputs) {
                // What cannot be tried beside the first choice is no reason to lose what has been proven.
                Err(failure) if !all.is_empty() && self.stop.pending().is_none() => {
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
    fn settle(&mut self, group: Group, all: Vec<(Tried, Proposal)>, inputs: &Inputs) -> Result<Vec<Tried>, Failure> {
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
    fn try_group(&mut self, group: Group, proposal: &Proposal, inputs: &Inputs) -> Result<Tried, Failure> {
        self.guide.event(CourseEvent::Trying { group, proposal });
        let parameters = measure::transfer(&self.settings.transfer, inputs);
        let each = measure::length(&parameters);
        self.plan(group, proposal, each)?;
        let changes = super::document::changes_text(proposal, group);
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
            self.refuted.extend(changes.iter().map(super::document::change_text));
        }
        Ok(Tried { group, changes, pairs, judgement })
    }

    fn measure(
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

    /// Records a group's changes at the ends that can be changed.
    fn plan(&mut self, group: Group, proposal: &Proposal, each: Duration) -> Result<(), Failure> {
        let made_at = clock::realtime_now();
        let mut notes = Vec::new();
        self.ends =
            [End::Near, End::Far].into_iter().filter(|end| !proposal.of(*end, Some(group)).is_empty()).collect();
        for (end, party) in self.parties() {
            let plan: Plan = proposal.plan(end, Some(group), made_at);
            if plan.changes.is_empty() {
                continue;
            }
            if party.has_begun() {
                party.extend(&plan)?;
            } else {
                let left = party.begin(&plan, &format!("linerate tune: {group}"), each + PATIENCE)?;
                notes.extend(left);
            }
        }
        for note in notes {
            self.guide.event(CourseEvent::Note(note));
        }
        Ok(())
    }

    fn parties(&mut self) -> impl Iterator<Item = (End, &mut dyn Party)> {
        let near: (End, &mut dyn Party) = (End::Near, &mut *self.near);
        let far = self.far.as_mut().map(|far| (End::Far, &mut **far as &mut dyn Party));
        core::iter::once(near).chain(far)
    }

    /// The far host first: what fails there has not touched this one.
    fn apply(&mut self, group: Group, each: Duration) -> Result<(), Failure> {
        self.renew(each)?;
        self.touched = true;
        let wanted = self.ends.clone();
        let concerned = |(end, party): &(End, &mut dyn Party)| wanted.contains(end) && party.has_begun();
        let mut ends: Vec<_> = self.parties().filter(concerned).collect();
        ends.reverse();
        for (_, party) in ends {
            party.apply(group)?;
        }
        Ok(())
    }

    fn take_back(&mut self, group: Group) -> Result<(), Failure> {
        let mut left = Vec::new();
        for (_, party) in self.parties().filter(|(_, party)| party.has_begun()) {
            left.extend(party.take_back(group)?);
        }
        if left.is_empty() { Ok(()) } else { Err(Failure::of(left.join("\n"))) }
    }

    fn renew(&mut self, time: Duration) -> Result<(), Failure> {
        for (_, party) in self.parties().filter(|(_, party)| party.has_begun()) {
            party.renew(time + PATIENCE)?;
        }
        Ok(())
    }

    /// The kernel starts a connection with what it remembers of the last one to the same address. Where that cannot be
    /// forgotten, both kinds of transfers are touched alike.
    fn forget_metrics(&mut self) {
        let Some((near, far)) = self.addresses else { return };
        for (end, party) in self.parties() {
            let _ = party.forget_metrics(if end == End::Near { far } else { near });
        }
    }

    fn go_on(&self) -> Result<(), Failure> {
        match self.stop.pending() {
            Some(signal) => {
                Err(Failure { signal: Some(signal), ..Failure::of(format!("broken off: {}", signal.words())) })
            }
            None => Ok(()),
        }
    }

    /// Makes what is in force stay, at both ends; the near one last, so that a far end that fails leaves nothing half
    /// done here.
    pub(crate) fn keep(&mut self, keep: &dyn Fn(End) -> Keep) -> Result<Vec<(End, linerate_change::Kept)>, Failure> {
        let mut kept = Vec::new();
        let mut ends: Vec<_> = self.parties().filter(|(_, party)| party.has_begun()).collect();
        ends.reverse();
        for (end, party) in ends {
            kept.push((end, party.keep(&keep(end))?));
        }
        kept.reverse();
        Ok(kept)
    }

    /// Takes everything back; what could not be is said.
    pub(crate) fn roll_back(&mut self, reason: &str) -> Vec<String> {
        let mut left = Vec::new();
        for (end, party) in self.parties().filter(|(_, party)| party.has_begun()) {
            match party.roll_back(reason) {
                Ok(one) => left.extend(one.into_iter().map(|text| format!("{} host: {text}", end.name()))),
                Err(error) => left.push(format!("{} host: {error}", end.name())),
            }
        }
        left
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

enum Next {
    End(Ended),
    Try(Vec<Group>),
}

fn or_nothing(measurement: Option<Measurement>) -> Measurement {
    let nothing = || Measurement { disturbed: Some("no transfer came about".to_owned()), ..Measurement::default() };
    measurement.unwrap_or_else(nothing)
}
