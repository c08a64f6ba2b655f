//! The accepting thread: no connection can block it.

use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::Scope;

use linerate_sys::poll::{self, PollInterest, PollItem};
use linerate_sys::signals::InterruptSignals;
use linerate_sys::{clock, net, process};
use linerate_units::MonotonicTime;
use linerate_wire::cookie::{self, Cookie, ExtensionVersion};
use linerate_wire::error::ErrorCode;
use linerate_wire::state::ControlState;

use super::registry::{SessionInbox, SessionMessage, SessionRegistry, StreamOwner};
use super::session::{self, SessionStart};
use super::tcp_turns::WindowSteering;
use super::udp_hub::UdpHub;
use super::{Server, ServerObserver, probe_session};
use crate::control::{ControlConnection, ControlRead};
use crate::error::{Error, Result};

/// Most connections that have not yet sent their cookie; a newer one displaces the oldest.
const MAX_PENDING_CONNECTIONS: usize = 1024;

/// Time limit of a connection for its 37-byte cookie.
const COOKIE_TIMEOUT: Duration = Duration::from_secs(10);

/// Most clients waiting under `--queue`.
const MAX_QUEUED: usize = 1024;

/// Most connections accepted in one batch.
const ACCEPT_BATCH: usize = 256;

/// Pause of accepting when the process has no file descriptor left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

pub(super) fn run(server: &Server, stop: Option<&InterruptSignals>, observer: &dyn ServerObserver) -> Result<()> {
    let failed = |cause: io::Error| Error::io(ErrorCode::NEW_TEST, &cause);
    let reflector = server.bound_reflector();
    let handle = reflector.map(|reflector| reflector.handle().clone());
    let registry = Arc::new(SessionRegistry::new(handle, Arc::clone(&server.resources)).map_err(failed)?);
    if let Some(Err(note)) = &server.reflector {
        observer.note(note);
    }
    std::thread::scope(|scope| {
        let reflecting =
            reflector.map(|reflector| reflector.start(scope, observer, server.resources.stamp_rate())).transpose();
        // Ends with the acceptor.
        let _reflecting = reflecting.map_err(|cause| Error::system(ErrorCode::NEW_TEST, &cause))?;
        let mut acceptor = ConnectionAcceptor {
            server,
            registry,
            observer,
            scope,
            unknown: VecDeque::new(),
            queued: VecDeque::new(),
            udp: UdpHub::new(Arc::clone(&server.options), server.address),
            steering: None,
            next_session: 1,
            announced_idle: 0,
            last_activity: clock::monotonic_now(),
            paused_until: None,
        };
        acceptor.serve(stop)
    })
}

struct ConnectionAcceptor<'scope, 'env> {
    server: &'env Server,
    registry: Arc<SessionRegistry>,
    observer: &'env dyn ServerObserver,
    scope: &'scope Scope<'scope, 'env>,
    /// In order of arrival.
    unknown: VecDeque<PendingConnection>,
    queued: VecDeque<QueuedClient>,
    udp: UdpHub,
    /// Clients that get the listener for windows.
    steering: Option<WindowSteering>,
    next_session: u64,
    announced_idle: u64,
    last_activity: MonotonicTime,
    paused_until: Option<MonotonicTime>,
}

/// A connection whose cookie is not yet complete.
struct PendingConnection {
    control: ControlConnection,
    peer: SocketAddr,
    cookie: [u8; cookie::LENGTH],
    read: usize,
    deadline: MonotonicTime,
}

/// A client waiting for a session to end.
struct QueuedClient {
    control: ControlConnection,
    peer: SocketAddr,
    cookie: Cookie,
}

/// State of a connection after reading from it.
enum ConnectionState {
    Unknown,
    Known(Cookie),
    Gone,
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
        let timeout = self.next_deadline(turns).map(|deadline| deadline.since(now));
        let accepting = self.paused_until.is_none_or(|until| now >= until);
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
        items.extend(self.unknown.iter().map(|unknown| PollItem::new(&unknown.control, PollInterest::READ)));
        items.extend(self.queued.iter().map(|queued| PollItem::new(&queued.control, PollInterest::READ)));
        poll::wait(&mut items, timeout).map_err(|cause| Error::system(ErrorCode::SELECT, &cause))?;
        let ready: Vec<bool> = items.iter().map(PollItem::is_ready).collect();
        drop(items);
        if ready[0] {
            self.registry.waker.drain();
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
        let cookie = self.unknown.front().map(|unknown| unknown.deadline);
        [turns, idle, cookie, self.paused_until, self.udp.next_deadline()].into_iter().flatten().min()
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
        if self.is_idle() && self.announced_idle != self.next_session {
            // Memory used by a hundred sessions is released before the next one.
            process::release_free_memory();
            self.announced_idle = self.next_session;
            self.last_activity = clock::monotonic_now();
            if !(self.server.options.one_off && self.registry.tests_done() > 0) {
                self.observer.idle(self.next_session);
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
                    self.observer.problem(&cause.to_string());
                    self.unknown.pop_front();
                    self.paused_until = Some(clock::monotonic_now() + EXHAUSTED_PAUSE);
                    return;
                }
            }
        }
    }

    fn take_connection(&mut self, stream: TcpStream, peer: SocketAddr) {
        let Ok(control) = ControlConnection::new(stream) else { return };
        if self.unknown.len() >= MAX_PENDING_CONNECTIONS {
            self.unknown.pop_front();
        }
        let deadline = clock::monotonic_now() + COOKIE_TIMEOUT;
        let unknown = PendingConnection { control, peer, cookie: [0; cookie::LENGTH], read: 0, deadline };
        // The cookie has nearly always arrived already.
        self.read_cookie(unknown);
    }

    fn handle_connections(&mut self, ready: &[bool]) {
        let now = clock::monotonic_now();
        let unknown: Vec<PendingConnection> = self.unknown.drain(..).collect();
        let (of_unknown, of_queued) = ready.split_at(unknown.len());
        for (connection, ready) in unknown.into_iter().zip(of_unknown) {
            if *ready {
                self.read_cookie(connection);
            } else if now < connection.deadline {
                self.unknown.push_back(connection);
            }
        }
        // A waiting client has nothing to send: it has given up, or violates the protocol.
        let mut of_queued = of_queued.iter();
        self.queued.retain(|_| of_queued.next().is_none_or(|ready| !ready));
    }

    fn read_cookie(&mut self, mut unknown: PendingConnection) {
        match unknown.read() {
            ConnectionState::Gone => {}
            ConnectionState::Unknown => self.unknown.push_back(unknown),
            ConnectionState::Known(cookie) => {
                let client = net::canonical(unknown.peer).ip();
                match self.registry.session_for_stream(&cookie, client) {
                    StreamOwner::Session(inbox) => {
                        // Before the test can start: later connections of this client have no window.
                        self.begin_tcp_turns(clock::monotonic_now());
                        hand_over(unknown.control, &inbox);
                    }
                    StreamOwner::Stranger => {}
                    // Its session is over, or expects no more: the connection is unwanted.
                    StreamOwner::NoSession if cookie.extension_version() == Some(ExtensionVersion::Load) => {}
                    StreamOwner::NoSession => self.new_client(unknown.control, unknown.peer, cookie),
                }
            }
        }
    }

    fn new_client(&mut self, mut control: ControlConnection, peer: SocketAddr, cookie: Cookie) {
        if self.has_room() || self.makes_room(peer) {
            self.start_session(control, peer, cookie);
        } else if self.server.options.queue && self.queued.len() < MAX_QUEUED {
            self.queued.push_back(QueuedClient { control, peer, cookie });
        } else {
            // A client that does not read the one byte does not need it.
            let _ = control.send(&[ControlState::AccessDenied.byte()]);
            let _ = net::shutdown_write(control.stream());
        }
    }

    fn has_room(&self) -> bool {
        let options = &self.server.options;
        let most = if options.one_off { 1 } else { options.max_sessions.get() };
        self.registry.sessions() < most
    }

    /// Displaces a silent session, one of a network that has more than its share, or an idle one: it must not keep other
    /// clients away. With `--queue`, such sessions end soon enough.
    fn makes_room(&self, peer: SocketAddr) -> bool {
        let client = net::canonical(peer).ip();
        let now = clock::monotonic_now();
        !self.server.options.queue
            && (self.registry.displace_silent(now)
                || self.registry.displace_for(client)
                || self.registry.displace_idle(now))
    }

    fn admit_queued(&mut self) {
        while !self.queued.is_empty() && self.has_room() {
            if let Some(QueuedClient { control, peer, cookie }) = self.queued.pop_front() {
                self.start_session(control, peer, cookie);
            }
        }
    }

    fn start_session(&mut self, mut control: ControlConnection, peer: SocketAddr, cookie: Cookie) {
        let number = self.next_session;
        let Ok(inbox) = SessionInbox::new(net::canonical(peer).ip()) else {
            let _ = control.send(&[ControlState::AccessDenied.byte()]);
            return;
        };
        self.next_session += 1;
        self.last_activity = clock::monotonic_now();
        self.registry.enter(number, Arc::clone(&inbox), net::canonical(peer).ip(), self.last_activity);
        let start = SessionStart {
            number,
            control,
            peer: net::canonical(peer),
            cookie,
            inbox,
            registry: Arc::clone(&self.registry),
            options: Arc::clone(&self.server.options),
            has_windows: self.server.windows.is_some(),
            observer: self.observer.session(number),
        };
        let registry = Arc::clone(&self.registry);
        let thread = std::thread::Builder::new().name(format!("session-{number}")).stack_size(512 << 10);
        let run = match cookie.extension_version() {
            Some(ExtensionVersion::Probes) => probe_session::run,
            _ => session::run,
        };
        if let Err(cause) = thread.spawn_scoped(self.scope, move || run(start)) {
            self.observer.problem(&format!("starting a thread for client {peer}: {cause}"));
            registry.leave(number, &cookie);
        }
    }
}

impl PendingConnection {
    fn read(&mut self) -> ConnectionState {
        match self.control.read(&mut self.cookie[self.read..]) {
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

fn hand_over(control: ControlConnection, inbox: &SessionInbox) {
    let stream = control.into_stream();
    if stream.set_nonblocking(false).is_ok() {
        inbox.deliver(SessionMessage::Tcp(stream));
    }
}

/// True for errors of `accept` that belong to the connection, not to the listener (accept(2)).
fn is_connection_error(cause: &linerate_sys::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}
