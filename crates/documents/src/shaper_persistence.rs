//! Document of `linerate shape DEV persist --json` and `unpersist --json`: files and commands that set a shaper up at
//! boot, and the changes made to them.

use core::fmt;
use serde::{Deserialize, Serialize};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Persistence of one interface's shaper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShaperPersistenceDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Version of linerate that ran.
    pub linerate_version: String,
    /// Interface.
    pub device: String,
    /// Arguments of `linerate shape` for the shaper; empty where it is removed.
    pub arguments: Vec<String>,
    /// True when it was done, false when only planned (`--dry-run`).
    pub is_done: bool,
    /// Managers of this host that set it up, with the reason; empty where it is removed.
    pub managers: Vec<PersistenceManager>,
    /// Affected files.
    pub files: Vec<PersistenceFile>,
    /// Commands, in order, as a user would type them.
    pub commands: Vec<String>,
    /// Notes shown below the table.
    pub notes: Vec<String>,
}

/// Programs of a host that can set a shaper up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ShaperManager {
    /// A section of `/etc/config/linerate` and a script of procd on `OpenWrt`.
    Openwrt,
    /// A unit beneath `systemd-networkd`.
    Networkd,
    /// A unit of systemd.
    Systemd,
    /// Scripts of `NetworkManager`.
    NetworkManager,
    /// Scripts of ifupdown.
    Ifupdown,
    /// Scripts of pppd.
    Ppp,
}

impl ShaperManager {
    /// Name as in `--manager`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Openwrt => "openwrt",
            Self::Networkd => "networkd",
            Self::Systemd => "systemd",
            Self::NetworkManager => "network-manager",
            Self::Ifupdown => "ifupdown",
            Self::Ppp => "ppp",
        }
    }
}

impl fmt::Display for ShaperManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Program of the host that sets the shaper up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PersistenceManager {
    /// Program.
    pub manager: ShaperManager,
    /// Reason for this choice.
    pub reason: String,
}

/// File.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PersistenceFile {
    /// Path of the file.
    pub path: String,
    /// Change to the file.
    pub change: PersistenceStep,
    /// Permissions as in chmod(1); `null` where it is removed.
    pub mode: Option<String>,
    /// Contents; `null` where it is removed.
    pub contents: Option<String>,
}

/// Change to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PersistenceStep {
    /// Created.
    Created,
    /// Replaced; an earlier linerate had created it.
    Replaced,
    /// Edited: only linerate's part of a file that is also the user's.
    Edited,
    /// Already up to date.
    Unchanged,
    /// Removed.
    Removed,
}
