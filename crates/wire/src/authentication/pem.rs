//! RSA keys from PEM text (RFC 7468).

use aws_lc_rs::rsa::{PrivateDecryptingKey, PublicEncryptingKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::RsaKeyError;

const PUBLIC: &str = "PUBLIC KEY";
const RSA_PUBLIC: &str = "RSA PUBLIC KEY";
const PRIVATE: &str = "PRIVATE KEY";
const RSA_PRIVATE: &str = "RSA PRIVATE KEY";
const ENCRYPTED_PRIVATE: &str = "ENCRYPTED PRIVATE KEY";

/// DER of `AlgorithmIdentifier { rsaEncryption, NULL }` (RFC 8017 A.1).
const RSA_ALGORITHM: [u8; 15] = [0x30, 13, 6, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 13, 1, 1, 1, 5, 0];

const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;

/// Parses a public key: `SubjectPublicKeyInfo` as in iperf3, or PKCS #1's `RSAPublicKey`.
pub(super) fn public_key(pem: &str) -> Result<PublicEncryptingKey, RsaKeyError> {
    let (kind, der) = decode(pem, PUBLIC)?;
    let der = match kind {
        PUBLIC => der,
        RSA_PUBLIC => {
            let key = [&[0][..], &der].concat();
            wrap(SEQUENCE, &[&RSA_ALGORITHM[..], &wrap(BIT_STRING, &key)].concat())
        }
        found => return Err(RsaKeyError::WrongKind { found: found.to_owned(), expected: PUBLIC }),
    };
    PublicEncryptingKey::from_der(&der).map_err(|error| RsaKeyError::Refused(error.to_string()))
}

/// Parses a private key: PKCS #8's `PrivateKeyInfo`, or PKCS #1's `RSAPrivateKey`.
pub(super) fn private_key(pem: &str) -> Result<PrivateDecryptingKey, RsaKeyError> {
    if pem.contains(ENCRYPTED_PRIVATE) || pem.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(RsaKeyError::Encrypted);
    }
    let (kind, der) = decode(pem, PRIVATE)?;
    let der = match kind {
        PRIVATE => der,
        RSA_PRIVATE => {
            let version = [2, 1, 0];
            wrap(SEQUENCE, &[&version[..], &RSA_ALGORITHM, &wrap(OCTET_STRING, &der)].concat())
        }
        found => return Err(RsaKeyError::WrongKind { found: found.to_owned(), expected: PRIVATE }),
    };
    PrivateDecryptingKey::from_pkcs8(&der).map_err(|error| RsaKeyError::Refused(error.to_string()))
}

/// Returns the label and the content of the first PEM block.
fn decode<'a>(pem: &'a str, expected: &'static str) -> Result<(&'a str, Vec<u8>), RsaKeyError> {
    let block = || {
        let (_, after) = pem.split_once("-----BEGIN ")?;
        let (kind, after) = after.split_once("-----")?;
        let (content, _) = after.split_once("-----END ")?;
        let content: String = content.split_whitespace().collect();
        Some((kind, STANDARD.decode(content).ok()?))
    };
    block().ok_or(RsaKeyError::NotPem(expected))
}

/// Encodes a DER value with its tag and length.
fn wrap(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let significant = &length[length.iter().take_while(|byte| **byte == 0).count()..];
    let mut der = vec![tag];
    match significant {
        [] => der.push(0),
        [short] if *short < 0x80 => der.push(*short),
        long => {
            der.push(0x80 | u8::try_from(long.len()).expect("a length has at most 8 bytes"));
            der.extend_from_slice(long);
        }
    }
    der.extend_from_slice(content);
    der
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn der_lengths() {
        assert_eq!(wrap(4, &[]), [4, 0]);
        assert_eq!(wrap(4, &[7; 127])[..2], [4, 127]);
        assert_eq!(wrap(4, &[7; 128])[..3], [4, 0x81, 128]);
        assert_eq!(wrap(4, &[7; 1190])[..4], [4, 0x82, 4, 166]);
    }
}
