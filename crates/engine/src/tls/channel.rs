//! State of one TLS connection: bytes of a socket in, plain bytes out, and the reverse.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use linerate_sys::poll;
use rustls::server::{Accepted, Acceptor};
use rustls::{ClientConnection, Connection, ServerConnection};

use super::data::DataCipher;
use super::failure::{self, PLAIN_CLIENT};
use super::records::RecordReader;
use super::{ConnectionUse, ReceiveOutcome, ServerTrust, TlsError, TlsServer};

/// Most bytes of a peer before its handshake is complete: a chain of certificates has a few thousand. It bounds the memory
/// of a connection of which nothing is known.
pub(super) const MAX_HANDSHAKE: usize = 32 << 10;

/// A TLS connection, without its socket.
pub(crate) struct TlsChannel {
    state: ChannelState,
    records: RecordReader,
    /// Bytes for the peer in addition to those of the connection.
    outgoing: Vec<u8>,
    usage: ConnectionUse,
    /// Trust of a client, for the reason of a failure.
    trust: Option<ServerTrust>,
    failure: Option<TlsError>,
    is_foreign: bool,
}

enum ChannelState {
    /// The client's first message is awaited; nothing has been computed.
    Accepting(Box<Acceptor>, Arc<TlsServer>),
    Open(Box<Connection>),
    Broken,
}

impl core::fmt::Debug for TlsChannel {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TlsChannel").field("failure", &self.failure).finish_non_exhaustive()
    }
}

/// The socket, read by records.
struct RecordSource<'a>(&'a mut RecordReader, &'a TcpStream);

impl Read for RecordSource<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(&mut self.1, buffer)
    }
}

impl TlsChannel {
    fn new(state: ChannelState, trust: Option<ServerTrust>) -> Self {
        let (records, outgoing, usage) = (RecordReader::default(), Vec::new(), ConnectionUse::Control);
        Self { state, records, outgoing, usage, trust, failure: None, is_foreign: false }
    }

    /// Client's end of a connection.
    pub(super) fn of_client(connection: ClientConnection, trust: ServerTrust) -> Self {
        Self::new(open(connection.into()), Some(trust))
    }

    /// Server's end of a connection.
    pub(crate) fn of_server(server: &Arc<TlsServer>) -> Self {
        Self::new(ChannelState::Accepting(Box::default(), Arc::clone(server)), None)
    }

    /// Encryption of the data that follows; `None` before the end of the handshake.
    pub(crate) fn into_data(self) -> Option<DataCipher> {
        match self.state {
            ChannelState::Open(connection) if !connection.is_handshaking() => {
                Some(DataCipher::new(connection, self.records, self.trust))
            }
            _ => None,
        }
    }

    /// True until both ends have authenticated each other as configured.
    pub(crate) fn is_handshaking(&self) -> bool {
        match &self.state {
            ChannelState::Accepting(..) => true,
            ChannelState::Open(connection) => connection.is_handshaking(),
            ChannelState::Broken => false,
        }
    }

    /// Use that the client has named.
    pub(crate) fn usage(&self) -> ConnectionUse {
        self.usage
    }

    /// True when the client does not use TLS.
    pub(crate) fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// Reason of a failure.
    pub(crate) fn failure(&self) -> Option<&TlsError> {
        self.failure.as_ref()
    }

    /// True when plain bytes can be read without the socket.
    pub(crate) fn has_unread(&mut self) -> bool {
        let ChannelState::Open(connection) = &mut self.state else { return false };
        connection.process_new_packets().is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
    }

    /// Returns plain bytes that have arrived; 0 of them when the peer has closed, `None` when more must be received.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        match &mut self.state {
            ChannelState::Open(connection) => connection.reader().read(buffer).ok(),
            _ => None,
        }
    }

    /// Encrypts a message.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.state {
            ChannelState::Open(connection) => connection.writer().write_all(bytes),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Bytes for the socket.
    pub(crate) fn take_outgoing(&mut self) -> Vec<u8> {
        let mut outgoing = core::mem::take(&mut self.outgoing);
        if let ChannelState::Open(connection) = &mut self.state {
            drain(connection, &mut outgoing);
        }
        outgoing
    }

    /// Reads one record, or a part of it, from the socket.
    pub(crate) fn receive(&mut self, stream: &TcpStream) -> ReceiveOutcome {
        let mut source = RecordSource(&mut self.records, stream);
        let received = match &mut self.state {
            ChannelState::Accepting(acceptor, _) => acceptor.read_tls(&mut source),
            ChannelState::Open(connection) => connection.read_tls(&mut source),
            ChannelState::Broken => return ReceiveOutcome::Closed,
        };
        match received {
            Ok(0) => ReceiveOutcome::Closed,
            Ok(_) => self.process(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => ReceiveOutcome::Progress,
            Err(error) if poll::would_block(&error) => ReceiveOutcome::Nothing,
            Err(_) => ReceiveOutcome::Closed,
        }
    }

    fn process(&mut self) -> ReceiveOutcome {
        if self.is_handshaking() && self.records.total > MAX_HANDSHAKE {
            return self.fail(TlsError(format!("the peer's TLS handshake has more than {MAX_HANDSHAKE} bytes")));
        }
        let trust = self.trust.as_ref();
        let failed = match &mut self.state {
            ChannelState::Accepting(..) if self.records.is_foreign() => {
                self.is_foreign = true;
                Some(TlsError(PLAIN_CLIENT.to_owned()))
            }
            ChannelState::Accepting(acceptor, server) => match acceptor.accept() {
                Ok(None) => None,
                Ok(Some(accepted)) => {
                    let server = Arc::clone(server);
                    return self.accept(&server, accepted);
                }
                Err((error, mut alert)) => {
                    // Writing into memory does not fail.
                    let _ = alert.write_all(&mut self.outgoing);
                    Some(TlsError(failure::describe(&error, trust)))
                }
            },
            ChannelState::Open(connection) => match connection.process_new_packets() {
                Ok(_) => None,
                Err(error) => {
                    drain(connection, &mut self.outgoing);
                    Some(TlsError(failure::describe(&error, trust)))
                }
            },
            ChannelState::Broken => return ReceiveOutcome::Closed,
        };
        failed.map_or(ReceiveOutcome::Progress, |failure| self.fail(failure))
    }

    /// Computes the server's answer to a client's first message.
    fn accept(&mut self, server: &TlsServer, accepted: Accepted) -> ReceiveOutcome {
        let (config, usage) = match server.choose(&accepted.client_hello()) {
            Ok(chosen) => chosen,
            Err(reason) => {
                self.outgoing = server.refuse(accepted);
                return self.fail(TlsError(reason.to_owned()));
            }
        };
        match accepted.into_connection(config) {
            Ok(connection) => {
                self.usage = usage;
                self.state = open(ServerConnection::into(connection));
                ReceiveOutcome::Progress
            }
            Err((error, mut alert)) => {
                // Writing into memory does not fail.
                let _ = alert.write_all(&mut self.outgoing);
                self.fail(TlsError(failure::describe(&error, None)))
            }
        }
    }

    fn fail(&mut self, failure: TlsError) -> ReceiveOutcome {
        self.failure.get_or_insert(failure);
        self.state = ChannelState::Broken;
        ReceiveOutcome::Closed
    }
}

fn open(mut connection: Connection) -> ChannelState {
    // The caller bounds its messages.
    connection.set_buffer_limit(None);
    ChannelState::Open(Box::new(connection))
}

fn drain(connection: &mut Connection, outgoing: &mut Vec<u8>) {
    while connection.wants_write() {
        // Writing into memory does not fail.
        if connection.write_tls(outgoing).is_err() {
            return;
        }
    }
}
