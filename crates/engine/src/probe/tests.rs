//! Both halves of a probe session over the loopback device.

use core::time::Duration;
use linerate_model::direction::Direction;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use linerate_model::address_family::AddressFamily;
use linerate_model::event::TestEvent;
use linerate_model::report::ServerOutput;
use linerate_sys::clock;
use linerate_sys::poll::{self, PollInterest, Waker};
use linerate_units::{BitRate, ByteCount, PacketCount, Port, TypeOfService, WallTime};
use linerate_wire::cookie::Cookie;
use linerate_wire::parameters::ServerLimits;
use linerate_wire::probe::{
    EmptyContent, PacketSpacing, ProbeMessageDecoder, ProbeResponse, RecordDetail, ReflectorOpened, SendLimit,
    SendOrder, StreamFeedback, StreamNumber, StreamRequest,
};
use linerate_wire::stamp::SenderPacket;
use linerate_wire::stamp::tlv::StampTlv;

use super::*;
use crate::server::{Server, ServerObserver, ServerOptions, SessionObserver, StampOptions};

/// Notifies a test of the start and end of sessions.
struct SessionWatcher(Sender<&'static str>);

struct IgnoredEvents;

impl ServerObserver for SessionWatcher {
    fn idle(&self, _: u64) {
        let _ = self.0.send("idle");
    }

    fn session(&self, _: u64) -> Box<dyn SessionObserver> {
        let _ = self.0.send("session");
        Box::new(IgnoredEvents)
    }

    fn problem(&self, text: &str) {
        panic!("{text}");
    }
}

impl SessionObserver for IgnoredEvents {
    fn event(&mut self, _: &TestEvent) {}

    fn output(&mut self) -> Option<ServerOutput> {
        None
    }

    fn failed(&mut self, _: &crate::Error) {}
}

/// Serves clients until the test program ends. The returned receiver reports sessions.
fn serve(options: ServerOptions) -> (ProbeTarget, Receiver<&'static str>) {
    let (told, news) = channel();
    let address = Some(Ipv4Addr::LOCALHOST.into());
    let server = Server::bind(ServerOptions { address, port: None, family: Some(AddressFamily::Ipv4), ..options });
    let server = server.expect("a free port");
    let port = Port::new(server.address().port()).expect("bound");
    std::thread::spawn(move || server.run(None, &SessionWatcher(told)));
    (ProbeTarget::new("127.0.0.1", port), news)
}

/// A free UDP port that no other program is likely to use.
fn free_udp_port() -> Port {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    Port::new(socket.local_addr().expect("bound").port()).expect("bound")
}

fn open(options: ServerOptions) -> (ProbeSession, DatagramAddresses) {
    let session = ProbeSession::open(&serve(options).0, None).expect("a probe service");
    let way = session.open_datagrams().expect("nothing is lost on loopback");
    (session, way)
}

fn order(session: &ProbeSession, count: u64, megabits: f64) -> SendOrder {
    SendOrder {
        stream: session.new_stream(),
        size: ByteCount::new(200),
        rate: BitRate::from_bits_per_second(megabits * 1e6),
        spacing: PacketSpacing::Periodic,
        limit: SendLimit { count: Some(PacketCount::new(count)), duration: None },
        type_of_service: TypeOfService::new(0xB8),
        dont_fragment: true,
    }
}

/// Waits until `done`, for at most ten seconds.
fn within_ten_seconds(mut done: impl FnMut() -> bool) {
    let deadline = clock::monotonic_now() + Duration::from_secs(10);
    while !done() {
        assert!(clock::monotonic_now() < deadline, "it takes too long");
        clock::sleep_until(clock::monotonic_now() + Duration::from_millis(2));
    }
}

#[test]
fn a_session_reports_the_far_host() {
    let (session, _) = open(ServerOptions::default());
    assert!(session.features().iter().any(|feature| feature == "probe"));
    assert!(session.handshake_rtt().is_some());
    let facts = session.facts().expect("an answer");
    assert_eq!(facts.interface.as_deref(), Some("lo"));
    assert_eq!(facts.kernel, Some(linerate_sys::host::kernel_release()));
    assert!(facts.congestion_controls.iter().any(|name| name == "reno"), "{facts:?}");
    assert_eq!(facts.other_sessions, Some(PacketCount::ZERO));
    let control = facts.control.expect("it is connected");
    assert!(control.rtt.is_some());
    let first = facts.counters.expect("lo counts");
    let syn = facts.syn.expect("a saved SYN");
    assert_eq!(syn.source, session.control().local_addr().expect("connected"));
    assert!(syn.mss.is_some_and(|mss| mss > 536), "{syn:?}");
    let second = session.facts().expect("an answer").counters.expect("lo counts");
    assert!(second.received_bytes > first.received_bytes, "the answer itself went through it");
}

#[test]
fn a_datagram_channel_opens_with_and_without_a_reflector() {
    let stamp = StampOptions { port: Some(free_udp_port()), ..StampOptions::default() };
    let port = stamp.port.expect("chosen").get();
    let (session, way) = open(ServerOptions { stamp: Some(stamp), ..ServerOptions::default() });
    assert_eq!(way.remote.port(), port, "a socket of its own on the reflector's port");
    assert_eq!(way.seen_as, way.local);
    assert_eq!(session.open_datagrams(), Ok(way), "once is enough");
    let (_other, elsewhere) = open(ServerOptions::default());
    assert_ne!(elsewhere.remote.port(), port);
}

#[test]
fn answers_wake_the_registered_waker() {
    let stamp = StampOptions { port: Some(free_udp_port()), ..StampOptions::default() };
    let (session, _) = open(ServerOptions { stamp: Some(stamp), ..ServerOptions::default() });
    let prober = session.probe(ProbeOrder::every(Duration::from_millis(20))).expect("an open channel");
    let waker = Arc::new(Waker::new().expect("eventfd"));
    prober.wake_on_answers(Arc::clone(&waker));
    for _ in 0..3 {
        assert!(poll::wait_for(&*waker, PollInterest::READ, Some(Duration::from_secs(10))).expect("waits"));
        assert!(waker.drain());
        assert!(prober.since(0).iter().any(|result| result.answer.is_some()));
    }
}

#[test]
fn probes_are_answered_in_their_class() {
    let stamp = StampOptions { port: Some(free_udp_port()), ..StampOptions::default() };
    let (session, _) = open(ServerOptions { stamp: Some(stamp), ..ServerOptions::default() });
    let interval = Duration::from_millis(2);
    let mark = TypeOfService::new(0xB8);
    let count = Some(PacketCount::new(20));
    let marked = ProbeOrder { type_of_service: mark, count, ..ProbeOrder::every(interval) };
    let poisson = PacketSpacing::Poisson { seed: 1 };
    let plain = ProbeOrder { size: ByteCount::new(44), spacing: poisson, count, ..ProbeOrder::every(interval) };
    let probers = [marked, plain].map(|order| (order, session.probe(order).expect("an open channel")));
    for (order, prober) in probers {
        within_ten_seconds(|| prober.is_over());
        let results = prober.stop(Duration::from_secs(10));
        assert_eq!(results.len(), 20);
        for (index, result) in results.iter().enumerate() {
            let answer = result.answer.expect("nothing is lost on loopback");
            assert_eq!((result.sequence as usize, answer.far_sequence as usize), (index, index));
            assert_eq!((answer.up_time_to_live, answer.down_time_to_live), (Some(64), Some(64)));
            assert_eq!(answer.down_type_of_service, Some(order.type_of_service));
            let told = (order.size >= ByteCount::new(52)).then_some(order.type_of_service);
            assert_eq!(answer.up_type_of_service, told, "short probes have no space for the option");
            let (there, back) = (answer.far_received.expect("stamped"), answer.far_sent.expect("stamped"));
            // One host has one clock; its stamps have the resolution of NTP.
            let slack = Duration::from_nanos(2);
            assert!(there.since_unix_epoch() + slack >= result.sent.wall.since_unix_epoch());
            assert!(back.since_unix_epoch() + slack >= there.since_unix_epoch());
            assert!(answer.received.wall.since_unix_epoch() + slack >= back.since_unix_epoch());
            assert!(answer.round_trip <= answer.received.monotonic.since(result.sent.monotonic));
        }
    }
}

#[test]
fn a_stream_up_arrives_packet_by_packet() {
    let (session, _) = open(ServerOptions::default());
    let order = order(&session, 2500, 16.0);
    session.far_receive(order.stream, RecordDetail::Arrivals).expect("a free stream");
    let report = session.send(order).expect("an open channel").wait();
    assert_eq!((report.packets, report.bytes), (PacketCount::new(2500), ByteCount::new(500_000)));
    assert_eq!(report.refused_too_large + report.refused_no_room, PacketCount::ZERO);
    // Packets in flight may arrive after the request.
    clock::sleep_until(clock::monotonic_now() + Duration::from_millis(100));
    let arrivals = session.far_collect(order.stream).expect("records");
    let numbers: Vec<u32> = arrivals.packets.iter().map(|packet| packet.sequence).collect();
    assert_eq!(numbers, (0..2500).collect::<Vec<_>>(), "in order, across several messages");
    assert_eq!((arrivals.not_kept, arrivals.dropped_in_host), (PacketCount::ZERO, Some(PacketCount::ZERO)));
    for packet in &arrivals.packets {
        assert_eq!(packet.size, order.size);
        assert_eq!(packet.type_of_service, Some(order.type_of_service));
        assert_eq!(packet.time_to_live, Some(64));
        assert!(packet.arrived.since_unix_epoch() + Duration::from_nanos(2) >= packet.sent.since_unix_epoch());
    }
    // 2499 gaps of 100 µs: a sender that is late catches up, one that is early would not keep the rate.
    let (first, last) = (report.first.expect("sent"), report.newest.expect("sent"));
    let took = last.since_unix_epoch().saturating_sub(first.since_unix_epoch());
    assert!(took >= Duration::from_millis(249), "{took:?}");
    session.far_collect(order.stream).expect_err("it is over");
}

#[test]
fn a_stream_down_is_periodic_or_poisson_or_has_bursts() {
    let (session, _) = open(ServerOptions::default());
    let all = [PacketSpacing::Periodic, PacketSpacing::Poisson { seed: 3 }, PacketSpacing::Bursts { packets: 10 }];
    for spacing in all {
        let order = SendOrder { spacing, ..order(&session, 200, 1.6) };
        let reception = session.receive(order.stream, RecordDetail::Arrivals).expect("a free stream");
        let milliseconds = |time: WallTime| time.since_unix_epoch().as_secs_f64() * 1e3;
        // The first packet may be late, and later ones catch up.
        let ordered_at = milliseconds(clock::realtime_now());
        session.far_send(order).expect("a free stream");
        let report = session.far_wait_sent(order.stream, Duration::from_secs(10)).expect("alive").expect("ended");
        assert_eq!(report.packets, PacketCount::new(200));
        assert_eq!(session.far_stop_sending(order.stream).expect("reported already"), report);
        within_ten_seconds(|| reception.feedback().packets == report.packets);
        let (feedback, arrivals) = reception.finish();
        assert!(feedback.last && feedback.lost().is_zero() && feedback.duplicates.is_zero());
        assert_eq!((feedback.highest, feedback.bytes), (Some(199), ByteCount::new(40_000)));
        assert_eq!(feedback.highest_sent, arrivals.packets.last().map(|packet| packet.sent));
        let times: Vec<f64> = arrivals.packets.iter().map(|packet| milliseconds(packet.sent)).collect();
        let shortest = times.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
        let whole = times[199] - ordered_at;
        match spacing {
            // The last is due after 199 gaps of 1 ms.
            PacketSpacing::Periodic => assert!(whole >= 198.9, "{whole} ms"),
            // The sum of 199 exponential distances has a standard deviation of 14 ms; and of 199 the shortest is
            // longer than a quarter of the mean with a probability of e^-50.
            PacketSpacing::Poisson { .. } => {
                assert!(whole > 199.0 - 5.0 * 14.2 && shortest < 0.25, "{whole} {shortest}");
            }
            // Of 20 bursts the last begins after 190 ms; the packets of a burst have one time of sending.
            PacketSpacing::Bursts { .. } => {
                assert!(whole >= 189.9 && times.chunks(10).all(|burst| burst[9] - burst[0] < 5.0), "{times:?}");
            }
        }
    }
}

#[test]
fn a_fast_stream_is_counted_in_both_directions() {
    let (session, _) = open(ServerOptions::default());
    let limit = SendLimit { count: None, duration: Some(Duration::from_secs(20)) };
    let fast = |megabits| SendOrder { limit, size: ByteCount::new(1400), ..order(&session, 1, megabits) };
    let up = fast(200.0);
    session.far_receive(up.stream, RecordDetail::Counts).expect("a free stream");
    let sending = session.send(up).expect("an open channel");
    let mut last: Option<StreamFeedback> = None;
    for _ in 0..5 {
        let newer = session.wait_feedback(up.stream, last.map(|last| last.time), Duration::from_secs(10));
        let newer = newer.expect("alive").expect("every 50 ms");
        assert!(last.is_none_or(|last| newer.time > last.time && newer.packets >= last.packets));
        last = Some(newer);
    }
    sending.set_rate(BitRate::from_bits_per_second(400e6));
    assert!(!sending.is_over());
    let report = sending.stop();
    assert_eq!(report.rate, BitRate::from_bits_per_second(400e6));
    let newest = || session.wait_feedback(up.stream, None, Duration::from_secs(10)).expect("alive").expect("feedback");
    let mut far = newest();
    within_ten_seconds(|| {
        far = newest();
        // A host that drops packets reports them.
        far.packets + far.dropped_in_host.unwrap_or_default() >= report.packets
    });
    assert_eq!(far.bytes, far.packets * up.size);
    let end = session.far_stop_receiving(up.stream).expect("alive");
    assert!(end.last && end.packets == far.packets && end.duplicates.is_zero());
    let last = report.packets.get() - 1;
    if end.highest.map(u64::from) == Some(last) {
        assert_eq!(end.highest_sent, report.newest, "the time stamp is that of the last train, not of the first");
    }

    let down = fast(200.0);
    let reception = session.receive(down.stream, RecordDetail::Counts).expect("a free stream");
    session.far_send(down).expect("a free stream");
    within_ten_seconds(|| reception.feedback().packets > PacketCount::new(1000));
    session.far_rate(down.stream, BitRate::from_bits_per_second(1e6)).expect("alive");
    let sent = session.far_stop_sending(down.stream).expect("alive");
    assert_eq!(sent.rate, BitRate::from_bits_per_second(1e6));
    within_ten_seconds(|| {
        let seen = reception.feedback();
        seen.packets + seen.dropped_in_host.unwrap_or_default() >= sent.packets
    });
    assert!(reception.finish().1.packets.is_empty(), "counted, not kept");
}

#[test]
fn too_large_packets_are_reported() {
    let (session, _) = open(ServerOptions::default());
    // Loopback carries all that UDP can: only an invalid datagram cannot be sent there.
    let largest = SendOrder { size: ByteCount::new(65507), ..order(&session, 3, 100.0) };
    let reception = session.receive(largest.stream, RecordDetail::Arrivals).expect("a free stream");
    session.far_send(largest).expect("a free stream");
    let report = session.far_wait_sent(largest.stream, Duration::from_secs(10)).expect("alive").expect("ended");
    assert_eq!(report.packets + report.refused_too_large, PacketCount::new(3));
    within_ten_seconds(|| reception.feedback().packets == report.packets);
    assert!(session.probe(ProbeOrder { size: ByteCount::new(43), ..ProbeOrder::every(Duration::ZERO) }).is_err());
}

#[test]
fn load_runs_in_both_directions_with_pings() {
    let (session, _) = open(ServerOptions::default());
    for direction in [Direction::Down, Direction::Up] {
        let options = LoadOptions {
            congestion_control: Some("reno".into()),
            ping_interval: Some(Duration::from_millis(5)),
            ..LoadOptions::new(direction)
        };
        let load = session.open_load(&options).expect("a free connection");
        assert_eq!((load.local_congestion_control(), load.far_congestion_control()), (Some("reno"), Some("reno")));
        within_ten_seconds(|| load.pings(0).iter().filter(|ping| ping.round_trip.is_some()).count() >= 5);
        assert_eq!(load.bytes(), ByteCount::ZERO, "it has not been started");
        load.start().expect("alive");
        within_ten_seconds(|| load.bytes() > ByteCount::from_mebibytes(8));
        // The pings are 5 ms apart at least, so that the receiver's samples, 50 ms apart, are several.
        let before = load.pings(0).len();
        within_ten_seconds(|| load.pings(before).iter().filter(|ping| ping.round_trip.is_some()).count() >= 60);
        assert_eq!(load.broken(), None);
        let outcome = load.stop();
        let far = outcome.far.as_ref().expect("alive");
        assert_eq!((&outcome.near.broken, &far.broken), (&None, &None));
        let (sender, receiver) =
            (outcome.sender(direction).expect("a record"), outcome.receiver(direction).expect("a record"));
        assert!(receiver.bytes <= sender.bytes + ByteCount::from_mebibytes(1) && receiver.bytes.get() > 8 << 20);
        assert!(sender.samples.len() > 1 && sender.goodput.is_empty(), "{} samples", sender.samples.len());
        assert!(receiver.goodput.len() > 2 && receiver.samples.is_empty());
        assert!(
            sender.samples.windows(2).all(|pair| {
                pair[0].time < pair[1].time && pair[0].bytes_acknowledged <= pair[1].bytes_acknowledged
            })
        );
        assert!(receiver.goodput.windows(2).all(|pair| pair[0].bytes <= pair[1].bytes));
        assert!(sender.samples.iter().any(|sample| sample.rtt.is_some() && sample.congestion_window.is_some()));
    }
}

#[test]
fn an_unknown_congestion_control_is_refused() {
    let (session, _) = open(ServerOptions::default());
    let none = LoadOptions { congestion_control: Some("none-such".into()), ..LoadOptions::new(Direction::Down) };
    let error = session.open_load(&none).expect_err("unknown");
    assert!(error.to_string().contains("TCP_CONGESTION"), "{error}");
    session.open_load(&LoadOptions::new(Direction::Down)).expect("the session goes on");
}

#[test]
fn too_many_streams_are_refused() {
    let (session, _) = open(ServerOptions::default());
    let streams: Vec<_> = (0..64).map(|_| session.new_stream()).collect();
    for stream in &streams {
        session.far_receive(*stream, RecordDetail::Counts).expect("a free stream");
    }
    let one_more = session.new_stream();
    let error = session.far_receive(one_more, RecordDetail::Counts).expect_err("too many");
    assert!(matches!(&error, ProbeError::Refused { request, .. } if request == "receive"), "{error}");
    session.far_stop_receiving(streams[0]).expect("alive");
    session.far_receive(one_more, RecordDetail::Counts).expect("a free stream again");
}

/// A client with hand-written messages.
struct Bare {
    stream: TcpStream,
    decoder: ProbeMessageDecoder,
}

impl Bare {
    fn new(target: &ProbeTarget) -> Self {
        let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), target.port.get());
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("an option");
        stream.write_all(Cookie::probes([3; 36]).as_bytes()).expect("buffer space");
        let mut bare = Self { stream, decoder: ProbeMessageDecoder::of_answers() };
        assert!(matches!(bare.answer(), ProbeResponse::Hello(_)));
        bare
    }

    fn open(&mut self) -> ReflectorOpened {
        let ProbeResponse::Opened(opened) = self.ask(&StreamRequest::Open(EmptyContent {})) else { panic!("no port") };
        opened
    }

    fn ask(&mut self, request: &StreamRequest) -> ProbeResponse {
        self.stream.write_all(&request.encode()).expect("buffer space");
        self.answer()
    }

    fn answer(&mut self) -> ProbeResponse {
        loop {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).expect("an answer");
            if let Some(document) = self.decoder.feed(&mut &byte[..]).expect("framed") {
                return ProbeResponse::decode(&document).expect("readable").expect("known");
            }
        }
    }
}

#[test]
fn nothing_is_sent_to_an_address_without_the_token() {
    let stamp = StampOptions { port: Some(free_udp_port()), ..StampOptions::default() };
    let (target, _news) = serve(ServerOptions { stamp: Some(stamp), ..ServerOptions::default() });
    let mut client = Bare::new(&target);
    let opened = client.open();
    // An address other than the client's, without its token.
    let innocent = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    innocent.set_read_timeout(Some(Duration::from_millis(200))).expect("an option");
    let wrong = packet_showing(&[b'a'; 27]);
    innocent.send_to(&wrong, ("127.0.0.1", opened.port.get())).expect("loopback");
    // The shared reflector answers it, as it does any sender's packet, with a packet of the same size.
    let mut buffer = [0; 2048];
    let length = innocent.recv(&mut buffer).expect("an answer");
    assert_eq!(length, wrong.len());
    assert!(is_refused(&mut client));
    innocent.recv(&mut buffer).expect_err("nothing more comes");
}

/// Options of a server with a shared reflector, and of one whose sessions have ports of their own.
fn datagram_services() -> [ServerOptions; 2] {
    let stamp = StampOptions { port: Some(free_udp_port()), ..StampOptions::default() };
    [ServerOptions { stamp: Some(stamp), ..ServerOptions::default() }, ServerOptions::default()]
}

fn stream_order() -> SendOrder {
    SendOrder {
        stream: StreamNumber::FIRST_RECORDED,
        size: ByteCount::new(100),
        rate: BitRate::from_bits_per_second(1e6),
        spacing: PacketSpacing::Periodic,
        limit: SendLimit::default(),
        type_of_service: TypeOfService::default(),
        dont_fragment: false,
    }
}

fn packet_showing(padding: &[u8]) -> Vec<u8> {
    let padding = StampTlv::ExtraPadding(padding.to_vec());
    SenderPacket::default().encode_with(&[padding], ByteCount::ZERO, None)
}

/// A socket that sends to this port of the server, and waits up to 5 s for what comes from there.
fn socket_to(opened: &ReflectorOpened) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    socket.connect(("127.0.0.1", opened.port.get())).expect("loopback");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("an option");
    socket
}

/// Shows the token, and returns the challenge.
fn challenge(socket: &UdpSocket, opened: &ReflectorOpened) -> Vec<u8> {
    socket.send(&packet_showing(opened.token.as_bytes())).expect("loopback");
    let mut buffer = [0; 2048];
    let length = socket.recv(&mut buffer).expect("a challenge");
    linerate_wire::stamp::tlv::first_padding(&buffer[..length]).expect("padding").to_vec()
}

fn is_refused(client: &mut Bare) -> bool {
    let answer = client.ask(&StreamRequest::Send(stream_order()));
    matches!(&answer, ProbeResponse::Refused(refused) if refused.request == "send")
}

/// Datagrams with the forged address of a victim look to the server as if the victim had sent them.
#[test]
fn a_forged_source_receives_no_more_than_it_seems_to_send() {
    for options in datagram_services() {
        let (target, _news) = serve(options);
        let mut client = Bare::new(&target);
        let opened = client.open();
        let victim = socket_to(&opened);
        victim.set_read_timeout(Some(Duration::from_millis(300))).expect("an option");
        let token = opened.token.as_bytes();
        // Shortened, the token is answered by nothing that is longer.
        let datagrams = [packet_showing(&token[..16]), packet_showing(token), packet_showing(&token.repeat(2))];
        let mut sent = 0;
        for datagram in datagrams.iter().cycle().take(30) {
            sent += victim.send(datagram).expect("loopback");
            assert!(is_refused(&mut client), "its address is not verified");
        }
        let mut buffer = [0; 2048];
        let received: usize = std::iter::from_fn(|| victim.recv(&mut buffer).ok()).sum();
        assert!(received > 0 && received <= sent, "{received} bytes in answer to {sent}");
    }
}

#[test]
fn a_stream_to_an_unreachable_port_ends() {
    for options in datagram_services() {
        let (target, _news) = serve(options);
        let mut client = Bare::new(&target);
        let opened = client.open();
        let socket = socket_to(&opened);
        socket.send(&packet_showing(&challenge(&socket, &opened))).expect("loopback");
        assert!(matches!(client.answer(), ProbeResponse::Ready(_)));
        let limit = SendLimit { count: None, duration: Some(Duration::from_secs(600)) };
        let answer = client.ask(&StreamRequest::Send(SendOrder { limit, ..stream_order() }));
        assert!(matches!(answer, ProbeResponse::Sending(_)), "{answer:?}");
        socket.recv(&mut [0; 2048]).expect("a packet");
        drop(socket);
        // The client asks for nothing: the server's own news is that the stream has ended.
        let answer = client.answer();
        assert!(matches!(answer, ProbeResponse::Sent(_)), "{answer:?}");
    }
}

#[test]
fn the_longest_duration_holds_for_streams_and_loads_in_sum() {
    let limits = ServerLimits { max_duration: Some(Duration::from_secs(1)), ..ServerLimits::default() };
    let (session, _) = open(ServerOptions { limits, ..ServerOptions::default() });
    let load = session.open_load(&LoadOptions::new(Direction::Down)).expect("a free connection");
    load.start().expect("alive");
    let limit = SendLimit { count: None, duration: Some(Duration::from_secs(600)) };
    let order = SendOrder { limit, ..order(&session, 1, 1.0) };
    session.far_send(order).expect("a free stream");
    session.far_wait_sent(order.stream, Duration::from_secs(30)).expect("alive").expect("the server ends it");
    let again = SendOrder { stream: session.new_stream(), ..order };
    let error = session.far_send(again).expect_err("no more").to_string();
    assert!(error.contains("--server-max-duration"), "{error}");
    let load = session.open_load(&LoadOptions::new(Direction::Down)).expect("a free connection");
    load.start().expect("sent");
    assert_eq!(load.stop().near.bytes, ByteCount::ZERO, "it never ran");
}

#[test]
fn a_challenge_is_met_only_from_where_it_was_received() {
    for options in datagram_services() {
        let (target, _news) = serve(options);
        let mut client = Bare::new(&target);
        let opened = client.open();
        let (honest, other) = (socket_to(&opened), socket_to(&opened));
        let challenge = challenge(&honest, &opened);
        assert_ne!(&challenge[..], opened.token.as_bytes());
        other.send(&packet_showing(&challenge)).expect("loopback");
        assert!(is_refused(&mut client), "another source shows it");
        honest.send(&packet_showing(&[b'a'; 27])).expect("loopback");
        assert!(is_refused(&mut client), "a wrong one is shown");
        honest.send(&packet_showing(&challenge)).expect("loopback");
        let answer = client.answer();
        let source = honest.local_addr().expect("bound");
        assert!(matches!(&answer, ProbeResponse::Ready(ready) if ready.source == source), "{answer:?}");
    }
}

#[test]
fn a_client_that_vanishes_leaves_no_session() {
    let (target, news) = serve(ServerOptions::default());
    let session = ProbeSession::open(&target, None).expect("a probe service");
    session.open_datagrams().expect("nothing is lost on loopback");
    let limit = SendLimit { count: None, duration: Some(Duration::from_secs(600)) };
    let order = SendOrder { limit, ..order(&session, 1, 1.0) };
    session.far_send(order).expect("a free stream");
    let load = session.open_load(&LoadOptions::new(Direction::Down)).expect("a free connection");
    load.start().expect("alive");
    drop(load);
    drop(session);
    let mut seen = Vec::new();
    while seen.iter().filter(|news| **news == "idle").count() < 2 {
        seen.push(news.recv_timeout(Duration::from_secs(10)).expect("the session ends"));
    }
    assert_eq!(seen, ["idle", "session", "idle"]);
}

#[test]
fn garbage_ends_the_session_and_nothing_else() {
    let (target, _news) = serve(ServerOptions::default());
    for garbage in [&b"garbage"[..], b"L\0\0\0\0", b"L\xff\xff\xff\xff", b"L\0\0\0\x02[]", b"L\0\0\0\x0b{\"stop\":5}}"]
    {
        let mut client = Bare::new(&target);
        client.stream.write_all(garbage).expect("buffer space");
        let mut rest = Vec::new();
        client.stream.read_to_end(&mut rest).expect("it is closed in order");
        assert!(rest.is_empty(), "{rest:?}");
    }
    ProbeSession::open(&target, None).expect("others are served");
}

#[test]
fn a_load_connection_without_a_session_is_closed() {
    let (target, _news) = serve(ServerOptions::default());
    let token = linerate_wire::cookie::SessionToken::random([5; 27]);
    let mut stream = TcpStream::connect(("127.0.0.1", target.port.get())).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("an option");
    stream.write_all(Cookie::load(token).as_bytes()).expect("buffer space");
    assert_eq!(stream.read(&mut [0]).expect("closed in order"), 0);
}

#[test]
fn connections_that_stay_open_need_a_server_that_keeps_them() {
    use linerate_model::rr::RrMode;
    use linerate_wire::probe::{RrOrder, ServerHello};
    let one = ByteCount::new(1);
    let features = ["probe", "rr", "rr-handshake", "quic", "rr-open"];
    for (known, mode, missing) in [
        (4, RrMode::Quic, "update linerate there"),
        (3, RrMode::Quic, "it serves no QUIC"),
        (2, RrMode::Tls, "built with TLS"),
    ] {
        let hello = ProbeResponse::Hello(ServerHello::new(&features[..known])).encode();
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let port = Port::new(listener.local_addr().expect("bound").port()).expect("bound");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            stream.read_exact(&mut [0; 37]).expect("a cookie");
            stream.write_all(&hello).expect("buffer space");
            let _ = linerate_sys::net::close_gracefully(stream, Duration::from_secs(5));
        });
        let session = ProbeSession::open(&ProbeTarget::new("127.0.0.1", port), None).expect("a session");
        let order = RrOrder { mode, request: one, response: one, flows: 1, keeps_open: true };
        let refused = session.far_rr(order).expect_err("an older server");
        assert!(refused.to_string().contains(missing), "{refused}");
        drop(session);
        server.join().expect("no panic");
    }
}

#[test]
fn other_servers_have_no_probe_service() {
    let tests_only = ProbeResponse::Hello(linerate_wire::probe::ServerHello::new(&["intervals"])).encode();
    for (says, answering) in [
        (&[9_u8][..], AnsweringService::Iperf3),
        (&[255], AnsweringService::Busy),
        (b"SSH-2.0", AnsweringService::Something),
        (b"", AnsweringService::Something),
        (&tests_only, AnsweringService::WithoutProbes),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let port = Port::new(listener.local_addr().expect("bound").port()).expect("bound");
        let says = says.to_vec();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            stream.read_exact(&mut [0; 37]).expect("a cookie");
            stream.write_all(&says).expect("buffer space");
            let _ = linerate_sys::net::close_gracefully(stream, Duration::from_secs(5));
        });
        let error = ProbeSession::open(&ProbeTarget::new("127.0.0.1", port), None).expect_err("no service");
        assert_eq!(error, ProbeError::NoProbeService(answering));
        server.join().expect("no panic");
    }
    let unused = TcpListener::bind("127.0.0.1:0").expect("loopback").local_addr().expect("bound").port();
    let error = ProbeSession::open(&ProbeTarget::new("127.0.0.1", Port::new(unused).expect("bound")), None);
    assert!(matches!(error, Err(ProbeError::Unreachable(_))), "{error:?}");
}
