//! The document of `linerate tune --json`: what limits, what was proposed, what was tried, and what became of it.

use serde::{Deserialize, Serialize};

use super::change::ChangeDocument;
use super::diagnose::DiagnoseDocument;
use super::path::Unknown;
use super::run::Unit;
use super::throughput::Termination;

/// Version of the shape.
pub const SCHEMA: u32 = 1;

/// One run of `linerate tune`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TuneDocument {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The linerate that did it.
    pub linerate_version: String,
    /// The far end as the user wrote it; empty where nothing was measured.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// When it began: nanoseconds since 1970-01-01 00:00 UTC.
    pub started_at_unix_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// How it ended.
    pub termination: Termination,
    /// What the hosts are for: `wan-bulk`, `lan`, `low-latency`, `web`, `router`.
    pub role: String,
    /// The transfer's options, as iperf3 has them; empty for its defaults.
    pub transfer: Vec<String>,
    /// What became of it.
    pub outcome: TuneOutcome,
    /// The same in one sentence.
    pub sentence: String,
    /// What was seen before anything was changed; `null` where nothing was measured.
    pub before: Option<Box<DiagnoseDocument>>,
    /// One round for each cause that was found, in order.
    pub rounds: Vec<Round>,
    /// What was seen at the end, with everything in force that is kept; `null` where nothing was changed.
    pub after: Option<Box<DiagnoseDocument>>,
    /// Before and after, figure by figure: the first and the last measurement of the same transfer.
    #[serde(default)]
    pub effects: Vec<Effect>,
    /// What each group of changes brought, in the order in which they were tried.
    #[serde(default)]
    pub contributions: Vec<Contribution>,
    /// What is in force now.
    #[serde(default)]
    pub kept: Vec<KeptSet>,
    /// What could not be done or seen: name → why.
    #[serde(default)]
    pub unknown: Vec<Unknown>,
    /// What a reader should know.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TuneOutcome {
    /// Nothing on a host limits: nothing is proposed.
    NothingToChange,
    /// A plan, and nothing was touched (`--dry-run`, or no far end to measure against).
    Planned,
    /// A plan, and the person who was asked said no.
    Declined,
    /// At least one group of changes is in force.
    Kept,
    /// Changes were tried, and none of them earned its keep.
    RolledBack,
    /// It came to no end; everything was taken back.
    BrokenOff,
}

impl TuneOutcome {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::NothingToChange, Self::Planned, Self::Declined, Self::Kept, Self::RolledBack, Self::BrokenOff];

    /// For people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::NothingToChange => "nothing to change",
            Self::Planned => "planned only",
            Self::Declined => "declined",
            Self::Kept => "kept",
            Self::RolledBack => "taken back",
            Self::BrokenOff => "broken off",
        }
    }
}

/// What was proposed for one cause, and tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Round {
    /// The cause, for example `receive-window`; `null` where nothing was measured.
    pub cause: Option<String>,
    /// What is proposed, in the order in which it is tried.
    pub changes: Vec<ProposedChange>,
    /// What is not proposed, or less of it, and why.
    pub refusals: Vec<Refusal>,
    /// Whether the changes live with a cause that is on the path instead of removing it.
    pub lives_with_the_path: bool,
    /// What was tried.
    #[serde(default)]
    pub trials: Vec<Trial>,
}

/// A change of one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProposedChange {
    /// `near` or `far`.
    pub end: String,
    /// The change.
    pub change: ChangeDocument,
    /// Other forms of it, any of which does the same, and other values, each of which may do as well.
    #[serde(default)]
    pub alternatives: Vec<ChangeDocument>,
}

/// Something that is not proposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Refusal {
    /// The rule that has looked; `null` where none was asked.
    pub rule: Option<String>,
    /// `near` or `far`; `null` for both.
    pub end: Option<String>,
    /// The reason, and what could be done instead.
    pub text: String,
}

/// One group of changes, tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Trial {
    /// The group: `buffers`, `congestion_control`, ….
    pub group: String,
    /// What was tried, in a few words; for an alternative, which one.
    pub name: String,
    /// The measurements, in order: without, with, without, with ….
    pub pairs: Vec<Pair>,
    /// `keep`, `roll_back`, `unclear`.
    pub decision: String,
    /// Why, with the figures.
    pub sentence: String,
    /// By how much the figures are different with the changes.
    pub effects: Vec<Effect>,
}

/// A measurement without the changes, and the one with them that followed at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pair {
    /// Without.
    pub before: Measurement,
    /// With.
    pub after: Measurement,
    /// Why it does not count; `null` where it does.
    pub fault: Option<String>,
}

/// One transfer of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Measurement {
    /// Payload that arrived.
    pub goodput_bits_per_second: f64,
    /// Round trip under load that the slowest twentieth exceeds.
    pub round_trip_p95_ns: Option<u64>,
    /// Smallest round trip.
    pub base_round_trip_ns: Option<u64>,
    /// Share of bytes that were sent again.
    pub retransmitted: Option<f64>,
    /// The busiest processor of both hosts.
    pub processor: Option<f64>,
    /// What disturbed it; `null` where nothing did.
    pub disturbed: Option<String>,
}

/// By how much a figure is different.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Effect {
    /// Stable name: `goodput`, `round_trip_p95`, `retransmitted`, `processor`.
    pub name: String,
    /// What a person reads.
    pub title: String,
    /// Unit of all values here.
    pub unit: Unit,
    /// Median without.
    pub before: Option<f64>,
    /// Median with.
    pub after: Option<f64>,
    /// Median of the pairs' differences.
    pub difference: Option<f64>,
    /// Lower end of its 95 % confidence interval.
    pub low: Option<f64>,
    /// Upper end of its 95 % confidence interval.
    pub high: Option<f64>,
}

/// What one group of changes brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Contribution {
    /// The group.
    pub group: String,
    /// `keep`, `roll_back`, `unclear`.
    pub decision: String,
    /// Goodput without it, at the time when it was tried.
    pub before_bits_per_second: Option<f64>,
    /// Goodput with it.
    pub after_bits_per_second: Option<f64>,
    /// Its part of what all kept groups gained, from 0 to 1; `null` where it was not kept.
    pub part: Option<f64>,
}

/// Changes of one host that are in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeptSet {
    /// `near` or `far`.
    pub end: String,
    /// Number of the change set.
    pub id: u64,
    /// The command that takes it back, and where it is to be run.
    pub undo: String,
    /// The file that makes it last; `null` where nothing does.
    pub file: Option<String>,
    /// What lasts.
    pub lasting: Vec<String>,
    /// What holds until the next boot.
    pub until_reboot: Vec<String>,
    /// What may defeat the file at the next boot.
    pub warnings: Vec<String>,
}
