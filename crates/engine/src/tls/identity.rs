//! Keys and certificates of both ends.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible, RootCertStore, SignatureScheme,
};

use super::{CertificateFiles, KeyPin, TlsError, properties};

/// Longest file of keys or certificates.
const MAX_FILE: u64 = 4 << 20;

/// Shortest shared key: shorter ones can be guessed from one recorded handshake.
const MIN_SHARED_KEY: usize = 16;

/// Salt of the keys that are derived from a shared one.
const SALT: &[u8] = b"linerate shared key 1";

pub(super) type Result<T> = core::result::Result<T, TlsError>;

/// Cryptography of all connections.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn read(file: &Path) -> Result<Vec<u8>> {
    let failed = |cause: std::io::Error| {
        TlsError(format!("reading {}: {}", file.display(), linerate_sys::describe_os_error(&cause)))
    };
    let mut bytes = Vec::new();
    File::open(file).and_then(|opened| opened.take(MAX_FILE + 1).read_to_end(&mut bytes)).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(TlsError(format!(
            "{} has more than {} MiB: it is no file of keys",
            file.display(),
            MAX_FILE >> 20
        )));
    }
    Ok(bytes)
}

/// Certificates of a PEM text.
pub(super) fn certificates_of(text: &[u8]) -> core::result::Result<Vec<CertificateDer<'static>>, pem::Error> {
    CertificateDer::pem_slice_iter(text).collect()
}

/// Certificates of a PEM file, one at least.
pub(super) fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    match certificates_of(&read(file)?) {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(TlsError(format!("{} has no certificate: it must be PEM", file.display()))),
        Err(cause) => Err(TlsError(format!("{} is no PEM file of certificates: {cause}", file.display()))),
    }
}

/// Authorities of a PEM file.
pub(super) fn authorities(file: &Path) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|cause| {
            TlsError(format!("{} has a certificate that no authority can have: {cause}", file.display()))
        })?;
    }
    Ok(roots)
}

/// Private key of a PEM file.
fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_slice(&read(file)?).map_err(|cause| {
        TlsError(format!(
            "{} has no private key in PEM ({cause}); `openssl genpkey -algorithm ed25519` makes one, without a password",
            file.display()
        ))
    })
}

/// Chain and key of certificate files.
pub(super) fn certified(files: &CertificateFiles) -> Result<CertifiedKey> {
    let chain = certificates(&files.certificate)?;
    CertifiedKey::from_der(chain, private_key(&files.key)?, &provider()).map_err(|cause| {
        TlsError(format!("{} and {} do not belong together: {cause}", files.certificate.display(), files.key.display()))
    })
}

/// Raw public key (RFC 7250) of a private key.
pub(super) fn raw(key: PrivateKeyDer<'static>) -> core::result::Result<CertifiedKey, Error> {
    raw_of(provider().key_provider.load_private_key(key)?)
}

/// Raw public key (RFC 7250) of a key that is loaded.
pub(super) fn raw_of(key: Arc<dyn rustls::sign::SigningKey>) -> core::result::Result<CertifiedKey, Error> {
    let public = key.public_key().ok_or_else(|| Error::General("the key has no public part".to_owned()))?;
    let public = CertificateDer::from(public.as_ref().to_vec());
    Ok(CertifiedKey::new(vec![public], key))
}

/// Raw public key of the private key in a file.
pub(super) fn raw_of_file(file: &Path) -> Result<CertifiedKey> {
    raw(private_key(file)?)
        .map_err(|cause| TlsError(format!("{} has an unusable private key: {cause}", file.display())))
}

fn of_pair(pair: &Ed25519KeyPair) -> Option<CertifiedKey> {
    let der = pair.to_pkcs8v1().ok()?;
    raw(PrivatePkcs8KeyDer::from(der.as_ref().to_vec()).into()).ok()
}

/// New key.
pub(super) fn new_key() -> Result<CertifiedKey> {
    let made = Ed25519KeyPair::generate().ok().and_then(|pair| of_pair(&pair));
    made.ok_or_else(|| TlsError("making a key: the random numbers of this system are unavailable".to_owned()))
}

/// New key of a certificate: of the kind that all HTTP clients know.
pub(super) fn new_web_key() -> Result<Arc<dyn rustls::sign::SigningKey>> {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING);
    let der = pair.and_then(|pair| pair.to_pkcs8v1());
    let der = der.map(|der| PrivatePkcs8KeyDer::from(der.as_ref().to_vec()).into());
    let made = der.ok().and_then(|der| provider().key_provider.load_private_key(der).ok());
    made.ok_or_else(|| TlsError("making a key: the random numbers of this system are unavailable".to_owned()))
}

/// Keys of both ends, from the one that they share.
#[derive(Debug)]
pub(super) struct SharedKeys {
    pub(super) server: CertifiedKey,
    pub(super) client: CertifiedKey,
}

impl SharedKeys {
    /// Reads the shared key; blanks at its ends do not count.
    pub(super) fn read(file: &Path) -> Result<Self> {
        Self::of(read(file)?.trim_ascii()).map_err(|TlsError(reason)| TlsError(format!("{}: {reason}", file.display())))
    }

    pub(super) fn of(key: &[u8]) -> Result<Self> {
        if key.len() < MIN_SHARED_KEY {
            return Err(TlsError(format!(
                "the shared key has {} bytes, which can be guessed, and needs {MIN_SHARED_KEY}; \
                 `head -c 32 /dev/urandom | base64` makes one",
                key.len()
            )));
        }
        let derived = |end: &[u8]| {
            let mut seed = [0; 32];
            let labels = [end];
            let derived = Salt::new(HKDF_SHA256, SALT).extract(key);
            derived.expand(&labels, HKDF_SHA256).and_then(|derived| derived.fill(&mut seed)).ok()?;
            of_pair(&Ed25519KeyPair::from_seed_unchecked(&seed).ok()?)
        };
        match (derived(b"server"), derived(b"client")) {
            (Some(server), Some(client)) => Ok(Self { server, client }),
            _ => Err(TlsError("no keys could be derived from the shared one".to_owned())),
        }
    }
}

/// Digest of a raw public key.
pub(super) fn pin_of(key: &CertifiedKey) -> KeyPin {
    pin_of_public_key(key.cert.first().map_or(&[], |public| public.as_ref()))
}

/// Digest of a public key (`SubjectPublicKeyInfo`, DER).
#[must_use]
pub fn pin_of_public_key(public_key: &[u8]) -> KeyPin {
    let mut pin = KeyPin([0; SHA256_OUTPUT_LEN]);
    pin.0.copy_from_slice(digest(&SHA256, public_key).as_ref());
    pin
}

/// Verifier that accepts one raw public key (RFC 7250), of a server or a client.
#[derive(Debug)]
pub struct PinnedKey {
    pin: KeyPin,
    algorithms: WebPkiSupportedAlgorithms,
    verifications: AtomicU64,
    was_wrong: AtomicBool,
    algorithm: OnceLock<Option<String>>,
}

impl PinnedKey {
    /// Verifier of the key with this digest.
    #[must_use]
    pub fn new(pin: KeyPin) -> Arc<Self> {
        let algorithms = provider().signature_verification_algorithms;
        Arc::new(Self {
            pin,
            algorithms,
            verifications: AtomicU64::new(0),
            was_wrong: AtomicBool::new(false),
            algorithm: OnceLock::new(),
        })
    }

    /// Number of signatures verified so far: a resumed handshake has none.
    pub fn verifications(&self) -> u64 {
        self.verifications.load(Ordering::Relaxed)
    }

    /// True when the other end showed another key.
    pub fn was_wrong(&self) -> bool {
        self.was_wrong.load(Ordering::Relaxed)
    }

    /// Algorithm of the key, for example `Ed25519`; `None` before the first handshake, and for unknown ones.
    pub fn algorithm(&self) -> Option<String> {
        self.algorithm.get().cloned().flatten()
    }

    fn check(&self, public_key: &[u8]) -> core::result::Result<(), Error> {
        if pin_of_public_key(public_key) == self.pin {
            self.algorithm.get_or_init(|| properties::key_algorithm(public_key));
            return Ok(());
        }
        self.was_wrong.store(true, Ordering::Relaxed);
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn verify(
        &self,
        message: &[u8],
        public_key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> core::result::Result<HandshakeSignatureValid, Error> {
        self.verifications.fetch_add(1, Ordering::Relaxed);
        let public_key = SubjectPublicKeyInfoDer::from(public_key.as_ref());
        verify_tls13_signature_with_raw_key(message, &public_key, signature, &self.algorithms)
    }
}

const OLD_VERSION: Error = Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered);

impl ServerCertVerifier for PinnedKey {
    fn verify_server_cert(
        &self,
        public_key: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> core::result::Result<ServerCertVerified, Error> {
        self.check(public_key).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _public_key: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> core::result::Result<HandshakeSignatureValid, Error> {
        Err(OLD_VERSION)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        public_key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> core::result::Result<HandshakeSignatureValid, Error> {
        self.verify(message, public_key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for PinnedKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        public_key: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> core::result::Result<ClientCertVerified, Error> {
        self.check(public_key).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _public_key: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> core::result::Result<HandshakeSignatureValid, Error> {
        Err(OLD_VERSION)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        public_key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> core::result::Result<HandshakeSignatureValid, Error> {
        self.verify(message, public_key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
