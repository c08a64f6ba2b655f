//! Quantities in messages: whole numbers, so that they are not rounded.

/// A duration, as whole nanoseconds: up to 584 years.
pub(super) mod nanos {
    use core::time::Duration;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(in crate::probe) fn whole(time: Duration) -> u64 {
        u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
    }

    pub(in crate::probe) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(whole(*time))
    }

    pub(in crate::probe) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_nanos)
    }
}

/// Time of day, as whole nanoseconds since 1970: up to the year 2554.
pub(super) mod wall {
    use core::time::Duration;
    use linerate_units::WallTime;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(in crate::probe) fn whole(time: WallTime) -> u64 {
        super::nanos::whole(time.since_unix_epoch())
    }

    pub(in crate::probe) fn from_whole(nanoseconds: u64) -> WallTime {
        WallTime::from_unix(Duration::from_nanos(nanoseconds))
    }

    pub(in crate::probe) fn serialize<S: Serializer>(time: &WallTime, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(whole(*time))
    }

    pub(in crate::probe) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<WallTime, D::Error> {
        u64::deserialize(deserializer).map(from_whole)
    }
}

/// A rate, as whole bit/s.
pub(super) mod rate {
    use linerate_units::{BitRate, ByteCount};
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(in crate::probe) fn from_whole(bits_per_second: u64) -> BitRate {
        // Exact up to 2^53 bit/s.
        BitRate::from_bits_per_second(ByteCount::new(bits_per_second).as_f64())
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub(in crate::probe) fn serialize<S: Serializer>(rate: &BitRate, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(rate.whole_bits_per_second())
    }

    pub(in crate::probe) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BitRate, D::Error> {
        u64::deserialize(deserializer).map(from_whole)
    }
}

/// Defines a serde module for a type of one whole number.
macro_rules! number {
    ($(#[$doc:meta])* $module:ident, $number:ty, $quantity:ident) => {
        $(#[$doc])*
        pub(super) mod $module {
            use linerate_units::$quantity;
            use serde::{Deserialize as _, Deserializer, Serializer};

            #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
            pub(in crate::probe) fn serialize<S: Serializer>(value: &$quantity, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u64(u64::from(value.get()))
            }

            pub(in crate::probe) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<$quantity, D::Error> {
                <$number>::deserialize(deserializer).map($quantity::new)
            }
        }
    };
}

number!(/** Bytes. */ bytes, u64, ByteCount);
number!(/** Packets. */ packets, u64, PacketCount);
number!(/** A type-of-service octet. */ octet, u8, TypeOfService);

/// Defines a serde module for a quantity that may be unknown: `null`.
macro_rules! unknown_or {
    ($module:ident, $number:ty, $quantity:ty, $to:expr, $from:expr) => {
        pub(super) mod $module {
            use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

            #[allow(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
            pub(in crate::probe) fn serialize<S: Serializer>(
                value: &Option<$quantity>,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                value.as_ref().copied().map($to).serialize(serializer)
            }

            pub(in crate::probe) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Option<$quantity>, D::Error> {
                Ok(Option::<$number>::deserialize(deserializer)?.map($from))
            }
        }
    };
}

unknown_or!(maybe_nanos, u64, core::time::Duration, super::nanos::whole, core::time::Duration::from_nanos);
unknown_or!(maybe_wall, u64, linerate_units::WallTime, super::wall::whole, super::wall::from_whole);
unknown_or!(
    maybe_packets,
    u64,
    linerate_units::PacketCount,
    linerate_units::PacketCount::get,
    linerate_units::PacketCount::new
);
unknown_or!(maybe_mtu, u32, linerate_units::Mtu, linerate_units::Mtu::get, linerate_units::Mtu::new);
