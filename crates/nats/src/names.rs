//! Names of people in subjects, whose tokens may have letters, digits, `-`, `_`, `=` and `/` in them.

use core::fmt::Write as _;

use crate::NatsError;

/// Longest encoded name: subjects share a line of 4096 bytes with reply addresses.
const MAX_TOKEN: usize = 1000;

/// Token of a name: what is no letter, digit, `-` or `_` becomes `=` and two hexadecimal digits.
///
/// # Errors
///
/// The name is empty or too long.
pub(crate) fn token(name: &str) -> Result<String, NatsError> {
    let mut token = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            token.push(char::from(byte));
        } else {
            let _ = write!(token, "={byte:02X}");
        }
    }
    if token.is_empty() || token.len() > MAX_TOKEN {
        let reason = "expected 1 to about 1000 characters";
        return Err(NatsError::Setting(format!("the name {name:?} cannot be part of a subject: {reason}")));
    }
    Ok(token)
}

/// Name of a token; `None` when [`token`] does not write it so.
pub(crate) fn name(token_text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(token_text.len());
    let mut rest = token_text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        if *first == b'=' {
            let digits = core::str::from_utf8(others.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &others[2..];
        } else {
            bytes.push(*first);
            rest = others;
        }
    }
    let found = String::from_utf8(bytes).ok()?;
    (token(&found).ok()? == token_text).then_some(found)
}

/// True for a name that streams and subjects may begin with.
pub(crate) fn is_fleet_name(name: &str) -> bool {
    (1..=32).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tokens_and_back() {
        for (text, expected) in [
            ("lisbon", "lisbon"),
            ("a.b", "a=2Eb"),
            ("*", "=2A"),
            (">", "=3E"),
            ("two words", "two=20words"),
            ("=41", "=3D41"),
            ("ö", "=C3=B6"),
        ] {
            assert_eq!(token(text).expect("a token"), expected);
            assert_eq!(name(expected).as_deref(), Some(text));
        }
    }

    #[test]
    fn every_character_comes_back_and_is_a_token() {
        for character in (0..=0x2FF).filter_map(char::from_u32) {
            let text = format!("x{character}y");
            let encoded = token(&text).expect("a token");
            assert!(encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_=".contains(&byte)), "{encoded}");
            assert_eq!(name(&encoded), Some(text));
        }
    }

    #[test]
    fn what_is_no_token_is_refused() {
        for text in ["=4", "=zz", "a.b", "=41", "=C3", "", "=2a"] {
            assert_eq!(name(text), None, "{text}");
        }
        assert!(token("").is_err() && token(&"x".repeat(1001)).is_err());
        assert!(
            is_fleet_name("fleet-2_a")
                && !is_fleet_name("a.b")
                && !is_fleet_name("")
                && !is_fleet_name(&"a".repeat(33))
        );
    }
}
