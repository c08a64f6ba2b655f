use core::time::Duration;

use linerate_units::{BitRate, ByteCount};

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "window-limited rate",
    text: "rate = 8 × window / round-trip time",
    citation: "RFC 6349 §3.3.1; RFC 9293 §3.8.6",
    explanation: "No more than one window can be sent in a round trip: then the sender must wait for \
                  acknowledgements. The window is the smallest of the receiver's window, the sender's buffer and the \
                  congestion window.\n\n\
                  A guide for Red Hat Enterprise Linux claims that 1 Gbit/s over 1.5 ms carries 380 Mbit/s without \
                  window scaling and 630 with it. Without scaling the window is at most 65 535 bytes, which is 349.5 \
                  Mbit/s at 1.5 ms; 380 takes a round trip of 1.38 ms. With scaling the path needs only 187.5 kB, so \
                  some 941 Mbit/s are to be expected: 630 was the limit of the host.\n\n\
                  Slides of CESGA give 2473 Mbit/s for a window of 16 MB and 53 ms. That figure is of 16 × 1024 × \
                  1000 bytes, which is neither unit: 16 MB give 2415 Mbit/s and 16 MiB give 2532.",
};

/// Maximum rate with this window: each of its bytes must be acknowledged before the next window follows, a round trip
/// later (RFC 6349 §3.3.1). `None` for a round-trip time of zero.
#[must_use]
pub fn window_rate(window: ByteCount, round_trip: Duration) -> Option<BitRate> {
    (!round_trip.is_zero()).then(|| window.rate_over(round_trip))
}

/// Window for a rate: the inverse of [`window_rate`], and the bandwidth-delay product of that rate.
#[must_use]
pub fn window_for_rate(rate: BitRate, round_trip: Duration) -> ByteCount {
    rate * round_trip
}

#[cfg(test)]
mod tests {
    use super::super::near;
    use super::*;

    #[test]
    fn published_rates() {
        let table = [
            // No window scaling at 1.5 ms: 349.5 Mbit/s (the RHEL guide measures 380).
            (65_535, 1_500, 349.52e6),
            // 16 MiB and 16 MB at 53 ms (the CESGA slides give 2473 Mbit/s, for 16·1024·1000 bytes).
            (16_777_216, 53_000, 2532.4e6),
            (16_000_000, 53_000, 2415.1e6),
            (16_384_000, 53_000, 2473.1e6),
            // 64 KiB at 117 ms.
            (65_536, 117_000, 4.4811e6),
            // RFC 6349 §3.3.1, whose KB are of 1000 bytes: 16 KB at 5 and 10 ms.
            (16_000, 5_000, 25.6e6),
            (16_000, 10_000, 12.8e6),
        ];
        for (window, microseconds, expected) in table {
            let rate =
                window_rate(ByteCount::new(window), Duration::from_micros(microseconds)).map(BitRate::bits_per_second);
            assert!(rate.is_some_and(|rate| near(rate, expected, 1e-4)), "{window} B, {microseconds} us: {rate:?}");
        }
        assert_eq!(window_rate(ByteCount::new(1), Duration::ZERO), None);
    }

    #[test]
    fn the_inverse_returns() {
        let (window, round_trip) = (ByteCount::new(146_250_000), Duration::from_millis(117));
        let rate = window_rate(window, round_trip).unwrap_or_default();
        assert_eq!(window_for_rate(rate, round_trip), window);
    }
}
