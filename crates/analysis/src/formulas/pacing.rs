use core::time::Duration;

use linerate_units::{BitRate, ByteCount};

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "pacing",
    text: "pacing rate = gain × 8 × window / round-trip time",
    citation: "Linux 6.12, net/ipv4/tcp_input.c tcp_update_pacing_rate; ip-sysctl: tcp_pacing_ca_ratio, tcp_pacing_ss_ratio",
    explanation: "Linux spreads a window over its round trip, a little faster than it will be acknowledged: the gain \
                  is 1.2 in congestion avoidance and 2 in slow start, for every congestion control that does not \
                  choose its own rate (BBR does). Packets then leave one by one with gaps, or, where segmentation is \
                  offloaded, in bursts of about a millisecond.\n\n\
                  A pacing rate that is well below what the window allows is deliberate: SO_MAX_PACING_RATE, \
                  iperf3's --fq-rate, or BBR. To get through a policer, pace at 95 % of its rate.",
};

/// Gain of Linux in congestion avoidance (`tcp_pacing_ca_ratio`, 120 %).
pub const PACING_GAIN: f64 = 1.2;

/// Gain of Linux in slow start (`tcp_pacing_ss_ratio`, 200 %).
pub const PACING_GAIN_SLOW_START: f64 = 2.0;

/// Rate at which Linux paces a window. `None` for a round-trip time of zero.
#[must_use]
pub fn pacing_rate(window: ByteCount, round_trip: Duration, gain: f64) -> Option<BitRate> {
    (!round_trip.is_zero()).then(|| window.rate_over(round_trip) * gain)
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
    }
}
