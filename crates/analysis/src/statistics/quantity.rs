use core::fmt;
use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Ratio};

/// Quantity for statistics: a single number in its own unit.
///
/// Times count in nanoseconds here, so that they are converted exactly (below 104 days).
pub trait StatisticalQuantity: Copy + PartialOrd + fmt::Debug {
    /// Number in its unit: nanoseconds, bit/s, bytes, or the share.
    fn number(self) -> f64;

    /// Creates the quantity from a number. Invalid numbers (negative, not a number) become zero.
    fn from_number(number: f64) -> Self;
}

impl StatisticalQuantity for f64 {
    fn number(self) -> f64 {
        self
    }

    fn from_number(number: f64) -> Self {
        number
    }
}

impl StatisticalQuantity for Duration {
    #[expect(clippy::cast_precision_loss, reason = "exact below 104 days")]
    fn number(self) -> f64 {
        self.as_nanos() as f64
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates, and maps NaN to 0")]
    fn from_number(number: f64) -> Self {
        Self::from_nanos(number.round() as u64)
    }
}

impl StatisticalQuantity for BitRate {
    fn number(self) -> f64 {
        self.bits_per_second()
    }

    fn from_number(number: f64) -> Self {
        Self::from_bits_per_second(number)
    }
}

impl StatisticalQuantity for ByteCount {
    fn number(self) -> f64 {
        self.as_f64()
    }

    fn from_number(number: f64) -> Self {
        Self::from_f64(number)
    }
}

impl StatisticalQuantity for Ratio {
    fn number(self) -> f64 {
        self.get()
    }

    fn from_number(number: f64) -> Self {
        Self::new(number).unwrap_or_default()
    }
}

/// Signed difference of two quantities.
///
/// Times, rates and sizes cannot be negative, their differences can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SignedDifference<Q> {
    /// True when the difference is below zero.
    pub negative: bool,
    /// Absolute value.
    pub magnitude: Q,
}

impl<Q: StatisticalQuantity> SignedDifference<Q> {
    /// `to − from`.
    #[must_use]
    pub fn between(from: Q, to: Q) -> Self {
        Self::from_number(to.number() - from.number())
    }

    /// Creates the difference from a number, in the unit of [`StatisticalQuantity::number`].
    #[must_use]
    pub fn from_number(number: f64) -> Self {
        Self { negative: number < 0.0, magnitude: Q::from_number(number.abs()) }
    }

    /// Signed number, in the unit of [`StatisticalQuantity::number`].
    #[must_use]
    pub fn number(self) -> f64 {
        if self.negative { -self.magnitude.number() } else { self.magnitude.number() }
    }

    /// Quantity, with a negative difference as zero.
    #[must_use]
    pub fn allow_zero(self) -> Q {
        if self.negative { Q::from_number(0.0) } else { self.magnitude }
    }
}

impl SignedDifference<Duration> {
    /// Creates a difference of times from signed nanoseconds, exactly.
    #[must_use]
    pub const fn from_nanos(nanoseconds: i64) -> Self {
        Self { negative: nanoseconds < 0, magnitude: Duration::from_nanos(nanoseconds.unsigned_abs()) }
    }

    /// Signed nanoseconds; saturates after 292 years.
    #[must_use]
    pub fn as_nanos(self) -> i64 {
        let size = i64::try_from(self.magnitude.as_nanos()).unwrap_or(i64::MAX);
        if self.negative { -size } else { size }
    }
}

impl<Q: StatisticalQuantity> PartialOrd for SignedDifference<Q> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        self.number().partial_cmp(&other.number())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn times_come_out_as_they_went_in(nanos in 0_u64..(1 << 53)) {
            let time = Duration::from_nanos(nanos);
            prop_assert_eq!(Duration::from_number(time.number()), time);
        }

        #[test]
        fn signed_times_keep_their_sign(nanos in -(1_i64 << 60)..(1 << 60)) {
            prop_assert_eq!(SignedDifference::from_nanos(nanos).as_nanos(), nanos);
        }

        #[test]
        fn differences_have_a_direction(from in 0.0..1e12_f64, to in 0.0..1e12_f64) {
            let (from, to) = (BitRate::from_bits_per_second(from), BitRate::from_bits_per_second(to));
            let difference = SignedDifference::between(from, to);
            prop_assert_eq!(difference.negative, to < from);
            prop_assert_eq!(difference.magnitude, SignedDifference::between(to, from).magnitude);
            prop_assert!(difference.negative == difference.allow_zero().is_zero() || from == to);
        }
    }
}
