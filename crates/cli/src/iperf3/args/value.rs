//! The text after an option, read as C's library functions read it, because iperf3 does.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use linerate_units::iperf3::{self, ParseError};
use linerate_units::{BitRate, BlockCount, ByteCount, Port};

use super::error::Refusal;

/// The value of one option; none when it takes none, or when an optional one was not given.
pub(crate) struct Value(Option<OsString>);

impl From<OsString> for Value {
    fn from(text: OsString) -> Self {
        Self(Some(text))
    }
}

impl Value {
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// The value as text; `None` when an optional one was not given.
    pub(super) fn optional_text(&self) -> Option<String> {
        self.0.as_ref().map(|text| text.to_string_lossy().into_owned())
    }

    /// The value as text. Bytes that are not UTF-8 become replacement characters.
    pub(super) fn text(&self) -> String {
        self.optional_text().unwrap_or_default()
    }

    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(self.0.clone().unwrap_or_default())
    }

    /// A whole number as `atoi` reads it: 0 when there is none.
    pub(super) fn integer(&self) -> i64 {
        decimal(&self.text())
    }

    /// A whole number as `strtol` reads it with base 0 (decimal, octal, hexadecimal), and the text after it.
    pub(super) fn prefixed_integer(&self) -> Option<(i64, String)> {
        prefixed(&self.text())
    }

    pub(super) fn size(&self) -> Result<ByteCount, ParseError> {
        iperf3::parse_size(&self.text())
    }

    pub(super) fn count(&self) -> Result<BlockCount, ParseError> {
        iperf3::parse_count(&self.text())
    }

    pub(super) fn rate(&self) -> Result<BitRate, ParseError> {
        iperf3::parse_rate(&self.text())
    }

    /// iperf3's pacing timer and connect time-out have the suffixes of sizes.
    pub(super) fn scaled_integer(&self) -> Result<u64, ParseError> {
        self.size().map(ByteCount::get)
    }

    /// A number that must be in `range`, or else `refusal`.
    pub(super) fn in_range(&self, range: std::ops::RangeInclusive<u32>, refusal: Refusal) -> Result<u32, Refusal> {
        u32::try_from(self.integer()).ok().filter(|number| range.contains(number)).ok_or(refusal)
    }

    /// A number of seconds in `range`, or else `refusal`.
    pub(super) fn seconds(&self, range: std::ops::RangeInclusive<u32>, refusal: Refusal) -> Result<Duration, Refusal> {
        self.in_range(range, refusal).map(|seconds| Duration::from_secs(seconds.into()))
    }

    /// A number of milliseconds in `range`, or else `refusal`.
    pub(super) fn milliseconds(
        &self,
        range: std::ops::RangeInclusive<u32>,
        refusal: Refusal,
    ) -> Result<Duration, Refusal> {
        self.in_range(range, refusal).map(|milliseconds| Duration::from_millis(milliseconds.into()))
    }

    pub(super) fn port(&self) -> Result<Port, Refusal> {
        u16::try_from(self.integer()).ok().and_then(Port::new).ok_or(Refusal::Port)
    }
}

/// `atoi`, except that it saturates instead of wrapping around.
pub(super) fn decimal(text: &str) -> i64 {
    let (negative, digits) = sign(text);
    whole(digits, 10).map_or(0, |(number, _)| if negative { -number } else { number })
}

/// `strtol` with base 0: the number at the start, and the rest; `None` when there is no number.
pub(super) fn prefixed(text: &str) -> Option<(i64, String)> {
    let (negative, digits) = sign(text);
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let (number, rest) = match hexadecimal.and_then(|digits| whole(digits, 16)) {
        Some(found) => found,
        None => whole(digits, if digits.starts_with('0') { 8 } else { 10 })?,
    };
    Some((if negative { -number } else { number }, rest.to_owned()))
}

fn sign(text: &str) -> (bool, &str) {
    let text = text.trim_start();
    (text.starts_with('-'), text.strip_prefix(['+', '-']).unwrap_or(text))
}

fn whole(text: &str, radix: u32) -> Option<(i64, &str)> {
    let end = text.find(|c: char| !c.is_digit(radix)).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let number = digits
        .chars()
        .filter_map(|c| c.to_digit(radix))
        .fold(0_i64, |number, digit| number.saturating_mul(radix.into()).saturating_add(digit.into()));
    (end > 0).then_some((number, rest))
}
