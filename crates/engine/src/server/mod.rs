//! The server: one port for everything, any number of clients at once.
//!
//! One thread accepts (`acceptor`): it reads the cookie of each new connection without blocking, hands data connections
//! to their session and starts a thread for each new session. A session (`session`) drives its own test from the
//! parameters to the results and can neither delay nor end another one. The listener never closes; a second one on its
//! port takes the connections whose buffers have to be set before the handshake (`windows`).

mod acceptor;
mod client_choices;
mod dialer;
mod gate;
mod handshakes;
mod inbox;
mod opening;
mod probe_session;
mod quic;
mod rate_watch;
mod reflector;
mod registry;
mod service;
mod session;
mod tcp_turns;
#[cfg(test)]
mod tests;
mod udp_hub;
mod waiting;
mod watchdog;
mod windows;

use core::num::NonZeroUsize;
use core::time::Duration;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use linerate_model::address_family::AddressFamily;
use linerate_model::event::TestEvent;
use linerate_model::parameters::CpuIndex;
use linerate_model::report::ServerOutput;
use linerate_sys::net::{self, ListenOptions, PortSharing};
use linerate_sys::options::KeepaliveSettings;
use linerate_sys::process;
use linerate_sys::signals::InterruptSignals;
use linerate_units::{BitRate, Port};
use linerate_wire::ControlDeadlines;
use linerate_wire::authentication::Authenticator;
use linerate_wire::cookie::AdmissionKey;
use linerate_wire::error::ErrorCode;
use linerate_wire::parameters::ServerLimits;

use acceptor::AcceptorLimits;
use reflector::{BoundReflector, ListenParameters};
use registry::SessionRegistry;
use windows::WindowListener;

pub use client_choices::ClientChoices;
pub use dialer::DialTarget;
pub use quic::{QuicExchange, QuicGrant, QuicService, QuicSession, QuicSessionRequest};
pub use reflector::StampOptions;
pub use service::{
    HandshakeQuota, ServiceAccess, ServiceLease, ServiceRefusal, ServiceSession, ServiceShare, TrafficShare,
};

use crate::error::{Error, Result};
use crate::resources::{ServerResources, session_memory};
use crate::tls::{KeyPin, TlsServer};

/// Options of a server. The defaults are iperf3's, but for many clients at once.
#[derive(Debug)]
pub struct ServerOptions {
    /// Address to listen on (`-B`); `None` for all.
    pub address: Option<IpAddr>,
    /// Port, for TCP and UDP; `None` lets the kernel choose.
    pub port: Option<Port>,
    /// Address families.
    pub family: Option<AddressFamily>,
    /// Interface to listen on only (`--bind-dev`).
    pub device: Option<String>,
    /// Accept Multipath TCP (`-m`).
    pub multipath: bool,
    /// Most sessions at once.
    pub max_sessions: NonZeroUsize,
    /// Let further clients wait their turn instead of refusing them as busy.
    pub queue: bool,
    /// End after one test (`-1`).
    pub one_off: bool,
    /// With `one_off`: end when no client has arrived for this long (`--idle-timeout`).
    pub idle_timeout: Option<Duration>,
    /// Limits of the clients' requests.
    pub limits: ServerLimits,
    /// Choices that it grants its clients.
    pub choices: ClientChoices,
    /// Time over which `limits.max_total_rate` is averaged while a test runs.
    pub rate_averaging: Duration,
    /// Key without which no client is served; `None` serves all.
    pub admission: Option<AdmissionKey>,
    /// TLS, without which no client is served; `None` is none.
    pub tls: Option<Arc<TlsServer>>,
    /// Client authentication; `None` admits all clients.
    pub authenticator: Option<Arc<Authenticator>>,
    /// Time between interval reports; `None` for none.
    pub interval: Option<Duration>,
    /// True when a linerate client may choose another interval ([`TestParameters::far_interval`]). Not for a server
    /// that shows its intervals itself.
    ///
    /// [`TestParameters::far_interval`]: linerate_model::parameters::TestParameters::far_interval
    pub interval_by_client: bool,
    /// A test in which no data moves in either direction for this long is ended (`--rcv-timeout`).
    pub stall_timeout: Duration,
    /// `TCP_USER_TIMEOUT` of the connections (`--snd-timeout`).
    pub send_timeout: Option<Duration>,
    /// Keepalive of the control connection.
    pub keepalive: KeepaliveSettings,
    /// File to receive into (`-F`).
    pub file: Option<PathBuf>,
    /// Highest read rate of each TCP stream, to emulate a slow application; `None` is unlimited.
    pub read_rate: Option<BitRate>,
    /// Processor to run the sessions on (`-A`), unless the client names one.
    pub cpu: Option<CpuIndex>,
    /// Time limits of the control connections.
    pub deadlines: ControlDeadlines,
    /// Answer STAMP senders (RFC 8762); `None` does not.
    pub stamp: Option<StampOptions>,
    /// Client that this server dials, as it cannot be reached itself.
    pub dial: Option<DialTarget>,
    /// Measurements over QUIC; `None` refuses them.
    pub quic: Option<Arc<dyn QuicService>>,
    /// True to report the documents of the control connections ([`TestEvent::Debug`]; `-d`).
    ///
    /// [`TestEvent::Debug`]: linerate_model::event::TestEvent::Debug
    pub debug: bool,
}

/// Default limit of sessions: each costs at least a thread.
pub const DEFAULT_MAX_SESSIONS: NonZeroUsize = NonZeroUsize::new(1000).expect("not zero");

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            address: None,
            port: Some(Port::IPERF3),
            family: None,
            device: None,
            multipath: false,
            max_sessions: DEFAULT_MAX_SESSIONS,
            queue: false,
            one_off: false,
            idle_timeout: None,
            limits: ServerLimits::default(),
            choices: ClientChoices::default(),
            rate_averaging: Duration::from_secs(5),
            admission: None,
            tls: None,
            authenticator: None,
            interval: Some(Duration::from_secs(1)),
            interval_by_client: false,
            stall_timeout: Duration::from_secs(120),
            send_timeout: None,
            // A client that vanishes silently (power, cable, NAT) is detected within a minute.
            keepalive: KeepaliveSettings {
                idle: Some(Duration::from_secs(20)),
                interval: Some(Duration::from_secs(10)),
                probes: Some(3),
            },
            file: None,
            read_rate: None,
            cpu: None,
            // Short: a connected and silent client holds a thread.
            deadlines: ControlDeadlines {
                message_idle: Duration::from_secs(5),
                message_total: Duration::from_secs(15),
                ..ControlDeadlines::default()
            },
            stamp: None,
            dial: None,
            quic: None,
            debug: false,
        }
    }
}

/// Receiver of a server's events.
pub trait ServerObserver: Sync {
    /// No session is left (or none has come yet); the next one will have this number.
    fn idle(&self, next_session: u64);

    /// A client has been accepted; the returned observer receives its session's events.
    fn session(&self, number: u64) -> Box<dyn SessionObserver>;

    /// A problem that concerns no session.
    fn problem(&self, text: &str);

    /// A note that concerns no session; the server goes on.
    fn note(&self, _text: &str) {}
}

/// Receiver of a session's events, on the session's own thread.
pub trait SessionObserver: Send {
    /// An event.
    fn event(&mut self, event: &TestEvent);

    /// Output so far, for a client that requests it (`--get-server-output`).
    fn output(&mut self) -> Option<ServerOutput>;

    /// The session failed.
    fn failed(&mut self, error: &Error);
}

/// A listening server.
pub struct Server {
    listener: TcpListener,
    /// For connections with a window, where the kernel can tell them apart.
    windows: Option<WindowListener>,
    address: SocketAddr,
    without_ipv6: bool,
    options: Arc<ServerOptions>,
    limits: AcceptorLimits,
    /// Budget of all sessions.
    pub(crate) resources: Arc<ServerResources>,
    registry: Arc<SessionRegistry>,
    /// The reflector, or the reason why a requested one is missing.
    reflector: Option<core::result::Result<BoundReflector, String>>,
}

impl Server {
    /// Starts to listen. The process's limit of open files bounds what the server takes: raise it before.
    ///
    /// # Errors
    ///
    /// `unable to start listener for connections`, with the system's reason: most often the port is in use, including
    /// the chosen port of the STAMP reflector.
    pub fn bind(options: ServerOptions) -> Result<Self> {
        let listen = ListenOptions {
            address: options.address,
            port: options.port,
            family: options.family,
            device: options.device.clone(),
            multipath: options.multipath,
            sharing: PortSharing::First,
            ..ListenOptions::default()
        };
        let failed = |cause: &linerate_sys::Error| Error::system(ErrorCode::LISTEN, cause);
        let listening = net::listen_tcp(&listen).map_err(|cause| failed(&cause))?;
        let io_failed = |cause: std::io::Error| Error::io(ErrorCode::LISTEN, &cause);
        listening.listener.set_nonblocking(true).map_err(io_failed)?;
        // Lets a probe session report the SYN's options on arrival; without it, they stay unknown.
        let _ = linerate_sys::options::set_save_syn(&listening.listener, true);
        let address = listening.listener.local_addr().map_err(io_failed)?;
        let without_ipv6 = listening.without_ipv6;
        let windows = WindowListener::bind(&listening.listener, &listen);
        let place = ListenParameters {
            address: options.address,
            family: options.family,
            device: options.device.clone(),
            server: address.port(),
        };
        let reflector = options.stamp.as_ref().map(|stamp| BoundReflector::bind(stamp, &place)).transpose();
        let reflector = reflector.map_err(|cause| failed(&cause))?;
        let limits = AcceptorLimits::of(process::open_file_limit());
        let memory = session_memory(u64::try_from(options.max_sessions.get()).unwrap_or(u64::MAX));
        let resources = ServerResources::limited(memory, limits.session_descriptors, options.limits.max_total_rate);
        let handle = reflector.as_ref().and_then(|bound| Some(bound.as_ref().ok()?.handle().clone()));
        let registry = SessionRegistry::shared(handle, &resources).map_err(io_failed)?;
        Ok(Self {
            listener: listening.listener,
            windows,
            address,
            without_ipv6,
            options: Arc::new(options),
            limits,
            resources,
            registry,
            reflector,
        })
    }

    /// Gives the sessions this budget.
    #[cfg(test)]
    pub(crate) fn set_resources(&mut self, resources: Arc<ServerResources>) {
        self.registry = SessionRegistry::shared(None, &resources).expect("a waker");
        self.resources = resources;
    }

    /// Sessions, memory and rate for another service of this process, within the limits of this server.
    #[must_use]
    pub fn service_access(&self) -> ServiceAccess {
        ServiceAccess::new(Arc::clone(&self.registry), Arc::clone(&self.options))
    }

    /// True when only clients with TLS are served.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        self.options.tls.is_some()
    }

    /// Pin of the key by which clients recognize the server; `None` without TLS, or with a shared key.
    #[must_use]
    pub fn tls_pin(&self) -> Option<KeyPin> {
        self.options.tls.as_ref()?.pin()
    }

    /// UDP port on which STAMP senders are answered; `None` without a reflector.
    #[must_use]
    pub fn reflector_port(&self) -> Option<Port> {
        self.bound_reflector().map(|reflector| reflector.handle().port())
    }

    fn bound_reflector(&self) -> Option<&BoundReflector> {
        self.reflector.as_ref()?.as_ref().ok()
    }

    /// Listening address; the port is the kernel's choice if none was given.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// True when the system has no IPv6, so that only IPv4 clients can connect.
    #[must_use]
    pub fn is_without_ipv6(&self) -> bool {
        self.without_ipv6
    }

    /// Serves until `stop` has a signal, or, with `one_off`, until one test is over.
    ///
    /// # Errors
    ///
    /// Only failures that make serving impossible; a session's own failures go to its observer.
    pub fn run(self, stop: Option<&InterruptSignals>, observer: &dyn ServerObserver) -> Result<()> {
        acceptor::run(&self, stop, observer)
    }
}
