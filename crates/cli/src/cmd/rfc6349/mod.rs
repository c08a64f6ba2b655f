//! `linerate rfc6349 HOST`: the framework for TCP throughput testing, from the path MTU to the three metrics.

mod arguments;
mod document;
mod figures;
mod progress;
mod verdict;

use std::time::Duration;

use linerate_engine::path::PathOptions;
use linerate_engine::probe::Target;
use linerate_engine::rfc6349::{self, Rfc6349Options, Rfc6349Outcome};
use linerate_model::schema::run::RunDocument;
use linerate_model::schema::throughput::Outcome;
use linerate_report::{presentation, text};
use linerate_sys::signals::Interrupts;
use linerate_units::{PacketCount, StreamCount};

pub(crate) use arguments::Rfc6349Arguments;

use crate::cmd::test::family;
use crate::console;
use crate::exit::Exit;
use crate::keep;
use crate::surroundings::Surroundings;
use progress::Progress;

/// Measures, shows and keeps.
pub(crate) fn run(arguments: &Rfc6349Arguments) -> Exit {
    let stop = match Interrupts::install() {
        Ok(stop) => stop,
        Err(cause) => {
            console::error(&cause.to_string(), None);
            return Exit::of(&cause);
        }
    };
    let surroundings = Surroundings::read(&arguments.host, arguments.port, family(&arguments.network));
    let mut progress = Progress::new(arguments.quiet);
    let outcome = rfc6349::run(&options(arguments), Some(stop), &mut |event| progress.event(event));
    progress.finish();
    let document = &outcome.document;
    let measured = document.path.rtt.best.is_some();
    let failed = document.tests.iter().all(|test| test.problem.is_some());
    let exit = match (document.termination.outcome, measured) {
        (Outcome::Complete, _) if !failed => Exit::Success,
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

fn options(arguments: &Rfc6349Arguments) -> Rfc6349Options {
    let target = Target {
        family: family(&arguments.network),
        bind: arguments.network.bind,
        device: arguments.network.bind_dev.clone(),
        connect_timeout: Some(Duration::from_secs(10)),
        ..Target::new(arguments.host.clone(), arguments.port)
    };
    // Losses are the transfers' to find here: fewer probes than those of `linerate path` are enough.
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

fn show(arguments: &Rfc6349Arguments, outcome: &Rfc6349Outcome, run: &RunDocument) {
    if arguments.json {
        match serde_json::to_string_pretty(&outcome.document) {
            Ok(text) => console::data(&format!("{text}\n")),
            Err(cause) => console::error(&format!("writing the result as JSON: {cause}"), None),
        }
    } else {
        console::data(&text::result(&presentation::present(run), console::data_style()));
    }
}
