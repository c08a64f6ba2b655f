//! iperf3's `--help` and `--version`, and the text for a refused command line.

use super::args::options::{Argument, CommandOption, SECTIONS};
use super::args::{ArgumentsError, ParameterError};

/// The iperf3 release whose options, output and protocol are spoken.
pub(crate) const IPERF3_PROFILE: &str = "3.21";

/// Columns of a terminal.
const WIDTH: usize = 80;
/// Where a number stands after a short name.
const NUMBER: usize = 18;
/// Where descriptions begin.
const DESCRIPTION: usize = 28;

/// The text of `--help`, at most 80 columns wide.
pub(crate) fn help() -> String {
    let mut text = String::from("Usage: iperf3 [-s|-c host] [options]\n       iperf3 [-h|--help] [-v|--version]\n\n");
    for section in SECTIONS {
        text.push_str(section.heading);
        text.push('\n');
        text.extend(section.options.iter().map(row));
    }
    text.push_str("\n[KMG] indicates options that support a K/M/G suffix for kilo-, mega-, or giga-\n");
    text.push_str("(times 1024 for sizes, times 1000 for rates)\n");
    text
}

/// The text of `--version`: release, system, features. `system` is what `uname -a` says without the processor's type.
pub(crate) fn version(system: &str) -> String {
    let mut features = vec![
        "CPU affinity setting",
        "IPv6 flow label",
        "TCP congestion algorithm setting",
        "sendfile / zerocopy",
        "socket pacing",
    ];
    if cfg!(feature = "auth") {
        features.push("authentication");
    }
    features.extend(["bind to device", "support IPv4 don't fragment", "POSIX threads"]);
    format!(
        "iperf {IPERF3_PROFILE} (linerate {})\n{system}\nOptional features available: {}\n",
        env!("CARGO_PKG_VERSION"),
        features.join(", ")
    )
}

/// What goes to stderr for a command line that was refused; the exit code is 1. `time` is the formatted time when
/// `--timestamps` asks for it, else empty.
pub(crate) fn refusal(error: &ArgumentsError, time: &str) -> String {
    match error {
        ArgumentsError::Usage(message) => format!("iperf3: {message}\n{}", help()),
        ArgumentsError::Parameter { error: ParameterError { text, .. }, .. } => format!(
            "{time}iperf3: parameter error - {text}\n\nUsage: iperf3 [-s|-c host] [options]\n\
             Try `iperf3 --help' for more information.\n"
        ),
    }
}

/// Names, argument and description of one option.
fn row(option: &CommandOption) -> String {
    let names = match option.short {
        Some(letter) => format!("  -{letter}, --{}", option.long),
        None => format!("  --{}", option.long),
    };
    let left = match option.argument {
        Argument::None => names,
        Argument::Optional(argument) => format!("{names}{argument}"),
        // Numbers stand in one column where names are short enough.
        Argument::Required(argument) if argument.starts_with('#') && argument.len() <= DESCRIPTION - NUMBER - 2 => {
            format!("{names:<width$} {argument}", width = NUMBER - 1)
        }
        Argument::Required(argument) => format!("{names} {argument}"),
    };
    let mut lines = wrap(option.help, WIDTH - DESCRIPTION).into_iter();
    // A name that reaches into the descriptions has its line alone.
    let mut text = if left.len() < DESCRIPTION {
        format!("{left:<DESCRIPTION$}{}\n", lines.next().unwrap_or_default())
    } else {
        format!("{left}\n")
    };
    text.extend(lines.map(|line| format!("{:DESCRIPTION$}{line}\n", "")));
    text
}

/// Breaks `text` between words into lines of at most `width` characters.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
