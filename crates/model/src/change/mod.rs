//! Changes to a host, as plain data: target, previous and new value, reason.
//!
//! This module does not touch a host: the crate `change` applies plans, and rolls them back.

pub mod document;
mod interfaces;
mod names;
mod progress;

pub use interfaces::InterfaceIdentity;
use linerate_units::WallTime;
pub use progress::{ChangePhaseName, ChangeSetState, RestoreOutcomeName};
use serde::{Deserialize, Serialize};

/// Target of a change: an item of a host that can be read and written as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ChangeTarget {
    /// Kernel setting by its `sysctl` name, for example `net.ipv4.tcp_rmem`. A list of numbers is separated by single
    /// blanks.
    Setting {
        /// sysctl name.
        key: String,
    },
    /// An attribute of an interface that `ip link` sets.
    Link {
        /// The interface.
        interface: String,
        /// Attribute.
        attribute: LinkAttribute,
    },
    /// An offload of an interface by ethtool's name (`tx-tcp-segmentation`); its value is `on` or `off`.
    Offload {
        /// The interface.
        interface: String,
        /// ethtool's name of the feature.
        feature: String,
    },
    /// A number that ethtool sets: rings, channels, coalescing, pause.
    Device {
        /// The interface.
        interface: String,
        /// Attribute.
        attribute: DeviceAttribute,
    },
    /// Queueing disciplines and classes of an interface; the value is the `tc -batch` commands that create them from
    /// scratch. For the kernel's default it is a comment that names it: `# made by the kernel: fq_codel`.
    Queueing {
        /// The interface.
        interface: String,
    },
    /// Complete traffic control of an interface: disciplines, classes, filters and actions for both directions, and its
    /// [`intermediate_device`] with the same. The value is a record from which all of it can be recreated, or the
    /// commands of `tc` and `ip` that create it from scratch.
    TrafficControl {
        /// The interface.
        interface: String,
    },
    /// Table of nftables in the family `inet`; the value is the table as `nft -s list table` prints it, or the commands of
    /// `nft` that create it.
    FirewallTable {
        /// Name of the table.
        name: String,
    },
    /// Attributes of a route; the value is the arguments after `ip route change DESTINATION`.
    Route {
        /// The destination as `ip route` prints it, for example `default` or `192.0.2.0/24`.
        destination: String,
    },
    /// Single-value file in `/sys` or `/proc`: `rps_cpus`, `scaling_governor`, `smp_affinity_list`.
    File {
        /// Path of the file.
        path: String,
    },
}

/// Maximum length of an interface name in bytes (`IFNAMSIZ` - 1).
const MAX_NAME_LENGTH: usize = 15;

/// Alias of the intermediate devices that plans make: it stays when one is renamed.
pub const INTERMEDIATE_ALIAS: &str = "line-shaper";

/// Name of the intermediate device for received traffic of `device`: prefixed with `ifb4`, as sqm-scripts does, so that
/// other tools find it.
///
/// A name too long for that ends with a hash (FNV-1a, 24 bits): `enp0s31f6.100` and `enp0s31f6.101` begin alike.
#[must_use]
pub fn intermediate_device(device: &str) -> String {
    const PREFIX: &str = "ifb4";
    const HASH_DIGITS: usize = 6;
    if PREFIX.len() + device.len() <= MAX_NAME_LENGTH {
        return format!("{PREFIX}{device}");
    }
    let hash = device.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let mut end = MAX_NAME_LENGTH - PREFIX.len() - HASH_DIGITS;
    while !device.is_char_boundary(end) {
        end -= 1;
    }
    format!("{PREFIX}{}{:06x}", &device[..end], (hash >> 24) ^ (hash & 0x00ff_ffff))
}

/// Interface attribute that `ip link` sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LinkAttribute {
    /// `mtu`.
    Mtu,
    /// `txqueuelen`.
    #[serde(rename = "txqueuelen")]
    TransmitQueueLength,
    /// `gso_max_size`.
    #[serde(rename = "gso_max_size")]
    SegmentationSize,
    /// `gso_max_segs`.
    #[serde(rename = "gso_max_segs")]
    SegmentCount,
    /// `gro_max_size`.
    #[serde(rename = "gro_max_size")]
    CoalescingSize,
}

/// Device attribute that ethtool sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeviceAttribute {
    /// Receive ring (`-G rx`).
    ReceiveRing,
    /// Transmit ring (`-G tx`).
    TransmitRing,
    /// Combined queues (`-L combined`).
    CombinedChannels,
    /// Microseconds until an interrupt for received packets (`-C rx-usecs`).
    #[serde(rename = "receive_coalescing_us")]
    ReceiveCoalescing,
    /// Adaptive coalescing (`-C adaptive-rx`): `on` or `off`.
    AdaptiveReceiveCoalescing,
    /// Reaction to received pause frames (`-A rx`): `on` or `off`.
    ReceivePause,
    /// Transmission of pause frames (`-A tx`): `on` or `off`.
    TransmitPause,
}

/// Group of related changes: groups are tried one after the other, and each must improve the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeGroup {
    /// TCP features that are off and should be on.
    Features,
    /// Socket buffers and their total.
    Buffers,
    /// Path MTU.
    Mtu,
    /// Congestion control.
    CongestionControl,
    /// Pacing.
    Pacing,
    /// Queueing disciplines.
    Queueing,
    /// The interface's device.
    Device,
    /// Processors.
    Processors,
}

/// Time at which a change takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EffectTiming {
    /// Immediately.
    Now,
    /// For connections that are opened afterwards.
    NewConnections,
    /// After the link goes down and up again, which the change itself does.
    LinkBounce,
    /// After the next boot.
    Reboot,
}

/// One change of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HostChange {
    /// Target.
    pub target: ChangeTarget,
    /// Present value; `None` for an absent item (a missing route or discipline).
    pub from: Option<String>,
    /// New value.
    pub to: String,
    /// Group.
    pub group: ChangeGroup,
    /// Time at which the change takes effect.
    pub takes_effect: EffectTiming,
    /// Reason and derivation of the value.
    pub reason: ChangeReason,
}

/// Reason for a proposed change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ChangeReason {
    /// Identifier of the rule.
    pub rule: String,
    /// The reason in one sentence.
    pub text: String,
    /// Formula with its inputs filled in, for example `2 x 10 Gbit/s x 117 ms / 8 = 292.5 MB`; `None` where nothing was
    /// computed.
    pub arithmetic: Option<String>,
    /// Measured figures that support the change, each with its unit.
    pub evidence: Vec<String>,
    /// Risk of the change.
    pub risk: String,
}

/// Changes that are proposed together.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangePlan {
    /// Time of creation.
    pub made_at: WallTime,
    /// Changes in the order of application.
    pub changes: Vec<HostChange>,
}
