use linerate_units::Ratio;
use serde::{Deserialize, Serialize};

use super::{BlockSample, BootstrapSettings, SampleStatistic, SeededRandom, SignedDifference, StatisticalQuantity};

/// Minimum number of blocks of each sample for a verdict.
const MIN_BLOCKS: usize = 5;

/// Verdict of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    /// No difference that matters: the whole interval of the difference lies within the margin (two one-sided tests,
    /// Schuirmann 1987).
    Equal,
    /// A difference, and not one too small to matter: the interval excludes zero, and is not within the margin.
    Different,
    /// Inconclusive: the interval contains zero, and also differences that would matter.
    NotEnoughData,
}

/// Largest difference that does not matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EquivalenceMargin<Q> {
    /// Share of the first sample's value.
    Relative(Ratio),
    /// Absolute difference.
    Absolute(Q),
}

impl<Q: StatisticalQuantity> EquivalenceMargin<Q> {
    /// Margin as a number, relative to that value.
    fn beside(self, value: f64) -> f64 {
        match self {
            Self::Relative(share) => share.get() * value.abs(),
            Self::Absolute(quantity) => quantity.number(),
        }
    }
}

/// Comparison of two samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleComparison<Q> {
    /// Statistic of the first sample.
    pub before: Q,
    /// Statistic of the second sample.
    pub after: Q,
    /// Second minus first.
    pub difference: SignedDifference<Q>,
    /// Interval of the difference, lower bound first; `None` when there are too few samples for one.
    pub interval: Option<(SignedDifference<Q>, SignedDifference<Q>)>,
    /// Confidence level of the interval.
    pub confidence: Ratio,
    /// Conclusion.
    pub verdict: ComparisonVerdict,
}

impl<Q: StatisticalQuantity> SampleComparison<Q> {
    /// Compares two numbers whose difference has this interval.
    pub(super) fn of(
        (before, after): (f64, f64),
        interval: Option<(f64, f64)>,
        confidence: Ratio,
        margin: EquivalenceMargin<Q>,
    ) -> Self {
        let margin = margin.beside(before);
        let verdict = match interval {
            Some((low, high)) if low >= -margin && high <= margin => ComparisonVerdict::Equal,
            Some((low, high)) if low > 0.0 || high < 0.0 => ComparisonVerdict::Different,
            _ => ComparisonVerdict::NotEnoughData,
        };
        Self {
            before: Q::from_number(before),
            after: Q::from_number(after),
            difference: SignedDifference::from_number(after - before),
            interval: interval
                .map(|(low, high)| (SignedDifference::from_number(low), SignedDifference::from_number(high))),
            confidence,
            verdict,
        }
    }
}

/// Compares a statistic of two independent samples, by resampling both (Efron and Tibshirani 1993, §16). `None` when
/// either is empty; fewer than five blocks in either are not enough data.
#[must_use]
pub fn compare<Q: StatisticalQuantity>(
    before: &BlockSample<Q>,
    after: &BlockSample<Q>,
    statistic: SampleStatistic,
    margin: EquivalenceMargin<Q>,
    bootstrap: &BootstrapSettings,
) -> Option<SampleComparison<Q>> {
    let values = (before.number(statistic)?, after.number(statistic)?);
    let fewest = before.blocks().min(after.blocks());
    let mut random = SeededRandom::new(bootstrap.seed);
    let (mut first, mut second) = (before.resampler(statistic), after.resampler(statistic));
    let mut draw = || {
        let before = first.draw(&mut random);
        second.draw(&mut random) - before
    };
    let interval = (fewest >= MIN_BLOCKS).then(|| bootstrap.ends(fewest, &mut draw)).flatten();
    Some(SampleComparison::of(values, interval, bootstrap.confidence, margin))
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    /// Creates `count` round trips of 20 ms plus `more`, by a seed.
    fn round_trips(seed: u64, count: usize, more: f64) -> Vec<Duration> {
        let mut random = SeededRandom::new(seed);
        (0..count).map(|_| Duration::from_secs_f64((20.0 + more + 0.5 * random.normal().abs()) / 1e3)).collect()
    }

    fn verdict(before: &[Duration], after: &[Duration]) -> ComparisonVerdict {
        let margin = EquivalenceMargin::Relative(Ratio::from_percent(2.0).expect("a share"));
        let samples = [before, after].map(BlockSample::independent);
        compare(&samples[0], &samples[1], SampleStatistic::Median, margin, &BootstrapSettings::with_seed(11))
            .map_or(ComparisonVerdict::NotEnoughData, |comparison| comparison.verdict)
    }

    #[test]
    fn equal_and_different_paths_are_distinguished() {
        let first = round_trips(1, 100, 0.0);
        assert_eq!(verdict(&first, &round_trips(2, 100, 0.0)), ComparisonVerdict::Equal);
        assert_eq!(verdict(&first, &round_trips(3, 100, 2.0)), ComparisonVerdict::Different);
        assert_eq!(verdict(&round_trips(3, 100, 2.0), &first), ComparisonVerdict::Different);
        assert_eq!(verdict(&first, &first), ComparisonVerdict::Equal);
    }

    #[test]
    fn few_or_noisy_samples_are_inconclusive() {
        assert_eq!(verdict(&round_trips(1, 4, 0.0), &round_trips(2, 100, 9.0)), ComparisonVerdict::NotEnoughData);
        assert_eq!(verdict(&[], &round_trips(2, 100, 9.0)), ComparisonVerdict::NotEnoughData);
        let wild = |seed| {
            let mut random = SeededRandom::new(seed);
            (0..20).map(|_| Duration::from_millis(10 + random.below(50) as u64)).collect::<Vec<_>>()
        };
        assert_eq!(verdict(&wild(1), &wild(2)), ComparisonVerdict::NotEnoughData);
    }

    #[test]
    fn false_alarms_match_the_confidence_level() {
        // 200 pairs of the same path, margin zero: 5 % may be classified as different; standard error 1.5 %, four of
        // them.
        let alarms = (0..200_u64).filter(|pair| {
            let samples =
                [2 * pair + 10, 2 * pair + 11].map(|seed| BlockSample::independent(&round_trips(seed, 30, 0.0)));
            let bootstrap = BootstrapSettings { rounds: 500, ..BootstrapSettings::with_seed(*pair) };
            let comparison = compare(
                &samples[0],
                &samples[1],
                SampleStatistic::Mean,
                EquivalenceMargin::Absolute(Duration::ZERO),
                &bootstrap,
            );
            comparison.is_some_and(|comparison| comparison.verdict == ComparisonVerdict::Different)
        });
        assert!(alarms.count() <= 22);
    }

    #[test]
    fn the_difference_has_its_sign() {
        let samples = [[3.0; 6], [1.0; 6]].map(|readings| BlockSample::independent(&readings));
        let margin = EquivalenceMargin::Absolute(0.5);
        let comparison =
            compare(&samples[0], &samples[1], SampleStatistic::Mean, margin, &BootstrapSettings::with_seed(1));
        let comparison = comparison.expect("samples");
        assert_eq!(comparison.difference, SignedDifference { negative: true, magnitude: 2.0 });
        assert_eq!(comparison.verdict, ComparisonVerdict::Different);
    }
}
