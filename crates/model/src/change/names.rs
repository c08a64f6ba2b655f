//! The words for targets: as people read them, and as documents and journals write them.

use core::fmt;

use super::{DeviceAttribute, Group, LinkAttribute, TakesEffect, Target};

/// One word for each variant, and the way back.
macro_rules! names {
    ($type:ty, $($variant:ident = $name:literal),+ $(,)?) => {
        impl $type {
            /// Each of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its name in documents.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            /// The one of this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.name() == name)
            }
        }
    };
}

names!(
    LinkAttribute,
    Mtu = "mtu",
    TransmitQueueLength = "txqueuelen",
    SegmentationSize = "gso_max_size",
    CoalescingSize = "gro_max_size",
);

names!(
    DeviceAttribute,
    ReceiveRing = "receive_ring",
    TransmitRing = "transmit_ring",
    CombinedChannels = "combined_channels",
    ReceiveCoalescing = "receive_coalescing_us",
    AdaptiveReceiveCoalescing = "adaptive_receive_coalescing",
    ReceivePause = "receive_pause",
    TransmitPause = "transmit_pause",
);

names!(
    Group,
    Features = "features",
    Buffers = "buffers",
    Mtu = "mtu",
    CongestionControl = "congestion_control",
    Pacing = "pacing",
    Queueing = "queueing",
    Device = "device",
    Processors = "processors",
);

names!(TakesEffect, Now = "now", NewConnections = "new_connections", LinkBounce = "link_bounce", Reboot = "reboot",);

impl DeviceAttribute {
    /// As `ethtool` has it: the letter of the option that sets it, and the word behind the interface.
    #[must_use]
    pub const fn ethtool(self) -> (char, &'static str) {
        match self {
            Self::ReceiveRing => ('G', "rx"),
            Self::TransmitRing => ('G', "tx"),
            Self::CombinedChannels => ('L', "combined"),
            Self::ReceiveCoalescing => ('C', "rx-usecs"),
            Self::AdaptiveReceiveCoalescing => ('C', "adaptive-rx"),
            Self::ReceivePause => ('A', "rx"),
            Self::TransmitPause => ('A', "tx"),
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Features => "TCP features",
            Self::Buffers => "buffers",
            Self::Mtu => "MTU",
            Self::CongestionControl => "congestion control",
            Self::Pacing => "pacing",
            Self::Queueing => "queueing",
            Self::Device => "interface",
            Self::Processors => "processors",
        })
    }
}

impl Target {
    /// The interface that it belongs to; `None` for what is of the whole host.
    #[must_use]
    pub fn interface(&self) -> Option<&str> {
        match self {
            Self::Link { interface, .. }
            | Self::Offload { interface, .. }
            | Self::Device { interface, .. }
            | Self::Queueing { interface }
            | Self::TrafficControl { interface } => Some(interface),
            Self::Setting { .. } | Self::Route { .. } | Self::File { .. } => None,
        }
    }

    /// Whether it exists once in each network namespace; files and settings outside of `net.` exist once on the host.
    #[must_use]
    pub fn is_of_network_namespace(&self) -> bool {
        match self {
            Self::Setting { key } => key.starts_with("net.") || key.starts_with("net/"),
            Self::File { .. } => false,
            _ => true,
        }
    }
}

impl fmt::Display for Target {
    /// A setting by its name, all else with its interface, destination or path: `eth0 mtu`, `eth0 ring rx`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting { key } => formatter.write_str(key),
            Self::Link { interface, attribute } => write!(formatter, "{interface} {}", attribute.name()),
            Self::Offload { interface, feature } => write!(formatter, "{interface} {feature}"),
            Self::Device { interface, attribute } => {
                let (option, word) = attribute.ethtool();
                let what = match option {
                    'G' => "ring ",
                    'A' => "pause ",
                    'L' => "channels ",
                    _ => "",
                };
                write!(formatter, "{interface} {what}{word}")
            }
            Self::Queueing { interface } => write!(formatter, "{interface} queueing"),
            Self::TrafficControl { interface } => write!(formatter, "{interface} traffic control"),
            Self::Route { destination } => write!(formatter, "route {destination}"),
            Self::File { path } => formatter.write_str(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for one in LinkAttribute::ALL {
            assert_eq!(LinkAttribute::from_name(one.name()), Some(*one));
        }
        for one in DeviceAttribute::ALL {
            assert_eq!(DeviceAttribute::from_name(one.name()), Some(*one));
        }
        for one in Group::ALL {
            assert_eq!(Group::from_name(one.name()), Some(*one));
        }
        for one in TakesEffect::ALL {
            assert_eq!(TakesEffect::from_name(one.name()), Some(*one));
        }
        assert_eq!(Group::from_name("Buffers"), None);
    }

    #[test]
    fn targets_read_as_their_tools_have_them() {
        let interface = || "eth0".to_owned();
        for (target, text) in [
            (Target::Setting { key: "net.ipv4.tcp_rmem".into() }, "net.ipv4.tcp_rmem"),
            (Target::Link { interface: interface(), attribute: LinkAttribute::Mtu }, "eth0 mtu"),
            (Target::Device { interface: interface(), attribute: DeviceAttribute::ReceiveRing }, "eth0 ring rx"),
            (Target::Device { interface: interface(), attribute: DeviceAttribute::ReceiveCoalescing }, "eth0 rx-usecs"),
            (Target::Route { destination: "default".into() }, "route default"),
        ] {
            assert_eq!(target.to_string(), text);
        }
        assert!(!Target::Setting { key: "vm.swappiness".into() }.is_of_network_namespace());
    }
}
