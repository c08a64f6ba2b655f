use core::cmp::Ordering;
use core::ops::{Add, Div, Mul, Sub};
use core::time::Duration;

use crate::{ByteCount, Ratio};

/// Data rate in bit/s: finite and not negative.
///
/// Held as a double, so that a measured rate keeps its precision and a configured one stays exact up to 2^53 bit/s.
///
/// ```
/// use std::time::Duration;
/// use linerate_units::{BitRate, ByteCount};
///
/// let bandwidth_delay_product = BitRate::from_bits_per_second(10e9) * Duration::from_millis(117);
/// assert_eq!(bandwidth_delay_product, ByteCount::new(146_250_000));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BitRate(f64);

impl BitRate {
    /// Zero.
    pub const ZERO: Self = Self(0.0);

    /// Creates a rate of `bits` bit/s. Invalid numbers (negative, infinite, not a number) become zero.
    #[must_use]
    pub const fn from_bits_per_second(bits: f64) -> Self {
        if bits.is_finite() && bits > 0.0 { Self(bits) } else { Self::ZERO }
    }

    /// Rate in bit/s.
    #[must_use]
    pub const fn bits_per_second(self) -> f64 {
        self.0
    }

    /// Rate in whole bit/s, rounded to nearest, as protocols carry it.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "finite and not negative; `as` saturates"
    )]
    pub fn whole_bits_per_second(self) -> u64 {
        self.0.round() as u64
    }

    /// Rate in byte/s.
    #[must_use]
    pub fn bytes_per_second(self) -> f64 {
        self.0 / 8.0
    }

    /// True when the rate is zero.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.0 == 0.0
    }

    /// Time to send `size` at this rate; `None` at rate zero.
    #[must_use]
    pub fn time_to_send(self, size: ByteCount) -> Option<Duration> {
        if self.is_zero() {
            return None;
        }
        Duration::try_from_secs_f64(size.as_f64() * 8.0 / self.0).ok()
    }
}

impl Eq for BitRate {}

impl PartialOrd for BitRate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BitRate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Add for BitRate {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::from_bits_per_second(self.0 + other.0)
    }
}

impl Sub for BitRate {
    type Output = Self;
    /// Stops at zero.
    fn sub(self, other: Self) -> Self {
        Self::from_bits_per_second(self.0 - other.0)
    }
}

impl Mul<f64> for BitRate {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self::from_bits_per_second(self.0 * factor)
    }
}

impl Mul<Duration> for BitRate {
    type Output = ByteCount;
    /// Bytes transferred in that time, rounded to whole bytes: for a round-trip time, the bandwidth-delay product.
    fn mul(self, time: Duration) -> ByteCount {
        ByteCount::from_f64(self.0 * time.as_secs_f64() / 8.0)
    }
}

impl Div for BitRate {
    type Output = Option<Ratio>;
    /// One rate as a share of another; `None` when the other is zero.
    fn div(self, other: Self) -> Option<Ratio> {
        Ratio::of(self.0, other.0)
    }
}

impl core::iter::Sum for BitRate {
    fn sum<I: Iterator<Item = Self>>(rates: I) -> Self {
        rates.fold(Self::ZERO, Add::add)
    }
}
