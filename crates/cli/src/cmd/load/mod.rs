//! `linerate load HOST`: delay while the path is full.

mod arguments;
mod document;
mod figures;
mod progress;

use std::time::Duration;

use linerate_analysis::latency_under_load::LatencyGrade;
use linerate_engine::load::{self, LoadTestOptions};
use linerate_engine::probe::ProbeTarget;
use linerate_model::load::{LoadDocument, PhaseKind};
use linerate_model::report::Outcome;
use linerate_units::{StreamCount, display};

pub(crate) use arguments::LoadArguments;
pub(crate) use progress::LoadProgressDisplay;

use crate::cmd::measurement::{hint_no_server, interrupts, report_missed};
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
        hint_no_server(error, "measures the idle round trip by ICMP");
    }
    let missed = missed_thresholds(arguments, &outcome.document);
    let exit = exit_of(&outcome.document, &missed);
    if exit != ExitStatus::Unable {
        arguments.common.print_and_record(&document::history_record(&outcome, surroundings));
    }
    if exit == ExitStatus::Missed {
        report_missed(&missed);
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
    let target = ProbeTarget { without_server: arguments.no_server, ..arguments.common.target(&arguments.host) };
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

fn exit_of(document: &LoadDocument, missed: &[String]) -> ExitStatus {
    let measured = document.phases.iter().any(|phase| phase.classes.iter().any(|class| class.rtt.is_some()));
    match (document.termination.outcome(), measured) {
        (Outcome::Complete, true) if missed.is_empty() => ExitStatus::Success,
        (Outcome::Complete, true) => ExitStatus::Missed,
        (Outcome::Interrupted, _) | (_, true) => ExitStatus::Partial,
        _ => ExitStatus::Unable,
    }
}

/// Returns a line for each missed threshold; unknown figures miss it.
fn missed_thresholds(arguments: &LoadArguments, document: &LoadDocument) -> Vec<String> {
    let added = document.grade.as_ref().map(|grade| Duration::from_nanos(grade.added_ns));
    let most = arguments.max_added.map(|most| (display::duration(most), added.is_none_or(|added| added > most)));
    let least =
        arguments.min_grade.map(|least| (least.to_string(), added.is_none_or(|added| LatencyGrade::of(added) > least)));
    let shown = added.map_or_else(
        || "the added delay is unknown".to_owned(),
        |added| format!("the load adds {}, grade {}", display::duration(added), LatencyGrade::of(added)),
    );
    let line = |limit: Option<(String, bool)>, option: &str| {
        let (limit, is_missed) = limit?;
        is_missed.then(|| format!("{shown} ({option} {limit})"))
    };
    [line(most, "--max-added"), line(least, "--min-grade")].into_iter().flatten().collect()
}
