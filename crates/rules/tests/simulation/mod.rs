//! Simulated trials: paths with noise, trends and effects of the order, judged by the code that `linerate tune` runs.
//!
//! Shared by the tests of the bounds and by `cargo xtask simulate`.

use std::time::Duration;

use linerate_analysis::statistics::{SeededRandom, StatisticalQuantity};
use linerate_rules::judge::{
    MeasurementPair, PairBudget, TransferMeasurement, TrialDecision, TrialDesign, TrialJudgement, judge,
    more_pairs_needed,
};
use linerate_rules::tuning::TuningGoal;
use linerate_units::{BitRate, Ratio};

/// Largest share of runs that may keep a change without an effect.
pub(crate) const MAX_FALSE_KEEP: f64 = 0.02;
/// Largest share of runs that may not keep a gain of 30 % without harm.
pub(crate) const MAX_ROLLED_BACK_GAIN: f64 = 0.05;
/// Least share of runs that keep a gain of 10 % at a variation of 5 %.
pub(crate) const MIN_POWER: f64 = 0.85;

/// Distribution of the rates of equal transfers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Noise {
    /// Independent and normal.
    Normal,
    /// Independent and log-normal.
    LogNormal,
    /// First-order autoregressive with this coefficient.
    Autoregressive(f64),
    /// Steps of the variation, up or down, from transfer to transfer.
    RandomWalk,
    /// 70 % of the rate in half of the transfers.
    Bimodal,
    /// Independent, the logarithm by Student's t distribution of three degrees of freedom.
    HeavyTailed,
}

/// Path on which transfers are measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimulatedPath {
    /// Coefficient of variation of the rate.
    pub(crate) variation: f64,
    pub(crate) noise: Noise,
    /// Growth of the rate from one transfer to the next.
    pub(crate) trend: f64,
    /// Growth of the rate of the second transfer of a pair.
    pub(crate) order_effect: f64,
    /// Coefficient of variation of the round trip under load, which is log-normal.
    pub(crate) round_trip_variation: f64,
}

impl SimulatedPath {
    pub(crate) const fn new(variation: f64) -> Self {
        Self { variation, noise: Noise::Normal, trend: 0.0, order_effect: 0.0, round_trip_variation: 0.02 }
    }
}

/// True factors of a change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrueEffect {
    pub(crate) goodput: f64,
    pub(crate) round_trip: f64,
    /// Factor of the processor load.
    pub(crate) processor: f64,
    /// Factor of the retransmitted share.
    pub(crate) retransmitted: f64,
}

impl TrueEffect {
    pub(crate) const NONE: Self = Self { goodput: 1.0, round_trip: 1.0, processor: 1.0, retransmitted: 1.0 };

    pub(crate) const fn gain(goodput: f64) -> Self {
        Self { goodput, ..Self::NONE }
    }
}

/// Transfers of one run, one after the other.
struct Transfers {
    path: SimulatedPath,
    random: SeededRandom,
    /// State of the noise that depends on the past.
    state: f64,
    level: f64,
}

impl Transfers {
    fn new(path: SimulatedPath, seed: u64) -> Self {
        let mut random = SeededRandom::new(seed);
        let state = if path.noise == Noise::RandomWalk { 0.0 } else { random.normal() };
        Self { path, random, state, level: 1.0 }
    }

    fn noise(&mut self) -> f64 {
        let variation = self.path.variation;
        let normal = |deviation: f64| (1.0 + variation * deviation).max(0.02);
        match self.path.noise {
            Noise::Normal => normal(self.random.normal()),
            Noise::LogNormal => log_normal(&mut self.random, variation),
            Noise::Autoregressive(coefficient) => {
                let innovation = (1.0 - coefficient * coefficient).sqrt() * self.random.normal();
                self.state = coefficient * self.state + innovation;
                normal(self.state)
            }
            Noise::RandomWalk => {
                self.state += variation * self.random.normal();
                self.state.exp()
            }
            Noise::Bimodal => {
                let mode = if self.random.unit() < 0.5 { 0.7 } else { 1.0 };
                mode * (1.0 + 0.01 * self.random.normal())
            }
            Noise::HeavyTailed => {
                let squares: f64 = (0..3).map(|_| self.random.normal().powi(2)).sum();
                // The variance of this distribution is three.
                (variation * self.random.normal() / squares.max(1e-9).sqrt()).exp()
            }
        }
    }

    fn measure(&mut self, effect: TrueEffect, is_second: bool) -> TransferMeasurement {
        let order = if is_second { 1.0 + self.path.order_effect } else { 1.0 };
        let rate = 100e6 * self.level * order * self.noise() * effect.goodput;
        self.level *= 1.0 + self.path.trend;
        let round_trip = 0.060 * log_normal(&mut self.random, self.path.round_trip_variation) * effect.round_trip;
        let load = 0.2 * effect.processor * (1.0 + 0.05 * self.random.normal());
        TransferMeasurement {
            goodput: BitRate::from_bits_per_second(rate),
            round_trip_p95: Some(Duration::from_secs_f64(round_trip)),
            base_round_trip: Some(Duration::from_millis(50)),
            retransmitted: Some(Ratio::from_number(0.01 * effect.retransmitted * (1.0 + 0.3 * self.random.normal()))),
            processor: Some(Ratio::from_number(load)),
            disturbed: None,
        }
    }

    fn pair(&mut self, effect: TrueEffect, changed_first: bool) -> MeasurementPair {
        if changed_first {
            let after = self.measure(effect, false);
            MeasurementPair::new(self.measure(TrueEffect::NONE, true), after, changed_first)
        } else {
            let before = self.measure(TrueEffect::NONE, false);
            MeasurementPair::new(before, self.measure(effect, true), changed_first)
        }
    }
}

fn log_normal(random: &mut SeededRandom, variation: f64) -> f64 {
    let deviation = (variation * variation).ln_1p().sqrt();
    (deviation * random.normal() - deviation * deviation / 2.0).exp()
}

/// Runs the trials of as many candidates of equal effect, one after the other.
pub(crate) fn run(path: SimulatedPath, effect: TrueEffect, candidates: u32, seed: u64) -> Vec<TrialJudgement> {
    let objective = TuningGoal::WanBulk.objective();
    let mut transfers = Transfers::new(path, seed);
    let trial = |candidate| {
        let design = TrialDesign { candidate, ..TrialDesign::new(PairBudget::default(), !seed) };
        let mut pairs = Vec::new();
        while more_pairs_needed(&objective, &design, &pairs) {
            pairs.push(transfers.pair(effect, design.is_changed_first(pairs.len())));
        }
        judge(&objective, &design, &pairs)
    };
    (1..=candidates).map(trial).collect()
}

/// Rates over many runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rates {
    /// Share of runs that keep any candidate.
    pub(crate) kept: f64,
    /// Share of runs in which harm is called shown, or the gain too small.
    pub(crate) rolled_back: f64,
    /// Pairs of a candidate, on average.
    pub(crate) pairs: f64,
    /// Printed gain of what is kept, relative to the true one, as median; `None` where nothing is kept.
    pub(crate) printed_gain: Option<f64>,
}

pub(crate) fn rates(path: SimulatedPath, effect: TrueEffect, candidates: u32, runs: u32, seed: u64) -> Rates {
    let mut found = Rates::default();
    let mut gains = Vec::new();
    for index in 0..runs {
        let judgements = run(path, effect, candidates, seed.wrapping_mul(1_000_003).wrapping_add(u64::from(index)));
        let is = |decision| f64::from(u8::from(judgements.iter().any(|one| one.decision == decision)));
        found.kept += is(TrialDecision::Keep);
        found.rolled_back += is(TrialDecision::RollBack);
        for judgement in &judgements {
            found.pairs += f64::from(u32::try_from(judgement.counted).unwrap_or(u32::MAX)) / f64::from(candidates);
            if judgement.decision == TrialDecision::Keep {
                gains.extend(judgement.goodput.map(|effect| effect.after.number() / effect.before.number()));
            }
        }
    }
    gains.sort_unstable_by(f64::total_cmp);
    let of = |sum: f64| sum / f64::from(runs.max(1));
    Rates {
        kept: of(found.kept),
        rolled_back: of(found.rolled_back),
        pairs: of(found.pairs),
        printed_gain: gains.get(gains.len() / 2).map(|ratio| (ratio - 1.0) / (effect.goodput - 1.0)),
    }
}
