//! Rebuilds captured documents of iperf3 3.21 from events and compares them byte by byte.

use core::time::Duration;

use linerate_model::event::TestEvent;
use linerate_model::parameters::{EndCondition, TestDirection, TestParameters, TestProtocol};
use linerate_model::report::{RttRange, ServerOutput, StreamReport, TcpReport, TestReport, UdpReceived, UdpReport};
use linerate_model::sample::{IntervalReport, StreamInterval, TcpInterval, UdpInterval};
use linerate_model::stream::{EndpointRole, StreamDescription, StreamRole};
use linerate_report::iperf3_json::{Iperf3Document, Iperf3EventStream, OrderedValue as Ordered};
use linerate_units::{BitRate, ByteCount, Mtu, PacketCount, SegmentCount, WallTime};
use serde_json::Value;

use crate::support::{self, micros};

/// Events from which iperf3 produced `document`.
fn events_of(document: &Value) -> Vec<TestEvent> {
    let start = &document["start"];
    let mut events = vec![
        support::connected(EndpointRole::Client, port(&start["connecting_to"]["port"])),
        TestEvent::Started(Box::new(test_start(document))),
    ];
    events.extend(list(&document["intervals"]).iter().map(|interval| TestEvent::Interval(interval_report(interval))));
    events.push(TestEvent::Finished(Box::new(test_report(document))));
    events
}

fn test_start(document: &Value) -> linerate_model::event::TestStart {
    let start = &document["start"];
    let asked = &start["test_start"];
    let is = |key: &str| asked[key] == 1;
    let target = BitRate::from_bits_per_second(number(&start["target_bitrate"]));
    let parameters = TestParameters {
        protocol: if asked["protocol"] == "TCP" { TestProtocol::Tcp } else { TestProtocol::Udp },
        direction: match (is("reverse"), is("bidir")) {
            (true, _) => TestDirection::Reverse,
            (_, true) => TestDirection::Bidirectional,
            _ => TestDirection::Forward,
        },
        end: EndCondition::Time(Duration::from_secs(count(&asked["duration"]))),
        block_size: bytes(&asked["blksize"]),
        rate: Some(target).filter(|rate| !rate.is_zero()),
        ..TestParameters::default()
    };
    let mut start_event = support::start(EndpointRole::Client, parameters, streams(document));
    start_event.cookie = text(&start["cookie"]);
    start_event.at = WallTime::from_unix(Duration::from_millis(count(&start["timestamp"]["timemillisecs"])));
    start_event.interval = Some(micros(number(&asked["interval"])));
    start_event.send_buffer = Some(bytes(&start["sndbuf_actual"]));
    start_event.receive_buffer = Some(bytes(&start["rcvbuf_actual"]));
    start_event
}

fn streams(document: &Value) -> Vec<StreamDescription> {
    let shown = list(&document["intervals"][0]["streams"]);
    let connected = list(&document["start"]["connected"]);
    let describe = |(index, (connection, interval)): (usize, (&Value, &Value))| {
        let socket = i32::try_from(connection["socket"].as_i64().expect("socket")).expect("small");
        support::stream(index, socket, port(&connection["local_port"]), role(interval))
    };
    connected.iter().zip(shown).enumerate().map(describe).collect()
}

fn interval_report(interval: &Value) -> IntervalReport {
    let sum = &interval["sum"];
    let streams = list(&interval["streams"]).iter().enumerate().map(|(index, stream)| StreamInterval {
        stream: linerate_model::stream::StreamId::nth(index),
        role: role(stream),
        bytes: bytes(&stream["bytes"]),
        tcp: stream.get("retransmits").map(|_| tcp_interval(stream)),
        udp: stream.get("packets").map(|_| UdpInterval {
            packets: packets(&stream["packets"]),
            lost: stream.get("lost_packets").map(packets),
            jitter: stream.get("jitter_ms").map(jitter),
            ..UdpInterval::default()
        }),
        socket: None,
    });
    IntervalReport {
        start: micros(number(&sum["start"])),
        end: micros(number(&sum["end"])),
        omitted: sum["omitted"] == true,
        streams: streams.collect(),
    }
}

fn tcp_interval(stream: &Value) -> TcpInterval {
    TcpInterval {
        retransmits: Some(segments(&stream["retransmits"])),
        congestion_window: Some(bytes(&stream["snd_cwnd"])),
        send_window: Some(bytes(&stream["snd_wnd"])),
        rtt: Some(Duration::from_micros(count(&stream["rtt"]))),
        rttvar: Some(Duration::from_micros(count(&stream["rttvar"]))),
        path_mtu: Some(Mtu::new(u32::try_from(count(&stream["pmtu"])).expect("an MTU"))),
        reordering_seen: Some(segments(&stream["reorder"])),
        ..TcpInterval::default()
    }
}

fn test_report(document: &Value) -> TestReport {
    let end = &document["end"];
    let times = (micros(number(&end["sum_sent"]["end"])), micros(number(&end["sum_received"]["end"])));
    let streams = streams(document);
    let described = list(&end["streams"]).iter().zip(streams);
    let mut report =
        support::report(described.map(|(shown, stream)| stream_report(end, shown, stream, times)).collect());
    let cpu = |end_of: &str| {
        let figure = |key: &str| number(&end["cpu_utilization_percent"][format!("{end_of}_{key}")]);
        Some(support::cpu(figure("total"), figure("user"), figure("system")))
    };
    (report.local_cpu, report.remote_cpu) = (cpu("host"), cpu("remote"));
    report.local_congestion = end.get("sender_tcp_congestion").map(text);
    report.remote_congestion = end.get("receiver_tcp_congestion").map(text);
    report.server_output = document.get("server_output_text").map(|output| ServerOutput::Text(text(output)));
    report
}

fn stream_report(end: &Value, shown: &Value, stream: StreamDescription, times: (Duration, Duration)) -> StreamReport {
    let mut report = support::stream_report(stream);
    if let Some(udp) = shown.get("udp") {
        let reverse =
            if report.description.id == linerate_model::stream::StreamId::nth(0) { "" } else { "_bidir_reverse" };
        let received = &end[format!("sum_received{reverse}")];
        report.sent = Some(support::side(bytes(&udp["bytes"]), times.0));
        report.received = Some(support::side(bytes(&received["bytes"]), times.1));
        report.udp = Some(UdpReport {
            sent: Some(packets(&udp["packets"])),
            received: Some(UdpReceived {
                expected: packets(&received["packets"]),
                lost: Some(packets(&udp["lost_packets"])),
                jitter: jitter(&udp["jitter_ms"]),
                ..UdpReceived::default()
            }),
        });
    } else {
        let sender = &shown["sender"];
        report.sent = Some(support::side(bytes(&sender["bytes"]), times.0));
        report.received = Some(support::side(bytes(&shown["receiver"]["bytes"]), times.1));
        let rtt = |key: &str| Duration::from_micros(count(&sender[key]));
        report.tcp = Some(TcpReport {
            retransmits: Some(segments(&sender["retransmits"])),
            reordering_seen: Some(segments(&sender["reorder"])),
            max_congestion_window: Some(bytes(&sender["max_snd_cwnd"])),
            max_send_window: Some(bytes(&sender["max_snd_wnd"])),
            interval_rtt: Some(RttRange { min: rtt("min_rtt"), mean: rtt("mean_rtt"), max: rtt("max_rtt") }),
            ..TcpReport::default()
        });
    }
    report
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("an array")
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn count(value: &Value) -> u64 {
    value.as_u64().expect("a count")
}

fn text(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}

fn port(value: &Value) -> u16 {
    u16::try_from(count(value)).expect("a port")
}

fn bytes(value: &Value) -> ByteCount {
    ByteCount::new(count(value))
}

fn packets(value: &Value) -> PacketCount {
    PacketCount::new(count(value))
}

fn segments(value: &Value) -> SegmentCount {
    SegmentCount::new(count(value))
}

fn jitter(value: &Value) -> Duration {
    support::milliseconds(number(value))
}

fn role(stream: &Value) -> StreamRole {
    if stream["sender"] == true { StreamRole::Sender } else { StreamRole::Receiver }
}

/// The document without the object `linerate`, which must be the last member.
fn without_extra(document: &str) -> String {
    let at = document.find(",\n\t\"linerate\":\t{").expect("the object is there");
    let document = format!("{}\n}}\n", &document[..at]);
    assert!(serde_json::from_str::<Value>(&document).is_ok(), "nothing comes after it");
    document
}

fn rebuilt(events: &[TestEvent]) -> String {
    let mut document = Iperf3Document::new("iperf 3.21+", support::SYSTEM);
    for event in events {
        document.event(event);
    }
    document.finish()
}

/// Compares a capture with the document rebuilt from its events. `differences` are details that the model does not
/// represent, as (captured, ours): parts of a nanosecond of jitter, times of streams that differ by a microsecond
/// within one interval, and the last bit of some percentages.
fn assert_rebuilt(capture: &str, differences: &[(&str, &str)]) {
    let events = events_of(&serde_json::from_str(capture).expect("a JSON document"));
    let mut expected = capture.to_owned();
    for (captured, ours) in differences {
        assert!(expected.contains(captured), "{captured} is not in the capture");
        expected = expected.replace(captured, ours);
    }
    support::assert_same(&without_extra(&rebuilt(&events)), &expected, "document");
}

#[test]
fn tcp() {
    assert_rebuilt(include_str!("captures/tcp.json"), &[]);
}

#[test]
fn tcp_reverse() {
    assert_rebuilt(include_str!("captures/tcp_R.json"), &[]);
}

#[test]
fn tcp_bidirectional() {
    assert_rebuilt(
        include_str!("captures/tcp_bidir.json"),
        &[
            ("1.003265,", "1.003262,"),
            ("1.0032650232315063", "1.0032620429992676"),
            ("25075563095.948624", "25075637583.967049"),
        ],
    );
}

#[test]
fn udp() {
    assert_rebuilt(include_str!("captures/udp.json"), &[("0.00408203125", "0.004082")]);
}

#[test]
fn udp_reverse() {
    assert_rebuilt(include_str!("captures/udp_R.json"), &[("0.008713668823242187", "0.008714")]);
}

#[test]
fn udp_bidirectional() {
    assert_rebuilt(
        include_str!("captures/udp_bidir.json"),
        &[
            ("1.003989,", "1.003988,"),
            ("1.0039889812469482", "1.0039880275726318"),
            ("1305512.3357749342", "1305513.575863013"),
            ("0.012262802124023437", "0.012263"),
            ("0.00089175415039062479", "0.000892"),
        ],
    );
}

#[test]
fn stream_of_lines() {
    let capture = include_str!("captures/tcp.jsonl");
    let lines: Vec<Value> = capture.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let data = |event: &str| -> Vec<Value> {
        lines.iter().filter(|line| line["event"] == event).map(|line| line["data"].clone()).collect()
    };
    let whole = serde_json::json!({
        "start": data("start")[0],
        "intervals": data("interval"),
        "end": data("end")[0],
        "server_output_text": data("server_output_text")[0],
    });
    let mut stream = Iperf3EventStream::new(Iperf3Document::new("iperf 3.21+", support::SYSTEM), true);
    let mut out = Vec::new();
    for event in events_of(&whole) {
        stream.event(&event, &mut out).expect("memory");
    }
    stream.finish(&mut out).expect("memory");
    let out = String::from_utf8(out).expect("text");
    let (lines, document) = out.split_once("\n{\n").expect("the whole document comes after the lines");
    let (before, extra) = lines.split_once(r#","linerate":{"#).expect("the extension, last in the data of the end");
    assert!(extra.starts_with(r#""schema":"#) && extra.ends_with("}}}") && !extra.contains('\n'), "{extra}");
    support::assert_same(&format!("{before}}}}}\n"), capture, "stream");
    let document: Value = serde_json::from_str(&format!("{{{document}")).expect("a document");
    assert_eq!(document["end"], whole["end"]);
}

/// Paths of all keys below `part`, in text order.
fn paths(document: &str, part: &str) -> Vec<String> {
    fn walk(value: &Ordered, at: &str, found: &mut Vec<String>) {
        match value {
            Ordered::Object(object) => {
                for (key, member) in object.members() {
                    let path = format!("{at}.{key}");
                    found.push(path.clone());
                    walk(member, &path, found);
                }
            }
            Ordered::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    walk(element, &format!("{at}[{index}]"), found);
                }
            }
            _ => {}
        }
    }
    let Ordered::Object(top) = Ordered::parse(document).expect("a JSON document") else { panic!("not an object") };
    let mut found = Vec::new();
    walk(top.get(part).expect("the part is there"), part, &mut found);
    found
}

/// Events as the server of the captured test would have produced them: nothing is known of the peer yet.
fn server_events_of(document: &Value) -> Vec<TestEvent> {
    let mut document = document.clone();
    document["start"]["connecting_to"] = document["start"]["accepted_connection"].clone();
    document["start"]["timestamp"]["timemillisecs"] = 0.into();
    document["start"]["test_start"]["interval"] = 1.0.into();
    let streams = list(&document["intervals"][0]["streams"]).len();
    document["start"]["test_start"]["bidir"] = u8::from(streams > 1).into();
    for interval in document["intervals"].as_array_mut().expect("an array") {
        for stream in interval["streams"].as_array_mut().expect("an array") {
            if stream.get("retransmits").is_some() {
                stream["reorder"] = 0.into();
            }
        }
    }
    for stream in document["end"]["streams"].as_array_mut().expect("an array") {
        if let Some(sender) = stream.get_mut("sender") {
            for key in ["retransmits", "reorder", "max_snd_cwnd", "max_snd_wnd", "min_rtt", "mean_rtt", "max_rtt"] {
                if sender.get(key).is_none() {
                    sender[key] = 0.into();
                }
            }
        }
    }
    let mut events = events_of(&document);
    for event in &mut events {
        match event {
            TestEvent::Connected(connected) => connected.side = EndpointRole::Server,
            TestEvent::Started(start) => start.side = EndpointRole::Server,
            TestEvent::Finished(report) => {
                for stream in &mut report.streams {
                    match stream.description.role {
                        StreamRole::Sender => stream.received = None,
                        StreamRole::Receiver => stream.sent = None,
                    }
                }
                // The captured algorithms are this end's, under the name of its role.
                let own = report.local_congestion.take().or(report.remote_congestion.take());
                report.local_congestion = own;
                report.remote_cpu = None;
            }
            _ => {}
        }
    }
    events
}

#[test]
fn server_documents_have_the_captured_keys_and_figures() {
    for (name, capture) in [
        ("tcp", include_str!("captures/server_3.12_tcp.json")),
        ("tcp_R", include_str!("captures/server_3.12_tcp_R.json")),
        ("tcp_bidir", include_str!("captures/server_3.12_tcp_bidir.json")),
        ("udp", include_str!("captures/server_3.12_udp.json")),
        ("udp_R", include_str!("captures/server_3.12_udp_R.json")),
        ("udp_bidir", include_str!("captures/server_3.12_udp_bidir.json")),
    ] {
        let captured: Value = serde_json::from_str(capture).expect("a JSON document");
        let document = rebuilt(&server_events_of(&captured));
        for part in ["intervals", "end"] {
            let mut our_paths = paths(&document, part);
            // Since 3.20.
            our_paths.retain(|path| !path.ends_with(".reorder"));
            assert_eq!(our_paths, paths(capture, part), "{name}");
        }
        let ours: Value = serde_json::from_str(&document).expect("a JSON document");
        let sum = |document: &Value, key: &str| document["end"][key]["bytes"].clone();
        for key in ["sum_sent", "sum_received", "sum_sent_bidir_reverse", "sum_received_bidir_reverse"] {
            assert_eq!(sum(&ours, key), sum(&captured, key), "{name} {key}");
        }
        assert_eq!(ours["start"]["accepted_connection"], captured["start"]["accepted_connection"], "{name}");
    }
}

#[test]
fn a_test_that_never_started_has_a_document() {
    // As captured from iperf3 3.12 against a closed port with `-T title --extra-data x`.
    let mut document = Iperf3Document::new("iperf 3.12", "Linux vm");
    document.labels(Some("title"), Some("x"));
    document.error("unable to connect to server: Connection refused");
    let expected = "{\n\t\"start\":\t{\n\t\t\"connected\":\t[],\n\t\t\"version\":\t\"iperf 3.12\",\n\t\t\"system_info\":\t\"Linux vm\"\n\t},\n\t\"intervals\":\t[],\n\t\"end\":\t{\n\t},\n\t\"error\":\t\"unable to connect to server: Connection refused\",\n\t\"title\":\t\"title\",\n\t\"extra_data\":\t\"x\"\n}\n";
    support::assert_same(&without_extra(&document.finish()), expected, "document");
}

#[test]
fn an_interrupted_test_has_its_figures_and_the_error() {
    let mut captured: Value = serde_json::from_str(include_str!("captures/tcp.json")).expect("a JSON document");
    captured["start"]["test_start"]["duration"] = 5.into();
    let mut events = events_of(&captured);
    let Some(TestEvent::Finished(report)) = events.last_mut() else { panic!("no report") };
    report.termination =
        linerate_model::report::TestTermination::Interrupted { signal: Some("Interrupt(2)".to_owned()) };
    report.remote_cpu = None;
    report.remote_congestion = None;
    for stream in &mut report.streams {
        stream.received = None;
    }
    let document: Value = serde_json::from_str(&rebuilt(&events)).expect("a JSON document");
    assert_eq!(document["error"], "interrupt - the client has terminated by signal Interrupt(2)");
    assert_eq!(document["end"]["sum_sent"]["bytes"], 2_891_448_320_u64);
    assert_eq!(document["end"]["sum_received"]["bytes"], 0);
    assert_eq!(document["end"]["sum_received"]["seconds"], 1.007_127);
    assert_eq!(document["end"]["cpu_utilization_percent"]["remote_total"], 0);
    assert!(document["end"].get("receiver_tcp_congestion").is_none());
    assert_eq!(document["linerate"]["termination"]["outcome"], "interrupted");
    assert_eq!(document["linerate"]["termination"]["signal"], "Interrupt(2)");
}

#[test]
fn the_extra_object_distinguishes_unknown_from_zero() {
    let captured: Value = serde_json::from_str(include_str!("captures/udp_R.json")).expect("a JSON document");
    let mut events = events_of(&captured);
    let Some(TestEvent::Finished(report)) = events.last_mut() else { panic!("no report") };
    report.overlapping_tests = Some(2);
    let received = report.streams[0].udp.as_mut().and_then(|udp| udp.received.as_mut()).expect("received");
    received.duplicates = Some(PacketCount::ZERO);
    received.out_of_order = Some(PacketCount::new(3));
    let document: Value = serde_json::from_str(&rebuilt(&events)).expect("a JSON document");
    let extra = &document["linerate"];
    assert_eq!(extra["schema"], 1);
    assert_eq!(extra["overlapping_tests"], 2);
    assert_eq!(extra["streams"][0]["udp"]["duplicate_packets"], 0);
    assert_eq!(extra["streams"][0]["udp"]["dropped_in_host_packets"], Value::Null);
    assert_eq!(extra["streams"][0]["udp"]["jitter_ns"], 8714);
    assert_eq!(extra["streams"][0]["thread_cpu_ns"], Value::Null);
    assert_eq!(extra["intervals"][0]["streams"][0]["udp"]["packets"], 5);
    assert_eq!(document["end"]["streams"][0]["udp"]["out_of_order"], 3);
}

#[test]
fn a_servers_document_keeps_its_order() {
    let captured: Value = serde_json::from_str(include_str!("captures/tcp.json")).expect("a JSON document");
    let mut events = events_of(&captured);
    let Some(TestEvent::Finished(report)) = events.last_mut() else { panic!("no report") };
    report.server_output = Some(ServerOutput::Json(r#"{"start":{"z":-1,"a":[1.5]},"end":{}}"#.to_owned()));
    let document = rebuilt(&events);
    assert!(
        document.contains(
            "\n\t\"server_output_json\":\t{\n\t\t\"start\":\t{\n\t\t\t\"z\":\t-1,\n\t\t\t\"a\":\t[1.5]\n\t\t},\n\t\t\"end\":\t{\n\t\t}\n\t},\n\t\"linerate\""
        ),
        "{document}"
    );
}

#[test]
fn a_short_final_interval_without_data_is_dropped() {
    let captured: Value = serde_json::from_str(include_str!("captures/tcp.json")).expect("a JSON document");
    let mut events = events_of(&captured);
    let TestEvent::Interval(mut rest) = events[2].clone() else { panic!("no interval") };
    (rest.start, rest.end) = (rest.end, rest.end + Duration::from_millis(99));
    rest.streams[0].bytes = ByteCount::ZERO;
    events.insert(3, TestEvent::Interval(rest.clone()));
    let count = |events: &[TestEvent]| {
        let document: Value = serde_json::from_str(&rebuilt(events)).expect("a JSON document");
        list(&document["intervals"]).len()
    };
    assert_eq!(count(&events), 1);
    rest.end += Duration::from_millis(1);
    events[3] = TestEvent::Interval(rest);
    assert_eq!(count(&events), 2);
}
