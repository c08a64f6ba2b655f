//! Bounds of the error rates of comparisons, by simulation. `cargo xtask simulate` has more runs of more cells.

mod simulation;

use simulation::{MAX_FALSE_DIFFERENCE, MAX_FALSE_EQUAL, RunVariation, rates};

const VARIATIONS: [RunVariation; 5] = [
    RunVariation { within: 0.05, autocorrelation: 0.0, between: 0.0, seconds: 10 },
    RunVariation { within: 0.1, autocorrelation: 0.8, between: 0.0, seconds: 10 },
    RunVariation { within: 0.02, autocorrelation: 0.0, between: 0.05, seconds: 10 },
    RunVariation { within: 0.05, autocorrelation: 0.6, between: 0.1, seconds: 10 },
    RunVariation { within: 0.3, autocorrelation: 0.6, between: 0.23, seconds: 10 },
];

#[test]
fn equal_runs_are_called_different_in_at_most_five_percent() {
    for (variation, runs) in VARIATIONS.into_iter().map(|variation| (variation, 1)).chain([(VARIATIONS[4], 3)]) {
        let found = rates(variation, runs, 1.0, 50, 1);
        // Of fifty, 5 % have a standard error of 3 %.
        assert!(found.different <= MAX_FALSE_DIFFERENCE + 0.05, "{runs} a side, {variation:?}: {found:?}");
    }
}

#[test]
fn true_differences_are_not_called_equal_and_large_ones_are_found() {
    for variation in VARIATIONS {
        let found = rates(variation, 1, 0.9, 20, 2);
        assert!(found.equal <= MAX_FALSE_EQUAL, "{variation:?}: {found:?}");
    }
    let calm = rates(VARIATIONS[2], 4, 0.8, 20, 3);
    assert!(calm.worse >= 0.8, "{calm:?}");
    let single = rates(VARIATIONS[0], 1, 0.3, 20, 4);
    assert!(single.worse >= 0.8, "{single:?}");
}
