//! Terminal user interface of a tuning session.

use std::io;
use std::time::Duration;

use linerate_documents::progress::{EventKind, ProgressEvent};
use linerate_engine::diagnose::DiagnoseEvent;
use linerate_model::event::TestEvent;
use linerate_operate::tuning::session::{
    DiagnosedTransfer, TrialConsent, TrialCost, TriedGroup, TuningEvent, TuningInterface,
};
use linerate_rules::judge::{MeasurementPair, TransferMeasurement, TrialDecision};
use linerate_rules::tuning::{ProposedHostChange, TuningProposal};
use linerate_sys::poll::{self, PollItem};
use linerate_sys::signals::InterruptSignals;
use linerate_sys::{clock, terminal};
use linerate_units::serde::nanoseconds;
use linerate_units::{ByteCount, display};

use crate::cmd::diagnose::DiagnoseProgressDisplay;
use crate::cmd::measurement::LiveLine;
use crate::console;
use crate::progress;

/// Maximum line width; less on a narrower terminal.
const WIDEST: usize = 100;

/// User interface at the terminal.
pub(crate) struct TerminalInterface {
    quiet: bool,
    yes: bool,
    confirm_within: Option<Duration>,
    stop: InterruptSignals,
    /// Duration of a diagnosed transfer.
    total: Option<Duration>,
    diagnosis: Option<DiagnoseProgressDisplay>,
    live: LiveLine,
    rates: Vec<f64>,
    pair: (usize, bool),
    /// True when there was no terminal to ask at.
    pub(crate) has_no_terminal: bool,
}

impl TerminalInterface {
    pub(crate) fn new(
        quiet: bool,
        yes: bool,
        confirm_within: Option<Duration>,
        total: Option<Duration>,
        stop: InterruptSignals,
    ) -> Self {
        Self {
            quiet,
            yes,
            confirm_within,
            stop,
            total,
            diagnosis: None,
            live: LiveLine::new(quiet),
            rates: Vec::new(),
            pair: (1, false),
            has_no_terminal: false,
        }
    }

    /// Prints text unless quiet.
    fn say(&self, text: &str) {
        progress::publish(ProgressEvent::with_text(EventKind::Note, text));
        if !self.quiet {
            self.live.clear();
            say(text, 0);
        }
    }

    fn say_below(&self, text: &str) {
        progress::publish(ProgressEvent::with_text(EventKind::Note, text));
        if !self.quiet {
            self.live.clear();
            say(text, 4);
        }
    }

    fn transfer(&mut self, event: &DiagnoseEvent<'_>) {
        let DiagnoseEvent::Transfer(TestEvent::Interval(interval)) = event else { return };
        progress::publish(progress::interval_sample(interval));
        let moved: ByteCount = interval.streams.iter().map(|stream| stream.bytes).sum();
        let rate = moved.rate_over(interval.length());
        self.rates.push(rate.bits_per_second());
        let (number, with) = self.pair;
        let which = if with { "with" } else { "without" };
        self.live.show(&format!("pair {number}, {which:<8} {}", display::rate(rate)), &self.rates);
    }

    fn pairs(&mut self, pairs: &[MeasurementPair]) {
        let Some(pair) = pairs.last() else { return };
        let fault = pair.fault.as_ref().map_or_else(String::new, |fault| format!(" (not counted: {fault})"));
        self.say_below(&format!(
            "pair {}: {} without, {} with{fault}",
            pairs.len(),
            measured(&pair.before),
            measured(&pair.after)
        ));
    }

    fn seen(&self, seen: &DiagnosedTransfer) {
        let Some(first) = seen.diagnosis.verdicts.first() else { return };
        self.say(&format!("{} ({} confidence): {}", first.cause.title(), first.confidence.name(), first.text));
    }

    /// Asks whether to keep the changes in effect.
    pub(crate) fn asks_to_keep(&mut self, within: Duration) -> bool {
        let question = format!("Keep it? Without a yes within {} it is rolled back. [y/N] ", display::duration(within));
        self.answer(&question, Some(within)).unwrap_or(false)
    }

    /// Asks a question with a time limit; `None` without a terminal.
    fn answer(&mut self, question: &str, within: Option<Duration>) -> Option<bool> {
        let input = io::stdin();
        if !terminal::is_terminal(&input) {
            self.has_no_terminal = true;
            return None;
        }
        self.live.clear();
        console::ask(question);
        let deadline = within.map(|time| clock::monotonic_now() + time);
        let left = || deadline.map(|deadline| deadline - clock::monotonic_now());
        let ready = {
            let stop = self.stop;
            let mut items =
                [PollItem::new(&input, poll::PollInterest::READ), PollItem::new(&stop, poll::PollInterest::READ)];
            poll::wait(&mut items, left()).is_ok() && items[0].is_readable() && !items[1].is_readable()
        };
        if !ready {
            console::note("");
            return Some(false);
        }
        let mut answer = String::new();
        input.read_line(&mut answer).ok()?;
        Some(matches!(answer.trim(), "y" | "Y" | "yes"))
    }
}

impl TuningInterface for TerminalInterface {
    fn event(&mut self, event: TuningEvent<'_>) {
        match event {
            TuningEvent::Diagnosing(event) => {
                let (quiet, total) = (self.quiet, self.total);
                self.diagnosis.get_or_insert_with(|| DiagnoseProgressDisplay::new(quiet, total)).event(event);
            }
            TuningEvent::Diagnosed(seen) => {
                if let Some(progress) = self.diagnosis.take() {
                    progress.finish();
                }
                self.seen(seen);
            }
            TuningEvent::Proposed(proposal) => {
                // Proposals are shown with the question.
                for refusal in proposal.refusals.iter().filter(|_| proposal.is_empty()) {
                    self.say(&refusal.text);
                }
            }
            TuningEvent::Trying { group, proposal } => {
                let changes = proposal.changes.iter().filter(|one| one.change.group == group);
                self.say(&format!("Trying {group}: {}", changes.map(in_short).collect::<Vec<_>>().join("; ")));
            }
            TuningEvent::Transfer(event) => self.transfer(event),
            TuningEvent::Measuring { pair, with } => {
                self.rates.clear();
                self.pair = (pair, with);
                let name = format!("pair {pair}, {}", if with { "with" } else { "without" });
                progress::publish(ProgressEvent::phase(name, self.total.map(nanoseconds)));
            }
            TuningEvent::Pairs { pairs, .. } => self.pairs(pairs),
            TuningEvent::Judged(tried) => self.say(&tried.judgement.sentence),
            TuningEvent::Note(text) => self.say(&text),
        }
    }

    fn consents(&mut self, _: &DiagnosedTransfer, proposal: &TuningProposal, effort: &TrialCost) -> TrialConsent {
        if !self.quiet || !self.yes {
            for line in plan_lines(proposal) {
                say(&line.text, line.indent);
            }
            say(&cost(effort), 0);
        }
        if self.yes {
            return TrialConsent::Yes;
        }
        match self.answer("Try it? Changes that do not help are rolled back. [y/N] ", None) {
            Some(true) => TrialConsent::Yes,
            Some(false) => TrialConsent::No,
            None => {
                // The summary has no notes.
                console::note("nothing was touched: no terminal to ask at (--yes goes on without asking)");
                TrialConsent::NoTerminal
            }
        }
    }

    fn confirms(&mut self, trials: &[TriedGroup]) -> bool {
        let Some(within) = self.confirm_within else { return true };
        if !trials.iter().any(|tried| tried.judgement.decision == TrialDecision::Keep) {
            return true;
        }
        self.asks_to_keep(within)
    }
}

fn measured(one: &TransferMeasurement) -> String {
    let time = one.round_trip_p95.map_or_else(String::new, |time| format!(" at {}", display::duration(time)));
    format!("{}{time}", display::rate(one.goodput))
}

/// Formats a change in one line.
fn in_short(one: &ProposedHostChange) -> String {
    format!("{} {} = {}", one.end.name(), one.change.target, one.change.to)
}

/// Line of a plan's text.
pub(crate) struct PlanLine {
    pub(crate) indent: usize,
    pub(crate) text: String,
}

/// Formats a plan for the user.
pub(crate) fn plan_lines(proposal: &TuningProposal) -> Vec<PlanLine> {
    let mut lines = Vec::new();
    let mut line = |indent, text: String| lines.push(PlanLine { indent, text });
    for one in &proposal.changes {
        let change = &one.change;
        let from = change.from.as_deref().map_or_else(String::new, |from| format!(" (now {from})"));
        line(2, format!("{} host, {}: {} = {}{from}", one.end.name(), change.group, change.target, change.to));
        line(6, change.reason.text.clone());
        if let Some(arithmetic) = &change.reason.arithmetic {
            line(6, arithmetic.clone());
        }
        line(6, format!("takes effect: {}", change.takes_effect.text()));
        if !change.reason.risk.is_empty() {
            line(6, format!("risk: {}", change.reason.risk));
        }
    }
    for refusal in &proposal.refusals {
        line(2, format!("not: {}", refusal.text));
    }
    lines
}

/// Formats the cost of a verification.
fn cost(effort: &TrialCost) -> String {
    let (least, most) = effort.time;
    let bytes = effort.bytes.map_or_else(String::new, |bytes| format!(" and at most {}", display::size(bytes)));
    format!("The verification takes {} to {}{bytes}.", about(least), about(most))
}

/// Formats a time in minutes, or in tens of seconds if short.
pub(crate) fn about(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 100 { format!("{} s", seconds.div_ceil(10) * 10) } else { format!("{} min", seconds.div_ceil(60)) }
}

/// Prints a paragraph.
pub(crate) fn say(text: &str, indent: usize) {
    let width = terminal::width().min(WIDEST).saturating_sub(indent).max(20);
    for line in linerate_report::text::wrap_text(text, width) {
        console::note(&format!("{:indent$}{line}", ""));
    }
}
