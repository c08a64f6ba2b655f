//! TLS 1.3 of the control conversation, by rustls.
//!
//! Every TCP connection of a session begins with a TLS handshake, in which both ends authenticate as configured, and
//! carries its cookie inside TLS. The control connection stays in TLS; data connections continue without (`ConnectionUse`),
//! so that goodput is measured as it is without TLS, and only who takes part in the session may open them. On request
//! (`--tls-data`) they stay in TLS, too, and their threads encrypt and decrypt (`DataCipher`).
//!
//! There are no tickets and no early data: a recorded conversation that is replayed meets a fresh random of the server.

#[cfg(not(feature = "tls"))]
mod absent;
#[cfg(feature = "tls")]
mod channel;
#[cfg(feature = "tls")]
mod client;
#[cfg(feature = "tls")]
mod data;
#[cfg(all(test, feature = "tls"))]
mod data_tests;
#[cfg(feature = "tls")]
mod failure;
#[cfg(feature = "tls")]
pub mod fuzzing;
#[cfg(feature = "tls")]
pub mod https;
#[cfg(feature = "tls")]
mod identity;
#[cfg(feature = "tls")]
mod properties;
#[cfg(feature = "tls")]
mod records;
#[cfg(feature = "tls")]
mod self_signed;
#[cfg(feature = "tls")]
mod server;
#[cfg(feature = "tls")]
mod stream;
#[cfg(all(test, feature = "tls"))]
mod tests;

use std::path::PathBuf;

#[cfg(not(feature = "tls"))]
pub(crate) use absent::{DataCipher, TlsChannel, TlsStream};
#[cfg(not(feature = "tls"))]
pub use absent::{TlsClient, TlsServer};
#[cfg(feature = "tls")]
pub(crate) use channel::TlsChannel;
#[cfg(feature = "tls")]
pub use client::TlsClient;
#[cfg(feature = "tls")]
pub(crate) use data::DataCipher;
#[cfg(feature = "tls")]
pub use identity::{PinnedKey, pin_of_public_key};
pub use linerate_wire::key_pin::KeyPin;
#[cfg(feature = "tls")]
pub use server::TlsServer;
#[cfg(feature = "tls")]
pub(crate) use stream::TlsStream;

/// Result of reading from the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "without TLS nothing arrives over it"))]
pub(crate) enum ReceiveOutcome {
    /// Something arrived.
    Progress,
    /// No data yet.
    Nothing,
    /// The peer has closed, or TLS has failed.
    Closed,
}

/// Certificate chain and private key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// Certificate, followed by those of its issuers.
    pub certificate: PathBuf,
    /// Private key of the certificate.
    pub key: PathBuf,
}

/// Means by which a client recognizes its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerTrust {
    /// Certificate for the server's name, from an authority that this host trusts.
    System,
    /// The same, from an authority in this PEM file.
    Authorities(PathBuf),
    /// Digest of the server's public key, as the user gave it.
    Pin(KeyPin),
    /// Digest of the key of a session whose conversation, without TLS, has named it.
    SessionKey(KeyPin),
    /// File with the key that both ends have, which authenticates the client, too.
    SharedKey(PathBuf),
}

/// TLS of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsClientOptions {
    /// Means to recognize the server.
    pub trust: ServerTrust,
    /// Certificate of the client, for a server that asks for one.
    pub certificate: Option<CertificateFiles>,
}

/// Identity of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerIdentity {
    /// Key made at the start, which clients pin.
    NewKey,
    /// Private key in this PEM file, which clients pin.
    Key(PathBuf),
    /// Certificate; clients may pin its key instead.
    Certificate(CertificateFiles),
    /// File with the key that both ends have.
    SharedKey(PathBuf),
}

/// TLS of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsServerOptions {
    /// Certificate or key by which clients recognize it.
    pub identity: ServerIdentity,
    /// Authorities of the clients' certificates (PEM); with them, a client without a certificate is refused.
    pub client_authorities: Option<PathBuf>,
}

/// Decides after each wait of a socket, and after each part of a handshake: an error ends.
pub(crate) type WaitDecision<'a> = &'a mut dyn FnMut(Option<std::io::Error>) -> Result<(), TlsError>;

/// Failure of TLS: what was tried, the reason, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(pub(crate) String);

/// Use of a connection, which the client names in its first message (ALPN).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionUse {
    /// All of it is in TLS: a control connection.
    Control,
    /// TLS ends after the cookie: a data connection.
    #[cfg(feature = "tls")]
    Data,
    /// All of it is in TLS: a connection whose encryption is measured.
    Secured,
}

impl ConnectionUse {
    /// All uses.
    #[cfg(feature = "tls")]
    const ALL: [Self; 3] = [Self::Control, Self::Data, Self::Secured];

    /// Name in the handshake.
    #[cfg(feature = "tls")]
    const fn protocol(self) -> &'static [u8] {
        match self {
            Self::Control => b"linerate/1",
            Self::Data => b"linerate-data/1",
            Self::Secured => b"linerate-secured/1",
        }
    }
}
