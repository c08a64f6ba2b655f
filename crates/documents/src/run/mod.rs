//! Document of a finished measurement: command, time, hosts, results, and samples over time.
//!
//! The history stores this document, `linerate report` renders it. Within [`SCHEMA`] 1 keys may be added, none renamed
//! or removed, and no unit changed. Times are nanoseconds, sizes bytes, rates bit/s, shares numbers from 0 to 1;
//! unknown values are `null`, never 0.

mod cause;
mod comparison;
mod from_throughput;

use linerate_model::direction::Direction;
use serde::{Deserialize, Serialize};

use super::diagnose::DiagnoseDocument;
use super::doctor::DoctorDocument;
use super::environment::HostEnvironmentRecord;
use super::rfc6349::Rfc6349Document;
use super::rr::RrDocument;
use super::throughput::ThroughputDocument;
use super::tune::TuneDocument;
use super::web::WebDocument;
use linerate_model::load::LoadDocument;
use linerate_model::path::PathDocument;
use linerate_model::report::TestTermination;

pub use comparison::{
    ComparisonBasis, ComparisonRefusal, EnvironmentDifference, FigureComparison, FigureJudgement, RunComparison,
};
pub use from_throughput::RunFacts;

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Finished measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Version of linerate that measured.
    pub linerate_version: String,
    /// Command that measured.
    pub kind: RunKind,
    /// Start time in nanoseconds since 1970-01-01 00:00 UTC.
    pub started_at_unix_ns: u64,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// Host as given by the user; an emulated path as `lab:NAME`.
    pub host: String,
    /// Port of the host.
    pub port: u16,
    /// Arguments of the command line, without the program.
    pub arguments: Vec<String>,
    /// Outcome of the run.
    pub termination: TestTermination,
    /// Result in one sentence.
    pub verdict: String,
    /// Figures that represent the run, in display order.
    pub figures: Vec<RunFigure>,
    /// Local and remote host of the measurement.
    pub environment: RunEnvironment,
    /// Samples over time.
    pub series: Vec<SampleSeries>,
    /// Phases of the measurement, for the time axis.
    #[serde(default)]
    pub phases: Vec<PhaseSpan>,
    /// Document of the command itself.
    pub result: RunResult,
}

/// Converts a measurement's own document to a run with the same head; other fields are empty.
macro_rules! run_of {
    ($document:ty, $kind:ident) => {
        impl From<$document> for RunDocument {
            fn from(document: $document) -> Self {
                Self {
                    schema: SCHEMA,
                    linerate_version: document.linerate_version.clone(),
                    kind: RunKind::$kind,
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
run_of!(RrDocument, Rr);
run_of!(DiagnoseDocument, Diagnose);
run_of!(TuneDocument, Tune);
run_of!(DoctorDocument, Doctor);
run_of!(WebDocument, Web);

/// Command that measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// `linerate test`.
    Throughput,
    /// `linerate path`.
    Path,
    /// `linerate load`.
    Load,
    /// `linerate rfc6349`.
    Rfc6349,
    /// `linerate rr`.
    Rr,
    /// `linerate diagnose`.
    Diagnose,
    /// `linerate tune`.
    Tune,
    /// `linerate doctor`.
    Doctor,
    /// A test in a browser, measured by `linerate serve --web`.
    Web,
}

impl RunKind {
    /// All variants.
    pub const ALL: [Self; 9] = [
        Self::Throughput,
        Self::Path,
        Self::Load,
        Self::Rfc6349,
        Self::Rr,
        Self::Diagnose,
        Self::Tune,
        Self::Doctor,
        Self::Web,
    ];

    /// Command that measures runs of this kind; `web` for those of browsers.
    #[must_use]
    pub const fn command_name(self) -> &'static str {
        match self {
            Self::Throughput => "test",
            Self::Path => "path",
            Self::Load => "load",
            Self::Rfc6349 => "rfc6349",
            Self::Rr => "rr",
            Self::Diagnose => "diagnose",
            Self::Tune => "tune",
            Self::Doctor => "doctor",
            Self::Web => "web",
        }
    }
}

/// Document that the command prints with `--json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunResult {
    /// Document of [`RunKind::Throughput`].
    Throughput(Box<ThroughputDocument>),
    /// Document of [`RunKind::Path`].
    Path(Box<PathDocument>),
    /// Document of [`RunKind::Load`].
    Load(Box<LoadDocument>),
    /// Document of [`RunKind::Rfc6349`].
    Rfc6349(Box<Rfc6349Document>),
    /// Document of [`RunKind::Rr`].
    Rr(Box<RrDocument>),
    /// Document of [`RunKind::Diagnose`].
    Diagnose(Box<DiagnoseDocument>),
    /// Document of [`RunKind::Tune`].
    Tune(Box<TuneDocument>),
    /// Document of [`RunKind::Doctor`].
    Doctor(Box<DoctorDocument>),
    /// Document of [`RunKind::Web`].
    Web(Box<WebDocument>),
}

/// Figure that represents the run. Two runs of one kind are compared by the figures of the same `name`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunFigure {
    /// Stable name in snake case, for example `goodput_down` or `rtt_idle_median`.
    pub name: String,
    /// Display title, for example `Goodput down`.
    pub title: String,
    /// Unit of all values here.
    pub unit: FigureUnit,
    /// Value; `None` when it could not be measured.
    pub value: Option<f64>,
    /// Lower bound of the 95 % confidence interval.
    #[serde(default)]
    pub low: Option<f64>,
    /// Upper bound of the 95 % confidence interval.
    #[serde(default)]
    pub high: Option<f64>,
    /// Number of independent samples.
    #[serde(default)]
    pub count: Option<u64>,
    /// Direction of improvement.
    pub better: ImprovementDirection,
    /// Reason why there is no value, or a caveat.
    #[serde(default)]
    pub note: Option<String>,
}

impl RunFigure {
    /// Creates a figure without a value.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        title: impl Into<String>,
        unit: FigureUnit,
        better: ImprovementDirection,
    ) -> Self {
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

/// Direction of improvement of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ImprovementDirection {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither: descriptive.
    Neither,
}

/// Unit of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum FigureUnit {
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
    /// Transactions per second.
    #[serde(rename = "1/s")]
    PerSecond,
    /// A number without a unit.
    #[serde(rename = "1")]
    One,
}

impl FigureUnit {
    /// All variants.
    pub const ALL: [Self; 9] = [
        Self::BitsPerSecond,
        Self::Bytes,
        Self::Nanoseconds,
        Self::Share,
        Self::Packets,
        Self::Segments,
        Self::RoundTripsPerMinute,
        Self::PerSecond,
        Self::One,
    ];

    /// Name used in documents.
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
            Self::PerSecond => "1/s",
            Self::One => "1",
        }
    }
}

/// Hosts and path of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunEnvironment {
    /// Local host.
    pub near: Option<HostEnvironmentRecord>,
    /// Remote host, as far as it reports.
    pub far: Option<HostEnvironmentRecord>,
    /// Emulated path, when it was one: its name and description (TOML).
    #[serde(default)]
    pub lab: Option<LabPath>,
}

/// Emulated path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabPath {
    /// Name in the library, or file.
    pub name: String,
    /// Description (TOML).
    pub description: String,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// Samples of one quantity over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SampleSeries {
    /// Chart that it belongs to.
    pub panel: ChartPanel,
    /// Legend, for example `stream 3` or `UDP best effort`.
    pub name: String,
    /// Direction of the data.
    #[serde(default)]
    pub direction: Option<Direction>,
    /// Stream number, for a single stream.
    #[serde(default)]
    pub stream: Option<u32>,
    /// Unit of the values.
    pub unit: FigureUnit,
    /// Nanoseconds since the run began, ascending.
    pub times_ns: Vec<u64>,
    /// One value for each time.
    pub values: Vec<Option<f64>>,
}

/// Chart of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChartPanel {
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
    /// Retransmitted segments.
    Retransmissions,
    /// Shares of time under each limit; values of one time add up to at most 1.
    Limits,
    /// Queued bytes: not yet sent, or in a queue.
    Queue,
    /// Loss of probes.
    Loss,
}

/// Phase of the measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PhaseSpan {
    /// Name, for example `down`.
    pub name: String,
    /// Nanoseconds since the run began.
    pub start_ns: u64,
    /// Nanoseconds since the run began.
    pub end_ns: u64,
}
