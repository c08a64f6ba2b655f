use core::time::Duration;

use linerate_units::Ratio;

use super::Formula;

/// What it is, where it comes from, and what is easily got wrong.
pub const FORMULA: Formula = Formula {
    name: "buffer delay",
    text: "buffer delay = (mean round-trip time − baseline) / baseline",
    citation: "RFC 6349 §4.3",
    explanation: "How much the queues add to the round trip during a transfer: from 25 to 32 ms is 28 %. The baseline \
                  is the least round-trip time of the idle path. The RFC asks for the mean of one sample each second, \
                  and not for the handshake's time, since firewalls delay that.\n\n\
                  A guide for Red Hat Enterprise Linux takes the average of ten pings for the baseline and shows a \
                  minimum (117.208 ms) above the average (117.056 ms), which no ten pings can have.",
};

/// The buffer delay. `None` for a baseline of nothing, and where the loaded path was faster.
#[must_use]
pub fn buffer_delay(loaded: Duration, baseline: Duration) -> Option<Ratio> {
    Ratio::of(loaded.checked_sub(baseline)?.as_secs_f64(), baseline.as_secs_f64())
}

/// The mean round-trip time under load: an inverse of [`buffer_delay`]. `None` where it is too long for any clock.
#[must_use]
pub fn loaded_round_trip(delay: Ratio, baseline: Duration) -> Option<Duration> {
    Duration::try_from_secs_f64(baseline.as_secs_f64() * (1.0 + delay.get())).ok()
}

/// The baseline: another inverse of [`buffer_delay`].
#[must_use]
pub fn baseline_round_trip(delay: Ratio, loaded: Duration) -> Duration {
    loaded.div_f64(1.0 + delay.get())
}

#[cfg(test)]
mod tests {
    use super::super::near;
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        let delay = buffer_delay(Duration::from_millis(32), Duration::from_millis(25)).unwrap_or_default();
        assert!(near(delay.get(), 0.28, 1e-9), "{delay}");
        assert_eq!(buffer_delay(Duration::from_millis(1), Duration::ZERO), None);
        assert_eq!(buffer_delay(Duration::from_millis(1), Duration::from_millis(2)), None);
    }

    proptest::proptest! {
        #[test]
        fn the_inverses_return(baseline in 10_u64..1_000_000, more in 1_u64..1_000_000) {
            let (baseline, loaded) = (Duration::from_micros(baseline), Duration::from_micros(baseline + more));
            let delay = buffer_delay(loaded, baseline).unwrap_or_default();
            let back = loaded_round_trip(delay, baseline).unwrap_or_default();
            proptest::prop_assert!(near(back.as_secs_f64(), loaded.as_secs_f64(), 1e-3));
            let back = baseline_round_trip(delay, loaded);
            proptest::prop_assert!(near(back.as_secs_f64(), baseline.as_secs_f64(), 1e-3));
        }
    }
}
