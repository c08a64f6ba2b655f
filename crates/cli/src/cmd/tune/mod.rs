//! `linerate tune`: changes the one thing that limits, on trial, and keeps it only if the measurements say so.

mod agent;
mod arguments;
pub(crate) mod course;
pub(crate) mod document;
mod export;
mod far;
mod given;
pub(crate) mod guide;
mod host_document;
mod keeping;
mod measure;
mod near;
mod party;
mod protocol;
#[cfg(test)]
mod scratch;

use linerate_change::{Guard, Keep, Store};
use linerate_model::change::Plan;
use linerate_model::parameters::TestParameters;
use linerate_rules::judge::{Budget, Decision};
use linerate_rules::tuning::End;
use linerate_sys::host_access::RealHost;
use linerate_sys::process::own_program;
use linerate_sys::signals::Interrupts;

pub(crate) use agent::run as run_agent;
pub(crate) use arguments::{HowArguments, TuneArguments};

use arguments::TuneAction;
use course::{Compare, Course, CourseOutcome, Ended, Failure, Guide, Settings};
use document::Told;
use far::Far;
use guide::AtTerminal;
use near::Near;
use party::Party;

use crate::cmd::diagnose::document::{Asked, Begun};
use crate::cmd::measurement::{MeasurementArguments, interrupts};
use crate::cmd::{audit, diagnose, rollback};
use crate::console;
use crate::exit::Exit;

/// Does what was asked for.
pub(crate) fn run(arguments: &TuneArguments) -> Exit {
    match (&arguments.action, &arguments.host) {
        (Some(TuneAction::Undo { id }), _) => rollback::undo(*id),
        (Some(TuneAction::Export { format, id }), _) => export::run(format, *id),
        (None, Some(host)) => measured(arguments, host),
        (None, None) if arguments.rate.is_some() => given::run(arguments),
        (None, None) => only_audit(arguments),
    }
}

/// Nothing is known of a path: what is wrong with this host whatever the path is.
fn only_audit(arguments: &TuneArguments) -> Exit {
    let exit = audit::run(&audit::AuditArguments::of_all(arguments.common.json));
    if !arguments.common.quiet && !arguments.common.json {
        console::note(
            "No path was given, so nothing was measured: `linerate tune HOST` measures one, --rate with --rtt computes for \
             one.",
        );
    }
    exit
}

fn measured(arguments: &TuneArguments, host: &str) -> Exit {
    let parameters = match diagnose::parameters(&arguments.transfer, "tune") {
        Ok(parameters) => parameters,
        Err(exit) => return exit,
    };
    let stop = match interrupts() {
        Ok(stop) => stop,
        Err(exit) => return exit,
    };
    let (how, common) = (&arguments.how, &arguments.common);
    let surroundings = common.surroundings(host);
    let begun = Begun::now();
    let settings = settings(how, common, host, parameters, &begun);
    let quiet = common.quiet || how.export.is_some();
    let total = settings.transfer.end.time_limit();
    let mut guide = AtTerminal::new(quiet, how.yes, how.confirm_within, total, stop);
    let done = match carry_out(how, &settings, &mut guide, stop) {
        Ok(done) => done,
        Err(failure) => return failed(&failure),
    };
    if let Some(format) = how.export {
        let plan = plan_of(&done.outcome, End::Near, &begun);
        console::data(&format.export(&plan, &given::heading(&begun, format!("measured to {host}"))));
        return exit_of(&done.outcome, how);
    }
    let asked = Asked { host, port: common.port, transfer: &arguments.transfer };
    let notes = notes(&done, how, guide.nobody_to_ask);
    let told = Told {
        asked,
        role: how.role.name(),
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
        let run = document::run(&document, &done.outcome, surroundings);
        common.conclude(&document, &run);
    }
    exit_of(&done.outcome, how)
}

pub(crate) fn failed(failure: &Failure) -> Exit {
    console::error(&failure.text, None);
    if failure.needs_privilege { Exit::Privilege } else { Exit::Unable }
}

/// From the command line.
pub(crate) fn settings(
    how: &HowArguments,
    common: &MeasurementArguments,
    host: &str,
    transfer: TestParameters,
    begun: &Begun,
) -> Settings {
    Settings {
        goal: how.role,
        flows: how.flows,
        target: common.target(host),
        transfer,
        one_kernel: how.far.as_ref().is_some_and(far::FarAddress::is_this_kernel),
        work_around: how.work_around,
        budget: Budget { most: usize::from(how.max_pairs), ..Budget::default() },
        seed: begun.at.since_unix_epoch().subsec_nanos().into(),
        path: None,
        measured: Vec::new(),
        compare: Compare::No,
    }
}

/// A course that came to its end, and what stays.
pub(crate) struct Done {
    pub(crate) outcome: CourseOutcome,
    pub(crate) kept: Vec<(End, linerate_change::Kept)>,
}

/// Opens both ends, runs the course, and keeps what has earned it.
pub(crate) fn carry_out(
    how: &HowArguments,
    settings: &Settings,
    guide: &mut dyn Guide,
    stop: Interrupts,
) -> Result<Done, Failure> {
    let store = Store::from_environment().map_err(party::PartyError::from)?;
    let host = RealHost;
    let program = own_program().map_err(party::PartyError::from)?;
    let mut near = Near::new(&store, &host, Guard::Program(program));
    let mut far = match &how.far {
        Some(address) => Some(Far::start(address, &how.far_program)?),
        None => None,
    };
    let far: Option<&mut dyn Party> = far.as_mut().map(|far| far as &mut dyn Party);
    let dry_run = how.dry_run || how.export.is_some();
    let mut course = Course::new(settings, &mut near, far, guide, stop, dry_run);
    let mut outcome = course.run();
    let mut kept = Vec::new();
    if outcome.ended == Ended::Kept {
        let keep = |end| keep_of(&outcome, end, how);
        match course.keep(&keep) {
            Ok(sets) => kept = sets,
            Err(failure) => {
                outcome.left = course.roll_back("it could not be kept");
                outcome.ended = Ended::BrokenOff;
                outcome.failure = Some(failure);
            }
        }
    }
    Ok(Done { outcome, kept })
}

/// How what is in force at this end is kept.
fn keep_of(outcome: &CourseOutcome, end: End, how: &HowArguments) -> Keep {
    let tried = outcome.rounds.iter().flat_map(|round| &round.tried);
    let kept: Vec<_> = tried.filter(|tried| tried.judgement.decision == Decision::Keep).collect();
    let sentences: Vec<&str> = kept.iter().map(|tried| tried.judgement.sentence.as_str()).collect();
    let changes = kept.iter().flat_map(|tried| &tried.changes).filter(|one| one.end == end);
    let made_at = linerate_sys::clock::realtime_now();
    let plan = Plan { made_at, changes: changes.map(|one| one.change.clone()).collect() };
    let keep = keeping::keep(&plan, sentences.join(" ").trim_end_matches('.'), how.until_reboot);
    // The files that were looked at are this host's.
    if end == End::Far { Keep { warnings: Vec::new(), ..keep } } else { keep }
}

/// Everything that was proposed for an end, the latest last.
fn plan_of(outcome: &CourseOutcome, end: End, begun: &Begun) -> Plan {
    let changes = outcome.rounds.iter().flat_map(|round| round.proposal.of(end, None)).cloned();
    Plan { made_at: begun.at, changes: changes.collect() }
}

/// What a reader should know.
pub(crate) fn notes(done: &Done, how: &HowArguments, nobody_to_ask: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let last = done.outcome.rounds.last();
    let far = last.is_some_and(|round| !round.proposal.of(End::Far, None).is_empty());
    if done.outcome.ended == Ended::Planned && far && how.far.is_none() {
        notes.push(
            "Part of the plan is for the far host, which linerate changes only over your own ssh: --far ssh:USER@HOST, or run \
             `linerate tune` there."
                .to_owned(),
        );
    }
    if nobody_to_ask {
        notes.push("Nothing was touched, as there was no terminal to ask at: --yes goes on without asking.".to_owned());
    }
    notes
}

pub(crate) fn exit_of(outcome: &CourseOutcome, how: &HowArguments) -> Exit {
    match outcome.ended {
        Ended::Kept | Ended::NothingToDo => Exit::Success,
        Ended::Planned if how.dry_run || how.export.is_some() => Exit::Success,
        Ended::Planned | Ended::Declined | Ended::NoWay => Exit::Missed,
        Ended::RolledBack | Ended::NotConfirmed => Exit::RolledBack,
        Ended::BrokenOff => match &outcome.failure {
            Some(failure) if failure.needs_privilege => Exit::Privilege,
            _ if outcome.before.is_none() => Exit::Unable,
            _ => Exit::Partial,
        },
    }
}
