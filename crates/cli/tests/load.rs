//! Tests of `linerate load` against all kinds of servers, and in the lab, where formulas give the expected results.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::document::{array, number, text};
use crate::support::lab::{OwnPath, in_parallel, lab, lab_command};
use crate::support::process::{eventually, run};
use crate::support::{Process, Program, Scratch, Server, free_port, linerate};

/// Longest wall time of one run on a busy host.
const LIMIT: Duration = Duration::from_secs(300);

/// Arguments for the shortest phases.
const SHORT: [&str; 6] = ["--time", "1s", "--idle", "1s", "--ramp", "2s"];

fn load(port: u16, more: &[&str]) -> Command {
    let mut command = linerate();
    command.args(["load", "127.0.0.1", "--port", &port.to_string(), "--json", "--quiet"]).args(SHORT).args(more);
    command
}

/// Loads the light path between two linerates.
fn load_in_guest(more: &[&str]) -> Value {
    let arguments = [&["load", "far", "--json", "--quiet"], &SHORT[..], more].concat();
    lab(&OwnPath::light().file, &arguments).json()
}

fn serve() -> Server {
    let port = free_port();
    let mut command = linerate();
    command.args(["serve", "--port", &port.to_string(), "--stamp-port", "0"]);
    Server::listening(command, port)
}

fn phase<'a>(document: &'a Value, kind: &str) -> &'a Value {
    let found = array(document, "/phases").iter().find(|phase| phase["kind"] == kind);
    found.unwrap_or_else(|| panic!("no phase {kind}: {document}"))
}

fn class<'a>(document: &'a Value, kind: &str, name: &str) -> &'a Value {
    let found = array(phase(document, kind), "/classes").iter().find(|class| class["class"] == name);
    found.unwrap_or_else(|| panic!("no class {name} in {kind}: {document}"))
}

/// Round trip in milliseconds.
fn round_trip(document: &Value, kind: &str, name: &str, statistic: &str) -> f64 {
    number(class(document, kind, name), &format!("/rtt/{statistic}_ns")) / 1e6
}

/// Asserts that unmeasured classes have a reason.
fn reasons_are_given(document: &Value) {
    let known: Vec<&str> = array(document, "/unknown").iter().map(|unknown| text(unknown, "/key")).collect();
    let names = ["icmp", "udp_best_effort", "udp_expedited_forwarding", "tcp_application", "tcp_info", "tcp_handshake"];
    for name in names {
        let measured = array(document, "/phases")
            .iter()
            .flat_map(|phase| array(phase, "/classes"))
            .any(|class| class["class"] == name && !class["rtt"].is_null());
        let key = format!("classes.{name}");
        assert!(measured || known.contains(&key.as_str()), "{key}: {known:?}");
    }
    assert!(document["grade"].is_null() != document["ungraded_because"].is_null(), "{document}");
}

#[test]
fn all_classes_and_phases_between_two_linerates() {
    let document = load_in_guest(&[]);
    assert_eq!((text(&document, "/peer"), text(&document, "/termination/outcome")), ("linerate", "complete"));
    let kinds: Vec<&str> = array(&document, "/phases").iter().map(|phase| text(phase, "/kind")).collect();
    assert_eq!(kinds, ["idle", "down", "up", "both"]);
    for kind in kinds {
        for name in ["udp_best_effort", "udp_expedited_forwarding", "tcp_application", "tcp_handshake"] {
            let class = class(&document, kind, name);
            assert!(number(class, "/rtt/count") > 0.0, "{kind} {name}: {class}");
            let percentiles = ["min_ns", "median_ns", "p95_ns", "p99_ns", "max_ns"];
            let values = percentiles.map(|name| number(class, &format!("/rtt/{name}")));
            assert!(values.is_sorted(), "{kind} {name}: {class}");
        }
    }
    // Only the loaded direction carries load.
    assert!(phase(&document, "down")["goodput_up_bits_per_second"].is_null());
    for (kind, key) in [("down", "down"), ("up", "up"), ("both", "down"), ("both", "up")] {
        assert!(number(phase(&document, kind), &format!("/goodput_{key}_bits_per_second")) > 1e6, "{kind} {key}");
    }
    assert!(number(&document, "/responsiveness/both") > 0.0);
    reasons_are_given(&document);
}

#[test]
fn a_stock_iperf3_serves_as_the_load() {
    let server = Server::start(Program::Iperf3, &[]);
    let document = run(load(server.port, &["--phases", "up,down", "--l4s"]), LIMIT).expect_code(0).json();
    assert_eq!(text(&document, "/peer"), "iperf3");
    assert!(document["contamination"].is_null(), "loopback counts everything twice");
    let unknown = array(&document, "/unknown").iter().find(|unknown| unknown["key"] == "dual_queues");
    assert!(unknown.is_some_and(|unknown| text(unknown, "/reason").contains("need a linerate")), "{unknown:?}");
    assert!(number(phase(&document, "up"), "/goodput_up_bits_per_second") > 1e6);
    assert!(number(phase(&document, "down"), "/goodput_down_bits_per_second") > 1e6);
    assert!(number(class(&document, "up", "tcp_info"), "/rtt/count") > 0.0);
    assert!(document["grade"].is_null());
    assert!(text(&document, "/ungraded_because").contains("UDP"), "{}", document["ungraded_because"]);
    reasons_are_given(&document);
}

#[test]
#[ignore = "needs root or ping sockets: asks the loopback device for echoes"]
fn a_host_without_a_service_has_only_an_idle_delay() {
    let ended = run(load(free_port(), &["--no-server"]), LIMIT).expect_code(0);
    let document = ended.json();
    assert_eq!(text(&document, "/peer"), "bare");
    assert_eq!(array(&document, "/phases").len(), 1);
    assert!(number(class(&document, "idle", "icmp"), "/rtt/count") > 0.0);
    assert!(text(&document, "/ungraded_because").contains("linerate serve"));
    reasons_are_given(&document);
}

#[test]
fn an_interrupted_run_prints_partial_results() {
    let server = serve();
    let mut command = linerate();
    command.args(["load", "127.0.0.1", "--port", &server.port.to_string(), "--json", "--idle", "1s", "--ramp", "60s"]);
    let process = Process::start(command);
    // A plain line reports the idle phase when the next one begins.
    let loaded = eventually(LIMIT, || process.stderr().lines().any(|line| line.starts_with("idle:")));
    assert!(loaded, "{}", process.stderr());
    process.signal("INT");
    let ended = process.finish(LIMIT).expect_code(3);
    let document = ended.json();
    assert_eq!(text(&document, "/termination/outcome"), "interrupted");
    assert!(number(class(&document, "idle", "udp_best_effort"), "/rtt/count") > 0.0);
    assert!(document["grade"].is_null() && !document["ungraded_because"].is_null());
}

#[test]
fn a_full_modem_gets_an_f() {
    let document = lab("xs4all-adsl", &["load", "far", "--json", "--phases", "down,up"]).json();
    // Ping of 44 B: (44 + 14) x 8 / 240k + (44 + 14) x 8 / 900k + 2 x 7 ms = 1.9 + 0.5 + 14 ms.
    let idle = round_trip(&document, "idle", "icmp", "median");
    assert!((16.0..18.5).contains(&idle), "{idle}");
    // A full queue is 45 packets of 1514 B. Small packets among them reduce the delay, and CUBIC backs off to 70 %.
    for (kind, rate, key) in [("down", 900e3, "down"), ("up", 240e3, "up")] {
        let full = 45.0 * 1514.0 * 8.0 / rate * 1e3;
        let mean = round_trip(&document, kind, "icmp", "mean");
        assert!((0.45 * full..1.02 * full + idle).contains(&mean), "{kind}: {mean} ms of {full} ms");
        // One packet beyond the queue is on the wire.
        let most = round_trip(&document, kind, "udp_best_effort", "max");
        assert!(most < full * 46.0 / 45.0 + idle + 5.0, "{kind}: {most} ms of {full} ms");
        let goodput = number(phase(&document, kind), &format!("/goodput_{key}_bits_per_second"));
        // Data queued behind a segment lost before the measurement is delivered during it.
        assert!((0.7 * rate..1.05 * rate * 1448.0 / 1514.0).contains(&goodput), "{kind}: {goodput}");
        // The delay grows only in the loaded direction.
        let loaded = number(class(&document, kind, "udp_best_effort"), &format!("/{key}/median_ns")) / 1e6;
        let other = if key == "up" { "down" } else { "up" };
        let other = number(class(&document, kind, "udp_best_effort"), &format!("/{other}/median_ns")) / 1e6;
        assert!(loaded > 0.4 * full && other < 0.05 * full, "{kind}: {loaded} and {other} ms");
    }
    assert_eq!(text(&document, "/grade/letter"), "F");
    assert_eq!(text(&document, "/grade/direction"), "up");
    for queue in array(&document, "/queues") {
        assert_eq!(queue["one_way_confirms"], Value::Bool(true), "{queue}");
        // There is no router in between: the modem's queue is that of the link to the far host.
        assert_eq!(text(queue, "/location"), "next_hop", "{queue}");
    }
    assert_eq!(document["contamination"]["spoils"], Value::Bool(false), "{}", document["contamination"]);
    reasons_are_given(&document);
}

#[test]
fn thresholds_decide_the_exit_code() {
    let missed = ["load", "far", "--phases", "down", "--time", "3s", "--min-grade", "B"];
    let ended = run(lab_command("xs4all-adsl", &missed), LIMIT).expect_code(1);
    assert!(ended.stdout.contains('F'), "{}", ended.stdout);
    let kept = ["load", "far", "--time", "3s", "--phases", "down", "--max-added", "60ms", "--min-grade", "B"];
    run(lab_command("cable-fq-codel", &kept), LIMIT).expect_code(0);
}

#[test]
fn foreign_traffic_prevents_a_grade() {
    let path = OwnPath::new(
        "[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]\nmtu = 1500\nrate = \"20 Mbit/s\"\n\
         delay = \"10 ms\"\nbuffer = \"100 packets\"\n",
    );
    let both = "linerate iperf3 -c far -R -t 100 > /dev/null 2>&1 & \
                linerate load far --json --quiet --phases down --time 5s";
    let document = lab(&path.file, &["sh", "-c", both]).json();
    assert_eq!(document["contamination"]["spoils"], Value::Bool(true), "{}", document["contamination"]);
    assert!(document["grade"].is_null());
    assert!(text(&document, "/ungraded_because").contains("foreign traffic"), "{}", document["ungraded_because"]);
}

/// The findings about dual queues on a path whose links have these keys.
fn dual_queues(keys: &str, phases: &str) -> Value {
    let path = OwnPath::new(&format!(
        "[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n{keys}"
    ));
    let load = ["load", "far", "--json", "--quiet", "--l4s", "-P", "2", "--phases", phases, "--time", "2s"];
    lab(&path.file, &[&load[..], &["--idle", "2s", "--ramp", "4s"]].concat()).json()["dual_queues"].clone()
}

/// Milliseconds.
fn median(finding: &Value, codepoint: &str) -> f64 {
    number(finding, &format!("/{codepoint}/median_ns")) / 1e6
}

#[test]
fn a_dual_queue_is_found_where_its_codepoint_arrives_and_unknown_where_it_is_rewritten() {
    let found = dual_queues("queue = \"dualpi2\"\n[link.forward]\nrewrite_ect1 = true\n", "down,up");
    let (down, up) = (&found[0], &found[1]);
    assert_eq!((text(down, "/direction"), text(down, "/finding")), ("down", "found"), "{down}");
    // One full packet takes 1.2 ms at this rate; the target of the other queue is 15 ms.
    assert!(median(down, "ect1") < 3.0, "{down}");
    for codepoint in ["ect0", "not_ect"] {
        assert!((5.0..40.0).contains(&median(down, codepoint)), "{down}");
    }
    assert_eq!(down["ect1_intact"], Value::from(1.0), "{down}");
    assert_eq!((text(up, "/finding"), &up["ect1_intact"]), ("ect1_changed", &Value::from(0.0)), "{up}");
    assert!(text(up, "/evidence").starts_with("cannot say: "), "{up}");
    assert!((median(up, "ect1") / median(up, "ect0") - 1.0).abs() < 0.5, "it waits with all others: {up}");
}

#[test]
fn one_queue_for_all_is_no_dual_queue() {
    let one = dual_queues("buffer = \"40 ms\"\n", "down");
    assert_eq!(text(&one, "/0/finding"), "not_found", "{one}");
    let per_flow = dual_queues("queue = \"fq_codel\"\n", "down");
    assert_eq!(text(&per_flow, "/0/finding"), "no_queue", "{per_flow}");
}

fn profile<'a>(document: &'a Value, name: &str, kind: &str) -> &'a Value {
    let result = array(document, "/profiles").iter().find(|result| result["profile"] == name);
    let result = result.unwrap_or_else(|| panic!("no profile {name}: {document}"));
    let phase = array(result, "/phases").iter().find(|phase| phase["kind"] == kind);
    phase.unwrap_or_else(|| panic!("no phase {kind}: {result}"))
}

#[test]
fn profiles_run_next_to_each_phase() {
    let document =
        load_in_guest(&["--phases", "down", "--profile", "voice,game,video-call,backup", "--profile", "voice"]);
    let names: Vec<&str> = array(&document, "/profiles").iter().map(|result| text(result, "/profile")).collect();
    assert_eq!(names, ["voice", "game", "video_call", "backup"]);
    for (name, up, down) in [("voice", 50.0, 50.0), ("game", 59.0, 59.0), ("video_call", 270.0, 270.0)] {
        for kind in ["idle", "down"] {
            let found = profile(&document, name, kind);
            assert_eq!((number(found, "/up/sent"), number(found, "/down/sent")), (up, down), "{found}");
            assert!(number(found, "/down/delay/p99_ns") >= 0.0, "{found}");
            assert_eq!(text(found, "/figures/kind"), name, "{found}");
        }
    }
    assert!((1.0..=4.5).contains(&number(profile(&document, "voice", "down"), "/figures/mos")));
    assert!(number(profile(&document, "backup", "idle"), "/figures/goodput_bits_per_second") > 1e6);
    assert_eq!(profile(&document, "backup", "idle")["up"], Value::Null);
}

#[test]
fn profiles_need_a_linerate_at_the_far_end() {
    let server = Server::start(Program::Iperf3, &[]);
    let ended = run(load(server.port, &["--profile", "voice"]), LIMIT).expect_code(2);
    assert!(ended.stderr.contains("linerate serve") && ended.stderr.contains("--profile"), "{}", ended.stderr);
}

/// Requests over TLS and over QUIC.
const REQUESTS: [&str; 2] = ["tls_request", "quic_request"];

#[test]
fn requests_over_tls_and_quic_see_the_queue_that_the_probes_see() {
    let arguments = ["load", "far", "--json", "--quiet", "--phases", "up", "--time", "6s", "--probe", "tls,quic"];
    let [bloated, fair] =
        <[Value; 2]>::try_from(in_parallel(&["cable-bloat", "cable-fq-codel"], |path| lab(path, &arguments).json()))
            .expect("two documents");
    for name in REQUESTS {
        // 65 ms, and a fraction of a millisecond for a larger packet at 4.4 Mbit/s.
        for document in [&bloated, &fair] {
            let idle = round_trip(document, "idle", name, "median");
            assert!((65.0..68.0).contains(&idle), "{name}: {idle} ms");
            let sent = number(class(document, "up", name), "/sent");
            let others = number(class(document, "up", "udp_best_effort"), "/sent");
            // The schedule of the probes, whatever the delay of a response.
            assert!((sent - others).abs() <= 2.0, "{name}: {sent} of {others}");
            assert_eq!(class(document, "up", name)["lost"], 0, "{}", class(document, "up", name));
        }
        // All wait in the modem's only queue.
        let (found, probes) =
            (|of| round_trip(&bloated, "up", name, of), |of| round_trip(&bloated, "up", "udp_best_effort", of));
        assert!(probes("median") > 600.0, "{}", probes("median"));
        let ratio = found("median") / probes("median");
        assert!((0.95..1.08).contains(&ratio), "{name}: {} and {} ms", found("median"), probes("median"));
        // A flow of its own has its own queue.
        let added = number(class(&fair, "up", name), "/uplift_median_ns") / 1e6;
        assert!(added < 15.0, "{name}: {added} ms");
    }
}

#[test]
fn requests_are_left_out_where_they_do_not_get_through() {
    let script = "tc qdisc add dev eth0 clsact
        tc filter add dev eth0 egress protocol ip u32 match ip protocol 17 0xff match ip dport 443 0xffff action drop
        exec linerate --no-history load far --json --quiet --phases up --time 1s --idle 1s --ramp 2s --probe quic,tls";
    let path = OwnPath::new(
        "[host.near]\n[host.far]\nserver = [\"--quic-port\", \"443\"]\n[[link]]\nbetween = [\"near\", \"far\"]\n\
         rate = \"20 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"100 packets\"\n",
    );
    let document = lab(&path.file, &["sh", "-c", script]).json();
    assert!(number(class(&document, "up", "tls_request"), "/rtt/count") > 0.0);
    let unknown = array(&document, "/unknown").iter().find(|unknown| unknown["key"] == "classes.quic_request");
    assert!(unknown.is_some_and(|unknown| text(unknown, "/reason").contains("10.0 s")), "{document}");
    assert!(array(&document, "/notes").iter().any(|note| note.as_str().is_some_and(|note| note.contains("QUIC"))));
}

#[test]
fn requests_need_a_linerate_at_the_far_end() {
    let server = Server::start(Program::Iperf3, &[]);
    let ended = run(load(server.port, &["--probe", "quic"]), LIMIT).expect_code(2);
    assert!(ended.stderr.contains("linerate serve") && ended.stderr.contains("--probe"), "{}", ended.stderr);
}

#[test]
fn requests_over_loopback_use_the_keys_of_the_conversation() {
    let (scratch, port) = (Scratch::new(), free_port());
    let file = scratch.file("key", "a shared key of many bytes\n");
    let mut command = linerate();
    command.args(["serve", "--port", &port.to_string(), "--stamp-port", "0", "--shared-key-file", &file]);
    let _server = Server::listening(command, port);
    let more = ["--phases", "down", "--probe", "tls,quic,tls", "--shared-key-file", &file];
    let document = run(load(port, &more), LIMIT).expect_code(0).json();
    for name in REQUESTS {
        let found = class(&document, "down", name);
        assert!(number(found, "/rtt/count") > 5.0 && found["lost"] == 0, "{found}");
    }
}

#[test]
fn bufferbloat_ruins_a_call_and_a_game_and_fair_queueing_saves_them() {
    let arguments = ["load", "far", "--json", "--quiet", "--phases", "up", "--time", "5s", "--profile", "all"];
    let bloated = lab("cable-bloat", &arguments).json();
    let fair = lab("cable-fq-codel", &arguments).json();
    let score = |document: &Value, kind| number(profile(document, "voice", kind), "/figures/mos");
    // 32.5 ms and 20 ms for a packet: R is about 92.
    for document in [&bloated, &fair] {
        assert!(score(document, "idle") > 4.3, "{}", profile(document, "voice", "idle"));
        assert_eq!(profile(document, "game", "idle")["letter"], "A");
        let delay = number(profile(document, "voice", "idle"), "/up/delay/median_ns") / 1e6;
        assert!((32.0..34.0).contains(&delay), "{delay} ms");
    }
    // 1.2 s in one direction are 0.6 s for each side: R is about 45.
    assert!(score(&bloated, "up") < 2.6, "{}", profile(&bloated, "voice", "up"));
    assert_eq!(profile(&bloated, "voice", "up")["letter"], "F");
    assert!(score(&fair, "up") > 4.2, "{}", profile(&fair, "voice", "up"));
    assert_eq!(profile(&bloated, "game", "up")["letter"], "F");
    assert!(number(profile(&fair, "game", "up"), "/figures/missed_share") < 0.15, "{}", profile(&fair, "game", "up"));
    // The downlink carries the stream either way.
    assert_eq!(profile(&fair, "streaming", "up")["figures"]["stalls"], 0, "{}", profile(&fair, "streaming", "up"));
    // A backup fills a modem of 1.2 s.
    assert_eq!(profile(&bloated, "backup", "idle")["letter"], "F");
    assert!(number(profile(&fair, "backup", "idle"), "/figures/added_p95_ns") < 30e6);
}

#[test]
fn random_loss_gives_the_score_of_the_formula() {
    let path = OwnPath::new(
        "[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]\nrate = \"20 Mbit/s\"\ndelay = \"10 ms\"\n\
         buffer = \"100 packets\"\nloss = \"3 %\"\n",
    );
    let arguments = ["load", "far", "--json", "--quiet", "--phases", "down", "--profile", "voice", "--time", "20s"];
    let document = lab(&path.file, &[&arguments[..], &["--min-mos", "3.5"]].concat()).json();
    let idle = profile(&document, "voice", "idle");
    for direction in ["up", "down"] {
        let missing = number(idle, &format!("/figures/{direction}/missing_share"));
        // Four standard deviations of 1000 packets are 2.2 %.
        assert!((0.008..0.052).contains(&missing), "{missing}");
        // R = 93.2 − 0.9 (30 ms) − 95 × loss / (loss / BurstR + 25.1).
        let bursts = number(idle, &format!("/figures/{direction}/burst_ratio"));
        let rating = 92.3 - 95.0 * missing * 100.0 / (missing * 100.0 / bursts + 25.1);
        let expected = 1.0 + 0.035 * rating + 7e-6 * rating * (rating - 60.0) * (100.0 - rating);
        let found = number(idle, &format!("/figures/{direction}/mos"));
        assert!((found - expected).abs() < 0.03, "{direction}: {found}, by the formula {expected}");
    }
}
