//! Connections that are no sessions yet: those whose cookie has not arrived, and clients that wait for a session.
//!
//! Both lists are bounded. When one is full, the network with the most entries gives way, not the next client.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use linerate_sys::net;
use linerate_sys::poll::PollInterest;
use linerate_units::MonotonicTime;
use linerate_wire::cookie::{self, Cookie};

use super::inbox::ConnectionNumber;
use crate::control::{ControlConnection, ControlRead};
use crate::resources::ClientNetwork;

/// A connection whose cookie is not yet complete.
#[derive(Debug)]
pub(super) struct PendingConnection {
    pub(super) number: ConnectionNumber,
    pub(super) control: ControlConnection,
    pub(super) peer: SocketAddr,
    pub(super) deadline: MonotonicTime,
    /// True once its handshake may begin.
    pub(super) is_admitted: bool,
    /// Time to which its handshake waits for those of others.
    pub(super) held_until: Option<MonotonicTime>,
    cookie: [u8; cookie::LENGTH],
    read: usize,
}

/// State of a connection after reading from it.
pub(super) enum ConnectionState {
    Unknown,
    Known(Cookie),
    /// TLS has failed.
    Refused,
    Gone,
}

impl PendingConnection {
    pub(super) fn new(
        number: ConnectionNumber,
        control: ControlConnection,
        peer: SocketAddr,
        deadline: MonotonicTime,
    ) -> Self {
        let (cookie, read) = ([0; cookie::LENGTH], 0);
        Self { number, control, peer, deadline, is_admitted: false, held_until: None, cookie, read }
    }

    /// Readiness to wait for.
    pub(super) fn interest(&self) -> PollInterest {
        if self.held_until.is_some() { PollInterest::NONE } else { PollInterest::READ }
    }

    pub(super) fn read(&mut self) -> ConnectionState {
        match self.control.read(&mut self.cookie[self.read..]) {
            ControlRead::Closed if self.control.tls_failure().is_some() => ConnectionState::Refused,
            ControlRead::Closed => ConnectionState::Gone,
            ControlRead::Nothing => ConnectionState::Unknown,
            ControlRead::Bytes(count) => {
                self.read += count;
                if self.read < cookie::LENGTH {
                    ConnectionState::Unknown
                } else {
                    ConnectionState::Known(Cookie::from_bytes(self.cookie))
                }
            }
        }
    }
}

/// A client waiting for a session to end.
#[derive(Debug)]
pub(super) struct QueuedClient {
    pub(super) control: ControlConnection,
    pub(super) peer: SocketAddr,
    pub(super) cookie: Cookie,
    pub(super) since: MonotonicTime,
}

/// Entry of a list that networks share.
pub(super) trait FromPeer {
    /// Address of the other end.
    fn peer(&self) -> SocketAddr;

    /// Address of the other end without its port; IPv4 never mapped.
    fn client(&self) -> IpAddr {
        net::canonical(self.peer()).ip()
    }
}

impl FromPeer for PendingConnection {
    fn peer(&self) -> SocketAddr {
        self.peer
    }
}

impl FromPeer for QueuedClient {
    fn peer(&self) -> SocketAddr {
        self.peer
    }
}

/// Site of a client, the unit in which the lists are shared.
fn site(entry: &impl FromPeer) -> ClientNetwork {
    ClientNetwork::of(entry.client()).site()
}

/// Position of the oldest entry of the site with the most; of equal sites, of the one that has waited longest.
pub(super) fn oldest_of_largest_site<T: FromPeer>(entries: &VecDeque<T>) -> Option<usize> {
    let mut sites: HashMap<ClientNetwork, (usize, usize)> = HashMap::new();
    for (position, entry) in entries.iter().enumerate() {
        sites.entry(site(entry)).or_insert((0, position)).0 += 1;
    }
    sites.into_values().max_by_key(|(count, oldest)| (*count, usize::MAX - *oldest)).map(|(_, oldest)| oldest)
}

/// Position of the youngest entry that gives way to a client: of the site with the most, if the client's own site would
/// still have fewer.
pub(super) fn gives_way_to<T: FromPeer>(entries: &VecDeque<T>, client: IpAddr) -> Option<usize> {
    let mut sites: HashMap<ClientNetwork, (usize, usize)> = HashMap::new();
    for (position, entry) in entries.iter().enumerate() {
        let (count, youngest) = sites.entry(site(entry)).or_default();
        (*count, *youngest) = (*count + 1, position);
    }
    let own = sites.get(&ClientNetwork::of(client).site()).map_or(0, |(count, _)| *count);
    sites.into_values().max().filter(|(largest, _)| *largest > own + 1).map(|(_, youngest)| youngest)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Entry(&'static str);

    impl FromPeer for Entry {
        fn peer(&self) -> SocketAddr {
            SocketAddr::new(self.0.parse().expect("an address"), 1)
        }
    }

    fn list(addresses: &[&'static str]) -> VecDeque<Entry> {
        addresses.iter().map(|address| Entry(address)).collect()
    }

    #[test]
    fn the_oldest_of_the_site_with_the_most_gives_way() {
        for (addresses, expected) in [
            (&[][..], None),
            (&["192.0.2.1", "192.0.2.2", "192.0.2.2"], Some(1)),
            (&["192.0.2.1", "::ffff:192.0.2.2", "192.0.2.2", "192.0.2.1"], Some(0)),
            (&["192.0.2.1", "2001:db8:7:1::1", "2001:db8:7:2::1", "2001:db8:8::1"], Some(1)),
        ] {
            assert_eq!(oldest_of_largest_site(&list(addresses)), expected, "{addresses:?}");
        }
    }

    #[test]
    fn a_client_replaces_the_youngest_of_a_site_with_more() {
        let entries = list(&["192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.2"]);
        for (client, expected) in
            [("192.0.2.3", Some(3)), ("192.0.2.1", Some(3)), ("192.0.2.2", None), ("::ffff:192.0.2.2", None)]
        {
            assert_eq!(gives_way_to(&entries, client.parse().expect("an address")), expected, "{client}");
        }
        assert_eq!(gives_way_to(&list(&["192.0.2.1"]), [192, 0, 2, 2].into()), None, "one each");
    }
}
