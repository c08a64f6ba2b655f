//! Programs that look after a host's settings: who would undo a change, and who should carry it.

use core::fmt;
use std::collections::BTreeMap;

use crate::fact::Fact;

/// Programs that look after a host's settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Managers {
    /// Who looks after each interface, by the interface's name; those that nobody claims are left out.
    pub interfaces: BTreeMap<String, Ownership>,
    /// The active profile of tuned; absent when it does not run.
    pub tuned_profile: Fact<String>,
    /// Whether bpftune runs, which changes settings by itself.
    pub bpftune: Fact<bool>,
    /// Whether irqbalance runs, which moves interrupts between processors.
    pub irqbalance: Fact<bool>,
    /// The name of the first process: `systemd` where systemd-sysctl and udev apply settings at boot.
    pub first_process: Fact<String>,
}

/// Who looks after an interface, and what shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// Who.
    pub manager: InterfaceManager,
    /// The file that shows it.
    pub evidence: String,
}

/// A program that sets interfaces up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InterfaceManager {
    /// `NetworkManager`.
    NetworkManager,
    /// systemd-networkd.
    Networkd,
    /// netplan, which writes files for systemd-networkd or `NetworkManager`: changes belong into its own.
    Netplan,
    /// ifupdown (`/etc/network/interfaces`).
    Ifupdown,
}

impl fmt::Display for InterfaceManager {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NetworkManager => "NetworkManager",
            Self::Networkd => "systemd-networkd",
            Self::Netplan => "netplan",
            Self::Ifupdown => "ifupdown",
        })
    }
}
