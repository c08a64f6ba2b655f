//! Tables of `linerate history compare`: false differences, power and equivalence.

use super::in_parallel;
use super::run_simulation::{ComparisonRates, MAX_FALSE_DIFFERENCE, MAX_FALSE_EQUAL, RunVariation, rates};
use super::table::{RateCell, RateTable};

/// Tables, computed from the comparisons of each cell and the seed.
pub(super) const TABLES: &[fn(u32, u64) -> RateTable] = &[false_differences, power, equivalence];

const SIDES: [u64; 4] = [1, 3, 5, 10];

/// Variation of the runs in a row, with its description.
fn variations() -> Vec<(String, RunVariation)> {
    let of = |within: f64, autocorrelation: f64, between: f64| {
        let name = format!(
            "seconds {:.0} % (autocorrelation {autocorrelation}), runs {:.0} %",
            within * 100.0,
            between * 100.0
        );
        (name, RunVariation { within, autocorrelation, between, seconds: 10 })
    };
    vec![
        of(0.02, 0.0, 0.01),
        of(0.05, 0.0, 0.0),
        of(0.1, 0.6, 0.0),
        of(0.1, 0.8, 0.0),
        of(0.02, 0.0, 0.05),
        of(0.05, 0.6, 0.1),
        of(0.1, 0.9, 0.1),
        of(0.3, 0.6, 0.23),
    ]
}

fn table(
    (title, text): (&'static str, &'static str),
    factor: f64,
    (comparisons, seed): (u32, u64),
    cell: fn(&ComparisonRates) -> RateCell,
) -> RateTable {
    let variations = variations();
    let cells: Vec<(u64, RunVariation, u64)> = (seed..)
        .zip(variations.iter().flat_map(|(_, variation)| SIDES.map(|side| (*variation, side))))
        .map(|(seed, (variation, side))| (seed, variation, side))
        .collect();
    let found = in_parallel(&cells, |(seed, variation, side)| rates(*variation, *side, factor, comparisons, *seed));
    let rows = variations.into_iter().zip(found.chunks(SIDES.len()));
    RateTable {
        title,
        text,
        row_title: "variation",
        columns: SIDES.map(|side| format!("{side} a side")).into(),
        rows: rows.map(|((name, _), found)| (name, found.iter().map(cell).collect())).collect(),
    }
}

fn false_differences(comparisons: u32, seed: u64) -> RateTable {
    let text = "Comparisons of equal runs (10 s each) in which any figure is called better, worse or different: at most 5 %, and \
                the chance of the simulation.";
    table(("`history compare`: false differences", text), 1.0, (comparisons, seed), |found| {
        RateCell::AtMost(found.different, MAX_FALSE_DIFFERENCE)
    })
}

fn power(comparisons: u32, seed: u64) -> RateTable {
    let text = "Comparisons that call a goodput of 80 % worse.";
    table(("`history compare`: differences of 20 % that are found", text), 0.8, (comparisons, seed), |found| {
        RateCell::Free(found.worse)
    })
}

fn equivalence(comparisons: u32, seed: u64) -> RateTable {
    let text = "Comparisons that call a goodput of 97 % equal, although it differs by more than the margin of 2 %: at most 5 %.";
    table(("`history compare`: false equality", text), 0.97, (comparisons, seed), |found| {
        RateCell::AtMost(found.equal, MAX_FALSE_EQUAL)
    })
}
