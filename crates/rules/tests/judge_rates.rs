//! Bounds of the judge's error rates and of its power, by simulation. `cargo xtask simulate` has more runs of more cells.

use crate::simulation::{MAX_FALSE_KEEP, MAX_ROLLED_BACK_GAIN, MIN_POWER, Noise, SimulatedPath, TrueEffect, rates};

/// Standard errors by which a simulated rate may exceed its bound.
fn is_within(rate: f64, bound: f64, runs: u32) -> bool {
    rate <= bound + 3.0 * (bound * (1.0 - bound) / f64::from(runs)).sqrt()
}

#[test]
fn changes_without_an_effect_are_kept_in_at_most_two_percent_of_runs() {
    let noises = [
        Noise::Normal,
        Noise::LogNormal,
        Noise::HeavyTailed,
        Noise::Bimodal,
        Noise::Autoregressive(0.3),
        Noise::Autoregressive(0.9),
        Noise::RandomWalk,
    ];
    for variation in [0.01, 0.05, 0.1, 0.2, 0.3] {
        for noise in noises {
            let path = SimulatedPath { noise, ..SimulatedPath::new(variation) };
            let found = rates(path, TrueEffect::NONE, 6, 100, 1);
            assert!(is_within(found.kept, MAX_FALSE_KEEP, 100), "{path:?}: {found:?}");
        }
    }
}

#[test]
fn trends_and_effects_of_the_order_are_no_gains() {
    for variation in [0.01, 0.05, 0.1] {
        for (trend, order_effect) in [(0.05, 0.0), (-0.05, 0.0), (0.0, 0.1), (0.0, -0.1), (0.05, 0.1)] {
            let path = SimulatedPath { trend, order_effect, ..SimulatedPath::new(variation) };
            let found = rates(path, TrueEffect::NONE, 1, 400, 2);
            assert!(is_within(found.kept, MAX_FALSE_KEEP, 400), "{path:?}: {found:?}");
        }
    }
}

#[test]
fn a_gain_of_a_tenth_is_found_at_a_variation_of_five_percent() {
    let first = rates(SimulatedPath::new(0.05), TrueEffect::gain(1.1), 1, 300, 3);
    assert!(first.kept >= MIN_POWER, "{first:?}");
    assert!(first.printed_gain.is_some_and(|gain| (0.8..=1.05).contains(&gain)), "{first:?}");
}

#[test]
fn large_gains_need_five_pairs() {
    let found = rates(SimulatedPath::new(0.1), TrueEffect::gain(30.0), 1, 100, 4);
    // Now and then a sixth, where the retransmitted share varies most.
    assert!((found.kept - 1.0).abs() < f64::EPSILON && found.pairs <= 5.2, "{found:?}");
}

#[test]
fn a_gain_without_harm_is_not_rolled_back() {
    for round_trip_variation in [0.1, 0.2, 0.3] {
        let path = SimulatedPath { round_trip_variation, ..SimulatedPath::new(0.05) };
        let found = rates(path, TrueEffect::gain(1.3), 1, 400, 5);
        assert!(
            is_within(1.0 - found.kept, MAX_ROLLED_BACK_GAIN, 400) && found.rolled_back <= 0.01,
            "{path:?}: {found:?}"
        );
    }
}

#[test]
fn harm_beyond_the_limit_is_not_kept() {
    for (effect, variation, most) in [
        (TrueEffect { round_trip: 1.3, ..TrueEffect::gain(1.3) }, 0.1, 0.05),
        (TrueEffect { round_trip: 1.5, ..TrueEffect::gain(1.3) }, 0.2, 0.02),
        (TrueEffect { processor: 2.0, ..TrueEffect::gain(1.3) }, 0.1, 0.02),
        (TrueEffect { retransmitted: 4.0, ..TrueEffect::gain(1.3) }, 0.1, 0.02),
    ] {
        let path = SimulatedPath { round_trip_variation: variation, ..SimulatedPath::new(0.05) };
        let found = rates(path, effect, 1, 200, 6);
        assert!(is_within(found.kept, most, 200), "{effect:?}: {found:?}");
    }
}
