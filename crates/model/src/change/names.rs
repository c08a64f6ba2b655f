//! Names of targets for display, documents and journals.

use core::fmt;

use super::{ChangeGroup, ChangeTarget, DeviceAttribute, EffectTiming, LinkAttribute};

/// Defines the name of each variant, which is also its name in documents.
macro_rules! names {
    ($type:ty, $($variant:ident = $name:literal),+ $(,)?) => {
        impl $type {
            /// All variants, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Name used in documents.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }
    };
}

names!(
    LinkAttribute,
    Mtu = "mtu",
    TransmitQueueLength = "txqueuelen",
    SegmentationSize = "gso_max_size",
    SegmentCount = "gso_max_segs",
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
    ChangeGroup,
    Features = "features",
    Buffers = "buffers",
    Mtu = "mtu",
    CongestionControl = "congestion_control",
    Pacing = "pacing",
    Queueing = "queueing",
    Device = "device",
    Processors = "processors",
);

impl EffectTiming {
    /// Text for users: when a change takes effect.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Now => "at once",
            Self::NewConnections => "for new connections",
            Self::LinkBounce => "after the link goes down and up",
            Self::Reboot => "at the next boot",
        }
    }
}

names!(EffectTiming, Now = "now", NewConnections = "new_connections", LinkBounce = "link_bounce", Reboot = "reboot",);

impl DeviceAttribute {
    /// Option letter of `ethtool`, and the argument after the interface.
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

impl fmt::Display for ChangeGroup {
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

impl ChangeTarget {
    /// Interface of the target; `None` for items of the whole host.
    #[must_use]
    pub fn interface(&self) -> Option<&str> {
        match self {
            Self::Link { interface, .. }
            | Self::Offload { interface, .. }
            | Self::Device { interface, .. }
            | Self::Queueing { interface }
            | Self::TrafficControl { interface } => Some(interface),
            Self::Setting { .. } | Self::FirewallTable { .. } | Self::Route { .. } | Self::File { .. } => None,
        }
    }

    /// True for items that exist once per network namespace; files and settings outside of `net.` exist once per host.
    #[must_use]
    pub fn is_of_network_namespace(&self) -> bool {
        match self {
            Self::Setting { key } => key.starts_with("net.") || key.starts_with("net/"),
            Self::File { .. } => false,
            _ => true,
        }
    }
}

impl fmt::Display for ChangeTarget {
    /// Writes a setting by its name, other targets with their interface, destination or path: `eth0 mtu`, `eth0 ring
    /// rx`.
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
            Self::FirewallTable { name } => write!(formatter, "nftables table {name}"),
            Self::Route { destination } => write!(formatter, "route {destination}"),
            Self::File { path } => formatter.write_str(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serialised<T: serde::Serialize + Copy>(all: &[T], name: impl Fn(T) -> &'static str) {
        for one in all {
            assert_eq!(serde_json::to_value(one).expect("JSON"), name(*one));
        }
    }

    #[test]
    fn documents_use_the_names() {
        serialised(LinkAttribute::ALL, LinkAttribute::name);
        serialised(DeviceAttribute::ALL, DeviceAttribute::name);
        serialised(ChangeGroup::ALL, ChangeGroup::name);
        serialised(EffectTiming::ALL, EffectTiming::name);
    }

    #[test]
    fn targets_are_displayed_in_the_terms_of_their_tools() {
        let interface = || "eth0".to_owned();
        for (target, text) in [
            (ChangeTarget::Setting { key: "net.ipv4.tcp_rmem".into() }, "net.ipv4.tcp_rmem"),
            (ChangeTarget::Link { interface: interface(), attribute: LinkAttribute::Mtu }, "eth0 mtu"),
            (ChangeTarget::Device { interface: interface(), attribute: DeviceAttribute::ReceiveRing }, "eth0 ring rx"),
            (
                ChangeTarget::Device { interface: interface(), attribute: DeviceAttribute::ReceiveCoalescing },
                "eth0 rx-usecs",
            ),
            (ChangeTarget::Route { destination: "default".into() }, "route default"),
            (ChangeTarget::FirewallTable { name: "marks".into() }, "nftables table marks"),
        ] {
            assert_eq!(target.to_string(), text);
        }
        assert!(!ChangeTarget::Setting { key: "vm.swappiness".into() }.is_of_network_namespace());
    }
}
