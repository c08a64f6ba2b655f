use linerate_units::ByteCount;

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "window scale",
    text: "largest window = 65535 × 2^scale; Linux: scale = ⌊log₂ buffer limit⌋ − 15, from 0 to 14",
    citation: "RFC 7323 §2; Linux 6.12, net/ipv4/tcp_output.c tcp_select_initial_window",
    explanation: "The window field has 16 bits; the scale is agreed on in the handshake and cannot change later. \
                  Linux takes the smallest that fits the larger of tcp_rmem's third value and net.core.rmem_max at \
                  that moment.\n\n\
                  A guide for Red Hat Enterprise Linux claims that after raising the third value of tcp_rmem nothing \
                  needs a restart, as the automatic sizing takes it up. A connection that was opened at 6 MiB has \
                  scale 7 and can never offer more than 65535 × 2⁷ = 8 388 480 bytes: only new connections can.",
};

/// Shift count of the window field: 0 to 14 (RFC 7323 §2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WindowScale(u8);

impl WindowScale {
    /// Maximum, 14.
    pub const LARGEST: Self = Self(14);

    /// Creates a scale of `bits`; `None` above 14.
    #[must_use]
    pub const fn new(bits: u8) -> Option<Self> {
        if bits <= Self::LARGEST.0 { Some(Self(bits)) } else { None }
    }

    /// Shift count.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Largest window that this scale can offer.
    #[must_use]
    pub const fn largest_window(self) -> ByteCount {
        ByteCount::new(MAX_UNSCALED_WINDOW << self.0)
    }

    /// Smallest scale that can offer this window: the inverse of [`WindowScale::largest_window`]. `None` where none is
    /// enough.
    #[must_use]
    pub fn for_window(window: ByteCount) -> Option<Self> {
        (0..=Self::LARGEST.0).map(Self).find(|scale| scale.largest_window() >= window)
    }

    /// Scale that Linux offers when this is the larger of `tcp_rmem`'s third value and `net.core.rmem_max`.
    #[must_use]
    pub fn of_buffer_limit(limit: ByteCount) -> Self {
        let bits = limit.get().checked_ilog2().unwrap_or(0).saturating_sub(UNSCALED_BITS);
        Self(u8::try_from(bits).unwrap_or(u8::MAX).min(Self::LARGEST.0))
    }

    /// Smallest limit with which Linux offers this scale: the inverse of [`WindowScale::of_buffer_limit`].
    #[must_use]
    pub const fn buffer_limit(self) -> ByteCount {
        ByteCount::new(1 << (UNSCALED_BITS + self.0 as u32))
    }
}

/// Maximum of the window field.
const MAX_UNSCALED_WINDOW: u64 = 65_535;

/// Power of two from which on Linux offers a scale above zero.
const UNSCALED_BITS: u32 = 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_windows() {
        // RHEL: 65535 << 7 is about 8 MiB; the largest is 1 GiB less a little.
        let seven = WindowScale::of_buffer_limit(ByteCount::from_mebibytes(6));
        assert_eq!(seven.get(), 7);
        assert_eq!(seven.largest_window(), ByteCount::new(8_388_480));
        assert_eq!(WindowScale::LARGEST.largest_window(), ByteCount::new(1_073_725_440));
        assert_eq!(WindowScale::of_buffer_limit(ByteCount::from_mebibytes(32)).get(), 10);
        assert_eq!(WindowScale::of_buffer_limit(ByteCount::ZERO).get(), 0);
        assert_eq!(WindowScale::of_buffer_limit(ByteCount::new(u64::MAX)), WindowScale::LARGEST);
        assert_eq!(WindowScale::new(15), None);
    }

    #[test]
    fn the_inverses_return() {
        for bits in 0..=14 {
            let scale = WindowScale::new(bits).unwrap_or(WindowScale::LARGEST);
            assert_eq!(WindowScale::for_window(scale.largest_window()), Some(scale));
            assert_eq!(WindowScale::of_buffer_limit(scale.buffer_limit()), scale);
            let more = scale.largest_window() + ByteCount::new(1);
            assert_eq!(WindowScale::for_window(more), WindowScale::new(bits + 1));
        }
    }
}
