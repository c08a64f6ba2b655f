//! Failed writes to standard output: every command reports them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::PipeWriter;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::lab::measure_in_guest;
use crate::support::process::run;
use crate::support::{Program, Scratch, Server, linerate};

const LIMIT: Duration = Duration::from_secs(300);

/// Commands that print without a network or a change, with arguments for each of their outputs.
const PRINTING: &[&str] = &[
    "audit",
    "audit --json",
    "audit --sarif",
    "audit --explain net.ipv4.tcp_rmem",
    "calc",
    "calc --markdown",
    "calc --json",
    "calc bdp 10G 117ms",
    "calc bdp 10G 117ms --json",
    "completions bash",
    "completions zsh",
    "export results --format prometheus",
    "export results --format pscheduler",
    "history",
    "doctor --check",
    "doctor --check --json",
    "fleet plan mesh.json",
    "fleet plan mesh.json --json",
    "fleet report mesh.jsonl --format text",
    "fleet report mesh.jsonl -o -",
    "fleet report mesh.jsonl --format json",
    "history --json",
    "history list",
    "history list --json",
    "history list --results mesh.jsonl",
    "history list --results mesh.jsonl --json",
    "history export",
    "history export --format csv",
    "history compare 1 2",
    "history limit",
    "history path",
    "history trend goodput_up",
    "history trend goodput_up --results mesh.jsonl",
    "history show 1",
    "history show 1 --json",
    "lab check",
    "lab export cable-bloat",
    "lab export cable-bloat --format containerlab",
    "lab kernel status",
    "lab list",
    "lab list --json",
    "lab show cable-bloat",
    "lab show cable-bloat --json",
    "man",
    "man tune",
    "report 1 --format text",
    "report mesh.jsonl --format text",
    "report 1 --format markdown -o -",
    "report 1 --format html -o -",
    "report 1 --format json",
    "rollback --list --json",
    "shape lo --up 10M --dry-run",
    "shape lo --up 10M --class 192.0.2.7=1M --per-host --dry-run",
    "wondershaper -h",
    "shape lo --up 10M --script",
    "shape status --json",
    "tune --rate 1G --rtt 200ms",
    "tune --rate 1G --rtt 200ms --json",
    "tune --rate 1G --rtt 200ms --export sysctl.d",
    "watch --once",
    "watch --once --json",
    "iperf3 --help",
    "iperf3 --version",
];

/// Commands whose other output needs a server, a change, a long measurement, or the lab's kernel; their help is checked.
const HELP_ONLY: &[&str] = &[
    "baseline",
    "diagnose",
    "fleet agent",
    "fleet collect",
    "fleet members",
    "fleet publish",
    "fleet run",
    "history delete",
    "history import",
    "history tag",
    "lab kernel build",
    "lab run",
    "load",
    "monitor",
    "path",
    "rfc6349",
    "rr",
    "serve",
    "test",
    "tune export",
    "tune undo",
];

/// Line of a log of results.
const RESULT: &str = r#"{"schema":1,"id":"x","task":"t","test":"rtt","source":"a","destination":"b","at_unix_ns":1,
"outcome":"skipped","reason":"busy","verdict":"",
"figures":[{"name":"goodput_up","title":"Goodput up","unit":"bit/s","value":1e9,"better":"higher"}],"route":[],"run":null}"#;

/// Commands in a help text.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).filter(|name| name != "help").collect()
}

fn command(scratch: &Scratch, line: &str) -> Command {
    let mut command = linerate();
    command.args(line.split_whitespace()).current_dir(scratch.path(""));
    command.env("LINERATE_HISTORY", scratch.path("history")).env("LINERATE_STATE", scratch.path("state"));
    command
}

/// All commands, each with its subcommands, from the help texts.
fn all_commands(scratch: &Scratch) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![String::new()];
    while let Some(parent) = open.pop() {
        let help = run(command(scratch, &format!("{parent} --help")), LIMIT).expect_code(0).stdout;
        if parent == "iperf3" {
            continue;
        }
        for name in commands(&help) {
            let line = format!("{parent} {name}").trim().to_owned();
            found.insert(line.clone());
            open.push(line);
        }
    }
    found
}

/// A short test over loopback, kept in the history.
fn record_run(scratch: &Scratch) {
    let server = Server::start(Program::Linerate, &[]);
    let line = format!("test 127.0.0.1 -p {} --up -P 1 -t 1s --quiet", server.port);
    run(command(scratch, &line), LIMIT).expect_code(0);
}

/// Exit code, and the lines of standard error that report a failed write.
fn written_to(mut command: Command, stdout: impl Into<Stdio>) -> (Option<i32>, Vec<String>) {
    let done = command.stdin(Stdio::null()).stdout(stdout).output().expect("it starts");
    let errors = String::from_utf8_lossy(&done.stderr);
    let reports = errors.lines().filter(|line| line.contains("standard output") || line.contains("panicked"));
    (done.status.code(), reports.map(str::to_owned).collect())
}

fn full_disk() -> File {
    File::options().write(true).open("/dev/full").expect("the device is there")
}

/// Pipe that no one reads.
fn closed_pipe() -> PipeWriter {
    std::io::pipe().expect("a pipe").1
}

const REPORT: &str = "linerate: writing to standard output: No space left on device";
const IPERF3_REPORT: &str = "iperf3: error - unable to write to standard output: No space left on device";

#[test]
fn every_command_is_in_the_tables() {
    let scratch = Scratch::new();
    let all = all_commands(&scratch);
    assert!(all.len() > 30, "{all:?}");
    for name in &all {
        let is_parent = all.iter().any(|other| other.starts_with(&format!("{name} ")));
        let is_prefix = |line: &&&str| **line == name || line.starts_with(&format!("{name} "));
        let is_printed = PRINTING.iter().any(|line| is_prefix(&line));
        assert!(is_parent || is_printed != HELP_ONLY.contains(&name.as_str()), "{name} is in no table, or in both");
    }
    assert!(HELP_ONLY.iter().all(|name| all.contains(*name)), "{HELP_ONLY:?}");
}

#[test]
fn a_failed_write_is_an_error_and_a_closed_pipe_is_not() {
    let scratch = Scratch::new();
    (0..2).for_each(|_| record_run(&scratch));
    scratch.file("mesh.json", include_str!("../../../examples/fleet/mesh.json"));
    scratch.file("mesh.jsonl", RESULT.replace('\n', "") + "\n");
    std::fs::create_dir(scratch.path("results")).expect("a directory");
    scratch.file("results/results-1970-01-01.jsonl", RESULT.replace('\n', "") + "\n");
    for line in PRINTING {
        let (code, report) = if line.starts_with("iperf3") { (1, IPERF3_REPORT) } else { (2, REPORT) };
        assert_eq!(written_to(command(&scratch, line), full_disk()), (Some(code), vec![report.to_owned()]), "{line}");
        let success = written_to(command(&scratch, line), Stdio::null());
        assert_eq!(written_to(command(&scratch, line), closed_pipe()), success, "{line}");
        assert!(matches!(success.0, Some(0 | 1)) && success.1.is_empty(), "{line}: {success:?}");
    }
}

#[test]
fn help_and_version_are_written_or_fail() {
    let scratch = Scratch::new();
    let helps = all_commands(&scratch).into_iter().filter(|name| name != "iperf3").map(|name| format!("{name} --help"));
    for line in helps.chain(["--help", "-h", "--version", "help tune"].map(str::to_owned)) {
        assert_eq!(written_to(command(&scratch, &line), full_disk()), (Some(2), vec![REPORT.to_owned()]), "{line}");
        assert_eq!(written_to(command(&scratch, &line), closed_pipe()), (Some(0), vec![]), "{line}");
    }
}

/// Without a number of intervals, only the failed write or the closed pipe ends it.
#[test]
fn a_series_ends_with_its_output() {
    let scratch = Scratch::new();
    for line in ["watch --json", "watch"] {
        assert_eq!(written_to(command(&scratch, line), full_disk()), (Some(2), vec![REPORT.to_owned()]), "{line}");
        assert_eq!(written_to(command(&scratch, line), closed_pipe()), (Some(0), vec![]), "{line}");
    }
}

/// A measurement is complete, and its document lost.
#[test]
fn clients_report_that_their_result_was_not_written() {
    let scratch = Scratch::new();
    let server = Server::start(Program::Linerate, &[]);
    let port = server.port;
    for (line, code, report) in [
        (format!("iperf3 -c 127.0.0.1 -p {port} -n 1M"), 1, IPERF3_REPORT),
        (format!("iperf3 -c 127.0.0.1 -p {port} -n 1M -J"), 1, IPERF3_REPORT),
        ("lab run 300m-20ms -- echo done".to_owned(), 2, REPORT),
    ] {
        assert_eq!(written_to(command(&scratch, &line), full_disk()), (Some(code), vec![report.to_owned()]), "{line}");
    }
    let line = format!("iperf3 -c 127.0.0.1 -p {port} -n 1M --logfile /dev/full");
    let logged = run(command(&scratch, &line), LIMIT).expect_code(1).stderr;
    assert_eq!(logged, "iperf3: error - unable to write to the log file: No space left on device\n");
    let measured = [
        "test far --up -P 1 -t 1s --quiet --json",
        "diagnose far --no-path --quiet -- -t 1",
        "load far --phases up -t 1s --idle 1s --quiet",
        "rfc6349 far -t 1s -P 1 --no-windows --no-traffic-management --quiet --json",
    ];
    let output = measure_in_guest("STDOUT=/dev/full", &measured);
    for line in measured {
        assert_eq!(output.part(&format!("end of {line}")).trim_end(), format!("2\n{REPORT}"), "{line}");
    }
}
