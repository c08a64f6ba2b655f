use linerate_units::Ratio;

use crate::statistics::{SampleSummary, StatisticalQuantity};

/// Number of moving averages examined ("MAD", draft-ietf-ippm-responsiveness §4.1).
const AVERAGE_COUNT: usize = 4;

/// Maximum ratio of their standard deviation to the last average ("SDT").
const MAX_DEVIATION: f64 = 0.05;

/// Stability of a series with one sample per interval: the standard deviation of the last four moving averages is below
/// 5 % of the last one, each average being of the last four samples (draft-ietf-ippm-responsiveness §4.1).
///
/// A verdict takes at least seven intervals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StabilityDetector {
    readings: Vec<f64>,
    averages: Vec<f64>,
}

impl StabilityDetector {
    /// Adds the sample of the next interval: goodput first, then responsiveness.
    pub fn push<Q: StatisticalQuantity>(&mut self, reading: Q) {
        keep_last(&mut self.readings, reading.number());
        if let (AVERAGE_COUNT, Some(summary)) = (self.readings.len(), SampleSummary::of(&self.readings)) {
            keep_last(&mut self.averages, summary.mean);
        }
    }

    /// Standard deviation of the averages relative to the last one; `None` before there are four.
    #[must_use]
    pub fn deviation(&self) -> Option<Ratio> {
        let last = *self.averages.last().filter(|_| self.averages.len() == AVERAGE_COUNT)?;
        Ratio::of(SampleSummary::of(&self.averages)?.standard_deviation?, last)
    }

    /// True when the series is stable.
    #[must_use]
    pub fn is_stable(&self) -> bool {
        self.deviation().is_some_and(|deviation| deviation.get() < MAX_DEVIATION)
    }
}

fn keep_last(values: &mut Vec<f64>, value: f64) {
    if values.len() == AVERAGE_COUNT {
        values.remove(0);
    }
    values.push(value);
}

#[cfg(test)]
mod tests {
    use linerate_units::BitRate;

    use super::*;

    fn settles_after(readings: impl Iterator<Item = f64>) -> Option<usize> {
        let mut stability = StabilityDetector::default();
        readings.take(1000).position(|reading| {
            stability.push(BitRate::from_bits_per_second(reading));
            stability.is_stable()
        })
    }

    #[test]
    fn seven_equal_intervals_are_the_fewest() {
        assert_eq!(settles_after(core::iter::repeat(1e8)), Some(6));
        assert_eq!(settles_after(core::iter::repeat(0.0)), None);
    }

    #[test]
    fn growth_is_not_stable_until_it_ends() {
        // Doubling for eight intervals: the averages need six more until their deviation is below 5 %.
        let ramp = (0..).map(|interval: i32| 1e6 * 2_f64.powi(interval.min(8)));
        let settled = settles_after(ramp).expect("it ends");
        assert!((12..=15).contains(&settled), "{settled}");
        // 10 % up and down: averages of four hardly move.
        assert_eq!(settles_after([1.1e8, 0.9e8].into_iter().cycle()), Some(6));
        // Growth by 3 % per interval: averages 1, 1.03, 1.061, 1.093 have a deviation of 4 %; by 10 % of 13 %.
        assert_eq!(settles_after((0..).map(|interval: i32| 1.1_f64.powi(interval))), None);
    }
}
