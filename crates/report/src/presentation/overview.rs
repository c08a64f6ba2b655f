//! First picture of a run over time: what was measured under which load, in one view.

use linerate_documents::run::{ChartPanel, FigureUnit, RunDocument, RunResult, SampleSeries};
use linerate_model::direction::Direction;
use linerate_model::load::LoadDocument;

use super::charts::{
    Chart, ChartPhase, ChartPlot, LevelMark, MAX_SERIES, Overview, OverviewPanel, Smoothing, TimeSeries, borrowed,
    by_state, phases, smoothing_window, summary,
};
use super::{Quantity, aggregate, direction_label, panel_properties, views};

/// Overview of `run`; `None` for kinds whose answer is not a course over time, and for runs whose
/// samples are of one quantity.
pub(super) fn of(run: &RunDocument) -> Option<Chart<'_>> {
    let phases = phases(run);
    let (title, panels) = match &run.result {
        RunResult::Throughput(_) => ("Goodput and what limited it", throughput(run, &phases)),
        RunResult::Load(document) => ("Delay by phase, and the load", load(run, document, &phases)),
        RunResult::Path(_) => ("Round trips and the search for the capacity", path(run, &phases)),
        RunResult::Web(_) => ("Delay by phase, and the load", web(run, &phases)),
        RunResult::Rfc6349(_)
        | RunResult::Rr(_)
        | RunResult::Diagnose(_)
        | RunResult::Tune(_)
        | RunResult::Doctor(_) => return None,
    };
    let panels: Vec<OverviewPanel<'_>> = panels.into_iter().filter(|panel| !panel.series.is_empty()).collect();
    // One panel alone would repeat its own chart.
    (panels.len() > 1).then(|| Chart {
        name: "overview".to_owned(),
        title: title.to_owned(),
        summary: panels.iter().map(sentence).collect::<Vec<_>>().join(" "),
        plot: ChartPlot::Overview(Overview { panels, phases }),
    })
}

/// Summary of a panel: levels where there are some, else the ranges of its series.
fn sentence(panel: &OverviewPanel<'_>) -> String {
    if panel.marks.is_empty() {
        let series: Vec<TimeSeries<'_>> = panel.series.iter().map(|(_, series)| series.clone()).collect();
        return summary(&panel.title, panel.unit, &series);
    }
    let marks: Vec<String> = panel.marks.iter().map(|mark| format!("{} {}", mark.name, mark.text)).collect();
    format!("{}: {}.", panel.title, marks.join("; "))
}

/// Goodput over the shares of time by limit, per direction.
fn throughput<'a>(run: &'a RunDocument, phases: &[ChartPhase]) -> Vec<OverviewPanel<'a>> {
    let goodput = goodput(run, phases, 0);
    let first = goodput.series.len();
    let mut panels = vec![goodput];
    let mut states: Vec<String> = Vec::new();
    for direction in [Some(Direction::Up), Some(Direction::Down), None] {
        let of_direction = |series: &&SampleSeries| {
            series.panel == ChartPanel::Limits && series.unit == FigureUnit::Share && series.direction == direction
        };
        let series: Vec<&SampleSeries> = run.series.iter().filter(of_direction).collect();
        let shares = by_state(&series).into_iter().map(|series| (look(&mut states, first, &series.name), series));
        let suffix = direction.map_or_else(String::new, |direction| format!(", {}", direction_label(direction)));
        panels.push(OverviewPanel {
            title: format!("{}{suffix}", panel_properties(ChartPanel::Limits).1),
            unit: FigureUnit::Share,
            series: shares.take(MAX_SERIES - first.min(MAX_SERIES)).collect(),
            stacked: true,
            smoothing: None,
            marks: Vec::new(),
        });
    }
    panels
}

/// Look of a state: the same in both directions.
fn look(states: &mut Vec<String>, first: usize, name: &str) -> usize {
    let place = states.iter().position(|state| state == name).unwrap_or_else(|| {
        states.push(name.to_owned());
        states.len() - 1
    });
    (first + place) % MAX_SERIES
}

/// Round trips of the class that decides, over the goodput of both directions.
fn load<'a>(run: &'a RunDocument, document: &LoadDocument, phases: &[ChartPhase]) -> Vec<OverviewPanel<'a>> {
    let decisive = views::load::decisive_class(document);
    let title = decisive.map(views::load::class_name);
    let latency = |series: &&SampleSeries| {
        series.panel == ChartPanel::Latency && series.unit == FigureUnit::Nanoseconds && series.times_ns.len() > 1
    };
    let all = || run.series.iter().filter(latency);
    let series = title.and_then(|title| all().find(|series| series.name == title)).or_else(|| all().next());
    let marks = decisive.map(|class| levels(document, class)).unwrap_or_default();
    let delay = OverviewPanel {
        title: panel_properties(ChartPanel::Latency).1.to_owned(),
        unit: FigureUnit::Nanoseconds,
        series: series.map(|series| (0, borrowed(series))).into_iter().collect(),
        stacked: false,
        smoothing: Some(Smoothing { window_ns: smoothing_window(run), is_median: true }),
        marks,
    };
    vec![delay, goodput(run, phases, 1)]
}

/// Round trips of the browser over the goodput.
fn web<'a>(run: &'a RunDocument, phases: &[ChartPhase]) -> Vec<OverviewPanel<'a>> {
    let series = run.series.iter().find(|series| series.panel == ChartPanel::Latency && series.times_ns.len() > 1);
    let delay = OverviewPanel {
        title: panel_properties(ChartPanel::Latency).1.to_owned(),
        unit: FigureUnit::Nanoseconds,
        series: series.map(|series| (0, borrowed(series))).into_iter().collect(),
        stacked: false,
        smoothing: Some(Smoothing { window_ns: smoothing_window(run), is_median: true }),
        marks: Vec::new(),
    };
    vec![delay, goodput(run, phases, 1)]
}

/// Median round trip of each phase.
fn levels(document: &LoadDocument, class: linerate_model::load::LatencyClass) -> Vec<LevelMark> {
    let level = |phase: &linerate_model::load::LoadPhase| {
        let rtt = phase.classes.iter().find(|one| one.class == class)?.rtt.as_ref()?;
        let median = Quantity::duration(rtt.median);
        Some(LevelMark {
            start_ns: phase.start_ns,
            end_ns: phase.end_ns,
            value: median.value,
            name: format!("{} median", views::load::phase_name(phase.kind)),
            text: median.display_text(),
        })
    };
    document.phases.iter().filter_map(level).collect()
}

/// Round trips of idle probes over the search for the capacity.
fn path<'a>(run: &'a RunDocument, phases: &[ChartPhase]) -> Vec<OverviewPanel<'a>> {
    const MAX_CLASSES: usize = 4;
    let latency = |series: &&SampleSeries| {
        series.panel == ChartPanel::Latency && series.unit == FigureUnit::Nanoseconds && series.direction.is_none()
    };
    let series: Vec<(usize, TimeSeries<'a>)> =
        run.series.iter().filter(latency).take(MAX_CLASSES).map(borrowed).enumerate().collect();
    let first = series.len();
    let delay = OverviewPanel {
        title: panel_properties(ChartPanel::Latency).1.to_owned(),
        unit: FigureUnit::Nanoseconds,
        series,
        stacked: false,
        smoothing: Some(Smoothing { window_ns: smoothing_window(run), is_median: true }),
        marks: Vec::new(),
    };
    vec![delay, goodput(run, phases, first)]
}

/// Goodput, several connections of one direction together; `first` is the first look.
fn goodput<'a>(run: &'a RunDocument, phases: &[ChartPhase], first: usize) -> OverviewPanel<'a> {
    const MAX_LINES: usize = 2;
    let rate =
        |series: &&SampleSeries| series.panel == ChartPanel::Throughput && series.unit == FigureUnit::BitsPerSecond;
    let series: Vec<&SampleSeries> = run.series.iter().filter(rate).collect();
    let together = aggregate::together(ChartPanel::Throughput, &series, phases);
    let is_summed = |one: &SampleSeries| {
        let name = |direction| format!("together {}", direction_label(direction));
        one.stream.is_some()
            && one.direction.is_some_and(|direction| together.iter().any(|sum| sum.name == name(direction)))
    };
    let single: Vec<TimeSeries<'a>> =
        series.iter().filter(|series| !is_summed(series)).map(|series| borrowed(series)).collect();
    let lines = together.into_iter().chain(single).take(MAX_LINES).enumerate();
    OverviewPanel {
        title: panel_properties(ChartPanel::Throughput).1.to_owned(),
        unit: FigureUnit::BitsPerSecond,
        series: lines.map(|(index, series)| (first + index, series)).collect(),
        stacked: false,
        smoothing: Some(Smoothing { window_ns: smoothing_window(run), is_median: false }),
        marks: Vec::new(),
    }
}
