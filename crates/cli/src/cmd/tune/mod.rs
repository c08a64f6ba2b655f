//! `linerate tune`: changes the limiting setting on trial, and keeps it only if measurements confirm it.

mod arguments;
mod export;
mod known_path;
pub(crate) mod terminal;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use linerate_model::parameters::TestParameters;
use linerate_operate::diagnose::{RunStart, TransferRequest};
use linerate_operate::far::FarAddress;
use linerate_operate::tuning::document::{self, TuningResult};
use linerate_operate::tuning::session::{ComparisonMode, TuningEnd, TuningFailure, TuningOutcome, TuningSettings};
use linerate_operate::tuning::{HostOptions, agent, carry_out, notes, plan_of};
use linerate_rules::export::{HostPlan, PlanFormat};
use linerate_rules::judge::PairBudget;
use linerate_rules::tuning::HostEnd;
use linerate_sys::signals::InterruptSignals;
use linerate_sys::{host, terminal as sys_terminal};

pub(crate) use arguments::{TuneArguments, TuneOptions};

use arguments::TuneAction;
use terminal::TerminalInterface;

use crate::cmd::measurement::{MeasurementArguments, interrupts, own_arguments};
use crate::cmd::path::history_record;
use crate::cmd::{audit, diagnose, rollback};
use crate::console;
use crate::exit::ExitStatus;
use crate::recorder::{display_host, display_time};

/// Runs the command.
pub(crate) fn run(arguments: &TuneArguments) -> ExitStatus {
    match (&arguments.action, &arguments.host) {
        (Some(TuneAction::Undo { id }), _) => rollback::roll_back_changes(*id),
        (Some(TuneAction::Export { format, out, id }), _) => export::changes(format, out.as_deref(), *id),
        (None, Some(host)) => measured(arguments, host),
        (None, None) if arguments.rate.is_some() => known_path::run(arguments),
        (None, None) => run_audit(arguments),
    }
}

/// Without a path, audits this host only.
fn run_audit(arguments: &TuneArguments) -> ExitStatus {
    let exit = audit::run(&audit::AuditArguments::of_all(arguments.common.json, arguments.common.verbose));
    if !arguments.common.quiet && !arguments.common.json {
        console::note(
            "No path was given, so nothing was measured: `linerate tune HOST` measures one, --rate with --rtt computes \
             a plan for one.",
        );
    }
    exit
}

/// The far end of `linerate tune`: serves the linerate at the other end of the standard streams.
pub(crate) fn run_agent() -> ExitStatus {
    let failed = |text: String, needs_privilege: bool| {
        console::error(&text, None);
        if needs_privilege { ExitStatus::Privilege } else { ExitStatus::Unable }
    };
    let streams = InterruptSignals::install().map_err(io::Error::from).and_then(|interrupts| {
        let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        Ok((interrupts, input))
    });
    let (interrupts, mut input) = match streams {
        Ok(streams) => streams,
        Err(cause) => return failed(format!("opening the standard input: {cause}"), false),
    };
    match agent::run(&mut input, &mut io::stdout().lock(), interrupts) {
        Ok(left) => {
            for line in &left {
                console::note(line);
            }
            if left.is_empty() { ExitStatus::Success } else { ExitStatus::Missed }
        }
        Err(error) => failed(error.to_string(), error.needs_privilege()),
    }
}

fn measured(arguments: &TuneArguments, host: &str) -> ExitStatus {
    let parameters = match diagnose::parameters(&arguments.transfer, "tune") {
        Ok(parameters) => parameters,
        Err(exit) => return exit,
    };
    let stop = match interrupts() {
        Ok(stop) => stop,
        Err(exit) => return exit,
    };
    let (how, common) = (&arguments.options, &arguments.common);
    if arguments.export.is_none()
        && let Err(exit) = check_confirmation(how)
    {
        return exit;
    }
    let options = how.host_options(common);
    let options = HostOptions { dry_run: options.dry_run || arguments.export.is_some(), ..options };
    let surroundings = common.local_environment(host);
    let begun = RunStart::now();
    let settings = settings(how, common, host, parameters, &begun);
    let quiet = common.quiet || arguments.export.is_some();
    let total = settings.transfer.end.time_limit();
    let mut guide = TerminalInterface::new(quiet, how.yes, how.confirm_within, total, stop);
    let done = match carry_out(&options, &settings, &mut guide, stop) {
        Ok(done) => done,
        Err(failure) => return failed(&failure),
    };
    if let Some(format) = arguments.export {
        return export_plans(arguments, format, host, &done.outcome, &begun);
    }
    let asked = TransferRequest { host, port: common.port(), transfer: &arguments.transfer };
    let notes = notes(&done, &options, guide.has_no_terminal);
    let told = TuningResult {
        request: asked,
        role: how.role,
        seed: settings.seed,
        begun: &begun,
        outcome: &done.outcome,
        kept: &done.kept,
        far: how.far.as_ref(),
        notes,
    };
    let document = told.document();
    if let Some(failure) = &done.outcome.failure {
        console::error(&failure.text, None);
    }
    if done.outcome.before.is_some() {
        let run = document::run(&document, &done.outcome, surroundings, own_arguments());
        common.print_and_record(&run);
    } else if let Some(path) = done.outcome.interrupted_path.as_ref().filter(|path| path.document.rtt.best.is_some()) {
        common.print_and_record(&history_record(path, surroundings));
    }
    exit_of(&done.outcome, how)
}

/// Exports the plans of both hosts.
fn export_plans(
    arguments: &TuneArguments,
    format: &PlanFormat,
    host: &str,
    outcome: &TuningOutcome,
    begun: &RunStart,
) -> ExitStatus {
    if let Some(failure) = &outcome.failure {
        console::error(&failure.text, None);
        return exit_of(outcome, &arguments.options);
    }
    let plans = [(HostEnd::Near, host::host_name()), (HostEnd::Far, host.to_owned())]
        .map(|(end, host)| HostPlan { host, plan: plan_of(outcome, end, begun) });
    let evidence = format!("measured to {}", display_host(host));
    let heading = export::heading(display_time(begun.at), evidence);
    let exit = export::write(format, arguments.out.as_deref(), &plans, &heading);
    let has_other_end = outcome.ended != TuningEnd::Planned;
    if exit == ExitStatus::Success && has_other_end { exit_of(outcome, &arguments.options) } else { exit }
}

pub(crate) fn failed(failure: &TuningFailure) -> ExitStatus {
    console::error(&failure.text, None);
    exit_of_failure(failure).unwrap_or(ExitStatus::Unable)
}

/// Exit status of a failure that has one of its own.
fn exit_of_failure(failure: &TuningFailure) -> Option<ExitStatus> {
    match failure {
        TuningFailure { signal: Some(_), .. } => Some(ExitStatus::Partial),
        TuningFailure { needs_privilege: true, .. } => Some(ExitStatus::Privilege),
        _ => None,
    }
}

/// Fails before anything is measured where a confirmation is wanted that no one could give.
pub(crate) fn check_confirmation(how: &TuneOptions) -> Result<(), ExitStatus> {
    let is_wanted = how.yes && how.confirm_within.is_some() && !how.dry_run;
    if !is_wanted || sys_terminal::is_terminal(&io::stdin()) {
        return Ok(());
    }
    let text = "cannot ask whether to keep the changes: there is no terminal to confirm them at\nuse --yes without \
                --confirm-within to keep without asking what the measurements confirm";
    console::error(text, None);
    Err(ExitStatus::Unable)
}

/// Settings from the command line.
pub(crate) fn settings(
    how: &TuneOptions,
    common: &MeasurementArguments,
    host: &str,
    transfer: TestParameters,
    begun: &RunStart,
) -> TuningSettings {
    TuningSettings {
        goal: how.role,
        flows: how.flows,
        target: common.target(host),
        transfer,
        one_kernel: how.far.as_ref().is_some_and(FarAddress::is_this_kernel),
        work_around: how.work_around,
        budget: PairBudget { most: usize::from(how.max_pairs), ..PairBudget::default() },
        seed: how.seed.unwrap_or_else(|| begun.at.since_unix_epoch().subsec_nanos()).into(),
        path: None,
        measured: Vec::new(),
        compare: ComparisonMode::No,
    }
}

pub(crate) fn exit_of(outcome: &TuningOutcome, how: &TuneOptions) -> ExitStatus {
    match outcome.ended {
        TuningEnd::Kept | TuningEnd::NothingToDo => ExitStatus::Success,
        TuningEnd::Planned if how.dry_run => ExitStatus::Success,
        TuningEnd::Planned | TuningEnd::Declined | TuningEnd::NoWay => ExitStatus::Missed,
        TuningEnd::RolledBack | TuningEnd::NotConfirmed => ExitStatus::RolledBack,
        TuningEnd::BrokenOff => {
            let without_result = if outcome.before.is_none() { ExitStatus::Unable } else { ExitStatus::Partial };
            outcome.failure.as_ref().and_then(exit_of_failure).unwrap_or(without_result)
        }
    }
}
