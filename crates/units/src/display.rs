//! Human-readable output: three significant digits, a space, the unit.
//!
//! Each function documents its format. `Display` is implemented where one format is the obvious one: SI for rates and
//! sizes, percent for ratios, the bare number for counts and segment sizes.

use core::fmt;
use core::time::Duration;

use crate::{BitRate, BlockCount, ByteCount, Dscp, Mss, Mtu, PacketCount, Ratio, SegmentCount, StreamCount};

const SI_PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
const BINARY_PREFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// A rate in SI units: `9.41 Gbit/s`, `220 kbit/s`, `0 bit/s`.
#[must_use]
pub fn rate(rate: BitRate) -> String {
    let bits = rate.bits_per_second();
    if bits == 0.0 {
        return "0 bit/s".to_owned();
    }
    let (number, prefix) = scale(bits, 1000.0, SI_PREFIXES);
    format!("{} {prefix}bit/s", three_digits(number))
}

/// Formats a rate as [`parse::rate`](crate::parse::rate) reads it, in its largest unit with at most three decimals: `20M`,
/// `1.5M`, `220k`; other rates in whole bits per second.
#[must_use]
pub fn rate_argument(rate: BitRate) -> String {
    let bits = rate.bits_per_second();
    let in_unit = |(factor, unit): (f64, &str)| {
        let text = format!("{}{unit}", bits / factor);
        let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len() - unit.len());
        (bits >= factor && decimals <= 3 && crate::parse::rate(&text) == Ok(rate)).then_some(text)
    };
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    units.into_iter().find_map(in_unit).unwrap_or_else(|| format!("{bits:.0}"))
}

/// A size in SI units (powers of 1000): `146 MB`, `1.50 kB`, `999 B`.
#[must_use]
pub fn size(size: ByteCount) -> String {
    if size.get() < 1000 {
        return format!("{} B", size.get());
    }
    let (number, prefix) = scale(size.as_f64(), 1000.0, SI_PREFIXES);
    format!("{} {prefix}B", three_digits(number))
}

/// A size in binary units (powers of 1024), with one decimal below 100: `6.0 MiB`, `128 KiB`, `1023 B`.
#[must_use]
pub fn size_binary(size: ByteCount) -> String {
    if size.get() < 1024 {
        return format!("{} B", size.get());
    }
    let (number, prefix) = scale(size.as_f64(), 1024.0, BINARY_PREFIXES);
    if number < 99.95 { format!("{number:.1} {prefix}B") } else { format!("{number:.0} {prefix}B") }
}

/// A time: `40 ns`, `42 µs`, `18.5 ms`, `1.88 s`, `1 min 30 s`, `2 h 5 min`.
#[must_use]
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if time.is_zero() {
        "0 s".to_owned()
    } else if time < Duration::from_micros(1) {
        format!("{} ns", time.as_nanos())
    } else if seconds < 9.95e-6 {
        format!("{:.1} µs", seconds * 1e6)
    } else if seconds < 999.5e-6 {
        format!("{:.0} µs", seconds * 1e6)
    } else if seconds < 0.9995 {
        format!("{} ms", three_digits(seconds * 1e3))
    } else if seconds < 59.95 {
        format!("{} s", three_digits(seconds))
    } else {
        long_duration(time)
    }
}

fn long_duration(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_millis() >= 500);
    if seconds < 3600 {
        return format!("{} min {} s", seconds / 60, seconds % 60);
    }
    let minutes = time.as_secs() / 60 + u64::from(time.as_secs() % 60 >= 30);
    format!("{} h {} min", minutes / 60, minutes % 60)
}

/// A ratio in percent: `94.1 %`, `0.28 %`, `0.00278 %`, `0 %`; below 0.0001 % in powers of ten (`3.10e-7 %`).
#[must_use]
pub fn percent(ratio: Ratio) -> String {
    let percent = ratio.percent();
    if percent == 0.0 {
        "0 %".to_owned()
    } else if percent < 0.0001 {
        format!("{percent:.2e} %")
    } else if percent < 0.995 {
        let text = format!("{percent:.*}", decimals(percent));
        format!("{} %", text.trim_end_matches('0'))
    } else {
        format!("{} %", three_digits(percent))
    }
}

/// Decimals that keep three significant digits of a number below one.
fn decimals(number: f64) -> usize {
    [0.1, 0.01, 0.001, 0.0001].iter().take_while(|limit| number < **limit).count() + 3
}

/// A number of things whose plural ends in s: `1 stream`, `0 streams`.
#[must_use]
pub fn counted<N: Copy + fmt::Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    format!("{count} {noun}{}", if count == N::from(1) { "" } else { "s" })
}

/// A number of events: `once`, `0 times`.
#[must_use]
pub fn times<N: Copy + fmt::Display + PartialEq + From<u8>>(count: N) -> String {
    if count == N::from(1) { "once".to_owned() } else { format!("{count} times") }
}

/// Divides `number` by `base` until the printed value is below it, and returns the prefix for that.
fn scale(number: f64, base: f64, prefixes: [&'static str; 7]) -> (f64, &'static str) {
    let mut scaled = number;
    let mut power = 0;
    // Rounding decides too: 999.6 k would print as "1000 k".
    while scaled >= base - 0.5 && power + 1 < prefixes.len() {
        scaled /= base;
        power += 1;
    }
    (scaled, prefixes[power])
}

/// Three significant digits of a number of at least one; the limits are where rounding would give a fourth.
fn three_digits(number: f64) -> String {
    if number < 9.995 {
        format!("{number:.2}")
    } else if number < 99.95 {
        format!("{number:.1}")
    } else {
        format!("{number:.0}")
    }
}

macro_rules! displayed {
    ($($type:ty => $show:expr),* $(,)?) => {
        $(
            impl fmt::Display for $type {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    let show: fn($type) -> String = $show;
                    f.pad(&show(*self))
                }
            }
        )*
    };
}

displayed! {
    BitRate => rate,
    ByteCount => size,
    Ratio => percent,
}

macro_rules! bare {
    ($($type:ty),* $(,)?) => {
        $(
            impl fmt::Display for $type {
                /// Writes the number alone.
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.get().fmt(f)
                }
            }
        )*
    };
}

bare! { PacketCount, SegmentCount, BlockCount, StreamCount, Mss, Mtu }

impl fmt::Display for Dscp {
    /// Writes the codepoint's name, or its number where it has none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => self.get().fmt(f),
        }
    }
}
