//! Values of options, parsed as by C's library functions, as in iperf3.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use linerate_units::iperf3::{self, Iperf3NumberError};
use linerate_units::{BitRate, BlockCount, ByteCount, Port};

use super::error::ParameterRefusal;

/// Value of one option; none for an option without value, or with an omitted optional one.
pub(crate) struct ArgumentValue(Option<OsString>);

impl From<OsString> for ArgumentValue {
    fn from(text: OsString) -> Self {
        Self(Some(text))
    }
}

impl ArgumentValue {
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Value as text; `None` when an optional one was omitted.
    pub(super) fn optional_text(&self) -> Option<String> {
        self.0.as_ref().map(|text| text.to_string_lossy().into_owned())
    }

    /// Value as text. Bytes that are not UTF-8 become replacement characters.
    pub(super) fn text(&self) -> String {
        self.optional_text().unwrap_or_default()
    }

    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(self.0.clone().unwrap_or_default())
    }

    /// Whole number as from `atoi`: 0 when there is none.
    pub(super) fn integer(&self) -> i64 {
        decimal(&self.text())
    }

    /// Whole number as from `strtol` with base 0 (decimal, octal, hexadecimal), and the text after it.
    pub(super) fn prefixed_integer(&self) -> Option<(i64, String)> {
        prefixed(&self.text())
    }

    pub(super) fn size(&self) -> Result<ByteCount, Iperf3NumberError> {
        iperf3::parse_size(&self.text())
    }

    pub(super) fn count(&self) -> Result<BlockCount, Iperf3NumberError> {
        iperf3::parse_count(&self.text())
    }

    pub(super) fn rate(&self) -> Result<BitRate, Iperf3NumberError> {
        iperf3::parse_rate(&self.text())
    }

    /// Number with a size suffix, as for iperf3's pacing timer and connect time-out.
    pub(super) fn scaled_integer(&self) -> Result<u64, Iperf3NumberError> {
        self.size().map(ByteCount::get)
    }

    /// Number in `range`, or else `refusal`.
    pub(super) fn in_range(
        &self,
        range: std::ops::RangeInclusive<u32>,
        refusal: ParameterRefusal,
    ) -> Result<u32, ParameterRefusal> {
        u32::try_from(self.integer()).ok().filter(|number| range.contains(number)).ok_or(refusal)
    }

    /// Number of seconds in `range`, or else `refusal`.
    pub(super) fn seconds(
        &self,
        range: std::ops::RangeInclusive<u32>,
        refusal: ParameterRefusal,
    ) -> Result<Duration, ParameterRefusal> {
        self.in_range(range, refusal).map(|seconds| Duration::from_secs(seconds.into()))
    }

    /// Number of milliseconds in `range`, or else `refusal`.
    pub(super) fn milliseconds(
        &self,
        range: std::ops::RangeInclusive<u32>,
        refusal: ParameterRefusal,
    ) -> Result<Duration, ParameterRefusal> {
        self.in_range(range, refusal).map(|milliseconds| Duration::from_millis(milliseconds.into()))
    }

    pub(super) fn port(&self) -> Result<Port, ParameterRefusal> {
        u16::try_from(self.integer()).ok().and_then(Port::new).ok_or(ParameterRefusal::Port)
    }
}

/// Parses like `atoi`, except that it saturates instead of wrapping around.
pub(super) fn decimal(text: &str) -> i64 {
    let (negative, digits) = sign(text);
    whole(digits, 10).map_or(0, |(number, _)| if negative { -number } else { number })
}

/// Parses like `strtol` with base 0: the number at the start, and the remainder; `None` when there is no number.
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
