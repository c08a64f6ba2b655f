//! Seeds: all randomness of a path follows from one number.

use super::address::LinkEnd;

/// The step of `SplitMix64` (Steele, Lea and Flood, 2014): 2⁶⁴ divided by the golden ratio, made odd.
const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// Seed of the `netem` of `link` away from near (`forward`) or towards it, in `stage` 0 (rate, delay, losses) or 1
/// (reordering).
///
/// Output of `SplitMix64`, started with the path's seed, with the index 4 · link + 2 · direction + stage
/// (direction: 0 forward, 1 backward). So all seeds of a path differ, and change with the path's.
#[must_use]
pub fn netem_seed(path_seed: u64, link: usize, forward: bool, stage: u8) -> u64 {
    let link = u64::try_from(link).unwrap_or(u64::MAX);
    let number = link.wrapping_mul(4).wrapping_add(2 * u64::from(!forward)).wrapping_add(u64::from(stage));
    mix(path_seed.wrapping_add(GOLDEN_GAMMA.wrapping_mul(number.wrapping_add(1))))
}

/// The finaliser of `SplitMix64`.
const fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

/// The seed of a stage of the direction that begins at `from`.
pub(super) fn stage_seed(path_seed: u64, link: usize, from: LinkEnd, stage: u8) -> u64 {
    netem_seed(path_seed, link, from == LinkEnd::Near, stage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_are_those_of_the_generator() {
        // Published outputs of SplitMix64 that was started with 1234567.
        let published = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        let ours =
            [netem_seed(1_234_567, 0, true, 0), netem_seed(1_234_567, 0, true, 1), netem_seed(1_234_567, 0, false, 0)];
        assert_eq!(ours, published);
    }

    #[test]
    fn no_two_stages_of_a_path_share_a_seed() {
        let mut seeds = Vec::new();
        for link in 0..64 {
            for forward in [true, false] {
                seeds.extend([0, 1].map(|stage| netem_seed(1, link, forward, stage)));
            }
        }
        let count = seeds.len();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), count);
    }
}
