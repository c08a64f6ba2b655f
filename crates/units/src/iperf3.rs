//! iperf3's two number formats, exactly as it reads and prints them.
//!
//! Sizes and counts (`-n`, `-k`, `-l`, `-w`) are scaled by powers of 1024, rates (`-b`, `--fq-rate`) by powers of 1000,
//! and both with the same letters. Printing mixes them too: bytes are divided by 1024, bits by 1000. Scripts depend on
//! these rules, so they stay here and nothing else in the workspace uses them.
//!
//! Source: iperf3's `unit_atof`, `unit_atof_rate`, `unit_atoi` and `unit_snprintf`.

use core::fmt;
use core::time::Duration;

use crate::{BitRate, BlockCount, ByteCount};

/// Error for a number, or the letter after it, that iperf3 refuses (its error 38, `IEUNITVAL`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iperf3NumberError {
    text: String,
}

impl Iperf3NumberError {
    /// Refused text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Iperf3NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid unit value or suffix: '{}'", self.text)
    }
}

impl core::error::Error for Iperf3NumberError {}

/// Parses a size: a decimal number, then optionally one of `K M G T` in either case, in powers of 1024.
///
/// Only the first character after the number is significant (`10MB` is `10M`); fractions of a byte are cut off.
///
/// # Errors
/// No number, a negative one, one that is not finite, or another character after it. iperf3 wraps negative numbers
/// around; that is the one difference.
pub fn parse_size(text: &str) -> Result<ByteCount, Iperf3NumberError> {
    scaled(text, 1024.0).map(ByteCount::from_f64)
}

/// Parses a rate in bit/s: as [`parse_size`], but in powers of 1000.
///
/// # Errors
/// As [`parse_size`].
pub fn parse_rate(text: &str) -> Result<BitRate, Iperf3NumberError> {
    scaled(text, 1000.0).map(BitRate::from_bits_per_second)
}

/// Parses a number of blocks (`-k`): as [`parse_size`], also in powers of 1024.
///
/// # Errors
/// As [`parse_size`].
pub fn parse_count(text: &str) -> Result<BlockCount, Iperf3NumberError> {
    parse_size(text).map(|size| BlockCount::new(size.get()))
}

/// Parses seconds as `atof` does (`-i`): the number at the start of `text`, zero when there is none.
///
/// `None` when it is negative, infinite or not a number.
#[must_use]
pub fn parse_seconds(text: &str) -> Option<Duration> {
    let text = text.trim_start();
    let word = text.trim_start_matches(['+', '-']).get(..3).unwrap_or_default();
    if ["inf", "nan"].iter().any(|known| word.eq_ignore_ascii_case(known)) {
        return None;
    }
    let seconds = leading_number(text).map_or(0.0, |(number, _)| number);
    Duration::try_from_secs_f64(seconds).ok()
}

fn scaled(text: &str, base: f64) -> Result<f64, Iperf3NumberError> {
    let error = || Iperf3NumberError { text: text.to_owned() };
    let (number, rest) = leading_number(text.trim_start()).ok_or_else(error)?;
    let power = match rest.chars().next().map(|letter| letter.to_ascii_lowercase()) {
        None => 0,
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        Some(_) => return Err(error()),
    };
    let value = (number * base.powi(power)).trunc();
    if value.is_finite() && value >= 0.0 { Ok(value) } else { Err(error()) }
}

/// Number that `scanf("%lf")` reads from the start of `text`, and the remaining text.
fn leading_number(text: &str) -> Option<(f64, &str)> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    let lower = unsigned.get(..2).unwrap_or_default();
    if lower.eq_ignore_ascii_case("0x") {
        let (value, rest) = leading_hexadecimal(&unsigned[2..])?;
        return Some((sign * value, rest));
    }
    let mantissa = digits(unsigned) + fraction_length(&unsigned[digits(unsigned)..]);
    if !unsigned[..mantissa].contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let end = mantissa + exponent_length(&unsigned[mantissa..]);
    let value: f64 = unsigned[..end].parse().ok()?;
    Some((sign * value, &unsigned[end..]))
}

fn leading_hexadecimal(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(text.len());
    let digits = &text[..end];
    let value = digits.chars().filter_map(|c| c.to_digit(16)).fold(0.0, |value, digit| value * 16.0 + f64::from(digit));
    (!digits.is_empty()).then_some((value, &text[end..]))
}

/// Number of decimal digits that `text` begins with.
fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}

fn fraction_length(text: &str) -> usize {
    text.strip_prefix('.').map_or(0, |rest| 1 + digits(rest))
}

fn exponent_length(text: &str) -> usize {
    let Some(rest) = text.strip_prefix(['e', 'E']) else { return 0 };
    let unsigned = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    match digits(unsigned) {
        0 => 0,
        count => 1 + (rest.len() - unsigned.len()) + count,
    }
}

/// The unit to print in (`-f`): a scale, or the largest one that fits ("adaptive").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UnitFormat {
    /// The largest unit of bits that fits; iperf3's default for rates.
    #[default]
    AdaptiveBits,
    /// `k`: 1000 bits.
    Kilobits,
    /// `m`: 1000² bits.
    Megabits,
    /// `g`: 1000³ bits.
    Gigabits,
    /// `t`: 1000⁴ bits.
    Terabits,
    /// The largest unit of bytes that fits; iperf3's form for all sizes.
    AdaptiveBytes,
    /// `K`: 1024 bytes.
    Kilobytes,
    /// `M`: 1024² bytes.
    Megabytes,
    /// `G`: 1024³ bytes.
    Gigabytes,
    /// `T`: 1024⁴ bytes.
    Terabytes,
}

impl UnitFormat {
    /// Format of a `-f` letter; `None` outside `kmgtKMGT`. The adaptive ones have no letter on the command line.
    #[must_use]
    pub const fn from_letter(letter: char) -> Option<Self> {
        Some(match letter {
            'k' => Self::Kilobits,
            'm' => Self::Megabits,
            'g' => Self::Gigabits,
            't' => Self::Terabits,
            'K' => Self::Kilobytes,
            'M' => Self::Megabytes,
            'G' => Self::Gigabytes,
            'T' => Self::Terabytes,
            _ => return None,
        })
    }

    /// True when numbers are shown in bytes and powers of 1024.
    #[must_use]
    pub const fn is_bytes(self) -> bool {
        matches!(self, Self::AdaptiveBytes | Self::Kilobytes | Self::Megabytes | Self::Gigabytes | Self::Terabytes)
    }

    /// Exponent of the base; `None` when it depends on the number.
    const fn power(self) -> Option<usize> {
        match self {
            Self::AdaptiveBits | Self::AdaptiveBytes => None,
            Self::Kilobits | Self::Kilobytes => Some(1),
            Self::Megabits | Self::Megabytes => Some(2),
            Self::Gigabits | Self::Gigabytes => Some(3),
            Self::Terabits | Self::Terabytes => Some(4),
        }
    }
}

const BYTE_LABELS: [&str; 5] = ["Byte", "KByte", "MByte", "GByte", "TByte"];
const BIT_LABELS: [&str; 5] = ["bit", "Kbit", "Mbit", "Gbit", "Tbit"];

/// A size, at least four columns wide, with its label but without the plural: `2.76 GByte`, ` 895 KByte`.
///
/// Output lines of iperf3 add "s" ("Transfer"), and always use [`UnitFormat::AdaptiveBytes`] for sizes.
#[must_use]
pub fn format_bytes(size: ByteCount, format: UnitFormat) -> String {
    format_number(size.as_f64(), format)
}

/// A rate, at least four columns wide, with its label only: `23.6 Gbit`. Output lines of iperf3 add `s/sec`.
#[must_use]
pub fn format_rate(rate: BitRate, format: UnitFormat) -> String {
    format_number(rate.bytes_per_second(), format)
}

fn format_number(bytes: f64, format: UnitFormat) -> String {
    let (number, base, labels) =
        if format.is_bytes() { (bytes, 1024.0, BYTE_LABELS) } else { (bytes * 8.0, 1000.0, BIT_LABELS) };
    let power = format.power().unwrap_or_else(|| largest_power(number, base));
    let scaled = number * reciprocal(base, power);
    let label = labels[power];
    // The limits keep four places: 9.995 would print as 10.00, and 99.95 as 100.0.
    if scaled < 9.995 {
        format!("{scaled:4.2} {label}")
    } else if scaled < 99.95 {
        format!("{scaled:4.1} {label}")
    } else {
        format!("{scaled:4.0} {label}")
    }
}

fn largest_power(number: f64, base: f64) -> usize {
    let mut rest = number;
    let mut power = 0;
    while rest >= base && power < 4 {
        rest /= base;
        power += 1;
    }
    power
}

/// `1 / base^power` by repeated division. iperf3 multiplies by this constant; dividing once could round differently.
fn reciprocal(base: f64, power: usize) -> f64 {
    (0..power).fold(1.0, |factor, _| factor / base)
}
