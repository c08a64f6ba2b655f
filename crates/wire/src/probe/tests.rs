use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::{BitRate, ByteCount, Mtu, PacketCount, Port, SegmentCount, TypeOfService, WallTime};
use proptest::prelude::*;

use super::load_frame::{LoadFrame, LoadFrameParser, ParseStep};
use super::*;
use crate::cookie::SessionToken;

fn wall(nanoseconds: u64) -> WallTime {
    WallTime::from_unix(Duration::from_nanos(nanoseconds))
}

fn body(encoded: &[u8]) -> &[u8] {
    assert_eq!(encoded[0], MARKER);
    assert_eq!(u32::from_be_bytes(encoded[1..5].try_into().expect("four bytes")) as usize, encoded.len() - 5);
    &encoded[5..]
}

fn stays_the_same_request(request: &StreamRequest) {
    assert_eq!(StreamRequest::decode(body(&request.encode())), Ok(Some(request.clone())));
}

fn stays_the_same_answer(answer: &ProbeResponse) {
    assert_eq!(ProbeResponse::decode(body(&answer.encode())), Ok(Some(answer.clone())));
}

fn send_order() -> SendOrder {
    SendOrder {
        stream: StreamNumber::new(1000),
        size: ByteCount::new(1472),
        rate: BitRate::from_bits_per_second(25e9),
        spacing: PacketSpacing::Periodic,
        limit: SendLimit { count: Some(PacketCount::new(u64::from(u32::MAX))), duration: None },
        type_of_service: TypeOfService::new(0xB8),
        dont_fragment: true,
    }
}

fn load_order() -> LoadOrder {
    LoadOrder {
        connection: ConnectionNumber(7),
        direction: Direction::Down,
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

fn records(packets: Vec<PacketRecord>) -> RecordBatch {
    RecordBatch {
        stream: StreamNumber::new(65535),
        packets,
        last: true,
        not_kept: PacketCount::new(u64::MAX),
        dropped_in_host: Some(PacketCount::ZERO),
    }
}

fn feedback() -> StreamFeedback {
    StreamFeedback {
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
fn requests_round_trip() {
    let stream = StreamRef { stream: StreamNumber::new(1000) };
    let connection = ConnectionRef { connection: ConnectionNumber(u32::MAX) };
    for request in [
        StreamRequest::Facts(EmptyContent {}),
        StreamRequest::Open(EmptyContent {}),
        StreamRequest::Alive(EmptyContent {}),
        StreamRequest::Receive(ReceiveOrder { stream: stream.stream, detail: RecordDetail::Arrivals }),
        StreamRequest::Collect(stream),
        StreamRequest::Stop(stream),
        StreamRequest::Send(send_order()),
        StreamRequest::Send(SendOrder {
            rate: BitRate::from_bits_per_second(1e6),
            spacing: PacketSpacing::Poisson { seed: u64::MAX },
            limit: SendLimit { count: None, duration: Some(SendOrder::LONGEST) },
            ..send_order()
        }),
        StreamRequest::Rate(RateOrder { stream: stream.stream, rate: BitRate::from_bits_per_second(1.0) }),
        StreamRequest::Load(load_order()),
        StreamRequest::LoadStart(connection),
        StreamRequest::LoadStop(connection),
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
fn answers_round_trip() {
    let stream = StreamRef { stream: StreamNumber::new(1000) };
    let connection = ConnectionNumber(1);
    let token = SessionToken::random(core::array::from_fn(|index| u8::try_from(index).expect("small")));
    let facts = FarFacts {
        kernel: Some("6.12".into()),
        congestion_controls: vec!["reno".into(), "cubic".into()],
        clock_error_bound: Some(Duration::from_millis(3)),
        time: Some(wall(u64::MAX)),
        mtu: Some(Mtu::new(9000)),
        counters: Some(InterfaceCounterSample {
            time: wall(5),
            received_bytes: ByteCount::new(1),
            received_packets: PacketCount::new(2),
            sent_bytes: ByteCount::new(3),
            sent_packets: PacketCount::new(4),
        }),
        control: Some(linerate_model::tcp_info::TcpInfo::default()),
        syn: Some(SynFacts {
            source: "192.0.2.1:5".parse().expect("an address"),
            type_of_service: TypeOfService::new(2),
            hop_limit: 3,
            asks_for_ecn: true,
            asks_for_accurate_ecn: Some(true),
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
    let refused =
        RequestRefused { request: "load".into(), stream: None, connection: Some(connection), reason: "no".into() };
    let progress = LoadProgress { connection, time: Duration::ZERO, bytes: ByteCount::ZERO, rtt: None };
    let goodput = GoodputSample { time: Duration::from_millis(50), bytes: ByteCount::new(1) };
    for answer in [
        ProbeResponse::Hello(ServerHello::new(&[PROBE_FEATURE])),
        ProbeResponse::Facts(Box::new(facts)),
        ProbeResponse::Facts(Box::default()),
        ProbeResponse::Opened(ReflectorOpened { port: Port::IPERF3, token }),
        ProbeResponse::Ready(DatagramsReady { source: "[2001:db8::1]:862".parse().expect("an address") }),
        ProbeResponse::Receiving(stream),
        ProbeResponse::Records(records(vec![record(0, u64::MAX, 0), record(u32::MAX, 0, u64::MAX), record(5, 7, 7)])),
        ProbeResponse::Records(records(Vec::new())),
        ProbeResponse::Feedback(feedback()),
        ProbeResponse::Feedback(StreamFeedback { highest_sent: None, ..feedback() }),
        ProbeResponse::Sending(stream),
        ProbeResponse::Sent(sent),
        ProbeResponse::LoadExpected(ConnectionRef { connection }),
        ProbeResponse::LoadReady(LoadReady { connection, congestion_control: Some("bbr".into()) }),
        ProbeResponse::LoadProgress(vec![progress; MAX_SESSION_STREAMS]),
        ProbeResponse::LoadSamples(LoadSamples { connection, samples: vec![sample()], goodput: vec![goodput] }),
        ProbeResponse::LoadEnd(LoadEnd { connection, bytes: ByteCount::new(9), time: Duration::ZERO, error: None }),
        ProbeResponse::Refused(refused),
    ] {
        stays_the_same_answer(&answer);
    }
}

#[test]
fn messages_are_as_documented() {
    let receiving = ProbeResponse::Receiving(StreamRef { stream: StreamNumber::FIRST_RECORDED }).encode();
    assert_eq!(receiving[..5], [0x4C, 0, 0, 0, 29]);
    assert_eq!(receiving[5..], *br#"{"receiving":{"stream":1000}}"#);
    let order = StreamRequest::Send(SendOrder { spacing: PacketSpacing::Poisson { seed: 7 }, ..send_order() }).encode();
    let text = r#"{"send":{"stream":1000,"size":1472,"rate":25000000000,"spacing":{"poisson":{"seed":7}},"limit":{"count":4294967295,"duration":null},"type_of_service":184,"dont_fragment":true}}"#;
    assert_eq!(String::from_utf8_lossy(&order[5..]), text);
    let bursts = StreamRequest::Send(SendOrder { spacing: PacketSpacing::Bursts { packets: 9 }, ..send_order() });
    assert!(String::from_utf8_lossy(&bursts.encode()).contains(r#""spacing":{"bursts":{"packets":9}}"#));
    stays_the_same_request(&bursts);
    let answer = ProbeResponse::Records(records(vec![record(3, 1_000, 2_000), record(4, 1_500, 2_700)])).encode();
    let text = r#"{"records":{"stream":65535,"sequence":[3,1],"sent":[1000,500],"arrived":[2000,700],"size":[64],"ttl":[57],"tos":[3],"last":true,"not_kept":18446744073709551615,"dropped_in_host":0}}"#;
    assert_eq!(String::from_utf8_lossy(&answer[5..]), text);
    let answer = ProbeResponse::Feedback(feedback()).encode();
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
        SendOrder { spacing: PacketSpacing::Poisson { seed: 0 }, ..send_order() },
        SendOrder { spacing: PacketSpacing::Bursts { packets: 0 }, ..send_order() },
        SendOrder { spacing: PacketSpacing::Bursts { packets: 65 }, ..send_order() },
        SendOrder { limit: SendLimit { count: Some(PacketCount::ZERO), duration: None }, ..send_order() },
        SendOrder { limit: SendLimit { count: Some(PacketCount::new(1 << 32)), duration: None }, ..send_order() },
        SendOrder { limit: SendLimit { count: None, duration: Some(Duration::ZERO) }, ..send_order() },
        SendOrder { limit: SendLimit { count: None, duration: Some(Duration::from_secs(3601)) }, ..send_order() },
    ] {
        assert!(StreamRequest::decode(body(&StreamRequest::Send(wrong).encode())).is_err(), "{wrong:?}");
    }
    for wrong in [
        LoadOrder { sampling: Duration::ZERO, ..load_order() },
        LoadOrder { sampling: Duration::from_secs(11), ..load_order() },
        LoadOrder { congestion_control: Some(String::new()), ..load_order() },
        LoadOrder { congestion_control: Some("a".repeat(16)), ..load_order() },
    ] {
        assert!(StreamRequest::decode(body(&StreamRequest::Load(wrong.clone()).encode())).is_err(), "{wrong:?}");
    }
    let reflected = ReceiveOrder { stream: StreamNumber::new(5), detail: RecordDetail::Counts };
    assert!(StreamRequest::decode(body(&StreamRequest::Receive(reflected).encode())).is_err());
    let unnumbered = StreamFeedback { highest: None, ..feedback() };
    assert!(ProbeResponse::decode(body(&ProbeResponse::Feedback(unnumbered).encode())).is_err());
    let many = records(vec![record(0, 0, 0); RecordBatch::MOST + 1]);
    assert!(ProbeResponse::decode(body(&ProbeResponse::Records(many).encode())).is_err());
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
        r#"{"stop":{"stream":1},"newer":1,"newer":2}"#,
        r#"{"receive":{"stream":1000,"detail":"all"}}"#,
    ] {
        assert!(StreamRequest::decode(text.as_bytes()).is_err(), "{text}");
    }
    for text in [r#"{"newer":{"x":[1]}}"#, "{}"] {
        assert_eq!(StreamRequest::decode(text.as_bytes()), Ok(None), "{text}");
    }
    let earlier = r#"{"feedback":{"stream":1001,"t":1,"packets":1,"bytes":64,"highest":0,"dup":0,"late":0}}"#;
    let Ok(Some(ProbeResponse::Feedback(earlier))) = ProbeResponse::decode(earlier.as_bytes()) else {
        panic!("a feedback without the optional fields");
    };
    assert_eq!((earlier.highest, earlier.highest_sent), (Some(0), None));
    let later = r#"{"stop":{"stream":1000,"gently":true},"newer":1}"#;
    let known = StreamRequest::Stop(StreamRef { stream: StreamNumber::new(1000) });
    assert_eq!(StreamRequest::decode(later.as_bytes()), Ok(Some(known)));
    for text in [
        r#"{"records":{"stream":1000,"sequence":[1,1],"sent":[1],"arrived":[1,1],"last":true}}"#,
        r#"{"records":{"stream":1000,"sequence":[-1],"sent":[1],"arrived":[1],"size":[1],"ttl":[1],"tos":[1],"last":true}}"#,
        r#"{"records":{"stream":1000,"sequence":[1],"sent":[1],"arrived":[1],"size":[],"ttl":[1],"tos":[1],"last":true}}"#,
        r#"{"opened":{"port":0,"token":"abcdefghijklmnopqrstuvwxyza"}}"#,
        r#"{"opened":{"port":1,"token":"abc"}}"#,
        r#"{"opened":{"port":1,"token":"ABCDEFGHIJKLMNOPQRSTUVWXYZA"}}"#,
        r#"{"ready":{"source":"host:1"}}"#,
    ] {
        assert!(ProbeResponse::decode(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn packets_not_received_are_lost() {
    assert_eq!(feedback().lost(), PacketCount::new(3), "numbers 0 to 11, of which nine were received, one twice");
    let nothing =
        StreamFeedback { highest: None, packets: PacketCount::ZERO, duplicates: PacketCount::ZERO, ..feedback() };
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

/// Parses bytes in pieces; returns every frame, and the amount of bulk data.
fn parse(bytes: &[u8], piece: usize) -> (Vec<LoadFrame>, u64) {
    let (mut parser, mut frames, mut bulk) = (LoadFrameParser::default(), Vec::new(), 0);
    for mut part in bytes.chunks(piece) {
        loop {
            match parser.next(&mut part).expect("frames") {
                ParseStep::Frame(frame) => frames.push(frame),
                ParseStep::BulkBytes(count) => bulk += count.get(),
                ParseStep::Nothing => break,
            }
        }
        assert!(part.is_empty());
    }
    (frames, bulk)
}

fn any_frame() -> impl Strategy<Value = LoadFrame> {
    prop_oneof![
        any::<u32>().prop_map(|number| LoadFrame::Join(ConnectionNumber(number))),
        (0_u64..5000).prop_map(|size| LoadFrame::Bulk(ByteCount::new(size))),
        any::<u64>().prop_map(LoadFrame::Ping),
        any::<u64>().prop_map(LoadFrame::Pong),
    ]
}

proptest! {
    #[test]
    fn any_records_round_trip(packets in proptest::collection::vec(any_record(), 0..20)) {
        stays_the_same_answer(&ProbeResponse::Records(records(packets)));
    }

    #[test]
    fn messages_are_decoded_from_pieces_of_any_size(piece in 1_usize..40) {
        let requests = [StreamRequest::Open(EmptyContent {}), StreamRequest::Send(send_order()), StreamRequest::Load(load_order())];
        let bytes: Vec<u8> = requests.iter().flat_map(StreamRequest::encode).collect();
        let (mut decoder, mut seen) = (ProbeMessageDecoder::of_requests(), Vec::new());
        for mut part in bytes.chunks(piece) {
            while !part.is_empty() {
                if let Some(document) = decoder.feed(&mut part).expect("well framed") {
                    seen.push(StreamRequest::decode(&document).expect("readable").expect("known"));
                }
            }
        }
        prop_assert!(decoder.is_empty());
        prop_assert_eq!(&seen[..], &requests[..]);
    }

    #[test]
    fn a_decoder_accepts_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut decoder = ProbeMessageDecoder::of_requests();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let before = rest.len();
            match decoder.feed(&mut rest) {
                Ok(Some(document)) => drop(StreamRequest::decode(&document)),
                Ok(None) => prop_assert!(rest.is_empty() || rest.len() < before),
                Err(_) => break,
            }
        }
        prop_assert!(decoder.buffered() <= ByteCount::from_usize(2 * bytes.len() + 64));
    }

    #[test]
    fn load_frames_are_parsed_from_pieces_of_any_size(
        frames in proptest::collection::vec(any_frame(), 0..20),
        piece in 1_usize..64,
    ) {
        let (mut bytes, mut bulk) = (Vec::new(), 0);
        for frame in &frames {
            frame.encode(&mut bytes);
            if let LoadFrame::Bulk(size) = frame {
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
fn invalid_load_frames_are_refused() {
    for bytes in [[0, 0, 0, 0, 0], [9, 0, 0, 0, 8], [2, 0, 0x10, 0, 1], [3, 0, 0, 0, 7], [1, 0, 0, 0, 8]] {
        assert!(LoadFrameParser::default().next(&mut &bytes[..]).is_err(), "{bytes:?}");
    }
}
