use core::time::Duration;

use linerate_units::{BitRate, Mss, Ratio};

use super::FormulaDescription;
use super::mathis::{ACK_PER_SEGMENT, mathis_loss, mathis_rate};

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "CUBIC",
    text: "rate = max(8 × segment × 1.054 / (round-trip time^¼ × loss^¾), Mathis)",
    citation: "RFC 9438 §5.2, with C = 0.4 and β = 0.7; §4.3 for the Reno-friendly region",
    explanation: "CUBIC grows its window with the time since the last loss instead of with round trips, so on long \
                  paths it is faster than Reno. On short ones Reno's law would give more, and there CUBIC follows it: \
                  at a loss of 0.01 % its own law gives 25.4 Mbit/s at 53 ms and Reno's 26.8; at 117 ms 20.9 and \
                  12.1.\n\n\
                  These are means over many losses. A transfer that sees only some tens of them may be a third above \
                  or below.",
};

/// (C × (3 + β) / (4 × (1 − β)))^¼ with C = 0.4 and β = 0.7 (RFC 9438 §5.2).
const CONSTANT: f64 = 1.053_9;

/// Rate that CUBIC sustains at this probability of random loss (RFC 9438 §5.2): its own law, whose window is 1.054 ×
/// (round trip / loss)^¾ segments, or Reno's where that is more (the Reno-friendly region, §4.3). `None` for a loss or
/// round trip of zero.
#[must_use]
pub fn cubic_rate(segment: Mss, round_trip: Duration, loss: Ratio) -> Option<BitRate> {
    let reno = mathis_rate(segment, round_trip, loss, ACK_PER_SEGMENT)?;
    let seconds = round_trip.as_secs_f64();
    let window = CONSTANT * (seconds / loss.get()).powf(0.75);
    let own = BitRate::from_bits_per_second(window * f64::from(segment.get()) * 8.0 / seconds);
    Some(own.max(reno))
}

/// Probability of loss at which CUBIC sustains a rate: the inverse of [`cubic_rate`]. `None` for a rate or round trip
/// of zero. Above one, no loss explains it.
#[must_use]
pub fn cubic_loss(segment: Mss, round_trip: Duration, rate: BitRate) -> Option<Ratio> {
    // The rate is the larger of two that fall with the loss, so its loss is the larger of theirs.
    let reno = mathis_loss(segment, round_trip, rate, ACK_PER_SEGMENT)?;
    let seconds = round_trip.as_secs_f64();
    let window = rate.bits_per_second() * seconds / 8.0 / f64::from(segment.get());
    let own = Ratio::new(seconds * (CONSTANT / window).powf(4.0 / 3.0))?;
    Some(own.max(reno))
}

#[cfg(test)]
mod tests {
    use super::super::near;
    use super::*;

    fn rate(milliseconds: u64, loss: f64) -> f64 {
        let loss = Ratio::new(loss).unwrap_or_default();
        cubic_rate(Mss::new(1448), Duration::from_millis(milliseconds), loss).map_or(0.0, BitRate::bits_per_second)
    }

    #[test]
    fn the_constant_is_that_of_the_rfc() {
        let exact = (0.4_f64 * 3.7 / (4.0 * 0.3)).powf(0.25);
        assert!(near(CONSTANT, exact, 1e-4), "{exact}");
    }

    #[test]
    fn published_rates() {
        // 53 ms, 1e-4: CUBIC's own law gives 25.4 Mbit/s and Reno's 26.8; at 117 ms 20.9 and 117.
        assert!(near(rate(53, 1e-4), 26.8e6, 0.005));
        assert!(near(rate(117, 1e-4), 20.9e6, 0.005), "{}", rate(117, 1e-4));
        assert!(near(rate(117, 1e-5), 117.4e6, 0.01), "{}", rate(117, 1e-5));
    }

    #[test]
    fn the_windows_of_the_rfc() {
        // RFC 9438 table 2, "average CUBIC window" at 0.1 s with C = 0.4: 1e-4 → 187, 1e-6 → 5926, 1e-8 → 187382 segments.
        for (loss, segments) in [(1e-4, 187.0), (1e-6, 5926.0), (1e-8, 187_382.0)] {
            let window = rate(100, loss) * 0.1 / 8.0 / 1448.0;
            assert!(near(window, segments, 0.01), "{loss}: {window}");
        }
    }

    proptest::proptest! {
        #[test]
        fn the_inverses_return(segment in 500_u32..9000, ms in 1_u64..500, loss in 1e-8_f64..0.1) {
            let (segment, time) = (Mss::new(segment), Duration::from_millis(ms));
            let loss = Ratio::new(loss).unwrap_or_default();
            let rate = cubic_rate(segment, time, loss).unwrap_or_default();
            let back = cubic_loss(segment, time, rate).unwrap_or_default();
            proptest::prop_assert!(near(back.get(), loss.get(), 1e-9), "{back:?}");
        }
    }

    #[test]
    fn no_loss_is_no_bound() {
        assert_eq!(cubic_rate(Mss::new(1448), Duration::from_millis(20), Ratio::ZERO), None);
    }
}
