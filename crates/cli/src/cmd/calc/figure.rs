//! Figures of the calculators, with five significant digits.

use std::time::Duration;

use linerate_units::{BitRate, ByteCount, Ratio, display};

const SI: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Significant digits of an answer: enough to distinguish 2473 from 2475 Mbit/s, and few enough to read.
const ANSWER_DIGITS: i32 = 5;

/// Smallest size shown in units other than bytes: smaller ones are packet sizes.
pub(super) const EXACT_BYTES_BELOW: u64 = 10_000;

/// Rate such as `10 Gbit/s`, `349.52 Mbit/s`.
pub(super) fn rate(rate: BitRate) -> String {
    let (number, prefix) = scaled(rate.bits_per_second(), 1000.0, &SI);
    format!("{} {prefix}bit/s", significant(number))
}

/// Rate in bytes, such as `1.25 GB/s`.
pub(super) fn rate_in_bytes(rate: BitRate) -> String {
    let (number, prefix) = scaled(rate.bytes_per_second(), 1000.0, &SI);
    format!("{} {prefix}B/s", significant(number))
}

/// Size by powers of 1000, such as `146.25 MB`; packet sizes to the byte: `1448 B`.
pub(super) fn size(size: ByteCount) -> String {
    if size.get() < EXACT_BYTES_BELOW {
        return format!("{size} B", size = size.get());
    }
    let (number, prefix) = scaled(size.as_f64(), 1000.0, &SI);
    format!("{} {prefix}B", significant(number))
}

/// Size by powers of 1024, such as `139.47 MiB`.
pub(super) fn size_binary(size: ByteCount) -> String {
    let (number, prefix) = scaled(size.as_f64(), 1024.0, &BINARY);
    format!("{} {prefix}B", significant(number))
}

/// Time such as `117 ms`, `4.295 s`, `54.545 ms`, `34 µs`; from a minute on as in `display`.
pub(super) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if time.is_zero() {
        "0 s".to_owned()
    } else if seconds < 999.995e-9 {
        format!("{} ns", time.as_nanos())
    } else if seconds < 999.995e-6 {
        format!("{} µs", significant(seconds * 1e6))
    } else if seconds < 0.999_995 {
        format!("{} ms", significant(seconds * 1e3))
    } else if seconds < 59.9995 {
        format!("{} s", significant(seconds))
    } else if seconds < 2.0 * 86_400.0 {
        display::duration(time)
    } else {
        format!("{} days", significant(seconds / 86_400.0))
    }
}

/// Percentage such as `0.0041866 %`, `94.148 %`.
pub(super) fn percent(ratio: Ratio) -> String {
    let percent = ratio.percent();
    if percent == 0.0 || percent >= 1e-4 { format!("{} %", significant(percent)) } else { format!("{percent:.3e} %") }
}

/// Packets per lost packet, such as `1 in 23 885`; `None` for no loss and for more than half.
pub(super) fn one_in(loss: Ratio) -> Option<String> {
    (loss > Ratio::ZERO && loss.get() <= 0.5)
        .then(|| format!("1 in {}", grouped(ByteCount::from_f64(loss.get().recip()).get())))
}

/// Number in groups of three digits: `146 250 000`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Number without a unit: `81 274`, `1.5`, `13.302`.
pub(super) fn number(number: f64) -> String {
    if number >= 1e5 || (number >= 1e4 && number.fract() == 0.0) {
        grouped(ByteCount::from_f64(number).get())
    } else {
        significant(number)
    }
}

/// Number with five significant digits, without trailing zeros.
fn significant(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    // The next power where rounding would add a digit.
    let almost = 1.0 - 0.5 * 10_f64.powi(-ANSWER_DIGITS);
    let above = (1..40).take_while(|power| number >= 10_f64.powi(*power) * almost).count();
    let below = (0..40).take_while(|power| number < 10_f64.powi(-power) * almost).count();
    let before = i32::try_from(above).unwrap_or(0) - i32::try_from(below).unwrap_or(0) + 1;
    let decimals = usize::try_from(ANSWER_DIGITS - before).unwrap_or(0);
    without_zeros(&format!("{number:.decimals$}")).to_owned()
}

/// Removes trailing zeros from the decimals.
fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Number below `base`, with its prefix.
fn scaled(number: f64, base: f64, prefixes: &[&'static str]) -> (f64, &'static str) {
    let mut scaled = number;
    let mut power = 0;
    while scaled >= base * 0.999_995 && power + 1 < prefixes.len() {
        scaled /= base;
        power += 1;
    }
    (scaled, prefixes[power])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_digits_and_no_more() {
        for (value, text) in [
            (0.0, "0"),
            (10.0, "10"),
            (349.52, "349.52"),
            (2.532_406, "2.5324"),
            (99_999.6, "100000"),
            (0.041_866, "0.041866"),
            (0.999_999_9, "1"),
            (146.25, "146.25"),
            (1.0, "1"),
            (54.545_454, "54.545"),
        ] {
            assert_eq!(significant(value), text, "{value}");
        }
        assert_eq!(rate(BitRate::from_bits_per_second(999.999_9e6)), "1 Gbit/s");
        assert_eq!(size_binary(ByteCount::new(146_250_000)), "139.47 MiB");
        assert_eq!(grouped(146_250_000), "146 250 000");
        assert_eq!(number(81_274.0), "81 274");
        assert_eq!(one_in(Ratio::new(1.0 / 36_000.0).unwrap_or_default()).as_deref(), Some("1 in 36 000"));
        assert_eq!(one_in(Ratio::ZERO), None);
        assert_eq!(percent(Ratio::new(3.1e-9).unwrap_or_default()), "3.100e-7 %");
    }

    #[test]
    fn times_from_nanoseconds_to_days() {
        for (nanoseconds, text) in [
            (0, "0 s"),
            (40, "40 ns"),
            (12_000, "12 µs"),
            (1_211_200, "1.2112 ms"),
            (54_545_455, "54.545 ms"),
            (117_000_000, "117 ms"),
            (1_000_000_000, "1 s"),
            (4_294_967_296, "4.295 s"),
            (90_000_000_000, "1 min 30 s"),
            (864_000_000_000_000, "10 days"),
        ] {
            let duration = Duration::from_nanos(nanoseconds);
            assert_eq!(time(duration), text);
        }
    }
}
