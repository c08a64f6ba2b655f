//! The document of `linerate shape DEV --json`: what was planned for a line, what stands, and what came of it.

use serde::{Deserialize, Serialize};

use super::shape::ShapeVerification;

/// Version of the shape.
pub const SCHEMA: u32 = 1;

/// A shaper of one interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShaperDocument {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The linerate that did it.
    pub linerate_version: String,
    /// The interface.
    pub device: String,
    /// The words behind `linerate shape` that ask for the same.
    pub words: Vec<String>,
    /// What has become of it.
    pub outcome: ShaperOutcome,
    /// The number of its changes (`linerate rollback --list`); `null` where nothing was changed.
    pub changes: Option<u64>,
    /// How it shapes: `cake`, `htb+fq_codel`, …
    pub back_end: String,
    /// What comes before it, and why it is not that.
    pub rejected: Vec<RejectedBackEnd>,
    /// The line.
    pub line: LineDescription,
    /// What received packets pass: `redirected`, `policed`, `not_asked` or `uncontrolled`.
    pub receiving: String,
    /// What is set up, in order.
    pub steps: Vec<ShaperStep>,
    /// What to expect.
    pub prediction: Vec<PredictedDelay>,
    /// What a smaller MTU would bring: offered, never set by itself.
    pub advice: Vec<MtuAdvice>,
    /// How what stands differs from the plan; empty when it is as planned, and where nothing was set up.
    pub differences: Vec<String>,
    /// What was measured without and with it, and the judgement; `null` where nothing was measured.
    pub verification: Option<Box<ShapeVerification>>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// What has become of a shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ShaperOutcome {
    /// Only planned.
    Planned,
    /// It was set up.
    SetUp,
    /// Its rates were changed in place.
    Changed,
    /// It stood already.
    Unchanged,
    /// It was set up, did not pass or was not confirmed, and was taken back.
    TakenBack,
}

/// A back end that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RejectedBackEnd {
    /// Which.
    pub back_end: String,
    /// Why.
    pub reason: String,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LineDescription {
    /// Rate that what is sent is held to; `null`: not shaped.
    pub up_bits_per_second: Option<f64>,
    /// Rate that what is received is held to.
    pub down_bits_per_second: Option<f64>,
    /// Bytes that the line adds to an IP packet.
    pub overhead_bytes: u64,
    /// The least that a packet occupies.
    pub minimum_bytes: u64,
    /// `none`, `atm` or `ptm`.
    pub framing: String,
    /// The largest IP packet.
    pub mtu: u32,
    /// The round trip for which queues are tuned.
    pub round_trip_ns: u64,
}

/// One thing that is set up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShaperStep {
    /// The command that does the same.
    pub command: String,
    /// `up` or `down`; `null` for both.
    pub direction: Option<String>,
    /// Why.
    pub reason: String,
}

/// A delay that is to be expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PredictedDelay {
    /// Which direction is full.
    pub direction: String,
    /// `interactive`, `default` or `bulk`.
    pub importance: String,
    /// Whether the idle line's round trip is in the times; else they are additions to it.
    pub includes_idle: bool,
    /// How long a full packet keeps the line busy: the floor.
    pub packet_ns: u64,
    /// The mean.
    pub mean_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// What a flow that fills the line finds in its own queue.
    pub own_queue_ns: u64,
    /// The sum as text.
    pub arithmetic: String,
}

/// What a smaller largest packet would bring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MtuAdvice {
    /// In which direction.
    pub direction: String,
    /// The largest packet then.
    pub mtu: u32,
    /// What the mean delay of an interactive packet under load falls by.
    pub mean_gain_ns: u64,
    /// What the longest falls by.
    pub longest_gain_ns: u64,
    /// The share of the goodput that it costs, 0 to 1.
    pub goodput_cost: f64,
    /// What else is to be said.
    pub notes: Vec<String>,
}
