//! `.link` files of systemd (`systemd.link(5)`), which udev applies when a device appears.

use core::fmt::Write;

use linerate_model::change::{ChangeTarget, DeviceAttribute, HostChange, LinkAttribute};

use super::text::{file_name, one_line};
use super::{ExportedFile, HostChanges, PlanFormat, by_interface};

pub(super) const FORMAT: PlanFormat = PlanFormat {
    name: "systemd-link",
    title: "link files of systemd",
    use_it: "In /etc/systemd/network; udev applies it when the interface appears. Only the first file that matches a device \
             counts, so the names of 99-default.link are in it. OriginalName is the name before udev gives another: \
             PermanentMACAddress= is better where they differ.",
    source: "systemd.link(5)",
    takes: supports,
    write,
};

fn supports(change: &HostChange) -> Result<(), &'static str> {
    match (key(change), change.target.interface()) {
        (Some(_), _) => Ok(()),
        (None, Some(_)) => Err("link files have no key for it"),
        (None, None) => Err("link files support only interfaces"),
    }
}

/// Returns the key and the value of a change in the section `[Link]`.
pub(super) fn key(change: &HostChange) -> Option<(&'static str, String)> {
    let to = one_line(&change.to);
    let switch = || if to == "on" { "yes".to_owned() } else { "no".to_owned() };
    Some(match &change.target {
        ChangeTarget::Link { attribute, .. } => match attribute {
            LinkAttribute::Mtu => ("MTUBytes", to),
            LinkAttribute::TransmitQueueLength => ("TransmitQueueLength", to),
            LinkAttribute::SegmentationSize => ("GenericSegmentOffloadMaxBytes", to),
            LinkAttribute::SegmentCount => ("GenericSegmentOffloadMaxSegments", to),
            LinkAttribute::CoalescingSize => return None,
        },
        ChangeTarget::Device { attribute, .. } => match attribute {
            DeviceAttribute::ReceiveRing => ("RxBufferSize", to),
            DeviceAttribute::TransmitRing => ("TxBufferSize", to),
            DeviceAttribute::CombinedChannels => ("CombinedChannels", to),
            DeviceAttribute::ReceiveCoalescing => ("RxCoalesceSec", format!("{to}us")),
            DeviceAttribute::AdaptiveReceiveCoalescing => ("UseAdaptiveRxCoalesce", switch()),
            DeviceAttribute::ReceivePause => ("RxFlowControl", switch()),
            DeviceAttribute::TransmitPause => ("TxFlowControl", switch()),
        },
        ChangeTarget::Offload { feature, .. } => {
            let key = match feature.as_str() {
                "rx-checksum" => "ReceiveChecksumOffload",
                "tx-checksum-ip-generic" => "TransmitChecksumOffload",
                "tx-tcp-segmentation" => "TCPSegmentationOffload",
                "tx-tcp6-segmentation" => "TCP6SegmentationOffload",
                "tx-generic-segmentation" => "GenericSegmentationOffload",
                "rx-gro" => "GenericReceiveOffload",
                "rx-gro-hw" => "GenericReceiveOffloadHardware",
                "rx-lro" => "LargeReceiveOffload",
                _ => return None,
            };
            (key, switch())
        }
        _ => return None,
    })
}

/// Naming policies of systemd's own 99-default.link.
pub(super) const NAMING_POLICIES: [(&str, &str); 3] = [
    ("NamePolicy", "keep kernel database onboard slot path"),
    ("AlternativeNamesPolicy", "database onboard slot path mac"),
    ("MACAddressPolicy", "persistent"),
];

fn write(hosts: &[HostChanges<'_>]) -> Vec<ExportedFile> {
    let of_host = |host: &HostChanges<'_>| -> Vec<ExportedFile> {
        links(&host.changes).into_iter().map(|(interface, text)| host.file(&file(interface), text)).collect()
    };
    hosts.iter().flat_map(of_host).collect()
}

/// Returns the location of an interface's file.
pub(super) fn file(interface: &str) -> String {
    format!("etc/systemd/network/10-linerate-{}.link", file_name(interface))
}

/// Returns the file of each interface that has a key.
pub(super) fn links<'a>(changes: &[&'a HostChange]) -> Vec<(&'a str, String)> {
    let mut links = Vec::new();
    for (interface, changes) in by_interface(changes) {
        let own: Vec<_> = changes.iter().filter_map(|change| key(change)).collect();
        if own.is_empty() {
            continue;
        }
        let mut text = format!("[Match]\nOriginalName={interface}\n\n[Link]\n");
        for (key, value) in NAMING_POLICIES.map(|(key, value)| (key, value.to_owned())).into_iter().chain(own) {
            let _ = writeln!(text, "{key}={value}");
        }
        links.push((interface, text));
    }
    links
}
