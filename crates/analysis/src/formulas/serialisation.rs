use core::time::Duration;

use linerate_units::{BitRate, ByteCount};

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "serialisation time",
    text: "time = 8 × size / rate",
    citation: "RFC 5136 §2.3 (a link's capacity is bits per time)",
    explanation: "A packet that has begun to leave cannot be overtaken, so this is the least delay that a full packet \
                  in front adds: 54.5 ms for 1500 bytes at 220 kbit/s, the uplink of the LARTC howto, and 12 µs at 1 \
                  Gbit/s. Only smaller packets or a faster link make it smaller; no queueing discipline does.",
};

/// Time to transmit a packet of this size on a link of this rate. `None` at rate zero.
#[must_use]
pub fn serialisation_time(size: ByteCount, rate: BitRate) -> Option<Duration> {
    rate.time_to_send(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_times() {
        // A full packet on the ADSL uplink of the LARTC howto, 220 kbit/s: 54.5 ms. On 10 Gbit/s with its header:
        // 1.2112 µs.
        let table = [(1500, 220e3, 54_545_455), (1514, 10e9, 1_211), (1500, 1e9, 12_000)];
        for (size, rate, nanoseconds) in table {
            let time = serialisation_time(ByteCount::new(size), BitRate::from_bits_per_second(rate));
            assert_eq!(time, Some(Duration::from_nanos(nanoseconds)), "{size} B at {rate}");
        }
        assert_eq!(serialisation_time(ByteCount::new(1), BitRate::ZERO), None);
    }
}
