//! The service of the page: its listening socket, and the thread that serves its connections.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use linerate_documents::run::RunDocument;
use linerate_engine::server::{ServiceAccess, ServiceLease};
use linerate_model::address_family::AddressFamily;
use linerate_sys::net::ListenOptions;
use linerate_sys::{clock, host, process};
use linerate_units::{ByteCount, Port};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::acceptor::{self, Acceptor};
use crate::connection::{Connection, ConnectionIo};
use crate::connection_table::{ConnectionSlot, ConnectionTable};
use crate::keep_limit::KeepLimit;
use crate::sampling::SAMPLING_INTERVAL;
use crate::service::WebService;
use crate::session_table::SessionTable;

/// Memory of a connection that waits for a request.
const CONNECTION_MEMORY: ByteCount = ByteCount::from_kibibytes(32);

/// Largest buffer of a connection: a longer header is refused.
const MAX_BUFFER: usize = 64 << 10;

/// Most headers of a request.
const MAX_HEADERS: usize = 64;

/// Response to a connection beyond the caps.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n\
    Content-Length: 66\r\nRetry-After: 10\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n\
    The server has too many connections, or too many of your address.\n";

/// Options of the web service.
#[derive(Clone, Debug)]
pub struct WebOptions {
    /// Address to listen on; `None` for all.
    pub address: Option<IpAddr>,
    /// Port; `None` lets the kernel choose.
    pub port: Option<Port>,
    /// Address families.
    pub family: Option<AddressFamily>,
    /// Interface to listen on only.
    pub device: Option<String>,
    /// True when results are handed over to be kept.
    pub keeps_results: bool,
    /// True when the history is shown.
    pub shows_history: bool,
}

/// Receiver of finished tests.
pub trait WebObserver: Send + Sync {
    /// A test has ended with this run, which is to be kept where `keeps`. Returns its number in the history. Called on a
    /// thread that may wait.
    fn finished(&self, number: u64, run: &RunDocument, keeps: bool) -> Option<i64>;

    /// A problem that concerns no session.
    fn problem(&self, text: &str);
}

/// The web service could not start.
#[derive(Debug, thiserror::Error)]
#[error("unable to start the web page on port {port}: {cause}")]
pub struct WebError {
    port: u16,
    cause: String,
}

/// A bound web service that does not answer yet.
#[derive(Debug)]
pub struct BoundWebService {
    listener: TcpListener,
    address: SocketAddr,
    options: WebOptions,
}

/// A running web service; it ends when it is dropped.
#[derive(Debug)]
pub struct RunningWebService {
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl BoundWebService {
    /// Starts to listen.
    ///
    /// # Errors
    ///
    /// Most often the port is in use.
    pub fn bind(options: WebOptions) -> Result<Self, WebError> {
        let port = options.port.map_or(0, Port::get);
        let failed = |cause: String| WebError { port, cause };
        let listen = ListenOptions {
            address: options.address,
            port: options.port,
            family: options.family,
            device: options.device.clone(),
            ..ListenOptions::default()
        };
        let (listener, address) = acceptor::listen(&listen).map_err(failed)?;
        Ok(Self { listener, address, options })
    }

    /// Listening address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves on a thread of its own.
    ///
    /// # Errors
    ///
    /// The thread or its runtime cannot be started.
    pub fn start(self, access: ServiceAccess, observer: Arc<dyn WebObserver>) -> Result<RunningWebService, WebError> {
        let port = self.address.port();
        let failed = |cause: io::Error| WebError { port, cause: linerate_sys::describe_os_error(&cause) };
        let service = move |stop: Arc<Notify>| async move {
            if let Err(cause) = serve(self, access, Arc::clone(&observer), &stop).await {
                observer.problem(&format!("the web page has ended: {}", linerate_sys::describe_os_error(&cause)));
            }
        };
        RunningWebService::spawn("web", service).map_err(failed)
    }
}

impl RunningWebService {
    /// Runs a service on a thread of its own.
    pub(crate) fn spawn<F: Future<Output = ()>>(
        name: &str,
        service: impl FnOnce(Arc<Notify>) -> F + Send + 'static,
    ) -> io::Result<Self> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_io().enable_time().max_blocking_threads(2).build()?;
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            runtime.block_on(service(stopped));
            runtime.shutdown_background();
        });
        Ok(Self { stop, thread: Some(thread?) })
    }
}

impl Drop for RunningWebService {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic has been reported by its thread.
            let _ = thread.join();
        }
    }
}

/// Resolves when the first of two futures does.
pub(crate) async fn first(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| {
        let is_done = one.as_mut().poll(context).is_ready() || other.as_mut().poll(context).is_ready();
        if is_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

async fn serve(
    bound: BoundWebService,
    access: ServiceAccess,
    observer: Arc<dyn WebObserver>,
    stop: &Notify,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(bound.listener)?;
    let table = ConnectionTable::new(process::open_file_limit(), access.stall_timeout(), false);
    let service = Arc::new(WebService {
        access,
        sessions: SessionTable::default(),
        observer,
        kept: KeepLimit::default(),
        port: Port::new(bound.address.port()).unwrap_or(Port::IPERF3),
        keeps_results: bound.options.keeps_results,
        shows_history: bound.options.shows_history,
        host_name: host::host_name(),
        recent: Arc::default(),
    });
    let attended = Arc::clone(&service);
    let acceptor = Acceptor {
        listener,
        table: Arc::clone(&table),
        access: service.access.clone(),
        memory: CONNECTION_MEMORY,
        busy: BUSY,
        attend: move |connection, lease, slot| attend(Arc::clone(&attended), connection, lease, slot),
    };
    let sampled = async {
        loop {
            sleep(SAMPLING_INTERVAL).await;
            let now = clock::monotonic_now();
            service.sessions.tick(now);
            table.sweep(now);
        }
    };
    first(stop.notified(), first(acceptor.run(), sampled)).await;
    Ok(())
}

/// Serves one connection to its end.
async fn attend(service: Arc<WebService>, connection: Arc<Connection>, _lease: ServiceLease, _slot: ConnectionSlot) {
    let io = ConnectionIo::new(Arc::clone(&connection));
    let of_requests = Arc::clone(&connection);
    let answer = service_fn(move |request| {
        let (service, connection) = (Arc::clone(&service), Arc::clone(&of_requests));
        async move { service.answer(request, connection).await }
    });
    let served = http1::Builder::new().max_buf_size(MAX_BUFFER).max_headers(MAX_HEADERS).serve_connection(io, answer);
    let served = async {
        // A client that breaks the protocol, or goes away, concerns no one else.
        let _ = served.await;
    };
    first(served, connection.ended()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_a_connection_beyond_the_caps_is_whole() {
        let text = core::str::from_utf8(BUSY).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("\r\nConnection: close"), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        assert_eq!(length.map(str::parse), Some(Ok(body.len())));
    }

    #[test]
    fn the_first_of_two_futures_ends_both() {
        use core::future::{pending, ready};
        let loopback = crate::test_support::Loopback::new();
        for (one, other, ends) in [(true, false, true), (false, true, true), (true, true, true), (false, false, false)]
        {
            let future = |is_ready: bool| async move { if is_ready { ready(()).await } else { pending().await } };
            assert_eq!(loopback.poll_once(first(future(one), future(other))).is_ready(), ends, "{one} {other}");
        }
    }
}
