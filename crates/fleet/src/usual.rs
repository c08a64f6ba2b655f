//! Usual range of a pair's figure, from its own history, and whether a new value is worse than usual.
//!
//! With `n` earlier values that are exchangeable with the new one, the probability that it is worse than the `k`-th worst of
//! them is at most `k / (n + 1)`, whatever their distribution. Two such values in a row, both among the worst `k` of `n`, come
//! by chance with at most `k (k + 1) / ((n + 1) (n + 2))`, about a quarter of a percent.

use jiff::tz::TimeZone;
use linerate_units::WallTime;

use crate::calendar::hour_of_week;

/// Probability that a usual value is taken for a worse one.
pub const FALSE_WORSE: f64 = 0.05;

/// Number of values below which nothing is usual: fewer cannot have that probability.
pub const MIN_VALUES: usize = 19;

/// Difference from the median below which a value is not called worse, as a share of the median.
pub const UNNOTICED: f64 = 0.1;

/// Value of a figure at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedValue {
    /// Time.
    pub at: WallTime,
    /// Value, in the figure's unit.
    pub value: f64,
}

/// Values that a new one is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsualBasis {
    /// Those of the same hour of the week.
    HourOfWeek,
    /// Those of the same hour of the day.
    HourOfDay,
    /// All.
    All,
}

impl UsualBasis {
    /// Description of the values.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::HourOfWeek => "at this hour of the week",
            Self::HourOfDay => "at this hour of the day",
            Self::All => "at any hour",
        }
    }
}

/// Direction in which a figure gets worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorseSide {
    /// Less is worse, as of goodput.
    Lower,
    /// More is worse, as of delay.
    Higher,
}

/// Usual range of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UsualRange {
    /// Bound beyond which a value is worse than usual.
    pub bound: f64,
    /// Median.
    pub median: f64,
    /// Number of values.
    pub count: usize,
    /// Values that count.
    pub basis: UsualBasis,
}

impl UsualRange {
    /// Range at a time, from the values before it; `None` with fewer than [`MIN_VALUES`] of them. The hour of the week counts
    /// when it has enough values, else the hour of the day, else all.
    #[must_use]
    pub fn of(values: &[TimedValue], at: WallTime, side: WorseSide, zone: &TimeZone) -> Option<Self> {
        let hour = hour_of_week(at, zone);
        for basis in [UsualBasis::HourOfWeek, UsualBasis::HourOfDay, UsualBasis::All] {
            let counts = |value: &&TimedValue| {
                let other = hour_of_week(value.at, zone);
                let is_like = match basis {
                    UsualBasis::HourOfWeek => other == hour,
                    UsualBasis::HourOfDay => other % 24 == hour % 24,
                    UsualBasis::All => true,
                };
                value.value.is_finite() && value.at < at && is_like
            };
            let mut chosen: Vec<f64> = values.iter().filter(counts).map(|value| value.value).collect();
            if chosen.len() >= MIN_VALUES {
                chosen.sort_by(f64::total_cmp);
                return Some(Self::of_sorted(&chosen, side, basis));
            }
        }
        None
    }

    fn of_sorted(sorted: &[f64], side: WorseSide, basis: UsualBasis) -> Self {
        let count = sorted.len();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count"
        )]
        let rank = (((count + 1) as f64 * FALSE_WORSE + 1e-9) as usize).max(1);
        let bound = match side {
            WorseSide::Lower => sorted[rank - 1],
            WorseSide::Higher => sorted[count - rank],
        };
        Self { bound, median: sorted[count / 2], count, basis }
    }

    /// True for a value beyond the bound that also differs from the median noticeably.
    #[must_use]
    pub fn is_worse(&self, value: f64, side: WorseSide) -> bool {
        let margin = self.median.abs() * UNNOTICED;
        match side {
            WorseSide::Lower => value < self.bound && value < self.median - margin,
            WorseSide::Higher => value > self.bound && value > self.median + margin,
        }
    }
}
