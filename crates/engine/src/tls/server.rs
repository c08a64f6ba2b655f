//! A server's side of TLS.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{
    Accepted, AlwaysResolvesServerRawPublicKeys, CertificateType, ClientHello, NoServerSessionStorage,
    ResolvesServerCert, WebPkiClientVerifier,
};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;

use super::KeyPin;
use super::identity::{self, PinnedKey, Result, SharedKeys};
use super::{ConnectionUse, ServerIdentity, TlsError, TlsServerOptions};

/// Prepared TLS of a server.
#[derive(Debug)]
pub struct TlsServer {
    /// For clients that recognize the key.
    raw: Arc<ServerConfig>,
    /// For clients that recognize the certificate.
    certified: Option<Arc<ServerConfig>>,
    pin: KeyPin,
    is_shared: bool,
}

impl TlsServer {
    /// Reads the files that `options` name.
    pub fn new(options: &TlsServerOptions) -> Result<Self> {
        let by_certificate = match &options.client_authorities {
            Some(file) => Some(client_verifier(identity::authorities(file)?)?),
            None => None,
        };
        let refused = |cause: rustls::Error| TlsError(format!("preparing TLS: {cause}"));
        let (raw, certified, clients) = match &options.identity {
            ServerIdentity::NewKey => (identity::new_key()?, None, by_certificate),
            ServerIdentity::Key(file) => (identity::raw_of_file(file)?, None, by_certificate),
            ServerIdentity::Certificate(files) => {
                let certified = identity::certified(files)?;
                (identity::raw_of(Arc::clone(&certified.key)).map_err(refused)?, Some(certified), by_certificate)
            }
            ServerIdentity::SharedKey(file) => {
                let keys = SharedKeys::read(file)?;
                let client: Arc<dyn ClientCertVerifier> = PinnedKey::new(identity::pin_of(&keys.client));
                (keys.server, None, Some(client))
            }
        };
        let pin = identity::pin_of(&raw);
        let raw: Arc<dyn ResolvesServerCert> = Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::new(raw)));
        let certified = certified.map(|key: CertifiedKey| Arc::new(SingleCertAndKey::from(key)));
        Ok(Self {
            raw: config(raw, clients.clone())?,
            certified: certified.map(|key| config(key, clients)).transpose()?,
            pin,
            is_shared: matches!(options.identity, ServerIdentity::SharedKey(_)),
        })
    }

    /// TLS with a new key, for one session that is without TLS.
    pub(crate) fn with_new_key() -> Result<Self> {
        Self::new(&TlsServerOptions { identity: ServerIdentity::NewKey, client_authorities: None })
    }

    /// Pin of the server's key, for clients; `None` with a shared key, which they have already.
    #[must_use]
    pub fn pin(&self) -> Option<KeyPin> {
        (!self.is_shared).then_some(self.pin)
    }

    /// Configuration for a client, and the use of the connection; no expensive operation has been done for it yet.
    pub(super) fn choose(
        &self,
        hello: &ClientHello<'_>,
    ) -> core::result::Result<(Arc<ServerConfig>, ConnectionUse), &'static str> {
        let mut offered = hello.alpn().into_iter().flatten();
        let usage = offered.find_map(|name| ConnectionUse::ALL.into_iter().find(|usage| usage.protocol() == name));
        let Some(usage) = usage else { return Err("the client does not ask for linerate (ALPN)") };
        let wants_raw = hello.server_cert_types().is_some_and(|types| types.contains(&CertificateType::RawPublicKey));
        let config = match &self.certified {
            _ if wants_raw => &self.raw,
            Some(certified) => certified,
            None => {
                return Err("the client asks for a certificate, and this server has only a key: use --tls-pin there");
            }
        };
        Ok((Arc::clone(config), usage))
    }

    /// Answers a client that asks for something else: the handshake ends with an alert that names it.
    pub(super) fn refuse(&self, accepted: Accepted) -> Vec<u8> {
        let mut answer = Vec::new();
        if let Err((_, mut alert)) = accepted.into_connection(Arc::clone(self.certified.as_ref().unwrap_or(&self.raw)))
        {
            // Writing into memory does not fail.
            let _ = alert.write_all(&mut answer);
        }
        answer
    }
}

fn client_verifier(roots: rustls::RootCertStore) -> Result<Arc<dyn ClientCertVerifier>> {
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), identity::provider())
        .build()
        .map_err(|cause| TlsError(format!("preparing TLS for clients with certificates: {cause}")))
}

fn config(key: Arc<dyn ResolvesServerCert>, clients: Option<Arc<dyn ClientCertVerifier>>) -> Result<Arc<ServerConfig>> {
    let builder = ServerConfig::builder_with_provider(identity::provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(|cause| TlsError(format!("preparing TLS: {cause}")))?;
    let builder = match clients {
        Some(clients) => builder.with_client_cert_verifier(clients),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(key);
    config.alpn_protocols = ConnectionUse::ALL.map(|usage| usage.protocol().to_vec()).to_vec();
    // Nothing of a connection is of use in another one.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    Ok(Arc::new(config))
}
