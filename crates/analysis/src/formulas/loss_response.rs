use core::time::Duration;

use linerate_units::{BitRate, Mss, Ratio};

use super::FormulaDescription;
use super::cubic::{cubic_loss, cubic_rate};
use super::mathis::{ACK_PER_SEGMENT, mathis_loss, mathis_rate};

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "loss-limited rate",
    text: "Reno: rate = 1.2247 × 8 × segment / (round-trip time × √loss); CUBIC: RFC 9438; BBR: no bound",
    citation: "RFC 9438 §5.2; draft-ietf-ccwg-bbr-02 §3.2",
    explanation: "The inverse gives the loss that would explain a measured rate: if the counters show less, \
                  loss is not the cause.\n\n\
                  Slides of CESGA see 256 Mbit/s at 53 ms in one direction and suspect loss. One packet in 36 000 is \
                  enough for that by their formula (constant 1), one in 24 000 by Linux's Reno: far too little to be \
                  noticed by ping, which would have to run for hours.\n\n\
                  BBR does not take single losses for a sign of a full queue and has no such bound up to about 20 % \
                  (`calc bbr`).",
};

/// Rate to which random loss limits a congestion control of this name, as in `tcp_congestion_control`. `None` without
/// loss, for BBR (whose model of the path random loss does not change; version 1, which Linux has, sustains its rate up
/// to about 20 %), and for those whose law is not known here.
#[must_use]
pub fn loss_limited_rate(congestion_control: &str, segment: Mss, round_trip: Duration, loss: Ratio) -> Option<BitRate> {
    match congestion_control {
        "reno" => mathis_rate(segment, round_trip, loss, ACK_PER_SEGMENT),
        "cubic" => cubic_rate(segment, round_trip, loss),
        _ => None,
    }
}

/// Loss that explains the rate of a congestion control of this name: the inverse of [`loss_limited_rate`]. `None` for
/// those whose law is not known here, and for a rate or round trip of zero. Above one, no loss explains it.
#[must_use]
pub fn loss_for_rate(congestion_control: &str, segment: Mss, round_trip: Duration, rate: BitRate) -> Option<Ratio> {
    match congestion_control {
        "reno" => mathis_loss(segment, round_trip, rate, ACK_PER_SEGMENT),
        "cubic" => cubic_loss(segment, round_trip, rate),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::near;
    use super::*;

    #[test]
    fn each_has_its_own_law_and_bbr_has_none() {
        let bound = |name| {
            let loss = Ratio::new(1e-5).unwrap_or_default();
            loss_limited_rate(name, Mss::new(1448), Duration::from_millis(117), loss).map(BitRate::bits_per_second)
        };
        assert!(bound("reno").is_some_and(|rate| near(rate, 38.3e6, 0.01)));
        assert!(bound("cubic").is_some_and(|rate| near(rate, 117.4e6, 0.01)));
        assert_eq!(bound("bbr"), None);
    }

    #[test]
    fn the_inverses_return_for_each_law() {
        let (segment, time, loss) = (Mss::new(1448), Duration::from_millis(117), Ratio::new(1e-5).unwrap_or_default());
        for name in ["reno", "cubic"] {
            let rate = loss_limited_rate(name, segment, time, loss).unwrap_or_default();
            let back = loss_for_rate(name, segment, time, rate).map_or(0.0, Ratio::get);
            assert!(near(back, 1e-5, 1e-9), "{name}: {back}");
        }
        assert_eq!(loss_for_rate("bbr", segment, time, BitRate::from_bits_per_second(1e6)), None);
    }
}
