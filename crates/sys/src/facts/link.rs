//! The interfaces of the calling thread's network namespace.

use std::collections::BTreeMap;

use linerate_model::fact::Fact;
use linerate_model::host::link::{BondSettings, LinkCounters, LinkMembership, LinkState, NetworkLink, ReceiveErrors};
use linerate_units::{ByteCount, CompactCollect, Mtu, PacketCount};

use super::reading::{file, names};
use super::{ethtool, placement, queueing};
use crate::error::{Error, Result};
use crate::interface::{
    IFLA_IFNAME, IFLA_INFO_KIND, IFLA_LINKINFO, IFLA_MTU, IFLA_NUM_RX_QUEUES, IFLA_NUM_TX_QUEUES, IFLA_STATS64,
    IFLA_TXQLEN, LINK_DESCRIPTION, counters, text,
};
use crate::netlink::{NetlinkSocket, attribute, attributes, number};

// From the kernel's linux/if_link.h.
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_OPERSTATE: u16 = 16;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_GSO_MAX_SIZE: u16 = 41;
const IFLA_GRO_MAX_SIZE: u16 = 58;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_BOND_MODE: u16 = 1;
const IFLA_BOND_XMIT_HASH_POLICY: u16 = 14;
const IFLA_VLAN_ID: u16 = 1;

/// All interfaces with all their facts; none when the kernel does not list them.
pub(super) fn read() -> Vec<NetworkLink> {
    let mut links = list().unwrap_or_default();
    let mut trees = queueing::read(&links);
    let of_this_namespace = files_are_of_this_namespace(&links);
    let interrupts = placement::interrupt_lines();
    for link in &mut links {
        ethtool::describe(link);
        link.queueing = trees.as_mut().map_or_else(
            |unread| Fact::Unknown(unread.clone()),
            |trees| Fact::Known(trees.remove(&link.name).unwrap_or_default()),
        );
        placement::describe(link, &of_this_namespace, &interrupts);
    }
    links
}

/// Counters of each interface, by name.
pub(super) fn all_counters() -> Result<BTreeMap<String, LinkCounters>> {
    let mut found = BTreeMap::new();
    dump(|body| {
        let mut name = None;
        let mut counted = None;
        for (kind, content) in attributes(body.get(LINK_DESCRIPTION..).unwrap_or_default()) {
            match kind {
                IFLA_IFNAME => name = Some(text(content)),
                IFLA_STATS64 => counted = link_counters(content),
                _ => {}
            }
        }
        found.extend(name.zip(counted));
    })?;
    Ok(found)
}

/// All interfaces as the routing subsystem describes them.
fn list() -> Result<Vec<NetworkLink>> {
    let mut found: Vec<(NetworkLink, LinkRelations)> = Vec::new();
    dump(|body| found.extend(parse(body)))?;
    let names: BTreeMap<u32, String> =
        found.iter().map(|(link, _)| (link.index, link.name.clone())).collect_compactly();
    let resolve = |(mut link, relations): (NetworkLink, LinkRelations)| {
        link.membership.master = relations.master.and_then(|index| names.get(&index).cloned());
        let lower = relations.lower.filter(|index| *index != link.index && !relations.lower_is_elsewhere);
        link.membership.lower = lower.and_then(|index| names.get(&index).cloned());
        link
    };
    Ok(found.into_iter().map(resolve).collect())
}

fn dump(mut each: impl FnMut(&[u8])) -> Result<()> {
    let failed = |cause| Error::system("listing the interfaces", cause);
    let mut socket = NetlinkSocket::route().map_err(failed)?;
    socket.list(libc::RTM_GETLINK, &[0; LINK_DESCRIPTION], |message| each(message.body)).map_err(failed)
}

/// Other interfaces by their numbers, until all names are known.
#[derive(Clone, Copy, Debug, Default)]
struct LinkRelations {
    master: Option<u32>,
    lower: Option<u32>,
    lower_is_elsewhere: bool,
}

fn parse(body: &[u8]) -> Option<(NetworkLink, LinkRelations)> {
    let (description, rest) = body.split_at_checked(LINK_DESCRIPTION)?;
    let flags = number(description, 8)?;
    let has = |flag: libc::c_int| u32::try_from(flag).is_ok_and(|flag| flags & flag != 0);
    let mut link = NetworkLink {
        index: number(description, 4)?,
        is_up: has(libc::IFF_UP),
        is_loopback: has(libc::IFF_LOOPBACK),
        ..NetworkLink::default()
    };
    let mut relations = LinkRelations::default();
    let (mut sending, mut receiving) = (None, None);
    for (kind, content) in attributes(rest) {
        match kind {
            IFLA_IFNAME => link.name = text(content),
            IFLA_MTU => link.mtu = number(content, 0).map(Mtu::new),
            IFLA_TXQLEN => link.transmit_queue = number(content, 0).map(|length| PacketCount::new(length.into())),
            IFLA_GSO_MAX_SIZE => link.segmentation_size = size(content),
            IFLA_GRO_MAX_SIZE => link.coalescing_size = size(content),
            IFLA_NUM_TX_QUEUES => sending = number(content, 0),
            IFLA_NUM_RX_QUEUES => receiving = number(content, 0),
            IFLA_OPERSTATE => link.state = content.first().map_or(LinkState::Unknown, |state| link_state(*state)),
            IFLA_MASTER => relations.master = number(content, 0),
            IFLA_LINK => relations.lower = number(content, 0),
            IFLA_LINK_NETNSID => relations.lower_is_elsewhere = true,
            IFLA_STATS64 => link.counters = link_counters(content),
            IFLA_LINKINFO => (link.kind, link.membership) = virtual_device(content),
            _ => {}
        }
    }
    link.queue_counts = sending.zip(receiving);
    (!link.name.is_empty()).then_some((link, relations))
}

fn size(content: &[u8]) -> Option<ByteCount> {
    number(content, 0).map(|bytes| ByteCount::new(bytes.into()))
}

fn virtual_device(content: &[u8]) -> (Option<String>, LinkMembership) {
    let part = |wanted| attribute(content, wanted);
    let kind = part(IFLA_INFO_KIND).map(text);
    let of = |wanted| attribute(part(IFLA_INFO_DATA)?, wanted);
    let mut membership = LinkMembership::default();
    match kind.as_deref() {
        Some("bond") => {
            let byte = |wanted| of(wanted)?.first().copied();
            let bond = |(mode, hash_policy)| BondSettings { mode, hash_policy };
            membership.bond = byte(IFLA_BOND_MODE).zip(byte(IFLA_BOND_XMIT_HASH_POLICY)).map(bond);
        }
        Some("vlan") => {
            membership.vlan = of(IFLA_VLAN_ID).and_then(|id| Some(u16::from_ne_bytes(*id.first_chunk()?)));
        }
        _ => {}
    }
    (kind, membership)
}

const fn link_state(state: u8) -> LinkState {
    match state {
        1 => LinkState::NotPresent,
        2 => LinkState::Down,
        3 => LinkState::LowerLayerDown,
        4 => LinkState::Testing,
        5 => LinkState::Dormant,
        6 => LinkState::Up,
        _ => LinkState::Unknown,
    }
}

/// `rtnl_link_stats64`; kernels before 4.6 have no counter of unwanted packets (`rx_nohandler`).
fn link_counters(content: &[u8]) -> Option<LinkCounters> {
    let count = |index: usize| {
        let bytes = content.get(index * 8..index * 8 + 8)?;
        Some(PacketCount::new(u64::from_ne_bytes(bytes.try_into().ok()?)))
    };
    Some(LinkCounters {
        traffic: counters(content)?,
        receive_errors: ReceiveErrors {
            overrun: count(11)?,
            checksum: count(12)?,
            frame: count(13)?,
            fifo: count(14)?,
            missed: count(15)?,
            unwanted: count(23).unwrap_or_default(),
        },
        carrier_lost: count(17)?,
    })
}

/// Known when `/sys/class/net` shows the interfaces of the calling thread's network namespace: it shows those of the
/// namespace in which it was mounted.
fn files_are_of_this_namespace(links: &[NetworkLink]) -> Fact<()> {
    let there = match names("/sys/class/net") {
        Fact::Known(names) => names,
        Fact::Unknown(unread) => return Fact::Unknown(unread),
    };
    let index = |name: &String| file(format!("/sys/class/net/{name}/ifindex")).known()?.parse::<u32>().ok();
    let there: BTreeMap<String, u32> =
        there.into_iter().filter_map(|name| index(&name).map(|index| (name, index))).collect_compactly();
    let here: BTreeMap<String, u32> = links.iter().map(|link| (link.name.clone(), link.index)).collect_compactly();
    if there == here {
        return Fact::Known(());
    }
    Fact::absent("/sys/class/net shows the interfaces of another network namespace")
}

/// The interfaces that the kernel lists, for tests of the other parts.
#[cfg(test)]
pub(super) fn listed() -> Vec<NetworkLink> {
    list().expect("every kernel lists them")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::append_attribute;

    #[test]
    fn the_loopback_device_is_described() {
        let links = read();
        let loopback = links.iter().find(|link| link.name == "lo").expect("every host has it");
        assert!(loopback.is_loopback && loopback.index == 1 && !loopback.is_hardware());
        assert!(loopback.mtu.is_some() && loopback.counters.is_some() && loopback.segmentation_size.is_some());
        assert!(loopback.rings.known().is_none() && loopback.speed.known().is_none());
        assert!(loopback.offload("tx-tcp-segmentation").is_some_and(|offload| offload.active));
        assert!(all_counters().is_ok_and(|all| all.contains_key("lo")));
    }

    fn link_message() -> Vec<u8> {
        let mut bond = Vec::new();
        append_attribute(&mut bond, IFLA_BOND_MODE, &[4]).expect("short");
        append_attribute(&mut bond, IFLA_BOND_XMIT_HASH_POLICY, &[1]).expect("short");
        let mut info = Vec::new();
        append_attribute(&mut info, IFLA_INFO_KIND, b"bond\0").expect("short");
        append_attribute(&mut info, IFLA_INFO_DATA, &bond).expect("short");
        let mut body = vec![0; LINK_DESCRIPTION];
        body[4..8].copy_from_slice(&7_u32.to_ne_bytes());
        body[8..12].copy_from_slice(&1_u32.to_ne_bytes());
        let counters: Vec<u8> = (0..25_u64).flat_map(|count| (count * 10).to_ne_bytes()).collect();
        for (kind, content) in [
            (IFLA_IFNAME, b"bond0\0".as_slice()),
            (IFLA_OPERSTATE, &[6]),
            (IFLA_LINK, &3_u32.to_ne_bytes()),
            (IFLA_LINKINFO, &info),
            (IFLA_STATS64, &counters),
        ] {
            append_attribute(&mut body, kind, content).expect("short");
        }
        body
    }

    #[test]
    fn a_bond_with_its_counters() {
        let (link, relations) = parse(&link_message()).expect("whole");
        assert_eq!((link.name.as_str(), link.index, link.state, link.is_up), ("bond0", 7, LinkState::Up, true));
        assert_eq!(
            (link.kind.as_deref(), link.membership.bond),
            (Some("bond"), Some(BondSettings { mode: 4, hash_policy: 1 }))
        );
        assert_eq!((relations.lower, relations.master), (Some(3), None));
        let faults = link.counters.expect("counted").receive_errors;
        let count = PacketCount::new;
        assert_eq!((faults.overrun, faults.checksum, faults.frame), (count(110), count(120), count(130)));
        assert_eq!((faults.fifo, faults.missed, faults.unwanted), (count(140), count(150), count(230)));
    }

    #[test]
    fn truncated_messages_are_skipped() {
        let whole = link_message();
        for length in 0..whole.len() {
            let part = parse(&whole[..length]).map(|(link, _)| link.name);
            assert!(part.is_none() || part.as_deref() == Some("bond0"), "{length}");
        }
    }

    #[test]
    #[ignore = "needs root and ip: devices in a network namespace"]
    fn interfaces_of_another_namespace() {
        let chain = crate::test_network::NamespaceChain::new(1400);
        let within = || {
            let ip = |arguments: &[&str]| {
                crate::command::run_checked("ip", arguments, None, core::time::Duration::from_secs(10)).expect("ip");
            };
            ip(&["link", "add", "link", "near0", "name", "upper0", "type", "macvlan"]);
            ip(&["link", "add", "name", "bridge0", "type", "bridge"]);
            ip(&["link", "set", "upper0", "master", "bridge0"]);
            let links = read();
            let find = |name: &str| links.iter().find(|link| link.name == name).expect("there");
            let (near, upper) = (find("near0"), find("upper0"));
            assert_eq!((near.kind.as_deref(), near.driver.known().map(String::as_str)), (Some("veth"), Some("veth")));
            assert_eq!(near.membership.lower, None, "the other end is in another namespace");
            assert!(near.receive_queues.unread().is_some_and(|unread| unread.reason.contains("namespace")));
            assert_eq!(
                (upper.membership.lower.as_deref(), upper.membership.master.as_deref()),
                (Some("near0"), Some("bridge0"))
            );
            assert!(near.queueing.known().is_some_and(|tree| tree.iter().all(|one| one.kind == "noqueue")));
        };
        chain.near.within(within).expect("entered");
    }
}
