//! Interface towards the peer of a test, as far as it can limit a transfer.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use linerate_model::far::LinkEvidence;
use linerate_model::host::link::DuplexMode;
use linerate_units::{BitRate, ByteCount};

use crate::error::Result;
use crate::features;
use crate::interface::NetworkInterface;
use crate::{facts, route};

/// Offloads without which each packet costs processor time.
const OFFLOADS: [&str; 8] = [
    "rx-checksum",
    "rx-gro",
    "tx-checksum-ip-generic",
    "tx-checksum-ipv4",
    "tx-checksum-ipv6",
    "tx-generic-segmentation",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
];

/// Number and facts of the interface on the route to `remote`, without the errors of a test; in the calling thread's
/// network namespace. Facts that the device does not report are `None`.
pub fn link_towards(remote: SocketAddr) -> Result<(u32, LinkEvidence)> {
    let index = route::route_to(remote)?.index;
    let interface = NetworkInterface::by_index(index)?;
    let (speed, max_speed, duplex) = facts::link_speed(&interface.name);
    let evidence = LinkEvidence {
        kind: interface.kind,
        is_loopback: index == LOOPBACK_INDEX,
        speed_bits_per_second: speed.map(bits),
        max_speed_bits_per_second: max_speed.map(bits),
        is_half_duplex: duplex.map(|duplex| duplex == DuplexMode::Half),
        mtu_bytes: interface.mtu.map(linerate_units::Mtu::get),
        link_header_bytes: interface.link_header.and_then(|header| header.get().try_into().ok()),
        offloads: offloads(&interface.name),
        errors: None,
        interface: interface.name,
    };
    Ok((index, evidence))
}

/// The kernel's number of the loopback device of each network namespace (`LOOPBACK_IFINDEX`).
const LOOPBACK_INDEX: u32 = 1;

fn bits(rate: BitRate) -> u64 {
    ByteCount::from_f64(rate.bits_per_second()).get()
}

fn offloads(device: &str) -> BTreeMap<String, bool> {
    let mut features = features::features(device).unwrap_or_default();
    features.retain(|name, _| OFFLOADS.contains(&name.as_str()));
    features
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_is_no_link() {
        let (index, link) = link_towards(([127, 0, 0, 1], 0).into()).expect("every host has it");
        assert_eq!((index, link.interface.as_str(), link.is_loopback), (1, "lo", true));
        assert_eq!((link.speed_bits_per_second, link.is_half_duplex, link.errors), (None, None, None));
        assert!(link.mtu_bytes.is_some() && link.offloads.contains_key("tx-tcp-segmentation"), "{link:?}");
    }

    #[test]
    #[ignore = "needs root and ip: devices in a network namespace"]
    fn a_pair_of_devices_and_one_above() {
        let chain = crate::test_network::NamespaceChain::new(1400);
        let within = || {
            let ten_seconds = core::time::Duration::from_secs(10);
            let run = |program: &str, arguments: &[&str]| {
                crate::command::run_checked(program, arguments, None, ten_seconds).expect("runs");
            };
            features::turn_aggregation_off("near0").expect("root");
            let (_, link) = link_towards("10.99.2.2:0".parse().expect("valid")).expect("a route");
            assert_eq!(
                (link.interface.as_str(), link.kind.as_deref(), link.mtu_bytes),
                ("near0", Some("veth"), Some(1500))
            );
            assert_eq!((link.speed_bits_per_second, link.is_half_duplex), (Some(10_000_000_000), Some(false)));
            assert_eq!(
                (link.offloads.get("tx-tcp-segmentation"), link.max_speed_bits_per_second),
                (Some(&false), None)
            );
            run("ip", &["link", "add", "link", "near0", "name", "upper0", "type", "macvlan"]);
            run("ip", &["link", "set", "upper0", "up"]);
            run("ip", &["route", "add", "192.0.2.0/24", "dev", "upper0"]);
            let (_, upper) = link_towards("192.0.2.1:0".parse().expect("valid")).expect("a route");
            assert_eq!((upper.kind.as_deref(), upper.interface.as_str()), (Some("macvlan"), "upper0"));
        };
        chain.near.within(within).expect("entered");
    }
}
