use core::convert::Infallible;

use linerate_units::ByteCount;

use super::{HMAC_LENGTH, HmacKeyError};

/// Not available in this build: no value exists.
#[derive(Clone, Debug)]
pub struct HmacKey(Infallible);

impl HmacKey {
    /// Always [`HmacKeyError::NotBuilt`].
    pub fn new(_key: &[u8]) -> Result<Self, HmacKeyError> {
        Err(HmacKeyError::NotBuilt)
    }

    /// Always [`HmacKeyError::NotBuilt`].
    pub fn from_file(_content: &[u8]) -> Result<Self, HmacKeyError> {
        Err(HmacKeyError::NotBuilt)
    }

    /// Never called: no key exists.
    pub fn length(&self) -> ByteCount {
        match self.0 {}
    }

    pub(in crate::stamp) fn sign(&self, _parts: &[&[u8]]) -> [u8; HMAC_LENGTH] {
        match self.0 {}
    }

    pub(in crate::stamp) fn verify(&self, _parts: &[&[u8]], _hmac: &[u8]) -> bool {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_feature() {
        let error = HmacKey::from_file(b"00").expect_err("not in this build");
        assert!(error.to_string().contains("build it with the feature `auth`"), "{error}");
    }
}
