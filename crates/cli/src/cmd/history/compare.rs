//! Comparison of two runs, figure by figure.

use std::fmt::Write as _;

use linerate_documents::run::{FigureComparison, FigureJudgement, FigureUnit, RunComparison, RunDocument};
use linerate_history::{HistoryError, RunId, RunReference, utc_time};
use linerate_report::escape;
use linerate_report::presentation::Quantity;
use linerate_report::throughput_text::TextStyle;
use linerate_units::WallTime;
use serde_json::json;

use super::list::truncate_text;
use crate::cmd::measurement::{DocumentKind, print_json};
use crate::console;
use crate::exit::ExitStatus;

pub(super) fn run(
    before: RunReference,
    after: RunReference,
    fail_on_worse: bool,
    json: bool,
) -> Result<ExitStatus, HistoryError> {
    let history = super::open_existing()?;
    let ids = [history.resolve(before)?, history.resolve(after)?];
    let runs = [history.get(ids[0])?, history.get(ids[1])?];
    let comparison = RunComparison::of(&runs[0], &runs[1]);
    if json {
        let of = |id: RunId, run: &RunDocument| json!({ "id": id.get(), "host": run.host, "kind": run.kind });
        let document = json!({
            "schema": 1,
            "before": of(ids[0], &runs[0]),
            "after": of(ids[1], &runs[1]),
            "confidence": 0.95,
            "comparison": comparison,
        });
        print_json(DocumentKind::Comparison, &document);
    } else {
        let style = console::data_style();
        let heading: String = ["before", "after"]
            .iter()
            .zip(ids.iter().zip(&runs))
            .map(|(when, (id, run))| run_line(when, *id, run))
            .collect();
        console::data(&format!("{heading}{}", text(&comparison, style)));
    }
    Ok(if fail_on_worse && comparison.is_worse() { ExitStatus::Missed } else { ExitStatus::Success })
}

fn run_line(when: &str, id: RunId, run: &RunDocument) -> String {
    let time = WallTime::from_unix(std::time::Duration::from_nanos(run.started_at_unix_ns));
    let (time, host) = (utc_time::format_minutes(time), escape::line(&run.host));
    format!("{when:<6}  run {id}, {time} UTC, {} {host}\n", super::arguments::command_name(run.kind))
}

fn text(comparison: &RunComparison, style: TextStyle) -> String {
    let mut text = format!("\n{}\n", summary(comparison));
    for figure in &comparison.figures {
        push_figure(&mut text, figure, style);
    }
    for (names, when) in [(&comparison.only_before, "first"), (&comparison.only_after, "second")] {
        if !names.is_empty() {
            let _ = writeln!(text, "\nOnly in the {when} run: {}.", escape::line(&names.join(", ")));
        }
    }
    push_environment(&mut text, comparison, style);
    text
}

/// Summary such as `2 better, 1 worse, 4 equal within the 95 % confidence, 1 undetermined`.
fn summary(comparison: &RunComparison) -> String {
    let parts: Vec<String> = [
        (FigureJudgement::Better, "better"),
        (FigureJudgement::Worse, "worse"),
        (FigureJudgement::Different, "different"),
        (FigureJudgement::Equal, "equal within the 95 % confidence"),
        (FigureJudgement::CannotTell, "undetermined"),
    ]
    .into_iter()
    .map(|(judgement, label)| (comparison.figures.iter().filter(|figure| figure.judgement == judgement).count(), label))
    .filter(|(count, _)| *count > 0)
    .map(|(count, label)| format!("{count} {label}"))
    .collect();
    if parts.is_empty() {
        return "The two runs have no figure in common.".to_owned();
    }
    format!("Figures: {}.", parts.join(", "))
}

fn push_figure(text: &mut String, figure: &FigureComparison, style: TextStyle) {
    let (label, colour) = match figure.judgement {
        FigureJudgement::Better => ("better", "32"),
        FigureJudgement::Worse => ("worse", "31"),
        FigureJudgement::Different => ("different", "33"),
        FigureJudgement::Equal => ("equal within the confidence", "2"),
        FigureJudgement::CannotTell => ("undetermined", "2"),
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
