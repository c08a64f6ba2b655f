//! All facts of a host that may matter to a transfer, read without changing it.
//!
//! Filled in by `linerate_sys`, evaluated by the rules of `linerate-rules`. [`crate::environment`] is the short form
//! that accompanies each measurement.

pub mod applications;
pub mod catalogue;
pub mod counters;
pub mod defaults;
mod fact_list;
mod hardware_facts;
pub mod kernel;
pub mod kernel_change;
pub mod link;
pub mod managers;
pub mod memory;
pub mod privileges;
pub mod processors;
pub mod routes;
pub mod settings;
pub mod tracepoint;

/// Facts of a host at one time. The default is a host of which nothing is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostFacts {
    /// Running kernel.
    pub kernel: kernel::RunningKernel,
    /// Settings, and the files from which they come.
    pub settings: settings::KernelSettings,
    /// Privileges of this process.
    pub privileges: privileges::ProcessPrivileges,
    /// Memory.
    pub memory: memory::HostMemory,
    /// Interfaces of its network namespace.
    pub interfaces: Vec<link::NetworkLink>,
    /// Processors.
    pub processors: processors::HostProcessors,
    /// Network counters.
    pub counters: counters::NetworkCounters,
    /// Programs that manage its settings.
    pub managers: managers::SettingsManagers,
    /// Applications that transfer data.
    pub applications: applications::TransferApplications,
    /// Routes of the main tables of both address families.
    pub routes: crate::fact::Fact<Vec<routes::RouteEntry>>,
}
