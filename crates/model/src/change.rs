//! Changes to a host, as plain data: what is to be written where, what stood there, and why.
//!
//! Nothing here touches a host: the crate `change` carries plans out, and takes them back.

mod names;

use linerate_units::WallTime;

/// One place on a host that can be read and written as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A setting of the kernel, by the name that `sysctl` has for it, for example `net.ipv4.tcp_rmem`. Numbers that belong
    /// together have one blank between them.
    Setting {
        /// Its name.
        key: String,
    },
    /// An attribute of an interface that `ip link` sets.
    Link {
        /// The interface.
        interface: String,
        /// Which attribute.
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
        /// Which number.
        attribute: DeviceAttribute,
    },
    /// The queueing disciplines and classes of an interface; its value is the lines of `tc -batch` that make them from
    /// nothing. For what the kernel makes by itself it is a comment that names it: `# made by the kernel: fq_codel`.
    Queueing {
        /// The interface.
        interface: String,
    },
    /// The whole traffic control of an interface: disciplines, classes, filters and actions for both directions, and its
    /// [`intermediate_device`] with the same. Its value is a record of all that, from which it can be made again, or the
    /// commands of `tc` and `ip` that make it from nothing.
    TrafficControl {
        /// The interface.
        interface: String,
    },
    /// The attributes of a route; its value is what follows `ip route change DESTINATION`.
    Route {
        /// The destination as `ip route` prints it, for example `default` or `192.0.2.0/24`.
        destination: String,
    },
    /// A file of `/sys` or `/proc` that holds one value: `rps_cpus`, `scaling_governor`, `smp_affinity_list`.
    File {
        /// Its path.
        path: String,
    },
}

/// The longest name of an interface in bytes (`IFNAMSIZ` - 1).
const LONGEST_NAME: usize = 15;

/// The name of the intermediate device for what `device` receives: `ifb4` before it, cut to what the kernel takes.
///
/// The rule of sqm-scripts, so that other tools find it where they look.
#[must_use]
pub fn intermediate_device(device: &str) -> String {
    let name = format!("ifb4{device}");
    let mut end = name.len().min(LONGEST_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}

/// What `ip link` sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkAttribute {
    /// `mtu`.
    Mtu,
    /// `txqueuelen`.
    TransmitQueueLength,
    /// `gso_max_size`.
    SegmentationSize,
    /// `gro_max_size`.
    CoalescingSize,
}

/// What ethtool sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceAttribute {
    /// Receive ring (`-G rx`).
    ReceiveRing,
    /// Transmit ring (`-G tx`).
    TransmitRing,
    /// Combined queues (`-L combined`).
    CombinedChannels,
    /// Microseconds until an interrupt for received packets (`-C rx-usecs`).
    ReceiveCoalescing,
    /// Whether coalescing adapts (`-C adaptive-rx`): `on` or `off`.
    AdaptiveReceiveCoalescing,
    /// Whether received pause frames are heeded (`-A rx`): `on` or `off`.
    ReceivePause,
    /// Whether pause frames are sent (`-A tx`): `on` or `off`.
    TransmitPause,
}

/// What belongs together: groups are tried one after the other, and each has to earn its keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
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

/// When a change takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TakesEffect {
    /// At once.
    Now,
    /// For connections that are opened afterwards.
    NewConnections,
    /// After the link went down and up again, which the change itself does.
    LinkBounce,
    /// After the next boot.
    Reboot,
}

/// One change of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Where.
    pub target: Target,
    /// What stands there now; `None` where nothing does (a route or discipline that is not there).
    pub from: Option<String>,
    /// What is to stand there.
    pub to: String,
    /// Its group.
    pub group: Group,
    /// When it takes effect.
    pub takes_effect: TakesEffect,
    /// Why, and how the value came about.
    pub reason: Reason,
}

/// Why a change is proposed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reason {
    /// Which rule says so (its identifier).
    pub rule: String,
    /// The reason in one sentence.
    pub text: String,
    /// The formula with its inputs filled in, for example `2 x 10 Gbit/s x 117 ms / 8 = 292.5 MB`; `None` where nothing was
    /// computed.
    pub arithmetic: Option<String>,
    /// What was measured that speaks for it, one figure with its unit each.
    pub evidence: Vec<String>,
    /// What it may cost.
    pub risk: String,
}

/// Changes that are proposed together.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// When it was made.
    pub made_at: WallTime,
    /// In the order in which they are to be applied.
    pub changes: Vec<Change>,
}
