use core::time::Duration;

use linerate_units::{BitRate, Mss, Ratio};

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "Padhye",
    text: "rate = 8 × segment / (round-trip time × √(2b × loss / 3) + timeout × min(1, 3√(3b × loss / 8)) × loss × (1 + 32 loss²))",
    citation: "Padhye, Firoiu, Towsley, Kurose: Modeling TCP throughput, SIGCOMM 1998; RFC 5348 §3.1",
    explanation: "Mathis's law extended by timeouts: at higher losses too few duplicate acknowledgements come \
                  back, and the sender waits for its retransmission timer. b is the number of segments that one \
                  acknowledgement counts for: 1 on Linux, which counts acknowledged bytes, 2 where delayed \
                  acknowledgements count once.\n\n\
                  The timeout is at least 200 ms on Linux, and a round-trip time more than that in practice; RFC 5348 \
                  takes four round trips. At a loss of 0.1 % and 20.2 ms it takes 21.7 Mbit/s, where Mathis gives \
                  22.2 and 21.8 were measured. At 5 % the timeouts are most of the time.",
};

/// Rate that Reno sustains at this probability of loss, timeouts included (Padhye et al. 1998): `timeout` is the
/// retransmission timer, `segments_per_ack` the number of segments per acknowledgement (b; 1 on Linux). `None` without
/// loss: then loss sets no bound.
#[must_use]
pub fn padhye_rate(
    segment: Mss,
    round_trip: Duration,
    loss: Ratio,
    timeout: Duration,
    segments_per_ack: f64,
) -> Option<BitRate> {
    let (recovery, waiting) = parts(loss, segments_per_ack);
    let seconds = round_trip.as_secs_f64().mul_add(recovery, timeout.as_secs_f64() * waiting);
    let rate = f64::from(segment.get()) * 8.0 / seconds;
    rate.is_finite().then(|| BitRate::from_bits_per_second(rate))
}

/// Round trips and timeouts per segment.
fn parts(loss: Ratio, segments_per_ack: f64) -> (f64, f64) {
    let p = loss.get();
    let recovery = (2.0 * segments_per_ack * p / 3.0).sqrt();
    let timed_out = (3.0 * (3.0 * segments_per_ack * p / 8.0).sqrt()).min(1.0);
    (recovery, timed_out * p * (32.0 * p).mul_add(p, 1.0))
}

/// Probability of loss at which Reno sustains a rate: the inverse of [`padhye_rate`], by bisection. `None` where even a
/// loss of 100 % leaves more, or no loss less.
#[must_use]
pub fn padhye_loss(
    segment: Mss,
    round_trip: Duration,
    rate: BitRate,
    timeout: Duration,
    segments_per_ack: f64,
) -> Option<Ratio> {
    let at = |exponent: f64| {
        let loss = Ratio::new(exponent.exp())?;
        padhye_rate(segment, round_trip, loss, timeout, segments_per_ack)
    };
    // Bisects logarithms, since losses span ten powers of ten. The rate falls as the loss grows.
    let (mut low, mut high) = (MIN_LOSS.ln(), 0.0);
    if at(low)? < rate || at(high)? > rate {
        return None;
    }
    for _ in 0..BISECTION_STEPS {
        let middle = f64::midpoint(low, high);
        if at(middle)? > rate { low = middle } else { high = middle }
    }
    Ratio::new(f64::midpoint(low, high).exp())
}

/// Smallest loss considered.
const MIN_LOSS: f64 = 1e-18;

/// Bisection steps that exhaust the precision of a double.
const BISECTION_STEPS: u32 = 100;

#[cfg(test)]
mod tests {
    use super::super::{ACK_PER_SEGMENT, mathis_rate, near};
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(200);

    fn rate(milliseconds: f64, loss: f64, timeout: Duration, segments_per_ack: f64) -> f64 {
        let round_trip = Duration::from_secs_f64(milliseconds / 1e3);
        let loss = Ratio::new(loss).unwrap_or_default();
        padhye_rate(Mss::new(1448), round_trip, loss, timeout, segments_per_ack).map_or(0.0, BitRate::bits_per_second)
    }

    #[test]
    fn published_rate() {
        // At 0.1 % and 20.2 ms 21.7 Mbit/s; Reno was measured at 21.8.
        assert!(near(rate(20.2, 1e-3, TIMEOUT, 1.0), 21.7e6, 0.005), "{}", rate(20.2, 1e-3, TIMEOUT, 1.0));
    }

    #[test]
    fn without_timeouts_it_is_mathis() {
        for loss in [1e-6, 1e-4, 1e-2] {
            let mathis = mathis_rate(
                Mss::new(1448),
                Duration::from_millis(50),
                Ratio::new(loss).unwrap_or_default(),
                ACK_PER_SEGMENT,
            );
            let mathis = mathis.unwrap_or_default().bits_per_second();
            assert!(near(rate(50.0, loss, Duration::ZERO, 1.0), mathis, 1e-6));
        }
    }

    #[test]
    fn timeouts_rule_at_high_loss() {
        let with = rate(20.0, 0.2, TIMEOUT, 1.0);
        assert!(with < rate(20.0, 0.2, Duration::ZERO, 1.0) / 5.0, "{with}");
        assert!(rate(20.0, 0.01, TIMEOUT, 2.0) < rate(20.0, 0.01, TIMEOUT, 1.0));
    }

    #[test]
    fn impossible_inputs_give_none() {
        let (segment, time) = (Mss::new(1448), Duration::from_millis(20));
        assert_eq!(padhye_rate(segment, time, Ratio::ZERO, TIMEOUT, 1.0), None);
        assert_eq!(padhye_loss(segment, time, BitRate::ZERO, TIMEOUT, 1.0), None);
        assert_eq!(padhye_loss(segment, time, BitRate::from_bits_per_second(1e18), TIMEOUT, 1.0), None);
    }

    proptest::proptest! {
        #[test]
        fn the_inverses_return(segment in 500_u32..9000, ms in 1_u64..500, loss in 1e-8_f64..0.5, b in 1.0_f64..2.0) {
            let (segment, time) = (Mss::new(segment), Duration::from_millis(ms));
            let loss = Ratio::new(loss).unwrap_or_default();
            let rate = padhye_rate(segment, time, loss, TIMEOUT, b).unwrap_or_default();
            let back = padhye_loss(segment, time, rate, TIMEOUT, b).unwrap_or_default();
            proptest::prop_assert!(near(back.get(), loss.get(), 1e-9), "{back:?}");
        }
    }
}
