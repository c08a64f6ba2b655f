//! A path that somebody knows: what it needs of this host, without a measurement.

use std::collections::BTreeSet;
use std::time::Duration;

use linerate_change::{Guard, Kept, Store};
use linerate_model::change::{Group, Plan};
use linerate_model::report::Termination;
use linerate_model::schema::{nanoseconds, tune};
use linerate_rules::export::Heading;
use linerate_rules::tuning::{End, Host, Inputs, Proposal, propose};
use linerate_sys::host_access::RealHost;
use linerate_sys::process::own_program;
use linerate_sys::signals::Interrupts;
use linerate_sys::{facts, terminal};
use linerate_units::display;

use super::arguments::TuneArguments;
use super::guide::{AtTerminal, plan_lines, say};
use super::near::Near;
use super::party::{Party, PartyError};
use super::{document, keeping};
use crate::cmd::diagnose::document::Begun;
use crate::cmd::measurement::{interrupts, print_json};
use crate::console;
use crate::exit::Exit;

/// A plan that was not measured is taken back unless somebody confirms it within this time.
const CONFIRMATION: Duration = Duration::from_secs(60);

/// Beyond that, the watchdog leaves this much time.
const PATIENCE: Duration = Duration::from_secs(30);

/// Computes, shows, and applies where that was asked for.
pub(super) fn run(arguments: &TuneArguments) -> Exit {
    let begun = Begun::now();
    let proposal = propose(&inputs(arguments));
    if let Some(format) = arguments.how.export {
        console::data(&format.export(&proposal.plan(End::Near, None, begun.at), &heading(&begun, String::new())));
        return Exit::Success;
    }
    if arguments.apply && !proposal.is_empty() {
        return apply(arguments, &begun, &proposal);
    }
    show(arguments, &begun, &proposal, &[]);
    Exit::Success
}

fn inputs(arguments: &TuneArguments) -> Inputs {
    let near = Host::of_facts(&facts::read());
    let (rate, round_trip) = (arguments.rate.unwrap_or_default(), arguments.rtt.unwrap_or_default());
    let mut inputs = Inputs::given(arguments.how.role, near, None, rate, round_trip);
    inputs.flows = arguments.how.flows;
    inputs
}

/// The head of what is exported.
pub(super) fn heading(begun: &Begun, evidence: String) -> Heading {
    Heading {
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        date: linerate_sys::clock::format_utc(begun.at, "%Y-%m-%d %H:%M UTC"),
        evidence,
    }
}

fn show(arguments: &TuneArguments, begun: &Begun, proposal: &Proposal, kept: &[tune::KeptSet]) {
    if arguments.common.json {
        print_json(&planned(arguments, begun, proposal, kept));
        return;
    }
    let (rate, round_trip) = (arguments.rate.unwrap_or_default(), arguments.rtt.unwrap_or_default());
    let head = format!(
        "This host as {} for {} over {}:\n",
        arguments.how.role.name(),
        display::rate(rate),
        display::duration(round_trip)
    );
    let width = terminal::width().clamp(40, 100);
    let lines = plan_lines(proposal).into_iter().flat_map(|line| {
        let indent = line.indent;
        let wrapped = linerate_report::text::wrapped(&line.text, width - indent);
        wrapped.into_iter().map(move |text| format!("{:indent$}{text}\n", ""))
    });
    console::data(&core::iter::once(head).chain(lines).collect::<String>());
    if kept.is_empty() && !proposal.is_empty() {
        let end = "The far end needs the same: run this there, too. Nothing was touched: --apply puts it into effect on \
                   trial, --export prints it for another tool, and `linerate tune HOST` proves it.";
        console::data(&(linerate_report::text::wrapped(end.trim_end(), width).join("\n") + "\n"));
    }
}

/// The plan as a document.
fn planned(
    arguments: &TuneArguments,
    begun: &Begun,
    proposal: &Proposal,
    kept: &[tune::KeptSet],
) -> tune::TuneDocument {
    let outcome = match (proposal.is_empty(), kept.is_empty()) {
        (true, _) => tune::TuneOutcome::NothingToChange,
        (false, true) => tune::TuneOutcome::Planned,
        (false, false) => tune::TuneOutcome::Kept,
    };
    tune::TuneDocument {
        schema: tune::SCHEMA,
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        host: String::new(),
        port: arguments.common.port.get(),
        started_at_unix_ns: nanoseconds(begun.at.since_unix_epoch()),
        duration_ns: nanoseconds(begun.lasted()),
        termination: (&Termination::Complete).into(),
        role: arguments.how.role.name().to_owned(),
        transfer: Vec::new(),
        outcome,
        sentence: "Computed for a path that was given, not measured.".to_owned(),
        before: None,
        rounds: vec![document::planned(proposal)],
        after: None,
        effects: Vec::new(),
        contributions: Vec::new(),
        kept: kept.to_vec(),
        unknown: Vec::new(),
        notes: Vec::new(),
    }
}

/// Puts the plan into effect, and takes it back unless a person confirms.
fn apply(arguments: &TuneArguments, begun: &Begun, proposal: &Proposal) -> Exit {
    let stop = match interrupts() {
        Ok(stop) => stop,
        Err(exit) => return exit,
    };
    if !arguments.how.yes && !terminal::is_terminal(&std::io::stdin()) {
        let text = "trying a plan that nothing was measured for: there is no terminal to ask at whether to keep it\n--yes \
                    keeps it without asking";
        console::error(text, None);
        return Exit::Unable;
    }
    if !arguments.common.json {
        for line in plan_lines(proposal) {
            say(&line.text, line.indent);
        }
    }
    let within = arguments.how.confirm_within.unwrap_or(CONFIRMATION);
    let plan = proposal.plan(End::Near, None, begun.at);
    match carry_out(arguments, &plan, within, stop) {
        Ok(Some(kept)) => {
            let set = document::kept_set(End::Near, &kept, None);
            if arguments.common.json {
                print_json(&planned(arguments, begun, proposal, &[set]));
            } else {
                console::data(&in_force(&set));
            }
            Exit::Success
        }
        Ok(None) => {
            console::note("taken back: nothing was changed");
            Exit::RolledBack
        }
        Err(error) => {
            console::error(&error.to_string(), None);
            if error.needs_privilege() { Exit::Privilege } else { Exit::Unable }
        }
    }
}

/// What stays, in lines.
fn in_force(set: &tune::KeptSet) -> String {
    let file = set
        .file
        .as_ref()
        .map_or_else(|| "kept in no file: it holds until the next boot".to_owned(), |file| format!("kept in {file}"));
    let first = format!("in force as change set {}; to undo: {}", set.id, set.undo);
    let warnings = set.warnings.iter().map(|warning| format!("warning: {warning}"));
    [first, file].into_iter().chain(warnings).map(|line| line + "\n").collect()
}

fn carry_out(
    arguments: &TuneArguments,
    plan: &Plan,
    within: Duration,
    stop: Interrupts,
) -> Result<Option<Kept>, PartyError> {
    let (store, host) = (Store::from_environment()?, RealHost);
    let mut near = Near::new(&store, &host, Guard::Program(own_program()?));
    let left = near.begin(plan, "linerate tune, computed for a given path", within + PATIENCE)?;
    for text in &left {
        console::note(text);
    }
    let groups: BTreeSet<Group> = plan.changes.iter().map(|change| change.group).collect();
    for group in groups {
        near.apply(group)?;
    }
    let mut guide = AtTerminal::new(false, arguments.how.yes, Some(within), None, stop);
    if !(arguments.how.yes || guide.asks_to_keep(within)) {
        let left = near.roll_back("not confirmed")?;
        for text in &left {
            console::note(text);
        }
        return Ok(None);
    }
    near.keep(&keeping::keep(plan, "computed, not measured", arguments.how.until_reboot)).map(Some)
}
