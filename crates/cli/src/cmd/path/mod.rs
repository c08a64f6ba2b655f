//! `linerate path HOST`: the path itself, each way.

mod arguments;
mod document;
mod figures;
mod progress;
mod verdict;

use std::time::Duration;

use linerate_engine::path::{self, PathOptions, PathOutcome};
use linerate_engine::probe::Target;
use linerate_model::schema::run::RunDocument;
use linerate_model::schema::throughput::Outcome;
use linerate_report::{presentation, text};
use linerate_sys::signals::Interrupts;
use linerate_units::PacketCount;

pub(crate) use arguments::PathArguments;
pub(crate) use progress::Progress;

use crate::cmd::test::family;
use crate::console;
use crate::exit::Exit;
use crate::keep;
use crate::surroundings::Surroundings;

/// Measures, shows and keeps.
pub(crate) fn run(arguments: &PathArguments) -> Exit {
    let stop = match Interrupts::install() {
        Ok(stop) => stop,
        Err(cause) => {
            console::error(&cause.to_string(), None);
            return Exit::of(&cause);
        }
    };
    let surroundings = Surroundings::read(&arguments.host, arguments.port, family(&arguments.network));
    let mut progress = Progress::new(arguments.quiet);
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
        let run = document::of(&outcome, surroundings);
        show(arguments, &outcome, &run);
        keep::keep(&run, arguments.quiet || arguments.json);
    }
    exit
}

fn options(arguments: &PathArguments) -> PathOptions {
    let target = Target {
        family: family(&arguments.network),
        bind: arguments.network.bind,
        device: arguments.network.bind_dev.clone(),
        connect_timeout: Some(Duration::from_secs(10)),
        ..Target::new(arguments.host.clone(), arguments.port)
    };
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

fn show(arguments: &PathArguments, outcome: &PathOutcome, run: &RunDocument) {
    if arguments.json {
        match serde_json::to_string_pretty(&outcome.document) {
            Ok(text) => console::data(&format!("{text}\n")),
            Err(cause) => console::error(&format!("writing the result as JSON: {cause}"), None),
        }
    } else {
        console::data(&text::result(&presentation::present(run), console::data_style()));
    }
}
