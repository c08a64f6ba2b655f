//! Two runs beside each other.

use linerate_model::schema::load::LoadDocument;
use linerate_model::schema::run::{
    EnvironmentDifference, Figure, FigureComparison, Judgement, RunComparison, RunDocument, RunResult, Unit,
};

use super::{Bars, BarsRow, Cell, Chart, Distribution, Fact, KeyFigure, Plot, Presentation, Quantity, Table};
use super::{charts, command, environment, key_figure, views};

/// The report of what is different in `after`, against `before`.
///
/// Figures of the same name are compared as [`RunComparison`] does it, with confidence intervals of their differences.
#[must_use]
pub fn compare<'a>(before: &'a RunDocument, after: &'a RunDocument) -> Presentation<'a> {
    let comparison = RunComparison::of(before, after);
    let pairs = comparison.figures.as_slice();
    let mut charts = bars(pairs);
    if let (RunResult::Load(before), RunResult::Load(after)) = (&before.result, &after.result) {
        charts.extend(overlaid(before, after));
    }
    charts.extend(charts::of_series(after).into_iter().map(|chart| of_run("after", chart)));
    charts.extend(charts::of_series(before).into_iter().map(|chart| of_run("before", chart)));
    Presentation {
        title: format!("{} before and after: {}, port {}", command(after.kind), after.host, after.port),
        facts: [facts("Before", before), facts("After", after)].concat(),
        verdict: verdict(before, after, pairs),
        badge: None,
        figures: pairs.iter().map(figure).collect(),
        charts,
        tables: [pairs_table(pairs), surroundings(&comparison.environment)].into_iter().flatten().collect(),
        notes: notes(before, after),
        environment: around(before, after),
    }
}

fn facts(when: &str, run: &RunDocument) -> Vec<Fact> {
    let started = crate::civil_time::rfc3339(run.started_at_unix_ns);
    let took = Quantity::nanoseconds(run.duration_ns).shown();
    vec![Fact::new(when, format!("{started}, {took}, {}", run.host)), Fact::new("Said then", run.verdict.clone())]
}

/// Once where nothing is different, else of each run.
fn around(before: &RunDocument, after: &RunDocument) -> Vec<Table> {
    let [was, is] = [before, after].map(|run| environment::tables(&run.environment));
    if was == is {
        return is.into_iter().map(|table| named("the same for both", table)).collect();
    }
    let [was, is] = [("before", was), ("after", is)]
        .map(|(when, tables)| tables.into_iter().map(|table| named(when, table)).collect::<Vec<_>>());
    [was, is].concat()
}

fn named(when: &str, mut table: Table) -> Table {
    table.name = format!("{}_{}", table.name, when.replace(' ', "_"));
    table.title = format!("{} ({when})", table.title);
    table
}

fn of_run<'a>(when: &str, mut chart: Chart<'a>) -> Chart<'a> {
    chart.name = format!("{}_{when}", chart.name);
    chart.title = format!("{} ({when})", chart.title);
    chart
}

/// What a person reads for a judgement.
const fn word(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Better => "better",
        Judgement::Worse => "worse",
        Judgement::Different => "different",
        Judgement::Equal => "equal within the confidence",
        Judgement::CannotTell => "cannot be told",
    }
}

fn quantity(pair: &FigureComparison, value: f64) -> Quantity {
    Quantity::new(value, pair.unit)
}

fn figure(pair: &FigureComparison) -> KeyFigure {
    let mut figure = key_figure(&pair.after);
    figure.before = Some(key_figure(&pair.before).value);
    figure.note = Some(sentence(pair));
    figure
}

/// `better: -824 ms, -87.5 % (95 % interval -853 ms to -796 ms)`.
fn sentence(pair: &FigureComparison) -> String {
    let word = word(pair.judgement);
    let Some(difference) = pair.difference else { return format!("{word}: one of the two is unknown") };
    let change = change(pair, difference);
    match bounds(pair) {
        Some(bounds) => format!("{word}: {change} (95 % interval {bounds})"),
        None => format!("{word}: {change}, without a confidence interval"),
    }
}

/// In the figure's unit, and in percent where there is something to relate it to.
fn change(pair: &FigureComparison, difference: f64) -> String {
    let absolute = quantity(pair, difference).shown_with_sign();
    match pair.before.value {
        Some(before) if before > 0.0 && pair.unit != Unit::Share => {
            format!("{absolute}, {}", Quantity::share(difference / before).shown_with_sign())
        }
        _ => absolute,
    }
}

fn bounds(pair: &FigureComparison) -> Option<String> {
    let shown = |value| quantity(pair, value).shown_with_sign();
    Some(format!("{} to {}", shown(pair.low?), shown(pair.high?)))
}

/// In which order judgements are counted.
const ORDER: [Judgement; 5] =
    [Judgement::Better, Judgement::Worse, Judgement::Different, Judgement::Equal, Judgement::CannotTell];

fn verdict(before: &RunDocument, after: &RunDocument, pairs: &[FigureComparison]) -> String {
    if before.kind != after.kind {
        let (one, other) = (command(before.kind), command(after.kind));
        return format!("The runs are of different kinds ({one}, {other}): only what both measured is compared.");
    }
    if pairs.is_empty() {
        return "The two runs have no figure in common.".to_owned();
    }
    let counted: Vec<String> = ORDER
        .iter()
        .map(|judgement| (pairs.iter().filter(|pair| pair.judgement == *judgement).count(), word(*judgement)))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let lead = pairs.iter().find(|pair| matches!(pair.judgement, Judgement::Better | Judgement::Worse));
    let lead = lead.map_or_else(String::new, |pair| format!("{} {}. ", pair.title, sentence(pair)));
    format!("{lead}Of {} figures {}.", pairs.len(), counted.join(", "))
}

/// One chart for each unit, as bars of different units have no common scale.
fn bars<'a>(pairs: &[FigureComparison]) -> Vec<Chart<'a>> {
    let mut units: Vec<Unit> = Vec::new();
    for pair in pairs.iter().filter(|pair| pair.difference.is_some()) {
        if !units.contains(&pair.unit) {
            units.push(pair.unit);
        }
    }
    units.into_iter().map(|unit| bars_of(unit, pairs)).collect()
}

fn bars_of<'a>(unit: Unit, pairs: &[FigureComparison]) -> Chart<'a> {
    let (name, title) = match unit {
        Unit::BitsPerSecond => ("rates", "Rates before and after"),
        Unit::Bytes => ("sizes", "Sizes before and after"),
        Unit::Nanoseconds => ("times", "Times before and after"),
        Unit::Share => ("shares", "Shares before and after"),
        Unit::Packets => ("packets", "Packets before and after"),
        Unit::Segments => ("segments", "Segments before and after"),
        Unit::RoundTripsPerMinute => ("responsiveness", "Responsiveness before and after"),
        Unit::One => ("numbers", "Numbers before and after"),
    };
    let of_unit: Vec<&FigureComparison> =
        pairs.iter().filter(|pair| pair.unit == unit && pair.difference.is_some()).collect();
    let bar = |figure: &Figure| (figure.value, figure.low.zip(figure.high).map(|(low, high)| [low, high]));
    let rows = of_unit
        .iter()
        .map(|pair| BarsRow { label: pair.title.clone(), bars: vec![bar(&pair.before), bar(&pair.after)] })
        .collect();
    let said: Vec<String> = of_unit.iter().map(|pair| format!("{} {}", pair.title, sentence(pair))).collect();
    Chart {
        name: format!("bars_{name}"),
        title: title.to_owned(),
        summary: format!("{title}: {}.", said.join("; ")),
        plot: Plot::Bars(Bars { unit, legend: vec!["before".to_owned(), "after".to_owned()], rows }),
    }
}

/// The distributions of both loads in one picture for each class of probes.
pub(super) fn overlaid<'a>(before: &LoadDocument, after: &LoadDocument) -> Vec<Chart<'a>> {
    let (old, new) = (views::load::distributions(before), views::load::distributions(after));
    let marked = |when: &str, distribution: Distribution| {
        let name = |mut curve: charts::Curve| {
            curve.name = format!("{} {when}", curve.name);
            curve.dashed = when == "before";
            curve
        };
        distribution.curves.into_iter().map(name).collect::<Vec<_>>()
    };
    new.into_iter()
        .filter_map(|new| {
            let old = old.iter().find(|old| old.name == new.name)?.clone();
            let (Plot::Distribution(was), Plot::Distribution(is)) = (old.plot, new.plot) else { return None };
            let unit = is.unit;
            let curves = [marked("before", was), marked("after", is)].concat();
            let summary = format!("Before: {} After: {}", old.summary, new.summary);
            Some(Chart {
                name: new.name,
                title: new.title,
                summary,
                plot: Plot::Distribution(Distribution { unit, curves }),
            })
        })
        .collect()
}

fn pairs_table(pairs: &[FigureComparison]) -> Option<Table> {
    let columns = ["Figure", "Before", "After", "Difference", "95 % interval of the difference", "Meaning"];
    let mut table = Table::new("differences", "Differences", &columns);
    for pair in pairs {
        let difference = pair.difference.map_or_else(
            || Cell::Unknown("one of the two is unknown".to_owned()),
            |difference| Cell::Qualified(quantity(pair, difference), change(pair, difference)),
        );
        let interval = bounds(pair)
            .map_or_else(|| Cell::Unknown("one of the two has no confidence interval".to_owned()), Cell::Text);
        let values = [&pair.before, &pair.after].map(|figure| key_figure(figure).value);
        table.row(&pair.title, [&values[..], &[difference, interval, Cell::text(word(pair.judgement))]].concat());
    }
    table.note =
        Some("A difference has an interval where both figures have one; the runs are taken as independent.".to_owned());
    table.filled()
}

fn surroundings(differences: &[EnvironmentDifference]) -> Option<Table> {
    let mut table = Table::new("surroundings", "What was different around the runs", &["Fact", "Before", "After"]);
    for difference in differences {
        let cell = |text: &Option<String>| {
            text.clone().map_or_else(|| Cell::Unknown("not recorded in that run".to_owned()), Cell::Text)
        };
        table.row(&difference.key, vec![cell(&difference.before), cell(&difference.after)]);
    }
    table.filled()
}

/// What speaks against the comparison.
fn notes(before: &RunDocument, after: &RunDocument) -> Vec<String> {
    let mut notes = Vec::new();
    if before.host != after.host {
        notes.push(format!("The hosts differ: {} before, {} after.", before.host, after.host));
    }
    if before.arguments != after.arguments {
        let [was, is] = [before, after].map(|run| run.arguments.join(" "));
        notes.push(format!("The commands differ: \"linerate {was}\" before, \"linerate {is}\" after."));
    }
    notes
}
