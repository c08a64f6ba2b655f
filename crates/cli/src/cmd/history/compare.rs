//! Comparison of runs, figure by figure.

use std::fmt::Write as _;

use linerate_documents::civil_time;
use linerate_documents::comparison::{self, ComparedRuns, ComparisonDocument};
use linerate_documents::run::{
    ComparisonBasis, FigureComparison, FigureJudgement, FigureUnit, RunComparison, RunDocument,
};
use linerate_history::{History, HistoryError, RunId, RunReferences};
use linerate_report::escape;
use linerate_report::presentation::{Quantity, comparison_note, judgement_label};
use linerate_report::throughput_text::TextStyle;
use linerate_units::WallTime;

use super::list::truncate_text;
use crate::cmd::measurement::{DocumentKind, print_json};
use crate::console;
use crate::exit::ExitStatus;

pub(super) fn run(
    before: &RunReferences,
    after: &RunReferences,
    fail_on_worse: bool,
    json: bool,
) -> Result<ExitStatus, HistoryError> {
    let history = super::open_existing()?;
    let sides = [read(&history, before)?, read(&history, after)?];
    let [earlier, later] = sides.each_ref().map(|side| side.iter().map(|(_, run)| run).collect::<Vec<_>>());
    let comparison = match RunComparison::of(&earlier, &later) {
        Ok(comparison) => comparison,
        Err(refusal) => {
            console::error(&escape::line(&refusal.to_string()), None);
            return Ok(ExitStatus::Unable);
        }
    };
    let is_worse = comparison.is_worse();
    if json {
        print_json(DocumentKind::Comparison, &document(&sides, comparison));
    } else {
        let style = console::data_style();
        let heading: String = ["before", "after"]
            .iter()
            .zip(&sides)
            .flat_map(|(when, side)| side.iter().map(move |(id, run)| run_line(when, *id, run)))
            .collect();
        console::data(&format!("{heading}{}", text(&comparison, style)));
    }
    Ok(if fail_on_worse && is_worse { ExitStatus::Missed } else { ExitStatus::Success })
}

fn document(sides: &[Vec<(RunId, RunDocument)>; 2], comparison: RunComparison) -> ComparisonDocument {
    let [before, after] = sides.each_ref().map(|side| compared_runs(side));
    ComparisonDocument { schema: comparison::SCHEMA, before, after, confidence: comparison::CONFIDENCE, comparison }
}

fn compared_runs(side: &[(RunId, RunDocument)]) -> ComparedRuns {
    let (last, run) = side.last().expect("sides without runs are refused");
    let ids = side.iter().map(|(id, _)| id.get()).collect();
    ComparedRuns { id: last.get(), ids, host: run.host.clone(), kind: run.kind }
}

/// Reads the runs of one side, each once.
fn read(history: &History, references: &RunReferences) -> Result<Vec<(RunId, RunDocument)>, HistoryError> {
    let mut side: Vec<(RunId, RunDocument)> = Vec::new();
    for reference in references.as_slice() {
        let id = history.resolve(*reference)?;
        if side.iter().all(|(other, _)| *other != id) {
            side.push((id, history.get(id)?));
        }
    }
    Ok(side)
}

fn run_line(when: &str, id: RunId, run: &RunDocument) -> String {
    let time = WallTime::from_unix(std::time::Duration::from_nanos(run.started_at_unix_ns));
    let (time, host) = (civil_time::format_minutes(time), escape::line(&run.host));
    format!("{when:<6}  run {id}, {time} UTC, {} {host}\n", run.kind.command_name())
}

fn text(comparison: &RunComparison, style: TextStyle) -> String {
    let mut text = format!("\n{}\n", summary(comparison));
    let width = usize::from(style.width.get()).clamp(40, 80);
    for line in linerate_report::text::wrap_text(comparison_note(comparison.basis), width) {
        let _ = writeln!(text, "{line}");
    }
    for figure in &comparison.figures {
        push_figure(&mut text, figure, comparison.basis, style);
    }
    for (names, when) in [(&comparison.only_before, "first"), (&comparison.only_after, "second")] {
        if !names.is_empty() {
            let _ = writeln!(text, "\nOnly in the {when} run: {}.", escape::line(&names.join(", ")));
        }
    }
    push_environment(&mut text, comparison, style);
    text
}

/// Summary such as `2 better, 1 worse, 4 equal, 1 undetermined`.
fn summary(comparison: &RunComparison) -> String {
    let parts: Vec<String> = [
        (FigureJudgement::Better, "better"),
        (FigureJudgement::Worse, "worse"),
        (FigureJudgement::Different, "different"),
        (FigureJudgement::Equal, "equal"),
        (FigureJudgement::CannotTell, "undetermined"),
    ]
    .into_iter()
    .map(|(judgement, label)| (comparison.figures.iter().filter(|figure| figure.judgement == judgement).count(), label))
    .filter(|(count, _)| *count > 0)
    .map(|(count, label)| format!("{count} {label}"))
    .collect();
    format!("Figures: {}.", parts.join(", "))
}

fn push_figure(text: &mut String, figure: &FigureComparison, basis: ComparisonBasis, style: TextStyle) {
    let label = judgement_label(figure.judgement, basis);
    let colour = match figure.judgement {
        FigureJudgement::Better => "32",
        FigureJudgement::Worse => "31",
        FigureJudgement::Different => "33",
        FigureJudgement::Equal | FigureJudgement::CannotTell => "2",
    };
    let label = if style.colour { format!("\x1b[{colour}m{label}\x1b[0m") } else { label.to_owned() };
    let _ = writeln!(text, "\n{}: {label}", escape::line(&figure.title));
    let (before, after) = (&figure.before, &figure.after);
    let rows = [
        ("before", before.value, before.low.zip(before.high), false),
        ("after", after.value, after.low.zip(after.high), false),
        ("difference", figure.difference, figure.low.zip(figure.high), true),
    ];
    for (name, value, interval, signed) in rows {
        let value = format_value(value, figure.unit, signed, style);
        let interval = interval.map_or_else(String::new, |(low, high)| {
            let [low, high] = [low, high].map(|end| format_value(Some(end), figure.unit, signed, style));
            format!("   ({low} to {high})")
        });
        let _ = writeln!(text, "  {name:<10}  {value:>13}{interval}");
    }
}

/// Value with its unit; with a plus if it is a positive difference.
pub(super) fn format_value(value: Option<f64>, unit: FigureUnit, signed: bool, style: TextStyle) -> String {
    let text = value.map_or_else(
        || "unknown".to_owned(),
        |value| {
            let quantity = Quantity::new(value, unit);
            if signed { quantity.signed_text() } else { quantity.display_text() }
        },
    );
    if style.unicode { text } else { text.replace('µ', "u").replace('\u{202f}', " ") }
}

fn push_environment(text: &mut String, comparison: &RunComparison, style: TextStyle) {
    if comparison.environment.is_empty() {
        text.push_str("\nNo known difference in their environments.\n");
        return;
    }
    let (arrow, width) = (if style.unicode { "→" } else { "->" }, usize::from(style.width.get()));
    text.push_str("\nDifferences in their environments:\n");
    for difference in &comparison.environment {
        let [was, is] = [&difference.before, &difference.after].map(|value| match value {
            Some(value) if value.contains('\n') => "(multi-line text)".to_owned(),
            Some(value) => escape::line(value).into_owned(),
            None => "unknown".to_owned(),
        });
        let line = format!("  {}: {was} {arrow} {is}", escape::line(&difference.key));
        let _ = writeln!(text, "{}", truncate_text(&line, width.max(40), style));
    }
}
