//! Quantities over time.

use serde_json::json;

use super::{Drawing, PlotKind, packed, phases};
use crate::html::markup::{Markup as _, escaped};
use crate::html::reduce::{Parts, Reduced, extremes, table};
use crate::presentation::{Chart, Lines, Phase, Plot, Quantity, TimeSeries, extent, unit_name};
use linerate_model::schema::run::Unit;

pub(super) const KIND: PlotKind = PlotKind { name: "lines", script: include_str!("lines.js"), draw };

fn draw(chart: &Chart<'_>, parts: Parts) -> Option<Drawing> {
    let Plot::Lines(lines) = &chart.plot else { return None };
    let Lines { unit, series, shown, phases: spans } = lines;
    let reduced: Vec<Reduced> = series.iter().map(|series| extremes(series, parts)).collect();
    let mut data = packed(series, &reduced);
    data["unit"] = json!(unit_name(*unit));
    data["phases"] = phases(spans);
    data["shown"] = json!(shown);
    let notes = [
        (*shown < series.len()).then(|| "The legend switches single connections on.".to_owned()),
        reduced.iter().any(|reduced| reduced.has_fewer).then(|| note(series, parts)),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    Some(Drawing {
        data: Some(data),
        picture: String::new(),
        note: (!notes.is_empty()).then(|| notes.join(" ")),
        tables: tables(series, spans, *unit),
    })
}

fn note(series: &[TimeSeries<'_>], parts: Parts) -> String {
    let longest = series.iter().map(|series| series.times_ns.len()).max().unwrap_or(0);
    format!(
        "Reduced: a series has up to {longest} readings; drawn are the smallest and the largest of each of {} equal parts of \
         the time, each at its own time. Every point drawn is a reading; all readings are in the run's JSON document.",
        parts.count()
    )
}

/// A table of extents, and one over time.
pub(super) fn tables(series: &[TimeSeries<'_>], phases: &[Phase], unit: Unit) -> String {
    let mut html = String::from(
        "<div class=\"scroll\"><table><thead><tr><th>Series</th><th>Readings</th><th>min</th><th>mean</th><th>max</th></tr>\
         </thead><tbody>\n",
    );
    let shown = |value: f64| Quantity::new(value, unit).shown();
    for one in series {
        html.add(format_args!("<tr><th scope=\"row\">{}</th>", escaped(&one.name)));
        match extent(&one.values) {
            Some(extent) => html.add(format_args!(
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

/// The means of a few parts of the time.
fn over_time(series: &[TimeSeries<'_>], phases: &[Phase], unit: Unit) -> String {
    const PARTS: usize = 12;
    const SERIES: usize = 8;
    let starts = series.iter().filter_map(|series| series.times_ns.first().copied());
    let ends = series.iter().filter_map(|series| series.times_ns.last().copied());
    let (Some(start), Some(end)) = (starts.min(), ends.max()) else { return String::new() };
    // The times of a document from elsewhere may descend.
    let end = end.max(start);
    let shown = &series[..series.len().min(SERIES)];
    let columns: Vec<Vec<Option<f64>>> = shown.iter().map(|series| table(series, start, end, PARTS)).collect();
    let mut html = String::from("<div class=\"scroll\"><table><caption>Mean of each part of the time");
    if series.len() > SERIES {
        html.add(format_args!(", the first {SERIES} series"));
    }
    html.push_str("</caption><thead><tr><th>From</th>");
    for one in shown {
        html.add(format_args!("<th>{}</th>", escaped(&one.name)));
    }
    html.push_str("</tr></thead><tbody>\n");
    for part in 0..PARTS {
        let time = start + (end - start) / PARTS as u64 * part as u64;
        let phase = phases.iter().find(|phase| (phase.start_ns..phase.end_ns).contains(&time));
        let phase = phase.map_or_else(String::new, |phase| format!(" ({})", escaped(&phase.name)));
        html.add(format_args!("<tr><th scope=\"row\">{}{phase}</th>", Quantity::nanoseconds(time).shown()));
        for column in &columns {
            let value = column[part].map_or_else(|| "–".to_owned(), |value| Quantity::new(value, unit).shown());
            html.add(format_args!("<td>{value}</td>"));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    html
}
