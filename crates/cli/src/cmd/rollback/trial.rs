//! The hidden command that carries out a plan and waits: what `linerate tune` does without the measurements, so that tests
//! can kill it.

use std::time::Duration;

use linerate_change::{ChangeError, Guard, Keep, Options, Store, Trial, recover};
use linerate_model::change::Plan;
use linerate_model::schema::change::PlanDocument;
use linerate_sys::host_access::RealHost;
use linerate_sys::poll::{self, Interest};
use linerate_sys::process::own_program;
use linerate_sys::signals::Interrupts;

use super::arguments::TrialArguments;
use crate::console;
use crate::exit::Exit;

/// Does what was asked for.
pub(crate) fn run(arguments: &TrialArguments) -> Exit {
    let read = std::fs::read(&arguments.plan).map_err(|cause| cause.to_string());
    let parsed = read.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|cause| cause.to_string()));
    let plan = parsed.and_then(|document: PlanDocument| Plan::try_from(&document).map_err(|cause| cause.to_string()));
    match plan {
        Ok(plan) => carry_out(arguments, &plan).unwrap_or_else(|error| super::failed(&error)),
        Err(cause) => {
            console::error(&format!("reading the plan {}: {cause}", arguments.plan.display()), None);
            Exit::Unable
        }
    }
}

fn carry_out(arguments: &TrialArguments, plan: &Plan) -> Result<Exit, ChangeError> {
    let interrupts = Interrupts::install()?;
    let (store, host) = (Store::from_environment()?, RealHost);
    recover(&store, &host)?;
    let options = Options {
        purpose: "a plan from a file".to_owned(),
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        guard: Guard::Program(own_program()?),
        time_limit: arguments.time_limit,
    };
    let mut trial = Trial::begin(&store, &host, plan, &options)?;
    for outcome in trial.apply(|_| true)? {
        console::data(&format!("{}: {:?}\n", outcome.change.target, outcome.written));
    }
    console::data(&format!("applied {}\n", trial.id()));
    let was_interrupted = wait(interrupts, arguments.hold)?;
    if let Some(file) = arguments.keep_in.as_ref().filter(|_| !was_interrupted) {
        let kept = trial.keep(&Keep { file: Some(file.clone()), evidence: String::new(), warnings: Vec::new() })?;
        console::data(&format!("kept {}\n", kept.id));
        return Ok(Exit::Success);
    }
    let reason = if was_interrupted { "interrupted by a signal" } else { "not to be kept" };
    let report = trial.roll_back(reason);
    Ok(super::exit_of(&[report]))
}

fn wait(interrupts: Interrupts, time: Duration) -> Result<bool, ChangeError> {
    Ok(poll::wait_for(&interrupts, Interest::READ, Some(time))?)
}
