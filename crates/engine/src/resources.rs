//! Resources of a server: memory and processor time for samples, which all probe sessions share, and the rate of all
//! traffic.
//!
//! Each network of clients may hold as much memory as stays free: alone, it gets half of the budget, and the next one
//! still finds a share. Nothing is taken away from a holder, and nothing needs to be reserved.

use core::time::Duration;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_units::{BitRate, ByteCount};

use crate::probe::datagrams::SERVER_BATCH;
use crate::server_rate::{RateAccount, ServerRate};

/// Memory for the datagram channels, streams, load connections, samples and packet records of all probe sessions.
pub(crate) const SESSION_MEMORY: ByteCount = ByteCount::from_mebibytes(128);

/// Memory of one stream or load connection: its thread's stack in use, its buffers, its first samples.
pub(crate) const FLOW_MEMORY: ByteCount = ByteCount::from_kibibytes(128);

/// Memory of a session's datagram channel: its messages of 64 KiB.
pub(crate) const CHANNEL_MEMORY: ByteCount = ByteCount::from_kibibytes(64 * SERVER_BATCH as u64);

/// Samples per second of all load connections: at 8 to 18 µs each, a third of a processor at most.
const MAX_SAMPLES_PER_SECOND: u32 = 20_000;

/// Clients that share one quota: an IPv4 address, or an IPv6 /64, which is one customer's (RFC 6177).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientNetwork(IpAddr);

impl ClientNetwork {
    /// All senders of STAMP packets, whose addresses nobody has verified.
    const STAMP_SENDERS: Self = Self(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED));

    pub(crate) fn of(client: IpAddr) -> Self {
        match client {
            IpAddr::V4(_) => Self(client),
            IpAddr::V6(address) => Self(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()),
        }
    }
}

/// Budget of a server.
#[derive(Debug)]
pub(crate) struct ServerResources {
    memory: ByteCount,
    state: Mutex<HashMap<ClientNetwork, NetworkUse>>,
    /// Rate of all traffic; `None` for any.
    rate: Option<Arc<ServerRate>>,
}

/// Resources that the clients of one network use.
#[derive(Clone, Copy, Debug, Default)]
struct NetworkUse {
    memory: ByteCount,
    /// Load connections that are being sampled.
    sampled: u32,
}

impl ServerResources {
    /// A budget of `memory`, for any rate.
    #[cfg(test)]
    pub(crate) fn new(memory: ByteCount) -> Arc<Self> {
        Self::limited(memory, None)
    }

    /// A budget of `memory` and `rate`.
    pub(crate) fn limited(memory: ByteCount, rate: Option<BitRate>) -> Arc<Self> {
        Arc::new(Self { memory, state: Mutex::default(), rate: rate.map(ServerRate::new) })
    }

    /// Account in the rate for the answers to all STAMP senders.
    pub(crate) fn stamp_rate(&self) -> Option<RateAccount> {
        Some(self.rate.as_ref()?.account(ClientNetwork::STAMP_SENDERS))
    }

    /// Account of a client.
    pub(crate) fn account(self: &Arc<Self>, client: IpAddr) -> ResourceAccount {
        ResourceAccount(Some((Arc::clone(self), ClientNetwork::of(client))))
    }

    /// Memory that all clients hold.
    #[cfg(test)]
    pub(crate) fn held(&self) -> ByteCount {
        self.lock().values().map(|used| used.memory).sum()
    }

    /// A poisoned lock only means that a session panicked; each change is one statement.
    fn lock(&self) -> MutexGuard<'_, HashMap<ClientNetwork, NetworkUse>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, network: ClientNetwork, more: ByteCount) -> bool {
        let mut state = self.lock();
        let total: ByteCount = state.values().map(|used| used.memory).sum::<ByteCount>() + more;
        let own = state.get(&network).map_or(ByteCount::ZERO, |used| used.memory) + more;
        let fits = self.memory.checked_sub(total).is_some_and(|free| own <= free);
        if fits {
            state.entry(network).or_default().memory = own;
        }
        fits
    }

    fn release(&self, network: ClientNetwork, change: impl FnOnce(&mut NetworkUse)) {
        let mut state = self.lock();
        if let Some(used) = state.get_mut(&network) {
            change(used);
            if used.memory.is_zero() && used.sampled == 0 {
                state.remove(&network);
            }
        }
    }

    /// Shortest interval of the samples of each load connection of a network: the networks share the rate equally.
    fn sampling_interval(&self, network: ClientNetwork) -> Duration {
        let state = self.lock();
        let own = state.get(&network).map_or(0, |used| used.sampled);
        let networks = state.values().filter(|used| used.sampled > 0).count();
        let shares = own.saturating_mul(u32::try_from(networks).unwrap_or(u32::MAX));
        Duration::from_secs(1) / MAX_SAMPLES_PER_SECOND * shares
    }
}

/// Account of a client's network in the budget of a server; without a budget, at a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResourceAccount(Option<(Arc<ServerResources>, ClientNetwork)>);

/// No memory is left for a client's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this server has no memory left for streams, load connections and records of your address \
     (all probe sessions share {}): end some, or try again later", linerate_units::display::size_binary(*.0)
)]
pub(crate) struct MemoryExhausted(ByteCount);

impl ResourceAccount {
    /// Takes `memory`.
    pub(crate) fn lease(&self, memory: ByteCount) -> Result<MemoryLease, MemoryExhausted> {
        let mut lease = MemoryLease { account: self.clone(), held: ByteCount::ZERO };
        match &self.0 {
            Some((server, _)) if !lease.grow(memory) => Err(MemoryExhausted(server.memory)),
            _ => Ok(lease),
        }
    }

    /// Account in the rate of all traffic; `None` for any rate.
    pub(crate) fn rate(&self) -> Option<RateAccount> {
        let (server, network) = self.0.as_ref()?;
        Some(server.rate.as_ref()?.account(*network))
    }

    /// Counts a load connection as sampled while the claim exists.
    pub(crate) fn claim_sampling(&self) -> SamplingClaim {
        if let Some((server, network)) = &self.0 {
            server.lock().entry(*network).or_default().sampled += 1;
        }
        SamplingClaim(self.clone())
    }
}

/// Memory taken from a budget; dropping it returns the memory.
#[derive(Debug, Default)]
pub(crate) struct MemoryLease {
    account: ResourceAccount,
    held: ByteCount,
}

impl MemoryLease {
    /// Takes `more`; `false` when the network has its share.
    pub(crate) fn grow(&mut self, more: ByteCount) -> bool {
        let granted = self.account.0.as_ref().is_none_or(|(server, network)| server.take(*network, more));
        if granted {
            self.held += more;
        }
        granted
    }

    /// Account from which it is taken.
    pub(crate) fn account(&self) -> &ResourceAccount {
        &self.account
    }
}

impl Drop for MemoryLease {
    fn drop(&mut self) {
        if let Some((server, network)) = &self.account.0 {
            server.release(*network, |used| used.memory = used.memory - self.held);
        }
    }
}

/// Share of the samples per second; dropping it returns it.
#[derive(Debug)]
pub(crate) struct SamplingClaim(ResourceAccount);

impl SamplingClaim {
    /// Shortest interval of the samples now.
    pub(crate) fn shortest_interval(&self) -> Duration {
        self.0.0.as_ref().map_or(Duration::ZERO, |(server, network)| server.sampling_interval(*network))
    }
}

impl Drop for SamplingClaim {
    fn drop(&mut self) {
        if let Some((server, network)) = &self.0.0 {
            server.release(*network, |used| used.sampled -= 1);
        }
    }
}

/// Makes space for one more element in a list whose capacity is leased; `false` when there is no memory for it.
pub(crate) fn reserve_one<T>(list: &mut Vec<T>, memory: &mut MemoryLease) -> bool {
    const MIN_GROWTH: usize = 64;
    if list.len() < list.capacity() {
        return true;
    }
    let more = MIN_GROWTH.max(list.len() / 4);
    let granted = memory.grow(ByteCount::from_usize(more * size_of::<T>()));
    if granted {
        list.reserve_exact(more);
    }
    granted
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: ByteCount = ByteCount::from_mebibytes(1);

    fn account(server: &Arc<ServerResources>, client: &str) -> ResourceAccount {
        server.account(client.parse().expect("an address"))
    }

    #[test]
    fn a_network_gets_as_much_as_stays_free() {
        let server = ServerResources::new(MIB * 8);
        let [one, neighbour, other] =
            ["2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"].map(|at| account(&server, at));
        let mut lease = one.lease(MIB * 4).expect("half of it is free");
        assert!(!lease.grow(ByteCount::new(1)));
        assert!(neighbour.lease(ByteCount::new(1)).is_err(), "the same /64");
        let others = other.lease(MIB * 2).expect("half of the remainder");
        assert!(other.lease(ByteCount::new(1)).is_err());
        assert_eq!(server.held(), MIB * 6);
        drop(lease);
        drop(others);
        assert_eq!(server.held(), ByteCount::ZERO);
        assert!(server.lock().is_empty(), "networks without any use are forgotten");
    }

    #[test]
    fn a_refusal_names_the_reason_and_the_way_out() {
        let server = ServerResources::new(MIB);
        let error = account(&server, "192.0.2.1").lease(MIB).expect_err("more than half").to_string();
        assert!(error.contains("1.0 MiB") && error.contains("try again later"), "{error}");
    }

    #[test]
    fn networks_share_the_samples_per_second() {
        let server = ServerResources::new(MIB);
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|at| account(&server, at));
        let mut claims: Vec<SamplingClaim> = (0..50).map(|_| one.claim_sampling()).collect();
        assert_eq!(claims[0].shortest_interval(), Duration::from_micros(2500));
        let single = other.claim_sampling();
        assert_eq!(single.shortest_interval(), Duration::from_micros(100), "half of the rate for one connection");
        assert_eq!(claims[0].shortest_interval(), Duration::from_millis(5));
        claims.truncate(25);
        assert_eq!(claims[0].shortest_interval(), Duration::from_micros(2500));
        assert_eq!(ResourceAccount::default().claim_sampling().shortest_interval(), Duration::ZERO);
    }

    #[test]
    fn a_list_grows_as_far_as_its_lease() {
        let server = ServerResources::new(ByteCount::new(2 * 8 * 100));
        let mut lease = account(&server, "192.0.2.1").lease(ByteCount::ZERO).expect("nothing");
        let mut list: Vec<u64> = Vec::new();
        while reserve_one(&mut list, &mut lease) {
            list.push(0);
        }
        assert_eq!((list.len(), list.capacity(), server.held()), (64, 64, ByteCount::new(64 * 8)));
    }
}
