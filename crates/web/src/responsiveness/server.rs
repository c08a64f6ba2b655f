//! The listening socket of a responsiveness server, and the thread that serves its connections.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use linerate_engine::server::{HandshakeQuota, ServiceAccess, ServiceLease};
use linerate_engine::tls::{KeyPin, ServerIdentity, https};
use linerate_model::address_family::AddressFamily;
use linerate_sys::net::ListenOptions;
use linerate_sys::{clock, host, options, process};
use linerate_units::{ByteCount, Port};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::service::{CONFIGURATIONS, ResponsivenessService};
use super::stream_io::{StreamIo, TaskExecutor};
use crate::acceptor::{self, Acceptor};
use crate::connection::{Connection, SocketIo};
use crate::connection_table::{ConnectionSlot, ConnectionTable};
use crate::sampling::SAMPLING_INTERVAL;
use crate::server::{RunningWebService, first};
use crate::session_table::SessionTable;

/// Protocols in the order of preference (ALPN).
const PROTOCOLS: [&[u8]; 2] = [HTTP2, b"http/1.1"];
pub(super) const HTTP2: &[u8] = b"h2";

/// Memory of a connection that waits for a request: buffers of TLS and HTTP/2.
const CONNECTION_MEMORY: ByteCount = ByteCount::from_kibibytes(96);

/// Bytes that a client may send before they are discarded, per request and connection: a server with a limited rate holds them.
const WINDOW: u32 = 4 << 20;
const PACED_WINDOW: u32 = 128 << 10;

/// Most requests at once on a connection.
const MAX_STREAMS: u32 = 128;

/// Largest header of a request.
const MAX_HEADER: u32 = 16 << 10;

/// Bytes of an answer that wait for their turn on the connection.
const SEND_BUFFER: usize = 64 << 10;

/// Unsent bytes in the kernel before the rate is known.
const FIRST_UNSENT: ByteCount = ByteCount::from_kibibytes(16);

/// Options of a responsiveness server.
#[derive(Clone, Debug)]
pub struct ResponsivenessOptions {
    /// Address to listen on; `None` for all.
    pub address: Option<IpAddr>,
    /// Port; `None` lets the kernel choose.
    pub port: Option<Port>,
    /// Address families.
    pub family: Option<AddressFamily>,
    /// Interface to listen on only.
    pub device: Option<String>,
    /// Certificate, or key of which a certificate is made.
    pub identity: ServerIdentity,
}

/// The responsiveness server could not start.
#[derive(Debug, thiserror::Error)]
#[error("unable to start the responsiveness server on port {port}: {cause}")]
pub struct ResponsivenessServerError {
    port: u16,
    cause: String,
}

/// A bound responsiveness server that does not answer yet.
#[derive(Debug)]
pub struct BoundResponsivenessService {
    listener: TcpListener,
    address: SocketAddr,
    tls: Arc<ServerConfig>,
    pin: KeyPin,
}

impl BoundResponsivenessService {
    /// Starts to listen.
    ///
    /// # Errors
    ///
    /// The port is in use, or the certificate unusable.
    pub fn bind(options: ResponsivenessOptions) -> Result<Self, ResponsivenessServerError> {
        let port = options.port.map_or(0, Port::get);
        let failed = |cause: String| ResponsivenessServerError { port, cause };
        let tls = https::server(&options.identity, &PROTOCOLS);
        let (tls, pin) = tls.map_err(|cause| failed(cause.to_string()))?;
        let listen = ListenOptions {
            address: options.address,
            port: options.port,
            family: options.family,
            device: options.device,
            ..ListenOptions::default()
        };
        let (listener, address) = acceptor::listen(&listen).map_err(failed)?;
        Ok(Self { listener, address, tls, pin })
    }

    /// Listening address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Pin of the server's key.
    #[must_use]
    pub fn pin(&self) -> KeyPin {
        self.pin
    }

    /// Path of the configuration.
    #[must_use]
    pub fn path(&self) -> &'static str {
        CONFIGURATIONS[0]
    }

    /// Serves on a thread of its own; `report` receives the reason of an early end.
    ///
    /// # Errors
    ///
    /// The thread or its runtime cannot be started.
    pub fn start(
        self,
        access: ServiceAccess,
        report: impl Fn(&str) + Send + 'static,
    ) -> Result<RunningWebService, ResponsivenessServerError> {
        let port = self.address.port();
        let service = move |stop: Arc<Notify>| async move {
            if let Err(cause) = serve(self, access, &stop).await {
                report(&format!("the responsiveness server has ended: {}", linerate_sys::describe_os_error(&cause)));
            }
        };
        RunningWebService::spawn("responsiveness", service)
            .map_err(|cause| ResponsivenessServerError { port, cause: linerate_sys::describe_os_error(&cause) })
    }
}

async fn serve(bound: BoundResponsivenessService, access: ServiceAccess, stop: &Notify) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(bound.listener)?;
    let table = ConnectionTable::new(process::open_file_limit(), access.stall_timeout(), true);
    let service = Arc::new(ResponsivenessService {
        access: access.clone(),
        sessions: SessionTable::default(),
        handshakes: HandshakeQuota::default(),
        authority: format!("{}:{}", host::host_name(), bound.address.port()),
    });
    let (attended, tls) = (Arc::clone(&service), TlsAcceptor::from(bound.tls));
    let acceptor = Acceptor {
        listener,
        table: Arc::clone(&table),
        access,
        memory: CONNECTION_MEMORY,
        busy: &[],
        attend: move |connection, lease, slot| attend(Arc::clone(&attended), tls.clone(), connection, (lease, slot)),
    };
    let watched = async {
        loop {
            sleep(SAMPLING_INTERVAL).await;
            let now = clock::monotonic_now();
            service.sessions.tick(now);
            table.sweep(now);
            table.adjust_send_buffers(SAMPLING_INTERVAL);
        }
    };
    first(stop.notified(), first(acceptor.run(), watched)).await;
    Ok(())
}

/// Serves one connection to its end.
async fn attend(
    service: Arc<ResponsivenessService>,
    tls: TlsAcceptor,
    connection: Arc<Connection>,
    _held: (ServiceLease, ConnectionSlot),
) {
    // Without the option, the delay of this host's buffer is in the measurement.
    let _ = options::set_not_sent_low_water(&*connection, FIRST_UNSENT);
    let served = async {
        while let Some(wait) = service.handshakes.delay(connection.peer.ip()) {
            sleep(wait).await;
        }
        // A client that breaks a protocol, or goes away, concerns no one else.
        let Ok(stream) = tls.accept(SocketIo(Arc::clone(&connection))).await else { return };
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
        let window = if service.access.max_total_rate().is_some() { PACED_WINDOW } else { WINDOW };
        let (io, of_requests) = (StreamIo::new(stream, Arc::clone(&connection)), Arc::clone(&connection));
        let answer = service_fn(move |request| {
            let (service, connection) = (Arc::clone(&service), Arc::clone(&of_requests));
            async move { service.answer(request, connection).await }
        });
        let _ = if is_http2 {
            http2::Builder::new(TaskExecutor)
                .initial_stream_window_size(window)
                .initial_connection_window_size(window)
                .max_concurrent_streams(MAX_STREAMS)
                .max_header_list_size(MAX_HEADER)
                .max_send_buf_size(SEND_BUFFER)
                .serve_connection(io, answer)
                .await
        } else {
            http1::Builder::new().max_buf_size(SEND_BUFFER).serve_connection(io, answer).await
        };
    };
    first(served, connection.ended()).await;
}
