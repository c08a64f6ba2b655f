//! Document of `linerate shape status --json`: present state of the shapers of this host.

use linerate_model::direction::Direction;
use linerate_shape::back_ends::BackEndId;
use linerate_shape::policy::TrafficImportance;
use serde::{Deserialize, Serialize};

use super::shaper::{TrafficClassIdentity, TrafficClassRates};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Shapers of this network namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShaperStatusDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Version of linerate that read the host.
    pub linerate_version: String,
    /// Duration of the observation: rates are means over this time.
    pub interval_ns: u64,
    /// Shapers, one entry for each interface.
    pub shapers: Vec<ShaperStatus>,
}

/// One shaper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShaperStatus {
    /// Interface.
    pub device: String,
    /// Back end; `null` where its record is lost.
    pub back_end: Option<BackEndId>,
    /// Arguments of `linerate shape` for the same shaper.
    pub arguments: Vec<String>,
    /// Number of its change set (`linerate rollback --list`).
    pub changes: u64,
    /// State of each shaped direction.
    pub directions: Vec<DirectionStatus>,
    /// Utilisation of the busiest processor; `null` where it could not be read.
    pub busiest_processor: Option<f64>,
    /// Differences between the active shaper and the plan.
    pub differences: Vec<String>,
    /// Warnings: the shaper is bypassed, a processor is saturated, the link has changed.
    pub warnings: Vec<String>,
}

/// One direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DirectionStatus {
    /// Direction.
    pub direction: Direction,
    /// Device on which it is shaped.
    pub device: String,
    /// Configured rate.
    pub set_bits_per_second: f64,
    /// Rate that left the shaper.
    pub carried_bits_per_second: f64,
    /// Rate of the interface itself in that direction; `null` where it was not read.
    pub interface_bits_per_second: Option<f64>,
    /// Ratio of the carried to the configured rate, 0 to 1 and a little more.
    pub realised: f64,
    /// Classes or tins, without the traffic classes; one where there is no classification.
    pub classes: Vec<ClassStatus>,
    /// Traffic classes with rates of their own (`--class`, `--classes`), in their order; a group is before its members.
    pub traffic_classes: Vec<TrafficClassStatus>,
}

/// One traffic class, or a group with the sums of its members, in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrafficClassStatus {
    /// Selectors and name.
    #[serde(flatten)]
    pub class: TrafficClassIdentity,
    /// Configured rates.
    #[serde(flatten)]
    pub rates: TrafficClassRates,
    /// Rate that left the class.
    pub carried_bits_per_second: f64,
    /// Bytes sent since setup, as the kernel counts them; `null`, as the counters below, where the kernel has no such class.
    pub sent_bytes: Option<u64>,
    /// Packets sent since setup.
    pub sent_packets: Option<u64>,
    /// Packets dropped since setup.
    pub dropped: Option<u64>,
    /// Packets dropped during the interval.
    pub dropped_now: Option<u64>,
    /// Bytes in the queue.
    pub backlog_bytes: Option<u64>,
    /// Packets in the queue.
    pub backlog_packets: Option<u64>,
}

/// One class, or one of CAKE's tins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClassStatus {
    /// Name.
    pub name: ShaperClassName,
    /// Rate that left the class.
    pub carried_bits_per_second: f64,
    /// Bytes in the queue.
    pub backlog_bytes: u64,
    /// Delay of the last packet in the queue: as measured by the discipline, else the backlog at the class's rate.
    pub delay_ns: u64,
    /// Recent maximum delay; `null` where the discipline does not report it.
    pub peak_delay_ns: Option<u64>,
    /// Packets dropped since setup.
    pub dropped: u64,
    /// Packets ECN-marked since setup; `null` where the discipline does not report them.
    pub marked: Option<u64>,
    /// Packets dropped during the interval.
    pub dropped_now: u64,
}

/// Classes of a shaper: the classes of importance, or CAKE's tins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ShaperClassName {
    /// All traffic: the shaper has no classes.
    All,
    /// Interactive traffic.
    Interactive,
    /// Traffic without a rule.
    Default,
    /// Background traffic; also CAKE's lowest tin.
    Bulk,
    /// CAKE's tin of unmarked traffic.
    BestEffort,
    /// CAKE's tin of streaming.
    Video,
    /// CAKE's tin of speech.
    Voice,
}

impl ShaperClassName {
    /// Display name; of tins as in `tc -s qdisc`.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Interactive => "interactive",
            Self::Default => "default",
            Self::Bulk => "bulk",
            Self::BestEffort => "best effort",
            Self::Video => "video",
            Self::Voice => "voice",
        }
    }
}

impl From<TrafficImportance> for ShaperClassName {
    fn from(importance: TrafficImportance) -> Self {
        match importance {
            TrafficImportance::Interactive => Self::Interactive,
            TrafficImportance::Default => Self::Default,
            TrafficImportance::Bulk => Self::Bulk,
        }
    }
}
