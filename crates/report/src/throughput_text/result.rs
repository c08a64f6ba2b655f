//! Result of a series, for people: two lines per run as it ends, then what follows from all runs; in full on request.

use linerate_model::report::{CpuUtilization, TestTermination};
use linerate_model::summary::DurationDistribution;
use linerate_model::throughput::{ThroughputResult, ThroughputRun};
use linerate_units::{Port, SegmentCount, display};

use super::style::{TextColour, TextStyle};
use super::verdict::{self, whole_percent};
use super::{diagnosis, run_comparison};
use crate::escape;
use crate::presentation::interruption;

/// Lines of a summary, the runs and the heading included.
const MAX_LINES: usize = crate::text::MAX_SUMMARY_LINES;
/// Widths of the first two columns of a run's second line; runs are shown as they end, so the widths are fixed.
const COLUMNS: [usize; 2] = [34, 15];

/// Renders the whole result with all details; each line ends with a line feed.
#[must_use]
pub fn result_text(result: &ThroughputResult, style: TextStyle) -> String {
    let mut text = heading(&result.host, result.port, result.idle_rtt.as_ref(), style);
    let mut flow = None;
    for run in &result.runs {
        if flow.replace(run.direction) != Some(run.direction) {
            text.push('\n');
        }
        text.push_str(&run_details(run, result.idle_rtt.as_ref(), style));
    }
    text.push_str(&conclusion_details(result, style));
    text.push_str(&result.quic.as_ref().map_or_else(String::new, |quic| super::quic::quic_text(quic, style)));
    text
}

/// Renders the same in at most twelve lines, as [`heading`], [`run_summary`] and [`conclusion`] show it run by run.
#[must_use]
pub fn summary_text(result: &ThroughputResult, style: TextStyle) -> String {
    let mut text = heading(&result.host, result.port, result.idle_rtt.as_ref(), style);
    for run in &result.runs {
        text.push_str(&run_summary(run, result.idle_rtt.as_ref(), style));
    }
    let conclusion = conclusion(result, MAX_LINES.saturating_sub(text.lines().count()), style);
    let quic = result.quic.as_ref().map_or_else(String::new, |quic| super::quic::quic_text(quic, style));
    text + &conclusion + &quic
}

/// Renders the line above the runs.
#[must_use]
pub fn heading(host: &str, port: Port, idle: Option<&DurationDistribution>, style: TextStyle) -> String {
    let host = escape::line(host);
    let idle = match idle {
        Some(idle) => format!("idle RTT {}", style.duration(idle.median)),
        None => "idle RTT unknown".to_owned(),
    };
    let separator = style.pick("·", "-");
    format!("{} {separator} port {port} {separator} {idle}\n", style.paint(TextColour::Bold, &host))
}

/// Renders a run in two lines: its rate and limit, then round trip, retransmits and processors as far as they fit.
#[must_use]
pub fn run_summary(run: &ThroughputRun, idle: Option<&DurationDistribution>, style: TextStyle) -> String {
    let mut text = run_line(run, style);
    if run.rate().is_some() {
        let details = RunDetails::of(run, idle, style);
        push_line(&mut text, &style.paint(TextColour::Dim, &details.one_line(style)));
    }
    push_ending(&mut text, run, style);
    text
}

/// Rate and limit of a run, in one line without the name of the run.
#[must_use]
pub fn run_result(run: &ThroughputRun) -> String {
    let Some(measured) = run.rate() else { return "no data".to_owned() };
    format!("{}, {}", display::rate(measured.rate), verdict::verdict_text(run).0)
}

/// Renders a run with all its details.
#[must_use]
pub fn run_details(run: &ThroughputRun, idle: Option<&DurationDistribution>, style: TextStyle) -> String {
    let mut text = run_line(run, style);
    if run.rate().is_some() {
        RunDetails::of(run, idle, style).push(&mut text, style);
        push_diagnosis(&mut text, run, style);
    }
    push_ending(&mut text, run, style);
    text
}

/// Renders what follows from all runs, with the next command last, in at most `lines` lines.
#[must_use]
pub fn conclusion(result: &ThroughputResult, lines: usize, style: TextStyle) -> String {
    let next = run_comparison::next_command(result).map_or_else(String::new, |command| {
        format!("  {} {}\n", style.paint(TextColour::Dim, "Next:"), style.ascii(&command))
    });
    let limit = result.runs.iter().find_map(|run| diagnosis::sentence(run.diagnosis.as_ref()?));
    let notes = result.runs.iter().find_map(|run| run.diagnosis.as_ref().filter(|found| !found.notes.is_empty()));
    let notes = notes.map(|found| found.notes.clone()).unwrap_or_default();
    let sentences = limit.into_iter().chain(notes).chain(run_comparison::sentences(result, style));
    let mut text = String::new();
    for sentence in sentences {
        let mut wrapped = String::new();
        push_wrapped(&mut wrapped, &style.ascii(&escape::line(&sentence)), "  ", style, None);
        if text.lines().count() + wrapped.lines().count() + next.lines().count() > lines {
            break;
        }
        text.push_str(&wrapped);
    }
    text + &next
}

/// Renders what follows from all runs, in full.
#[must_use]
pub fn conclusion_details(result: &ThroughputResult, style: TextStyle) -> String {
    let mut text = String::new();
    let hint = run_comparison::diagnose_hint(result);
    let sentences: Vec<String> = run_comparison::sentences(result, style).into_iter().chain(hint).collect();
    if !sentences.is_empty() {
        text.push('\n');
    }
    for sentence in sentences {
        push_wrapped(&mut text, &sentence, "  ", style, None);
    }
    text
}

fn run_line(run: &ThroughputRun, style: TextStyle) -> String {
    let measured = run.rate();
    let rate = measured.map_or_else(|| "no data".to_owned(), |measured| display::rate(measured.rate));
    let label = style.run_label(run.direction, run.streams);
    let begun = format!("  {label:<17}  {rate:>11}   ");
    let rate = style.paint(TextColour::Bold, &format!("{rate:>11}"));
    let verdict = measured.map_or_else(String::new, |_| {
        let (verdict, paint) = verdict::verdict_text(run);
        // Without its figure it fits into a narrow terminal.
        let short = verdict.split([':', ',']).next().unwrap_or_default();
        let shown = if style.width.fits(&format!("{begun}{verdict}")) { verdict.as_str() } else { short };
        format!("   {}", style.paint(paint, shown))
    });
    let mut text = String::new();
    push_line(&mut text, &format!("  {label:<17}  {rate}{verdict}"));
    text
}

fn push_ending(text: &mut String, run: &ThroughputRun, style: TextStyle) {
    if let Some(ending) = ending(&run.report.termination) {
        push_wrapped(text, &ending, "    ", style, Some(TextColour::Red));
    }
}

/// Appends the sender's states and the limit.
fn push_diagnosis(text: &mut String, run: &ThroughputRun, style: TextStyle) {
    let Some(diagnosis) = &run.diagnosis else { return };
    if let Some(states) = diagnosis::states(diagnosis) {
        push_wrapped(text, &states, "    ", style, Some(TextColour::Dim));
    }
    if let Some(sentence) = diagnosis::sentence(diagnosis) {
        push_wrapped(text, &style.ascii(&escape::line(&sentence)), "    ", style, None);
    }
    for note in &diagnosis.notes {
        push_wrapped(text, &style.ascii(&escape::line(note)), "    ", style, Some(TextColour::Dim));
    }
}

/// Second line of a run. Unknown values are marked as unknown.
struct RunDetails {
    round_trip: String,
    retransmits: String,
    processors: String,
}

impl RunDetails {
    fn of(run: &ThroughputRun, idle: Option<&DurationDistribution>, style: TextStyle) -> Self {
        let retransmits = match run.retransmits() {
            Some(count) if count == SegmentCount::new(1) => "1 retransmit ".to_owned(),
            Some(count) => format!("{count} retransmits"),
            None => "retransmits unknown".to_owned(),
        };
        let cpu =
            |cpu: Option<CpuUtilization>| cpu.map_or_else(|| "unknown".to_owned(), |cpu| whole_percent(cpu.total));
        let (here, there) = (cpu(run.report.local_cpu), cpu(run.report.remote_cpu));
        Self { round_trip: round_trip(idle, run, style), retransmits, processors: format!("CPU {here}, peer {there}") }
    }

    /// All columns, aligned.
    fn columns(&self) -> String {
        let [first, second] = COLUMNS;
        format!("    {:<first$}  {:>second$}  {}", self.round_trip, self.retransmits, self.processors)
    }

    /// The columns that fit into one line.
    fn one_line(&self, style: TextStyle) -> String {
        let row = self.columns();
        if style.width.fits(&row) {
            return row;
        }
        let mut line = format!("    {}", self.round_trip);
        for piece in [self.retransmits.trim_end(), &self.processors] {
            let longer = format!("{line}, {piece}");
            if style.width.fits(&longer) {
                line = longer;
            }
        }
        line
    }

    /// Appends the columns, or several lines where they are too wide.
    fn push(&self, text: &mut String, style: TextStyle) {
        let row = self.columns();
        if style.width.fits(&row) {
            return push_line(text, &style.paint(TextColour::Dim, &row));
        }
        let mut line = format!("    {}", self.round_trip);
        for piece in [self.retransmits.trim_end(), &self.processors] {
            let longer = format!("{line}, {piece}");
            if style.width.fits(&longer) {
                line = longer;
            } else {
                push_line(text, &style.paint(TextColour::Dim, &line));
                line = format!("    {piece}");
            }
        }
        push_line(text, &style.paint(TextColour::Dim, &line));
    }
}

/// `RTT 18.5 → 18.9 ms, p95 45.2 ms`: idle, then the median and the 95th percentile under load.
fn round_trip(idle: Option<&DurationDistribution>, run: &ThroughputRun, style: TextStyle) -> String {
    let Some(loaded) = run.loaded_rtt() else { return "RTT under load unknown".to_owned() };
    let median = style.duration(loaded.median);
    let p95 = style.duration(loaded.p95);
    let Some(idle) = idle else { return format!("RTT {median} loaded, p95 {p95}") };
    let idle = style.duration(idle.median);
    let unit = |time: &str| time.rsplit(' ').next().map(str::to_owned);
    let idle = match idle.rsplit_once(' ') {
        Some((number, shown)) if unit(&median).as_deref() == Some(shown) => number.to_owned(),
        _ => idle,
    };
    format!("RTT {idle} {} {median}, p95 {p95}", style.pick("→", "->"))
}

fn ending(termination: &TestTermination) -> Option<String> {
    match termination {
        TestTermination::Complete => None,
        TestTermination::Interrupted { signal } => {
            Some(format!("cut short: {}", escape::line(&interruption(signal.as_deref()))))
        }
        TestTermination::PeerTerminated => Some("cut short: the server was terminated".to_owned()),
        TestTermination::Failed { message } => Some(format!("failed: {}", escape::line(message))),
    }
}

pub(super) fn push_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

/// Appends `sentence` on lines that fit, each indented. A word that is longer than a line stays whole.
pub(super) fn push_wrapped(
    text: &mut String,
    sentence: &str,
    indent: &str,
    style: TextStyle,
    paint: Option<TextColour>,
) {
    let painted = |line: &str| paint.map_or_else(|| line.to_owned(), |paint| style.paint(paint, line));
    let mut line = indent.to_owned();
    for word in words_with_units(sentence) {
        let longer = if line == indent { format!("{line}{word}") } else { format!("{line} {word}") };
        if style.width.fits(&longer) || line == indent {
            line = longer;
        } else {
            push_line(text, &painted(&line));
            line = format!("{indent}{word}");
        }
    }
    push_line(text, &painted(&line));
}

/// Words of a sentence, with each number and its unit as one.
fn words_with_units(sentence: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in sentence.split(' ') {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', '.', ';', ':', ')']));
        match words.last_mut() {
            Some(number) if is_unit && number.ends_with(|last: char| last.is_ascii_digit()) => {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Units as `linerate-units` writes them.
const UNITS: [&str; 19] = [
    "%", "ns", "µs", "us", "ms", "s", "min", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "B", "kB", "MB", "GB",
    "KiB", "MiB", "GiB",
];
