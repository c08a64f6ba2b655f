//! Tests of the command line, as tables.

mod accepted;
mod options;
mod refused;
mod splitting;

use std::ffi::OsString;

use super::command::{ClientArguments, Iperf3Command, ParsedCommand, ServerArguments};
use super::{ArgumentsError, parse};

/// Parses a command line with blanks between its arguments.
fn read(line: &str) -> Result<ParsedCommand, ArgumentsError> {
    read_arguments(&line.split_whitespace().collect::<Vec<_>>())
}

fn read_arguments(arguments: &[&str]) -> Result<ParsedCommand, ArgumentsError> {
    parse(arguments.iter().map(OsString::from))
}

#[track_caller]
fn client_of(parsed: Result<ParsedCommand, ArgumentsError>) -> ClientArguments {
    match parsed {
        Ok(ParsedCommand { command: Iperf3Command::Client(arguments), .. }) => *arguments,
        other => panic!("not a client: {other:?}"),
    }
}

/// Parses `-c host` and these options.
#[track_caller]
fn client(options: &str) -> ClientArguments {
    client_of(read(&format!("-c host {options}")))
}

/// Parses `-s` and these options.
#[track_caller]
fn server(options: &str) -> ServerArguments {
    match read(&format!("-s {options}")) {
        Ok(ParsedCommand { command: Iperf3Command::Server(arguments), .. }) => *arguments,
        other => panic!("not a server: {other:?}"),
    }
}
