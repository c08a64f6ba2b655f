//! Figures as a calculator shows them: five significant digits, and words that are read back as the same quantity.

use std::time::Duration;

use linerate_units::{BitRate, ByteCount, Ratio, display, parse};

const SI: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Significant digits of an answer: enough to tell 2473 from 2475 Mbit/s, and few enough to be read.
const DIGITS: i32 = 5;

/// Below this a size is that of a packet, and shown to the byte alone.
pub(super) const SMALL: u64 = 10_000;

/// `10 Gbit/s`, `349.52 Mbit/s`.
pub(super) fn rate(rate: BitRate) -> String {
    let (number, prefix) = scaled(rate.bits_per_second(), 1000.0, &SI);
    format!("{} {prefix}bit/s", significant(number))
}

/// The same in bytes: `1.25 GB/s`.
pub(super) fn rate_in_bytes(rate: BitRate) -> String {
    let (number, prefix) = scaled(rate.bytes_per_second(), 1000.0, &SI);
    format!("{} {prefix}B/s", significant(number))
}

/// By powers of 1000: `146.25 MB`; sizes of packets to the byte: `1448 B`.
pub(super) fn size(size: ByteCount) -> String {
    if size.get() < SMALL {
        return format!("{size} B", size = size.get());
    }
    let (number, prefix) = scaled(size.as_f64(), 1000.0, &SI);
    format!("{} {prefix}B", significant(number))
}

/// By powers of 1024: `139.47 MiB`.
pub(super) fn size_binary(size: ByteCount) -> String {
    let (number, prefix) = scaled(size.as_f64(), 1024.0, &BINARY);
    format!("{} {prefix}B", significant(number))
}

/// `117 ms`, `4.295 s`, `54.545 ms`, `34 µs`; from a minute on as `display` has it.
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

/// `0.0041866 %`, `94.148 %`.
pub(super) fn percent(ratio: Ratio) -> String {
    let percent = ratio.percent();
    if percent == 0.0 || percent >= 1e-4 { format!("{} %", significant(percent)) } else { format!("{percent:.3e} %") }
}

/// How many of which one is lost: `1 in 23 885`; nothing for no loss and for more than half.
pub(super) fn one_in(loss: Ratio) -> Option<String> {
    (loss > Ratio::ZERO && loss.get() <= 0.5)
        .then(|| format!("1 in {}", grouped(ByteCount::from_f64(loss.get().recip()).get())))
}

/// Groups of three digits: `146 250 000`.
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

/// A bare number: `81 274`, `1.5`, `13.302`.
pub(super) fn number(number: f64) -> String {
    if number >= 1e5 || (number >= 1e4 && number.fract() == 0.0) {
        grouped(ByteCount::from_f64(number).get())
    } else {
        significant(number)
    }
}

/// `number` with five significant digits, without zeros at the end.
pub(super) fn significant(number: f64) -> String {
    to_digits(number, DIGITS)
}

fn to_digits(number: f64, digits: i32) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    // One power up where rounding would give one more digit.
    let almost = 1.0 - 0.5 * 10_f64.powi(-digits);
    let above = (1..40).take_while(|power| number >= 10_f64.powi(*power) * almost).count();
    let below = (0..40).take_while(|power| number < 10_f64.powi(-power) * almost).count();
    let before = i32::try_from(above).unwrap_or(0) - i32::try_from(below).unwrap_or(0) + 1;
    let decimals = usize::try_from(digits - before).unwrap_or(0);
    without_zeros(&format!("{number:.decimals$}")).to_owned()
}

/// Without zeros at the end of the decimals.
pub(super) fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// `number` below `base`, and the prefix for that.
fn scaled(number: f64, base: f64, prefixes: &[&'static str]) -> (f64, &'static str) {
    let mut scaled = number;
    let mut power = 0;
    while scaled >= base * 0.999_995 && power + 1 < prefixes.len() {
        scaled /= base;
        power += 1;
    }
    (scaled, prefixes[power])
}

/// Significant digits of rates and times in words: more than anybody measures.
const WORD_DIGITS: i32 = 6;

/// A rate as a word, to six digits: `10G`, `14.4597G`.
pub(super) fn rate_word(rate: BitRate) -> String {
    let (number, prefix) = scaled(rate.bits_per_second(), 1000.0, &SI[..5]);
    let unit = if prefix.is_empty() { "bit/s" } else { prefix };
    format!("{}{unit}", to_digits(number, WORD_DIGITS))
}

/// A size as a word, to the byte: `146.25MB`, `6MiB`.
pub(super) fn size_word(size: ByteCount) -> String {
    let bytes = size.get();
    if bytes < SMALL {
        return format!("{bytes}B");
    }
    let exact = |word: &String| parse::size(word) == Ok(size);
    let decimal = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")].into_iter().flat_map(|(unit, name)| {
        (0..=6_usize).map(move |decimals| format!("{:.decimals$}{name}", size.as_f64() / unit))
    });
    let binary =
        [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")].map(|(bits, name)| format!("{}{name}", bytes >> bits));
    decimal.chain(binary).filter(exact).min_by_key(String::len).unwrap_or_else(|| format!("{bytes}B"))
}

/// A time as a word, to six digits: `117ms`.
pub(super) fn time_word(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let (number, unit) = [(1.0, "s"), (1e3, "ms"), (1e6, "us")]
        .into_iter()
        .find(|(factor, _)| seconds * factor >= 1.0 - 1e-9)
        .map_or((seconds * 1e9, "ns"), |(factor, unit)| (seconds * factor, unit));
    format!("{}{unit}", to_digits(number, WORD_DIGITS))
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
        for (nanoseconds, text, word) in [
            (0, "0 s", "0ns"),
            (40, "40 ns", "40ns"),
            (12_000, "12 µs", "12us"),
            (1_211_200, "1.2112 ms", "1.2112ms"),
            (54_545_455, "54.545 ms", "54.5455ms"),
            (117_000_000, "117 ms", "117ms"),
            (1_000_000_000, "1 s", "1s"),
            (4_294_967_296, "4.295 s", "4.29497s"),
            (90_000_000_000, "1 min 30 s", "90s"),
            (864_000_000_000_000, "10 days", "864000s"),
        ] {
            let duration = Duration::from_nanos(nanoseconds);
            assert_eq!((time(duration).as_str(), time_word(duration).as_str()), (text, word));
        }
    }

    #[test]
    fn words_are_read_back_as_the_same() {
        let mut number = 1_u64;
        for step in 1..2000_u64 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step);
            let bytes = ByteCount::new(number >> (step % 60).max(12));
            assert_eq!(parse::size(&size_word(bytes)), Ok(bytes));
            let rate = BitRate::from_bits_per_second(bytes.as_f64());
            let word = rate_word(rate);
            let back = parse::rate(&word).expect(&word).bits_per_second();
            assert!((back - rate.bits_per_second()).abs() <= 5.1e-6 * back, "{word} and {rate:?}");
            let time = Duration::from_nanos(number >> (step % 60).max(4));
            let word = time_word(time);
            let back = parse::time(&word).expect(&word).as_secs_f64();
            assert!((back - time.as_secs_f64()).abs() <= 5.1e-6 * back + 1e-9, "{word} and {time:?}");
        }
        assert_eq!(rate_word(BitRate::from_bits_per_second(10e9)), "10G");
        assert_eq!(rate_word(BitRate::from_bits_per_second(14.459_723_23e9)), "14.4597G");
        assert_eq!(size_word(ByteCount::new(146_250_000)), "146.25MB");
        assert_eq!(size_word(ByteCount::from_mebibytes(6)), "6MiB");
        assert_eq!(size_word(ByteCount::new(1448)), "1448B");
    }
}
