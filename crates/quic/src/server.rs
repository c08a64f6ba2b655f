//! The endpoint of a server: one UDP port and one thread for the QUIC connections of all sessions.

use core::time::Duration;
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use linerate_engine::server::{QuicGrant, QuicService, QuicSession, QuicSessionRequest, ServiceLease, ServiceShare};
use linerate_sys::net::UdpOptions;
use linerate_sys::{clock, host};
use linerate_units::{ByteCount, Port};
use linerate_wire::cookie::{SessionToken, TOKEN_LENGTH};
use linerate_wire::quic::{ConnectionTag, QuicOrder, QuicReady};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Connection, Endpoint, EndpointConfig, Incoming, TokioRuntime, VarInt};
use tokio::sync::oneshot;

use crate::connection::ServedConnection;
use crate::error::QuicError;
use crate::exchange::ServedExchange;
use crate::key::ServerKey;
use crate::numbers::UsedNumbers;
use crate::socket::{self, CountingSocket};
use crate::transport::{self, MAX_PAYLOAD, WINDOW};

/// Most connections of a session at once: a transfer or a flow, and what the network still has of earlier ones.
const MAX_SESSION_CONNECTIONS: usize = 4;

/// Incomplete handshakes from which on a client has to confirm its address before another (RFC 9000 section 8.1.2).
const MAX_UNVALIDATED: usize = 64;

/// Time for the packets that close connections to leave when an endpoint ends.
const CLOSING_TIME: Duration = Duration::from_millis(20);

/// Memory of a handshake with its connection, which remains for three timeouts after its end (RFC 9000 section 10.2).
const HANDSHAKE_MEMORY: ByteCount = ByteCount::from_kibibytes(64);

/// Memory of a request on a stream of its own, with its task.
const STREAM_MEMORY: ByteCount = ByteCount::from_kibibytes(2);

/// Smallest windows with which a session is served.
const MIN_WINDOW: ByteCount = ByteCount::from_mebibytes(1);

/// Payload in flight for each byte that is known of it: of 1200 bytes at a sender 200, and of a receiver's gaps 10 MiB in all.
const PAYLOAD_PER_FACT: u64 = 4;

/// Options of a [`QuicServer`].
#[derive(Clone, Debug, Default)]
pub struct QuicServerOptions {
    /// Address, port and interface of the UDP socket; without a port the kernel chooses.
    pub udp: UdpOptions,
}

/// QUIC service of a server. Its endpoint starts with the first session, and ends with this value.
#[derive(Debug)]
pub struct QuicServer {
    options: QuicServerOptions,
    /// Socket that was bound before the process gave up its privileges.
    bound: Mutex<Option<UdpSocket>>,
    running: Mutex<Option<Arc<RunningEndpoint>>>,
}

impl QuicServer {
    /// A service on these addresses. A given port is bound at once.
    ///
    /// # Errors
    ///
    /// The port is in use, or needs privileges.
    pub fn new(options: QuicServerOptions) -> Result<Self, QuicError> {
        let bound = options.udp.port.map(|_| socket::bind(&options.udp)).transpose()?;
        Ok(Self { options, bound: Mutex::new(bound), running: Mutex::default() })
    }

    /// The endpoint, which is started if there is none.
    fn endpoint(&self) -> Result<Arc<RunningEndpoint>, QuicError> {
        let mut running = lock(&self.running);
        if let Some(endpoint) = &*running {
            return Ok(Arc::clone(endpoint));
        }
        let bound = lock(&self.bound).take();
        let socket = bound.map_or_else(|| socket::bind(&self.options.udp), Ok)?;
        let endpoint = Arc::new(RunningEndpoint::start(socket)?);
        *running = Some(Arc::clone(&endpoint));
        Ok(endpoint)
    }

    /// An endpoint for one session.
    fn own_endpoint(&self) -> Result<Arc<RunningEndpoint>, QuicError> {
        Ok(Arc::new(RunningEndpoint::start(socket::bind(&self.options.udp)?)?))
    }
}

impl QuicService for QuicServer {
    fn open(&self, request: QuicSessionRequest) -> Result<QuicGrant, String> {
        let served = request.exchange.map(ServedExchange::new).transpose().map_err(|error| error.to_string())?;
        let granted = match &served {
            Some(served) => exchange_windows(&request.share, served),
            None => windows(&request.share),
        };
        let (window, memory) =
            granted.ok_or("the server has no memory left for QUIC connections: try again when it has fewer clients")?;
        // A thread of its own has its own processor time; a given port is for all.
        let is_alone = served.is_some() && self.options.udp.port.is_none();
        let endpoint = if is_alone { self.own_endpoint() } else { self.endpoint() };
        let endpoint = endpoint.map_err(|error| error.to_string())?;
        let (mut tag, mut token) = ([0; 16], [0; TOKEN_LENGTH]);
        host::random_bytes(&mut tag)
            .and_then(|()| host::random_bytes(&mut token))
            .map_err(|cause| cause.to_string())?;
        let (tag, token) = (ConnectionTag::random(tag), SessionToken::random(token));
        let flows = served.as_ref().map_or(1, |served| served.exchange.flows);
        let entry = Arc::new(SessionEntry {
            order: request.order,
            token,
            share: request.share,
            window,
            exchange: served,
            limit: MAX_SESSION_CONNECTIONS * usize::try_from(flows).unwrap_or(1),
            configuration: OnceLock::new(),
            active: AtomicUsize::new(0),
            state: Mutex::default(),
            _memory: memory,
        });
        lock(&endpoint.sessions).insert(tag, Arc::clone(&entry));
        let ready = QuicReady { port: endpoint.port, key: endpoint.key, tag, token };
        Ok(QuicGrant { ready, session: Box::new(GrantedSession { tag, entry, endpoint, is_alone }) })
    }
}

/// Largest windows for which the server has memory.
fn windows(share: &ServiceShare) -> Option<(ByteCount, ServiceLease)> {
    let is_read_at_once = share.traffic_share().is_none();
    let mut window = WINDOW;
    while window >= MIN_WINDOW {
        if let Some(lease) = share.lease(memory_of(window, is_read_at_once), 0) {
            return Some((window, lease));
        }
        window = ByteCount::new(window.get() / 2);
    }
    None
}

/// Windows of connections for messages, of as many as the client has flows.
fn exchange_windows(share: &ServiceShare, served: &ServedExchange) -> Option<(ByteCount, ServiceLease)> {
    let window = transport::exchange_window(served.exchange.request);
    let streams = STREAM_MEMORY * u64::from(served.max_streams() - 1);
    let memory = (window + HANDSHAKE_MEMORY + streams) * u64::from(served.exchange.flows);
    share.lease(memory, 1).map(|lease| (window, lease))
}

/// Most memory of a connection with such windows. Payload that is read as it comes, in any order, is not kept, and what is sent has
/// the same bytes each time: there are the facts about each packet that is not acknowledged, and about each gap. A reader
/// that waits for its share of a rate leaves a window unread.
fn memory_of(window: ByteCount, is_read_at_once: bool) -> ByteCount {
    if is_read_at_once { ByteCount::new(window.get() / PAYLOAD_PER_FACT) } else { window }
}

/// Session whose connections an endpoint expects.
#[derive(Debug)]
pub(crate) struct SessionEntry {
    pub(crate) order: QuicOrder,
    pub(crate) token: SessionToken,
    pub(crate) share: ServiceShare,
    /// Windows of a transfer.
    pub(crate) window: ByteCount,
    /// Message that each connection answers; `None` for requests that name theirs.
    pub(crate) exchange: Option<ServedExchange>,
    /// Most connections at once.
    limit: usize,
    /// Settings of the connections, which depend on the route to the client.
    configuration: OnceLock<Arc<quinn::ServerConfig>>,
    /// Number of running transfers.
    pub(crate) active: AtomicUsize,
    state: Mutex<SessionConnections>,
    _memory: ServiceLease,
}

/// Connections of a session.
#[derive(Debug, Default)]
struct SessionConnections {
    /// Numbers of earlier ones: each is admitted once.
    used: UsedNumbers,
    open: Vec<Connection>,
    /// True once the session is over.
    is_over: bool,
}

impl SessionEntry {
    /// True when a connection with this number may begin: none had it.
    fn is_expected(&self, number: u32) -> bool {
        let mut state = lock(&self.state);
        state.open.retain(|connection| connection.close_reason().is_none());
        state.used.is_new(number) && !state.is_over && state.open.len() < self.limit
    }

    fn mark_used(&self, number: u32) {
        lock(&self.state).used.mark(number);
    }

    /// Settings of connections from `peer`.
    fn configuration(
        &self,
        usual: &quinn::ServerConfig,
        fresh: &Arc<QuicServerConfig>,
        peer: SocketAddr,
    ) -> Arc<quinn::ServerConfig> {
        let new = || {
            let mut configuration = usual.clone();
            if self.exchange.is_some() {
                configuration.crypto = Arc::<QuicServerConfig>::clone(fresh);
                let streams = self.exchange.as_ref().map_or(1, ServedExchange::max_streams);
                configuration.transport_config(transport::exchange_transport(self.window, streams));
            } else {
                let control = self.order.congestion_control;
                configuration.transport_config(transport::transport(control, peer, self.window));
            }
            Arc::new(configuration)
        };
        Arc::clone(self.configuration.get_or_init(new))
    }

    /// Keeps the connection until the session ends.
    fn enter(&self, connection: &Connection) {
        let mut state = lock(&self.state);
        if state.is_over {
            connection.close(VarInt::from_u32(0), b"");
        } else {
            state.open.push(connection.clone());
        }
    }
}

/// Session of a client; its connections end with it.
#[derive(Debug)]
struct GrantedSession {
    tag: ConnectionTag,
    entry: Arc<SessionEntry>,
    endpoint: Arc<RunningEndpoint>,
    /// True when the endpoint is for this session only.
    is_alone: bool,
}

impl QuicSession for GrantedSession {
    fn is_active(&self) -> bool {
        self.entry.active.load(Ordering::Relaxed) > 0
    }

    fn end(self: Box<Self>) -> Option<Duration> {
        let endpoint = self.is_alone.then(|| Arc::clone(&self.endpoint));
        drop(self);
        Arc::into_inner(endpoint?)?.finish()
    }
}

impl Drop for GrantedSession {
    fn drop(&mut self) {
        lock(&self.endpoint.sessions).remove(&self.tag);
        let mut state = lock(&self.entry.state);
        state.is_over = true;
        for connection in state.open.drain(..) {
            connection.close(VarInt::from_u32(0), b"the session is over, or has used its time (--server-max-duration)");
        }
    }
}

type Sessions = Arc<Mutex<HashMap<ConnectionTag, Arc<SessionEntry>>>>;

/// Endpoint on a thread of its own.
#[derive(Debug)]
struct RunningEndpoint {
    port: Port,
    key: linerate_wire::key_pin::KeyPin,
    sessions: Sessions,
    /// Ends the thread when it is dropped.
    running: oneshot::Sender<()>,
    /// Returns its processor time.
    thread: JoinHandle<Duration>,
}

impl RunningEndpoint {
    fn start(socket: UdpSocket) -> Result<Self, QuicError> {
        let failed = |cause: std::io::Error| QuicError::io("starting the QUIC endpoint", &cause);
        let port = socket.local_addr().map_err(failed)?.port();
        let port = Port::new(port).ok_or_else(|| QuicError::System("the QUIC socket has no port".to_owned()))?;
        let key = ServerKey::generate()?;
        let hash = key.pin;
        let sessions = Sessions::default();
        let (running, stop) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let acceptor = EndpointAcceptor::new(&runtime, socket, key, Arc::clone(&sessions))?;
        let thread = std::thread::Builder::new().name("quic".to_owned());
        let thread = thread
            .spawn(move || {
                runtime.block_on(async move {
                    tokio::select! {
                        () = acceptor.run() => {}
                        _ = stop => {}
                    }
                    // The packets that close connections leave first.
                    let _ = tokio::time::timeout(CLOSING_TIME, acceptor.endpoint.wait_idle()).await;
                });
                clock::thread_cpu_time()
            })
            .map_err(failed)?;
        Ok(Self { port, key: hash, sessions, running, thread })
    }

    /// Ends the thread; returns its processor time.
    fn finish(self) -> Option<Duration> {
        drop(self.running);
        self.thread.join().ok()
    }
}

/// Acceptor of connections that sessions expect.
struct EndpointAcceptor {
    endpoint: Endpoint,
    socket: Arc<CountingSocket>,
    configuration: quinn::ServerConfig,
    /// TLS without tickets.
    fresh: Arc<QuicServerConfig>,
    sessions: Sessions,
}

impl EndpointAcceptor {
    fn new(
        runtime: &tokio::runtime::Runtime,
        socket: UdpSocket,
        key: ServerKey,
        sessions: Sessions,
    ) -> Result<Self, QuicError> {
        let _context = runtime.enter();
        let socket = CountingSocket::new(socket)?;
        let fresh = key.fresh;
        let mut configuration = quinn::ServerConfig::with_crypto(key.configuration);
        // A measurement is of one path: packets from another address are not taken for the client's.
        configuration.migration(false);
        let endpoint = Endpoint::new_with_abstract_socket(
            endpoint_configuration(),
            Some(configuration.clone()),
            Arc::<CountingSocket>::clone(&socket),
            Arc::new(TokioRuntime),
        );
        let endpoint = endpoint.map_err(|cause| QuicError::io("starting the QUIC endpoint", &cause))?;
        Ok(Self { endpoint, socket, configuration, fresh, sessions })
    }

    async fn run(&self) {
        while let Some(incoming) = self.endpoint.accept().await {
            self.admit(incoming);
        }
    }

    /// Accepts a connection that a session expects; packets of others are not answered.
    fn admit(&self, incoming: Incoming) {
        let identifier = incoming.orig_dst_cid();
        let session = ConnectionTag::parse(&identifier).and_then(|(tag, number)| {
            let session = lock(&self.sessions).get(&tag).cloned()?;
            session.is_expected(number).then_some((session, number))
        });
        let Some((session, number)) = session else { return incoming.ignore() };
        if !incoming.remote_address_validated() && self.socket.unvalidated_addresses() >= MAX_UNVALIDATED {
            // A client that cannot be asked to return has done so already.
            let _ = incoming.retry();
            return;
        }
        self.accept(incoming, session, number);
    }

    fn accept(&self, incoming: Incoming, session: Arc<SessionEntry>, number: u32) {
        let peer = incoming.remote_address();
        let configuration = session.configuration(&self.configuration, &self.fresh, peer);
        let budget = (!incoming.remote_address_validated()).then(|| self.socket.limit_unvalidated(peer));
        // A damaged packet takes nothing from the client whose identifier it has.
        let Ok(connecting) = incoming.accept_with(configuration) else { return };
        session.mark_used(number);
        // A server always can send before the handshake is complete.
        let Ok((connection, confirmed)) = connecting.into_0rtt() else { return };
        session.enter(&connection);
        let (socket, endpoint) = (Arc::clone(&self.socket), self.endpoint.clone());
        let confirmed = Some(tokio::spawn(async move {
            confirmed.await;
            drop(budget);
        }));
        tokio::spawn(ServedConnection { connection, confirmed, session, socket, endpoint }.serve());
    }
}

/// Configuration of an endpoint that receives datagrams of any size.
pub(crate) fn endpoint_configuration() -> EndpointConfig {
    let mut configuration = EndpointConfig::default();
    // The value is within the permitted range.
    let _ = configuration.max_udp_payload_size(MAX_PAYLOAD);
    configuration
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
