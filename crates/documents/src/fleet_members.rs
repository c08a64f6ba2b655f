//! Document of `linerate fleet members --json`: agents of a fleet that run.

use serde::{Deserialize, Serialize};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Members of a fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetMembersDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Agents that run, by name.
    pub members: Vec<FleetMember>,
    /// Names of the measured addresses without a running agent, which should have one.
    pub missing: Vec<String>,
    /// Largest difference of two hosts' clocks that the timetable allows.
    pub clock_guard_ns: u64,
}

/// One agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetMember {
    /// Name of its address in the description.
    pub name: String,
    /// Random number of the process.
    pub instance: String,
    /// Version of linerate.
    pub version: String,
    /// Time of its last renewal by the clock of the server, in nanoseconds since 1970-01-01 00:00 UTC.
    pub seen_unix_ns: u64,
    /// Clock, compared with the server's; `null` before the first comparison.
    pub clock: Option<MemberClock>,
}

/// Difference of an agent's clock from the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemberClock {
    /// Time of the agent minus time of the server.
    pub offset_ns: i64,
    /// Largest error of it: half of the round trip.
    pub error_ns: u64,
}
