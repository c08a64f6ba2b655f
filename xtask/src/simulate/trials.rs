//! Tables of the judge: false keeps, power and harm.

use super::in_parallel;
use super::table::{RateCell, RateTable};
use super::trial_simulation::{
    MAX_FALSE_KEEP, MAX_ROLLED_BACK_GAIN, MIN_POWER, Noise, Rates, SimulatedPath, TrueEffect, rates,
};

/// Tables, computed from the runs of each cell and the seed.
pub(super) const TABLES: &[fn(u32, u64) -> RateTable] =
    &[false_keeps, many_candidates, order, power, printed_gain, harm];

const VARIATIONS: [f64; 6] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3];

const NOISES: [(&str, Noise); 10] = [
    ("normal", Noise::Normal),
    ("log-normal", Noise::LogNormal),
    ("heavy tails (log-t, 3 degrees of freedom)", Noise::HeavyTailed),
    ("bimodal (70 % of the rate in half of the transfers)", Noise::Bimodal),
    ("autoregressive 0.3", Noise::Autoregressive(0.3)),
    ("autoregressive 0.5", Noise::Autoregressive(0.5)),
    ("autoregressive 0.7", Noise::Autoregressive(0.7)),
    ("autoregressive 0.8", Noise::Autoregressive(0.8)),
    ("autoregressive 0.9", Noise::Autoregressive(0.9)),
    ("random walk", Noise::RandomWalk),
];

/// Cell: path, true effect and number of candidates.
type Cell = (SimulatedPath, TrueEffect, u32);

/// Computes the rows of a table; `cell` reads the rate of a row's column.
fn rows(
    named: Vec<(String, Vec<Cell>)>,
    runs: u32,
    seed: u64,
    cell: impl Fn(usize, &Rates) -> RateCell,
) -> Vec<(String, Vec<RateCell>)> {
    let (labels, lines): (Vec<String>, Vec<Vec<Cell>>) = named.into_iter().unzip();
    let width = lines.first().map_or(1, Vec::len);
    let flat: Vec<(u64, Cell)> = (seed..).zip(lines.into_iter().flatten()).collect();
    let found =
        in_parallel(&flat, |(seed, (path, effect, candidates))| rates(*path, *effect, *candidates, runs, *seed));
    let rated = found.chunks(width).map(|row| row.iter().enumerate().map(|(column, rates)| cell(column, rates)));
    labels.into_iter().zip(rated.map(Iterator::collect)).collect()
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn variations() -> Vec<String> {
    VARIATIONS.iter().map(|variation| format!("variation {}", percent(*variation))).collect()
}

fn false_keeps(runs: u32, seed: u64) -> RateTable {
    let cells = |noise: Noise, candidates: u32| -> Vec<Cell> {
        let path = |variation| SimulatedPath { noise, ..SimulatedPath::new(variation) };
        VARIATIONS.iter().map(|variation| (path(*variation), TrueEffect::NONE, candidates)).collect()
    };
    let named = NOISES.iter().flat_map(|(name, noise)| {
        [(1, "1 candidate"), (6, "6 candidates")]
            .map(|(candidates, text)| (format!("{name}, {text}"), cells(*noise, candidates)))
    });
    RateTable {
        title: "False keeps",
        text: "Runs of `linerate tune` that keep a change without an effect: at most 2 % in every cell. The variation is that \
               of the rates of equal transfers; of a random walk, that of its steps.",
        row_title: "noise between transfers",
        columns: variations(),
        rows: rows(named.collect(), runs, seed, |_, rates| RateCell::AtMost(rates.kept, MAX_FALSE_KEEP)),
    }
}

fn many_candidates(runs: u32, seed: u64) -> RateTable {
    let cells = |candidates: u32| -> Vec<Cell> {
        VARIATIONS.iter().map(|variation| (SimulatedPath::new(*variation), TrueEffect::NONE, candidates)).collect()
    };
    RateTable {
        title: "False keeps by the number of candidates",
        text: "The same by the number of candidates of a run, normal noise: at most 2 %.",
        row_title: "candidates",
        columns: variations(),
        rows: rows((1..=6).map(|count| (count.to_string(), cells(count))).collect(), runs, seed, |_, rates| {
            RateCell::AtMost(rates.kept, MAX_FALSE_KEEP)
        }),
    }
}

fn order(runs: u32, seed: u64) -> RateTable {
    let cells = |trend: f64, order_effect: f64| -> Vec<Cell> {
        let path = |variation| SimulatedPath { trend, order_effect, ..SimulatedPath::new(variation) };
        VARIATIONS.iter().map(|variation| (path(*variation), TrueEffect::NONE, 1)).collect()
    };
    let cases = [
        ("+2 % a transfer", 0.02, 0.0),
        ("+5 % a transfer", 0.05, 0.0),
        ("-5 % a transfer", -0.05, 0.0),
        ("the second of a pair +6 %", 0.0, 0.06),
        ("the second of a pair +10 %", 0.0, 0.1),
        ("the second of a pair -10 %", 0.0, -0.1),
        ("+5 % a transfer, the second +10 %", 0.05, 0.1),
        ("-5 % a transfer, the second +30 %", -0.05, 0.3),
    ];
    let named = cases.map(|(name, trend, order_effect)| (name.to_owned(), cells(trend, order_effect)));
    RateTable {
        title: "False keeps under trends and effects of the order",
        text: "The same, one candidate, normal noise, with a trend from transfer to transfer or an effect of the place in the \
               pair: at most 2 %.",
        row_title: "trend or order",
        columns: variations(),
        rows: rows(named.into(), runs, seed, |_, rates| RateCell::AtMost(rates.kept, MAX_FALSE_KEEP)),
    }
}

fn gains() -> Vec<(String, Vec<Cell>)> {
    let cells = |gain: f64| -> Vec<Cell> {
        VARIATIONS.iter().map(|variation| (SimulatedPath::new(*variation), TrueEffect::gain(gain), 1)).collect()
    };
    [1.05, 1.1, 1.2, 1.3, 1.5, 2.0, 10.0].map(|gain| (format!("+{}", percent(gain - 1.0)), cells(gain))).into()
}

fn power(runs: u32, seed: u64) -> RateTable {
    let mut table = RateTable {
        title: "Power",
        text: "Runs that keep a change with a true gain, one candidate, normal noise: at least 85 % at +10 % and a variation \
               of 5 %. A gain of 5 % is the least that is kept at all.",
        row_title: "true gain",
        columns: variations(),
        rows: rows(gains(), runs.div_ceil(2), seed, |_, rates| RateCell::Free(rates.kept)),
    };
    let tenth = &mut table.rows[1].1[2];
    if let RateCell::Free(rate) = *tenth {
        *tenth = RateCell::AtLeast(rate, MIN_POWER);
    }
    table
}

fn printed_gain(runs: u32, seed: u64) -> RateTable {
    RateTable {
        title: "Printed gains",
        text: "Median of the printed gains of what is kept, in percent of the true gain.",
        row_title: "true gain",
        columns: variations(),
        rows: rows(gains(), runs.div_ceil(4), seed, |_, rates| {
            rates.printed_gain.map_or(RateCell::Empty, RateCell::Free)
        }),
    }
}

/// Case of harm: name, effect, and the reading of its cells.
type HarmCase = (&'static str, TrueEffect, fn(&Rates) -> RateCell);

fn harm(runs: u32, seed: u64) -> RateTable {
    let gain = TrueEffect::gain(1.3);
    let unharmed: fn(&Rates) -> RateCell = |rates| RateCell::AtMost(1.0 - rates.kept, MAX_ROLLED_BACK_GAIN);
    let harmed: fn(&Rates) -> RateCell = |rates| RateCell::Free(rates.kept);
    let cases: [HarmCase; 9] = [
        ("not kept: nothing gets worse", gain, unharmed),
        ("not kept: round trip -20 %", TrueEffect { round_trip: 0.8, ..gain }, unharmed),
        ("kept: round trip +15 % (allowed)", TrueEffect { round_trip: 1.15, ..gain }, harmed),
        ("kept: round trip +30 %", TrueEffect { round_trip: 1.3, ..gain }, harmed),
        ("kept: round trip +50 %", TrueEffect { round_trip: 1.5, ..gain }, harmed),
        ("kept: processor's time per byte +50 %", TrueEffect { processor: 1.95, ..gain }, harmed),
        ("kept: processor's time per byte twice", TrueEffect { processor: 2.6, ..gain }, harmed),
        ("kept: retransmitted share three times", TrueEffect { retransmitted: 3.0, ..gain }, harmed),
        ("kept: retransmitted share four times", TrueEffect { retransmitted: 4.0, ..gain }, harmed),
    ];
    let variations = [0.02, 0.1, 0.2, 0.3];
    let rows = cases
        .iter()
        .enumerate()
        .flat_map(|(index, (name, effect, read))| {
            let cells = variations.map(|round_trip_variation| {
                (SimulatedPath { round_trip_variation, ..SimulatedPath::new(0.05) }, *effect, 1)
            });
            let seed = seed.wrapping_add(1000 * u64::try_from(index).unwrap_or_default());
            rows(vec![((*name).to_owned(), cells.into())], runs.div_ceil(2), seed, |_, rates| read(rates))
        })
        .collect();
    RateTable {
        title: "Harm",
        text: "A true gain of 30 % at a variation of 5 %. Where nothing gets worse, at most 5 % are not kept. The limits of the \
               goal `wan-bulk`: round trip +20 %, processor's time per byte +40 %, twice the retransmitted share.",
        row_title: "outcome and harm",
        columns: variations.map(|variation| format!("round trips vary by {}", percent(variation))).into(),
        rows,
    }
}
