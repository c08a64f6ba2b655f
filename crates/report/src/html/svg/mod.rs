//! Pictures as SVG, drawn when the page is written: they need no script, and are what is printed.
//!
//! A picture is as wide as its place: labels are at percentages, and the paths between them are stretched, without
//! their strokes. Series differ by colour and by dashes or patterns, so that they also differ in monochrome.

mod axis;
mod panel;
mod shape;

use axis::{log_ticks, short, time_label, time_ticks};
pub(super) use panel::Panel;
use shape::{Point, line_path};

use super::markup::{HtmlWriter as _, escaped};
use crate::presentation::{ChartPhase, DistributionPlot, as_f64};

/// Height of a line of labels.
const LABEL_HEIGHT: u32 = 18;

/// Space between two panels.
const PANEL_GAP: u32 = 10;

/// Space to the left of the plots, for the labels of the vertical axes.
const MARGIN: u32 = 56;

/// Width of a plot in its own units, whatever its width on the page.
const PLOT_WIDTH: f64 = 1000.0;

/// Height of a picture of distributions.
const DISTRIBUTION_HEIGHT: u32 = 200;

/// Patterns that fill areas: the lines over the tone of each series. `Area` elements refer to them by `#look-N`.
const PATTERNS: [&str; 8] = [
    "",
    "M-2 2l4-4M0 8l8-8M6 10l4-4",
    "M2 2h.01M6 6h.01",
    "M-2 6l4 4M0 0l8 8M6-2l4 4",
    "M0 4h8",
    "M4 0v8",
    "M0 4h8M4 0v8",
    "M0 0l8 8M0 8l8-8",
];

/// The definitions of all patterns, once per page.
pub(super) fn definitions() -> String {
    let mut html = String::from("<svg class=\"definitions\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>");
    for (index, lines) in PATTERNS.iter().enumerate() {
        let number = index + 1;
        html.push_fmt(format_args!(
            "<pattern id=\"look-{number}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">\
             <rect class=\"tone-{number}\" width=\"8\" height=\"8\"/><path class=\"ink\" d=\"{lines}\"/></pattern>"
        ));
    }
    html.push_str("</defs></svg>\n");
    html
}

/// Legend of series with their looks; `areas` are filled.
pub(super) fn legend<'a>(entries: impl Iterator<Item = (usize, &'a str, bool)>) -> String {
    let mut html = String::from("<ul class=\"legend static\">\n");
    for (look, name, is_area) in entries {
        html.push_fmt(format_args!("<li>{}<span>{}</span></li>\n", swatch(look, is_area), escaped(name)));
    }
    html.push_str("</ul>\n");
    html
}

/// Legend of distributions; `true` for the earlier of two curves that belong together.
pub(super) fn distribution_legend<'a>(entries: impl Iterator<Item = (usize, &'a str, bool)>) -> String {
    let mut html = String::from("<ul class=\"legend static\">\n");
    for (colour, name, is_earlier) in entries {
        let classes = curve_classes(colour, is_earlier);
        html.push_fmt(format_args!(
            "<li><svg class=\"swatch\" width=\"24\" height=\"12\" aria-hidden=\"true\"><path class=\"{classes}\" \
             d=\"M0 6h24\"/></svg><span>{}</span></li>\n",
            escaped(name)
        ));
    }
    html.push_str("</ul>\n");
    html
}

/// Looks of a curve: the phases differ by their dashes, and of two that belong together the earlier one is thin.
fn curve_classes(colour: usize, is_earlier: bool) -> String {
    let number = colour % PATTERNS.len() + 1;
    format!("line series-{number} dash-{number}{}", if is_earlier { " earlier" } else { "" })
}

fn swatch(look: usize, is_area: bool) -> String {
    let number = look % PATTERNS.len() + 1;
    let mark = if is_area {
        format!("<rect fill=\"url(#look-{number})\" width=\"24\" height=\"12\"/>")
    } else {
        format!("<path class=\"line series-{number} dash-{number}\" d=\"M0 6h24\"/>")
    };
    format!("<svg class=\"swatch\" width=\"24\" height=\"12\" aria-hidden=\"true\">{mark}</svg>")
}

/// Panels one above the other, with one time axis of `end_ns` nanoseconds.
pub(super) fn over_time(panels: &[Panel<'_>], phases: &[ChartPhase], end_ns: u64) -> String {
    let mut picture = Picture { labels: String::new(), plot: String::new(), height: 0 };
    let named = if phases.is_empty() { 0 } else { LABEL_HEIGHT };
    picture.height = named;
    let starts: Vec<u32> = panels.iter().map(|panel| picture.reserve(panel)).collect();
    picture.phases(phases, end_ns, named);
    for (panel, top) in panels.iter().zip(starts) {
        panel.draw(&mut picture, top, end_ns);
    }
    let ticks: Vec<(f64, String)> =
        time_ticks(end_ns).into_iter().map(|time| (as_f64(time) / as_f64(end_ns.max(1)), time_label(time))).collect();
    picture.horizontal_axis(&ticks);
    picture.finish()
}

/// Cumulative distributions.
pub(super) fn distribution(plot: &DistributionPlot) -> String {
    let known = || plot.curves.iter().flat_map(|curve| &curve.points).map(|point| point.0).filter(|it| it.is_finite());
    let (low, high) = known().fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    // Idle and loaded paths are orders of magnitude apart; then equal factors have equal distances.
    let is_wide = low > 0.0 && high / low > 20.0;
    let (low, high) = if is_wide { (low / 1.2, high * 1.2) } else { (low.min(high), high) };
    let place = |value: f64| {
        let share = if is_wide { (value / low).ln() / (high / low).ln() } else { (value - low) / (high - low) };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    };
    let (factor, unit) = axis::axis_unit(plot.unit, high);
    let mut picture = Picture { labels: String::new(), plot: String::new(), height: LABEL_HEIGHT };
    picture
        .labels
        .push_fmt(format_args!("<text class=\"panel\" x=\"{MARGIN}\" y=\"12\">% of samples, against {unit}</text>\n"));
    let top = picture.height;
    picture.height += DISTRIBUTION_HEIGHT;
    for percent in [0_u32, 25, 50, 75, 100] {
        let y = top + DISTRIBUTION_HEIGHT - DISTRIBUTION_HEIGHT * percent / 100;
        picture.grid_line(f64::from(y), &percent.to_string());
    }
    picture.open_plot(top, DISTRIBUTION_HEIGHT);
    for curve in &plot.curves {
        let point = |&(value, share): &(f64, f64)| {
            let y = f64::from(DISTRIBUTION_HEIGHT) * (1.0 - share);
            Some(Point { x: place(value) * PLOT_WIDTH, y })
        };
        let classes = curve_classes(curve.colour, curve.dashed);
        let path = line_path(curve.points.iter().map(point));
        picture.plot.push_fmt(format_args!("<path class=\"{classes}\" d=\"{path}\"/>\n"));
    }
    picture.plot.push_str("</svg>\n");
    let ticks = if is_wide { log_ticks(low, high) } else { axis::ticks(low, high, 4) };
    let ticks: Vec<(f64, String)> = ticks.into_iter().map(|tick| (place(tick), short(tick / factor))).collect();
    picture.horizontal_axis(&spread(ticks));
    picture.finish()
}

/// Ticks that are far enough apart for their labels on a phone.
fn spread(ticks: Vec<(f64, String)>) -> Vec<(f64, String)> {
    const MIN_DISTANCE: f64 = 0.11;
    let mut kept: Vec<(f64, String)> = Vec::new();
    for tick in ticks {
        if kept.last().is_none_or(|last| tick.0 - last.0 >= MIN_DISTANCE) {
            kept.push(tick);
        }
    }
    kept
}

/// A picture while it is drawn.
struct Picture {
    /// Labels to the left of the plot, and titles above.
    labels: String,
    /// Content of the plot, of which percentages are parts.
    plot: String,
    height: u32,
}

impl Picture {
    /// Adds the height of `panel`, and returns the top of its plot.
    fn reserve(&mut self, panel: &Panel<'_>) -> u32 {
        let is_first = self.height <= LABEL_HEIGHT;
        let top = self.height + LABEL_HEIGHT + if is_first { 0 } else { PANEL_GAP };
        self.height = top + panel.height;
        top
    }

    /// A horizontal line with its label.
    fn grid_line(&mut self, y: f64, label: &str) {
        let y = shape::decimal(y);
        self.plot.push_fmt(format_args!("<line class=\"grid\" x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/>\n"));
        self.labels.push_fmt(format_args!(
            "<text class=\"tick\" x=\"{}\" y=\"{y}\" dy=\"4\" text-anchor=\"end\">{}</text>\n",
            MARGIN - 6,
            escaped(label)
        ));
    }

    /// Opens the element of stretched paths.
    fn open_plot(&mut self, top: u32, height: u32) {
        self.plot.push_fmt(format_args!(
            "<svg y=\"{top}\" width=\"100%\" height=\"{height}\" viewBox=\"0 0 {PLOT_WIDTH} {height}\" \
             preserveAspectRatio=\"none\">\n"
        ));
    }

    /// Shades every other phase over the whole height, and names each where it begins.
    fn phases(&mut self, phases: &[ChartPhase], end_ns: u64, named: u32) {
        for (index, phase) in phases.iter().enumerate() {
            let (start, width) = shape::percentages(phase.start_ns, phase.end_ns, end_ns);
            if index % 2 == 1 {
                let (y, height) = (named, self.height.saturating_sub(named));
                self.plot.push_fmt(format_args!(
                    "<rect class=\"shade\" x=\"{start}%\" width=\"{width}%\" y=\"{y}\" height=\"{height}\"/>\n"
                ));
            }
            self.plot.push_fmt(format_args!(
                "<svg x=\"{start}%\" width=\"{width}%\" height=\"{named}\"><text class=\"tick\" x=\"3\" y=\"12\">{}\
                 </text></svg>\n",
                escaped(&phase.name)
            ));
        }
    }

    /// Labels at shares of the width.
    fn horizontal_axis(&mut self, ticks: &[(f64, String)]) {
        let y = self.height + 14;
        for (share, label) in ticks {
            let anchor = if *share < 0.02 {
                "start"
            } else if *share > 0.97 {
                "end"
            } else {
                "middle"
            };
            self.plot.push_fmt(format_args!(
                "<text class=\"tick\" x=\"{}%\" y=\"{y}\" text-anchor=\"{anchor}\">{}</text>\n",
                shape::decimal(share * 100.0),
                escaped(label)
            ));
        }
        self.height += LABEL_HEIGHT;
    }

    fn finish(self) -> String {
        let Self { labels, plot, height } = self;
        format!(
            "<div class=\"picture\" aria-hidden=\"true\">\n\
             <svg class=\"labels\" width=\"{MARGIN}\" height=\"{height}\">\n{labels}</svg>\n\
             <svg class=\"plot\" width=\"100%\" height=\"{height}\">\n{plot}</svg>\n</div>\n"
        )
    }
}
