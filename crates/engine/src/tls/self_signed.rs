//! A certificate that signs itself, for clients that know no raw public keys: they pin its key, or trust it unverified.

use rustls::SignatureScheme;
use rustls::pki_types::{AlgorithmIdentifier, CertificateDer, alg_id};
use rustls::sign::SigningKey;

/// Name in the certificate: the key identifies the server, not the name.
const NAME: &str = "linerate";

/// Validity in UTC: the key is what is trusted, for as long as it is.
const VALID: [&str; 2] = ["200101000000Z", "491231235959Z"];

/// Signatures in the order of preference, which all clients of TLS 1.3 know.
const SCHEMES: [(SignatureScheme, AlgorithmIdentifier); 4] = [
    (SignatureScheme::ECDSA_NISTP256_SHA256, alg_id::ECDSA_SHA256),
    (SignatureScheme::ECDSA_NISTP384_SHA384, alg_id::ECDSA_SHA384),
    (SignatureScheme::ED25519, alg_id::ED25519),
    (SignatureScheme::RSA_PKCS1_SHA256, alg_id::RSA_PKCS1_SHA256),
];

// Tags of DER (ITU-T X.690).
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;

/// Object identifier 2.5.4.3 (common name) with its tag.
const COMMON_NAME: [u8; 5] = [0x06, 3, 0x55, 0x04, 0x03];

/// Makes a certificate of version 3 (RFC 5280 §4.1) for this key; `None` for a key of an unknown kind.
pub(super) fn certificate_of(key: &dyn SigningKey) -> Option<CertificateDer<'static>> {
    let public = key.public_key()?;
    let schemes = SCHEMES.map(|(scheme, _)| scheme);
    let signer = key.choose_scheme(&schemes)?;
    let (_, algorithm) = SCHEMES.into_iter().find(|(scheme, _)| *scheme == signer.scheme())?;
    let algorithm = element(SEQUENCE, &[&algorithm]);
    let common_name = element(SEQUENCE, &[&COMMON_NAME, &element(UTF8_STRING, &[NAME.as_bytes()])]);
    let name = element(SEQUENCE, &[&element(SET, &[&common_name])]);
    let validity = VALID.map(|time| element(UTC_TIME, &[time.as_bytes()])).concat();
    let version = element(VERSION, &[&element(INTEGER, &[&[2]])]);
    let serial = element(INTEGER, &[&[1]]);
    let validity = element(SEQUENCE, &[&validity]);
    let content = element(SEQUENCE, &[&version, &serial, &algorithm, &name, &validity, &name, &public]);
    let signature = element(BIT_STRING, &[&[0], &signer.sign(&content).ok()?]);
    Some(CertificateDer::from(element(SEQUENCE, &[&content, &algorithm, &signature])))
}

/// An element of DER: tag, length, content.
fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut bytes = vec![tag];
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => bytes.push(short),
        Ok(byte) => bytes.extend([0x81, byte]),
        Err(_) => {
            bytes.push(0x82);
            // Keys and signatures have a few hundred bytes.
            bytes.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
        }
    }
    for part in parts {
        bytes.extend_from_slice(part);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use rustls::server::ParsedCertificate;

    use super::super::identity;
    use super::*;

    #[test]
    fn the_key_of_a_certificate_is_the_given_one() {
        let key = identity::new_web_key().expect("entropy");
        let certificate = certificate_of(&*key).expect("a known kind of key");
        let parsed = ParsedCertificate::try_from(&certificate).expect("valid DER");
        assert_eq!(Some(parsed.subject_public_key_info()), key.public_key());
    }

    #[test]
    fn lengths_have_one_to_three_bytes() {
        let head = |length: usize| element(SEQUENCE, &[&vec![0; length]])[..4].to_vec();
        assert_eq!(head(2), [0x30, 2, 0, 0]);
        assert_eq!(head(0x80), [0x30, 0x81, 0x80, 0]);
        assert_eq!(head(0x100), [0x30, 0x82, 1, 0]);
    }
}
