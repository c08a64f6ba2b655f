//! Settings of a connection.

use std::fs;
use std::path::{Path, PathBuf};

use async_nats::{ConnectOptions, ServerAddr};

use crate::error::NatsError;
use crate::names;

/// Way to log in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NatsLogin {
    /// None: a server without accounts, or one that knows the client by its certificate.
    #[default]
    Anonymous,
    /// File with a JWT and its seed (`.creds`).
    Credentials(PathBuf),
    /// File whose first line is `USER:PASSWORD`.
    Password(PathBuf),
    /// File whose first line is a token.
    Token(PathBuf),
}

/// Certificate of the client, and its key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// File of the certificate.
    pub certificate: PathBuf,
    /// File of the key.
    pub key: PathBuf,
}

/// Settings of a connection. Secrets are in files only: a command line is seen by all users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsSettings {
    /// Servers: `nats://HOST:PORT`, or `tls://HOST:PORT` for TLS only.
    pub servers: Vec<String>,
    /// Way to log in.
    pub login: NatsLogin,
    /// File of the authorities that sign the servers' certificates, in PEM; those of the system when `None`.
    pub authority: Option<PathBuf>,
    /// Certificate of the client.
    pub client_certificate: Option<ClientCertificate>,
    /// Name of the fleet, the first part of each stream and subject.
    pub fleet: String,
}

impl NatsSettings {
    /// Fleet of that name on these servers, without a login.
    #[must_use]
    pub fn new(servers: Vec<String>, fleet: impl Into<String>) -> Self {
        Self { servers, login: NatsLogin::default(), authority: None, client_certificate: None, fleet: fleet.into() }
    }

    /// Checked addresses of the servers.
    pub(crate) fn addresses(&self) -> Result<Vec<ServerAddr>, NatsError> {
        if !names::is_fleet_name(&self.fleet) {
            let remedy = "expected 1 to 32 letters, digits, - and _";
            return Err(NatsError::Setting(format!("{:?} is no name of a fleet: {remedy}", self.fleet)));
        }
        if self.servers.is_empty() {
            return Err(NatsError::Setting("no server is given".to_owned()));
        }
        self.servers.iter().map(|server| address(server)).collect()
    }

    /// Options of the client, with the contents of the files.
    pub(crate) fn options(&self) -> Result<ConnectOptions, NatsError> {
        let mut options = match &self.login {
            NatsLogin::Anonymous => ConnectOptions::new(),
            NatsLogin::Credentials(file) => {
                let text = read(file)?;
                let invalid =
                    |error: std::io::Error| unusable(file, format!("{error}: expected a file of `nsc` (.creds)"));
                ConnectOptions::new().credentials(&text).map_err(invalid)?
            }
            NatsLogin::Password(file) => {
                let line = first_line(file)?;
                let (user, password) =
                    line.split_once(':').ok_or_else(|| unusable(file, "the first line is not USER:PASSWORD"))?;
                ConnectOptions::with_user_and_password(user.to_owned(), password.to_owned())
            }
            NatsLogin::Token(file) => ConnectOptions::with_token(first_line(file)?),
        };
        if let Some(file) = &self.authority {
            has_certificate(file)?;
            options = options.add_root_certificates(file.clone()).require_tls(true);
        }
        if let Some(ClientCertificate { certificate, key }) = &self.client_certificate {
            has_certificate(certificate)?;
            if !read(key)?.contains("PRIVATE KEY-----") {
                return Err(unusable(key, "it has no key: expected -----BEGIN PRIVATE KEY-----"));
            }
            options = options.add_client_certificate(certificate.clone(), key.clone()).require_tls(true);
        }
        Ok(options)
    }
}

fn address(server: &str) -> Result<ServerAddr, NatsError> {
    let parsed: ServerAddr = server.parse().map_err(|error: std::io::Error| {
        NatsError::Setting(format!("{server:?} is no server: {error}: expected nats://HOST:PORT or tls://HOST:PORT"))
    })?;
    if parsed.has_user_pass() {
        // The text has the password in it.
        let remedy = "put USER:PASSWORD into a file, and name it with --nats-password";
        return Err(NatsError::Setting(format!("the address of {} has a password in it: {remedy}", parsed.host())));
    }
    if !matches!(parsed.scheme(), "nats" | "tls") {
        return Err(NatsError::Setting(format!(
            "{server:?} is no server: expected nats://HOST:PORT or tls://HOST:PORT"
        )));
    }
    Ok(parsed)
}

fn unusable(file: &Path, reason: impl Into<String>) -> NatsError {
    NatsError::File { file: file.display().to_string(), reason: reason.into() }
}

fn read(file: &Path) -> Result<String, NatsError> {
    fs::read_to_string(file).map_err(|cause| unusable(file, cause.to_string()))
}

fn first_line(file: &Path) -> Result<String, NatsError> {
    let text = read(file)?;
    let line = text.lines().next().unwrap_or_default().trim();
    if line.is_empty() { Err(unusable(file, "its first line is empty")) } else { Ok(line.to_owned()) }
}

fn has_certificate(file: &Path) -> Result<(), NatsError> {
    if read(file)?.contains("-----BEGIN CERTIFICATE-----") {
        return Ok(());
    }
    Err(unusable(file, "it has no certificate: expected -----BEGIN CERTIFICATE-----"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_names_are_checked_and_passwords_never_repeated() {
        for (servers, fleet, part) in [
            (vec![], "fleet", "no server is given"),
            (vec!["nats://h:1"], "a.b", "no name of a fleet"),
            (vec!["nats://me:secret@h:1"], "fleet", "the address of h has a password in it"),
            (vec!["http://h:1"], "fleet", "\"http://h:1\" is no server"),
            (vec!["nats://h:99999"], "fleet", "is no server"),
        ] {
            let settings = NatsSettings::new(servers.into_iter().map(str::to_owned).collect(), fleet);
            let text = settings.addresses().expect_err("refused").to_string();
            assert!(text.contains(part) && !text.contains("secret"), "{text}");
        }
        let settings = NatsSettings::new(vec!["nats://h:4222".to_owned(), "tls://[::1]:4223".to_owned()], "fleet");
        assert_eq!(settings.addresses().expect("addresses").len(), 2);
    }

    #[test]
    fn files_of_the_settings_are_checked_before_anything_is_sent() {
        let mut settings = NatsSettings::new(vec!["nats://h:4222".to_owned()], "fleet");
        for login in [NatsLogin::Credentials("/dev/null".into()), NatsLogin::Password("/dev/null".into())] {
            settings.login = login;
            assert!(matches!(settings.options(), Err(NatsError::File { .. })));
        }
        settings.login = NatsLogin::Token("/no/such/file".into());
        let text = settings.options().expect_err("refused").to_string();
        assert!(text.starts_with("reading /no/such/file: No such file"), "{text}");
        settings.login = NatsLogin::Anonymous;
        settings.authority = Some("/dev/null".into());
        assert!(settings.options().expect_err("refused").to_string().contains("it has no certificate"));
    }
}
