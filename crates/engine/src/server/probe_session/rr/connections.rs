//! Requests on TCP connections.

use core::time::Duration;
use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use linerate_model::rr::RrMode;
use linerate_sys::{clock, options, poll};
use linerate_units::MonotonicTime;

use super::{BUFFER, RrState, STOP_POLL_INTERVAL};
use crate::probe::lock;

/// Connections that wait for a thread. The acceptor adds them itself: one thread less between the client's connection and
/// its response.
#[derive(Debug)]
pub(in crate::server) struct ConnectionQueue {
    waiting: Mutex<VecDeque<TcpStream>>,
    changed: Condvar,
    is_closed: AtomicBool,
    limit: usize,
}

impl ConnectionQueue {
    pub(super) fn new(limit: usize) -> Self {
        Self { waiting: Mutex::default(), changed: Condvar::new(), is_closed: AtomicBool::new(false), limit }
    }

    /// Adds a connection; one beyond the limit is closed, as a client has at most one for each of its flows.
    pub(in crate::server) fn push(&self, stream: TcpStream) {
        let mut waiting = lock(&self.waiting);
        if waiting.len() < self.limit && !self.is_closed.load(Ordering::Acquire) {
            waiting.push_back(stream);
            drop(waiting);
            self.changed.notify_one();
        }
    }

    /// Waits for a connection; `None` once the queue is closed.
    fn take(&self) -> Option<TcpStream> {
        let mut waiting = lock(&self.waiting);
        loop {
            if self.is_closed.load(Ordering::Acquire) {
                return None;
            }
            if let Some(stream) = waiting.pop_front() {
                return Some(stream);
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn close(&self) {
        let mut waiting = lock(&self.waiting);
        self.is_closed.store(true, Ordering::Release);
        waiting.clear();
        drop(waiting);
        self.changed.notify_all();
    }
}

/// Serves connections until the queue is closed.
pub(super) fn serve(state: &RrState, queue: &ConnectionQueue) {
    let mut buffer = vec![0; state.order.request.to_usize().min(BUFFER)];
    while let Some(stream) = queue.take() {
        // An error ends the connection: the client notices, and has the reason.
        let _ = serve_connection(state, stream, &mut buffer);
    }
}

/// Answers the requests of one connection, which has no Nagle since it was accepted. With a connection per transaction this end closes first, after the response,
/// so that the client's ports are free again and the waiting state (TIME-WAIT) is here.
fn serve_connection(state: &RrState, mut stream: TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    let failed = |cause: linerate_sys::Error| io::Error::from(cause);
    options::set_receive_timeout(&stream, Some(STOP_POLL_INTERVAL)).map_err(failed)?;
    options::set_send_timeout(&stream, Some(STOP_POLL_INTERVAL)).map_err(failed)?;
    let request = state.order.request.to_usize();
    while !state.is_stopping() && receive(state, &mut stream, buffer, request, false)? {
        respond(state, &mut stream)?;
        state.count_transaction();
        if state.order.mode == RrMode::Connect {
            break;
        }
    }
    Ok(())
}

/// Deadline of a peer that is silent.
pub(super) struct Patience {
    limit: Duration,
    until: Option<MonotonicTime>,
}

impl Patience {
    pub(super) const fn new(limit: Duration) -> Self {
        Self { limit, until: None }
    }

    /// After a timeout or an interrupted call: `Ok` to go on.
    pub(super) fn go_on(&mut self, state: &RrState, error: io::Error) -> io::Result<()> {
        if !poll::is_temporary(&error) {
            return Err(error);
        }
        let now = clock::monotonic_now();
        let until = *self.until.get_or_insert(now + self.limit);
        if state.is_stopping() || now >= until { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

/// Reads what is left of a request; `false` when the client has closed before it.
pub(super) fn receive(
    state: &RrState,
    stream: &mut TcpStream,
    buffer: &mut [u8],
    mut left: usize,
    mut has_begun: bool,
) -> io::Result<bool> {
    let mut patience = Patience::new(state.stall_limit);
    while left > 0 {
        let most = left.min(buffer.len());
        match stream.read(&mut buffer[..most]) {
            Ok(0) if has_begun => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(0) => return Ok(false),
            Ok(count) => {
                (left, has_begun) = (left - count, true);
                patience = Patience::new(state.stall_limit);
                state.pay(count);
            }
            Err(error) => patience.go_on(state, error)?,
        }
    }
    Ok(true)
}

/// Writes one response.
pub(super) fn respond(state: &RrState, stream: &mut TcpStream) -> io::Result<()> {
    let (mut left, mut patience) = (state.order.response.to_usize(), Patience::new(state.stall_limit));
    while left > 0 {
        let most = left.min(state.payload.len());
        match stream.write(&state.payload[..most]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                left -= count;
                patience = Patience::new(state.stall_limit);
                state.pay(count);
            }
            Err(error) => patience.go_on(state, error)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn connections_beyond_the_flows_are_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let queue = ConnectionQueue::new(2);
        let mut clients: Vec<TcpStream> = (0..3)
            .map(|_| {
                let client = TcpStream::connect(address).expect("a connection");
                queue.push(listener.accept().expect("a connection").0);
                client
            })
            .collect();
        let mut third = clients.pop().expect("three");
        assert_eq!(third.read(&mut [0]).expect("the end"), 0);
        assert!(queue.take().is_some() && queue.take().is_some());
        queue.close();
        assert!(queue.take().is_none());
    }
}
