//! Hidden command that carries out a plan and waits: `linerate tune` without the measurements, so that tests can kill
//! it.

use std::time::Duration;

use linerate_change::{ChangeError, ChangeStore, ChangeTrial, KeepOptions, RollbackGuard, TrialOptions, recover};
use linerate_model::change::ChangePlan;
use linerate_model::change::document::PlanDocument;
use linerate_model::json;
use linerate_sys::host_access::RealHost;
use linerate_sys::poll::{self, PollInterest};
use linerate_sys::process::own_program;
use linerate_sys::signals::InterruptSignals;

use super::arguments::TrialArguments;
use crate::console;
use crate::exit::ExitStatus;

/// Carries out the plan and waits.
pub(crate) fn run(arguments: &TrialArguments) -> ExitStatus {
    let read = std::fs::read(&arguments.plan).map_err(|cause| cause.to_string());
    let parsed = read.and_then(|bytes| json::from_slice(&bytes).map_err(|cause| cause.to_string()));
    let plan =
        parsed.and_then(|document: PlanDocument| ChangePlan::try_from(&document).map_err(|cause| cause.to_string()));
    match plan {
        Ok(plan) => execute(arguments, &plan).unwrap_or_else(|error| super::report_error(&error)),
        Err(cause) => {
            console::error(&format!("reading the plan {}: {cause}", arguments.plan.display()), None);
            ExitStatus::Unable
        }
    }
}

fn execute(arguments: &TrialArguments, plan: &ChangePlan) -> Result<ExitStatus, ChangeError> {
    let interrupts = InterruptSignals::install()?;
    let (store, host) = (ChangeStore::from_environment()?, RealHost);
    recover(&store, &host)?;
    let options = TrialOptions {
        purpose: "a plan from a file".to_owned(),
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        guard: RollbackGuard::Program(own_program()?),
        time_limit: arguments.time_limit,
    };
    let mut trial = ChangeTrial::begin(&store, &host, plan, &options)?;
    for outcome in trial.apply(|_| true)? {
        console::data(&format!("{}: {:?}\n", outcome.change.target, outcome.written));
    }
    console::data(&format!("applied {}\n", trial.id()));
    let was_interrupted = wait(interrupts, arguments.hold)?;
    if let Some(file) = arguments.keep_in.as_ref().filter(|_| !was_interrupted) {
        let kept =
            trial.keep(&KeepOptions { file: Some(file.clone()), evidence: String::new(), warnings: Vec::new() })?;
        console::data(&format!("kept {}\n", kept.id));
        return Ok(ExitStatus::Success);
    }
    let reason = if was_interrupted { "interrupted by a signal" } else { "not kept" };
    let report = trial.roll_back(reason);
    Ok(super::exit_of(&[report]))
}

fn wait(interrupts: InterruptSignals, time: Duration) -> Result<bool, ChangeError> {
    Ok(poll::wait_for(&interrupts, PollInterest::READ, Some(time))?)
}
