//! `linerate lab`: emulated paths.

mod check;
mod drawing;
mod kernel;
mod list;
mod path;
mod run;
mod show;

pub(crate) use run::{diagnose_instead, name_of, run_instead, tune_instead};

use std::process::ExitCode;

use crate::app::{LabArguments, LabCommand};

/// Does what was asked for.
pub(crate) fn run(arguments: &LabArguments) -> ExitCode {
    let exit = match &arguments.command {
        LabCommand::List { label, json } => list::run(label.as_deref(), *json),
        LabCommand::Show { path, json, toml, plan } => show::run(path, show::form(*json, *toml, *plan)),
        LabCommand::Run(arguments) => return run::run(arguments),
        LabCommand::Check { json } => check::run(*json),
        LabCommand::Kernel { command } => kernel::run(command),
    };
    exit.into()
}
