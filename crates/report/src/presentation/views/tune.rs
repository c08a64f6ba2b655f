//! Tuning: the limit, the proposed and tried changes with their measurements, and the changes in effect.

use linerate_documents::diagnose::DiagnoseDocument;
use linerate_documents::run::FigureUnit;
use linerate_documents::tune::{
    EffectFigure, GroupTrial, HostEnd, KeptSet, MeasuredEffect, TrialDecision, TuneDocument, TuneOutcome, TuneRound,
};

use linerate_model::change::HostChange;
use linerate_model::diagnosis::BoundKind;
use linerate_units::BitRate;

use super::{add_notes, diagnose, path, rates_chart};
use crate::presentation::reasons::UnknownReasons;
use crate::presentation::{
    BadgeTone, BarChart, BarGroup, Chart, ChartPlot, Presentation, Quantity, ReportTable, TableCell, VerdictBadge,
};

const NO_INTERVAL: &str = "an interval needs one trial with enough valid pairs";
const NO_PAIR: &str = "no valid pair of measurements";

pub(super) fn complete(presentation: &mut Presentation<'_>, document: &TuneDocument) {
    presentation.badge = Some(badge(document.outcome));
    presentation.lead(goodput_chart(document));
    presentation.charts.extend(charts(document));
    let effects = effects("effects", "Before and after", &document.effects, UnknownReasons::of(&document.unknown));
    presentation.tables.extend(effects.non_empty());
    presentation.tables.extend(tables(document));
    let measured = document.before.as_ref().and_then(|before| before.path.as_ref());
    presentation.tables.extend(measured.and_then(path::direction_table));
    presentation.notes.extend(measured.into_iter().flat_map(|path| path.notes.iter().cloned()));
    presentation.notes.extend(order_note(document));
    add_notes(presentation, &document.notes, &document.unknown);
}

/// Note on the random order of the measurements, with the option that repeats it.
pub(super) fn order_note(document: &TuneDocument) -> Option<String> {
    let seed = document.seed.filter(|_| trials(document).next().is_some())?;
    Some(format!(
        "Each pair was measured in random order, without or with the changes first; --seed {seed} repeats it."
    ))
}

/// Badge of the outcome.
pub(super) fn badge(outcome: TuneOutcome) -> VerdictBadge {
    let tone = match outcome {
        TuneOutcome::Kept | TuneOutcome::NothingToChange => BadgeTone::Good,
        TuneOutcome::RolledBack | TuneOutcome::Planned | TuneOutcome::Declined => BadgeTone::Fair,
        TuneOutcome::Aborted => BadgeTone::Bad,
    };
    VerdictBadge { text: outcome.title().to_owned(), meaning: "outcome of the changes".to_owned(), tone }
}

/// All tables in chronological order, without the comparison of first and last.
pub(super) fn tables(document: &TuneDocument) -> Vec<ReportTable> {
    let mut tables: Vec<ReportTable> = Vec::new();
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

/// Goodput before and after, next to the path's capacity.
fn goodput_chart<'a>(document: &TuneDocument) -> Option<Chart<'a>> {
    let effect = document.effects.iter().find(|effect| effect.name == EffectFigure::Goodput);
    let diagnosed = |document: Option<&DiagnoseDocument>| document?.goodput_bits_per_second;
    let before = document.before.as_deref();
    let path = before.and_then(|before| before.bounds.iter().find(|bound| bound.kind == BoundKind::Path));
    rates_chart(
        "Goodput before and after",
        &[
            ("before", effect.and_then(|effect| effect.before).or_else(|| diagnosed(before))),
            ("after", effect.and_then(|effect| effect.after).or_else(|| diagnosed(document.after.as_deref()))),
            ("the path", path.map(|path| path.rate.bits_per_second())),
        ],
    )
}

/// One chart per trial: the goodput of its measurements, in the order in which they were made.
pub(super) fn charts<'a>(document: &TuneDocument) -> Vec<Chart<'a>> {
    let measured = trials(document).filter(|(_, _, trial)| !trial.pairs.is_empty());
    measured.map(|(number, _, trial)| chart(trial, number)).collect()
}

/// The trials of all rounds, numbered from 1, each with its round.
fn trials(document: &TuneDocument) -> impl Iterator<Item = (usize, &TuneRound, &GroupTrial)> {
    let all = document.rounds.iter().flat_map(|round| round.trials.iter().map(move |trial| (round, trial)));
    all.enumerate().map(|(index, (round, trial))| (index + 1, round, trial))
}

/// True when the trial used the plan's own values for its group, not an alternative.
fn is_as_planned(round: &TuneRound, trial: &GroupTrial) -> bool {
    let mut of_group = round.changes.iter().filter(|one| one.change.group == trial.group).peekable();
    of_group.peek().is_some() && of_group.all(|one| trial.name.contains(&one.change.to))
}

/// The first verdict before, and after.
fn limits(document: &TuneDocument) -> Option<ReportTable> {
    let columns = ["When", "Limit", "Confidence", "Goodput", "Figures"];
    let mut table = ReportTable::new("limits", "Limiting factor", &columns);
    match &document.before {
        Some(before) => table.push_row("before", verdict(before)),
        None if document.host.is_empty() => {}
        None => table.push_row("before", vec![UnknownReasons::of(&document.unknown).unknown("before")]),
    }
    if let Some(after) = &document.after {
        table.push_row("after", verdict(after));
    }
    let last = document.after.as_ref().or(document.before.as_ref());
    if let Some(next) = last.and_then(|last| last.next.as_ref()) {
        let rate = Quantity::bits_per_second(next.rate.bits_per_second()).display_text();
        table.note = Some(format!("The next limit is {}, at {rate}.", next.kind.title()));
    }
    table.non_empty()
}

fn verdict(document: &DiagnoseDocument) -> Vec<TableCell> {
    let rate = document.goodput_bits_per_second.map(Quantity::bits_per_second);
    let goodput = UnknownReasons::of(&document.unknown).cell("goodput_bits_per_second", rate);
    match document.verdicts.first() {
        Some(first) => {
            vec![
                TableCell::text(first.cause.name()),
                TableCell::text(first.confidence.name()),
                goodput,
                TableCell::text(&first.text),
            ]
        }
        None => vec![UnknownReasons::of(&document.unknown).unknown("verdicts"), TableCell::Nothing, goodput],
    }
}

/// Planned values. Rows are labelled by number and not by setting, as both hosts may have the same setting.
fn plan(round: &TuneRound, number: Option<usize>) -> Option<ReportTable> {
    let cause = round.cause.map_or_else(String::new, |cause| format!(" against {cause}"));
    let title = number.map_or_else(|| format!("Plan{cause}"), |number| format!("Plan {number}{cause}"));
    let mut table = ReportTable::new(&numbered("plan", number), &title, &["", "Host", "Setting", "From", "To"]);
    for (index, one) in round.changes.iter().enumerate() {
        let from = one.change.from.clone().map_or(TableCell::Nothing, TableCell::Text);
        let target = TableCell::Text(one.change.target.to_string());
        let to = TableCell::text(&one.change.to);
        table.push_row(format!("{}", index + 1), vec![TableCell::text(one.end.name()), target, from, to]);
    }
    let lives = "The cause is on the path: these changes mitigate it and do not remove it.";
    table.note = round.lives_with_the_path.then(|| lives.to_owned());
    table.non_empty()
}

/// Reason for each change, by its number in the plan.
fn reasons(round: &TuneRound, number: Option<usize>) -> Option<ReportTable> {
    let title = number.map_or_else(|| "Reasons".to_owned(), |number| format!("Reasons, plan {number}"));
    let mut table = ReportTable::new(&numbered("plan_reasons", number), &title, &["", "Aspect", "Text"]);
    for (index, one) in round.changes.iter().enumerate() {
        let reason = &one.change.reason;
        let alternatives: Vec<String> = one.alternatives.iter().map(assignment).collect();
        let rows = [
            ("reason", reason.text.clone()),
            ("computed", reason.arithmetic.clone().unwrap_or_default()),
            ("measured", reason.evidence.join("; ")),
            ("takes effect", one.change.takes_effect.text().to_owned()),
            ("risk", reason.risk.clone()),
            ("or instead", alternatives.join(" or ")),
        ];
        for (what, text) in rows.into_iter().filter(|(_, text)| !text.is_empty()) {
            table.push_row(format!("{}", index + 1), vec![TableCell::text(what), TableCell::Text(text)]);
        }
    }
    table.non_empty()
}

fn numbered(name: &str, number: Option<usize>) -> String {
    number.map_or_else(|| name.to_owned(), |number| format!("{name}_{number}"))
}

fn assignment(change: &HostChange) -> String {
    format!("{} = {}", change.target, change.to)
}

const fn decision(decision: TrialDecision) -> &'static str {
    match decision {
        TrialDecision::Keep => "kept",
        TrialDecision::RollBack => "rolled back",
        TrialDecision::Unclear => "unclear, so rolled back",
    }
}

fn trial_table(round: &TuneRound, trial: &GroupTrial, number: usize) -> ReportTable {
    let title = format!("Trial {number}, {}: {}", trial.group, decision(trial.decision));
    let mut table = effects(&format!("trial_{number}"), &title, &trial.effects, UnknownReasons::of(&[]));
    if table.rows.is_empty() {
        table.push_row("Goodput", vec![TableCell::Unknown(NO_PAIR.to_owned())]);
    }
    let faults = trial.pairs.iter().enumerate().filter_map(|(index, pair)| {
        pair.fault.as_ref().map(|fault| format!("Pair {} is excluded: {}.", index + 1, fault.trim_end_matches('.')))
    });
    let as_planned = trial.name.is_empty() || is_as_planned(round, trial);
    let tried = (!as_planned).then(|| format!("Tried: {}.", trial.name.trim_end_matches('.')));
    let notes = core::iter::once(trial.sentence.clone()).chain(tried).chain(faults).chain(table.note.take());
    table.note = Some(notes.filter(|note| !note.is_empty()).collect::<Vec<_>>().join(" "));
    table
}

/// Values without and with the changes, and their differences.
pub(super) fn effects(name: &str, title: &str, effects: &[MeasuredEffect], unknown: UnknownReasons<'_>) -> ReportTable {
    let mut table = ReportTable::new(name, title, &["Figure", "Before", "After", "Difference", "95 % interval"]);
    for effect in effects {
        let key = |part: &str| format!("effects.{}.{part}", effect.name.name());
        let quantity = |value: Option<f64>| value.map(|value| Quantity::new(value, effect.unit));
        let difference = quantity(effect.difference).map(|it| TableCell::Qualified(it, it.signed_text()));
        let interval =
            quantity(effect.low).zip(quantity(effect.high)).map(|(low, high)| TableCell::Text(range(low, high)));
        let without_interval = || TableCell::Unknown(unknown.recorded(&key("low")).unwrap_or(NO_INTERVAL).to_owned());
        table.push_row(
            effect.name.title(),
            vec![
                unknown.cell(&key("before"), quantity(effect.before)),
                unknown.cell(&key("after"), quantity(effect.after)),
                difference.unwrap_or_else(|| unknown.unknown(&key("difference"))),
                interval.unwrap_or_else(without_interval),
            ],
        );
    }
    let shares = effects.iter().any(|effect| effect.unit == FigureUnit::Share);
    table.note = shares.then(|| "Differences of shares are percentage points.".to_owned());
    table
}

/// `+9.10 to +9.18 Gbit/s`: the unit once where both have the same.
fn range(low: Quantity, high: Quantity) -> String {
    let (low, high) = (low.signed_text(), high.signed_text());
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

fn chart<'a>(trial: &GroupTrial, number: usize) -> Chart<'a> {
    let title = format!("Goodput in trial {number}, {}", trial.group);
    let row = |(index, pair): (usize, &linerate_documents::tune::MeasurementPair)| {
        let left_out = if pair.fault.is_some() { ", excluded" } else { "" };
        let bar = |one: f64| (Some(one), None);
        BarGroup {
            label: format!("pair {}{left_out}", index + 1),
            bars: vec![bar(pair.before.goodput.bits_per_second()), bar(pair.after.goodput.bits_per_second())],
        }
    };
    let rows: Vec<BarGroup> = trial.pairs.iter().enumerate().map(row).collect();
    let span = |which: usize| {
        let values: Vec<Option<f64>> = rows.iter().map(|row| row.bars[which].0).collect();
        let shown = |value: f64| Quantity::bits_per_second(value).display_text();
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
            "{title}, one transfer without and one with the changes in random order: without {}, with {}.",
            span(0),
            span(1)
        ),
        title,
        plot: ChartPlot::Bars(BarChart {
            unit: FigureUnit::BitsPerSecond,
            legend: vec!["without".to_owned(), "with".to_owned()],
            rows,
        }),
    }
}

fn contributions(document: &TuneDocument) -> Option<ReportTable> {
    let columns = ["Group", "Outcome", "Goodput without", "Goodput with", "Share"];
    let mut table = ReportTable::new("contributions", "Contribution of each group of changes", &columns);
    let unknown = UnknownReasons::of(&document.unknown);
    for one in &document.contributions {
        let key = |part: &str| format!("contributions.{}.{part}", one.group.name());
        let rate = |part: &str, rate: Option<BitRate>| {
            let reason = unknown.recorded(&key(part)).unwrap_or(NO_PAIR);
            rate.map_or_else(
                || TableCell::Unknown(reason.to_owned()),
                |rate| TableCell::Value(Quantity::bits_per_second(rate.bits_per_second())),
            )
        };
        table.push_row(
            one.group.to_string(),
            vec![
                TableCell::text(decision(one.decision)),
                rate("before", one.before),
                rate("after", one.after),
                one.part.map_or(TableCell::Nothing, |part| TableCell::Value(Quantity::share(part.get()))),
            ],
        );
    }
    table.note = Some("Share: of the gain of all kept groups.".to_owned());
    table.non_empty()
}

/// Changes in effect, and how to roll them back.
fn kept(document: &TuneDocument) -> Option<ReportTable> {
    let mut table = ReportTable::new("kept", "In effect now", &["Host", "Item", "Value"]);
    for set in &document.kept {
        for (what, text) in kept_rows(set) {
            table.push_row(set.end.name(), vec![TableCell::text(what), TableCell::Text(text)]);
        }
    }
    table.non_empty()
}

fn kept_rows(set: &KeptSet) -> Vec<(&'static str, String)> {
    let file = set.file.clone().unwrap_or_else(|| "none: nothing persists across a reboot".to_owned());
    let mut rows = vec![("change set", format!("{}", set.id)), ("file", file)];
    rows.extend(set.persistent.iter().map(|one| ("persistent", one.clone())));
    rows.extend(set.until_reboot.iter().map(|one| ("until reboot", one.clone())));
    rows.extend(set.warnings.iter().map(|one| ("warning", one.clone())));
    rows.push(("to undo", set.undo.clone()));
    rows
}

/// Refusals, each once: later rounds often repeat those of the first.
fn refusals(document: &TuneDocument) -> Option<ReportTable> {
    let mut table = ReportTable::new("refusals", "Rejected or reduced changes", &["Host", "Rule", "Reason"]);
    for one in document.rounds.iter().flat_map(|round| &round.refusals) {
        let host = one.end.map_or("both", HostEnd::name);
        let cells = vec![one.rule.clone().map_or(TableCell::Nothing, TableCell::Text), TableCell::text(&one.text)];
        if !table.rows.iter().any(|row| row.label == host && row.cells == cells) {
            table.push_row(host, cells);
        }
    }
    table.non_empty()
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
        assert_eq!(
            tones,
            [BadgeTone::Good, BadgeTone::Fair, BadgeTone::Fair, BadgeTone::Good, BadgeTone::Fair, BadgeTone::Bad]
        );
    }
}
