use core::time::Duration;

use linerate_units::{BitRate, ByteCount};

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "bandwidth-delay product",
    text: "BDP = rate × round-trip time / 8",
    citation: "RFC 6349 §3.3.1",
    explanation: "The bytes in flight, sent and not yet acknowledged, while a path of this rate is busy \
                  all the time. A connection whose window is smaller leaves the path idle for a part of each round \
                  trip.\n\n\
                  A guide for Red Hat Enterprise Linux works out the example of 10 Gbit/s and 117 ms by a division: \
                  1.25 GB/s / 117 gives its 10 683 760 bytes. The product is 1.25 GB/s × 0.117 s = 146 250 000 bytes, \
                  13.7 times as much: the time must be in seconds, and it multiplies. The guide's setting of 21 367 \
                  520 bytes, twice its wrong figure, carries at most 1461 Mbit/s on that path, and about 0.9 Gbit/s \
                  once the kernel's own share of the buffer is taken off.\n\n\
                  Slides of CESGA on 10-gigabit TCP give 6.75 MB for 1 Gbit/s and 53 ms. It is 6.625 MB. Their 2.5 MB \
                  (1 Gbit/s, 20 ms) and 25 MB (10 Gbit/s, 20 ms) are right.",
};

/// Bandwidth-delay product: the bytes in flight that keep a path of this rate busy (RFC 6349 §3.3.1).
///
/// ```
/// use core::time::Duration;
/// use linerate_analysis::formulas::bandwidth_delay_product;
/// use linerate_units::{BitRate, ByteCount};
///
/// let path = bandwidth_delay_product(BitRate::from_bits_per_second(10e9), Duration::from_millis(117));
/// assert_eq!(path, ByteCount::new(146_250_000));
/// ```
#[must_use]
pub fn bandwidth_delay_product(rate: BitRate, round_trip: Duration) -> ByteCount {
    rate * round_trip
}

/// Round-trip time at which a path of this rate holds this many bytes: an inverse of [`bandwidth_delay_product`].
/// `None` at rate zero. The other inverse is [`window_rate`](super::window_rate()).
#[must_use]
pub fn round_trip_of_product(product: ByteCount, rate: BitRate) -> Option<Duration> {
    product / rate
}

#[cfg(test)]
mod tests {
    use super::super::{near, window_rate};
    use super::*;

    #[test]
    fn published_products() {
        let table = [
            (1e9, 20_000, 2_500_000),
            (10e9, 20_000, 25_000_000),
            (1e9, 53_000, 6_625_000),
            (10e9, 117_000, 146_250_000),
            (10e9, 1_000, 1_250_000),
            (1e9, 1_500, 187_500),
            (100e9, 50_000, 625_000_000),
        ];
        for (rate, microseconds, bytes) in table {
            let product =
                bandwidth_delay_product(BitRate::from_bits_per_second(rate), Duration::from_micros(microseconds));
            assert_eq!(product, ByteCount::new(bytes), "{rate} bit/s, {microseconds} us");
        }
    }

    #[test]
    fn rfc_6349_table_of_windows() {
        // §3.3.1: T3 25 ms 138.16 kB, 100 Mbit/s 5 ms 62.5 kB, 1 Gbit/s 1 ms 125 kB, 10 Gbit/s 0.3 ms 375 kB.
        for (rate, microseconds, bytes) in
            [(44.21e6, 25_000, 138_156), (100e6, 5_000, 62_500), (1e9, 1_000, 125_000), (10e9, 300, 375_000)]
        {
            let product =
                bandwidth_delay_product(BitRate::from_bits_per_second(rate), Duration::from_micros(microseconds));
            assert_eq!(product, ByteCount::new(bytes));
        }
    }

    #[test]
    fn the_division_of_the_red_hat_guide_is_not_the_product() {
        // The guide's 10 683 760 bytes are 1.25e9 / 117; at 10 Gbit/s that is a round trip of 8.5 ms, not of 117.
        let time = round_trip_of_product(ByteCount::new(10_683_760), BitRate::from_bits_per_second(10e9));
        assert_eq!(time, Some(Duration::from_nanos(8_547_008)));
        assert_eq!(round_trip_of_product(ByteCount::new(1), BitRate::ZERO), None);
    }

    proptest::proptest! {
        #[test]
        fn the_inverses_return(rate in 1e5_f64..1e12, microseconds in 10_u64..1_000_000) {
            let (rate, time) = (BitRate::from_bits_per_second(rate), Duration::from_micros(microseconds));
            let product = bandwidth_delay_product(rate, time);
            proptest::prop_assume!(product.get() > 1000);
            let back = round_trip_of_product(product, rate).unwrap_or_default();
            proptest::prop_assert!(near(back.as_secs_f64(), time.as_secs_f64(), 1e-3));
            let back = window_rate(product, time).unwrap_or_default();
            proptest::prop_assert!(near(back.bits_per_second(), rate.bits_per_second(), 1e-3));
        }
    }
}
