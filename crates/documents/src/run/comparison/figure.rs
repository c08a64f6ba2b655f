//! Comparison of one figure.

use linerate_analysis::statistics::StudentEstimate;
use linerate_units::Ratio;
use serde::Serialize;

use crate::run::{FigureUnit, ImprovementDirection, RunFigure};

/// Runs on each side from which on their variation is measured.
const MIN_RUNS: usize = 3;

/// Smallest relative difference that matters: "equal" is a difference shown to be smaller,
const MARGIN: f64 = 0.02;
/// or smaller than this, for times in nanoseconds (0.1 ms)
const TIME_MARGIN: f64 = 1e5;
/// and shares (0.1 %).
const SHARE_MARGIN: f64 = 0.001;

/// Standard deviation between runs of one path that is assumed where it was not measured, relative to the value: at
/// least a tenth, twice the deviation of the seconds within a run, and half of counts and shares of lost packets.
const LEAST_RUN_DEVIATION: f64 = 0.10;
const RUN_DEVIATION_PER_SECOND: f64 = 2.0;
const LOSS_RUN_DEVIATION: f64 = 0.5;

/// Half of a 95 % interval in standard errors.
const HALF_INTERVAL: f64 = 1.96;

/// Number of seconds that is assumed where a figure does not have it, and its maximum: more samples are not seconds.
const USUAL_COUNT: f64 = 10.0;
const MAX_COUNT: f64 = 30.0;

/// Error probability of "equal" (two one-sided tests; Schuirmann 1987).
const FALSE_EQUAL: f64 = 0.05;

/// Evidence of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ComparisonBasis {
    /// Fewer than three runs on a side. Intervals and "equal" hold within these runs only. Better and worse are
    /// differences beyond an assumed variation between runs of one path.
    WithinRuns,
    /// Three runs or more on each side: their variation is measured.
    BetweenRuns,
}

impl ComparisonBasis {
    pub(super) const fn of(before: usize, after: usize) -> Self {
        if before >= MIN_RUNS && after >= MIN_RUNS { Self::BetweenRuns } else { Self::WithinRuns }
    }
}

/// One figure of both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FigureComparison {
    /// Name of the figure.
    pub name: String,
    /// Display title.
    pub title: String,
    /// Unit of all values here.
    pub unit: FigureUnit,
    /// Figure of the first side; of several runs, their mean with its interval.
    pub before: RunFigure,
    /// Figure of the second side.
    pub after: RunFigure,
    /// `after` minus `before`; `None` when either is unknown.
    pub difference: Option<f64>,
    /// Lower bound of the 95 % confidence interval of the difference, between runs or within them; `None` when it cannot
    /// be computed.
    pub low: Option<f64>,
    /// Upper bound of that interval.
    pub high: Option<f64>,
    /// Conclusion.
    pub judgement: FigureJudgement,
    #[serde(skip)]
    test: Option<DifferenceTest>,
}

/// Meaning of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FigureJudgement {
    /// The second is better: a difference beyond the variation between runs, and larger than the margin.
    Better,
    /// The second is worse.
    Worse,
    /// They differ, and neither direction is better.
    Different,
    /// Equivalent: shown to differ by less than the margin of 2 %, 0.1 ms or 0.1 % (two one-sided tests at 5 %).
    Equal,
    /// Inconclusive.
    CannotTell,
}

/// Estimates that decide on a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
struct DifferenceTest {
    /// Difference with the variation between runs, measured or assumed; its scale does not matter.
    of_runs: StudentEstimate,
    /// True when the difference was shown to be within the margin.
    is_equivalent: bool,
    /// True when the difference exceeds the margin.
    matters: bool,
}

impl FigureComparison {
    /// Compares a figure of one unit; `None` without a figure on either side.
    pub(super) fn of(basis: ComparisonBasis, before: &[&RunFigure], after: &[&RunFigure]) -> Option<Self> {
        let (earlier, later) = (summary(before)?, summary(after)?);
        let known = earlier.value.zip(later.value);
        let found = known.and_then(|(was, is)| {
            let margin = margin(was, is, later.unit);
            match basis {
                ComparisonBasis::BetweenRuns => between_runs(before, after, margin, later.unit),
                ComparisonBasis::WithinRuns => within_runs(&earlier, &later, margin, before.len(), after.len()),
            }
        });
        Some(Self {
            name: later.name.clone(),
            title: later.title.clone(),
            unit: later.unit,
            difference: known.map(|(was, is)| is - was),
            low: found.map(|((low, _), _)| low),
            high: found.map(|((_, high), _)| high),
            judgement: FigureJudgement::CannotTell,
            test: found.map(|(_, test)| test),
            before: earlier,
            after: later,
        })
    }

    /// Probability of such a difference by chance; `None` without an interval.
    pub(super) fn p_value(&self) -> Option<Ratio> {
        self.test.map(|test| test.of_runs.p_value())
    }

    /// Concludes from the tests of all figures together.
    pub(super) fn judge(&mut self, is_different: bool) {
        let Some(test) = self.test else { return };
        self.judgement = if test.is_equivalent {
            FigureJudgement::Equal
        } else if !(is_different && test.matters) {
            FigureJudgement::CannotTell
        } else {
            match (self.after.better, test.of_runs.mean > 0.0) {
                (ImprovementDirection::Neither, _) => FigureJudgement::Different,
                (ImprovementDirection::Higher, true) | (ImprovementDirection::Lower, false) => FigureJudgement::Better,
                (ImprovementDirection::Higher, false) | (ImprovementDirection::Lower, true) => FigureJudgement::Worse,
            }
        };
    }
}

/// Difference that does not matter.
fn margin(was: f64, is: f64, unit: FigureUnit) -> f64 {
    (MARGIN * was.abs().max(is.abs())).max(match unit {
        FigureUnit::Nanoseconds => TIME_MARGIN,
        FigureUnit::Share => SHARE_MARGIN,
        _ => 0.0,
    })
}

/// Figure of one side: itself, or the mean of several with half-widths of independent runs.
#[expect(clippy::cast_precision_loss, reason = "counts of runs are far below 2^53")]
fn summary(figures: &[&RunFigure]) -> Option<RunFigure> {
    let last = (*figures.last()?).clone();
    if figures.len() == 1 {
        return Some(last);
    }
    let all: Vec<&&RunFigure> = figures.iter().filter(|figure| figure.value.is_some()).collect();
    let count = all.len() as f64;
    let mean = |read: fn(&RunFigure) -> Option<f64>| -> Option<f64> {
        let sum: Option<f64> = all.iter().map(|figure| read(figure)).sum();
        sum.filter(|_| count > 0.0).map(|sum| sum / count)
    };
    let value = mean(|figure| figure.value);
    let half = |end: fn(&RunFigure) -> Option<f64>| {
        let squares: Option<f64> = all.iter().map(|figure| Some((end(figure)? - figure.value?).powi(2))).sum();
        squares.map(|squares| squares.sqrt() / count)
    };
    let (down, up) = (half(|figure| figure.low), half(|figure| figure.high));
    Some(RunFigure {
        value,
        low: value.zip(down).map(|(value, down)| value - down),
        high: value.zip(up).map(|(value, up)| value + up),
        ..last
    })
}

/// Interval of the difference, and the test.
type Found = ((f64, f64), DifferenceTest);

fn between_runs(before: &[&RunFigure], after: &[&RunFigure], margin: f64, unit: FigureUnit) -> Option<Found> {
    let values = |figures: &[&RunFigure]| -> Vec<f64> { figures.iter().filter_map(|figure| figure.value).collect() };
    let (was, is) = (values(before), values(after));
    if was.len().min(is.len()) < MIN_RUNS {
        return None;
    }
    let of_runs = StudentEstimate::of_two_samples(&was, &is)?.with_least_error(counting_error(&was, &is, unit));
    let tail = Ratio::new(0.025).unwrap_or_default();
    let is_equivalent = of_runs.p_above(-margin).get() <= FALSE_EQUAL && of_runs.p_below(margin).get() <= FALSE_EQUAL;
    Some((of_runs.interval(tail), DifferenceTest { of_runs, is_equivalent, matters: of_runs.mean.abs() > margin }))
}

/// Standard error of a difference of mean counts: at least that of independent events.
#[expect(clippy::cast_precision_loss, reason = "counts of runs are far below 2^53")]
fn counting_error(was: &[f64], is: &[f64], unit: FigureUnit) -> f64 {
    let variance = |counts: &[f64]| counts.iter().sum::<f64>() / (counts.len() as f64).powi(2);
    match unit {
        FigureUnit::Packets | FigureUnit::Segments => (variance(was) + variance(is)).max(0.0).sqrt(),
        _ => 0.0,
    }
}

/// The interval of the difference is computed from the two intervals by the method of variance estimates recovery (Zou and
/// Donner 2008, <https://doi.org/10.1002/sim.3095>), which allows asymmetric intervals and assumes independent runs.
#[expect(clippy::cast_precision_loss, reason = "counts of runs are far below 2^53")]
fn within_runs(
    before: &RunFigure,
    after: &RunFigure,
    margin: f64,
    earlier_runs: usize,
    later_runs: usize,
) -> Option<Found> {
    let ((was, is), (earlier, later)) = (before.value.zip(after.value)?, (ends(before)?, ends(after)?));
    let (low, high) =
        (is - was - (is - later.0).hypot(earlier.1 - was), is - was + (later.1 - is).hypot(was - earlier.0));
    let offset = offset(after.unit);
    let (first, second) = (
        relative_variance(before, was, offset, earlier_runs as f64),
        relative_variance(after, is, offset, later_runs as f64),
    );
    let ratio = ((is + offset) / (was + offset)).ln();
    let of_runs = StudentEstimate::known(ratio, (first + second).sqrt());
    let is_equivalent = low >= -margin && high <= margin;
    Some(((low, high), DifferenceTest { of_runs, is_equivalent, matters: (is - was).abs() > margin }))
        .filter(|_| ratio.is_finite())
}

fn ends(figure: &RunFigure) -> Option<(f64, f64)> {
    figure.low.zip(figure.high)
}

/// Number added to both values, so that a ratio with zero exists.
const fn offset(unit: FigureUnit) -> f64 {
    match unit {
        FigureUnit::Nanoseconds => TIME_MARGIN,
        FigureUnit::Share => SHARE_MARGIN,
        FigureUnit::BitsPerSecond
        | FigureUnit::Bytes
        | FigureUnit::Packets
        | FigureUnit::Segments
        | FigureUnit::RoundTripsPerMinute
        | FigureUnit::PerSecond => 1.0,
        FigureUnit::One => 0.01,
    }
}

/// Variance of the logarithm of a figure, within the run and between runs of one path.
#[expect(clippy::cast_precision_loss, reason = "counts of samples are far below 2^53")]
fn relative_variance(figure: &RunFigure, value: f64, offset: f64, runs: f64) -> f64 {
    let value = value.abs() + offset;
    let half = ends(figure).map_or(0.0, |(low, high)| (high - low) / 2.0);
    let error = half / HALF_INTERVAL / value;
    let seconds = error * (figure.count.map_or(USUAL_COUNT, |count| (count as f64).min(MAX_COUNT)) * runs).sqrt();
    let counted = matches!(figure.unit, FigureUnit::Packets | FigureUnit::Segments);
    let least = match figure.unit {
        FigureUnit::Packets | FigureUnit::Segments | FigureUnit::Share => LOSS_RUN_DEVIATION,
        _ => LEAST_RUN_DEVIATION,
    };
    let events = if counted { value.recip() } else { 0.0 };
    let between = match figure.unit {
        // The number of packets of a share is not a number of seconds.
        FigureUnit::Share => least,
        _ => (RUN_DEVIATION_PER_SECOND * seconds).clamp(least, 1.0_f64.max(least)),
    };
    error.powi(2) + (between.powi(2) + events) / runs
}
