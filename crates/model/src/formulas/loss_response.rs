use core::time::Duration;

use linerate_units::{BitRate, Mss, Ratio};

use super::Formula;
use super::cubic::{cubic_loss, cubic_rate, cubic_round_trip};
use super::mathis::{ACK_PER_SEGMENT, mathis_loss, mathis_rate, mathis_round_trip};

/// What it is, where it comes from, and what is easily got wrong.
pub const FORMULA: Formula = Formula {
    name: "loss-limited rate",
    text: "Reno: rate = 1.2247 × 8 × segment / (round-trip time × √loss); CUBIC: RFC 9438; BBR: no bound",
    citation: "RFC 9438 §5.2; draft-ietf-ccwg-bbr-02 §3.2",
    explanation: "Turned round, it says which loss would explain a rate that was measured: if the counters show less, \
                  loss is not the cause.\n\n\
                  Slides of CESGA see 256 Mbit/s at 53 ms in one direction and suspect loss. One packet in 36 000 is \
                  enough for that by their formula (constant 1), one in 24 000 by Linux's Reno: far too little to be \
                  noticed by ping, which would have to run for hours.\n\n\
                  BBR does not take single losses for a sign of a full queue and has no such bound up to about 20 % \
                  (`calc bbr`).",
};

/// The rate to which random loss bounds a congestion control of this name, as `tcp_congestion_control` has it. `None`
/// without loss, for BBR (whose model of the path random loss does not change; version 1, which Linux has, keeps its
/// rate up to about 20 %), and for those whose law is not known here.
#[must_use]
pub fn loss_limited_rate(congestion_control: &str, segment: Mss, round_trip: Duration, loss: Ratio) -> Option<BitRate> {
    match congestion_control {
        "reno" => mathis_rate(segment, round_trip, loss, ACK_PER_SEGMENT),
        "cubic" => cubic_rate(segment, round_trip, loss),
        _ => None,
    }
}

/// The loss that explains the rate of a congestion control of this name: the inverse of [`loss_limited_rate`]. `None` for
/// those whose law is not known here, for a rate of nothing and a round trip of no time. Above one, no loss explains it.
#[must_use]
pub fn loss_for_rate(congestion_control: &str, segment: Mss, round_trip: Duration, rate: BitRate) -> Option<Ratio> {
    match congestion_control {
        "reno" => mathis_loss(segment, round_trip, rate, ACK_PER_SEGMENT),
        "cubic" => cubic_loss(segment, round_trip, rate),
        _ => None,
    }
}

/// The round-trip time at which this loss leaves a congestion control of this name a rate: another inverse of
/// [`loss_limited_rate`]. `None` for those whose law is not known here, for a rate of nothing and no loss.
#[must_use]
pub fn round_trip_for_rate(congestion_control: &str, segment: Mss, loss: Ratio, rate: BitRate) -> Option<Duration> {
    match congestion_control {
        "reno" => mathis_round_trip(segment, loss, rate, ACK_PER_SEGMENT),
        "cubic" => cubic_round_trip(segment, loss, rate),
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
            let back = round_trip_for_rate(name, segment, loss, rate).unwrap_or_default();
            assert!(near(back.as_secs_f64(), 0.117, 1e-6), "{name}: {back:?}");
        }
        assert_eq!(loss_for_rate("bbr", segment, time, BitRate::from_bits_per_second(1e6)), None);
        assert_eq!(round_trip_for_rate("bbr", segment, loss, BitRate::from_bits_per_second(1e6)), None);
    }
}
