//! Laws of parsing quantities: each text is composed of a number and a unit, and must mean their product.

use std::time::Duration;

use linerate_units::{BitRate, ByteCount, Ratio, parse};
use proptest::prelude::*;
use proptest::sample::select;

const PREFIXES: [(&str, f64); 13] = [
    ("", 1.0),
    ("k", 1e3),
    ("K", 1e3),
    ("M", 1e6),
    ("m", 1e6),
    ("G", 1e9),
    ("g", 1e9),
    ("T", 1e12),
    ("Ki", 1024.0),
    ("ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
];

const RATE_UNITS: [(&str, f64); 6] =
    [("", 1.0), ("bit", 1.0), ("bit/s", 1.0), ("bps", 1.0), ("b/s", 1.0), ("B/s", 8.0)];

/// Nanoseconds of each unit of time.
const TIME_UNITS: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("min", 60e9), ("h", 3600e9)];

fn close(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= expected.abs() * 1e-12
}

/// A whole number of thousandths as a person writes it, perhaps with zeros at the end.
fn decimal(thousandths: u32, zeros: bool) -> String {
    let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    if zeros { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

fn number() -> impl Strategy<Value = (String, f64)> {
    (0_u32..100_000_000, any::<bool>())
        .prop_map(|(thousandths, zeros)| (decimal(thousandths, zeros), f64::from(thousandths) / 1000.0))
}

proptest! {
    #[test]
    fn a_rate_is_its_number_times_its_unit(
        (text, value) in number(), (prefix, factor) in select(&PREFIXES[..]), (unit, bits) in select(&RATE_UNITS[..]), space: bool,
    ) {
        let gap = if space && !(prefix.is_empty() && unit.is_empty()) { " " } else { "" };
        let rate = parse::rate(&format!("{text}{gap}{prefix}{unit}")).map(BitRate::bits_per_second);
        prop_assert!(rate.as_ref().is_ok_and(|rate| close(*rate, value * factor * bits)), "{:?}", rate);
    }

    #[test]
    fn a_size_is_its_number_times_its_unit_in_whole_bytes(
        (text, value) in number(), (prefix, factor) in select(&PREFIXES[..]), unit in select(&["", "B"][..]),
    ) {
        let size = parse::size(&format!("{text}{prefix}{unit}")).map(ByteCount::as_f64);
        prop_assert!(size.as_ref().is_ok_and(|size| (size - value * factor).abs() <= 0.5 + value * factor * 1e-12), "{:?}", size);
    }

    #[test]
    fn a_time_is_its_number_times_its_unit((text, value) in number(), (unit, nanoseconds) in select(&TIME_UNITS[..])) {
        let time = parse::time(&format!("{text}{unit}")).map(|time| time.as_secs_f64() * 1e9);
        prop_assert!(time.as_ref().is_ok_and(|time| (time - value * nanoseconds).abs() <= 0.51 + value * nanoseconds * 1e-12), "{:?}", time);
    }

    #[test]
    fn a_share_is_its_number_of_percent((text, value) in number(), space: bool) {
        let share = parse::ratio(&format!("{text}{}%", if space { " " } else { "" })).map(Ratio::get);
        prop_assert!(share.as_ref().is_ok_and(|share| close(*share, value / 100.0)), "{:?}", share);
    }

    #[test]
    fn a_rate_is_no_size_and_a_size_no_time((text, _) in number(), (prefix, _) in select(&PREFIXES[..])) {
        for unit in ["bit", "bit/s", "bps", "b/s", "B/s"] {
            let rate = format!("{text}{prefix}{unit}");
            prop_assert!(parse::size(&rate).is_err());
        }
        let size = format!("{text}{prefix}B");
        prop_assert!(parse::rate(&size).is_err() && parse::time(&size).is_err() && parse::ratio(&size).is_err());
    }

    #[test]
    fn nothing_may_surround_a_quantity((text, _) in number(), before in select(&["-", "+", " ", "x", "."][..])) {
        for unit in ["M", "Mbit/s", "MiB", "ms", "%"] {
            let bad = format!("{before}{text}{unit}");
            prop_assert!(parse::rate(&bad).is_err() && parse::size(&bad).is_err(), "{}", bad);
            prop_assert!(parse::time(&bad).is_err() && parse::ratio(&bad).is_err(), "{}", bad);
            let bad = format!("{text}{unit} ");
            prop_assert!(parse::rate(&bad).is_err() && parse::size(&bad).is_err(), "{}", bad);
            prop_assert!(parse::time(&bad).is_err() && parse::ratio(&bad).is_err(), "{}", bad);
        }
    }

    #[test]
    fn a_time_without_a_unit_is_only_nothing(thousandths in 0_u32..100_000_000) {
        let time = parse::time(&decimal(thousandths, true));
        prop_assert_eq!(time.ok(), (thousandths == 0).then_some(Duration::ZERO));
    }
}
