//! What a course is told, tells, and comes to.

use std::time::Duration;

use linerate_engine::diagnose::{DiagnoseEvent, DiagnoseOutcome};
use linerate_engine::probe::Target;
use linerate_model::change::Group;
use linerate_model::diagnosis::{Cause, Diagnosis};
use linerate_model::parameters::TestParameters;
use linerate_model::schema::path::PathDocument;
use linerate_rules::judge::{Budget, Decision, Judgement, Measurement, Pair};
use linerate_rules::tuning::comparison::Comparison;
use linerate_rules::tuning::{Goal, Proposal, Proposed};
use linerate_sys::signals::Signal;
use linerate_units::{ByteCount, StreamCount};

use super::super::party::PartyError;
use crate::cmd::diagnose::document::Begun;

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
    pub(crate) begun: Begun,
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
    pub(super) fn of(text: impl Into<String>) -> Self {
        Self { text: text.into(), needs_privilege: false, signal: None }
    }
}
