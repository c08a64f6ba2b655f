//! `linerate diagnose --pid`, `--dst`, `--port`: somebody else's transfer, as it runs.

use std::time::Duration;

use linerate_engine::watched::{self, Wanted, Watched};
use linerate_model::report::Termination;
use linerate_model::schema::diagnose::{Bound, DiagnoseDocument, SCHEMA, StateShare, Verdict};
use linerate_model::schema::nanoseconds;
use linerate_model::schema::path::Unknown;
use linerate_model::schema::run::{RunDocument, RunEnvironment};
use linerate_model::schema::throughput::Direction;
use linerate_model::socket::FlowKey;
use linerate_rules::diagnosis;
use linerate_units::{Port, display};

use super::arguments::DiagnoseArguments;
use super::document::{self, Begun};
use crate::cmd::measurement::{LiveLine, interrupts, own_arguments};
use crate::console;
use crate::exit::Exit;
use crate::surroundings::{OwnTraffic, Surroundings};

/// Watches, explains, shows and keeps.
pub(super) fn run(arguments: &DiagnoseArguments) -> Exit {
    let stop = match interrupts() {
        Ok(stop) => stop,
        Err(exit) => return exit,
    };
    let begun = Begun::now();
    let mut line = LiveLine::new(arguments.common.quiet);
    let mut rates = Vec::new();
    let mut progress = |at: Duration, rate: linerate_units::BitRate| {
        rates.push(rate.bits_per_second());
        let left = arguments.time.saturating_sub(at).as_secs_f64().ceil();
        line.show(&format!("watching  {left} s left  {}", display::rate(rate)), &rates);
    };
    let found = watched::watch(&wanted(arguments), arguments.time, Some(stop), &mut progress);
    line.clear();
    match found {
        Ok(Some(watched)) => conclude(arguments, &begun, &watched),
        Ok(None) => nothing(arguments),
        Err(cause) => {
            console::error(&cause.to_string(), None);
            Exit::of(&cause)
        }
    }
}

fn wanted(arguments: &DiagnoseArguments) -> Wanted {
    // The port of a server has a default; without anything else, the port is what was asked for.
    let named = arguments.pid.is_some() || arguments.dst.is_some();
    let port = Some(arguments.common.port).filter(|port| !named || *port != Port::IPERF3);
    Wanted { process: arguments.pid, remote: arguments.dst, port }
}

fn nothing(arguments: &DiagnoseArguments) -> Exit {
    let time = display::duration(arguments.time);
    let advice = "`linerate watch` lists the connections of this host; those of other users' processes need root";
    console::error(&format!("no data moved on such a connection within {time}\n{advice}"), None);
    Exit::Unable
}

/// Who talks to whom.
fn name(flows: &[FlowKey]) -> String {
    let more = flows.len().saturating_sub(1);
    let first = flows.first().map_or_else(String::new, |flow| format!("{} – {}", flow.local, flow.remote));
    if more == 0 { first } else { format!("{first} and {more} more") }
}

fn conclude(arguments: &DiagnoseArguments, begun: &Begun, watched: &Watched) -> Exit {
    let diagnosis = diagnosis::diagnose(&watched.observation);
    let figures = diagnosis::figures(&watched.observation);
    let reason = "a transfer that is watched is seen from this host alone";
    let unknown = |key: &str| Unknown { key: key.to_owned(), reason: reason.to_owned() };
    let document = DiagnoseDocument {
        schema: SCHEMA,
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        host: name(&watched.flows),
        port: watched.flows.first().map_or(0, |flow| flow.remote.port()),
        started_at_unix_ns: nanoseconds(begun.at.since_unix_epoch()),
        duration_ns: nanoseconds(begun.lasted()),
        termination: (&Termination::Complete).into(),
        direction: if watched.sends { Direction::Up } else { Direction::Down },
        transfer: Vec::new(),
        verdicts: diagnosis.verdicts.iter().map(Verdict::from).collect(),
        states: StateShare::all(&diagnosis),
        goodput_bits_per_second: Some(diagnosis.goodput.bits_per_second()),
        bounds: diagnosis.bounds.iter().map(Bound::from).collect(),
        next: diagnosis.next.as_ref().map(Bound::from),
        figures: figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        path: None,
        unknown: vec![unknown("far"), unknown("path")],
        notes: Vec::new(),
    };
    let remote = watched.flows.first().map_or_else(String::new, |flow| flow.remote.ip().to_string());
    let surroundings = Surroundings::read(&remote, arguments.common.port, linerate_sys::net::Family::Any);
    let run = RunDocument {
        arguments: own_arguments(),
        verdict: document.verdicts.first().map_or_else(String::new, |verdict| verdict.text.clone()),
        figures: document::figures(&document),
        environment: RunEnvironment { near: Some(surroundings.finish(OwnTraffic::default())), far: None, lab: None },
        ..RunDocument::from(document.clone())
    };
    arguments.common.conclude(&document, &run);
    super::exit_of_verdict(Some(&diagnosis), false)
}
