use linerate_units::{PacketCount, Ratio};

use super::ConfidenceInterval;
use super::special::{beta_quantile, normal_quantile};

/// Wilson's score interval (1927) of a share, for `events` of `trials`: near the nominal confidence on average, and
/// never outside 0 to 1. `None` without trials.
#[must_use]
pub fn wilson(events: PacketCount, trials: PacketCount, confidence: Ratio) -> Option<ConfidenceInterval<Ratio>> {
    if trials.is_zero() {
        return None;
    }
    let count = trials.as_f64();
    let share = events.min(trials).as_f64() / count;
    let quantile = normal_quantile(inside(confidence));
    let square = quantile.powi(2) / count;
    let centre = (share + square / 2.0) / (1.0 + square);
    let half = quantile / (1.0 + square) * (share * (1.0 - share) / count + square / (4.0 * count)).sqrt();
    interval(centre - half, centre + half, confidence)
}

/// Exact interval of a share, for `events` of `trials` (Clopper and Pearson 1934): it contains the true share with at
/// least the nominal confidence. Without events in `n` trials its upper bound is about `3.7 / n` at 95 %. `None`
/// without trials.
#[must_use]
pub fn clopper_pearson(
    events: PacketCount,
    trials: PacketCount,
    confidence: Ratio,
) -> Option<ConfidenceInterval<Ratio>> {
    if trials.is_zero() {
        return None;
    }
    let (seen, count) = (events.min(trials).as_f64(), trials.as_f64());
    let outside = 1.0 - inside(confidence);
    let low = if seen == 0.0 { 0.0 } else { beta_quantile(outside, seen, count - seen + 1.0) };
    let high = if seen >= count { 1.0 } else { beta_quantile(1.0 - outside, seen + 1.0, count - seen) };
    interval(low, high, confidence)
}

/// Probability below the upper bound of a two-sided interval.
fn inside(confidence: Ratio) -> f64 {
    f64::midpoint(1.0, confidence.get().min(1.0))
}

fn interval(low: f64, high: f64, confidence: Ratio) -> Option<ConfidenceInterval<Ratio>> {
    Some(ConfidenceInterval { low: Ratio::new(low.max(0.0))?, high: Ratio::new(high.min(1.0))?, confidence })
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "small counts")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ends(interval: Option<ConfidenceInterval<Ratio>>) -> (f64, f64) {
        let interval = interval.expect("trials");
        (interval.low.get(), interval.high.get())
    }

    fn of(
        kind: fn(PacketCount, PacketCount, Ratio) -> Option<ConfidenceInterval<Ratio>>,
        events: u64,
        trials: u64,
    ) -> (f64, f64) {
        ends(kind(PacketCount::new(events), PacketCount::new(trials), Ratio::new(0.95).expect("a share")))
    }

    #[track_caller]
    fn near((low, high): (f64, f64), expected: (f64, f64)) {
        assert!((low - expected.0).abs() < 6e-5 && (high - expected.1).abs() < 6e-5, "{low} to {high}");
    }

    #[test]
    fn published_intervals() {
        // Newcombe 1998, table I: methods 3 (score) and 5 (exact), for 81 of 263, 15 of 148, 0 of 20 and 1 of 29.
        near(of(wilson, 81, 263), (0.2553, 0.3662));
        near(of(clopper_pearson, 81, 263), (0.2527, 0.3676));
        near(of(wilson, 15, 148), (0.0624, 0.1605));
        near(of(clopper_pearson, 15, 148), (0.0578, 0.1617));
        near(of(wilson, 0, 20), (0.0, 0.1611));
        near(of(clopper_pearson, 0, 20), (0.0, 0.1684));
        near(of(wilson, 1, 29), (0.0061, 0.1718));
        near(of(clopper_pearson, 1, 29), (0.0009, 0.1776));
    }

    #[test]
    fn no_trials_give_none() {
        assert_eq!(wilson(PacketCount::ZERO, PacketCount::ZERO, Ratio::ZERO), None);
        assert_eq!(clopper_pearson(PacketCount::ZERO, PacketCount::ZERO, Ratio::ZERO), None);
    }

    proptest! {
        #[test]
        fn intervals_contain_the_observed_share(trials in 1_u64..100_000, share in 0.0..=1.0_f64) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small whole number")]
            let events = (share * trials as f64) as u64;
            let seen = events as f64 / trials as f64;
            let (exact, score) = (of(clopper_pearson, events, trials), of(wilson, events, trials));
            for (low, high) in [exact, score] {
                prop_assert!(low <= seen + 1e-12 && seen <= high + 1e-12 && low >= 0.0 && high <= 1.0);
            }
            // The complement: packets that are not lost have arrived.
            let others = of(clopper_pearson, trials - events, trials);
            prop_assert!((others.0 - (1.0 - exact.1)).abs() < 1e-9 && (others.1 - (1.0 - exact.0)).abs() < 1e-9);
        }
    }
}
