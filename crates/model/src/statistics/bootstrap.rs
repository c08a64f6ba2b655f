use linerate_units::Ratio;

use super::special::{normal_probability, student_quantile};
use super::summary::rank_of;
use super::{Quantity, Random, Sample, Statistic};

/// Below this many blocks there is nothing to draw from, and no interval is given.
const FEWEST_BLOCKS: usize = 3;

/// How to resample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// How many samples are drawn. 2000 leave an error of about 0.5 % in the probability of a 95 % interval's end.
    pub rounds: usize,
    /// From it follow all draws: the same seed and sample give the same interval.
    pub seed: u64,
    /// The probability with which the interval is meant to hold the true value.
    pub confidence: Ratio,
}

impl Bootstrap {
    /// 2000 rounds, 95 %.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        Self { rounds: 2000, seed, confidence: Ratio::new(0.95).unwrap_or_default() }
    }
}

/// An interval of confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval<Q> {
    /// Lower end.
    pub low: Q,
    /// Upper end.
    pub high: Q,
    /// The probability with which intervals made this way hold the true value.
    pub confidence: Ratio,
}

/// A statistic and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate<Q> {
    /// The statistic of the sample.
    pub value: Q,
    /// Its interval; `None` of fewer than three blocks.
    pub interval: Option<Interval<Q>>,
}

impl<Q: Quantity> Sample<Q> {
    /// A statistic with its interval of confidence by resampling blocks: the percentile bootstrap (Efron 1979), its ends
    /// moved out for small samples by Student's t and `n / (n − 1)` ("expanded percentile interval", Hesterberg 2015
    /// §5.3). `None` of no readings.
    #[must_use]
    pub fn estimate(&self, statistic: Statistic, bootstrap: &Bootstrap) -> Option<Estimate<Q>> {
        let value = self.number(statistic)?;
        let (mut random, mut space) = (Random::new(bootstrap.seed), Vec::new());
        let interval = (self.blocks() >= FEWEST_BLOCKS)
            .then(|| bootstrap.ends(self.blocks(), || self.resampled(statistic, &mut random, &mut space)))
            .flatten()
            .map(|(low, high)| Interval {
                low: Q::from_number(low.min(value)),
                high: Q::from_number(high.max(value)),
                confidence: bootstrap.confidence,
            });
        Some(Estimate { value: Q::from_number(value), interval })
    }
}

impl Bootstrap {
    /// The ends of the interval over the drawn statistics of a sample of `blocks` blocks.
    pub(super) fn ends(&self, blocks: usize, draw: impl FnMut() -> f64) -> Option<(f64, f64)> {
        let mut draws: Vec<f64> = core::iter::repeat_with(draw).take(self.rounds).collect();
        draws.sort_unstable_by(f64::total_cmp);
        let tail = self.tail(blocks)?;
        let (low, high) = (rank_of(draws.len(), tail), rank_of(draws.len(), 1.0 - tail));
        Some((*draws.get(low)?, *draws.get(high)?))
    }

    /// The share of draws that lies beyond each end.
    #[expect(clippy::cast_precision_loss, reason = "counts of blocks are far below 2^53")]
    fn tail(&self, blocks: usize) -> Option<f64> {
        let degrees = blocks.checked_sub(1).filter(|degrees| *degrees > 0)? as f64;
        let outside = ((1.0 - self.confidence.get()) / 2.0).clamp(0.0, 0.5);
        let quantile = student_quantile(outside, degrees) * ((degrees + 1.0) / degrees).sqrt();
        Some(normal_probability(quantile))
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    /// Of 400 samples of `count` normal readings, the share whose interval of the mean holds the true mean.
    fn coverage(count: usize) -> f64 {
        let mut random = Random::new(7);
        let hits = (0..400_u64).filter(|round| {
            let readings: Vec<f64> = (0..count).map(|_| 100.0 + 5.0 * random.normal()).collect();
            let bootstrap = Bootstrap { rounds: 400, ..Bootstrap::with_seed(*round) };
            let estimate = Sample::independent(&readings).estimate(Statistic::Mean, &bootstrap);
            let interval = estimate.and_then(|estimate| estimate.interval).expect("enough readings");
            interval.low <= 100.0 && interval.high >= 100.0
        });
        f64::from(u16::try_from(hits.count()).expect("at most 400")) / 400.0
    }

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        // Standard error of a share of 0.95 over 400 samples: 1.1 %. Four of them, and a little for the method.
        for count in [8, 20, 60] {
            let coverage = coverage(count);
            assert!((0.895..=0.995).contains(&coverage), "{count} readings: {coverage}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let sample = Sample::independent(&[1.0, 5.0, 2.0, 8.0, 3.0]);
        let once = sample.estimate(Statistic::Median, &Bootstrap::with_seed(1));
        assert_eq!(once, sample.estimate(Statistic::Median, &Bootstrap::with_seed(1)));
        assert_eq!(Sample::<f64>::independent(&[]).estimate(Statistic::Mean, &Bootstrap::with_seed(1)), None);
        let two = Sample::independent(&[1.0, 2.0]).estimate(Statistic::Mean, &Bootstrap::with_seed(1));
        assert_eq!(two, Some(Estimate { value: 1.5, interval: None }));
    }

    #[test]
    fn blocks_of_like_readings_widen_the_interval() {
        // Ten levels, a hundred equal readings of each: ten independent readings, not a thousand.
        let levels = [3.0, 9.0, 4.0, 7.0, 1.0, 8.0, 2.0, 6.0, 5.0, 10.0];
        let readings: Vec<f64> = levels.iter().flat_map(|level| [*level; 100]).collect();
        let width = |sample: &Sample<f64>| {
            let estimate = sample.estimate(Statistic::Mean, &Bootstrap::with_seed(3));
            estimate.and_then(|estimate| estimate.interval).map_or(0.0, |interval| interval.high - interval.low)
        };
        let blocks = Sample::spaced(&readings, Duration::from_millis(10), Duration::from_secs(1));
        let (apart, together) = (width(&Sample::independent(&readings)), width(&blocks));
        // Ten times fewer independent readings per reading: sqrt(100) wider.
        assert!(together > 8.0 * apart && together < 15.0 * apart, "{together} against {apart}");
    }
}
