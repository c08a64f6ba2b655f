//! The client's half of a probe session.

use core::time::Duration;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use linerate_sys::data::train::Mark;
use linerate_sys::net::{self, Family, UdpOptions};
use linerate_sys::signals::Interrupts;
use linerate_sys::time_stamp::ClockPair;
use linerate_sys::{clock, host, tcp_info};
use linerate_units::{BitRate, ByteCount, Port};
use linerate_wire::cookie::{self, Cookie, Token};
use linerate_wire::probe::{
    ConnectionNumber, Detail, Empty, FEATURE, FarFacts, Feedback, Hello, Opened, RateOrder, ReceiveOrder, Request,
    SendOrder, SentReport, StreamNumber, StreamRef,
};
use linerate_wire::stamp::tlv::Tlv;
use linerate_wire::stamp::{BASE_LENGTH, SenderPacket, Timestamp, TimestampFormat};

use super::datagrams::{Datagrams, Receiving};
use super::error::{Answering, ProbeError, Result};
use super::link::{ANSWER_LIMIT, Link, Reading};
use super::load::{LoadConnection, LoadOptions};
use super::lock;
use super::prober::{ProbeOrder, Prober};
use super::recorder::{Arrivals, Reception, Room};
use super::stream::{Allowance, Sending};
use super::target::Target;

/// How long datagrams are sent that ask for a way, at doubling distances between these two.
const KNOCKING: Duration = Duration::from_secs(10);
const FIRST_KNOCK: Duration = Duration::from_millis(100);
const LAST_KNOCK: Duration = Duration::from_secs(1);

/// A session with a server's prober. It may be shared by threads.
///
/// Dropping it ends the session; provers, streams and load connections that were made with it should be ended before.
pub struct ProbeSession {
    target: Target,
    remote: SocketAddr,
    hello: Hello,
    handshake_rtt: Option<Duration>,
    stop: Option<Interrupts>,
    opened: OnceLock<Opened>,
    way: OnceLock<Way>,
    opening: Mutex<()>,
    joining: Mutex<()>,
    asking: Mutex<()>,
    room: Arc<Room>,
    allowance: Arc<Allowance>,
    next_reflected: AtomicU16,
    next_recorded: AtomicU16,
    next_connection: AtomicU32,
    clocks: ClockPair,
    /// The fields below end in this order.
    _reading: Reading,
    link: Arc<Link>,
}

struct Way {
    datagrams: Arc<Datagrams>,
    _receiving: Receiving,
    addresses: DatagramWay,
}

/// The addresses between which a session's datagrams go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramWay {
    /// This end's.
    pub local: SocketAddr,
    /// The far end's.
    pub remote: SocketAddr,
    /// This end's as the far end sees it: another one where addresses are translated on the way.
    pub seen_as: SocketAddr,
}

impl core::fmt::Debug for ProbeSession {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ProbeSession").field("remote", &self.remote).finish_non_exhaustive()
    }
}

impl ProbeSession {
    /// Connects, and waits for the server to introduce itself: up to 15 s. A readable `stop` ends every wait of the
    /// session with [`ProbeError::Interrupted`].
    ///
    /// # Errors
    ///
    /// [`ProbeError::NoProbeService`] when something answers that has no probe sessions, [`ProbeError::Unreachable`]
    /// when nothing does.
    pub fn open(target: &Target, stop: Option<Interrupts>) -> Result<Self> {
        let stream = target.connect(stop.as_ref())?;
        let handshake_rtt = tcp_info::read(&stream).ok().and_then(|info| info.rtt);
        let remote = stream.peer_addr().map_err(|cause| ProbeError::io("asking for the server's address", &cause))?;
        let mut entropy = [0; cookie::LENGTH - 1];
        host::random_bytes(&mut entropy)?;
        (&stream)
            .write_all(Cookie::probes(entropy).as_bytes())
            .map_err(|cause| ProbeError::Lost(linerate_sys::describe_os_error(&cause)))?;
        let (link, reading, hello) = Link::start(stream, stop)?;
        if !hello.features.iter().any(|feature| feature == FEATURE) {
            return Err(ProbeError::NoProbeService(Answering::WithoutProbes));
        }
        Ok(Self {
            target: target.clone(),
            remote,
            hello,
            handshake_rtt,
            stop,
            opened: OnceLock::new(),
            way: OnceLock::new(),
            opening: Mutex::default(),
            joining: Mutex::default(),
            asking: Mutex::default(),
            room: Room::new(),
            allowance: Allowance::unlimited(),
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

    /// What the server says it can do.
    #[must_use]
    pub fn features(&self) -> &[String] {
        &self.hello.features
    }

    /// The server's address, IPv4 never mapped.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        net::canonical(self.remote)
    }

    /// The round-trip time of the control connection's handshake, as the kernel measured it.
    #[must_use]
    pub fn handshake_rtt(&self) -> Option<Duration> {
        self.handshake_rtt
    }

    /// The control connection, to ask the kernel about it.
    #[must_use]
    pub fn control(&self) -> &TcpStream {
        self.link.stream()
    }

    /// Whether the server is still there, as far as is known.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.link.is_alive()
    }

    /// This host's civil and monotonic clocks side by side.
    #[must_use]
    pub fn clocks(&self) -> &ClockPair {
        &self.clocks
    }

    /// What the server knows of its own host. Waits up to 30 s.
    pub fn facts(&self) -> Result<FarFacts> {
        let _one_at_a_time = lock(&self.asking);
        self.link.send(&Request::Facts(Empty {}))?;
        self.link.wait_facts()
    }

    // Datagrams.

    /// Opens a way for datagrams, if there is none yet: sends them until the server says that they arrive, for up to
    /// 10 s.
    ///
    /// # Errors
    ///
    /// [`ProbeError::NoDatagrams`] when none gets through.
    pub fn open_datagrams(&self) -> Result<DatagramWay> {
        let _one_at_a_time = lock(&self.opening);
        if let Some(way) = self.way.get() {
            return Ok(way.addresses);
        }
        let opened = self.opened()?;
        let remote = SocketAddr::new(self.remote.ip(), opened.port.get());
        let remote = match (remote, self.remote) {
            // The scope of a link-local address goes with it.
            (SocketAddr::V6(mut to), SocketAddr::V6(control)) => {
                to.set_scope_id(control.scope_id());
                SocketAddr::V6(to)
            }
            (other, _) => other,
        };
        let options = UdpOptions {
            address: self.target.bind,
            family: Family::Any,
            device: self.target.device.clone(),
            ..UdpOptions::default()
        };
        let socket = net::connect_udp(&options, remote)?;
        let local = socket.local_addr().map_err(|cause| ProbeError::io("asking for the probes' address", &cause))?;
        let datagrams = Datagrams::new(socket, None)?;
        let seen_as = self.knock(&datagrams, opened.token, opened.port)?;
        let receiving = datagrams.start()?;
        let addresses = DatagramWay {
            local: net::canonical(local),
            remote: net::canonical(remote),
            seen_as: net::canonical(seen_as),
        };
        let _ = self.way.set(Way { datagrams, _receiving: receiving, addresses });
        Ok(addresses)
    }

    /// The token of this session, and the port that awaits its datagrams.
    fn opened(&self) -> Result<Opened> {
        let _one_at_a_time = lock(&self.asking);
        if let Some(opened) = self.opened.get() {
            return Ok(*opened);
        }
        self.link.send(&Request::Open(Empty {}))?;
        let opened = self.link.wait_opened()?;
        Ok(*self.opened.get_or_init(|| opened))
    }

    /// Sends datagrams with the token until they are seen.
    fn knock(&self, datagrams: &Datagrams, token: Token, port: Port) -> Result<SocketAddr> {
        let mark = Mark::of(datagrams.socket(), None);
        let padding = Tlv::ExtraPadding(token.as_bytes().to_vec());
        let size = BASE_LENGTH + ByteCount::from_usize(token.as_bytes().len() + 4);
        let start = clock::monotonic_now();
        let mut pause = FIRST_KNOCK;
        for sequence in 0.. {
            let timestamp = Timestamp::from_wall(clock::realtime_now(), TimestampFormat::Ntp);
            let packet = SenderPacket { sequence, timestamp, ..SenderPacket::default() };
            // A refusal is the answer to an earlier one; a later one may fare better.
            let _ = datagrams.send(&packet.encode_with(core::slice::from_ref(&padding), size, None), mark);
            match self.link.wait_ready(pause) {
                Ok(ready) => return Ok(ready.source),
                Err(ProbeError::TimedOut { .. }) => {}
                Err(other) => return Err(other),
            }
            if clock::monotonic_now().since(start) >= KNOCKING {
                break;
            }
            pause = (pause * 2).min(LAST_KNOCK);
        }
        Err(ProbeError::NoDatagrams { port, after: KNOCKING })
    }

    /// The addresses of the way for datagrams; `None` while there is none.
    #[must_use]
    pub fn datagram_way(&self) -> Option<DatagramWay> {
        self.way.get().map(|way| way.addresses)
    }

    /// The socket of the way for datagrams, to ask the kernel about it. Nobody else may read from it.
    pub fn socket(&self) -> Result<&UdpSocket> {
        Ok(self.way()?.datagrams.socket())
    }

    fn way(&self) -> Result<&Way> {
        self.way.get().ok_or(ProbeError::NotOpened)
    }

    /// Begins to send round-trip probes.
    pub fn probe(&self, order: ProbeOrder) -> Result<Prober> {
        let way = self.way()?;
        // Numbers of probers that have ended may come again after 998 of them: their answers are long through.
        let number = self.next_reflected.fetch_add(1, Ordering::Relaxed) % (StreamNumber::FIRST_RECORDED.get() - 2) + 1;
        Prober::start(&way.datagrams, StreamNumber::new(number), order)
    }

    /// A number for a stream that is recorded, not reflected.
    #[must_use]
    pub fn new_stream(&self) -> StreamNumber {
        let first = StreamNumber::FIRST_RECORDED.get();
        let next = |number: u16| Some(number.checked_add(1).unwrap_or(first));
        StreamNumber::new(self.next_recorded.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or(first))
    }

    // Up: this end sends, the far end records.

    /// Has the far end receive a stream. Waits up to 30 s for its word.
    pub fn far_receive(&self, stream: StreamNumber, detail: Detail) -> Result<()> {
        self.link.expect_stream(stream);
        self.link.send(&Request::Receive(ReceiveOrder { stream, detail }))?;
        self.link.wait_receiving(stream)
    }

    /// Begins to send a stream.
    pub fn send(&self, order: SendOrder) -> Result<Sending> {
        Sending::start(&self.way()?.datagrams, order, &self.allowance, None)
    }

    /// The newest that the far end has told of a stream with [`Detail::Counts`].
    #[must_use]
    pub fn far_feedback(&self, stream: StreamNumber) -> Option<Feedback> {
        self.link.feedback(stream)
    }

    /// Waits for a feedback newer than the one of that [`Feedback::time`]; `None` when none comes within `limit`.
    pub fn wait_feedback(
        &self,
        stream: StreamNumber,
        newer_than: Option<Duration>,
        limit: Duration,
    ) -> Result<Option<Feedback>> {
        self.link.wait_feedback(stream, newer_than, limit)
    }

    /// Ends the far end's reception of a stream: its last figures.
    pub fn far_stop_receiving(&self, stream: StreamNumber) -> Result<Feedback> {
        self.link.send(&Request::Stop(StreamRef { stream }))?;
        self.link.wait_last_feedback(stream)
    }

    /// Ends the far end's reception of a stream with [`Detail::Arrivals`]: its records. On a slow path, 1000 of them
    /// take 20 kB.
    pub fn far_collect(&self, stream: StreamNumber) -> Result<Arrivals> {
        self.link.send(&Request::Collect(StreamRef { stream }))?;
        self.link.wait_arrivals(stream)
    }

    // Down: the far end sends, this end records.

    /// Begins to receive a stream, which the far end should send only then.
    pub fn receive(&self, stream: StreamNumber, detail: Detail) -> Result<Reception> {
        Reception::start(&self.way()?.datagrams, stream, detail, &self.room)
    }

    /// Has the far end send a stream. Waits up to 30 s for its word.
    pub fn far_send(&self, order: SendOrder) -> Result<()> {
        self.way()?;
        self.link.expect_stream(order.stream);
        self.link.send(&Request::Send(order))?;
        self.link.wait_sending(order.stream)
    }

    /// Changes the payload rate at which the far end sends.
    pub fn far_rate(&self, stream: StreamNumber, rate: BitRate) -> Result<()> {
        self.link.send(&Request::Rate(RateOrder { stream, rate }))
    }

    /// Ends a stream that the far end sends, or has sent: what became of it.
    pub fn far_stop_sending(&self, stream: StreamNumber) -> Result<SentReport> {
        if let Some(report) = self.link.wait_sent(stream, Duration::ZERO)? {
            return Ok(report);
        }
        self.link.send(&Request::Stop(StreamRef { stream }))?;
        let report = self.link.wait_sent(stream, ANSWER_LIMIT)?;
        report.ok_or_else(|| ProbeError::TimedOut { request: "stop".to_owned(), after: ANSWER_LIMIT })
    }

    /// Waits until the far end has sent all of a stream: what became of it, `None` when it goes on after `limit`.
    pub fn far_wait_sent(&self, stream: StreamNumber, limit: Duration) -> Result<Option<SentReport>> {
        self.link.wait_sent(stream, limit)
    }

    // Load.

    /// Makes a load connection; it needs no way for datagrams. Waits up to 30 s for each step.
    pub fn open_load(&self, options: &LoadOptions) -> Result<LoadConnection> {
        let _one_at_a_time = lock(&self.joining);
        let number = ConnectionNumber(self.next_connection.fetch_add(1, Ordering::Relaxed));
        self.link.expect_load(number);
        LoadConnection::open(self, number, options)
    }

    pub(super) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    pub(super) fn remote(&self) -> SocketAddr {
        self.remote
    }

    pub(super) fn stop(&self) -> Option<&Interrupts> {
        self.stop.as_ref()
    }

    pub(super) fn token(&self) -> Result<Token> {
        Ok(self.opened()?.token)
    }
}
