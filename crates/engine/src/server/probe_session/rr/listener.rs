//! Port of a test with a connection per transaction: each thread accepts, answers and closes.

use core::time::Duration;
use std::io::{self, Read as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use linerate_sys::{clock, net, options};
use linerate_units::Port;
use linerate_wire::cookie::{self, Cookie};

use super::connections::{Patience, receive, respond};
use super::{BUFFER, RrState, STOP_POLL_INTERVAL};
use crate::server::registry::SessionInbox;

/// Time limit of a connection for its token: a thread serves no other client meanwhile.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(1);

/// Listener of a test.
#[derive(Debug)]
pub(super) struct RrListener {
    listener: TcpListener,
    cookie: Cookie,
    inbox: Arc<SessionInbox>,
}

impl RrListener {
    /// Takes over a listening socket. Connections inherit its options: with no system call for each they have their time limits.
    pub(super) fn new(listener: TcpListener, cookie: Cookie, inbox: Arc<SessionInbox>) -> linerate_sys::Result<Self> {
        options::set_receive_timeout(&listener, Some(STOP_POLL_INTERVAL))?;
        options::set_send_timeout(&listener, Some(STOP_POLL_INTERVAL))?;
        Ok(Self { listener, cookie, inbox })
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
                    let _ = self.answer(state, stream, &mut buffer);
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
}
