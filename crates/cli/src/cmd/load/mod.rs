//! `linerate load HOST`: what happens to the delay while the path is full.

mod arguments;
mod document;
mod figures;
mod progress;
mod verdict;

use std::time::Duration;

use linerate_engine::load::{self, LoadTestOptions};
use linerate_model::latency_under_load::Grade;
use linerate_model::schema::load::{LoadDocument, PhaseKind};
use linerate_model::schema::throughput::Outcome;
use linerate_units::StreamCount;

pub(crate) use arguments::LoadArguments;
pub(crate) use progress::Progress;
pub(crate) use verdict::sentence;

use crate::cmd::measurement::interrupts;
use crate::console;
use crate::exit::Exit;

/// Measures, shows and keeps.
pub(crate) fn run(arguments: &LoadArguments) -> Exit {
    let stop = match interrupts() {
        Ok(stop) => stop,
        Err(exit) => return exit,
    };
    let surroundings = arguments.common.surroundings(&arguments.host);
    let mut progress = Progress::new(arguments.common.quiet);
    let outcome = load::run(&options(arguments), Some(stop), &mut |event| progress.event(event));
    progress.finish();
    if let Some(error) = &outcome.error {
        console::error(&error.to_string(), None);
    }
    let exit = exit_of(arguments, &outcome.document);
    if exit != Exit::Unable {
        arguments.common.conclude(&outcome.document, &document::of(&outcome, surroundings));
    }
    exit
}

/// The phases that were asked for, each once, with the idle path in front.
fn phases(arguments: &LoadArguments) -> Vec<PhaseKind> {
    let mut phases = vec![PhaseKind::Idle];
    for phase in &arguments.phases {
        let kind = PhaseKind::from(*phase);
        if !phases.contains(&kind) {
            phases.push(kind);
        }
    }
    phases
}

fn options(arguments: &LoadArguments) -> LoadTestOptions {
    let target = arguments.common.target(&arguments.host);
    let usual = LoadTestOptions::new(target);
    LoadTestOptions {
        congestion_control: Some(arguments.congestion.clone()).filter(|name| name != "default"),
        connections: StreamCount::new(arguments.connections),
        phases: phases(arguments),
        idle_time: arguments.idle,
        load_time: arguments.time,
        ramp_limit: arguments.ramp,
        probe_interval: arguments.interval.unwrap_or(usual.probe_interval),
        spare_slow_paths: arguments.interval.is_none(),
        ..usual
    }
}

fn exit_of(arguments: &LoadArguments, document: &LoadDocument) -> Exit {
    let measured = document.phases.iter().any(|phase| phase.classes.iter().any(|class| class.rtt.is_some()));
    match (document.termination.outcome, measured) {
        (Outcome::Complete, true) if misses_threshold(arguments, document) => Exit::Missed,
        (Outcome::Complete, true) => Exit::Success,
        (Outcome::Interrupted, _) | (_, true) => Exit::Partial,
        _ => Exit::Unable,
    }
}

/// What cannot be judged does not meet a threshold.
fn misses_threshold(arguments: &LoadArguments, document: &LoadDocument) -> bool {
    if arguments.max_added.is_none() && arguments.min_grade.is_none() {
        return false;
    }
    let Some(grade) = &document.grade else { return true };
    let added = Duration::from_nanos(grade.added_ns);
    let too_long = arguments.max_added.is_some_and(|most| added > most);
    too_long || arguments.min_grade.is_some_and(|least| Grade::of(added) > least)
}
