//! Several quantities over time, one panel above the other.

use super::{ChartMarkup, DrawingContext, PlotKind, lines};
use crate::html::svg::{self, Panel};
use crate::html::trace::Trace;
use crate::presentation::{Chart, ChartPhase, ChartPlot, OverviewPanel, TimeSeries};

pub(super) const KIND: PlotKind = PlotKind { name: "overview", script: "", draw };

/// Heights of the plot of the first panel, of the others, and of stacked shares.
const FIRST_HEIGHT: u32 = 190;
const HEIGHT: u32 = 120;
const STACKED_HEIGHT: u32 = 56;

fn draw(chart: &Chart<'_>, context: &DrawingContext) -> Option<ChartMarkup> {
    let ChartPlot::Overview(overview) = &chart.plot else { return None };
    let panels: Vec<Panel<'_>> = overview
        .panels
        .iter()
        .enumerate()
        .map(|(index, panel)| Panel {
            title: &panel.title,
            unit: panel.unit,
            traces: traces(panel, &overview.phases, context),
            is_stacked: panel.stacked,
            marks: &panel.marks,
            height: match (panel.stacked, index) {
                (true, _) => STACKED_HEIGHT,
                (false, 0) => FIRST_HEIGHT,
                (false, _) => HEIGHT,
            },
        })
        .collect();
    let mut entries: Vec<(usize, &str, bool)> = Vec::new();
    for panel in &panels {
        for trace in &panel.traces {
            let entry = (trace.look, trace.name.as_str(), panel.is_stacked);
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
    }
    let picture = svg::over_time(&panels, &overview.phases, context.end_ns) + &svg::legend(entries.into_iter());
    let smoothing = lines::smoothing_note(
        overview.panels.iter().find_map(|panel| panel.smoothing),
        panels.iter().flat_map(|panel| &panel.traces),
    );
    let levels = overview.panels.iter().any(|panel| !panel.marks.is_empty());
    let table = |panel: &OverviewPanel<'_>| {
        let series: Vec<TimeSeries<'_>> = panel.series.iter().map(|(_, series)| series.clone()).collect();
        lines::tables(&series, &overview.phases, panel.unit)
    };
    Some(ChartMarkup {
        data: None,
        picture,
        notes: smoothing
            .into_iter()
            .chain(levels.then(|| "Level lines are the medians of the phases.".to_owned()))
            .collect(),
        reduced: None,
        tables: overview.panels.iter().map(table).collect(),
    })
}

fn traces(panel: &OverviewPanel<'_>, phases: &[ChartPhase], context: &DrawingContext) -> Vec<Trace> {
    let trace = |(look, series): &(usize, TimeSeries<'_>)| {
        if panel.stacked {
            Trace::stacked((*look, series), phases, context.picture_parts)
        } else {
            Trace::of((*look, series), phases, context.picture_parts, panel.smoothing)
        }
    };
    panel.series.iter().map(trace).collect()
}
