//! Requests that a session answers: one test at a time, on threads of its own.
//!
//! Each TCP connection has a thread that blocks in the kernel until its request has arrived: the fewest system calls for
//! each transaction, and no second thread whose wake-up would be in the client's figures. With a connection per transaction
//! these threads also accept, on a port of the test's own. UDP flows share one socket and one thread; QUIC has a service.

mod connections;
mod datagrams;
mod listener;

use core::time::Duration;
use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use linerate_model::rr::RrMode;
use linerate_sys::{clock, host};
use linerate_units::{ByteCount, MonotonicTime, Port};
use linerate_wire::cookie::{Cookie, SessionToken};
use linerate_wire::key_pin::KeyPin;
use linerate_wire::probe::{ProbeResponse, RrOrder, RrReady, RrReport};
use linerate_wire::quic::{QuicOrder, QuicReady};

use super::way::ReturnPath;
use super::{AnswerOutbox, RequestOutcome};
use crate::resources::{DESCRIPTORS_PER_FLOW, FLOW_MEMORY, MemoryLease, ResourceAccount};
use crate::server::quic::{QuicExchange, QuicGrant, QuicSession, QuicSessionRequest};
use crate::server::service::ServiceShare;
use crate::server::session::SessionStart;
use crate::server_rate::RateAccount;
use crate::tls::TlsServer;
pub(in crate::server) use connections::ConnectionQueue;
use listener::RrListener;

/// Longest time in which a thread does not notice that its test is over.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Time since the last transaction for which the session has traffic.
const BUSY: Duration = Duration::from_secs(1);

/// Most bytes of one read or write.
const BUFFER: usize = 64 << 10;

/// Largest datagram.
const MAX_DATAGRAM: usize = 65_535;

/// Connections expected in a test with a connection per transaction: as many as the client makes.
const UNLIMITED_CONNECTIONS: usize = usize::MAX / 2;

/// State that the threads share.
pub(super) struct RrState {
    order: RrOrder,
    stopping: AtomicBool,
    transactions: AtomicU64,
    /// Nanoseconds of processor time of the threads that have ended.
    processor: AtomicU64,
    rate: Option<RateAccount>,
    stall_limit: Duration,
    /// Bytes of responses.
    payload: Vec<u8>,
}

impl RrState {
    fn new(order: RrOrder, account: &ResourceAccount, stall_limit: Duration) -> Result<Self, String> {
        // Random bytes, as those of a test: nothing on the path compresses them.
        let mut payload = vec![0; order.response.to_usize().min(BUFFER)];
        host::random_bytes(&mut payload).map_err(|cause| cause.to_string())?;
        Ok(Self {
            order,
            stopping: AtomicBool::new(false),
            transactions: AtomicU64::new(0),
            processor: AtomicU64::new(0),
            rate: account.rate(),
            stall_limit,
            payload,
        })
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Counts a transaction, without a look at the clock: that would be part of the next one's time.
    fn count_transaction(&self) {
        self.transactions.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts bytes in the rate of the server, and waits while they exceed it.
    fn pay(&self, bytes: usize) {
        let Some(rate) = &self.rate else { return };
        let now = clock::monotonic_now();
        rate.count(ByteCount::from_usize(bytes), now);
        while let Some(until) = rate.deferred_until(clock::monotonic_now()).filter(|_| !self.is_stopping()) {
            clock::sleep_until(until.min(clock::monotonic_now() + STOP_POLL_INTERVAL));
        }
    }

    /// Adds the processor time of the calling thread, which ends.
    fn add_processor_time(&self) {
        let time = u64::try_from(clock::thread_cpu_time().as_nanos()).unwrap_or(u64::MAX);
        self.processor.fetch_add(time, Ordering::Relaxed);
    }
}

/// The running test of a session.
struct RunningRr {
    state: Arc<RrState>,
    queue: Option<Arc<ConnectionQueue>>,
    threads: Vec<JoinHandle<()>>,
    /// Connections of a service, which has threads of its own.
    quic: Option<Box<dyn QuicSession>>,
    activity: TransactionActivity,
    _memory: MemoryLease,
}

/// Growth of the number of transactions, as seen from time to time.
#[derive(Debug, Default)]
struct TransactionActivity {
    count: u64,
    /// Time at which the growth was seen; `None` before the first transaction.
    last: Option<MonotonicTime>,
}

impl TransactionActivity {
    /// Takes up the number of transactions; true when there have been any in the last second, or since the last call.
    fn follow(&mut self, count: u64, now: MonotonicTime) -> bool {
        if count != self.count {
            *self = Self { count, last: Some(now) };
        }
        self.last.is_some_and(|last| now.since(last) < BUSY)
    }
}

/// Tests of a session, one after another.
pub(super) struct SessionRr {
    token: SessionToken,
    account: ResourceAccount,
    running: Option<RunningRr>,
    /// Report of a test that the server ended.
    ended: Option<RrReport>,
}

impl SessionRr {
    pub(super) fn new(token: SessionToken, account: ResourceAccount) -> Self {
        Self { token, account, running: None, ended: None }
    }

    /// True while a test is prepared or runs.
    pub(super) fn exists(&self) -> bool {
        self.running.is_some()
    }

    /// True when there have been transactions in the last second.
    pub(super) fn is_busy(&mut self, now: MonotonicTime) -> bool {
        self.running
            .as_mut()
            .is_some_and(|running| running.activity.follow(running.state.transactions.load(Ordering::Relaxed), now))
    }

    /// Starts to answer requests, on sockets of `way` where they need a port of their own.
    pub(super) fn start(
        &mut self,
        order: RrOrder,
        start: &SessionStart,
        way: &ReturnPath,
        outbox: &mut AnswerOutbox,
    ) -> RequestOutcome {
        self.end(start);
        self.ended = None;
        let threads = match order.mode {
            RrMode::Quic => 0,
            RrMode::Udp => 1,
            RrMode::Tcp | RrMode::Tls => order.flows,
            // Those of the port of its own, and those of the server's port.
            RrMode::Connect => 2 * order.flows,
        };
        // Connections that wait for a thread have a descriptor, too.
        let descriptors = u64::from(threads) * DESCRIPTORS_PER_FLOW;
        let memory = ByteCount::new(FLOW_MEMORY.get() * u64::from(threads));
        let memory = self.account.lease_flows(memory, descriptors).map_err(|error| error.to_string())?;
        let state = Arc::new(RrState::new(order, &self.account, start.options.stall_timeout)?);
        let activity = TransactionActivity::default();
        let mut running = RunningRr { state, queue: None, threads: Vec::new(), quic: None, activity, _memory: memory };
        let started = running.open(start, way, self.token, &self.account);
        // A test that could not start ends here with its threads.
        self.running = Some(running);
        match started {
            Ok(ready) => outbox.say(ProbeResponse::RrReady(ready)),
            Err(reason) => {
                self.end(start);
                return Err(reason);
            }
        }
        Ok(())
    }

    /// Ends the test and reports it.
    pub(super) fn stop(&mut self, start: &SessionStart, outbox: &mut AnswerOutbox) -> RequestOutcome {
        let report = self.end(start).or_else(|| self.ended.take()).ok_or("there is no test of requests")?;
        outbox.say(ProbeResponse::RrEnd(report));
        Ok(())
    }

    /// Ends the test by this limit of the server; its report waits for the client's request.
    pub(super) fn cease(&mut self, start: &SessionStart, limit: Option<Duration>) {
        if let Some(report) = self.end(start) {
            self.ended = Some(RrReport { ended_by_limit: limit, ..report });
        }
    }

    /// Ends the test, if there is one.
    pub(super) fn end(&mut self, start: &SessionStart) -> Option<RrReport> {
        let running = self.running.take()?;
        if running.queue.is_some() {
            start.registry.expect_no_more(&Cookie::load(self.token), &start.inbox);
        }
        Some(running.finish())
    }
}

impl RunningRr {
    /// Opens what the mode needs, and starts its threads.
    fn open(
        &mut self,
        start: &SessionStart,
        way: &ReturnPath,
        token: SessionToken,
        account: &ResourceAccount,
    ) -> Result<RrReady, String> {
        let failed = |cause: linerate_sys::Error| cause.to_string();
        let cookie = Cookie::load(token);
        let on_port = |port| RrReady { port, ..RrReady::default() };
        match self.state.order.mode {
            RrMode::Udp => self.serve_udp(way.bind_own().map_err(failed)?, token).map(on_port),
            RrMode::Tcp => self.serve_tcp(start, cookie).map(|()| RrReady::default()),
            RrMode::Connect => {
                self.serve_tcp(start, cookie)?;
                // Without a port of its own, the client has the server's.
                let Ok(listener) = way.listen_own() else { return Ok(RrReady::default()) };
                self.serve_own_port(start, listener, cookie, None).map(on_port)
            }
            RrMode::Tls => {
                let (tls, key) = handshake_key(start)?;
                let port = self.serve_own_port(start, way.listen_own().map_err(failed)?, cookie, Some(tls))?;
                Ok(RrReady { port, key, quic: None })
            }
            RrMode::Quic => {
                let quic = self.open_quic(start, account)?;
                Ok(RrReady { quic: Some(quic), ..RrReady::default() })
            }
        }
    }

    /// Has the QUIC service expect handshakes, whose transactions this test counts.
    fn open_quic(&mut self, start: &SessionStart, account: &ResourceAccount) -> Result<QuicReady, String> {
        let service = start.options.quic.as_ref().ok_or("this server has no QUIC (linerate serve has it)")?;
        let state = Arc::clone(&self.state);
        let exchange = QuicExchange {
            request: self.state.order.request,
            response: self.state.order.response,
            flows: self.state.order.flows,
            keeps_open: self.state.order.keeps_open,
            completed: Arc::new(move || state.count_transaction()),
        };
        let share = ServiceShare(account.clone());
        let QuicGrant { ready, session } =
            service.open(QuicSessionRequest { order: QuicOrder::default(), share, exchange: Some(exchange) })?;
        self.quic = Some(session);
        Ok(ready)
    }

    fn serve_tcp(&mut self, start: &SessionStart, cookie: Cookie) -> Result<(), String> {
        let flows = usize::try_from(self.state.order.flows).unwrap_or(1);
        let queue = Arc::new(ConnectionQueue::new(flows));
        self.queue = Some(Arc::clone(&queue));
        for _ in 0..flows {
            let (state, queue) = (Arc::clone(&self.state), Arc::clone(&queue));
            self.spawn(move || connections::serve(&state, &queue))?;
        }
        let count = if self.state.order.mode == RrMode::Connect { UNLIMITED_CONNECTIONS } else { flows };
        let expected = start.registry.expect_connections(cookie, &start.inbox, count, queue);
        expected.then_some(()).ok_or_else(|| "the session's token is in use".to_owned())
    }

    /// Serves connections to a port of the test's own.
    fn serve_own_port(
        &mut self,
        start: &SessionStart,
        listener: TcpListener,
        cookie: Cookie,
        tls: Option<Arc<TlsServer>>,
    ) -> Result<Option<Port>, String> {
        let failed = |cause: linerate_sys::Error| cause.to_string();
        let own = Arc::new(RrListener::new(listener, cookie, Arc::clone(&start.inbox), tls).map_err(failed)?);
        for _ in 0..self.state.order.flows {
            let (state, own) = (Arc::clone(&self.state), Arc::clone(&own));
            self.spawn(move || own.serve(&state))?;
        }
        Ok(own.port())
    }

    fn serve_udp(&mut self, socket: UdpSocket, token: SessionToken) -> Result<Option<Port>, String> {
        let port = socket.local_addr().ok().and_then(|local| Port::new(local.port()));
        let state = Arc::clone(&self.state);
        self.spawn(move || datagrams::serve(&state, &socket, token))?;
        Ok(port)
    }

    fn spawn(&mut self, serve: impl FnOnce() + Send + 'static) -> Result<(), String> {
        let state = Arc::clone(&self.state);
        let thread = std::thread::Builder::new().name("rr".into()).stack_size(256 << 10).spawn(move || {
            serve();
            state.add_processor_time();
        });
        let failed = |cause| format!("starting a thread: {}", linerate_sys::describe_os_error(&cause));
        self.threads.push(thread.map_err(failed)?);
        Ok(())
    }

    fn finish(mut self) -> RrReport {
        self.halt();
        let processor = match self.quic.take() {
            Some(quic) => quic.end(),
            None => Some(Duration::from_nanos(self.state.processor.load(Ordering::Relaxed))),
        };
        let transactions = self.state.transactions.load(Ordering::Relaxed);
        RrReport { transactions, processor, ended_by_limit: None }
    }

    fn halt(&mut self) {
        self.state.stopping.store(true, Ordering::Release);
        if let Some(queue) = &self.queue {
            queue.close();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// TLS of handshakes: that of the conversation, or a new key that the conversation names.
fn handshake_key(start: &SessionStart) -> Result<(Arc<TlsServer>, Option<KeyPin>), String> {
    if let Some(tls) = &start.options.tls {
        return Ok((Arc::clone(tls), None));
    }
    let tls = TlsServer::with_new_key().map_err(|error| error.to_string())?;
    let pin = tls.pin();
    Ok((Arc::new(tls), pin))
}

impl Drop for RunningRr {
    fn drop(&mut self) {
        self.halt();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_busy_for_a_second_after_its_last_transaction() {
        let at = |seconds: u64| MonotonicTime::from_nanos(seconds * 1_000_000_000);
        let mut activity = TransactionActivity::default();
        assert!(!activity.follow(0, at(10)), "no transaction yet");
        assert!(activity.follow(3, at(11)));
        assert!(activity.follow(3, at(11)) && !activity.follow(3, at(12)));
        assert!(activity.follow(4, at(13)));
    }
}
