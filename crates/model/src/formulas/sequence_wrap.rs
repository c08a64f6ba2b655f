use core::time::Duration;

use linerate_units::{BitRate, ByteCount};

use super::Formula;

/// What it is, where it comes from, and what is easily got wrong.
pub const FORMULA: Formula = Formula {
    name: "sequence wrap",
    text: "time = 2³² × 8 / rate",
    citation: "RFC 7323 §5; RFC 9293 §3.4",
    explanation: "TCP numbers bytes with 32 bits, so after 4 GiB the same numbers come again: after 4.3 s at 8 \
                  Gbit/s, 34 s at 1 Gbit/s. A packet that was delayed that long would be taken for a new one; a \
                  maximum segment lifetime is 2 minutes (RFC 9293 §3.4.2), which is longer from 286 Mbit/s on. \
                  Timestamps are what tells them apart (PAWS).\n\n\
                  Slides of CESGA switch timestamps off as a gain at 10 Gbit/s, a recipe that comes from the README \
                  of Intel's old ixgb driver. There the numbers come again after 3.4 s; and nothing was gained where \
                  it was measured (238 Mbit/s with timestamps, 218 without).",
};

/// The bytes that TCP can number: 2^32.
pub const SEQUENCE_SPACE: ByteCount = ByteCount::new(1 << 32);

/// How long it takes at this rate until TCP's sequence numbers come again (RFC 7323 §5). `None` at a rate of nothing.
#[must_use]
pub fn sequence_wrap_time(rate: BitRate) -> Option<Duration> {
    SEQUENCE_SPACE / rate
}

/// The rate at which the sequence numbers come again after a time: the inverse of [`sequence_wrap_time`]. `None` when there
/// is no time.
#[must_use]
pub fn sequence_wrap_rate(time: Duration) -> Option<BitRate> {
    (!time.is_zero()).then(|| SEQUENCE_SPACE / time)
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
        assert_eq!(sequence_wrap_rate(Duration::ZERO), None);
    }

    proptest::proptest! {
        #[test]
        fn the_inverse_returns(rate in 1e3_f64..1e13) {
            let time = sequence_wrap_time(BitRate::from_bits_per_second(rate)).unwrap_or_default();
            let back = sequence_wrap_rate(time).unwrap_or_default();
            proptest::prop_assert!(near(back.bits_per_second(), rate, 1e-5));
        }
    }
}
