//! Packs samples exactly into few bytes, as base64 (RFC 4648 §4) of one of two encodings that
//! the page's script unpacks.
//!
//! * Times ascend, so each is the difference from the one before it, as an unsigned LEB128 number.
//! * Values that are all whole numbers are differences, too: 0 encodes an unknown value, else the difference's zigzag
//!   code (0, -1, 1, -2, … as 0, 1, 2, 3, …) plus one.
//! * Other values are IEEE 754 binary64 in little-endian order, with NaN for an unknown one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Bound of the whole numbers that are packed as differences, 2^51: the codes of these are below 2^53, above which not every whole
/// number is a binary64 of the page's script.
const WHOLE_BOUND: f64 = 2_251_799_813_685_248.0;

/// Packs ascending times; a time that decreases is treated as equal to the one before it.
pub(super) fn pack_times(times_ns: &[u64]) -> Value {
    let mut bytes = Vec::with_capacity(times_ns.len() * 4);
    let mut last = 0;
    for &time in times_ns {
        push_leb128(&mut bytes, u128::from(time.saturating_sub(last)));
        last = last.max(time);
    }
    Value::String(STANDARD.encode(bytes))
}

/// Packs values, as `{"whole": …}` or `{"real": …}`.
pub(super) fn pack_values(values: &[Option<f64>]) -> Value {
    let is_whole =
        |value: &f64| value.fract() == 0.0 && value.abs() < WHOLE_BOUND && !(*value == 0.0 && value.is_sign_negative());
    if values.iter().flatten().all(is_whole) {
        json!({ "whole": STANDARD.encode(encode_integers(values)) })
    } else {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.unwrap_or(f64::NAN).to_le_bytes()).collect();
        json!({ "real": STANDARD.encode(bytes) })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "whole and within 2^51")]
fn encode_integers(values: &[Option<f64>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * 3);
    let mut last = 0_i64;
    for value in values {
        let Some(value) = value else {
            bytes.push(0);
            continue;
        };
        let value = *value as i64;
        let difference = value - last;
        let zigzag = (i128::from(difference) << 1) ^ (i128::from(difference) >> 127);
        push_leb128(&mut bytes, zigzag.unsigned_abs() + 1);
        last = value;
    }
    bytes
}

/// Appends a LEB128 number: seven bits per byte, the lowest first; the highest bit means that more follow.
fn push_leb128(bytes: &mut Vec<u8>, mut number: u128) {
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or_default();
        number >>= 7;
        if number == 0 {
            return bytes.push(low);
        }
        bytes.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(text: &Value) -> Vec<u128> {
        let bytes = STANDARD.decode(text.as_str().expect("text")).expect("base64");
        let (mut numbers, mut number, mut shift) = (Vec::new(), 0_u128, 0);
        for byte in bytes {
            number |= u128::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                numbers.push(core::mem::take(&mut number));
                shift = 0;
            }
        }
        numbers
    }

    /// Unpacks as the page's script does, in its arithmetic: binary64 without bit operations.
    #[expect(clippy::cast_precision_loss, reason = "as in the script")]
    fn unpacked(packed: &Value) -> Vec<Option<f64>> {
        if let Some(real) = packed.get("real") {
            let bytes = STANDARD.decode(real.as_str().expect("text")).expect("base64");
            let value = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().expect("eight"));
            return bytes.chunks(8).map(value).map(|value| (!value.is_nan()).then_some(value)).collect();
        }
        let mut last = 0.0;
        let value = |code: u128| {
            if code == 0 {
                return None;
            }
            let zigzag = (code - 1) as f64;
            last += if zigzag % 2.0 == 0.0 { zigzag / 2.0 } else { -(zigzag + 1.0) / 2.0 };
            Some(last)
        };
        numbers(&packed["whole"]).into_iter().map(value).collect()
    }

    #[test]
    fn large_whole_values_round_trip() {
        let most = WHOLE_BOUND - 1.0;
        for (values, form) in [
            ([most, -most, most], "whole"),
            ([-most, most, -most], "whole"),
            ([WHOLE_BOUND, 0.0, 1.0], "real"),
            ([5_925_740_185_074_631.0, 0.0, 1.0], "real"),
        ] {
            let packed = pack_values(&values.map(Some));
            assert!(packed.get(form).is_some(), "{packed}");
            assert_eq!(unpacked(&packed), values.map(Some));
        }
    }

    proptest! {
        #[test]
        fn whole_values_round_trip(values in prop::collection::vec(prop::option::of(-1_000_000_000_000_i64..1_000_000_000_000), 0..60)) {
            #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
            let values: Vec<Option<f64>> = values.into_iter().map(|value| value.map(|value| value as f64)).collect();
            let packed = pack_values(&values);
            prop_assert!(packed.get("whole").is_some());
            prop_assert_eq!(unpacked(&packed), values);
        }

        #[test]
        fn any_values_round_trip(values in prop::collection::vec(prop::option::of(prop::num::f64::NORMAL | prop::num::f64::ZERO), 0..60)) {
            let bits = |values: Vec<Option<f64>>| values.into_iter().map(|value| value.map(f64::to_bits)).collect::<Vec<_>>();
            prop_assert_eq!(bits(unpacked(&pack_values(&values))), bits(values));
        }

        #[test]
        fn ascending_times_round_trip(mut times in prop::collection::vec(any::<u64>(), 0..60)) {
            times.sort_unstable();
            let mut sum = 0_u128;
            let back: Vec<u128> = numbers(&pack_times(&times)).into_iter().map(|step| { sum += step; sum }).collect();
            prop_assert_eq!(back, times.into_iter().map(u128::from).collect::<Vec<_>>());
        }
    }
}
