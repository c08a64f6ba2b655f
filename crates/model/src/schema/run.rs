//! A finished measurement as it is kept: what was measured, when, where from, what came out, and the readings over time.
//!
//! The history stores this document, `linerate report` renders it. Within [`SCHEMA`] 1 keys may be added, none renamed or
//! removed, and no unit changed. Times are nanoseconds, sizes bytes, rates bit/s, shares numbers from 0 to 1; what is
//! not known is `null`, never 0.

mod comparison;
mod from_throughput;

use serde::{Deserialize, Serialize};

use super::diagnose::DiagnoseDocument;
use super::doctor::DoctorDocument;
use super::environment::Environment;
use super::load::LoadDocument;
use super::path::PathDocument;
use super::rfc6349::Rfc6349Document;
use super::throughput::{Direction, Termination, ThroughputDocument};
use super::tune::TuneDocument;

pub use comparison::{EnvironmentDifference, FigureComparison, Judgement, RunComparison};
pub use from_throughput::RunFacts;

/// Version of the shape.
pub const SCHEMA: u32 = 1;

/// One finished measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunDocument {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The linerate that measured.
    pub linerate_version: String,
    /// Which command measured.
    pub kind: Kind,
    /// When it began: nanoseconds since 1970-01-01 00:00 UTC.
    pub started_at_unix_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// The host as the user wrote it; an emulated path as `lab:NAME`.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The command line, without the program.
    pub arguments: Vec<String>,
    /// How it ended.
    pub termination: Termination,
    /// What came out, in one sentence.
    pub verdict: String,
    /// The numbers that stand for the run, in the order in which a reader wants them.
    pub figures: Vec<Figure>,
    /// Where it was measured from, and where to.
    pub environment: RunEnvironment,
    /// Readings over time.
    pub series: Vec<Series>,
    /// Phases of the measurement, for the time axis.
    #[serde(default)]
    pub phases: Vec<PhaseSpan>,
    /// The command's own document.
    pub result: RunResult,
}

/// A run of a measurement's own document, whose head it has; what the document does not say is empty.
macro_rules! run_of {
    ($document:ty, $kind:ident) => {
        impl From<$document> for RunDocument {
            fn from(document: $document) -> Self {
                Self {
                    schema: SCHEMA,
                    linerate_version: document.linerate_version.clone(),
                    kind: Kind::$kind,
                    started_at_unix_ns: document.started_at_unix_ns,
                    duration_ns: document.duration_ns,
                    host: document.host.clone(),
                    port: document.port,
                    arguments: Vec::new(),
                    termination: document.termination.clone(),
                    verdict: String::new(),
                    figures: Vec::new(),
                    environment: RunEnvironment::default(),
                    series: Vec::new(),
                    phases: Vec::new(),
                    result: RunResult::$kind(Box::new(document)),
                }
            }
        }
    };
}

run_of!(PathDocument, Path);
run_of!(LoadDocument, Load);
run_of!(Rfc6349Document, Rfc6349);
run_of!(DiagnoseDocument, Diagnose);
run_of!(TuneDocument, Tune);
run_of!(DoctorDocument, Doctor);

/// The command that measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// `linerate test`.
    Throughput,
    /// `linerate path`.
    Path,
    /// `linerate load`.
    Load,
    /// `linerate rfc6349`.
    Rfc6349,
    /// `linerate diagnose`.
    Diagnose,
    /// `linerate tune`.
    Tune,
    /// `linerate doctor`.
    Doctor,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Throughput, Self::Path, Self::Load, Self::Rfc6349, Self::Diagnose, Self::Tune, Self::Doctor];
}

/// The document that the command prints with `--json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunResult {
    /// Of [`Kind::Throughput`].
    Throughput(Box<ThroughputDocument>),
    /// Of [`Kind::Path`].
    Path(Box<PathDocument>),
    /// Of [`Kind::Load`].
    Load(Box<LoadDocument>),
    /// Of [`Kind::Rfc6349`].
    Rfc6349(Box<Rfc6349Document>),
    /// Of [`Kind::Diagnose`].
    Diagnose(Box<DiagnoseDocument>),
    /// Of [`Kind::Tune`].
    Tune(Box<TuneDocument>),
    /// Of [`Kind::Doctor`].
    Doctor(Box<DoctorDocument>),
}

/// A number that stands for the run. Two runs of one kind are compared by the figures of the same `name`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Figure {
    /// Stable name in snake case, for example `goodput_down` or `rtt_idle_median`.
    pub name: String,
    /// What a person reads, for example `Goodput down`.
    pub title: String,
    /// Unit of all values here.
    pub unit: Unit,
    /// The value; `None` when it could not be measured.
    pub value: Option<f64>,
    /// Lower end of its 95 % confidence interval.
    #[serde(default)]
    pub low: Option<f64>,
    /// Upper end of its 95 % confidence interval.
    #[serde(default)]
    pub high: Option<f64>,
    /// Independent readings behind it.
    #[serde(default)]
    pub count: Option<u64>,
    /// Which way is good.
    pub better: Better,
    /// Why there is no value, or what must be known to read it.
    #[serde(default)]
    pub note: Option<String>,
}

impl Figure {
    /// A figure that has no value yet.
    #[must_use]
    pub fn new(name: impl Into<String>, title: impl Into<String>, unit: Unit, better: Better) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            unit,
            value: None,
            low: None,
            high: None,
            count: None,
            better,
            note: None,
        }
    }
}

/// Which way a figure improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither: it describes.
    Neither,
}

/// Unit of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Unit {
    /// bit/s.
    #[serde(rename = "bit/s")]
    BitsPerSecond,
    /// Bytes.
    #[serde(rename = "B")]
    Bytes,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// A share from 0 to 1.
    #[serde(rename = "share")]
    Share,
    /// Packets.
    #[serde(rename = "packets")]
    Packets,
    /// TCP segments.
    #[serde(rename = "segments")]
    Segments,
    /// Round trips per minute.
    #[serde(rename = "round-trips/min")]
    RoundTripsPerMinute,
    /// A number without a unit.
    #[serde(rename = "1")]
    One,
}

impl Unit {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::BitsPerSecond,
        Self::Bytes,
        Self::Nanoseconds,
        Self::Share,
        Self::Packets,
        Self::Segments,
        Self::RoundTripsPerMinute,
        Self::One,
    ];

    /// Its name, as documents write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BitsPerSecond => "bit/s",
            Self::Bytes => "B",
            Self::Nanoseconds => "ns",
            Self::Share => "share",
            Self::Packets => "packets",
            Self::Segments => "segments",
            Self::RoundTripsPerMinute => "round-trips/min",
            Self::One => "1",
        }
    }
}

/// Where the run was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunEnvironment {
    /// This end.
    pub near: Option<Environment>,
    /// The far end, as far as it tells.
    pub far: Option<Environment>,
    /// The emulated path, when it was one: its name and the description (TOML).
    #[serde(default)]
    pub lab: Option<LabPath>,
}

/// An emulated path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabPath {
    /// Its name in the library, or its file.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Seed of everything random.
    pub seed: u64,
}

/// Readings of one quantity over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Series {
    /// Which chart it belongs to.
    pub panel: Panel,
    /// What a person reads in the legend, for example `stream 3` or `UDP best effort`.
    pub name: String,
    /// Which way the data flowed.
    #[serde(default)]
    pub direction: Option<Direction>,
    /// The stream, where it belongs to one.
    #[serde(default)]
    pub stream: Option<u32>,
    /// Unit of the values.
    pub unit: Unit,
    /// Nanoseconds since the run began, ascending.
    pub times_ns: Vec<u64>,
    /// One value for each time.
    pub values: Vec<Option<f64>>,
}

/// A chart of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Panel {
    /// Rates.
    Throughput,
    /// Round-trip times of the loaded connections (`tcp_info`).
    Rtt,
    /// Round-trip times of probes, by class.
    Latency,
    /// One-way delays of probes, relative to the smallest.
    OneWayDelay,
    /// Congestion windows.
    CongestionWindow,
    /// Segments sent again.
    Retransmissions,
    /// Shares of time under each limit; values of one time add up to at most 1.
    Limits,
    /// Bytes that wait: not yet sent, or in a queue.
    Queue,
    /// Loss of probes.
    Loss,
}

/// A phase of the measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PhaseSpan {
    /// Its name, for example `down`.
    pub name: String,
    /// Nanoseconds since the run began.
    pub start_ns: u64,
    /// Nanoseconds since the run began.
    pub end_ns: u64,
}
