//! Comparison of two runs.

use linerate_documents::civil_time;
use linerate_documents::run::{
    ComparisonBasis, ComparisonRefusal, EnvironmentDifference, FigureComparison, FigureJudgement, FigureUnit,
    RunComparison, RunDocument, RunFigure, RunResult,
};
use linerate_model::load::LoadDocument;

use super::{
    BarChart, BarGroup, Chart, ChartPlot, DistributionPlot, KeyFigure, NamedFact, Presentation, Quantity, ReportTable,
    TableCell,
};
use super::{charts, environment, key_figure, kind_title, settings, views};

/// Reports the differences of `after` from `before`.
///
/// Figures of the same name are compared by [`RunComparison`], with confidence intervals of their differences.
///
/// # Errors
///
/// Runs of different kinds, targets, paths, directions or protocols are not compared.
pub fn compare<'a>(before: &'a RunDocument, after: &'a RunDocument) -> Result<Presentation<'a>, ComparisonRefusal> {
    let comparison = RunComparison::of(&[before], &[after])?;
    let pairs = comparison.figures.as_slice();
    let mut charts = bars(pairs, comparison.basis);
    if let (RunResult::Load(before), RunResult::Load(after)) = (&before.result, &after.result) {
        charts.extend(overlaid(before, after));
    }
    charts.extend(charts::series_charts(after).into_iter().map(|chart| mark_chart("after", chart)));
    charts.extend(charts::series_charts(before).into_iter().map(|chart| mark_chart("before", chart)));
    Ok(Presentation {
        title: format!("{} before and after: {}", kind_title(after.kind), super::target(after)),
        facts: [facts("Before", before), facts("After", after)].concat(),
        verdict: verdict(pairs, comparison.basis),
        badge: None,
        figures: pairs.iter().map(|pair| figure(pair, comparison.basis)).collect(),
        settings: settings::in_effect(after),
        charts,
        tables: [pairs_table(pairs, comparison.basis), environment_differences(&comparison.environment)]
            .into_iter()
            .flatten()
            .collect(),
        notes: notes(before, after, comparison.basis),
        missing: Vec::new(),
        environment: environments(before, after),
        next: None,
    })
}

fn facts(when: &str, run: &RunDocument) -> Vec<NamedFact> {
    let started = civil_time::of_unix_ns(run.started_at_unix_ns);
    let took = Quantity::nanoseconds(run.duration_ns).display_text();
    vec![
        NamedFact::new(when, format!("{started}, {took}, {}", run.host)),
        NamedFact::new("Verdict then", run.verdict.clone()),
    ]
}

/// Environment tables: once when both are equal, else per run.
fn environments(before: &RunDocument, after: &RunDocument) -> Vec<ReportTable> {
    let [was, is] = [before, after].map(|run| environment::tables(&run.environment));
    if was == is {
        return is.into_iter().map(|table| mark_table("the same for both", table)).collect();
    }
    let [was, is] = [("before", was), ("after", is)]
        .map(|(when, tables)| tables.into_iter().map(|table| mark_table(when, table)).collect::<Vec<_>>());
    [was, is].concat()
}

fn mark_table(when: &str, mut table: ReportTable) -> ReportTable {
    table.name = format!("{}_{}", table.name, when.replace(' ', "_"));
    table.title = format!("{} ({when})", table.title);
    table
}

fn mark_chart<'a>(when: &str, mut chart: Chart<'a>) -> Chart<'a> {
    chart.name = format!("{}_{when}", chart.name);
    chart.title = format!("{} ({when})", chart.title);
    chart
}

/// Display text of a judgement.
#[must_use]
pub const fn judgement_label(judgement: FigureJudgement, basis: ComparisonBasis) -> &'static str {
    match (judgement, basis) {
        (FigureJudgement::Better, ComparisonBasis::BetweenRuns) => "better",
        (FigureJudgement::Worse, ComparisonBasis::BetweenRuns) => "worse",
        (FigureJudgement::Different, ComparisonBasis::BetweenRuns) => "different",
        (FigureJudgement::Equal, ComparisonBasis::BetweenRuns) => "equal",
        (FigureJudgement::Better, ComparisonBasis::WithinRuns) => "better within these runs",
        (FigureJudgement::Worse, ComparisonBasis::WithinRuns) => "worse within these runs",
        (FigureJudgement::Different, ComparisonBasis::WithinRuns) => "different within these runs",
        (FigureJudgement::Equal, ComparisonBasis::WithinRuns) => "equal within these runs",
        (FigureJudgement::CannotTell, _) => "undetermined",
    }
}

/// Meaning of the judgements.
#[must_use]
pub const fn comparison_note(basis: ComparisonBasis) -> &'static str {
    match basis {
        ComparisonBasis::WithinRuns => {
            "All of this holds within these two runs: one run a side does not show how much runs of this path vary. \
             Better and worse are differences beyond an assumed variation between runs (10 %, or twice that of the \
             seconds within them; 50 % for losses); equal is less than 2 %, 0.1 ms or 0.1 %. Three runs or more on \
             each side measure it: linerate history compare 1,2,3 4,5,6."
        }
        ComparisonBasis::BetweenRuns => {
            "Differences are tested against the variation between the runs (Welch), all figures together at 5 % (Holm); \
             equal is shown to be less than 2 %, 0.1 ms or 0.1 % (two one-sided tests at 5 %)."
        }
    }
}

fn quantity(pair: &FigureComparison, value: f64) -> Quantity {
    Quantity::new(value, pair.unit)
}

fn figure(pair: &FigureComparison, basis: ComparisonBasis) -> KeyFigure {
    let mut figure = key_figure(&pair.after);
    figure.before = Some(key_figure(&pair.before).value);
    figure.judgement = Some(pair.judgement);
    figure.note = Some(sentence(pair, basis));
    figure
}

/// `better: -824 ms, -87.5 % (95 % interval -853 ms to -796 ms)`.
fn sentence(pair: &FigureComparison, basis: ComparisonBasis) -> String {
    let word = judgement_label(pair.judgement, basis);
    let Some(difference) = pair.difference else { return format!("{word}: one of the two is unknown") };
    let change = change(pair, difference);
    match bounds(pair) {
        Some(bounds) => format!("{word}: {change} (95 % interval {bounds})"),
        None => format!("{word}: {change}, without a confidence interval"),
    }
}

/// Difference in the figure's unit, and in percent where the earlier value is positive.
fn change(pair: &FigureComparison, difference: f64) -> String {
    let absolute = quantity(pair, difference).signed_text();
    match pair.before.value {
        Some(before) if before > 0.0 && pair.unit != FigureUnit::Share => {
            format!("{absolute}, {}", Quantity::share(difference / before).signed_text())
        }
        _ => absolute,
    }
}

fn bounds(pair: &FigureComparison) -> Option<String> {
    let shown = |value| quantity(pair, value).signed_text();
    Some(format!("{} to {}", shown(pair.low?), shown(pair.high?)))
}

/// Order in which judgements are counted.
const JUDGEMENT_ORDER: [FigureJudgement; 5] = [
    FigureJudgement::Better,
    FigureJudgement::Worse,
    FigureJudgement::Different,
    FigureJudgement::Equal,
    FigureJudgement::CannotTell,
];

fn verdict(pairs: &[FigureComparison], basis: ComparisonBasis) -> String {
    let counted: Vec<String> = JUDGEMENT_ORDER
        .iter()
        .map(|judgement| {
            (pairs.iter().filter(|pair| pair.judgement == *judgement).count(), judgement_label(*judgement, basis))
        })
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let lead = pairs.iter().find(|pair| matches!(pair.judgement, FigureJudgement::Better | FigureJudgement::Worse));
    let lead = lead.map_or_else(String::new, |pair| format!("{} {}. ", pair.title, sentence(pair, basis)));
    format!("{lead}Of {} figures {}.", pairs.len(), counted.join(", "))
}

/// One chart for each unit, as bars of different units have no common scale.
fn bars<'a>(pairs: &[FigureComparison], basis: ComparisonBasis) -> Vec<Chart<'a>> {
    let mut units: Vec<FigureUnit> = Vec::new();
    for pair in pairs.iter().filter(|pair| pair.difference.is_some()) {
        if !units.contains(&pair.unit) {
            units.push(pair.unit);
        }
    }
    units.into_iter().map(|unit| bars_of(unit, pairs, basis)).collect()
}

fn bars_of<'a>(unit: FigureUnit, pairs: &[FigureComparison], basis: ComparisonBasis) -> Chart<'a> {
    let (name, title) = match unit {
        FigureUnit::BitsPerSecond => ("rates", "Rates before and after"),
        FigureUnit::Bytes => ("sizes", "Sizes before and after"),
        FigureUnit::Nanoseconds => ("times", "Times before and after"),
        FigureUnit::Share => ("shares", "Shares before and after"),
        FigureUnit::Packets => ("packets", "Packets before and after"),
        FigureUnit::Segments => ("segments", "Segments before and after"),
        FigureUnit::RoundTripsPerMinute => ("responsiveness", "Responsiveness before and after"),
        FigureUnit::PerSecond => ("frequencies", "Transactions per second before and after"),
        FigureUnit::One => ("numbers", "Numbers before and after"),
    };
    let of_unit: Vec<&FigureComparison> =
        pairs.iter().filter(|pair| pair.unit == unit && pair.difference.is_some()).collect();
    let bar = |figure: &RunFigure| (figure.value, figure.low.zip(figure.high).map(|(low, high)| [low, high]));
    let rows = of_unit
        .iter()
        .map(|pair| BarGroup { label: pair.title.clone(), bars: vec![bar(&pair.before), bar(&pair.after)] })
        .collect();
    let parts: Vec<String> = of_unit.iter().map(|pair| format!("{} {}", pair.title, sentence(pair, basis))).collect();
    Chart {
        name: format!("bars_{name}"),
        title: title.to_owned(),
        summary: format!("{title}: {}.", parts.join("; ")),
        plot: ChartPlot::Bars(BarChart { unit, legend: vec!["before".to_owned(), "after".to_owned()], rows }),
    }
}

/// The distributions of both loads in one chart per class of probes.
pub(super) fn overlaid<'a>(before: &LoadDocument, after: &LoadDocument) -> Vec<Chart<'a>> {
    let (old, new) = (views::load::distributions(before), views::load::distributions(after));
    let marked = |when: &str, distribution: DistributionPlot| {
        let name = |mut curve: charts::DistributionCurve| {
            curve.name = format!("{} {when}", curve.name);
            curve.dashed = when == "before";
            curve
        };
        distribution.curves.into_iter().map(name).collect::<Vec<_>>()
    };
    new.into_iter()
        .filter_map(|new| {
            let old = old.iter().find(|old| old.name == new.name)?.clone();
            let (ChartPlot::Distribution(was), ChartPlot::Distribution(is)) = (old.plot, new.plot) else { return None };
            let unit = is.unit;
            let curves = [marked("before", was), marked("after", is)].concat();
            let summary = format!("Before: {} After: {}", old.summary, new.summary);
            Some(Chart {
                name: new.name,
                title: new.title,
                summary,
                plot: ChartPlot::Distribution(DistributionPlot { unit, curves }),
            })
        })
        .collect()
}

fn pairs_table(pairs: &[FigureComparison], basis: ComparisonBasis) -> Option<ReportTable> {
    let columns = ["Figure", "Before", "After", "Difference", "95 % interval of the difference", "Meaning"];
    let mut table = ReportTable::new("differences", "Differences", &columns);
    for pair in pairs {
        let difference = pair.difference.map_or_else(
            || TableCell::Unknown("one of the two is unknown".to_owned()),
            |difference| TableCell::Qualified(quantity(pair, difference), change(pair, difference)),
        );
        let interval = bounds(pair).map_or_else(
            || TableCell::Unknown("one of the two has no confidence interval".to_owned()),
            TableCell::Text,
        );
        let values = [&pair.before, &pair.after].map(|figure| key_figure(figure).value);
        table.push_row(
            &pair.title,
            [&values[..], &[difference, interval, TableCell::text(judgement_label(pair.judgement, basis))]].concat(),
        );
    }
    table.note =
        Some("A difference has an interval where both figures have one; the runs are assumed independent.".to_owned());
    table.non_empty()
}

fn environment_differences(differences: &[EnvironmentDifference]) -> Option<ReportTable> {
    let mut table = ReportTable::new("surroundings", "Environment differences", &["Fact", "Before", "After"]);
    for difference in differences {
        let cell = |text: &Option<String>| {
            text.clone().map_or_else(|| TableCell::Unknown("not recorded in that run".to_owned()), TableCell::Text)
        };
        table.push_row(&difference.key, vec![cell(&difference.before), cell(&difference.after)]);
    }
    table.non_empty()
}

/// Caveats of the comparison.
fn notes(before: &RunDocument, after: &RunDocument, basis: ComparisonBasis) -> Vec<String> {
    let mut notes = vec![comparison_note(basis).to_owned()];
    if before.arguments != after.arguments {
        let [was, is] = [before, after].map(|run| run.arguments.join(" "));
        notes.push(format!("The commands differ: \"linerate {was}\" before, \"linerate {is}\" after."));
    }
    notes
}
