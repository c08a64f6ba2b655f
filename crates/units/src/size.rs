use core::ops::{Add, AddAssign, Div, Mul, Sub};
use core::time::Duration;

use crate::{BitRate, Ratio};

/// Number of bytes. Arithmetic saturates: a counter that overflows stays at its maximum instead of wrapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct ByteCount(u64);

impl ByteCount {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// `bytes` bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// `kibibytes` × 1024 bytes.
    #[must_use]
    pub const fn from_kibibytes(kibibytes: u64) -> Self {
        Self(kibibytes.saturating_mul(1 << 10))
    }

    /// `mebibytes` × 1048576 bytes.
    #[must_use]
    pub const fn from_mebibytes(mebibytes: u64) -> Self {
        Self(mebibytes.saturating_mul(1 << 20))
    }

    /// The size of something in memory.
    #[must_use]
    pub const fn from_usize(bytes: usize) -> Self {
        Self(bytes as u64)
    }

    /// Rounds to the nearest byte; negative numbers and NaN become zero.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates, and maps NaN to 0")]
    pub fn from_f64(bytes: f64) -> Self {
        Self(bytes.round() as u64)
    }

    /// Number of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Number of bytes as an in-memory length; saturates where addresses are narrower than 64 bits.
    #[must_use]
    pub fn to_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// Number of bytes as a double; exact up to 2^53.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "documented")]
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// True when the size is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Average rate of these bytes over `time`; zero when no time has passed, as iperf3 prints it.
    #[must_use]
    pub fn rate_over(self, time: Duration) -> BitRate {
        BitRate::from_bits_per_second(self.as_f64() * 8.0 / time.as_secs_f64())
    }

    /// Difference, or `None` when `other` is larger.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }
}

impl Add for ByteCount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for ByteCount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for ByteCount {
    type Output = Self;
    /// Stops at zero.
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for ByteCount {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<Duration> for ByteCount {
    type Output = BitRate;
    /// [`ByteCount::rate_over`].
    fn div(self, time: Duration) -> BitRate {
        self.rate_over(time)
    }
}

impl Div<BitRate> for ByteCount {
    type Output = Option<Duration>;
    /// [`BitRate::time_to_send`].
    fn div(self, rate: BitRate) -> Option<Duration> {
        rate.time_to_send(self)
    }
}

impl Div for ByteCount {
    type Output = Option<Ratio>;
    /// One size as a share of another; `None` when the other is zero.
    fn div(self, other: Self) -> Option<Ratio> {
        Ratio::of(self.as_f64(), other.as_f64())
    }
}

impl core::iter::Sum for ByteCount {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::ZERO, Add::add)
    }
}
