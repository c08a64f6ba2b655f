//! Target of a probe session.

use core::time::Duration;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_model::address_family::AddressFamily;
use linerate_sys::net::{self, ConnectOptions, SocketSettings};
use linerate_sys::options::KeepaliveSettings;
use linerate_sys::signals::InterruptSignals;
use linerate_units::{Mss, Port};
use linerate_wire::cookie::AdmissionKey;

use super::error::{ProbeError, Result};
use crate::tls::TlsClientOptions;

/// Keepalive by which a client detects within half a minute that its server has vanished silently.
const KEEPALIVE: KeepaliveSettings =
    KeepaliveSettings { idle: Some(Duration::from_secs(10)), interval: Some(Duration::from_secs(5)), probes: Some(4) };

/// A server, and the local addresses and interface to reach it from.
#[derive(Clone, Debug)]
pub struct ProbeTarget {
    /// Name or address, as documents show it.
    pub host: String,
    /// Name or address to connect to, where `host` is neither.
    pub address: Option<String>,
    /// Its control port.
    pub port: Port,
    /// Address families that may be used.
    pub family: Option<AddressFamily>,
    /// Local address; `None` lets the kernel choose.
    pub bind: Option<IpAddr>,
    /// The only interface to use.
    pub device: Option<String>,
    /// Time limit for connecting; `None` is the kernel's own, about two minutes.
    pub connect_timeout: Option<Duration>,
    /// True when a host without a server is measured, too, as far as ICMP and STAMP allow.
    pub without_server: bool,
    /// True when the server opens the connections, often from behind an address translator: then only TCP reaches it.
    pub dialed_in: bool,
    /// Key of a server that serves only this client.
    pub key: Option<AdmissionKey>,
    /// TLS of the conversation; `None` is none.
    pub tls: Option<Arc<TlsClientOptions>>,
}

/// Segment size of the control connection: it must get through where full packets vanish silently (RFC 2923), as such
/// paths are measured, too.
const CONTROL_MSS: Mss = Mss::new(1000);

impl ProbeTarget {
    /// `host` on `port`, with the system's defaults and a connect timeout of ten seconds.
    #[must_use]
    pub fn new(host: impl Into<String>, port: Port) -> Self {
        Self {
            host: host.into(),
            address: None,
            port,
            family: None,
            bind: None,
            device: None,
            without_server: false,
            dialed_in: false,
            key: None,
            tls: None,
            connect_timeout: Some(Duration::from_secs(10)),
        }
    }

    /// Reason why packets to the server's address are no measurement of the path to it; `None` where they are.
    pub(crate) fn unreachable_reason(&self) -> Option<&'static str> {
        self.dialed_in.then_some("the server dials in (--listen): only its TCP connections lead to it, not its address")
    }

    /// Name or address to connect to.
    #[must_use]
    pub fn address(&self) -> &str {
        self.address.as_deref().unwrap_or(&self.host)
    }

    /// Connects to the first of the host's addresses that answers.
    pub(super) fn connect(&self, stop: Option<&InterruptSignals>) -> Result<TcpStream> {
        let unreachable = |cause: &linerate_sys::Error| ProbeError::Unreachable(cause.to_string());
        let addresses = net::resolve(self.address(), self.port, self.family).map_err(|cause| unreachable(&cause))?;
        let mut last =
            ProbeError::Unreachable(format!("\"{}\" has no address of the requested family", self.address()));
        for remote in addresses {
            let settings = SocketSettings { mss: Some(CONTROL_MSS), ..SocketSettings::default() };
            match self.connect_to(remote, settings, stop) {
                Ok(stream) => return Ok(stream),
                Err(linerate_sys::Error::Cancelled { .. }) => return Err(ProbeError::Interrupted),
                Err(cause) => last = unreachable(&cause),
            }
        }
        Err(last)
    }

    /// Connects to one address of the host.
    pub(crate) fn connect_to(
        &self,
        remote: SocketAddr,
        settings: SocketSettings,
        stop: Option<&InterruptSignals>,
    ) -> linerate_sys::Result<TcpStream> {
        let options = ConnectOptions {
            bind: self.bind.map(|address| SocketAddr::new(address, 0)),
            device: self.device.clone(),
            timeout: self.connect_timeout,
            settings: SocketSettings { keepalive: Some(KEEPALIVE), no_delay: true, ..settings },
            ..ConnectOptions::to(remote)
        };
        net::connect_tcp(&options, stop.map(AsFd::as_fd))
    }
}
