//! Where a probe session goes.

use core::time::Duration;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;

use linerate_sys::net::{self, ConnectOptions, Family, SocketSettings};
use linerate_sys::options::Keepalive;
use linerate_sys::signals::Interrupts;
use linerate_units::{Mss, Port};

use super::error::{ProbeError, Result};

/// A client finds out within half a minute that its server has vanished without a word.
const KEEPALIVE: Keepalive =
    Keepalive { idle: Some(Duration::from_secs(10)), interval: Some(Duration::from_secs(5)), probes: Some(4) };

/// A server, and from where to reach it.
#[derive(Clone, Debug)]
pub struct Target {
    /// Name or address.
    pub host: String,
    /// Its control port.
    pub port: Port,
    /// Address families that may be used.
    pub family: Family,
    /// This end's address; `None` lets the kernel choose.
    pub bind: Option<IpAddr>,
    /// The only interface to use.
    pub device: Option<String>,
    /// How long connecting may take; `None` is as long as the kernel tries, about two minutes.
    pub connect_timeout: Option<Duration>,
}

/// Segments of the control connection have at most this much payload: it must get through where full packets vanish
/// without a word (RFC 2923), as paths are measured on which they do.
const CONTROL_MSS: Mss = Mss::new(1000);

impl Target {
    /// `host` on `port`, all else as the system has it, given up after ten seconds.
    #[must_use]
    pub fn new(host: impl Into<String>, port: Port) -> Self {
        Self {
            host: host.into(),
            port,
            family: Family::Any,
            bind: None,
            device: None,
            connect_timeout: Some(Duration::from_secs(10)),
        }
    }

    /// Connects to the first of the host's addresses that answers.
    pub(super) fn connect(&self, stop: Option<&Interrupts>) -> Result<TcpStream> {
        let unreachable = |cause: &linerate_sys::Error| ProbeError::Unreachable(cause.to_string());
        let addresses = net::resolve(&self.host, self.port, self.family).map_err(|cause| unreachable(&cause))?;
        let mut last = ProbeError::Unreachable(format!("\"{}\" has no address of the family asked for", self.host));
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

    /// Connects to this address of the host.
    pub(super) fn connect_to(
        &self,
        remote: SocketAddr,
        settings: SocketSettings,
        stop: Option<&Interrupts>,
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
