//! linerate: measures a Linux network path, reports what limits it, and verifies every change.

#![forbid(unsafe_code)]

mod app;
mod cmd;
mod command_line;
mod completion;
mod console;
#[cfg(test)]
mod documented_commands;
mod exit;
mod export;
mod far_session;
mod firewall;
mod http_server;
mod iperf3;
mod keys;
mod planned;
mod progress;
mod recorder;
mod retained_output;
mod spark;
mod values;
mod wondershaper;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use linerate_lab::guest;
use linerate_lab::session::supervisor;

use app::{CliArguments, CliCommand};
use cmd::lab::{Adaptation, LabTarget};
use exit::ExitStatus;

fn main() -> ExitCode {
    console::exit_code(run())
}

fn run() -> ExitCode {
    if completion::answer(std::env::args_os()) {
        return ExitStatus::Success.into();
    }
    // Without it, a full limit (`ulimit -f`) would end the program before it can report a failed write.
    let _ = linerate_sys::signals::ignore_file_size_limit();
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_default();
    if Path::new(&program).file_name() == Some(OsStr::new("iperf3")) {
        return iperf3::run(arguments);
    }
    // clap must not parse iperf3's command line.
    let own_arguments: Vec<_> = arguments.collect();
    if let Some((_, arguments)) = own_arguments.split_first().filter(|(first, _)| *first == "iperf3") {
        return iperf3::run(arguments.iter().cloned());
    }
    let own_arguments = match wondershaper::translated(&program, own_arguments) {
        Ok(arguments) => arguments,
        Err(exit) => return exit.into(),
    };
    // First process of a lab's guest; not a user command.
    if let Some((_, arguments)) = own_arguments.split_first().filter(|(first, _)| *first == guest::HIDDEN_COMMAND) {
        return guest::run_with_arguments(arguments.iter().cloned());
    }
    if let Some((_, arguments)) =
        own_arguments.split_first().filter(|(first, _)| *first == supervisor::HIDDEN_SUBCOMMAND)
    {
        return ExitCode::from(supervisor::run(arguments));
    }
    // Far host of `linerate tune`; not a user command.
    if matches!(own_arguments.as_slice(), [first, second] if first == "tune" && second == "--agent") {
        return cmd::tune::run_agent().into();
    }
    // Far end of a measurement over ssh; not a user command.
    if matches!(own_arguments.as_slice(), [first, second] if first == "serve" && second == "--session") {
        return cmd::serve::run_session().into();
    }
    // Without the definitions of all commands, whose building is half of a start.
    if matches!(own_arguments.as_slice(), [only] if only == "--version" || only == "-V") {
        console::data(concat!("linerate ", env!("CARGO_PKG_VERSION"), "\n"));
        return ExitStatus::Success.into();
    }
    let own_arguments = command_line::adapted(&own_arguments, command_line::is_command);
    let mut app = match command_line::parse(&own_arguments) {
        Ok(app) => app,
        Err(answer) => return print_answer(&answer),
    };
    if app.no_history {
        recorder::forbid();
    }
    if let Some(target) = lab_target(&app.command) {
        return cmd::lab::run_on_path(&target, &own_arguments);
    }
    let is_streamed = app.command.take_json_stream();
    let server = match far_session::open(&mut app.command) {
        Ok(server) => server,
        Err(exit) => return exit.into(),
    };
    let followed = progress::begin(&cmd::measurement::own_arguments().join(" "), is_streamed);
    let exit = dispatch(app.command);
    drop(followed);
    far_session::close(server);
    exit
}

/// Prints clap's answer to a command line that starts nothing: help, version, or an error.
fn print_answer(answer: &clap::Error) -> ExitCode {
    let printed = answer.print();
    if answer.use_stderr() {
        return ExitStatus::Unable.into();
    }
    console::check(printed.and_then(|()| io::stdout().flush()));
    ExitStatus::Success.into()
}

/// Emulated path (`lab:NAME`) that a command names in place of a host: then the same command runs there.
fn lab_target(command: &CliCommand) -> Option<LabTarget<'_>> {
    let (host, adaptation) = match command {
        CliCommand::Test(arguments) => (arguments.only_host(), Adaptation::None),
        CliCommand::Path(arguments) => (arguments.host.as_deref(), Adaptation::None),
        CliCommand::Load(arguments) => (arguments.host.as_deref(), Adaptation::None),
        CliCommand::Rfc6349(arguments) => (Some(arguments.host.as_str()), Adaptation::None),
        CliCommand::Rr(arguments) => (arguments.host.as_deref(), Adaptation::None),
        CliCommand::Shape(arguments) => (arguments.verification_host(), Adaptation::None),
        CliCommand::Diagnose(arguments) => (arguments.host.as_deref(), Adaptation::transfer(&arguments.transfer)),
        CliCommand::Tune(arguments) => (arguments.host.as_deref(), Adaptation::both_hosts(&arguments.transfer)),
        CliCommand::Doctor(arguments) => (arguments.host.as_deref(), Adaptation::both_hosts(&arguments.transfer)),
        _ => return None,
    };
    LabTarget::of(host?, adaptation)
}

fn dispatch(command: CliCommand) -> ExitCode {
    match command {
        CliCommand::Test(arguments) => cmd::test::run(&arguments).into(),
        CliCommand::Path(arguments) => cmd::path::run(&arguments).into(),
        CliCommand::Diagnose(arguments) => cmd::diagnose::run(&arguments).into(),
        CliCommand::Load(arguments) => cmd::load::run(&arguments).into(),
        CliCommand::Rfc6349(arguments) => cmd::rfc6349::run(&arguments).into(),
        CliCommand::Rr(arguments) => cmd::rr::run(&arguments).into(),
        CliCommand::Tune(arguments) => cmd::tune::run(&arguments).into(),
        CliCommand::Doctor(arguments) => cmd::doctor::run(&arguments).into(),
        CliCommand::Shape(arguments) => cmd::shape::run(&arguments).into(),
        CliCommand::Audit(arguments) => cmd::audit::run(&arguments).into(),
        CliCommand::Baseline(arguments) => cmd::baseline::run(&arguments).into(),
        CliCommand::Watch(arguments) => cmd::watch::run(&arguments).into(),
        CliCommand::Rollback(arguments) => cmd::rollback::run(&arguments).into(),
        CliCommand::Trial(arguments) => cmd::rollback::run_trial(&arguments).into(),
        CliCommand::Serve(arguments) => cmd::serve::run(&arguments).into(),
        CliCommand::Calc(arguments) => cmd::calc::run(&arguments),
        CliCommand::Monitor(arguments) => cmd::monitor::run(&arguments).into(),
        CliCommand::Export(arguments) => cmd::export::run(&arguments).into(),
        CliCommand::Fleet(arguments) => cmd::fleet::run(&arguments).into(),
        CliCommand::Pscheduler(arguments) => cmd::pscheduler::run(&arguments),
        CliCommand::Lab(arguments) => cmd::lab::run(&arguments),
        CliCommand::History(arguments) => cmd::history::run(&arguments).into(),
        CliCommand::Report(arguments) => cmd::report::run(&arguments).into(),
        CliCommand::Iperf3 { arguments } => iperf3::run(arguments),
        // Translated before.
        CliCommand::Wondershaper { .. } => ExitStatus::Unable.into(),
        CliCommand::Completions { shell } => {
            let script = completion::script(shell).unwrap_or_default();
            console::data(&String::from_utf8_lossy(&script));
            ExitStatus::Success.into()
        }
        CliCommand::Man { dir: Some(directory), .. } => write_manuals(&directory).into(),
        CliCommand::Man { command, .. } => manual(command.as_deref()).into(),
    }
}

/// Writes the manual pages of all commands.
fn write_manuals(directory: &Path) -> ExitStatus {
    let made = std::fs::create_dir_all(directory);
    match made.and_then(|()| clap_mangen::generate_to(CliArguments::command(), directory)) {
        Ok(()) => {
            console::note(&format!("manual pages written to {}", directory.display()));
            ExitStatus::Success
        }
        Err(cause) => {
            let cause = linerate_sys::describe_os_error(&cause);
            console::error(&format!("writing manual pages to {}: {cause}", directory.display()), None);
            ExitStatus::Unable
        }
    }
}

/// Prints a manual page, generated from the same definitions as the help.
fn manual(command: Option<&str>) -> ExitStatus {
    let mut app = CliArguments::command();
    app.build();
    let found = match command {
        None => Some(app.clone()),
        Some(name) => app.find_subcommand(name).cloned(),
    };
    let Some(found) = found else {
        let name = command.unwrap_or_default().escape_debug();
        console::error(&format!("man: unknown command '{name}': `linerate --help` lists the commands"), None);
        return ExitStatus::Unable;
    };
    let mut page = Vec::new();
    if clap_mangen::Man::new(found).render(&mut page).is_ok() {
        console::data(&String::from_utf8_lossy(&page));
    }
    ExitStatus::Success
}
