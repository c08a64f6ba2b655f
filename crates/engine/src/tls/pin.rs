//! Digest of a public key, by which a client recognizes its server.

use core::fmt;
use core::str::FromStr;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::TlsError;

/// Beginning of a pin, as curl's `--pinnedpubkey` has it.
const PREFIX: &str = "sha256//";

/// SHA-256 of a public key (`SubjectPublicKeyInfo`, DER).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPin([u8; digest::SHA256_OUTPUT_LEN]);

impl KeyPin {
    /// Digest of a public key.
    pub(super) fn of(public_key: &[u8]) -> Self {
        let mut pin = [0; digest::SHA256_OUTPUT_LEN];
        pin.copy_from_slice(digest::digest(&digest::SHA256, public_key).as_ref());
        Self(pin)
    }
}

impl fmt::Display for KeyPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", STANDARD.encode(self.0))
    }
}

impl FromStr for KeyPin {
    type Err = TlsError;

    fn from_str(text: &str) -> Result<Self, TlsError> {
        let digest = text.strip_prefix(PREFIX).and_then(|digest| STANDARD.decode(digest).ok());
        let pin = digest.and_then(|digest| digest.try_into().ok()).map(Self);
        pin.ok_or_else(|| {
            TlsError("a pin is sha256// and the base64 of 32 bytes, as `linerate serve --tls` prints it".to_owned())
        })
    }
}
