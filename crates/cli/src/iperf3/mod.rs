//! `linerate iperf3`, and the program under the name `iperf3`: iperf3's command line, output and exit codes.

pub(crate) mod args;
mod client;
pub(crate) mod help;
mod output;
mod server;

use std::ffi::OsString;
use std::process::ExitCode;

use linerate_model::parameters::TestParameters;
use linerate_sys::{clock, host, process};

use args::ArgumentsError;
use args::command::{Iperf3Command, ParsedCommand};
use output::Iperf3Output;

/// Error exit code; iperf3 has only two codes.
const FAILURE: ExitCode = ExitCode::FAILURE;

/// First line of `-V`, and version in JSON: scripts compare it with iperf3's.
fn version() -> String {
    format!("iperf {}", help::IPERF3_PROFILE)
}

/// Runs iperf3's command line, without the program's name.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let ParsedCommand { command, warnings } = match args::parse(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return refuse(&error),
    };
    for warning in warnings {
        output::print_error_line(&format!("warning: {warning}"));
    }
    match command {
        Iperf3Command::Help => output::print(&help::help()),
        Iperf3Command::Version => output::print(&help::version(&host::system_information())),
        Iperf3Command::Server(arguments) => server::run(&arguments),
        Iperf3Command::Client(arguments) => client::run(&arguments),
    }
}

fn refuse(error: &ArgumentsError) -> ExitCode {
    let time = match error {
        ArgumentsError::Parameter { timestamps: Some(layout), .. } => {
            clock::format_local(clock::realtime_now(), layout)
        }
        _ => String::new(),
    };
    output::print_error_line(help::refusal(error, &time).trim_end());
    FAILURE
}

/// Parses a client's options into test parameters; the error describes the invalid option.
pub(crate) fn transfer(options: &[String]) -> Result<TestParameters, String> {
    // The host is irrelevant here: it is given elsewhere.
    let arguments = ["-c", "localhost"].into_iter().map(str::to_owned).chain(options.iter().cloned());
    match args::parse(arguments.map(OsString::from)) {
        Ok(ParsedCommand { command: Iperf3Command::Client(client), .. }) => Ok(client.parameters),
        Ok(_) => Err("expected options of an iperf3 client".to_owned()),
        Err(ArgumentsError::Usage(text)) => Err(text.trim_end().to_owned()),
        Err(ArgumentsError::Parameter { error, .. }) => Err(error.to_string()),
    }
}

/// Process state shared by both roles: processor, output, process ID.
struct ProcessSetup {
    output: Iperf3Output,
    /// PID file, which is removed at the end.
    _pid_file: Option<process::PidFile>,
}

/// Text of iperf3's error `code`, with the reason where iperf3 appends it.
fn error_text(code: linerate_wire::error::ErrorCode, cause: &linerate_sys::Error) -> String {
    linerate_engine::Error::system(code, cause).to_string()
}
