//! `linerate rfc6349 HOST`: the framework for TCP throughput testing, from the path MTU to the three metrics.

mod arguments;
mod document;
mod figures;
mod progress;
mod verdict;

use linerate_engine::path::PathOptions;
use linerate_engine::rfc6349::{self, Rfc6349Options};
use linerate_model::report::Outcome;
use linerate_units::{PacketCount, StreamCount};

pub(crate) use arguments::Rfc6349Arguments;

use crate::cmd::measurement::interrupts;
use crate::console;
use crate::exit::ExitStatus;
use progress::Rfc6349ProgressDisplay;

/// Measures, prints and records.
pub(crate) fn run(arguments: &Rfc6349Arguments) -> ExitStatus {
    let stop = match interrupts() {
        Ok(stop) => stop,
        Err(exit) => return exit,
    };
    let surroundings = arguments.common.local_environment(&arguments.host);
    let mut progress = Rfc6349ProgressDisplay::new(arguments.common.quiet);
    let outcome = rfc6349::run(&options(arguments), Some(stop), &mut |event| progress.event(event));
    progress.finish();
    let document = &outcome.document;
    let measured = document.path.rtt.best.is_some();
    let failed = document.tests.iter().all(|test| test.problem.is_some());
    let exit = match (document.termination.outcome(), measured) {
        (Outcome::Complete, _) if !failed => ExitStatus::Success,
        (Outcome::Interrupted, _) | (_, true) => ExitStatus::Partial,
        _ => ExitStatus::Unable,
    };
    if let Some(error) = &outcome.error {
        console::error(&error.to_string(), None);
    }
    if exit != ExitStatus::Unable {
        arguments.common.print_and_record(&document::history_record(&outcome, surroundings));
    }
    exit
}

fn options(arguments: &Rfc6349Arguments) -> Rfc6349Options {
    let target = arguments.common.target(&arguments.host);
    // The transfers detect losses here: fewer probes than those of `linerate path` suffice.
    let path = PathOptions { count: PacketCount::new(300), ..PathOptions::new(target) };
    Rfc6349Options {
        time: arguments.time,
        connections: StreamCount::new(arguments.connections),
        congestion_control: arguments.congestion.clone(),
        windows: !arguments.no_windows,
        traffic_management: !arguments.no_traffic_management,
        ..Rfc6349Options::new(path)
    }
}
