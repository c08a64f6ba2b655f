//! `nmcli(1)`, for interfaces that `NetworkManager` owns.

use core::fmt::Write;

use linerate_model::change::{ChangeTarget, DeviceAttribute, HostChange, LinkAttribute};

use super::text::{one_line, shell_quoted};
use super::{ExportedFile, HostChanges, PlanFormat, by_interface};

pub(super) const FORMAT: PlanFormat = PlanFormat {
    name: "network-manager",
    title: "a script for NetworkManager",
    use_it: "`sh linerate-nmcli.sh` on the host changes the active profiles and applies them; rings and channels need \
             `nmcli connection up`.",
    source: "nm-settings-nmcli(5)",
    takes: supports,
    write,
};

fn supports(change: &HostChange) -> Result<(), &'static str> {
    match (property(change), &change.target) {
        (Some(_), _) => Ok(()),
        (None, ChangeTarget::Setting { .. }) => {
            Err("NetworkManager does not set kernel settings: use the format sysctl.d")
        }
        (None, ChangeTarget::Route { .. }) => Err("the profile with the route is unknown: see ipv4.routes"),
        (None, _) => Err("NetworkManager has no property for it"),
    }
}

/// Returns the property of a connection profile, and its value.
fn property(change: &HostChange) -> Option<(String, String)> {
    let to = one_line(&change.to);
    let number = || if to == "on" { "1".to_owned() } else { "0".to_owned() };
    let (name, value) = match &change.target {
        ChangeTarget::Link { attribute, .. } => match attribute {
            LinkAttribute::Mtu => ("802-3-ethernet.mtu", to),
            LinkAttribute::TransmitQueueLength => ("link.tx-queue-length", to),
            LinkAttribute::SegmentationSize => ("link.gso-max-size", to),
            LinkAttribute::SegmentCount => ("link.gso-max-segments", to),
            LinkAttribute::CoalescingSize => ("link.gro-max-size", to),
        },
        ChangeTarget::Device { attribute, .. } => match attribute {
            DeviceAttribute::ReceiveRing => ("ethtool.ring-rx", to),
            DeviceAttribute::TransmitRing => ("ethtool.ring-tx", to),
            DeviceAttribute::CombinedChannels => ("ethtool.channels-combined", to),
            DeviceAttribute::ReceiveCoalescing => ("ethtool.coalesce-rx-usecs", to),
            DeviceAttribute::AdaptiveReceiveCoalescing => ("ethtool.coalesce-adaptive-rx", number()),
            DeviceAttribute::ReceivePause => ("ethtool.pause-rx", to),
            DeviceAttribute::TransmitPause => ("ethtool.pause-tx", to),
        },
        ChangeTarget::Offload { feature, .. } => (feature_property(feature)?, to),
        _ => return None,
    };
    Some((name.to_owned(), value))
}

/// Returns `NetworkManager`'s name of a feature: ethtool's short name for some, the kernel's for others.
fn feature_property(feature: &str) -> Option<&'static str> {
    Some(match feature {
        "rx-checksum" => "ethtool.feature-rx",
        "rx-gro" => "ethtool.feature-gro",
        "rx-lro" => "ethtool.feature-lro",
        "tx-generic-segmentation" => "ethtool.feature-gso",
        "rx-gro-hw" => "ethtool.feature-rx-gro-hw",
        "tx-tcp-segmentation" => "ethtool.feature-tx-tcp-segmentation",
        "tx-tcp6-segmentation" => "ethtool.feature-tx-tcp6-segmentation",
        "tx-udp-segmentation" => "ethtool.feature-tx-udp-segmentation",
        "tx-scatter-gather" => "ethtool.feature-tx-scatter-gather",
        "tx-checksum-ip-generic" => "ethtool.feature-tx-checksum-ip-generic",
        _ => return None,
    })
}

fn write(hosts: &[HostChanges<'_>]) -> Vec<ExportedFile> {
    hosts.iter().map(|host| host.file("linerate-nmcli.sh", script(&host.changes))).collect()
}

fn script(changes: &[&HostChange]) -> String {
    let mut text = "#!/bin/sh\nset -eu\n".to_owned();
    for (interface, changes) in by_interface(changes) {
        let interface = shell_quoted(interface);
        let _ = writeln!(text, "profile=$(nmcli -g GENERAL.CONNECTION device show {interface})");
        for (property, value) in changes.iter().filter_map(|change| property(change)) {
            let value =
                if value.bytes().all(|byte| byte.is_ascii_alphanumeric()) { value } else { shell_quoted(&value) };
            let _ = writeln!(text, "nmcli connection modify \"$profile\" {property} {value}");
        }
        let _ = writeln!(text, "nmcli device reapply {interface}");
    }
    text
}
