use core::cmp::Ordering;

/// Quotient of two quantities of one kind: finite, not negative, possibly above one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ratio(f64);

impl Ratio {
    /// Zero.
    pub const ZERO: Self = Self(0.0);

    /// `part / whole`; `None` when `whole` is not positive or the quotient is not a ratio.
    #[must_use]
    pub fn of(part: f64, whole: f64) -> Option<Self> {
        (whole > 0.0).then(|| Self::new(part / whole)).flatten()
    }

    /// Creates the ratio `value`; `None` when it is negative, infinite or not a number.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (value.is_finite() && value >= 0.0).then_some(Self(value))
    }

    /// Creates the ratio of `value` percent, under the same conditions as [`Ratio::new`].
    #[must_use]
    pub fn from_percent(value: f64) -> Option<Self> {
        Self::new(value / 100.0)
    }

    /// Quotient.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Quotient in percent.
    #[must_use]
    pub fn percent(self) -> f64 {
        self.0 * 100.0
    }
}

impl Eq for Ratio {}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}
