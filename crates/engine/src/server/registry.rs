//! What the acceptor and the sessions share: who waits for streams, whose turn it is, how many run.

use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_sys::poll::Waker;
use linerate_units::{ByteCount, MonotonicTime, StreamCount};
use linerate_wire::cookie::Cookie;

use super::gate::{Claim, Gate, SessionNumber, UdpOpening};
use super::reflector::ReflectorHandle;

/// A client that has said nothing for this long keeps no place that another one needs: longer than any round trip.
const LONG_SILENCE: Duration = Duration::from_secs(1);

/// So many clients that say nothing are no coincidence.
const MANY_SILENT: usize = 64;

/// Sessions that have lost their place and not ended yet: each has a thread for a moment longer.
const MOST_LEAVING: usize = 256;

/// A data connection that the acceptor hands to its session.
#[derive(Debug)]
pub(super) enum Arrived {
    /// A TCP stream whose cookie has been read.
    Tcp(TcpStream),
    /// A UDP stream, connected to its client, already answered.
    Udp(UdpSocket),
    /// The session may now let its client open UDP streams.
    Turn,
    /// The server is going down: the signal's description.
    Terminate(String),
    /// The place is needed: the client has been let in and has not said what it wants.
    Displaced,
}

/// Where a session is told what concerns it.
#[derive(Debug)]
pub(super) struct Inbox {
    queue: Mutex<VecDeque<Arrived>>,
    waker: Waker,
    /// Data connections that the session still expects; more are refused by the acceptor.
    expected: AtomicUsize,
}

impl Inbox {
    pub(super) fn new() -> io::Result<Arc<Self>> {
        let waker = Waker::new().map_err(io::Error::from)?;
        Ok(Arc::new(Self { queue: Mutex::default(), waker, expected: AtomicUsize::new(0) }))
    }

    pub(super) fn deliver(&self, arrived: Arrived) {
        lock(&self.queue).push_back(arrived);
        self.waker.wake();
    }

    pub(super) fn take(&self) -> Option<Arrived> {
        self.waker.drain();
        let mut queue = lock(&self.queue);
        let first = queue.pop_front();
        if !queue.is_empty() {
            self.waker.wake();
        }
        first
    }

    fn claim_stream(&self) -> bool {
        self.expected.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |expected| expected.checked_sub(1)).is_ok()
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

/// Whose a UDP request is: see [`Claim`].
#[derive(Debug)]
pub(super) enum RequestOwner {
    Session(Arc<Inbox>),
    NotBefore(MonotonicTime),
    Nobody,
}

/// Shared by the acceptor and all sessions.
#[derive(Debug)]
pub(super) struct Registry {
    state: Mutex<State>,
    /// Wakes the acceptor.
    pub(super) waker: Waker,
    running: AtomicU64,
    tests_done: AtomicU64,
    reflector: Option<ReflectorHandle>,
}

#[derive(Debug, Default)]
struct State {
    /// Sessions that expect TCP streams.
    streams: HashMap<Cookie, Arc<Inbox>>,
    gate: Gate,
    sessions: HashMap<SessionNumber, Entry>,
    /// Sessions that were displaced and have not ended yet.
    leaving: usize,
}

#[derive(Debug)]
struct Entry {
    inbox: Arc<Inbox>,
    /// Since when its client owes its parameters; `None` once they are there.
    silent_since: Option<MonotonicTime>,
    /// It has lost its place, and is about to end.
    displaced: bool,
    /// Other tests that have run at the same time as this one's, at most; `None` while it runs none.
    overlapping: Option<u64>,
}

impl Registry {
    pub(super) fn new(reflector: Option<ReflectorHandle>) -> io::Result<Self> {
        let waker = Waker::new().map_err(io::Error::from)?;
        let (running, tests_done) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Self { state: Mutex::default(), waker, running, tests_done, reflector })
    }

    /// The server's STAMP reflector, if it has one.
    pub(super) fn reflector(&self) -> Option<&ReflectorHandle> {
        self.reflector.as_ref()
    }

    /// A session begins.
    pub(super) fn enter(&self, session: SessionNumber, inbox: Arc<Inbox>, now: MonotonicTime) {
        let entry = Entry { inbox, silent_since: Some(now), displaced: false, overlapping: None };
        lock(&self.state).sessions.insert(session, entry);
    }

    /// A session's client has said what it wants.
    pub(super) fn has_asked(&self, session: SessionNumber) {
        if let Some(entry) = lock(&self.state).sessions.get_mut(&session) {
            entry.silent_since = None;
        }
    }

    /// Takes its place from the session that has waited longest for its client's first word, if that is too long or too
    /// many do. Whether there is a place now.
    pub(super) fn displace_silent(&self, now: MonotonicTime) -> bool {
        let mut state = lock(&self.state);
        let silent = state.sessions.iter().filter_map(|(number, entry)| Some((*number, entry.silent_since?)));
        let (count, oldest) = (silent.clone().count(), silent.min_by_key(|(number, _)| *number));
        let Some((number, since)) = oldest else { return false };
        let too_soon = count <= MANY_SILENT && now.since(since) < LONG_SILENCE;
        if too_soon || state.leaving >= MOST_LEAVING {
            return false;
        }
        let Some(entry) = state.sessions.get_mut(&number) else { return false };
        (entry.silent_since, entry.displaced) = (None, true);
        entry.inbox.deliver(Arrived::Displaced);
        state.leaving += 1;
        true
    }

    /// A session is over, however it ended.
    pub(super) fn leave(&self, session: SessionNumber, cookie: &Cookie) {
        let mut state = lock(&self.state);
        if let Some(entry) = state.sessions.remove(&session) {
            if entry.overlapping.is_some() {
                self.running.fetch_sub(1, Ordering::Relaxed);
            }
            if entry.displaced {
                state.leaving -= 1;
            }
            if state.streams.get(cookie).is_some_and(|inbox| Arc::ptr_eq(inbox, &entry.inbox)) {
                state.streams.remove(cookie);
            }
        }
        state.gate.leave(session);
        drop(state);
        self.waker.wake();
    }

    /// How many sessions have a place.
    pub(super) fn sessions(&self) -> usize {
        let state = lock(&self.state);
        state.sessions.len() - state.leaving
    }

    /// A session expects `count` TCP streams with this cookie. `false` when another session has the same cookie.
    pub(super) fn expect_streams(&self, cookie: Cookie, inbox: &Arc<Inbox>, count: StreamCount) -> bool {
        let mut state = lock(&self.state);
        if state.streams.contains_key(&cookie) {
            return false;
        }
        inbox.expected.store(count.to_usize(), Ordering::Relaxed);
        state.streams.insert(cookie, Arc::clone(inbox));
        true
    }

    /// A session expects one more connection with this cookie. `false` when another session has the same cookie.
    pub(super) fn expect_another(&self, cookie: Cookie, inbox: &Arc<Inbox>) -> bool {
        let mut state = lock(&self.state);
        let expecting = state.streams.entry(cookie).or_insert_with(|| Arc::clone(inbox));
        let own = Arc::ptr_eq(expecting, inbox);
        if own {
            inbox.expected.fetch_add(1, Ordering::Relaxed);
        }
        own
    }

    /// The session that expects a TCP stream with this cookie.
    pub(super) fn session_for_stream(&self, cookie: &Cookie) -> Option<Arc<Inbox>> {
        let mut state = lock(&self.state);
        let inbox = state.streams.get(cookie).filter(|inbox| inbox.claim_stream()).cloned()?;
        if inbox.expected.load(Ordering::Relaxed) == 0 {
            state.streams.remove(cookie);
        }
        Some(inbox)
    }

    /// A session wants to open UDP streams; it is told by [`Arrived::Turn`] when.
    pub(super) fn request_turn(&self, opening: UdpOpening) {
        lock(&self.state).gate.request(opening);
        self.waker.wake();
    }

    /// Whether a socket for UDP requests is needed.
    pub(super) fn needs_udp(&self) -> bool {
        lock(&self.state).gate.is_needed()
    }

    /// Tells the sessions whose turn has come; returns when to call again at the latest.
    pub(super) fn advance_turns(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        let mut state = lock(&self.state);
        for session in state.gate.advance(now) {
            if let Some(entry) = state.sessions.get(&session) {
                entry.inbox.deliver(Arrived::Turn);
            }
        }
        state.gate.next_deadline(now)
    }

    /// The session to which a UDP request from `source` belongs. `size` is that of a repeated request.
    pub(super) fn session_for_request(
        &self,
        source: IpAddr,
        size: Option<ByteCount>,
        now: MonotonicTime,
    ) -> RequestOwner {
        let mut state = lock(&self.state);
        match state.gate.claim(source, size, now) {
            Claim::Session(session) => match state.sessions.get(&session) {
                Some(entry) => RequestOwner::Session(Arc::clone(&entry.inbox)),
                None => RequestOwner::Nobody,
            },
            Claim::NotBefore(time) => RequestOwner::NotBefore(time),
            Claim::Nobody => RequestOwner::Nobody,
        }
    }

    /// A session's test begins to move data: all running ones have one more beside them.
    pub(super) fn test_begins(&self, session: SessionNumber) {
        let mut state = lock(&self.state);
        let others = self.running.fetch_add(1, Ordering::Relaxed);
        for (number, entry) in &mut state.sessions {
            if *number == session {
                entry.overlapping = Some(others);
            } else if let Some(overlapping) = &mut entry.overlapping {
                *overlapping = (*overlapping).max(others);
            }
        }
    }

    /// A session's test moves no more data. Returns how many others ran at the same time, at most.
    pub(super) fn test_ends(&self, session: SessionNumber) -> u64 {
        let mut state = lock(&self.state);
        let overlapping = state.sessions.get_mut(&session).and_then(|entry| entry.overlapping.take());
        if overlapping.is_some() {
            self.running.fetch_sub(1, Ordering::Relaxed);
        }
        overlapping.unwrap_or(0)
    }

    /// A session is over, and its client was let in.
    pub(super) fn count_test(&self) {
        self.tests_done.fetch_add(1, Ordering::Relaxed);
    }

    /// How many sessions are over whose clients were let in: with `-1`, the first of them ends the server.
    pub(super) fn tests_done(&self) -> u64 {
        self.tests_done.load(Ordering::Relaxed)
    }

    /// How many tests move data now.
    pub(super) fn running(&self) -> u64 {
        self.running.load(Ordering::Relaxed)
    }

    /// Tells all sessions that the server is going down.
    pub(super) fn terminate(&self, signal: &str) {
        for entry in lock(&self.state).sessions.values() {
            entry.inbox.deliver(Arrived::Terminate(signal.to_owned()));
        }
    }
}

/// A poisoned lock only means that a session panicked; what it left is consistent, as every change is one statement.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
