//! Properties of TLS connections that decide what they cost.

use serde::{Deserialize, Serialize};

/// Means by which a server authenticates itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ServerAuthentication {
    /// A raw public key (RFC 7250), which the client pins.
    RawPublicKey,
    /// A certificate for the server's name, from an authority that the client trusts.
    Certificate,
}

/// Properties of a TLS 1.3 connection, as its handshake negotiated them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TlsProperties {
    /// Authentication of the server.
    pub authentication: ServerAuthentication,
    /// Algorithm of the server's key, for example `Ed25519` or `RSA 2048`; `None` when unknown.
    pub key_algorithm: Option<String>,
    /// True when the client has a key or a certificate, too.
    pub client_authenticated: bool,
    /// Cipher suite, by its name in the registry of TLS; `None` when unknown.
    pub cipher_suite: Option<String>,
    /// Group of the key exchange, by its name in the registry of TLS; `None` when unknown.
    pub key_exchange: Option<String>,
}

impl TlsProperties {
    /// Text such as `TLS 1.3, raw public key (Ed25519), X25519, TLS13_AES_256_GCM_SHA384`; without what is unknown.
    #[must_use]
    pub fn text(&self) -> String {
        let authentication = match self.authentication {
            ServerAuthentication::RawPublicKey => "raw public key",
            ServerAuthentication::Certificate => "certificate",
        };
        let mut text = format!("TLS 1.3, {authentication}");
        if let Some(algorithm) = &self.key_algorithm {
            text = format!("{text} ({algorithm})");
        }
        if self.client_authenticated {
            text.push_str(", client authenticated");
        }
        for known in [&self.key_exchange, &self.cipher_suite].into_iter().flatten() {
            text = format!("{text}, {known}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_omits_what_is_unknown() {
        let all = TlsProperties {
            authentication: ServerAuthentication::RawPublicKey,
            key_algorithm: Some("Ed25519".into()),
            client_authenticated: true,
            cipher_suite: Some("TLS13_AES_256_GCM_SHA384".into()),
            key_exchange: Some("X25519".into()),
        };
        let text = "TLS 1.3, raw public key (Ed25519), client authenticated, X25519, TLS13_AES_256_GCM_SHA384";
        assert_eq!(all.text(), text);
        let little = TlsProperties {
            authentication: ServerAuthentication::Certificate,
            key_algorithm: None,
            client_authenticated: false,
            cipher_suite: None,
            key_exchange: None,
        };
        assert_eq!(little.text(), "TLS 1.3, certificate");
    }
}
