//! Both halves of a probe session over the loopback device.

use core::time::Duration;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use linerate_model::event::Event;
use linerate_model::report::ServerOutput;
use linerate_sys::clock;
use linerate_sys::net::Family;
use linerate_sys::poll::{self, Interest, Waker};
use linerate_units::{BitRate, ByteCount, PacketCount, Port, TypeOfService};
use linerate_wire::cookie::Cookie;
use linerate_wire::probe::{
    Answer, Decoder, Detail, Empty, Feedback, LoadDirection, Request, SendLimit, SendOrder, Spacing, StreamNumber,
};

use super::*;
use crate::server::{Server, ServerObserver, ServerOptions, SessionObserver, StampOptions};

/// Tells a test when sessions have come and gone.
struct Watcher(Sender<&'static str>);

struct Ignored;

impl ServerObserver for Watcher {
    fn idle(&self, _: u64) {
        let _ = self.0.send("idle");
    }

    fn session(&self, _: u64) -> Box<dyn SessionObserver> {
        let _ = self.0.send("session");
        Box::new(Ignored)
    }

    fn problem(&self, text: &str) {
        panic!("{text}");
    }
}

impl SessionObserver for Ignored {
    fn event(&mut self, _: &Event) {}

    fn output(&mut self) -> Option<ServerOutput> {
        None
    }

    fn failed(&mut self, _: &crate::Error) {}
}

/// Serves as many clients as there are for the rest of the test program. What it returns tells of sessions.
fn serve(options: ServerOptions) -> (Target, Receiver<&'static str>) {
    let (told, news) = channel();
    let address = Some(Ipv4Addr::LOCALHOST.into());
    let server = Server::bind(ServerOptions { address, port: None, family: Family::Ipv4, ..options });
    let server = server.expect("a free port");
    let port = Port::new(server.address().port()).expect("bound");
    std::thread::spawn(move || server.run(None, &Watcher(told)));
    (Target::new("127.0.0.1", port), news)
}

/// A UDP port that is free, on which nobody else is likely to be.
fn free_udp_port() -> Port {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    Port::new(socket.local_addr().expect("bound").port()).expect("bound")
}

fn open(options: ServerOptions) -> (ProbeSession, DatagramWay) {
    let session = ProbeSession::open(&serve(options).0, None).expect("a probe service");
    let way = session.open_datagrams().expect("nothing is lost on loopback");
    (session, way)
}

fn order(session: &ProbeSession, count: u64, megabits: f64) -> SendOrder {
    SendOrder {
        stream: session.new_stream(),
        size: ByteCount::new(200),
        rate: BitRate::from_bits_per_second(megabits * 1e6),
        spacing: Spacing::Periodic,
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
fn a_session_tells_of_the_far_host() {
    let (session, _) = open(ServerOptions::default());
    assert!(session.features().iter().any(|feature| feature == "probe"));
    assert!(session.handshake_rtt().is_some());
    let facts = session.facts().expect("an answer");
    assert_eq!(facts.interface.as_deref(), Some("lo"));
    assert_eq!(facts.kernel, Some(linerate_sys::host::kernel_release()));
    assert!(facts.congestion_controls.iter().any(|name| name == "reno"), "{facts:?}");
    assert_eq!(facts.other_sessions, Some(PacketCount::ZERO));
    let control = facts.control.expect("it is connected").0;
    assert!(control.rtt.is_some());
    let first = facts.counters.expect("lo counts");
    let syn = facts.syn.expect("it was kept");
    assert_eq!(syn.source, session.control().local_addr().expect("connected"));
    assert!(syn.mss.is_some_and(|mss| mss > 536), "{syn:?}");
    let second = session.facts().expect("an answer").counters.expect("lo counts");
    assert!(second.received_bytes > first.received_bytes, "the answer itself went through it");
}

#[test]
fn datagrams_find_their_way_with_and_without_a_reflector() {
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
fn answers_wake_whoever_waits_for_them() {
    let stamp = StampOptions { port: Some(free_udp_port()), ..StampOptions::default() };
    let (session, _) = open(ServerOptions { stamp: Some(stamp), ..ServerOptions::default() });
    let prober = session.probe(ProbeOrder::every(Duration::from_millis(20))).expect("a way is there");
    let waker = Arc::new(Waker::new().expect("eventfd"));
    prober.wake_on_answers(Arc::clone(&waker));
    for _ in 0..3 {
        assert!(poll::wait_for(&*waker, Interest::READ, Some(Duration::from_secs(10))).expect("waits"));
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
    let poisson = Spacing::Poisson { seed: 1 };
    let plain = ProbeOrder { size: ByteCount::new(44), spacing: poisson, count, ..ProbeOrder::every(interval) };
    let probers = [marked, plain].map(|order| (order, session.probe(order).expect("a way is there")));
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
            assert_eq!(answer.up_type_of_service, told, "short probes have no room for the question");
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
    session.far_receive(order.stream, Detail::Arrivals).expect("room");
    let report = session.send(order).expect("a way is there").wait();
    assert_eq!((report.packets, report.bytes), (PacketCount::new(2500), ByteCount::new(500_000)));
    assert_eq!(report.refused_too_large + report.refused_no_room, PacketCount::ZERO);
    // What is on its way may come after the request does.
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
fn a_stream_down_is_periodic_or_poisson() {
    let (session, _) = open(ServerOptions::default());
    for spacing in [Spacing::Periodic, Spacing::Poisson { seed: 3 }] {
        let order = SendOrder { spacing, ..order(&session, 200, 1.6) };
        let reception = session.receive(order.stream, Detail::Arrivals).expect("room");
        session.far_send(order).expect("room");
        let report = session.far_wait_sent(order.stream, Duration::from_secs(10)).expect("alive").expect("ended");
        assert_eq!(report.packets, PacketCount::new(200));
        assert_eq!(session.far_stop_sending(order.stream).expect("told already"), report);
        within_ten_seconds(|| reception.feedback().packets == report.packets);
        let (feedback, arrivals) = reception.finish();
        assert!(feedback.last && feedback.lost().is_zero() && feedback.duplicates.is_zero());
        assert_eq!((feedback.highest, feedback.bytes), (Some(199), ByteCount::new(40_000)));
        assert_eq!(feedback.highest_sent, arrivals.packets.last().map(|packet| packet.sent));
        let times: Vec<f64> =
            arrivals.packets.iter().map(|packet| packet.sent.since_unix_epoch().as_secs_f64() * 1e3).collect();
        let shortest = times.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
        let whole = times[199] - times[0];
        match spacing {
            // The last is due after 199 gaps of 1 ms.
            Spacing::Periodic => assert!(whole >= 198.9, "{whole} ms"),
            // The sum of 199 exponential distances has a standard deviation of 14 ms; and of 199 the shortest is
            // longer than a quarter of the mean with a probability of e^-50.
            Spacing::Poisson { .. } => assert!(whole > 199.0 - 5.0 * 14.2 && shortest < 0.25, "{whole} {shortest}"),
        }
    }
}

#[test]
fn a_fast_stream_is_counted_both_ways() {
    let (session, _) = open(ServerOptions::default());
    let limit = SendLimit { count: None, duration: Some(Duration::from_secs(20)) };
    let fast = |megabits| SendOrder { limit, size: ByteCount::new(1400), ..order(&session, 1, megabits) };
    let up = fast(200.0);
    session.far_receive(up.stream, Detail::Counts).expect("room");
    let sending = session.send(up).expect("a way is there");
    let mut last: Option<Feedback> = None;
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
    let mut far = session.wait_feedback(up.stream, None, Duration::from_secs(10)).expect("alive").expect("told");
    within_ten_seconds(|| {
        far = session.far_feedback(up.stream).expect("told");
        // A host that drops says so.
        far.packets + far.dropped_in_host.unwrap_or_default() >= report.packets
    });
    assert_eq!(far.bytes, far.packets * up.size);
    let end = session.far_stop_receiving(up.stream).expect("alive");
    assert!(end.last && end.packets == far.packets && end.duplicates.is_zero());
    let last = report.packets.get() - 1;
    if end.highest.map(u64::from) == Some(last) {
        assert_eq!(end.highest_sent, report.newest, "the stamp is of the last train, not of the first of several");
    }

    let down = fast(200.0);
    let reception = session.receive(down.stream, Detail::Counts).expect("room");
    session.far_send(down).expect("room");
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
fn what_is_too_large_is_told() {
    let (session, _) = open(ServerOptions::default());
    // Loopback takes all that UDP can carry: what cannot be sent there is what is no datagram at all.
    let largest = SendOrder { size: ByteCount::new(65507), ..order(&session, 3, 100.0) };
    let reception = session.receive(largest.stream, Detail::Arrivals).expect("room");
    session.far_send(largest).expect("room");
    let report = session.far_wait_sent(largest.stream, Duration::from_secs(10)).expect("alive").expect("ended");
    assert_eq!(report.packets + report.refused_too_large, PacketCount::new(3));
    within_ten_seconds(|| reception.feedback().packets == report.packets);
    assert!(session.probe(ProbeOrder { size: ByteCount::new(43), ..ProbeOrder::every(Duration::ZERO) }).is_err());
}

#[test]
fn load_goes_both_ways_with_pings_between() {
    let (session, _) = open(ServerOptions::default());
    for direction in [LoadDirection::Down, LoadDirection::Up] {
        let options = LoadOptions {
            congestion_control: Some("reno".into()),
            ping_interval: Some(Duration::from_millis(5)),
            ..LoadOptions::new(direction)
        };
        let load = session.open_load(&options).expect("room");
        assert_eq!((load.local_congestion_control(), load.far_congestion_control()), (Some("reno"), Some("reno")));
        within_ten_seconds(|| load.pings(0).iter().filter(|ping| ping.round_trip.is_some()).count() >= 5);
        assert_eq!(load.bytes(), ByteCount::ZERO, "it has not been started");
        load.start().expect("alive");
        within_ten_seconds(|| load.bytes() > ByteCount::from_mebibytes(8) && load.far_progress().is_some());
        let before = load.pings(0).len();
        within_ten_seconds(|| load.pings(before).iter().filter(|ping| ping.round_trip.is_some()).count() >= 5);
        assert_eq!(load.broken(), None);
        let outcome = load.stop();
        let far = outcome.far.as_ref().expect("alive");
        assert_eq!((&outcome.near.broken, &far.broken), (&None, &None));
        let (sender, receiver) = (outcome.sender(direction).expect("told"), outcome.receiver(direction).expect("told"));
        assert!(receiver.bytes <= sender.bytes + ByteCount::from_mebibytes(1) && receiver.bytes.get() > 8 << 20);
        assert!(sender.samples.len() > 5 && sender.goodput.is_empty(), "{} readings", sender.samples.len());
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
fn a_congestion_control_that_nobody_has_is_refused() {
    let (session, _) = open(ServerOptions::default());
    let none = LoadOptions { congestion_control: Some("none-such".into()), ..LoadOptions::new(LoadDirection::Down) };
    let error = session.open_load(&none).expect_err("nobody has it");
    assert!(error.to_string().contains("TCP_CONGESTION"), "{error}");
    session.open_load(&LoadOptions::new(LoadDirection::Down)).expect("the session goes on");
}

#[test]
fn too_many_streams_are_refused() {
    let (session, _) = open(ServerOptions::default());
    let streams: Vec<_> = (0..64).map(|_| session.new_stream()).collect();
    for stream in &streams {
        session.far_receive(*stream, Detail::Counts).expect("room");
    }
    let one_more = session.new_stream();
    let error = session.far_receive(one_more, Detail::Counts).expect_err("too many");
    assert!(matches!(&error, ProbeError::Refused { request, .. } if request == "receive"), "{error}");
    session.far_stop_receiving(streams[0]).expect("alive");
    session.far_receive(one_more, Detail::Counts).expect("there is room again");
}

/// A client that speaks by hand.
struct Bare {
    stream: TcpStream,
    decoder: Decoder,
}

impl Bare {
    fn new(target: &Target) -> Self {
        let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), target.port.get());
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("an option");
        stream.write_all(Cookie::probes([3; 36]).as_bytes()).expect("room");
        let mut bare = Self { stream, decoder: Decoder::of_answers() };
        assert!(matches!(bare.answer(), Answer::Hello(_)));
        bare
    }

    fn ask(&mut self, request: &Request) -> Answer {
        self.stream.write_all(&request.encode()).expect("room");
        self.answer()
    }

    fn answer(&mut self) -> Answer {
        loop {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).expect("an answer");
            if let Some(document) = self.decoder.feed(&mut &byte[..]).expect("framed") {
                return Answer::decode(&document).expect("readable").expect("known");
            }
        }
    }
}

#[test]
fn nothing_is_sent_to_who_has_not_proven_the_token() {
    let stamp = StampOptions { port: Some(free_udp_port()), ..StampOptions::default() };
    let (target, _news) = serve(ServerOptions { stamp: Some(stamp), ..ServerOptions::default() });
    let mut client = Bare::new(&target);
    let Answer::Opened(opened) = client.ask(&Request::Open(Empty {})) else { panic!("a port") };
    // Another address than the client's, and not its token.
    let innocent = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    innocent.set_read_timeout(Some(Duration::from_millis(200))).expect("an option");
    let order = SendOrder {
        stream: StreamNumber::FIRST_RECORDED,
        size: ByteCount::new(100),
        rate: BitRate::from_bits_per_second(1e6),
        spacing: Spacing::Periodic,
        limit: SendLimit::default(),
        type_of_service: TypeOfService::default(),
        dont_fragment: false,
    };
    let token = [b'a'; 27];
    let wrong = linerate_wire::stamp::SenderPacket::default().encode_with(
        &[linerate_wire::stamp::tlv::Tlv::ExtraPadding(token.to_vec())],
        ByteCount::new(75),
        None,
    );
    innocent.send_to(&wrong, ("127.0.0.1", opened.port.get())).expect("loopback");
    // The shared reflector answers it, as it does any sender's packet, with a packet of the same size.
    let mut buffer = [0; 2048];
    let length = innocent.recv(&mut buffer).expect("an answer");
    assert_eq!(length, wrong.len());
    let answer = client.ask(&Request::Send(order));
    assert!(matches!(&answer, Answer::Refused(refused) if refused.request == "send"), "{answer:?}");
    innocent.recv(&mut buffer).expect_err("nothing more comes");
}

#[test]
fn a_client_that_vanishes_leaves_no_session() {
    let (target, news) = serve(ServerOptions::default());
    let session = ProbeSession::open(&target, None).expect("a probe service");
    session.open_datagrams().expect("nothing is lost on loopback");
    let limit = SendLimit { count: None, duration: Some(Duration::from_secs(600)) };
    let order = SendOrder { limit, ..order(&session, 1, 1.0) };
    session.far_send(order).expect("room");
    let load = session.open_load(&LoadOptions::new(LoadDirection::Down)).expect("room");
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
        client.stream.write_all(garbage).expect("room");
        let mut rest = Vec::new();
        client.stream.read_to_end(&mut rest).expect("it is closed in order");
        assert!(rest.is_empty(), "{rest:?}");
    }
    ProbeSession::open(&target, None).expect("others are served");
}

#[test]
fn a_load_connection_without_a_session_is_closed() {
    let (target, _news) = serve(ServerOptions::default());
    let token = linerate_wire::cookie::Token::random([5; 27]);
    let mut stream = TcpStream::connect(("127.0.0.1", target.port.get())).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("an option");
    stream.write_all(Cookie::load(token).as_bytes()).expect("room");
    assert_eq!(stream.read(&mut [0]).expect("closed in order"), 0);
}

#[test]
fn other_servers_have_no_probe_service() {
    let tests_only = Answer::Hello(linerate_wire::probe::Hello::new(&["intervals"])).encode();
    for (says, answering) in [
        (&[9_u8][..], Answering::Iperf3),
        (&[255], Answering::Busy),
        (b"SSH-2.0", Answering::Something),
        (b"", Answering::Something),
        (&tests_only, Answering::WithoutProbes),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let port = Port::new(listener.local_addr().expect("bound").port()).expect("bound");
        let says = says.to_vec();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            stream.read_exact(&mut [0; 37]).expect("a cookie");
            stream.write_all(&says).expect("room");
            let _ = linerate_sys::net::close_gracefully(stream, Duration::from_secs(5));
        });
        let error = ProbeSession::open(&Target::new("127.0.0.1", port), None).expect_err("no service");
        assert_eq!(error, ProbeError::NoProbeService(answering));
        server.join().expect("no panic");
    }
    let unused = TcpListener::bind("127.0.0.1:0").expect("loopback").local_addr().expect("bound").port();
    let error = ProbeSession::open(&Target::new("127.0.0.1", Port::new(unused).expect("bound")), None);
    assert!(matches!(error, Err(ProbeError::Unreachable(_))), "{error:?}");
}
