//! The accepting thread: no connection can block it.

use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::Scope;

use linerate_sys::poll::{self, PollInterest, PollItem, Waker};
use linerate_sys::signals::InterruptSignals;
use linerate_sys::{clock, net, process};
use linerate_units::MonotonicTime;
use linerate_wire::cookie::{Cookie, ExtensionVersion};
use linerate_wire::error::{self, ErrorCode};
use linerate_wire::state::ControlState;

use super::handshakes::HandshakeGate;
use super::inbox::{AcceptedStream, ConnectionNumber, SessionInbox, SessionMessage};
use super::registry::{SessionRegistry, StreamOwner};
use super::session::{AdmittedClient, SessionStart};
use super::tcp_turns::WindowSteering;
use super::udp_hub::UdpHub;
use super::waiting::{
    ConnectionState, FromPeer, PendingConnection, QueuedClient, gives_way_to, oldest_of_largest_site,
};
use super::{Server, ServerObserver, dialer, probe_session};
use crate::control::ControlConnection;
use crate::error::{Error, Result};
use crate::resources::{
    ClientNetwork, DESCRIPTORS_PER_PROBE_SESSION, DESCRIPTORS_PER_STREAM, DESCRIPTORS_PER_TEST, MemoryLease,
};
use crate::tls::{ConnectionUse, TlsChannel};

/// Most connections that have not yet sent their cookie, and most clients waiting under `--queue`, where the process may
/// have as many descriptors.
const MAX_WAITING: u64 = 1024;

/// Descriptors of the server itself: its output, sockets and wakers, and files that it opens for a moment.
const OWN_DESCRIPTORS: u64 = 24;

/// Time limit of a connection for its 37-byte cookie.
const COOKIE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time after which a waiting client of another network than those being served displaces a session.
const MAX_QUEUE_TIME: Duration = Duration::from_secs(60);

/// Most connections accepted in one batch.
const ACCEPT_BATCH: usize = 256;

/// Pause of accepting when the process has no file descriptor left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// Interval of reports of that.
const EXHAUSTED_REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Interval of reports of refused clients.
const REFUSAL_REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Bounds of a server's lists, from the number of descriptors that its process may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AcceptorLimits {
    /// Most connections without a cookie, and most waiting clients.
    waiting: usize,
    /// Descriptors that all sessions share.
    pub(super) session_descriptors: u64,
}

impl AcceptorLimits {
    pub(super) fn of(descriptors: u64) -> Self {
        let waiting = (descriptors / 8).clamp(1, MAX_WAITING);
        let session_descriptors = descriptors.saturating_sub(2 * waiting + OWN_DESCRIPTORS);
        Self { waiting: usize::try_from(waiting).unwrap_or(usize::MAX), session_descriptors }
    }
}

/// File descriptors of a test with one stream.
const FILES_PER_SESSION: u64 = DESCRIPTORS_PER_TEST + DESCRIPTORS_PER_STREAM;

/// Descriptors of the session of a client with this cookie, without its streams.
fn session_descriptors(cookie: &Cookie) -> u64 {
    match cookie.extension_version() {
        Some(ExtensionVersion::Probes) => DESCRIPTORS_PER_PROBE_SESSION,
        _ => DESCRIPTORS_PER_TEST,
    }
}

pub(super) fn run(server: &Server, stop: Option<&InterruptSignals>, observer: &dyn ServerObserver) -> Result<()> {
    let reflector = server.bound_reflector();
    if let Some(Err(note)) = &server.reflector {
        observer.note(note);
    }
    let most = if server.options.one_off { 1 } else { server.options.max_sessions.get() as u64 };
    if let Some(note) = file_limit_note(process::open_file_limit(), most) {
        observer.note(&note);
    }
    std::thread::scope(|scope| {
        let reflecting =
            reflector.map(|reflector| reflector.start(scope, observer, server.resources.stamp_rate())).transpose();
        // Ends with the acceptor.
        let _reflecting = reflecting.map_err(|cause| Error::system(ErrorCode::NEW_TEST, &cause))?;
        let mut acceptor = ConnectionAcceptor {
            server,
            registry: Arc::clone(&server.registry),
            observer,
            scope,
            unknown: VecDeque::new(),
            accepted: 0,
            queued: VecDeque::new(),
            udp: UdpHub::new(Arc::clone(&server.options), server.address),
            steering: None,
            announced_idle: 0,
            looked_at: clock::monotonic_now(),
            last_activity: clock::monotonic_now(),
            paused_until: None,
            reported_at: None,
            handshakes: HandshakeGate::default(),
            refused_at: None,
        };
        let ended = Waker::new().map_err(|cause| Error::system(ErrorCode::NEW_TEST, &cause))?;
        let ended = Arc::new(ended);
        if let Some(target) = &server.options.dial {
            let (registry, ended) = (Arc::clone(&server.registry), Arc::clone(&ended));
            scope.spawn(move || dialer::run(target, &registry, &ended, observer));
        }
        let result = acceptor.serve(stop);
        ended.wake();
        result
    })
}

/// Note for a server whose sessions need more open files than it may have.
fn file_limit_note(limit: u64, sessions: u64) -> Option<String> {
    let fitting = AcceptorLimits::of(limit).session_descriptors / FILES_PER_SESSION;
    (fitting < sessions).then(|| {
        format!(
            "about {fitting} of {sessions} sessions fit into the limit of {limit} open files: raise it (LimitNOFILE= of a \
            systemd unit, or ulimit -n), or lower --max-sessions"
        )
    })
}

/// True when a client's first bytes are those of a TLS handshake; a cookie has only letters and digits.
fn is_tls(cookie: &Cookie) -> bool {
    matches!(cookie.as_bytes(), [22, 3, ..])
}

/// Drops what a refused client has sent: closing with unread bytes would reset the connection before the refusal arrives.
fn discard(control: &ControlConnection) {
    let mut buffer = [0; 4 << 10];
    for _ in 0..16 {
        if !matches!(io::Read::read(&mut control.stream(), &mut buffer), Ok(1..)) {
            return;
        }
    }
}

/// Refuses a client.
fn deny_access(mut control: ControlConnection) {
    // A client that does not read the one byte does not need it.
    let _ = control.send(&[ControlState::AccessDenied.byte()]);
    let _ = net::shutdown_write(control.stream());
}

struct ConnectionAcceptor<'scope, 'env> {
    server: &'env Server,
    registry: Arc<SessionRegistry>,
    observer: &'env dyn ServerObserver,
    scope: &'scope Scope<'scope, 'env>,
    /// In order of arrival.
    unknown: VecDeque<PendingConnection>,
    /// Number of connections accepted so far.
    accepted: u64,
    queued: VecDeque<QueuedClient>,
    udp: UdpHub,
    /// Clients that get the listener for windows.
    steering: Option<WindowSteering>,
    announced_idle: u64,
    /// Time of the last look at the waiting clients.
    looked_at: MonotonicTime,
    last_activity: MonotonicTime,
    paused_until: Option<MonotonicTime>,
    /// Time of the last report that accepting failed.
    reported_at: Option<MonotonicTime>,
    /// Gate before handshakes.
    handshakes: HandshakeGate,
    /// Time of the last report of a refused client.
    refused_at: Option<MonotonicTime>,
}

impl ConnectionAcceptor<'_, '_> {
    fn serve(&mut self, stop: Option<&InterruptSignals>) -> Result<()> {
        loop {
            self.admit_queued();
            self.announce_idle();
            if self.is_done() {
                return Ok(());
            }
            let now = clock::monotonic_now();
            self.udp.keep_bound_while(self.registry.needs_udp(), self.observer);
            self.begin_tcp_turns(now);
            let turns = self.registry.advance_turns(now);
            self.wait(stop, turns, now)?;
            if let Some(signal) = stop.and_then(InterruptSignals::pending) {
                self.registry.terminate(&signal.describe());
                return Ok(());
            }
        }
    }

    /// Lets sessions open their TCP streams, once the listener for windows gets those with a window.
    fn begin_tcp_turns(&mut self, now: MonotonicTime) {
        let (begun, steering) = self.registry.begin_tcp_turns(now);
        if let Some(windows) = &self.server.windows
            && steering != self.steering
        {
            windows.steer(&self.server.listener, steering.as_ref());
            self.steering = steering;
        }
        self.registry.grant(&begun);
    }

    /// Waits for an event, and handles it.
    fn wait(
        &mut self,
        stop: Option<&InterruptSignals>,
        turns: Option<MonotonicTime>,
        now: MonotonicTime,
    ) -> Result<()> {
        self.paused_until = self.paused_until.filter(|until| now < *until);
        let timeout = self.next_deadline(turns).map(|deadline| deadline.since(now));
        let accepting = self.paused_until.is_none();
        let waker = &self.registry.waker;
        let listen_interest = if accepting { PollInterest::READ } else { PollInterest::NONE };
        let (listener, nothing) = (&self.server.listener, &self.registry.waker);
        let mut items = vec![PollItem::new(waker, PollInterest::READ), PollItem::new(listener, listen_interest)];
        items.push(match stop {
            Some(stop) => PollItem::new(stop, PollInterest::READ),
            None => PollItem::new(nothing, PollInterest::NONE),
        });
        items.push(match self.udp.socket() {
            Some(socket) => PollItem::new(socket, PollInterest::READ),
            None => PollItem::new(nothing, PollInterest::NONE),
        });
        items.push(match &self.server.windows {
            Some(windows) => PollItem::new(windows.socket(), listen_interest),
            None => PollItem::new(nothing, PollInterest::NONE),
        });
        let fixed = items.len();
        items.extend(self.unknown.iter().map(|unknown| PollItem::new(&unknown.control, unknown.interest())));
        items.extend(self.queued.iter().map(|queued| PollItem::new(&queued.control, PollInterest::READ)));
        poll::wait(&mut items, timeout).map_err(|cause| Error::system(ErrorCode::SELECT, &cause))?;
        let ready: Vec<bool> = items.iter().map(PollItem::is_ready).collect();
        drop(items);
        if ready[0] {
            self.registry.waker.drain();
        }
        for (stream, peer) in self.registry.take_dialed() {
            self.take_connection(stream, peer);
        }
        if ready[3] || self.udp.next_deadline().is_some_and(|deadline| deadline <= clock::monotonic_now()) {
            self.udp.serve(&self.registry);
        }
        self.handle_connections(&ready[fixed..]);
        if ready[1] {
            self.accept(listener);
        }
        if let Some(windows) = self.server.windows.as_ref().filter(|_| ready[4]) {
            self.accept(windows.socket());
        }
        Ok(())
    }

    fn next_deadline(&self, turns: Option<MonotonicTime>) -> Option<MonotonicTime> {
        let idle = self.idle_deadline();
        let deadline =
            |unknown: &PendingConnection| unknown.held_until.map_or(unknown.deadline, |at| at.min(unknown.deadline));
        let cookie = self.unknown.iter().map(deadline).min();
        let longest = self.queued.iter().map(|queued| queued.since + MAX_QUEUE_TIME);
        let queue = longest.filter(|at| *at > self.looked_at).min();
        [turns, idle, cookie, queue, self.paused_until, self.udp.next_deadline()].into_iter().flatten().min()
    }

    fn is_idle(&self) -> bool {
        self.registry.sessions() == 0 && self.queued.is_empty()
    }

    /// With `-1`: deadline for the first client. A permanent server does not need iperf3's `--idle-timeout`, which
    /// recreates a possibly stuck listener: this one cannot get stuck.
    fn idle_deadline(&self) -> Option<MonotonicTime> {
        let options = &self.server.options;
        let limit = options.idle_timeout.filter(|_| options.one_off && self.is_idle())?;
        Some(self.last_activity + limit)
    }

    fn is_done(&self) -> bool {
        let tested = self.server.options.one_off && self.is_idle() && self.registry.tests_done() > 0;
        tested || self.idle_deadline().is_some_and(|at| clock::monotonic_now() >= at)
    }

    fn announce_idle(&mut self) {
        let upcoming = self.registry.upcoming_number();
        if self.is_idle() && self.announced_idle != upcoming {
            // Memory used by a hundred sessions is released before the next one.
            process::release_free_memory();
            self.announced_idle = upcoming;
            self.last_activity = clock::monotonic_now();
            if !(self.server.options.one_off && self.registry.tests_done() > 0) {
                self.observer.idle(upcoming);
            }
        }
    }

    fn accept(&mut self, listener: &TcpListener) {
        for _ in 0..ACCEPT_BATCH {
            match net::accept_nonblocking(listener) {
                Ok(Some((stream, peer))) => self.take_connection(stream, peer),
                Ok(None) => return,
                Err(cause) if is_connection_error(&cause) => {}
                Err(cause) => {
                    // Out of descriptors or memory: connections in the backlog are kept, others must end first.
                    let now = clock::monotonic_now();
                    if self.reported_at.is_none_or(|at| now.since(at) >= EXHAUSTED_REPORT_INTERVAL) {
                        self.observer.problem(&cause.to_string());
                        self.reported_at = Some(now);
                    }
                    self.drop_pending();
                    self.paused_until = Some(now + EXHAUSTED_PAUSE);
                    return;
                }
            }
        }
    }

    #[cfg_attr(not(feature = "tls"), expect(unreachable_code, reason = "no value is TLS of a server"))]
    fn take_connection(&mut self, stream: TcpStream, peer: SocketAddr) {
        let control = match &self.server.options.tls {
            Some(tls) => ControlConnection::secured(stream, TlsChannel::of_server(tls)),
            None => ControlConnection::new(stream),
        };
        let Ok(control) = control else { return };
        if self.unknown.len() >= self.server.limits.waiting {
            self.drop_pending();
        }
        let deadline = clock::monotonic_now() + COOKIE_TIMEOUT;
        // The cookie has nearly always arrived already.
        let number = ConnectionNumber(self.accepted);
        self.accepted += 1;
        self.read_cookie(PendingConnection::new(number, control, peer, deadline));
    }

    fn drop_pending(&mut self) {
        if let Some(position) = oldest_of_largest_site(&self.unknown) {
            self.unknown.remove(position);
        }
    }

    fn handle_connections(&mut self, ready: &[bool]) {
        let now = clock::monotonic_now();
        let unknown: Vec<PendingConnection> = self.unknown.drain(..).collect();
        let (of_unknown, of_queued) = ready.split_at(unknown.len());
        // A waiting client has nothing to send: it has given up, or violates the protocol.
        let mut of_queued = of_queued.iter();
        self.queued.retain(|_| of_queued.next().is_none_or(|ready| !ready));
        for (connection, ready) in unknown.into_iter().zip(of_unknown) {
            // One that waits for the handshakes of others is ready only when its client has gone.
            if now >= connection.deadline || (*ready && connection.held_until.is_some()) {
                continue;
            }
            if *ready || connection.held_until.is_some_and(|at| now >= at) {
                self.read_cookie(connection);
            } else {
                self.unknown.push_back(connection);
            }
        }
    }

    fn read_cookie(&mut self, mut unknown: PendingConnection) {
        if self.server.options.tls.is_some() && !unknown.is_admitted {
            let site = ClientNetwork::of(unknown.client()).site();
            unknown.held_until = self.handshakes.postpones(site, clock::monotonic_now());
            unknown.is_admitted = unknown.held_until.is_none();
            if !unknown.is_admitted {
                return self.unknown.push_back(unknown);
            }
        }
        match unknown.read() {
            ConnectionState::Gone => {}
            ConnectionState::Unknown => self.unknown.push_back(unknown),
            ConnectionState::Refused => self.refuse_without_tls(&unknown),
            ConnectionState::Known(cookie) if unknown.control.tls_use().is_none() && is_tls(&cookie) => {
                self.report_refusal(
                    unknown.peer,
                    "a client with TLS, which this server does not use: start it with --tls",
                );
                discard(&unknown.control);
                deny_access(unknown.control);
            }
            ConnectionState::Known(cookie) => {
                let client = net::canonical(unknown.peer).ip();
                match self.registry.session_for_stream(&cookie, client) {
                    StreamOwner::Session(_) if unknown.control.tls_use() == Some(ConnectionUse::Control) => {}
                    StreamOwner::Session(inbox) => {
                        // Before the test can start: later connections of this client have no window.
                        self.begin_tcp_turns(clock::monotonic_now());
                        hand_over(unknown.number, unknown.control, &inbox);
                    }
                    StreamOwner::Stranger => {}
                    // Its session is over, or expects no more: the connection is unwanted.
                    StreamOwner::NoSession if cookie.extension_version() == Some(ExtensionVersion::Load) => {}
                    StreamOwner::NoSession
                        if unknown.control.tls_use().is_some_and(|usage| usage != ConnectionUse::Control) => {}
                    StreamOwner::NoSession => self.new_client(unknown.control, unknown.peer, cookie),
                }
            }
        }
    }

    /// Ends a connection of which TLS has failed; a client without TLS gets iperf3's error of a lack of authorization.
    fn refuse_without_tls(&mut self, refused: &PendingConnection) {
        if let Some(reason) = refused.control.tls_failure() {
            self.report_refusal(refused.peer, &reason.to_string());
        }
        discard(&refused.control);
        if refused.control.is_foreign() {
            refused.control.send_plain(&error::encode(ErrorCode::AUTHORIZATION));
        }
        let _ = net::shutdown_write(refused.control.stream());
    }

    /// Reports a refused client, if none has been for a second.
    fn report_refusal(&mut self, peer: SocketAddr, reason: &str) {
        let now = clock::monotonic_now();
        if self.refused_at.is_none_or(|at| now.since(at) >= REFUSAL_REPORT_INTERVAL) {
            self.observer.note(&format!("refused {}: {reason}", net::canonical(peer).ip()));
            self.refused_at = Some(now);
        }
    }

    fn new_client(&mut self, control: ControlConnection, peer: SocketAddr, cookie: Cookie) {
        if self.server.options.admission.is_some_and(|key| !cookie.has_key(&key)) {
            return deny_access(control);
        }
        let client = net::canonical(peer).ip();
        let descriptors = self.registry.account(client).lease_session(session_descriptors(&cookie));
        let has_room = self.has_room() && (descriptors.is_ok() || self.registry.sessions() == 0);
        if has_room || self.makes_room(client) {
            self.start_session(control, peer, cookie, descriptors.ok());
        } else if self.server.options.queue && self.has_queue_slot(client) {
            self.queued.push_back(QueuedClient { control, peer, cookie, since: clock::monotonic_now() });
        } else {
            deny_access(control);
        }
    }

    fn has_room(&self) -> bool {
        let options = &self.server.options;
        let most = if options.one_off { 1 } else { options.max_sessions.get() };
        self.registry.sessions() < most
    }

    /// Displaces a silent session, one of a network that has more than its share, or an idle one: it must not keep other
    /// clients away. With `--queue`, one of a network that has more than its share has a while to end.
    fn makes_room(&self, client: IpAddr) -> bool {
        let now = clock::monotonic_now();
        self.registry.displace_silent(now)
            || (!self.server.options.queue && self.registry.displace_for(client))
            || self.registry.displace_idle(now)
    }

    /// Returns true when one more client may wait. In a full queue, the network with the most gives way.
    fn has_queue_slot(&mut self, client: IpAddr) -> bool {
        if self.queued.len() < self.server.limits.waiting {
            return true;
        }
        let Some(position) = gives_way_to(&self.queued, client) else { return false };
        if let Some(mut refused) = self.queued.remove(position) {
            let _ = refused.control.send(&[ControlState::AccessDenied.byte()]);
        }
        true
    }

    /// Starts the sessions of waiting clients: first those whose network has the fewest, in the order of their arrival.
    fn admit_queued(&mut self) {
        self.looked_at = clock::monotonic_now();
        while let Some(next) = self.next_queued()
            && (self.has_room() || self.displaces(next))
            && let Some(QueuedClient { control, peer, cookie, .. }) = self.queued.remove(next)
        {
            let account = self.registry.account(net::canonical(peer).ip());
            let descriptors = account.lease_session(session_descriptors(&cookie)).ok();
            self.start_session(control, peer, cookie, descriptors);
        }
    }

    fn next_queued(&self) -> Option<usize> {
        if self.queued.is_empty() {
            return None;
        }
        let sessions = self.registry.sessions_by_network();
        let of = |queued: &QueuedClient| sessions.get(&ClientNetwork::of(queued.client())).copied().unwrap_or(0);
        self.queued.iter().enumerate().min_by_key(|(position, queued)| (of(queued), *position)).map(|(next, _)| next)
    }

    /// Displaces a session for a client that has waited for long.
    fn displaces(&self, next: usize) -> bool {
        let Some(queued) = self.queued.get(next) else { return false };
        self.registry.displace_silent(self.looked_at)
            || self.registry.displace_idle(self.looked_at)
            || (self.looked_at.since(queued.since) >= MAX_QUEUE_TIME && self.registry.displace_for(queued.client()))
    }

    fn start_session(
        &mut self,
        mut control: ControlConnection,
        peer: SocketAddr,
        cookie: Cookie,
        descriptors: Option<MemoryLease>,
    ) {
        let server = control.stream().local_addr().ok().map(net::canonical);
        let Ok(inbox) = SessionInbox::new(net::canonical(peer).ip(), server) else {
            let _ = control.send(&[ControlState::AccessDenied.byte()]);
            return;
        };
        let number = self.registry.next_number();
        self.last_activity = clock::monotonic_now();
        let client = net::canonical(peer).ip();
        let account = self.registry.enter(number, Arc::clone(&inbox), client, self.last_activity);
        let start = SessionStart {
            number,
            control,
            peer: net::canonical(peer),
            cookie,
            inbox,
            registry: Arc::clone(&self.registry),
            options: Arc::clone(&self.server.options),
            has_windows: self.server.windows.is_some(),
            account,
            _descriptors: descriptors,
            observer: self.observer.session(number),
        };
        let registry = Arc::clone(&self.registry);
        let thread = std::thread::Builder::new().name(format!("session-{number}")).stack_size(512 << 10);
        let spawned = if cookie.extension_version() == Some(ExtensionVersion::Probes) {
            thread.spawn_scoped(self.scope, move || probe_session::run(start))
        } else {
            let client = AdmittedClient::admit(start);
            thread.spawn_scoped(self.scope, move || client.run())
        };
        if let Err(cause) = spawned {
            self.observer.problem(&format!("starting a thread for client {peer}: {cause}"));
            registry.leave(number, &cookie);
        }
    }
}

fn hand_over(number: ConnectionNumber, control: ControlConnection, inbox: &SessionInbox) {
    let (stream, cipher) = if control.tls_use() == Some(ConnectionUse::Secured) {
        let Some((stream, cipher)) = control.into_secured() else { return };
        (stream, Some(Box::new(cipher)))
    } else {
        (control.into_stream(), None)
    };
    if stream.set_nonblocking(false).is_ok() {
        inbox.deliver(SessionMessage::Tcp(AcceptedStream { number, stream, cipher }));
    }
}

/// True for errors of `accept` that belong to the connection, not to the listener (accept(2)).
fn is_connection_error(cause: &linerate_sys::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_leave_most_descriptors_to_the_sessions() {
        for (descriptors, waiting, session_descriptors) in
            [(0, 1, 0), (64, 8, 24), (1024, 128, 744), (20_000, 1024, 17_928), (u64::MAX, 1024, u64::MAX - 2072)]
        {
            assert_eq!(
                AcceptorLimits::of(descriptors),
                AcceptorLimits { waiting, session_descriptors },
                "{descriptors}"
            );
        }
    }

    #[test]
    fn a_limit_below_the_need_of_the_sessions_is_named() {
        assert_eq!(file_limit_note(20_000, 1000), None);
        let note = file_limit_note(20_000, 6000).expect("a note");
        assert!(note.starts_with("about 5976 of 6000 sessions fit into the limit of 20000 open files"), "{note}");
    }
}
