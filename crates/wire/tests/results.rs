//! The results document: encoding, parsing, errors.

use std::time::Duration;

use linerate_model::report::{CpuUtilization, ServerOutput};
use linerate_model::stream::StreamId;
use linerate_units::{ByteCount, PacketCount, Ratio, SegmentCount, StreamCount};
use linerate_wire::error::ErrorCode;
use linerate_wire::results::{self, ResultsError, StreamCounts, TestResults};
use proptest::prelude::*;

use crate::common::{CLIENT_RESULTS, SERVER_RESULTS};

#[test]
fn results_are_written_as_iperf3_writes_them() {
    for captured in [CLIENT_RESULTS, SERVER_RESULTS] {
        let results = results::decode(captured.as_bytes(), StreamCount::new(1)).expect("captured from iperf3");
        assert_eq!(results::encode(&results), captured);
    }
    let client = results::decode(CLIENT_RESULTS.as_bytes(), StreamCount::new(1)).expect("captured from iperf3");
    let stream = client.streams[0];
    assert_eq!(client.sender_has_retransmits, Some(true));
    assert_eq!((stream.id, stream.bytes), (StreamId(1), ByteCount::new(393_216)));
    assert_eq!(stream.retransmits, Some(SegmentCount::ZERO));
    assert_eq!(stream.end, Some(Duration::from_micros(1_001_190)));
}

fn stream(id: u32) -> StreamCounts {
    StreamCounts {
        id: StreamId(id),
        bytes: ByteCount::new(u64::MAX >> 1),
        retransmits: None,
        jitter: Duration::from_nanos(1234),
        lost: PacketCount::new(5),
        omitted_lost: Some(PacketCount::new(1)),
        packets: PacketCount::new(100),
        omitted_packets: Some(PacketCount::new(10)),
        start: Some(Duration::ZERO),
        end: Some(Duration::from_millis(10_001)),
    }
}

#[test]
fn results_round_trip() {
    let ratio = |value| Ratio::new(value).expect("a ratio");
    let mut results = TestResults {
        cpu: CpuUtilization { total: ratio(1.5), user: ratio(0.25), system: ratio(1.25) },
        sender_has_retransmits: Some(false),
        congestion_used: None,
        server_output: Some(ServerOutput::Text("---\nServer \u{1b}[31m\"listening\"\n".into())),
        streams: vec![stream(1), stream(3), stream(4)],
    };
    let round_trip = |results: &TestResults| {
        results::decode(results::encode(results).as_bytes(), StreamCount::new(3)).expect("as written")
    };
    assert_eq!(round_trip(&results), results);
    results.server_output = Some(ServerOutput::Json("{\"start\":{\"z\":[1.50,{}],\"a\":null}}".into()));
    assert_eq!(round_trip(&results), results, "text of the JSON unchanged");
    results.streams.truncate(1);
    assert_eq!(round_trip(&results), results, "a stream without results is unknown, not an error");
}

#[test]
fn older_peers_are_understood() {
    let old = r#"{"cpu_util_total":1,"cpu_util_user":0,"cpu_util_system":1.0,"sender_has_retransmits":-1,"streams":
        [{"id":1,"bytes":1.0,"retransmits":18446744073709551615,"jitter":1e-05,"errors":2,"packets":9}]}"#;
    let results = results::decode(old.as_bytes(), StreamCount::new(1)).expect("as iperf3 3.12 writes it");
    let stream = results.streams[0];
    assert_eq!(stream.retransmits, None);
    assert_eq!((stream.omitted_lost, stream.omitted_packets, stream.end), (None, None, None));
    assert_eq!(stream.jitter, Duration::from_micros(10));
}

#[test]
fn every_key_of_results_with_every_wrong_value() {
    let template = |key: &str, value: &str| {
        let all = [
            ("cpu_util_total", "1"),
            ("cpu_util_user", "1"),
            ("cpu_util_system", "1"),
            ("sender_has_retransmits", "1"),
            ("congestion_used", "\"bbr\""),
            ("server_output_text", "\"x\""),
            ("server_output_json", "{}"),
        ];
        let stream = [
            ("id", "1"),
            ("bytes", "1"),
            ("retransmits", "1"),
            ("jitter", "1"),
            ("errors", "1"),
            ("omitted_errors", "1"),
            ("packets", "1"),
            ("omitted_packets", "1"),
            ("start_time", "0"),
            ("end_time", "1"),
        ];
        let join = |members: &[(&str, &str)]| {
            let member = |(name, good): &(&str, &str)| match (*name == key, value) {
                (true, "absent") => None,
                (true, value) => Some(format!("\"{name}\":{value}")),
                (false, _) => Some(format!("\"{name}\":{good}")),
            };
            members.iter().filter_map(member).collect::<Vec<_>>().join(",")
        };
        let streams = if key == "streams" { value.to_owned() } else { format!("[{{{}}}]", join(&stream)) };
        let streams = if streams == "absent" { String::new() } else { format!(",\"streams\":{streams}") };
        format!("{{{}{streams}}}", join(&all))
    };
    let decode = |document: &str| results::decode(document.as_bytes(), StreamCount::new(1));
    assert!(decode(&template("", "")).is_ok());
    let numbers = [
        "cpu_util_total",
        "cpu_util_user",
        "cpu_util_system",
        "sender_has_retransmits",
        "id",
        "bytes",
        "retransmits",
        "jitter",
        "errors",
        "omitted_errors",
        "packets",
        "omitted_packets",
        "start_time",
        "end_time",
    ];
    for key in numbers {
        for value in ["null", "true", "\"x\"", "[]", "{}", "1e999", "NaN", "-2"] {
            let answer = decode(&template(key, value));
            assert!(
                matches!(answer, Err(ResultsError::Malformed(_) | ResultsError::UnknownStream(_))),
                "{key}: {value}: {answer:?}"
            );
        }
    }
    for key in ["sender_has_retransmits", "bytes", "retransmits", "errors", "packets"] {
        for value in ["18446744073709551614", "9223372036854775808", "1.5"] {
            let answer = decode(&template(key, value));
            assert!(matches!(answer, Err(ResultsError::Malformed(_))), "{key}: {value}: {answer:?}");
        }
    }
    for key in ["congestion_used", "server_output_text", "server_output_json", "streams"] {
        for value in ["null", "true", "1", "1e999"] {
            let answer = decode(&template(key, value));
            assert!(matches!(answer, Err(ResultsError::Malformed(_))), "{key}: {value}: {answer:?}");
        }
    }
    let optional = ["congestion_used", "server_output_text", "server_output_json", "start_time", "end_time"];
    for key in numbers.iter().chain(&optional).chain(&["streams"]) {
        let answer = decode(&template(key, "absent"));
        assert_eq!(answer.is_ok(), optional.contains(key), "{key}: {answer:?}");
    }
    assert!(decode(&template("streams", "[[1,1,1,1,1,1]]")).is_err(), "a stream is an object");
    assert!(decode(&template("streams", "[1]")).is_err());
}

#[test]
fn stream_numbers_are_those_of_the_test() {
    let document = |ids: &[i64]| {
        let stream =
            |id: &i64| format!("{{\"id\":{id},\"bytes\":0,\"retransmits\":0,\"jitter\":0,\"errors\":0,\"packets\":0}}");
        let streams = ids.iter().map(stream).collect::<Vec<_>>().join(",");
        format!(
            "{{\"cpu_util_total\":0,\"cpu_util_user\":0,\"cpu_util_system\":0,\"sender_has_retransmits\":1,\"streams\":[{streams}]}}"
        )
    };
    let decode = |ids: &[i64]| results::decode(document(ids).as_bytes(), StreamCount::new(3)).map(|_| ());
    assert_eq!(decode(&[1, 3, 4]), Ok(()));
    assert_eq!(decode(&[4, 1]), Ok(()));
    assert_eq!(decode(&[1, 2]), Err(ResultsError::UnknownStream(StreamId(2))));
    assert_eq!(decode(&[0]), Err(ResultsError::UnknownStream(StreamId(0))));
    assert_eq!(decode(&[5]), Err(ResultsError::UnknownStream(StreamId(5))));
    assert_eq!(decode(&[1, 3, 3]), Err(ResultsError::DuplicateStream(StreamId(3))));
    assert_eq!(decode(&[1, 3, 4, 1]), Err(ResultsError::DuplicateStream(StreamId(1))));
    for bad in [-1, 1 << 40] {
        assert_eq!(decode(&[bad]).map_err(|error| error.code()), Err(ErrorCode::STREAM_ID));
    }
    assert!(matches!(decode(&[1; 1000]), Err(ResultsError::Malformed(_))), "no more elements than streams are read");
}

proptest! {
    #[test]
    fn random_documents_never_panic(document in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = results::decode(&document, StreamCount::new(3));
    }

    #[test]
    fn counts_round_trip(
        bytes in 0..=i64::MAX.unsigned_abs(),
        retransmits in proptest::option::of(0..=i64::MAX.unsigned_abs()),
        counts in any::<[u64; 4]>(),
        nanoseconds in 0..1_u64 << 50,
    ) {
        let [lost, omitted_lost, packets, omitted_packets] = counts.map(|count| PacketCount::new(count >> 1));
        let sent = StreamCounts {
            bytes: ByteCount::new(bytes),
            retransmits: retransmits.map(SegmentCount::new),
            jitter: Duration::from_nanos(nanoseconds),
            lost,
            omitted_lost: Some(omitted_lost),
            packets,
            omitted_packets: Some(omitted_packets),
            ..stream(1)
        };
        let document = results::encode(&TestResults { streams: vec![sent], ..TestResults::default() });
        let received = results::decode(document.as_bytes(), StreamCount::new(1)).expect("as written");
        prop_assert_eq!(received.streams, [sent]);
    }
}

/// 3.12 writes −1 without its sign, in two places.
#[test]
fn captured_from_iperf3_3_12() {
    let captured: Vec<_> = include_str!("../testdata/iperf3-3.12/results.jsonl").lines().collect();
    let [client, server, receiving_client, sending_server] = captured[..] else { panic!("four documents") };
    let decode = |document: &str, streams| {
        results::decode(document.as_bytes(), StreamCount::new(streams)).expect("captured from iperf3")
    };
    let summary = |results: &TestResults| (results.sender_has_retransmits, results.streams[0].retransmits);
    assert_eq!(summary(&decode(client, 1)), (Some(true), Some(SegmentCount::ZERO)));
    assert_eq!(summary(&decode(server, 1)), (None, None));
    assert_eq!(summary(&decode(receiving_client, 2)), (None, None));
    let sending = decode(sending_server, 2);
    assert_eq!(summary(&sending), (Some(true), Some(SegmentCount::new(1))));
    assert_eq!(sending.streams.iter().map(|stream| stream.id.0).collect::<Vec<_>>(), [1, 3]);
    let Some(ServerOutput::Text(output)) = sending.server_output else { panic!("output was asked for") };
    assert!(output.starts_with("Accepted connection from 127.0.0.1, port 54546\n"), "{output}");
}
