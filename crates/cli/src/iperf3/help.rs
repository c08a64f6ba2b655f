//! Texts of iperf3's `--help` and `--version`, and of a refused command line.

use super::args::options::{CommandOption, OptionArgument, SECTIONS};
use super::args::{ArgumentsError, ParameterError};
use linerate_report::text::wrap_text;

/// Release of iperf3 that is reproduced: options, output and protocol.
pub(crate) const IPERF3_PROFILE: &str = "3.21";

/// Width of a terminal in characters.
const WIDTH: usize = 80;
/// Column of a number after a short name.
const NUMBER_COLUMN: usize = 18;
/// Column of descriptions.
const DESCRIPTION_COLUMN: usize = 28;

/// Text of `--help`, at most 80 columns wide.
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

/// Text of `--version`: release, system, features. `system` is the output of `uname -a` without the processor type.
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

/// Text on stderr for a refused command line; the exit code is 1. `time` is the formatted time for `--timestamps`, else
/// empty.
pub(crate) fn refusal(error: &ArgumentsError, time: &str) -> String {
    let reason = match error {
        ArgumentsError::Usage(message) => message.clone(),
        ArgumentsError::Parameter { error: ParameterError { text, .. }, .. } => format!("parameter error - {text}"),
    };
    let hint = match error {
        ArgumentsError::Parameter { error: ParameterError { hint: Some(hint), .. }, .. } => format!("hint: {hint}\n"),
        _ => String::new(),
    };
    format!(
        "{time}iperf3: {reason}\n\nUsage: iperf3 [-s|-c host] [options]\nTry `iperf3 --help' for more information.\n{hint}"
    )
}

/// Row of the help: names, argument and description of one option.
fn row(option: &CommandOption) -> String {
    let names = match option.short {
        Some(letter) => format!("  -{letter}, --{}", option.long),
        None => format!("  --{}", option.long),
    };
    let left = match option.argument {
        OptionArgument::None => names,
        OptionArgument::Optional(argument) => format!("{names}{argument}"),
        // Numbers are aligned in one column after short names.
        OptionArgument::Required(argument)
            if argument.starts_with('#') && argument.len() <= DESCRIPTION_COLUMN - NUMBER_COLUMN - 2 =>
        {
            format!("{names:<width$} {argument}", width = NUMBER_COLUMN - 1)
        }
        OptionArgument::Required(argument) => format!("{names} {argument}"),
    };
    let mut lines = wrap_text(option.help, WIDTH - DESCRIPTION_COLUMN).into_iter();
    // A name that overlaps the descriptions has its own line.
    let mut text = if left.len() < DESCRIPTION_COLUMN {
        format!("{left:<DESCRIPTION_COLUMN$}{}\n", lines.next().unwrap_or_default())
    } else {
        format!("{left}\n")
    };
    text.extend(lines.map(|line| format!("{:DESCRIPTION_COLUMN$}{line}\n", "")));
    text
}
