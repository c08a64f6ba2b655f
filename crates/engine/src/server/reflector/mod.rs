//! The server's STAMP reflector: one UDP socket that answers any sender's test packets (RFC 8762), and by which a probe
//! session learns the source of its client's datagrams.
//!
//! It is bound with the listener, before privileges are dropped, to port 862 or to the one after the server's own. The
//! socket allows sharing the port, so that a session can have one of its own there, connected to its client. A session
//! that expects its client registers a token ([`ReflectorHandle::expect`]); a packet whose Extra Padding option begins
//! with the token is passed to the session and not answered. All other packets are answered by
//! [`linerate_wire::stamp::reflector::StampReflector`], which also names those not to be answered.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

use linerate_model::address_family::AddressFamily;
use linerate_model::environment::ClockState;
use linerate_sys::data::probe_socket::{DatagramArrival, OutgoingDatagram, ProbeOptions, ProbeSocket};
use linerate_sys::net::{self, UdpOptions};
use linerate_sys::poll::{self, PollInterest, PollItem, Waker};
use linerate_sys::time_stamp::StampSource;
use linerate_sys::{clock, environment, options};
use linerate_units::{ByteCount, MonotonicTime, Port};
use linerate_wire::stamp::reflector::{
    IgnoredReason, ReceivedDatagram, ReflectorClock, ReflectorOptions, StampReflector,
};
use linerate_wire::stamp::tlv::{self, TimestampMethod};
use linerate_wire::stamp::{ErrorEstimate, TimestampFormat};

use super::ServerObserver;
use crate::server_rate::RateAccount;

/// STAMP options of a server.
#[derive(Clone, Debug, Default)]
pub struct StampOptions {
    /// The UDP port; `None` for 862 (RFC 8762 §4.1), or where that is not available, for the one after the server's
    /// own.
    pub port: Option<Port>,
    /// Limits and keys of the reflector.
    pub reflector: ReflectorOptions,
}

/// Token of a client's first datagrams: 16 random bytes at the beginning of an Extra Padding option.
pub(crate) type ReflectorToken = [u8; 16];

/// A packet with an expected token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenArrival {
    /// Source, behind any address translation; IPv4 never mapped.
    pub(crate) source: SocketAddr,
    /// Local address at which it arrived, if the kernel reports it; IPv4 never mapped.
    pub(crate) destination: Option<IpAddr>,
    /// Length of the datagram.
    pub(crate) length: usize,
}

/// The sessions' interface to the reflector. Copies refer to the same reflector.
#[derive(Clone)]
pub(crate) struct ReflectorHandle {
    port: Port,
    expected: Arc<ExpectedTokens>,
}

type TokenNotice = Box<dyn FnMut(TokenArrival) + Send>;

/// Expected tokens.
#[derive(Default)]
struct ExpectedTokens {
    tokens: Mutex<HashMap<ReflectorToken, TokenNotice>>,
    /// Number of tokens, so that no lookup happens while none is expected.
    count: AtomicUsize,
}

impl ReflectorHandle {
    /// The UDP port that it listens on.
    pub(crate) fn port(&self) -> Port {
        self.port
    }

    /// Calls `notice` for each packet with this token from now on, on the reflector's thread: it must not block, and
    /// not call this handle. A client sends several, so it may be called more than once.
    pub(crate) fn expect(&self, token: ReflectorToken, notice: impl FnMut(TokenArrival) + Send + 'static) {
        let mut tokens = self.expected.lock();
        tokens.insert(token, Box::new(notice));
        self.expected.count.store(tokens.len(), Ordering::Release);
    }

    /// Stops expecting the token. When this returns, its notice is not called again.
    pub(crate) fn forget(&self, token: &ReflectorToken) {
        let mut tokens = self.expected.lock();
        tokens.remove(token);
        self.expected.count.store(tokens.len(), Ordering::Release);
    }
}

impl fmt::Debug for ReflectorHandle {
    /// Without the tokens, which are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReflectorHandle").field("port", &self.port).finish_non_exhaustive()
    }
}

impl ExpectedTokens {
    fn lock(&self) -> MutexGuard<'_, HashMap<ReflectorToken, TokenNotice>> {
        // A notice that panicked has not touched the table.
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notifies the session that expects the packet; returns `false` when there is none.
    fn notify(&self, datagram: &[u8], arrival: &DatagramArrival) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let token: Option<&ReflectorToken> = tlv::first_padding(datagram).and_then(|padding| padding.first_chunk());
        let Some(token) = token else { return false };
        let mut tokens = self.lock();
        let Some(notice) = tokens.get_mut(token) else { return false };
        notice(TokenArrival { source: arrival.source, destination: arrival.destination, length: datagram.len() });
        true
    }
}

/// A reflector whose socket is bound.
#[derive(Debug)]
pub(super) struct BoundReflector {
    socket: ProbeSocket,
    handle: ReflectorHandle,
    options: ReflectorOptions,
    /// Reason why it is not on the default port.
    note: Option<String>,
}

/// Listening parameters of a server that its reflector shares.
#[derive(Clone, Debug)]
pub(super) struct ListenParameters {
    pub(super) address: Option<IpAddr>,
    pub(super) family: Option<AddressFamily>,
    pub(super) device: Option<String>,
    /// The server's own port.
    pub(super) server: u16,
}

/// Receive buffer: small packets arrive in bursts, which must fit while the thread is not running.
const RECEIVE_BUFFER: ByteCount = ByteCount::from_mebibytes(2);

impl BoundReflector {
    /// Binds the socket. `Ok(Err(note))` when no default port is available.
    pub(super) fn bind(options: &StampOptions, place: &ListenParameters) -> linerate_sys::Result<Result<Self, String>> {
        let (socket, port, note) = if let Some(port) = options.port {
            (bind_exclusive(place, port)?, port, None)
        } else {
            match bind_default_port(place) {
                Ok(bound) => bound,
                Err(note) => return Ok(Err(note)),
            }
        };
        let handle = ReflectorHandle { port, expected: Arc::default() };
        Ok(Ok(Self { socket, handle, options: options.reflector.clone(), note }))
    }

    pub(super) fn handle(&self) -> &ReflectorHandle {
        &self.handle
    }

    /// Starts to answer, on a thread of its own that ends when the returned value is dropped.
    pub(super) fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        observer: &'scope dyn ServerObserver,
        rate: Option<RateAccount>,
    ) -> linerate_sys::Result<ReflectorThread> {
        if let Some(note) = &self.note {
            observer.note(note);
        }
        let stop = Arc::new(ReflectorStop { waker: Waker::new()?, stopped: AtomicBool::new(false) });
        let running = ReflectorThread(Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("reflector".to_owned()).stack_size(512 << 10);
        let spawned = thread.spawn_scoped(scope, move || self.serve(&stop, observer, rate));
        if let Err(cause) = spawned {
            observer.problem(&format!("starting the thread of the STAMP reflector: {cause}"));
        }
        Ok(running)
    }

    fn serve(&self, stop: &ReflectorStop, observer: &dyn ServerObserver, rate: Option<RateAccount>) {
        let mut serving = ReflectorLoop {
            bound: self,
            observer,
            reflector: StampReflector::new(self.options.clone(), host_clock()),
            clock_read: clock::monotonic_now(),
            told: Vec::new(),
            rate,
        };
        let mut buffer = vec![0; LARGEST];
        while !stop.stopped.load(Ordering::Acquire) {
            let mut items =
                [PollItem::new(&self.socket, PollInterest::READ), PollItem::new(&stop.waker, PollInterest::READ)];
            let waited = poll::wait(&mut items, None);
            if let Err(cause) = waited.map_err(std::io::Error::from).and_then(|_| serving.answer_waiting(&mut buffer)) {
                serving.report_once(ReportedProblem::Socket, || format!("the STAMP reflector cannot receive: {cause}"));
                // The failure is likely to last; the server's tests must not suffer from it.
                let _ = poll::wait(&mut [PollItem::new(&stop.waker, PollInterest::READ)], Some(PAUSE));
            }
        }
    }
}

/// Largest datagram.
const LARGEST: usize = 65536;
/// Most packets answered between two looks at the clock and the stop flag.
const ANSWER_BATCH: usize = 256;
/// Pause after an error of the socket.
const PAUSE: Duration = Duration::from_millis(100);
/// Interval for reading the kernel's clock state, which changes slowly.
const CLOCK_INTERVAL: Duration = Duration::from_secs(16);

/// Ends the reflector's thread when dropped.
#[derive(Debug)]
pub(super) struct ReflectorThread(Arc<ReflectorStop>);

#[derive(Debug)]
struct ReflectorStop {
    waker: Waker,
    stopped: AtomicBool,
}

impl Drop for ReflectorThread {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::Release);
        self.0.waker.wake();
    }
}

/// Problems reported once, lest a flood of packets causes a flood of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReportedProblem {
    Socket,
    Ignored(IgnoredReason),
}

struct ReflectorLoop<'a> {
    bound: &'a BoundReflector,
    observer: &'a dyn ServerObserver,
    reflector: StampReflector,
    clock_read: MonotonicTime,
    told: Vec<ReportedProblem>,
    /// Rate of the server, which the answers share.
    rate: Option<RateAccount>,
}

impl ReflectorLoop<'_> {
    fn answer_waiting(&mut self, buffer: &mut [u8]) -> std::io::Result<()> {
        let now = clock::monotonic_now();
        if now.since(self.clock_read) >= CLOCK_INTERVAL {
            self.clock_read = now;
            self.reflector.set_clock(host_clock());
        }
        for _ in 0..ANSWER_BATCH {
            let Some(arrival) = self.bound.socket.try_receive(buffer)? else { return Ok(()) };
            let datagram = &buffer[..arrival.filled];
            if !self.bound.handle.expected.notify(datagram, &arrival) {
                self.answer(datagram, &arrival);
            }
        }
        Ok(())
    }

    fn answer(&mut self, datagram: &[u8], arrival: &DatagramArrival) {
        let received = received(datagram, arrival, self.bound.handle.port);
        let mut answer = match self.reflector.handle(arrival.arrived.monotonic, &received) {
            Ok(answer) => answer,
            Err(reason) => {
                if let Some(text) = problem_note(reason, arrival.source) {
                    self.report_once(ReportedProblem::Ignored(reason), || text);
                }
                return;
            }
        };
        let size = ByteCount::from_usize(answer.bytes().len());
        if self.rate.as_ref().is_some_and(|rate| !rate.admits_reply(size, arrival.arrived.monotonic)) {
            return;
        }
        let how = OutgoingDatagram {
            to: Some(arrival.source),
            from: arrival.destination,
            type_of_service: Some(answer.type_of_service()),
            hop_limit: None,
        };
        let bytes = self.reflector.finish(&mut answer, self.bound.socket.clocks().now().wall);
        // A full buffer or a missing route loses an answer, as any link may.
        let _ = self.bound.socket.send(bytes, &how);
    }

    fn report_once(&mut self, about: ReportedProblem, text: impl FnOnce() -> String) {
        if !self.told.contains(&about) {
            self.told.push(about);
            self.observer.note(&text());
        }
    }
}

fn received<'a>(bytes: &'a [u8], arrival: &DatagramArrival, port: Port) -> ReceivedDatagram<'a> {
    let any =
        if arrival.source.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
    ReceivedDatagram {
        bytes,
        source: arrival.source,
        destination: SocketAddr::new(arrival.destination.unwrap_or(any), port.get()),
        at: arrival.arrived.wall,
        method: match arrival.arrived.source {
            StampSource::Hardware => TimestampMethod::Hardware,
            StampSource::Kernel | StampSource::Program => TimestampMethod::Software,
        },
        ttl: arrival.hop_limit,
        type_of_service: arrival.type_of_service,
    }
}

/// Note for a user who wonders why a sender gets no answer. Other unanswered packets, which arrive on any open port,
/// have none.
fn problem_note(reason: IgnoredReason, source: SocketAddr) -> Option<String> {
    let source = net::canonical(source).ip();
    match reason {
        IgnoredReason::NotAuthentic => Some(format!(
            "a STAMP packet from {source} does not have the key: neither it nor others like it are answered; give both \
             ends the same key, or serve without --stamp-key-file"
        )),
        IgnoredReason::TooMany => Some(format!(
            "{source} sends more STAMP packets than the limit per source: those above it are not answered"
        )),
        _ => None,
    }
}

/// Binds port 862, or the one after the server's; in the latter case with the reason.
fn bind_default_port(place: &ListenParameters) -> Result<(ProbeSocket, Port, Option<String>), String> {
    let refused = match bind_exclusive(place, Port::STAMP) {
        Ok(socket) => return Ok((socket, Port::STAMP, None)),
        Err(cause) => cause,
    };
    // The error names the holder of the port, or the required privilege.
    let denied = refused.kind() == std::io::ErrorKind::PermissionDenied;
    let way_out = if denied { "; the capability CAP_NET_BIND_SERVICE suffices" } else { "" };
    let begin = format!("STAMP senders expect port {}, which is not available: {refused}{way_out}", Port::STAMP);
    let next = place.server.checked_add(1).and_then(Port::new);
    let second = next.map(|port| bind_exclusive(place, port).map(|socket| (socket, port)));
    match second {
        Some(Ok((socket, port))) => {
            let note = format!("{begin}. UDP port {port} is used instead (--stamp-port)");
            Ok((socket, port, Some(note)))
        }
        Some(Err(cause)) => Err(format!(
            "{begin}. The next port is not available either ({cause}): there is no STAMP reflector (--stamp-port)"
        )),
        None => Err(format!("{begin}. There is no STAMP reflector (--stamp-port)")),
    }
}

/// Binds the port exclusively; afterwards the sessions may share it.
fn bind_exclusive(place: &ListenParameters, port: Port) -> linerate_sys::Result<ProbeSocket> {
    let socket = net::bind_udp(&UdpOptions {
        address: place.address,
        port: Some(port),
        family: place.family,
        device: place.device.clone(),
        reuse_address: false,
        ..UdpOptions::default()
    })?;
    options::set_reuse_address(&socket, true)?;
    let _ = options::set_receive_buffer(&socket, RECEIVE_BUFFER);
    ProbeSocket::new(socket, ProbeOptions::default())
}

/// Kernel's state of this host's clock; unknown where it may not be read.
pub(super) fn host_clock() -> ReflectorClock {
    let bound = environment::clock_state().ok().and_then(ClockState::error_bound);
    ReflectorClock {
        error_estimate: bound
            .map_or_else(ErrorEstimate::default, |bound| ErrorEstimate::new(bound, true, TimestampFormat::Ntp)),
        // The kernel knows that some program keeps the clock synchronized, not the source.
        source: None,
    }
}

#[cfg(test)]
mod tests;
