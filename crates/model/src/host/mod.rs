//! Everything that a host tells of itself that may matter to a transfer, read without changing it.
//!
//! `linerate_sys` fills these in, the rules of `linerate-rules` look at them. [`crate::environment`] is the short form that
//! travels with each measurement.

pub mod applications;
pub mod catalogue;
pub mod counters;
pub mod defaults;
mod hardware_listed;
pub mod kernel;
pub mod link;
mod listed;
pub mod managers;
pub mod memory;
pub mod privileges;
pub mod processors;
pub mod routes;
pub mod settings;

/// A host, as it was read at one time. The default is a host of which nothing is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostFacts {
    /// The kernel that runs on it.
    pub kernel: kernel::Kernel,
    /// Its settings, and the files from which they come.
    pub settings: settings::Settings,
    /// What this process may do and see.
    pub privileges: privileges::Privileges,
    /// Its memory.
    pub memory: memory::Memory,
    /// Its interfaces, those of its network namespace.
    pub interfaces: Vec<link::Link>,
    /// Its processors.
    pub processors: processors::Processors,
    /// What its network stack counts.
    pub counters: counters::Counters,
    /// Programs that look after its settings.
    pub managers: managers::Managers,
    /// What moves data on it.
    pub applications: applications::Applications,
    /// Its routes: those of the main tables of both address families.
    pub routes: crate::fact::Fact<Vec<routes::Route>>,
}
