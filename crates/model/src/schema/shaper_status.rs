//! The document of `linerate shape status --json`: what the shapers of this host do now.

use serde::{Deserialize, Serialize};

/// Version of the shape.
pub const SCHEMA: u32 = 1;

/// The shapers of this network namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShaperStatusDocument {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The linerate that looked.
    pub linerate_version: String,
    /// How long it looked: rates are means over this time.
    pub interval_ns: u64,
    /// One entry for each interface.
    pub shapers: Vec<ShaperStatus>,
}

/// One shaper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShaperStatus {
    /// The interface.
    pub device: String,
    /// How it shapes.
    pub back_end: String,
    /// The words behind `linerate shape` that ask for the same.
    pub words: Vec<String>,
    /// The number of its changes (`linerate rollback --list`).
    pub changes: u64,
    /// What it does in each direction that it shapes.
    pub directions: Vec<DirectionStatus>,
    /// The share of the busiest processor that was in use; `null` where that could not be read.
    pub busiest_processor: Option<f64>,
    /// How what stands differs from what was planned.
    pub differences: Vec<String>,
    /// What is to be looked at: the shaper is bypassed, a processor is full, the link has changed.
    pub warnings: Vec<String>,
}

/// One direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DirectionStatus {
    /// `up` or `down`.
    pub direction: String,
    /// On which device it is shaped.
    pub device: String,
    /// The rate that is set.
    pub set_bits_per_second: f64,
    /// What left the shaper.
    pub carried_bits_per_second: f64,
    /// What the interface itself carried in that direction; `null` where it was not read.
    pub interface_bits_per_second: Option<f64>,
    /// What is carried of what is set, 0 to 1 and a little more.
    pub realised: f64,
    /// Its classes or tins; one where everything is alike.
    pub classes: Vec<ClassStatus>,
}

/// One class, or one of CAKE's tins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClassStatus {
    /// `interactive`, `default`, `bulk`, or `all`.
    pub name: String,
    /// What left it.
    pub carried_bits_per_second: f64,
    /// Bytes that wait now.
    pub backlog_bytes: u64,
    /// How long what is behind the queue would wait: as the discipline measures it, else the backlog at the class's rate.
    pub delay_ns: u64,
    /// The longest delay of late; `null` where the discipline does not tell.
    pub peak_delay_ns: Option<u64>,
    /// Packets that it dropped since it was set up.
    pub dropped: u64,
    /// Packets that it marked instead; `null` where it does not tell.
    pub marked: Option<u64>,
    /// Packets dropped during the interval.
    pub dropped_now: u64,
}
