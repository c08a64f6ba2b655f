//! `linerate diagnose HOST`: what limits a transfer, from both ends.

mod arguments;
pub(crate) mod document;
mod progress;
mod watched;

use std::time::Duration;

use linerate_engine::client::ClientOptions;
use linerate_engine::diagnose::{self, DiagnoseOptions, DiagnoseOutcome, PathSource};
use linerate_engine::path::PathOptions;
use linerate_engine::probe::Target;
use linerate_model::diagnosis::{Diagnosis, Place};
use linerate_model::parameters::{Direction, Protocol, TestParameters};
use linerate_rules::diagnosis;
use linerate_units::PacketCount;

pub(crate) use arguments::DiagnoseArguments;
pub(crate) use progress::Progress;

use crate::cmd::measurement::interrupts;
use crate::console;
use crate::exit::Exit;
use crate::iperf3;

/// The probes of the path: fewer than `linerate path` sends, as the transfer tells the rest.
const PROBES: u64 = 600;
const PROBE_INTERVAL: Duration = Duration::from_millis(5);

/// Measures, explains, shows and keeps.
pub(crate) fn run(arguments: &DiagnoseArguments) -> Exit {
    let Some(host) = &arguments.host else { return watched::run(arguments) };
    let options = match options(arguments, host) {
        Ok(options) => options,
        Err(exit) => return exit,
    };
    let stop = match interrupts() {
        Ok(stop) => stop,
        Err(exit) => return exit,
    };
    let surroundings = arguments.common.surroundings(host);
    let begun = document::Begun::now();
    let mut progress = Progress::new(arguments.common.quiet, options.transfer.parameters.end.time_limit());
    let outcome = diagnose::run(&options, Some(stop), &mut |event| progress.event(&event));
    progress.finish();
    let diagnosis = outcome.observation.as_ref().map(diagnosis::diagnose);
    if let Some(error) = &outcome.error {
        console::error(&error.to_string(), error.advice());
    }
    let exit = exit_of(&outcome, diagnosis.as_ref(), stop.pending().is_some());
    if let Some(diagnosis) = &diagnosis {
        let asked = document::Asked { host, port: arguments.common.port, transfer: &arguments.transfer };
        let document = begun.document(asked, &outcome, diagnosis);
        let run = document::run(&document, &outcome, surroundings);
        arguments.common.conclude(&document, &run);
    }
    exit
}

/// A transfer that broke off is explained all the same, where what was seen of it is enough.
fn exit_of(outcome: &DiagnoseOutcome, diagnosis: Option<&Diagnosis>, interrupted: bool) -> Exit {
    let first = diagnosis.and_then(|diagnosis| diagnosis.verdicts.first());
    let explained = first.is_some_and(|verdict| !matches!(verdict.cause.place(), Place::Unknown | Place::Nowhere));
    match exit_of_verdict(diagnosis, interrupted) {
        Exit::Success | Exit::Missed if outcome.error.is_some() && !explained => Exit::Partial,
        exit => exit,
    }
}

fn exit_of_verdict(diagnosis: Option<&Diagnosis>, interrupted: bool) -> Exit {
    let Some(first) = diagnosis.and_then(|diagnosis| diagnosis.verdicts.first()) else {
        return if interrupted { Exit::Partial } else { Exit::Unable };
    };
    match first.cause.place() {
        _ if interrupted => Exit::Partial,
        Place::Nowhere => Exit::Success,
        _ => Exit::Missed,
    }
}

fn options(arguments: &DiagnoseArguments, host: &str) -> Result<DiagnoseOptions, Exit> {
    let target = arguments.common.target(host);
    let parameters = parameters(&arguments.transfer, "diagnose")?;
    let transfer = ClientOptions::new(&target, parameters, None);
    let path = path_options(target, !arguments.no_capacity);
    let path = if arguments.no_path { PathSource::Unknown } else { PathSource::Measure(path) };
    Ok(DiagnoseOptions { path, transfer })
}

/// What of the path a diagnosis needs.
pub(crate) fn path_options(target: Target, capacity: bool) -> PathOptions {
    PathOptions {
        count: PacketCount::new(PROBES),
        interval: PROBE_INTERVAL,
        hops: false,
        capacity,
        ..PathOptions::new(target)
    }
}

/// The transfer that is asked for, for this command.
pub(crate) fn parameters(transfer: &[String], command: &str) -> Result<TestParameters, Exit> {
    let refuse = |text: String| {
        console::error(&format!("{text}\n`linerate {command} --help` shows where a transfer's options stand"), None);
        Exit::Unable
    };
    let parameters = iperf3::transfer(transfer).map_err(refuse)?;
    if parameters.protocol == Protocol::Udp {
        return Err(refuse("UDP has no window and no congestion control that could limit".to_owned()));
    }
    if parameters.direction == Direction::Bidirectional {
        return Err(refuse("one direction at a time can be explained: without --bidir".to_owned()));
    }
    Ok(parameters)
}
