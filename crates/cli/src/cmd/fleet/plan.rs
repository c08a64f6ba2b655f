//! `linerate fleet plan`.

use std::io::{self, Read as _};
use std::path::Path;

use linerate_documents::fleet_plan::{self, FleetCost, FleetPlanDocument, FleetTimetable, PlannedStart};
use linerate_fleet::{FleetDescription, SessionStart, Timetable, fleet_cost};
use linerate_sys::{clock, describe_os_error};
use linerate_units::WallTime;
use linerate_units::serde::nanoseconds;

use super::PlanArguments;
use super::text::{self, ShownPlan};
use crate::cmd::measurement::{DocumentKind, print_json};
use crate::console;
use crate::exit::ExitStatus;

/// Starts that the summary shows.
const SHOWN_STARTS: usize = 5;

pub(super) fn run(arguments: &PlanArguments) -> ExitStatus {
    match show(arguments) {
        Ok(()) => ExitStatus::Success,
        Err(reason) => {
            console::error(&format!("fleet plan: {reason}"), None);
            ExitStatus::Unable
        }
    }
}

fn show(arguments: &PlanArguments) -> Result<(), String> {
    let description = read(&arguments.file)?;
    if let Some(name) = &arguments.address {
        check_address(&description, name)?;
    }
    let mut timetable = Timetable::new(&description).map_err(|error| error.to_string())?;
    let cost = fleet_cost(&timetable, &description);
    if let Some(name) = &arguments.address {
        timetable.sessions.retain(|planned| planned.session.addresses.iter().any(|one| **one == **name));
        timetable.light.retain(|session| session.addresses.iter().any(|one| **one == **name));
    }
    let from = arguments.from.unwrap_or_else(clock::realtime_now);
    if arguments.json {
        print_json(DocumentKind::FleetPlan, &document(timetable, cost, from));
        return Ok(());
    }
    let count = if arguments.verbose { timetable.sessions.len() } else { SHOWN_STARTS.min(timetable.sessions.len()) };
    let starts: Vec<SessionStart<'_>> = timetable.starts(from).take(count).collect();
    let title = description.meta.display_name.as_deref();
    let plan = ShownPlan { title, timetable: &timetable, cost: &cost, starts: &starts, from };
    console::data(&text::plan(&plan, console::data_style()));
    Ok(())
}

fn document(timetable: Timetable, cost: FleetCost, from: WallTime) -> FleetPlanDocument {
    let starts = timetable.starts(from).take(timetable.sessions.len()).map(|one| planned_start(&one)).collect();
    let timetable = FleetTimetable {
        slot_ns: nanoseconds(timetable.slot),
        clock_guard_ns: nanoseconds(timetable.clock_guard),
        rounds: timetable.rounds,
        laps: timetable.laps,
        period_ns: nanoseconds(timetable.period),
        sessions: timetable.sessions,
        light: timetable.light,
    };
    FleetPlanDocument { schema: fleet_plan::SCHEMA, timetable, cost, starts }
}

fn planned_start(start: &SessionStart<'_>) -> PlannedStart {
    let session = start.session;
    PlannedStart { at: start.at, task: session.task.clone(), addresses: session.addresses.clone() }
}

pub(super) fn check_address(description: &FleetDescription, name: &str) -> Result<(), String> {
    if description.addresses.contains_key(name) {
        return Ok(());
    }
    let names: Vec<&str> = description.addresses.keys().map(String::as_str).take(10).collect();
    Err(format!("the description has no address {name:?}; it has {}", names.join(", ")))
}

/// Reads a description from a file, the standard input or a web server.
pub(super) fn read(file: &Path) -> Result<FleetDescription, String> {
    FleetDescription::read(&read_text(file)?).map_err(|error| format!("{}: {error}", file.display()))
}

/// Text of a description from a file, the standard input or a web server.
pub(super) fn read_text(file: &Path) -> Result<String, String> {
    text(file).map_err(|cause| format!("reading {}: {cause}", file.display()))
}

fn text(file: &Path) -> Result<String, String> {
    if file == Path::new("-") {
        let mut text = String::new();
        return io::stdin().read_to_string(&mut text).map(|_| text).map_err(|cause| describe_os_error(&cause));
    }
    match file.to_str().filter(|url| url.starts_with("http://") || url.starts_with("https://")) {
        Some(url) => download(url),
        None => std::fs::read_to_string(file).map_err(|cause| describe_os_error(&cause)),
    }
}

#[cfg(feature = "otlp")]
fn download(url: &str) -> Result<String, String> {
    crate::export::download(url)
}

#[cfg(not(feature = "otlp"))]
fn download(_url: &str) -> Result<String, String> {
    Err("this linerate was built without the feature `otlp`, which has the web client: use a file".to_owned())
}
