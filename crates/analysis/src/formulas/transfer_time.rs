use core::time::Duration;

use linerate_units::{BitRate, ByteCount};

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "transfer time",
    text: "time = 8 × volume / rate",
    citation: "RFC 6349 §4.1.2 (the ideal transfer time)",
    explanation: "The duration of a transfer at a rate, or its rate. The rate is that of the payload: on a \
                  link of 1 Gbit/s at most 941 Mbit/s (`calc ethernet`).\n\n\
                  iperf3 writes sizes by powers of 1024 and rates by powers of 1000: in a guide for Red Hat \
                  Enterprise Linux its 101 GBytes in 60 s are 101 GiB, and 14.46 Gbit/s as printed; 101 GB would be \
                  13.5.",
};

/// Time to transfer this many bytes at a rate. `None` at rate zero.
#[must_use]
pub fn transfer_time(volume: ByteCount, rate: BitRate) -> Option<Duration> {
    volume / rate
}

/// Rate of a transfer: an inverse of [`transfer_time`]. `None` for a time of zero.
#[must_use]
pub fn transfer_rate(volume: ByteCount, time: Duration) -> Option<BitRate> {
    (!time.is_zero()).then(|| volume / time)
}

/// Volume transferred in a time: another inverse of [`transfer_time`].
#[must_use]
pub fn transfer_volume(rate: BitRate, time: Duration) -> ByteCount {
    rate * time
}

#[cfg(test)]
mod tests {
    use super::super::near;
    use super::*;

    #[test]
    fn the_sample_of_the_red_hat_guide() {
        let rate = transfer_rate(ByteCount::new(101 << 30), Duration::from_secs(60)).unwrap_or_default();
        assert!(near(rate.bits_per_second(), 14.46e9, 1e-3), "{rate}");
        assert_eq!(transfer_rate(ByteCount::new(1), Duration::ZERO), None);
        assert_eq!(transfer_time(ByteCount::new(1), BitRate::ZERO), None);
    }

    proptest::proptest! {
        #[test]
        fn the_inverses_return(volume in 1_000_000_u64..1 << 48, ms in 1_u64..1_000_000) {
            let (volume, time) = (ByteCount::new(volume), Duration::from_millis(ms));
            let rate = transfer_rate(volume, time).unwrap_or_default();
            proptest::prop_assert!(near(transfer_volume(rate, time).as_f64(), volume.as_f64(), 1e-9));
            let back = transfer_time(volume, rate).unwrap_or_default();
            proptest::prop_assert!(near(back.as_secs_f64(), time.as_secs_f64(), 1e-5));
        }
    }
}
