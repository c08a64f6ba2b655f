//! What limits a transfer, and what that rests on.

use linerate_model::schema::diagnose::{DiagnoseDocument, Verdict};

use super::path;
use crate::presentation::{Badge, Cell, Presentation, Quantity, Table, Tone};

pub(super) fn complete(presentation: &mut Presentation<'_>, document: &DiagnoseDocument) {
    presentation.badge = document.verdicts.first().map(badge);
    let tables = [evidence(document), advice(document), states(document), bounds(document), others(document)];
    presentation.tables.extend(tables.into_iter().flatten());
    if let Some(path) = &document.path {
        presentation.tables.extend(path::of_directions(path));
        presentation.notes.extend(path.notes.iter().cloned());
    }
    let reasons = document.unknown.iter().map(|unknown| format!("{}: {}.", unknown.key, unknown.reason));
    presentation.notes.extend(document.notes.iter().cloned().chain(reasons));
}

fn badge(verdict: &Verdict) -> Badge {
    let tone = match verdict.place.as_str() {
        "nowhere" => Tone::Good,
        "network" | "unknown" => Tone::Fair,
        _ => Tone::Bad,
    };
    Badge { text: verdict.cause.clone(), meaning: format!("limit ({} confidence)", verdict.confidence), tone }
}

/// The first verdict's figures.
pub(super) fn evidence(document: &DiagnoseDocument) -> Option<Table> {
    let first = document.verdicts.first()?;
    let mut table = Table::new("evidence", "What the verdict rests on", &["Figure", "Value"]);
    for line in &first.evidence {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        table.row(name, vec![Cell::text(value)]);
    }
    table.filled()
}

fn advice(document: &DiagnoseDocument) -> Option<Table> {
    let first = document.verdicts.first()?;
    let mut table = Table::new("advice", "What to do", &["", "Advice"]);
    for (number, text) in first.advice.iter().enumerate() {
        table.row(format!("{}", number + 1), vec![Cell::text(text)]);
    }
    table.filled()
}

fn states(document: &DiagnoseDocument) -> Option<Table> {
    let mut table = Table::new("states", "What the sender was doing", &["Doing", "Share"]);
    for state in &document.states {
        table.row(state.state.replace('_', " "), vec![Cell::Value(Quantity::share(state.share))]);
    }
    table.filled()
}

fn bounds(document: &DiagnoseDocument) -> Option<Table> {
    let mut table = Table::new("bounds", "What each resource allows at most", &["Resource", "Goodput", "Because"]);
    for bound in &document.bounds {
        table.row(
            bound.name.clone(),
            vec![Cell::Value(Quantity::bits_per_second(bound.bits_per_second)), Cell::text(&bound.arithmetic)],
        );
    }
    if let Some(next) = &document.next {
        let rate = Quantity::bits_per_second(next.bits_per_second).shown();
        table.note = Some(format!("Without the first verdict's cause, {} would come next, at {rate}.", next.name));
    }
    table.filled()
}

/// What else shows.
fn others(document: &DiagnoseDocument) -> Option<Table> {
    let mut table = Table::new("others", "What also shows", &["Cause", "Confidence", "Figures"]);
    for verdict in document.verdicts.iter().skip(1) {
        table.row(verdict.cause.clone(), vec![Cell::text(&verdict.confidence), Cell::text(&verdict.text)]);
    }
    table.filled()
}
