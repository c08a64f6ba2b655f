//! Tuning for a known path, without a measurement.

use std::time::Duration;

use linerate_documents::run::RunDocument;
use linerate_documents::tune;
use linerate_operate::diagnose::RunStart;
use linerate_operate::tuning::document;
use linerate_operate::tuning::given::{self, Confirmation, GivenPath, planned};
use linerate_report::text::MAX_SUMMARY_LINES;
use linerate_rules::export::HostPlan;
use linerate_rules::tuning::{HostEnd, TuningProposal};
use linerate_sys::{host, terminal};
use linerate_units::display;

use super::arguments::TuneArguments;
use super::export;
use super::terminal::{PlanLine, TerminalInterface, plan_lines, say};
use crate::cmd::measurement::{interrupts, own_arguments};
use crate::console;
use crate::exit::ExitStatus;

/// Time to confirm an unmeasured plan before it is rolled back.
const CONFIRMATION: Duration = Duration::from_secs(60);

/// Computes, shows, and applies where that was asked for.
pub(super) fn run(arguments: &TuneArguments) -> ExitStatus {
    let begun = RunStart::now();
    let proposal = path_of(arguments).propose();
    if let Some(format) = arguments.export {
        let (rate, round_trip) = (arguments.rate.unwrap_or_default(), arguments.rtt.unwrap_or_default());
        let evidence = format!(
            "computed for {} over {}, not measured; the far end needs its own",
            display::rate(rate),
            display::duration(round_trip)
        );
        let plan = HostPlan { host: host::host_name(), plan: proposal.plan(HostEnd::Near, None, begun.at) };
        return export::write(format, arguments.out.as_deref(), &[plan], &export::heading(begun.at, evidence));
    }
    if arguments.apply && !proposal.is_empty() {
        return apply(arguments, &begun, &proposal);
    }
    show(arguments, &begun, &proposal, &[]);
    ExitStatus::Success
}

fn path_of(arguments: &TuneArguments) -> GivenPath {
    let (rate, round_trip) = (arguments.rate.unwrap_or_default(), arguments.rtt.unwrap_or_default());
    GivenPath { goal: arguments.options.role, flows: arguments.options.flows, rate, round_trip }
}

fn run_of(
    arguments: &TuneArguments,
    begun: &RunStart,
    proposal: &TuningProposal,
    kept: &[tune::KeptSet],
) -> RunDocument {
    let document = planned(&path_of(arguments), arguments.common.port(), begun, proposal, kept);
    RunDocument { arguments: own_arguments(), ..document.into() }
}

fn show(arguments: &TuneArguments, begun: &RunStart, proposal: &TuningProposal, kept: &[tune::KeptSet]) {
    if arguments.common.json {
        arguments.common.show(&run_of(arguments, begun, proposal, kept));
        return;
    }
    let (rate, round_trip) = (arguments.rate.unwrap_or_default(), arguments.rtt.unwrap_or_default());
    let head = format!(
        "This host as {} for {} over {}:\n",
        arguments.options.role.name(),
        display::rate(rate),
        display::duration(round_trip)
    );
    if arguments.common.brief {
        let settings: Vec<String> = proposal.changes.iter().map(|one| one.change.target.to_string()).collect();
        return console::data(&format!("{} {}\n", head.trim_end(), settings.join(", ")));
    }
    let width = usize::from(console::data_style().width.get()).clamp(40, 100);
    let wrapped = |line: PlanLine| {
        let indent = line.indent;
        let lines = linerate_report::text::wrap_text(&line.text, width - indent);
        lines.iter().fold(String::new(), |text, line| text + &format!("{:indent$}{line}\n", ""))
    };
    let lines = plan_lines(proposal).into_iter();
    let text = if arguments.common.verbose {
        head + &lines.map(wrapped).collect::<String>()
    } else {
        summary(head, lines.filter(|line| line.indent <= PLAN_INDENT).map(wrapped))
    };
    console::data(&text);
    if kept.is_empty() && !proposal.is_empty() && !arguments.common.brief {
        let end = if arguments.common.verbose {
            "The far end needs the same: run this there, too. Nothing was changed: --apply puts the plan into effect on \
             trial, --export prints it for another tool, and `linerate tune HOST` verifies it."
        } else {
            "Nothing was changed. --apply tries it, --export prints it; -v has the reasons."
        };
        console::data(&(linerate_report::text::wrap_text(end, width).join("\n") + "\n"));
    }
}

/// Indentation of a change in a plan; its reasons are further right.
const PLAN_INDENT: usize = 2;

/// Heading and as many changes as a summary holds.
fn summary(head: String, changes: impl Iterator<Item = String>) -> String {
    /// Lines for the end of the summary.
    const RESERVED: usize = 3;
    let (mut text, mut left_out) = (head, 0);
    for change in changes {
        if text.lines().count() + change.lines().count() + RESERVED > MAX_SUMMARY_LINES {
            left_out += 1;
        } else {
            text.push_str(&change);
        }
    }
    if left_out > 0 { format!("{text}  and {left_out} more (-v)\n") } else { text }
}

/// Puts the plan into effect, and takes it back unless a person confirms.
fn apply(arguments: &TuneArguments, begun: &RunStart, proposal: &TuningProposal) -> ExitStatus {
    let stop = match interrupts() {
        Ok(stop) => stop,
        Err(exit) => return exit,
    };
    // A time limit for the confirmation is for a host that the change may cut off: --yes does not replace it.
    let asks = !arguments.options.yes || arguments.options.confirm_within.is_some();
    if asks && !terminal::is_terminal(&std::io::stdin()) {
        let text = "cannot try an unmeasured plan: there is no terminal to confirm it at\nuse --yes without \
                    --confirm-within to keep it without asking";
        console::error(text, None);
        return ExitStatus::Unable;
    }
    if !arguments.common.json {
        for line in plan_lines(proposal) {
            say(&line.text, line.indent);
        }
    }
    let within = arguments.options.confirm_within.unwrap_or(CONFIRMATION);
    let plan = proposal.plan(HostEnd::Near, None, begun.at);
    let terminal = TerminalInterface::new(false, arguments.options.yes, Some(within), None, stop);
    let mut guide = AtEnd { asks, terminal };
    match given::apply(&plan, within, arguments.options.until_reboot, &mut guide) {
        Ok(Some(kept)) => {
            let set = document::kept_set(HostEnd::Near, &kept, None);
            if arguments.common.json {
                arguments.common.show(&run_of(arguments, begun, proposal, &[set]));
            } else {
                console::data(&in_force(&set));
            }
            ExitStatus::Success
        }
        Ok(None) => {
            console::note("rolled back: nothing was changed");
            ExitStatus::RolledBack
        }
        Err(error) => {
            console::error(&error.to_string(), None);
            if error.needs_privilege() { ExitStatus::Privilege } else { ExitStatus::Unable }
        }
    }
}

/// Formats the kept changes.
fn in_force(set: &tune::KeptSet) -> String {
    let file = set
        .file
        .as_ref()
        .map_or_else(|| "not saved to a file: active until reboot".to_owned(), |file| format!("kept in {file}"));
    let first = format!("active as change set {}; to roll back: {}", set.id, set.undo);
    let warnings = set.warnings.iter().map(|warning| format!("warning: {warning}"));
    [first, file].into_iter().chain(warnings).map(|line| line + "\n").collect()
}

/// Asks at the terminal, unless that is not wanted.
struct AtEnd {
    asks: bool,
    terminal: TerminalInterface,
}

impl Confirmation for AtEnd {
    fn note(&mut self, text: &str) {
        console::note(text);
    }

    fn confirms(&mut self, within: Duration) -> bool {
        !self.asks || self.terminal.asks_to_keep(within)
    }
}
