//! Text output of a verification.

use linerate_model::address_family::AddressFamily;
use linerate_model::direction::Direction;
use std::fmt::Write;

use linerate_analysis::latency_under_load::LatencyUplift;
use linerate_analysis::statistics::SignedDifference;
use linerate_model::load::PhaseKind;
use linerate_operate::shaping::verify::find_rate::{self, added_of};
use linerate_operate::shaping::verify::{RateSearchRecord, RateTrial, VerifyOutcome};
use linerate_report::text::wrap_text;
use linerate_report::throughput_text::TextStyle;
use linerate_shape::verify::{DelayOrigin, DelayRow, FindingFigure, RateRow, ShaperFinding, ShaperVerdict};
use linerate_units::{BitRate, display};

use crate::cmd::shape::plan_text::with_terminal_signs;

/// Maximum line width; less on a narrower terminal.
const MAX_WIDTH: usize = 100;
/// Widths of the table columns: name and numbers.
const NAME_WIDTH: usize = 26;
const NUMBER_WIDTH: usize = 11;
/// Most lines of the verdict in a summary.
const MAX_SENTENCE_LINES: usize = 3;
/// Maximum hanging indent of a paragraph.
const MAX_INDENT: usize = 7;

/// Renders everything, the verdict first.
pub(crate) fn text(outcome: &VerifyOutcome, style: TextStyle) -> String {
    let mut page = VerificationPage { text: String::new(), style };
    page.paragraph("", &outcome.sentence(), true);
    if let Some(searched) = &outcome.search {
        search(&mut page, searched);
    }
    if let Some(proof) = &outcome.result {
        let judged = &proof.verification;
        delays(&mut page, &judged.delays);
        rates(&mut page, &judged.rates);
        findings(&mut page, judged);
        if let Some(attribution) = proof.attribution().filter(|of| of.location != DelayOrigin::None) {
            let words = format!("{} ({} confidence)", attribution.text, attribution.confidence.name());
            page.gap();
            page.paragraph("Remaining delay: ", &words, false);
        }
        page.gap();
        page.paragraph("Confidence: ", &confidence_text(outcome, judged), false);
    }
    for note in &outcome.notes {
        page.paragraph("Note: ", note, false);
    }
    page.finish()
}

/// Renders the verdict, the delays and rates that decide it, and the first finding, in at most `most` lines.
pub(crate) fn summary(outcome: &VerifyOutcome, most: usize, style: TextStyle) -> String {
    let mut page = VerificationPage { text: String::new(), style };
    page.paragraph("", &outcome.sentence(), true);
    let mut lines: Vec<String> = page.text.lines().take(MAX_SENTENCE_LINES).map(str::to_owned).collect();
    let mut page = VerificationPage { text: String::new(), style };
    if let Some(result) = &outcome.result {
        let judged = &result.verification;
        page.summary_row("Added by load (95 %)", ["without", "with", "grade"], true);
        for phase in [PhaseKind::Down, PhaseKind::Up, PhaseKind::Both] {
            if let Some(row) = deciding(&judged.delays, phase) {
                let p95 = |uplift: Option<LatencyUplift>| uplift.map_or("-".to_owned(), |uplift| time(uplift.p95));
                let grade = row.grades.map(|(without, with)| format!("{} > {}", without.letter(), with.letter()));
                let cells = [&*p95(row.before), &p95(row.after), &grade.unwrap_or_default()];
                page.summary_row(&format!("  {}", phase_title(phase)), cells, false);
            }
        }
        for row in judged.rates.iter().filter(|row| row.phase != PhaseKind::Both) {
            let rate = |rate: Option<BitRate>| rate.map_or("-".to_owned(), display::rate);
            let name = if row.direction == Direction::Up { "Goodput up" } else { "Goodput down" };
            page.summary_row(name, [&*rate(row.before), &rate(row.after), ""], false);
        }
        let sentence = outcome.sentence();
        if let Some(finding) = judged.findings.iter().find(|finding| !sentence.contains(finding.words.as_str())) {
            let first = if finding.kind.fails() { "Fails: " } else { "Noted: " };
            page.paragraph(first, &finding.words, false);
        }
    }
    lines.extend(page.text.lines().map(str::to_owned));
    lines.truncate(most.saturating_sub(1));
    lines.push("-v has all classes of probes, findings and notes.".to_owned());
    with_terminal_signs(lines.join("\n") + "\n", style)
}

/// Delays of the class that decides the grade: the largest with the shaper.
fn deciding(rows: &[DelayRow], phase: PhaseKind) -> Option<&DelayRow> {
    let graded = rows.iter().filter(|row| row.phase == phase && row.grades.is_some());
    graded.max_by_key(|row| row.after.map(|uplift| (!uplift.p95.negative, uplift.p95.magnitude)))
}

fn confidence_text(outcome: &VerifyOutcome, judged: &ShaperVerdict) -> String {
    let again = outcome.result.as_ref().is_some_and(|proof| proof.evidence.before_again.is_some());
    let times = if again { "without, with, and without again" } else { "without and with, once each" };
    format!(
        "{}; measured {times}, {} for each load, in {}.",
        judged.confidence.name(),
        display::duration(outcome.load_time),
        display::duration(outcome.duration)
    )
}

fn time(time: SignedDifference<std::time::Duration>) -> String {
    FindingFigure::Time(time).display_text()
}

fn delays(page: &mut VerificationPage, rows: &[DelayRow]) {
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
        let both_families = of.iter().any(|row| row.family == AddressFamily::Ipv6);
        for row in of {
            let family = if both_families && row.family == AddressFamily::Ipv6 { " (IPv6)" } else { "" };
            let pair = |uplift: Option<LatencyUplift>| uplift.map(|uplift| (time(uplift.median), time(uplift.p95)));
            let unknown = || ("-".to_owned(), "-".to_owned());
            let (without, with) = (pair(row.before).unwrap_or_else(unknown), pair(row.after).unwrap_or_else(unknown));
            let grade = row.grades.map(|(without, with)| format!("{} > {}", without.letter(), with.letter()));
            let grade = grade.unwrap_or_default();
            let numbers = [&*without.0, &without.1, &with.0, &with.1, &grade];
            page.row(&format!("  {}{family}", row.class.title()), &numbers, false);
        }
    }
}

const fn phase_title(phase: PhaseKind) -> &'static str {
    match phase {
        PhaseKind::Idle => "idle",
        PhaseKind::Down => "loaded down",
        PhaseKind::Up => "loaded up",
        PhaseKind::Both => "both loaded",
    }
}

fn rates(page: &mut VerificationPage, rows: &[RateRow]) {
    if rows.is_empty() {
        return;
    }
    page.gap();
    page.wide_row("Goodput", &["without", "with", "rate set", "of it"], true);
    for row in rows {
        let direction = if row.direction == Direction::Up { "up" } else { "down" };
        let name = if row.phase == PhaseKind::Both {
            format!("  {direction}, both loaded")
        } else {
            format!("  {direction}, loaded alone")
        };
        let rate = |rate: Option<BitRate>| rate.map_or("-".to_owned(), display::rate);
        let realised = row.realised.map_or("-".to_owned(), display::percent);
        page.wide_row(&name, &[&rate(row.before), &rate(row.after), &rate(row.set), &realised], false);
    }
}

fn findings(page: &mut VerificationPage, judged: &ShaperVerdict) {
    if judged.findings.is_empty() {
        return;
    }
    page.gap();
    for finding in &judged.findings {
        let first = if finding.kind.fails() { "Fails: " } else { "Noted: " };
        page.paragraph(first, &format!("{}{}", finding.words, figures(finding)), false);
    }
}

/// Formats the figures of a finding.
fn figures(finding: &ShaperFinding) -> String {
    let each = finding
        .figures
        .iter()
        .map(|(name, figure)| format!("{} {}", name.name().replace('_', " "), figure.display_text()));
    let each = each.collect::<Vec<_>>().join(", ");
    if each.is_empty() { each } else { format!(" [{each}]") }
}

fn search(page: &mut VerificationPage, searched: &RateSearchRecord) {
    page.gap();
    let how = if searched.measured { "measured without a shaper" } else { "given" };
    let words = format!(
        "below {} ({how}), with at most {} added (95th percentile, best effort)",
        find_rate::words(searched.capacity),
        display::duration(searched.largest)
    );
    page.paragraph("Trials, ", &words, false);
    for step in &searched.steps {
        page.paragraph(&format!("{:>4}. ", step.number), &trial_text(step), false);
    }
}

/// Formats one trial: rates, added delay, goodput and decision.
pub(super) fn trial_text(step: &RateTrial) -> String {
    let each = [(Direction::Up, "up"), (Direction::Down, "down")].into_iter().filter_map(|(flow, word)| {
        let rate = (*step.rates.of(flow))?;
        let added = display::duration(added_of(&step.added, flow));
        let carried =
            step.goodput.of(flow).map_or_else(String::new, |rate| format!(", carries {}", display::rate(rate)));
        let decision = if *step.good.of(flow) == Some(true) { "passes" } else { "too late" };
        Some(format!("{word} {}: adds {added}{carried}: {decision}", display::rate(rate)))
    });
    each.collect::<Vec<_>>().join("; ")
}

/// Text fitted to the terminal.
struct VerificationPage {
    text: String,
    style: TextStyle,
}

impl VerificationPage {
    fn width(&self) -> usize {
        usize::from(self.style.width.get()).min(MAX_WIDTH)
    }

    fn gap(&mut self) {
        self.text.push('\n');
    }

    /// Paragraph after the label `first`, with a hanging indent.
    fn paragraph(&mut self, first: &str, words: &str, bold: bool) {
        let indent = first.chars().count().min(MAX_INDENT);
        let mut rest = words.trim();
        let mut before = first.to_owned();
        while !rest.is_empty() {
            let room = self.width().saturating_sub(before.chars().count()).max(16);
            let line = wrap_text(rest, room).into_iter().next().unwrap_or_default();
            self.line(&format!("{before}{line}"), bold);
            rest = rest.get(line.len()..).unwrap_or_default().trim_start();
            before = format!("{:indent$}", "");
        }
    }

    fn row(&mut self, name: &str, cells: &[&str], bold: bool) {
        let mut line = format!("{name:<NAME_WIDTH$}");
        for (place, cell) in cells.iter().enumerate() {
            let width = if place == 4 { 9 } else { NUMBER_WIDTH };
            let _ = write!(line, "{cell:>width$}");
        }
        self.line(&line, bold);
    }

    fn summary_row(&mut self, name: &str, [without, with, grade]: [&str; 3], bold: bool) {
        self.line(&format!("{name:<24}{without:>13}{with:>13}{grade:>10}"), bold);
    }

    fn wide_row(&mut self, name: &str, cells: &[&str], bold: bool) {
        let mut line = format!("{name:<NAME_WIDTH$}");
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
        with_terminal_signs(self.text, self.style)
    }
}
