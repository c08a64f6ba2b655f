use linerate_units::Ratio;

use super::special::{normal_probability, student_quantile};
use super::summary::rank_of;
use super::{BlockSample, SampleStatistic, SeededRandom, StatisticalQuantity};

/// Minimum number of blocks for an interval.
const MIN_BLOCKS: usize = 3;

/// Parameters of resampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootstrapSettings {
    /// Number of resamples. 2000 leave an error of about 0.5 % in the probability of a 95 % interval's bounds.
    pub rounds: usize,
    /// Seed of all random draws: the same seed and sample give the same interval.
    pub seed: u64,
    /// Probability that the interval contains the true value.
    pub confidence: Ratio,
}

impl BootstrapSettings {
    /// Creates parameters with 2000 rounds and 95 %.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        Self { rounds: 2000, seed, confidence: Ratio::new(0.95).unwrap_or_default() }
    }
}

/// Confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfidenceInterval<Q> {
    /// Lower bound.
    pub low: Q,
    /// Upper bound.
    pub high: Q,
    /// Confidence level: probability that intervals made this way contain the true value.
    pub confidence: Ratio,
}

/// Statistic with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntervalEstimate<Q> {
    /// Statistic of the sample.
    pub value: Q,
    /// Confidence interval; `None` for fewer than three blocks.
    pub interval: Option<ConfidenceInterval<Q>>,
}

impl<Q: StatisticalQuantity> BlockSample<Q> {
    /// Computes a statistic with its confidence interval by resampling blocks: the percentile bootstrap (Efron 1979),
    /// widened for small samples by Student's t and `n / (n − 1)` ("expanded percentile interval", Hesterberg 2015
    /// §5.3), and further where neighbouring blocks of time are alike. `None` without samples.
    #[must_use]
    pub fn estimate(&self, statistic: SampleStatistic, bootstrap: &BootstrapSettings) -> Option<IntervalEstimate<Q>> {
        let value = self.number(statistic)?;
        let (mut random, mut resampler) = (SeededRandom::new(bootstrap.seed), self.resampler(statistic));
        let per_value = self.blocks_per_independent_value();
        let widening = per_value.sqrt();
        let interval = (self.blocks() >= MIN_BLOCKS)
            .then(|| {
                let effective = self.effective_blocks(per_value);
                bootstrap.ends(effective, || resampler.draw(&mut random))
            })
            .flatten()
            .map(|(low, high)| ConfidenceInterval {
                low: Q::from_number(value - (value - low).max(0.0) * widening),
                high: Q::from_number(value + (high - value).max(0.0) * widening),
                confidence: bootstrap.confidence,
            });
        Some(IntervalEstimate { value: Q::from_number(value), interval })
    }

    /// Number of blocks that independent ones would need for as much information, at least three.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count below 2^53, divided by a number of at least one"
    )]
    fn effective_blocks(&self, per_value: f64) -> usize {
        ((self.blocks() as f64 / per_value).round() as usize).clamp(MIN_BLOCKS, self.blocks().max(MIN_BLOCKS))
    }
}

impl BootstrapSettings {
    /// Bounds of the interval over the drawn statistics of a sample of `blocks` blocks.
    pub(super) fn ends(&self, blocks: usize, draw: impl FnMut() -> f64) -> Option<(f64, f64)> {
        let mut draws: Vec<f64> = core::iter::repeat_with(draw).take(self.rounds).collect();
        draws.sort_unstable_by(f64::total_cmp);
        let tail = self.tail(blocks)?;
        let (low, high) = (rank_of(draws.len(), tail), rank_of(draws.len(), 1.0 - tail));
        Some((*draws.get(low)?, *draws.get(high)?))
    }

    /// Share of draws beyond each bound.
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

    use linerate_units::MonotonicTime;

    use super::*;

    /// Share of 400 samples of `count` normal values whose interval of the mean contains the true mean.
    fn coverage(count: usize) -> f64 {
        let mut random = SeededRandom::new(7);
        let hits = (0..400_u64).filter(|round| {
            let readings: Vec<f64> = (0..count).map(|_| 100.0 + 5.0 * random.normal()).collect();
            let bootstrap = BootstrapSettings { rounds: 400, ..BootstrapSettings::with_seed(*round) };
            let estimate = BlockSample::independent(&readings).estimate(SampleStatistic::Mean, &bootstrap);
            let interval = estimate.and_then(|estimate| estimate.interval).expect("enough samples");
            interval.low <= 100.0 && interval.high >= 100.0
        });
        f64::from(u16::try_from(hits.count()).expect("at most 400")) / 400.0
    }

    #[test]
    fn intervals_cover_the_truth_at_their_confidence_level() {
        // Standard error of a share of 0.95 over 400 samples: 1.1 %. Four of them, and a little for the method.
        for count in [8, 20, 60] {
            let coverage = coverage(count);
            assert!((0.895..=0.995).contains(&coverage), "{count} samples: {coverage}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let sample = BlockSample::independent(&[1.0, 5.0, 2.0, 8.0, 3.0]);
        let once = sample.estimate(SampleStatistic::Median, &BootstrapSettings::with_seed(1));
        assert_eq!(once, sample.estimate(SampleStatistic::Median, &BootstrapSettings::with_seed(1)));
        assert_eq!(
            BlockSample::<f64>::independent(&[]).estimate(SampleStatistic::Mean, &BootstrapSettings::with_seed(1)),
            None
        );
        let two =
            BlockSample::independent(&[1.0, 2.0]).estimate(SampleStatistic::Mean, &BootstrapSettings::with_seed(1));
        assert_eq!(two, Some(IntervalEstimate { value: 1.5, interval: None }));
    }

    /// Share of 300 series of seconds with this autocorrelation whose interval of the mean contains the true mean.
    fn coverage_of_series(count: usize, correlation: f64) -> f64 {
        let mut random = SeededRandom::new(21);
        let hits = (0..300_u64).filter(|round| {
            let mut state = random.normal();
            let readings: Vec<f64> = (0..count)
                .map(|_| {
                    state = correlation * state + (1.0 - correlation * correlation).sqrt() * random.normal();
                    100.0 + 5.0 * state
                })
                .collect();
            let second = Duration::from_secs(1);
            let timed = |readings: &[f64]| -> Vec<(MonotonicTime, f64)> {
                (0_u64..).zip(readings).map(|(at, one)| (MonotonicTime::from_nanos(at * 1_000_000_000), *one)).collect()
            };
            let sample = BlockSample::timed(&timed(&readings), second);
            let bootstrap = BootstrapSettings { rounds: 300, ..BootstrapSettings::with_seed(*round) };
            let interval = sample.estimate(SampleStatistic::Mean, &bootstrap).and_then(|estimate| estimate.interval);
            interval.is_some_and(|interval| interval.low <= 100.0 && interval.high >= 100.0)
        });
        f64::from(u16::try_from(hits.count()).expect("at most 300")) / 300.0
    }

    #[test]
    fn autocorrelated_seconds_widen_the_interval() {
        // Without regard to it, 95 % intervals of ten seconds contain the truth in 70 % (0.6) and 50 % (0.8) of cases.
        for (count, correlation, least) in [(10, 0.0, 0.93), (10, 0.6, 0.84), (30, 0.6, 0.91), (60, 0.8, 0.91)] {
            let coverage = coverage_of_series(count, correlation);
            assert!(coverage >= least, "{count} seconds, {correlation}: {coverage}");
        }
    }

    #[test]
    fn blocks_of_equal_values_widen_the_interval() {
        // Ten levels, a hundred equal values of each: ten independent values, not a thousand.
        let levels = [3.0, 9.0, 4.0, 7.0, 1.0, 8.0, 2.0, 6.0, 5.0, 10.0];
        let readings: Vec<f64> = levels.iter().flat_map(|level| [*level; 100]).collect();
        let width = |sample: &BlockSample<f64>| {
            let estimate = sample.estimate(SampleStatistic::Mean, &BootstrapSettings::with_seed(3));
            estimate.and_then(|estimate| estimate.interval).map_or(0.0, |interval| interval.high - interval.low)
        };
        let timed: Vec<_> = (0_u64..).map(MonotonicTime::from_nanos).zip(readings.iter().copied()).collect();
        let blocks = BlockSample::timed(&timed, Duration::from_nanos(100));
        let (apart, together) = (width(&BlockSample::independent(&readings)), width(&blocks));
        // Ten times fewer independent values per value: sqrt(100) wider.
        assert!(together > 8.0 * apart && together < 15.0 * apart, "{together} against {apart}");
    }
}
