//! Resources of a server: memory, descriptors and processor time for samples, which all sessions share, and the rate of
//! all traffic.
//!
//! Each site of clients may hold as much as stays free: alone, it gets half of the budget, and the next one still finds a
//! share. Of what its site may hold, each network may hold as much as stays free, too. When many networks have taken it all,
//! one that asks for less than another holds has a session of that one displaced.

use core::fmt::Debug;
use core::time::Duration;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use linerate_sys::{clock, host};
use linerate_units::{BitRate, ByteCount, MonotonicTime};

use crate::probe::datagrams::SERVER_BATCH;
use crate::server_rate::{RateAccount, ServerRate};

/// Memory for the streams, datagram channels, load connections, samples and packet records of all sessions.
pub(crate) const SESSION_MEMORY: ByteCount = ByteCount::from_mebibytes(144);

/// Memory of one stream of a test, without its buffers: its thread's stack in use, its counters, its part of a report.
pub(crate) const STREAM_MEMORY: ByteCount = ByteCount::from_kibibytes(32);

/// Sessions that share [`SESSION_MEMORY`]. A server that is told to admit more has as much for each of them.
const SESSIONS_OF_MEMORY: u64 = 1000;

/// Descriptors of a stream of a test: its socket.
pub(crate) const DESCRIPTORS_PER_STREAM: u64 = 1;

/// Descriptors of a stream of probes or a load connection: its socket, and the waker of its thread.
pub(crate) const DESCRIPTORS_PER_FLOW: u64 = 2;

/// Descriptors of a test without its streams: its connection, and a waker.
pub(crate) const DESCRIPTORS_PER_TEST: u64 = 2;

/// Most descriptors of a probe session: its connection, wakers, the socket of its datagrams.
pub(crate) const DESCRIPTORS_PER_PROBE_SESSION: u64 = 6;

/// Memory of one stream or load connection: its thread's stack in use, its buffers, its first samples.
pub(crate) const FLOW_MEMORY: ByteCount = ByteCount::from_kibibytes(128);

/// Memory of a session's datagram channel: its messages of 64 KiB.
pub(crate) const CHANNEL_MEMORY: ByteCount = ByteCount::from_kibibytes(64 * SERVER_BATCH as u64);

/// Samples per second of all load connections: at 8 to 18 µs each, a third of a processor at most.
const MAX_SAMPLES_PER_SECOND: u32 = 20_000;

/// Requests per second of all probe sessions: at up to 50 µs each, a quarter of a processor at most.
const MAX_REQUESTS_PER_SECOND: u64 = 5000;

/// Memory that the sessions of a server share: in proportion to their number, above the usual one.
pub(crate) fn session_memory(max_sessions: u64) -> ByteCount {
    let memory = SESSION_MEMORY.get() / SESSIONS_OF_MEMORY * max_sessions.max(SESSIONS_OF_MEMORY);
    SESSION_MEMORY.max(ByteCount::new(memory))
}

/// Clients that share one quota: an IPv4 address, or an IPv6 /64, which is one customer's (RFC 6177).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientNetwork(IpAddr);

impl ClientNetwork {
    /// All senders of STAMP packets, whose addresses are not verified.
    const STAMP_SENDERS: Self = Self(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED));

    pub(crate) fn of(client: IpAddr) -> Self {
        Self::prefix(client, 64)
    }

    /// Site of the network: an organisation or a hosting customer has a whole IPv6 /48 (RFC 6177), of which each /64 would
    /// be a client of its own.
    pub(crate) fn site(self) -> Self {
        Self::prefix(self.0, 48)
    }

    /// The first `length` bits of an IPv6 address; IPv4 addresses, also those mapped to IPv6, whole.
    fn prefix(client: IpAddr, length: u32) -> Self {
        match client.to_canonical() {
            IpAddr::V6(address) => Self(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - length))).into()),
            ipv4 @ IpAddr::V4(_) => Self(ipv4),
        }
    }
}

/// Budget of a server.
#[derive(Debug)]
pub(crate) struct ServerResources {
    memory: ByteCount,
    descriptors: u64,
    state: Mutex<HashMap<ClientNetwork, NetworkUse>>,
    /// Rate of all traffic; `None` for any.
    rate: Option<Arc<ServerRate>>,
    /// Rate of requests, in which each counts as a byte.
    requests: Arc<ServerRate>,
    /// Streams that watch the clock instead of sleeping, each on a processor of its own.
    busy_waits: AtomicUsize,
    /// Notified when memory or descriptors are returned.
    released: Condvar,
    displacer: OnceLock<Weak<dyn SessionDisplacer>>,
}

/// Longest wait for the memory of a displaced session.
const MAX_LEASE_WAIT: Duration = Duration::from_millis(500);

/// … and time between two looks for it.
const LEASE_RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Ends sessions of networks that hold much.
pub(crate) trait SessionDisplacer: Debug + Send + Sync {
    /// Ends a session of a network that holds more than `network` would with `memory` more. Returns `true` when memory is
    /// about to be returned.
    fn displace_for_memory(&self, network: ClientNetwork, memory: ByteCount) -> bool;
}

/// Resources that the clients of one network use.
#[derive(Clone, Copy, Debug, Default)]
struct NetworkUse {
    memory: ByteCount,
    descriptors: u64,
    /// Load connections that are being sampled.
    sampled: u32,
}

impl NetworkUse {
    fn plus(self, other: Self) -> Self {
        Self {
            memory: self.memory + other.memory,
            descriptors: self.descriptors.saturating_add(other.descriptors),
            sampled: self.sampled.saturating_add(other.sampled),
        }
    }

    fn is_none(&self) -> bool {
        self.memory.is_zero() && self.descriptors == 0 && self.sampled == 0
    }
}

impl ServerResources {
    /// A budget of `memory`, for any rate.
    #[cfg(test)]
    pub(crate) fn new(memory: ByteCount) -> Arc<Self> {
        Self::limited(memory, u64::MAX, None)
    }

    /// A budget of `memory`, `descriptors` and `rate`.
    pub(crate) fn limited(memory: ByteCount, descriptors: u64, rate: Option<BitRate>) -> Arc<Self> {
        let requests = ServerRate::new(ByteCount::new(MAX_REQUESTS_PER_SECOND).rate_over(Duration::from_secs(1)));
        let rate = rate.map(ServerRate::new);
        let (state, busy_waits, released, displacer) = Default::default();
        Arc::new(Self { memory, descriptors, state, rate, requests, busy_waits, released, displacer })
    }

    /// Account in the rate for the answers to all STAMP senders.
    pub(crate) fn stamp_rate(&self) -> Option<RateAccount> {
        Some(self.rate.as_ref()?.account(ClientNetwork::STAMP_SENDERS))
    }

    /// Account of a session of a client.
    pub(crate) fn account(self: &Arc<Self>, client: IpAddr) -> ResourceAccount {
        let (server, network) = (Arc::clone(self), ClientNetwork::of(client));
        ResourceAccount(Some(SessionShare { server, network, memory: Arc::default() }))
    }

    /// Sets who ends sessions when memory is used up.
    pub(crate) fn set_displacer(&self, displacer: Weak<dyn SessionDisplacer>) {
        // A server has one registry.
        let _ = self.displacer.set(displacer);
    }

    /// Has a session ended for `network`, and waits a moment for what it returns; `false` when none gives way.
    fn makes_room(&self, network: ClientNetwork, memory: ByteCount) -> bool {
        let displacer = self.displacer.get().and_then(Weak::upgrade);
        let makes_room = displacer.is_some_and(|displacer| displacer.displace_for_memory(network, memory));
        if makes_room {
            // Woken or not, the caller tries again.
            let _ = self.released.wait_timeout(self.lock(), LEASE_RETRY_INTERVAL);
        }
        makes_room
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

    fn take(&self, network: ClientNetwork, memory: ByteCount, descriptors: u64) -> bool {
        let more = NetworkUse { memory, descriptors, sampled: 0 };
        let mut state = self.lock();
        let own = state.get(&network).copied().unwrap_or_default().plus(more);
        let (mut total, mut site) = (more, more);
        for (other, used) in &*state {
            total = total.plus(*used);
            if other.site() == network.site() {
                site = site.plus(*used);
            }
        }
        let is_alone = network.0.is_ipv4();
        let fits = |total: u64, site: u64, own: u64, most: u64| {
            let left_to_site = most.checked_sub(total).and_then(|free| free.checked_sub(site));
            left_to_site.is_some_and(|left| is_alone || own <= left)
        };
        let has_memory = fits(total.memory.get(), site.memory.get(), own.memory.get(), self.memory.get());
        let has_descriptors = fits(total.descriptors, site.descriptors, own.descriptors, self.descriptors);
        let granted = (memory.is_zero() || has_memory) && (descriptors == 0 || has_descriptors);
        if granted {
            state.insert(network, own);
        }
        granted
    }

    fn release(&self, network: ClientNetwork, change: impl FnOnce(&mut NetworkUse)) {
        let mut state = self.lock();
        if let Some(used) = state.get_mut(&network) {
            change(used);
            if used.is_none() {
                state.remove(&network);
            }
        }
        drop(state);
        self.released.notify_all();
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

/// Account of a session in the budget of a server; without a budget, at a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResourceAccount(Option<SessionShare>);

#[derive(Clone, Debug)]
struct SessionShare {
    server: Arc<ServerResources>,
    network: ClientNetwork,
    /// Bytes that the session holds.
    memory: Arc<AtomicU64>,
}

/// No memory, or no descriptor, is left for a client's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this server has no memory left for streams, load connections and records of your address \
     (all sessions share {}): end some, or try again later", linerate_units::display::size_binary(*.0)
)]
pub(crate) struct MemoryExhausted(ByteCount);

impl ResourceAccount {
    /// Takes `memory`.
    pub(crate) fn lease(&self, memory: ByteCount) -> Result<MemoryLease, MemoryExhausted> {
        self.lease_flows(memory, 0)
    }

    /// Takes `memory` and descriptors for flows.
    pub(crate) fn lease_flows(&self, memory: ByteCount, descriptors: u64) -> Result<MemoryLease, MemoryExhausted> {
        let deadline = clock::monotonic_now() + MAX_LEASE_WAIT;
        loop {
            let lease = self.lease_with(memory, descriptors);
            let Some(share) = self.0.as_ref().filter(|_| lease.is_err()) else { return lease };
            if clock::monotonic_now() >= deadline || !share.server.makes_room(share.network, memory) {
                return lease;
            }
        }
    }

    /// Takes the descriptors of a session. Does not wait.
    pub(crate) fn lease_session(&self, descriptors: u64) -> Result<MemoryLease, MemoryExhausted> {
        self.lease_with(ByteCount::ZERO, descriptors)
    }

    /// Takes `memory` and `descriptors` if they are free. Does not wait.
    pub(crate) fn lease_with(&self, memory: ByteCount, descriptors: u64) -> Result<MemoryLease, MemoryExhausted> {
        let mut lease = self.empty_lease();
        match &self.0 {
            Some(share) if !lease.take(memory, descriptors) => Err(MemoryExhausted(share.server.memory)),
            _ => Ok(lease),
        }
    }

    /// Bytes that the session holds.
    pub(crate) fn held(&self) -> ByteCount {
        ByteCount::new(self.0.as_ref().map_or(0, |share| share.memory.load(Ordering::Relaxed)))
    }

    /// A lease of nothing yet.
    pub(crate) fn empty_lease(&self) -> MemoryLease {
        MemoryLease { account: self.clone(), held: ByteCount::ZERO, descriptors: 0 }
    }

    /// True when memory is limited: at a server.
    pub(crate) fn is_limited(&self) -> bool {
        self.0.is_some()
    }

    /// Account in the rate of all traffic; `None` for any rate.
    pub(crate) fn rate(&self) -> Option<RateAccount> {
        let SessionShare { server, network, .. } = self.0.as_ref()?;
        Some(server.rate.as_ref()?.account(*network))
    }

    /// Counts a request; where the clients of the network send too many, returns the time until which it waits instead.
    pub(crate) fn postpones_request(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        let SessionShare { server, network, .. } = self.0.as_ref()?;
        let requests = server.requests.account(*network);
        let is_counted = requests.reserve(ByteCount::new(1), now);
        (!is_counted).then(|| requests.deferred_until(now).unwrap_or(now))
    }

    /// Permits a stream to watch the clock, while the claim exists: at a server, half of its processors do so at most.
    pub(crate) fn claim_busy_wait(&self) -> Option<BusyWaitClaim> {
        let Some(SessionShare { server, .. }) = &self.0 else { return Some(BusyWaitClaim(None)) };
        // Counted at a claim: few tests make one, and reading a control group's quota takes a dozen system calls.
        let most = host::cpu_count().get() / 2;
        let more = |claimed: usize| (claimed < most).then_some(claimed + 1);
        let claimed = server.busy_waits.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        claimed.then(|| BusyWaitClaim(Some(Arc::clone(server))))
    }

    /// Counts a load connection as sampled while the claim exists.
    pub(crate) fn claim_sampling(&self) -> SamplingClaim {
        if let Some(share) = &self.0 {
            share.server.lock().entry(share.network).or_default().sampled += 1;
        }
        SamplingClaim(self.clone())
    }
}

/// Memory and descriptors taken from a budget; dropping it returns them.
#[derive(Debug, Default)]
pub(crate) struct MemoryLease {
    account: ResourceAccount,
    held: ByteCount,
    descriptors: u64,
}

impl MemoryLease {
    /// Takes `more`; `false` when the network has its share.
    pub(crate) fn grow(&mut self, more: ByteCount) -> bool {
        self.take(more, 0)
    }

    fn take(&mut self, memory: ByteCount, descriptors: u64) -> bool {
        if let Some(SessionShare { server, network, memory: of_session }) = &self.account.0 {
            if !server.take(*network, memory, descriptors) {
                return false;
            }
            of_session.fetch_add(memory.get(), Ordering::Relaxed);
        }
        self.held += memory;
        self.descriptors += descriptors;
        true
    }

    /// Account from which it is taken.
    pub(crate) fn account(&self) -> &ResourceAccount {
        &self.account
    }
}

impl Drop for MemoryLease {
    fn drop(&mut self) {
        if let Some(SessionShare { server, network, memory }) = &self.account.0 {
            memory.fetch_sub(self.held.get(), Ordering::Relaxed);
            server.release(*network, |used| {
                used.memory = used.memory - self.held;
                used.descriptors -= self.descriptors;
            });
        }
    }
}

/// Permission to watch the clock; dropping it returns it.
#[derive(Debug)]
pub(crate) struct BusyWaitClaim(Option<Arc<ServerResources>>);

impl Drop for BusyWaitClaim {
    fn drop(&mut self) {
        if let Some(server) = &self.0 {
            server.busy_waits.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Share of the samples per second; dropping it returns it.
#[derive(Debug)]
pub(crate) struct SamplingClaim(ResourceAccount);

impl SamplingClaim {
    /// Shortest interval of the samples now.
    pub(crate) fn shortest_interval(&self) -> Duration {
        self.0.0.as_ref().map_or(Duration::ZERO, |share| share.server.sampling_interval(share.network))
    }
}

impl Drop for SamplingClaim {
    fn drop(&mut self) {
        if let Some(share) = &self.0.0 {
            share.server.release(share.network, |used| used.sampled -= 1);
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
        let [one, mapped, other] = ["192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"].map(|at| account(&server, at));
        let mut lease = one.lease(MIB * 4).expect("half of it is free");
        assert!(!lease.grow(ByteCount::new(1)));
        assert!(mapped.lease(ByteCount::new(1)).is_err(), "the same address");
        let others = other.lease(MIB * 2).expect("half of the remainder");
        assert!(other.lease(ByteCount::new(1)).is_err());
        assert_eq!(server.held(), MIB * 6);
        drop(lease);
        drop(others);
        assert_eq!(server.held(), ByteCount::ZERO);
        assert!(server.lock().is_empty(), "networks without any use are forgotten");
    }

    #[test]
    fn networks_of_one_site_share_what_the_site_gets() {
        let server = ServerResources::new(MIB * 8);
        let all: Vec<_> = (0..1024).map(|number| account(&server, &format!("2001:db8:7:{number:x}::1"))).collect();
        let kibibyte = ByteCount::from_kibibytes(1);
        // Each takes as much as it gets: a third of the remainder of the site, twice.
        let held: Vec<Vec<MemoryLease>> =
            all.iter().map(|one| std::iter::from_fn(|| one.lease(kibibyte).ok()).collect()).collect();
        assert_eq!([held[0].len(), held[1].len(), held[2].len()], [2730, 910, 304]);
        assert!(server.held() <= MIB * 4, "{} for all /64 of a /48", server.held());
        assert!(account(&server, "2001:db8:7:1::ffff").lease(kibibyte).is_err(), "the same /64");
        account(&server, "2001:db8:8::1").lease(MIB).expect("a third of the remainder");
    }

    #[test]
    fn ipv4_addresses_mapped_to_ipv6_are_those_of_ipv4() {
        let network = |text: &str| ClientNetwork::of(text.parse().expect("an address"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
        assert_ne!(network("::ffff:192.0.2.1"), network("::ffff:192.0.2.2"));
        assert_eq!(network("192.0.2.1").site(), network("192.0.2.1"), "IPv4 addresses are not grouped");
        assert_eq!(network("2001:db8:7:1::1").site(), network("2001:db8:7:2::1").site());
        assert_ne!(network("2001:db8:7:1::1").site(), network("2001:db8:8:1::1").site());
    }

    #[test]
    fn descriptors_are_shared_like_memory() {
        let server = ServerResources::limited(MIB * 8, 64, None);
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|at| account(&server, at));
        let session = one.lease_session(6).expect("free");
        let most = one.lease_flows(ByteCount::ZERO, 26).expect("half of 64, with the session's");
        assert!(one.lease_flows(ByteCount::ZERO, 2).is_err());
        assert!(one.lease(MIB).is_ok(), "memory without a descriptor");
        let others = other.lease_flows(ByteCount::ZERO, 16).expect("half of the remainder");
        assert!(other.lease_session(6).is_err());
        drop((session, most, others));
        assert!(server.lock().is_empty());
    }

    #[test]
    fn memory_grows_with_the_sessions_above_the_usual_number() {
        for (sessions, mebibytes) in [(1, 144), (1000, 144), (2000, 288), (5000, 720)] {
            let (memory, expected) = (session_memory(sessions), ByteCount::from_mebibytes(mebibytes));
            assert!(memory <= expected && memory.get() + 1_000_000 > expected.get(), "{sessions}: {memory:?}");
        }
    }

    #[test]
    fn half_of_the_processors_watch_the_clock_at_most() {
        let server = ServerResources::new(MIB);
        let one = account(&server, "192.0.2.1");
        let claims: Vec<BusyWaitClaim> = (0..10_000).filter_map(|_| one.claim_busy_wait()).collect();
        assert_eq!(claims.len(), host::cpu_count().get() / 2);
        drop(claims);
        assert_eq!(one.claim_busy_wait().is_some(), host::cpu_count().get() > 1);
        assert!(ResourceAccount::default().claim_busy_wait().is_some(), "a client has no other clients to spare");
    }

    #[test]
    fn networks_share_the_requests_per_second() {
        let server = ServerResources::new(MIB);
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|at| account(&server, at));
        let start = MonotonicTime::from_nanos(1_000_000_000);
        let mut handled = [0_u64; 2];
        for step in 0..10_000 {
            let now = start + Duration::from_micros(100) * step;
            // A flood of the first, and a hundred a second of the other.
            let counts = [10, u64::from(step % 100 == 0)];
            for ((account, handled), count) in [&one, &other].into_iter().zip(&mut handled).zip(counts) {
                *handled += (0..count).filter(|_| account.postpones_request(now).is_none()).count() as u64;
            }
        }
        assert!(handled[0] <= MAX_REQUESTS_PER_SECOND + 100 && handled[0] > MAX_REQUESTS_PER_SECOND / 2, "{handled:?}");
        assert_eq!(handled[1], 100, "those of the other network do not wait");
        assert_eq!(ResourceAccount::default().postpones_request(start), None);
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
