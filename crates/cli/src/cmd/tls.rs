//! Options of TLS, of clients and of the server.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueHint};
use linerate_engine::tls::{
    CertificateFiles, KeyPin, ServerIdentity, ServerTrust, TlsClientOptions, TlsError, TlsServer, TlsServerOptions,
};

/// TLS of a client.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TlsArguments {
    /// Talk to the server in TLS 1.3; it needs a certificate for its name that this host trusts. What is measured stays
    /// as it is
    #[arg(long)]
    tls: bool,
    /// The same, with a server that has this key, as `linerate serve --tls` prints it
    #[arg(long, value_name = "PIN", conflicts_with_all = ["tls_ca", "shared_key_file"])]
    tls_pin: Option<KeyPin>,
    /// The same, with a server whose certificate is from an authority in this file (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "shared_key_file")]
    tls_ca: Option<PathBuf>,
    /// Certificate of this client, with those of its issuers (PEM), for a server that requires one
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        requires = "tls_key",
        conflicts_with = "shared_key_file"
    )]
    tls_cert: Option<PathBuf>,
    /// Private key of that certificate (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Use TLS with a server that has the same secret in its file (16 bytes or more); both ends authenticate
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    shared_key_file: Option<PathBuf>,
}

impl TlsArguments {
    /// TLS of a client; `None` is none.
    pub(crate) fn options(&self) -> Option<Arc<TlsClientOptions>> {
        let certificate = certificate(self.tls_cert.as_ref(), self.tls_key.as_ref());
        let trust = match (&self.tls_pin, &self.tls_ca, &self.shared_key_file) {
            (Some(pin), ..) => ServerTrust::Pin(*pin),
            (_, Some(file), _) => ServerTrust::Authorities(file.clone()),
            (.., Some(file)) => ServerTrust::SharedKey(file.clone()),
            _ if self.tls || certificate.is_some() => ServerTrust::System,
            _ => return None,
        };
        Some(Arc::new(TlsClientOptions { trust, certificate }))
    }

    /// TLS of this host where it is the server of peers that have the same options; `None` is none.
    pub(crate) fn server_of_peers(&self) -> Result<Option<Arc<TlsServer>>, String> {
        let Some(client) = self.options() else { return Ok(None) };
        let identity = match (client.trust.clone(), client.certificate.clone()) {
            (ServerTrust::SharedKey(file), _) => ServerIdentity::SharedKey(file),
            (_, Some(files)) => ServerIdentity::Certificate(files),
            (_, None) => return Err("a server needs --shared-key-file, or --tls-cert with --tls-key".to_owned()),
        };
        let options = TlsServerOptions { identity, client_authorities: self.tls_ca.clone() };
        TlsServer::new(&options).map(|server| Some(Arc::new(server))).map_err(|cause| cause.to_string())
    }

    /// These options as arguments; files by their absolute names, as that process runs in another directory.
    pub(crate) fn to_arguments(&self) -> Vec<String> {
        let absolute =
            |file: &PathBuf| std::path::absolute(file).unwrap_or_else(|_| file.clone()).display().to_string();
        let files = [
            ("--tls-ca", &self.tls_ca),
            ("--tls-cert", &self.tls_cert),
            ("--tls-key", &self.tls_key),
            ("--shared-key-file", &self.shared_key_file),
        ];
        let mut arguments: Vec<String> = self.tls.then(|| "--tls".to_owned()).into_iter().collect();
        arguments.extend(self.tls_pin.map(|pin| format!("--tls-pin={pin}")));
        arguments.extend(
            files.into_iter().filter_map(|(option, file)| Some(format!("{option}={}", absolute(file.as_ref()?)))),
        );
        arguments
    }
}

fn certificate(certificate: Option<&PathBuf>, key: Option<&PathBuf>) -> Option<CertificateFiles> {
    Some(CertificateFiles { certificate: certificate?.clone(), key: key?.clone() })
}

/// TLS of a server.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServeTlsArguments {
    /// Serve only clients that talk TLS 1.3, and no iperf3; without the options below, with a new key, whose pin is printed
    #[arg(long)]
    tls: bool,
    /// Certificate of this server, with those of its issuers (PEM); implies --tls
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        requires = "tls_key",
        conflicts_with = "shared_key_file"
    )]
    tls_cert: Option<PathBuf>,
    /// Private key of that certificate, or alone a key to keep, whose pin is printed (PEM); implies --tls
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "shared_key_file")]
    tls_key: Option<PathBuf>,
    /// Serve only clients whose certificate is from an authority in this file (PEM); implies --tls
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "shared_key_file")]
    tls_client_ca: Option<PathBuf>,
    /// Serve only clients that have the same secret in their file (16 bytes at least); implies --tls
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    shared_key_file: Option<PathBuf>,
}

impl ServeTlsArguments {
    /// TLS of the server; `None` is none.
    pub(crate) fn server(&self) -> Result<Option<Arc<TlsServer>>, TlsError> {
        let identity = match (certificate(self.tls_cert.as_ref(), self.tls_key.as_ref()), &self.shared_key_file) {
            (Some(files), _) => ServerIdentity::Certificate(files),
            (None, Some(file)) => ServerIdentity::SharedKey(file.clone()),
            (None, None) => match &self.tls_key {
                Some(file) => ServerIdentity::Key(file.clone()),
                None if self.tls || self.tls_client_ca.is_some() => ServerIdentity::NewKey,
                None => return Ok(None),
            },
        };
        let options = TlsServerOptions { identity, client_authorities: self.tls_client_ca.clone() };
        TlsServer::new(&options).map(|server| Some(Arc::new(server)))
    }

    /// Identity for HTTP clients, to which certificates are known and shared keys are not.
    #[cfg(feature = "responsiveness")]
    pub(crate) fn web_identity(&self) -> ServerIdentity {
        match (certificate(self.tls_cert.as_ref(), self.tls_key.as_ref()), &self.tls_key) {
            (Some(files), _) => ServerIdentity::Certificate(files),
            (None, Some(file)) => ServerIdentity::Key(file.clone()),
            (None, None) => ServerIdentity::NewKey,
        }
    }
}
