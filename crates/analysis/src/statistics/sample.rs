use core::time::Duration;

use linerate_units::{MonotonicTime, Ratio};

use super::StatisticalQuantity;
use super::resampling::BlockResampler;
use super::summary::{mean, rank_of};

/// Default length of a block of time: longer than the round trips and the reactions of congestion control that
/// correlate neighbouring values on most paths.
pub const DEFAULT_BLOCK: Duration = Duration::from_secs(1);

/// Statistic of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleStatistic {
    /// Arithmetic mean.
    Mean,
    /// 50th percentile.
    Median,
    /// Percentile of this share, by nearest rank.
    Percentile(Ratio),
}

impl SampleStatistic {
    /// Share of its percentile; `None` for the mean.
    pub(super) fn share(self) -> Option<f64> {
        match self {
            Self::Mean => None,
            Self::Median => Some(0.5),
            Self::Percentile(share) => Some(share.get()),
        }
    }

    /// Computes the statistic of numbers, which are sorted as far as needed; zero without numbers.
    pub(super) fn of(self, numbers: &mut [f64]) -> f64 {
        let Some(share) = self.share() else { return mean(numbers) };
        if numbers.is_empty() {
            return 0.0;
        }
        let rank = rank_of(numbers.len(), share);
        *numbers.select_nth_unstable_by(rank, f64::total_cmp).1
    }
}

/// Values of one quantity, in blocks that are independent of each other.
///
/// Values in close succession are correlated (a queue that is full now is full a moment later), so that a thousand of
/// them carry less information than a thousand independent ones. Resampling therefore draws whole blocks of time
/// (Carlstein 1986), which preserves this correlation.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockSample<Q> {
    blocks: Vec<Vec<f64>>,
    /// True when the blocks are in order of time, so that neighbours may be alike.
    is_ordered: bool,
    quantity: core::marker::PhantomData<Q>,
}

impl<Q: StatisticalQuantity> BlockSample<Q> {
    /// Creates a sample of independent values: each is its own block. For repetitions of a measurement.
    #[must_use]
    pub fn independent(readings: &[Q]) -> Self {
        Self::of_blocks(readings.iter().map(|reading| vec![reading.number()]))
    }

    /// Creates a sample of values with their times, in blocks of this length from the first value on ([`DEFAULT_BLOCK`] by
    /// default). A length of zero makes each value its own block.
    #[must_use]
    pub fn timed(readings: &[(MonotonicTime, Q)], block: Duration) -> Self {
        let Some(start) = readings.iter().map(|(time, _)| *time).min() else { return Self::of_blocks([]) };
        if block.is_zero() {
            return Self::of_blocks(readings.iter().map(|(_, reading)| vec![reading.number()]));
        }
        let mut blocks = std::collections::BTreeMap::<u128, Vec<f64>>::new();
        for (time, reading) in readings {
            blocks.entry(time.since(start).as_nanos() / block.as_nanos()).or_default().push(reading.number());
        }
        Self { is_ordered: true, ..Self::of_blocks(blocks.into_values()) }
    }

    fn of_blocks(blocks: impl IntoIterator<Item = Vec<f64>>) -> Self {
        let blocks = blocks
            .into_iter()
            .map(|block| block.into_iter().filter(|number| number.is_finite()).collect::<Vec<_>>())
            .filter(|block| !block.is_empty())
            .collect();
        Self { blocks, is_ordered: false, quantity: core::marker::PhantomData }
    }

    /// Number of blocks: the effective size of the sample.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Number of independent values that tell as much as one block: one for independent blocks, nine for the
    /// autocorrelation of 0.8 that seconds of a TCP transfer may have.
    ///
    /// It is `(1 + φ) / (1 − φ)` for the autocorrelation φ of neighbouring blocks, as of a first-order autoregressive
    /// process, corrected for the bias of few blocks (Kendall 1954) and for its own uncertainty.
    pub(super) fn blocks_per_independent_value(&self) -> f64 {
        let correlation = if self.is_ordered { autocorrelation(&self.blocks) } else { 0.0 };
        (1.0 + correlation) / (1.0 - correlation)
    }

    /// Statistic of all values; `None` without values.
    #[must_use]
    pub fn statistic(&self, statistic: SampleStatistic) -> Option<Q> {
        self.number(statistic).map(Q::from_number)
    }

    pub(super) fn number(&self, statistic: SampleStatistic) -> Option<f64> {
        let mut all: Vec<f64> = self.blocks.iter().flatten().copied().collect();
        (!all.is_empty()).then(|| statistic.of(&mut all))
    }

    /// Source of statistics of as many blocks as there are, drawn with replacement.
    pub(super) fn resampler(&self, statistic: SampleStatistic) -> BlockResampler {
        BlockResampler::new(&self.blocks, statistic)
    }
}

/// Largest autocorrelation that is assumed.
const MAX_AUTOCORRELATION: f64 = 0.9;

/// Fewest blocks for an autocorrelation.
const MIN_CORRELATED_BLOCKS: usize = 5;

/// Autocorrelation of the means of neighbouring blocks, from 0 to [`MAX_AUTOCORRELATION`].
#[expect(clippy::cast_precision_loss, reason = "counts of blocks are far below 2^53")]
fn autocorrelation(blocks: &[Vec<f64>]) -> f64 {
    let means: Vec<f64> = blocks.iter().map(|block| mean(block)).collect();
    let (whole, count) = (mean(&means), means.len() as f64);
    let squares: f64 = means.iter().map(|one| (one - whole).powi(2)).sum();
    if means.len() < MIN_CORRELATED_BLOCKS || squares == 0.0 {
        return 0.0;
    }
    let products: f64 = means.windows(2).map(|pair| (pair[0] - whole) * (pair[1] - whole)).sum();
    let estimate = products / squares;
    (estimate + (1.0 + 3.0 * estimate) / count).clamp(0.0, MAX_AUTOCORRELATION)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_fall_into_their_second() {
        let at = |milliseconds: u64| MonotonicTime::from_nanos(5_000_000 + milliseconds * 1_000_000);
        let readings = [(at(0), 1.0), (at(999), 2.0), (at(1000), 3.0), (at(4500), f64::NAN), (at(7000), 4.0)];
        let sample = BlockSample::timed(&readings, DEFAULT_BLOCK);
        assert_eq!(sample.blocks, [vec![1.0, 2.0], vec![3.0], vec![4.0]]);
        assert_eq!(BlockSample::timed(&readings, Duration::ZERO).blocks(), 4);
    }

    proptest! {
        #[test]
        fn blocks_do_not_change_a_statistic(
            readings in proptest::collection::vec(0.0..1e6_f64, 1..100), together in 1_u64..20
        ) {
            let apart = BlockSample::independent(&readings);
            let timed: Vec<_> = (0_u64..).map(MonotonicTime::from_nanos).zip(readings).collect();
            let blocks = BlockSample::timed(&timed, Duration::from_nanos(together));
            for statistic in [SampleStatistic::Mean, SampleStatistic::Median, SampleStatistic::Percentile(Ratio::new(0.9).expect("a share"))] {
                prop_assert_eq!(apart.statistic(statistic), blocks.statistic(statistic));
            }
        }
    }
}
