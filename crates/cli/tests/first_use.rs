//! The first minute: command lines as people type them, ports at which nothing listens, completions, manual pages.

use std::process::Command;
use std::time::Duration;

use crate::support::process::{assert_some_within, run};
use crate::support::{self, FinishedChild, Scratch, Server, free_port, linerate};

const LIMIT: Duration = Duration::from_secs(300);

fn run_line(line: &str) -> FinishedChild {
    let mut command = linerate();
    command.arg("--no-history").args(line.split_whitespace());
    run(command, LIMIT)
}

fn server() -> Server {
    let port = free_port();
    let mut command = linerate();
    command.args(["serve", "--port", &port.to_string()]);
    Server::listening(command, port)
}

#[test]
fn a_closed_port_fails_within_a_second_with_the_hint() {
    let port = free_port();
    for line in
        ["test", "path", "load", "rfc6349", "rr", "diagnose", "tune", "tune --dry-run", "doctor", "doctor --dry-run"]
    {
        let (command, more) = line.split_once(' ').unwrap_or((line, ""));
        let line = format!("{command} 127.0.0.1 -p {port} {more}");
        assert_some_within(Duration::from_secs(1), || {
            let start = std::time::Instant::now();
            let refused = run_line(&line).expect_code(2);
            assert!(refused.stderr.contains("Connection refused"), "{line}: {}", refused.stderr);
            assert!(refused.stderr.contains("linerate serve"), "{line} has no hint: {}", refused.stderr);
            assert_eq!(refused.stdout, "", "{line}");
            start.elapsed()
        });
    }
}

#[test]
fn a_missed_threshold_says_which_and_by_how_much() {
    let server = server();
    let missed = run_line(&format!("test 127.0.0.1:{} --up -P 1 -t 1s --min-up 9T", server.port)).expect_code(1);
    let line = missed.stderr.lines().find(|line| line.starts_with("missed: up ")).expect("a line");
    assert!(line.contains(" less than --min-up 9.00 Tbit/s"), "{line}");
    for wrong in ["--min-up 10", "--window 64", "--time 5parsecs"] {
        let refused = run_line(&format!("test 127.0.0.1 {wrong}")).expect_code(2);
        assert!(refused.stderr.contains("invalid value"), "{}", refused.stderr);
    }
}

#[test]
fn impossible_command_lines_name_the_option_and_its_range() {
    for (line, parts) in [
        ("test 127.0.0.1 -t 0", &["'0' for '--time", "1s to 86400s"][..]),
        ("rfc6349 127.0.0.1 -t 0", &["'0' for '--time", "1s to 86400s"]),
        ("test 127.0.0.1 --down --min-up 1M", &["'--down' cannot be used with", "--min-up"]),
        ("test 127.0.0.1 --up --min-down 1M", &["'--up' cannot be used with", "--min-down"]),
        ("serve --max-sessions 0", &["'0' for '--max-sessions", "1 session or more"]),
        ("lab nosuch", &["unrecognized subcommand 'nosuch'"]),
        ("nosuch", &["unrecognized subcommand 'nosuch'", "`linerate test nosuch`"]),
    ] {
        let refused = run_line(line).expect_code(2);
        let missing = parts.iter().find(|part| !refused.stderr.contains(**part));
        assert_eq!(missing, None, "{line}: {}", refused.stderr);
    }
    assert!(!run_line("lab nosuch").stderr.contains("linerate test"));
    assert_eq!(run_line("help --help").expect_code(0).stdout, run_line("help").stdout);
}

#[test]
fn options_have_the_heading_of_their_subject() {
    let help = run_line("path --help").expect_code(0).stdout;
    let (_, hops) = help.split_once("\nHops:\n").expect("the heading");
    let (hops, stream) = hops.split_once("\nWithout a control connection:\n").expect("another heading");
    let options = |text: &str| {
        let words = text.lines().filter_map(|line| line.trim_start().split(' ').next());
        words.filter(|word| word.starts_with("--")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(options(hops), ["--hops", "--flows", "--names", "--as-data", "--as-dns"], "{help}");
    assert_eq!(options(stream), ["--bitrate", "--size", "--receive"], "{help}");
}

/// Completions of a command line, as bash asks for them.
fn completions(scratch: &Scratch, words: &[&str]) -> Vec<String> {
    let mut command = linerate();
    command
        .env("LINERATE_COMPLETE", "bash")
        .env("_CLAP_IFS", "\n")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    command.env("_CLAP_COMPLETE_COMP_TYPE", "9").env("_CLAP_COMPLETE_SPACE", "true");
    command.env("LINERATE_HISTORY", scratch.path("history")).current_dir(scratch.path(""));
    command.args(["--", "linerate"]).args(words);
    run(command, LIMIT).expect_code(0).stdout.lines().map(str::to_owned).collect()
}

#[test]
fn completions_know_paths_formats_roles_and_runs() {
    let scratch = Scratch::new();
    let server = Server::start(support::Program::Linerate, &[]);
    let line = format!("test 127.0.0.1 -p {} --up -P 1 -t 1s -q", server.port);
    for line in [line.as_str(), "history tag last before-fq"] {
        let mut command = linerate();
        command.env("LINERATE_HISTORY", scratch.path("history")).args(line.split(' '));
        run(command, LIMIT).expect_code(0);
    }
    scratch.file("my-path.toml", "");
    for (words, expected) in [
        (&["lab", "show", "xs4"][..], &["xs4all-adsl"][..]),
        (&["lab", "show", "my-"], &["my-path.toml"]),
        (&["test", "lab:xs4"], &["lab:xs4all-adsl"]),
        (&["test", "127"], &["127.0.0.1"]),
        (&["tune", "--export", "ans"], &["ansible"]),
        (&["tune", "--role", "wan"], &["wan-bulk"]),
        (&["shape", "l"], &["lo"]),
        (&["shape", "lo", "--back-end", "ca"], &["cake_mq", "cake"]),
        (&["shape", "lo", "un"], &["unpersist"]),
        (&["history", "show", "la"], &["last"]),
        (&["history", "show", "1"], &["1"]),
        (&["history", "list", "--tag", "be"], &["before-fq"]),
        (&["history", "trend", "goodput_u"], &["goodput_up"]),
        (&["man", "wat"], &["watch"]),
        (&["load", "far", "--no-l"], &["--no-live"]),
        (&["iperf3", "--get-s"], &["--get-server-output"]),
        (&["iperf3", "-c", "127"], &["127.0.0.1"]),
        (&["iperf3", "--no-"], &["--no-fq-socket-pacing", "--no-delay"]),
    ] {
        assert_eq!(completions(&scratch, words), expected, "{words:?}");
    }
}

#[test]
fn scripts_ask_the_program_and_shells_accept_them() {
    let scratch = Scratch::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run_line(&format!("completions {shell}")).expect_code(0).stdout;
        assert!(script.contains("LINERATE_COMPLETE") && script.contains("linerate"), "{shell}: {script}");
    }
    let script = scratch.file("complete.bash", &run_line("completions bash").stdout);
    let mut command = Command::new("bash");
    command.args(["-n", &script]);
    run(command, LIMIT).expect_code(0);
}

#[test]
fn all_manual_pages_are_written() {
    let scratch = Scratch::new();
    let directory = scratch.path("share/man/man1");
    let written = run_line(&format!("man --dir {directory}")).expect_code(0);
    assert!(written.stderr.contains("manual pages written to"), "{}", written.stderr);
    for (page, text) in [
        ("linerate.1", "linerate"),
        ("linerate-load.1", "\\-\\-no\\-live"),
        ("linerate-lab-kernel-build.1", "if\\-missing"),
        ("linerate-history-tag.1", "tag"),
    ] {
        let page = std::fs::read_to_string(format!("{directory}/{page}")).expect(page);
        assert!(page.contains(text) && page.contains(".TH "), "{text}");
    }
    let refused = run_line("man --dir /dev/null/pages").expect_code(2);
    assert!(refused.stderr.contains("writing manual pages to /dev/null/pages: Not a directory"), "{}", refused.stderr);
}

/// Hosts that differ by their port alone are told apart.
#[test]
fn several_hosts_are_named_as_they_were_typed() {
    let server = server();
    let (open, closed) = (format!("127.0.0.1:{}", server.port), format!("127.0.0.1:{}", free_port()));
    let done = run_line(&format!("test {open} {closed} -t 1s -P 1 --up"));
    assert_eq!(done.code(), Some(3), "{done:#?}");
    let rows: Vec<&str> = done.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(rows, ["HOST", &open, &closed], "{done:#?}");
    assert!(done.stderr.contains(&format!("{closed}: connecting to")), "{done:#?}");
    let refused = run_line(&format!("test {open} {closed} --live"));
    assert!(refused.code() == Some(2) && refused.stderr.contains("--live draws one host"), "{refused:#?}");
}
