//! Tests of the option table, and of the help generated from it.

use std::collections::BTreeSet;

use crate::iperf3::help;

use super::super::options::{CommandOption, OptionArgument, SECTIONS};
use super::super::{ArgumentsError, ParameterError};
use super::read_arguments;

/// String for `getopt` in iperf3 3.21.
const LETTERS: &str = "p:f:i:D1VJvsc:ub:t:n:k:l:P:Rw:B:M:N46S:L:ZO:F:A:T:C:dI:mhX:";

/// Long names of iperf3 3.21: `:` after those with a value, `?` after those with an optional one.
const NAMES: &str = "port: format: interval: daemon one-off verbose json json-stream json-stream-full-output version \
    server client: udp bitrate: bandwidth: server-bitrate-limit: server-max-duration: time: bytes: blockcount: \
    length: parallel: reverse bidir window: bind: bind-dev: cport: set-mss: no-delay version4 version6 tos: dscp: \
    extra-data: flowlabel: zerocopy omit: file: repeating-payload timestamps? affinity: title: congestion: \
    linux-congestion: sctp nstreams: xbind: pidfile: logfile: forceflush get-server-output udp-counters-64bit gsro \
    no-fq-socket-pacing dont-fragment skip-rx-copy username: rsa-public-key-path: rsa-private-key-path: \
    authorized-users-path: time-skew-threshold: use-pkcs1-padding fq-rate: pacing-timer: connect-timeout: \
    idle-timeout: rcv-timeout: snd-timeout: cntl-ka? mptcp debug? help";

fn rows(from_iperf3: bool) -> impl Iterator<Item = &'static CommandOption> {
    SECTIONS.iter().filter(move |section| section.from_iperf3 == from_iperf3).flat_map(|section| section.options)
}

#[test]
fn the_letters_are_iperf3s() {
    let own: BTreeSet<(char, bool)> = rows(true)
        .filter_map(|option| {
            option.short.map(|letter| (letter, matches!(option.argument, OptionArgument::Required(_))))
        })
        .collect();
    let mut theirs = BTreeSet::new();
    let mut letters = LETTERS.chars().peekable();
    while let Some(letter) = letters.next() {
        theirs.insert((letter, letters.next_if_eq(&':').is_some()));
    }
    assert_eq!(own, theirs);
}

#[test]
fn the_names_are_iperf3s() {
    let own: BTreeSet<String> =
        rows(true).flat_map(|option| option.names().map(|name| format!("{name}{}", mark(option.argument)))).collect();
    assert_eq!(own, NAMES.split_whitespace().map(str::to_owned).collect());
}

fn mark(argument: OptionArgument) -> &'static str {
    match argument {
        OptionArgument::None => "",
        OptionArgument::Required(_) => ":",
        OptionArgument::Optional(_) => "?",
    }
}

#[test]
fn rows_are_unique_and_described() {
    let (mut letters, mut names) = (BTreeSet::new(), BTreeSet::new());
    for option in rows(true).chain(rows(false)) {
        assert!(option.short.is_none_or(|letter| letters.insert(letter)), "{}", option.long);
        assert!(option.names().all(|name| names.insert(name)), "{}", option.long);
        assert!(!option.help.is_empty() && !option.help.ends_with('.'), "{}", option.long);
    }
    assert!(rows(false).all(|option| option.short.is_none()), "short names are reserved for iperf3");
}

/// Every option with every kind of odd value, in every role, gives a result and never panics.
#[test]
fn odd_values() {
    let values = [
        "",
        " ",
        "-",
        "--",
        "/",
        "//",
        ",",
        "%",
        "=",
        "0",
        "-1",
        "1",
        "1/",
        "/1",
        "1,",
        ",1",
        "1.5",
        "1e400",
        "0x",
        "0xfffffffffffffffffffff",
        "-9223372036854775808",
        "18446744073709551616",
        "1K/1/1/1",
        "é",
        "\u{0}",
        "K",
        "nan",
        "inf",
        "-inf",
        "a%b%c",
    ];
    let mut answers = 0;
    for option in rows(true).chain(rows(false)) {
        for value in values {
            for role in [&["-s"][..], &["-c", "host"], &[]] {
                let joined = format!("--{}={value}", option.long);
                let name = format!("--{}", option.long);
                let attached = [role, &[joined.as_str()]].concat();
                let separate = [role, &[name.as_str(), value]].concat();
                answers +=
                    usize::from(read_arguments(&attached).is_ok()) + usize::from(read_arguments(&separate).is_ok());
            }
        }
    }
    assert!(answers > 1000, "{answers}");
}

#[test]
fn the_help_has_every_option_and_fits_a_terminal() {
    let text = help::help();
    assert!(text.starts_with("Usage: iperf3 [-s|-c host] [options]\n       iperf3 [-h|--help] [-v|--version]\n\n"));
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
        assert_eq!(line.trim_end(), line);
    }
    for option in rows(true).chain(rows(false)) {
        let name = match option.short {
            Some(letter) => format!("\n  -{letter}, --{}", option.long),
            None => format!("\n  --{}", option.long),
        };
        assert!(text.contains(&name), "{name}");
    }
    for line in [
        "  -p, --port      #         server port to listen on or connect to",
        "  -P, --parallel  #         number of parallel streams (default 1, at most 128)",
        "  -R, --reverse             the server sends, the client receives",
    ] {
        assert!(text.lines().any(|printed| printed == line), "{line}\n{text}");
    }
}

#[test]
fn the_version_is_recognisable() {
    let text = help::version("Linux host 6.12 x86_64");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], format!("iperf 3.21 (linerate {})", env!("CARGO_PKG_VERSION")));
    assert_eq!(lines[1], "Linux host 6.12 x86_64");
    assert!(lines[2].starts_with("Optional features available: CPU affinity setting, IPv6 flow label, "), "{text}");
    assert_eq!(lines[2].contains("authentication"), cfg!(feature = "auth"));
    assert_eq!(lines.len(), 3);
}

#[test]
fn a_refusal_reads_as_iperf3s() {
    let error =
        ParameterError { code: 26, text: "port number must be between 1 and 65535 inclusive".to_owned(), hint: None };
    let refused = ArgumentsError::Parameter { error, timestamps: None };
    assert_eq!(
        help::refusal(&refused, "12:00 "),
        "12:00 iperf3: parameter error - port number must be between 1 and 65535 inclusive\n\n\
         Usage: iperf3 [-s|-c host] [options]\nTry `iperf3 --help' for more information.\n"
    );
    let usage = ArgumentsError::Usage("unrecognized option '--foo'".to_owned());
    assert_eq!(
        help::refusal(&usage, ""),
        "iperf3: unrecognized option '--foo'\n\n\
         Usage: iperf3 [-s|-c host] [options]\nTry `iperf3 --help' for more information.\n"
    );
}
