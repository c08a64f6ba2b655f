//! Command lines as people type them: `HOST:PORT`, a host without a command, and iperf3's options.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use crate::app::CliArguments;

/// Commands whose argument is one host with a port; `test` takes several, each with its own.
const HOST_COMMANDS: [&str; 7] = ["path", "load", "rfc6349", "rr", "diagnose", "tune", "doctor"];

/// Options of iperf3 that people type here, and what does the same. An option in the text's beginning must be one of the
/// command.
const IPERF3_OPTIONS: [(&str, &str); 12] = [
    ("-c", "`linerate test HOST` measures; `linerate iperf3 -c HOST` has iperf3's options and output"),
    ("--client", "`linerate test HOST` measures; `linerate iperf3 -c HOST` has iperf3's options and output"),
    ("-s", "`linerate serve` serves any number of clients; `linerate iperf3 -s` is iperf3's server"),
    ("--server", "`linerate serve` serves any number of clients; `linerate iperf3 -s` is iperf3's server"),
    ("-R", "`--down` measures from the server to here"),
    ("--reverse", "`--down` measures from the server to here"),
    ("-J", "`--json` prints a document"),
    ("-u", "`linerate iperf3 -u -c HOST` sends UDP; `linerate path HOST` measures loss and jitter"),
    ("--udp", "`linerate iperf3 -u -c HOST` sends UDP; `linerate path HOST` measures loss and jitter"),
    ("-b", "`linerate iperf3 -c HOST -b RATE` limits the rate"),
    ("--bidir", "`linerate load HOST` loads both directions; `linerate iperf3 -c HOST --bidir` is iperf3's test"),
    ("-n", "`linerate iperf3 -c HOST -n SIZE` moves that many bytes"),
];

/// Commands with a transfer, whose options follow `--`.
const TRANSFER_COMMANDS: [&str; 3] = ["diagnose", "tune", "doctor"];

/// Options of a transfer.
const TRANSFER_OPTIONS: [&str; 4] = ["-R", "--reverse", "-b", "-n"];

/// Parses arguments that are [`adapted`]; an error of clap carries advice for what people mean.
pub(crate) fn parse(arguments: &[OsString]) -> Result<CliArguments, clap::Error> {
    let program = OsString::from("linerate");
    let first = arguments.iter().find(|argument| *argument != "--no-history");
    let first = first.map_or_else(String::new, |first| first.to_string_lossy().into_owned());
    CliArguments::try_parse_from(std::iter::once(&program).chain(arguments)).map_err(|error| with_advice(error, &first))
}

/// True for a command of linerate.
pub(crate) fn is_command(name: &str) -> bool {
    name == "help" || CliArguments::command().find_subcommand(name).is_some()
}

/// Makes a host without a command `test HOST`, and `HOST:PORT` of other commands a host with `-p PORT`.
pub(crate) fn adapted(arguments: &[OsString], is_command: impl Fn(&str) -> bool) -> Vec<OsString> {
    let mut adapted = Vec::with_capacity(arguments.len() + 2);
    let mut rest = arguments.iter().peekable();
    if let [help, option] = &arguments[usize::from(arguments.first().is_some_and(|first| first == "--no-history"))..]
        && help == "help"
        && (option == "--help" || option == "-h")
    {
        return vec![help.clone()];
    }
    adapted.extend(rest.next_if(|first| *first == "--no-history").cloned());
    let first = rest.peek().and_then(|first| first.to_str());
    let takes_host = match first {
        Some(name) if HOST_COMMANDS.contains(&name) => true,
        // In this order: it takes the definitions of all commands to know one.
        Some(name) if is_host(name) && !is_command(name) => {
            adapted.push("test".into());
            false
        }
        _ => false,
    };
    let mut is_own = takes_host;
    for argument in rest {
        is_own &= argument != "--";
        match argument.to_str().filter(|_| is_own).and_then(host_and_port) {
            Some((host, port)) => adapted.extend([host, "-p", port].map(OsString::from)),
            None => adapted.push(argument.clone()),
        }
    }
    adapted
}

/// True for what can only be a host, not a mistyped command.
fn is_host(text: &str) -> bool {
    !text.starts_with('-') && (text.contains(['.', ':']) || text == "localhost")
}

/// Splits `HOST:PORT` and `[ADDRESS]:PORT`; a bare IPv6 address has no port.
pub(crate) fn host_and_port(text: &str) -> Option<(&str, &str)> {
    let (host, port) = text.rsplit_once(':')?;
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).map_or_else(
        || (!host.contains([':', '/', '=']) && !host.starts_with('-') && !host.is_empty()).then_some(host),
        Some,
    )?;
    is_port.then_some((host, port))
}

/// Replaces clap's tip where an option of iperf3, or a host without a command, was typed. `first`: the first argument.
fn with_advice(mut error: clap::Error, first: &str) -> clap::Error {
    let typed = match error.kind() {
        ErrorKind::UnknownArgument => error.get(ContextKind::InvalidArg),
        ErrorKind::InvalidSubcommand => error.get(ContextKind::InvalidSubcommand),
        _ => None,
    };
    let Some(ContextValue::String(typed)) = typed else { return error };
    let advice = match error.kind() {
        // A command has commands of its own, none of which is a host.
        ErrorKind::InvalidSubcommand if typed == first && !is_command(first) => error
            .get(ContextKind::SuggestedSubcommand)
            .is_none()
            .then(|| format!("to measure a host: `linerate test {typed}`")),
        ErrorKind::UnknownArgument => advice_for_option(typed, first),
        _ => None,
    };
    let is_of_iperf3 = IPERF3_OPTIONS.iter().any(|(name, _)| name == typed);
    if let Some(advice) = advice {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![advice.into()]));
    } else if is_of_iperf3 && !TRANSFER_COMMANDS.contains(&first) {
        // clap suggests `-- -R`, which is a host.
        error.remove(ContextKind::Suggested);
    }
    error
}

/// Advice for an option of iperf3 that `command` does not have; `None` where nothing there does the same.
fn advice_for_option(option: &str, command: &str) -> Option<String> {
    if TRANSFER_COMMANDS.contains(&command) && TRANSFER_OPTIONS.contains(&option) {
        return Some(format!("options of the transfer follow `--`: `linerate {command} HOST -- {option}`"));
    }
    if command == "load" && ["-R", "--reverse"].contains(&option) {
        return Some("`--phases down` loads only the direction from the server to here".to_owned());
    }
    let (_, advice) = IPERF3_OPTIONS.iter().find(|(name, _)| *name == option)?;
    let named = advice.strip_prefix("`--").and_then(|rest| rest.split('`').next());
    named.is_none_or(|name| has_option(command, name)).then(|| (*advice).to_owned())
}

/// True when the command has an option of this name.
fn has_option(command: &str, name: &str) -> bool {
    let app = CliArguments::command();
    let found = app.find_subcommand(command);
    found.is_some_and(|command| command.get_arguments().any(|argument| argument.get_long() == Some(name)))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::{adapted, parse};

    fn shown(line: &str) -> String {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let words = adapted(&arguments, |name| ["test", "path", "lab", "report"].contains(&name));
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ports_and_hosts_are_found() {
        for (typed, meant) in [
            ("path host:5202", "path host -p 5202"),
            ("path [2001:db8::1]:5202 -t 1s", "path 2001:db8::1 -p 5202 -t 1s"),
            ("test a:5202 b:5203", "test a:5202 b:5203"),
            ("path ssh:me@host:2222", "path ssh:me@host:2222"),
            ("ssh:me@host", "test ssh:me@host"),
            ("test 2001:db8::1", "test 2001:db8::1"),
            ("path lab:xs4all-adsl", "path lab:xs4all-adsl"),
            ("host.example", "test host.example"),
            ("--no-history 192.0.2.1:80", "--no-history test 192.0.2.1:80"),
            ("tset", "tset"),
            ("report run:1", "report run:1"),
            ("diagnose far -- -c x:1", "diagnose far -- -c x:1"),
            ("test far --html a=b:1", "test far --html a=b:1"),
            ("help --help", "help"),
            ("--no-history help -h", "help"),
            ("help test", "help test"),
        ] {
            assert_eq!(shown(typed), meant);
        }
    }

    #[test]
    fn options_of_iperf3_lead_to_the_right_command() {
        for (typed, advice) in [
            ("test far -R", "--down"),
            ("test far -u", "linerate iperf3 -u"),
            ("-c far", "linerate test HOST"),
            ("-s", "linerate serve"),
            ("far", "linerate test far"),
            ("--no-history far", "linerate test far"),
            ("diagnose far -R", "linerate diagnose HOST -- -R"),
            ("tune far --reverse", "linerate tune HOST -- --reverse"),
            ("load far -R", "--phases down"),
            ("rr far -J", "`--json` prints"),
        ] {
            let arguments: Vec<OsString> = typed.split_whitespace().map(OsString::from).collect();
            let text = parse(&arguments).expect_err("not a command line").to_string();
            assert!(text.contains(advice) && !text.contains("as a value"), "{typed}: {text}");
        }
    }

    #[test]
    fn advice_names_only_what_the_command_has() {
        for typed in [
            "path far -R",
            "rr far -R",
            "rfc6349 far -R",
            "serve -R",
            "lab nosuch",
            "calc nosuch",
            "fleet nosuch",
            "lab lab",
        ] {
            let arguments: Vec<OsString> = typed.split_whitespace().map(OsString::from).collect();
            let text = parse(&arguments).expect_err("not a command line").to_string();
            assert!(!text.contains("--down") && !text.contains("linerate test "), "{typed}: {text}");
            assert!(!text.contains("tip:"), "{typed}: {text}");
        }
    }
}
