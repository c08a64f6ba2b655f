//! Document of `linerate fleet plan --json`: timetable of a fleet, its cost, and the starts of its sessions.

use core::time::Duration;
use std::sync::Arc;

use linerate_units::serde::{Nanoseconds, OptionalNanoseconds};
use linerate_units::{ByteCount, Ratio, WallTime};
use serde::Serialize;

use crate::civil_time::as_rfc3339;
use crate::fleet_result::FleetTestKind;

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Plan of a fleet.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetPlanDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Timetable.
    pub timetable: FleetTimetable,
    /// Cost of a cycle in which every session runs.
    pub cost: FleetCost,
    /// Next start of each exclusive session, in order of time.
    pub starts: Vec<PlannedStart>,
}

/// Sessions of all hosts over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetTimetable {
    /// Length of a slot: the longest session, and the guard before and after it.
    pub slot_ns: u64,
    /// Largest difference of two hosts' clocks.
    pub clock_guard_ns: u64,
    /// Slots of a lap.
    pub rounds: u32,
    /// Laps of a cycle.
    pub laps: u32,
    /// Time from the beginning of a cycle to that of the next.
    pub period_ns: u64,
    /// Exclusive sessions, by slot.
    pub sessions: Vec<PlannedSession>,
    /// Light sessions, which have no slot.
    pub light: Vec<TestSession>,
}

/// Session with its place in the cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlannedSession {
    /// Session.
    pub session: TestSession,
    /// Slot of the cycle, from 0.
    pub slot: u32,
    /// Number of cycles of which it runs in one.
    pub every: u32,
    /// Offset of that cycle: the number of the cycle plus this is a multiple of `every`.
    pub phase: u32,
}

/// One test between two addresses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TestSession {
    /// Number that follows from the names of the task and the addresses alone.
    #[serde(skip)]
    pub identity: u64,
    /// Name of the task.
    pub task: Arc<str>,
    /// Type of the test: `throughput`, `diagnose`, `load`, `rtt`, ….
    #[cfg_attr(test, schemars(with = "String"))]
    pub kind: FleetTestKind,
    /// Names of the addresses, in alphabetical order.
    pub addresses: [Arc<str>; 2],
    /// Names of their hosts.
    pub hosts: [Arc<str>; 2],
    /// Index of the address whose agent starts the test: 0 or 1.
    pub starter: usize,
    /// Directions.
    pub directions: SessionDirections,
    /// Weight.
    pub weight: TestWeight,
    /// Longest time that it takes.
    #[serde(rename = "duration_ns", with = "Nanoseconds")]
    pub duration: Duration,
    /// Time with data in it, over both directions.
    #[serde(rename = "transfer_ns", with = "Nanoseconds")]
    pub transfer: Duration,
    /// Time from one run to the next that the schedule asks for; `null` where it asks for none.
    #[serde(rename = "repeat_ns", with = "OptionalNanoseconds")]
    pub repeat: Option<Duration>,
}

/// Directions that a session measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SessionDirections {
    /// From the first to the second address.
    Forward,
    /// From the second to the first.
    Backward,
    /// Both, one after the other.
    Both,
}

/// Weight of a test in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TestWeight {
    /// Fills the path: no host is in two of them at once.
    Exclusive,
    /// A few packets a second, at any time.
    Light,
}

/// Cost of a cycle in which every session runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetCost {
    /// Hosts with at least one session.
    pub hosts: usize,
    /// Largest number of exclusive sessions at once.
    pub concurrent: usize,
    /// Largest number of exclusive sessions of one host.
    pub sessions_of_a_host: usize,
    /// Share of the period during which that host is in one of them; `null` for a period of 0.
    pub busy_ratio: Option<Ratio>,
    /// Data of a cycle, where the rate of a session is known: at most this.
    #[serde(rename = "data_bytes")]
    pub data: ByteCount,
    /// Exclusive sessions of unknown rate.
    pub of_unknown_rate: usize,
}

/// Start of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlannedStart {
    /// Time in UTC (RFC 3339).
    #[serde(with = "as_rfc3339")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub at: WallTime,
    /// Name of the task.
    pub task: Arc<str>,
    /// Names of the addresses, in alphabetical order.
    pub addresses: [Arc<str>; 2],
}

impl PlannedSession {
    /// True when it runs in the cycle of this number.
    #[must_use]
    pub fn is_due(&self, cycle: u128) -> bool {
        (cycle + u128::from(self.phase)).is_multiple_of(u128::from(self.every))
    }
}

impl TestSession {
    /// Name of the address whose agent starts the test.
    #[must_use]
    pub fn starter_address(&self) -> &str {
        &self.addresses[self.starter]
    }

    /// Name of the address that it is started to.
    #[must_use]
    pub fn other_address(&self) -> &str {
        &self.addresses[1 - self.starter]
    }
}

impl TestWeight {
    /// Weight of a kind of tests; `None` for one that linerate does not run.
    #[must_use]
    pub const fn of(kind: &FleetTestKind) -> Option<Self> {
        use FleetTestKind::{BackgroundLatency, Diagnose, Latency, Load, Mtu, Other, Rtt, Throughput, Trace};
        match kind {
            Throughput | Diagnose | Load => Some(Self::Exclusive),
            Latency | BackgroundLatency | Rtt | Trace | Mtu => Some(Self::Light),
            Other(_) => None,
        }
    }
}
