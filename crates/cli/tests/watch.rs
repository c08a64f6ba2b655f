//! Tests of `linerate watch` on this host: documents, metrics, an unprivileged view, and the full screen on a
//! pseudo-terminal.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::support::linerate;
use crate::support::process::{Process, eventually, run};

const LIMIT: Duration = Duration::from_secs(300);

/// Directory of this test's programs.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/watch");

fn watch(arguments: &[&str]) -> Command {
    let mut command = linerate();
    command.arg("watch").args(arguments);
    command
}

/// Runs `action` while a kilobyte moves over a connection of this process every few milliseconds.
fn with_traffic<T>(action: impl FnOnce(u16) -> T) -> T {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let mut client = TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
    let (mut server, address) = listener.accept().expect("a client came");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut block = [7; 1000];
            eventually(LIMIT, || {
                client.write_all(&block).expect("sent");
                server.read_exact(&mut block).expect("received");
                done.load(Ordering::Relaxed)
            });
        });
        let outcome = action(address.port());
        done.store(true, Ordering::Relaxed);
        outcome
    })
}

#[test]
fn one_document_has_both_sockets_of_a_loopback_connection() {
    let document = with_traffic(|port| {
        let arguments = ["--once", "--json", "--interval", "300ms", "--port", &port.to_string()];
        run(watch(&arguments), LIMIT).expect_code(0).json()
    });
    assert_eq!(document["schema"], 1);
    let flows = document["flows"].as_array().expect("a list");
    assert_eq!(flows.len(), 2, "{document:#}");
    for flow in flows {
        assert_eq!(flow["process"]["id"], std::process::id(), "{flow:#}");
        assert_eq!(flow["state"], "ESTABLISHED");
        assert!(flow["rtt_ns"].as_u64().is_some_and(|time| time > 0), "{flow:#}");
    }
    let sum = |key: &str| flows.iter().filter_map(|flow| flow[key].as_u64()).sum::<u64>();
    assert_eq!(sum("received_bytes") % 1000, 0);
    assert!(sum("received_bytes") >= 5000, "a kilobyte every 5 ms: {document:#}");
    assert_eq!(sum("retransmitted_segments"), 0);
}

#[test]
fn each_interval_is_a_line_up_to_the_count() {
    let finished = run(watch(&["--json", "--interval", "100ms", "--count", "3"]), LIMIT).expect_code(0);
    let documents: Vec<Value> = finished.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(documents.len(), 3);
    for pair in documents.windows(2) {
        assert!(pair[0]["at_unix_ns"].as_u64() < pair[1]["at_unix_ns"].as_u64());
    }
}

#[test]
fn filters_omit_other_flows() {
    with_traffic(|port| {
        let lines = |arguments: &[&str]| {
            let text =
                run(watch(&[&["--once", "--interval", "200ms"], arguments].concat()), LIMIT).expect_code(0).stdout;
            text.lines().filter(|line| line.contains(&format!(":{port} "))).count()
        };
        let own = std::process::id().to_string();
        assert_eq!(lines(&["--process", &own]), 2);
        assert_eq!(lines(&["--process", "no-such-process"]), 0);
        assert_eq!(lines(&["--peer", "127.0.0.0/8", "--process", &own]), 2);
        assert_eq!(lines(&["--peer", "192.0.2.1"]), 0);
    });
}

#[test]
fn listening_sockets_have_their_queues() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("bound");
    let _client = TcpStream::connect(address).expect("loopback");
    let arguments = ["--once", "--listen", "--interval", "100ms", "--port", &address.port().to_string()];
    let text = run(watch(&arguments), LIMIT).expect_code(0).stdout;
    assert!(text.contains("1 of 128 waiting"), "{text}");
}

#[test]
fn metrics_are_served() {
    with_traffic(|port| {
        let server =
            Process::start(watch(&["--prometheus", "127.0.0.1:0", "--interval", "100ms", "--port", &port.to_string()]));
        let address = || {
            let text = server.stderr();
            let start = text.find("http://")? + "http://".len();
            text[start..].split('/').next().map(str::to_owned)
        };
        assert!(eventually(LIMIT, || address().is_some()), "{}", server.stderr());
        let address = address().expect("told");
        let page = || {
            let mut client = TcpStream::connect(&address).expect("it listens");
            client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("sent");
            let mut page = String::new();
            client.read_to_string(&mut page).expect("answered");
            page
        };
        assert!(eventually(LIMIT, || page().contains("linerate_flow_round_trip_seconds{")), "{}", page());
        assert!(page().starts_with("HTTP/1.1 200 OK\r\n"));
    });
}

#[test]
fn wrong_arguments_are_refused() {
    for wrong in [
        &["--interval", "50ms"][..],
        &["--interval", "2min"],
        &["--peer", "nowhere"],
        &["--once", "--count", "3"],
        &["--json", "--prometheus"],
        &["--top", "5"],
        &["--kernel-events", "--listen"],
    ] {
        run(watch(wrong), LIMIT).expect_code(2);
    }
}

#[test]
#[ignore = "needs root: traces the kernel's events"]
fn kernel_events_have_columns_and_documents() {
    with_traffic(|port| {
        let arguments = ["--kernel-events", "--port", &port.to_string()];
        let run_with = |more: &[&str]| run(watch(&[&arguments[..], more].concat()), LIMIT).expect_code(0);
        // The waits of a process are traced from the first interval's end on.
        let text = run_with(&["--json", "--count", "2", "--interval", "300ms"]).stdout;
        let document: Value = serde_json::from_str(text.lines().last().expect("two lines")).expect("JSON");
        assert_eq!(document["kernel_events"]["unavailable"], Value::Null, "not run: root is needed: {document:#}");
        assert_eq!(document["kernel_events"]["missing"].as_array().map(Vec::len), Some(0), "{document:#}");
        let flows = document["flows"].as_array().expect("a list");
        assert_eq!(flows.len(), 2);
        for flow in flows {
            let events = &flow["kernel_events"];
            assert!(events["run_queue_wait_ns"].as_u64().is_some(), "{flow:#}");
            assert_eq!((&events["retransmitted_by_timer"], &events["drops"]), (&0.into(), &serde_json::json!({})));
        }
        // Software interrupts are traced in a window of each half second, which a busy machine delays.
        let table = run_with(&["--once", "--interval", "2s"]).stdout;
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[1].starts_with("Host: CPU "), "{table}");
        assert!(lines[2].contains("WAIT") && lines[2].contains("DROPS") && lines[2].contains("TIMERS"), "{table}");
    });
}

#[test]
#[ignore = "needs root: gives it up"]
fn kernel_events_that_are_refused_leave_the_table_with_a_line_why() {
    let program = linerate().get_program().to_owned();
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-all", "--inh-caps", "-all", "--reuid", "65534", "--clear-groups"]).arg(program);
    command.args(["watch", "--kernel-events", "--once", "--interval", "200ms"]);
    let table = run(command, LIMIT).expect_code(0).stdout;
    let refusal = table.lines().nth(1).expect("a line");
    assert!(refusal.starts_with("No kernel events: ") && refusal.contains("tracing needs root"), "{table}");
    assert!(table.contains("LIMITED BY") && !table.contains("WAIT"), "{table}");
}

/// Without privileges every flow is listed; processes of other users have a reason instead of a name.
#[test]
fn without_privileges_flows_are_listed_and_processes_have_a_reason() {
    // A program in its own user namespace has no rights over processes outside, although it shares their network.
    let script =
        format!("exec unshare --user {:?} watch --once --json --listen --interval 100ms", linerate().get_program());
    let listening = "import socket, subprocess, sys; s = socket.socket(); s.bind(('127.0.0.1', 4242)); s.listen(); \
                     sys.exit(subprocess.run(['sh', '-c', sys.argv[1]]).returncode)";
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]);
    command.args(["python3", "-c", listening, &script]);
    let document = run(command, LIMIT).expect_code(0).json();
    let flows = document["flows"].as_array().expect("a list");
    assert_eq!(flows.len(), 1, "{document:#}");
    assert_eq!(flows[0]["process"], Value::Null);
    let reason = flows[0]["process_unknown_because"].as_str().expect("a reason");
    assert!(reason.contains("root") && reason.contains("Permission denied"), "{reason}");
}

fn on_a_terminal(how: &str) -> Value {
    let mut command = Command::new("python3");
    command.arg(format!("{FOLDER}/terminal.py")).arg(how).arg(linerate().get_program());
    command.args(["watch", "--interval", "100ms"]).env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
    run(command, LIMIT).expect_code(0).json()
}

#[test]
fn a_terminal_is_driven_by_keys_and_restored_at_every_end() {
    for (how, code) in [("quit", 0), ("interrupt", 0), ("terminate", 0), ("abort", -3)] {
        let result = on_a_terminal(how);
        for (what, value) in result.as_object().expect("an object") {
            if what == "code" {
                assert_eq!(value, code, "{how}: {result:#}");
            } else {
                assert_eq!(value, true, "{how}, {what}: {result:#}");
            }
        }
    }
}

/// Cost of sampling ten thousand sockets once a second: docs/watch.md has the figures.
#[test]
#[ignore = "long: cargo xtask sockets, a minute of a release build"]
#[expect(clippy::print_stdout, reason = "the figures go into docs/watch.md")]
fn ten_thousand_sockets_take_a_twentieth_of_a_processor() {
    for form in [&[][..], &["--prometheus", "127.0.0.1:0"]] {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", "python3", &format!("{FOLDER}/many.py"), "5000", "20"]);
        command.arg(linerate().get_program()).args(form).env("TERM", "xterm");
        let result = run(command, LIMIT).expect_code(0).json();
        println!("{form:?}: {result}");
        assert_eq!((&result["code"], &result["sockets"]), (&0.into(), &10_000.into()));
        // Processor time per second, which is independent of the load of the host.
        let share = result["per_interval"].as_f64().expect("a number");
        assert!(share <= 0.05, "{form:?}: {:.1} % of a processor", share * 100.0);
    }
}
