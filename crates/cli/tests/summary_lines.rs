//! The output that is read: at most twelve lines that fit, for every command that ends in a result.

use std::process::Command;
use std::time::Duration;

use crate::support::lab::measure_in_guest;
use crate::support::process::{Process, run};
use crate::support::script::ScriptOutput;
use crate::support::{Scratch, Server, free_port, linerate};

const LIMIT: Duration = Duration::from_secs(600);

/// Largest number of lines of a summary.
const MAX_LINES: usize = 12;

fn server() -> Server {
    let port = free_port();
    let mut command = linerate();
    command.args(["serve", "--port", &port.to_string()]);
    Server::listening(command, port)
}

/// `linerate LINE`, as on a terminal of this width.
fn on_terminal(scratch: &Scratch, line: &str, columns: &str) -> Command {
    let mut command = linerate();
    command.env("LINERATE_TERMINAL", "out").env("COLUMNS", columns).env("NO_COLOR", "1");
    command.env("LINERATE_HISTORY", scratch.path("history")).env("LINERATE_STATE", scratch.path("state"));
    command.args(line.split_whitespace()).current_dir(scratch.path(""));
    command
}

fn in_guest(commands: &[&str], columns: &str) -> ScriptOutput {
    measure_in_guest(&format!("export LINERATE_TERMINAL=out COLUMNS={columns} NO_COLOR=1"), commands)
}

/// Asserts that a summary has few lines, none of them wider than the terminal.
#[track_caller]
fn assert_fits(command: &str, columns: &str, text: &str) {
    assert!(text.lines().count() <= MAX_LINES, "{command}, {columns} columns:\n{text}");
    let width: usize = columns.parse().expect("a number");
    // Commands are not wrapped.
    let is_command = |line: &str| line.contains("linerate ");
    let wide = text.lines().find(|line| line.chars().count() > width && !is_command(line));
    assert_eq!(wide, None, "{command}, {columns} columns:\n{text}");
}

/// The narrower terminal has more lines; on the wider one, one measurement is enough.
#[test]
fn every_measurement_is_twelve_lines_that_fit() {
    let narrow = [
        "test far -q -t 1s",
        "load far -q -t 1s --idle 1s --probe tls,quic",
        "path far -q",
        "rfc6349 far -q -t 1s",
        "rr far -q -t 1s",
        "diagnose far -q -- -t 1",
        "tune far -q --dry-run -- -t 1",
        "history show last",
    ];
    for (columns, commands) in
        [("60", &narrow[..]), ("80", &["diagnose far -q --no-path -- -t 1", "history show last"])]
    {
        let output = in_guest(commands, columns);
        for command in commands {
            let end = output.part(&format!("end of {command}"));
            assert!(matches!(end.lines().next(), Some("0" | "1")), "{command}: {end}");
            assert!(output.part(command).lines().count() > 1, "{command}: {}", output.part(command));
            assert_fits(command, columns, output.part(command));
        }
    }
}

#[test]
fn every_other_result_is_twelve_lines_that_fit() {
    let scratch = Scratch::new();
    for line in [
        "audit",
        "rollback --list",
        "shape lo --up 10M --down 20M --dry-run",
        "shape lo --up 10M --back-end htb+bfifo --dry-run",
        "tune --rate 1G --rtt 200ms",
        "tune --rate 10G --rtt 117ms",
        "calc bdp 10G 117ms",
        "calc loss --rate 256M --rtt 53ms --mss 8960",
        "baseline -q -t 100ms -s 1MiB",
        "doctor --check",
    ] {
        for columns in ["80", "60"] {
            let finished = run(on_terminal(&scratch, line, columns), LIMIT);
            assert!(matches!(finished.code(), Some(0 | 1)), "{line}: {finished:#?}");
            assert_fits(line, columns, &finished.stdout);
        }
    }
}

/// The first permanent line of a test comes with its first run, also in a pipe.
#[test]
fn each_run_appears_at_once_in_a_pipe() {
    let (scratch, server) = (Scratch::new(), server());
    let line = format!("test 127.0.0.1:{} -t 2s -P 1", server.port);
    let mut command = linerate();
    command.args(line.split_whitespace()).env("LINERATE_HISTORY", scratch.path("history"));
    let mut client = Process::start(command);
    client.wait_for_output("1 stream", LIMIT);
    let first = client.stdout();
    assert!(client.is_running() && first.matches("1 stream").count() == 1, "{first}");
    let finished = client.finish(LIMIT).expect_code(0);
    assert!(finished.stdout.starts_with(&first) && finished.stdout.matches("1 stream").count() == 2, "{finished:#?}");
}

#[test]
fn brief_is_one_line_and_quiet_says_nothing_else() {
    let commands = [
        "test far -q --brief -t 1s -P 1 --up",
        "load far -q --brief --phases down -t 1s --idle 1s",
        "path far -q --brief --no-capacity -c 50",
        "rfc6349 far -q --brief -t 1s -P 1 --no-windows --no-traffic-management",
        "rr far -q --brief -t 1s --rate 500/s",
        "diagnose far -q --brief --no-path -- -t 1",
        "audit --brief",
        "tune --rate 1G --rtt 200ms --brief",
    ];
    let output = in_guest(&commands, "80");
    for command in commands {
        let end = output.part(&format!("end of {command}"));
        assert!(matches!(end.trim_end(), "0" | "1"), "{command}: {end}");
        assert_eq!(output.part(command).lines().count(), 1, "{command}: {}", output.part(command));
    }
}
