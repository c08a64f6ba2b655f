//! Connections that stay open, with requests that overlap: each leaves when it is due, whatever became of earlier ones.

use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use linerate_model::rr::RrMode;
use linerate_sys::poll::{self, PollInterest};
use linerate_sys::{clock, options};
use linerate_units::{ByteCount, MonotonicTime};
use linerate_wire::probe::RrOrder;

use super::mode::QuicTransactions;
use super::mode::tls::TlsFlow;
use super::{RrOptions, mode};
use crate::probe::{ProbeSession, Result};
use crate::tls::{TlsError, TlsStream};

/// Most bytes of one read.
const BUFFER: usize = 16 << 10;

/// Time limit of the handshake, and of a request that the kernel does not accept.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Longest time for which the kernel keeps a thread that sends.
const SEND_INTERVAL: Duration = Duration::from_millis(100);

/// Receiver of the number of a request and the time at which its response was complete.
pub type ResponseSink<'a> = &'a mut dyn FnMut(u64, MonotonicTime);

/// Connection whose requests overlap.
pub trait RequestConnection: Send {
    /// Sends a request, without waiting for a response.
    ///
    /// # Errors
    ///
    /// The reason why the connection ended.
    fn send(&mut self, number: u64) -> core::result::Result<(), String>;

    /// Passes responses on as they arrive, until `deadline`.
    ///
    /// # Errors
    ///
    /// The reason why the connection ended.
    fn wait_until(&mut self, deadline: MonotonicTime, responses: ResponseSink<'_>) -> core::result::Result<(), String>;
}

/// Opens a connection in TLS or QUIC for messages of `size` in both directions. The session answers no other requests.
///
/// # Errors
///
/// [`crate::probe::ProbeError::Refused`] for a server without that service, and the reason of a handshake that failed.
pub(crate) fn open(
    session: &ProbeSession,
    mode: RrMode,
    size: ByteCount,
    quic: Option<Arc<dyn QuicTransactions>>,
) -> Result<Box<dyn RequestConnection>> {
    let ready = session.far_rr(RrOrder { mode, request: size, response: size, flows: 1, keeps_open: true })?;
    let usual = RrOptions::new(session.target().clone(), mode);
    let options = RrOptions { request: size, response: size, timeout: TIMEOUT, quic, ..usual };
    if mode == RrMode::Quic {
        return mode::quic::connection(session, &options, ready.quic);
    }
    Ok(Box::new(TlsFlow::new(session, &options, ready)?.connection(session)?))
}

/// Connection in TLS, with requests one after another and responses in their order.
pub(super) struct TlsConnection {
    stream: TlsStream,
    request: Vec<u8>,
    response: ByteCount,
    /// Numbers of the requests without a response.
    waiting: VecDeque<u64>,
    /// Bytes of the next response that have arrived.
    arrived: usize,
    buffer: Vec<u8>,
}

impl TlsConnection {
    pub(super) fn new(stream: TlsStream, request: Vec<u8>, response: ByteCount) -> Self {
        let _ = options::set_send_timeout(stream.socket(), Some(SEND_INTERVAL));
        Self { stream, request, response, waiting: VecDeque::new(), arrived: 0, buffer: vec![0; BUFFER] }
    }

    /// Counts bytes of responses that arrived at `time`.
    fn count(&mut self, bytes: usize, time: MonotonicTime, responses: ResponseSink<'_>) -> io::Result<()> {
        self.arrived += bytes;
        while self.arrived >= self.response.to_usize() {
            self.arrived -= self.response.to_usize();
            responses(self.waiting.pop_front().ok_or(io::ErrorKind::InvalidData)?, time);
        }
        Ok(())
    }
}

impl RequestConnection for TlsConnection {
    fn send(&mut self, number: u64) -> core::result::Result<(), String> {
        self.waiting.push_back(number);
        let until = clock::monotonic_now() + TIMEOUT;
        let sent = self.stream.send(&self.request, &mut |error| match error {
            Some(error) if !poll::is_temporary(&error) => Err(TlsError(linerate_sys::describe_os_error(&error))),
            _ if clock::monotonic_now() >= until => Err(TlsError("the kernel accepts no further request".to_owned())),
            _ => Ok(()),
        });
        sent.map_err(|TlsError(reason)| reason)
    }

    fn wait_until(&mut self, deadline: MonotonicTime, responses: ResponseSink<'_>) -> core::result::Result<(), String> {
        loop {
            let left = deadline.since(clock::monotonic_now());
            let is_ready = poll::wait_for(self.stream.socket(), PollInterest::READ, Some(left));
            if !is_ready.map_err(|cause| cause.to_string())? {
                return Ok(());
            }
            let time = clock::monotonic_now();
            let count = self.stream.receive_ready(&mut self.buffer).map_err(|TlsError(reason)| reason)?;
            let unexpected = |_| "the server sent more than it was asked for".to_owned();
            self.count(count, time, responses).map_err(unexpected)?;
            if time >= deadline {
                return Ok(());
            }
        }
    }
}
