//! Hops of a path: routers that answer, their delays and losses, and changes of the route.

use serde::{Deserialize, Serialize};

use super::summary::DurationDistribution;

/// Hop of the path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathHop {
    /// Distance from the local host, from 1.
    pub distance: u8,
    /// Address that answered most probes; `None` without an answer.
    pub address: Option<String>,
    /// Round-trip times to it.
    pub rtt: Option<DurationDistribution>,
    /// Probes whose hop limit ended here; `None` where they were not counted.
    #[serde(default)]
    pub sent: Option<u64>,
    /// Probes that were answered.
    #[serde(default)]
    pub answered: Option<u64>,
    /// Share of probes without an answer: loss of the path only where `replies` is `lossy`.
    #[serde(default)]
    pub unanswered: Option<f64>,
    /// Meaning of the unanswered probes.
    #[serde(default)]
    pub replies: Option<HopReplies>,
    /// Latest round-trip time in nanoseconds.
    #[serde(default)]
    pub last_ns: Option<u64>,
    /// Mean of the absolute differences of consecutive round-trip times in nanoseconds.
    #[serde(default)]
    pub jitter_ns: Option<u64>,
    /// Size in bytes of the largest IP packets that reach this hop; `None` where it was not measured.
    #[serde(default)]
    pub mtu_bytes: Option<u64>,
    /// All addresses that answered, the most frequent first; several where routes of equal cost exist.
    #[serde(default)]
    pub addresses: Vec<HopAddress>,
}

/// Meaning of the probes that a hop leaves unanswered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HopReplies {
    /// Every probe was answered.
    Complete,
    /// The hop limits its ICMP errors: later hops, or the destination, lose less.
    Limited,
    /// The loss persists to the destination: it is loss of the path.
    Lossy,
    /// Loss that neither a later hop nor the destination confirms or refutes.
    Undecided,
    /// No probe was answered, but later ones were.
    Silent,
}

impl HopReplies {
    /// Short display text.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Complete => "no loss",
            Self::Limited => "limits ICMP",
            Self::Lossy => "loss of the path",
            Self::Undecided => "undecided",
            Self::Silent => "silent",
        }
    }
}

/// Address at one distance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HopAddress {
    /// Address.
    pub address: String,
    /// Host name by reverse DNS or `/etc/hosts`; `None` where it was not asked for, or has none.
    pub name: Option<String>,
    /// Autonomous system that announces the address; `None` where it was not asked for, or is unknown.
    pub autonomous_system: Option<AutonomousSystem>,
    /// Flows that it answered, from 1: each flow keeps its addresses and ports.
    pub flows: Vec<u16>,
    /// Number of answers.
    pub answers: u64,
    /// MPLS label stack of the probe as it arrived there (RFC 4950), the outermost label first.
    pub mpls: Vec<MplsLabel>,
}

/// Autonomous system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AutonomousSystem {
    /// Number (RFC 6793).
    pub number: u32,
    /// Name of its holder, where the source has one.
    pub holder: Option<String>,
}

/// Entry of an MPLS label stack (RFC 3032).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MplsLabel {
    /// Label, 20 bits.
    pub label: u32,
    /// Traffic class, 3 bits (RFC 5462).
    pub traffic_class: u8,
    /// Time to live.
    pub time_to_live: u8,
}

/// Route as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RouteReport {
    /// Number of flows, each with a source port of its own.
    pub flows: u16,
    /// Rounds of probes, each over one flow.
    pub rounds: u64,
    /// Time between two rounds in nanoseconds.
    pub interval_ns: u64,
    /// True when the destination answered.
    pub is_reached: bool,
    /// Share of probes lost to the destination and back; `None` where it does not answer.
    pub loss: Option<f64>,
    /// Lower bound of its 95 % confidence interval (exact binomial).
    pub loss_low: Option<f64>,
    /// Upper bound.
    pub loss_high: Option<f64>,
    /// Distance of the first hop from which on the loss persists to the destination; `None` without loss.
    pub loss_from: Option<u8>,
    /// Links at which the path MTU falls, nearest first.
    pub mtu_drops: Vec<MtuDrop>,
    /// Changes of the route in the order of time.
    pub changes: Vec<RouteChange>,
}

/// Link at which the path MTU falls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MtuDrop {
    /// Distance of the hop before the link; 0 for this host.
    pub after: u8,
    /// Largest packet that reaches that hop.
    pub from_bytes: u64,
    /// Largest packet that passes the link; `None` where its size is unknown.
    pub to_bytes: Option<u64>,
    /// Address of the router that reports it; `None` where larger packets vanish without an ICMP error (a black hole).
    pub reporter: Option<String>,
}

/// Change of the route of one flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RouteChange {
    /// Time in nanoseconds since 1970-01-01 00:00 UTC.
    pub at_unix_ns: u64,
    /// Distance of the hop.
    pub distance: u8,
    /// Flow, from 1.
    pub flow: u16,
    /// Address before.
    pub before: String,
    /// Address from then on.
    pub after: String,
}
