//! Body of the fuzz target, shared with the short deterministic run among the tests.

use core::time::Duration;

use crate::{BitRate, ByteCount, display, iperf3, parse};

/// Fuzz target: takes any bytes; panics on a violated invariant.
pub type QuantityFuzzTarget = fn(&[u8]);

/// Every target by name, as in `fuzz/fuzz_targets` and `fuzz/corpus`.
pub const TARGETS: &[(&str, QuantityFuzzTarget)] = &[("units_parse", units_parse)];

/// Half a unit of the third digit: the rounding error of printing.
const ROUNDING_ERROR: f64 = 0.0051;

/// Printed figures from here on have prefixes that the parser does not accept.
const MAX_PRINTED: f64 = 9.99e14;

/// Parses text of any kind as rate, size, time and share: rejected text is quoted, accepted values are finite, not
/// negative, and survive being printed; the same text means the same with and without an explicit unit.
///
/// # Panics
///
/// When one of these invariants is violated.
pub fn units_parse(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    rate(&text);
    size(&text);
    time(&text);
    match parse::ratio(&text) {
        Ok(ratio) => assert!(ratio.get().is_finite() && ratio.get() >= 0.0 && text.ends_with('%')),
        Err(error) => assert_eq!(error.text(), text),
    }
    if let Err(error) = iperf3::parse_size(&text) {
        assert_eq!(error.text(), text);
    }
    if let Ok(rate) = iperf3::parse_rate(&text) {
        assert!(rate.bits_per_second().is_finite());
    }
    let _ = iperf3::parse_seconds(&text);
}

fn rate(text: &str) {
    match parse::rate(text) {
        Ok(rate) => {
            let bits = rate.bits_per_second();
            assert!(bits.is_finite() && bits >= 0.0);
            assert_eq!(text.trim(), text);
            if (1.0..MAX_PRINTED).contains(&bits) {
                let printed = display::rate(rate);
                let back = parse::rate(&printed).map_or(f64::NAN, BitRate::bits_per_second);
                assert!((back - bits).abs() <= bits * ROUNDING_ERROR, "{text:?} printed as {printed:?}");
            }
            if !text.contains(['b', 'B']) {
                assert_eq!(parse::rate(&format!("{text}bit/s")), Ok(rate));
                assert_eq!(parse::rate(&format!("{text}bps")), Ok(rate));
            }
        }
        Err(error) => assert_eq!(error.text(), text),
    }
}

fn size(text: &str) {
    match parse::size(text) {
        Ok(size) => {
            assert_eq!(text.trim(), text);
            let bytes = size.as_f64();
            if bytes < MAX_PRINTED {
                let printed = display::size(size);
                let back = parse::size(&printed).map_or(f64::NAN, ByteCount::as_f64);
                assert!((back - bytes).abs() <= bytes * ROUNDING_ERROR, "{text:?} printed as {printed:?}");
            }
            if !text.ends_with('B') {
                assert_eq!(parse::size(&format!("{text}B")), Ok(size));
            }
        }
        Err(error) => assert_eq!(error.text(), text),
    }
}

fn time(text: &str) {
    match parse::time(text) {
        Ok(time) => {
            assert_eq!(text.trim(), text);
            assert!(time.is_zero() || text.ends_with(char::is_alphabetic), "{text:?} has no unit");
            // Times from a minute on are printed with two units, which the parser does not accept.
            if time < Duration::from_secs(59) {
                let printed = display::duration(time);
                let back = parse::time(&printed).unwrap_or(Duration::MAX).as_secs_f64();
                // Microseconds below ten have two digits.
                let lost = time.as_secs_f64() * 10.0 * ROUNDING_ERROR;
                assert!((back - time.as_secs_f64()).abs() <= lost, "{text:?} printed as {printed:?}");
            }
        }
        Err(error) => assert_eq!(error.text(), text),
    }
}
