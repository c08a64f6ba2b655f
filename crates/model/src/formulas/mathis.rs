use core::time::Duration;

use linerate_units::{BitRate, Mss, Ratio};

use super::Formula;

pub(super) const FORMULA: Formula = Formula {
    name: "Mathis",
    text: "rate = constant × 8 × segment / (round-trip time × √loss)",
    citation: "Mathis, Semke, Mahdavi, Ott: The macroscopic behavior of the TCP congestion avoidance algorithm, 1997",
};

/// The constant where each segment is acknowledged, √(3/2). Linux grows its window by acknowledged bytes (RFC 3465), so
/// it holds with delayed acknowledgements too; measured to 2 %.
pub const ACK_PER_SEGMENT: f64 = 1.224_744_871_391_589;

/// The constant with an acknowledgement for every second segment, √(3/4), for senders that count acknowledgements.
pub const DELAYED_ACKS: f64 = 0.866_025_403_784_438_6;

/// The rate that Reno's congestion avoidance keeps up against this probability of random loss (Mathis et al. 1997).
/// `None` when nothing is lost or the round trip takes no time: then loss sets no bound.
#[must_use]
pub fn mathis_rate(segment: Mss, round_trip: Duration, loss: Ratio, constant: f64) -> Option<BitRate> {
    let bits = f64::from(segment.get()) * 8.0 * constant;
    let rate = bits / (round_trip.as_secs_f64() * loss.get().sqrt());
    rate.is_finite().then(|| BitRate::from_bits_per_second(rate))
}

/// The probability of loss that explains a rate: the inverse of [`mathis_rate`]. `None` for a rate of nothing or a round
/// trip of no time. Above one, no loss explains it: the path's round trip is too short.
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
    fn no_loss_is_no_bound() {
        assert_eq!(mathis_rate(Mss::new(1448), Duration::from_millis(20), Ratio::ZERO, 1.0), None);
        assert_eq!(
            mathis_rate(Mss::new(1448), Duration::ZERO, Ratio::from_percent(1.0).unwrap_or_default(), 1.0),
            None
        );
        assert_eq!(mathis_loss(Mss::new(1448), Duration::from_millis(20), BitRate::ZERO, 1.0), None);
    }
}
