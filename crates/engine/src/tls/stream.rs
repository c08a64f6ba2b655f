//! TLS to the end of a connection over a blocking socket with short time limits: its caller decides how long to go on.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use linerate_model::tls::TlsProperties;
use linerate_sys::poll;
use rustls::server::{Accepted, Acceptor};
use rustls::{ClientConnection, Connection};

use super::channel::MAX_HANDSHAKE;
use super::{ConnectionUse, ServerTrust, TlsError, TlsServer, WaitDecision, failure, properties};

/// Plain bytes that are encrypted before the kernel gets them.
const WRITE: usize = 128 << 10;

/// A connection in TLS to its end.
pub(crate) struct TlsStream {
    connection: Connection,
    socket: TcpStream,
    /// Trust of a client, for the reason of a failure.
    trust: Option<ServerTrust>,
    /// Bytes received before the handshake was complete.
    handshake: usize,
}

impl core::fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TlsStream").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl TlsStream {
    fn new(mut connection: Connection, socket: TcpStream, trust: Option<ServerTrust>, handshake: usize) -> Self {
        // The caller bounds its messages.
        connection.set_buffer_limit(None);
        Self { connection, socket, trust, handshake }
    }

    /// Client's end; nothing is sent before the first message.
    pub(super) fn of_client(connection: ClientConnection, socket: TcpStream, trust: ServerTrust) -> Self {
        Self::new(connection.into(), socket, Some(trust), 0)
    }

    /// Server's end: reads the client's first message, and conducts the handshake.
    pub(crate) fn accept(
        mut socket: TcpStream,
        server: &Arc<TlsServer>,
        wait: WaitDecision<'_>,
    ) -> Result<Self, TlsError> {
        let (accepted, received) = first_message(&mut socket, wait)?;
        let (config, usage) = match server.choose(&accepted.client_hello()) {
            Ok(chosen) => chosen,
            Err(reason) => {
                let _ = socket.write_all(&server.refuse(accepted));
                return Err(TlsError(reason.to_owned()));
            }
        };
        if usage != ConnectionUse::Secured {
            return Err(TlsError("the client asks for a connection of another use".to_owned()));
        }
        let connection = accepted.into_connection(config).map_err(|(error, mut alert)| {
            let _ = alert.write(&mut socket);
            TlsError(failure::describe(&error, None))
        })?;
        let mut stream = Self::new(connection.into(), socket, None, received);
        stream.flush(wait)?;
        Ok(stream)
    }

    /// Bytes received before the handshake was complete.
    pub(crate) const fn handshake_bytes(&self) -> usize {
        self.handshake
    }

    /// Properties that the handshake has negotiated; `None` before its end.
    pub(crate) fn properties(&self, has_certificate: bool) -> Option<TlsProperties> {
        properties::of(&self.connection, self.trust.as_ref()?, has_certificate)
    }

    /// Sends a message; a first one conducts the handshake, and leaves with its last part.
    pub(crate) fn send(&mut self, message: &[u8], wait: WaitDecision<'_>) -> Result<(), TlsError> {
        for part in message.chunks(WRITE) {
            self.connection.writer().write_all(part).map_err(|cause| lost(&cause))?;
            self.flush(wait)?;
        }
        Ok(())
    }

    /// Sends a message and the end of all messages.
    pub(crate) fn send_last(&mut self, message: &[u8], wait: WaitDecision<'_>) -> Result<(), TlsError> {
        let (first, last) = message.split_at(message.len() - message.len() % WRITE);
        self.send(first, wait)?;
        self.connection.writer().write_all(last).map_err(|cause| lost(&cause))?;
        self.connection.send_close_notify();
        self.flush(wait)
    }

    /// Returns some bytes of a message; 0 at the end of all.
    pub(crate) fn receive(&mut self, buffer: &mut [u8], wait: WaitDecision<'_>) -> Result<usize, TlsError> {
        loop {
            match self.connection.reader().read(buffer) {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.fill(wait)?,
                Err(cause) => return Err(lost(&cause)),
            }
        }
    }

    /// Reads a socket that is ready once; returns the bytes of messages that this completed, 0 for a part of a record.
    pub(crate) fn receive_ready(&mut self, buffer: &mut [u8]) -> Result<usize, TlsError> {
        self.fill(&mut |error| match error {
            Some(error) if !poll::is_temporary(&error) => Err(lost(&error)),
            _ => Ok(()),
        })?;
        match self.connection.reader().read(buffer) {
            Ok(0) => Err(TlsError("the peer ended TLS".to_owned())),
            Ok(count) => Ok(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(cause) => Err(lost(&cause)),
        }
    }

    pub(crate) const fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Waits for the peer's end of all messages, and of the connection.
    pub(crate) fn receive_end(&mut self, wait: WaitDecision<'_>) -> Result<(), TlsError> {
        if self.receive(&mut [0], wait)? > 0 {
            return Err(TlsError("the peer sent more than a message".to_owned()));
        }
        loop {
            match self.socket.read(&mut [0]) {
                Ok(0) => return Ok(()),
                Ok(_) => return Err(TlsError("the peer sent more after the end of TLS".to_owned())),
                Err(error) => wait(Some(error))?,
            }
        }
    }

    /// Completes the handshake, and writes what has been encrypted.
    fn flush(&mut self, wait: WaitDecision<'_>) -> Result<(), TlsError> {
        while self.connection.wants_write() || self.connection.is_handshaking() {
            if !self.connection.wants_write() {
                self.fill(wait)?;
                continue;
            }
            match self.connection.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) => wait(Some(error))?,
            }
        }
        Ok(())
    }

    /// Reads once, and decrypts.
    fn fill(&mut self, wait: WaitDecision<'_>) -> Result<(), TlsError> {
        let is_handshaking = self.connection.is_handshaking();
        match self.connection.read_tls(&mut self.socket) {
            Ok(0) => return Err(TlsError(if is_handshaking { CLOSED_EARLY } else { TRUNCATED }.to_owned())),
            Ok(count) if is_handshaking => self.handshake += count,
            Ok(_) => {}
            Err(error) => return wait(Some(error)),
        }
        if self.handshake > MAX_HANDSHAKE {
            return Err(too_long());
        }
        if let Err(error) = self.connection.process_new_packets() {
            // The peer learns the reason, if it reads.
            let _ = self.connection.write_tls(&mut self.socket);
            return Err(TlsError(failure::describe(&error, self.trust.as_ref())));
        }
        // A peer that sends byte by byte has no more time than a silent one.
        if is_handshaking { wait(None) } else { Ok(()) }
    }
}

/// Reason for a peer that closes during the handshake.
const CLOSED_EARLY: &str = "the peer closed the connection during the TLS handshake";

/// Reason for a connection that ends without the end of TLS: it may have been cut.
const TRUNCATED: &str = "the connection ended within TLS, before the peer had sent all (no close_notify)";

fn too_long() -> TlsError {
    TlsError(format!("the peer's TLS handshake has more than {MAX_HANDSHAKE} bytes"))
}

fn lost(cause: &io::Error) -> TlsError {
    TlsError(format!("the connection is gone: {}", linerate_sys::describe_os_error(cause)))
}

/// Reads a client's first message; returns its length, too.
fn first_message(socket: &mut TcpStream, wait: WaitDecision<'_>) -> Result<(Accepted, usize), TlsError> {
    let (mut acceptor, mut received) = (Acceptor::default(), 0);
    loop {
        match acceptor.read_tls(socket) {
            Ok(0) => return Err(TlsError(CLOSED_EARLY.to_owned())),
            Ok(count) => received += count,
            Err(error) => {
                wait(Some(error))?;
                continue;
            }
        }
        if received > MAX_HANDSHAKE {
            return Err(too_long());
        }
        match acceptor.accept() {
            Ok(Some(accepted)) => return Ok((accepted, received)),
            Ok(None) => wait(None)?,
            Err((error, mut alert)) => {
                let _ = alert.write(socket);
                return Err(TlsError(failure::describe(&error, None)));
            }
        }
    }
}
