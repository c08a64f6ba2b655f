//! Programs that manage a host's settings: they may undo a change, or should persist it.

use core::fmt;
use std::collections::BTreeMap;

use crate::fact::Fact;

/// Programs that manage a host's settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingsManagers {
    /// Manager of each interface, by the interface's name; unmanaged ones are left out.
    pub interfaces: BTreeMap<String, InterfaceOwnership>,
    /// Active profile of tuned; absent when it does not run.
    pub tuned_profile: Fact<String>,
    /// True when bpftune runs, which changes settings by itself.
    pub bpftune: Fact<bool>,
    /// True when irqbalance runs, which moves interrupts between processors.
    pub irqbalance: Fact<bool>,
    /// Name of process 1: `systemd` where systemd-sysctl and udev apply settings at boot.
    pub first_process: Fact<String>,
}

/// Manager of an interface, with evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceOwnership {
    /// Manager.
    pub manager: InterfaceManager,
    /// File that shows it.
    pub evidence: String,
}

/// Program that configures interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InterfaceManager {
    /// `NetworkManager`.
    NetworkManager,
    /// systemd-networkd.
    Networkd,
    /// netplan, which writes files for systemd-networkd or `NetworkManager`: changes belong in its own.
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
