//! Tests of `linerate path` against all kinds of servers: a linerate, a stock iperf3, a STAMP reflector, a host without
//! a service, a host that blocks UDP; and of an interrupted run.
//!
//! They run over loopback and, where results must be exact, in the lab. `path_lab` compares all paths of the library
//! with their emulated properties.

use std::time::Duration;

use serde_json::Value;

use crate::support::document::{array, count, number, text};
use crate::support::lab::{OwnPath, lab_command};
use crate::support::process::{assert_some_within, eventually, run};
use crate::support::{Process, Program, Server, free_port, linerate};

const LIMIT: Duration = Duration::from_secs(300);

/// Rate limit: the capacity of loopback is irrelevant.
const LIGHT: [&str; 4] = ["--max-rate", "20M", "--count", "200"];

fn path(port: u16, more: &[&str]) -> std::process::Command {
    let mut command = linerate();
    command.args(["path", "127.0.0.1", "--port", &port.to_string(), "--json", "--quiet"]).args(more);
    command
}

/// `linerate serve`, without a STAMP reflector unless `more` has a port.
fn serve(more: &[&str]) -> Server {
    let port = free_port();
    let mut command = linerate();
    command.args(["serve", "--port", &port.to_string()]).args(more);
    if more.is_empty() {
        command.args(["--stamp-port", &free_port().to_string()]);
    }
    Server::listening(command, port)
}

fn maybe(document: &Value, pointer: &str) -> Option<f64> {
    document.pointer(pointer).and_then(Value::as_f64)
}

/// Asserts that every `null` has a reason.
fn reasons_are_given(document: &Value) {
    let known: Vec<&str> = array(document, "/unknown").iter().map(|unknown| text(unknown, "/key")).collect();
    for way in ["up", "down"] {
        for part in ["mtu", "capacity", "packets", "marks", "policer"] {
            let key = format!("{way}.{part}");
            let is_there = !document[way][part].is_null();
            assert!(is_there != known.contains(&key.as_str()), "{key}: {known:?}");
        }
    }
}

#[test]
fn everything_is_measured_between_two_linerates() {
    let server = serve(&[]);
    let document = run(path(server.port, &LIGHT), LIMIT).expect_code(0).json();
    assert_eq!(text(&document, "/peer"), "linerate");
    assert_eq!(text(&document, "/termination/outcome"), "complete");
    assert_eq!(text(&document, "/rtt/method"), "udp");
    for kind in ["best", "udp", "tcp", "handshake"] {
        assert!(number(&document, &format!("/rtt/{kind}/median_ns")) > 0.0, "{kind}: {}", document["rtt"]);
    }
    for way in ["up", "down"] {
        let end = &document[way];
        assert_eq!(count(end, "/mtu/bytes"), count(end, "/mtu/interface_bytes").min(65_535), "{way}");
        assert_eq!(end["mtu"]["limited_by_interface"], Value::Bool(true), "{way}");
        assert_eq!(count(end, "/packets/sent"), 200, "{way}");
        assert_eq!(count(end, "/packets/duplicates"), 0, "{way}");
        assert!(number(end, "/packets/loss_high") > number(end, "/packets/loss"), "{way}: {}", end["packets"]);
        for mark in array(end, "/marks/ecn").iter().chain(array(end, "/marks/dscp")) {
            assert_eq!(mark["sent"], mark["arrived"], "{way}: loopback changes nothing");
        }
        // The requested limit ends the search, and the document reports it.
        assert_eq!(end["capacity"]["at_least"], Value::Bool(true), "{way}: {}", end["capacity"]);
        // The limit is that of the sender: on a busy host, packets that waited arrive faster than they were sent.
        let sent = number(end, "/capacity/sent_bytes") * 8.0 / (number(end, "/capacity/duration_ns") / 1e9);
        assert!(sent <= 20e6 * 1.05, "{way}: {}", end["capacity"]);
        assert_eq!(end["policer"]["present"], Value::Bool(false), "{way}");
    }
    assert!(number(&document, "/clock/error_ns") > 0.0);
    reasons_are_given(&document);
}

#[test]
fn the_traffic_is_announced_and_can_be_disabled() {
    let server = serve(&[]);
    let mut command = linerate();
    command.args([
        "path",
        "127.0.0.1",
        "--port",
        &server.port.to_string(),
        "--count",
        "50",
        "--max-traffic",
        "2MB",
        "--verbose",
    ]);
    let ended = run(command, LIMIT).expect_code(0);
    assert!(ended.stderr.contains("at most 4") && ended.stderr.contains("--no-capacity"), "{}", ended.stderr);
    for phase in ["connect", "path MTU", "idle", "marks", "hops", "capacity up", "capacity down", "policer"] {
        assert!(ended.stderr.lines().any(|line| line == phase), "{phase}: {}", ended.stderr);
    }
    assert!(ended.stdout.contains("Path MTU") && ended.stdout.contains("Capacity up"), "{}", ended.stdout);
    let document = run(path(server.port, &["--no-capacity", "--count", "50"]), LIMIT).expect_code(0).json();
    assert!(document["up"]["capacity"].is_null());
    assert!(number(&document, "/traffic_bytes") < 1e6, "{document}");
    reasons_are_given(&document);
}

#[test]
fn a_stock_iperf3_provides_partial_results() {
    let server = Server::start(Program::Iperf3, &[]);
    let document = run(path(server.port, &[]), LIMIT).expect_code(0).json();
    assert_eq!(text(&document, "/peer"), "iperf3");
    for way in ["up", "down"] {
        assert_eq!(document[way]["capacity"]["at_least"], Value::Bool(true), "{way}: {document}");
        assert_eq!(text(&document, &format!("/{way}/capacity/method")), "tcp");
        assert!(number(&document, &format!("/{way}/capacity/bits_per_second")) > 1e6);
        assert!(maybe(&document[way], "/packets/loss").is_some(), "{way}: {}", document[way]);
        assert!(document[way]["marks"].is_null());
    }
    assert!(number(&document, "/rtt/handshake/median_ns") > 0.0);
    reasons_are_given(&document);
}

#[test]
fn a_closed_port_is_an_error_at_once() {
    for command in ["path", "load", "rfc6349", "diagnose"] {
        assert_some_within(Duration::from_secs(5), || {
            let mut refused = linerate();
            refused.args([command, &format!("127.0.0.1:{}", free_port()), "--quiet"]);
            let ended = run(refused, LIMIT).expect_code(2);
            assert!(ended.stderr.contains("nothing listens there"), "{command}: {}", ended.stderr);
            assert_eq!(ended.stdout, "", "{command}");
            ended.elapsed
        });
    }
}

#[test]
fn a_host_without_a_service_answers_with_resets() {
    let document =
        run(path(free_port(), &["--no-server", "--stamp-port", &free_port().to_string()]), LIMIT).expect_code(0).json();
    assert_eq!(text(&document, "/peer"), "bare");
    assert!(number(&document, "/rtt/handshake/count") >= 10.0, "{}", document["rtt"]);
    assert!(document["down"]["packets"].is_null() && document["tcp"].is_null());
    reasons_are_given(&document);
}

#[test]
fn a_stamp_reflector_suffices_for_delays_and_losses() {
    let stamp = free_port();
    let _server = serve(&["--stamp-port", &stamp.to_string()]);
    let closed = free_port();
    let more = ["--stamp-port", &stamp.to_string(), "--count", "100"];
    let document = run(path(closed, &more), LIMIT).expect_code(0).json();
    assert_eq!(text(&document, "/peer"), "stamp");
    assert_eq!(text(&document, "/rtt/method"), "udp");
    assert_eq!(count(&document, "/rtt/udp/count"), 100);
    for way in ["up", "down"] {
        assert_eq!(maybe(&document[way], "/packets/loss"), Some(0.0), "{way}");
    }
    assert!(document["up"]["capacity"].is_null());
    reasons_are_given(&document);
}

/// `linerate path` with a stream of 200 packets to this port.
fn stream(port: u16, more: &[&str]) -> std::process::Command {
    let mut command = linerate();
    command.args(["path", "127.0.0.1", "--stamp-port", &port.to_string(), "--count", "200", "--json", "--quiet"]);
    command.args(more);
    command
}

#[test]
fn a_stream_at_a_rate_has_figures_of_both_directions_from_a_reflector_alone() {
    let stamp = free_port();
    let _server = serve(&["--stamp-port", &stamp.to_string()]);
    let document = run(stream(stamp, &["--bitrate", "2M", "--size", "500"]), LIMIT).expect_code(0).json();
    assert_eq!(text(&document, "/peer"), "stamp");
    for way in ["up", "down"] {
        let packets = &document[way]["packets"];
        assert_eq!((count(packets, "/sent"), count(packets, "/packet_bytes")), (200, 500), "{way}");
        assert_eq!(maybe(packets, "/loss"), Some(0.0), "{way}: {packets}");
        assert!(maybe(packets, "/delay_variation/p99_ns").is_some(), "{way}: {packets}");
        let sent = number(packets, "/sent_bits_per_second");
        assert!(sent <= 2e6 * 1.05, "{way}: never more than asked for: {packets}");
    }
    reasons_are_given(&document);
}

#[test]
fn a_stream_in_one_direction_is_measured_where_it_arrives() {
    let port = free_port();
    let receiver = Process::start(stream(port, &["--receive"]));
    // The port is open when the kernel refuses a second socket there.
    assert!(eventually(LIMIT, || std::net::UdpSocket::bind(("0.0.0.0", port)).is_err()), "{}", receiver.stderr());
    let sent = run(stream(port, &["--bitrate", "2M"]), LIMIT).expect_code(0).json();
    assert_eq!(text(&sent, "/peer"), "bare");
    assert!(sent["up"]["packets"]["received"].is_null() && sent["down"]["packets"].is_null(), "{sent}");
    let document = receiver.finish(LIMIT).expect_code(0).json();
    assert_eq!((text(&document, "/peer"), text(&document, "/address")), ("stamp_sender", "127.0.0.1"));
    let packets = &document["down"]["packets"];
    assert_eq!((count(packets, "/sent"), count(packets, "/received")), (200, 200), "{packets}");
    assert!(maybe(packets, "/delay_variation/p99_ns").is_some() && packets["one_way_delay"].is_null(), "{packets}");
    assert!(document["up"]["packets"].is_null() && document["rtt"]["best"].is_null());
    reasons_are_given(&document);
}

#[test]
fn a_stream_to_a_closed_port_ends_with_the_reason() {
    let ended = run(stream(free_port(), &["--bitrate", "2M"]), LIMIT).expect_code(3);
    assert!(ended.stderr.contains("nothing listens on UDP port"), "{}", ended.stderr);
    assert!(count(&ended.json(), "/up/packets/sent") < 200);
}

#[test]
fn in_the_lab_each_loss_of_a_stream_has_its_direction() {
    let path = OwnPath::new(
        "[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]\nrate = \"20 Mbit/s\"\ndelay = \"5 ms\"\n\
         [link.forward]\nloss = \"2 %\"\n[link.backward]\nloss = \"5 %\"\n",
    );
    let script = "linerate path far --bitrate 4M --count 4000 --json --quiet";
    let document = run(lab_command(&path.file, &["sh", "-c", script]), LIMIT).expect_code(0).json();
    let loss = |way: &str| number(&document, &format!("/{way}/packets/loss"));
    assert!((loss("up") - 0.02).abs() < 0.01, "{}", document["up"]);
    assert!((loss("down") - 0.05).abs() < 0.015, "{}", document["down"]);
    for way in ["up", "down"] {
        assert!(number(&document, &format!("/{way}/packets/delay_variation/p99_ns")) < 2e6, "{}", document[way]);
    }
}

#[test]
fn a_missing_server_is_reported() {
    let mut command = linerate();
    command.args(["path", "name.invalid", "--json", "--quiet"]);
    let ended = run(command, LIMIT).expect_code(2);
    assert!(ended.stderr.contains("name.invalid"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
}

#[test]
fn an_interrupted_measurement_is_a_partial_result() {
    let server = serve(&[]);
    let mut command = linerate();
    command.args(["path", "127.0.0.1", "--port", &server.port.to_string(), "--count", "100000"]);
    let process = Process::start(command);
    assert!(eventually(LIMIT, || process.stderr().contains("idle")), "{}", process.stderr());
    process.signal("INT");
    let ended = process.finish(LIMIT).expect_code(3);
    assert!(ended.stdout.contains("interrupted"), "{}", ended.stdout);
    assert!(ended.stdout.contains("Path MTU"), "what was known until then is shown: {}", ended.stdout);
}

/// Two hosts on a link of 10 Mbit/s.
const LINE: &str = "[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]\nmtu = 1500\nrate = \"10 Mbit/s\"\n\
                    delay = \"5 ms\"\nbuffer = \"100 kB\"\n";

#[test]
fn with_udp_blocked_all_other_figures_are_measured() {
    // Only UDP is dropped, by a filter.
    let line = OwnPath::new(LINE);
    let script = "tc qdisc add dev eth0 clsact && tc filter add dev eth0 egress protocol ip u32 match ip protocol 17 \
                  0xff action drop && exec linerate path far --json --quiet";
    let ended = run(lab_command(&line.file, &["sh", "-c", script]), LIMIT).expect_code(0);
    let document = ended.json();
    assert_eq!(text(&document, "/peer"), "linerate");
    assert_eq!(text(&document, "/rtt/method"), "tcp");
    assert!((number(&document, "/rtt/best/median_ns") / 1e6 - 10.2).abs() < 0.3, "{}", document["rtt"]);
    assert!(document["up"]["packets"].is_null());
    let notes: Vec<&str> = array(&document, "/notes").iter().filter_map(Value::as_str).collect();
    assert!(notes.iter().any(|note| note.contains("UDP does not get through")), "{notes:?}");
    assert_eq!(count(&document, "/up/mtu/bytes"), 1500);
    reasons_are_given(&document);
}

/// The path's document where near requests Accurate ECN, far has this setting, and the link these keys.
fn with_ecn(far: u8, keys: &str) -> Value {
    let path = OwnPath::new(&format!(
        "[host.near.sysctl]\n\"net.ipv4.tcp_ecn\" = 3\n[host.far.sysctl]\n\"net.ipv4.tcp_ecn\" = {far}\n\
         [[link]]\nbetween = [\"near\", \"far\"]\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\n{keys}"
    ));
    let measured = run(lab_command(&path.file, &["path", "far", "--json", "--quiet", "--count", "200"]), LIMIT);
    measured.expect_code(0).json()
}

/// Codepoints on arrival of Not-ECT, ECT(1), ECT(0) and CE.
fn codepoints(document: &Value, direction: &str) -> Vec<Option<f64>> {
    array(document, &format!("/{direction}/marks/ecn")).iter().map(|mark| maybe(mark, "/arrived")).collect()
}

#[test]
fn accurate_ecn_is_negotiated_while_marks_are_cleared_up_and_rewritten_down() {
    let document = with_ecn(3, "[link.forward]\nbleach_ecn = true\n[link.backward]\nrewrite_ect1 = true\n");
    assert_eq!(document["tcp"]["accurate_ecn"], Value::Bool(true), "{}", document["tcp"]);
    let arrived = array(&document, "/tcp/syn_options_arrived");
    assert!(arrived.contains(&Value::from("accurate_ecn")), "{arrived:?}");
    assert!(array(&document, "/tcp/missing").is_empty(), "{}", document["tcp"]);
    assert_eq!(codepoints(&document, "up"), [Some(0.0); 4]);
    assert_eq!(codepoints(&document, "down"), [Some(0.0), Some(2.0), Some(2.0), Some(3.0)]);
}

#[test]
fn accurate_ecn_that_the_far_end_refuses_is_missing() {
    let document = with_ecn(2, "");
    let tcp = &document["tcp"];
    assert_eq!(tcp["explicit_congestion_notification"], Value::Bool(true), "{tcp}");
    assert_eq!((&tcp["accurate_ecn"], &tcp["missing"]), (&Value::Bool(false), &serde_json::json!(["accurate_ecn"])));
    assert!(array(tcp, "/syn_options_arrived").contains(&Value::from("accurate_ecn")), "{tcp}");
    assert!(array(&document, "/notes").iter().all(|note| !note.to_string().contains("removes it")), "{document}");
    for direction in ["up", "down"] {
        assert_eq!(codepoints(&document, direction), [Some(0.0), Some(1.0), Some(2.0), Some(3.0)], "{direction}");
    }
}
