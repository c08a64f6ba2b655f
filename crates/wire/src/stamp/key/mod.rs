//! The key of the authenticated mode.

#[cfg(not(feature = "auth"))]
mod disabled;
#[cfg(feature = "auth")]
mod enabled;

#[cfg(not(feature = "auth"))]
pub use disabled::HmacKey;
#[cfg(feature = "auth")]
pub use enabled::HmacKey;

/// Bytes of an HMAC-SHA-256 truncated to 128 bits (RFC 4868 §2.6, RFC 8762 §4.4).
pub(super) const HMAC_LENGTH: usize = 16;

/// A key that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HmacKeyError {
    /// This program was built without the feature `auth`.
    #[error("this linerate was built without authentication: build it with the feature `auth`")]
    NotBuilt,
    /// The key is empty.
    #[error("the key is empty: create one with `openssl rand -hex 32 > FILE`, and use the same file on both hosts")]
    Empty,
}

/// Bytes of a key file: hexadecimal digits, ignoring white space, are decoded; any other content is the raw key without
/// a trailing newline.
#[cfg(feature = "auth")]
fn key_bytes(file: &[u8]) -> Vec<u8> {
    decode_hexadecimal(file).unwrap_or_else(|| {
        let text = file.strip_suffix(b"\n").unwrap_or(file);
        text.strip_suffix(b"\r").unwrap_or(text).to_vec()
    })
}

#[cfg(feature = "auth")]
fn decode_hexadecimal(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let digits: Vec<u8> = text.iter().filter(|byte| !byte.is_ascii_whitespace()).map(digit).collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}
