use core::convert::Infallible;

use linerate_units::ByteCount;

use super::{HMAC_LENGTH, KeyError};

/// Not available in this build: there is none.
#[derive(Clone, Debug)]
pub struct HmacKey(Infallible);

impl HmacKey {
    /// Always [`KeyError::NotBuilt`].
    pub fn new(_key: &[u8]) -> Result<Self, KeyError> {
        Err(KeyError::NotBuilt)
    }

    /// Always [`KeyError::NotBuilt`].
    pub fn from_file(_content: &[u8]) -> Result<Self, KeyError> {
        Err(KeyError::NotBuilt)
    }

    /// There is no key to ask.
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
    fn the_answer_says_what_to_do() {
        let error = HmacKey::from_file(b"00").expect_err("not in this build");
        assert!(error.to_string().contains("build it with the feature `auth`"), "{error}");
    }
}
