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
