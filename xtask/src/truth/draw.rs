//! Numbers from a seed: the same seed gives the same numbers, on every machine.

/// The step of `SplitMix64` (Steele, Lea and Flood, 2014): 2⁶⁴ divided by the golden ratio, made odd.
const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// Generator of pseudo-random numbers.
#[derive(Clone, Debug)]
pub(super) struct SeededDraw {
    state: u64,
}

impl SeededDraw {
    /// Generator of the case `index` of a run with this seed.
    pub(super) fn new(seed: u64, index: u64) -> Self {
        let mut of_run = Self { state: seed };
        Self { state: of_run.next() ^ GOLDEN_GAMMA.wrapping_mul(index.wrapping_add(1)) }
    }

    /// Returns the next output of `SplitMix64`.
    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN_GAMMA);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 (included) to 1 (excluded).
    pub(super) fn unit(&mut self) -> f64 {
        let high = u32::try_from(self.next() >> 32).unwrap_or_default();
        f64::from(high) / (f64::from(u32::MAX) + 1.0)
    }

    /// Returns a number between two, uniform.
    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Returns a number between two, whose logarithm is uniform.
    pub(super) fn log_between(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    /// Returns true with this probability.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Returns one of the items, each as likely.
    ///
    /// # Panics
    ///
    /// Panics without items.
    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let count = u64::try_from(items.len()).unwrap_or(u64::MAX);
        let index = usize::try_from(self.next() % count).expect("below the number of items");
        &items[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_are_those_of_the_generator() {
        // Published outputs of SplitMix64 that was started with 1234567.
        let mut draw = SeededDraw { state: 1_234_567 };
        let published = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([draw.next(), draw.next(), draw.next()], published);
    }

    #[test]
    fn numbers_stay_in_their_ranges_and_reach_both_ends() {
        let mut draw = SeededDraw::new(1, 2);
        let numbers: Vec<f64> = (0..2000).map(|_| draw.log_between(0.01, 100.0)).collect();
        assert!(numbers.iter().all(|number| (0.01..100.0).contains(number)));
        let below_one = numbers.iter().filter(|number| **number < 1.0).count();
        assert!((900..1100).contains(&below_one), "half of them below the geometric mean: {below_one}");
        assert!(numbers.iter().any(|number| *number < 0.011) && numbers.iter().any(|number| *number > 90.0));
    }

    #[test]
    fn cases_of_a_run_and_runs_differ() {
        let first = |seed, index| SeededDraw::new(seed, index).next();
        assert_eq!(first(7, 3), first(7, 3));
        assert!(first(7, 3) != first(7, 4) && first(7, 3) != first(8, 3));
    }
}
