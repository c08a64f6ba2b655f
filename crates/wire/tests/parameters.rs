//! The parameters document: encoding, parsing, errors.

use std::time::Duration;

use linerate_model::parameters::{CpuIndex, EndCondition, TestDirection, TestParameters, TestProtocol};
use linerate_units::{BitRate, BlockCount, ByteCount, FlowLabel, Mss, PacketCount, StreamCount, TypeOfService};
use linerate_wire::error::ErrorCode;
use linerate_wire::parameters::{self, ParametersExtra, ParametersRefusal, ReceivedParameters, ServerLimits};
use proptest::prelude::*;

use crate::common::PARAMETERS;

fn decode(document: &str) -> Result<ReceivedParameters, ParametersRefusal> {
    parameters::decode(document.as_bytes(), &ServerLimits::default())
}

fn refused(document: &str) -> ErrorCode {
    decode(document).expect_err(document).code
}

/// Every option of iperf3 at once, also those that exclude each other.
fn everything() -> TestParameters {
    TestParameters {
        protocol: TestProtocol::Udp,
        direction: TestDirection::Bidirectional,
        end: EndCondition::Blocks(BlockCount::new(7)),
        omit: Duration::from_secs(2),
        parallel: StreamCount::new(128),
        block_size: ByteCount::new(1448),
        rate: Some(BitRate::from_bits_per_second(1_048_576.0)),
        burst: Some(PacketCount::new(10)),
        fq_rate: Some(BitRate::from_bits_per_second(2e9)),
        pacing_timer: Duration::from_micros(500),
        window: Some(ByteCount::from_kibibytes(256)),
        mss: Some(Mss::new(1400)),
        no_delay: true,
        multipath: true,
        type_of_service: TypeOfService::new(0xB8),
        flow_label: FlowLabel::new(0xF_FFFF),
        congestion: Some("cubic".into()),
        title: Some("a \"title\"\u{1b}".into()),
        extra_data: Some("é".into()),
        get_server_output: true,
        udp_counters_64bit: true,
        repeating_payload: true,
        zero_copy: true,
        dont_fragment: true,
        skip_receive_copy: true,
        server_affinity: Some(CpuIndex(3)),
        segmentation_offload: true,
        far_interval: None,
        far_reports_at_end: false,
        tls_data: false,
        far_details: false,
        kernel_events: false,
    }
}

#[test]
fn keys_are_in_iperf3s_order() {
    let extra = ParametersExtra {
        authentication_token: Some("dG9rZW4=".into()),
        congestion_used: Some("bbr".into()),
        client_version: "3.21",
        announces_linerate: true,
    };
    let document = parameters::encode(&everything(), &extra);
    let expected = concat!(
        r#"{"udp":true,"omit":2,"server_affinity":3,"time":0,"num":0,"blockcount":7,"MSS":1400,"nodelay":true,"#,
        r#""parallel":128,"bidirectional":true,"mptcp":true,"window":262144,"len":1448,"bandwidth":1048576,"#,
        r#""fqrate":2000000000,"pacing_timer":500,"burst":10,"gso":1,"gso_dg_size":1448,"gso_bf_size":65160,"gro":1,"#,
        r#""gro_bf_size":65507,"TOS":184,"flowlabel":1048575,"title":"a \"title\"\u001b","extra_data":"é","#,
        r#""congestion":"cubic","congestion_used":"bbr","get_server_output":1,"udp_counters_64bit":1,"#,
        r#""repeating_payload":1,"zerocopy":1,"dont_fragment":1,"authtoken":"dG9rZW4=","skip_rx_copy":1,"#,
        r#""client_version":"3.21","linerate":{"version":""#,
        env!("CARGO_PKG_VERSION"),
        r#""}}"#
    );
    assert_eq!(document, expected);
    let received = decode(&document).expect("all within range");
    assert_eq!(received.parameters, everything());
    assert!(received.block_size_given);
    assert_eq!(received.authentication_token.as_deref(), Some("dG9rZW4="));
    assert_eq!(received.congestion_used.as_deref(), Some("bbr"));
    assert_eq!(received.client_version.as_deref(), Some("3.21"));
    assert_eq!(received.linerate_version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
}

#[test]
fn udp_without_offload_sends_iperf3s_defaults() {
    let parameters = TestParameters { segmentation_offload: false, ..everything() };
    let document = parameters::encode(&parameters, &ParametersExtra::default());
    assert!(
        document.contains(r#""gso":0,"gso_dg_size":0,"gso_bf_size":65507,"gro":0,"gro_bf_size":65507"#),
        "{document}"
    );
    let small = TestParameters { block_size: ByteCount::new(200), ..everything() };
    let document = parameters::encode(&small, &ParametersExtra::default());
    assert!(document.contains(r#""gso_dg_size":200,"gso_bf_size":25600"#), "at most 128 segments: {document}");
}

#[test]
fn fractions_of_a_second_are_rounded_up() {
    let end = EndCondition::Time(Duration::from_millis(1500));
    let parameters = TestParameters { end, omit: Duration::from_millis(1), ..TestParameters::default() };
    let document = parameters::encode(&parameters, &ParametersExtra::default());
    assert!(document.starts_with(r#"{"tcp":true,"omit":1,"time":2,"#), "{document}");
}

#[test]
fn absent_keys_have_iperf3s_defaults() {
    let received = decode("{}").expect("an object");
    assert_eq!(received.parameters, TestParameters::default());
    assert!(!received.block_size_given);
    let udp = decode(r#"{"udp":true,"reverse":true}"#).expect("an object").parameters;
    assert_eq!((udp.protocol, udp.direction, udp.block_size.get()), (TestProtocol::Udp, TestDirection::Reverse, 1460));
    let captured = decode(PARAMETERS).expect("captured from iperf3").parameters;
    assert_eq!(captured.end, EndCondition::Bytes(ByteCount::new(307_200)));
}

#[test]
fn unknown_keys_are_ignored() {
    let received = decode(r#"{"tcp":true,"future":{"a":[1,null]},"future":2,"time":3}"#).expect("an object");
    assert_eq!(received.parameters.end, EndCondition::Time(Duration::from_secs(3)));
}

#[test]
fn ranges_have_iperf3s_errors() {
    for (key, good, bad, code) in [
        ("omit", &["0", "600"][..], &["-1", "601"][..], 12),
        ("server_affinity", &["0", "1024"], &["-1", "1025"], 132),
        ("time", &["0", "86400"], &["-1", "86401"], 5),
        ("num", &["0", "9223372036854775807"], &["-1"], 114),
        ("blockcount", &["0", "9223372036854775807"], &["-1"], 114),
        ("MSS", &["0", "32767"], &["-1", "32768"], 10),
        ("parallel", &["1", "128"], &["0", "-1", "129", "1000000000", "1099511627776"], 6),
        ("window", &["0", "536870912"], &["-1", "536870913"], 8),
        ("len", &["1", "1048576"], &["0", "-1", "1048577", "1099511627776"], 7),
        ("bandwidth", &["0", "9223372036854775807"], &["-1"], 114),
        ("fqrate", &["0", "9223372036854775807"], &["-1"], 114),
        ("pacing_timer", &["0", "1000"], &["-1"], 114),
        ("burst", &["1", "1000"], &["0", "-1", "1001"], 15),
        ("gso", &["0", "1"], &["-1"], 114),
        ("gso_dg_size", &["0", "65507"], &["-1"], 114),
        ("gso_bf_size", &["0", "65507"], &["-1"], 114),
        ("gro", &["0", "1"], &["-1", "2"], 114),
        ("gro_bf_size", &["0", "65507"], &["-1"], 114),
        ("TOS", &["0", "255"], &["-1", "256"], 21),
        ("flowlabel", &["1", "1048575"], &["0", "-1", "1048576"], 127),
    ] {
        for value in good {
            let document = format!("{{\"tcp\":true,\"{key}\":{value}}}");
            assert!(decode(&document).is_ok(), "{document}: {:?}", decode(&document));
        }
        for value in bad {
            assert_eq!(refused(&format!("{{\"tcp\":true,\"{key}\":{value}}}")), ErrorCode(code), "{key}: {value}");
        }
    }
    for (size, good) in [("16", true), ("65507", true), ("0", false), ("15", false), ("65508", false), ("-1", false)] {
        let document = format!("{{\"udp\":true,\"len\":{size}}}");
        assert_eq!(decode(&document).map_err(|refusal| refusal.code).err(), (!good).then_some(ErrorCode(20)), "{size}");
    }
    assert_eq!(refused(r#"{"udp":true,"len":0,"gro":1}"#), ErrorCode(20), "CVE-2026-102253");
    assert_eq!(refused(r#"{"sctp":true}"#), ErrorCode(18));
    assert_eq!(refused(r#"{"tcp":true,"udp":true}"#), ErrorCode(114));
    assert_eq!(refused(r#"{"num":1,"blockcount":1}"#), ErrorCode(16));
    assert_eq!(refused(r#"{"reverse":true,"bidirectional":true}"#), ErrorCode(25));
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Integer,
    Text,
    Flag,
    Object,
}

/// Every key of the document.
const KEYS: [(&str, Kind); 38] = [
    ("tcp", Kind::Flag),
    ("udp", Kind::Flag),
    ("sctp", Kind::Flag),
    ("omit", Kind::Integer),
    ("server_affinity", Kind::Integer),
    ("time", Kind::Integer),
    ("num", Kind::Integer),
    ("blockcount", Kind::Integer),
    ("MSS", Kind::Integer),
    ("nodelay", Kind::Flag),
    ("parallel", Kind::Integer),
    ("reverse", Kind::Flag),
    ("bidirectional", Kind::Flag),
    ("mptcp", Kind::Flag),
    ("window", Kind::Integer),
    ("len", Kind::Integer),
    ("bandwidth", Kind::Integer),
    ("fqrate", Kind::Integer),
    ("pacing_timer", Kind::Integer),
    ("burst", Kind::Integer),
    ("gso", Kind::Integer),
    ("gso_dg_size", Kind::Integer),
    ("gso_bf_size", Kind::Integer),
    ("gro", Kind::Integer),
    ("gro_bf_size", Kind::Integer),
    ("TOS", Kind::Integer),
    ("flowlabel", Kind::Integer),
    ("title", Kind::Text),
    ("extra_data", Kind::Text),
    ("congestion", Kind::Text),
    ("congestion_used", Kind::Text),
    ("get_server_output", Kind::Integer),
    ("udp_counters_64bit", Kind::Integer),
    ("repeating_payload", Kind::Integer),
    ("zerocopy", Kind::Integer),
    ("dont_fragment", Kind::Integer),
    ("authtoken", Kind::Text),
    ("skip_rx_copy", Kind::Integer),
];

/// CVE-2024-53580: each key with each type that it should not have.
#[test]
fn every_key_with_every_wrong_value() {
    let keys = KEYS.into_iter().chain([("client_version", Kind::Text), ("linerate", Kind::Object)]);
    for (key, kind) in keys {
        for value in ["null", "true", "\"x\"", "[]", "{}", "1e400", "1.5", "-1", "9223372036854775808"] {
            let document = format!("{{\"{key}\":{value}}}");
            let fits = match kind {
                Kind::Flag => value == "true",
                Kind::Text => value == "\"x\"",
                Kind::Object => value == "{}",
                Kind::Integer => false,
            };
            let answer = decode(&document).map_err(|refusal| refusal.code);
            if value == "-1" && kind == Kind::Integer {
                assert!(answer.is_err(), "{document}: the error is of a range check");
            } else if key == "sctp" && fits {
                assert_eq!(answer.err(), Some(ErrorCode::NO_SCTP));
            } else {
                let expected = (!fits).then_some(ErrorCode::RECEIVE_PARAMETERS);
                assert_eq!(answer.err(), expected, "{document}");
            }
        }
        let twice = format!("{{\"{key}\":1,\"{key}\":1}}");
        assert_eq!(refused(&twice), ErrorCode::RECEIVE_PARAMETERS, "{twice}");
    }
}

#[test]
fn invalid_documents() {
    let deep = format!("{{\"title\":{}{}}}", "[".repeat(4000), "]".repeat(4000));
    let digits = format!("{{\"num\":{}}}", "9".repeat(8000));
    let many = format!("{{{}\"a\":1}}", "\"k\":1,".repeat(1300));
    for document in [
        "",
        " ",
        "[]",
        "5",
        "\"x\"",
        "null",
        "{",
        "{}}",
        "{} {}",
        "{\"time\":10",
        "{\"title\":\"\\u\"}",
        "{\"title\":\"\\ud83d\"}",
        "{\"title\":\"\\",
        "{\"time\":NaN}",
        "{\"time\":0x10}",
        "{'time':1}",
        &deep,
        &digits,
        &many,
    ] {
        let refusal = decode(document).expect_err(document);
        assert_eq!(refusal.code, ErrorCode::RECEIVE_PARAMETERS, "{document}");
        assert!(refusal.detail.len() < 300, "{}", refusal.detail);
    }
    assert!(parameters::decode(b"{\"title\":\"\0\"}", &ServerLimits::default()).is_err(), "a raw NUL in a string");
    let escaped = decode("{\"title\":\"\\u0000\"}").expect("an escaped NUL is text").parameters;
    assert_eq!(escaped.title.as_deref(), Some("\0"));
    let latin1 = parameters::decode(b"{\"title\":\"caf\xe9\"}", &ServerLimits::default()).expect("in some locale");
    assert_eq!(latin1.parameters.title.as_deref(), Some("caf\u{FFFD}"));
}

#[test]
fn limits_of_the_server() {
    let limits = ServerLimits {
        max_duration: Some(Duration::from_secs(20)),
        max_total_rate: Some(BitRate::from_bits_per_second(1e6)),
        max_streams: StreamCount::new(4),
        udp: false,
    };
    for (document, code) in [
        (r#"{"time":18,"omit":2}"#, None),
        (r#"{"time":18,"omit":3}"#, Some(37)),
        (r#"{"time":0}"#, Some(37)),
        (r#"{"time":0,"num":5}"#, Some(37)),
        (r#"{"bandwidth":250000,"parallel":4}"#, None),
        (r#"{"bandwidth":250001,"parallel":4}"#, Some(27)),
        (r#"{"bandwidth":250000,"parallel":4,"bidirectional":true}"#, Some(27)),
        (r#"{"fqrate":1000001}"#, Some(27)),
        (r#"{"parallel":5}"#, Some(6)),
        (r#"{"udp":true}"#, Some(34)),
        // The last failing check is reported.
        (r#"{"omit":601,"MSS":32768}"#, Some(37)),
        (r#"{"MSS":32768,"omit":-1}"#, Some(10)),
        (r#"{"len":0,"TOS":256}"#, Some(7)),
        (r#"{"len":0,"time":0}"#, Some(37)),
        (r#"{"time":0,"bandwidth":2000000}"#, Some(27)),
        (r#"{"time":0,"bandwidth":2000000,"title":5}"#, Some(114)),
    ] {
        let document = document.replace("\"omit\":601", "\"omit\":601,\"time\":21");
        let answer = parameters::decode(document.as_bytes(), &limits).map_err(|refusal| refusal.code);
        assert_eq!(answer.err(), code.map(ErrorCode), "{document}");
    }
}

proptest! {
    #[test]
    fn random_documents_never_panic(document in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = parameters::decode(&document, &ServerLimits::default());
    }

    #[test]
    fn random_json_never_panics(key in 0..KEYS.len(), number in any::<f64>(), text in ".*", integer in any::<i64>()) {
        let (key, _) = KEYS[key];
        let text = serde_json::to_string(&text).expect("a string");
        for value in [format!("{number:e}"), text, integer.to_string()] {
            let _ = decode(&format!("{{\"{key}\":{value}}}"));
        }
    }

    #[test]
    fn parameters_round_trip(
        parallel in 1_u64..=128,
        size in 16_u64..=65_507,
        rate in proptest::option::of(1_u32..),
        time in 0_u64..=86_400,
        omit in 0_u64..=600,
        title in proptest::option::of(".*"),
        tos in any::<u8>(),
        flags in any::<[bool; 6]>(),
    ) {
        let asked = TestParameters {
            protocol: if flags[0] { TestProtocol::Udp } else { TestProtocol::Tcp },
            end: EndCondition::Time(Duration::from_secs(time)),
            omit: Duration::from_secs(omit),
            parallel: StreamCount::new(parallel),
            block_size: ByteCount::new(size),
            rate: rate.map(|rate| BitRate::from_bits_per_second(f64::from(rate))),
            title,
            type_of_service: TypeOfService::new(tos),
            no_delay: flags[1],
            zero_copy: flags[2],
            get_server_output: flags[3],
            segmentation_offload: flags[0] && flags[4],
            multipath: flags[5],
            ..TestParameters::default()
        };
        let document = parameters::encode(&asked, &ParametersExtra::default());
        prop_assert_eq!(decode(&document).map(|received| received.parameters), Ok(asked));
    }
}

/// Every TCP document round-trips; the UDP ones gain the keys of 3.21.
#[test]
fn captured_from_iperf3_3_12() {
    let captured: Vec<_> = include_str!("../testdata/iperf3-3.12/parameters.jsonl").lines().collect();
    assert_eq!(captured.len(), 15);
    for document in captured {
        let received = decode(document).expect("captured from iperf3");
        let extra = ParametersExtra { client_version: "3.12", ..ParametersExtra::default() };
        let gained = r#""gso":0,"gso_dg_size":0,"gso_bf_size":65507,"gro":0,"gro_bf_size":65507,"#;
        let written = parameters::encode(&received.parameters, &extra).replace(gained, "");
        assert_eq!(written, document);
    }
}

#[test]
fn a_linerate_receives_the_report_interval() {
    let asked = |interval: Duration| {
        let parameters = TestParameters { far_interval: Some(interval), ..TestParameters::default() };
        let extra = ParametersExtra { announces_linerate: true, ..ParametersExtra::default() };
        decode(&parameters::encode(&parameters, &extra)).expect("valid").parameters.far_interval
    };
    for interval in [Duration::from_millis(10), Duration::from_nanos(123_456_789), Duration::from_secs(1)] {
        assert_eq!(asked(interval), Some(interval));
    }
    assert_eq!(asked(Duration::ZERO), Some(Duration::from_millis(10)));
    assert_eq!(asked(Duration::MAX), Some(Duration::from_secs(3600)));
    let together = TestParameters { far_reports_at_end: true, ..TestParameters::default() };
    let extra = ParametersExtra { announces_linerate: true, ..ParametersExtra::default() };
    assert!(decode(&parameters::encode(&together, &extra)).expect("valid").parameters.far_reports_at_end);
    let stock = TestParameters { far_interval: Some(Duration::from_secs(1)), ..TestParameters::default() };
    let document = parameters::encode(&stock, &ParametersExtra::default());
    assert!(!document.contains("interval"), "only a linerate receives it: {document}");
}
