//! The client's half of a probe session.

use core::time::Duration;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use linerate_model::rr::RrMode;
use linerate_sys::data::train::DatagramMarking;
use linerate_sys::net::{self, SocketSettings, UdpOptions};
use linerate_sys::poll::{self, PollInterest};
use linerate_sys::signals::InterruptSignals;
use linerate_sys::time_stamp::ClockPair;
use linerate_sys::{clock, host, tcp_info};
use linerate_units::{BitRate, ByteCount, Port};
use linerate_wire::cookie::{self, Cookie, SessionToken};
use linerate_wire::probe::{
    ConnectionNumber, EmptyContent, FarFacts, PROBE_FEATURE, RR_FEATURE, RR_HANDSHAKE_FEATURE, RR_OPEN_FEATURE,
    RateOrder, ReceiveOrder, RecordDetail, ReflectorOpened, RrOrder, RrReady, RrReport, SendOrder, SentReport,
    ServerHello, StreamFeedback, StreamNumber, StreamRef, StreamRequest,
};
use linerate_wire::quic::{QUIC_FEATURE, QuicOrder, QuicReady};
use linerate_wire::stamp::tlv::{self, StampTlv};
use linerate_wire::stamp::{SenderPacket, StampTimestamp, TimestampFormat};

use super::datagrams::{CLIENT_BATCH, DatagramSocket, ReceivingThread};
use super::error::{AnsweringService, ProbeError, Result};
use super::link::{ANSWER_LIMIT, ControlLink, ReadingThread};
use super::load::{LoadConnection, LoadOptions};
use super::lock;
use super::prober::{ProbeOrder, ProbeSeries};
use super::recorder::{PacketArrivals, RecordQuota, StreamReception};
use super::stream::{SendingThread, StreamAllowance};
use super::target::ProbeTarget;
use crate::control::ControlConnection;
use crate::resources::ResourceAccount;
use crate::tls::{ConnectionUse, TlsClient};

/// Duration of the datagrams that open the channel, with an interval that doubles between these two.
const OPENING_TIMEOUT: Duration = Duration::from_secs(10);
const FIRST_OPENING_INTERVAL: Duration = Duration::from_millis(100);
const MAX_OPENING_INTERVAL: Duration = Duration::from_secs(1);

/// Reason and remedy where a server has no QUIC.
const WITHOUT_QUIC: &str = "it serves no QUIC: run `linerate serve` there, of this version and built with QUIC (`linerate iperf3 -s` has none)";

/// A session with a server's prober. Threads may share it.
///
/// Dropping it ends the session; end its probers, streams and load connections first.
pub struct ProbeSession {
    target: ProbeTarget,
    tls: Option<TlsClient>,
    remote: SocketAddr,
    hello: ServerHello,
    handshake_rtt: Option<Duration>,
    stop: Option<InterruptSignals>,
    opened: OnceLock<ReflectorOpened>,
    way: OnceLock<SessionAddresses>,
    opening: Mutex<()>,
    joining: Mutex<()>,
    asking: Mutex<()>,
    room: Arc<RecordQuota>,
    allowance: Arc<StreamAllowance>,
    next_reflected: AtomicU16,
    next_recorded: AtomicU16,
    next_connection: AtomicU32,
    clocks: ClockPair,
    /// The fields below end in this order.
    _reading: ReadingThread,
    link: Arc<ControlLink>,
}

struct SessionAddresses {
    datagrams: Arc<DatagramSocket>,
    _receiving: ReceivingThread,
    addresses: DatagramAddresses,
}

/// Addresses of a session's datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramAddresses {
    /// Address of this end.
    pub local: SocketAddr,
    /// Address of the far end.
    pub remote: SocketAddr,
    /// Address of this end as the far end sees it: a different one behind an address translator.
    pub seen_as: SocketAddr,
}

impl core::fmt::Debug for ProbeSession {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ProbeSession").field("remote", &self.remote).finish_non_exhaustive()
    }
}

impl ProbeSession {
    /// Connects, and waits up to 15 s for the server's hello. A readable `stop` ends every wait of the session with
    /// [`ProbeError::Interrupted`].
    ///
    /// # Errors
    ///
    /// [`ProbeError::NoProbeService`] when a service without probe sessions answers, [`ProbeError::Unreachable`] when
    /// none does.
    pub fn open(target: &ProbeTarget, stop: Option<InterruptSignals>) -> Result<Self> {
        let stream = target.connect(stop.as_ref())?;
        let handshake_rtt = tcp_info::read(&stream).ok().and_then(|info| info.rtt);
        let remote = stream.peer_addr().map_err(|cause| ProbeError::io("asking for the server's address", &cause))?;
        let mut entropy = [0; cookie::LENGTH - 1];
        host::random_bytes(&mut entropy)?;
        let cookie = Cookie::probes(entropy);
        let cookie = target.key.map_or(cookie, |key| cookie.with_key(&key));
        let tls = target.tls.as_ref().map(|tls| TlsClient::new(tls, target.address())).transpose()?;
        let mut control = match &tls {
            Some(tls) => tls.secure(stream, ConnectionUse::Control, stop.as_ref().map(|stop| stop.as_fd()))?,
            None => ControlConnection::new(stream)
                .map_err(|cause| ProbeError::io("preparing the control connection", &cause))?,
        };
        control.send(cookie.as_bytes()).map_err(|cause| ProbeError::Lost(linerate_sys::describe_os_error(&cause)))?;
        let (link, reading, hello) = ControlLink::start(control, stop)?;
        if !hello.features.iter().any(|feature| feature == PROBE_FEATURE) {
            return Err(ProbeError::NoProbeService(AnsweringService::WithoutProbes));
        }
        Ok(Self {
            target: target.clone(),
            tls,
            remote,
            hello,
            handshake_rtt,
            stop,
            opened: OnceLock::new(),
            way: OnceLock::new(),
            opening: Mutex::default(),
            joining: Mutex::default(),
            asking: Mutex::default(),
            room: RecordQuota::new(ResourceAccount::default()),
            allowance: StreamAllowance::unlimited(),
            next_reflected: AtomicU16::new(1),
            next_recorded: AtomicU16::new(StreamNumber::FIRST_RECORDED.get()),
            next_connection: AtomicU32::new(1),
            clocks: ClockPair::new(),
            _reading: reading,
            link,
        })
    }

    /// The server's version.
    #[must_use]
    pub fn server_version(&self) -> &str {
        &self.hello.version
    }

    /// Features that the server announces.
    #[must_use]
    pub fn features(&self) -> &[String] {
        &self.hello.features
    }

    /// The server's address, IPv4 never mapped.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        net::canonical(self.remote)
    }

    /// Round-trip time of the control connection's handshake, as the kernel measured it.
    #[must_use]
    pub fn handshake_rtt(&self) -> Option<Duration> {
        self.handshake_rtt
    }

    /// Socket of the control connection, to query the kernel.
    #[must_use]
    pub fn control(&self) -> &TcpStream {
        self.link.stream()
    }

    /// True while the server is alive, as far as is known.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.link.is_alive()
    }

    /// Pair of this host's civil and monotonic clocks.
    #[must_use]
    pub fn clocks(&self) -> &ClockPair {
        &self.clocks
    }

    /// Facts about the server's own host. Waits up to 30 s.
    pub fn facts(&self) -> Result<FarFacts> {
        let _one_at_a_time = lock(&self.asking);
        self.link.send(&StreamRequest::Facts(EmptyContent {}))?;
        self.link.wait_facts()
    }

    /// Has the server expect QUIC connections of this session, until it ends or requests others. Waits up to 30 s.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Refused`] by a server without QUIC.
    pub fn open_quic(&self, order: QuicOrder) -> Result<QuicReady> {
        let _one_at_a_time = lock(&self.asking);
        if !self.hello.features.iter().any(|feature| feature == QUIC_FEATURE) {
            return Err(ProbeError::Refused { request: "quic".to_owned(), reason: WITHOUT_QUIC.to_owned() });
        }
        self.link.send(&StreamRequest::Quic(order))?;
        self.link.wait_quic()
    }

    // Datagrams.

    /// Opens the datagram channel, if there is none yet: sends datagrams until the server reports their arrival, for up
    /// to 10 s.
    ///
    /// # Errors
    ///
    /// [`ProbeError::NoDatagrams`] when none gets through, [`ProbeError::NoDatagramsToDialer`] to a server that dials in.
    pub fn open_datagrams(&self) -> Result<DatagramAddresses> {
        let _one_at_a_time = lock(&self.opening);
        if let Some(way) = self.way.get() {
            return Ok(way.addresses);
        }
        if let Some(reason) = self.target.unreachable_reason() {
            return Err(ProbeError::NoDatagramsToDialer(reason));
        }
        let opened = self.opened()?;
        let remote = net::with_port(self.remote, opened.port);
        let options = UdpOptions {
            address: self.target.bind,
            family: None,
            device: self.target.device.clone(),
            ..UdpOptions::default()
        };
        let socket = net::connect_udp(&options, remote)?;
        let local = socket.local_addr().map_err(|cause| ProbeError::io("asking for the probes' address", &cause))?;
        let datagrams = DatagramSocket::new(socket, None)?;
        let seen_as = self.send_token(&datagrams, opened.token, opened.port)?;
        let receiving = datagrams.start(CLIENT_BATCH)?;
        let addresses = DatagramAddresses {
            local: net::canonical(local),
            remote: net::canonical(remote),
            seen_as: net::canonical(seen_as),
        };
        let _ = self.way.set(SessionAddresses { datagrams, _receiving: receiving, addresses });
        Ok(addresses)
    }

    /// Token of this session, and the port that expects its datagrams.
    fn opened(&self) -> Result<ReflectorOpened> {
        let _one_at_a_time = lock(&self.asking);
        if let Some(opened) = self.opened.get() {
            return Ok(*opened);
        }
        self.link.send(&StreamRequest::Open(EmptyContent {}))?;
        let opened = self.link.wait_opened()?;
        Ok(*self.opened.get_or_init(|| opened))
    }

    /// Sends datagrams with the token until the server answers with a challenge, then with the challenge until the server
    /// sees it, which verifies this end's address.
    fn send_token(&self, datagrams: &DatagramSocket, token: SessionToken, port: Port) -> Result<SocketAddr> {
        let start = clock::monotonic_now();
        let mut pause = FIRST_OPENING_INTERVAL;
        let mut shown = token;
        for sequence in 0.. {
            send_token_packet(datagrams, sequence, &shown);
            let challenge = await_challenge(datagrams.socket(), if shown == token { pause } else { Duration::ZERO });
            if let Some(challenge) = challenge.filter(|challenge| *challenge != shown) {
                shown = challenge;
                continue;
            }
            match self.link.wait_ready(if shown == token { Duration::ZERO } else { pause }) {
                Ok(ready) => return Ok(ready.source),
                Err(ProbeError::TimedOut { .. }) => {}
                Err(other) => return Err(other),
            }
            if clock::monotonic_now().since(start) >= OPENING_TIMEOUT {
                break;
            }
            pause = (pause * 2).min(MAX_OPENING_INTERVAL);
        }
        Err(ProbeError::NoDatagrams { port, after: OPENING_TIMEOUT })
    }

    /// Addresses of the datagram channel; `None` while there is none.
    #[must_use]
    pub fn datagram_addresses(&self) -> Option<DatagramAddresses> {
        self.way.get().map(|way| way.addresses)
    }

    /// Socket of the datagram channel, to query the kernel. Do not read from it.
    pub fn socket(&self) -> Result<&UdpSocket> {
        Ok(self.way()?.datagrams.socket())
    }

    fn way(&self) -> Result<&SessionAddresses> {
        self.way.get().ok_or(ProbeError::NotOpened)
    }

    /// Starts round-trip probes.
    pub fn probe(&self, order: ProbeOrder) -> Result<ProbeSeries> {
        let way = self.way()?;
        // Numbers of ended probers are reused after 998 others: their answers have long arrived.
        let number = self.next_reflected.fetch_add(1, Ordering::Relaxed) % (StreamNumber::FIRST_RECORDED.get() - 2) + 1;
        ProbeSeries::start(&way.datagrams, StreamNumber::new(number), order)
    }

    /// Returns a number for a stream that is recorded, not reflected.
    #[must_use]
    pub fn new_stream(&self) -> StreamNumber {
        let first = StreamNumber::FIRST_RECORDED.get();
        let next = |number: u16| Some(number.checked_add(1).unwrap_or(first));
        StreamNumber::new(self.next_recorded.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or(first))
    }

    // Up: this end sends, the far end records.

    /// Has the far end receive a stream. Waits up to 30 s for the answer.
    pub fn far_receive(&self, stream: StreamNumber, detail: RecordDetail) -> Result<()> {
        self.link.expect_stream(stream);
        self.link.send(&StreamRequest::Receive(ReceiveOrder { stream, detail }))?;
        self.link.wait_receiving(stream)
    }

    /// Starts to send a stream.
    pub fn send(&self, order: SendOrder) -> Result<SendingThread> {
        SendingThread::start(&self.way()?.datagrams, order, &self.allowance, None)
    }

    /// Waits for feedback newer than that with this [`StreamFeedback::time`]; `None` when none arrives within `limit`.
    pub fn wait_feedback(
        &self,
        stream: StreamNumber,
        newer_than: Option<Duration>,
        limit: Duration,
    ) -> Result<Option<StreamFeedback>> {
        self.link.wait_feedback(stream, newer_than, limit)
    }

    /// Ends the far end's reception of a stream; returns its last figures.
    pub fn far_stop_receiving(&self, stream: StreamNumber) -> Result<StreamFeedback> {
        self.link.send(&StreamRequest::Stop(StreamRef { stream }))?;
        self.link.wait_last_feedback(stream)
    }

    /// Ends the far end's reception of a stream with [`RecordDetail::Arrivals`]; returns its records. On a slow path, 1000 of
    /// them take 20 kB.
    pub fn far_collect(&self, stream: StreamNumber) -> Result<PacketArrivals> {
        self.link.send(&StreamRequest::Collect(StreamRef { stream }))?;
        self.link.wait_arrivals(stream)
    }

    // Down: the far end sends, this end records.

    /// Starts to receive a stream; have the far end send it afterwards.
    pub fn receive(&self, stream: StreamNumber, detail: RecordDetail) -> Result<StreamReception> {
        StreamReception::start(&self.way()?.datagrams, stream, detail, &self.room)
    }

    /// Has the far end send a stream. Waits up to 30 s for the answer.
    pub fn far_send(&self, order: SendOrder) -> Result<()> {
        self.way()?;
        self.link.expect_stream(order.stream);
        self.link.send(&StreamRequest::Send(order))?;
        self.link.wait_sending(order.stream)
    }

    /// Changes the payload rate at which the far end sends.
    pub fn far_rate(&self, stream: StreamNumber, rate: BitRate) -> Result<()> {
        self.link.send(&StreamRequest::Rate(RateOrder { stream, rate }))
    }

    /// Ends a stream that the far end sends, or has sent; returns its report.
    pub fn far_stop_sending(&self, stream: StreamNumber) -> Result<SentReport> {
        if let Some(report) = self.link.wait_sent(stream, Duration::ZERO)? {
            return Ok(report);
        }
        self.link.send(&StreamRequest::Stop(StreamRef { stream }))?;
        let report = self.link.wait_sent(stream, ANSWER_LIMIT)?;
        report.ok_or_else(|| ProbeError::TimedOut { request: "stop".to_owned(), after: ANSWER_LIMIT })
    }

    /// Waits until the far end has sent all of a stream; returns its report, `None` when it goes on after `limit`.
    pub fn far_wait_sent(&self, stream: StreamNumber, limit: Duration) -> Result<Option<SentReport>> {
        self.link.wait_sent(stream, limit)
    }

    // Load.

    /// Opens a load connection; it needs no datagram channel. Waits up to 30 s for each step.
    pub fn open_load(&self, options: &LoadOptions) -> Result<LoadConnection> {
        let _one_at_a_time = lock(&self.joining);
        let number = ConnectionNumber(self.next_connection.fetch_add(1, Ordering::Relaxed));
        self.link.expect_load(number);
        LoadConnection::open(self, number, options)
    }

    // Requests and responses.

    /// Has the far end answer requests. Waits up to 30 s for the answer.
    ///
    /// # Errors
    ///
    /// [`ProbeError::NoProbeService`] for a server without that feature.
    pub fn far_rr(&self, order: RrOrder) -> Result<RrReady> {
        if !self.hello.features.iter().any(|feature| feature == RR_FEATURE) {
            return Err(ProbeError::NoProbeService(AnsweringService::WithoutRequests));
        }
        let has = |wanted: &str| self.hello.features.iter().any(|feature| feature == wanted);
        if order.mode.has_handshake() && !has(RR_HANDSHAKE_FEATURE) {
            let reason =
                "it has no handshakes: run `linerate serve` there, of this version and built with TLS".to_owned();
            return Err(ProbeError::Refused { request: "rr".to_owned(), reason });
        }
        if order.mode == RrMode::Quic && !has(QUIC_FEATURE) {
            return Err(ProbeError::Refused { request: "rr".to_owned(), reason: WITHOUT_QUIC.to_owned() });
        }
        if order.keeps_open && !has(RR_OPEN_FEATURE) {
            let reason = "it keeps no connection open for requests: update linerate there".to_owned();
            return Err(ProbeError::Refused { request: "rr".to_owned(), reason });
        }
        let _one_at_a_time = lock(&self.asking);
        self.link.send(&StreamRequest::Rr(order))?;
        self.link.wait_rr_ready()
    }

    /// Ends the far end's answers; returns its report.
    pub fn far_rr_stop(&self) -> Result<RrReport> {
        let _one_at_a_time = lock(&self.asking);
        self.link.send(&StreamRequest::RrStop(EmptyContent {}))?;
        self.link.wait_rr_end()
    }

    pub(super) fn link(&self) -> &Arc<ControlLink> {
        &self.link
    }

    /// TLS of the conversation; `None` is none.
    pub(crate) const fn tls(&self) -> Option<&TlsClient> {
        self.tls.as_ref()
    }

    /// Establishes a TCP connection of this session, which begins with a TLS handshake where the conversation is in TLS.
    pub(crate) fn join_connection(&self, settings: SocketSettings) -> Result<TcpStream> {
        let stream = self.target.connect_to(self.remote(), settings, self.stop()).map_err(ProbeError::from)?;
        let cookie = Cookie::load(self.token()?);
        if let Some(tls) = &self.tls {
            return Ok(tls.join(stream, cookie.as_bytes(), self.stop().map(|stop| stop.as_fd()))?);
        }
        std::io::Write::write_all(&mut &stream, cookie.as_bytes())
            .map_err(|cause| ProbeError::io("joining a connection to its session", &cause))?;
        Ok(stream)
    }

    pub(crate) fn target(&self) -> &ProbeTarget {
        &self.target
    }

    pub(crate) fn remote(&self) -> SocketAddr {
        self.remote
    }

    pub(crate) fn stop(&self) -> Option<&InterruptSignals> {
        self.stop.as_ref()
    }

    pub(crate) fn token(&self) -> Result<SessionToken> {
        Ok(self.opened()?.token)
    }
}

/// Sends a token packet. A refusal answers an earlier one; a later one may succeed.
fn send_token_packet(datagrams: &DatagramSocket, sequence: u32, shown: &SessionToken) {
    let mark = DatagramMarking::of(datagrams.socket(), None);
    let timestamp = StampTimestamp::from_wall(clock::realtime_now(), TimestampFormat::Ntp);
    let packet = SenderPacket { sequence, timestamp, ..SenderPacket::default() };
    let _ = datagrams.send(&token_packet(packet, shown), mark);
}

/// A test packet that shows a token or a challenge, in an Extra Padding option (RFC 8972 §4.1): all have the same length.
pub(crate) fn token_packet(packet: SenderPacket, shown: &SessionToken) -> Vec<u8> {
    packet.encode_with(&[StampTlv::ExtraPadding(shown.as_bytes().to_vec())], ByteCount::ZERO, None)
}

/// Waits for the server's challenge; `None` when none arrives in time.
fn await_challenge(socket: &UdpSocket, limit: Duration) -> Option<SessionToken> {
    if !poll::wait_for(socket, PollInterest::READ, Some(limit)).ok()? {
        return None;
    }
    let mut buffer = [0; 2048];
    // Errors belong to earlier datagrams.
    let length = socket.recv(&mut buffer).ok()?;
    let padding = tlv::first_padding(&buffer[..length])?.first_chunk()?;
    SessionToken::from_characters(*padding)
}
