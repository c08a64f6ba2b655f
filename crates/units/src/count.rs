use core::ops::{Add, AddAssign, Mul, Sub};

use crate::{ByteCount, Ratio};

macro_rules! count {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
        pub struct $name(u64);

        impl $name {
            /// Zero.
            pub const ZERO: Self = Self(0);

            /// Creates a count.
            #[must_use]
            pub const fn new(count: u64) -> Self {
                Self(count)
            }

            /// Count as an integer.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }

            /// Count as a double; exact up to 2^53.
            #[must_use]
            #[expect(clippy::cast_precision_loss, reason = "documented")]
            pub const fn as_f64(self) -> f64 {
                self.0 as f64
            }

            /// Count for indexing; saturates.
            #[must_use]
            pub fn to_usize(self) -> usize {
                usize::try_from(self.0).unwrap_or(usize::MAX)
            }

            /// True when the count is zero.
            #[must_use]
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }

            /// This count as a share of `whole`; `None` when `whole` is zero.
            #[must_use]
            pub fn share_of(self, whole: Self) -> Option<Ratio> {
                Ratio::of(self.as_f64(), whole.as_f64())
            }
        }

        impl Add for $name {
            type Output = Self;
            /// Saturates.
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl Sub for $name {
            type Output = Self;
            /// Stops at zero.
            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl Mul<ByteCount> for $name {
            type Output = ByteCount;
            /// Total size of this many items of one size.
            fn mul(self, size: ByteCount) -> ByteCount {
                size * self.0
            }
        }

        impl core::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
                counts.fold(Self::ZERO, Add::add)
            }
        }
    };
}

count! {
    /// A number of packets or datagrams.
    PacketCount
}
count! {
    /// A number of TCP segments, for example retransmitted ones.
    SegmentCount
}
count! {
    /// A number of application writes of one block each (iperf3 `-k`).
    BlockCount
}
count! {
    /// A number of streams (flows) of one test.
    StreamCount
}
