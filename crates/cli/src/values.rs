//! Readers of the values that options take.

use std::time::Duration;

use linerate_units::{BitRate, ByteCount, Port, parse};
use linerate_wire::parameters::MAX_TIME;

/// A port other than 0.
pub(crate) fn port(text: &str) -> Result<Port, String> {
    text.parse().ok().and_then(Port::new).ok_or_else(|| "a port is a number from 1 to 65535".to_owned())
}

/// Bare numbers below this many bit/s are forgotten units: `10` for 10 Mbit/s.
const MIN_BARE_RATE: f64 = 1000.0;

/// A rate in bit/s, with its SI prefix; a bare number only where it is no forgotten unit.
pub(crate) fn rate(text: &str) -> Result<BitRate, String> {
    let rate = parse::rate(text).map_err(|error| error.to_string())?;
    if is_bare(text) && !rate.is_zero() && rate.bits_per_second() < MIN_BARE_RATE {
        return Err(format!("{text} bit/s? add the unit: {text}k, {text}M, {text}G, or {text}bit for just that"));
    }
    Ok(rate)
}

/// Bare numbers below this many bytes are forgotten units: `64` for 64 KiB.
const MIN_BARE_SIZE: ByteCount = ByteCount::new(500);

/// A size in bytes, with its prefix; a bare number only where it is no forgotten unit.
pub(crate) fn size(text: &str) -> Result<ByteCount, String> {
    let size = parse::size(text).map_err(|error| error.to_string())?;
    if is_bare(text) && !size.is_zero() && size < MIN_BARE_SIZE {
        return Err(format!("{text} bytes? add the unit: {text}k, {text}KiB, {text}M, or {text}B for just that"));
    }
    Ok(size)
}

fn is_bare(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// A time with its unit; a bare number is seconds, as iperf3's options have taught everybody.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let with_unit = if is_bare(text) { format!("{text}s") } else { text.to_owned() };
    parse::time(&with_unit).map_err(|error| error.to_string())
}

/// The time of a transfer: a duration that iperf3's protocol, which has whole seconds, can end after.
pub(crate) fn transfer_time(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    let allowed = Duration::from_secs(1)..=MAX_TIME;
    if allowed.contains(&time) { Ok(time) } else { Err("the time of a transfer is 1s to 86400s (24h)".to_owned()) }
}

/// A time with its unit; a bare number is refused, as milliseconds may be meant.
pub(crate) fn delay(text: &str) -> Result<Duration, String> {
    parse::time(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_numbers_are_refused_where_a_unit_was_forgotten() {
        for (text, is_taken) in [("10", false), ("999", false), ("10k", true), ("10bit", true), ("1000000", true)] {
            assert_eq!(rate(text).is_ok(), is_taken, "{text}");
        }
        for (text, is_taken) in [("64", false), ("64B", true), ("64k", true), ("1500", true), ("0", true)] {
            assert_eq!(size(text).is_ok(), is_taken, "{text}");
        }
        assert_eq!(duration("10"), Ok(Duration::from_secs(10)));
        assert!(delay("10").is_err_and(|text| text.contains("unit")));
    }

    #[test]
    fn a_transfer_ends() {
        for (text, is_taken) in
            [("1", true), ("1.5s", true), ("24h", true), ("0", false), ("0.9s", false), ("25h", false)]
        {
            assert_eq!(transfer_time(text).is_ok(), is_taken, "{text}");
        }
        assert!(transfer_time("0").is_err_and(|text| text.contains("1s to 86400s")));
    }

    #[test]
    fn units_are_read_as_people_write_them() {
        let gigabit = BitRate::from_bits_per_second(1e9);
        for text in ["1e9", "1G", "1Gb", "1Gbit", "1Gbit/s", "1Gbps", "1000M", "1 Gbit/s"] {
            assert_eq!(rate(text), Ok(gigabit), "{text}");
        }
        for text in ["117ms", "117msec", "0.117s", "117000us", "117 ms", "117000usec"] {
            assert_eq!(delay(text), Ok(Duration::from_millis(117)), "{text}");
        }
    }
}
