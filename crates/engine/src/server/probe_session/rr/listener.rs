//! Port of a test with a connection per transaction, with or without a TLS handshake: each thread accepts, answers and closes.

use core::time::Duration;
use std::io::{self, Read as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use linerate_sys::{clock, net, options, poll};
use linerate_units::{MonotonicTime, Port};
use linerate_wire::cookie::{self, Cookie};

use super::connections::{Patience, receive, respond};
use super::{BUFFER, RrState, STOP_POLL_INTERVAL};
use crate::server::inbox::SessionInbox;
use crate::tls::{TlsError, TlsServer, TlsStream, WaitDecision};

/// Time limit of a connection for its token: a thread serves no other client meanwhile.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(1);

/// Time limit of a transaction with a handshake until its request has arrived, as for every handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Listener of a test.
#[derive(Debug)]
pub(super) struct RrListener {
    listener: TcpListener,
    cookie: Cookie,
    inbox: Arc<SessionInbox>,
    /// TLS of each connection; `None` is none.
    tls: Option<Arc<TlsServer>>,
}

impl RrListener {
    /// Takes over a listening socket. Connections inherit its options: with no system call for each they have their time limits.
    pub(super) fn new(
        listener: TcpListener,
        cookie: Cookie,
        inbox: Arc<SessionInbox>,
        tls: Option<Arc<TlsServer>>,
    ) -> linerate_sys::Result<Self> {
        options::set_receive_timeout(&listener, Some(STOP_POLL_INTERVAL))?;
        options::set_send_timeout(&listener, Some(STOP_POLL_INTERVAL))?;
        Ok(Self { listener, cookie, inbox, tls })
    }

    pub(super) fn port(&self) -> Option<Port> {
        self.listener.local_addr().ok().and_then(|local| Port::new(local.port()))
    }

    /// Serves connections until the test is over. Each thread waits in the kernel, which wakes one.
    pub(super) fn serve(&self, state: &RrState) {
        let first = state.order.request.to_usize().min(BUFFER);
        let mut buffer = vec![0; cookie::LENGTH + first];
        while !state.is_stopping() {
            match self.listener.accept() {
                Ok((stream, peer)) if self.inbox.is_client(net::canonical(peer).ip()) => {
                    // An error ends the connection: the client notices, and has the reason.
                    let _ = match &self.tls {
                        Some(tls) => self.answer_in_tls(state, stream, tls, &mut buffer).map_err(io::Error::other),
                        None => self.answer(state, stream, &mut buffer),
                    };
                }
                Ok(_) => {}
                // The time limit, which is that of accepting, too.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Out of descriptors or memory: others must end first.
                Err(_) => clock::sleep_until(clock::monotonic_now() + STOP_POLL_INTERVAL),
            }
        }
    }

    /// Answers one request. This end closes first, so that the client's ports are free again.
    fn answer(&self, state: &RrState, mut stream: TcpStream, buffer: &mut [u8]) -> io::Result<()> {
        let (mut read, mut patience) = (0, Patience::new(TOKEN_TIMEOUT));
        while read < cookie::LENGTH {
            match stream.read(&mut buffer[read..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => read += count,
                Err(error) => patience.go_on(state, error)?,
            }
        }
        if buffer.first_chunk().is_none_or(|shown| Cookie::from_bytes(*shown) != self.cookie) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let begun = read - cookie::LENGTH;
        state.pay(begun);
        let left = state.order.request.to_usize() - begun;
        if receive(state, &mut stream, &mut buffer[cookie::LENGTH..], left, begun > 0)? {
            respond(state, &mut stream)?;
            state.count_transaction();
        }
        Ok(())
    }

    /// Conducts a handshake, and answers one request, where this end closes first, too; or all until the client closes.
    fn answer_in_tls(
        &self,
        state: &RrState,
        stream: TcpStream,
        tls: &Arc<TlsServer>,
        buffer: &mut [u8],
    ) -> Result<(), TlsError> {
        let mut limit = ClientLimit::new(state, HANDSHAKE_TIMEOUT);
        let mut wait = |error: Option<io::Error>| limit.go_on(error.as_ref());
        let mut stream = TlsStream::accept(stream, tls, &mut wait)?;
        state.pay(stream.handshake_bytes());
        let (mut cookie, mut read) = ([0; cookie::LENGTH], 0);
        while read < cookie.len() {
            read += receive_some(&mut stream, &mut cookie[read..], &mut wait)?;
        }
        if Cookie::from_bytes(cookie) != self.cookie {
            return Err(TlsError("the token is not this session's".to_owned()));
        }
        loop {
            limit.extend();
            let mut wait = |error: Option<io::Error>| limit.go_on(error.as_ref());
            if !receive_in_tls(state, &mut stream, buffer, &mut wait)? {
                return Ok(());
            }
            respond_in_tls(state, &mut stream, &mut wait)?;
            state.count_transaction();
            if !state.order.keeps_open {
                return Ok(());
            }
        }
    }
}

/// Reads a request; `false` when the client of a connection that stays open has closed before it.
fn receive_in_tls(
    state: &RrState,
    stream: &mut TlsStream,
    buffer: &mut [u8],
    wait: WaitDecision<'_>,
) -> Result<bool, TlsError> {
    let whole = state.order.request.to_usize();
    let mut left = whole;
    while left > 0 {
        let most = left.min(buffer.len());
        let count = stream.receive(&mut buffer[..most], wait)?;
        if count == 0 && left == whole && state.order.keeps_open {
            return Ok(false);
        }
        if count == 0 {
            return Err(ended_early());
        }
        left -= count;
        state.pay(count);
    }
    Ok(true)
}

/// Writes a response, and the end of TLS unless the connection stays open.
fn respond_in_tls(state: &RrState, stream: &mut TlsStream, wait: WaitDecision<'_>) -> Result<(), TlsError> {
    let (whole, last) = (state.order.response.to_usize() / BUFFER, state.order.response.to_usize() % BUFFER);
    for _ in 0..whole {
        stream.send(&state.payload, wait)?;
        state.pay(BUFFER);
    }
    let last = &state.payload[..last];
    let sent = if state.order.keeps_open { stream.send(last, wait) } else { stream.send_last(last, wait) };
    state.pay(last.len());
    sent
}

fn ended_early() -> TlsError {
    TlsError("the client ended TLS within a request".to_owned())
}

/// Reads some bytes of the token.
fn receive_some(stream: &mut TlsStream, buffer: &mut [u8], wait: WaitDecision<'_>) -> Result<usize, TlsError> {
    match stream.receive(buffer, wait)? {
        0 => Err(ended_early()),
        count => Ok(count),
    }
}

/// Time limit of a client, which sending byte by byte does not extend.
struct ClientLimit<'a> {
    state: &'a RrState,
    until: MonotonicTime,
}

impl<'a> ClientLimit<'a> {
    fn new(state: &'a RrState, limit: Duration) -> Self {
        Self { state, until: clock::monotonic_now() + limit }
    }

    /// After the token: a large message may take as long as without TLS.
    fn extend(&mut self) {
        self.until = clock::monotonic_now() + self.state.stall_limit;
    }

    fn go_on(&self, error: Option<&io::Error>) -> Result<(), TlsError> {
        if error.is_none_or(poll::is_temporary) && !self.state.is_stopping() && clock::monotonic_now() < self.until {
            return Ok(());
        }
        Err(TlsError(error.map_or_else(|| "the client is too slow".to_owned(), linerate_sys::describe_os_error)))
    }
}
