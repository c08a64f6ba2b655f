//! Connections to a server: TCP, TLS and HTTP/2, each part timed.

use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::client::conn::http2::{self, SendRequest};
use hyper::header::LOCATION;
use hyper::{Method, Request, Response, StatusCode};
use linerate_engine::tls::{ServerTrust, https};
use linerate_sys::net::{self, ConnectOptions};
use linerate_sys::{clock, options};
use linerate_units::ByteCount;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ProtocolVersion};

use super::server::HTTP2;
use super::stream_io::{StreamIo, TaskExecutor};
use crate::body::block;
use crate::connection::{Connection, MAX_QUANTUM, SocketIo};
use crate::server::first;

/// Time limit of a connection, and of a small answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes that the server may send on a request and on a connection before they are read: more than a path holds. Others on the
/// connection have their share while a large object waits.
const STREAM_WINDOW: u32 = 16 << 20;
const CONNECTION_WINDOW: u32 = 24 << 20;

/// Bytes of a request that wait for their turn on the connection.
const SEND_BUFFER: usize = 64 << 10;

/// Unsent bytes in the kernel before the rate is known.
const FIRST_UNSENT: ByteCount = ByteCount::from_kibibytes(16);

/// Server of a test.
#[derive(Clone)]
pub(super) struct HttpTarget {
    /// Addresses and options of the socket.
    pub(super) connect: ConnectOptions,
    pub(super) tls: TlsConnector,
    pub(super) trust: ServerTrust,
    pub(super) name: ServerName<'static>,
    /// Host and port as in URLs.
    pub(super) authority: String,
}

/// An open connection.
pub(super) struct HttpConnection {
    pub(super) sender: SendRequest<RequestBody>,
    pub(super) socket: Arc<Connection>,
    /// Time from the SYN to the established connection.
    pub(super) tcp: Duration,
    /// Time of the TLS handshake, per round trip of it.
    pub(super) tls: Duration,
    pub(super) tls_version: &'static str,
}

impl HttpTarget {
    fn remote(&self) -> SocketAddr {
        self.connect.remote
    }

    /// Opens a connection.
    pub(super) async fn open(&self) -> Result<HttpConnection, String> {
        let opened = timeout(TIMEOUT, self.open_without_limit()).await;
        opened.unwrap_or_else(|_| {
            Err(format!("{} did not complete the handshakes within {} s", self.remote(), TIMEOUT.as_secs()))
        })
    }

    /// Opens a TCP connection, and times its handshake.
    pub(super) async fn open_tcp(&self) -> Result<(TcpStream, Duration), String> {
        let failed = |cause: &io::Error| {
            let is_refused = cause.kind() == io::ErrorKind::ConnectionRefused;
            let remedy = if is_refused { " (`linerate serve --responsiveness` there starts a server)" } else { "" };
            format!("connecting to {}: {}{remedy}", self.remote(), linerate_sys::describe_os_error(cause))
        };
        let begun = clock::monotonic_now();
        let stream = net::start_tcp(&self.connect).map_err(|cause| cause.to_string())?;
        let stream = TcpStream::from_std(stream).map_err(|cause| failed(&cause))?;
        stream.writable().await.map_err(|cause| failed(&cause))?;
        match stream.take_error() {
            Ok(None) => Ok((stream, clock::monotonic_now().since(begun))),
            Ok(Some(cause)) | Err(cause) => Err(failed(&cause)),
        }
    }

    async fn open_without_limit(&self) -> Result<HttpConnection, String> {
        let (stream, tcp) = self.open_tcp().await?;
        // Without these options, the delay of this host's buffer is in the measurement.
        let _ = options::set_no_delay(&stream, true);
        let _ = options::set_not_sent_low_water(&stream, FIRST_UNSENT);
        let socket = Connection::new(stream, self.remote(), 0);
        let begun = clock::monotonic_now();
        let secured = self.tls.connect(self.name.clone(), SocketIo(Arc::clone(&socket))).await;
        let stream = secured.map_err(|cause| self.describe_tls(&cause))?;
        let handshake = clock::monotonic_now().since(begun);
        let session = stream.get_ref().1;
        if session.alpn_protocol() != Some(HTTP2) {
            return Err(format!("{}: {}", self.authority, https::NO_HTTP2));
        }
        let (tls_version, round_trips) = match session.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => ("1.3", 1),
            _ => ("1.2", 2),
        };
        let builder = http2::Builder::new(TaskExecutor)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(SEND_BUFFER)
            .handshake(StreamIo::new(stream, Arc::clone(&socket)))
            .await;
        let (sender, driver) = builder.map_err(|cause| format!("HTTP/2 with {}: {cause}", self.authority))?;
        let watched = Arc::clone(&socket);
        tokio::spawn(async move {
            let driver = async {
                // Requests in progress report the failure.
                let _ = driver.await;
            };
            first(driver, watched.ended()).await;
        });
        Ok(HttpConnection { sender, socket, tcp, tls: handshake / round_trips, tls_version })
    }

    fn describe_tls(&self, cause: &io::Error) -> String {
        let error = cause.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        match error {
            Some(error) => format!("TLS with {}: {}", self.authority, https::describe_failure(error, &self.trust)),
            None => format!("TLS with {}: {}", self.authority, linerate_sys::describe_os_error(cause)),
        }
    }

    /// Sends a request, and waits for the head of its answer, which must be a success.
    pub(super) async fn request(
        &self,
        sender: &mut SendRequest<RequestBody>,
        method: Method,
        path: &str,
        body: RequestBody,
    ) -> Result<Response<Incoming>, String> {
        let named = || format!("{method} https://{}{path}", self.authority);
        let request = Request::builder().method(&method).uri(format!("https://{}{path}", self.authority));
        let request = request.header(hyper::header::USER_AGENT, concat!("linerate/", env!("CARGO_PKG_VERSION")));
        let request = request.body(body).map_err(|cause| format!("{}: {cause}", named()))?;
        let response =
            sender.send_request(request).await.map_err(|cause| format!("{}: {}", named(), reason(&cause)))?;
        let status = response.status();
        if status.is_redirection() {
            let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
            return Err(format!("{}: redirected to \"{}\", which is not followed", named(), super::shown(location)));
        }
        if status != StatusCode::OK {
            return Err(format!("{}: the server answered {status}", named()));
        }
        Ok(response)
    }

    /// Requests a small object, and returns it whole, within the time limit.
    pub(super) async fn get(
        &self,
        sender: &mut SendRequest<RequestBody>,
        path: &str,
        most: usize,
    ) -> Result<Vec<u8>, String> {
        let whole = async {
            let response = self.request(sender, Method::GET, path, RequestBody::Empty).await?;
            let mut body = response.into_body();
            let mut bytes = Vec::new();
            while let Some(data) = next(&mut body).await? {
                if bytes.len() + data.len() > most {
                    return Err(format!("https://{}{path} has more than {most} bytes", self.authority));
                }
                bytes.extend_from_slice(&data);
            }
            Ok(bytes)
        };
        let late = || format!("https://{}{path} was not answered within {} s", self.authority, TIMEOUT.as_secs());
        timeout(TIMEOUT, whole).await.unwrap_or_else(|_| Err(late()))
    }
}

/// Next data of an answer; `None` at its end.
pub(super) async fn next(body: &mut Incoming) -> Result<Option<Bytes>, String> {
    loop {
        let frame = core::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
        match frame {
            None => return Ok(None),
            Some(Err(cause)) => return Err(reason(&cause)),
            Some(Ok(frame)) => {
                // Trailers say nothing here.
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// Reason of a failure, with its cause.
pub(super) fn reason(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Body of a request.
#[derive(Debug)]
pub(super) enum RequestBody {
    /// No bytes.
    Empty,
    /// Random bytes without end, in frames that do not delay others on this connection.
    Endless(Arc<Connection>),
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(match &*self {
            Self::Empty => None,
            Self::Endless(connection) => Some(Ok(Frame::data(block().slice(..connection.quantum().min(MAX_QUANTUM))))),
        })
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Empty)
    }
}
