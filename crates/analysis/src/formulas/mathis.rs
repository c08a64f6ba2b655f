use core::time::Duration;

use linerate_units::{BitRate, Mss, Ratio};

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "Mathis",
    text: "rate = constant × 8 × segment / (round-trip time × √loss)",
    citation: "Mathis, Semke, Mahdavi, Ott: The macroscopic behavior of the TCP congestion avoidance algorithm, 1997",
    explanation: "Reno halves its window at each loss and grows it by one segment each round trip, so the mean window \
                  is a constant over the square root of the loss. The constant is √(3/2) = 1.2247 where each segment \
                  counts (Linux, which counts acknowledged bytes; measured to 2 %), √(3/4) = 0.87 where a sender \
                  counts delayed acknowledgements, and 1 in many slides.\n\n\
                  Slides of CESGA use the constant 1 and see 256 Mbit/s in one direction and 780 in the other at 53 ms \
                  with segments of 8960 bytes. With their constant 256 Mbit/s is what one loss in about 36 000 packets \
                  gives, and 780 one in 333 000; with Linux's constant it is one in 24 000 and one in 222 000.\n\n\
                  It holds for losses up to about a percent; above that timeouts rule (`calc padhye`). CUBIC and BBR \
                  have laws of their own.",
};

/// Constant where each segment is acknowledged, √(3/2). Linux grows its window by acknowledged bytes (RFC 3465), so it
/// also holds with delayed acknowledgements; measured to 2 %.
pub const ACK_PER_SEGMENT: f64 = 1.224_744_871_391_589;

/// Constant with an acknowledgement for every second segment, √(3/4), for senders that count acknowledgements.
pub const DELAYED_ACKS: f64 = 0.866_025_403_784_438_6;

/// Rate that Reno's congestion avoidance sustains at this probability of random loss (Mathis et al. 1997). `None` for a
/// loss or round-trip time of zero: then loss sets no bound.
#[must_use]
pub fn mathis_rate(segment: Mss, round_trip: Duration, loss: Ratio, constant: f64) -> Option<BitRate> {
    let bits = f64::from(segment.get()) * 8.0 * constant;
    let rate = bits / (round_trip.as_secs_f64() * loss.get().sqrt());
    rate.is_finite().then(|| BitRate::from_bits_per_second(rate))
}

/// Probability of loss that explains a rate: the inverse of [`mathis_rate`]. `None` for a rate or round-trip time of
/// zero. Above one, no loss explains it: the path's round trip is too short.
#[must_use]
pub fn mathis_loss(segment: Mss, round_trip: Duration, rate: BitRate, constant: f64) -> Option<Ratio> {
    let window = rate.bits_per_second() * round_trip.as_secs_f64();
    Ratio::of(constant * f64::from(segment.get()) * 8.0, window).and_then(|root| Ratio::new(root.get() * root.get()))
}

#[cfg(test)]
mod tests {
    use super::super::near;
    use super::*;

    fn rate(segment: u32, milliseconds: f64, loss: f64) -> f64 {
        let round_trip = Duration::from_secs_f64(milliseconds / 1e3);
        let loss = Ratio::new(loss).unwrap_or_default();
        mathis_rate(Mss::new(segment), round_trip, loss, ACK_PER_SEGMENT).map_or(0.0, BitRate::bits_per_second)
    }

    #[test]
    fn published_rates() {
        // 22.2 Mbit/s predicted where Reno was measured at 21.8; and the Reno columns of the CUBIC comparison.
        assert!(near(rate(1448, 20.2, 1e-3), 22.2e6, 0.005));
        assert!(near(rate(1448, 53.0, 1e-4), 26.8e6, 0.005));
        assert!(near(rate(1448, 117.0, 1e-4), 12.1e6, 0.005));
        assert!(near(rate(1448, 117.0, 1e-5), 38.3e6, 0.01));
        assert!(near(DELAYED_ACKS, 0.87, 0.005) && near(ACK_PER_SEGMENT, 1.2247, 1e-4));
    }

    #[test]
    fn the_inverse_explains_the_slides() {
        // CESGA: 256 Mbit/s at 53 ms with segments of 8948 bytes, constant 1 as the slides have it: 2.8e-5.
        let measured = BitRate::from_bits_per_second(256e6);
        let round_trip = Duration::from_millis(53);
        let loss = mathis_loss(Mss::new(8948), round_trip, measured, 1.0).map_or(0.0, Ratio::get);
        assert!(near(loss, 2.78e-5, 0.005), "{loss}");
        let back =
            mathis_rate(Mss::new(8948), round_trip, Ratio::new(loss).unwrap_or_default(), 1.0).unwrap_or_default();
        assert!(near(back.bits_per_second(), 256e6, 1e-9));
    }

    #[test]
    fn one_loss_in_36_000_packets() {
        // CESGA: 256 and 780 Mbit/s at 53 ms, segments of 8960 bytes, the slides' constant: 2.8e-5 and 3.0e-6.
        for (rate, packets, tolerance) in [(256e6, 36_000.0, 0.01), (780e6, 333_000.0, 0.01)] {
            let rate = BitRate::from_bits_per_second(rate);
            let loss = mathis_loss(Mss::new(8960), Duration::from_millis(53), rate, 1.0).map_or(0.0, Ratio::get);
            assert!(near(1.0 / loss, packets, tolerance), "{loss}");
        }
    }

    proptest::proptest! {
        #[test]
        fn the_inverses_return(segment in 500_u32..9000, ms in 1_u64..500, loss in 1e-8_f64..0.1, constant in 0.5_f64..2.0) {
            let (segment, time) = (Mss::new(segment), Duration::from_millis(ms));
            let loss = Ratio::new(loss).unwrap_or_default();
            let rate = mathis_rate(segment, time, loss, constant).unwrap_or_default();
            let back = mathis_loss(segment, time, rate, constant).unwrap_or_default();
            proptest::prop_assert!(near(back.get(), loss.get(), 1e-9));
        }
    }

    #[test]
    fn no_loss_is_no_bound() {
        assert_eq!(mathis_rate(Mss::new(1448), Duration::from_millis(20), Ratio::ZERO, 1.0), None);
        assert_eq!(
            mathis_rate(Mss::new(1448), Duration::ZERO, Ratio::from_percent(1.0).unwrap_or_default(), 1.0),
            None
        );
        assert_eq!(mathis_loss(Mss::new(1448), Duration::from_millis(20), BitRate::ZERO, 1.0), None);
    }
}
