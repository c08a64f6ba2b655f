//! Parameters of a client's test.

use core::time::Duration;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use linerate_model::address_family::AddressFamily;
use linerate_model::parameters::{CpuIndex, TestParameters};
use linerate_sys::options::KeepaliveSettings;
use linerate_units::Port;
use linerate_wire::ControlDeadlines;
use linerate_wire::authentication::RsaPadding;
use linerate_wire::cookie::AdmissionKey;

use crate::probe::ProbeTarget;
use crate::tls::TlsClientOptions;

/// Receive timeout of a client: a server that is alive sends within it, even on slow paths.
const DEFAULT_RECEIVE_TIMEOUT: Duration = Duration::from_secs(30);

/// Default of [`ClientOptions::stall_timeout`]: iperf3's `--rcv-timeout`.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(120);

/// Default of [`ClientOptions::max_exact_time`]: iperf3's longest `-t`.
pub const MAX_EXACT_TIME: Duration = Duration::from_secs(86_400);

/// Parameters of a client test.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The server, by name or address.
    pub host: String,
    /// Its port.
    pub port: Port,
    /// Address families to use.
    pub family: Option<AddressFamily>,
    /// Address to connect from (`-B`).
    pub bind: Option<IpAddr>,
    /// Interface to use (`--bind-dev`).
    pub device: Option<String>,
    /// Port of the first data stream; the others follow it (`--cport`).
    pub client_port: Option<Port>,
    /// The test. Its block size counts only when [`ClientOptions::block_size_given`] is set.
    pub parameters: TestParameters,
    /// True when the user chose the block size. If not, UDP uses the MSS of the control connection.
    pub block_size_given: bool,
    /// Time between interval reports; `None` for none.
    pub interval: Option<Duration>,
    /// Time limit for connecting; `None` is the system's.
    pub connect_timeout: Option<Duration>,
    /// A receiving client gives up when nothing arrives for this long (`--rcv-timeout`); `None`: never.
    pub receive_timeout: Option<Duration>,
    /// `TCP_USER_TIMEOUT` (`--snd-timeout`).
    pub send_timeout: Option<Duration>,
    /// Keepalive of the control connection (`--cntl-ka`).
    pub keepalive: Option<KeepaliveSettings>,
    /// Key of a server that serves only this client.
    pub key: Option<AdmissionKey>,
    /// TLS of the conversation; `None` is none.
    pub tls: Option<Arc<TlsClientOptions>>,
    /// Credentials for a server that requires authentication.
    pub credentials: Option<UserCredentials>,
    /// File to send from or receive into (`-F`).
    pub file: Option<PathBuf>,
    /// Processor to run on (`-A`).
    pub cpu: Option<CpuIndex>,
    /// Time limits of the control connection.
    pub deadlines: ControlDeadlines,
    /// A test whose end is not a time fails when no data moves for this long.
    pub stall_timeout: Duration,
    /// Longest test that ends after a number of bytes or blocks: a server may take a byte per second.
    pub max_exact_time: Duration,
    /// True to report the documents of the control connection ([`TestEvent::Debug`]; `-d`).
    ///
    /// [`TestEvent::Debug`]: linerate_model::event::TestEvent::Debug
    pub debug: bool,
}

impl ClientOptions {
    /// A test with iperf3's defaults, but with a receive timeout; `block_size_given` and all other fields may be
    /// changed.
    #[must_use]
    pub fn new(target: &ProbeTarget, parameters: TestParameters, interval: Option<Duration>) -> Self {
        Self {
            host: target.address().to_owned(),
            port: target.port,
            family: target.family,
            bind: target.bind,
            device: target.device.clone(),
            client_port: None,
            parameters,
            block_size_given: false,
            interval,
            connect_timeout: target.connect_timeout,
            receive_timeout: Some(DEFAULT_RECEIVE_TIMEOUT),
            send_timeout: None,
            keepalive: None,
            key: target.key,
            tls: target.tls.clone(),
            credentials: None,
            file: None,
            cpu: None,
            deadlines: ControlDeadlines::default(),
            stall_timeout: STALL_TIMEOUT,
            max_exact_time: MAX_EXACT_TIME,
            debug: false,
        }
    }
}

/// A user of a server that asks for authentication.
#[derive(Clone)]
pub struct UserCredentials {
    /// Name.
    pub user: String,
    /// Password.
    pub password: String,
    /// The server's public key, PEM.
    pub public_key: String,
    /// RSA padding.
    pub padding: RsaPadding,
}

impl core::fmt::Debug for UserCredentials {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}
