//! The output that is read: at most twelve lines that fit, for every command that ends in a result.

mod support;

use std::process::Command;
use std::time::Duration;

use support::process::{Process, run};
use support::{Scratch, Server, free_port, linerate};

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

#[test]
fn every_result_is_twelve_lines_that_fit() {
    let (scratch, server) = (Scratch::new(), server());
    let to = format!("127.0.0.1:{} -q", server.port);
    let measured = [
        format!("test {to} -t 1s"),
        format!("load {to} -t 1s --idle 1s"),
        format!("path {to}"),
        format!("rfc6349 {to} -t 1s"),
        format!("rr {to} -t 1s"),
        format!("diagnose {to} -- -t 1"),
        format!("tune {to} --dry-run -- -t 1"),
    ];
    let others = [
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
        "history show last",
    ];
    // The narrower terminal has more lines; the wider one is tried where nothing is measured.
    let narrow = measured.iter().map(|line| (line.as_str(), &["60"][..]));
    for (line, widths) in narrow.chain(others.into_iter().map(|line| (line, &["80", "60"][..]))) {
        for columns in widths {
            let finished = run(on_terminal(&scratch, line, columns), LIMIT);
            assert!(matches!(finished.code(), Some(0 | 1)), "{line}: {finished:#?}");
            let text = finished.stdout;
            assert!(text.lines().count() <= MAX_LINES, "{line}, {columns} columns:\n{text}");
            let width: usize = columns.parse().expect("a number");
            // Commands are not wrapped.
            let is_command = |line: &str| line.contains("linerate ") || line.starts_with("  First: ");
            let wide = text.lines().find(|line| line.chars().count() > width && !is_command(line));
            assert_eq!(wide, None, "{line}, {columns} columns:\n{text}");
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
    let (scratch, server) = (Scratch::new(), server());
    let to = format!("127.0.0.1:{} -q --brief", server.port);
    for line in [
        format!("test {to} -t 1s -P 1 --up"),
        format!("load {to} --phases down -t 1s --idle 1s"),
        format!("path {to} --no-capacity -c 50"),
        format!("rfc6349 {to} -t 1s -P 1 --no-windows --no-traffic-management"),
        format!("rr {to} -t 1s --rate 500/s"),
        format!("diagnose {to} --no-path -- -t 1"),
        "audit --brief".to_owned(),
        "tune --rate 1G --rtt 200ms --brief".to_owned(),
    ] {
        let finished = run(on_terminal(&scratch, &line, "80"), LIMIT);
        assert!(matches!(finished.code(), Some(0 | 1)), "{line}: {finished:#?}");
        assert_eq!(finished.stdout.lines().count(), 1, "{line}: {}", finished.stdout);
        assert_eq!(finished.stderr, "", "{line}");
    }
}
