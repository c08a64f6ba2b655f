//! Quantities over time.

use serde_json::json;

use super::{ChartMarkup, DrawingContext, PlotKind, packed, phases};
use crate::html::markup::{HtmlWriter as _, escaped};
use crate::html::reduce::{SliceCount, table};
use crate::html::svg::{self, Panel};
use crate::html::trace::Trace;
use crate::presentation::{
    Chart, ChartPhase, ChartPlot, LineChart, Quantity, Smoothing, TimeSeries, extent, unit_name,
};
use linerate_documents::run::FigureUnit;

pub(super) const KIND: PlotKind = PlotKind { name: "lines", script: include_str!("lines.js"), draw };

/// Height of the picture's plot.
const HEIGHT: u32 = 200;

fn draw(chart: &Chart<'_>, context: &DrawingContext) -> Option<ChartMarkup> {
    let ChartPlot::Lines(lines) = &chart.plot else { return None };
    let LineChart { unit, series, shown, phases: spans, smoothing } = lines;
    let drawn = &series[..series.len().min(*shown)];
    let traces = |parts: SliceCount| -> Vec<Trace> {
        drawn.iter().enumerate().map(|one| Trace::of(one, spans, parts, *smoothing)).collect()
    };
    let detailed = traces(context.parts);
    let mut data = packed(&detailed);
    data["unit"] = json!(unit_name(*unit));
    data["phases"] = phases(spans);
    let panel = Panel {
        title: "",
        unit: *unit,
        traces: traces(context.picture_parts),
        is_stacked: false,
        marks: &[],
        height: HEIGHT,
    };
    let legend = svg::legend(panel.traces.iter().map(|trace| (trace.look, trace.name.as_str(), false)));
    let notes = [
        (drawn.len() < series.len()).then(|| "The table has the single connections.".to_owned()),
        smoothing_note(*smoothing, detailed.iter()),
    ];
    let is_reduced = detailed.iter().any(|trace| trace.samples.has_fewer);
    Some(ChartMarkup {
        data: Some(data),
        picture: svg::over_time(&[panel], spans, context.end_ns) + &legend,
        notes: notes.into_iter().flatten().collect(),
        reduced: is_reduced.then(|| note(drawn, context.parts)),
        tables: tables(series, spans, *unit),
    })
}

/// Note on curves, where any trace has one.
pub(super) fn smoothing_note<'a>(
    smoothing: Option<Smoothing>,
    mut traces: impl Iterator<Item = &'a Trace>,
) -> Option<String> {
    let window = smoothing.filter(|_| traces.any(|trace| trace.curve.is_some()))?.window_ns;
    let window = Quantity::nanoseconds(window).display_text();
    Some(format!("Thin lines are the samples; thick lines average {window} of them (delays by their median)."))
}

fn note(series: &[TimeSeries<'_>], parts: SliceCount) -> String {
    let longest = series.iter().map(|series| series.times_ns.len()).max().unwrap_or(0);
    format!(
        "Reduced: a series has up to {longest} samples; drawn are the minimum and maximum of each of {} equal time \
         slices, each at its own time. Every point drawn is a sample; all samples are in the run's JSON document.",
        parts.count()
    )
}

/// A table of minimum, mean and maximum, and one over time.
pub(super) fn tables(series: &[TimeSeries<'_>], phases: &[ChartPhase], unit: FigureUnit) -> String {
    let mut html = String::from(
        "<div class=\"scroll\"><table><thead><tr><th>Series</th><th>Samples</th><th>min</th><th>mean</th><th>max</th></tr>\
         </thead><tbody>\n",
    );
    let shown = |value: f64| Quantity::new(value, unit).display_text();
    for one in series {
        html.push_fmt(format_args!("<tr><th scope=\"row\">{}</th>", escaped(&one.name)));
        match extent(&one.values) {
            Some(extent) => html.push_fmt(format_args!(
                "<td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                extent.count,
                shown(extent.min),
                shown(extent.mean),
                shown(extent.max)
            )),
            None => html.push_str("<td>0</td><td>unknown</td><td>unknown</td><td>unknown</td></tr>\n"),
        }
    }
    html.push_str("</tbody></table></div>\n");
    html.push_str(&over_time(series, phases, unit));
    html
}

/// Means of a few time slices.
fn over_time(series: &[TimeSeries<'_>], phases: &[ChartPhase], unit: FigureUnit) -> String {
    const TABLE_SLICES: usize = 12;
    const MAX_TABLE_SERIES: usize = 8;
    let starts = series.iter().filter_map(|series| series.times_ns.first().copied());
    let ends = series.iter().filter_map(|series| series.times_ns.last().copied());
    let (Some(start), Some(end)) = (starts.min(), ends.max()) else { return String::new() };
    // The times of a document from elsewhere may descend.
    let end = end.max(start);
    let shown = &series[..series.len().min(MAX_TABLE_SERIES)];
    let columns: Vec<Vec<Option<f64>>> = shown.iter().map(|series| table(series, start, end, TABLE_SLICES)).collect();
    let mut html = String::from("<div class=\"scroll\"><table><caption>Mean per time slice");
    if series.len() > MAX_TABLE_SERIES {
        html.push_fmt(format_args!(", the first {MAX_TABLE_SERIES} series"));
    }
    html.push_str("</caption><thead><tr><th>From</th>");
    for one in shown {
        html.push_fmt(format_args!("<th>{}</th>", escaped(&one.name)));
    }
    html.push_str("</tr></thead><tbody>\n");
    for part in 0..TABLE_SLICES {
        let time = start + (end - start) / TABLE_SLICES as u64 * part as u64;
        let phase = phases.iter().find(|phase| (phase.start_ns..phase.end_ns).contains(&time));
        let phase = phase.map_or_else(String::new, |phase| format!(" ({})", escaped(&phase.name)));
        html.push_fmt(format_args!("<tr><th scope=\"row\">{}{phase}</th>", Quantity::nanoseconds(time).display_text()));
        for column in &columns {
            let value = column[part].map_or_else(|| "–".to_owned(), |value| Quantity::new(value, unit).display_text());
            html.push_fmt(format_args!("<td>{value}</td>"));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    html
}
