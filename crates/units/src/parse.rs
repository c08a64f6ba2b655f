//! Human input: a decimal number and a unit, nothing else.
//!
//! A bare prefix is SI: `128k` is 128 000, `128Ki` is 131 072. The case of the prefix does not matter, but the case of
//! the unit does, because `b` is a bit and `B` is a byte. Times must have a unit. One space before the unit is allowed.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use crate::{BitRate, ByteCount, Ratio};

/// Error for text that is not the expected quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityParseError {
    text: String,
    expected: &'static str,
}

impl QuantityParseError {
    /// Rejected text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Accepted formats, for an error message.
    #[must_use]
    pub const fn expected(&self) -> &'static str {
        self.expected
    }
}

impl fmt::Display for QuantityParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read '{}': expected {}", self.text, self.expected)
    }
}

impl core::error::Error for QuantityParseError {}

const RATE_FORMS: &str = "a rate such as 10G, 10Gbit/s, 10Gbps, 1.5Mbit or 220k (powers of 1000; Ki, Mi, Gi, Ti are powers of 1024; \
     B/s is bytes per second)";
const SIZE_FORMS: &str = "a size such as 64KiB, 6 MiB (powers of 1024), 10MB, 128k (powers of 1000) or 1500";
const TIME_FORMS: &str = "a time with its unit, such as 117ms, 2s, 1.5m, 250us, 40ns or 1h";
const RATIO_FORMS: &str = "a share in percent, such as 0.1 %, 0.1% or 100 %";

/// Parses a rate: `10G`, `10Gb`, `10Gbit/s`, `10Gbps`, `1.5Mbit`, `220k`, `1e9`, `125MB/s`.
///
/// # Errors
/// Other text, and numbers too large for a rate.
pub fn rate(text: &str) -> Result<BitRate, QuantityParseError> {
    let parsed = number_and_unit(text).and_then(|(number, unit)| {
        let (factor, unit) = prefix(unit);
        let bits = match unit {
            "" | "b" | "bit" | "bits" | "bit/s" | "bits/s" | "bps" | "b/s" => 1.0,
            "B/s" | "Bps" => 8.0,
            _ => return None,
        };
        Some(number * factor * bits)
    });
    match parsed {
        Some(bits) if bits.is_finite() => Ok(BitRate::from_bits_per_second(bits)),
        _ => Err(QuantityParseError { text: text.to_owned(), expected: RATE_FORMS }),
    }
}

/// Parses a size, rounded to whole bytes: `64KiB`, `10MB`, `6 MiB`, `128k`, `1500`.
///
/// # Errors
/// Other text (`10Mb` too: that is bits), and numbers that do not fit 64 bits.
pub fn size(text: &str) -> Result<ByteCount, QuantityParseError> {
    let parsed = number_and_unit(text).and_then(|(number, unit)| {
        let (factor, unit) = prefix(unit);
        matches!(unit, "" | "B").then_some(number * factor)
    });
    match parsed {
        // 2^64: the first double that does not fit.
        Some(bytes) if bytes < 18_446_744_073_709_551_616.0 => Ok(ByteCount::from_f64(bytes)),
        _ => Err(QuantityParseError { text: text.to_owned(), expected: SIZE_FORMS }),
    }
}

/// Parses a time, rounded to whole nanoseconds: `117ms`, `117msec` (as iproute2 prints it), `2s`, `1.5m` (minutes), `250us`, `40ns`, `1h`, `0`.
///
/// # Errors
/// Other text. A number without a unit is rejected, except zero: `--rtt 117` must not mean two minutes.
pub fn time(text: &str) -> Result<Duration, QuantityParseError> {
    let error = || QuantityParseError { text: text.to_owned(), expected: TIME_FORMS };
    let (number, unit) = number_and_unit(text).ok_or_else(error)?;
    let seconds = match unit {
        "h" | "hour" | "hours" => number * 3600.0,
        "m" | "min" => number * 60.0,
        "s" | "sec" | "secs" => number,
        "ms" | "msec" | "msecs" => number / 1e3,
        "us" | "usec" | "usecs" | "\u{b5}s" | "\u{3bc}s" => number / 1e6,
        "ns" | "nsec" | "nsecs" => number / 1e9,
        "" if number == 0.0 => 0.0,
        _ => return Err(error()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| error())
}

/// Parses a share in percent: `0.1 %`, `0.1%`, `100 %`; above 100 % too.
///
/// # Errors
/// Other text. A number without the sign is rejected: `0.1` might be a tenth or a thousandth.
pub fn ratio(text: &str) -> Result<Ratio, QuantityParseError> {
    number_and_unit(text)
        .filter(|(_, unit)| *unit == "%")
        .and_then(|(number, _)| Ratio::from_percent(number))
        .ok_or_else(|| QuantityParseError { text: text.to_owned(), expected: RATIO_FORMS })
}

impl FromStr for BitRate {
    type Err = QuantityParseError;
    /// Calls [`rate`].
    fn from_str(text: &str) -> Result<Self, QuantityParseError> {
        rate(text)
    }
}

impl FromStr for ByteCount {
    type Err = QuantityParseError;
    /// Calls [`size`].
    fn from_str(text: &str) -> Result<Self, QuantityParseError> {
        size(text)
    }
}

/// Splits `text` after its number: digits, optionally a point and more digits, optionally an exponent.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end + exponent_length(&text[end..]));
    if !number.starts_with(|c: char| c.is_ascii_digit()) || number.ends_with('.') {
        return None;
    }
    let unit = match unit.strip_prefix(' ') {
        Some("") => return None,
        Some(unit) => unit,
        None => unit,
    };
    Some((number.parse().ok()?, unit))
}

/// Length of an exponent such as `e9` or `e-3` at the start of `text`; no unit begins with one.
fn exponent_length(text: &str) -> usize {
    let Some(rest) = text.strip_prefix(['e', 'E']) else { return 0 };
    let digits = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    if count == 0 { 0 } else { text.len() - digits.len() + count }
}

/// Factor of a unit's prefix, and the unit without it.
fn prefix(unit: &str) -> (f64, &str) {
    let Some(letter) = unit.chars().next() else { return (1.0, unit) };
    let power = match letter.to_ascii_lowercase() {
        'k' => 1,
        'm' => 2,
        'g' => 3,
        't' => 4,
        _ => return (1.0, unit),
    };
    let rest = &unit[1..];
    match rest.strip_prefix('i') {
        Some(rest) => (1024_f64.powi(power), rest),
        None => (1000_f64.powi(power), rest),
    }
}
