//! Settings, events and outcome of a tuning session.

use std::time::Duration;

use linerate_engine::diagnose::{DiagnoseEvent, DiagnoseOutcome};
use linerate_engine::path::PathOutcome;
use linerate_engine::probe::ProbeTarget;
use linerate_model::change::ChangeGroup;
use linerate_model::diagnosis::{Cause, TransferDiagnosis};
use linerate_model::parameters::TestParameters;
use linerate_model::path::PathDocument;
use linerate_rules::judge::{
    MeasurementPair, PairBudget, TransferMeasurement, TrialDecision, TrialDesign, TrialJudgement,
};
use linerate_rules::tuning::comparison::GuideComparison;
use linerate_rules::tuning::{ProposedHostChange, TuningGoal, TuningProposal};
use linerate_sys::signals::Signal;
use linerate_units::{ByteCount, StreamCount};

use super::super::document::ChangeIdentity;
use super::super::tuned_host::TunedHostError;
use crate::diagnose::RunStart;

/// Settings of a session.
pub struct TuningSettings {
    /// Role of the hosts.
    pub goal: TuningGoal,
    /// Expected number of connections.
    pub flows: Option<StreamCount>,
    /// Far end.
    pub target: ProbeTarget,
    /// Parameters of the transfer.
    pub transfer: TestParameters,
    /// True when both ends are namespaces of one kernel.
    pub one_kernel: bool,
    /// True when work-arounds for the path are tried, too.
    pub work_around: bool,
    /// Number of measurements.
    pub budget: PairBudget,
    /// Seed of the order of measurements within pairs.
    pub seed: u64,
    /// Path measured earlier.
    pub path: Option<PathDocument>,
    /// Pairs measured by an interrupted run, by group and plan.
    pub measured: Vec<MeasuredPairs>,
    /// Comparison with a well-known tuning guide where windows limit.
    pub compare: ComparisonMode,
}

/// Comparison with an external recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonMode {
    /// No comparison.
    No,
    /// Compute its limit.
    Predict,
    /// Compute and measure it.
    Measure,
}

/// Measurement pairs of one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredPairs {
    /// Changes of the trial.
    pub changes: Vec<ChangeIdentity>,
    /// The measurements.
    pub pairs: Vec<MeasurementPair>,
}

/// User interface of a session.
pub trait TuningInterface {
    /// Handles an event.
    fn event(&mut self, event: TuningEvent<'_>);
    /// Asks for consent to a proposal.
    fn consents(&mut self, seen: &DiagnosedTransfer, proposal: &TuningProposal, effort: &TrialCost) -> TrialConsent;
    /// Asks whether to keep confirmed changes.
    fn confirms(&mut self, trials: &[TriedGroup]) -> bool;
}

/// Answer to a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialConsent {
    /// Try the changes.
    Yes,
    /// Change nothing.
    No,
    /// No terminal to ask at.
    NoTerminal,
}

/// Event of a session.
pub enum TuningEvent<'a> {
    /// Diagnosis of a transfer; an unknown path is measured first.
    Diagnosing(&'a DiagnoseEvent<'a>),
    /// Diagnosis finished.
    Diagnosed(&'a DiagnosedTransfer),
    /// First proposal, and each one with more to try.
    Proposed(&'a TuningProposal),
    /// Trial of a group of changes begins.
    Trying {
        /// Group.
        group: ChangeGroup,
        /// Changes of the group.
        proposal: &'a TuningProposal,
    },
    /// Progress of a trial's transfer.
    Transfer(&'a DiagnoseEvent<'a>),
    /// Start of a trial's transfer.
    Measuring {
        /// Number of the pair, from one.
        pair: usize,
        /// True when measured with the changes.
        with: bool,
    },
    /// All pairs so far.
    Pairs {
        /// Changes of the group.
        changes: &'a [ChangeIdentity],
        /// The measurements.
        pairs: &'a [MeasurementPair],
    },
    /// Judgement of a group.
    Judged(&'a TriedGroup),
    /// Note for the user.
    Note(String),
}

/// Measurements and diagnosis of a transfer.
pub struct DiagnosedTransfer {
    /// Measurements.
    pub outcome: DiagnoseOutcome,
    /// Diagnosis.
    pub diagnosis: TransferDiagnosis,
    /// Start.
    pub begun: RunStart,
}

impl DiagnosedTransfer {
    /// Cause of the first verdict.
    pub fn cause(&self) -> Option<Cause> {
        self.diagnosis.verdicts.first().map(|verdict| verdict.cause)
    }
}

/// Cost of verifying a proposal, minimum and maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialCost {
    /// Time.
    pub time: (Duration, Duration),
    /// Upper bound of the bytes; `None` for an unknown capacity.
    pub bytes: Option<ByteCount>,
}

/// Trial of a group.
pub struct TriedGroup {
    /// Group.
    pub group: ChangeGroup,
    /// Changes of both hosts.
    pub changes: Vec<ProposedHostChange>,
    /// Measurement pairs.
    pub pairs: Vec<MeasurementPair>,
    /// Design of the trial.
    pub design: TrialDesign,
    /// Judgement.
    pub judgement: TrialJudgement,
    /// True when it was judged with the queue of a filled path, which the goal allows for a larger gain.
    pub allows_queue: bool,
}

impl TriedGroup {
    /// True when the measurements confirm it.
    pub fn is_kept(&self) -> bool {
        self.judgement.decision == TrialDecision::Keep
    }
}

/// Proposal and trials for one cause.
pub struct TuningRound {
    /// Proposal.
    pub proposal: TuningProposal,
    /// Trials.
    pub tried: Vec<TriedGroup>,
}

/// End of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TuningEnd {
    /// No host setting limits.
    NothingToDo,
    /// A host limits, and nothing can be changed there.
    NoWay,
    /// Plan only: no terminal to ask at, or no access to the far end.
    Planned,
    /// Declined by the user.
    Declined,
    /// Some changes are kept.
    Kept,
    /// No change is confirmed.
    RolledBack,
    /// Not confirmed by the user.
    NotConfirmed,
    /// Interrupted or failed.
    BrokenOff,
}

/// Outcome of a session.
pub struct TuningOutcome {
    /// End of the session.
    pub ended: TuningEnd,
    /// First diagnosis.
    pub before: Option<DiagnosedTransfer>,
    /// Path as far as it was measured, where the first diagnosis was interrupted.
    pub interrupted_path: Option<PathOutcome>,
    /// All rounds.
    pub rounds: Vec<TuningRound>,
    /// Last diagnosis, with the kept changes.
    pub after: Option<DiagnosedTransfer>,
    /// Reason of an early end.
    pub failure: Option<TuningFailure>,
    /// Targets that could not be restored, with the reason.
    pub left: Vec<String>,
    /// Shortcomings of a host that limit what could be measured or proposed.
    pub notes: Vec<String>,
    /// True when anything was written to a host.
    pub touched: bool,
    /// Settings of a well-known guide, and their measurement.
    pub compared: Option<(GuideComparison, Option<TransferMeasurement>)>,
}

/// Reason of a missing result.
pub struct TuningFailure {
    /// Error text.
    pub text: String,
    /// True when more privilege would help.
    pub needs_privilege: bool,
    /// True when a host refused the change itself: another candidate may be possible.
    pub is_refused: bool,
    /// Signal that ended the session.
    pub signal: Option<Signal>,
}

impl From<TunedHostError> for TuningFailure {
    fn from(error: TunedHostError) -> Self {
        Self { needs_privilege: error.needs_privilege(), is_refused: false, text: error.to_string(), signal: None }
    }
}

impl TuningFailure {
    pub(super) fn of(text: impl Into<String>) -> Self {
        Self { text: text.into(), needs_privilege: false, is_refused: false, signal: None }
    }

    /// Interruption by a signal.
    pub(crate) fn of_signal(signal: Signal) -> Self {
        Self { signal: Some(signal), ..Self::of(format!("interrupted: {}", signal.words())) }
    }
}
