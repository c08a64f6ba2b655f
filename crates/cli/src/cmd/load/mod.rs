//! `linerate load HOST`: delay while the path is full.

mod arguments;
mod document;
mod figures;
mod progress;

use std::time::Duration;

use linerate_analysis::latency_under_load::LatencyGrade;
use linerate_engine::load::{self, LoadTestOptions};
use linerate_model::load::{LoadDocument, PhaseKind};
use linerate_model::report::Outcome;
use linerate_units::StreamCount;

pub(crate) use arguments::LoadArguments;
pub(crate) use progress::LoadProgressDisplay;

use crate::cmd::measurement::interrupts;
use crate::console;
use crate::exit::ExitStatus;

/// Measures, prints and records.
pub(crate) fn run(arguments: &LoadArguments) -> ExitStatus {
    let stop = match interrupts() {
        Ok(stop) => stop,
        Err(exit) => return exit,
    };
    let surroundings = arguments.common.local_environment(&arguments.host);
    let mut progress = LoadProgressDisplay::new(arguments.common.quiet);
    let outcome = load::run(&options(arguments), Some(stop), &mut |event| progress.event(event));
    progress.finish();
    if let Some(error) = &outcome.error {
        console::error(&error.to_string(), None);
    }
    let exit = exit_of(arguments, &outcome.document);
    if exit != ExitStatus::Unable {
        arguments.common.print_and_record(&document::history_record(&outcome, surroundings));
    }
    exit
}

/// Selected phases, each once, after the idle path.
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

fn exit_of(arguments: &LoadArguments, document: &LoadDocument) -> ExitStatus {
    let measured = document.phases.iter().any(|phase| phase.classes.iter().any(|class| class.rtt.is_some()));
    match (document.termination.outcome(), measured) {
        (Outcome::Complete, true) if misses_threshold(arguments, document) => ExitStatus::Missed,
        (Outcome::Complete, true) => ExitStatus::Success,
        (Outcome::Interrupted, _) | (_, true) => ExitStatus::Partial,
        _ => ExitStatus::Unable,
    }
}

/// True when a threshold is missed; unknown figures miss it.
fn misses_threshold(arguments: &LoadArguments, document: &LoadDocument) -> bool {
    if arguments.max_added.is_none() && arguments.min_grade.is_none() {
        return false;
    }
    let Some(grade) = &document.grade else { return true };
    let added = Duration::from_nanos(grade.added_ns);
    let too_long = arguments.max_added.is_some_and(|most| added > most);
    too_long || arguments.min_grade.is_some_and(|least| LatencyGrade::of(added) > least)
}
