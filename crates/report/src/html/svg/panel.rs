//! One panel of a picture over time.

use linerate_documents::run::FigureUnit;

use super::axis::{axis_unit, short, ticks};
use super::shape::{self, Point, across, line_path};
use super::{MARGIN, PATTERNS, PLOT_WIDTH, Picture};
use crate::html::markup::{HtmlWriter as _, escaped};
use crate::html::reduce::ReducedSeries;
use crate::html::trace::Trace;
use crate::presentation::{LevelMark, Quantity};

/// A panel.
pub(in crate::html) struct Panel<'a> {
    /// Display title; empty for none.
    pub(in crate::html) title: &'a str,
    /// Unit of all values.
    pub(in crate::html) unit: FigureUnit,
    /// Series.
    pub(in crate::html) traces: Vec<Trace>,
    /// True for shares that are stacked.
    pub(in crate::html) is_stacked: bool,
    /// Levels to be named.
    pub(in crate::html) marks: &'a [LevelMark],
    /// Height of the plot.
    pub(in crate::html) height: u32,
}

/// Range of the vertical axis.
#[derive(Clone, Copy)]
struct ValueAxis {
    low: f64,
    high: f64,
    height: f64,
    /// Largest value, where it is beyond the axis.
    beyond: Option<f64>,
}

impl ValueAxis {
    fn y(self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        if share.is_finite() { self.height * (1.0 - share.clamp(0.0, 1.0)) } else { self.height }
    }
}

impl Panel<'_> {
    /// Draws the panel with its plot from `top` on.
    pub(super) fn draw(&self, picture: &mut Picture, top: u32, end_ns: u64) {
        let axis = self.axis();
        let (factor, unit) = axis_unit(self.unit, axis.high.abs().max(axis.low.abs()));
        let separator = if self.title.is_empty() || unit.is_empty() { "" } else { ", " };
        let unit = if self.is_stacked { "% of the time" } else { &unit };
        picture.labels.push_fmt(format_args!(
            "<text class=\"panel\" x=\"{MARGIN}\" y=\"{}\">{}{separator}{unit}</text>\n",
            top - 5,
            escaped(self.title)
        ));
        let ticks = if self.is_stacked { vec![0.0, 0.5, 1.0] } else { ticks(axis.low, axis.high, 4) };
        for tick in ticks {
            picture.grid_line(f64::from(top) + axis.y(tick), &short(tick / factor));
        }
        picture.open_plot(top, self.height);
        if self.is_stacked {
            self.areas(picture, end_ns);
        } else {
            self.lines(picture, axis, end_ns);
        }
        picture.plot.push_str("</svg>\n");
        for mark in self.marks {
            push_mark(picture, mark, f64::from(top) + axis.y(mark.value), (top, end_ns));
        }
        if let Some(beyond) = axis.beyond {
            let shown = Quantity::new(beyond, self.unit).display_text();
            picture.plot.push_fmt(format_args!(
                "<text class=\"tick\" x=\"100%\" y=\"{}\" text-anchor=\"end\">▲ single samples up to {shown}</text>\n",
                top + 11
            ));
        }
    }

    fn areas(&self, picture: &mut Picture, end_ns: u64) {
        let paths = shape::stack(&self.traces, end_ns, f64::from(self.height));
        for (trace, path) in self.traces.iter().zip(paths) {
            let number = trace.look % PATTERNS.len() + 1;
            picture.plot.push_fmt(format_args!("<path class=\"area\" fill=\"url(#look-{number})\" d=\"{path}\"/>\n"));
        }
    }

    /// Samples of all series first, so that the curves are above them.
    fn lines(&self, picture: &mut Picture, axis: ValueAxis, end_ns: u64) {
        let curves = self.traces.iter().filter_map(|trace| Some((trace, trace.curve.as_ref()?, "")));
        let samples = self.traces.iter().map(|trace| {
            let look = if trace.curve.is_some() { " samples" } else { "" };
            (trace, &trace.samples, look)
        });
        for (trace, series, look) in samples.chain(curves) {
            let number = trace.look % PATTERNS.len() + 1;
            let dashes = if look.is_empty() { format!(" dash-{number}") } else { String::new() };
            let path = line_path(points(series, axis, end_ns));
            picture.plot.push_fmt(format_args!("<path class=\"line series-{number}{dashes}{look}\" d=\"{path}\"/>\n"));
        }
    }

    /// From 0, but for times that differ little: an idle path's round trips vary by a few percent. Single delays far
    /// above all others would flatten the rest.
    fn axis(&self) -> ValueAxis {
        const MAX_OUTLIER: f64 = 3.0;
        let height = f64::from(self.height);
        let mut values: Vec<f64> =
            self.traces.iter().flat_map(|trace| trace.samples.values.iter().flatten()).copied().collect();
        values.extend(self.marks.iter().map(|mark| mark.value));
        values.retain(|value| value.is_finite());
        values.sort_unstable_by(f64::total_cmp);
        let (Some(&low), Some(&high)) = (values.first(), values.last()) else {
            return ValueAxis { low: 0.0, high: 1.0, height, beyond: None };
        };
        if self.is_stacked {
            return ValueAxis { low: 0.0, high: 1.0, height, beyond: None };
        }
        let usual = values[(values.len() - 1) * 99 / 100];
        let is_delay = self.unit == FigureUnit::Nanoseconds;
        let beyond = (is_delay && high > MAX_OUTLIER * usual && usual > 0.0).then_some(high);
        let top = if beyond.is_some() { 1.3 * usual } else { high };
        let margin = (top - low) * 0.1;
        if is_delay && low > top / 2.0 && margin > 0.0 {
            return ValueAxis { low: low - margin, high: top + margin, height, beyond };
        }
        ValueAxis { low: low.min(0.0), high: if top > 0.0 { top * 1.06 } else { 1.0 }, height, beyond }
    }
}

fn points(series: &ReducedSeries, axis: ValueAxis, end_ns: u64) -> impl Iterator<Item = Option<Point>> {
    series.times_ns.iter().zip(&series.values).map(move |(time, value)| {
        let value = value.filter(|value| value.is_finite())?;
        Some(Point { x: across(*time, end_ns).min(PLOT_WIDTH), y: axis.y(value) })
    })
}

/// A level with its text, above it where there is space.
fn push_mark(picture: &mut Picture, mark: &LevelMark, y: f64, (top, end_ns): (u32, u64)) {
    let (start, width) = shape::percentages(mark.start_ns, mark.end_ns, end_ns);
    let below = y < f64::from(top) + 16.0;
    let text_y = if below { y + 14.0 } else { y - 5.0 };
    let (y, text_y) = (shape::decimal(y), shape::decimal(text_y));
    picture.plot.push_fmt(format_args!(
        "<svg x=\"{start}%\" width=\"{width}%\" height=\"{}\"><line class=\"mark\" x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/>\
         <text class=\"mark\" x=\"4\" y=\"{text_y}\">{}</text></svg>\n",
        picture.height,
        escaped(&mark.text)
    ));
}
