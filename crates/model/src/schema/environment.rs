//! The host a measurement was made from, as it was then.
//!
//! A fact that could not be read is `null`, and `unreadable` says why.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Environment {
    /// Its name.
    pub host_name: Option<String>,
    /// Kernel release, for example `6.12.117`.
    pub kernel: Option<String>,
    /// Machine architecture, for example `x86_64`.
    pub architecture: Option<String>,
    /// Model of the processor.
    pub processor: Option<String>,
    /// Logical processors.
    pub processors: Option<u64>,
    /// What it runs in: a hypervisor or container by name.
    pub virtualisation: Option<String>,
    /// Congestion control of new connections.
    pub congestion_control: Option<String>,
    /// Congestion controls that can be chosen.
    pub congestion_controls: Option<Vec<String>>,
    /// Kernel's clock source, for example `tsc`.
    pub clock_source: Option<String>,
    /// Whether the clock is synchronised.
    pub clock_synchronised: Option<bool>,
    /// Largest error of the clock (`adjtimex`, maxerror).
    pub clock_error_bound_ns: Option<u64>,
    /// Runnable processes, mean of the last minute.
    pub load_average: Option<f64>,
    /// The interface that leads to the other end.
    pub interface: Option<Interface>,
    /// Settings that matter, by key.
    pub sysctls: BTreeMap<String, String>,
    /// Bytes per second of others on the interface during the run, where both are known.
    pub other_traffic: Option<OtherTraffic>,
    /// What could not be read: name of the fact → why.
    pub unreadable: BTreeMap<String, String>,
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its MTU in bytes.
    pub mtu_bytes: Option<u64>,
    /// Its driver.
    pub driver: Option<String>,
    /// Its speed in bit/s.
    pub speed_bits_per_second: Option<f64>,
    /// Offloads by ethtool's names; whether they are on.
    pub offloads: BTreeMap<String, bool>,
    /// Root queueing discipline, for example `fq_codel`.
    pub queueing_discipline: Option<String>,
    /// Length of the device's queue in packets.
    pub transmit_queue_packets: Option<u64>,
}

/// Traffic on the interface that was not the measurement's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OtherTraffic {
    /// Received, mean over the run.
    pub received_bits_per_second: f64,
    /// Sent, mean over the run.
    pub sent_bits_per_second: f64,
}
