//! The interface on the route to the other end.

use core::time::Duration;
use linerate_units::CompactCollect;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use linerate_model::environment::{InterfaceFacts, QueueingDiscipline};

use super::UnreadableNotes;
use crate::command;
use crate::error::{Error, Result};
use crate::features;
use crate::interface::{self, NetworkInterface};
use crate::route::{self, RouteToAddress};

/// Features by which devices and the kernel segment, aggregate and checksum packets; others do not concern a
/// measurement.
const OFFLOADS: [&str; 14] = [
    "rx-checksum",
    "rx-gro",
    "rx-gro-hw",
    "rx-gro-list",
    "rx-lro",
    "rx-udp-gro-forwarding",
    "tx-checksum-ip-generic",
    "tx-checksum-ipv4",
    "tx-checksum-ipv6",
    "tx-generic-segmentation",
    "tx-scatter-gather",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-udp-segmentation",
];

/// Timeout of `tc`, which takes milliseconds; nothing else waits for it.
const TC_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn towards(remote: SocketAddr, notes: &mut UnreadableNotes) -> Option<InterfaceFacts> {
    let route = notes.keep("interface", route::route_to(remote))?;
    let interface = notes.keep("interface", NetworkInterface::by_index(route.index))?;
    Some(facts(&route, interface, notes))
}

fn facts(route: &RouteToAddress, interface: NetworkInterface, notes: &mut UnreadableNotes) -> InterfaceFacts {
    let name = interface.name;
    InterfaceFacts {
        mtu: interface.mtu,
        route_mtu: route.route_mtu,
        driver: notes.keep("driver", unless_unsupported(features::driver(&name).map(Some))).flatten(),
        speed: notes.keep("speed", unless_unsupported(features::link_speed(&name))).flatten(),
        offloads: offloads(notes.keep("offloads", features::features(&name)).unwrap_or_default()),
        queueing: queueing(interface.index, &name, notes),
        transmit_queue: interface.transmit_queue,
        queues: interface.queues,
        counters: interface.counters,
        name,
    }
}

/// A fact that the device does not support is not an error.
fn unless_unsupported<T>(outcome: Result<Option<T>>) -> Result<Option<T>> {
    match outcome {
        Err(error) if error.errno() == Some(libc::EOPNOTSUPP) => Ok(None),
        outcome => outcome,
    }
}

fn offloads(mut features: BTreeMap<String, bool>) -> BTreeMap<String, bool> {
    features.retain(|name, _| OFFLOADS.contains(&name.as_str()));
    features
}

fn queueing(index: u32, device: &str, notes: &mut UnreadableNotes) -> Option<QueueingDiscipline> {
    let root = notes.keep("queueing discipline", interface::root_queue(index)).flatten()?;
    if root.kind == "noqueue" {
        // It has nothing to set, and counts nothing.
        return Some(QueueingDiscipline { kind: root.kind, ..QueueingDiscipline::default() });
    }
    let settings = notes.keep("queueing discipline settings", settings_of(device, &root.kind)).unwrap_or_default();
    Some(QueueingDiscipline { kind: root.kind, settings, statistics: root.statistics })
}

fn settings_of(device: &str, kind: &str) -> Result<BTreeMap<String, String>> {
    let arguments = ["-j", "qdisc", "show", "dev", device];
    let output = command::run_checked("tc", &arguments, None, TC_TIMEOUT)?;
    parse_settings(&output.stdout, kind).ok_or_else(|| {
        Error::refused(command::running("tc", &arguments), "its answer has no root queueing discipline of that kind")
    })
}

/// The options of the root discipline in `tc -j qdisc show`.
fn parse_settings(json: &[u8], kind: &str) -> Option<BTreeMap<String, String>> {
    let disciplines: serde_json::Value = serde_json::from_slice(json).ok()?;
    let root =
        disciplines.as_array()?.iter().find(|discipline| discipline["root"] == true && discipline["kind"] == kind)?;
    let options = root.get("options")?.as_object()?;
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Some(options.iter().map(|(name, value)| (name.clone(), text(value))).collect_compactly())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_those_of_the_root() {
        let json = br#"[{"kind":"fq_codel","handle":"0:","parent":":1","options":{"limit":1}},
            {"kind":"mq","handle":"0:","root":true,"options":{}},
            {"kind":"netem","handle":"1:","root":true,"options":{"limit":1000,"delay":{"delay":0.04},"ecn":false,"x":"y"}}]"#;
        let settings = parse_settings(json, "netem").expect("there");
        let expected = [("limit", "1000"), ("delay", r#"{"delay":0.04}"#), ("ecn", "false"), ("x", "y")];
        assert_eq!(settings, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        assert_eq!(parse_settings(json, "mq"), Some(BTreeMap::new()));
        assert_eq!(parse_settings(json, "fq_codel"), None);
        for broken in [&b""[..], b"[", b"{}", b"[3]", br#"[{"root":true,"kind":"mq"}]"#] {
            assert_eq!(parse_settings(broken, "mq"), None);
        }
    }

    #[test]
    #[ignore = "needs root, ip and tc: devices in a network namespace"]
    fn an_interface_with_all_its_facts() {
        let chain = crate::test_network::NamespaceChain::new(1400);
        let within = || {
            let make = ["qdisc", "add", "dev", "near0", "root", "pfifo", "limit", "7"];
            command::run_checked("tc", &make, None, TC_TIMEOUT).expect("tc");
            let mut notes = UnreadableNotes::default();
            let facts = towards("10.99.2.2:7".parse().expect("valid"), &mut notes).expect("a route");
            assert!(notes.0.is_empty(), "{notes:?}");
            assert_eq!((facts.name.as_str(), facts.driver.as_deref()), ("near0", Some("veth")));
            let queueing = facts.queueing.expect("a queue");
            assert_eq!(queueing.settings, [("limit".to_owned(), "7".to_owned())].into());
            assert!(queueing.statistics.is_some() && facts.counters.is_some() && facts.speed.is_some());
            assert_eq!(facts.offloads.get("tx-tcp-segmentation"), Some(&true));
        };
        chain.near.within(within).expect("entered");
    }
}
