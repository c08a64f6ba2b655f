use core::time::Duration;

use linerate_units::Ratio;

use super::Formula;

/// What it is, where it comes from, and what is easily got wrong.
pub const FORMULA: Formula = Formula {
    name: "transfer time ratio",
    text: "ratio = actual time / ideal time",
    citation: "RFC 6349 §4.1.2",
    explanation: "How much longer a transfer took than it would at the highest rate that TCP can have on the path. 1 \
                  is ideal; the RFC's example is 12 s for 8: 1.5. A bad ratio is explained by a low TCP efficiency \
                  (loss), a high buffer delay (a queue), or, where both are good, by a window, a host or the \
                  application.",
};

/// The transfer time ratio. `None` for an ideal time of nothing.
#[must_use]
pub fn transfer_time_ratio(actual: Duration, ideal: Duration) -> Option<Ratio> {
    Ratio::of(actual.as_secs_f64(), ideal.as_secs_f64())
}

/// The actual time: an inverse of [`transfer_time_ratio`]. `None` where it is too long for any clock.
#[must_use]
pub fn actual_transfer_time(ratio: Ratio, ideal: Duration) -> Option<Duration> {
    Duration::try_from_secs_f64(ideal.as_secs_f64() * ratio.get()).ok()
}

/// The ideal time: another inverse of [`transfer_time_ratio`]. `None` for a ratio of nothing.
#[must_use]
pub fn ideal_transfer_time(actual: Duration, ratio: Ratio) -> Option<Duration> {
    Duration::try_from_secs_f64(actual.as_secs_f64() / ratio.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::super::near;
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        let (actual, ideal) = (Duration::from_secs(12), Duration::from_secs(8));
        let ratio = transfer_time_ratio(actual, ideal).unwrap_or_default();
        assert!(near(ratio.get(), 1.5, 1e-12));
        assert_eq!(transfer_time_ratio(actual, Duration::ZERO), None);
        assert_eq!(ideal_transfer_time(actual, Ratio::ZERO), None);
    }

    proptest::proptest! {
        #[test]
        fn the_inverses_return(actual in 1_u64..1_000_000, ideal in 1_u64..1_000_000) {
            let (actual, ideal) = (Duration::from_millis(actual), Duration::from_millis(ideal));
            let ratio = transfer_time_ratio(actual, ideal).unwrap_or_default();
            let back = actual_transfer_time(ratio, ideal).unwrap_or_default();
            proptest::prop_assert!(near(back.as_secs_f64(), actual.as_secs_f64(), 1e-5));
            let back = ideal_transfer_time(actual, ratio).unwrap_or_default();
            proptest::prop_assert!(near(back.as_secs_f64(), ideal.as_secs_f64(), 1e-5));
        }
    }
}
