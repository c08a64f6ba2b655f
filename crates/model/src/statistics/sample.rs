use core::time::Duration;

use linerate_units::{MonotonicTime, Ratio};

use super::summary::{mean, rank_of};
use super::{Quantity, Random};

/// The length of a block of time when nothing else is chosen: longer than the round trips and the reactions of
/// congestion control that make neighbouring readings alike on most paths.
pub const BLOCK: Duration = Duration::from_secs(1);

/// What is computed of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The arithmetic mean.
    Mean,
    /// The 50th percentile.
    Median,
    /// The percentile of this share, by nearest rank.
    Percentile(Ratio),
}

impl Statistic {
    /// The statistic of numbers, which are put in order as far as is needed; zero of none.
    pub(super) fn of(self, numbers: &mut [f64]) -> f64 {
        let share = match self {
            Self::Mean => return mean(numbers),
            Self::Median => 0.5,
            Self::Percentile(share) => share.get(),
        };
        if numbers.is_empty() {
            return 0.0;
        }
        let rank = rank_of(numbers.len(), share);
        *numbers.select_nth_unstable_by(rank, f64::total_cmp).1
    }
}

/// Readings of one quantity, in blocks that are independent of each other.
///
/// Readings that follow each other closely are alike (a queue that is full now is full a moment later), so that a
/// thousand of them do not say a thousand times as much as one. Resampling therefore draws whole blocks of time
/// (Carlstein 1986), in which this likeness is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<Q> {
    blocks: Vec<Vec<f64>>,
    quantity: core::marker::PhantomData<Q>,
}

impl<Q: Quantity> Sample<Q> {
    /// Readings that are independent of each other: each is its own block. For repetitions of a measurement.
    #[must_use]
    pub fn independent(readings: &[Q]) -> Self {
        Self::of_blocks(readings.iter().map(|reading| vec![reading.number()]))
    }

    /// Readings with their times, in blocks of this length from the first reading on ([`BLOCK`] where nothing speaks for
    /// another). A length of zero makes each reading its own block.
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
        Self::of_blocks(blocks.into_values())
    }

    /// Readings that were made every `interval`, in order of time, in blocks of this length. An interval of zero makes
    /// each reading its own block.
    #[must_use]
    pub fn spaced(readings: &[Q], interval: Duration, block: Duration) -> Self {
        let together = block.as_nanos().checked_div(interval.as_nanos()).unwrap_or(1).max(1);
        let together = usize::try_from(together).unwrap_or(usize::MAX);
        Self::of_blocks(readings.chunks(together).map(|chunk| chunk.iter().map(|reading| reading.number()).collect()))
    }

    fn of_blocks(blocks: impl IntoIterator<Item = Vec<f64>>) -> Self {
        let blocks = blocks
            .into_iter()
            .map(|block| block.into_iter().filter(|number| number.is_finite()).collect::<Vec<_>>())
            .filter(|block| !block.is_empty())
            .collect();
        Self { blocks, quantity: core::marker::PhantomData }
    }

    /// How many blocks the sample has: what counts as its size.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The statistic of all readings; `None` of none.
    #[must_use]
    pub fn statistic(&self, statistic: Statistic) -> Option<Q> {
        self.number(statistic).map(Q::from_number)
    }

    pub(super) fn number(&self, statistic: Statistic) -> Option<f64> {
        let mut all: Vec<f64> = self.blocks.iter().flatten().copied().collect();
        (!all.is_empty()).then(|| statistic.of(&mut all))
    }

    /// The statistic of as many blocks as there are, drawn with replacement.
    pub(super) fn resampled(&self, statistic: Statistic, random: &mut Random, space: &mut Vec<f64>) -> f64 {
        space.clear();
        for _ in 0..self.blocks.len() {
            space.extend_from_slice(&self.blocks[random.below(self.blocks.len())]);
        }
        statistic.of(space)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn readings_fall_into_their_second() {
        let at = |milliseconds: u64| MonotonicTime::from_nanos(5_000_000 + milliseconds * 1_000_000);
        let readings = [(at(0), 1.0), (at(999), 2.0), (at(1000), 3.0), (at(4500), f64::NAN), (at(7000), 4.0)];
        let sample = Sample::timed(&readings, BLOCK);
        assert_eq!(sample.blocks, [vec![1.0, 2.0], vec![3.0], vec![4.0]]);
        assert_eq!(Sample::timed(&readings, Duration::ZERO).blocks(), 4);
        let spaced = Sample::spaced(&[1.0, 2.0, 3.0], Duration::from_millis(500), BLOCK);
        assert_eq!(spaced.blocks, [vec![1.0, 2.0], vec![3.0]]);
        assert_eq!(Sample::spaced(&[1.0, 2.0], Duration::ZERO, BLOCK).blocks(), 2);
    }

    proptest! {
        #[test]
        fn blocks_do_not_change_a_statistic(
            readings in proptest::collection::vec(0.0..1e6_f64, 1..100), together in 1_u64..20
        ) {
            let apart = Sample::independent(&readings);
            let blocks = Sample::spaced(&readings, Duration::from_millis(1), Duration::from_millis(together));
            for statistic in [Statistic::Mean, Statistic::Median, Statistic::Percentile(Ratio::new(0.9).expect("a share"))] {
                prop_assert_eq!(apart.statistic(statistic), blocks.statistic(statistic));
            }
        }
    }
}
