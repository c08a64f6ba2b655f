//! Host of a measurement, as it was at the time.
//!
//! A fact that could not be read is `null`, with the reason in `unreadable`.

use std::collections::BTreeMap;

use linerate_model::environment;
use linerate_units::{BitRate, PacketCount};
use serde::{Deserialize, Serialize};

/// Environment of one host, as recorded with a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HostEnvironmentRecord {
    /// Host name.
    pub host_name: Option<String>,
    /// Kernel release, for example `6.12.117`.
    pub kernel: Option<String>,
    /// Machine architecture, for example `x86_64`.
    pub architecture: Option<String>,
    /// Model of the processor.
    pub processor: Option<String>,
    /// Logical processors.
    pub processors: Option<u64>,
    /// Hypervisor or container by name.
    pub virtualisation: Option<String>,
    /// Congestion control of new connections.
    pub congestion_control: Option<String>,
    /// Congestion controls that can be chosen.
    pub congestion_controls: Option<Vec<String>>,
    /// Kernel's clock source, for example `tsc`.
    pub clock_source: Option<String>,
    /// True when the clock is synchronised.
    pub clock_synchronised: Option<bool>,
    /// Maximum error of the clock (`adjtimex`, maxerror).
    pub clock_error_bound_ns: Option<u64>,
    /// Runnable processes, mean of the last minute.
    pub load_average: Option<f64>,
    /// Interface of the route to the remote host.
    pub interface: Option<InterfaceEnvironment>,
    /// Relevant kernel settings, by sysctl name.
    pub sysctls: BTreeMap<String, String>,
    /// Traffic of other processes on the interface during the run, where known.
    pub other_traffic: Option<OtherTraffic>,
    /// Facts that could not be read: name → reason.
    pub unreadable: BTreeMap<String, String>,
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct InterfaceEnvironment {
    /// Name.
    pub name: String,
    /// MTU in bytes.
    pub mtu_bytes: Option<u64>,
    /// Driver.
    pub driver: Option<String>,
    /// Speed in bit/s.
    pub speed_bits_per_second: Option<f64>,
    /// Offloads by ethtool's names, and their state.
    pub offloads: BTreeMap<String, bool>,
    /// Root queueing discipline, for example `fq_codel`.
    pub queueing_discipline: Option<String>,
    /// Length of the device's queue in packets.
    pub transmit_queue_packets: Option<u64>,
}

/// Traffic on the interface that did not belong to the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OtherTraffic {
    /// Received rate, mean over the run.
    pub received_bits_per_second: f64,
    /// Sent rate, mean over the run.
    pub sent_bits_per_second: f64,
}

impl From<&environment::HostEnvironment> for HostEnvironmentRecord {
    fn from(host: &environment::HostEnvironment) -> Self {
        let state = host.clock.state;
        Self {
            host_name: host.host_name.clone(),
            kernel: host.kernel.clone(),
            architecture: host.architecture.clone(),
            processor: host.machine.processor.clone(),
            processors: host.machine.processors.map(|count| count as u64),
            virtualisation: host.machine.virtualisation.clone(),
            congestion_control: host.congestion_control.clone(),
            congestion_controls: host.congestion_controls.clone(),
            clock_source: host.clock.source.clone(),
            clock_synchronised: state.map(|state| state.synchronised),
            clock_error_bound_ns: state
                .and_then(environment::ClockState::error_bound)
                .map(|error| u64::try_from(error.as_nanos()).unwrap_or(u64::MAX)),
            load_average: host.load.averages.map(|averages| averages[0]),
            interface: host.interface.as_ref().map(InterfaceEnvironment::from),
            sysctls: host.settings.clone(),
            other_traffic: None,
            unreadable: host.unreadable.clone(),
        }
    }
}

impl From<&environment::InterfaceFacts> for InterfaceEnvironment {
    fn from(interface: &environment::InterfaceFacts) -> Self {
        Self {
            name: interface.name.clone(),
            mtu_bytes: interface.mtu.map(|mtu| mtu.byte_count().get()),
            driver: interface.driver.clone(),
            speed_bits_per_second: interface.speed.map(BitRate::bits_per_second),
            offloads: interface.offloads.clone(),
            queueing_discipline: interface.queueing.as_ref().map(|queueing| queueing.kind.clone()),
            transmit_queue_packets: interface.transmit_queue.map(PacketCount::get),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    #[test]
    fn a_synchronised_clock_has_its_error_bound_in_the_document() {
        let state = environment::ClockState {
            synchronised: true,
            estimated_error: Duration::ZERO,
            largest_error: Duration::from_secs(1),
            rate_correction: 0.0,
        };
        let clock = environment::HostClock { state: Some(state), ..environment::HostClock::default() };
        let document = HostEnvironmentRecord::from(&environment::HostEnvironment {
            clock,
            ..environment::HostEnvironment::default()
        });
        assert_eq!((document.clock_synchronised, document.clock_error_bound_ns), (Some(true), Some(1_000_000_000)));
    }
}
