use core::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};
use linerate_units::ByteCount;

use super::{HMAC_LENGTH, HmacKeyError, key_bytes};

/// A shared key for HMAC-SHA-256, truncated to 128 bits (RFC 8762 §4.4).
#[derive(Clone)]
pub struct HmacKey {
    key: Key,
    length: ByteCount,
}

impl HmacKey {
    /// Creates a key from its bytes. RFC 2104 §3 advises 32 of them.
    pub fn new(key: &[u8]) -> Result<Self, HmacKeyError> {
        if key.is_empty() {
            return Err(HmacKeyError::Empty);
        }
        Ok(Self { key: Key::new(HMAC_SHA256, key), length: ByteCount::from_usize(key.len()) })
    }

    /// Creates a key from the content of a key file: hexadecimal digits, ignoring white space, or the raw key without a
    /// trailing newline.
    pub fn from_file(content: &[u8]) -> Result<Self, HmacKeyError> {
        Self::new(&key_bytes(content))
    }

    /// Bytes of the key.
    pub fn length(&self) -> ByteCount {
        self.length
    }

    /// HMAC of the concatenated parts.
    pub(in crate::stamp) fn sign(&self, parts: &[&[u8]]) -> [u8; HMAC_LENGTH] {
        let mut context = Context::with_key(&self.key);
        for part in parts {
            context.update(part);
        }
        let mut truncated = [0; HMAC_LENGTH];
        truncated.copy_from_slice(&context.sign().as_ref()[..HMAC_LENGTH]);
        truncated
    }

    /// Verifies the HMAC of the parts in constant time.
    pub(in crate::stamp) fn verify(&self, parts: &[&[u8]], hmac: &[u8]) -> bool {
        verify_slices_are_equal(&self.sign(parts), hmac).is_ok()
    }
}

impl fmt::Debug for HmacKey {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HmacKey").field("length", &self.length).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hmacs_are_those_of_rfc_4868() {
        // RFC 4868 §2.7.2.1 (AUTH256-2): key of 32 bytes, full HMAC-SHA-256; STAMP takes its first half.
        let key =
            HmacKey::from_file(b"0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20\n").expect("a key");
        let hmac = key.sign(&[&[0xcd; 20], &[0xcd; 30]]);
        let expected = [0x37, 0x2e, 0xfc, 0xf9, 0xb4, 0x0b, 0x35, 0xc2, 0x11, 0x5b, 0x13, 0x46, 0x90, 0x3d, 0x2e, 0xf4];
        assert_eq!(hmac, expected);
        assert!(key.verify(&[&[0xcd; 50]], &expected));
        assert!(!key.verify(&[&[0xcd; 49]], &expected));
        assert!(!key.verify(&[&[0xcd; 50]], &expected[..15]));
    }

    #[test]
    fn files_hold_digits_or_the_key_itself() {
        let length = |file: &[u8]| HmacKey::from_file(file).map(|key| key.length().get());
        assert_eq!(length(b"00 01 02 0A\r\n"), Ok(4));
        assert_eq!(length(b"0a1\n"), Ok(3), "an odd number of digits is not hexadecimal");
        assert_eq!(length(b"secret word\r\n"), Ok(11));
        for empty in [&b""[..], b"\n", b" \n"] {
            assert_eq!(length(empty), Err(HmacKeyError::Empty));
        }
        let printed = format!("{:?}", HmacKey::from_file(b"secret").expect("a key"));
        assert!(!printed.contains("secret") && printed.contains('6'), "{printed}");
    }
}
