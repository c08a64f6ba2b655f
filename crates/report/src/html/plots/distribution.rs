//! Cumulative distributions.

use serde_json::{Value, json};

use super::{ChartMarkup, PlotKind};
use crate::html::markup::{HtmlWriter as _, escaped};
use crate::html::pack;
use crate::html::svg;
use crate::presentation::{Chart, ChartPlot, DistributionCurve, DistributionPlot, Quantity, unit_name};

pub(super) const KIND: PlotKind =
    PlotKind { name: "distribution", script: include_str!("distribution.js"), draw: |chart, _| draw(chart) };

fn draw(chart: &Chart<'_>) -> Option<ChartMarkup> {
    let ChartPlot::Distribution(distribution) = &chart.plot else { return None };
    let data = json!({
        "unit": unit_name(distribution.unit),
        "curves": distribution.curves.iter().map(packed).collect::<Vec<Value>>(),
    });
    let entries = distribution.curves.iter().map(|curve| (curve.colour, curve.name.as_str(), curve.dashed));
    let picture = svg::distribution(distribution) + &svg::distribution_legend(entries);
    Some(ChartMarkup { data: Some(data), picture, notes: Vec::new(), reduced: None, tables: table(distribution) })
}

fn packed(curve: &DistributionCurve) -> Value {
    let (values, shares): (Vec<_>, Vec<_>) =
        curve.points.iter().map(|&(value, share)| (Some(value), Some(share))).unzip();
    json!({
        "name": crate::escape::line(&curve.name),
        "values": pack::pack_values(&values),
        "shares": pack::pack_values(&shares),
        "colour": curve.colour,
        "dashed": curve.dashed,
    })
}

fn table(distribution: &DistributionPlot) -> String {
    const SHARES: [f64; 9] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0];
    let mut html = String::from("<div class=\"scroll\"><table><thead><tr><th>At most</th>");
    for share in SHARES {
        html.push_fmt(format_args!("<th>{}</th>", Quantity::share(share).display_text()));
    }
    html.push_str("</tr></thead><tbody>\n");
    for curve in &distribution.curves {
        html.push_fmt(format_args!("<tr><th scope=\"row\">{}</th>", escaped(&curve.name)));
        for share in SHARES {
            let point = curve.points.iter().find(|(_, reached)| *reached >= share - 1e-9);
            let shown = point
                .map_or_else(|| "–".to_owned(), |(value, _)| Quantity::new(*value, distribution.unit).display_text());
            html.push_fmt(format_args!("<td>{shown}</td>"));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    html
}
