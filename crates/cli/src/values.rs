//! Readers of the values that options take.

use std::time::Duration;

use linerate_units::{BitRate, ByteCount, Port, parse};

/// A port other than 0.
pub(crate) fn port(text: &str) -> Result<Port, String> {
    text.parse().ok().and_then(Port::new).ok_or_else(|| "a port is a number from 1 to 65535".to_owned())
}

/// Bare numbers below this many bit/s are forgotten units: `10` for 10 Mbit/s.
const MIN_BARE_RATE: f64 = 1000.0;

/// A rate in bit/s, with its SI prefix; a bare number only where it is no forgotten unit.
pub(crate) fn rate(text: &str) -> Result<BitRate, String> {
    let rate = parse::rate(text).map_err(|error| error.to_string())?;
    let is_bare = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_bare && !rate.is_zero() && rate.bits_per_second() < MIN_BARE_RATE {
        return Err(format!("{text} bit/s? add the unit: {text}k, {text}M, {text}G, or {text}bit for just that"));
    }
    Ok(rate)
}

/// A size in bytes, with its prefix.
pub(crate) fn size(text: &str) -> Result<ByteCount, String> {
    parse::size(text).map_err(|error| error.to_string())
}

/// A time with its unit; a bare number is seconds, as iperf3's options have taught everybody.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let with_unit = if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && !text.is_empty() {
        format!("{text}s")
    } else {
        text.to_owned()
    };
    parse::time(&with_unit).map_err(|error| error.to_string())
}

/// A time with its unit; a bare number is refused, as milliseconds may be meant.
pub(crate) fn delay(text: &str) -> Result<Duration, String> {
    parse::time(text).map_err(|error| error.to_string())
}
