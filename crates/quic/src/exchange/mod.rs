//! Transactions of `linerate rr`: a full handshake, one request and its response on each connection; and connections that
//! stay open for the requests of `linerate load` ([`open`]).
//!
//! A flow is a socket of its own, with one connection at a time. Payload of both directions is discarded as it arrives; the
//! windows are small, and no path MTU is searched: a connection ends before that is of use, or has small messages.

mod open;

use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use linerate_engine::rr::{
    QuicTransactionFailure, QuicTransactionTarget, QuicTransactions, QuicTransactor, RequestConnection,
};
use linerate_engine::server::{QuicExchange, TrafficShare};
use linerate_model::address_family::AddressFamily;
use linerate_model::tls::{ServerAuthentication, TlsProperties};
use linerate_sys::net::{self, UdpOptions};
use linerate_sys::{clock, host};
use linerate_units::ByteCount;
use linerate_wire::probe::MAX_OPEN_REQUESTS;
use quinn::{ClientConfig, Connection, ConnectionId, Endpoint, RecvStream, SendStream, TokioRuntime, VarInt};

use crate::error::QuicError;
use crate::key::PinnedClient;
use crate::server::endpoint_configuration;
use crate::transport;

/// Interval of looking for the order to stop.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// Bytes of one write.
const WRITE: usize = 64 << 10;

/// Server name in the handshake; the key identifies the server.
const SERVER_NAME: &str = "linerate";

/// QUIC of this process for the transactions of `linerate rr`.
#[derive(Clone, Copy, Debug)]
pub struct QuicExchanges;

impl QuicTransactions for QuicExchanges {
    fn open(&self, target: QuicTransactionTarget) -> Result<Box<dyn QuicTransactor>, String> {
        ExchangeFlow::open(target).map(|flow| Box::new(flow) as _).map_err(|error| error.to_string())
    }

    fn open_connection(
        &self,
        target: QuicTransactionTarget,
        timeout: Duration,
        is_stopping: &dyn Fn() -> bool,
    ) -> Result<Box<dyn RequestConnection>, QuicTransactionFailure> {
        let failed = |error: QuicError| QuicTransactionFailure::Failed(error.to_string());
        let flow = ExchangeFlow::open(target).map_err(failed)?;
        Ok(Box::new(open::OpenConnection::start(flow, timeout, is_stopping)?))
    }
}

/// Usual reason where nothing is answered, and the remedy.
const FILTERED: &str = "where none is, a firewall on the path may drop UDP; `linerate serve --quic-port 443` uses a port that most \
    let through";

/// Flow of a client.
struct ExchangeFlow {
    target: QuicTransactionTarget,
    remote: SocketAddr,
    endpoint: Endpoint,
    client: PinnedClient,
    configuration: ClientConfig,
    /// Token and the request.
    request: Bytes,
    /// The last field: its tasks end after their owners.
    runtime: tokio::runtime::Runtime,
}

impl ExchangeFlow {
    fn open(target: QuicTransactionTarget) -> Result<Self, QuicError> {
        let failed = |cause: std::io::Error| QuicError::io("starting the QUIC endpoint", &cause);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let mut remote = target.address;
        remote.set_port(target.ready.port.get());
        let socket = net::bind_udp(&UdpOptions {
            address: target.bind,
            family: Some(AddressFamily::of(remote.ip())),
            device: target.device.clone(),
            ..UdpOptions::default()
        })?;
        let context = runtime.enter();
        let endpoint = Endpoint::new(endpoint_configuration(), None, socket, Arc::new(TokioRuntime)).map_err(failed)?;
        drop(context);
        let client = PinnedClient::new(target.ready.key, false)?;
        let mut configuration =
            ClientConfig::new(Arc::<quinn::crypto::rustls::QuicClientConfig>::clone(&client.configuration));
        configuration.transport_config(transport::exchange_transport(target.response, 1));
        let (tag, numbers) = (target.ready.tag, Arc::clone(&target.numbers));
        configuration.initial_dst_cid_provider(Arc::new(move || {
            ConnectionId::new(&tag.identifier(numbers.fetch_add(1, Ordering::Relaxed)))
        }));
        let request = [target.ready.token.as_bytes(), &random_bytes(target.request)?[..]].concat().into();
        Ok(Self { target, remote, endpoint, client, configuration, request, runtime })
    }

    /// A connection after its handshake.
    async fn connect(&self) -> Result<Connection, QuicError> {
        let connecting = self
            .endpoint
            .connect_with(self.configuration.clone(), self.remote, SERVER_NAME)
            .map_err(|cause| QuicError::System(format!("connecting to {}: {cause}", self.remote)))?;
        match connecting.await {
            Ok(connection) => Ok(connection),
            Err(_) if self.client.verifier.was_wrong() => Err(QuicError::WrongKey(self.target.ready.port)),
            Err(cause) => Err(QuicError::lost(&cause)),
        }
    }

    /// One transaction.
    async fn exchange(&self) -> Result<(), QuicError> {
        let connection = self.connect().await?;
        let exchanged = exchange_on(&connection, self.request.clone(), self.target.response).await;
        connection.close(VarInt::from_u32(0), b"");
        exchanged
    }

    /// Runs a future on this thread for `timeout` at most.
    fn run_within<T>(
        &self,
        future: impl Future<Output = Result<T, QuicError>>,
        timeout: Duration,
        is_stopping: &dyn Fn() -> bool,
        expiry: impl Fn(&str) -> String,
    ) -> Result<T, QuicTransactionFailure> {
        let deadline = clock::monotonic_now() + timeout;
        self.runtime.block_on(async {
            let mut exchange = core::pin::pin!(future);
            loop {
                let left = deadline.since(clock::monotonic_now());
                if let Ok(outcome) = tokio::time::timeout(left.min(STOP_INTERVAL), exchange.as_mut()).await {
                    return outcome.map_err(|error| QuicTransactionFailure::Failed(error.to_string()));
                }
                if is_stopping() {
                    return Err(QuicTransactionFailure::Stopped);
                }
                if left.is_zero() {
                    let limit = linerate_units::display::duration(timeout);
                    return Err(QuicTransactionFailure::Failed(expiry(&limit)));
                }
            }
        })
    }
}

impl QuicTransactor for ExchangeFlow {
    fn transact(&mut self, timeout: Duration, is_stopping: &dyn Fn() -> bool) -> Result<(), QuicTransactionFailure> {
        let port = self.target.ready.port;
        self.run_within(self.exchange(), timeout, is_stopping, |limit| {
            format!("a transaction over QUIC was not complete within {limit} (--timeout; UDP port {port}): {FILTERED}")
        })
    }

    fn properties(&self) -> TlsProperties {
        TlsProperties {
            authentication: ServerAuthentication::RawPublicKey,
            key_algorithm: self.client.verifier.algorithm(),
            client_authenticated: false,
            // quinn keeps both to itself.
            cipher_suite: None,
            key_exchange: None,
        }
    }
}

/// Sends a request on a stream of its own, and waits for its response.
async fn exchange_on(connection: &Connection, request: Bytes, response: ByteCount) -> Result<(), QuicError> {
    let (mut send, mut receive) = connection.open_bi().await.map_err(|cause| QuicError::lost(&cause))?;
    send.write_chunk(request).await.map_err(|cause| QuicError::lost(&cause))?;
    // The server closes nothing before it has all of the request.
    let _ = send.finish();
    read_exactly(&mut receive, response, None).await
}

/// Random bytes: nothing on the path compresses them.
fn random_bytes(size: ByteCount) -> Result<Vec<u8>, QuicError> {
    let mut bytes = vec![0; size.to_usize()];
    host::random_bytes(&mut bytes)?;
    Ok(bytes)
}

/// Reads exactly `left` bytes, and discards them.
async fn read_exactly(stream: &mut RecvStream, left: ByteCount, share: Option<&TrafficShare>) -> Result<(), QuicError> {
    let mut left = left.to_usize();
    while left > 0 {
        let chunk = stream.read_chunk(WRITE, true).await.map_err(|cause| QuicError::lost(&cause))?;
        let count = chunk.map_or(0, |chunk| chunk.bytes.len());
        if count == 0 || count > left {
            return Err(QuicError::Lost("a message has another length than agreed".to_owned()));
        }
        left -= count;
        if let Some(wait) = share.and_then(|share| share.count_received(ByteCount::from_usize(count))) {
            tokio::time::sleep(wait).await;
        }
    }
    Ok(())
}

/// Messages of a session's connections, at the server.
#[derive(Debug)]
pub(crate) struct ServedExchange {
    pub(crate) exchange: QuicExchange,
    /// Content of a response; the same bytes each time.
    content: Bytes,
}

impl ServedExchange {
    pub(crate) fn new(exchange: QuicExchange) -> Result<Self, QuicError> {
        let size = exchange.response.min(ByteCount::from_usize(WRITE));
        Ok(Self { content: random_bytes(size)?.into(), exchange })
    }

    /// Most requests of a connection at once.
    pub(crate) const fn max_streams(&self) -> u32 {
        if self.exchange.keeps_open { MAX_OPEN_REQUESTS } else { 1 }
    }

    /// Reads the request after its token, and answers.
    pub(crate) async fn answer(
        &self,
        request: &mut RecvStream,
        reply: &mut SendStream,
        share: Option<&TrafficShare>,
    ) -> Result<(), QuicError> {
        read_exactly(request, self.exchange.request, share).await?;
        let mut left = self.exchange.response.to_usize();
        while left > 0 {
            let most = left.min(self.content.len());
            let size = match share.map(|share| share.claim(ByteCount::from_usize(most))) {
                None => most,
                Some(Ok(bytes)) => bytes.to_usize().min(most),
                Some(Err(wait)) => {
                    tokio::time::sleep(wait).await;
                    continue;
                }
            };
            reply.write_chunk(self.content.slice(..size)).await.map_err(|cause| QuicError::lost(&cause))?;
            left -= size;
        }
        let _ = reply.finish();
        (self.exchange.completed)();
        Ok(())
    }
}
