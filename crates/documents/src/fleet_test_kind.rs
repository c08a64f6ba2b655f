//! Kinds of tests between the members of a fleet.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Kind of a test of a fleet or of a monitor: a test of pScheduler's, or `diagnose` and `load`, which only linerate has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum FleetTestKind {
    /// Transfers.
    Throughput,
    /// Limit of a transfer, and the path.
    Diagnose,
    /// Latency under load.
    Load,
    /// One-way delays.
    Latency,
    /// One-way delays all the time.
    BackgroundLatency,
    /// Round trips.
    Rtt,
    /// Routers of the path.
    Trace,
    /// Path MTU.
    Mtu,
    /// One that this version does not run, by its name.
    Other(String),
}

impl FleetTestKind {
    /// All kinds that linerate runs.
    pub const ALL: [Self; 8] = [
        Self::Throughput,
        Self::Diagnose,
        Self::Load,
        Self::Latency,
        Self::BackgroundLatency,
        Self::Rtt,
        Self::Trace,
        Self::Mtu,
    ];

    /// Name in descriptions and results.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Throughput => "throughput",
            Self::Diagnose => "diagnose",
            Self::Load => "load",
            Self::Latency => "latency",
            Self::BackgroundLatency => "latencybg",
            Self::Rtt => "rtt",
            Self::Trace => "trace",
            Self::Mtu => "mtu",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for FleetTestKind {
    fn from(name: &str) -> Self {
        Self::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or_else(|| Self::Other(name.to_owned()))
    }
}

impl From<String> for FleetTestKind {
    fn from(name: String) -> Self {
        Self::from(name.as_str())
    }
}

impl From<FleetTestKind> for String {
    fn from(kind: FleetTestKind) -> Self {
        match kind {
            FleetTestKind::Other(name) => name,
            known => known.name().to_owned(),
        }
    }
}

impl fmt::Display for FleetTestKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_written_unknown_ones_too() {
        for kind in FleetTestKind::ALL.into_iter().chain([FleetTestKind::Other("dns".to_owned())]) {
            let json = serde_json::to_string(&kind).expect("a text");
            assert_eq!(json, format!("\"{}\"", kind.name()));
            assert_eq!(serde_json::from_str::<FleetTestKind>(&json).expect("a kind"), kind);
        }
    }
}
