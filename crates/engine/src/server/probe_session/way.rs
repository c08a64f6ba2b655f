//! The session's way for datagrams: waits for the client's token, then has a socket that is connected to its source.

use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

use linerate_sys::clock;
use linerate_sys::data::train::Mark;
use linerate_sys::net::{self, Family, UdpOptions};
use linerate_sys::poll::Waker;
use linerate_sys::time_stamp::StampSource;
use linerate_units::{MonotonicTime, PacketCount, Port};
use linerate_wire::cookie::Token;
use linerate_wire::probe::{Answer, Opened, Ready};
use linerate_wire::stamp::reflector::{Received, Reflector, ReflectorOptions};
use linerate_wire::stamp::tlv::{self, TimestampMethod};

use super::{Outbox, Outcome, words};
use crate::probe::ProbeError;
use crate::probe::datagrams::{Datagrams, Receiving, Run, Sink};
use crate::server::ServerOptions;
use crate::server::reflector::{Met, ReflectorHandle, clock_of_host};
use crate::server::registry::lock;
use crate::server::session::SessionStart;

/// A client has this long to get a datagram through.
const OPENING_LIMIT: Duration = Duration::from_secs(60);

/// A client whose address is proven may have so many packets reflected in a second.
const REFLECTED_PER_SECOND: PacketCount = PacketCount::new(200_000);

/// Ports below this one are for the privileged (`ip_unprivileged_port_start`, by default).
const FIRST_FREE_PORT: u16 = 1024;

/// Part of the token by which the reflector knows a datagram.
type ShortToken = [u8; 16];

pub(super) struct Way {
    options: Arc<ServerOptions>,
    reflector: Option<ReflectorHandle>,
    /// The address at which the client has reached this host.
    local: Option<IpAddr>,
    token: Token,
    waker: Arc<Waker>,
    state: State,
}

enum State {
    Closed,
    /// The shared reflector knows the token.
    Shared {
        met: Arc<Mutex<Option<Met>>>,
        since: MonotonicTime,
        port: Port,
    },
    /// A socket of the session's own, on a port of its own, waits for it.
    Own {
        socket: UdpSocket,
        since: MonotonicTime,
        port: Port,
    },
    Open {
        datagrams: Arc<Datagrams>,
        source: SocketAddr,
        port: Port,
        _receiving: Receiving,
    },
}

impl Way {
    pub(super) fn new(start: &SessionStart, token: Token, waker: Arc<Waker>) -> Self {
        let local = start.control.stream().local_addr().ok().map(|local| net::canonical(local).ip());
        Self {
            options: Arc::clone(&start.options),
            reflector: start.registry.reflector().cloned(),
            local,
            token,
            waker,
            state: State::Closed,
        }
    }

    /// What is there once the client's address is proven.
    pub(super) fn datagrams(&self) -> Option<&Arc<Datagrams>> {
        match &self.state {
            State::Open { datagrams, .. } => Some(datagrams),
            _ => None,
        }
    }

    /// When the last datagram of the client came.
    pub(super) fn heard(&self) -> Option<MonotonicTime> {
        self.datagrams()?.heard()
    }

    pub(super) fn own_socket(&self) -> Option<&UdpSocket> {
        match &self.state {
            State::Own { socket, .. } => Some(socket),
            _ => None,
        }
    }

    pub(super) fn deadline(&self) -> Option<MonotonicTime> {
        match &self.state {
            State::Shared { since, .. } | State::Own { since, .. } => Some(*since + OPENING_LIMIT),
            _ => None,
        }
    }

    /// The client asks for a way: it is told where to knock. Asking again changes nothing.
    pub(super) fn open(&mut self, outbox: &mut Outbox) -> Outcome {
        if matches!(self.state, State::Closed) {
            self.state = self.await_client()?;
        }
        let port = match &self.state {
            State::Shared { port, .. } | State::Own { port, .. } | State::Open { port, .. } => *port,
            State::Closed => return Err("there is no port for datagrams".to_owned()),
        };
        outbox.say(Answer::Opened(Opened { port, token: self.token }));
        if let State::Open { source, .. } = &self.state {
            outbox.say(Answer::Ready(Ready { source: *source }));
        }
        Ok(())
    }

    fn await_client(&self) -> Result<State, String> {
        let since = clock::monotonic_now();
        if let Some(reflector) = self.reflector.as_ref().filter(|reflector| may_bind(reflector.port())) {
            let met = Arc::new(Mutex::new(None));
            let (seen, waker) = (Arc::clone(&met), Arc::clone(&self.waker));
            reflector.expect(self.short_token(), move |meeting| {
                lock(&seen).get_or_insert(meeting);
                waker.wake();
            });
            return Ok(State::Shared { met, since, port: reflector.port() });
        }
        let socket = self.bind(self.local, None).map_err(|error| error.to_string())?;
        let port = socket.local_addr().ok().and_then(|local| Port::new(local.port()));
        let _ = socket.set_nonblocking(true);
        Ok(State::Own { socket, since, port: port.ok_or("the kernel gave no port")? })
    }

    fn bind(&self, address: Option<IpAddr>, port: Option<Port>) -> linerate_sys::Result<UdpSocket> {
        let family = match address {
            Some(IpAddr::V4(_)) => Family::Ipv4,
            Some(IpAddr::V6(_)) => Family::Ipv6,
            None => self.options.family,
        };
        net::bind_udp(&UdpOptions {
            address,
            port,
            family,
            device: self.options.device.clone(),
            reuse_address: port.is_some(),
            ..UdpOptions::default()
        })
    }

    fn short_token(&self) -> ShortToken {
        let mut short = [0; 16];
        short.copy_from_slice(&self.token.as_bytes()[..16]);
        short
    }

    /// Looks whether the client has come; `own` says whether the own socket has something.
    pub(super) fn follow(&mut self, own: bool, outbox: &mut Outbox) {
        let late = self.deadline().is_some_and(|deadline| clock::monotonic_now() >= deadline);
        let opened = match &self.state {
            State::Shared { met, port, .. } => {
                let meeting = lock(met).take();
                meeting.map(|met| (self.connect_on(met, *port), met.source, *port))
            }
            State::Own { socket, port, .. } if own => self.look_for_token(socket).map(|source| {
                let connected = socket.try_clone().map_err(|cause| ProbeError::io("taking a socket over", &cause));
                (connected.and_then(|socket| connect(socket, source)), source, *port)
            }),
            _ => None,
        };
        match opened {
            Some((Ok(socket), source, port)) => {
                self.forget_token();
                self.state = State::Closed;
                match take_over(socket, source, port) {
                    Ok(state) => {
                        self.state = state;
                        outbox.say(Answer::Ready(Ready { source }));
                    }
                    Err(error) => refuse(outbox, &error),
                }
            }
            Some((Err(error), ..)) => {
                self.forget_token();
                self.state = State::Closed;
                refuse(outbox, &error);
            }
            None if late => {
                self.forget_token();
                self.state = State::Closed;
            }
            None => {}
        }
    }

    /// A socket on the reflector's port that takes the datagrams of this client, and its alone.
    fn connect_on(&self, met: Met, port: Port) -> Result<UdpSocket, ProbeError> {
        let address = met.destination.or(self.options.address);
        connect(self.bind(address, Some(port))?, met.source)
    }

    /// Reads what has come to the own socket; the source of a datagram with the token.
    fn look_for_token(&self, socket: &UdpSocket) -> Option<SocketAddr> {
        let mut buffer = [0; 2048];
        for _ in 0..64 {
            let (length, source) = socket.recv_from(&mut buffer).ok()?;
            let source = net::canonical(source);
            let padding = tlv::first_padding(&buffer[..length]);
            if padding.is_some_and(|padding| padding.starts_with(self.token.as_bytes())) {
                return Some(source);
            }
        }
        None
    }

    fn forget_token(&self) {
        if let (Some(reflector), State::Shared { .. }) = (&self.reflector, &self.state) {
            reflector.forget(&self.short_token());
        }
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.forget_token();
    }
}

/// Has the client's own socket reflect and carry streams.
fn take_over(socket: UdpSocket, source: SocketAddr, port: Port) -> Result<State, ProbeError> {
    let local = socket.local_addr().map_err(|cause| ProbeError::io("asking for a socket's address", &cause))?;
    let mark = Mark::of(&socket, None);
    let machine = Reflector::new(
        ReflectorOptions { rate_per_source: REFLECTED_PER_SECOND, ..ReflectorOptions::default() },
        clock_of_host(),
    );
    let destination = SocketAddr::new(net::canonical(local).ip(), port.get());
    let reflecting = Reflecting { machine: Mutex::new(machine), source, destination, mark };
    let datagrams = Datagrams::new(socket, Some(Arc::new(reflecting)))?;
    let receiving = datagrams.start()?;
    Ok(State::Open { datagrams, source, port, _receiving: receiving })
}

/// Ties a socket to its client. What others have sent to it before is thrown away.
fn connect(socket: UdpSocket, source: SocketAddr) -> Result<UdpSocket, ProbeError> {
    net::connect_bound_udp(&socket, source)?;
    let failed = |cause| ProbeError::io("preparing a socket", &cause);
    socket.set_nonblocking(true).map_err(failed)?;
    let mut buffer = [0; 2048];
    while socket.recv(&mut buffer).is_ok() {}
    Ok(socket)
}

fn refuse(outbox: &mut Outbox, error: &ProbeError) {
    let request = super::Request::Open(linerate_wire::probe::Empty {});
    outbox.say(Answer::Refused(super::refusal(&request, words(error))));
}

/// Whether this process may still bind a port that it has bound when it had more rights.
fn may_bind(port: Port) -> bool {
    if port.get() >= FIRST_FREE_PORT {
        return true;
    }
    // On an address that nobody uses, so that no datagram is taken from the reflector meanwhile.
    let trial = UdpOptions {
        address: Some(Ipv4Addr::new(127, 0, 0, 2).into()),
        port: Some(port),
        family: Family::Ipv4,
        reuse_address: true,
        ..UdpOptions::default()
    };
    net::bind_udp(&trial).is_ok()
}

/// Answers the client's round-trip probes; what has a number beyond theirs and is not expected is thrown away.
struct Reflecting {
    machine: Mutex<Reflector>,
    source: SocketAddr,
    destination: SocketAddr,
    mark: Mark,
}

impl Sink for Reflecting {
    fn take(&self, run: &Run<'_>, from: &Datagrams) {
        if !run.stream.is_reflected() {
            return;
        }
        let mut machine = lock(&self.machine);
        for datagram in run.bytes.chunks(run.datagram) {
            let received = Received {
                bytes: datagram,
                source: self.source,
                destination: self.destination,
                at: run.arrived.wall,
                method: match run.arrived.source {
                    StampSource::Hardware => TimestampMethod::Hardware,
                    StampSource::Kernel | StampSource::Program => TimestampMethod::Software,
                },
                ttl: run.hop_limit,
                type_of_service: run.type_of_service,
            };
            let Ok(mut answer) = machine.handle(run.arrived.monotonic, &received) else { continue };
            let mut mark = self.mark;
            mark.type_of_service = Some(answer.type_of_service());
            let bytes = machine.finish(&mut answer, from.clocks().now().wall);
            // A full buffer loses an answer, as any link on its way may.
            let _ = from.send(bytes, mark);
        }
    }
}
