//! Human input and human-readable output.

use std::time::Duration;

use linerate_units::{BitRate, ByteCount, Dscp, Mss, Mtu, PacketCount, Ratio, display, parse};
use proptest::prelude::*;

#[test]
fn rates_in_common_notations() {
    let table: &[(&str, f64)] = &[
        ("10G", 10e9),
        ("10g", 10e9),
        ("10Gbit/s", 10e9),
        ("10 Gbit/s", 10e9),
        ("10Gbps", 10e9),
        ("10Gbit", 10e9),
        ("10Gb/s", 10e9),
        ("1.5Mbit", 1.5e6),
        ("220k", 220e3),
        ("800kbit", 800e3),
        ("125MB/s", 1e9),
        ("1Kibit/s", 1024.0),
        ("1T", 1e12),
        ("9600", 9600.0),
        ("0", 0.0),
    ];
    for (text, bits) in table {
        assert_eq!(parse::rate(text).map(BitRate::bits_per_second), Ok(*bits), "{text}");
        assert_eq!(text.parse::<BitRate>().map(BitRate::bits_per_second), Ok(*bits), "{text}");
    }
}

#[test]
fn sizes_in_common_notations() {
    let table: &[(&str, u64)] = &[
        ("64KiB", 65_536),
        ("64kiB", 65_536),
        ("10MB", 10_000_000),
        ("6 MiB", 6_291_456),
        ("128k", 128_000),
        ("128Ki", 131_072),
        ("1500", 1500),
        ("1500B", 1500),
        ("1.5kB", 1500),
        ("1.0005kB", 1001),
        ("2GiB", 2_147_483_648),
    ];
    for (text, bytes) in table {
        assert_eq!(parse::size(text).map(ByteCount::get), Ok(*bytes), "{text}");
        assert_eq!(text.parse::<ByteCount>().map(ByteCount::get), Ok(*bytes), "{text}");
    }
}

#[test]
fn times_in_common_notations() {
    let table: &[(&str, Duration)] = &[
        ("117ms", Duration::from_millis(117)),
        ("117 ms", Duration::from_millis(117)),
        ("2s", Duration::from_secs(2)),
        ("1.5m", Duration::from_secs(90)),
        ("3min", Duration::from_secs(180)),
        ("250us", Duration::from_micros(250)),
        ("250µs", Duration::from_micros(250)),
        ("40ns", Duration::from_nanos(40)),
        ("1h", Duration::from_secs(3600)),
        ("18.5ms", Duration::from_micros(18_500)),
        ("0", Duration::ZERO),
    ];
    for (text, time) in table {
        assert_eq!(parse::time(text), Ok(*time), "{text}");
    }
}

#[test]
fn shares_in_percent() {
    for (text, share) in
        [("0.1 %", 0.001), ("0.1%", 0.001), ("0 %", 0.0), ("100 %", 1.0), ("250%", 2.5), ("1e-3 %", 1e-5)]
    {
        assert_eq!(parse::ratio(text).map(Ratio::get), Ok(share), "{text}");
    }
    for text in ["0.1", "%", "-1 %", "1 percent", "1 % ", "1  %", "NaN %", "1e-3"] {
        let message = parse::ratio(text).expect_err(text).to_string();
        assert!(message.contains("a share in percent"), "{message}");
    }
}

#[test]
fn refusals_name_the_expected_forms() {
    let nonsense = [
        "", " ", "G", "x", "1.2.3G", "1.G", ".5G", "-1", "+1", "1e", "1e+", "e9", "10 ", " 10", "10  G", "10Q", "inf",
        "NaN",
    ];
    for text in nonsense.iter().chain(&["10GB", "10MBs", "10Gbit/h", "10kk"]) {
        let message = parse::rate(text).expect_err(text).to_string();
        assert!(
            message.starts_with(&format!("cannot read '{text}': expected a rate such as 10G, 10Gbit/s")),
            "{message}"
        );
    }
    for text in nonsense.iter().chain(&["10Mb", "10Mbit", "64kb", "99999999999999999999"]) {
        let message = parse::size(text).expect_err(text).to_string();
        assert!(message.starts_with(&format!("cannot read '{text}': expected a size such as 64KiB")), "{message}");
    }
    for text in nonsense.iter().chain(&["117", "117MS", "2S", "1d", "1e3", "99999999999999999999h"]) {
        let message = parse::time(text).expect_err(text).to_string();
        assert!(
            message.starts_with(&format!("cannot read '{text}': expected a time with its unit, such as 117ms")),
            "{message}"
        );
    }
}

#[test]
fn rates_print_in_si() {
    let table: &[(f64, &str)] = &[
        (0.0, "0 bit/s"),
        (1.0, "1.00 bit/s"),
        (9.41e9, "9.41 Gbit/s"),
        (94.06e6, "94.1 Mbit/s"),
        (220e3, "220 kbit/s"),
        (999.4e3, "999 kbit/s"),
        (999.6e3, "1.00 Mbit/s"),
        (10e9, "10.0 Gbit/s"),
        (9.996e9, "10.0 Gbit/s"),
        (1e12, "1.00 Tbit/s"),
    ];
    for (bits, text) in table {
        assert_eq!(BitRate::from_bits_per_second(*bits).to_string(), *text);
    }
}

#[test]
fn sizes_print_in_si_and_in_binary() {
    let table: &[(u64, &str, &str)] = &[
        (0, "0 B", "0 B"),
        (999, "999 B", "999 B"),
        (1000, "1.00 kB", "1000 B"),
        (1024, "1.02 kB", "1.0 KiB"),
        (131_072, "131 kB", "128 KiB"),
        (6_291_456, "6.29 MB", "6.0 MiB"),
        (146_250_000, "146 MB", "139 MiB"),
        (1_048_500, "1.05 MB", "1.0 MiB"),
        (u64::MAX, "18.4 EB", "16.0 EiB"),
    ];
    for (bytes, si, binary) in table {
        assert_eq!(ByteCount::new(*bytes).to_string(), *si);
        assert_eq!(display::size_binary(ByteCount::new(*bytes)), *binary);
    }
}

#[test]
fn durations_print_in_their_unit() {
    let table: &[(u64, &str)] = &[
        (0, "0 s"),
        (40, "40 ns"),
        (999, "999 ns"),
        (1_500, "1.5 µs"),
        (9_960, "10 µs"),
        (42_000, "42 µs"),
        (999_400, "999 µs"),
        (999_600, "1.00 ms"),
        (18_500_000, "18.5 ms"),
        (117_000_000, "117 ms"),
        (999_600_000, "1.00 s"),
        (1_884_000_000, "1.88 s"),
        (59_940_000_000, "59.9 s"),
        (59_960_000_000, "1 min 0 s"),
        (90_000_000_000, "1 min 30 s"),
        (3_599_700_000_000, "1 h 0 min"),
        (7_500_000_000_000, "2 h 5 min"),
    ];
    for (nanoseconds, text) in table {
        assert_eq!(display::duration(Duration::from_nanos(*nanoseconds)), *text);
    }
}

#[test]
fn ratios_print_in_percent() {
    let table: &[(f64, &str)] = &[
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.941, "94.1 %"),
        (0.0941, "9.41 %"),
        (0.5, "50.0 %"),
        (0.0028, "0.28 %"),
        (1.0 / 36_000.0, "0.00278 %"),
        (3.1e-9, "3.10e-7 %"),
        (1.25, "125 %"),
    ];
    for (ratio, text) in table {
        assert_eq!(Ratio::new(*ratio).expect("a ratio").to_string(), *text);
    }
}

#[test]
fn numbers_of_things_and_events_have_their_form() {
    let things = |count: u64| display::counted(count, "stream");
    assert_eq!([things(0), things(1), things(2)], ["0 streams", "1 stream", "2 streams"]);
    assert_eq!(display::counted(1_usize, "new result"), "1 new result");
    let times = |count: u32| display::times(count);
    assert_eq!([times(0), times(1), times(12)], ["0 times", "once", "12 times"]);
}

#[test]
fn bare_numbers_and_names_honour_width() {
    assert_eq!(format!("{:>6}|{:<6}|{}", Mss::new(1448), Mtu::new(1500), PacketCount::new(7)), "  1448|1500  |7");
    assert_eq!(format!("{:>12}", BitRate::from_bits_per_second(1e9)), " 1.00 Gbit/s");
    assert_eq!(Dscp::new(46).expect("in range").to_string(), "ef");
    assert_eq!(Dscp::new(3).expect("in range").to_string(), "3");
    for codepoint in 0..64 {
        let dscp = Dscp::new(codepoint).expect("in range");
        assert_eq!(dscp.name().map(|name| Dscp::from_name(&name.to_uppercase())), dscp.name().map(|_| Some(dscp)));
    }
}

/// Half a unit of the third digit, the rounding error of three significant digits.
fn within_rounding(printed: f64, exact: f64) -> bool {
    (printed - exact).abs() <= exact * 0.0051
}

proptest! {
    #[test]
    fn printed_rates_are_read_back(bits in 1.0_f64..1e14) {
        let rate = BitRate::from_bits_per_second(bits);
        let back = parse::rate(&rate.to_string()).expect("a printed rate");
        prop_assert!(within_rounding(back.bits_per_second(), bits), "{} {}", bits, rate);
    }

    #[test]
    fn printed_sizes_are_read_back(bytes in 0_u64..1 << 48) {
        let size = ByteCount::new(bytes);
        let back = parse::size(&size.to_string()).expect("a printed size");
        prop_assert!(within_rounding(back.as_f64(), size.as_f64()), "{} {}", bytes, size);
        let back = parse::size(&display::size_binary(size)).expect("a printed size");
        prop_assert!((back.as_f64() - size.as_f64()).abs() <= size.as_f64() * 0.05, "{} {}", bytes, size);
    }

    #[test]
    fn printed_times_are_read_back(nanoseconds in 1_u64..59_000_000_000) {
        let time = Duration::from_nanos(nanoseconds);
        let text = display::duration(time);
        let back = parse::time(&text).expect("a printed time");
        // Microseconds below ten have two digits.
        prop_assert!((back.as_secs_f64() - time.as_secs_f64()).abs() <= time.as_secs_f64() * 0.051, "{:?} {}", time, text);
    }

    #[test]
    fn parsers_never_panic(text in "\\PC*") {
        let refused = [parse::rate(&text).err(), parse::size(&text).err(), parse::time(&text).err()];
        for error in refused.iter().flatten() {
            prop_assert_eq!(error.text(), text.as_str());
        }
    }
}
