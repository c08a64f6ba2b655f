use core::time::Duration;

use linerate_units::{BitRate, ByteCount};

use super::Formula;

pub(super) const FORMULA: Formula =
    Formula {
        name: "bandwidth-delay product", text: "BDP = rate × round-trip time / 8", citation: "RFC 6349 §3.3.1"
    };

/// The bandwidth-delay product: the bytes that must be on their way to keep a path of this rate busy (RFC 6349 §3.3.1).
///
/// ```
/// use core::time::Duration;
/// use linerate_model::formulas::bandwidth_delay_product;
/// use linerate_units::{BitRate, ByteCount};
///
/// let path = bandwidth_delay_product(BitRate::from_bits_per_second(10e9), Duration::from_millis(117));
/// assert_eq!(path, ByteCount::new(146_250_000));
/// ```
#[must_use]
pub fn bandwidth_delay_product(rate: BitRate, round_trip: Duration) -> ByteCount {
    rate * round_trip
}

#[cfg(test)]
mod tests {
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
}
