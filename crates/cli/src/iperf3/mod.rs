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
use args::command::{Iperf3Command, Parsed};
use output::Output;

/// iperf3 knows two exit codes.
const FAILURE: ExitCode = ExitCode::FAILURE;

/// The first line of `-V` and the version in JSON: scripts compare it with iperf3's.
fn version() -> String {
    format!("iperf {}", help::IPERF3_PROFILE)
}

/// Runs iperf3's command line, without the program's name.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Parsed { command, warnings } = match args::parse(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return refuse(&error),
    };
    for warning in warnings {
        output::complain(&format!("warning: {warning}"));
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
    output::complain(help::refusal(error, &time).trim_end());
    FAILURE
}

/// The parameters of a client's test with these options; an error says what is wrong with them.
pub(crate) fn transfer(options: &[String]) -> Result<TestParameters, String> {
    // The host is of no interest here: it is given elsewhere.
    let words = ["-c", "localhost"].into_iter().map(str::to_owned).chain(options.iter().cloned());
    match args::parse(words.map(OsString::from)) {
        Ok(Parsed { command: Iperf3Command::Client(client), .. }) => Ok(client.parameters),
        Ok(_) => Err("only a client's options make a transfer".to_owned()),
        Err(ArgumentsError::Usage(text)) => Err(text.trim_end().to_owned()),
        Err(ArgumentsError::Parameter { error, .. }) => Err(error.to_string()),
    }
}

/// What both roles do first: processor, output, process number.
struct Prepared {
    output: Output,
    /// Removes its file at the end.
    _pid_file: Option<process::PidFile>,
}

/// Text of iperf3's error `code`, with the reason where iperf3 appends it.
fn error_text(code: linerate_wire::error::ErrorCode, cause: &linerate_sys::Error) -> String {
    linerate_engine::Error::system(code, cause).to_string()
}
