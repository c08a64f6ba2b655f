//! A new QUIC connection with a full handshake for each transaction: the process has a service for that, the engine none.

use core::fmt::Debug;
use core::time::Duration;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use linerate_model::tls::TlsProperties;
use linerate_units::{ByteCount, MonotonicTime};
use linerate_wire::quic::QuicReady;

use super::{TransactionFailure, Transactor};
use crate::probe::{ProbeError, ProbeSession, Result};
use crate::rr::RrOptions;
use crate::rr::flow::FlowWatch;
use crate::rr::open::RequestConnection;

/// Client of QUIC handshakes.
pub trait QuicTransactions: Debug + Send + Sync {
    /// Opens a flow, with a socket of its own.
    ///
    /// # Errors
    ///
    /// This host's reason.
    fn open(&self, target: QuicTransactionTarget) -> core::result::Result<Box<dyn QuicTransactor>, String>;

    /// Opens a connection for many requests, and performs a first one within `timeout`.
    ///
    /// # Errors
    ///
    /// The handshake or the first request failed.
    fn open_connection(
        &self,
        target: QuicTransactionTarget,
        timeout: Duration,
        is_stopping: &dyn Fn() -> bool,
    ) -> core::result::Result<Box<dyn RequestConnection>, QuicTransactionFailure>;
}

/// Flow of QUIC connections, one after another.
pub trait QuicTransactor: Send {
    /// Performs a handshake, and sends the request until its response has arrived or `timeout` has passed.
    ///
    /// # Errors
    ///
    /// The transaction failed; the flow can go on.
    fn transact(
        &mut self,
        timeout: Duration,
        is_stopping: &dyn Fn() -> bool,
    ) -> core::result::Result<(), QuicTransactionFailure>;

    /// Properties of the handshakes, as far as QUIC's library reports them.
    fn properties(&self) -> TlsProperties;
}

/// Reason why a transaction over QUIC has no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuicTransactionFailure {
    /// `is_stopping` was true.
    Stopped,
    /// The handshake or the exchange failed, or took too long.
    Failed(String),
}

/// Server and messages of a flow.
#[derive(Clone, Debug)]
pub struct QuicTransactionTarget {
    /// Address of the server; its port is that of `ready`.
    pub address: SocketAddr,
    /// Local address; `None` lets the kernel choose.
    pub bind: Option<IpAddr>,
    /// The only interface to use.
    pub device: Option<String>,
    /// Connections that the server expects.
    pub ready: QuicReady,
    /// Number of the next connection of the session.
    pub numbers: Arc<AtomicU32>,
    /// Bytes of a request.
    pub request: ByteCount,
    /// Bytes of a response.
    pub response: ByteCount,
}

/// Target of all flows of a test.
pub(super) fn target(
    session: &ProbeSession,
    options: &RrOptions,
    ready: Option<QuicReady>,
) -> Result<QuicTransactionTarget> {
    let ready = ready.ok_or_else(|| ProbeError::Lost("the server gave no QUIC port".to_owned()))?;
    let own = session.target();
    Ok(QuicTransactionTarget {
        address: session.peer(),
        bind: own.bind,
        device: own.device.clone(),
        ready,
        numbers: Arc::new(AtomicU32::new(1)),
        request: options.request,
        response: options.response,
    })
}

/// QUIC of this process.
fn service(options: &RrOptions) -> Result<&Arc<dyn QuicTransactions>> {
    let missing = || ProbeError::System("this linerate is built without QUIC (feature quic)".to_owned());
    options.quic.as_ref().ok_or_else(missing)
}

/// Opens a connection for many requests.
pub(in crate::rr) fn connection(
    session: &ProbeSession,
    options: &RrOptions,
    ready: Option<QuicReady>,
) -> Result<Box<dyn RequestConnection>> {
    let target = target(session, options, ready)?;
    let is_stopping = || session.stop().is_some_and(|stop| stop.pending().is_some());
    service(options)?.open_connection(target, options.timeout, &is_stopping).map_err(ProbeError::from)
}

impl From<QuicTransactionFailure> for ProbeError {
    fn from(failure: QuicTransactionFailure) -> Self {
        match failure {
            QuicTransactionFailure::Stopped => Self::Interrupted,
            QuicTransactionFailure::Failed(reason) => Self::System(reason),
        }
    }
}

/// Flow of a test.
pub(super) struct QuicFlow(Box<dyn QuicTransactor>);

impl QuicFlow {
    pub(super) fn open(options: &RrOptions, target: QuicTransactionTarget) -> Result<Self> {
        service(options)?.open(target).map(Self).map_err(ProbeError::System)
    }

    /// Performs one transaction; returns the properties of its handshake.
    pub(super) fn trial(&mut self, session: &ProbeSession, timeout: Duration) -> Result<TlsProperties> {
        let is_stopping = || session.stop().is_some_and(|stop| stop.pending().is_some());
        self.0.transact(timeout, &is_stopping)?;
        Ok(self.0.properties())
    }
}

impl Transactor for QuicFlow {
    fn transact(&mut self, _: MonotonicTime, watch: &FlowWatch) -> core::result::Result<bool, TransactionFailure> {
        match self.0.transact(watch.timeout, &|| watch.is_stopping()) {
            Ok(()) => Ok(true),
            Err(QuicTransactionFailure::Stopped) => Err(TransactionFailure::Stopped),
            Err(QuicTransactionFailure::Failed(reason)) => Err(TransactionFailure::Failed(reason)),
        }
    }
}
