use linerate_units::Ratio;

use super::{Bootstrap, Quantity, Random, Sample, Signed, Statistic};

/// Below this many blocks on either side nothing is said.
const FEWEST_BLOCKS: usize = 5;

/// What a comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// No difference that matters: the whole interval of the difference lies within the margin (two one-sided tests,
    /// Schuirmann 1987).
    Equal,
    /// A difference, and not one too small to matter: the interval leaves out zero, and is not within the margin.
    Different,
    /// Neither can be said: the interval holds zero, and also differences that would matter.
    NotEnoughData,
}

/// The differences that do not matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Margin<Q> {
    /// Up to this share of the first sample's value.
    Relative(Ratio),
    /// Up to this.
    Absolute(Q),
}

impl<Q: Quantity> Margin<Q> {
    /// The margin as a number, beside that value.
    fn beside(self, value: f64) -> f64 {
        match self {
            Self::Relative(share) => share.get() * value.abs(),
            Self::Absolute(quantity) => quantity.number(),
        }
    }
}

/// Two samples side by side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison<Q> {
    /// The statistic of the first.
    pub before: Q,
    /// The statistic of the second.
    pub after: Q,
    /// How much more it is in the second than in the first.
    pub difference: Signed<Q>,
    /// The interval of the difference, lower end first; `None` when there are too few readings for one.
    pub interval: Option<(Signed<Q>, Signed<Q>)>,
    /// The confidence of the interval.
    pub confidence: Ratio,
    /// What follows from it.
    pub verdict: Verdict,
}

impl<Q: Quantity> Comparison<Q> {
    /// The comparison of two numbers whose difference has this interval.
    pub(super) fn of(
        (before, after): (f64, f64),
        interval: Option<(f64, f64)>,
        confidence: Ratio,
        margin: Margin<Q>,
    ) -> Self {
        let margin = margin.beside(before);
        let verdict = match interval {
            Some((low, high)) if low >= -margin && high <= margin => Verdict::Equal,
            Some((low, high)) if low > 0.0 || high < 0.0 => Verdict::Different,
            _ => Verdict::NotEnoughData,
        };
        Self {
            before: Q::from_number(before),
            after: Q::from_number(after),
            difference: Signed::from_number(after - before),
            interval: interval.map(|(low, high)| (Signed::from_number(low), Signed::from_number(high))),
            confidence,
            verdict,
        }
    }
}

/// Compares a statistic of two samples that were taken apart from each other, by resampling both (Efron and Tibshirani
/// 1993, §16). `None` when either has no readings; fewer than five blocks on a side are not enough data.
#[must_use]
pub fn compare<Q: Quantity>(
    before: &Sample<Q>,
    after: &Sample<Q>,
    statistic: Statistic,
    margin: Margin<Q>,
    bootstrap: &Bootstrap,
) -> Option<Comparison<Q>> {
    let values = (before.number(statistic)?, after.number(statistic)?);
    let fewest = before.blocks().min(after.blocks());
    let (mut random, mut space) = (Random::new(bootstrap.seed), Vec::new());
    let mut draw = || {
        let first = before.resampled(statistic, &mut random, &mut space);
        after.resampled(statistic, &mut random, &mut space) - first
    };
    let interval = (fewest >= FEWEST_BLOCKS).then(|| bootstrap.ends(fewest, &mut draw)).flatten();
    Some(Comparison::of(values, interval, bootstrap.confidence, margin))
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    /// `count` round trips of 20 ms and more, by a seed.
    fn round_trips(seed: u64, count: usize, more: f64) -> Vec<Duration> {
        let mut random = Random::new(seed);
        (0..count).map(|_| Duration::from_secs_f64((20.0 + more + 0.5 * random.normal().abs()) / 1e3)).collect()
    }

    fn verdict(before: &[Duration], after: &[Duration]) -> Verdict {
        let margin = Margin::Relative(Ratio::from_percent(2.0).expect("a share"));
        let samples = [before, after].map(Sample::independent);
        compare(&samples[0], &samples[1], Statistic::Median, margin, &Bootstrap::with_seed(11))
            .map_or(Verdict::NotEnoughData, |comparison| comparison.verdict)
    }

    #[test]
    fn equal_paths_are_equal_and_different_ones_are_told_apart() {
        let first = round_trips(1, 100, 0.0);
        assert_eq!(verdict(&first, &round_trips(2, 100, 0.0)), Verdict::Equal);
        assert_eq!(verdict(&first, &round_trips(3, 100, 2.0)), Verdict::Different);
        assert_eq!(verdict(&round_trips(3, 100, 2.0), &first), Verdict::Different);
        assert_eq!(verdict(&first, &first), Verdict::Equal);
    }

    #[test]
    fn few_or_wild_readings_say_nothing() {
        assert_eq!(verdict(&round_trips(1, 4, 0.0), &round_trips(2, 100, 9.0)), Verdict::NotEnoughData);
        assert_eq!(verdict(&[], &round_trips(2, 100, 9.0)), Verdict::NotEnoughData);
        let wild = |seed| {
            let mut random = Random::new(seed);
            (0..20).map(|_| Duration::from_millis(10 + random.below(50) as u64)).collect::<Vec<_>>()
        };
        assert_eq!(verdict(&wild(1), &wild(2)), Verdict::NotEnoughData);
    }

    #[test]
    fn false_alarms_are_as_rare_as_the_confidence_says() {
        // 200 pairs of the same path, margin zero: 5 % may be called different; standard error 1.5 %, four of them.
        let alarms = (0..200_u64).filter(|pair| {
            let samples = [2 * pair + 10, 2 * pair + 11].map(|seed| Sample::independent(&round_trips(seed, 30, 0.0)));
            let bootstrap = Bootstrap { rounds: 500, ..Bootstrap::with_seed(*pair) };
            let comparison =
                compare(&samples[0], &samples[1], Statistic::Mean, Margin::Absolute(Duration::ZERO), &bootstrap);
            comparison.is_some_and(|comparison| comparison.verdict == Verdict::Different)
        });
        assert!(alarms.count() <= 22);
    }

    #[test]
    fn the_difference_has_its_sign() {
        let samples = [[3.0; 6], [1.0; 6]].map(|readings| Sample::independent(&readings));
        let margin = Margin::Absolute(0.5);
        let comparison = compare(&samples[0], &samples[1], Statistic::Mean, margin, &Bootstrap::with_seed(1));
        let comparison = comparison.expect("readings");
        assert_eq!(comparison.difference, Signed { negative: true, magnitude: 2.0 });
        assert_eq!(comparison.verdict, Verdict::Different);
    }
}
