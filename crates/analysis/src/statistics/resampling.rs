use super::summary::rank_of;
use super::{SampleStatistic, SeededRandom};

/// Statistic of blocks drawn with replacement from a sample, as many as it has.
///
/// The values are sorted once: a draw counts how often each block is in it, and passes over the values in their order until
/// as many as its rank asks for are counted. To gather and select the values of each draw takes several times as long.
pub(super) struct BlockResampler {
    method: ResamplingMethod,
    /// Number of values of each block.
    sizes: Vec<usize>,
}

enum ResamplingMethod {
    /// Mean, with the sum of each block.
    Mean(Vec<f64>),
    /// Percentile of this share.
    Percentile { share: f64, values: SortedValues },
}

/// Values in their order, with the block of each.
struct SortedValues {
    values: Vec<f64>,
    blocks: Vec<usize>,
    /// Number of times that each block is in the present draw.
    drawn: Vec<usize>,
}

impl BlockResampler {
    pub(super) fn new(blocks: &[Vec<f64>], statistic: SampleStatistic) -> Self {
        let sizes = blocks.iter().map(Vec::len).collect();
        let method = match statistic.share() {
            None => ResamplingMethod::Mean(blocks.iter().map(|block| block.iter().sum()).collect()),
            Some(share) => ResamplingMethod::Percentile { share, values: SortedValues::of(blocks) },
        };
        Self { method, sizes }
    }

    /// Statistic of the next draw; zero without values.
    pub(super) fn draw(&mut self, random: &mut SeededRandom) -> f64 {
        let sizes = &self.sizes;
        let drawn = (0..sizes.len()).map(|_| random.below(sizes.len()));
        match &mut self.method {
            ResamplingMethod::Mean(sums) => {
                let add = |(sum, count), block: usize| (sum + sums[block], count + sizes[block]);
                let (sum, count) = drawn.fold((0.0, 0), add);
                mean_of(sum, count)
            }
            ResamplingMethod::Percentile { share, values } => {
                values.drawn.fill(0);
                let mut count = 0;
                for block in drawn {
                    values.drawn[block] += 1;
                    count += sizes[block];
                }
                values.at(rank_of(count, *share), count)
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of samples are far below 2^53")]
fn mean_of(sum: f64, count: usize) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}

impl SortedValues {
    fn of(blocks: &[Vec<f64>]) -> Self {
        let in_blocks = blocks.iter().enumerate();
        let mut all: Vec<(f64, usize)> =
            in_blocks.flat_map(|(block, values)| values.iter().map(move |value| (*value, block))).collect();
        all.sort_unstable_by(|(one, _), (other, _)| one.total_cmp(other));
        let (values, blocks_of_values) = all.into_iter().unzip();
        Self { values, blocks: blocks_of_values, drawn: vec![0; blocks.len()] }
    }

    /// Value of this rank among the `count` drawn ones, counted from the nearer end; zero without values.
    fn at(&self, rank: usize, count: usize) -> f64 {
        let from_end = count.saturating_sub(rank + 1);
        let index = if rank <= from_end {
            self.passed(self.blocks.iter(), rank)
        } else {
            self.passed(self.blocks.iter().rev(), from_end).map(|passed| self.values.len() - 1 - passed)
        };
        index.and_then(|index| self.values.get(index)).copied().unwrap_or(0.0)
    }

    /// Number of values to pass before the one that follows `rank` drawn ones.
    fn passed<'a>(&self, mut blocks: impl Iterator<Item = &'a usize>, rank: usize) -> Option<usize> {
        let mut left = rank;
        blocks.position(|block| {
            let drawn = self.drawn[*block];
            let is_it = left < drawn;
            left = left.saturating_sub(drawn);
            is_it
        })
    }
}

#[cfg(test)]
mod tests {
    use linerate_units::Ratio;
    use proptest::prelude::*;

    use super::*;

    /// Statistic of the gathered values.
    fn gathered(blocks: &[Vec<f64>], statistic: SampleStatistic, random: &mut SeededRandom) -> f64 {
        let drawn = (0..blocks.len()).map(|_| &blocks[random.below(blocks.len())]);
        statistic.of(&mut drawn.flatten().copied().collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn a_draw_has_the_statistic_of_its_values(
            // Few different values, so that many are equal.
            blocks in proptest::collection::vec(
                proptest::collection::vec((-3_i8..20).prop_map(f64::from), 1..12), 1..12
            ),
            share in 0.0..=1.0_f64,
            seed: u64,
        ) {
            let share = SampleStatistic::Percentile(Ratio::new(share).expect("a share"));
            for statistic in [SampleStatistic::Mean, SampleStatistic::Median, share] {
                let (mut one, mut other) = (SeededRandom::new(seed), SeededRandom::new(seed));
                let mut resampler = BlockResampler::new(&blocks, statistic);
                let draws = [(); 5].map(|()| Some(resampler.draw(&mut one)));
                prop_assert_eq!(draws, [(); 5].map(|()| Some(gathered(&blocks, statistic, &mut other))));
            }
        }
    }

    #[test]
    fn without_values_a_draw_is_zero() {
        for statistic in [SampleStatistic::Mean, SampleStatistic::Median] {
            assert!(BlockResampler::new(&[], statistic).draw(&mut SeededRandom::new(1)).abs() < f64::EPSILON);
        }
    }
}
