//! Bytes as hexadecimal digits, two for each.

use core::fmt::Write as _;

/// Bytes in lower-case digits: `0aff`.
#[must_use]
pub fn format(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Bytes of digits of either case; `None` for anything else.
#[must_use]
pub fn parse(text: &str) -> Option<Vec<u8>> {
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_pairs_of_digits_are_bytes() {
        assert_eq!(format(&[0x0a, 0xff]), "0aff");
        assert_eq!((parse("0aFf"), parse("")), (Some(vec![0x0a, 0xff]), Some(Vec::new())));
        for text in ["0", "0af", "+f", "0x", "g0", " 0", "\u{e9}"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn bytes_round_trip(bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            prop_assert_eq!(parse(&format(&bytes)), Some(bytes));
        }
    }
}
