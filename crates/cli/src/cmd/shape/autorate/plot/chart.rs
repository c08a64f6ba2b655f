//! A chart of a few series over time, as SVG.

use std::fmt::Write as _;

/// The drawing's size, and the room for numbers beside it.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 52.0;
const BELOW: f64 = 24.0;
const ABOVE: f64 = 14.0;
/// More points than this cannot be told apart; each drawn point is the largest value of its part.
const PARTS: usize = 1200;

/// One curve.
pub(super) struct Series {
    pub(super) name: &'static str,
    /// The letter of its colour.
    pub(super) class: &'static str,
    /// A value holds until the next one.
    pub(super) steps: bool,
    /// Seconds and values, in the order of time.
    pub(super) points: Vec<(f64, Option<f64>)>,
}

/// Curves with common axes.
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) unit: &'static str,
    pub(super) series: Vec<Series>,
}

/// From values to places.
struct Scale {
    begin: f64,
    end: f64,
    most: f64,
}

impl Scale {
    fn x(&self, at: f64) -> f64 {
        LEFT + (at - self.begin) / (self.end - self.begin) * (WIDTH - LEFT - 8.0)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BELOW - value.min(self.most) / self.most * (HEIGHT - BELOW - ABOVE)
    }
}

impl Chart {
    /// The figure with its caption.
    pub(super) fn svg(&self) -> String {
        let mut text = format!("<figure><figcaption><b>{}</b>", self.title);
        for series in &self.series {
            let _ = write!(text, "<span class=\"key {}\">{}</span>", series.class, series.name);
        }
        text += "</figcaption>\n";
        match self.scale() {
            Some(scale) => self.draw(&scale, &mut text),
            None => text += "<p class=\"log\">The log says nothing about it.</p>",
        }
        text + "</figure>\n"
    }

    fn scale(&self) -> Option<Scale> {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let begin = points().map(|(at, _)| *at).reduce(f64::min)?;
        let end = points().map(|(at, _)| *at).fold(begin + 1.0, f64::max);
        let most = points().filter_map(|(_, value)| *value).reduce(f64::max)?;
        Some(Scale { begin, end, most: (most * 1.05).max(1e-3) })
    }

    fn draw(&self, scale: &Scale, text: &mut String) {
        let _ = writeln!(text, "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">", self.title);
        let step = round_step(scale.most / 4.0);
        let digits = if step >= 1.0 { 0 } else { 2 };
        let mut value = 0.0;
        while value <= scale.most {
            let y = scale.y(value);
            let _ = writeln!(
                text,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text x=\"{}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{value:.digits$}</text>",
                LEFT - 6.0,
                y + 4.0
            );
            value += step;
        }
        let _ = writeln!(text, "<text x=\"0\" y=\"11\">{}</text>", self.unit);
        times(scale, text);
        for series in &self.series {
            let _ = writeln!(text, "<path class=\"{}\" d=\"{}\"/>", series.class, series.path(scale));
        }
        *text += "</svg>\n";
    }
}

/// Seconds since the beginning, below.
fn times(scale: &Scale, text: &mut String) {
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

impl Series {
    /// The curve, with gaps where nothing is known.
    fn path(&self, scale: &Scale) -> String {
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
        let size = self.points.len().div_ceil(PARTS).max(1);
        let largest = |part: &[(f64, Option<f64>)]| {
            let value = part.iter().filter_map(|(_, value)| *value).reduce(f64::max);
            part.first().map(|(at, _)| (*at, value))
        };
        self.points.chunks(size).filter_map(largest).collect()
    }
}

/// The smallest of 1, 2, 5, 10, … that is not below.
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
        let series = Series { name: "n", class: "a", steps: true, points };
        let path = series.path(&Scale { begin: 0.0, end: 3.0, most: 2.0 });
        assert_eq!(
            (path.matches('M').count(), path.matches('H').count(), path.matches('V').count()),
            (2, 1, 1),
            "{path}"
        );
        let long = Series { name: "n", class: "a", steps: false, points: vec![(0.0, Some(3.0)); 10_000] };
        assert!(long.reduced().len() <= PARTS);
    }
}
