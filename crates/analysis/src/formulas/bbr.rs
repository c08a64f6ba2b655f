use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Ratio};

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "BBR",
    text: "window = 2 × rate × round-trip time / 8; rate delivered = rate × (1 − loss) up to a loss of 20 %",
    citation: "Cardwell, Cheng, Gunn, Yeganeh, Jacobson: BBR, ACM Queue 14(5), 2016; draft-ietf-ccwg-bbr-02",
    explanation: "BBR sends at the rate that it has measured at the bottleneck, and takes single losses for no sign \
                  of a full queue. So random loss costs only what is lost: 280 Mbit/s were measured at 0.1 % on a \
                  path of 300, where CUBIC had 23 to 29.\n\n\
                  It allows two bandwidth-delay products in flight (cwnd_gain 2), so its windows must be twice those \
                  of the path; with less it is limited by the window like any other.\n\n\
                  The 20 % are a consequence of its probing at 1.25 times the rate: when 1 − 1/1.25 of the packets \
                  are lost, even that delivers no more than before, and the estimate falls. That is version 1, which \
                  Linux has; version 3 also backs off when more than 2 % are lost in a round trip.",
};

/// Maximum bandwidth-delay products that BBR keeps in flight (`cwnd_gain` in the state `ProbeBW`).
const WINDOW_GAIN: f64 = 2.0;

/// The highest gain at which BBR probes for more rate.
const PROBE_GAIN: f64 = 1.25;

/// Share of lost packets at which BBR's estimate of the rate falls (version 1): 1 − 1/1.25.
#[must_use]
pub fn bbr_loss_limit() -> Ratio {
    Ratio::new(1.0 - PROBE_GAIN.recip()).unwrap_or_default()
}

/// Window that BBR needs at both hosts to carry this rate: two bandwidth-delay products.
#[must_use]
pub fn bbr_window(rate: BitRate, round_trip: Duration) -> ByteCount {
    rate * WINDOW_GAIN * round_trip
}

/// Goodput of BBR at this rate and random loss. `None` from the loss on at which its estimate falls
/// ([`bbr_loss_limit`]).
#[must_use]
pub fn bbr_goodput(rate: BitRate, loss: Ratio) -> Option<BitRate> {
    (loss < bbr_loss_limit()).then(|| rate * (1.0 - loss.get()))
}

#[cfg(test)]
mod tests {
    use super::super::near;
    use super::*;

    #[test]
    fn the_limit_is_a_fifth_and_the_window_two_products() {
        assert!(near(bbr_loss_limit().get(), 0.2, 1e-12));
        let window = bbr_window(BitRate::from_bits_per_second(300e6), Duration::from_millis(20));
        assert_eq!(window, ByteCount::new(1_500_000));
    }

    #[test]
    fn random_loss_costs_what_is_lost() {
        let rate = BitRate::from_bits_per_second(300e6);
        let goodput = bbr_goodput(rate, Ratio::new(1e-3).unwrap_or_default()).unwrap_or_default();
        assert!(near(goodput.bits_per_second(), 299.7e6, 1e-9));
        assert_eq!(bbr_goodput(rate, Ratio::new(0.2).unwrap_or_default()), None);
    }
}
