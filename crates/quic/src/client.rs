//! The client's end: handshakes and transfers to one server, each on a connection of its own.

use core::time::Duration;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use linerate_model::direction::Direction;
use linerate_model::quic::{QuicCongestionControl, QuicEnd, QuicHandshake, QuicHandshakeKind, QuicRun};
use linerate_sys::clock;
use linerate_sys::net::UdpOptions;
use linerate_sys::signals::InterruptSignals;
use linerate_units::ByteCount;
use linerate_wire::quic::{MAX_REPLY_LENGTH, QuicReady, QuicReply, QuicRequest, QuicTransferOrder};
use quinn::{ClientConfig, Connecting, Connection, ConnectionError, ConnectionId, Endpoint, RecvStream, SendStream};
use quinn::{TokioRuntime, VarInt};
use tokio::task::JoinSet;

use crate::error::QuicError;
use crate::key::PinnedClient;
use crate::meter::{PayloadCounter, TransferMeter};
use crate::server::endpoint_configuration;
use crate::socket::{self, CountingSocket};
use crate::stream;
use crate::transport::{self, WINDOW};

/// Time for the server's first packet: five attempts, on a path over a satellite, too.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for the reply after the end of a transfer.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

/// The same after a signal: someone waits.
const INTERRUPTED_REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval of looking for a signal.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Server name in the handshake; the key identifies the server.
const SERVER_NAME: &str = "linerate";

/// Server of a measurement.
#[derive(Clone, Debug)]
pub struct QuicTarget {
    /// Address of the server; its port is that of `ready`.
    pub address: SocketAddr,
    /// Local address; `None` lets the kernel choose.
    pub bind: Option<IpAddr>,
    /// The only interface to use.
    pub device: Option<String>,
    /// Answer of the session's control connection.
    pub ready: QuicReady,
    /// Congestion control where this end sends.
    pub congestion_control: QuicCongestionControl,
}

/// Sample of a running transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuicProgress {
    /// Time since the measurement began.
    pub elapsed: Duration,
    /// Payload since the last sample.
    pub bytes: ByteCount,
    /// Length of the sample.
    pub time: Duration,
    /// Round trip; `None` at a receiver.
    pub rtt: Option<Duration>,
}

/// Client of one server. Its methods block.
#[derive(Debug)]
pub struct QuicClient {
    target: QuicTarget,
    remote: SocketAddr,
    endpoint: Endpoint,
    socket: Arc<CountingSocket>,
    /// Never resumes: each handshake is full.
    fresh: PinnedClient,
    /// Keeps tickets for the next connection.
    resuming: PinnedClient,
    number: Arc<AtomicU32>,
    stop: Option<InterruptSignals>,
    /// The last field: its tasks end after their owners.
    runtime: tokio::runtime::Runtime,
}

impl QuicClient {
    /// Opens the UDP socket. A readable `stop` ends every wait with [`QuicError::Interrupted`].
    ///
    /// # Errors
    ///
    /// This host refuses the socket.
    pub fn new(target: QuicTarget, stop: Option<InterruptSignals>) -> Result<Self, QuicError> {
        let failed = |cause: std::io::Error| QuicError::io("starting the QUIC endpoint", &cause);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let mut remote = target.address;
        remote.set_port(target.ready.port.get());
        let family = linerate_model::address_family::AddressFamily::of(remote.ip());
        let udp = UdpOptions {
            address: target.bind,
            family: Some(family),
            device: target.device.clone(),
            ..UdpOptions::default()
        };
        let socket = socket::bind(&udp)?;
        let context = runtime.enter();
        let socket = CountingSocket::new(socket)?;
        let endpoint = Endpoint::new_with_abstract_socket(
            endpoint_configuration(),
            None,
            Arc::<CountingSocket>::clone(&socket),
            Arc::new(TokioRuntime),
        )
        .map_err(failed)?;
        drop(context);
        let (fresh, resuming) =
            (PinnedClient::new(target.ready.key, false)?, PinnedClient::new(target.ready.key, true)?);
        let number = Arc::new(AtomicU32::new(1));
        Ok(Self { target, remote, endpoint, socket, fresh, resuming, number, stop, runtime })
    }

    /// Performs one handshake and one request without payload; the result has the kind that the server accepted.
    ///
    /// [`QuicHandshakeKind::Resumed`] and [`QuicHandshakeKind::ZeroRtt`] use the ticket of an earlier handshake of one of
    /// these kinds, and perform a full one where there is none.
    pub fn handshake(&self, kind: QuicHandshakeKind) -> Result<QuicHandshake, QuicError> {
        self.runtime.block_on(self.unless_interrupted(self.shake(kind)))
    }

    /// Moves payload in one direction; the receiver counts it. A signal ends it early, with the figures until then.
    pub fn transfer(
        &self,
        direction: Direction,
        order: QuicTransferOrder,
        observe: &mut impl FnMut(QuicProgress),
    ) -> Result<QuicRun, QuicError> {
        let started = clock::realtime_now().since_unix_epoch();
        let (client, server) = self.runtime.block_on(self.moved(direction, order, observe))?;
        let interrupted = self.is_interrupted();
        if interrupted && (client.duration.is_zero() || server.duration.is_zero()) {
            return Err(QuicError::Interrupted);
        }
        Ok(QuicRun {
            direction,
            streams: u64::from(order.streams),
            started_at_unix_ns: u64::try_from(started.as_nanos()).unwrap_or(u64::MAX),
            interrupted,
            client,
            server,
        })
    }

    fn is_interrupted(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.pending().is_some())
    }

    /// Waits for a signal.
    async fn interrupted(&self) {
        while !self.is_interrupted() {
            tokio::time::sleep(SIGNAL_INTERVAL).await;
        }
    }

    /// Waits for a future to end, or for a signal.
    async fn unless_interrupted<T>(&self, future: impl Future<Output = Result<T, QuicError>>) -> Result<T, QuicError> {
        tokio::select! {
            outcome = future => outcome,
            () = self.interrupted() => Err(QuicError::Interrupted),
        }
    }

    /// Starts a connection.
    fn connect(&self, client: &PinnedClient) -> Result<Connecting, QuicError> {
        let (tag, number) = (self.target.ready.tag, Arc::clone(&self.number));
        let mut configuration =
            ClientConfig::new(Arc::<quinn::crypto::rustls::QuicClientConfig>::clone(&client.configuration));
        configuration.transport_config(transport::transport(self.target.congestion_control, self.remote, WINDOW));
        configuration.initial_dst_cid_provider(Arc::new(move || {
            ConnectionId::new(&tag.identifier(number.fetch_add(1, Ordering::Relaxed)))
        }));
        self.endpoint
            .connect_with(configuration, self.remote, SERVER_NAME)
            .map_err(|cause| QuicError::System(format!("connecting to {}: {cause}", self.remote)))
    }

    /// Waits for the end of a handshake.
    async fn connected(&self, client: &PinnedClient, connecting: Connecting) -> Result<Connection, QuicError> {
        match tokio::time::timeout(HANDSHAKE_TIMEOUT, connecting).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(ConnectionError::TimedOut)) | Err(_) => Err(self.unanswered()),
            Ok(Err(_)) if client.verifier.was_wrong() => Err(QuicError::WrongKey(self.target.ready.port)),
            Ok(Err(cause)) => Err(QuicError::lost(&cause)),
        }
    }

    fn unanswered(&self) -> QuicError {
        QuicError::Unanswered { port: self.target.ready.port, after: HANDSHAKE_TIMEOUT }
    }

    async fn shake(&self, kind: QuicHandshakeKind) -> Result<QuicHandshake, QuicError> {
        let client = if kind == QuicHandshakeKind::Full { &self.fresh } else { &self.resuming };
        let (begun, verified) = (clock::monotonic_now(), client.verifier.verifications());
        let connecting = self.connect(client)?;
        let early = if kind == QuicHandshakeKind::ZeroRtt { connecting.into_0rtt() } else { Err(connecting) };
        let (complete, connection, is_early) = match early {
            Ok((connection, accepted)) => self.early_echo(begun, connection, accepted).await?,
            Err(connecting) => {
                let connection = self.connected(client, connecting).await?;
                (clock::monotonic_now().since(begun), connection, false)
            }
        };
        if !is_early {
            self.echo(&connection).await.map_err(|error| explained(&connection, error))?;
        }
        let answer = clock::monotonic_now().since(begun);
        connection.close(VarInt::from_u32(0), b"");
        let kind = match (client.verifier.verifications() == verified, is_early) {
            (_, true) => QuicHandshakeKind::ZeroRtt,
            (true, false) => QuicHandshakeKind::Resumed,
            (false, false) => QuicHandshakeKind::Full,
        };
        Ok(QuicHandshake { kind, complete, answer })
    }

    /// Sends an echo in the first packets; returns the time of the handshake, and true when the server accepted the data.
    async fn early_echo(
        &self,
        begun: linerate_units::MonotonicTime,
        connection: Connection,
        accepted: quinn::ZeroRttAccepted,
    ) -> Result<(Duration, Connection, bool), QuicError> {
        let handshake = async {
            let accepted = accepted.await;
            (clock::monotonic_now().since(begun), accepted)
        };
        let both = tokio::time::timeout(HANDSHAKE_TIMEOUT, async { tokio::join!(self.echo(&connection), handshake) });
        let (echo, (complete, is_accepted)) = both.await.map_err(|_| self.unanswered())?;
        if is_accepted {
            echo.map_err(|error| explained(&connection, error))?;
        }
        Ok((complete, connection, is_accepted))
    }

    async fn echo(&self, connection: &Connection) -> Result<(), QuicError> {
        let (mut send, mut receive) = self.request(connection, QuicRequest::Echo).await?;
        let _ = send.finish();
        match reply(&mut receive).await? {
            QuicReply::Echo => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    async fn request(
        &self,
        connection: &Connection,
        request: QuicRequest,
    ) -> Result<(SendStream, RecvStream), QuicError> {
        let (mut send, receive) = connection.open_bi().await.map_err(|cause| QuicError::lost(&cause))?;
        let message = [self.target.ready.token.as_bytes(), &request.encode()[..]].concat();
        stream::write_document(&mut send, &message).await?;
        Ok((send, receive))
    }

    async fn moved(
        &self,
        direction: Direction,
        order: QuicTransferOrder,
        observe: &mut impl FnMut(QuicProgress),
    ) -> Result<(QuicEnd, QuicEnd), QuicError> {
        let connecting = self.connect(&self.fresh)?;
        let connection = self.unless_interrupted(self.connected(&self.fresh, connecting)).await?;
        let outcome = match direction {
            Direction::Up => self.send(&connection, order, observe).await,
            Direction::Down => self.receive(&connection, order, observe).await,
        };
        let outcome = outcome.map_err(|error| explained(&connection, error));
        connection.close(VarInt::from_u32(0), b"");
        // The packet that closes it leaves before the next connection begins.
        let _ = tokio::time::timeout(SIGNAL_INTERVAL, self.endpoint.wait_idle()).await;
        outcome
    }

    /// Sends until the server has measured, or a signal ends that.
    async fn send(
        &self,
        connection: &Connection,
        order: QuicTransferOrder,
        observe: &mut impl FnMut(QuicProgress),
    ) -> Result<(QuicEnd, QuicEnd), QuicError> {
        let (mut send, mut receive) = self.unless_interrupted(self.request(connection, QuicRequest::Up(order))).await?;
        let payload = Arc::<PayloadCounter>::default();
        let (content, mut writers) = (stream::payload(), JoinSet::new());
        for _ in 0..order.streams {
            writers.spawn(stream::write(connection.clone(), content.clone(), Arc::clone(&payload), None));
        }
        let mut end = None;
        let ended = async {
            tokio::select! {
                replied = reply(&mut receive) => end = Some(replied),
                () = self.interrupted() => {}
            }
        };
        let longer = QuicTransferOrder { time: order.time + REPLY_TIMEOUT, ..order };
        let client = self.measure(connection, longer, payload, true, ended, observe).await;
        match end {
            Some(server) => Ok((client, figures(server?)?)),
            None if self.is_interrupted() => Ok((client, self.late_figures(&mut send, &mut receive).await?)),
            None => Err(QuicError::Lost("the server did not end the transfer".to_owned())),
        }
    }

    /// Ends the measurement at the server, and waits for its figures.
    async fn late_figures(&self, send: &mut SendStream, receive: &mut RecvStream) -> Result<QuicEnd, QuicError> {
        let _ = send.finish();
        let is_interrupted = self.is_interrupted();
        let limit = if is_interrupted { INTERRUPTED_REPLY_TIMEOUT } else { REPLY_TIMEOUT };
        match tokio::time::timeout(limit, reply(receive)).await {
            Ok(replied) => figures(replied?),
            // An older server measures to the end of the requested time.
            Err(_) if is_interrupted => Err(QuicError::Interrupted),
            Err(_) => Err(QuicError::Lost("the server sent no report".to_owned())),
        }
    }

    /// Receives until the time is over or a signal arrives; then the server reports.
    async fn receive(
        &self,
        connection: &Connection,
        order: QuicTransferOrder,
        observe: &mut impl FnMut(QuicProgress),
    ) -> Result<(QuicEnd, QuicEnd), QuicError> {
        connection.set_receive_window(transport::transfer_window(connection.rtt(), WINDOW));
        let (mut send, mut receive) =
            self.unless_interrupted(self.request(connection, QuicRequest::Down(order))).await?;
        let payload = Arc::<PayloadCounter>::default();
        let mut readers = JoinSet::new();
        let (accepting, counter) = (connection.clone(), Arc::clone(&payload));
        readers.spawn(async move {
            let mut streams = JoinSet::new();
            while let Ok(opened) = accepting.accept_uni().await {
                streams.spawn(stream::read(opened, Arc::clone(&counter), None));
            }
        });
        let mut early = None;
        let ended = async {
            tokio::select! {
                replied = reply(&mut receive) => early = Some(replied),
                () = self.interrupted() => {}
            }
        };
        let client = self.measure(connection, order, payload, false, ended, observe).await;
        let server = match early {
            Some(server) => figures(server?)?,
            None => self.late_figures(&mut send, &mut receive).await?,
        };
        Ok((client, server))
    }

    async fn measure(
        &self,
        connection: &Connection,
        order: QuicTransferOrder,
        payload: Arc<PayloadCounter>,
        sends: bool,
        ended: impl Future<Output = ()>,
        observe: &mut impl FnMut(QuicProgress),
    ) -> QuicEnd {
        let peer = self.socket.watch(self.remote);
        let sender = sends.then_some(self.target.congestion_control);
        let meter = TransferMeter { connection, peer: &peer, payload, order, sender };
        let end = meter.measure(ended, observe).await;
        QuicEnd { connections: self.endpoint.open_connections() as u64, ..end }
    }
}

/// Error with the reason for which the connection ended, where that is known.
fn explained(connection: &Connection, error: QuicError) -> QuicError {
    match connection.close_reason() {
        Some(ConnectionError::ApplicationClosed(closed)) => {
            QuicError::Refused(String::from_utf8_lossy(&closed.reason).into_owned())
        }
        Some(cause @ (ConnectionError::TimedOut | ConnectionError::Reset | ConnectionError::ConnectionClosed(_))) => {
            QuicError::lost(&cause)
        }
        _ => error,
    }
}

async fn reply(stream: &mut RecvStream) -> Result<QuicReply, QuicError> {
    let document = stream::read_document(stream, MAX_REPLY_LENGTH).await?;
    QuicReply::decode(&document).map_err(|cause| QuicError::lost(&cause))
}

fn figures(reply: QuicReply) -> Result<QuicEnd, QuicError> {
    match reply {
        QuicReply::End(end) => Ok(*end),
        other => Err(unexpected(&other)),
    }
}

fn unexpected(reply: &QuicReply) -> QuicError {
    match reply {
        QuicReply::Refused(reason) => QuicError::Refused(reason.clone()),
        _ => QuicError::Lost("unexpected reply".to_owned()),
    }
}
