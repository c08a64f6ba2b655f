//! Result of a series, for people: two lines per run, its limit, then the comparison of the runs.

use linerate_model::report::{CpuUtilization, TestTermination};
use linerate_model::throughput::{ThroughputResult, ThroughputRun};
use linerate_units::{SegmentCount, display};

use super::style::{TextColour, TextStyle};
use super::verdict::{self, whole_percent};
use super::{diagnosis, run_comparison};
use crate::escape;

/// Renders the whole result, to be read in a few seconds; each line ends with a line feed.
#[must_use]
pub fn result_text(result: &ThroughputResult, style: TextStyle) -> String {
    let mut text = heading(result, style);
    let details: Vec<_> = result.runs.iter().map(|run| RunDetails::of(result, run, style)).collect();
    let columns = RunDetails::widths(&details);
    let mut flow = None;
    for (run, details) in result.runs.iter().zip(&details) {
        if flow.replace(run.direction) != Some(run.direction) {
            text.push('\n');
        }
        push_run(&mut text, run, details, columns, style);
    }
    let sentences = run_comparison::sentences(result, style);
    if !sentences.is_empty() {
        text.push('\n');
    }
    for sentence in sentences {
        push_wrapped(&mut text, &sentence, "  ", style, None);
    }
    text
}

fn heading(result: &ThroughputResult, style: TextStyle) -> String {
    let host = escape::line(&result.host);
    let idle = match &result.idle_rtt {
        Some(idle) => format!("idle RTT {}", style.duration(idle.median)),
        None => "idle RTT unknown".to_owned(),
    };
    let separator = style.pick("·", "-");
    format!("{} {separator} port {} {separator} {idle}\n", style.paint(TextColour::Bold, &host), result.port)
}

fn push_run(text: &mut String, run: &ThroughputRun, details: &RunDetails, columns: [usize; 2], style: TextStyle) {
    let measured = run.rate();
    let rate = measured.map_or_else(|| "no data".to_owned(), |measured| display::rate(measured.rate));
    let label = style.run_label(run.direction, run.streams);
    let rate = style.paint(TextColour::Bold, &format!("{rate:>11}"));
    let verdict = measured.map_or_else(String::new, |_| {
        let (verdict, paint) = verdict::verdict_text(run);
        format!("   {}", style.paint(paint, &verdict))
    });
    push_line(text, &format!("  {label:<17}  {rate}{verdict}"));
    if measured.is_some() {
        details.push(text, columns, style);
        push_diagnosis(text, run, style);
    }
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
}

/// Second line of a run. Unknown values are marked as unknown.
struct RunDetails {
    round_trip: String,
    retransmits: String,
    processors: String,
}

impl RunDetails {
    fn of(result: &ThroughputResult, run: &ThroughputRun, style: TextStyle) -> Self {
        let retransmits = match run.retransmits() {
            Some(count) if count == SegmentCount::new(1) => "1 retransmit ".to_owned(),
            Some(count) => format!("{count} retransmits"),
            None => "retransmits unknown".to_owned(),
        };
        let cpu =
            |cpu: Option<CpuUtilization>| cpu.map_or_else(|| "unknown".to_owned(), |cpu| whole_percent(cpu.total));
        let (here, there) = (cpu(run.report.local_cpu), cpu(run.report.remote_cpu));
        Self {
            round_trip: round_trip(result, run, style),
            retransmits,
            processors: format!("CPU {here}, peer {there}"),
        }
    }

    /// Widths of the first two columns.
    fn widths(all: &[Self]) -> [usize; 2] {
        let widest =
            |column: fn(&Self) -> &String| all.iter().map(|row| column(row).chars().count()).max().unwrap_or(0);
        [widest(|row| &row.round_trip), widest(|row| &row.retransmits)]
    }

    /// Appends the columns, or several lines where they are too wide.
    fn push(&self, text: &mut String, [first, second]: [usize; 2], style: TextStyle) {
        let row = format!("    {:<first$}   {:>second$}   {}", self.round_trip, self.retransmits, self.processors);
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
fn round_trip(result: &ThroughputResult, run: &ThroughputRun, style: TextStyle) -> String {
    let Some(loaded) = run.loaded_rtt() else { return "RTT under load unknown".to_owned() };
    let median = style.duration(loaded.median);
    let p95 = style.duration(loaded.p95);
    let Some(idle) = &result.idle_rtt else { return format!("RTT {median} loaded, p95 {p95}") };
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
            let signal = signal.as_deref().unwrap_or("a signal");
            Some(format!("cut short: interrupted by {}", escape::line(signal)))
        }
        TestTermination::PeerTerminated => Some("cut short: the server was terminated".to_owned()),
        TestTermination::Failed { message } => Some(format!("failed: {}", escape::line(message))),
    }
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

/// Appends `sentence` on lines that fit, each indented. A word that is longer than a line stays whole.
fn push_wrapped(text: &mut String, sentence: &str, indent: &str, style: TextStyle, paint: Option<TextColour>) {
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
