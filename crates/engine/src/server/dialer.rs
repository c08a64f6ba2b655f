//! Connections that the server opens, to a client that cannot reach it: behind NAT or a firewall.
//!
//! One connection is always ready. As soon as the client uses it, it goes to the acceptor like one that was accepted, and
//! the next one is opened.

use core::time::Duration;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd as _;

use linerate_sys::net::{self, ConnectOptions, SocketSettings};
use linerate_sys::options::KeepaliveSettings;
use linerate_sys::poll::{self, PollInterest, PollItem, Waker};
use linerate_units::Port;

use super::ServerObserver;
use super::registry::SessionRegistry;

/// Time between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// Time limit of an attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Probes of the ready connection: shorter than the time for which NAT keeps a silent one (RFC 5382: at least two hours,
/// in practice a few minutes).
const KEEPALIVE: KeepaliveSettings =
    KeepaliveSettings { idle: Some(Duration::from_secs(30)), interval: Some(Duration::from_secs(10)), probes: Some(3) };

/// Client to dial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialTarget {
    /// Host.
    pub host: String,
    /// Port.
    pub port: Port,
}

/// Dials until `ended` is woken.
pub(super) fn run(target: &DialTarget, registry: &SessionRegistry, ended: &Waker, observer: &dyn ServerObserver) {
    let mut reported = None;
    loop {
        let problem = match dial(target, ended) {
            Ok((stream, peer)) => {
                if reported.is_some() {
                    observer.note(&format!("connected to {}", target.host));
                }
                reported = None;
                match wait_for_use(&stream, ended) {
                    ReadyOutcome::Used => {
                        registry.deliver_dialed(stream, peer);
                        continue;
                    }
                    ReadyOutcome::Ended => return,
                    ReadyOutcome::Closed => None,
                }
            }
            Err(error) => Some(error),
        };
        if problem.is_some() && problem != reported {
            let text = problem.as_deref().unwrap_or_default();
            observer.note(&format!("{text}; the next attempts follow every {} s", RETRY_INTERVAL.as_secs()));
            reported = problem;
        }
        if poll::wait_for(ended, PollInterest::READ, Some(RETRY_INTERVAL)).unwrap_or(true) {
            return;
        }
    }
}

/// Connects to the first address that answers; the error is that of the last one.
fn dial(target: &DialTarget, ended: &Waker) -> Result<(TcpStream, SocketAddr), String> {
    let mut last = format!("{} has no address", target.host);
    for address in net::resolve(&target.host, target.port, None).map_err(|error| error.to_string())? {
        let settings = SocketSettings { keepalive: Some(KEEPALIVE), ..SocketSettings::default() };
        let options = ConnectOptions { timeout: Some(CONNECT_TIMEOUT), settings, ..ConnectOptions::to(address) };
        match net::connect_tcp(&options, Some(ended.as_fd())) {
            Ok(stream) => return Ok((stream, address)),
            Err(error) => last = error.to_string(),
        }
    }
    Err(last)
}

/// End of the wait of a ready connection.
enum ReadyOutcome {
    /// The client has sent its cookie.
    Used,
    /// The client has closed it.
    Closed,
    /// The server ends.
    Ended,
}

fn wait_for_use(stream: &TcpStream, ended: &Waker) -> ReadyOutcome {
    let mut items = [PollItem::new(stream, PollInterest::READ), PollItem::new(ended, PollInterest::READ)];
    if poll::wait(&mut items, None).is_err() || items[1].is_ready() {
        return ReadyOutcome::Ended;
    }
    match stream.peek(&mut [0]) {
        Ok(1..) if stream.set_nonblocking(true).is_ok() => ReadyOutcome::Used,
        _ => ReadyOutcome::Closed,
    }
}
