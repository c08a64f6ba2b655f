use core::time::Duration;

use linerate_units::{BitRate, ByteCount};

use super::Formula;

/// What it is, where it comes from, and what is easily got wrong.
pub const FORMULA: Formula = Formula {
    name: "pacing",
    text: "pacing rate = gain × 8 × window / round-trip time",
    citation: "Linux 6.12, net/ipv4/tcp_input.c tcp_update_pacing_rate; ip-sysctl: tcp_pacing_ca_ratio, tcp_pacing_ss_ratio",
    explanation: "Linux spreads a window over its round trip, a little faster than it will be acknowledged: the gain \
                  is 1.2 in congestion avoidance and 2 in slow start, for every congestion control that does not \
                  choose its own rate (BBR does). Packets then leave one by one with gaps, or, where segmentation is \
                  offloaded, in trains of about a millisecond.\n\n\
                  A pacing rate that is well below what the window allows is somebody's choice: SO_MAX_PACING_RATE, \
                  iperf3's --fq-rate, or BBR. To get through a policer, pace at 95 % of its rate.",
};

/// The gain of Linux in congestion avoidance (`tcp_pacing_ca_ratio`, 120 %).
pub const PACING_GAIN: f64 = 1.2;

/// The gain of Linux in slow start (`tcp_pacing_ss_ratio`, 200 %).
pub const PACING_GAIN_SLOW_START: f64 = 2.0;

/// The rate at which Linux lets a window leave. `None` when the round trip takes no time.
#[must_use]
pub fn pacing_rate(window: ByteCount, round_trip: Duration, gain: f64) -> Option<BitRate> {
    (!round_trip.is_zero()).then(|| window.rate_over(round_trip) * gain)
}

/// The window that a pacing rate belongs to: an inverse of [`pacing_rate`]. `None` at a gain of nothing.
#[must_use]
pub fn pacing_window(rate: BitRate, round_trip: Duration, gain: f64) -> Option<ByteCount> {
    (gain > 0.0).then(|| rate * gain.recip() * round_trip)
}

/// The round-trip time that a pacing rate belongs to: another inverse of [`pacing_rate`]. `None` at a rate of nothing.
#[must_use]
pub fn pacing_round_trip(window: ByteCount, rate: BitRate, gain: f64) -> Option<Duration> {
    if gain > 0.0 { window / (rate * gain.recip()) } else { None }
}

#[cfg(test)]
mod tests {
    use super::super::near;
    use super::*;

    #[test]
    fn a_fifth_more_than_the_window_gives() {
        // A full window of 1 Gbit/s × 53 ms.
        let rate = pacing_rate(ByteCount::new(6_625_000), Duration::from_millis(53), PACING_GAIN).unwrap_or_default();
        assert!(near(rate.bits_per_second(), 1.2e9, 1e-9), "{rate}");
        assert_eq!(pacing_rate(ByteCount::new(1), Duration::ZERO, PACING_GAIN), None);
        assert_eq!(pacing_window(rate, Duration::from_millis(53), 0.0), None);
        assert_eq!(pacing_round_trip(ByteCount::new(1), BitRate::ZERO, PACING_GAIN), None);
        assert_eq!(pacing_round_trip(ByteCount::new(1), rate, 0.0), None);
    }

    proptest::proptest! {
        #[test]
        fn the_inverses_return(window in 10_000_u64..1 << 36, us in 100_u64..1_000_000, gain in 0.5_f64..3.0) {
            let (window, time) = (ByteCount::new(window), Duration::from_micros(us));
            let rate = pacing_rate(window, time, gain).unwrap_or_default();
            let back = pacing_window(rate, time, gain).unwrap_or_default();
            proptest::prop_assert!(near(back.as_f64(), window.as_f64(), 1e-3));
            let back = pacing_round_trip(window, rate, gain).unwrap_or_default();
            proptest::prop_assert!(near(back.as_secs_f64(), time.as_secs_f64(), 1e-3));
        }
    }
}
