//! A client's side of TLS.

use std::net::TcpStream;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use linerate_sys::clock;
use linerate_sys::poll::{self, PollInterest, PollItem};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption, WebPkiServerVerifier};
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use linerate_model::tls::TlsProperties;

use super::channel::TlsChannel;
use super::data::DataCipher;
use super::identity::{self, PinnedKey, Result, SharedKeys};
use super::stream::TlsStream;
use super::{ConnectionUse, KeyPin, ServerTrust, TlsClientOptions, TlsError};
use crate::control::{ControlConnection, ControlRead};

/// Time limit of a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Prepared TLS of a client for one server.
#[derive(Clone, Debug)]
pub struct TlsClient {
    control: Arc<ClientConfig>,
    data: Arc<ClientConfig>,
    secured: Arc<ClientConfig>,
    name: ServerName<'static>,
    trust: ServerTrust,
    has_certificate: bool,
}

impl TlsClient {
    /// Reads the files that `options` name; `host` is the name or address that a certificate must have.
    pub fn new(options: &TlsClientOptions, host: &str) -> Result<Self> {
        let refused = |cause: rustls::Error| TlsError(format!("preparing TLS: {cause}"));
        let shared = match &options.trust {
            ServerTrust::SharedKey(file) => Some(SharedKeys::read(file)?),
            _ => None,
        };
        let builder = ClientConfig::builder_with_provider(identity::provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(refused)?
            .dangerous()
            .with_custom_certificate_verifier(verifier(&options.trust, shared.as_ref())?);
        let mut config = match (shared, &options.certificate) {
            (Some(keys), _) => {
                let resolver = AlwaysResolvesClientRawPublicKeys::new(Arc::new(keys.client));
                builder.with_client_cert_resolver(Arc::new(resolver))
            }
            (None, Some(files)) => {
                let key = SingleCertAndKey::from(identity::certified(files)?);
                builder.with_client_cert_resolver(Arc::new(key))
            }
            (None, None) => builder.with_no_client_auth(),
        };
        config.resumption = Resumption::disabled();
        config.enable_sni = matches!(options.trust, ServerTrust::System | ServerTrust::Authorities(_));
        let with_use = |usage: ConnectionUse| {
            let mut config = config.clone();
            config.alpn_protocols = vec![usage.protocol().to_vec()];
            Arc::new(config)
        };
        let [control, data, secured] = ConnectionUse::ALL.map(with_use);
        Ok(Self {
            name: server_name(host, &options.trust)?,
            control,
            data,
            secured,
            trust: options.trust.clone(),
            has_certificate: options.certificate.is_some(),
        })
    }

    /// Client of a server whose key a session without TLS has named.
    pub(crate) fn of_session_key(pin: KeyPin, host: &str) -> Result<Self> {
        Self::new(&TlsClientOptions { trust: ServerTrust::SessionKey(pin), certificate: None }, host)
    }

    /// Connection that stays in TLS, over a blocking socket; its first message begins the handshake.
    pub(crate) fn stream(&self, socket: TcpStream) -> Result<TlsStream> {
        Ok(TlsStream::of_client(self.connection(ConnectionUse::Secured)?, socket, self.trust.clone()))
    }

    /// Properties of a connection whose handshake is complete.
    pub(crate) fn properties(&self, stream: &TlsStream) -> Option<TlsProperties> {
        stream.properties(self.has_certificate)
    }

    fn connection(&self, usage: ConnectionUse) -> Result<ClientConnection> {
        let config = match usage {
            ConnectionUse::Control => &self.control,
            ConnectionUse::Data => &self.data,
            ConnectionUse::Secured => &self.secured,
        };
        ClientConnection::new(Arc::clone(config), self.name.clone())
            .map_err(|cause| TlsError(format!("preparing TLS: {cause}")))
    }

    /// Joins a data connection to its session: sends the cookie inside TLS, after which both ends go on without.
    pub(crate) fn join(&self, stream: TcpStream, cookie: &[u8], cancel: Option<BorrowedFd<'_>>) -> Result<TcpStream> {
        let mut connection = self.secure(stream, ConnectionUse::Data, cancel)?;
        let joined = connection.send(cookie).and_then(|()| {
            let stream = connection.into_stream();
            stream.set_nonblocking(false).map(|()| stream)
        });
        joined.map_err(|cause| {
            TlsError(format!("joining a data connection to its session: {}", linerate_sys::describe_os_error(&cause)))
        })
    }

    /// The same for a data connection that stays in TLS; returns its encryption.
    pub(crate) fn join_secured(
        &self,
        stream: TcpStream,
        cookie: &[u8],
        cancel: Option<BorrowedFd<'_>>,
    ) -> Result<(TcpStream, DataCipher)> {
        let mut connection = self.secure(stream, ConnectionUse::Secured, cancel)?;
        let failed = |cause: &std::io::Error| {
            TlsError(format!("joining a data connection to its session: {}", linerate_sys::describe_os_error(cause)))
        };
        connection.send(cookie).map_err(|cause| failed(&cause))?;
        let (stream, cipher) = connection.into_secured().ok_or_else(|| TlsError(CLOSED.to_owned()))?;
        stream.set_nonblocking(false).map_err(|cause| failed(&cause))?;
        Ok((stream, cipher.with_certificate(self.has_certificate)))
    }

    /// Conducts the handshake on a connection; a readable `cancel` ends it.
    pub(crate) fn secure(
        &self,
        stream: TcpStream,
        usage: ConnectionUse,
        cancel: Option<BorrowedFd<'_>>,
    ) -> Result<ControlConnection> {
        let channel = TlsChannel::of_client(self.connection(usage)?, self.trust.clone());
        let failed = |cause: std::io::Error| {
            TlsError(format!("the TLS handshake with the server: {}", linerate_sys::describe_os_error(&cause)))
        };
        let mut control = ControlConnection::secured(stream, channel).map_err(failed)?;
        let deadline = clock::monotonic_now() + HANDSHAKE_TIMEOUT;
        loop {
            // A server that refuses may have closed already: its message explains more than the failed write.
            let written = control.flush();
            if !control.is_handshaking() && control.is_flushed() {
                return Ok(control);
            }
            wait(&control, deadline.since(clock::monotonic_now()), cancel)?;
            if control.shake_hands() == ControlRead::Closed {
                let failure = control.tls_failure();
                return Err(failure.unwrap_or_else(|| TlsError(CLOSED.to_owned())));
            }
            written.map_err(failed)?;
        }
    }
}

/// Reason for a server that closes during the handshake.
pub(super) const CLOSED: &str = "the server closed the connection during the TLS handshake: it may be without TLS \
                                 (start it with `linerate serve --tls`), or refuse this client";

fn wait(control: &ControlConnection, left: Duration, cancel: Option<BorrowedFd<'_>>) -> Result<()> {
    if left.is_zero() {
        return Err(TlsError(format!(
            "the server did not complete the TLS handshake within {} s: it may be without TLS (start it with \
             `linerate serve --tls`)",
            HANDSHAKE_TIMEOUT.as_secs()
        )));
    }
    let mut items = vec![PollItem::new(control, control.interest(true))];
    items.extend(cancel.as_ref().map(|cancel| PollItem::new(cancel, PollInterest::READ)));
    poll::wait(&mut items, Some(left)).map_err(|cause| TlsError(cause.to_string()))?;
    let cancelled = items.get(1).is_some_and(PollItem::is_readable);
    if cancelled { Err(TlsError("interrupted during the TLS handshake".to_owned())) } else { Ok(()) }
}

fn verifier(trust: &ServerTrust, shared: Option<&SharedKeys>) -> Result<Arc<dyn ServerCertVerifier>> {
    let roots = match (trust, shared) {
        (ServerTrust::Pin(pin) | ServerTrust::SessionKey(pin), _) => return Ok(PinnedKey::new(*pin)),
        (_, Some(keys)) => return Ok(PinnedKey::new(identity::pin_of(&keys.server))),
        (ServerTrust::Authorities(file), _) => identity::authorities(file)?,
        _ => system_authorities()?,
    };
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), identity::provider()).build();
    verifier.map(|verifier| verifier as _).map_err(|cause| TlsError(format!("preparing TLS: {cause}")))
}

pub(super) fn system_authorities() -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(TlsError(
            "this host trusts no certificate authority: install the package ca-certificates, or name the server's by \
             --tls-ca, its key by --tls-pin, or a key that both ends have by --shared-key-file"
                .to_owned(),
        ));
    }
    Ok(roots)
}

/// Name that a certificate must have; pinned keys have none.
fn server_name(host: &str, trust: &ServerTrust) -> Result<ServerName<'static>> {
    let bare = host.split_once('%').map_or(host, |(address, _)| address);
    match ServerName::try_from(bare.to_owned()) {
        Ok(name) => Ok(name),
        Err(_) if !matches!(trust, ServerTrust::System | ServerTrust::Authorities(_)) => {
            Ok(ServerName::IpAddress(core::net::IpAddr::from([0, 0, 0, 0]).into()))
        }
        Err(_) => Err(TlsError(format!("\"{host}\" is no name that a certificate can have: pin the key by --tls-pin"))),
    }
}
