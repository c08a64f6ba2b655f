//! The command line, as tables.

mod accepted;
mod options;
mod refused;
mod splitting;

use std::ffi::OsString;

use super::command::{ClientArguments, Iperf3Command, Parsed, ServerArguments};
use super::{ArgumentsError, parse};

/// Reads a command line written with blanks between its arguments.
fn read(line: &str) -> Result<Parsed, ArgumentsError> {
    read_words(&line.split_whitespace().collect::<Vec<_>>())
}

fn read_words(words: &[&str]) -> Result<Parsed, ArgumentsError> {
    parse(words.iter().map(OsString::from))
}

#[track_caller]
fn client_of(parsed: Result<Parsed, ArgumentsError>) -> ClientArguments {
    match parsed {
        Ok(Parsed { command: Iperf3Command::Client(arguments), .. }) => *arguments,
        other => panic!("not a client: {other:?}"),
    }
}

/// The client that `-c host` and these options make.
#[track_caller]
fn client(options: &str) -> ClientArguments {
    client_of(read(&format!("-c host {options}")))
}

/// The server that `-s` and these options make.
#[track_caller]
fn server(options: &str) -> ServerArguments {
    match read(&format!("-s {options}")) {
        Ok(Parsed { command: Iperf3Command::Server(arguments), .. }) => *arguments,
        other => panic!("not a server: {other:?}"),
    }
}
