//! Document of `linerate tune --json`: limiting causes, proposals, trials and outcome.

use linerate_model::diagnosis::Cause;
pub use linerate_rules::judge::{GroupContribution, MeasurementPair, TransferMeasurement, TrialDecision};
pub use linerate_rules::tuning::{HostEnd, TuningGoal};
use serde::{Deserialize, Serialize};

use super::diagnose::DiagnoseDocument;
use super::run::{FigureUnit, ImprovementDirection};
use linerate_model::change::{ChangeGroup, HostChange};
use linerate_model::path::UnknownValue;
use linerate_model::report::TestTermination;

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// One run of `linerate tune`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TuneDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Version of linerate that ran.
    pub linerate_version: String,
    /// Remote host as given by the user; empty where nothing was measured.
    pub host: String,
    /// Port of the host.
    pub port: u16,
    /// Start time in nanoseconds since 1970-01-01 00:00 UTC.
    pub started_at_unix_ns: u64,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// Outcome of the run.
    pub termination: TestTermination,
    /// Role of the hosts.
    pub role: TuningGoal,
    /// Options of the transfer in iperf3's syntax; empty for its defaults.
    pub transfer: Vec<String>,
    /// Seed of the order of measurements within pairs: the same seed gives the same order.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Outcome.
    pub outcome: TuneOutcome,
    /// Outcome in one sentence.
    pub sentence: String,
    /// Diagnosis before any change; `null` where nothing was measured.
    pub before: Option<Box<DiagnoseDocument>>,
    /// Rounds, one for each cause that was found, in order.
    pub rounds: Vec<TuneRound>,
    /// Diagnosis at the end, with all kept changes in effect; `null` where nothing was changed.
    pub after: Option<Box<DiagnoseDocument>>,
    /// Figures before and after: the first and the last measurement of the same transfer.
    #[serde(default)]
    pub effects: Vec<MeasuredEffect>,
    /// Effect of each group of changes, in the order in which they were tried.
    #[serde(default)]
    pub contributions: Vec<GroupContribution>,
    /// Changes in effect now.
    #[serde(default)]
    pub kept: Vec<KeptSet>,
    /// Steps and figures that are missing: name → reason.
    #[serde(default)]
    pub unknown: Vec<UnknownValue>,
    /// Notes shown below the table.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Outcome of a tuning run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TuneOutcome {
    /// Nothing on a host limits: nothing is proposed.
    NothingToChange,
    /// Planned, and nothing was changed (`--dry-run`, or no remote host to measure against).
    Planned,
    /// Planned, and declined by the user.
    Declined,
    /// At least one group of changes is in effect.
    Kept,
    /// Changes were tried, and none of them improved the result.
    RolledBack,
    /// Aborted; everything was rolled back.
    Aborted,
}

impl TuneOutcome {
    /// All variants.
    pub const ALL: [Self; 6] =
        [Self::NothingToChange, Self::Planned, Self::Declined, Self::Kept, Self::RolledBack, Self::Aborted];

    /// Display name.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::NothingToChange => "nothing to change",
            Self::Planned => "planned only",
            Self::Declined => "declined",
            Self::Kept => "kept",
            Self::RolledBack => "rolled back",
            Self::Aborted => "aborted",
        }
    }
}

/// Proposal and trials for one cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TuneRound {
    /// Cause; `null` where nothing was measured.
    pub cause: Option<Cause>,
    /// Proposed changes, in the order in which they are tried.
    pub changes: Vec<ProposedChange>,
    /// Changes that are not proposed, or only in part, with the reason.
    pub refusals: Vec<RefusedChange>,
    /// True when the changes mitigate a cause on the path instead of removing it.
    pub lives_with_the_path: bool,
    /// Trials.
    #[serde(default)]
    pub trials: Vec<GroupTrial>,
}

/// Proposed change of one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProposedChange {
    /// Host.
    pub end: HostEnd,
    /// Change.
    pub change: HostChange,
    /// Equivalent forms of it, and other values that may do as well.
    #[serde(default)]
    pub alternatives: Vec<HostChange>,
}

/// Change that is not proposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RefusedChange {
    /// Rule that decided; `null` for none.
    pub rule: Option<String>,
    /// Host; `null` for both.
    pub end: Option<HostEnd>,
    /// Reason, and alternatives.
    pub text: String,
}

/// Trial of one group of changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GroupTrial {
    /// Group.
    pub group: ChangeGroup,
    /// Short description; for an alternative, its name.
    pub name: String,
    /// Measurements in pairs, in random order within each.
    pub pairs: Vec<MeasurementPair>,
    /// Decision.
    pub decision: TrialDecision,
    /// Reason for the decision, with the figures.
    pub sentence: String,
    /// Differences of the figures with the changes.
    pub effects: Vec<MeasuredEffect>,
}

/// Difference of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MeasuredEffect {
    /// Figure.
    pub name: EffectFigure,
    /// Unit of all values here.
    pub unit: FigureUnit,
    /// Value without the changes: the median where it varies less than the value with them, otherwise the value with
    /// them less the difference.
    pub before: Option<f64>,
    /// Value with the changes: the value without them and the difference.
    pub after: Option<f64>,
    /// Effect of the changes: of rates and times by the mean ratio of the pairs, of shares by their mean difference. The
    /// figure by which the changes were chosen is corrected for that choice.
    pub difference: Option<f64>,
    /// Lower bound of the 95 % confidence interval, which holds however many pairs were measured.
    pub low: Option<f64>,
    /// Upper bound of the 95 % confidence interval.
    pub high: Option<f64>,
}

/// Figures by which changes are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EffectFigure {
    /// Goodput of the transfer.
    Goodput,
    /// 95th percentile of the round trips of the loaded connections.
    RoundTripP95,
    /// Retransmitted share of the segments.
    Retransmitted,
    /// Utilisation of the busiest processor.
    Processor,
}

impl EffectFigure {
    /// Name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Goodput => "goodput",
            Self::RoundTripP95 => "round_trip_p95",
            Self::Retransmitted => "retransmitted",
            Self::Processor => "processor",
        }
    }

    /// Display title.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Goodput => "Goodput",
            Self::RoundTripP95 => "Round trip under load (95 %)",
            Self::Retransmitted => "Retransmitted",
            Self::Processor => "Busiest processor",
        }
    }

    /// Unit of its values.
    #[must_use]
    pub const fn unit(self) -> FigureUnit {
        match self {
            Self::Goodput => FigureUnit::BitsPerSecond,
            Self::RoundTripP95 => FigureUnit::Nanoseconds,
            Self::Retransmitted | Self::Processor => FigureUnit::Share,
        }
    }

    /// Direction of improvement.
    #[must_use]
    pub const fn better(self) -> ImprovementDirection {
        match self {
            Self::Goodput => ImprovementDirection::Higher,
            Self::RoundTripP95 | Self::Retransmitted | Self::Processor => ImprovementDirection::Lower,
        }
    }
}

/// Changes of one host that are in effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeptSet {
    /// Host.
    pub end: HostEnd,
    /// Number of the change set.
    pub id: u64,
    /// Command, for the host that measured, that rolls it back.
    pub undo: String,
    /// File that makes it persistent; `null` where it is not.
    pub file: Option<String>,
    /// Persistent changes.
    pub persistent: Vec<String>,
    /// Changes that are in effect until the next boot.
    pub until_reboot: Vec<String>,
    /// Possible conflicts with the file at the next boot.
    pub warnings: Vec<String>,
}
