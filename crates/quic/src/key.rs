//! Keys and TLS configurations: a raw public key that the client pins.

use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::Ed25519KeyPair;
use linerate_engine::tls::{KeyPin, PinnedKey, pin_of_public_key};
use quinn::crypto::rustls::{NoInitialCipherSuite, QuicClientConfig, QuicServerConfig};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs as provider};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, Error};

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
    pub(crate) pin: KeyPin,
    pub(crate) configuration: Arc<QuicServerConfig>,
    /// The same without tickets, so that each handshake is full.
    pub(crate) fresh: Arc<QuicServerConfig>,
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
        let pin = pin_of_public_key(&public);
        let certified = CertifiedKey::new(vec![CertificateDer::from(public.to_vec())], key);
        let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(cryptography))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::new(certified))));
        tls.alpn_protocols = vec![PROTOCOL.to_vec()];
        let mut fresh = tls.clone();
        fresh.session_storage = Arc::new(NoServerSessionStorage {});
        fresh.send_tls13_tickets = 0;
        // The only other value that QUIC permits is 0 (RFC 9001 section 4.6.1).
        tls.max_early_data_size = u32::MAX;
        let [configuration, fresh] = [tls, fresh].map(QuicServerConfig::try_from);
        let failed = |cause: NoInitialCipherSuite| Error::General(cause.to_string());
        let (configuration, fresh) = (configuration.map_err(failed)?, fresh.map_err(failed)?);
        Ok(Self { pin, configuration: Arc::new(configuration), fresh: Arc::new(fresh) })
    }
}

/// Client configuration that accepts one key. Connections with the same value may resume each other.
pub(crate) struct PinnedClient {
    pub(crate) verifier: Arc<PinnedKey>,
    pub(crate) configuration: Arc<QuicClientConfig>,
}

impl core::fmt::Debug for PinnedClient {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PinnedClient").field("verifier", &self.verifier).finish_non_exhaustive()
    }
}

impl PinnedClient {
    pub(crate) fn new(pin: KeyPin, resumes: bool) -> Result<Self, QuicError> {
        let verifier = PinnedKey::new(pin);
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
}
