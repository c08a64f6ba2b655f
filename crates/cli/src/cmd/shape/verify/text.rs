//! A proof as a person reads it.

use std::fmt::Write;

use linerate_model::latency_under_load::{Class, Uplift};
use linerate_model::schema::load::PhaseKind;
use linerate_model::schema::shape::VerificationOutcome;
use linerate_model::statistics::Signed;
use linerate_model::throughput::Flow;
use linerate_report::text::wrapped;
use linerate_report::throughput_text::Style;
use linerate_shape::verify::margin::Found;
use linerate_shape::verify::{DelayRow, Family, Figure, Finding, Place, RateRow, Verification};
use linerate_units::{BitRate, display};

use super::super::plan_text::with_signs_of;
use super::document::confidence;
use super::find_rate::{self, added_of};
use super::trees::both;
use super::{Searched, Step, VerifyOutcome};

/// The widest that lines are, unless the terminal is narrower.
const WIDEST: usize = 100;
/// Columns of the tables: what it is, and each number.
const NAME: usize = 26;
const NUMBER: usize = 11;
/// The lines of a paragraph below its first one begin here at most.
const INDENT: usize = 7;

/// Everything: what was found in the end comes first.
pub(crate) fn text(outcome: &VerifyOutcome, style: Style) -> String {
    let mut page = Page { text: String::new(), style };
    page.paragraph("", &sentence(outcome), true);
    if let Some(searched) = &outcome.search {
        search(&mut page, searched);
    }
    if let Some(proof) = &outcome.proof {
        let judged = &proof.verification;
        delays(&mut page, &judged.delays);
        rates(&mut page, &judged.rates);
        findings(&mut page, judged);
        if let Some(attribution) = proof.attribution().filter(|of| of.place != Place::None) {
            let words = format!("{} ({} confidence)", attribution.words, confidence(attribution.confidence));
            page.gap();
            page.paragraph("What is left: ", &words, false);
        }
        page.gap();
        page.paragraph("Confidence: ", &worth(outcome, judged), false);
    }
    for note in &outcome.notes {
        page.paragraph("Note: ", note, false);
    }
    page.finish()
}

/// The verdict in one sentence, or two.
pub(super) fn sentence(outcome: &VerifyOutcome) -> String {
    let after = if outcome.stands { "It stands." } else { "What was there before is back." };
    let said = match outcome.ended {
        VerificationOutcome::Passed => passed(outcome),
        VerificationOutcome::Failed => failed(outcome),
        VerificationOutcome::NoRate => no_rate(outcome),
        VerificationOutcome::Interrupted => "The proof was interrupted.".to_owned(),
    };
    format!("{said} {after}")
}

fn passed(outcome: &VerifyOutcome) -> String {
    let judged = outcome.proof.as_ref().map(|proof| &proof.verification);
    let change = judged.and_then(worst_change).map_or_else(String::new, |(without, with)| {
        format!(": load added up to {} to the delay, and adds {} now", time(without), time(with))
    });
    let grades = judged.and_then(|judged| judged.grades);
    let grades = grades.map_or_else(String::new, |(without, with)| {
        format!(" (grade {}, and {} with it)", without.letter(), with.letter())
    });
    let rates = outcome.search.as_ref().map_or_else(String::new, |searched| {
        let rates = both(|flow| searched.found.of(flow).and_then(highest));
        format!(" The highest rates that pass are {}.", find_rate::words(rates))
    });
    format!("The shaper works{change}{grades}.{rates}")
}

const fn highest(found: Found) -> Option<BitRate> {
    match found {
        Found::Highest { rate, .. } => Some(rate),
        Found::NothingPassed { .. } => None,
    }
}

fn failed(outcome: &VerifyOutcome) -> String {
    if let Some(reason) = &outcome.broke_off {
        return format!("The shaper cuts the path off: {reason}.");
    }
    let findings = outcome.proof.iter().flat_map(|proof| &proof.verification.findings);
    let first = findings.filter(|finding| finding.kind.fails()).map(|finding| finding.words.as_str()).next();
    format!("The shaper does not do what it should. {}", first.unwrap_or_default())
}

fn no_rate(outcome: &VerifyOutcome) -> String {
    let Some(searched) = &outcome.search else { return "No rate was good enough.".to_owned() };
    let said =
        [(Flow::Up, "up"), (Flow::Down, "down")].into_iter().filter_map(|(flow, word)| match searched.found.of(flow) {
            Some(Found::NothingPassed { tried, uplift }) => {
                Some(format!("at {} {word} load still added {}", display::rate(*tried), display::duration(*uplift)))
            }
            _ => None,
        });
    let said = said.collect::<Vec<_>>().join(", and ");
    format!(
        "No rate was good enough: {said}, where {} are asked. The delay is not of this line's queue, or something else loads \
         the line; a lower floor (--goodput-floor) lets lower rates be tried.",
        display::duration(searched.largest)
    )
}

/// What load adds to the worst of what applications feel, without and with.
fn worst_change(judged: &Verification) -> Option<(Signed<std::time::Duration>, Signed<std::time::Duration>)> {
    let felt = || judged.delays.iter().filter(|row| row.class.counts());
    let worst = |of: fn(&DelayRow) -> Option<Uplift>| {
        felt().filter_map(of).map(|uplift| uplift.p95).max_by_key(|added| added.as_nanos())
    };
    worst(|row| row.before).zip(worst(|row| row.after))
}

fn worth(outcome: &VerifyOutcome, judged: &Verification) -> String {
    let again = outcome.proof.as_ref().is_some_and(|proof| proof.evidence.before_again.is_some());
    let times = if again { "without, with, and without again" } else { "without and with, once each" };
    format!(
        "{}; measured {times}, {} for each load, in {}.",
        confidence(judged.confidence),
        display::duration(outcome.load_time),
        display::duration(outcome.lasted)
    )
}

fn time(time: Signed<std::time::Duration>) -> String {
    Figure::Time(time).words()
}

fn delays(page: &mut Page, rows: &[DelayRow]) {
    if rows.is_empty() {
        return;
    }
    page.gap();
    page.row("Delay that load adds", &["without", "", "with", "", ""], true);
    page.row("", &["median", "95 %", "median", "95 %", "grade"], true);
    for phase in [PhaseKind::Down, PhaseKind::Up, PhaseKind::Both] {
        let of: Vec<&DelayRow> = rows.iter().filter(|row| row.phase == phase).collect();
        if !of.is_empty() {
            page.row(phase_title(phase), &[], false);
        }
        let both_families = of.iter().any(|row| row.family == Family::Six);
        for row in of {
            let family = if both_families && row.family == Family::Six { " (IPv6)" } else { "" };
            let pair = |uplift: Option<Uplift>| uplift.map(|uplift| (time(uplift.median), time(uplift.p95)));
            let unknown = || ("-".to_owned(), "-".to_owned());
            let (without, with) = (pair(row.before).unwrap_or_else(unknown), pair(row.after).unwrap_or_else(unknown));
            let grade = row.grades.map(|(without, with)| format!("{} > {}", without.letter(), with.letter()));
            let grade = grade.unwrap_or_default();
            let numbers = [&*without.0, &without.1, &with.0, &with.1, &grade];
            page.row(&format!("  {}{family}", class_title(row.class)), &numbers, false);
        }
    }
}

const fn phase_title(phase: PhaseKind) -> &'static str {
    match phase {
        PhaseKind::Idle => "idle",
        PhaseKind::Down => "loaded down",
        PhaseKind::Up => "loaded up",
        PhaseKind::Both => "loaded both ways",
    }
}

const fn class_title(class: Class) -> &'static str {
    match class {
        Class::Icmp => "ICMP echo",
        Class::UdpBestEffort => "UDP best effort",
        Class::UdpExpedited => "UDP EF",
        Class::TcpInBand => "TCP in-band",
    }
}

fn rates(page: &mut Page, rows: &[RateRow]) {
    if rows.is_empty() {
        return;
    }
    page.gap();
    page.wide_row("Goodput", &["without", "with", "rate set", "of it"], true);
    for row in rows {
        let direction = if row.direction == Flow::Up { "up" } else { "down" };
        let name = if row.phase == PhaseKind::Both {
            format!("  {direction}, loaded both ways")
        } else {
            format!("  {direction}, loaded alone")
        };
        let rate = |rate: Option<BitRate>| rate.map_or("-".to_owned(), display::rate);
        let realised = row.realised.map_or("-".to_owned(), display::percent);
        page.wide_row(&name, &[&rate(row.before), &rate(row.after), &rate(row.set), &realised], false);
    }
}

fn findings(page: &mut Page, judged: &Verification) {
    if judged.findings.is_empty() {
        return;
    }
    page.gap();
    for finding in &judged.findings {
        let first = if finding.kind.fails() { "Fails: " } else { "Noted: " };
        page.paragraph(first, &format!("{}{}", finding.words, figures(finding)), false);
    }
}

/// The numbers that a finding rests on.
fn figures(finding: &Finding) -> String {
    let each = finding.figures.iter().map(|(name, figure)| format!("{} {}", name.replace('_', " "), figure.words()));
    let each = each.collect::<Vec<_>>().join(", ");
    if each.is_empty() { each } else { format!(" [{each}]") }
}

fn search(page: &mut Page, searched: &Searched) {
    page.gap();
    let how = if searched.measured { "measured without a shaper" } else { "as given" };
    let words = format!(
        "below {} ({how}), with at most {} added (95th percentile, best effort)",
        find_rate::words(searched.capacity),
        display::duration(searched.largest)
    );
    page.paragraph("Rates that were tried, ", &words, false);
    for step in &searched.steps {
        page.paragraph(&format!("{:>4}. ", step.number), &step_words(step), false);
    }
}

/// One step of a search: rates, what load added, what was carried, and what follows.
pub(super) fn step_words(step: &Step) -> String {
    let each = [(Flow::Up, "up"), (Flow::Down, "down")].into_iter().filter_map(|(flow, word)| {
        let rate = (*step.rates.of(flow))?;
        let added = display::duration(added_of(&step.added, flow));
        let carried =
            step.goodput.of(flow).map_or_else(String::new, |rate| format!(", carries {}", display::rate(rate)));
        let decision = if *step.good.of(flow) == Some(true) { "good" } else { "too late" };
        Some(format!("{word} {}: adds {added}{carried}: {decision}", display::rate(rate)))
    });
    each.collect::<Vec<_>>().join("; ")
}

/// Lines that fit.
struct Page {
    text: String,
    style: Style,
}

impl Page {
    fn width(&self) -> usize {
        usize::from(self.style.width.get()).min(WIDEST)
    }

    fn gap(&mut self) {
        self.text.push('\n');
    }

    /// Words after `first`, the following lines below its end.
    fn paragraph(&mut self, first: &str, words: &str, bold: bool) {
        let indent = first.chars().count().min(INDENT);
        let mut rest = words.trim();
        let mut before = first.to_owned();
        while !rest.is_empty() {
            let room = self.width().saturating_sub(before.chars().count()).max(16);
            let line = wrapped(rest, room).into_iter().next().unwrap_or_default();
            self.line(&format!("{before}{line}"), bold);
            rest = rest.get(line.len()..).unwrap_or_default().trim_start();
            before = format!("{:indent$}", "");
        }
    }

    fn row(&mut self, name: &str, cells: &[&str], bold: bool) {
        let mut line = format!("{name:<NAME$}");
        for (place, cell) in cells.iter().enumerate() {
            let width = if place == 4 { 9 } else { NUMBER };
            let _ = write!(line, "{cell:>width$}");
        }
        self.line(&line, bold);
    }

    fn wide_row(&mut self, name: &str, cells: &[&str], bold: bool) {
        let mut line = format!("{name:<NAME$}");
        for (place, cell) in cells.iter().enumerate() {
            let width = if place == 3 { 9 } else { 15 };
            let _ = write!(line, "{cell:>width$}");
        }
        self.line(&line, bold);
    }

    fn line(&mut self, line: &str, bold: bool) {
        let line = line.trim_end();
        if bold && self.style.colour {
            let _ = writeln!(self.text, "\x1b[1m{line}\x1b[0m");
        } else {
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    fn finish(self) -> String {
        with_signs_of(self.text, self.style)
    }
}
