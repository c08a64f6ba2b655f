//! New connections while the path is loaded: their cost for traffic that has nothing to do with the load.

use core::time::Duration;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use linerate_analysis::latency_under_load::ForeignProbe;
use linerate_sys::net::{self, ConnectOptions, SocketSettings};
use linerate_sys::poll::{self, PollInterest};
use linerate_sys::{clock, host, tcp_info};
use linerate_units::MonotonicTime;
use linerate_wire::cookie::{self, Cookie};

use super::evidence::ForeignConnection;
use crate::control::{ControlConnection, ControlRead};
use crate::probe::{ProbeTarget, lock};
use crate::tls::{ConnectionUse, TlsClient};

/// Interval between two new connections.
pub(super) const INTERVAL: Duration = Duration::from_millis(500);

/// Most new connections in flight at once on a slow path.
const MAX_IN_FLIGHT: usize = 8;

/// Timeout of a new connection.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
struct ForeignProbeState {
    done: Mutex<Vec<ForeignConnection>>,
    under_way: AtomicUsize,
    given_up: AtomicBool,
}

/// Makes connections, each on a thread of its own that ends by itself.
#[derive(Debug)]
pub(super) struct ForeignProbes {
    target: ProbeTarget,
    tls: Option<TlsClient>,
    peer: SocketAddr,
    shared: Arc<ForeignProbeState>,
    next: Option<MonotonicTime>,
    interval: Duration,
}

impl ForeignProbes {
    pub(super) fn new(target: &ProbeTarget, peer: SocketAddr) -> Self {
        // Its files have been read for the session: what changed since leaves out the share of TLS.
        let tls = target.tls.as_ref().and_then(|tls| TlsClient::new(tls, target.address()).ok());
        Self { target: target.clone(), tls, peer, shared: Arc::default(), next: None, interval: INTERVAL }
    }

    /// Changes the interval.
    pub(super) fn set_interval(&mut self, interval: Duration) {
        self.interval = interval.max(INTERVAL);
    }

    /// Makes a connection when one is due.
    pub(super) fn tick(&mut self) {
        let now = clock::monotonic_now();
        if self.next.is_some_and(|next| now < next) || self.shared.under_way.load(Ordering::Acquire) >= MAX_IN_FLIGHT {
            return;
        }
        self.next = Some(now + self.interval);
        let (shared, target, peer) = (Arc::clone(&self.shared), self.target.clone(), self.peer);
        let tls = self.tls.clone();
        shared.under_way.fetch_add(1, Ordering::AcqRel);
        let thread = std::thread::Builder::new().name("foreign".into()).stack_size(256 << 10);
        let spawned = thread.spawn(move || {
            let times = connect(&target, tls.as_ref(), peer).ok();
            if !shared.given_up.load(Ordering::Acquire) {
                lock(&shared.done).push(ForeignConnection { sent: now, times });
            }
            shared.under_way.fetch_sub(1, Ordering::AcqRel);
        });
        if spawned.is_err() {
            self.shared.under_way.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// True when none is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.shared.under_way.load(Ordering::Acquire) == 0
    }

    /// Returns the results; connections still in flight are excluded.
    pub(super) fn take(self) -> Vec<ForeignConnection> {
        self.shared.given_up.store(true, Ordering::Release);
        let mut done = core::mem::take(&mut *lock(&self.shared.done));
        done.sort_unstable_by_key(|probe| probe.sent);
        done
    }
}

/// Connects, sends the cookie, and waits for the server's first byte.
fn connect(target: &ProbeTarget, tls: Option<&TlsClient>, peer: SocketAddr) -> std::io::Result<ForeignProbe> {
    let options = ConnectOptions {
        bind: target.bind.map(|address| SocketAddr::new(address, 0)),
        device: target.device.clone(),
        timeout: Some(PATIENCE),
        settings: SocketSettings { no_delay: true, ..SocketSettings::default() },
        ..ConnectOptions::to(peer)
    };
    let (stream, took): (TcpStream, Duration) =
        net::connect_tcp_timed(&options, None).map_err(std::io::Error::other)?;
    // The kernel's own figure excludes the time until this program is woken; after a lost SYN it is missing.
    let tcp = tcp_info::read(&stream).ok().and_then(|info| info.rtt).unwrap_or(took);
    let mut entropy = [0; cookie::LENGTH - 1];
    host::random_bytes(&mut entropy).map_err(std::io::Error::other)?;
    let begun = clock::monotonic_now();
    let mut control = match tls {
        Some(tls) => tls.secure(stream, ConnectionUse::Control, None).map_err(std::io::Error::other)?,
        None => ControlConnection::new(stream)?,
    };
    let asked = clock::monotonic_now();
    control.send(Cookie::probes(entropy).as_bytes())?;
    await_answer(&mut control, asked + PATIENCE)?;
    let tls = tls.map(|_| asked.since(begun));
    Ok(ForeignProbe { tcp, tls, request: clock::monotonic_now().since(asked) })
}

fn await_answer(control: &mut ControlConnection, deadline: MonotonicTime) -> std::io::Result<()> {
    loop {
        match control.read(&mut [0; 256]) {
            ControlRead::Bytes(_) => return Ok(()),
            ControlRead::Closed => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            ControlRead::Nothing => {}
        }
        let left = deadline.since(clock::monotonic_now());
        if left.is_zero() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        poll::wait_for(&*control, PollInterest::READ, Some(left))?;
    }
}
