//! The routes of the calling thread's network namespace (rtnetlink(7), `RTM_GETROUTE`).

use core::time::Duration;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linerate_model::fact::Fact;
use linerate_model::host::link::NetworkLink;
use linerate_model::host::routes::RouteEntry;
use linerate_units::{CompactCollect, CompactSort, Mtu};

use super::reading::fact;
use crate::error::{Error, Result};
use crate::interface::text;
use crate::netlink::{NetlinkSocket, attributes, number};

// From the kernel's linux/rtnetlink.h.
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_METRICS: u16 = 8;
const RTA_TABLE: u16 = 15;
const RTAX_MTU: u16 = 2;
const RTAX_CWND: u16 = 7;
const RTAX_INITCWND: u16 = 11;
const RTAX_FEATURES: u16 = 12;
const RTAX_RTO_MIN: u16 = 13;
const RTAX_INITRWND: u16 = 14;
const RTAX_QUICKACK: u16 = 15;
const RTAX_CC_ALGO: u16 = 16;
/// The bits of `RTAX_FEATURES` by `ip route`'s names.
const FEATURES: [(u32, &str); 5] = [(1, "ecn"), (2, "sack"), (4, "timestamp"), (8, "allfrag"), (16, "tcp_usec_ts")];
const RTN_UNICAST: u8 = 1;
const RTM_F_CLONED: u32 = 0x200;
const MAIN_TABLE: u32 = 254;
/// Length of `rtmsg`: family, lengths of prefixes, type of service, table, protocol, scope, type, flags.
const RTMSG_LENGTH: usize = 12;
/// Maximum routes read per family: routers have hundreds of thousands, which do not concern this host's own transfers.
const MAX_ROUTES: usize = 1000;

/// The routes of the main tables, at most 1000 of each family.
pub(super) fn read(links: &[NetworkLink]) -> Fact<Vec<RouteEntry>> {
    let names: BTreeMap<u32, &str> = links.iter().map(|link| (link.index, link.name.as_str())).collect_compactly();
    fact(list(&names))
}

fn list(names: &BTreeMap<u32, &str>) -> Result<Vec<RouteEntry>> {
    let failed = |cause| Error::system("listing the routes", cause);
    let mut socket = NetlinkSocket::route().map_err(failed)?;
    let mut all = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut question = [0; RTMSG_LENGTH];
        question[0] = u8::try_from(family).unwrap_or_default();
        let mut routes = Vec::new();
        let outcome = socket.list(libc::RTM_GETROUTE, &question, |message| {
            if routes.len() < MAX_ROUTES {
                routes.extend(parse(message.body, names));
            }
        });
        match outcome {
            // A kernel without IPv6.
            Err(cause) if family == libc::AF_INET6 && cause.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
            outcome => outcome.map_err(failed)?,
        }
        routes.sort_compactly_by_key(|route: &RouteEntry| (!route.is_default(), route.metric));
        all.append(&mut routes);
    }
    Ok(all)
}

fn parse(body: &[u8], names: &BTreeMap<u32, &str>) -> Option<RouteEntry> {
    let (description, rest) = body.split_at_checked(RTMSG_LENGTH)?;
    let family = i32::from(description[0]);
    let is_wanted = description[7] == RTN_UNICAST && number(description, 8)? & RTM_F_CLONED == 0;
    let mut table = u32::from(description[4]);
    let mut target = None;
    let mut route = RouteEntry { is_version_6: family == libc::AF_INET6, ..RouteEntry::default() };
    for (kind, content) in attributes(rest) {
        match kind {
            RTA_DST => target = address(content),
            RTA_OIF => {
                let name = number(content, 0).and_then(|index| names.get(&index));
                route.interface = name.map(|name| (*name).to_owned());
            }
            RTA_GATEWAY => route.gateway = address(content),
            RTA_PRIORITY => route.metric = number(content, 0),
            RTA_TABLE => table = number(content, 0)?,
            RTA_METRICS => metrics(content, &mut route),
            _ => {}
        }
    }
    route.destination = match (target, description[1]) {
        (None, 0) => "default".to_owned(),
        (None, _) => return None,
        (Some(IpAddr::V4(host)), 32) => host.to_string(),
        (Some(IpAddr::V6(host)), 128) => host.to_string(),
        (Some(network), length) => format!("{network}/{length}"),
    };
    (is_wanted && table == MAIN_TABLE).then_some(route)
}

fn address(content: &[u8]) -> Option<IpAddr> {
    match content.len() {
        4 => Some(Ipv4Addr::from(*content.first_chunk::<4>()?).into()),
        16 => Some(Ipv6Addr::from(*content.first_chunk::<16>()?).into()),
        _ => None,
    }
}

fn metrics(content: &[u8], route: &mut RouteEntry) {
    for (kind, content) in attributes(content) {
        let value = number(content, 0);
        match kind {
            RTAX_MTU => route.mtu = value.map(Mtu::new),
            RTAX_CWND => route.max_congestion_window = value,
            RTAX_INITCWND => route.initial_window = value,
            RTAX_INITRWND => route.initial_receive_window = value,
            RTAX_RTO_MIN => route.shortest_timeout = value.map(|time| Duration::from_millis(time.into())),
            RTAX_QUICKACK => route.acknowledges_at_once = value.map(|value| value != 0),
            RTAX_CC_ALGO => route.congestion_control = Some(text(content)),
            RTAX_FEATURES => {
                let set = FEATURES.iter().filter(|(bit, _)| value.is_some_and(|value| value & bit != 0));
                route.features = set.map(|(_, name)| (*name).to_owned()).collect();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs root and ip: devices in a network namespace"]
    fn routes_with_attributes() {
        let chain = crate::test_network::NamespaceChain::new(1400);
        let within = || {
            let add = "route add 192.0.2.0/24 via 10.99.1.2 metric 7 mtu 1300 initcwnd 20 congctl reno rto_min 50ms \
                       quickack 1 features ecn";
            let words: Vec<&str> = add.split_ascii_whitespace().collect();
            crate::command::run_checked("ip", &words, None, Duration::from_secs(10)).expect("ip");
            let routes = read(&super::super::link::listed());
            let routes = routes.known().expect("listed");
            let defaults: Vec<bool> =
                routes.iter().filter(|route| route.is_default()).map(|route| route.is_version_6).collect();
            assert_eq!(defaults, [false, true]);
            let route = routes.iter().find(|route| route.destination == "192.0.2.0/24").expect("made");
            assert_eq!((route.interface.as_deref(), route.metric), (Some("near0"), Some(7)));
            assert_eq!((route.mtu, route.initial_window), (Some(Mtu::new(1300)), Some(20)));
            assert_eq!(route.congestion_control.as_deref(), Some("reno"));
            assert_eq!(route.shortest_timeout, Some(Duration::from_millis(50)));
            assert_eq!((route.acknowledges_at_once, route.features.as_slice()), (Some(true), &["ecn".to_owned()][..]));
            assert_eq!(route.gateway, Some("10.99.1.2".parse().expect("valid")));
        };
        chain.near.within(within).expect("entered");
    }

    #[test]
    fn this_hosts_routes_have_destinations() {
        let routes = read(&super::super::link::listed());
        assert!(routes.known().is_some_and(|routes| routes.iter().all(|route| !route.destination.is_empty())));
    }

    #[test]
    fn truncated_routes_are_skipped() {
        let mut body = vec![0_u8; RTMSG_LENGTH];
        (body[0], body[1], body[4], body[7]) = (2, 24, 254, RTN_UNICAST);
        crate::netlink::append_attribute(&mut body, RTA_DST, &[192, 0, 2, 0]).expect("short");
        crate::netlink::append_attribute(&mut body, RTA_OIF, &1_u32.to_ne_bytes()).expect("short");
        let names = [(1, "lo")].into();
        let route = parse(&body, &names).expect("whole");
        assert_eq!((route.destination.as_str(), route.interface.as_deref()), ("192.0.2.0/24", Some("lo")));
        for length in 0..body.len() - 8 {
            assert_eq!(parse(&body[..length], &names), None, "{length}");
        }
        body[4] = 255;
        assert_eq!(parse(&body, &names), None, "the table of addresses");
    }
}
