//! The server's STAMP reflector: one UDP socket that answers anybody's test packets (RFC 8762), and by which a probe
//! session learns where its client's datagrams come from.
//!
//! It is bound with the listener, before privileges are dropped, to port 862 or to the one after the server's own. The
//! socket lets others have the same port, so that a session can have one of its own there, connected to its client. A
//! session that awaits its client registers a token ([`ReflectorHandle::expect`]); a packet whose Extra Padding option
//! begins with the token is told to the session and not answered. What is not awaited is answered by
//! [`linerate_wire::stamp::reflector::Reflector`], which also says what is not to be answered.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

use linerate_model::environment::ClockState;
use linerate_sys::data::probe_socket::{Arrival, Outgoing, ProbeOptions, ProbeSocket};
use linerate_sys::net::{self, Family, UdpOptions};
use linerate_sys::poll::{self, Interest, PollItem, Waker};
use linerate_sys::time_stamp::StampSource;
use linerate_sys::{clock, environment, options};
use linerate_units::{ByteCount, MonotonicTime, Port};
use linerate_wire::stamp::reflector::{Clock, Ignored, Received, Reflector, ReflectorOptions};
use linerate_wire::stamp::tlv::{self, TimestampMethod};
use linerate_wire::stamp::{ErrorEstimate, TimestampFormat};

use super::ServerObserver;

/// How a server answers STAMP senders.
#[derive(Clone, Debug, Default)]
pub struct StampOptions {
    /// The UDP port; `None` for 862 (RFC 8762 §4.1), or where that cannot be had, for the one after the server's own.
    pub port: Option<Port>,
    /// Whom it answers, and how.
    pub reflector: ReflectorOptions,
}

/// By what a session knows its client's first datagrams: 16 random bytes at the beginning of an Extra Padding option.
pub(crate) type Token = [u8; 16];

/// A packet with a token that is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Met {
    /// Where it came from, behind any translation of addresses; IPv4 never mapped.
    pub(crate) source: SocketAddr,
    /// At which of this host's addresses it arrived, if the kernel says so; IPv4 never mapped.
    pub(crate) destination: Option<IpAddr>,
}

/// What sessions may ask of the reflector. Copies are the same reflector.
#[derive(Clone)]
pub(crate) struct ReflectorHandle {
    port: Port,
    expected: Arc<Expected>,
}

type Notice = Box<dyn FnMut(Met) + Send>;

/// Tokens that are awaited.
#[derive(Default)]
struct Expected {
    tokens: Mutex<HashMap<Token, Notice>>,
    /// How many there are, so that nothing is looked for as long as nothing is awaited.
    count: AtomicUsize,
}

impl ReflectorHandle {
    /// The UDP port that it listens on.
    pub(crate) fn port(&self) -> Port {
        self.port
    }

    /// From now on `notice` is called for each packet with this token, on the reflector's thread: it must not block, and
    /// not call this handle. A client sends several, so it may be called more than once.
    pub(crate) fn expect(&self, token: Token, notice: impl FnMut(Met) + Send + 'static) {
        let mut tokens = self.expected.lock();
        tokens.insert(token, Box::new(notice));
        self.expected.count.store(tokens.len(), Ordering::Release);
    }

    /// The token is not awaited any more. When this returns, its notice is not called again.
    pub(crate) fn forget(&self, token: &Token) {
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

impl Expected {
    fn lock(&self) -> MutexGuard<'_, HashMap<Token, Notice>> {
        // A notice that panicked has not touched the table.
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whoever awaits the packet; whether somebody does.
    fn meet(&self, datagram: &[u8], arrival: &Arrival) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let token: Option<&Token> = tlv::first_padding(datagram).and_then(|padding| padding.first_chunk());
        let Some(token) = token else { return false };
        let mut tokens = self.lock();
        let Some(notice) = tokens.get_mut(token) else { return false };
        notice(Met { source: arrival.source, destination: arrival.destination });
        true
    }
}

/// A reflector whose socket is bound.
#[derive(Debug)]
pub(super) struct BoundReflector {
    socket: ProbeSocket,
    handle: ReflectorHandle,
    options: ReflectorOptions,
    /// Why it is not on the port that it should be on.
    note: Option<String>,
}

/// Where a server listens, as far as a reflector has to do the same.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) address: Option<IpAddr>,
    pub(super) family: Family,
    pub(super) device: Option<String>,
    /// The server's own port.
    pub(super) server: u16,
}

/// Answers are small and come in bursts; a burst must fit while the thread is not running.
const RECEIVE_BUFFER: ByteCount = ByteCount::from_mebibytes(2);

impl BoundReflector {
    /// Binds the socket. `Ok(Err(note))` when none can be had and none was asked for by its number.
    pub(super) fn bind(options: &StampOptions, place: &Place) -> linerate_sys::Result<Result<Self, String>> {
        let (socket, port, note) = if let Some(port) = options.port {
            (bind_alone(place, port)?, port, None)
        } else {
            match bind_by_custom(place) {
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

    /// Starts to answer, on a thread of its own that ends when what is returned is dropped.
    pub(super) fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        observer: &'scope dyn ServerObserver,
    ) -> linerate_sys::Result<Running> {
        if let Some(note) = &self.note {
            observer.note(note);
        }
        let stop = Arc::new(Stop { waker: Waker::new()?, stopped: AtomicBool::new(false) });
        let running = Running(Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("reflector".to_owned()).stack_size(512 << 10);
        let spawned = thread.spawn_scoped(scope, move || self.serve(&stop, observer));
        if let Err(cause) = spawned {
            observer.problem(&format!("starting the thread of the STAMP reflector: {cause}"));
        }
        Ok(running)
    }

    fn serve(&self, stop: &Stop, observer: &dyn ServerObserver) {
        let mut serving = Serving {
            bound: self,
            observer,
            reflector: Reflector::new(self.options.clone(), clock_of_host()),
            clock_read: clock::monotonic_now(),
            told: Vec::new(),
        };
        let mut buffer = vec![0; LARGEST];
        while !stop.stopped.load(Ordering::Acquire) {
            let mut items = [PollItem::new(&self.socket, Interest::READ), PollItem::new(&stop.waker, Interest::READ)];
            let waited = poll::wait(&mut items, None);
            if let Err(cause) = waited.map_err(std::io::Error::from).and_then(|_| serving.answer_waiting(&mut buffer)) {
                serving.tell_once(About::Socket, || format!("the STAMP reflector cannot receive: {cause}"));
                // Whatever is wrong lasts for a while; the server's tests must not suffer from it.
                let _ = poll::wait(&mut [PollItem::new(&stop.waker, Interest::READ)], Some(PAUSE));
            }
        }
    }
}

/// Largest datagram.
const LARGEST: usize = 65536;
/// So many are answered before the clock and the end are looked at.
const MOST_AT_ONCE: usize = 256;
/// After an error of the socket.
const PAUSE: Duration = Duration::from_millis(100);
/// What the kernel says of its clock changes slowly.
const CLOCK_INTERVAL: Duration = Duration::from_secs(16);

/// Ends the reflector's thread when dropped.
#[derive(Debug)]
pub(super) struct Running(Arc<Stop>);

#[derive(Debug)]
struct Stop {
    waker: Waker,
    stopped: AtomicBool,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::Release);
        self.0.waker.wake();
    }
}

/// What is told once, lest a flood of packets becomes a flood of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Socket,
    Ignored(Ignored),
}

struct Serving<'a> {
    bound: &'a BoundReflector,
    observer: &'a dyn ServerObserver,
    reflector: Reflector,
    clock_read: MonotonicTime,
    told: Vec<About>,
}

impl Serving<'_> {
    fn answer_waiting(&mut self, buffer: &mut [u8]) -> std::io::Result<()> {
        let now = clock::monotonic_now();
        if now.since(self.clock_read) >= CLOCK_INTERVAL {
            self.clock_read = now;
            self.reflector.set_clock(clock_of_host());
        }
        for _ in 0..MOST_AT_ONCE {
            let Some(arrival) = self.bound.socket.try_receive(buffer)? else { return Ok(()) };
            let datagram = &buffer[..arrival.filled];
            if !self.bound.handle.expected.meet(datagram, &arrival) {
                self.answer(datagram, &arrival);
            }
        }
        Ok(())
    }

    fn answer(&mut self, datagram: &[u8], arrival: &Arrival) {
        let received = received(datagram, arrival, self.bound.handle.port);
        let mut answer = match self.reflector.handle(arrival.arrived.monotonic, &received) {
            Ok(answer) => answer,
            Err(reason) => {
                if let Some(text) = worth_telling(reason, arrival.source) {
                    self.tell_once(About::Ignored(reason), || text);
                }
                return;
            }
        };
        let how = Outgoing {
            to: Some(arrival.source),
            from: arrival.destination,
            type_of_service: Some(answer.type_of_service()),
            hop_limit: None,
        };
        let bytes = self.reflector.finish(&mut answer, self.bound.socket.clocks().now().wall);
        // A full buffer or a missing route loses an answer, as any link on its way may.
        let _ = self.bound.socket.send(bytes, &how);
    }

    fn tell_once(&mut self, about: About, text: impl FnOnce() -> String) {
        if !self.told.contains(&about) {
            self.told.push(about);
            self.observer.note(&text());
        }
    }
}

fn received<'a>(bytes: &'a [u8], arrival: &Arrival, port: Port) -> Received<'a> {
    let any =
        if arrival.source.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
    Received {
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

/// What a person who wonders why a sender gets no answer should know. Anything may arrive on an open port, and is not
/// worth a line.
fn worth_telling(reason: Ignored, source: SocketAddr) -> Option<String> {
    let source = net::canonical(source).ip();
    match reason {
        Ignored::NotAuthentic => Some(format!(
            "a STAMP packet from {source} does not have the key: it is not answered, nor are others like it; give both \
             ends the same key, or serve without --stamp-key-file"
        )),
        Ignored::TooMany => Some(format!(
            "{source} sends more STAMP packets than one source may: those beyond its share are not answered"
        )),
        Ignored::NoRoom => Some(
            "there are as many STAMP sessions as there may be: new ones get no answer until one is idle".to_owned(),
        ),
        _ => None,
    }
}

/// Port 862, or the one after the server's; with the reason why it is the latter.
fn bind_by_custom(place: &Place) -> Result<(ProbeSocket, Port, Option<String>), String> {
    let refused = match bind_alone(place, Port::STAMP) {
        Ok(socket) => return Ok((socket, Port::STAMP, None)),
        Err(cause) => cause,
    };
    // What holds a port, or that root may have it, is in the error.
    let denied = refused.kind() == std::io::ErrorKind::PermissionDenied;
    let way_out = if denied { "; the capability CAP_NET_BIND_SERVICE is enough" } else { "" };
    let begin = format!("STAMP senders expect port {}, which is not to be had: {refused}{way_out}", Port::STAMP);
    let next = place.server.checked_add(1).and_then(Port::new);
    let second = next.map(|port| bind_alone(place, port).map(|socket| (socket, port)));
    match second {
        Some(Ok((socket, port))) => {
            let note = format!("{begin}. Their packets are answered on UDP port {port} instead (--stamp-port)");
            Ok((socket, port, Some(note)))
        }
        Some(Err(cause)) => {
            Err(format!("{begin}. Nor is the next one ({cause}): there is no STAMP reflector (--stamp-port)"))
        }
        None => Err(format!("{begin}. There is no STAMP reflector (--stamp-port)")),
    }
}

/// Nobody else may have the port when it is taken; afterwards the sessions may.
fn bind_alone(place: &Place, port: Port) -> linerate_sys::Result<ProbeSocket> {
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

/// What the kernel knows of this host's clock; nothing, where it may not be asked.
pub(super) fn clock_of_host() -> Clock {
    let bound = environment::clock_state().ok().and_then(ClockState::error_bound);
    Clock {
        error_estimate: bound
            .map_or_else(ErrorEstimate::default, |bound| ErrorEstimate::new(bound, true, TimestampFormat::Ntp)),
        // The kernel knows that some program keeps the clock synchronized, not from where.
        source: None,
    }
}

#[cfg(test)]
mod tests;
