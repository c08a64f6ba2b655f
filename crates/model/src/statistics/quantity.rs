use core::fmt;
use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Ratio};

/// What statistics can be made of: a quantity that is one number in its own unit.
///
/// Times count in nanoseconds here, so that what was read comes out again exactly (below 104 days).
pub trait Quantity: Copy + PartialOrd + fmt::Debug {
    /// The number: nanoseconds, bit/s, bytes, or the share.
    fn number(self) -> f64;

    /// The quantity of that number. What it cannot be (negative, not a number) becomes zero.
    fn from_number(number: f64) -> Self;
}

impl Quantity for f64 {
    fn number(self) -> f64 {
        self
    }

    fn from_number(number: f64) -> Self {
        number
    }
}

impl Quantity for Duration {
    #[expect(clippy::cast_precision_loss, reason = "exact below 104 days")]
    fn number(self) -> f64 {
        self.as_nanos() as f64
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates, and maps NaN to 0")]
    fn from_number(number: f64) -> Self {
        Self::from_nanos(number.round() as u64)
    }
}

impl Quantity for BitRate {
    fn number(self) -> f64 {
        self.bits_per_second()
    }

    fn from_number(number: f64) -> Self {
        Self::from_bits_per_second(number)
    }
}

impl Quantity for ByteCount {
    fn number(self) -> f64 {
        self.as_f64()
    }

    fn from_number(number: f64) -> Self {
        Self::from_f64(number)
    }
}

impl Quantity for Ratio {
    fn number(self) -> f64 {
        self.get()
    }

    fn from_number(number: f64) -> Self {
        Self::new(number).unwrap_or_default()
    }
}

/// A difference of two quantities: how much, and in which direction.
///
/// Times, rates and sizes cannot be negative, their differences can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Signed<Q> {
    /// Whether the difference is below zero.
    pub negative: bool,
    /// Its size.
    pub magnitude: Q,
}

impl<Q: Quantity> Signed<Q> {
    /// `to − from`.
    #[must_use]
    pub fn between(from: Q, to: Q) -> Self {
        Self::from_number(to.number() - from.number())
    }

    /// The difference of that number, in the unit of [`Quantity::number`].
    #[must_use]
    pub fn from_number(number: f64) -> Self {
        Self { negative: number < 0.0, magnitude: Q::from_number(number.abs()) }
    }

    /// The number with its sign, in the unit of [`Quantity::number`].
    #[must_use]
    pub fn number(self) -> f64 {
        if self.negative { -self.magnitude.number() } else { self.magnitude.number() }
    }

    /// The quantity, where a negative difference counts as none.
    #[must_use]
    pub fn or_zero(self) -> Q {
        if self.negative { Q::from_number(0.0) } else { self.magnitude }
    }
}

impl Signed<Duration> {
    /// A difference of times from nanoseconds with a sign, exactly.
    #[must_use]
    pub const fn from_nanos(nanoseconds: i64) -> Self {
        Self { negative: nanoseconds < 0, magnitude: Duration::from_nanos(nanoseconds.unsigned_abs()) }
    }

    /// Nanoseconds with a sign; saturates after 292 years.
    #[must_use]
    pub fn as_nanos(self) -> i64 {
        let size = i64::try_from(self.magnitude.as_nanos()).unwrap_or(i64::MAX);
        if self.negative { -size } else { size }
    }
}

impl<Q: Quantity> PartialOrd for Signed<Q> {
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
            prop_assert_eq!(Signed::from_nanos(nanos).as_nanos(), nanos);
        }

        #[test]
        fn differences_have_a_direction(from in 0.0..1e12_f64, to in 0.0..1e12_f64) {
            let (from, to) = (BitRate::from_bits_per_second(from), BitRate::from_bits_per_second(to));
            let difference = Signed::between(from, to);
            prop_assert_eq!(difference.negative, to < from);
            prop_assert_eq!(difference.magnitude, Signed::between(to, from).magnitude);
            prop_assert!(difference.negative == difference.or_zero().is_zero() || from == to);
        }
    }
}
