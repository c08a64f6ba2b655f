//! Options of a connection to NATS.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use linerate_nats::{ClientCertificate, NatsFleet, NatsLogin, NatsSettings};

/// Servers of commands that need them.
#[derive(Debug, Args)]
pub(super) struct RequiredServers {
    /// Servers of NATS, separated by commas: nats://HOST:PORT, or tls://HOST:PORT
    #[arg(id = "servers", long = "nats", value_name = "URL", value_delimiter = ',', required = true)]
    servers: Vec<String>,
    /// Options.
    #[command(flatten)]
    options: ConnectionOptions,
}

/// Servers of the agent.
#[derive(Debug, Args)]
pub(crate) struct AgentServers {
    /// Servers of NATS with the description, separated by commas: nats://HOST:PORT, or tls://HOST:PORT
    #[arg(id = "servers", long = "nats", value_name = "URL", value_delimiter = ',')]
    servers: Vec<String>,
    /// Options.
    #[command(flatten)]
    options: ConnectionOptions,
}

/// Options of a connection. Secrets are in files: other users see the command line.
#[derive(Debug, Args)]
struct ConnectionOptions {
    /// Name of the fleet, with which its streams and subjects begin
    #[arg(long, value_name = "NAME", default_value = "fleet")]
    fleet: String,
    /// Log in with this file of a JWT and its seed (.creds)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "servers",
          conflicts_with_all = ["nats_password", "nats_token"])]
    nats_credentials: Option<PathBuf>,
    /// Log in with the first line of this file: USER:PASSWORD
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "servers",
          conflicts_with = "nats_token")]
    nats_password: Option<PathBuf>,
    /// Log in with the first line of this file: a token
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "servers")]
    nats_token: Option<PathBuf>,
    /// Authorities of the servers' certificates (PEM) instead of those of the system
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "servers")]
    nats_ca: Option<PathBuf>,
    /// Certificate of this client (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires_all = ["servers", "nats_key"])]
    nats_certificate: Option<PathBuf>,
    /// Key of that certificate (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "nats_certificate")]
    nats_key: Option<PathBuf>,
}

impl RequiredServers {
    pub(super) fn connect(&self) -> Result<NatsFleet, String> {
        NatsFleet::connect(&self.options.settings(&self.servers)).map_err(|error| error.to_string())
    }
}

impl AgentServers {
    /// True when there are servers.
    pub(crate) fn is_given(&self) -> bool {
        !self.servers.is_empty()
    }

    pub(super) fn settings(&self) -> NatsSettings {
        self.options.settings(&self.servers)
    }
}

impl ConnectionOptions {
    fn settings(&self, servers: &[String]) -> NatsSettings {
        let mut settings = NatsSettings::new(servers.to_vec(), &*self.fleet);
        settings.login = match (&self.nats_credentials, &self.nats_password, &self.nats_token) {
            (Some(file), ..) => NatsLogin::Credentials(file.clone()),
            (_, Some(file), _) => NatsLogin::Password(file.clone()),
            (.., Some(file)) => NatsLogin::Token(file.clone()),
            _ => NatsLogin::Anonymous,
        };
        settings.authority.clone_from(&self.nats_ca);
        let pair = self.nats_certificate.clone().zip(self.nats_key.clone());
        settings.client_certificate = pair.map(|(certificate, key)| ClientCertificate { certificate, key });
        settings
    }
}
