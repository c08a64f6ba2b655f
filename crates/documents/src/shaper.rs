//! Document of `linerate shape DEV --json`: planned shaper, active shaper, and outcome.

use linerate_model::direction::Direction;
use linerate_model::load::PhaseKind;
use linerate_shape::back_ends::BackEndId;
use linerate_shape::link::LinkFraming;
use linerate_shape::policy::TrafficImportance;
use serde::{Deserialize, Serialize};

use super::shape::ShapeVerification;

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Shaper of one interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShaperDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Version of linerate that ran.
    pub linerate_version: String,
    /// Interface.
    pub device: String,
    /// Arguments of `linerate shape` for the same shaper.
    pub arguments: Vec<String>,
    /// Outcome.
    pub outcome: ShaperOutcome,
    /// Number of the change set (`linerate rollback --list`); `null` where nothing was changed.
    pub changes: Option<u64>,
    /// Back end.
    pub back_end: BackEndId,
    /// Preferred back ends that were rejected, with the reason.
    pub rejected: Vec<RejectedBackEnd>,
    /// Access link.
    pub link: AccessLinkDescription,
    /// Traffic classes with rates of their own (`--class`, `--classes`), in their order; a group is before its members.
    pub traffic_classes: Vec<PlannedTrafficClass>,
    /// Treatment of received packets.
    pub receiving: IngressTreatment,
    /// Setup steps, in order.
    pub steps: Vec<ShaperStep>,
    /// Predicted delays.
    pub prediction: Vec<PredictedDelay>,
    /// Effect of a smaller MTU: offered, never set automatically.
    pub advice: Vec<MtuAdvice>,
    /// Differences between the active shaper and the plan; empty when there are none, and where nothing was set up.
    pub differences: Vec<String>,
    /// Measurements without and with the shaper, and the verdict; `null` where nothing was measured.
    pub verification: Option<Box<ShapeVerification>>,
    /// Notes shown below the table.
    pub notes: Vec<String>,
}

/// Outcome of a shaper command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ShaperOutcome {
    /// Planned only.
    Planned,
    /// Set up.
    SetUp,
    /// Rates changed in place.
    Changed,
    /// Already active.
    Unchanged,
    /// Set up, did not pass or was not confirmed, and rolled back.
    RolledBack,
}

/// Back end that was rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RejectedBackEnd {
    /// Back end.
    pub back_end: BackEndId,
    /// Reason.
    pub reason: String,
}

/// Access link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccessLinkDescription {
    /// Rate limit of sent traffic; `null` when not shaped.
    pub up_bits_per_second: Option<f64>,
    /// Rate limit of received traffic.
    pub down_bits_per_second: Option<f64>,
    /// Link-layer overhead per IP packet.
    pub overhead_bytes: u64,
    /// Minimum packet size on the link.
    pub minimum_bytes: u64,
    /// Framing of the link layer.
    pub framing: LinkFraming,
    /// Largest IP packet.
    pub mtu: u32,
    /// Round trip for which queues are tuned: the longer one where the directions differ.
    pub round_trip_ns: u64,
    /// Round trip for which queues of sent traffic are tuned.
    pub up_round_trip_ns: u64,
    /// Round trip for which queues of received traffic are tuned.
    pub down_round_trip_ns: u64,
}

/// Traffic class, or a group of classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlannedTrafficClass {
    /// Selectors and name.
    #[serde(flatten)]
    pub class: TrafficClassIdentity,
    /// Rates of sent packets, after `--oversubscribe`; `null` where they have no class.
    pub up: Option<TrafficClassRates>,
    /// Rates of received packets.
    pub down: Option<TrafficClassRates>,
}

/// Selectors and name of a traffic class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrafficClassIdentity {
    /// Name; `null` for a class without one.
    pub name: Option<String>,
    /// Addresses, prefixes, `mark/NUMBER` and `dscp/NUMBER` of its packets; empty for a group.
    pub selectors: Vec<String>,
    /// Name of the group that it belongs to; `null` when it is directly below the link.
    pub group: Option<String>,
}

/// Rates of a traffic class in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrafficClassRates {
    /// Guaranteed rate.
    pub guaranteed_bits_per_second: f64,
    /// Rate up to which it uses what others leave.
    pub ceiling_bits_per_second: f64,
}

/// Treatment of received packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum IngressTreatment {
    /// Not requested.
    NotAsked,
    /// Redirected to a shaped intermediate device.
    Redirected,
    /// Dropped above the rate.
    Policed,
    /// Not controlled, as this kernel has no way.
    Uncontrolled,
}

/// Setup step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShaperStep {
    /// Equivalent command.
    pub command: String,
    /// `up` or `down`; `null` for both.
    pub direction: Option<Direction>,
    /// Reason.
    pub reason: String,
}

/// Predicted delay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PredictedDelay {
    /// Loaded directions.
    pub load: PhaseKind,
    /// Importance.
    pub importance: TrafficImportance,
    /// True for packets with ECT(1) in a dual queue; all others have entries of their own.
    pub l4s: bool,
    /// True when the times include the idle round trip; else they are added to it.
    pub includes_idle: bool,
    /// Serialisation time of a full packet: the lower bound.
    pub packet_ns: u64,
    /// Mean.
    pub mean_ns: u64,
    /// Maximum.
    pub longest_ns: u64,
    /// Queueing delay of a flow that fills the link, in its own queue.
    pub own_queue_ns: u64,
    /// Sum as text.
    pub arithmetic: String,
}

/// Predicted effect of a smaller MTU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MtuAdvice {
    /// Direction.
    pub direction: Direction,
    /// Proposed MTU.
    pub mtu: u32,
    /// Decrease of the mean delay of an interactive packet under load.
    pub mean_gain_ns: u64,
    /// Decrease of the maximum delay.
    pub longest_gain_ns: u64,
    /// Share of the goodput that it costs, 0 to 1.
    pub goodput_cost: f64,
    /// Notes.
    pub notes: Vec<String>,
}
