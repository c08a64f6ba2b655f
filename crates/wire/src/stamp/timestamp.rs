use core::time::Duration;

use linerate_units::WallTime;

/// Format of the 64 bits of a [`StampTimestamp`]: the Z flag of the error estimate (RFC 8186 §2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimestampFormat {
    /// NTP version 4: seconds since 1900 and a binary fraction, 32 bits each (RFC 5905 §6). The default of STAMP.
    #[default]
    Ntp,
    /// PTP version 2: the lower 32 bits of the seconds, and nanoseconds (IEEE 1588-2008; RFC 8877 §4.3).
    ///
    /// PTP counts TAI, 37 s ahead of UTC since 2017; here the host's UTC is written and read, as by most hosts that
    /// choose this format. With a peer that writes TAI, one-way delays are off by that constant; round trips and
    /// variations are unaffected.
    PtpTruncated,
}

/// A timestamp on the wire: 64 bits, in the format of [`crate::stamp::ErrorEstimate::format`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StampTimestamp(u64);

/// Seconds from 1900-01-01 to 1970-01-01 (RFC 5905 §6).
const NTP_TO_UNIX: u64 = 2_208_988_800;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

impl StampTimestamp {
    /// Unknown, or not filled in (RFC 5905 §6).
    pub const UNKNOWN: Self = Self(0);

    /// The 64 bits on the wire.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The 64 bits on the wire.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Encodes a time of day, with seconds modulo 2^32 as in both formats: NTP wraps in 2036, PTP in 2106.
    #[must_use]
    #[inline]
    pub fn from_wall(time: WallTime, format: TimestampFormat) -> Self {
        let since_epoch = time.since_unix_epoch();
        let nanos = u64::from(since_epoch.subsec_nanos());
        let (seconds, fraction) = match format {
            // To the nearest 2^-32 s, so that nanoseconds round-trip; below 2^32 for each of them.
            TimestampFormat::Ntp => {
                let fraction = ((nanos << 32) + NANOS_PER_SECOND / 2) / NANOS_PER_SECOND;
                (since_epoch.as_secs().wrapping_add(NTP_TO_UNIX), fraction)
            }
            TimestampFormat::PtpTruncated => (since_epoch.as_secs(), nanos),
        };
        Self(seconds << 32 | fraction)
    }

    /// Decodes the time of day to the nearest nanosecond; `None` when it is unknown, before 1970, or invalid
    /// (nanoseconds above a second).
    ///
    /// NTP seconds with the highest bit set are in 1968 to 2036, others in 2036 to 2104 (RFC 4330 §3).
    #[must_use]
    pub fn to_wall(self, format: TimestampFormat) -> Option<WallTime> {
        if self == Self::UNKNOWN {
            return None;
        }
        let (seconds, fraction) = (self.0 >> 32, self.0 & 0xFFFF_FFFF);
        let since_epoch = match format {
            TimestampFormat::Ntp => {
                let era = if seconds & 0x8000_0000 == 0 { 1 << 32 } else { 0 };
                let seconds = (seconds + era).checked_sub(NTP_TO_UNIX)?;
                // Below 2^62 + 2^31; a fraction just below a second may round up to one.
                let nanos = (fraction * NANOS_PER_SECOND + (1 << 31)) >> 32;
                Duration::from_secs(seconds) + Duration::from_nanos(nanos)
            }
            TimestampFormat::PtpTruncated if fraction < NANOS_PER_SECOND => {
                Duration::from_secs(seconds) + Duration::from_nanos(fraction)
            }
            TimestampFormat::PtpTruncated => return None,
        };
        Some(WallTime::from_unix(since_epoch))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: u64, nanos: u32) -> WallTime {
        WallTime::from_unix(Duration::new(seconds, nanos))
    }

    #[test]
    fn known_points() {
        // RFC 5905 figure 4: the Unix epoch is 2208988800 s of NTP; half a second is 2^31.
        assert_eq!(StampTimestamp::from_wall(at(0, 500_000_000), TimestampFormat::Ntp).bits(), 0x83AA_7E80_8000_0000);
        assert_eq!(StampTimestamp::from_wall(at(1, 7), TimestampFormat::PtpTruncated).bits(), 0x0000_0001_0000_0007);
        // RFC 4330 §3: the second era begins on 2036-02-07 06:28:16 UTC.
        let second_era = at(2_085_978_496, 0);
        assert_eq!(StampTimestamp::from_wall(second_era, TimestampFormat::Ntp), StampTimestamp::UNKNOWN);
        let next = StampTimestamp::from_bits(1 << 32);
        assert_eq!(next.to_wall(TimestampFormat::Ntp), Some(at(2_085_978_497, 0)));
    }

    #[test]
    fn invalid_times_are_none() {
        for format in [TimestampFormat::Ntp, TimestampFormat::PtpTruncated] {
            assert_eq!(StampTimestamp::UNKNOWN.to_wall(format), None);
        }
        assert_eq!(StampTimestamp::from_bits(0x8000_0000_0000_0000).to_wall(TimestampFormat::Ntp), None, "1968");
        assert_eq!(StampTimestamp::from_bits(1_000_000_000).to_wall(TimestampFormat::PtpTruncated), None);
        assert_eq!(
            StampTimestamp::from_bits(999_999_999).to_wall(TimestampFormat::PtpTruncated),
            Some(at(0, 999_999_999))
        );
    }

    #[test]
    fn a_fraction_that_rounds_up_carries() {
        let last = StampTimestamp::from_bits(0x83AA_7E80_FFFF_FFFF);
        assert_eq!(last.to_wall(TimestampFormat::Ntp), Some(at(1, 0)));
    }

    proptest! {
        #[test]
        fn times_round_trip_to_the_nanosecond(seconds in 1_u64..4_294_967_295, nanos in 0_u32..1_000_000_000) {
            let time = at(seconds, nanos);
            let ptp = StampTimestamp::from_wall(time, TimestampFormat::PtpTruncated);
            prop_assert_eq!(ptp.to_wall(TimestampFormat::PtpTruncated), Some(time));
            // The span of NTP's two eras under RFC 4330's rule ends in 2104.
            let time = at(seconds % 4_233_462_144, nanos);
            let ntp = StampTimestamp::from_wall(time, TimestampFormat::Ntp);
            prop_assume!(ntp != StampTimestamp::UNKNOWN);
            prop_assert_eq!(ntp.to_wall(TimestampFormat::Ntp), Some(time));
        }

        #[test]
        fn any_bits_are_read(bits: u64) {
            for format in [TimestampFormat::Ntp, TimestampFormat::PtpTruncated] {
                if let Some(time) = StampTimestamp::from_bits(bits).to_wall(format) {
                    let again = StampTimestamp::from_wall(time, format);
                    // A nanosecond is 4.29 units of 2^-32 s.
                    prop_assert!(again.bits().abs_diff(bits) <= 3);
                }
            }
        }
    }
}
