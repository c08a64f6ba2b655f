//! `linerate fleet plan`.

use std::io::{self, Read as _};
use std::path::Path;

use linerate_fleet::{FleetCost, FleetDescription, SessionStart, Timetable};
use linerate_history::utc_time::rfc3339;
use linerate_sys::{clock, describe_os_error};
use serde_json::json;

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
    let cost = FleetCost::of(&timetable, &description);
    if let Some(name) = &arguments.address {
        timetable.sessions.retain(|planned| planned.session.addresses.iter().any(|one| **one == **name));
        timetable.light.retain(|session| session.addresses.iter().any(|one| **one == **name));
    }
    let from = arguments.from.unwrap_or_else(clock::realtime_now);
    let count = if arguments.verbose { timetable.sessions.len() } else { SHOWN_STARTS.min(timetable.sessions.len()) };
    let starts: Vec<SessionStart<'_>> = timetable.starts(from).take(count).collect();
    if arguments.json {
        let starts: Vec<_> =
            timetable.starts(from).take(timetable.sessions.len()).map(|one| start_document(&one)).collect();
        let document = json!({ "timetable": timetable, "cost": cost, "starts": starts });
        print_json(DocumentKind::FleetPlan, &document);
        return Ok(());
    }
    let title = description.meta.display_name.as_deref();
    let plan = ShownPlan { title, timetable: &timetable, cost: &cost, starts: &starts, from };
    console::data(&text::plan(&plan, console::data_style()));
    Ok(())
}

/// Start of a session in the document: its time, and its place in the timetable's list.
fn start_document(start: &SessionStart<'_>) -> serde_json::Value {
    let session = start.session;
    json!({ "at": rfc3339(start.at), "task": session.task, "addresses": session.addresses })
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
