//! `linerate lab`: emulated paths.

mod ad_hoc;
mod arguments;
mod check;
mod drawing;
mod export;
mod kernel;
mod list;
mod path;
mod run;
mod show;

pub(crate) use run::{Adaptation, LabTarget, run_on_path};

use std::process::ExitCode;

pub(crate) use arguments::LabArguments;

use arguments::LabCommand;

/// Runs the selected command.
pub(crate) fn run(arguments: &LabArguments) -> ExitCode {
    let exit = match &arguments.command {
        LabCommand::List { label, json } => list::run(label.as_deref(), *json),
        LabCommand::Show { path, json, toml, plan } => show::run(path, show::show_format(*json, *toml, *plan)),
        LabCommand::Export { path, format } => export::run(path, *format),
        LabCommand::Run(arguments) => return run::run(arguments),
        LabCommand::Check { json } => check::run(*json),
        LabCommand::Kernel { command } => kernel::run(command),
    };
    exit.into()
}
