//! Curves: a figure at several amounts of work, and the law of its growth.

use std::fmt::Write as _;

use super::plot;

/// Largest growth of a figure that may not grow faster than its work: proportional, and what a noisy machine adds.
const MAX_GROWTH: f64 = 1.25;

/// Smallest factor of work over which a growth is meaningful.
const MIN_DECADE: f64 = 5.0;

/// Figure over the amount of work.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    /// Work and figure, in ascending order of the work.
    pub(super) points: Vec<(f64, f64)>,
    /// True when it may not grow faster than the work.
    pub(super) bounded: bool,
}

impl Curve {
    pub(super) fn new(title: &'static str, unit: &'static str) -> Self {
        Self { title, unit, points: Vec::new(), bounded: true }
    }

    /// A curve that tells, and is bounded by nothing.
    pub(super) fn informative(title: &'static str, unit: &'static str) -> Self {
        Self { bounded: false, ..Self::new(title, unit) }
    }

    /// Power of the work that the figure follows over the last decade; `None` with fewer points, or a figure of 0.
    pub(super) fn growth(&self) -> Option<f64> {
        let (work, last) = *self.points.last()?;
        let (before, first) = *self.points.iter().rev().find(|(before, _)| before * MIN_DECADE <= work)?;
        let growth = (last / first).ln() / (work / before).ln();
        growth.is_finite().then_some(growth)
    }

    fn law(&self) -> String {
        match self.growth() {
            None => "not enough points".to_owned(),
            Some(growth) => {
                let name = match growth {
                    ..0.2 => "constant",
                    0.2..0.85 => "less than proportional",
                    0.85..1.15 => "proportional",
                    _ => "more than proportional",
                };
                format!("{name} ({growth:.2})")
            }
        }
    }
}

/// Curves over one amount of work.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// Method, in sentences.
    pub(super) method: String,
    /// Name of the work, as a plural.
    pub(super) work: &'static str,
    pub(super) curves: Vec<Curve>,
    /// Sentences on what was found.
    pub(super) findings: Vec<String>,
}

impl Section {
    /// Sentences on curves that grow too fast.
    pub(super) fn excesses(&self) -> Vec<String> {
        let too_fast = |curve: &&Curve| curve.bounded && curve.growth().is_some_and(|growth| growth > MAX_GROWTH);
        let sentence = |curve: &Curve| format!("{}: {} grows {}", self.name, curve.title, curve.law());
        self.curves.iter().filter(too_fast).map(sentence).collect()
    }

    /// File name and contents of each plot.
    pub(super) fn plots(&self) -> Vec<(String, String)> {
        self.curves.iter().map(|curve| (self.plot_name(curve), plot::svg(curve, self.work))).collect()
    }

    fn plot_name(&self, curve: &Curve) -> String {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
        format!("{}-{}.svg", self.name, curve.title.chars().map(plain).collect::<String>())
    }

    /// Heading, method, table, findings and plots.
    pub(super) fn markdown(&self, plots: &str) -> String {
        let mut text = format!("\n## {}\n\n{}\n\n| {} |", self.title, self.method, self.work);
        for curve in &self.curves {
            let _ = write!(text, " {} [{}] |", curve.title, curve.unit);
        }
        text.push_str("\n|---:|");
        text.push_str(&"---:|".repeat(self.curves.len()));
        let mut work: Vec<f64> =
            self.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0)).collect();
        work.sort_by(f64::total_cmp);
        work.dedup_by(|one, other| one.total_cmp(other).is_eq());
        for amount in work {
            let _ = write!(text, "\n| {} |", significant(amount));
            for curve in &self.curves {
                let found = curve.points.iter().find(|point| point.0.total_cmp(&amount).is_eq());
                let _ = write!(text, " {} |", found.map_or_else(|| "–".to_owned(), |point| significant(point.1)));
            }
        }
        text.push_str("\n| growth |");
        for curve in &self.curves {
            let _ = write!(text, " {} |", curve.law());
        }
        text.push('\n');
        for finding in &self.findings {
            let _ = write!(text, "\n{finding}\n");
        }
        text.push('\n');
        for curve in &self.curves {
            let _ = writeln!(text, "![{}]({plots}/{})", curve.title, self.plot_name(curve));
        }
        text
    }
}

/// Number with three significant digits, without an exponent.
pub(super) fn significant(number: f64) -> String {
    if number >= 100.0 || number.fract().abs() < f64::EPSILON {
        return format!("{number:.0}");
    }
    let digits = (2.0 - number.abs().max(1e-6).log10().floor()).clamp(0.0, 9.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0 to 9")]
    let digits = digits as usize;
    format!("{number:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(f64, f64)]) -> Curve {
        Curve { points: points.to_vec(), ..Curve::new("time", "s") }
    }

    #[test]
    fn growth_is_that_of_the_last_decade() {
        let near = |points: &[(f64, f64)], expected: f64| {
            let growth = curve(points).growth().expect("enough points");
            assert!((growth - expected).abs() < 0.01, "{growth} instead of {expected}");
        };
        near(&[(1.0, 5.0), (10.0, 5.0), (100.0, 5.0)], 0.0);
        near(&[(1.0, 5.0), (10.0, 6.0), (100.0, 60.0)], 1.0);
        near(&[(10.0, 1.0), (100.0, 100.0)], 2.0);
        assert_eq!(curve(&[(10.0, 1.0)]).growth(), None);
        assert_eq!(curve(&[(1.0, 0.0), (10.0, 1.0)]).growth(), None, "0 has no growth");
    }

    #[test]
    fn only_bounded_curves_exceed() {
        let quadratic = curve(&[(10.0, 1.0), (100.0, 100.0)]);
        let section = Section {
            name: "x",
            title: "X",
            method: String::new(),
            work: "runs",
            curves: vec![quadratic.clone(), Curve { bounded: false, ..quadratic }, curve(&[(1.0, 1.0), (10.0, 10.0)])],
            findings: Vec::new(),
        };
        assert_eq!(section.excesses().len(), 1);
        assert!(section.markdown("plots").contains("| 100 | 100 | 100 | – |"), "{}", section.markdown("plots"));
    }

    #[test]
    fn numbers_have_three_digits() {
        for (number, text) in [(0.0, "0"), (1234.5, "1234"), (12.34, "12.3"), (0.012_34, "0.0123"), (5.0, "5")] {
            assert_eq!(significant(number), text);
        }
    }
}
