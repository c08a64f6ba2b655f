//! `linerate path HOST`: the path itself, each way.

mod arguments;
mod document;
mod figures;
mod progress;
mod verdict;

use linerate_engine::path::{self, PathOptions};
use linerate_model::schema::throughput::Outcome;
use linerate_units::PacketCount;

pub(crate) use arguments::PathArguments;
pub(crate) use progress::Progress;
pub(crate) use verdict::sentence;

use crate::cmd::measurement::interrupts;
use crate::console;
use crate::exit::Exit;

/// Measures, shows and keeps.
pub(crate) fn run(arguments: &PathArguments) -> Exit {
    let stop = match interrupts() {
        Ok(stop) => stop,
        Err(exit) => return exit,
    };
    let surroundings = arguments.common.surroundings(&arguments.host);
    let mut progress = Progress::new(arguments.common.quiet, " (--max-traffic, --no-capacity)");
    let outcome = path::run(&options(arguments), Some(stop), &mut |event| progress.event(event));
    progress.finish();
    let measured = outcome.document.rtt.best.is_some();
    let exit = match (outcome.document.termination.outcome, measured) {
        (Outcome::Complete, _) => Exit::Success,
        (Outcome::Interrupted, _) | (_, true) => Exit::Partial,
        _ => Exit::Unable,
    };
    if let Some(error) = &outcome.error {
        console::error(&error.to_string(), None);
    }
    if exit != Exit::Unable {
        arguments.common.conclude(&outcome.document, &document::of(&outcome, surroundings));
    }
    exit
}

fn options(arguments: &PathArguments) -> PathOptions {
    let target = arguments.common.target(&arguments.host);
    PathOptions {
        stamp_port: arguments.stamp_port,
        count: PacketCount::new(arguments.count),
        interval: arguments.interval,
        poisson: !arguments.periodic,
        capacity: !arguments.no_capacity,
        max_rate: arguments.max_rate,
        max_traffic: arguments.max_traffic,
        ..PathOptions::new(target)
    }
}
