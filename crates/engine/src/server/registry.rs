//! State shared by the acceptor and the sessions: expected streams, turns, running tests.

use core::time::Duration;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use linerate_sys::poll::Waker;
use linerate_units::{ByteCount, MonotonicTime, StreamCount};
use linerate_wire::cookie::Cookie;

use super::gate::{RequestClaim, SessionNumber, UdpOpening, UdpTurns};
use super::inbox::{SessionInbox, SessionMessage};
use super::probe_session::ConnectionQueue;
use super::reflector::ReflectorHandle;
use super::tcp_turns::{TcpOpening, TcpTurns, WindowSteering};
use crate::resources::{ClientNetwork, ResourceAccount, ServerResources, SessionDisplacer};

/// Silence after which a client's session may be displaced: longer than any round trip.
const MAX_SILENCE: Duration = Duration::from_secs(1);

/// Idle time after which a probe session may be displaced: no procedure of linerate waits that long between two
/// measurements, except the controller of variable links, which opens a new session.
const MAX_IDLE: Duration = Duration::from_secs(300);

/// Time since the last note of activity after which a probe session has no traffic; it notes its own each second.
const MAX_TRAFFIC_AGE: Duration = Duration::from_secs(2);

/// Number of silent clients that is no coincidence.
const MAX_SILENT_CLIENTS: usize = 64;

/// Most displaced sessions that have not ended yet: each has a thread for a moment longer.
const MAX_LEAVING: usize = 256;

/// Owner of a TCP connection.
#[derive(Debug)]
pub(super) enum StreamOwner {
    Session(Arc<SessionInbox>),
    /// A session whose client is in another network: who only knows its cookie may not take part in its test.
    Stranger,
    NoSession,
}

/// Owner of a UDP request: see [`RequestClaim`].
#[derive(Debug)]
pub(super) enum RequestOwner {
    Session(Arc<SessionInbox>),
    NotBefore(MonotonicTime),
    NoSession,
}

/// Shared by the acceptor and all sessions.
#[derive(Debug)]
pub(super) struct SessionRegistry {
    state: Mutex<RegistryState>,
    /// Wakes the acceptor.
    pub(super) waker: Waker,
    /// Connections that this server has opened, for the acceptor.
    dialed: Mutex<Vec<(TcpStream, SocketAddr)>>,
    running: AtomicU64,
    /// Streams of all running tests.
    streams: AtomicU64,
    tests_done: AtomicU64,
    /// Number of the next session.
    numbers: AtomicU64,
    reflector: Option<ReflectorHandle>,
    resources: Arc<ServerResources>,
}

#[derive(Debug, Default)]
struct RegistryState {
    /// Sessions that expect TCP streams.
    streams: HashMap<Cookie, Arc<SessionInbox>>,
    gate: UdpTurns,
    tcp: TcpTurns,
    sessions: HashMap<SessionNumber, SessionEntry>,
    /// Sessions that were displaced and have not ended yet.
    leaving: usize,
}

#[derive(Debug)]
struct SessionEntry {
    inbox: Arc<SessionInbox>,
    network: ClientNetwork,
    account: ResourceAccount,
    /// Time since which the client owes its parameters; `None` once they have arrived.
    silent_since: Option<MonotonicTime>,
    /// Time of the last activity of a probe session; `None` for a test.
    active: Option<MonotonicTime>,
    /// True when it has lost its slot and is about to end.
    displaced: bool,
    /// Most other tests that ran concurrently with this one; `None` while it runs none.
    overlapping: Option<u64>,
    /// Streams of its running test.
    streams: u64,
}

impl RegistryState {
    /// Takes a session's slot; returns `true` when it had one.
    fn displace(&mut self, number: SessionNumber) -> bool {
        let Some(entry) = self.sessions.get_mut(&number) else { return false };
        (entry.silent_since, entry.displaced) = (None, true);
        entry.inbox.deliver(SessionMessage::Displaced);
        self.leaving += 1;
        true
    }

    /// Session that holds the most memory, of the network that holds the most, if that is more than `own` would with
    /// `memory` more.
    fn largest_of_most(&self, own: ClientNetwork, memory: ByteCount) -> Option<SessionNumber> {
        let mut shares: HashMap<ClientNetwork, (ByteCount, (ByteCount, SessionNumber))> = HashMap::new();
        for (number, entry) in self.sessions.iter().filter(|(_, entry)| !entry.displaced) {
            let held = entry.account.held();
            let (total, largest) = shares.entry(entry.network).or_default();
            *total += held;
            *largest = (*largest).max((held, *number));
        }
        let own = shares.get(&own).map_or(ByteCount::ZERO, |(total, _)| *total) + memory;
        shares.into_values().max().filter(|(total, _)| *total > own).map(|(_, (_, number))| number)
    }

    /// Youngest session of the group of networks that has the most, where the group of `own` has fewer by more than one.
    fn youngest_of_most(
        &self,
        own: ClientNetwork,
        group: impl Fn(ClientNetwork) -> ClientNetwork,
    ) -> Option<SessionNumber> {
        let mut shares: HashMap<ClientNetwork, (usize, SessionNumber)> = HashMap::new();
        for (number, entry) in self.sessions.iter().filter(|(_, entry)| !entry.displaced) {
            let (count, youngest) = shares.entry(group(entry.network)).or_default();
            *count += 1;
            *youngest = (*youngest).max(*number);
        }
        let own = shares.get(&group(own)).map_or(0, |(count, _)| *count);
        shares.into_values().max().filter(|(largest, _)| *largest > own + 1).map(|(_, youngest)| youngest)
    }
}

impl SessionRegistry {
    pub(super) fn new(reflector: Option<ReflectorHandle>, resources: Arc<ServerResources>) -> io::Result<Self> {
        let waker = Waker::new().map_err(io::Error::from)?;
        let [running, streams, tests_done] = [0; 3].map(AtomicU64::new);
        let numbers = AtomicU64::new(1);
        let dialed = Mutex::default();
        Ok(Self { state: Mutex::default(), waker, dialed, running, streams, tests_done, numbers, reflector, resources })
    }

    /// A registry that ends sessions of networks that hold much of `resources`.
    pub(super) fn shared(
        reflector: Option<ReflectorHandle>,
        resources: &Arc<ServerResources>,
    ) -> io::Result<Arc<Self>> {
        let registry = Arc::new(Self::new(reflector, Arc::clone(resources))?);
        let displacer: Weak<dyn SessionDisplacer> = Arc::<Self>::downgrade(&registry);
        resources.set_displacer(displacer);
        Ok(registry)
    }

    /// Hands a connection that this server has opened to the acceptor.
    pub(super) fn deliver_dialed(&self, stream: TcpStream, peer: SocketAddr) {
        lock(&self.dialed).push((stream, peer));
        self.waker.wake();
    }

    /// Takes the connections that this server has opened.
    pub(super) fn take_dialed(&self) -> Vec<(TcpStream, SocketAddr)> {
        core::mem::take(&mut *lock(&self.dialed))
    }

    /// Account of a client in the budget that all sessions share.
    pub(super) fn account(&self, client: IpAddr) -> ResourceAccount {
        self.resources.account(client)
    }

    /// STAMP reflector of the server, if any.
    pub(super) fn reflector(&self) -> Option<&ReflectorHandle> {
        self.reflector.as_ref()
    }

    /// Number of sessions with traffic of the network of `client`, one at least.
    pub(super) fn sessions_with_traffic(&self, client: IpAddr, now: MonotonicTime) -> u64 {
        let network = ClientNetwork::of(client);
        let is_busy = |entry: &SessionEntry| {
            let is_active = entry.active.is_some_and(|time| now.since(time) < MAX_TRAFFIC_AGE);
            entry.network == network && (entry.overlapping.is_some() || is_active)
        };
        let count = lock(&self.state).sessions.values().filter(|entry| is_busy(entry)).count();
        u64::try_from(count).unwrap_or(u64::MAX).max(1)
    }

    /// Registers a session of `client`; returns its account.
    pub(super) fn enter(
        &self,
        session: SessionNumber,
        inbox: Arc<SessionInbox>,
        client: IpAddr,
        now: MonotonicTime,
    ) -> ResourceAccount {
        let account = self.account(client);
        let entry = SessionEntry {
            inbox,
            network: ClientNetwork::of(client),
            account: account.clone(),
            silent_since: Some(now),
            active: None,
            displaced: false,
            overlapping: None,
            streams: 0,
        };
        lock(&self.state).sessions.insert(session, entry);
        account
    }

    /// Records that a session's client has sent its parameters.
    pub(super) fn mark_parameters_received(&self, session: SessionNumber) {
        if let Some(entry) = lock(&self.state).sessions.get_mut(&session) {
            entry.silent_since = None;
        }
    }

    /// Records activity of a probe session.
    pub(super) fn mark_active(&self, session: SessionNumber, now: MonotonicTime) {
        if let Some(entry) = lock(&self.state).sessions.get_mut(&session) {
            entry.active = Some(now);
        }
    }

    /// Displaces the probe session that has been idle longest, if that is too long. Returns `true` when a slot is free.
    pub(super) fn displace_idle(&self, now: MonotonicTime) -> bool {
        let mut state = lock(&self.state);
        let probes = state.sessions.iter().filter(|(_, entry)| !entry.displaced);
        let idlest = probes.filter_map(|(number, entry)| Some((entry.active?, *number))).min();
        match idlest {
            Some((since, number)) if now.since(since) >= MAX_IDLE && state.leaving < MAX_LEAVING => {
                state.displace(number)
            }
            _ => false,
        }
    }

    /// Displaces the session whose client has been silent longest, if that is too long or too many are silent. Returns
    /// `true` when a slot is free.
    pub(super) fn displace_silent(&self, now: MonotonicTime) -> bool {
        let mut state = lock(&self.state);
        let silent = state.sessions.iter().filter_map(|(number, entry)| Some((*number, entry.silent_since?)));
        let (count, oldest) = (silent.clone().count(), silent.min_by_key(|(number, _)| *number));
        let Some((number, since)) = oldest else { return false };
        let too_soon = count <= MAX_SILENT_CLIENTS && now.since(since) < MAX_SILENCE;
        if too_soon || state.leaving >= MAX_LEAVING {
            return false;
        }
        state.displace(number)
    }

    /// Displaces the youngest session of the network that has the most, for a client of a network that would still have
    /// fewer: many sessions of one network do not keep others away, nor do many networks of one site. Returns `true` when
    /// a slot is free.
    pub(super) fn displace_for(&self, client: IpAddr) -> bool {
        let mut state = lock(&self.state);
        if state.leaving >= MAX_LEAVING {
            return false;
        }
        let network = ClientNetwork::of(client);
        let youngest = state
            .youngest_of_most(network, |network| network)
            .or_else(|| state.youngest_of_most(network, ClientNetwork::site));
        youngest.is_some_and(|youngest| state.displace(youngest))
    }

    /// Number of sessions with a slot of each network.
    pub(super) fn sessions_by_network(&self) -> HashMap<ClientNetwork, usize> {
        let mut counts = HashMap::new();
        for entry in lock(&self.state).sessions.values().filter(|entry| !entry.displaced) {
            *counts.entry(entry.network).or_default() += 1;
        }
        counts
    }

    /// Unregisters a session, however it ended.
    pub(super) fn leave(&self, session: SessionNumber, cookie: &Cookie) {
        self.remove(session, Some(cookie));
    }

    /// Unregisters a session of another service, which has no cookie.
    pub(super) fn leave_service(&self, session: SessionNumber) {
        self.remove(session, None);
    }

    fn remove(&self, session: SessionNumber, cookie: Option<&Cookie>) {
        let mut state = lock(&self.state);
        if let Some(entry) = state.sessions.remove(&session) {
            if entry.overlapping.is_some() {
                self.running.fetch_sub(1, Ordering::Relaxed);
                self.streams.fetch_sub(entry.streams, Ordering::Relaxed);
            }
            if entry.displaced {
                state.leaving -= 1;
            }
            if let Some(cookie) = cookie
                && state.streams.get(cookie).is_some_and(|inbox| Arc::ptr_eq(inbox, &entry.inbox))
            {
                state.streams.remove(cookie);
            }
        }
        state.gate.leave(session);
        state.tcp.leave(session);
        drop(state);
        self.waker.wake();
    }

    /// Number of a new session.
    pub(super) fn next_number(&self) -> SessionNumber {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Number that the next session will have.
    pub(super) fn upcoming_number(&self) -> SessionNumber {
        self.numbers.load(Ordering::Relaxed)
    }

    /// Number of sessions with a slot.
    pub(super) fn sessions(&self) -> usize {
        let state = lock(&self.state);
        state.sessions.len() - state.leaving
    }

    /// Expects `count` TCP streams with this cookie. `false` when another session has the same cookie.
    pub(super) fn expect_streams(&self, cookie: Cookie, inbox: &Arc<SessionInbox>, count: StreamCount) -> bool {
        let mut state = lock(&self.state);
        if state.streams.contains_key(&cookie) {
            return false;
        }
        inbox.expect(count.to_usize());
        state.streams.insert(cookie, Arc::clone(inbox));
        true
    }

    /// Expects one more connection with this cookie. `false` when another session has the same cookie.
    pub(super) fn expect_another(&self, cookie: Cookie, inbox: &Arc<SessionInbox>) -> bool {
        let mut state = lock(&self.state);
        let expecting = state.streams.entry(cookie).or_insert_with(|| Arc::clone(inbox));
        let own = Arc::ptr_eq(expecting, inbox);
        if own {
            inbox.expect_another();
        }
        own
    }

    /// Expects `count` connections with this cookie, which go to a queue of their own. `false` when another session has the
    /// same cookie.
    pub(super) fn expect_connections(
        &self,
        cookie: Cookie,
        inbox: &Arc<SessionInbox>,
        count: usize,
        queue: Arc<ConnectionQueue>,
    ) -> bool {
        let mut state = lock(&self.state);
        let expecting = state.streams.entry(cookie).or_insert_with(|| Arc::clone(inbox));
        let own = Arc::ptr_eq(expecting, inbox);
        if own {
            inbox.expect_connections(count, queue);
        }
        own
    }

    /// Expects no further connection with this cookie.
    pub(super) fn expect_no_more(&self, cookie: &Cookie, inbox: &Arc<SessionInbox>) {
        let mut state = lock(&self.state);
        if state.streams.get(cookie).is_some_and(|expecting| Arc::ptr_eq(expecting, inbox)) {
            state.streams.remove(cookie);
        }
        inbox.expect_no_more();
    }

    /// Session that expects a TCP stream with this cookie from the network of `client`. With its last one, its turn ends.
    pub(super) fn session_for_stream(&self, cookie: &Cookie, client: IpAddr) -> StreamOwner {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        let Some(inbox) = state.streams.get(cookie).cloned() else { return StreamOwner::NoSession };
        if !inbox.is_client(client) {
            inbox.count_stranger();
            return StreamOwner::Stranger;
        }
        if !inbox.claim_stream() {
            return StreamOwner::NoSession;
        }
        if inbox.is_complete() {
            state.streams.remove(cookie);
            let session = state.sessions.iter().find(|(_, entry)| Arc::ptr_eq(&entry.inbox, &inbox));
            if let Some((number, _)) = session {
                state.tcp.leave(*number);
            }
        }
        StreamOwner::Session(inbox)
    }

    /// Requests a turn to open UDP streams; [`SessionMessage::Turn`] grants it.
    pub(super) fn request_turn(&self, opening: UdpOpening) {
        lock(&self.state).gate.request(opening);
        self.waker.wake();
    }

    /// Requests a turn to open TCP streams. True when it begins at once; else [`SessionMessage::Turn`] grants it.
    pub(super) fn request_tcp_turn(&self, opening: TcpOpening, now: MonotonicTime) -> bool {
        let mut state = lock(&self.state);
        state.tcp.request(opening, now);
        let begins = opening.window.is_none() && state.tcp.begin(opening.session, now);
        if !begins {
            self.waker.wake();
        }
        begins
    }

    /// Begins turns to open TCP streams: returns their sessions for [`SessionRegistry::grant`], once the listeners get
    /// their clients as returned.
    pub(super) fn begin_tcp_turns(&self, now: MonotonicTime) -> (Vec<SessionNumber>, Option<WindowSteering>) {
        let mut state = lock(&self.state);
        let begun = state.tcp.advance(now);
        (begun, state.tcp.steering(now))
    }

    /// Notifies sessions that their turn has begun.
    pub(super) fn grant(&self, sessions: &[SessionNumber]) {
        let state = lock(&self.state);
        for entry in sessions.iter().filter_map(|session| state.sessions.get(session)) {
            entry.inbox.deliver(SessionMessage::Turn);
        }
    }

    /// True while a socket for UDP requests is needed.
    pub(super) fn needs_udp(&self) -> bool {
        lock(&self.state).gate.is_needed()
    }

    /// Notifies the sessions whose turn to open UDP streams has begun; returns the latest time of the next call, that of
    /// [`SessionRegistry::begin_tcp_turns`] included.
    pub(super) fn advance_turns(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        let mut state = lock(&self.state);
        for session in state.gate.advance(now) {
            if let Some(entry) = state.sessions.get(&session) {
                entry.inbox.deliver(SessionMessage::Turn);
            }
        }
        [state.gate.next_deadline(now), state.tcp.next_deadline(now)].into_iter().flatten().min()
    }

    /// Session that owns a UDP request from `source`. `size` is that of a repeated request.
    pub(super) fn session_for_request(
        &self,
        source: IpAddr,
        size: Option<ByteCount>,
        now: MonotonicTime,
    ) -> RequestOwner {
        let mut state = lock(&self.state);
        match state.gate.claim(source, size, now) {
            RequestClaim::Session(session) => match state.sessions.get(&session) {
                Some(entry) => RequestOwner::Session(Arc::clone(&entry.inbox)),
                None => RequestOwner::NoSession,
            },
            RequestClaim::NotBefore(time) => RequestOwner::NotBefore(time),
            RequestClaim::NoSession => RequestOwner::NoSession,
        }
    }

    /// Records that a session's test starts to move data, and counts it as concurrent for all running ones.
    pub(super) fn test_begins(&self, session: SessionNumber, streams: StreamCount) {
        let mut state = lock(&self.state);
        let others = self.running.fetch_add(1, Ordering::Relaxed);
        self.streams.fetch_add(streams.get(), Ordering::Relaxed);
        for (number, entry) in &mut state.sessions {
            if *number == session {
                (entry.overlapping, entry.streams) = (Some(others), streams.get());
            } else if let Some(overlapping) = &mut entry.overlapping {
                *overlapping = (*overlapping).max(others);
            }
        }
    }

    /// Records that a session's test has ended. Returns the largest number of concurrent tests.
    pub(super) fn test_ends(&self, session: SessionNumber) -> u64 {
        let mut state = lock(&self.state);
        let Some(entry) = state.sessions.get_mut(&session) else { return 0 };
        let overlapping = entry.overlapping.take();
        if overlapping.is_some() {
            self.running.fetch_sub(1, Ordering::Relaxed);
            self.streams.fetch_sub(entry.streams, Ordering::Relaxed);
        }
        overlapping.unwrap_or(0)
    }

    /// Counts a completed session whose client was admitted.
    pub(super) fn count_test(&self) {
        self.tests_done.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of completed sessions whose clients were admitted: with `-1`, the first of them ends the server.
    pub(super) fn tests_done(&self) -> u64 {
        self.tests_done.load(Ordering::Relaxed)
    }

    /// Number of tests that move data now, and of their streams.
    pub(super) fn running(&self) -> (u64, u64) {
        (self.running.load(Ordering::Relaxed), self.streams.load(Ordering::Relaxed))
    }

    /// Notifies all sessions that the server is terminating.
    pub(super) fn terminate(&self, signal: &str) {
        for entry in lock(&self.state).sessions.values() {
            entry.inbox.deliver(SessionMessage::Terminate(signal.to_owned()));
        }
    }
}

impl SessionDisplacer for SessionRegistry {
    fn displace_for_memory(&self, network: ClientNetwork, memory: ByteCount) -> bool {
        let mut state = lock(&self.state);
        let returning = state.sessions.values().filter(|entry| entry.displaced).map(|entry| entry.account.held());
        // A network gets as much as stays free.
        if returning.sum::<ByteCount>() >= memory * 2 {
            return true;
        }
        if state.leaving >= MAX_LEAVING {
            return false;
        }
        state.largest_of_most(network, memory).is_some_and(|number| state.displace(number))
    }
}

/// A poisoned lock only means that a session panicked; its data is consistent, as every change is one statement.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
