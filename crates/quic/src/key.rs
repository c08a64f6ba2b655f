//! Keys and TLS configurations: a raw public key that the client pins.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::Ed25519KeyPair;
use linerate_wire::quic::KeyHash;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs as provider, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, CipherSuite, DigitallySignedStruct, Error, SignatureScheme};

use crate::error::QuicError;

/// Name in ALPN (RFC 7301): the protocol of [`linerate_wire::quic`].
const PROTOCOL: &[u8] = b"linerate/1";

/// Cryptography with AES-128 first, as browsers have it: the fastest where processors compute AES.
fn cryptography() -> CryptoProvider {
    let mut all = provider::default_provider();
    all.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    all
}

fn failed(operation: &str, cause: &dyn core::fmt::Display) -> QuicError {
    QuicError::System(format!("{operation}: {cause}"))
}

/// Key of a server, made at its start.
pub(crate) struct ServerKey {
    pub(crate) hash: KeyHash,
    pub(crate) configuration: Arc<QuicServerConfig>,
}

impl ServerKey {
    pub(crate) fn generate() -> Result<Self, QuicError> {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        let document = document.map_err(|cause| failed("making the key of the QUIC server", &cause))?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(document.as_ref().to_vec()));
        Self::of(key).map_err(|cause| failed("using the key of the QUIC server", &cause))
    }

    fn of(key: PrivateKeyDer<'static>) -> Result<Self, Error> {
        let cryptography = cryptography();
        let key = cryptography.key_provider.load_private_key(key)?;
        let public = key.public_key().ok_or_else(|| Error::General("the key has no public part".to_owned()))?;
        let hash = hash_of(&public);
        let certified = CertifiedKey::new(vec![CertificateDer::from(public.to_vec())], key);
        let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(cryptography))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::new(certified))));
        tls.alpn_protocols = vec![PROTOCOL.to_vec()];
        // The only other value that QUIC permits is 0 (RFC 9001 section 4.6.1).
        tls.max_early_data_size = u32::MAX;
        let configuration = QuicServerConfig::try_from(tls).map_err(|cause| Error::General(cause.to_string()))?;
        Ok(Self { hash, configuration: Arc::new(configuration) })
    }
}

fn hash_of(public_key: &[u8]) -> KeyHash {
    let mut hash = KeyHash([0; 32]);
    hash.0.copy_from_slice(digest(&SHA256, public_key).as_ref());
    hash
}

/// Client configuration that accepts one key. Connections with the same value may resume each other.
pub(crate) struct PinnedClient {
    verifier: Arc<PinnedKey>,
    pub(crate) configuration: Arc<QuicClientConfig>,
}

impl core::fmt::Debug for PinnedClient {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PinnedClient").field("verifier", &self.verifier).finish_non_exhaustive()
    }
}

impl PinnedClient {
    pub(crate) fn new(hash: KeyHash, resumes: bool) -> Result<Self, QuicError> {
        let verifier = Arc::new(PinnedKey::new(hash));
        let tls = rustls::ClientConfig::builder_with_provider(Arc::new(cryptography()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|cause| failed("preparing TLS", &cause))?;
        let pinned = Arc::<PinnedKey>::clone(&verifier);
        let mut tls = tls.dangerous().with_custom_certificate_verifier(pinned).with_no_client_auth();
        tls.alpn_protocols = vec![PROTOCOL.to_vec()];
        tls.enable_early_data = resumes;
        if !resumes {
            tls.resumption = Resumption::disabled();
        }
        let configuration = QuicClientConfig::try_from(tls).map_err(|cause| failed("preparing TLS", &cause))?;
        Ok(Self { verifier, configuration: Arc::new(configuration) })
    }

    /// Number of signatures verified so far: a resumed handshake has none.
    pub(crate) fn verifications(&self) -> u64 {
        self.verifier.verifications.load(Ordering::Relaxed)
    }

    /// True when a server showed another key.
    pub(crate) fn was_wrong(&self) -> bool {
        self.verifier.wrong.load(Ordering::Relaxed)
    }
}

/// Verifier of one raw public key.
#[derive(Debug)]
struct PinnedKey {
    hash: KeyHash,
    algorithms: WebPkiSupportedAlgorithms,
    verifications: AtomicU64,
    wrong: AtomicBool,
}

impl PinnedKey {
    fn new(hash: KeyHash) -> Self {
        let algorithms = provider::default_provider().signature_verification_algorithms;
        Self { hash, algorithms, verifications: AtomicU64::new(0), wrong: AtomicBool::new(false) }
    }
}

impl ServerCertVerifier for PinnedKey {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if hash_of(end_entity) == self.hash {
            return Ok(ServerCertVerified::assertion());
        }
        self.wrong.store(true, Ordering::Relaxed);
        Err(Error::InvalidCertificate(CertificateError::UnknownIssuer))
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("QUIC has TLS 1.3 only".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifications.fetch_add(1, Ordering::Relaxed);
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
