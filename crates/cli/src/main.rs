//! linerate: measures a Linux network path, says what limits it, and proves every change.

#![forbid(unsafe_code)]

mod app;
mod cmd;
mod console;
mod exit;
mod firewall;
mod iperf3;
mod keep;
mod shown;
mod spark;
mod surroundings;

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use linerate_lab::guest;
use linerate_lab::session::supervisor;

use app::{App, Command};
use exit::Exit;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_default();
    if Path::new(&program).file_name() == Some(OsStr::new("iperf3")) {
        return iperf3::run(arguments);
    }
    // iperf3's command line is not clap's to look at.
    let rest: Vec<_> = arguments.collect();
    if let Some((_, arguments)) = rest.split_first().filter(|(first, _)| *first == "iperf3") {
        return iperf3::run(arguments.iter().cloned());
    }
    // The first process of a lab's guest: nothing that a person types.
    if let Some((_, arguments)) = rest.split_first().filter(|(first, _)| *first == guest::HIDDEN_COMMAND) {
        return guest::run_with_arguments(arguments.iter().cloned());
    }
    if let Some((_, arguments)) = rest.split_first().filter(|(first, _)| *first == supervisor::COMMAND) {
        return ExitCode::from(supervisor::run(arguments));
    }
    // The far end of `linerate tune`: nothing that a person types.
    if matches!(rest.as_slice(), [first, second] if first == "tune" && second == "--agent") {
        return cmd::tune::run_agent().into();
    }
    let app = App::parse();
    if app.no_history {
        keep::forbid();
    }
    match app.command {
        Command::Test(arguments) if cmd::lab::name_of(&arguments.host).is_some() => {
            cmd::lab::run_instead(&arguments.host, &rest)
        }
        Command::Test(arguments) => cmd::test::run(&arguments).into(),
        Command::Path(arguments) if cmd::lab::name_of(&arguments.host).is_some() => {
            cmd::lab::run_instead(&arguments.host, &rest)
        }
        Command::Path(arguments) => cmd::path::run(&arguments).into(),
        Command::Diagnose(arguments) => {
            match arguments.host.as_deref().filter(|host| cmd::lab::name_of(host).is_some()) {
                Some(host) => cmd::lab::diagnose_instead(host, &rest, !arguments.transfer.is_empty()),
                None => cmd::diagnose::run(&arguments).into(),
            }
        }
        Command::Load(arguments) if cmd::lab::name_of(&arguments.host).is_some() => {
            cmd::lab::run_instead(&arguments.host, &rest)
        }
        Command::Load(arguments) => cmd::load::run(&arguments).into(),
        Command::Rfc6349(arguments) if cmd::lab::name_of(&arguments.host).is_some() => {
            cmd::lab::run_instead(&arguments.host, &rest)
        }
        Command::Rfc6349(arguments) => cmd::rfc6349::run(&arguments).into(),
        Command::Tune(arguments) => match arguments.host.as_deref().filter(|host| cmd::lab::name_of(host).is_some()) {
            Some(host) => cmd::lab::tune_instead(host, &rest, !arguments.transfer.is_empty()),
            None => cmd::tune::run(&arguments).into(),
        },
        Command::Doctor(arguments) if cmd::lab::name_of(&arguments.host).is_some() => {
            cmd::lab::tune_instead(&arguments.host, &rest, !arguments.transfer.is_empty())
        }
        Command::Doctor(arguments) => cmd::doctor::run(&arguments).into(),
        Command::Shape(arguments) => match arguments.lab() {
            Some(host) => cmd::lab::run_instead(host, &rest),
            None => cmd::shape::run(&arguments).into(),
        },
        Command::Audit(arguments) => cmd::audit::run(&arguments).into(),
        Command::Baseline(arguments) => cmd::baseline::run(&arguments).into(),
        Command::Watch(arguments) => cmd::watch::run(&arguments).into(),
        Command::Rollback(arguments) => cmd::rollback::run(&arguments).into(),
        Command::Trial(arguments) => cmd::rollback::run_trial(&arguments).into(),
        Command::Serve(arguments) => cmd::serve::run(&arguments).into(),
        Command::Calc(arguments) => cmd::calc::run(&arguments),
        Command::Lab(arguments) => cmd::lab::run(&arguments),
        Command::History(arguments) => cmd::history::run(&arguments).into(),
        Command::Report(arguments) => cmd::report::run(&arguments).into(),
        Command::Iperf3 { arguments } => iperf3::run(arguments),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut App::command(), "linerate", &mut script);
            console::data(&String::from_utf8_lossy(&script));
            Exit::Success.into()
        }
        Command::Man { command } => manual(command.as_deref()).into(),
    }
}

/// Prints a manual page, made from the same definitions as the help.
fn manual(command: Option<&str>) -> Exit {
    let mut app = App::command();
    app.build();
    let found = match command {
        None => Some(app.clone()),
        Some(name) => app.find_subcommand(name).cloned(),
    };
    let Some(found) = found else {
        console::error("no such command; `linerate --help` lists them", None);
        return Exit::Unable;
    };
    let mut page = Vec::new();
    if clap_mangen::Man::new(found).render(&mut page).is_ok() {
        console::data(&String::from_utf8_lossy(&page));
    }
    Exit::Success
}
