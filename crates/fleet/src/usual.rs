//! Usual range of a pair's figure, from its own history, and whether a new value is worse than usual.
//!
//! With `n` earlier values that are exchangeable with the new one, the probability that it is worse than the `k`-th worst of
//! them is at most `k / (n + 1)`, whatever their distribution. Two such values in a row, both among the worst `k` of `n`, come
//! by chance with at most `k (k + 1) / ((n + 1) (n + 2))`, about a quarter of a percent.

use core::time::Duration;
use std::collections::VecDeque;

use jiff::tz::TimeZone;
pub use linerate_documents::fleet_report::UsualBasis;
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

/// Values from which the usual range at any hour follows.
#[derive(Clone, Debug)]
pub struct UsualValues {
    zone: TimeZone,
    /// Values in the order of their times, with their hours of the week.
    timed: VecDeque<(WallTime, u8, f64)>,
    /// Sorted values by hour of the week, by hour of the day, and all.
    sorted: [Vec<Vec<f64>>; 3],
}

impl UsualValues {
    /// No values, in a time zone.
    #[must_use]
    pub fn new(zone: &TimeZone) -> Self {
        let sorted = [7 * 24, 24, 1].map(|count| vec![Vec::new(); count]);
        Self { zone: zone.clone(), timed: VecDeque::new(), sorted }
    }

    /// Adds a value, which is no earlier than the others. One that is no number counts nowhere.
    pub fn add(&mut self, value: TimedValue) {
        self.push(value, |list, value| {
            let place = list.partition_point(|other| *other < value);
            list.insert(place, value);
        });
    }

    /// Adds many values.
    fn extend(&mut self, values: impl Iterator<Item = TimedValue>) {
        for value in values {
            self.push(value, Vec::push);
        }
        for list in self.sorted.iter_mut().flatten() {
            list.sort_by(f64::total_cmp);
        }
    }

    fn push(&mut self, value: TimedValue, insert: impl Fn(&mut Vec<f64>, f64)) {
        if !value.value.is_finite() {
            return;
        }
        let hour = hour_of_week(value.at, &self.zone);
        self.timed.push_back((value.at, hour, value.value));
        for (lists, index) in self.sorted.iter_mut().zip(places(hour)) {
            insert(&mut lists[index], value.value);
        }
    }

    /// Removes values that are older than this at a time.
    pub fn forget_before(&mut self, now: WallTime, age: Duration) {
        let oldest = now.since_unix_epoch().saturating_sub(age);
        while let Some((_, hour, value)) = self.timed.front().copied().filter(|(at, ..)| at.since_unix_epoch() < oldest)
        {
            self.timed.pop_front();
            for (lists, index) in self.sorted.iter_mut().zip(places(hour)) {
                let list = &mut lists[index];
                let place = list.partition_point(|other| *other < value);
                list.remove(place);
            }
        }
    }

    /// Usual range at a time; `None` with fewer than [`MIN_VALUES`] values. The hour of the week counts when it has enough, else
    /// the hour of the day, else all.
    #[must_use]
    pub fn range(&self, at: WallTime, side: WorseSide) -> Option<UsualRange> {
        let hour = hour_of_week(at, &self.zone);
        let lists = self.sorted.iter().zip(places(hour)).map(|(lists, index)| &lists[index]);
        let all = [UsualBasis::HourOfWeek, UsualBasis::HourOfDay, UsualBasis::AnyHour];
        let (sorted, basis) = lists.zip(all).find(|(sorted, _)| sorted.len() >= MIN_VALUES)?;
        Some(UsualRange::of_sorted(sorted, side, basis))
    }
}

/// Indices of an hour of the week in the lists of sorted values.
fn places(hour: u8) -> [usize; 3] {
    [usize::from(hour), usize::from(hour % 24), 0]
}

impl UsualRange {
    /// Range at a time, from the values before it, as [`UsualValues::range`].
    #[must_use]
    pub fn of(values: &[TimedValue], at: WallTime, side: WorseSide, zone: &TimeZone) -> Option<Self> {
        let mut usual = UsualValues::new(zone);
        usual.extend(values.iter().filter(|value| value.at < at).copied());
        usual.range(at, side)
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
