//! Sessions of another service of the same process: one number of sessions, one budget and one rate for both.
//!
//! A service has threads or tasks of its own, so nothing here waits.

use core::time::Duration;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use linerate_sys::{clock, net};
use linerate_units::{BitRate, ByteCount, MonotonicTime};

use super::ServerOptions;
use super::handshakes::HandshakeGate;
use super::inbox::{SessionInbox, SessionMessage};
use super::registry::SessionRegistry;
use crate::resources::{ClientNetwork, MemoryLease, ResourceAccount};
use crate::server_rate::RateAccount;

/// Descriptors of a session: its waker. Each connection has its own.
const DESCRIPTORS_PER_SERVICE_SESSION: u64 = 1;

/// Wait after another flow has had the turn.
const TURN_RETRY: Duration = Duration::from_millis(1);

/// Smallest step of a paced flow: a segment, so that the slowest limit still moves data.
const MIN_STEP: ByteCount = ByteCount::new(1448);

/// Access to the sessions and the budget of a server.
#[derive(Clone, Debug)]
pub struct ServiceAccess {
    registry: Arc<SessionRegistry>,
    options: Arc<ServerOptions>,
}

/// Gate of the TLS handshakes of a service, for all its clients.
#[derive(Debug, Default)]
pub struct HandshakeQuota(Mutex<HandshakeGate>);

impl HandshakeQuota {
    /// Counts a handshake of `client`; returns the time that it has to wait where its site, or all of them, have too many.
    #[must_use]
    pub fn delay(&self, client: IpAddr) -> Option<Duration> {
        let now = clock::monotonic_now();
        let site = ClientNetwork::of(client.to_canonical()).site();
        // A poisoned lock only means that a thread panicked.
        let until = self.0.lock().unwrap_or_else(PoisonError::into_inner).postpones(site, now);
        until.map(|until| until.since(now))
    }
}

/// Reason why no session, or no memory, is granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceRefusal {
    /// All sessions are in use, and none gives way.
    #[error("the server is busy: its limit of sessions ({0}) is reached")]
    Busy(usize),
    /// No memory or descriptor is left.
    #[error("{0}")]
    Exhausted(String),
}

impl ServiceAccess {
    pub(super) fn new(registry: Arc<SessionRegistry>, options: Arc<ServerOptions>) -> Self {
        Self { registry, options }
    }

    /// Opens a session of `client`, under the rules for all sessions: on a full server, silent and idle sessions and those
    /// of the network with the most give way.
    ///
    /// # Errors
    ///
    /// The server has all its sessions, or no descriptors.
    pub fn open(&self, client: IpAddr) -> Result<ServiceSession, ServiceRefusal> {
        let (client, now) = (client.to_canonical(), clock::monotonic_now());
        let most = self.options.max_sessions.get();
        let exhausted = |text: String| ServiceRefusal::Exhausted(text);
        let lease = self.registry.account(client).lease_session(DESCRIPTORS_PER_SERVICE_SESSION);
        let has_room = self.registry.sessions() < most
            || self.registry.displace_silent(now)
            || (!self.options.queue && self.registry.displace_for(client))
            || self.registry.displace_idle(now);
        if !has_room {
            return Err(ServiceRefusal::Busy(most));
        }
        let lease = lease.map_err(|error| exhausted(error.to_string()))?;
        let inbox =
            SessionInbox::new(client, None).map_err(|cause| exhausted(linerate_sys::describe_os_error(&cause)))?;
        let number = self.registry.next_number();
        let account = self.registry.enter(number, Arc::clone(&inbox), client, now);
        self.registry.mark_parameters_received(number);
        self.registry.mark_active(number, now);
        Ok(ServiceSession { registry: Arc::clone(&self.registry), number, inbox, account, _descriptors: lease })
    }

    /// Share of `client` in the budget, for connections that belong to no session yet.
    #[must_use]
    pub fn share(&self, client: IpAddr) -> ServiceShare {
        ServiceShare(self.registry.account(net::canonical((client, 0).into()).ip()))
    }

    /// Longest duration of the traffic of a session (`--server-max-duration`).
    #[must_use]
    pub fn max_duration(&self) -> Option<Duration> {
        self.options.limits.max_duration
    }

    /// Rate of all traffic (`--server-bitrate-limit`).
    #[must_use]
    pub fn max_total_rate(&self) -> Option<BitRate> {
        self.options.limits.max_total_rate
    }

    /// Time without data after which a transfer ends.
    #[must_use]
    pub fn stall_timeout(&self) -> Duration {
        self.options.stall_timeout
    }
}

/// Share of a client in the budget of a server.
#[derive(Clone, Debug)]
pub struct ServiceShare(pub(super) ResourceAccount);

impl ServiceShare {
    /// Share of the rate that all traffic has; `None` for any rate.
    #[must_use]
    pub fn traffic_share(&self) -> Option<TrafficShare> {
        self.0.rate().map(TrafficShare)
    }

    /// Takes memory and descriptors if the client's network may have more.
    #[must_use]
    pub fn lease(&self, memory: ByteCount, descriptors: u64) -> Option<ServiceLease> {
        self.0.lease_with(memory, descriptors).ok().map(ServiceLease)
    }

    /// Counts an answer in the rate of all traffic; returns the time for which it has to wait.
    #[must_use]
    pub fn answer_delay(&self, bytes: ByteCount) -> Option<Duration> {
        TrafficShare(self.0.rate()?).count(bytes)
    }

    /// Counts a request; returns the time that it has to wait where the network sends too many.
    #[must_use]
    pub fn request_delay(&self) -> Option<Duration> {
        let now = clock::monotonic_now();
        self.0.postpones_request(now).map(|until| until.since(now))
    }
}

/// Memory and descriptors of a service; dropping it returns them.
#[derive(Debug)]
pub struct ServiceLease(#[expect(dead_code, reason = "held for its drop")] MemoryLease);

/// One session of a service. It ends when it is dropped.
#[derive(Debug)]
pub struct ServiceSession {
    registry: Arc<SessionRegistry>,
    number: u64,
    inbox: Arc<SessionInbox>,
    account: ResourceAccount,
    _descriptors: MemoryLease,
}

impl ServiceSession {
    /// Number, from the same sequence as that of all sessions.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Records that the session moves data.
    pub fn mark_active(&self) {
        self.registry.mark_active(self.number, clock::monotonic_now());
    }

    /// Returns why the session has to end, where it has.
    #[must_use]
    pub fn ended_because(&self) -> Option<String> {
        match self.inbox.take()? {
            SessionMessage::Terminate(signal) => Some(format!("the server is terminating ({signal})")),
            SessionMessage::Displaced => Some("the server is full, and this session gave way to another client".into()),
            SessionMessage::Tcp(_) | SessionMessage::Udp(_) | SessionMessage::Turn => None,
        }
    }

    /// Takes memory if the client's network may have more.
    #[must_use]
    pub fn lease(&self, memory: ByteCount) -> Option<ServiceLease> {
        self.account.lease_with(memory, 0).ok().map(ServiceLease)
    }

    /// Share of the rate that all traffic has; `None` for any rate.
    #[must_use]
    pub fn traffic_share(&self) -> Option<TrafficShare> {
        self.account.rate().map(TrafficShare)
    }
}

impl Drop for ServiceSession {
    fn drop(&mut self) {
        self.registry.leave_service(self.number);
    }
}

/// Share of a network in the rate of a server. Copies refer to the same share.
#[derive(Clone, Debug)]
pub struct TrafficShare(RateAccount);

impl TrafficShare {
    /// Claims up to `wanted` bytes to send now.
    ///
    /// # Errors
    ///
    /// The time to wait before the next attempt.
    pub fn claim(&self, wanted: ByteCount) -> Result<ByteCount, Duration> {
        let now = clock::monotonic_now();
        if let Some(wait) = self.delay_at(now) {
            return Err(wait);
        }
        let bytes = self.0.step(MIN_STEP, now).min(wanted);
        if self.0.reserve(bytes, now) { Ok(bytes) } else { Err(TURN_RETRY) }
    }

    /// Counts received bytes; returns the time to wait before more are read.
    #[must_use]
    pub fn count_received(&self, bytes: ByteCount) -> Option<Duration> {
        self.count(bytes)
    }

    fn count(&self, bytes: ByteCount) -> Option<Duration> {
        let now = clock::monotonic_now();
        self.0.count(bytes, now);
        self.delay_at(now)
    }

    fn delay_at(&self, now: MonotonicTime) -> Option<Duration> {
        self.0.deferred_until(now).map(|until| until.since(now))
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroUsize;
    use std::net::Ipv4Addr;

    use linerate_units::Port;
    use linerate_wire::parameters::ServerLimits;

    use super::super::Server;
    use super::*;

    fn access(options: ServerOptions) -> (Server, ServiceAccess) {
        let address = Some(Ipv4Addr::LOCALHOST.into());
        let server = Server::bind(ServerOptions { address, port: Port::new(0), ..options }).expect("a free port");
        let access = server.service_access();
        (server, access)
    }

    fn client(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    #[test]
    fn a_service_has_the_sessions_that_the_server_leaves() {
        let max_sessions = NonZeroUsize::new(2).expect("not zero");
        let (_server, access) = access(ServerOptions { max_sessions, ..ServerOptions::default() });
        let [one, two] = [1, 1].map(|last| access.open(client(last)).expect("a free session"));
        assert_eq!((one.number(), two.number()), (1, 2));
        assert_eq!(access.open(client(1)).err(), Some(ServiceRefusal::Busy(2)));
        // Another network displaces one of a network that has two.
        let other = access.open(client(2)).expect("a session gives way");
        assert_eq!(one.ended_because(), None);
        assert!(two.ended_because().is_some_and(|reason| reason.contains("full")));
        drop((one, two, other));
        assert!(access.open(client(3)).is_ok());
    }

    #[test]
    fn traffic_of_a_service_shares_the_rate() {
        let max_total_rate = Some(BitRate::from_bits_per_second(8e6));
        let limits = ServerLimits { max_total_rate, ..ServerLimits::default() };
        let (_server, access) = access(ServerOptions { limits, ..ServerOptions::default() });
        let session = access.open(client(1)).expect("a free session");
        let share = session.traffic_share().expect("a limit");
        assert_eq!(share.claim(ByteCount::new(1 << 20)), Ok(ByteCount::new(10_000)), "10 ms of the rate");
        // What others leave may be used, and then delays by 50 ms at most.
        let wait = share.count_received(ByteCount::new(1_000_000)).expect("a second of the rate");
        assert!((Duration::from_millis(10)..=Duration::from_millis(50)).contains(&wait), "{wait:?}");
        assert!(share.claim(ByteCount::new(1)).is_err());
        assert!(session.traffic_share().is_some_and(|same| same.claim(ByteCount::new(1)).is_err()));
    }
}
