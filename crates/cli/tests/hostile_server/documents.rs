//! Invalid and excessive documents.

use super::Target;
use super::wire::{self, Client, PeerMessage, REPLY_TIMEOUT, TCP, UDP, state, with};

#[test]
fn invalid_document_lengths() {
    let target = Target::start(&[]);
    for length in [0_u32, 8193, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF] {
        let mut client = Client::admitted(target.port);
        client.control.send(length.to_be_bytes());
        assert_eq!(client.control.next_message(), PeerMessage::Error(114), "{length}");
        target.serves_at_once();
        assert!(client.control.closed_within(REPLY_TIMEOUT), "{length}");
    }
    // A test of one stream has results of 9 KiB at most.
    for length in [0_u32, (9 << 10) + 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF] {
        let mut client = Client::ended(target.port, TCP);
        client.control.send(length.to_be_bytes());
        assert_eq!(client.control.next_message(), PeerMessage::Error(117), "results of {length}");
        target.serves_at_once();
    }
    target.must_be_unharmed();
}

#[test]
fn invalid_parameter_documents() {
    let target = Target::start(&[]);
    let deep = |levels: usize| format!(r#"{{"tcp":true,"new":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
    let digits = "9".repeat(8000);
    let refused: Vec<Vec<u8>> = vec![
        TCP[..60].into(),
        "[".repeat(8000).into(),
        "{\"a\":".repeat(1600).into(),
        deep(70).into(),
        with(TCP, "time", &digits).into(),
        with(TCP, "time", &format!("1.5{}", &digits[2..])).into(),
        with(TCP, "time", "1,\"time\":1").into(),
        with(TCP, "title", r#""\u""#).into(),
        with(TCP, "title", r#""\ud83d""#).into(),
        with(TCP, "title", r#""\x41""#).into(),
        with(TCP, "title", r#""cut"#).into(),
        with(TCP, "title", r#""cut\"#).into(),
        with(TCP, "title", "\"a\0b\"").into(),
        format!("{TCP}{TCP}").into(),
        format!("{TCP}\0").into(),
        "[]".into(),
        "5".into(),
        "null".into(),
        "\"tcp\"".into(),
        " ".into(),
        b"{\xff:1}".into(),
        b"\xef\xbb\xbf{}".into(),
        r#"{"tcp":true,"udp":true}"#.into(),
    ];
    for (index, document) in refused.iter().enumerate() {
        let mut client = Client::asking(target.port, document);
        let shown = String::from_utf8_lossy(&document[..document.len().min(60)]);
        assert_eq!(client.control.next_message(), PeerMessage::Error(114), "document {index}: {shown}");
    }
    target.serves_at_once();
    let mut title = with(TCP, "title", "\"X\"").into_bytes();
    *title.iter_mut().find(|byte| **byte == b'X').expect("the title") = 0xff;
    let accepted: Vec<Vec<u8>> = vec![
        b"{}".into(),
        deep(60).into(),
        with(TCP, "new", &digits[..7000]).into(),
        with(TCP, "title", r#""a\u0000b""#).into(),
        title,
    ];
    for document in &accepted {
        let mut client = Client::asking(target.port, document);
        let shown = String::from_utf8_lossy(&document[..document.len().min(60)]);
        assert_eq!(client.control.next_message(), PeerMessage::State(state::CREATE_STREAMS), "{shown}");
    }
    target.must_be_unharmed();
}

/// Expected type of a parameter.
#[derive(Clone, Copy)]
enum Kind {
    Flag,
    Text,
    Object,
    /// Number, with the error for −1.
    Number(i32),
}

const KEYS: &[(&str, Kind)] = &[
    ("tcp", Kind::Flag),
    ("udp", Kind::Flag),
    ("sctp", Kind::Flag),
    ("nodelay", Kind::Flag),
    ("reverse", Kind::Flag),
    ("bidirectional", Kind::Flag),
    ("mptcp", Kind::Flag),
    ("title", Kind::Text),
    ("extra_data", Kind::Text),
    ("congestion", Kind::Text),
    ("congestion_used", Kind::Text),
    ("authtoken", Kind::Text),
    ("client_version", Kind::Text),
    ("linerate", Kind::Object),
    ("omit", Kind::Number(12)),
    ("server_affinity", Kind::Number(132)),
    ("time", Kind::Number(5)),
    ("num", Kind::Number(114)),
    ("blockcount", Kind::Number(114)),
    ("MSS", Kind::Number(10)),
    ("parallel", Kind::Number(6)),
    ("window", Kind::Number(8)),
    ("len", Kind::Number(7)),
    ("bandwidth", Kind::Number(114)),
    ("fqrate", Kind::Number(114)),
    ("pacing_timer", Kind::Number(114)),
    ("burst", Kind::Number(15)),
    ("gso", Kind::Number(114)),
    ("gso_dg_size", Kind::Number(114)),
    ("gso_bf_size", Kind::Number(114)),
    ("gro", Kind::Number(114)),
    ("gro_bf_size", Kind::Number(114)),
    ("TOS", Kind::Number(21)),
    ("flowlabel", Kind::Number(127)),
    ("get_server_output", Kind::Number(114)),
    ("udp_counters_64bit", Kind::Number(114)),
    ("repeating_payload", Kind::Number(114)),
    ("zerocopy", Kind::Number(114)),
    ("dont_fragment", Kind::Number(114)),
    ("skip_rx_copy", Kind::Number(114)),
];

#[test]
fn every_key_with_every_invalid_value() {
    let target = Target::start(&[]);
    let values = ["null", "true", "\"x\"", "[]", "{}", "1e400", "-1", "9223372036854775808"];
    for (key, kind) in KEYS {
        // Without the other keys, so that no other check can fail.
        for value in values {
            let mut client = Client::asking(target.port, format!("{{\"{key}\":{value}}}"));
            let said = client.control.next_message();
            let expected = match (kind, value) {
                (Kind::Flag, "true") if *key == "sctp" => PeerMessage::Error(18),
                // The turn to open UDP streams comes after those of earlier clients.
                (Kind::Flag, "true") | (Kind::Text, "\"x\"") | (Kind::Object, "{}") => {
                    PeerMessage::State(state::CREATE_STREAMS)
                }
                (Kind::Number(code), "-1") => PeerMessage::Error(*code),
                _ => PeerMessage::Error(114),
            };
            assert_eq!(said, expected, "{key}: {value}");
        }
    }
    target.must_be_unharmed();
}

#[test]
fn excessive_sizes() {
    let target = Target::start(&[]);
    for (parameters, key, value, code) in [
        (TCP, "parallel", "0", 6),
        (TCP, "parallel", "129", 6),
        (TCP, "parallel", "1000000000", 6),
        (TCP, "parallel", "1099511627776", 6),
        (TCP, "len", "0", 7),
        (TCP, "len", "1048577", 7),
        (TCP, "len", "1099511627776", 7),
        (UDP, "len", "15", 20),
        (UDP, "len", "65508", 20),
        (UDP, "len", "1099511627776", 20),
        (UDP, "len", "0,\"gro\":1", 20),
        (TCP, "window", "536870913", 8),
        (TCP, "time", "86401", 5),
        (TCP, "omit", "601", 12),
    ] {
        let mut client = Client::asking(target.port, with(parameters, key, value));
        assert_eq!(client.control.next_message(), PeerMessage::Error(code), "{key}: {value}");
        target.serves_at_once();
    }
    // A buffer beyond the kernel's limit is refused when the stream is open.
    let mut client = Client::accepted(target.port, &with(TCP, "window", "536870912"));
    client.open_stream();
    assert_eq!(client.control.next_message(), PeerMessage::Error(141));
    target.must_be_unharmed();
}

#[test]
fn invalid_results() {
    let target = Target::start(&[]);
    let stream = r#"{"id":1,"bytes":0,"retransmits":0,"jitter":0,"errors":0,"packets":0}"#;
    let document = |streams: &str| {
        format!(
            r#"{{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":0,"sender_has_retransmits":1,"streams":{streams}}}"#
        )
    };
    let mut cases: Vec<(String, i32)> = vec![
        (document(&format!("[{stream},{stream}]")), 208),
        (document(&format!("[{}]", with(stream, "id", "2"))), 208),
        (document(&format!("[{}]", with(stream, "id", "-1"))), 208),
        (document(&format!("[{}]", with(stream, "id", "4294967297"))), 208),
        (document(&format!("[{}]", vec![stream; 1000].join(","))), 117),
        (document("{}"), 117),
        (document("[5]"), 117),
        (document("[[]]"), 117),
        ("[".repeat(100_000), 117),
        ("{}".into(), 117),
        ("5".into(), 117),
    ];
    for key in ["cpu_util_total", "cpu_util_user", "cpu_util_system", "sender_has_retransmits", "streams"] {
        cases.push((document(&format!("[{stream}]")).replace(key, "other"), 117));
    }
    for key in ["bytes", "retransmits", "jitter", "errors", "packets", "id"] {
        cases.push((document(&format!("[{}]", stream.replace(key, "other"))), 117));
        for value in ["NaN", "1e999", "\"1\"", "null", "18446744073709551616"] {
            cases.push((document(&format!("[{}]", with(stream, key, value))), 117));
        }
    }
    for key in ["bytes", "jitter", "errors", "packets", "omitted_errors", "end_time"] {
        cases.push((document(&format!("[{}]", with(stream, key, "-5"))), 117));
    }
    for (results, code) in &cases {
        let mut client = Client::ended(target.port, TCP);
        client.control.send_document(results);
        // An integer beyond 64 bits is an invalid stream ID; either of both errors is acceptable.
        let said = client.control.next_message();
        let fits =
            said == PeerMessage::Error(*code) || (results.contains("\"id\":1844") && said == PeerMessage::Error(208));
        assert!(fits, "{said:?} for {}", &results[..results.len().min(200)]);
    }
    target.serves_at_once();
    // Odd but valid results are accepted.
    for stream in [with(stream, "bytes", "9223372036854775807"), with(stream, "retransmits", "18446744073709551615")] {
        let mut client = Client::ended(target.port, TCP);
        client.control.send_document(document(&format!("[{stream}]")));
        assert!(client.control.document().contains("\"streams\""));
        client.expect(state::DISPLAY_RESULTS);
    }
    target.must_be_unharmed();
}

#[test]
fn parameters_do_not_affect_other_clients() {
    let target = Target::start(&[]);
    let mut asking = with(TCP, "reverse", "true");
    for key in ["get_server_output", "repeating_payload", "zerocopy", "skip_rx_copy"] {
        asking = with(&asking, key, "1");
    }
    for (parameters, wanted) in [(asking.as_str(), true), (TCP, false), (&asking, true), (TCP, false)] {
        let mut client = Client::ended(target.port, parameters);
        client.control.send_document(wire::CLIENT_RESULTS);
        assert_eq!(client.control.document().contains("server_output_text"), wanted);
    }
    target.must_be_unharmed();
}

#[test]
fn control_characters_stay_in_the_document() {
    for arguments in [&["-V"][..], &["-J"], &["-d"]] {
        let target = Target::start(arguments);
        let mut parameters = TCP.to_owned();
        for key in ["title", "extra_data", "congestion_used", "client_version"] {
            parameters = with(&parameters, key, "\"\\u001b]0;x\\u0007\\u009b31m\\r\\n \u{9b}31m\u{202e}\"");
        }
        let mut client = Client::ended(target.port, &parameters);
        client.control.send_document(with(wire::CLIENT_RESULTS, "congestion_used", r#""\u001b[2J""#));
        client.control.document();
        drop(client);
        target.must_be_unharmed();
    }
}
