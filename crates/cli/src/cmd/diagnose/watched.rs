//! `linerate diagnose --pid`, `--dst`, `--port`: a running transfer of another program.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_documents::diagnose::{DiagnoseDocument, HostKernelEvents, SCHEMA};
use linerate_documents::progress::{EventKind, ProgressEvent};
use linerate_documents::run::{RunDocument, RunEnvironment};
use linerate_engine::surroundings::{LocalEnvironment, OwnTraffic};
use linerate_engine::watched::{self, WatchFilter, WatchedTransfer};
use linerate_model::direction::Direction;
use linerate_model::path::UnknownValue;
use linerate_model::report::TestTermination;
use linerate_model::socket::{FlowKey, ProcessId};
use linerate_operate::diagnose::{self, RunStart};
use linerate_report::escape;
use linerate_rules::diagnosis;
use linerate_units::display;
use linerate_units::serde::nanoseconds;

use super::arguments::DiagnoseArguments;
use crate::cmd::measurement::{LiveLine, interrupts, own_arguments};
use crate::console;
use crate::exit::ExitStatus;
use crate::progress;

/// Watches, diagnoses, prints and records.
pub(super) fn run(arguments: &DiagnoseArguments) -> ExitStatus {
    let stop = match interrupts() {
        Ok(stop) => stop,
        Err(exit) => return exit,
    };
    if let Some(process) = arguments.pid.filter(|process| !process_file(*process, "").exists()) {
        console::error(&format!("--pid {process}: no process of this host has that ID\n{ADVICE}"), None);
        return ExitStatus::Unable;
    }
    let begun = RunStart::now();
    let mut line = LiveLine::new(arguments.common.quiet);
    let mut rates = Vec::new();
    let mut progress = |at: Duration, rate: linerate_units::BitRate| {
        rates.push(rate.bits_per_second());
        let left_ns = Some(nanoseconds(arguments.time.saturating_sub(at)));
        let rate_now = Some(rate.bits_per_second());
        let text = Some("watching".to_owned());
        let sample = ProgressEvent::new(EventKind::Sample);
        progress::publish(ProgressEvent { left_ns, text, up_bits_per_second: rate_now, ..sample });
        let left = arguments.time.saturating_sub(at).as_secs_f64().ceil();
        line.show(&format!("watching  {left} s left  {}", display::rate(rate)), &rates);
    };
    let found = watched::watch(&flow_selection(arguments), arguments.time, Some(stop), &mut progress);
    line.clear();
    match found {
        Ok(Some(watched)) => print_and_record(arguments, &begun, &watched),
        Ok(None) => nothing(arguments),
        Err(cause) => {
            console::error(&cause.to_string(), None);
            ExitStatus::from_error(&cause)
        }
    }
}

fn flow_selection(arguments: &DiagnoseArguments) -> WatchFilter {
    WatchFilter {
        process: arguments.pid,
        remote: arguments.dst,
        port: arguments.common.port,
        kernel_events: arguments.kernel_events,
    }
}

/// Remedy where no connection was found.
const ADVICE: &str = "`linerate watch` lists the connections of this host; those of other users' processes need root";

/// File of a process in the kernel's process file system (`proc(5)`); its directory with an empty name.
fn process_file(process: ProcessId, name: &str) -> PathBuf {
    Path::new("/proc").join(process.to_string()).join(name)
}

fn nothing(arguments: &DiagnoseArguments) -> ExitStatus {
    let time = display::duration(arguments.time);
    let of_process = arguments.pid.map_or_else(String::new, |process| format!(" of {}", process_label(process)));
    console::error(&format!("no matching connection{of_process} moved data within {time}\n{ADVICE}"), None);
    ExitStatus::Unable
}

/// ID and name of a process, such as `process 4711 (rsync)`.
fn process_label(process: ProcessId) -> String {
    match fs::read(process_file(process, "comm")) {
        Ok(name) => format!("process {process} ({})", escape::line(String::from_utf8_lossy(&name).trim_end())),
        Err(_) => format!("process {process}"),
    }
}

/// Local and remote endpoints.
fn flow_names(flows: &[FlowKey]) -> String {
    let more = flows.len().saturating_sub(1);
    let first = flows.first().map_or_else(String::new, |flow| format!("{} – {}", flow.local, flow.remote));
    if more == 0 { first } else { format!("{first} and {more} more") }
}

fn print_and_record(arguments: &DiagnoseArguments, begun: &RunStart, watched: &WatchedTransfer) -> ExitStatus {
    let diagnosis = diagnosis::diagnose(&watched.observation);
    let figures = diagnosis::figures(&watched.observation);
    let reason = "a watched transfer is observed from this host only";
    let unknown = |key: &str| UnknownValue { key: key.to_owned(), reason: reason.to_owned() };
    let refusals = HostKernelEvents::refusals(&watched.observation);
    let document = DiagnoseDocument {
        schema: SCHEMA,
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        host: flow_names(&watched.flows),
        port: watched.flows.first().map_or(0, |flow| flow.remote.port()),
        started_at_unix_ns: nanoseconds(begun.at.since_unix_epoch()),
        duration_ns: nanoseconds(begun.lasted()),
        termination: TestTermination::Complete,
        direction: if watched.sends { Direction::Up } else { Direction::Down },
        transfer: Vec::new(),
        verdicts: diagnosis.verdicts.clone(),
        states: diagnosis.states.clone(),
        goodput_bits_per_second: Some(diagnosis.goodput.bits_per_second()),
        bounds: diagnosis.bounds.clone(),
        next: diagnosis.next.clone(),
        contradictions: diagnosis.contradictions.clone(),
        figures: figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        path: None,
        observation: arguments.observation.then(|| Box::new(watched.observation.clone())),
        unknown: [unknown("far"), unknown("path")].into_iter().chain(refusals).collect(),
        kernel_events: HostKernelEvents::of(&watched.observation),
        notes: diagnosis.notes.clone(),
    };
    let remote = watched.flows.first().map_or_else(String::new, |flow| flow.remote.ip().to_string());
    let surroundings = LocalEnvironment::read(&remote, arguments.common.port(), None);
    let run = RunDocument {
        arguments: own_arguments(),
        verdict: document.verdicts.first().map_or_else(String::new, |verdict| verdict.text.clone()),
        figures: diagnose::figures(&document),
        environment: RunEnvironment { near: Some(surroundings.finish(OwnTraffic::default())), far: None, lab: None },
        ..RunDocument::from(document.clone())
    };
    arguments.common.print_and_record(&run);
    super::exit_of_verdict(Some(&diagnosis), false)
}
