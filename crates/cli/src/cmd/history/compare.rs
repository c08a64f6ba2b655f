//! Two runs, figure by figure.

use std::fmt::Write as _;

use linerate_history::{HistoryError, RunId, RunReference, moment};
use linerate_model::schema::run::{FigureComparison, Judgement, RunComparison, RunDocument, Unit};
use linerate_report::escape;
use linerate_report::presentation::Quantity;
use linerate_report::throughput_text::Style;
use linerate_units::WallTime;
use serde_json::json;

use super::list::shortened;
use crate::console;
use crate::exit::Exit;

pub(super) fn run(
    before: RunReference,
    after: RunReference,
    fail_on_worse: bool,
    json: bool,
) -> Result<Exit, HistoryError> {
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
        console::data(&format!("{document:#}\n"));
    } else {
        let style = console::data_style();
        let heading: String = ["before", "after"]
            .iter()
            .zip(ids.iter().zip(&runs))
            .map(|(when, (id, run))| line_of(when, *id, run))
            .collect();
        console::data(&format!("{heading}{}", text(&comparison, style)));
    }
    Ok(if fail_on_worse && comparison.is_worse() { Exit::Missed } else { Exit::Success })
}

fn line_of(when: &str, id: RunId, run: &RunDocument) -> String {
    let time = WallTime::from_unix(std::time::Duration::from_nanos(run.started_at_unix_ns));
    let (time, host) = (moment::to_the_minute(time), escape::line(&run.host));
    format!("{when:<6}  run {id}, {time} UTC, {} {host}\n", super::arguments::command_of(run.kind))
}

fn text(comparison: &RunComparison, style: Style) -> String {
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

/// `2 better, 1 worse, 4 equal within the 95 % confidence, 1 that cannot be told`.
fn summary(comparison: &RunComparison) -> String {
    let parts: Vec<String> = [
        (Judgement::Better, "better"),
        (Judgement::Worse, "worse"),
        (Judgement::Different, "different"),
        (Judgement::Equal, "equal within the 95 % confidence"),
        (Judgement::CannotTell, "that cannot be told"),
    ]
    .into_iter()
    .map(|(judgement, words)| (comparison.figures.iter().filter(|figure| figure.judgement == judgement).count(), words))
    .filter(|(count, _)| *count > 0)
    .map(|(count, words)| format!("{count} {words}"))
    .collect();
    if parts.is_empty() {
        return "The two runs have no figure in common.".to_owned();
    }
    format!("Figures: {}.", parts.join(", "))
}

fn push_figure(text: &mut String, figure: &FigureComparison, style: Style) {
    let (words, colour) = match figure.judgement {
        Judgement::Better => ("better", "32"),
        Judgement::Worse => ("worse", "31"),
        Judgement::Different => ("different", "33"),
        Judgement::Equal => ("equal within the confidence", "2"),
        Judgement::CannotTell => ("cannot tell", "2"),
    };
    let words = if style.colour { format!("\x1b[{colour}m{words}\x1b[0m") } else { words.to_owned() };
    let _ = writeln!(text, "\n{}: {words}", escape::line(&figure.title));
    let (before, after) = (&figure.before, &figure.after);
    let rows = [
        ("before", before.value, before.low.zip(before.high), false),
        ("after", after.value, after.low.zip(after.high), false),
        ("difference", figure.difference, figure.low.zip(figure.high), true),
    ];
    for (name, value, interval, signed) in rows {
        let value = shown(value, figure.unit, signed, style);
        let interval = interval.map_or_else(String::new, |(low, high)| {
            let [low, high] = [low, high].map(|end| shown(Some(end), figure.unit, signed, style));
            format!("   ({low} to {high})")
        });
        let _ = writeln!(text, "  {name:<10}  {value:>13}{interval}");
    }
}

/// A value with its unit; with a plus where it is a positive difference.
pub(super) fn shown(value: Option<f64>, unit: Unit, signed: bool, style: Style) -> String {
    let text = value.map_or_else(
        || "unknown".to_owned(),
        |value| {
            let quantity = Quantity::new(value, unit);
            if signed { quantity.shown_with_sign() } else { quantity.shown() }
        },
    );
    if style.unicode { text } else { text.replace('µ', "u").replace('\u{202f}', " ") }
}

fn push_environment(text: &mut String, comparison: &RunComparison, style: Style) {
    if comparison.environment.is_empty() {
        text.push_str("\nNothing that is known was different around them.\n");
        return;
    }
    let (arrow, width) = (if style.unicode { "→" } else { "->" }, usize::from(style.width.get()));
    text.push_str("\nDifferent around them:\n");
    for difference in &comparison.environment {
        let [was, is] = [&difference.before, &difference.after].map(|value| match value {
            Some(value) if value.contains('\n') => "(a text of several lines)".to_owned(),
            Some(value) => escape::line(value).into_owned(),
            None => "unknown".to_owned(),
        });
        let line = format!("  {}: {was} {arrow} {is}", escape::line(&difference.key));
        let _ = writeln!(text, "{}", shortened(&line, width.max(40), style));
    }
}
