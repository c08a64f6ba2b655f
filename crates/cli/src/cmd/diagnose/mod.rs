//! `linerate diagnose HOST`: what limits a transfer, from both ends.

mod arguments;
mod progress;
mod transfer;
mod watched;

use linerate_engine::client::ClientOptions;
use linerate_engine::diagnose::{self, DiagnoseOptions, DiagnoseOutcome, PathSource};
use linerate_engine::path::PathOutcome;
use linerate_model::diagnosis::{CauseLocation, TransferDiagnosis};
use linerate_operate::diagnose::{RunStart, TransferRequest, path_options, run as run_document};
use linerate_rules::diagnosis;

pub(crate) use arguments::DiagnoseArguments;
pub(crate) use progress::DiagnoseProgressDisplay;
pub(crate) use transfer::parameters;

use crate::cmd::listen::DialedServer;
use crate::cmd::measurement::{interrupts, own_arguments};
use crate::cmd::path::history_record;
use crate::console;
use crate::exit::ExitStatus;

/// Measures, explains, shows and keeps.
pub(crate) fn run(arguments: &DiagnoseArguments) -> ExitStatus {
    if arguments.host.is_none() && arguments.listen.listen.is_none() {
        return watched::run(arguments);
    }
    let stop = match interrupts() {
        Ok(stop) => stop,
        Err(exit) => return exit,
    };
    let server = match arguments.listen.server(&arguments.common, stop) {
        Ok(server) => server,
        Err(exit) => return exit,
    };
    let dialed =
        server.map(|DialedServer { host, common }| DiagnoseArguments { host: Some(host), common, ..arguments.clone() });
    let arguments = dialed.as_ref().unwrap_or(arguments);
    let host = arguments.host.as_deref().unwrap_or_default();
    let options = match options(arguments, host) {
        Ok(options) => options,
        Err(exit) => return exit,
    };
    let surroundings = arguments.common.local_environment(host);
    let begun = RunStart::now();
    let mut progress =
        DiagnoseProgressDisplay::new(arguments.common.quiet, options.transfer.parameters.end.time_limit());
    let outcome = diagnose::run(&options, Some(stop), &mut |event| progress.event(&event));
    progress.finish();
    let diagnosis = outcome.observation.as_ref().map(diagnosis::diagnose);
    if let Some(error) = &outcome.error {
        console::error(&error.to_string(), error.advice());
    }
    let exit = exit_of(&outcome, diagnosis.as_ref(), stop.pending().is_some());
    let Some(diagnosis) = &diagnosis else {
        let Some(path) = path_alone(&outcome) else { return exit };
        arguments.common.print_and_record(&history_record(path, surroundings));
        return ExitStatus::Partial;
    };
    let asked = TransferRequest { host, port: arguments.common.port(), transfer: &arguments.transfer };
    let mut document = begun.document(asked, &outcome, diagnosis);
    document.observation = outcome.observation.clone().map(Box::new).filter(|_| arguments.observation);
    let run = run_document(&document, &outcome, surroundings, own_arguments());
    arguments.common.print_and_record(&run);
    exit
}

/// Measured path of a run whose transfer did not take place.
fn path_alone(outcome: &DiagnoseOutcome) -> Option<&PathOutcome> {
    outcome.path.as_ref().filter(|path| path.document.rtt.best.is_some())
}

/// Exit status; a transfer that ended early still counts when its limit was found.
fn exit_of(outcome: &DiagnoseOutcome, diagnosis: Option<&TransferDiagnosis>, interrupted: bool) -> ExitStatus {
    let first = diagnosis.and_then(|diagnosis| diagnosis.verdicts.first());
    let explained = first
        .is_some_and(|verdict| !matches!(verdict.cause.location(), CauseLocation::Unknown | CauseLocation::Nowhere));
    match exit_of_verdict(diagnosis, interrupted) {
        ExitStatus::Success | ExitStatus::Missed if outcome.error.is_some() && !explained => ExitStatus::Partial,
        exit => exit,
    }
}

fn exit_of_verdict(diagnosis: Option<&TransferDiagnosis>, interrupted: bool) -> ExitStatus {
    let Some(first) = diagnosis.and_then(|diagnosis| diagnosis.verdicts.first()) else {
        return if interrupted { ExitStatus::Partial } else { ExitStatus::Unable };
    };
    match first.cause.location() {
        _ if interrupted => ExitStatus::Partial,
        CauseLocation::Nowhere => ExitStatus::Success,
        _ => ExitStatus::Missed,
    }
}

fn options(arguments: &DiagnoseArguments, host: &str) -> Result<DiagnoseOptions, ExitStatus> {
    let target = arguments.common.target(host);
    let mut parameters = parameters(&arguments.transfer, "diagnose")?;
    parameters.kernel_events = arguments.kernel_events;
    let transfer = ClientOptions::new(&target, parameters, None);
    let path = path_options(target, !arguments.no_capacity);
    let path = if arguments.no_path { PathSource::Unknown } else { PathSource::Measure(Box::new(path)) };
    Ok(DiagnoseOptions { path, transfer })
}
