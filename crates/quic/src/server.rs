//! The endpoint of a server: one UDP port and one thread for the QUIC connections of all sessions.

use std::collections::HashMap;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_engine::server::{QuicGrant, QuicService, QuicSession, QuicSessionRequest, ServiceLease, ServiceShare};
use linerate_sys::host;
use linerate_sys::net::UdpOptions;
use linerate_units::{ByteCount, Port};
use linerate_wire::cookie::{SessionToken, TOKEN_LENGTH};
use linerate_wire::quic::{ConnectionTag, QuicOrder, QuicReady};
use quinn::{Connection, Endpoint, EndpointConfig, Incoming, TokioRuntime, VarInt};
use tokio::sync::oneshot;

use crate::connection::ServedConnection;
use crate::error::QuicError;
use crate::key::ServerKey;
use crate::socket::{self, CountingSocket};
use crate::transport::{self, MAX_PAYLOAD, WINDOW};

/// Most connections of a session at once: a transfer, and what the network still has of earlier ones.
const MAX_SESSION_CONNECTIONS: usize = 4;

/// Open connections from which on a client has to confirm its address before a handshake (RFC 9000 section 8.1.2).
const MAX_UNVALIDATED: usize = 64;

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
}

impl QuicService for QuicServer {
    fn open(&self, request: QuicSessionRequest) -> Result<QuicGrant, String> {
        let endpoint = self.endpoint().map_err(|error| error.to_string())?;
        let (window, memory) = windows(&request.share)
            .ok_or("the server has no memory left for QUIC connections: try again when it has fewer clients")?;
        let (mut tag, mut token) = ([0; 16], [0; TOKEN_LENGTH]);
        host::random_bytes(&mut tag)
            .and_then(|()| host::random_bytes(&mut token))
            .map_err(|cause| cause.to_string())?;
        let (tag, token) = (ConnectionTag::random(tag), SessionToken::random(token));
        let entry = Arc::new(SessionEntry {
            order: request.order,
            token,
            share: request.share,
            window,
            active: AtomicUsize::new(0),
            state: Mutex::default(),
            _memory: memory,
        });
        lock(&endpoint.sessions).insert(tag, Arc::clone(&entry));
        let ready = QuicReady { port: endpoint.port, key: endpoint.key, tag, token };
        Ok(QuicGrant { ready, session: Box::new(GrantedSession { tag, entry, endpoint }) })
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
    /// Number of running transfers.
    pub(crate) active: AtomicUsize,
    state: Mutex<SessionConnections>,
    _memory: ServiceLease,
}

/// Connections of a session.
#[derive(Debug, Default)]
struct SessionConnections {
    /// Number of the latest one: each is admitted once.
    last: Option<u32>,
    open: Vec<Connection>,
    /// True once the session is over.
    is_over: bool,
}

impl SessionEntry {
    /// True when a connection with this number may begin: none had it, or a later one.
    fn is_expected(&self, number: u32) -> bool {
        let mut state = lock(&self.state);
        state.open.retain(|connection| connection.close_reason().is_none());
        let is_new = state.last.is_none_or(|last| number > last);
        is_new && !state.is_over && state.open.len() < MAX_SESSION_CONNECTIONS
    }

    fn mark_used(&self, number: u32) {
        lock(&self.state).last = Some(number);
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
}

impl QuicSession for GrantedSession {
    fn is_active(&self) -> bool {
        self.entry.active.load(Ordering::Relaxed) > 0
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
    _running: oneshot::Sender<()>,
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
        thread
            .spawn(move || {
                runtime.block_on(async move {
                    tokio::select! {
                        () = acceptor.run() => {}
                        _ = stop => {}
                    }
                });
            })
            .map_err(failed)?;
        Ok(Self { port, key: hash, sessions, _running: running })
    }
}

/// Acceptor of connections that sessions expect.
struct EndpointAcceptor {
    endpoint: Endpoint,
    socket: Arc<CountingSocket>,
    configuration: quinn::ServerConfig,
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
        Ok(Self { endpoint, socket, configuration, sessions })
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
        if !incoming.remote_address_validated() && self.endpoint.open_connections() >= MAX_UNVALIDATED {
            // A client that cannot be asked to return has done so already.
            let _ = incoming.retry();
            return;
        }
        self.accept(incoming, session, number);
    }

    fn accept(&self, incoming: Incoming, session: Arc<SessionEntry>, number: u32) {
        let mut configuration = self.configuration.clone();
        let peer = incoming.remote_address();
        let (control, window) = (session.order.congestion_control, session.window);
        configuration.transport_config(transport::transport(control, peer.ip(), window));
        let budget = (!incoming.remote_address_validated()).then(|| self.socket.limit_unvalidated(peer));
        // A damaged packet takes nothing from the client whose identifier it has.
        let Ok(connecting) = incoming.accept_with(Arc::new(configuration)) else { return };
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
