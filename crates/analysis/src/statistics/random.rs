/// Pseudo-random number generator: xoshiro256++ (Blackman and Vigna 2021), its state filled from the seed by
/// `SplitMix64` (Steele, Lea and Flood 2014).
///
/// For resampling and simulation; not for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeededRandom {
    state: [u64; 4],
}

impl SeededRandom {
    /// Creates the generator of this seed. Every seed is valid, zero too.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut counter = seed;
        let state = core::array::from_fn(|_| {
            counter = counter.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (counter ^ (counter >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            mixed ^ (mixed >> 31)
        });
        Self { state }
    }

    /// Next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// Number from 0 up to, not including, 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Whole number below `end`, uniform except for one part in 2^64 / `end`; 0 when `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let wide = u128::from(self.next_u64()) * (end as u128);
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// Number of the standard normal distribution (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (core::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_fills_the_state_as_published() {
        // First outputs of SplitMix64 for seed 1234567, as its reference implementation prints them.
        assert_eq!(
            SeededRandom::new(1_234_567).state,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431
            ]
        );
    }

    #[test]
    fn xoshiro_steps_as_published() {
        // From the state 1, 2, 3, 4: the first outputs of the reference implementation.
        let mut random = SeededRandom { state: [1, 2, 3, 4] };
        let first: [u64; 4] = core::array::from_fn(|_| random.next_u64());
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn numbers_are_spread_evenly() {
        let mut random = SeededRandom::new(4);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10)] += 1;
        }
        // Standard deviation of each count: sqrt(100000 × 0.1 × 0.9) = 95; five of them.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 475), "{counts:?}");
        assert_eq!(random.below(0), 0);
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..100_000 {
            let value = random.normal();
            (sum, squares) = (sum + value, squares + value * value);
        }
        // Standard errors: 1/sqrt(n) = 0.0032, sqrt(2/n) = 0.0045.
        assert!((sum / 1e5).abs() < 0.016 && (squares / 1e5 - 1.0).abs() < 0.023, "{sum} {squares}");
    }
}
