//! Digest of a public key, by which a client recognizes its server.

use core::fmt;
use core::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Beginning of a pin, as curl's `--pinnedpubkey` has it.
const PREFIX: &str = "sha256//";

/// SHA-256 of a server's public key (its `SubjectPublicKeyInfo` in DER, RFC 7250).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyPin(pub [u8; 32]);

/// Error of a text that is no pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a pin is sha256// and the base64 of 32 bytes, as `linerate serve --tls` prints it")]
pub struct InvalidKeyPin;

impl fmt::Display for KeyPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", STANDARD.encode(self.0))
    }
}

impl FromStr for KeyPin {
    type Err = InvalidKeyPin;

    fn from_str(text: &str) -> Result<Self, InvalidKeyPin> {
        let digest = text.strip_prefix(PREFIX).and_then(|digest| STANDARD.decode(digest).ok());
        digest.and_then(|digest| digest.try_into().ok()).map(Self).ok_or(InvalidKeyPin)
    }
}

impl Serialize for KeyPin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KeyPin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_text_of_a_pin() {
        let pin = KeyPin(core::array::from_fn(|index| u8::try_from(index * 8).expect("below 256")));
        let text = serde_json::to_string(&pin).expect("JSON");
        assert_eq!(text, "\"sha256//AAgQGCAoMDhASFBYYGhweICIkJigqLC4wMjQ2ODo8Pg=\"");
        assert_eq!(serde_json::from_str::<KeyPin>(&text).expect("valid"), pin);
        for wrong in ["\"\"", "\"sha256//AA==\"", &text.replace("sha256//", ""), &text.replace('=', ""), "5"] {
            assert!(serde_json::from_str::<KeyPin>(wrong).is_err(), "{wrong}");
        }
    }
}
