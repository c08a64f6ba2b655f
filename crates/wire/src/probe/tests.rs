use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Mtu, PacketCount, Port, SegmentCount, TypeOfService, WallTime};
use proptest::prelude::*;

use super::load_frame::{Found, Frame, Parser};
use super::*;
use crate::cookie::Token;

fn wall(nanoseconds: u64) -> WallTime {
    WallTime::from_unix(Duration::from_nanos(nanoseconds))
}

fn body(encoded: &[u8]) -> &[u8] {
    assert_eq!(encoded[0], MARKER);
    assert_eq!(u32::from_be_bytes(encoded[1..5].try_into().expect("four bytes")) as usize, encoded.len() - 5);
    &encoded[5..]
}

fn stays_the_same_request(request: &Request) {
    assert_eq!(Request::decode(body(&request.encode())), Ok(Some(request.clone())));
}

fn stays_the_same_answer(answer: &Answer) {
    assert_eq!(Answer::decode(body(&answer.encode())), Ok(Some(answer.clone())));
}

fn send_order() -> SendOrder {
    SendOrder {
        stream: StreamNumber::new(1000),
        size: ByteCount::new(1472),
        rate: BitRate::from_bits_per_second(25e9),
        spacing: Spacing::Periodic,
        limit: SendLimit { count: Some(PacketCount::new(u64::from(u32::MAX))), duration: None },
        type_of_service: TypeOfService::new(0xB8),
        dont_fragment: true,
    }
}

fn load_order() -> LoadOrder {
    LoadOrder {
        connection: ConnectionNumber(7),
        direction: LoadDirection::Down,
        congestion_control: Some("cubic".into()),
        type_of_service: TypeOfService::new(0),
        sampling: Duration::from_millis(10),
    }
}

fn record(sequence: u32, sent: u64, arrived: u64) -> PacketRecord {
    PacketRecord {
        sequence,
        sent: wall(sent),
        arrived: wall(arrived),
        size: ByteCount::new(64),
        time_to_live: Some(57),
        type_of_service: Some(TypeOfService::new(3)),
    }
}

fn records(packets: Vec<PacketRecord>) -> Records {
    Records {
        stream: StreamNumber::new(65535),
        packets,
        last: true,
        not_kept: PacketCount::new(u64::MAX),
        dropped_in_host: Some(PacketCount::ZERO),
    }
}

fn feedback() -> Feedback {
    Feedback {
        stream: StreamNumber::new(1001),
        time: Duration::from_millis(50),
        packets: PacketCount::new(10),
        bytes: ByteCount::new(14720),
        highest: Some(11),
        highest_sent: Some(wall(u64::MAX)),
        duplicates: PacketCount::new(1),
        reordered: PacketCount::new(2),
        least_delay: Some(i64::MIN),
        most_delay: Some(i64::MAX),
        first: Some(wall(1)),
        newest: Some(wall(2)),
        dropped_in_host: None,
        last: false,
    }
}

#[test]
fn requests_survive() {
    let stream = StreamRef { stream: StreamNumber::new(1000) };
    let connection = ConnectionRef { connection: ConnectionNumber(u32::MAX) };
    for request in [
        Request::Facts(Empty {}),
        Request::Open(Empty {}),
        Request::Alive(Empty {}),
        Request::Receive(ReceiveOrder { stream: stream.stream, detail: Detail::Arrivals }),
        Request::Collect(stream),
        Request::Stop(stream),
        Request::Send(send_order()),
        Request::Send(SendOrder {
            rate: BitRate::from_bits_per_second(1e6),
            spacing: Spacing::Poisson { seed: u64::MAX },
            limit: SendLimit { count: None, duration: Some(SendOrder::LONGEST) },
            ..send_order()
        }),
        Request::Rate(RateOrder { stream: stream.stream, rate: BitRate::from_bits_per_second(1.0) }),
        Request::Load(load_order()),
        Request::LoadStart(connection),
        Request::LoadStop(connection),
    ] {
        stays_the_same_request(&request);
    }
}

fn sample() -> LoadSample {
    LoadSample {
        time: Duration::from_millis(10),
        rtt: Some(Duration::from_nanos(1)),
        congestion_window: Some(ByteCount::new(14480)),
        bytes_acknowledged: Some(ByteCount::new(u64::MAX)),
        retransmits: Some(SegmentCount::new(3)),
        delivery_rate: Some(BitRate::from_bits_per_second(1e9)),
        not_sent: None,
        busy: Some(Duration::from_secs(1)),
        receive_window_limited: None,
        send_buffer_limited: Some(Duration::ZERO),
    }
}

#[test]
fn answers_survive() {
    let stream = StreamRef { stream: StreamNumber::new(1000) };
    let connection = ConnectionNumber(1);
    let token = Token::random(core::array::from_fn(|index| u8::try_from(index).expect("small")));
    let facts = FarFacts {
        kernel: Some("6.12".into()),
        congestion_controls: vec!["reno".into(), "cubic".into()],
        clock_error_bound: Some(Duration::from_millis(3)),
        time: Some(wall(u64::MAX)),
        mtu: Some(Mtu::new(9000)),
        counters: Some(InterfaceCounters {
            time: wall(5),
            received_bytes: ByteCount::new(1),
            received_packets: PacketCount::new(2),
            sent_bytes: ByteCount::new(3),
            sent_packets: PacketCount::new(4),
        }),
        control: Some(TcpInfoFact::default()),
        syn: Some(SynFacts {
            source: "192.0.2.1:5".parse().expect("an address"),
            type_of_service: TypeOfService::new(2),
            hop_limit: 3,
            asks_for_ecn: true,
            mss: Some(1460),
            window_scale: None,
            selective_acknowledgements: true,
            timestamps: false,
        }),
        ..FarFacts::default()
    };
    let sent = SentReport {
        stream: stream.stream,
        packets: PacketCount::new(1),
        bytes: ByteCount::new(1472),
        first: Some(wall(1)),
        newest: None,
        refused_too_large: PacketCount::new(2),
        refused_no_room: PacketCount::new(3),
        rate: BitRate::from_bits_per_second(1e6),
    };
    let refused = Refused { request: "load".into(), stream: None, connection: Some(connection), reason: "no".into() };
    let progress = LoadProgress { connection, time: Duration::ZERO, bytes: ByteCount::ZERO, rtt: None };
    let goodput = Goodput { time: Duration::from_millis(50), bytes: ByteCount::new(1) };
    for answer in [
        Answer::Hello(Hello::new(&[FEATURE])),
        Answer::Facts(Box::new(facts)),
        Answer::Facts(Box::default()),
        Answer::Opened(Opened { port: Port::IPERF3, token }),
        Answer::Ready(Ready { source: "[2001:db8::1]:862".parse().expect("an address") }),
        Answer::Receiving(stream),
        Answer::Records(records(vec![record(0, u64::MAX, 0), record(u32::MAX, 0, u64::MAX), record(5, 7, 7)])),
        Answer::Records(records(Vec::new())),
        Answer::Feedback(feedback()),
        Answer::Feedback(Feedback { highest_sent: None, ..feedback() }),
        Answer::Sending(stream),
        Answer::Sent(sent),
        Answer::LoadExpected(ConnectionRef { connection }),
        Answer::LoadReady(LoadReady { connection, congestion_control: Some("bbr".into()) }),
        Answer::LoadProgress(vec![progress; MOST_STREAMS]),
        Answer::LoadSamples(LoadSamples { connection, samples: vec![sample()], goodput: vec![goodput] }),
        Answer::LoadEnd(LoadEnd { connection, bytes: ByteCount::new(9), time: Duration::ZERO, broken: None }),
        Answer::Refused(refused),
    ] {
        stays_the_same_answer(&answer);
    }
}

#[test]
fn messages_are_as_documented() {
    let receiving = Answer::Receiving(StreamRef { stream: StreamNumber::FIRST_RECORDED }).encode();
    assert_eq!(receiving[..5], [0x4C, 0, 0, 0, 29]);
    assert_eq!(receiving[5..], *br#"{"receiving":{"stream":1000}}"#);
    let order = Request::Send(SendOrder { spacing: Spacing::Poisson { seed: 7 }, ..send_order() }).encode();
    let text = r#"{"send":{"stream":1000,"size":1472,"rate":25000000000,"spacing":{"poisson":{"seed":7}},"limit":{"count":4294967295,"duration":null},"type_of_service":184,"dont_fragment":true}}"#;
    assert_eq!(String::from_utf8_lossy(&order[5..]), text);
    let answer = Answer::Records(records(vec![record(3, 1_000, 2_000), record(4, 1_500, 2_700)])).encode();
    let text = r#"{"records":{"stream":65535,"sequence":[3,1],"sent":[1000,500],"arrived":[2000,700],"size":[64],"ttl":[57],"tos":[3],"last":true,"not_kept":18446744073709551615,"dropped_in_host":0}}"#;
    assert_eq!(String::from_utf8_lossy(&answer[5..]), text);
    let answer = Answer::Feedback(feedback()).encode();
    let text = r#"{"feedback":{"stream":1001,"t":50000000,"packets":10,"bytes":14720,"highest":11,"sent":18446744073709551615,"dup":1,"late":2,"min":-9223372036854775808,"max":9223372036854775807,"first":1,"newest":2,"drop":null,"last":false}}"#;
    assert_eq!(String::from_utf8_lossy(&answer[5..]), text);
}

#[test]
fn values_out_of_range_are_refused() {
    for wrong in [
        SendOrder { stream: StreamNumber::new(999), ..send_order() },
        SendOrder { size: ByteCount::new(43), ..send_order() },
        SendOrder { size: ByteCount::new(65508), ..send_order() },
        SendOrder { rate: BitRate::ZERO, ..send_order() },
        SendOrder { rate: BitRate::from_bits_per_second(1.1e12), ..send_order() },
        SendOrder { spacing: Spacing::Poisson { seed: 0 }, ..send_order() },
        SendOrder { limit: SendLimit { count: Some(PacketCount::ZERO), duration: None }, ..send_order() },
        SendOrder { limit: SendLimit { count: Some(PacketCount::new(1 << 32)), duration: None }, ..send_order() },
        SendOrder { limit: SendLimit { count: None, duration: Some(Duration::ZERO) }, ..send_order() },
        SendOrder { limit: SendLimit { count: None, duration: Some(Duration::from_secs(3601)) }, ..send_order() },
    ] {
        assert!(Request::decode(body(&Request::Send(wrong).encode())).is_err(), "{wrong:?}");
    }
    for wrong in [
        LoadOrder { sampling: Duration::ZERO, ..load_order() },
        LoadOrder { sampling: Duration::from_secs(11), ..load_order() },
        LoadOrder { congestion_control: Some(String::new()), ..load_order() },
        LoadOrder { congestion_control: Some("a".repeat(16)), ..load_order() },
    ] {
        assert!(Request::decode(body(&Request::Load(wrong.clone()).encode())).is_err(), "{wrong:?}");
    }
    let reflected = ReceiveOrder { stream: StreamNumber::new(5), detail: Detail::Counts };
    assert!(Request::decode(body(&Request::Receive(reflected).encode())).is_err());
    let unnumbered = Feedback { highest: None, ..feedback() };
    assert!(Answer::decode(body(&Answer::Feedback(unnumbered).encode())).is_err());
    let many = records(vec![record(0, 0, 0); Records::MOST + 1]);
    assert!(Answer::decode(body(&Answer::Records(many).encode())).is_err());
}

#[test]
fn wrong_types_are_refused_and_unknown_names_skipped() {
    for text in [
        "",
        "[]",
        "{",
        r#"{"stop":5}"#,
        r#"{"stop":{"stream":-1}}"#,
        r#"{"stop":{"stream":65536}}"#,
        r#"{"stop":{"stream":1.5}}"#,
        r#"{"stop":{"stream":"1000"}}"#,
        r#"{"stop":{}}"#,
        r#"{"stop":{"stream":1},"collect":{"stream":1}}"#,
        r#"{"stop":{"stream":1},"stop":{"stream":1}}"#,
        r#"{"receive":{"stream":1000,"detail":"all"}}"#,
    ] {
        assert!(Request::decode(text.as_bytes()).is_err(), "{text}");
    }
    for text in [r#"{"newer":{"x":[1]}}"#, "{}"] {
        assert_eq!(Request::decode(text.as_bytes()), Ok(None), "{text}");
    }
    let earlier = r#"{"feedback":{"stream":1001,"t":1,"packets":1,"bytes":64,"highest":0,"dup":0,"late":0}}"#;
    let Ok(Some(Answer::Feedback(earlier))) = Answer::decode(earlier.as_bytes()) else {
        panic!("a feedback without the optional fields");
    };
    assert_eq!((earlier.highest, earlier.highest_sent), (Some(0), None));
    let later = r#"{"stop":{"stream":1000,"gently":true},"newer":1}"#;
    let known = Request::Stop(StreamRef { stream: StreamNumber::new(1000) });
    assert_eq!(Request::decode(later.as_bytes()), Ok(Some(known)));
    for text in [
        r#"{"records":{"stream":1000,"sequence":[1,1],"sent":[1],"arrived":[1,1],"last":true}}"#,
        r#"{"records":{"stream":1000,"sequence":[-1],"sent":[1],"arrived":[1],"size":[1],"ttl":[1],"tos":[1],"last":true}}"#,
        r#"{"records":{"stream":1000,"sequence":[1],"sent":[1],"arrived":[1],"size":[],"ttl":[1],"tos":[1],"last":true}}"#,
        r#"{"opened":{"port":0,"token":"abcdefghijklmnopqrstuvwxyza"}}"#,
        r#"{"opened":{"port":1,"token":"abc"}}"#,
        r#"{"opened":{"port":1,"token":"ABCDEFGHIJKLMNOPQRSTUVWXYZA"}}"#,
        r#"{"ready":{"source":"host:1"}}"#,
    ] {
        assert!(Answer::decode(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn what_has_not_come_is_lost() {
    assert_eq!(feedback().lost(), PacketCount::new(3), "numbers 0 to 11, of which nine came and one twice");
    let nothing = Feedback { highest: None, packets: PacketCount::ZERO, duplicates: PacketCount::ZERO, ..feedback() };
    assert_eq!(nothing.lost(), PacketCount::ZERO);
}

fn any_record() -> impl Strategy<Value = PacketRecord> {
    (any::<u32>(), any::<u64>(), any::<u64>(), any::<u32>(), any::<Option<u8>>(), any::<Option<u8>>()).prop_map(
        |(sequence, sent, arrived, size, time_to_live, octet)| PacketRecord {
            sequence,
            sent: wall(sent),
            arrived: wall(arrived),
            size: ByteCount::new(u64::from(size)),
            time_to_live,
            type_of_service: octet.map(TypeOfService::new),
        },
    )
}

/// Feeds bytes in pieces; returns every frame, and how much bulk data there was.
fn parse(bytes: &[u8], piece: usize) -> (Vec<Frame>, u64) {
    let (mut parser, mut frames, mut bulk) = (Parser::default(), Vec::new(), 0);
    for mut part in bytes.chunks(piece) {
        loop {
            match parser.next(&mut part).expect("frames") {
                Found::Frame(frame) => frames.push(frame),
                Found::BulkBytes(count) => bulk += count.get(),
                Found::Nothing => break,
            }
        }
        assert!(part.is_empty());
    }
    (frames, bulk)
}

fn any_frame() -> impl Strategy<Value = Frame> {
    prop_oneof![
        any::<u32>().prop_map(|number| Frame::Join(ConnectionNumber(number))),
        (0_u64..5000).prop_map(|size| Frame::Bulk(ByteCount::new(size))),
        any::<u64>().prop_map(Frame::Ping),
        any::<u64>().prop_map(Frame::Pong),
    ]
}

proptest! {
    #[test]
    fn any_records_survive(packets in proptest::collection::vec(any_record(), 0..20)) {
        stays_the_same_answer(&Answer::Records(records(packets)));
    }

    #[test]
    fn messages_come_in_pieces_of_any_size(piece in 1_usize..40) {
        let requests = [Request::Open(Empty {}), Request::Send(send_order()), Request::Load(load_order())];
        let bytes: Vec<u8> = requests.iter().flat_map(Request::encode).collect();
        let (mut decoder, mut seen) = (Decoder::of_requests(), Vec::new());
        for mut part in bytes.chunks(piece) {
            while !part.is_empty() {
                if let Some(document) = decoder.feed(&mut part).expect("well framed") {
                    seen.push(Request::decode(&document).expect("readable").expect("known"));
                }
            }
        }
        prop_assert!(decoder.is_empty());
        prop_assert_eq!(&seen[..], &requests[..]);
    }

    #[test]
    fn no_bytes_bring_a_decoder_out_of_step(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut decoder = Decoder::of_requests();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let before = rest.len();
            match decoder.feed(&mut rest) {
                Ok(Some(document)) => drop(Request::decode(&document)),
                Ok(None) => prop_assert!(rest.is_empty() || rest.len() < before),
                Err(_) => break,
            }
        }
        prop_assert!(decoder.buffered() <= ByteCount::from_usize(2 * bytes.len() + 64));
    }

    #[test]
    fn load_frames_come_in_pieces_of_any_size(
        frames in proptest::collection::vec(any_frame(), 0..20),
        piece in 1_usize..64,
    ) {
        let (mut bytes, mut bulk) = (Vec::new(), 0);
        for frame in &frames {
            frame.encode(&mut bytes);
            if let Frame::Bulk(size) = frame {
                bulk += size.get();
                bytes.resize(bytes.len() + size.to_usize(), 0x55);
            }
        }
        let (seen, seen_bulk) = parse(&bytes, piece);
        prop_assert_eq!(seen, frames);
        prop_assert_eq!(seen_bulk, bulk);
    }
}

#[test]
fn what_is_no_load_frame_is_refused() {
    for bytes in [[0, 0, 0, 0, 0], [9, 0, 0, 0, 8], [2, 0, 0x10, 0, 1], [3, 0, 0, 0, 7], [1, 0, 0, 0, 8]] {
        assert!(Parser::default().next(&mut &bytes[..]).is_err(), "{bytes:?}");
    }
}
