//! Two runs side by side.

mod surroundings;

use serde::Serialize;

use super::{Better, Figure, RunDocument, Unit};

pub use surroundings::EnvironmentDifference;

/// A difference of less than this share of the value does not matter.
const MARGIN: f64 = 0.02;

/// Nor does one of less than 0.1 ms between times,
const MARGIN_OF_TIMES: f64 = 1e5;

/// nor one of less than 0.1 % between shares.
const MARGIN_OF_SHARES: f64 = 0.001;

/// An interval that holds zero, but also differences of more than this share of the value, says nothing.
const TOO_WIDE: f64 = 0.25;

/// Two runs, figure by figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunComparison {
    /// The figures that both have, in the order of the later run.
    pub figures: Vec<FigureComparison>,
    /// Names of the figures that only the first run has.
    pub only_before: Vec<String>,
    /// Names of the figures that only the second run has.
    pub only_after: Vec<String>,
    /// What was different around them.
    pub environment: Vec<EnvironmentDifference>,
}

/// One figure of both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureComparison {
    /// The figure's name.
    pub name: String,
    /// What a person reads.
    pub title: String,
    /// Unit of all values here.
    pub unit: Unit,
    /// The first run's.
    pub before: Figure,
    /// The second run's.
    pub after: Figure,
    /// `after` minus `before`; `None` when either is unknown.
    pub difference: Option<f64>,
    /// Lower end of the 95 % confidence interval of the difference; `None` when either figure has none.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// What follows.
    pub judgement: Judgement,
}

/// What a difference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// The second is better: the interval of the difference leaves out zero.
    Better,
    /// The second is worse.
    Worse,
    /// They differ, and neither way is better.
    Different,
    /// Equal within the confidence: the interval of the difference holds zero and nothing that would matter, or all of it
    /// is too small to matter.
    Equal,
    /// Neither can be said: there is no interval, or it holds zero and large differences, too.
    CannotTell,
}

impl RunComparison {
    /// Compares the figures of the same name and unit.
    #[must_use]
    pub fn of(before: &RunDocument, after: &RunDocument) -> Self {
        let find = |figures: &'_ [Figure], wanted: &Figure| {
            figures.iter().find(|figure| figure.name == wanted.name && figure.unit == wanted.unit).cloned()
        };
        let lacking = |figures: &[Figure], others: &[Figure]| {
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
            environment: surroundings::differences(before, after),
        }
    }

    /// Whether any figure is worse.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.figures.iter().any(|figure| figure.judgement == Judgement::Worse)
    }
}

impl FigureComparison {
    /// Compares two figures of one unit.
    ///
    /// The interval of the difference is made of the two intervals by the method of variance estimates recovery (Zou and
    /// Donner 2008, <https://doi.org/10.1002/sim.3095>), which takes intervals that are not symmetric, and runs to be
    /// independent of each other.
    #[must_use]
    pub fn of(before: &Figure, after: &Figure) -> Self {
        let known = before.value.zip(after.value);
        let ends = |figure: &Figure| figure.low.zip(figure.high);
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
            judgement: known
                .zip(interval)
                .map_or(Judgement::CannotTell, |(values, interval)| judge(values, interval, after.unit, after.better)),
            before: before.clone(),
            after: after.clone(),
        }
    }
}

fn judge((was, is): (f64, f64), (low, high): (f64, f64), unit: Unit, better: Better) -> Judgement {
    let scale = was.abs().max(is.abs());
    let margin = (MARGIN * scale).max(match unit {
        Unit::Nanoseconds => MARGIN_OF_TIMES,
        Unit::Share => MARGIN_OF_SHARES,
        _ => 0.0,
    });
    let too_wide = (TOO_WIDE * scale).max(margin);
    let within = |limit: f64| low >= -limit && high <= limit;
    if within(margin) {
        return Judgement::Equal;
    }
    if low <= 0.0 && high >= 0.0 {
        return if within(too_wide) { Judgement::Equal } else { Judgement::CannotTell };
    }
    match (better, is > was) {
        (Better::Neither, _) => Judgement::Different,
        (Better::Higher, true) | (Better::Lower, false) => Judgement::Better,
        (Better::Higher, false) | (Better::Lower, true) => Judgement::Worse,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn figure(value: f64, spread: f64, better: Better, unit: Unit) -> Figure {
        Figure {
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

    fn judged(before: (f64, f64), after: (f64, f64), better: Better) -> Judgement {
        let unit = Unit::BitsPerSecond;
        let of = |(value, spread)| figure(value, spread, better, unit);
        FigureComparison::of(&of(before), &of(after)).judgement
    }

    #[test]
    fn each_judgement_is_given() {
        let (higher, lower) = (Better::Higher, Better::Lower);
        assert_eq!(judged((100.0, 3.0), (120.0, 3.0), higher), Judgement::Better);
        assert_eq!(judged((100.0, 3.0), (120.0, 3.0), lower), Judgement::Worse);
        assert_eq!(judged((120.0, 3.0), (100.0, 3.0), higher), Judgement::Worse);
        assert_eq!(judged((100.0, 3.0), (120.0, 3.0), Better::Neither), Judgement::Different);
        assert_eq!(judged((100.0, 8.0), (104.0, 8.0), higher), Judgement::Equal);
        assert_eq!(judged((100.0, 60.0), (104.0, 60.0), higher), Judgement::CannotTell);
        // Surely there, and too small to matter.
        assert_eq!(judged((100.0, 0.01), (101.0, 0.01), higher), Judgement::Equal);
        let mut bare = figure(100.0, 1.0, higher, Unit::BitsPerSecond);
        bare.low = None;
        assert_eq!(FigureComparison::of(&bare, &bare).judgement, Judgement::CannotTell);
        let none = judged((0.0, 0.0), (0.0, 0.0), lower);
        assert_eq!(none, Judgement::Equal, "nothing was sent again in either");
    }

    #[test]
    fn a_tenth_of_a_millisecond_does_not_matter() {
        let of = |value| figure(value, 1e3, Better::Lower, Unit::Nanoseconds);
        assert_eq!(FigureComparison::of(&of(50e3), &of(120e3)).judgement, Judgement::Equal);
        assert_eq!(FigureComparison::of(&of(50e3), &of(190e3)).judgement, Judgement::Worse);
    }

    #[test]
    fn intervals_that_are_not_symmetric_keep_their_sides() {
        let mut before = figure(100.0, 0.0, Better::Higher, Unit::BitsPerSecond);
        (before.low, before.high) = (Some(97.0), Some(104.0));
        let mut after = figure(110.0, 0.0, Better::Higher, Unit::BitsPerSecond);
        (after.low, after.high) = (Some(106.0), Some(113.0));
        let comparison = FigureComparison::of(&before, &after);
        // Down √(4² + 4²), up √(3² + 3²).
        assert!((comparison.low.expect("known") - (10.0 - 32.0_f64.sqrt())).abs() < 1e-9);
        assert!((comparison.high.expect("known") - (10.0 + 18.0_f64.sqrt())).abs() < 1e-9);
    }

    proptest! {
        /// The other way round, better is worse and everything else stays.
        #[test]
        fn both_orders_agree(was in 0.0..1e10, is in 0.0..1e10, spread in 0.0..1e9, other in 0.0..1e9) {
            let there = judged((was, spread), (is, other), Better::Higher);
            let back = judged((is, other), (was, spread), Better::Higher);
            prop_assert_eq!(back, match there {
                Judgement::Better => Judgement::Worse,
                Judgement::Worse => Judgement::Better,
                same => same,
            });
        }

        #[test]
        fn a_run_equals_itself_where_it_is_sure(value in 1.0..1e10, share in 0.0..0.1_f64) {
            prop_assert_eq!(judged((value, value * share), (value, value * share), Better::Higher), Judgement::Equal);
        }
    }
}
