//! Short figures for table columns; a hyphen for unknown ones.

use std::time::Duration;

use linerate_units::{BitRate, ByteCount, Ratio, display};

const UNKNOWN: &str = "-";

fn known<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), show)
}

/// Rate in bit/s: `9.41G`, `850k`, `0`.
pub(crate) fn rate(rate: Option<BitRate>) -> String {
    known(rate, |rate| without_unit(&display::rate(rate), "bit/s"))
}

/// Size in bytes: `1.20M`, `64k`, `0`.
pub(crate) fn size(size: Option<ByteCount>) -> String {
    known(size, |size| without_unit(&display::size(size), "B"))
}

/// Time: `117ms`, `20.4ms`, `85µs`; with `ascii`, `85us`.
pub(crate) fn time(time: Option<Duration>, ascii: bool) -> String {
    known(time, |time| {
        if time.is_zero() {
            return "0".to_owned();
        }
        let text = display::duration(time).replace(' ', "");
        if ascii { text.replace('µ', "u") } else { text }
    })
}

/// Percentage: `0.28%`, `0`; below a tenth with two decimals, so that it is as short.
pub(crate) fn percent(share: Option<Ratio>) -> String {
    known(share, |share| {
        let percent = share.percent();
        if percent == 0.0 {
            return "0".to_owned();
        }
        if percent < 0.005 {
            "<0.01%".to_owned()
        } else if percent < 0.0995 {
            format!("{percent:.2}%")
        } else {
            display::percent(share).replace(' ', "")
        }
    })
}

/// Shortens `9.41 Gbit/s` to `9.41G`.
fn without_unit(text: &str, unit: &str) -> String {
    text.strip_suffix(unit).unwrap_or(text).replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(rate(Some(BitRate::from_bits_per_second(9.41e9))), "9.41G");
        assert_eq!(rate(Some(BitRate::ZERO)), "0");
        assert_eq!(size(Some(ByteCount::new(64_000))), "64.0k");
        assert_eq!(time(Some(Duration::from_micros(85)), true), "85us");
        assert_eq!(time(Some(Duration::from_micros(20_400)), false), "20.4ms");
        assert_eq!(percent(Ratio::new(0.0028)), "0.28%");
        assert_eq!(percent(Ratio::new(0.000_765)), "0.08%");
        assert_eq!(percent(Ratio::new(0.000_02)), "<0.01%");
        assert_eq!((percent(Some(Ratio::default())), rate(None)), ("0".to_owned(), "-".to_owned()));
    }
}
