use core::time::Duration;

use super::TimestampFormat;

/// Error estimate of a clock (RFC 4656 §4.1.2, RFC 8186 §2.3): 16 bits after each timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorEstimate(u16);

const SYNCHRONIZED_FLAG: u16 = 1 << 15;
const PTP_FLAG: u16 = 1 << 14;
/// Largest error that can be encoded: 255 × 2^31 s.
const MAX_ERROR_BITS: u16 = 63 << 8 | 255;

impl ErrorEstimate {
    /// Estimate of an unknown clock: not synchronized, with the largest error.
    #[must_use]
    pub const fn unknown(format: TimestampFormat) -> Self {
        Self(MAX_ERROR_BITS | Self::format_flag(format))
    }

    /// Estimate of a clock that differs from UTC by at most `bound`; `synchronized` means that an external source sets
    /// it (S).
    ///
    /// The field holds `multiplier × 2^(scale − 32)` seconds with 8 and 6 bits: the smallest such value not below
    /// `bound`, at most 1/128 more.
    #[must_use]
    pub fn new(bound: Duration, synchronized: bool, format: TimestampFormat) -> Self {
        let units = (bound.as_nanos() << 32).div_ceil(1_000_000_000);
        let fitting = (0_u16..64).find_map(|scale| {
            let multiplier = units.div_ceil(1 << scale).max(1);
            u8::try_from(multiplier).ok().map(|multiplier| scale << 8 | u16::from(multiplier))
        });
        let synchronized = if synchronized { SYNCHRONIZED_FLAG } else { 0 };
        Self(fitting.unwrap_or(MAX_ERROR_BITS) | synchronized | Self::format_flag(format))
    }

    /// The 16 bits on the wire.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// The 16 bits on the wire.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// True when an external source sets the clock (S).
    #[must_use]
    pub const fn is_synchronized(self) -> bool {
        self.0 & SYNCHRONIZED_FLAG != 0
    }

    /// Format of the timestamps (Z).
    #[must_use]
    pub const fn format(self) -> TimestampFormat {
        if self.0 & PTP_FLAG == 0 { TimestampFormat::Ntp } else { TimestampFormat::PtpTruncated }
    }

    /// Largest error of the clock, rounded up to a nanosecond. `None` when unknown: a multiplier of zero, which RFC
    /// 4656 forbids, or the largest value.
    #[must_use]
    pub fn bound(self) -> Option<Duration> {
        let (scale, multiplier) = (self.0 >> 8 & 63, u128::from(self.0 & 0xFF));
        if multiplier == 0 || self.0 & MAX_ERROR_BITS == MAX_ERROR_BITS {
            return None;
        }
        // Below 2^8 × 2^63 × 2^30.
        let nanos = ((multiplier << scale) * 1_000_000_000).div_ceil(1 << 32);
        let (seconds, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        Some(Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?))
    }

    const fn format_flag(format: TimestampFormat) -> u16 {
        match format {
            TimestampFormat::Ntp => 0,
            TimestampFormat::PtpTruncated => PTP_FLAG,
        }
    }
}

impl Default for ErrorEstimate {
    /// [`ErrorEstimate::unknown`], NTP.
    fn default() -> Self {
        Self::unknown(TimestampFormat::Ntp)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_fields_are_at_the_offsets_of_rfc_4656() {
        // 1 s = 128 × 2^(25 − 32): the smallest scale whose multiplier fits.
        let second = ErrorEstimate::new(Duration::from_secs(1), true, TimestampFormat::Ntp);
        assert_eq!(second.bits(), 0x8000 | 25 << 8 | 128);
        assert_eq!(second.bound(), Some(Duration::from_secs(1)));
        let ptp = ErrorEstimate::new(Duration::ZERO, false, TimestampFormat::PtpTruncated);
        assert_eq!(ptp.bits(), 0x4001, "a multiplier of zero is forbidden");
        assert_eq!((ptp.format(), ptp.is_synchronized()), (TimestampFormat::PtpTruncated, false));
    }

    #[test]
    fn unknown_errors_are_none() {
        assert_eq!(ErrorEstimate::default().bits(), 0x3FFF);
        for bits in [0, 0x8000, 0x3F00, 0x3FFF, 0xFFFF] {
            assert_eq!(ErrorEstimate::from_bits(bits).bound(), None, "{bits:#x}");
        }
        assert_eq!(ErrorEstimate::new(Duration::MAX, false, TimestampFormat::Ntp), ErrorEstimate::default());
    }

    proptest! {
        #[test]
        fn a_bound_is_kept_and_at_most_a_128th_more(seconds in 0_u64..1 << 36, nanos in 1000_u32..1_000_000_000) {
            let bound = Duration::new(seconds, nanos);
            let read = ErrorEstimate::new(bound, true, TimestampFormat::Ntp).bound().expect("a known error");
            prop_assert!(read >= bound);
            prop_assert!(read <= bound + bound / 128 + Duration::from_nanos(1));
        }

        #[test]
        fn bits_round_trip(bits: u16) {
            let read = ErrorEstimate::from_bits(bits);
            prop_assert_eq!(read.bits(), bits);
            let _ = read.bound();
        }
    }
}
