//! Design of a trial: the order within pairs, and the error probability of each look.

use linerate_analysis::statistics::SeededRandom;
use linerate_units::Ratio;

use super::{MIN_PAIRS, PairBudget};

/// Pairs in a block, of which half begin with the change: a trend or an effect of the order cancels within a block
/// (permuted blocks; Matts and Lachin 1988).
const BLOCK: usize = 4;

/// Numbers of pairs after which a series may end, each with its share of the error probability. Few pairs get little of
/// it: they suffice for large effects.
const LOOKS: [(usize, f64); 7] = [(5, 0.02), (6, 0.03), (8, 0.05), (10, 0.10), (13, 0.15), (16, 0.20), (20, 0.35)];
/// Interval of further looks, and the share that they divide: half of what is left at each.
const LATE_LOOK_INTERVAL: usize = 5;
const LATE_SHARE: f64 = 0.10;

/// Probability that a run keeps any change without an effect, over all candidates and looks.
const FALSE_KEEP: f64 = 0.015;
/// Probability that harm is called shown where it is at the limit, over all figures and looks.
const FALSE_HARM: f64 = 0.05;
/// Probability that the intervals of one figure miss the true value at any look.
const FALSE_INTERVAL: f64 = 0.05;

/// Design of the trial of one candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialDesign {
    /// Number of pairs.
    pub budget: PairBudget,
    /// Number of the candidate in its run, from 1.
    pub candidate: u32,
    /// Seed of the order within pairs.
    pub seed: u64,
}

impl TrialDesign {
    /// Creates the design of a run's first candidate.
    #[must_use]
    pub const fn new(budget: PairBudget, seed: u64) -> Self {
        Self { budget, candidate: 1, seed }
    }

    /// True when this pair, counted from 0, measures with the change first.
    #[must_use]
    pub fn is_changed_first(&self, pair: usize) -> bool {
        let block = u64::try_from(pair / BLOCK).unwrap_or(u64::MAX);
        let stream = (u64::from(self.candidate) << 32).wrapping_add(block);
        let mut random = SeededRandom::new(self.seed.wrapping_add(stream.wrapping_mul(0xD134_2543_DE82_EF95)));
        let one = random.below(BLOCK);
        let other = (one + 1 + random.below(BLOCK - 1)) % BLOCK;
        [one, other].contains(&(pair % BLOCK))
    }

    /// True when the series may end after this number of counted pairs.
    pub(super) fn is_look(counted: usize) -> bool {
        let late = counted > LAST_LOOK && (counted - LAST_LOOK).is_multiple_of(LATE_LOOK_INTERVAL);
        late || LOOKS.iter().any(|(pairs, _)| *pairs == counted)
    }

    /// The look after these pairs.
    pub(super) fn look(&self, measured: usize, counted: usize) -> Look {
        let is_last = measured >= self.budget.most;
        let share = if is_last { 1.0 - spent(counted) } else { spent(counted + 1) - spent(counted) };
        // Between two looks, nothing is decided; a judgement on request gets the share of the next one.
        let share = if share > 0.0 { share } else { spent(next_look(counted) + 1) - spent(counted) };
        Look {
            share,
            last_share: 1.0 - spent(self.budget.most),
            is_last,
            candidate: f64::from(self.candidate.max(1)),
            most: self.budget.most,
        }
    }
}

/// Last look of the default budget.
const LAST_LOOK: usize = LOOKS[LOOKS.len() - 1].0;

/// Share of the error probability that the looks before this number of pairs have used.
fn spent(counted: usize) -> f64 {
    let early: f64 = LOOKS.iter().filter(|(pairs, _)| *pairs < counted).map(|(_, share)| share).sum();
    let late = counted.saturating_sub(LAST_LOOK + 1) / LATE_LOOK_INTERVAL;
    early + LATE_SHARE * (1.0 - 0.5_f64.powi(i32::try_from(late).unwrap_or(i32::MAX)))
}

fn next_look(counted: usize) -> usize {
    let early = LOOKS.iter().map(|(pairs, _)| *pairs).find(|pairs| *pairs >= counted);
    early.unwrap_or_else(|| LAST_LOOK + (counted - LAST_LOOK).next_multiple_of(LATE_LOOK_INTERVAL))
}

/// Decision point of a series, with its error probabilities. Their sums over all looks, candidates and figures are the
/// constants above, whatever the dependence (Bonferroni; for looks the spending of Lan and `DeMets` 1983).
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    share: f64,
    last_share: f64,
    /// True when no more pairs are measured.
    pub(super) is_last: bool,
    candidate: f64,
    most: usize,
}

impl Look {
    /// Largest number of pairs, as a multiple of this number.
    #[expect(clippy::cast_precision_loss, reason = "counts of pairs are far below 2^53")]
    pub(super) fn remaining_growth(self, pairs: usize) -> f64 {
        self.most as f64 / pairs.max(1) as f64
    }

    /// Error probability of a gain. The k-th candidate of a run has 1 / (k (k + 1)) of the whole: the sum over any
    /// number of them is at most one.
    pub(super) fn gain(self) -> f64 {
        self.candidate_error() * self.share
    }

    /// The same at the last look.
    pub(super) fn gain_at_last(self) -> f64 {
        self.candidate_error() * self.last_share
    }

    fn candidate_error(self) -> f64 {
        FALSE_KEEP / (self.candidate * (self.candidate + 1.0))
    }

    /// Error probability of harm in one of so many figures.
    pub(super) fn harm(self, figures: usize) -> f64 {
        FALSE_HARM * self.share / f64::from(u32::try_from(figures.max(1)).unwrap_or(u32::MAX))
    }

    /// Error probability at each end of a printed interval.
    pub(super) fn interval_tail(self) -> Ratio {
        Ratio::new(FALSE_INTERVAL * self.share / 2.0).unwrap_or_default()
    }
}

impl Default for PairBudget {
    /// Five to twenty pairs.
    fn default() -> Self {
        Self { fewest: MIN_PAIRS, most: LAST_LOOK }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seed: u64, candidate: u32) -> Vec<bool> {
        let design = TrialDesign { candidate, ..TrialDesign::new(PairBudget::default(), seed) };
        (0..20).map(|pair| design.is_changed_first(pair)).collect()
    }

    #[test]
    fn the_order_is_balanced_random_and_reproducible() {
        for seed in 0..200 {
            for block in order(seed, 1).chunks(BLOCK) {
                assert_eq!(block.iter().filter(|first| **first).count(), 2, "seed {seed}: {block:?}");
            }
        }
        assert_eq!(order(7, 2), order(7, 2));
        assert!(order(7, 1) != order(7, 2) && order(7, 1) != order(8, 1));
        for pair in 0..8 {
            let first = (0..1000).filter(|seed| order(*seed, 1)[pair]).count();
            // Standard deviation 16; five of them.
            assert!(first.abs_diff(500) < 80, "pair {pair}: {first} of 1000");
        }
    }

    #[test]
    fn looks_and_candidates_spend_no_more_than_everything() {
        for most in [5, 7, 12, 13, 20, 23, 25, 50] {
            let design = TrialDesign::new(PairBudget { most, ..PairBudget::default() }, 1);
            let looks = (MIN_PAIRS..=most).filter(|pairs| *pairs == most || TrialDesign::is_look(*pairs));
            let whole: f64 = looks.map(|pairs| design.look(pairs, pairs).share).sum();
            assert!((whole - 1.0).abs() < 1e-9, "{most} pairs: {whole}");
            let last = design.look(most, most);
            assert!((last.share - last.last_share).abs() < 1e-9);
        }
        let all: f64 = (1..=1000)
            .map(|candidate| {
                let design = TrialDesign { candidate, ..TrialDesign::new(PairBudget::default(), 1) };
                design.look(20, 20).candidate_error()
            })
            .sum();
        assert!(all <= FALSE_KEEP && all > 0.99 * FALSE_KEEP, "{all}");
    }
}
