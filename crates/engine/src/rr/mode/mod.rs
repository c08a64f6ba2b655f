//! Kinds of transaction, one per file.

mod connect;
pub(super) mod quic;
mod tcp;
pub(super) mod tls;
mod udp;

use core::time::Duration;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;

use linerate_model::rr::RrMode;
use linerate_model::tls::TlsProperties;
use linerate_sys::{clock, host, options, poll};
use linerate_units::{ByteCount, MonotonicTime, Port};
use linerate_wire::probe::RrReady;

use super::RrOptions;
use super::flow::FlowWatch;
use crate::probe::{ProbeError, ProbeSession, Result};

pub use quic::{QuicTransactionFailure, QuicTransactionTarget, QuicTransactions, QuicTransactor};

/// Longest time in which a thread that waits does not notice its orders.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Most bytes of one read or write.
const BUFFER: usize = 64 << 10;

/// Reason why a flow ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TransactionFailure {
    /// It was stopped.
    Stopped,
    /// It cannot go on.
    Broken(String),
    /// This transaction is lost, and the next one may succeed.
    Failed(String),
}

impl TransactionFailure {
    fn io(operation: &str, cause: &io::Error) -> Self {
        Self::Broken(format!("{operation}: {}", linerate_sys::describe_os_error(cause)))
    }
}

impl From<TransactionFailure> for ProbeError {
    fn from(failure: TransactionFailure) -> Self {
        match failure {
            TransactionFailure::Stopped => Self::Interrupted,
            TransactionFailure::Broken(reason) | TransactionFailure::Failed(reason) => Self::System(reason),
        }
    }
}

/// A flow on which one transaction takes place at a time.
pub(super) trait Transactor: Send {
    /// Sends a request and waits for its response; `false` when the request is lost. `now` is the time, which the caller has read.
    fn transact(&mut self, now: MonotonicTime, watch: &FlowWatch) -> core::result::Result<bool, TransactionFailure>;
}

/// Means to open the flows of a test.
pub(in crate::rr) enum FlowSource {
    Tcp,
    Connect(Option<Port>),
    Udp(RrReady),
    Tls(Box<tls::TlsFlow>),
    Quic(QuicTransactionTarget),
}

impl FlowSource {
    /// Prepares flows to what the server has opened, and tries those whose handshake may fail.
    ///
    /// # Errors
    ///
    /// The ports of the test cannot be reached from here, or the ends do not agree on a handshake.
    pub(super) fn prepare(
        session: &ProbeSession,
        options: &RrOptions,
        ready: RrReady,
    ) -> Result<(Self, Option<TlsProperties>)> {
        Ok(match options.mode {
            RrMode::Tcp => (Self::Tcp, None),
            RrMode::Connect => (Self::Connect(connect_port(session, ready)?), None),
            RrMode::Udp => (Self::Udp(ready), None),
            RrMode::Tls => {
                let mut flow = tls::TlsFlow::new(session, options, ready)?;
                let properties = flow.trial(session)?;
                (Self::Tls(Box::new(flow)), Some(properties))
            }
            RrMode::Quic => {
                let target = quic::target(session, options, ready.quic)?;
                let mut flow = quic::QuicFlow::open(options, target.clone())?;
                let properties = flow.trial(session, options.timeout)?;
                (Self::Quic(target), Some(properties))
            }
        })
    }

    /// Opens a flow.
    pub(super) fn open(&self, session: &ProbeSession, options: &RrOptions) -> Result<Box<dyn Transactor>> {
        Ok(match self {
            Self::Tcp => Box::new(tcp::TcpFlow::open(session, options)?),
            Self::Connect(port) => Box::new(connect::ConnectFlow::new(session, options, *port)?),
            Self::Udp(ready) => Box::new(udp::UdpFlow::open(session, options, *ready)?),
            Self::Tls(flow) => flow.clone(),
            Self::Quic(target) => Box::new(quic::QuicFlow::open(options, target.clone())?),
        })
    }
}

/// Port of the test that can be reached from here; `None` for the server's.
///
/// # Errors
///
/// The server's port alone can be reached, and serves only clients in TLS.
fn connect_port(session: &ProbeSession, ready: RrReady) -> Result<Option<Port>> {
    let port = connect::reachable(session, ready.port);
    if port.is_none() && session.tls().is_some() {
        let own = ready.port.map_or("a port of the test's own".to_owned(), |port| format!("port {}", port.get()));
        return Err(ProbeError::Unreachable(format!(
            "{own} of the server does not answer, and connections to port {} would be in TLS: permit the ports from which \
             its kernel chooses (net.ipv4.ip_local_port_range), or measure --tcp",
            session.remote().port()
        )));
    }
    Ok(port)
}

/// Random bytes, as those of a test: nothing on the path compresses them.
fn random_payload(size: ByteCount) -> Result<Vec<u8>> {
    let mut payload = vec![0; size.to_usize()];
    host::random_bytes(&mut payload)?;
    Ok(payload)
}

/// Prepares a connection for transactions.
fn prepare(stream: &TcpStream) -> linerate_sys::Result<()> {
    options::set_receive_timeout(stream, Some(STOP_POLL_INTERVAL))?;
    options::set_send_timeout(stream, Some(STOP_POLL_INTERVAL))
}

/// Waits of one transaction on a connection.
struct ResponseWait<'a> {
    watch: &'a FlowWatch,
    /// Deadline, from the first timeout of the kernel on.
    until: Option<MonotonicTime>,
}

impl<'a> ResponseWait<'a> {
    const fn new(watch: &'a FlowWatch) -> Self {
        Self { watch, until: None }
    }

    /// After a timeout of the kernel: `Ok` to go on.
    fn go_on(&mut self, operation: &str, error: &io::Error) -> core::result::Result<(), TransactionFailure> {
        if !poll::is_temporary(error) {
            return Err(TransactionFailure::io(operation, error));
        }
        if self.watch.is_stopping() {
            return Err(TransactionFailure::Stopped);
        }
        let (now, limit) = (clock::monotonic_now(), self.watch.timeout);
        if now < *self.until.get_or_insert(now + limit.saturating_sub(STOP_POLL_INTERVAL)) {
            return Ok(());
        }
        let limit = linerate_units::display::duration(limit);
        Err(TransactionFailure::Broken(format!("{operation}: no progress within {limit} (--timeout)")))
    }
}

/// Writes all of a request.
fn send(stream: &mut TcpStream, mut request: &[u8], watch: &FlowWatch) -> core::result::Result<(), TransactionFailure> {
    let mut wait = ResponseWait::new(watch);
    while !request.is_empty() {
        match stream.write(request) {
            Ok(count) => request = &request[count..],
            Err(error) => wait.go_on("sending a request", &error)?,
        }
    }
    Ok(())
}

/// Reads exactly one response.
fn receive(
    stream: &mut TcpStream,
    size: ByteCount,
    buffer: &mut [u8],
    watch: &FlowWatch,
) -> core::result::Result<(), TransactionFailure> {
    let (mut left, mut wait) = (size.to_usize(), ResponseWait::new(watch));
    while left > 0 {
        let most = left.min(buffer.len());
        match stream.read(&mut buffer[..most]) {
            Ok(0) => {
                return Err(TransactionFailure::Broken(
                    "waiting for a response: the server closed the connection".to_owned(),
                ));
            }
            Ok(count) => left -= count,
            Err(error) => wait.go_on("waiting for a response", &error)?,
        }
    }
    Ok(())
}

/// Buffer for responses.
fn response_buffer(options: &RrOptions) -> Vec<u8> {
    vec![0; options.response.to_usize().clamp(1, BUFFER)]
}
