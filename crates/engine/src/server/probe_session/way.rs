//! Datagram channel of a session: waits for the client's token, and has a socket connected to its source once that is
//! verified.
//!
//! A source address can be forged. The source of a token is therefore sent a challenge, no larger than the datagram that
//! it answers, and the channel opens when the challenge's random bytes come back from there (return routability, as in
//! RFC 9000 §8.2).

use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use linerate_model::address_family::AddressFamily;
use linerate_sys::clock;
use linerate_sys::data::train::DatagramMarking;
use linerate_sys::host;
use linerate_sys::net::{self, ListenOptions, SocketSettings, UdpOptions};
use linerate_sys::poll::Waker;
use linerate_sys::time_stamp::StampSource;
use linerate_units::{ByteCount, MonotonicTime, PacketCount, Port};
use linerate_wire::cookie::{SessionToken, TOKEN_LENGTH};
use linerate_wire::probe::{DatagramsReady, ProbeResponse, ReflectorOpened};
use linerate_wire::stamp::SenderPacket;
use linerate_wire::stamp::reflector::{ReceivedDatagram, ReflectorOptions, StampReflector};
use linerate_wire::stamp::tlv::{self, TimestampMethod};

use super::{AnswerOutbox, RequestOutcome, StreamRequest, error_text};
use crate::probe::datagrams::{DatagramRun, DatagramSink, DatagramSocket, ReceivingThread, SERVER_BATCH};
use crate::probe::{ProbeError, token_packet};
use crate::resources::{CHANNEL_MEMORY, MemoryLease, ResourceAccount};
use crate::server::ServerOptions;
use crate::server::reflector::{ReflectorHandle, TokenArrival, host_clock};
use crate::server::registry::lock;
use crate::server::session::SessionStart;
use crate::server_rate::RateAccount;

/// Time limit of a client to get a datagram through.
const OPENING_TIMEOUT: Duration = Duration::from_secs(60);

/// Most packets per second reflected for a client whose address is verified.
const MAX_REFLECTED_PER_SECOND: PacketCount = PacketCount::new(200_000);

/// First unprivileged port (`ip_unprivileged_port_start`, by default).
const FIRST_UNPRIVILEGED_PORT: u16 = 1024;

/// Part of the token by which the reflector recognises a datagram.
type ShortToken = [u8; 16];

pub(super) struct ReturnPath {
    options: Arc<ServerOptions>,
    reflector: Option<ReflectorHandle>,
    /// Local address at which the client reached this host.
    local: Option<IpAddr>,
    /// Number of the interface of that address, where it is a link-local one.
    scope: Option<NonZeroU32>,
    token: SessionToken,
    waker: Arc<Waker>,
    account: ResourceAccount,
    /// Memory of the channel, from the request to its end.
    memory: Option<MemoryLease>,
    state: ReturnPathState,
}

enum ReturnPathState {
    Closed,
    /// The shared reflector knows the token.
    Shared {
        met: Arc<Mutex<Option<TokenArrival>>>,
        since: MonotonicTime,
        port: Port,
    },
    /// A socket of the session's own waits for it, on its own port.
    Own {
        socket: UdpSocket,
        since: MonotonicTime,
        port: Port,
    },
    /// The token has come; its source has been sent a challenge.
    Challenged {
        socket: UdpSocket,
        source: SocketAddr,
        port: Port,
        since: MonotonicTime,
        challenge: SourceChallenge,
    },
    Open {
        datagrams: Arc<DatagramSocket>,
        source: SocketAddr,
        port: Port,
        _receiving: ReceivingThread,
    },
}

/// Random bytes that only a receiver at the challenged address can send back.
struct SourceChallenge {
    nonce: SessionToken,
    datagram: Vec<u8>,
}

impl SourceChallenge {
    fn new() -> Result<Self, ProbeError> {
        let mut entropy = [0; TOKEN_LENGTH];
        host::random_bytes(&mut entropy)?;
        let nonce = SessionToken::random(entropy);
        Ok(Self { nonce, datagram: token_packet(SenderPacket::default(), &nonce) })
    }

    /// Reads the waiting datagrams; returns true when one shows the nonce. Each that shows the token is answered by a
    /// challenge: the earlier one may be lost.
    fn is_met(&self, socket: &UdpSocket, token: &SessionToken) -> Result<bool, ProbeError> {
        let mut buffer = [0; 2048];
        for _ in 0..MAX_DATAGRAMS_AT_ONCE {
            let length = match socket.recv(&mut buffer) {
                Ok(length) => length,
                Err(cause) if cause.kind() == std::io::ErrorKind::WouldBlock => break,
                // An ICMP error: no socket there expects a challenge.
                Err(cause) => return Err(ProbeError::io("waiting for the answer to a challenge", &cause)),
            };
            match tlv::first_padding(&buffer[..length]) {
                Some(padding) if padding.starts_with(self.nonce.as_bytes()) => return Ok(true),
                Some(padding) if padding.starts_with(token.as_bytes()) => self.send(socket, length),
                _ => {}
            }
        }
        Ok(false)
    }

    /// Sends the challenge in answer to a datagram of `received` bytes, unless it would be larger.
    fn send(&self, socket: &UdpSocket, received: usize) {
        if received >= self.datagram.len() {
            // A lost challenge is repeated in answer to the client's next datagram.
            let _ = socket.send(&self.datagram);
        }
    }
}

/// Most datagrams read before other events are looked at.
const MAX_DATAGRAMS_AT_ONCE: usize = 64;

impl ReturnPath {
    pub(super) fn new(start: &SessionStart, token: SessionToken, waker: Arc<Waker>, account: ResourceAccount) -> Self {
        let local = start.control.stream().local_addr().ok().map(net::canonical);
        Self {
            options: Arc::clone(&start.options),
            reflector: start.registry.reflector().cloned(),
            local: local.map(|local| local.ip()),
            scope: local.and_then(net::scope_of),
            token,
            waker,
            account,
            memory: None,
            state: ReturnPathState::Closed,
        }
    }

    /// The channel, once the client's address is verified.
    pub(super) fn datagrams(&self) -> Option<&Arc<DatagramSocket>> {
        match &self.state {
            ReturnPathState::Open { datagrams, .. } => Some(datagrams),
            _ => None,
        }
    }

    /// Time of the client's last datagram.
    pub(super) fn heard(&self) -> Option<MonotonicTime> {
        self.datagrams()?.heard()
    }

    pub(super) fn dedicated_socket(&self) -> Option<&UdpSocket> {
        match &self.state {
            ReturnPathState::Own { socket, .. } | ReturnPathState::Challenged { socket, .. } => Some(socket),
            _ => None,
        }
    }

    pub(super) fn deadline(&self) -> Option<MonotonicTime> {
        match &self.state {
            ReturnPathState::Shared { since, .. }
            | ReturnPathState::Own { since, .. }
            | ReturnPathState::Challenged { since, .. } => Some(*since + OPENING_TIMEOUT),
            _ => None,
        }
    }

    /// Opens a channel and reports its port to the client. A repeated request changes nothing.
    pub(super) fn open(&mut self, outbox: &mut AnswerOutbox) -> RequestOutcome {
        if matches!(self.state, ReturnPathState::Closed) {
            self.memory = Some(self.account.lease(CHANNEL_MEMORY).map_err(|error| error.to_string())?);
            self.state = self.await_client()?;
        }
        let port = match &self.state {
            ReturnPathState::Shared { port, .. }
            | ReturnPathState::Own { port, .. }
            | ReturnPathState::Challenged { port, .. }
            | ReturnPathState::Open { port, .. } => *port,
            ReturnPathState::Closed => return Err("there is no port for datagrams".to_owned()),
        };
        outbox.say(ProbeResponse::Opened(ReflectorOpened { port, token: self.token }));
        if let ReturnPathState::Open { source, .. } = &self.state {
            outbox.say(ProbeResponse::Ready(DatagramsReady { source: *source }));
        }
        Ok(())
    }

    fn await_client(&self) -> Result<ReturnPathState, String> {
        let since = clock::monotonic_now();
        if let Some(reflector) = self.reflector.as_ref().filter(|reflector| may_bind(reflector.port())) {
            let met = Arc::new(Mutex::new(None));
            let (seen, waker) = (Arc::clone(&met), Arc::clone(&self.waker));
            reflector.expect(self.short_token(), move |meeting| {
                lock(&seen).get_or_insert(meeting);
                waker.wake();
            });
            return Ok(ReturnPathState::Shared { met, since, port: reflector.port() });
        }
        let socket = self.bind_own().map_err(|error| error.to_string())?;
        let port = socket.local_addr().ok().and_then(|local| Port::new(local.port()));
        let _ = socket.set_nonblocking(true);
        Ok(ReturnPathState::Own { socket, since, port: port.ok_or("the kernel gave no port")? })
    }

    /// Socket on a port of its own, at the address that the client reached.
    pub(super) fn bind_own(&self) -> linerate_sys::Result<UdpSocket> {
        self.bind(self.local, self.scope, None)
    }

    /// Listener on a port of its own, at the address that the client reached.
    pub(super) fn listen_own(&self) -> linerate_sys::Result<TcpListener> {
        let listening = net::listen_tcp(&ListenOptions {
            address: self.local,
            scope: self.scope,
            family: self.local.map(AddressFamily::of).or(self.options.family),
            device: self.options.device.clone(),
            settings: SocketSettings { no_delay: true, ..SocketSettings::default() },
            ..ListenOptions::default()
        });
        Ok(listening?.listener)
    }

    fn bind(
        &self,
        address: Option<IpAddr>,
        scope: Option<NonZeroU32>,
        port: Option<Port>,
    ) -> linerate_sys::Result<UdpSocket> {
        let family = address.map(AddressFamily::of).or(self.options.family);
        net::bind_udp(&UdpOptions {
            address,
            scope,
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

    /// Checks for the client's token and its answer to the challenge; `own` is true when the own socket is readable.
    pub(super) fn follow(&mut self, own: bool, outbox: &mut AnswerOutbox) {
        let late = self.deadline().is_some_and(|deadline| clock::monotonic_now() >= deadline);
        let next = match &self.state {
            ReturnPathState::Shared { met, since, port } => {
                let meeting = lock(met).take();
                meeting
                    .map(|met| self.connect_on(met, *port).and_then(|socket| challenged(socket, &met, *port, *since)))
            }
            ReturnPathState::Own { socket, since, port } if own => self.receive_token(socket).map(|met| {
                let taken = socket.try_clone().map_err(|cause| ProbeError::io("taking a socket over", &cause));
                taken
                    .and_then(|socket| connect(socket, met.source))
                    .and_then(|socket| challenged(socket, &met, *port, *since))
            }),
            ReturnPathState::Challenged { socket, source, port, challenge, .. } if own => {
                let opened = challenge.is_met(socket, &self.token).and_then(|is_met| {
                    let taken = || socket.try_clone().map_err(|cause| ProbeError::io("taking a socket over", &cause));
                    is_met
                        .then(|| taken().and_then(|socket| open_channel(socket, *source, *port, self.account.rate())))
                        .transpose()
                });
                opened.transpose()
            }
            _ => None,
        };
        match next {
            Some(Ok(state)) => {
                self.forget_token();
                if let ReturnPathState::Open { source, .. } = &state {
                    outbox.say(ProbeResponse::Ready(DatagramsReady { source: *source }));
                }
                self.state = state;
            }
            Some(Err(error)) => {
                self.close();
                refuse(outbox, &error);
            }
            None if late => self.close(),
            None => {}
        }
    }

    fn close(&mut self) {
        self.forget_token();
        self.state = ReturnPathState::Closed;
        self.memory = None;
    }

    /// A socket on the reflector's port that receives the datagrams of this client only.
    fn connect_on(&self, met: TokenArrival, port: Port) -> Result<UdpSocket, ProbeError> {
        let address = met.destination.or(self.options.address);
        let scope = net::scope_of(met.source).or(self.scope);
        connect(self.bind(address, scope, Some(port))?, met.source)
    }

    /// Reads the datagrams of the own socket; returns the arrival of one with the token.
    fn receive_token(&self, socket: &UdpSocket) -> Option<TokenArrival> {
        let mut buffer = [0; 2048];
        for _ in 0..MAX_DATAGRAMS_AT_ONCE {
            let (length, source) = socket.recv_from(&mut buffer).ok()?;
            let source = net::canonical(source);
            let padding = tlv::first_padding(&buffer[..length]);
            if padding.is_some_and(|padding| padding.starts_with(self.token.as_bytes())) {
                return Some(TokenArrival { source, destination: None, length });
            }
        }
        None
    }

    fn forget_token(&self) {
        if let (Some(reflector), ReturnPathState::Shared { .. }) = (&self.reflector, &self.state) {
            reflector.forget(&self.short_token());
        }
    }
}

impl Drop for ReturnPath {
    fn drop(&mut self) {
        self.forget_token();
    }
}

/// Sends the first challenge from a socket that is connected to the token's source.
fn challenged(
    socket: UdpSocket,
    met: &TokenArrival,
    port: Port,
    since: MonotonicTime,
) -> Result<ReturnPathState, ProbeError> {
    let challenge = SourceChallenge::new()?;
    challenge.send(&socket, met.length);
    Ok(ReturnPathState::Challenged { socket, source: met.source, port, since, challenge })
}

/// Makes the client's own socket reflect probes and carry streams.
fn open_channel(
    socket: UdpSocket,
    source: SocketAddr,
    port: Port,
    rate: Option<RateAccount>,
) -> Result<ReturnPathState, ProbeError> {
    let local = socket.local_addr().map_err(|cause| ProbeError::io("asking for a socket's address", &cause))?;
    let mark = DatagramMarking::of(&socket, None);
    let machine = StampReflector::new(
        ReflectorOptions { rate_per_source: MAX_REFLECTED_PER_SECOND, ..ReflectorOptions::default() },
        host_clock(),
    );
    let destination = SocketAddr::new(net::canonical(local).ip(), port.get());
    let reflecting = ReflectingSink { machine: Mutex::new(machine), source, destination, mark, rate };
    let datagrams = DatagramSocket::new(socket, Some(Arc::new(reflecting)))?;
    let receiving = datagrams.start(SERVER_BATCH)?;
    Ok(ReturnPathState::Open { datagrams, source, port, _receiving: receiving })
}

/// Connects a socket to its client. Earlier datagrams from other sources are discarded.
fn connect(socket: UdpSocket, source: SocketAddr) -> Result<UdpSocket, ProbeError> {
    net::connect_bound_udp(&socket, source)?;
    let failed = |cause| ProbeError::io("preparing a socket", &cause);
    socket.set_nonblocking(true).map_err(failed)?;
    let mut buffer = [0; 2048];
    while socket.recv(&mut buffer).is_ok() {}
    Ok(socket)
}

fn refuse(outbox: &mut AnswerOutbox, error: &ProbeError) {
    let request = StreamRequest::Open(linerate_wire::probe::EmptyContent {});
    outbox.say(ProbeResponse::Refused(super::refusal(&request, error_text(error))));
}

/// Returns `true` when this process may still bind a port that it has bound with more privileges.
fn may_bind(port: Port) -> bool {
    if port.get() >= FIRST_UNPRIVILEGED_PORT {
        return true;
    }
    // On an address that is not in use, so that no datagram is diverted from the reflector meanwhile.
    let trial = UdpOptions {
        address: Some(Ipv4Addr::new(127, 0, 0, 2).into()),
        port: Some(port),
        family: Some(AddressFamily::Ipv4),
        reuse_address: true,
        ..UdpOptions::default()
    };
    net::bind_udp(&trial).is_ok()
}

/// Answers the client's round-trip probes; unexpected datagrams with higher numbers are discarded.
struct ReflectingSink {
    machine: Mutex<StampReflector>,
    source: SocketAddr,
    destination: SocketAddr,
    mark: DatagramMarking,
    /// Rate of the server, which the answers share.
    rate: Option<RateAccount>,
}

impl DatagramSink for ReflectingSink {
    fn take(&self, run: &DatagramRun<'_>, from: &DatagramSocket) {
        if !run.stream.is_reflected() {
            return;
        }
        let mut machine = lock(&self.machine);
        for datagram in run.bytes.chunks(run.datagram) {
            let received = ReceivedDatagram {
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
            let size = ByteCount::from_usize(answer.bytes().len());
            if self.rate.as_ref().is_some_and(|rate| !rate.admits_reply(size, run.arrived.monotonic)) {
                continue;
            }
            let bytes = machine.finish(&mut answer, from.clocks().now().wall);
            // A full buffer loses an answer, as any link may.
            let _ = from.send(bytes, mark);
        }
    }
}
