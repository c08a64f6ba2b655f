//! Comparison of two runs.

mod environment_difference;

use serde::Serialize;

use super::{FigureUnit, ImprovementDirection, RunDocument, RunFigure};

pub use environment_difference::EnvironmentDifference;

/// Minimum relative difference that matters,
const MIN_RELATIVE_DIFFERENCE: f64 = 0.02;

/// minimum difference of times in nanoseconds (0.1 ms),
const MIN_TIME_DIFFERENCE: f64 = 1e5;

/// and minimum difference of shares (0.1 %).
const MIN_SHARE_DIFFERENCE: f64 = 0.001;

/// Relative difference beyond which an interval around zero is inconclusive.
const MAX_INTERVAL_WIDTH: f64 = 0.25;

/// Two runs, figure by figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunComparison {
    /// Figures of both runs, in the order of the later run.
    pub figures: Vec<FigureComparison>,
    /// Names of the figures that only the first run has.
    pub only_before: Vec<String>,
    /// Names of the figures that only the second run has.
    pub only_after: Vec<String>,
    /// Differences of the environment.
    pub environment: Vec<EnvironmentDifference>,
}

/// One figure of both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureComparison {
    /// Name of the figure.
    pub name: String,
    /// Display title.
    pub title: String,
    /// Unit of all values here.
    pub unit: FigureUnit,
    /// Figure of the first run.
    pub before: RunFigure,
    /// Figure of the second run.
    pub after: RunFigure,
    /// `after` minus `before`; `None` when either is unknown.
    pub difference: Option<f64>,
    /// Lower bound of the 95 % confidence interval of the difference; `None` when either figure has none.
    pub low: Option<f64>,
    /// Upper bound of that interval.
    pub high: Option<f64>,
    /// Conclusion.
    pub judgement: FigureJudgement,
}

/// Meaning of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureJudgement {
    /// The second is better: the interval of the difference excludes zero.
    Better,
    /// The second is worse.
    Worse,
    /// They differ, and neither direction is better.
    Different,
    /// Equal within the confidence: the interval of the difference contains zero and no difference that would matter,
    /// or all of it is too small to matter.
    Equal,
    /// Inconclusive: there is no interval, or it contains zero and also large differences.
    CannotTell,
}

impl RunComparison {
    /// Compares the figures of the same name and unit.
    #[must_use]
    pub fn of(before: &RunDocument, after: &RunDocument) -> Self {
        let find = |figures: &'_ [RunFigure], wanted: &RunFigure| {
            figures.iter().find(|figure| figure.name == wanted.name && figure.unit == wanted.unit).cloned()
        };
        let lacking = |figures: &[RunFigure], others: &[RunFigure]| {
            figures.iter().filter(|figure| find(others, figure).is_none()).map(|figure| figure.name.clone()).collect()
        };
        let both = after
            .figures
            .iter()
            .filter_map(|figure| find(&before.figures, figure).map(|earlier| FigureComparison::of(&earlier, figure)));
        Self {
            figures: both.collect(),
            only_before: lacking(&before.figures, &after.figures),
            only_after: lacking(&after.figures, &before.figures),
            environment: environment_difference::differences(before, after),
        }
    }

    /// True when any figure is worse.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.figures.iter().any(|figure| figure.judgement == FigureJudgement::Worse)
    }
}

impl FigureComparison {
    /// Compares two figures of one unit.
    ///
    /// The interval of the difference is computed from the two intervals by the method of variance estimates recovery
    /// (Zou and Donner 2008, <https://doi.org/10.1002/sim.3095>), which allows asymmetric intervals and assumes
    /// independent runs.
    #[must_use]
    pub fn of(before: &RunFigure, after: &RunFigure) -> Self {
        let known = before.value.zip(after.value);
        let ends = |figure: &RunFigure| figure.low.zip(figure.high);
        let interval = known.zip(ends(before).zip(ends(after))).map(|((was, is), (earlier, later))| {
            let down = (is - later.0).hypot(earlier.1 - was);
            let up = (later.1 - is).hypot(was - earlier.0);
            (is - was - down, is - was + up)
        });
        Self {
            name: after.name.clone(),
            title: after.title.clone(),
            unit: after.unit,
            difference: known.map(|(was, is)| is - was),
            low: interval.map(|(low, _)| low),
            high: interval.map(|(_, high)| high),
            judgement: known.zip(interval).map_or(FigureJudgement::CannotTell, |(values, interval)| {
                judge(values, interval, after.unit, after.better)
            }),
            before: before.clone(),
            after: after.clone(),
        }
    }
}

fn judge(
    (was, is): (f64, f64),
    (low, high): (f64, f64),
    unit: FigureUnit,
    better: ImprovementDirection,
) -> FigureJudgement {
    let scale = was.abs().max(is.abs());
    let margin = (MIN_RELATIVE_DIFFERENCE * scale).max(match unit {
        FigureUnit::Nanoseconds => MIN_TIME_DIFFERENCE,
        FigureUnit::Share => MIN_SHARE_DIFFERENCE,
        _ => 0.0,
    });
    let too_wide = (MAX_INTERVAL_WIDTH * scale).max(margin);
    let within = |limit: f64| low >= -limit && high <= limit;
    if within(margin) {
        return FigureJudgement::Equal;
    }
    if low <= 0.0 && high >= 0.0 {
        return if within(too_wide) { FigureJudgement::Equal } else { FigureJudgement::CannotTell };
    }
    match (better, is > was) {
        (ImprovementDirection::Neither, _) => FigureJudgement::Different,
        (ImprovementDirection::Higher, true) | (ImprovementDirection::Lower, false) => FigureJudgement::Better,
        (ImprovementDirection::Higher, false) | (ImprovementDirection::Lower, true) => FigureJudgement::Worse,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn figure(value: f64, spread: f64, better: ImprovementDirection, unit: FigureUnit) -> RunFigure {
        RunFigure {
            name: "figure".to_owned(),
            title: "Figure".to_owned(),
            unit,
            value: Some(value),
            low: Some(value - spread),
            high: Some(value + spread),
            count: Some(10),
            better,
            note: None,
        }
    }

    fn judged(before: (f64, f64), after: (f64, f64), better: ImprovementDirection) -> FigureJudgement {
        let unit = FigureUnit::BitsPerSecond;
        let of = |(value, spread)| figure(value, spread, better, unit);
        FigureComparison::of(&of(before), &of(after)).judgement
    }

    #[test]
    fn each_judgement_is_given() {
        let (higher, lower) = (ImprovementDirection::Higher, ImprovementDirection::Lower);
        assert_eq!(judged((100.0, 3.0), (120.0, 3.0), higher), FigureJudgement::Better);
        assert_eq!(judged((100.0, 3.0), (120.0, 3.0), lower), FigureJudgement::Worse);
        assert_eq!(judged((120.0, 3.0), (100.0, 3.0), higher), FigureJudgement::Worse);
        assert_eq!(judged((100.0, 3.0), (120.0, 3.0), ImprovementDirection::Neither), FigureJudgement::Different);
        assert_eq!(judged((100.0, 8.0), (104.0, 8.0), higher), FigureJudgement::Equal);
        assert_eq!(judged((100.0, 60.0), (104.0, 60.0), higher), FigureJudgement::CannotTell);
        // Significant, and too small to matter.
        assert_eq!(judged((100.0, 0.01), (101.0, 0.01), higher), FigureJudgement::Equal);
        let mut bare = figure(100.0, 1.0, higher, FigureUnit::BitsPerSecond);
        bare.low = None;
        assert_eq!(FigureComparison::of(&bare, &bare).judgement, FigureJudgement::CannotTell);
        let none = judged((0.0, 0.0), (0.0, 0.0), lower);
        assert_eq!(none, FigureJudgement::Equal, "no retransmissions in either");
    }

    #[test]
    fn a_tenth_of_a_millisecond_does_not_matter() {
        let of = |value| figure(value, 1e3, ImprovementDirection::Lower, FigureUnit::Nanoseconds);
        assert_eq!(FigureComparison::of(&of(50e3), &of(120e3)).judgement, FigureJudgement::Equal);
        assert_eq!(FigureComparison::of(&of(50e3), &of(190e3)).judgement, FigureJudgement::Worse);
    }

    #[test]
    fn intervals_that_are_not_symmetric_keep_their_sides() {
        let mut before = figure(100.0, 0.0, ImprovementDirection::Higher, FigureUnit::BitsPerSecond);
        (before.low, before.high) = (Some(97.0), Some(104.0));
        let mut after = figure(110.0, 0.0, ImprovementDirection::Higher, FigureUnit::BitsPerSecond);
        (after.low, after.high) = (Some(106.0), Some(113.0));
        let comparison = FigureComparison::of(&before, &after);
        // Down √(4² + 4²), up √(3² + 3²).
        assert!((comparison.low.expect("known") - (10.0 - 32.0_f64.sqrt())).abs() < 1e-9);
        assert!((comparison.high.expect("known") - (10.0 + 18.0_f64.sqrt())).abs() < 1e-9);
    }

    proptest! {
        /// Reversed, better becomes worse and everything else stays.
        #[test]
        fn both_orders_agree(was in 0.0..1e10, is in 0.0..1e10, spread in 0.0..1e9, other in 0.0..1e9) {
            let there = judged((was, spread), (is, other), ImprovementDirection::Higher);
            let back = judged((is, other), (was, spread), ImprovementDirection::Higher);
            prop_assert_eq!(back, match there {
                FigureJudgement::Better => FigureJudgement::Worse,
                FigureJudgement::Worse => FigureJudgement::Better,
                same => same,
            });
        }

        #[test]
        fn a_run_equals_itself_where_it_is_sure(value in 1.0..1e10, share in 0.0..0.1_f64) {
            prop_assert_eq!(judged((value, value * share), (value, value * share), ImprovementDirection::Higher), FigureJudgement::Equal);
        }
    }
}
