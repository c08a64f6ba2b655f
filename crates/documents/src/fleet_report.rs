//! Report of the results of a fleet or a monitor: what limits each direction now, and what is worse than usual.

use linerate_model::diagnosis::Cause;
use linerate_model::direction::Direction;
use serde::Serialize;

use crate::fleet_result::SessionOutcome;
use crate::run::{EnvironmentDifference, FigureUnit};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Report of results.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetReport {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Number of results.
    pub results: u64,
    /// Results of tests that have failed.
    pub failed: u64,
    /// Results of tests that were not started.
    pub skipped: u64,
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// Latest state of each direction that has one.
    pub directions: Vec<FleetDirection>,
    /// Causes that limit directions, that of the most first.
    pub faults: Vec<CommonFault>,
    /// Figures that are worse than usual.
    pub unusual: Vec<UnusualFigure>,
}

/// Latest state of a direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetDirection {
    /// Sending host.
    pub sender: String,
    /// Receiving host.
    pub receiver: String,
    /// Identity of the result.
    pub result: String,
    /// Time for which its test was planned, in nanoseconds since 1970-01-01 00:00 UTC.
    pub at_unix_ns: u64,
    /// Outcome.
    pub outcome: SessionOutcome,
    /// Reason why there is no result, or why it is a part of one.
    pub reason: Option<String>,
    /// Cause that limits the direction; `null` when the test looks for none.
    pub cause: Option<Cause>,
    /// Goodput.
    pub goodput_bits_per_second: Option<f64>,
    /// Idle round trip.
    pub rtt_ns: Option<u64>,
    /// Delay that a load adds to it.
    pub added_delay_ns: Option<u64>,
    /// Lost share of the probes.
    pub loss_ratio: Option<f64>,
}

/// Cause that limits some directions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CommonFault {
    /// Cause.
    pub cause: Cause,
    /// Sentence for people.
    pub text: String,
    /// Host that the directions have in common; `null` without one.
    pub host: Option<String>,
    /// Directions: the sending and the receiving host of each.
    pub directions: Vec<[String; 2]>,
}

/// Values that a new one is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UsualBasis {
    /// Those of the same hour of the week.
    HourOfWeek,
    /// Those of the same hour of the day.
    HourOfDay,
    /// All.
    AnyHour,
}

impl UsualBasis {
    /// Description of the values.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::HourOfWeek => "at this hour of the week",
            Self::HourOfDay => "at this hour of the day",
            Self::AnyHour => "at any hour",
        }
    }
}

/// Figure of a pair that is worse than usual since some results.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnusualFigure {
    /// Name of the address whose agent started the tests.
    pub source: String,
    /// Name of the other address.
    pub destination: String,
    /// Name of the task.
    pub task: String,
    /// Name of the figure in results.
    pub figure: String,
    /// Name of the figure for people, without its direction.
    pub title: String,
    /// Direction of the figure; `null` for both.
    pub direction: Option<Direction>,
    /// Unit of the values.
    pub unit: FigureUnit,
    /// Median of the values since then.
    pub value: f64,
    /// Median of the usual values.
    pub usual: f64,
    /// Value from which on it is worse than usual.
    pub bound: f64,
    /// Number of usual values.
    pub usual_count: u64,
    /// Usual values that count.
    pub usual_basis: UsualBasis,
    /// Time of the first of these values, in nanoseconds since 1970-01-01 00:00 UTC.
    pub since_unix_ns: u64,
    /// Number of values since then.
    pub count: u64,
    /// Facts that changed around that time.
    pub changes: Vec<EnvironmentDifference>,
}
