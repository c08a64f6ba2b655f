//! Parsers of the arguments.

use std::time::Duration;

use linerate_units::parse::{self, QuantityParseError};
use linerate_units::{BitRate, ByteCount, Mss, Mtu, Ratio};

/// Largest MTU on Linux: that of the loopback device.
const MAX_PACKET_SIZE: u32 = 65_536;

const LOSS_FORMATS: &str =
    "expected a share in percent or as a fraction, such as 0.01%, 1/36000 or 2.8e-5 (0.01 alone could be either)";

/// Parses a rate above zero.
pub(super) fn rate(text: &str) -> Result<BitRate, String> {
    above_zero(parse::rate(text), "a rate of zero moves no data")
}

/// Parses a size above zero.
pub(super) fn size(text: &str) -> Result<ByteCount, String> {
    above_zero(parse::size(text), "the size must be above zero")
}

/// Parses a size, possibly zero.
pub(super) fn size_or_zero(text: &str) -> Result<ByteCount, String> {
    parse::size(text).map_err(expected)
}

/// Parses a time above zero.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    above_zero(parse::time(text), "a time must be above zero")
}

/// Parses a time, possibly zero.
pub(super) fn time_or_zero(text: &str) -> Result<Duration, String> {
    parse::time(text).map_err(expected)
}

fn above_zero<T: Default + PartialEq>(parsed: Result<T, QuantityParseError>, reason: &str) -> Result<T, String> {
    let value = parsed.map_err(expected)?;
    if value == T::default() { Err(reason.to_owned()) } else { Ok(value) }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn expected(error: QuantityParseError) -> String {
    format!("expected {}", error.expected())
}

/// Parses the payload of a full segment.
pub(super) fn segment(text: &str) -> Result<Mss, String> {
    packet_size(text).map(Mss::new)
}

/// Parses the size of the largest packet.
pub(super) fn mtu(text: &str) -> Result<Mtu, String> {
    packet_size(text).map(Mtu::new)
}

fn packet_size(text: &str) -> Result<u32, String> {
    u32::try_from(size(text)?.get())
        .ok()
        .filter(|bytes| *bytes <= MAX_PACKET_SIZE)
        .ok_or_else(|| format!("no packet is larger than {MAX_PACKET_SIZE} bytes"))
}

/// Parses a probability of loss, possibly zero.
pub(super) fn loss_or_zero(text: &str) -> Result<Ratio, String> {
    let loss = probability(text).ok_or(LOSS_FORMATS)?;
    if loss.get() > 1.0 { Err("more than all packets cannot be lost".to_owned()) } else { Ok(loss) }
}

/// Parses a probability of loss above zero.
pub(super) fn loss(text: &str) -> Result<Ratio, String> {
    let loss = loss_or_zero(text)?;
    if loss == Ratio::ZERO { Err("without loss there is no bound; an example is 0.01%".to_owned()) } else { Ok(loss) }
}

/// Parses a share above zero, at most all.
pub(super) fn share(text: &str) -> Result<Ratio, String> {
    let share = parse::ratio(text).map_err(expected)?;
    if share > Ratio::ZERO && share.get() <= 1.0 {
        Ok(share)
    } else {
        Err("expected more than 0%, at most 100%".into())
    }
}

/// Parses `0.01%`, `1/36000`, `2.8e-5`. A bare decimal might be a percentage; a number with an exponent is not.
fn probability(text: &str) -> Option<Ratio> {
    if let Some((part, whole)) = text.split_once('/') {
        return Ratio::of(decimal(part)?, decimal(whole)?);
    }
    if let Some((digits, exponent)) = text.split_once(['e', 'E']) {
        let exponent = exponent.strip_prefix('-')?;
        let is_number = decimal(digits).is_some() && exponent.bytes().all(|byte| byte.is_ascii_digit());
        return is_number.then(|| text.parse().ok().and_then(Ratio::new)).flatten();
    }
    if text == "0" { Some(Ratio::ZERO) } else { parse::ratio(text).ok() }
}

/// Parses digits, optionally with a decimal point.
fn decimal(text: &str) -> Option<f64> {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit())
        && text.ends_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_number.then(|| text.parse().ok()).flatten().filter(|number: &f64| number.is_finite())
}

/// Parses a number above zero without a unit.
pub(super) fn factor(text: &str) -> Result<f64, String> {
    decimal(text).filter(|number| *number > 0.0).ok_or_else(|| "expected a number above zero, such as 1.2".to_owned())
}

/// Parses a whole number above zero, optionally with an SI prefix: `10`, `1M`.
pub(super) fn count(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 1e3),
        Some((at, 'M')) => (&text[..at], 1e6),
        Some((at, 'G')) => (&text[..at], 1e9),
        _ => (text, 1.0),
    };
    decimal(digits)
        .map(|number| number * factor)
        .filter(|number| number.fract() == 0.0 && *number > 0.0 && *number < 1e18)
        .map(|number| ByteCount::from_f64(number).get())
        .ok_or_else(|| "expected a whole number above zero, such as 10 or 1M".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_in_three_forms() {
        for (text, value) in
            [("0.01%", 1e-4), ("1/36000", 1.0 / 36_000.0), ("2.8e-5", 2.8e-5), ("3E-6", 3e-6), ("100%", 1.0)]
        {
            let parsed = loss(text).expect(text).get();
            assert!((parsed - value).abs() <= value * 1e-12, "{text}: {parsed}");
        }
        for text in
            ["0.01", "1/0", "1/", "/2", "1e5", "e-5", "1e-", "-1%", "0", "0%", "101%", "2/1", "NaN", "inf", "", "1/2/3"]
        {
            assert!(loss(text).is_err(), "{text}");
        }
    }

    #[test]
    fn other_values_and_their_limits() {
        assert_eq!((count("1M"), count("1.5k")), (Ok(1_000_000), Ok(1500)));
        assert!(["1.5", "0", "", "M", "-1"].iter().all(|text| count(text).is_err()));
        assert_eq!((time("0"), segment("70000").is_err()), (Err("a time must be above zero".to_owned()), true));
        assert!(time("117").expect_err("no unit").contains("a time with its unit"));
        assert!(share("0%").is_err() && share("101%").is_err() && share("62.5%").is_ok());
    }
}
