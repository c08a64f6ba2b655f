use core::time::Duration;

use linerate_units::{BitRate, ByteCount};

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "sequence wrap",
    text: "time = 2³² × 8 / rate",
    citation: "RFC 7323 §5; RFC 9293 §3.4",
    explanation: "TCP numbers bytes with 32 bits, so after 4 GiB the same numbers recur: after 4.3 s at 8 \
                  Gbit/s, 34 s at 1 Gbit/s. A packet that was delayed that long would be taken for a new one; a \
                  maximum segment lifetime is 2 minutes (RFC 9293 §3.4.2), which is longer from 286 Mbit/s on. \
                  Timestamps distinguish them (PAWS).\n\n\
                  Slides of CESGA switch timestamps off as a gain at 10 Gbit/s, a recipe that comes from the README \
                  of Intel's old ixgb driver. There the numbers recur after 3.4 s; and nothing was gained where \
                  it was measured (1.008 times the rate without timestamps, in the lab).",
};

/// Size of TCP's sequence number space in bytes: 2^32.
pub const SEQUENCE_SPACE: ByteCount = ByteCount::new(1 << 32);

/// Time at this rate until TCP's sequence numbers wrap (RFC 7323 §5). `None` at rate zero.
#[must_use]
pub fn sequence_wrap_time(rate: BitRate) -> Option<Duration> {
    SEQUENCE_SPACE / rate
}

#[cfg(test)]
mod tests {
    use super::super::near;
    use super::*;

    #[test]
    fn published_times() {
        for (rate, seconds) in [(8e9, 4.3), (10e9, 3.44), (1e9, 34.4), (286.3e6, 120.0)] {
            let time = sequence_wrap_time(BitRate::from_bits_per_second(rate)).unwrap_or_default();
            assert!(near(time.as_secs_f64(), seconds, 0.002), "{time:?}");
        }
        assert_eq!(sequence_wrap_time(BitRate::ZERO), None);
    }
}
