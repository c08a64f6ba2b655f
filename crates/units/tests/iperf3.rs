//! iperf3's numbers: the tables are from its source's rules and from captured output.

use std::time::Duration;

use linerate_units::iperf3::{
    UnitFormat, format_bytes, format_rate, parse_count, parse_rate, parse_seconds, parse_size,
};
use linerate_units::{BitRate, ByteCount};
use proptest::prelude::*;

#[test]
fn sizes_are_powers_of_1024() {
    let table: &[(&str, u64)] = &[
        ("0", 0),
        ("1460", 1460),
        ("128K", 131_072),
        ("128k", 131_072),
        ("1M", 1_048_576),
        ("1.5M", 1_572_864),
        (".5m", 524_288),
        ("2g", 2_147_483_648),
        ("1T", 1_099_511_627_776),
        ("10MB", 10_485_760),
        ("10Mxyz", 10_485_760),
        ("1e3", 1000),
        ("1e3K", 1_024_000),
        ("1E+2k", 102_400),
        ("0x10", 16),
        ("0x10K", 16_384),
        ("+7", 7),
        (" 7", 7),
        ("1.9", 1),
        ("1.", 1),
        ("-0.5", 0),
        ("1e30", u64::MAX),
    ];
    for (text, bytes) in table {
        assert_eq!(parse_size(text).map(ByteCount::get), Ok(*bytes), "{text}");
        assert_eq!(parse_count(text).map(linerate_units::BlockCount::get), Ok(*bytes), "{text}");
    }
}

#[test]
fn rates_are_powers_of_1000() {
    let table: &[(&str, f64)] = &[
        ("10M", 1e7),
        ("10m", 1e7),
        ("10Mbit", 1e7),
        ("1G", 1e9),
        ("2.5g", 2.5e9),
        ("1T", 1e12),
        ("220k", 220e3),
        ("1048576", 1_048_576.0),
        ("0", 0.0),
        ("0.5", 0.0),
    ];
    for (text, bits) in table {
        assert_eq!(parse_rate(text).map(BitRate::bits_per_second), Ok(*bits), "{text}");
    }
}

#[test]
fn seconds_are_read_as_atof_does() {
    let table: &[(&str, Option<f64>)] = &[
        ("1", Some(1.0)),
        ("0.5", Some(0.5)),
        ("2x", Some(2.0)),
        ("1e1", Some(10.0)),
        ("x", Some(0.0)),
        ("", Some(0.0)),
        ("-1", None),
        ("1e999", None),
        ("inf", None),
        ("-NaN", None),
    ];
    for (text, seconds) in table {
        assert_eq!(parse_seconds(text), seconds.map(Duration::from_secs_f64), "{text}");
    }
}

#[test]
fn other_letters_are_error_38() {
    for text in
        ["", "x", "K", ".", "-", "10x", "10b", "10 K", "1ex", "0x", "--5", "-5", "-1K", "nan", "inf", "1e999", "10µ"]
    {
        let message = format!("invalid unit value or suffix: '{text}'");
        assert_eq!(parse_size(text).expect_err(text).to_string(), message);
        assert_eq!(parse_rate(text).expect_err(text).text(), text);
    }
}

#[test]
fn sizes_print_as_in_captured_output() {
    // Datagrams of 32768 bytes, as many as the captured lines say.
    let table: &[(u64, &str)] = &[
        (39 * 32768, "1.22 MByte"),
        (78 * 32768, "2.44 MByte"),
        (38 * 32768, "1.19 MByte"),
        (76 * 32768, "2.38 MByte"),
        (77 * 32768, "2.41 MByte"),
        (154 * 32768, "4.81 MByte"),
        (4 * 32768, " 128 KByte"),
        (5 * 32768, " 160 KByte"),
        (9 * 32768, " 288 KByte"),
        (18 * 32768, " 576 KByte"),
        // Edges of the widths; 1.125 and 12.25 lie exactly between two texts and go to the even one, as in C.
        (0, "0.00 Byte"),
        (9, "9.00 Byte"),
        (10, "10.0 Byte"),
        (100, " 100 Byte"),
        (1000, "1000 Byte"),
        (1023, "1023 Byte"),
        (1024, "1.00 KByte"),
        (1152, "1.12 KByte"),
        (12_544, "12.2 KByte"),
        (10_229, "9.99 KByte"),
        (10_235, "10.0 KByte"),
        (102_348, "99.9 KByte"),
        (102_349, " 100 KByte"),
        (1_047_552, "1023 KByte"),
        (1_048_575, "1024 KByte"),
        (1_048_576, "1.00 MByte"),
        (5 << 40, "5.00 TByte"),
        (5000 << 40, "5000 TByte"),
    ];
    for (bytes, text) in table {
        assert_eq!(format_bytes(ByteCount::new(*bytes), UnitFormat::AdaptiveBytes), *text, "{bytes}");
    }
}

#[test]
fn rates_print_as_in_captured_output() {
    let second = Duration::from_secs(1);
    let two = Duration::from_secs(2);
    let table: &[(u64, Duration, &str)] = &[
        (4 * 32768, second, "1.05 Mbit"),
        (5 * 32768, second, "1.31 Mbit"),
        (8 * 32768, second, "2.10 Mbit"),
        (10 * 32768, second, "2.62 Mbit"),
        (9 * 32768, two, "1.18 Mbit"),
        (18 * 32768, two, "2.36 Mbit"),
        (39 * 32768, second, "10.2 Mbit"),
        (154 * 32768, two, "20.2 Mbit"),
        (0, second, "0.00 bit"),
        (125, second, "1.00 Kbit"),
        (124, second, " 992 bit"),
        (1_176_250_000, second, "9.41 Gbit"),
    ];
    for (bytes, time, text) in table {
        assert_eq!(format_rate(ByteCount::new(*bytes) / *time, UnitFormat::AdaptiveBits), *text, "{bytes} {time:?}");
    }
}

#[test]
fn chosen_formats() {
    let rate = BitRate::from_bits_per_second(23.6e9);
    let table = [
        (None, "23.6 Gbit"),
        (Some('k'), "23600000 Kbit"),
        (Some('m'), "23600 Mbit"),
        (Some('g'), "23.6 Gbit"),
        (Some('t'), "0.02 Tbit"),
        (Some('K'), "2880859 KByte"),
        (Some('M'), "2813 MByte"),
        (Some('G'), "2.75 GByte"),
        (Some('T'), "0.00 TByte"),
    ];
    for (letter, text) in table {
        let format = letter.map_or(Some(UnitFormat::default()), UnitFormat::from_letter).expect("a letter of the set");
        assert_eq!(format_rate(rate, format), text, "{letter:?}");
    }
    for letter in ['a', 'A', 'b', 'x', ' '] {
        assert_eq!(UnitFormat::from_letter(letter), None);
    }
}

proptest! {
    #[test]
    fn whole_numbers_are_read_back(bytes in 0_u64..1 << 53) {
        prop_assert_eq!(parse_size(&bytes.to_string()), Ok(ByteCount::new(bytes)));
    }

    #[test]
    fn parsing_never_panics(text in "\\PC*") {
        if let Err(error) = parse_size(&text) {
            prop_assert_eq!(error.text(), text.as_str());
        }
    }

    #[test]
    fn printed_sizes_read_back_within_rounding(bytes in 0_u64..1 << 50) {
        let printed = format_bytes(ByteCount::new(bytes), UnitFormat::AdaptiveBytes);
        // "2.76 GByte" becomes "2.76G", which is what a person would type after -n.
        let text: String = printed.replace([' ', 'B'], "").replace("yte", "");
        let back = parse_size(&text).expect("a printed size").as_f64();
        let bytes = ByteCount::new(bytes).as_f64();
        prop_assert!((back - bytes).abs() <= 0.0051 * bytes + 1.0, "{} {} {}", bytes, printed, back);
    }
}
