//! What limited, what was proposed against it, what was tried and measured, and what is in force now.

use linerate_model::change::{Change, Group, TakesEffect, Target};
use linerate_model::schema::change::{ChangeDocument, TargetDocument};
use linerate_model::schema::diagnose::DiagnoseDocument;
use linerate_model::schema::run::Unit;
use linerate_model::schema::tune::{Effect, KeptSet, Round, Trial, TuneDocument, TuneOutcome};

use super::{add_notes, diagnose, path};
use crate::presentation::reasons::Reasons;
use crate::presentation::{Badge, Bars, BarsRow, Cell, Chart, Plot, Presentation, Quantity, Table, Tone};

const NO_INTERVAL: &str = "there is an interval only for one trial with enough pairs that count";
const NO_PAIR: &str = "no pair of measurements counts";

pub(super) fn complete(presentation: &mut Presentation<'_>, document: &TuneDocument) {
    presentation.badge = Some(badge(document.outcome));
    presentation.charts.extend(charts(document));
    let effects = effects("effects", "Before and after", &document.effects, Reasons::of(&document.unknown));
    presentation.tables.extend(effects.filled());
    presentation.tables.extend(tables(document));
    let measured = document.before.as_ref().and_then(|before| before.path.as_ref());
    presentation.tables.extend(measured.and_then(path::of_directions));
    presentation.notes.extend(measured.into_iter().flat_map(|path| path.notes.iter().cloned()));
    add_notes(presentation, &document.notes, &document.unknown);
}

/// The outcome as a mark.
pub(super) fn badge(outcome: TuneOutcome) -> Badge {
    let tone = match outcome {
        TuneOutcome::Kept | TuneOutcome::NothingToChange => Tone::Good,
        TuneOutcome::RolledBack | TuneOutcome::Planned | TuneOutcome::Declined => Tone::Fair,
        TuneOutcome::BrokenOff => Tone::Bad,
    };
    Badge { text: outcome.title().to_owned(), meaning: "what became of the changes".to_owned(), tone }
}

/// Everything in the order in which it was done, without the comparison of first and last.
pub(super) fn tables(document: &TuneDocument) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    tables.extend(limits(document));
    tables.extend(document.before.as_deref().and_then(diagnose::evidence));
    for (index, round) in document.rounds.iter().enumerate() {
        let one_of_many = (document.rounds.len() > 1).then_some(index + 1);
        tables.extend(plan(round, one_of_many));
        tables.extend(reasons(round, one_of_many));
    }
    let shown = trials(document).map(|(number, round, trial)| trial_table(round, trial, number));
    tables.extend(shown);
    tables.extend(contributions(document));
    tables.extend(kept(document));
    tables.extend(refusals(document));
    tables
}

/// One chart for each trial: the goodput of its measurements, in the order in which they were made.
pub(super) fn charts<'a>(document: &TuneDocument) -> Vec<Chart<'a>> {
    let measured = trials(document).filter(|(_, _, trial)| !trial.pairs.is_empty());
    measured.map(|(number, _, trial)| chart(trial, number)).collect()
}

/// The trials of all rounds, numbered from 1, each with its round.
fn trials(document: &TuneDocument) -> impl Iterator<Item = (usize, &Round, &Trial)> {
    let all = document.rounds.iter().flat_map(|round| round.trials.iter().map(move |trial| (round, trial)));
    all.enumerate().map(|(index, (round, trial))| (index + 1, round, trial))
}

/// Whether the trial was of the plan's own values for its group, and not of an alternative.
fn is_as_planned(round: &Round, trial: &Trial) -> bool {
    let mut of_group = round.changes.iter().filter(|one| one.change.group == trial.group).peekable();
    of_group.peek().is_some() && of_group.all(|one| trial.name.contains(&one.change.to))
}

/// The first verdict before, and after.
fn limits(document: &TuneDocument) -> Option<Table> {
    let columns = ["When", "Limit", "Confidence", "Goodput", "Figures"];
    let mut table = Table::new("limits", "What limits", &columns);
    match &document.before {
        Some(before) => table.row("before", verdict(before)),
        None if document.host.is_empty() => {}
        None => table.row("before", vec![Reasons::of(&document.unknown).unknown("before")]),
    }
    if let Some(after) = &document.after {
        table.row("after", verdict(after));
    }
    if let Some(next) = document.before.as_ref().and_then(|before| before.next.as_ref()) {
        let rate = Quantity::bits_per_second(next.bits_per_second).shown();
        table.note = Some(format!("Without that cause, {} would come next, at {rate}.", next.name));
    }
    table.filled()
}

fn verdict(document: &DiagnoseDocument) -> Vec<Cell> {
    let rate = document.goodput_bits_per_second.map(Quantity::bits_per_second);
    let goodput = Reasons::of(&document.unknown).cell("goodput_bits_per_second", rate);
    match document.verdicts.first() {
        Some(first) => {
            vec![Cell::text(&first.cause), Cell::text(&first.confidence), goodput, Cell::text(&first.text)]
        }
        None => vec![Reasons::of(&document.unknown).unknown("verdicts"), Cell::Nothing, goodput],
    }
}

/// What is to be written where. Numbers and not the settings' names lead the rows, as both hosts may have the same.
fn plan(round: &Round, number: Option<usize>) -> Option<Table> {
    let cause = round.cause.as_deref().map_or_else(String::new, |cause| format!(" against {cause}"));
    let title = number.map_or_else(|| format!("Plan{cause}"), |number| format!("Plan {number}{cause}"));
    let mut table = Table::new(&numbered("plan", number), &title, &["", "Host", "Setting", "From", "To"]);
    for (index, one) in round.changes.iter().enumerate() {
        let from = one.change.from.clone().map_or(Cell::Nothing, Cell::Text);
        let target = Cell::Text(target(&one.change.target));
        let to = Cell::text(&one.change.to);
        table.row(format!("{}", index + 1), vec![Cell::text(&one.end), target, from, to]);
    }
    let lives = "The cause is on the path: these changes live with it and do not remove it.";
    table.note = round.lives_with_the_path.then(|| lives.to_owned());
    table.filled()
}

/// Why each change is proposed, by its number in the plan.
fn reasons(round: &Round, number: Option<usize>) -> Option<Table> {
    let title = number.map_or_else(|| "Why".to_owned(), |number| format!("Why, plan {number}"));
    let mut table = Table::new(&numbered("plan_reasons", number), &title, &["", "What", "Reason"]);
    for (index, one) in round.changes.iter().enumerate() {
        let reason = &one.change.reason;
        let alternatives: Vec<String> = one.alternatives.iter().map(assignment).collect();
        let rows = [
            ("why", reason.text.clone()),
            ("computed", reason.arithmetic.clone().unwrap_or_default()),
            ("measured", reason.evidence.join("; ")),
            ("takes effect", takes_effect(&one.change.takes_effect)),
            ("risk", reason.risk.clone()),
            ("or instead", alternatives.join(" or ")),
        ];
        for (what, text) in rows.into_iter().filter(|(_, text)| !text.is_empty()) {
            table.row(format!("{}", index + 1), vec![Cell::text(what), Cell::Text(text)]);
        }
    }
    table.filled()
}

fn numbered(name: &str, number: Option<usize>) -> String {
    number.map_or_else(|| name.to_owned(), |number| format!("{name}_{number}"))
}

fn target(document: &TargetDocument) -> String {
    // A word of a later version is shown as it stands in the document.
    Target::try_from(document).map_or_else(|_| format!("{document:?}"), |target| target.to_string())
}

fn assignment(change: &ChangeDocument) -> String {
    Change::try_from(change)
        .map_or_else(|_| format!("{:?} = {}", change.target, change.to), |it| format!("{} = {}", it.target, it.to))
}

fn takes_effect(name: &str) -> String {
    match TakesEffect::from_name(name) {
        Some(TakesEffect::Now) => "at once".to_owned(),
        Some(TakesEffect::NewConnections) => "for new connections".to_owned(),
        Some(TakesEffect::LinkBounce) => "once the link has gone down and up".to_owned(),
        Some(TakesEffect::Reboot) => "at the next boot".to_owned(),
        None => name.replace('_', " "),
    }
}

fn group(name: &str) -> String {
    Group::from_name(name).map_or_else(|| name.replace('_', " "), |group| group.to_string())
}

fn decision(name: &str) -> String {
    match name {
        "keep" => "kept".to_owned(),
        "roll_back" => "taken back".to_owned(),
        "unclear" => "unclear, so taken back".to_owned(),
        other => other.replace('_', " "),
    }
}

fn trial_table(round: &Round, trial: &Trial, number: usize) -> Table {
    let title = format!("Trial {number}, {}: {}", group(&trial.group), decision(&trial.decision));
    let mut table = effects(&format!("trial_{number}"), &title, &trial.effects, Reasons::of(&[]));
    if table.rows.is_empty() {
        table.row("Goodput", vec![Cell::Unknown(NO_PAIR.to_owned())]);
    }
    let faults = trial.pairs.iter().enumerate().filter_map(|(index, pair)| {
        pair.fault.as_ref().map(|fault| format!("Pair {} does not count: {}.", index + 1, fault.trim_end_matches('.')))
    });
    let told = trial.name.is_empty() || is_as_planned(round, trial);
    let tried = (!told).then(|| format!("Tried: {}.", trial.name.trim_end_matches('.')));
    let notes = core::iter::once(trial.sentence.clone()).chain(tried).chain(faults).chain(table.note.take());
    table.note = Some(notes.filter(|note| !note.is_empty()).collect::<Vec<_>>().join(" "));
    table
}

/// Medians without and with, and by how much they are different.
pub(super) fn effects(name: &str, title: &str, effects: &[Effect], unknown: Reasons<'_>) -> Table {
    let mut table = Table::new(name, title, &["Figure", "Before", "After", "Difference", "95 % interval"]);
    for effect in effects {
        let key = |part: &str| format!("effects.{}.{part}", effect.name);
        let quantity = |value: Option<f64>| value.map(|value| Quantity::new(value, effect.unit));
        let difference = quantity(effect.difference).map(|it| Cell::Qualified(it, it.shown_with_sign()));
        let interval = quantity(effect.low).zip(quantity(effect.high)).map(|(low, high)| Cell::Text(range(low, high)));
        let without_interval = || Cell::Unknown(unknown.said(&key("low")).unwrap_or(NO_INTERVAL).to_owned());
        table.row(
            effect.title.clone(),
            vec![
                unknown.cell(&key("before"), quantity(effect.before)),
                unknown.cell(&key("after"), quantity(effect.after)),
                difference.unwrap_or_else(|| unknown.unknown(&key("difference"))),
                interval.unwrap_or_else(without_interval),
            ],
        );
    }
    let shares = effects.iter().any(|effect| effect.unit == Unit::Share);
    table.note = shares.then(|| "Differences of shares are percentage points.".to_owned());
    table
}

/// `+9.10 to +9.18 Gbit/s`: the unit once where both have the same.
fn range(low: Quantity, high: Quantity) -> String {
    let (low, high) = (low.shown_with_sign(), high.shown_with_sign());
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

fn chart<'a>(trial: &Trial, number: usize) -> Chart<'a> {
    let title = format!("Goodput in trial {number}, {}", group(&trial.group));
    let row = |(index, pair): (usize, &linerate_model::schema::tune::Pair)| {
        let left_out = if pair.fault.is_some() { ", left out" } else { "" };
        let bar = |one: f64| (Some(one), None);
        BarsRow {
            label: format!("pair {}{left_out}", index + 1),
            bars: vec![bar(pair.before.goodput_bits_per_second), bar(pair.after.goodput_bits_per_second)],
        }
    };
    let rows: Vec<BarsRow> = trial.pairs.iter().enumerate().map(row).collect();
    let span = |which: usize| {
        let values: Vec<Option<f64>> = rows.iter().map(|row| row.bars[which].0).collect();
        let shown = |value: f64| Quantity::bits_per_second(value).shown();
        crate::presentation::extent(&values).map_or_else(
            || "unknown".to_owned(),
            |extent| match (shown(extent.min), shown(extent.max)) {
                (least, most) if least == most => least,
                (least, most) => format!("{least} to {most}"),
            },
        )
    };
    Chart {
        name: format!("trial_{number}_goodput"),
        summary: format!(
            "{title}, one transfer without and one with the changes in turn: without {}, with {}.",
            span(0),
            span(1)
        ),
        title,
        plot: Plot::Bars(Bars {
            unit: Unit::BitsPerSecond,
            legend: vec!["without".to_owned(), "with".to_owned()],
            rows,
        }),
    }
}

fn contributions(document: &TuneDocument) -> Option<Table> {
    let columns = ["Group", "Outcome", "Goodput without", "Goodput with", "Part"];
    let mut table = Table::new("contributions", "What each group of changes brought", &columns);
    let unknown = Reasons::of(&document.unknown);
    for one in &document.contributions {
        let key = |part: &str| format!("contributions.{}.{part}", one.group);
        let rate = |part: &str, rate: Option<f64>| {
            let reason = unknown.said(&key(part)).unwrap_or(NO_PAIR);
            rate.map_or_else(|| Cell::Unknown(reason.to_owned()), |rate| Cell::Value(Quantity::bits_per_second(rate)))
        };
        table.row(
            group(&one.group),
            vec![
                Cell::Text(decision(&one.decision)),
                rate("before", one.before_bits_per_second),
                rate("after", one.after_bits_per_second),
                one.part.map_or(Cell::Nothing, |part| Cell::Value(Quantity::share(part))),
            ],
        );
    }
    table.note = Some("Part: of what all groups gained that were kept.".to_owned());
    table.filled()
}

/// What is in force, and how it is taken back.
fn kept(document: &TuneDocument) -> Option<Table> {
    let mut table = Table::new("kept", "In force now", &["Host", "What", "Value"]);
    for set in &document.kept {
        for (what, text) in kept_rows(set) {
            table.row(set.end.clone(), vec![Cell::text(what), Cell::Text(text)]);
        }
    }
    table.filled()
}

fn kept_rows(set: &KeptSet) -> Vec<(&'static str, String)> {
    let file = set.file.clone().unwrap_or_else(|| "none: nothing makes it last beyond the next boot".to_owned());
    let mut rows = vec![("change set", format!("{}", set.id)), ("file", file)];
    rows.extend(set.lasting.iter().map(|one| ("lasts", one.clone())));
    rows.extend(set.until_reboot.iter().map(|one| ("until the next boot", one.clone())));
    rows.extend(set.warnings.iter().map(|one| ("warning", one.clone())));
    rows.push(("to undo", set.undo.clone()));
    rows
}

/// Each refusal once: later rounds often repeat those of the first.
fn refusals(document: &TuneDocument) -> Option<Table> {
    let mut table = Table::new("refusals", "Not proposed, or less of it", &["Host", "Rule", "Reason"]);
    for one in document.rounds.iter().flat_map(|round| &round.refusals) {
        let host = one.end.clone().unwrap_or_else(|| "both".to_owned());
        let cells = vec![one.rule.clone().map_or(Cell::Nothing, Cell::Text), Cell::text(&one.text)];
        if !table.rows.iter().any(|row| row.label == host && row.cells == cells) {
            table.row(host, cells);
        }
    }
    table.filled()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_its_unit_once_where_it_is_the_same() {
        let rate = Quantity::bits_per_second;
        assert_eq!(range(rate(9.1e9), rate(9.18e9)), "+9.10 to +9.18 Gbit/s");
        assert_eq!(range(rate(-2e6), rate(1e9)), "-2.00 Mbit/s to +1.00 Gbit/s");
    }

    #[test]
    fn each_outcome_has_its_tone() {
        let tones = TuneOutcome::ALL.map(|outcome| badge(outcome).tone);
        assert_eq!(tones, [Tone::Good, Tone::Fair, Tone::Fair, Tone::Good, Tone::Fair, Tone::Bad]);
    }
}
