//! All connections: their cap, the shares of networks, and the time limits.
//!
//! An address may have as many connections as stay free: alone half of the cap, as with all resources of the server. When
//! nothing is free, the connection of the site with the most that has been without a request for longest gives way.

use core::time::Duration;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_units::MonotonicTime;

use crate::connection::Connection;

/// Time without a complete request: for the header of a request, and between two requests.
pub(crate) const IDLE_LIMIT: Duration = Duration::from_secs(15);

/// Share of the descriptors of the process that connections may have, and their largest number.
const DESCRIPTOR_SHARE: u64 = 8;
const MAX_CONNECTIONS: u64 = 1024;

/// All connections.
#[derive(Debug)]
pub(crate) struct ConnectionTable {
    most: usize,
    stall_limit: Duration,
    /// True when a site that has its share may open another one at the price of an idle one of its own: clients of the draft leave
    /// a hundred per second behind.
    displaces_own: bool,
    connections: Mutex<HashMap<u64, Arc<Connection>>>,
}

/// A connection in the table; dropping it removes it.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    table: Arc<ConnectionTable>,
    number: u64,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.table.lock().remove(&self.number);
    }
}

/// Clients that are one customer's: an IPv4 address, or an IPv6 prefix of this length.
pub(crate) fn network(client: IpAddr, length: u32) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & (u128::MAX << (128 - length))).into()),
        ipv4 @ IpAddr::V4(_) => ipv4,
    }
}

/// A customer's network.
pub(crate) fn customer(client: IpAddr) -> IpAddr {
    network(client, 64)
}

/// A site, which may have many networks.
fn site(client: IpAddr) -> IpAddr {
    network(client, 48)
}

impl ConnectionTable {
    /// A table for a process with this many descriptors; `displaces_own` lets idle connections of a site give way to others of it.
    pub(crate) fn new(descriptors: u64, stall_limit: Duration, displaces_own: bool) -> Arc<Self> {
        let most = usize::try_from((descriptors / DESCRIPTOR_SHARE).clamp(8, MAX_CONNECTIONS)).unwrap_or(8);
        Arc::new(Self { most, stall_limit, displaces_own, connections: Mutex::default() })
    }

    /// Adds a connection; `None` when its site has its share.
    pub(crate) fn enter(self: &Arc<Self>, connection: &Arc<Connection>, now: MonotonicTime) -> Option<ConnectionSlot> {
        let mut connections = self.lock();
        let of_site = site(connection.peer.ip());
        let own = connections.values().filter(|other| site(other.peer.ip()) == of_site).count() + 1;
        let others = connections.len() + 1 - own;
        if own > self.most.saturating_sub(others) / 2 {
            let victim = self.idlest(&connections, (of_site, own), now).filter(|victim| !victim.is_busy())?;
            connections.remove(&victim.number);
            victim.end();
        }
        connections.insert(connection.number, Arc::clone(connection));
        Some(ConnectionSlot { table: Arc::clone(self), number: connection.number })
    }

    /// Connection that has been without a request for longest, of the site that has to give one to a site that then has `own`.
    fn idlest(
        &self,
        connections: &HashMap<u64, Arc<Connection>>,
        (of_site, own): (IpAddr, usize),
        now: MonotonicTime,
    ) -> Option<Arc<Connection>> {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for connection in connections.values() {
            *counts.entry(site(connection.peer.ip())).or_default() += 1;
        }
        let (largest, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        if count <= own && !self.displaces_own {
            return None;
        }
        // A newcomer has none of its own.
        let giving = if count > own || own == 1 { largest } else { of_site };
        let of_giving = connections.values().filter(|connection| site(connection.peer.ip()) == giving);
        of_giving.max_by_key(|connection| (!connection.is_busy(), connection.idle_time(now))).cloned()
    }

    /// Ends connections that have been idle, or without progress, for too long.
    pub(crate) fn sweep(&self, now: MonotonicTime) {
        for connection in self.lock().values() {
            let limit = if connection.is_busy() { self.stall_limit } else { IDLE_LIMIT };
            if connection.idle_time(now) >= limit {
                connection.end();
            }
        }
    }

    /// Adjusts the send buffers to the rates of the last `interval`.
    #[cfg(feature = "responsiveness")]
    pub(crate) fn adjust_send_buffers(&self, interval: Duration) {
        for connection in self.lock().values() {
            connection.adjust_send_buffer(interval);
        }
    }

    /// A poisoned lock only means that a task panicked; each change is one statement.
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Connection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use linerate_sys::clock;
    use proptest::prelude::*;

    use super::*;
    use crate::test_support::Loopback;

    const STALL_LIMIT: Duration = Duration::from_secs(60);

    /// Connections that share one socket: the table asks for addresses and times only.
    struct Connections {
        loopback: Loopback,
        socket: TcpStream,
    }

    impl Connections {
        fn new() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let socket = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
            Self { loopback: Loopback::new(), socket }
        }

        fn of(&self, client: &str, number: u64) -> Arc<Connection> {
            let address: IpAddr = client.parse().expect(client);
            self.loopback.adopt(self.socket.try_clone().expect("a free descriptor"), (address, 9).into(), number)
        }

        /// Connections with numbers from `first` on, all in the table.
        fn fill(
            &self,
            table: &Arc<ConnectionTable>,
            client: &str,
            first: u64,
            count: u64,
        ) -> Vec<(Arc<Connection>, ConnectionSlot)> {
            let enter = |number| {
                let connection = self.of(client, number);
                let slot = enter(table, &connection).expect("a free slot");
                (connection, slot)
            };
            (first..first + count).map(enter).collect()
        }

        fn ended(&self, connections: &[(Arc<Connection>, ConnectionSlot)]) -> Vec<u64> {
            let ended = connections.iter().filter(|(connection, _)| self.loopback.is_ended(connection));
            ended.map(|(connection, _)| connection.number).collect()
        }
    }

    fn enter(table: &Arc<ConnectionTable>, connection: &Arc<Connection>) -> Option<ConnectionSlot> {
        table.enter(connection, clock::monotonic_now())
    }

    /// A table of eight connections.
    fn small(displaces_own: bool) -> Arc<ConnectionTable> {
        ConnectionTable::new(64, STALL_LIMIT, displaces_own)
    }

    #[test]
    fn the_cap_is_a_share_of_the_descriptors_within_bounds() {
        for (descriptors, most) in [(0, 8), (64, 8), (80, 10), (1024, 128), (1 << 20, 1024), (u64::MAX, 1024)] {
            assert_eq!(ConnectionTable::new(descriptors, STALL_LIMIT, false).most, most, "{descriptors}");
        }
    }

    #[test]
    fn customers_and_sites_are_prefixes() {
        let address = |text: &str| text.parse::<IpAddr>().expect(text);
        let full = address("2001:db8:1:2:3:4:5:6");
        assert_eq!((customer(full), site(full)), (address("2001:db8:1:2::"), address("2001:db8:1::")));
        let mapped = address("::ffff:192.0.2.1");
        assert_eq!((customer(mapped), site(mapped)), (address("192.0.2.1"), address("192.0.2.1")));
    }

    #[test]
    fn one_site_alone_has_half_of_the_connections() {
        let (connections, table) = (Connections::new(), small(false));
        let mut entered = connections.fill(&table, "2001:db8::1", 0, 4);
        let of_site = connections.of("2001:db8:0:ffff::1", 4);
        assert!(enter(&table, &of_site).is_none(), "another network of the same site");
        entered.pop();
        assert!(enter(&table, &of_site).is_some(), "one has left");
        assert_eq!(connections.ended(&entered), [0_u64; 0]);
    }

    #[test]
    fn the_idlest_connection_of_the_largest_site_gives_way() {
        let (connections, table) = (Connections::new(), small(false));
        let large = connections.fill(&table, "192.0.2.1", 0, 4);
        // It has answered a request since, so the second one has been idle for longest.
        large[0].0.begin_request();
        large[0].0.end_request();
        let _small = connections.fill(&table, "192.0.2.2", 4, 3);
        assert_eq!(connections.ended(&large), [1]);
        // Four against three would only exchange the sites.
        assert!(enter(&table, &connections.of("192.0.2.2", 7)).is_none());
        assert_eq!(connections.ended(&large), [0_u64; 0]);
    }

    #[test]
    fn a_connection_with_a_request_never_gives_way() {
        let (connections, table) = (Connections::new(), small(false));
        let large = connections.fill(&table, "192.0.2.1", 0, 4);
        for (connection, _) in &large {
            connection.begin_request();
        }
        let _small = connections.fill(&table, "192.0.2.2", 4, 2);
        let further = connections.of("192.0.2.2", 6);
        assert!(enter(&table, &further).is_none());
        large[2].0.end_request();
        assert!(enter(&table, &further).is_some());
        assert_eq!(connections.ended(&large), [2]);
    }

    #[test]
    fn a_site_may_exchange_its_own_idle_connections() {
        let (connections, table) = (Connections::new(), small(true));
        let own = connections.fill(&table, "192.0.2.1", 0, 4);
        let further = connections.fill(&table, "192.0.2.1", 4, 1);
        assert_eq!(connections.ended(&own), [0]);
        for (connection, _) in own.iter().chain(&further) {
            connection.begin_request();
        }
        let last = connections.of("192.0.2.1", 5);
        assert!(enter(&table, &last).is_none(), "all have a request");
        further[0].0.end_request();
        assert!(enter(&table, &last).is_some());
        assert_eq!((connections.ended(&own), connections.ended(&further)), (vec![], vec![4]));
    }

    #[test]
    fn a_site_that_has_its_share_leaves_the_connections_of_others_alone() {
        let (connections, table) = (Connections::new(), small(true));
        let other = connections.fill(&table, "192.0.2.1", 0, 3);
        let own = connections.fill(&table, "192.0.2.2", 3, 2);
        let _further = connections.fill(&table, "192.0.2.2", 5, 1);
        assert_eq!((connections.ended(&other), connections.ended(&own)), (vec![], vec![3]));
    }

    #[test]
    fn a_newcomer_displaces_an_idle_connection_where_those_give_way() {
        for displaces_own in [false, true] {
            let (connections, table) = (Connections::new(), small(displaces_own));
            let others: Vec<_> =
                (0..7).flat_map(|site| connections.fill(&table, &format!("192.0.2.{site}"), site, 1)).collect();
            assert_eq!(enter(&table, &connections.of("192.0.2.9", 9)).is_some(), displaces_own);
            assert_eq!(connections.ended(&others).len(), usize::from(displaces_own));
        }
    }

    #[test]
    fn connections_end_when_they_are_idle_or_stalled_for_too_long() {
        let connections = Connections::new();
        for (is_busy, limit) in [(false, IDLE_LIMIT), (true, STALL_LIMIT)] {
            let table = small(false);
            let before = clock::monotonic_now();
            let entered = connections.fill(&table, "192.0.2.1", 0, 1);
            if is_busy {
                entered[0].0.begin_request();
            }
            let after = clock::monotonic_now();
            table.sweep(before + limit * 99 / 100);
            assert_eq!(connections.ended(&entered), [0_u64; 0], "busy: {is_busy}");
            table.sweep(after + limit);
            assert_eq!(connections.ended(&entered), [0], "busy: {is_busy}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// Steps are a site that opens a connection, or the number of one that leaves.
        #[test]
        fn the_cap_holds_and_newcomers_find_a_slot(
            steps in proptest::collection::vec((0..6_u8, any::<bool>()), 1..60),
            displaces_own: bool,
        ) {
            let (connections, table) = (Connections::new(), small(displaces_own));
            let mut slots = Vec::new();
            for ((site, leaves), number) in steps.into_iter().zip(0..) {
                if leaves && !slots.is_empty() {
                    slots.remove(usize::from(site) % slots.len());
                    continue;
                }
                let client = format!("192.0.2.{site}");
                let address = SocketAddr::from((client.parse::<IpAddr>().expect("an address"), 9));
                let is_new = !table.lock().values().any(|other| other.peer == address);
                let most_of_another = connections_of_largest(&table);
                let slot = enter(&table, &connections.of(&client, number));
                prop_assert!(slot.is_some() || !is_new || most_of_another < 2, "a newcomer is kept out");
                slots.extend(slot);
                prop_assert!(table.lock().len() <= table.most);
            }
            drop(slots);
            prop_assert!(table.lock().is_empty(), "each slot returns its connection");
        }
    }

    fn connections_of_largest(table: &ConnectionTable) -> usize {
        let connections = table.lock();
        let of = |one: &Arc<Connection>| connections.values().filter(|other| other.peer == one.peer).count();
        connections.values().map(of).max().unwrap_or(0)
    }
}
