//! Result of one test of a fleet or of a monitor, also of one that was skipped: what its agent keeps, sends on, and what
//! `linerate fleet report` reads, one object a line.

use linerate_units::WallTime;
use serde::{Deserialize, Serialize};

pub use crate::fleet_test_kind::FleetTestKind;
use crate::run::{RunDocument, RunFigure};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Result of one test between two addresses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetResult {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Identity: every copy of a result has the same, by which readers keep one of them.
    pub id: String,
    /// Name of the task of the description; `test` or `probe` of a monitor.
    pub task: String,
    /// Type of the test: `throughput`, `diagnose`, `load`, `rtt`, ….
    #[cfg_attr(test, schemars(with = "String"))]
    pub test: FleetTestKind,
    /// Name of the address whose agent started the test. Up is away from it.
    pub source: String,
    /// Name of the other address.
    pub destination: String,
    /// Member that published it, where that is not its source: readers leave it out of the matrix.
    #[serde(default)]
    pub publisher: Option<String>,
    /// Time for which the test was planned, in nanoseconds since 1970-01-01 00:00 UTC.
    pub at_unix_ns: u64,
    /// Outcome.
    pub outcome: SessionOutcome,
    /// Reason why there is no result, or why it is a part of one.
    pub reason: Option<String>,
    /// Result in one sentence; empty without one.
    pub verdict: String,
    /// Figures, as those of the run.
    pub figures: Vec<RunFigure>,
    /// Host that started the test, as it was; `None` without a run, and in results of earlier versions.
    #[serde(default)]
    pub host: Option<ResultHost>,
    /// Addresses of the routers there, from the first to the last; empty when they were not looked for.
    pub route: Vec<String>,
    /// The run; `None` for a light test, whose figures are all of it, and without one.
    pub run: Option<Box<RunDocument>>,
}

/// Host that started a test: what explains a change, also of a light test, whose run is not kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ResultHost {
    /// Version of linerate.
    pub linerate_version: String,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Congestion control of new connections.
    pub congestion_control: Option<String>,
    /// Name of the interface of the route.
    pub interface: Option<String>,
    /// MTU of that interface.
    pub interface_mtu_bytes: Option<u64>,
    /// Root queueing discipline of that interface.
    pub queueing_discipline: Option<String>,
}

impl ResultHost {
    /// Local host of a run.
    #[must_use]
    pub fn of(run: &RunDocument) -> Self {
        let near = run.environment.near.as_ref();
        let interface = near.and_then(|near| near.interface.as_ref());
        Self {
            linerate_version: run.linerate_version.clone(),
            kernel: near.and_then(|near| near.kernel.clone()),
            congestion_control: near.and_then(|near| near.congestion_control.clone()),
            interface: interface.map(|interface| interface.name.clone()),
            interface_mtu_bytes: interface.and_then(|interface| interface.mtu_bytes),
            queueing_discipline: interface.and_then(|interface| interface.queueing_discipline.clone()),
        }
    }
}

/// Outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SessionOutcome {
    /// It measured.
    Done,
    /// It was started, and has no result.
    Failed,
    /// It was not started, or linerate was ended during it.
    Skipped,
}

impl SessionOutcome {
    /// Name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

impl FleetResult {
    /// Result of a test that was not started, without a reason.
    #[must_use]
    pub fn unstarted(
        task: &str,
        test: impl Into<FleetTestKind>,
        [source, destination]: [&str; 2],
        at: WallTime,
    ) -> Self {
        Self {
            schema: SCHEMA,
            id: Self::identity(task, source, destination, at),
            task: task.to_owned(),
            test: test.into(),
            source: source.to_owned(),
            destination: destination.to_owned(),
            publisher: None,
            at_unix_ns: u64::try_from(at.since_unix_epoch().as_nanos()).unwrap_or(u64::MAX),
            outcome: SessionOutcome::Skipped,
            reason: None,
            verdict: String::new(),
            figures: Vec::new(),
            host: None,
            route: Vec::new(),
            run: None,
        }
    }

    /// Identity of the test of a task between two addresses at a time.
    #[must_use]
    pub fn identity(task: &str, source: &str, destination: &str, at: WallTime) -> String {
        format!("{task}/{source}/{destination}/{}", at.since_unix_epoch().as_nanos())
    }

    /// Time for which the test was planned.
    #[must_use]
    pub const fn at(&self) -> WallTime {
        WallTime::from_unix(core::time::Duration::from_nanos(self.at_unix_ns))
    }

    /// Value of a figure, in its unit.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name)?.value
    }
}
