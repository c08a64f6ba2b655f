use core::time::Duration;

use linerate_units::{BitRate, Mss, Ratio};

use super::Formula;
use super::cubic::cubic_rate;
use super::mathis::{ACK_PER_SEGMENT, mathis_rate};

pub(super) const FORMULA: Formula = Formula {
    name: "loss-limited rate",
    text: "Reno: Mathis; CUBIC: RFC 9438; BBR: no bound",
    citation: "RFC 9438 §5.2; draft-ietf-ccwg-bbr-02 §3.2",
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
}
