//! Bars next to each other. They need no script.

use super::{ChartMarkup, PlotKind};
use crate::html::markup::{HtmlWriter as _, escaped};
use crate::html::svg;
use crate::presentation::{BarChart, Chart, ChartPlot, Quantity};

pub(super) const KIND: PlotKind = PlotKind { name: "bars", script: "", draw: |chart, _| draw(chart) };

fn draw(chart: &Chart<'_>) -> Option<ChartMarkup> {
    let ChartPlot::Bars(bars) = &chart.plot else { return None };
    Some(ChartMarkup { data: None, picture: picture(bars), notes: Vec::new(), reduced: None, tables: table(bars) })
}

/// Look of a bar: of two, the first is hatched and the second plain.
fn look(bars: &BarChart, index: usize) -> usize {
    const HATCHED: usize = 6;
    if index == 0 && bars.legend.len() > 1 { HATCHED } else { index.saturating_sub(1) }
}

/// Largest value or upper end of an interval; 1 where there is none.
fn top(bars: &BarChart) -> f64 {
    let values = bars.rows.iter().flat_map(|row| &row.bars);
    let top =
        values.filter_map(|(value, interval)| Some(interval.map_or((*value)?, |[_, high]| high))).fold(0.0, f64::max);
    if top > 0.0 { top } else { 1.0 }
}

fn picture(bars: &BarChart) -> String {
    let top = top(bars);
    let mut html = String::from("<div class=\"bars\">\n");
    if bars.legend.len() > 1 {
        let entries = bars.legend.iter().enumerate().map(|(index, entry)| (look(bars, index), entry.as_str(), true));
        html.push_str(&svg::legend(entries));
    }
    for row in &bars.rows {
        html.push_fmt(format_args!(
            "<div class=\"bar-row\"><span class=\"bar-label\">{}</span>\n",
            escaped(&row.label)
        ));
        for (index, (value, interval)) in row.bars.iter().enumerate() {
            let name = bars.legend.get(index).map_or("", String::as_str);
            html.push_str(&bar(bars, name, index, *value, *interval, top));
        }
        html.push_str("</div>\n");
    }
    html.push_str("</div>\n");
    html
}

/// A bar with its value, and its interval as a whisker; sizes are percent of the available width.
fn bar(bars: &BarChart, name: &str, index: usize, value: Option<f64>, interval: Option<[f64; 2]>, top: f64) -> String {
    let percent = |value: f64| (value / top * 100.0).clamp(0.0, 100.0);
    let quantity = value.map(|value| Quantity::new(value, bars.unit));
    let shown = quantity.map_or_else(|| "unknown".to_owned(), Quantity::display_text);
    let name = escaped(name);
    let mut html = String::new();
    html.push_fmt(format_args!(
        "<div class=\"bar\"><svg role=\"img\" aria-label=\"{name}: {shown}\" width=\"100%\" height=\"18\" \
         preserveAspectRatio=\"none\">"
    ));
    let range = interval.map(|ends| ends.map(|end| Quantity::new(end, bars.unit).display_text()));
    let range = range.map_or_else(String::new, |[low, high]| format!(", 95 % interval {low} to {high}"));
    html.push_fmt(format_args!("<title>{name}: {shown}{range}</title>"));
    if let Some(value) = value {
        html.push_fmt(format_args!(
            "<rect class=\"bar\" fill=\"url(#look-{})\" x=\"0\" y=\"2\" height=\"14\" width=\"{:.2}%\" rx=\"2\"/>",
            look(bars, index) + 1,
            percent(value)
        ));
    }
    if let Some([low, high]) = interval {
        let (low, high) = (percent(low), percent(high));
        html.push_fmt(format_args!(
            "<line class=\"whisker\" x1=\"{low:.2}%\" x2=\"{high:.2}%\" y1=\"9\" y2=\"9\"/>\
             <line class=\"whisker\" x1=\"{low:.2}%\" x2=\"{low:.2}%\" y1=\"5\" y2=\"13\"/>\
             <line class=\"whisker\" x1=\"{high:.2}%\" x2=\"{high:.2}%\" y1=\"5\" y2=\"13\"/>"
        ));
    }
    let exact = quantity.map_or_else(String::new, Quantity::exact);
    html.push_fmt(format_args!("</svg><data value=\"{exact}\">{shown}</data></div>\n"));
    html
}

fn table(bars: &BarChart) -> String {
    let mut html = String::from("<div class=\"scroll\"><table><thead><tr><th></th>");
    for entry in &bars.legend {
        html.push_fmt(format_args!("<th>{}</th>", escaped(entry)));
    }
    html.push_str("</tr></thead><tbody>\n");
    for row in &bars.rows {
        html.push_fmt(format_args!("<tr><th scope=\"row\">{}</th>", escaped(&row.label)));
        for (value, _) in &row.bars {
            let shown =
                value.map_or_else(|| "unknown".to_owned(), |value| Quantity::new(value, bars.unit).display_text());
            html.push_fmt(format_args!("<td>{shown}</td>"));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    html
}
