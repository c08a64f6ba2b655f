//! Properties of a connection that decide what its handshake costs.

use linerate_model::tls::{ServerAuthentication, TlsProperties};
use rustls::Connection;
use rustls::pki_types::{AlgorithmIdentifier, CertificateDer, alg_id};
use rustls::server::ParsedCertificate;

use super::ServerTrust;

/// Algorithms of keys, by the identifier in their public key (RFC 5280 section 4.1.2.7).
const ALGORITHMS: [(AlgorithmIdentifier, &str); 5] = [
    (alg_id::ED25519, "Ed25519"),
    (alg_id::ECDSA_P256, "ECDSA P-256"),
    (alg_id::ECDSA_P384, "ECDSA P-384"),
    (alg_id::ECDSA_P521, "ECDSA P-521"),
    (alg_id::RSA_ENCRYPTION, "RSA"),
];

/// Bytes of an RSA public key besides its modulus, with the usual exponent of 65537.
const RSA_OVERHEAD: usize = 38;

/// Properties of a client's connection, once its handshake is complete.
pub(super) fn of(connection: &Connection, trust: &ServerTrust, has_certificate: bool) -> Option<TlsProperties> {
    let suite = connection.negotiated_cipher_suite()?;
    let (authentication, key) = match trust {
        ServerTrust::Pin(_) | ServerTrust::SessionKey(_) | ServerTrust::SharedKey(_) => {
            (ServerAuthentication::RawPublicKey, connection.peer_certificates()?.first().map(|key| key.to_vec()))
        }
        ServerTrust::System | ServerTrust::Authorities(_) => {
            (ServerAuthentication::Certificate, connection.peer_certificates()?.first().and_then(public_key))
        }
    };
    Some(TlsProperties {
        authentication,
        key_algorithm: key.and_then(|key| key_algorithm(&key)),
        client_authenticated: has_certificate || matches!(trust, ServerTrust::SharedKey(_)),
        cipher_suite: suite.suite().as_str().map(str::to_owned),
        key_exchange: connection
            .negotiated_key_exchange_group()
            .and_then(|group| group.name().as_str())
            .map(str::to_owned),
    })
}

fn public_key(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    ParsedCertificate::try_from(certificate).ok().map(|parsed| parsed.subject_public_key_info().to_vec())
}

/// Algorithm of a public key (`SubjectPublicKeyInfo`, DER), and the size of an RSA key in bits; `None` for others.
pub(super) fn key_algorithm(public_key: &[u8]) -> Option<String> {
    // Two headers of sequences, with lengths of up to three bytes each, precede the identifier.
    let is_at_start =
        |identifier: &[u8]| (2..=8).any(|at| public_key.get(at..).is_some_and(|rest| rest.starts_with(identifier)));
    let (_, name) = ALGORITHMS.iter().find(|(identifier, _)| is_at_start(identifier))?;
    let modulus = public_key.len().saturating_sub(RSA_OVERHEAD);
    let has_usual_size = *name == "RSA" && modulus >= 128 && modulus.is_multiple_of(128);
    Some(if has_usual_size { format!("RSA {}", modulus * 8) } else { (*name).to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::identity;
    use aws_lc_rs::encoding::AsDer as _;
    use aws_lc_rs::rsa::{KeySize, PrivateDecryptingKey, PublicEncryptingKey};

    #[test]
    fn keys_have_their_algorithm() {
        let key = identity::new_key().expect("random numbers");
        assert_eq!(key_algorithm(&key.cert[0]).as_deref(), Some("Ed25519"));
        let private = PrivateDecryptingKey::generate(KeySize::Rsa2048).expect("a key");
        let public: PublicEncryptingKey = private.public_key();
        let der: aws_lc_rs::encoding::PublicKeyX509Der<'_> = public.as_der().expect("DER");
        assert_eq!(key_algorithm(der.as_ref()).as_deref(), Some("RSA 2048"));
        for other in [&b""[..], b"0", &[0x30; 64]] {
            assert_eq!(key_algorithm(other), None);
        }
    }
}
