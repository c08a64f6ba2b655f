//! Events of the kernel by process and by flow, in one interval of a watch.

use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;
use std::collections::{BTreeMap, HashMap};

use crate::far::KernelEvents;
use crate::socket::{FlowKey, ProcessId};

/// Events of one flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowEvents {
    /// Dropped packets by the kernel's reason; empty also where drops have no flow ([`IntervalEvents::has_flow_drops`]).
    pub drops: BTreeMap<String, u64>,
    /// Segments that were retransmitted by a timer: timeouts, tail loss probes, RACK's reordering timer.
    pub by_timer: u64,
    /// Segments that were retransmitted on an acknowledgement.
    pub by_acknowledgement: u64,
}

impl FlowEvents {
    /// Number of dropped packets.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.drops.values().copied().fold(0, u64::saturating_add)
    }

    /// Events since earlier totals.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let grown = |(reason, packets): (&String, &u64)| {
            let grown = packets.saturating_sub(before.drops.get(reason).copied().unwrap_or_default());
            (grown > 0).then(|| (reason.clone(), grown))
        };
        Self {
            drops: self.drops.iter().filter_map(grown).collect(),
            by_timer: self.by_timer.saturating_sub(before.by_timer),
            by_acknowledgement: self.by_acknowledgement.saturating_sub(before.by_acknowledgement),
        }
    }
}

/// Ports and remote IPv4 address by which the kernel's events know a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TracedFlowKey {
    /// Local port.
    pub local: u16,
    /// Remote port.
    pub remote: u16,
    /// Remote address; of IPv6 flows a number that means nothing.
    pub address: Ipv4Addr,
}

/// Events of one interval. Parts that this kernel cannot trace are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntervalEvents {
    /// Length of the interval.
    pub elapsed: Duration,
    /// Time for which the thread that waited most waited for a processor, by process.
    pub waits: Option<HashMap<ProcessId, Duration>>,
    /// True when drops are counted by flow.
    pub has_flow_drops: bool,
    /// True when retransmissions are counted by flow.
    pub has_flow_retransmissions: bool,
    /// Events by flow.
    pub flows: BTreeMap<TracedFlowKey, FlowEvents>,
    /// Events of the host.
    pub host: KernelEvents,
}

impl IntervalEvents {
    /// Events of a flow; none where nothing happened. An IPv6 flow is known by its ports: where several labels have them, its
    /// events are unknown.
    #[must_use]
    pub fn of_flow(&self, key: &FlowKey) -> Option<FlowEvents> {
        let (local, remote) = (key.local.port(), key.remote.port());
        let label = |address| TracedFlowKey { local, remote, address };
        let address = match key.remote.ip() {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(address) => address.to_ipv4_mapped(),
        };
        if let Some(address) = address {
            return Some(self.flows.get(&label(address)).cloned().unwrap_or_default());
        }
        let mut found = self.flows.range(label(Ipv4Addr::UNSPECIFIED)..=label(Ipv4Addr::BROADCAST));
        match (found.next(), found.next()) {
            (None, _) => Some(FlowEvents::default()),
            (Some((_, events)), None) => Some(events.clone()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::SocketCookie;

    fn key(remote: &str) -> FlowKey {
        FlowKey {
            local: "[::]:5201".parse().expect("an address"),
            remote: remote.parse().expect("an address"),
            cookie: SocketCookie(1),
        }
    }

    #[test]
    fn flows_are_known_by_their_ports_and_ipv4_address() {
        let label = |address: [u8; 4]| TracedFlowKey { local: 5201, remote: 4000, address: address.into() };
        let timer = |by_timer| FlowEvents { by_timer, ..FlowEvents::default() };
        let one = IntervalEvents { flows: [(label([10, 0, 0, 1]), timer(3))].into(), ..IntervalEvents::default() };
        let of = |events: &IntervalEvents, remote: &str| events.of_flow(&key(remote)).map(|flow| flow.by_timer);
        assert_eq!(of(&one, "10.0.0.1:4000"), Some(3));
        assert_eq!(of(&one, "[::ffff:10.0.0.1]:4000"), Some(3));
        assert_eq!((of(&one, "10.0.0.2:4000"), of(&one, "10.0.0.1:4001")), (Some(0), Some(0)));
        assert_eq!(of(&one, "[2001:db8::1]:4000"), Some(3));
        // Two hosts with the same ports: an IPv6 flow could be either.
        let two = IntervalEvents {
            flows: [(label([10, 0, 0, 1]), timer(3)), (label([10, 0, 0, 9]), timer(4))].into(),
            ..IntervalEvents::default()
        };
        assert_eq!((of(&two, "[2001:db8::1]:4000"), of(&two, "10.0.0.9:4000")), (None, Some(4)));
    }

    #[test]
    fn events_of_an_interval_are_the_growth_of_totals() {
        let total = |drops: &[(&str, u64)], by_timer| FlowEvents {
            drops: drops.iter().map(|(reason, packets)| ((*reason).to_owned(), *packets)).collect(),
            by_timer,
            by_acknowledgement: 7,
        };
        let grown = total(&[("A", 5), ("B", 9), ("C", 2)], 4).since(&total(&[("A", 5), ("B", 1)], 1));
        assert_eq!((grown.dropped(), grown.drops.get("B"), grown.by_timer), (10, Some(&8), 3));
        assert_eq!((grown.by_acknowledgement, grown.drops.contains_key("A")), (0, false));
    }
}
