//! SVG chart of a few series over time.

use std::fmt::Write as _;

/// Size of the drawing, and its margins for labels.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 260.0;
const LEFT_MARGIN: f64 = 52.0;
const BOTTOM_MARGIN: f64 = 24.0;
const TOP_MARGIN: f64 = 14.0;
/// Maximum number of drawn points; each is the largest value of its interval.
const MAX_POINTS: usize = 1200;

/// One curve.
pub(super) struct ChartSeries {
    pub(super) name: &'static str,
    /// CSS class of its colour.
    pub(super) class: &'static str,
    /// True when a value holds until the next one.
    pub(super) steps: bool,
    /// Seconds and values, in time order.
    pub(super) points: Vec<(f64, Option<f64>)>,
}

/// Chart of curves with common axes.
pub(super) struct LogChart {
    pub(super) title: String,
    pub(super) unit: &'static str,
    pub(super) series: Vec<ChartSeries>,
}

/// Mapping from values to coordinates.
struct ChartScale {
    begin: f64,
    end: f64,
    most: f64,
}

impl ChartScale {
    fn x(&self, at: f64) -> f64 {
        LEFT_MARGIN + (at - self.begin) / (self.end - self.begin) * (WIDTH - LEFT_MARGIN - 8.0)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM_MARGIN - value.min(self.most) / self.most * (HEIGHT - BOTTOM_MARGIN - TOP_MARGIN)
    }
}

impl LogChart {
    /// Renders the figure with its caption.
    pub(super) fn svg(&self) -> String {
        let mut text = format!("<figure><figcaption><b>{}</b>", self.title);
        for series in &self.series {
            let _ = write!(text, "<span class=\"key {}\">{}</span>", series.class, series.name);
        }
        text += "</figcaption>\n";
        match self.scale() {
            Some(scale) => self.draw(&scale, &mut text),
            None => text += "<p class=\"log\">The log has no values for this chart.</p>",
        }
        text + "</figure>\n"
    }

    fn scale(&self) -> Option<ChartScale> {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let begin = points().map(|(at, _)| *at).reduce(f64::min)?;
        let end = points().map(|(at, _)| *at).fold(begin + 1.0, f64::max);
        let most = points().filter_map(|(_, value)| *value).reduce(f64::max)?;
        Some(ChartScale { begin, end, most: (most * 1.05).max(1e-3) })
    }

    fn draw(&self, scale: &ChartScale, text: &mut String) {
        let _ = writeln!(text, "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">", self.title);
        let step = round_step(scale.most / 4.0);
        let digits = if step >= 1.0 { 0 } else { 2 };
        let mut value = 0.0;
        while value <= scale.most {
            let y = scale.y(value);
            let _ = writeln!(
                text,
                "<line class=\"grid\" x1=\"{LEFT_MARGIN}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text x=\"{}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{value:.digits$}</text>",
                LEFT_MARGIN - 6.0,
                y + 4.0
            );
            value += step;
        }
        let _ = writeln!(text, "<text x=\"0\" y=\"11\">{}</text>", self.unit);
        draw_time_axis(scale, text);
        for series in &self.series {
            let _ = writeln!(text, "<path class=\"{}\" d=\"{}\"/>", series.class, series.path(scale));
        }
        *text += "</svg>\n";
    }
}

/// Draws the time axis, in seconds since the start.
fn draw_time_axis(scale: &ChartScale, text: &mut String) {
    let step = round_step((scale.end - scale.begin) / 8.0);
    let digits = usize::from(step < 1.0);
    let mut at = 0.0;
    while at <= scale.end - scale.begin {
        let x = scale.x(scale.begin + at);
        let _ =
            writeln!(text, "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{at:.digits$} s</text>", HEIGHT - 6.0);
        at += step;
    }
}

impl ChartSeries {
    /// SVG path of the curve, with gaps for unknown values.
    fn path(&self, scale: &ChartScale) -> String {
        let (mut path, mut open): (String, Option<f64>) = (String::new(), None);
        for (at, value) in self.reduced() {
            let Some(value) = value else {
                open = None;
                continue;
            };
            let (x, y) = (scale.x(at), scale.y(value));
            let _ = match open {
                None => write!(path, "M{x:.1} {y:.1}"),
                Some(before) if self.steps && (before - value).abs() > f64::EPSILON => write!(path, "H{x:.1}V{y:.1}"),
                Some(_) => write!(path, "L{x:.1} {y:.1}"),
            };
            open = Some(value);
        }
        path
    }

    fn reduced(&self) -> Vec<(f64, Option<f64>)> {
        let size = self.points.len().div_ceil(MAX_POINTS).max(1);
        let largest = |part: &[(f64, Option<f64>)]| {
            let value = part.iter().filter_map(|(_, value)| *value).reduce(f64::max);
            part.first().map(|(at, _)| (*at, value))
        };
        self.points.chunks(size).filter_map(largest).collect()
    }
}

/// Returns the smallest of 1, 2, 5, 10, … that is at least `least`.
fn round_step(least: f64) -> f64 {
    let power = 10.0_f64.powf(least.max(1e-6).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power).find(|step| *step >= least).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        for (least, step) in [(0.3, 0.5), (1.0, 1.0), (1.1, 2.0), (37.0, 50.0), (60.0, 100.0)] {
            assert!((round_step(least) - step).abs() < 1e-9, "{least}");
        }
    }

    #[test]
    fn a_rate_holds_until_the_next_one_and_gaps_stay_gaps() {
        let points = vec![(0.0, Some(1.0)), (1.0, Some(2.0)), (2.0, None), (3.0, Some(2.0))];
        let series = ChartSeries { name: "n", class: "a", steps: true, points };
        let path = series.path(&ChartScale { begin: 0.0, end: 3.0, most: 2.0 });
        assert_eq!(
            (path.matches('M').count(), path.matches('H').count(), path.matches('V').count()),
            (2, 1, 1),
            "{path}"
        );
        let long = ChartSeries { name: "n", class: "a", steps: false, points: vec![(0.0, Some(3.0)); 10_000] };
        assert!(long.reduced().len() <= MAX_POINTS);
    }
}
