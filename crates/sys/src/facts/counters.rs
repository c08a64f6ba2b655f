//! Counters of this host's network stack, in the calling thread's network namespace.

use linerate_model::fact::Fact;
use linerate_model::host::counters::{
    ConntrackUsage, HostCounters, NetworkCounters, ProtocolCounters, SoftnetRow, parse_sockets,
};

use super::reading::{fact, file, parsed};
use super::{link, processors};
use crate::environment::protocol_counters;
use crate::error::Result;

const NETWORK: &str = "/proc/thread-self/net";

pub(super) fn read() -> NetworkCounters {
    NetworkCounters {
        protocol: fact(protocol_counters()),
        sockets: file(format!("{NETWORK}/sockstat")).map(|text| {
            let version_6 = file(format!("{NETWORK}/sockstat6"));
            let mut sockets = parse_sockets(&text);
            sockets.extend(parse_sockets(version_6.known().map(String::as_str).unwrap_or_default()));
            sockets
        }),
        softnet: softnet(),
        tracked_connections: tracked_connections(),
    }
}

/// Counters that a transfer may change, in a few milliseconds at the most: three files of the protocols, two of the
/// processors, one list of the interfaces. Counters that only some kernels have are empty where missing; fails when the
/// protocols' counters cannot be read.
pub fn host_counters() -> Result<HostCounters> {
    let protocol: ProtocolCounters = protocol_counters()?;
    let ticks = processors::ticks();
    Ok(HostCounters {
        protocol,
        softnet: softnet().known().cloned().unwrap_or_default(),
        processors: ticks.known().cloned().map(processors::each).unwrap_or_default(),
        interfaces: link::all_counters().unwrap_or_default(),
    })
}

fn softnet() -> Fact<Vec<SoftnetRow>> {
    parsed(format!("{NETWORK}/softnet_stat"), |text| Some(SoftnetRow::parse_all(text)).filter(|rows| !rows.is_empty()))
}

fn tracked_connections() -> Fact<ConntrackUsage> {
    let read = |name| parsed(format!("/proc/sys/net/netfilter/nf_conntrack_{name}"), |text| text.parse::<u64>().ok());
    match (read("count"), read("max")) {
        (Fact::Known(count), Fact::Known(most)) => Fact::Known(ConntrackUsage { count, most }),
        (Fact::Unknown(unread), _) | (_, Fact::Unknown(unread)) => Fact::Unknown(unread),
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_datagram_is_counted() {
        let before = host_counters().expect("procfs");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
        socket.send_to(&[0; 1000], socket.local_addr().expect("address")).expect("sent");
        let passed = host_counters().expect("procfs").since(&before);
        assert!(passed.protocol.get("UdpOutDatagrams") >= Some(1));
        let loopback = &passed.interfaces["lo"];
        assert!(loopback.traffic.sent.bytes.get() >= 1028, "{loopback:?}");
        assert!(!before.processors.is_empty() && !before.softnet.is_empty());
        assert!(passed.squeezes().is_some());
    }

    #[test]
    fn this_hosts_counters() {
        let counters = read();
        assert!(counters.protocol.known().is_some_and(|all| all.get("TcpExtTCPTimeouts").is_some()));
        assert!(counters.sockets.known().is_some_and(|all| all.contains_key("TCP inuse")));
        assert!(counters.tracked_connections.known().is_none_or(|tracked| tracked.most > 0));
    }

    #[test]
    #[ignore = "needs root and ip: devices in a network namespace"]
    fn counters_are_those_of_the_namespace() {
        let chain = crate::test_network::NamespaceChain::new(1400);
        let counted = chain.near.within(host_counters).expect("entered").expect("procfs");
        let names: Vec<&str> = counted.interfaces.keys().map(String::as_str).collect();
        assert_eq!(names, ["lo", "near0"]);
        assert_eq!(counted.protocol.get("TcpActiveOpens"), Some(0));
    }
}
