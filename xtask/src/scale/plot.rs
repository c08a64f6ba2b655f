//! Plot of a curve as SVG, both axes logarithmic.

use std::fmt::Write as _;

use super::curve::{Curve, significant};

const WIDTH: f64 = 436.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 32.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 36.0;

/// Smallest figure that is drawn: 0 has no logarithm.
const LEAST: f64 = 1e-4;

/// Logarithmic axis over whole decades.
struct Axis {
    /// Exponents of its ends.
    low: f64,
    high: f64,
    /// Coordinates of its ends.
    from: f64,
    to: f64,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.map(|value| value.max(LEAST).log10()) {
            (low, high) = (low.min(value.floor()), high.max(value.ceil()));
        }
        Self { low, high: high.max(low + 1.0), from, to }
    }

    fn place(&self, value: f64) -> f64 {
        self.from + (value.max(LEAST).log10() - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    /// Whole powers of ten.
    fn ticks(&self) -> impl Iterator<Item = f64> {
        let (low, high) = (self.low, self.high);
        std::iter::successors(Some(low), move |last| (last + 1.0 <= high).then_some(last + 1.0))
            .map(|power| 10_f64.powf(power))
    }
}

/// Draws a curve; `work` names the horizontal axis.
pub(super) fn svg(curve: &Curve, work: &str) -> String {
    let points = || curve.points.iter();
    let across = Axis::over(points().map(|point| point.0), LEFT, WIDTH - RIGHT);
    let up = Axis::over(points().map(|point| point.1), HEIGHT - BOTTOM, TOP);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"11\" fill=\"#333\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         fill=\"#fff\"/>\n<text x=\"{LEFT}\" y=\"16\" font-weight=\"bold\">{} [{}]</text>\n",
        curve.title, curve.unit
    );
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    for tick in up.ticks() {
        let (y, label) = (up.place(tick), significant(tick));
        let _ = write!(
            text,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\n<text x=\"{}\" y=\"{:.1}\" \
             text-anchor=\"end\">{label}</text>\n",
            LEFT - 6.0,
            y + 4.0
        );
    }
    for tick in across.ticks() {
        let x = across.place(tick);
        let _ = write!(
            text,
            "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#ddd\"/>\n<text x=\"{x:.1}\" \
             y=\"{}\" text-anchor=\"middle\">{}</text>\n",
            bottom + 14.0,
            significant(tick)
        );
    }
    let _ = writeln!(text, "<text x=\"{right}\" y=\"{}\" text-anchor=\"end\">{work}</text>", HEIGHT - 6.0);
    let places: Vec<(f64, f64)> = points().map(|point| (across.place(point.0), up.place(point.1))).collect();
    let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ =
        writeln!(text, "<polyline points=\"{}\" fill=\"none\" stroke=\"#0b62a4\" stroke-width=\"2\"/>", path.join(" "));
    for (x, y) in places {
        let _ = writeln!(text, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"#0b62a4\"/>");
    }
    text.push_str("</svg>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_lie_within_the_picture() {
        let mut curve = Curve::new("time", "s");
        curve.points = vec![(1.0, 0.0), (10.0, 0.5), (1000.0, 80.0)];
        let svg = svg(&curve, "runs");
        assert_eq!(svg.matches("<circle").count(), 3);
        let numbers = |key: &str| -> Vec<f64> {
            svg.split(&format!("{key}=\"")).skip(1).filter_map(|rest| rest.split('"').next()?.parse().ok()).collect()
        };
        assert!(numbers("cx").iter().all(|x| (LEFT..=WIDTH - RIGHT).contains(x)), "{svg}");
        assert!(numbers("cy").iter().all(|y| (TOP..=HEIGHT - BOTTOM).contains(y)), "{svg}");
    }
}
