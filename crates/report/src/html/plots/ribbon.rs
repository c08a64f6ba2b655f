//! Shares of time, stacked over time.

use linerate_documents::run::FigureUnit;
use serde_json::json;

use super::{ChartMarkup, PlotKind, lines, packed, phases};
use crate::html::reduce::{ReducedSeries, SliceCount, means};
use crate::presentation::{Chart, ChartPlot, unit_name};

pub(super) const KIND: PlotKind = PlotKind { name: "ribbon", script: include_str!("ribbon.js"), draw };

fn draw(chart: &Chart<'_>, parts: SliceCount) -> Option<ChartMarkup> {
    let ChartPlot::Ribbon(ribbon) = &chart.plot else { return None };
    let reduced: Vec<ReducedSeries> = ribbon.series.iter().map(|series| means(series, parts)).collect();
    let mut data = packed(&ribbon.series, &reduced);
    data["unit"] = json!(unit_name(FigureUnit::Share));
    data["phases"] = phases(&ribbon.phases);
    let note = format!(
        "Reduced: drawn is the mean of each of {} equal time slices. All samples are in the run's JSON document.",
        parts.count()
    );
    Some(ChartMarkup {
        data: Some(data),
        picture: String::new(),
        note: reduced.iter().any(|reduced| reduced.has_fewer).then_some(note),
        tables: lines::tables(&ribbon.series, &ribbon.phases, FigureUnit::Share),
    })
}
