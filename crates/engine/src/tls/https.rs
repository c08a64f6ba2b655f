//! TLS of HTTPS, with certificates as all HTTP clients and servers know them: 1.3 at a server, 1.2 or 1.3 at a client.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, ParsedCertificate};
use rustls::sign::{CertifiedKey, SigningKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme};

use super::identity::{self, Result, pin_of_public_key};
use super::{KeyPin, ServerIdentity, ServerTrust, TlsClientOptions, TlsError, client, failure, self_signed};

fn refused(cause: &Error) -> TlsError {
    TlsError(format!("preparing TLS: {cause}"))
}

/// Configuration of a server for these protocols (ALPN), and the pin of its key.
///
/// # Errors
///
/// A file is unusable, or the identity is a shared key, which HTTP clients cannot have.
pub fn server(identity: &ServerIdentity, protocols: &[&[u8]]) -> Result<(Arc<ServerConfig>, KeyPin)> {
    let certified = match identity {
        ServerIdentity::NewKey => self_signed_key(identity::new_web_key()?)?,
        ServerIdentity::Key(file) => self_signed_key(identity::raw_of_file(file)?.key)?,
        ServerIdentity::Certificate(files) => identity::certified(files)?,
        ServerIdentity::SharedKey(_) => return Err(TlsError("HTTP clients know no shared key: use --tls-cert".into())),
    };
    let public = certified.key.public_key().ok_or_else(|| TlsError("the key has no public part".to_owned()))?;
    let pin = pin_of_public_key(&public);
    let mut config = ServerConfig::builder_with_provider(identity::provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(|cause| refused(&cause))?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    // A resumed handshake is another one than what a client measures.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    Ok((Arc::new(config), pin))
}

fn self_signed_key(key: Arc<dyn SigningKey>) -> Result<CertifiedKey> {
    let certificate = self_signed::certificate_of(&*key)
        .ok_or_else(|| TlsError("no certificate can be made of this kind of key: name one by --tls-cert".to_owned()))?;
    Ok(CertifiedKey::new(vec![certificate], key))
}

/// Configuration of a client for these protocols (ALPN); each handshake is a full one.
///
/// # Errors
///
/// A file is unusable, or the trust is a shared key, which HTTP servers cannot have.
pub fn client(options: &TlsClientOptions, protocols: &[&[u8]]) -> Result<Arc<ClientConfig>> {
    let verifier: Arc<dyn ServerCertVerifier> = match &options.trust {
        ServerTrust::Pin(pin) | ServerTrust::SessionKey(pin) => Arc::new(PinnedCertificate {
            pin: *pin,
            algorithms: identity::provider().signature_verification_algorithms,
        }),
        ServerTrust::SharedKey(_) => {
            return Err(TlsError("an HTTP server has no shared key: recognize it by --tls-pin or --tls-ca".to_owned()));
        }
        ServerTrust::System => web_verifier(client::system_authorities()?)?,
        ServerTrust::Authorities(file) => web_verifier(identity::authorities(file)?)?,
    };
    let builder = ClientConfig::builder_with_provider(identity::provider())
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(|cause| refused(&cause))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match &options.certificate {
        Some(files) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity::certified(files)?))),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

fn web_verifier(roots: rustls::RootCertStore) -> Result<Arc<dyn ServerCertVerifier>> {
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), identity::provider()).build();
    verifier.map(|verifier| verifier as _).map_err(|cause| TlsError(format!("preparing TLS: {cause}")))
}

/// Describes a failed handshake with a server, with the remedy.
#[must_use]
pub fn describe_failure(error: &Error, trust: &ServerTrust) -> String {
    match error {
        Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol) => NO_HTTP2.to_owned(),
        _ => failure::describe(error, Some(trust)),
    }
}

/// Reason for a server without HTTP/2.
pub const NO_HTTP2: &str = "the server does not offer HTTP/2 (ALPN h2), which this measurement needs";

/// Verifier that accepts certificates of one key, whatever their signature.
#[derive(Debug)]
struct PinnedCertificate {
    pin: KeyPin,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for PinnedCertificate {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> core::result::Result<ServerCertVerified, Error> {
        let public = ParsedCertificate::try_from(certificate)?.subject_public_key_info();
        if pin_of_public_key(&public) == self.pin {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> core::result::Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> core::result::Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
