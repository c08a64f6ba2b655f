//! What a person sees while a host is tuned, and is asked.

use std::io;
use std::time::Duration;

use linerate_engine::diagnose::DiagnoseEvent;
use linerate_model::event::Event;
use linerate_rules::judge::{Decision, Measurement, Pair};
use linerate_rules::tuning::{Proposal, Proposed};
use linerate_sys::poll::{self, PollItem};
use linerate_sys::signals::Interrupts;
use linerate_sys::{clock, terminal};
use linerate_units::{ByteCount, display};

use super::course::{Consent, CourseEvent, Effort, Guide, Seen, Tried};
use crate::cmd::diagnose::Progress;
use crate::cmd::measurement::LiveLine;
use crate::console;

/// The widest that lines for a person are, unless the terminal is narrower.
const WIDEST: usize = 100;

/// At the terminal.
pub(crate) struct AtTerminal {
    quiet: bool,
    yes: bool,
    confirm_within: Option<Duration>,
    stop: Interrupts,
    /// How long a diagnosed transfer takes.
    total: Option<Duration>,
    diagnosis: Option<Progress>,
    live: LiveLine,
    rates: Vec<f64>,
    pair: (usize, bool),
    /// Whether the person was there to be asked, and what was answered: `None` when there was nobody.
    pub(crate) nobody_to_ask: bool,
}

impl AtTerminal {
    pub(crate) fn new(
        quiet: bool,
        yes: bool,
        confirm_within: Option<Duration>,
        total: Option<Duration>,
        stop: Interrupts,
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
            nobody_to_ask: false,
        }
    }

    /// Lines for the person, unless they are not wanted.
    fn say(&self, text: &str) {
        if !self.quiet {
            self.live.clear();
            say(text, 0);
        }
    }

    fn say_below(&self, text: &str) {
        if !self.quiet {
            self.live.clear();
            say(text, 4);
        }
    }

    fn transfer(&mut self, event: &DiagnoseEvent<'_>) {
        let DiagnoseEvent::Transfer(Event::Interval(interval)) = event else { return };
        let moved: ByteCount = interval.streams.iter().map(|stream| stream.bytes).sum();
        let rate = moved.rate_over(interval.length());
        self.rates.push(rate.bits_per_second());
        let (number, with) = self.pair;
        let which = if with { "with" } else { "without" };
        self.live.show(&format!("pair {number}, {which:<8} {}", display::rate(rate)), &self.rates);
    }

    fn pairs(&mut self, pairs: &[Pair]) {
        let Some(pair) = pairs.last() else { return };
        let fault = pair.fault().map_or_else(String::new, |fault| format!(" (does not count: {fault})"));
        self.say_below(&format!(
            "pair {}: {} without, {} with{fault}",
            pairs.len(),
            measured(&pair.before),
            measured(&pair.after)
        ));
    }

    fn seen(&self, seen: &Seen) {
        let Some(first) = seen.diagnosis.verdicts.first() else { return };
        self.say(&format!("{} ({} confidence): {}", first.cause.title(), first.confidence.name(), first.text));
    }

    /// Whether the person wants to keep what is in force.
    pub(crate) fn asks_to_keep(&mut self, within: Duration) -> bool {
        let question = format!("Keep it? Without a yes within {} it is taken back. [y/N] ", display::duration(within));
        self.answer(&question, Some(within)).unwrap_or(false)
    }

    /// What a person answers within a time: `None` when there is nobody to ask.
    fn answer(&mut self, question: &str, within: Option<Duration>) -> Option<bool> {
        let input = io::stdin();
        if !terminal::is_terminal(&input) {
            self.nobody_to_ask = true;
            return None;
        }
        self.live.clear();
        console::ask(question);
        let deadline = within.map(|time| clock::monotonic_now() + time);
        let left = || deadline.map(|deadline| deadline - clock::monotonic_now());
        let ready = {
            let stop = self.stop;
            let mut items = [PollItem::new(&input, poll::Interest::READ), PollItem::new(&stop, poll::Interest::READ)];
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

impl Guide for AtTerminal {
    fn event(&mut self, event: CourseEvent<'_>) {
        match event {
            CourseEvent::Diagnosing(event) => {
                let (quiet, total) = (self.quiet, self.total);
                self.diagnosis.get_or_insert_with(|| Progress::new(quiet, total)).event(event);
            }
            CourseEvent::Diagnosed(seen) => {
                if let Some(progress) = self.diagnosis.take() {
                    progress.finish();
                }
                self.seen(seen);
            }
            CourseEvent::Proposed(proposal) => {
                // What is proposed is shown when it comes to asking.
                for refusal in proposal.refusals.iter().filter(|_| proposal.is_empty()) {
                    self.say(&refusal.text);
                }
            }
            CourseEvent::Trying { group, proposal } => {
                let changes = proposal.changes.iter().filter(|one| one.change.group == group);
                self.say(&format!("Trying {group}: {}", changes.map(in_short).collect::<Vec<_>>().join("; ")));
            }
            CourseEvent::Transfer(event) => self.transfer(event),
            CourseEvent::Measured { pair, with } => {
                self.rates.clear();
                self.pair = if with { (pair + 1, false) } else { (pair, true) };
            }
            CourseEvent::Pairs { pairs, .. } => self.pairs(pairs),
            CourseEvent::Judged(tried) => {
                self.pair = (1, false);
                self.say(&tried.judgement.sentence);
            }
            CourseEvent::Note(text) => self.say(&text),
        }
    }

    fn consents(&mut self, _: &Seen, proposal: &Proposal, effort: &Effort) -> Consent {
        if !self.quiet || !self.yes {
            for line in plan_lines(proposal) {
                say(&line.text, line.indent);
            }
            say(&cost(effort), 0);
        }
        if self.yes {
            return Consent::Yes;
        }
        match self.answer("Try it? Nothing stays that does not help. [y/N] ", None) {
            Some(true) => Consent::Yes,
            Some(false) => Consent::No,
            None => Consent::Nobody,
        }
    }

    fn confirms(&mut self, trials: &[Tried]) -> bool {
        let Some(within) = self.confirm_within else { return true };
        if !trials.iter().any(|tried| tried.judgement.decision == Decision::Keep) {
            return true;
        }
        self.asks_to_keep(within)
    }
}

fn measured(one: &Measurement) -> String {
    let time = one.round_trip_p95.map_or_else(String::new, |time| format!(" at {}", display::duration(time)));
    format!("{}{time}", display::rate(one.goodput))
}

/// A change in one line.
fn in_short(one: &Proposed) -> String {
    format!("{} {} = {}", one.end.name(), one.change.target, one.change.to)
}

/// A line of a plan.
pub(crate) struct Line {
    pub(crate) indent: usize,
    pub(crate) text: String,
}

/// A plan as a person reads it before anything is touched.
pub(crate) fn plan_lines(proposal: &Proposal) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = |indent, text: String| lines.push(Line { indent, text });
    for one in &proposal.changes {
        let change = &one.change;
        let from = change.from.as_deref().map_or_else(String::new, |from| format!(" (now {from})"));
        line(2, format!("{} host, {}: {} = {}{from}", one.end.name(), change.group, change.target, change.to));
        line(6, change.reason.text.clone());
        if let Some(arithmetic) = &change.reason.arithmetic {
            line(6, arithmetic.clone());
        }
        if !change.reason.risk.is_empty() {
            line(6, format!("risk: {}", change.reason.risk));
        }
    }
    for refusal in &proposal.refusals {
        line(2, format!("not: {}", refusal.text));
    }
    lines
}

/// What a proof takes.
fn cost(effort: &Effort) -> String {
    let (least, most) = effort.time;
    let bytes = effort.bytes.map_or_else(String::new, |bytes| format!(" and at most {}", display::size(bytes)));
    format!("The proof takes {} to {}{bytes}.", about(least), about(most))
}

/// A time to the minute, or to ten seconds where it is short.
pub(crate) fn about(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 100 { format!("{} s", seconds.div_ceil(10) * 10) } else { format!("{} min", seconds.div_ceil(60)) }
}

/// Writes a paragraph to the person.
pub(crate) fn say(text: &str, indent: usize) {
    let width = terminal::width().min(WIDEST).saturating_sub(indent).max(20);
    for line in linerate_report::text::wrapped(text, width) {
        console::note(&format!("{:indent$}{line}", ""));
    }
}
