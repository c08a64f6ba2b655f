//! Quantities in JSON: plain numbers in the base unit, which the key of the field names (`_ns`, `_bytes`, `_bits_per_second`).
//!
//! Every quantity of this crate is `Serialize` and `Deserialize` as its number. [`Duration`] belongs to the standard
//! library, which writes it as two numbers; fields of that type name [`Nanoseconds`] instead:
//!
//! ```
//! use core::time::Duration;
//! use linerate_units::serde::{Nanoseconds, OptionalNanoseconds};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct RoundTrip {
//!     #[serde(rename = "rtt_ns", with = "Nanoseconds")]
//!     rtt: Duration,
//!     #[serde(rename = "min_rtt_ns", with = "OptionalNanoseconds", default)]
//!     min_rtt: Option<Duration>,
//! }
//!
//! let json = serde_json::to_string(&RoundTrip { rtt: Duration::from_micros(7), min_rtt: None })?;
//! assert_eq!(json, r#"{"rtt_ns":7000,"min_rtt_ns":null}"#);
//! # Ok::<(), serde_json::Error>(())
//! ```

use core::marker::PhantomData;
use core::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::{BitRate, Dscp, FlowLabel, Port, Ratio, WallTime};

/// Whole nanoseconds of a duration, 0 to 2^64 - 1 (584 years); longer ones saturate.
#[must_use]
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Times that are written as whole nanoseconds: [`Duration`], and `Option<Duration>` with `null` for unknown.
pub trait InNanoseconds: Sized {
    /// Number that stands for the time in JSON.
    type Number: Serialize + for<'de> Deserialize<'de>;

    /// Returns the number of this time.
    fn to_number(&self) -> Self::Number;

    /// Returns the time of `number`.
    fn from_number(number: Self::Number) -> Self;
}

impl InNanoseconds for Duration {
    type Number = u64;

    fn to_number(&self) -> u64 {
        nanoseconds(*self)
    }

    fn from_number(number: u64) -> Self {
        Self::from_nanos(number)
    }
}

impl<T: InNanoseconds> InNanoseconds for Option<T> {
    type Number = Option<T::Number>;

    fn to_number(&self) -> Self::Number {
        self.as_ref().map(T::to_number)
    }

    fn from_number(number: Self::Number) -> Self {
        number.map(T::from_number)
    }
}

/// A pair, as a median and a percentile.
impl<T: InNanoseconds> InNanoseconds for (T, T) {
    type Number = (T::Number, T::Number);

    fn to_number(&self) -> Self::Number {
        (self.0.to_number(), self.1.to_number())
    }

    fn from_number((first, second): Self::Number) -> Self {
        (T::from_number(first), T::from_number(second))
    }
}

/// The form of a [`Duration`] in JSON, for `#[serde(with = "Nanoseconds")]`: whole nanoseconds.
#[derive(Debug)]
pub struct Nanoseconds<T = Duration>(PhantomData<T>);

/// The form of an `Option<Duration>` in JSON: whole nanoseconds, or `null`.
pub type OptionalNanoseconds = Nanoseconds<Option<Duration>>;

impl<T: InNanoseconds> Nanoseconds<T> {
    /// Writes `time` as a number of nanoseconds.
    pub fn serialize<S: Serializer>(time: &T, serializer: S) -> Result<S::Ok, S::Error> {
        time.to_number().serialize(serializer)
    }

    /// Reads a number of nanoseconds.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        T::Number::deserialize(deserializer).map(T::from_number)
    }
}

/// Implements serde for a quantity with a validated constructor.
macro_rules! validated {
    ($name:ident, $number:ty, $get:expr, $new:expr, $range:literal) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let number: $number = $get(*self);
                number.serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let number = <$number>::deserialize(deserializer)?;
                $new(number).ok_or_else(|| D::Error::custom(format_args!("{number} is not {}", $range)))
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <$number>::json_schema(generator)
            }
        }
    };
}

fn rate_of(bits_per_second: f64) -> Option<BitRate> {
    (bits_per_second.is_finite() && bits_per_second >= 0.0).then(|| BitRate::from_bits_per_second(bits_per_second))
}

#[expect(clippy::unnecessary_wraps, reason = "the constructors of the other quantities are fallible")]
fn wall_time_of(nanoseconds: u64) -> Option<WallTime> {
    Some(WallTime::from_unix(Duration::from_nanos(nanoseconds)))
}

validated!(BitRate, f64, BitRate::bits_per_second, rate_of, "a rate: finite and not negative");
validated!(Ratio, f64, Ratio::get, Ratio::new, "a ratio: finite and not negative");
validated!(Port, u16, Port::get, Port::new, "a port: 1 to 65535");
validated!(Dscp, u8, Dscp::get, Dscp::new, "a codepoint: 0 to 63");
validated!(FlowLabel, u32, FlowLabel::get, FlowLabel::new, "a flow label: 1 to 0xFFFFF");
validated!(
    WallTime,
    u64,
    |time: WallTime| nanoseconds(time.since_unix_epoch()),
    wall_time_of,
    "nanoseconds since 1970-01-01 00:00 UTC"
);

#[cfg(feature = "schema")]
impl<T: InNanoseconds> schemars::JsonSchema for Nanoseconds<T>
where
    T::Number: schemars::JsonSchema,
{
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Nanoseconds".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::Number::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ByteCount, Mtu, PacketCount};

    #[test]
    fn quantities_are_their_numbers() {
        let all = (BitRate::from_bits_per_second(1.5e6), ByteCount::new(7), PacketCount::new(3), Mtu::new(1500));
        let json = serde_json::to_string(&all).expect("numbers");
        assert_eq!(json, "[1500000.0,7,3,1500]");
        assert_eq!(serde_json::from_str::<(BitRate, ByteCount, PacketCount, Mtu)>(&json).expect("own output"), all);
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        let refused = |result: Result<(), serde_json::Error>| result.expect_err("out of range").to_string();
        assert!(refused(serde_json::from_str::<Port>("0").map(drop)).contains("0 is not a port"));
        assert!(refused(serde_json::from_str::<BitRate>("-1").map(drop)).contains("-1 is not a rate"));
        assert!(refused(serde_json::from_str::<Ratio>("-0.5").map(drop)).contains("not a ratio"));
        assert!(refused(serde_json::from_str::<Dscp>("64").map(drop)).contains("64 is not a codepoint"));
    }

    #[test]
    fn civil_time_is_nanoseconds_since_1970() {
        let time = WallTime::from_unix(Duration::from_nanos(1_700_000_000_123_456_789));
        let json = serde_json::to_string(&time).expect("a number");
        assert_eq!(json, "1700000000123456789");
        assert_eq!(serde_json::from_str::<WallTime>(&json).expect("own output"), time);
    }
}
