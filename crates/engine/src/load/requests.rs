//! Probes that are requests on an open connection: what a user of the web waits for, over TLS and TCP, and over QUIC.
//!
//! Each connection has a session and a thread of its own. It carries nothing of the load, and the load does not wait for it.

use core::time::Duration;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use linerate_analysis::latency_under_load::LatencyClass;
use linerate_model::rr::RrMode;
use linerate_sys::clock;
use linerate_units::{ByteCount, MonotonicTime};

use super::evidence::ClassSamples;
use super::record::LoadRecord;
use super::request_log::RequestLog;
use crate::phases::AbortReason;
use crate::probe::{AnsweringService, ProbeError, ProbeSession, lock};
use crate::rr::{self, RequestConnection};

/// Size of a request and of a response.
const MESSAGE: ByteCount = ByteCount::new(64);

/// Bytes of a request or a response with all headers over Ethernet and IPv6, and of its acknowledgement, at most.
pub(super) const BYTES: ByteCount = ByteCount::new(320);

/// Packets of a request or a response, with its acknowledgement.
pub(super) const PACKETS: f64 = 2.0;

/// Longest time in which the thread does not notice an order.
const ORDER_INTERVAL: Duration = Duration::from_millis(50);

/// Timer slack; by default requests are late by up to 50 µs (`PR_SET_TIMERSLACK`).
const TIMER_SLACK: Duration = Duration::from_nanos(1);

/// Time for the last responses.
const GRACE: Duration = Duration::from_secs(1);

/// Transport of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestTransport {
    /// TLS 1.3 over TCP.
    Tls,
    /// QUIC, each request on a stream of its own.
    Quic,
}

impl RequestTransport {
    const fn class(self) -> LatencyClass {
        match self {
            Self::Tls => LatencyClass::TlsRequest,
            Self::Quic => LatencyClass::QuicRequest,
        }
    }

    const fn mode(self) -> RrMode {
        match self {
            Self::Tls => RrMode::Tls,
            Self::Quic => RrMode::Quic,
        }
    }

    /// Key of the class among the reasons for what is unknown.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Tls => "classes.tls_request",
            Self::Quic => "classes.quic_request",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Tls => "TLS",
            Self::Quic => "QUIC",
        }
    }

    /// A refusal by the name of the option.
    fn explain(self, error: ProbeError) -> ProbeError {
        match error {
            ProbeError::Refused { reason, .. } => {
                let request = format!("--probe {}", self.mode().name());
                ProbeError::Refused { request, reason: format!("{reason}; or omit it here") }
            }
            other => other,
        }
    }
}

/// State that the thread shares.
#[derive(Debug)]
struct SharedRequests {
    log: Mutex<RequestLog>,
    is_sending: AtomicBool,
    is_over: AtomicBool,
}

/// Requests on one connection.
#[derive(Debug)]
pub(super) struct RequestProber {
    transport: RequestTransport,
    shared: Arc<SharedRequests>,
    /// Ends with the reason where the connection did.
    thread: Option<JoinHandle<Result<(), String>>>,
    /// Ends after the thread.
    _session: ProbeSession,
}

impl RequestProber {
    /// Opens the connections that the options name. One that cannot be opened on this path is a finding; a refusal is not.
    pub(super) fn start_all(record: &mut LoadRecord<'_>) -> Result<Vec<Self>, AbortReason> {
        let mut probers = Vec::new();
        for transport in record.options.requests.clone() {
            match Self::start(record, transport) {
                Ok(prober) => probers.push(prober),
                Err(error @ (ProbeError::System(_) | ProbeError::Unreachable(_) | ProbeError::TimedOut { .. })) => {
                    record.note(format!("No requests over {} could be made: {error}", transport.name()));
                    record.unknown(transport.key(), error.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(probers)
    }

    fn start(record: &LoadRecord<'_>, transport: RequestTransport) -> Result<Self, ProbeError> {
        // A session answers one kind of requests, and with load connections none.
        let session = ProbeSession::open(&record.options.target, record.stop)?;
        let opened = rr::open(&session, transport.mode(), MESSAGE, record.options.quic.clone());
        let connection = opened.map_err(|error| transport.explain(error))?;
        let first = clock::monotonic_now() + record.options.probe_interval / 8;
        let log = Mutex::new(RequestLog::new(first, record.options.probe_interval));
        let shared = Arc::new(SharedRequests { log, is_sending: true.into(), is_over: false.into() });
        let thread = std::thread::Builder::new().name("requests".into()).stack_size(256 << 10);
        let own = Arc::clone(&shared);
        let thread = thread
            .spawn(move || perform(connection, &own))
            .map_err(|cause| ProbeError::io("starting the thread of a connection", &cause))?;
        Ok(Self { transport, shared, thread: Some(thread), _session: session })
    }

    /// Number of requests so far.
    pub(super) fn requests(&self) -> u64 {
        lock(&self.shared.log).requests() as u64
    }

    pub(super) fn set_interval(&self, interval: Duration) {
        lock(&self.shared.log).set_interval(interval);
    }

    pub(super) fn stop_sending(&self) {
        self.shared.is_sending.store(false, Ordering::Release);
    }

    /// Ends the connection after a short wait for missing responses. The key of the class comes with the reason where it ended
    /// before.
    pub(super) fn stop(mut self) -> (ClassSamples, Option<(&'static str, String)>) {
        self.stop_sending();
        let end = clock::monotonic_now() + GRACE;
        let is_running = |prober: &Self| prober.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        while clock::monotonic_now() < end && is_running(&self) && lock(&self.shared.log).is_waiting() {
            clock::sleep_until(end.min(clock::monotonic_now() + ORDER_INTERVAL));
        }
        let failure = self.join().err().map(|reason| {
            (self.transport.key(), format!("the connection over {} ended: {reason}", self.transport.name()))
        });
        let readings = lock(&self.shared.log).take();
        (ClassSamples { class: self.transport.class(), readings, counts_losses: true }, failure)
    }

    fn join(&mut self) -> Result<(), String> {
        self.shared.is_over.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err("its thread failed".to_owned()))
    }
}

impl Drop for RequestProber {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

/// Sends requests when they are due, and records responses meanwhile.
fn perform(mut connection: Box<dyn RequestConnection>, shared: &SharedRequests) -> Result<(), String> {
    let _ = clock::set_timer_slack(TIMER_SLACK);
    while !shared.is_over.load(Ordering::Acquire) {
        let is_sending = shared.is_sending.load(Ordering::Acquire);
        let look = clock::monotonic_now() + ORDER_INTERVAL;
        let next = Some(lock(&shared.log).next()).filter(|_| is_sending);
        connection.wait_until(next.map_or(look, |next| next.min(look)), &mut |number, arrived: MonotonicTime| {
            lock(&shared.log).answer(number, arrived);
        })?;
        while let Some(number) = is_sending.then(|| lock(&shared.log).take_due(clock::monotonic_now())).flatten() {
            connection.send(number)?;
        }
    }
    Ok(())
}

/// Refusal of requests by a far end without probe sessions, before anything is loaded.
pub(super) fn check_far_end(record: &LoadRecord<'_>, answering: AnsweringService) -> Result<(), AbortReason> {
    if record.options.requests.is_empty() { Ok(()) } else { Err(ProbeError::NoRequestProbes(answering).into()) }
}
