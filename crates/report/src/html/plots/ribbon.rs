//! Shares of time, stacked over time.

use linerate_documents::run::FigureUnit;
use serde_json::json;

use super::{ChartMarkup, DrawingContext, PlotKind, lines, packed, phases};
use crate::html::reduce::SliceCount;
use crate::html::svg::{self, Panel};
use crate::html::trace::Trace;
use crate::presentation::{Chart, ChartPlot, unit_name};

pub(super) const KIND: PlotKind = PlotKind { name: "ribbon", script: include_str!("ribbon.js"), draw };

/// Height of the picture's plot.
const HEIGHT: u32 = 120;

fn draw(chart: &Chart<'_>, context: &DrawingContext) -> Option<ChartMarkup> {
    let ChartPlot::Ribbon(ribbon) = &chart.plot else { return None };
    let traces = |parts: SliceCount| -> Vec<Trace> {
        ribbon.series.iter().enumerate().map(|one| Trace::stacked(one, &ribbon.phases, parts)).collect()
    };
    let detailed = traces(context.parts);
    let mut data = packed(&detailed);
    data["unit"] = json!(unit_name(FigureUnit::Share));
    data["phases"] = phases(&ribbon.phases);
    let panel = Panel {
        title: "",
        unit: FigureUnit::Share,
        traces: traces(context.picture_parts),
        is_stacked: true,
        marks: &[],
        height: HEIGHT,
    };
    let legend = svg::legend(panel.traces.iter().map(|trace| (trace.look, trace.name.as_str(), true)));
    let note = format!(
        "Reduced: drawn is the mean of each of {} equal time slices. All samples are in the run's JSON document.",
        context.parts.count()
    );
    Some(ChartMarkup {
        data: Some(data),
        picture: svg::over_time(&[panel], &ribbon.phases, context.end_ns) + &legend,
        notes: Vec::new(),
        reduced: detailed.iter().any(|trace| trace.samples.has_fewer).then_some(note),
        tables: lines::tables(&ribbon.series, &ribbon.phases, FigureUnit::Share),
    })
}
