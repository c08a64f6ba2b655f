//! Messages to a session from the acceptor and other threads, and the data connections that it expects.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use linerate_sys::poll::Waker;

use super::probe_session::ConnectionQueue;
use super::registry::lock;
use crate::resources::ClientNetwork;
use crate::tls::DataCipher;

/// Number of a TCP connection in the order in which the server has accepted them. Cookies may be read in another one: that of
/// an earlier connection can be lost and retransmitted, or wait for its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnectionNumber(pub(super) u64);

/// A TCP stream whose cookie has been read.
#[derive(Debug)]
pub(super) struct AcceptedStream {
    pub(super) number: ConnectionNumber,
    pub(super) stream: TcpStream,
    /// Encryption of its data (`--tls-data`).
    pub(super) cipher: Option<Box<DataCipher>>,
}

/// Message to a session.
#[derive(Debug)]
pub(super) enum SessionMessage {
    /// A TCP stream.
    Tcp(AcceptedStream),
    /// A UDP stream, connected to its client, already answered.
    Udp(UdpSocket),
    /// The session may now let its client open its streams.
    Turn,
    /// The server is terminating; description of the signal.
    Terminate(String),
    /// The slot is needed: the client has sent no parameters, or its network has more than its share.
    Displaced,
}

/// Message queue of a session.
#[derive(Debug)]
pub(super) struct SessionInbox {
    queue: Mutex<VecDeque<SessionMessage>>,
    /// Woken by messages, and by streams that end.
    waker: Arc<Waker>,
    /// Data connections that the session still expects; the acceptor refuses more.
    expected: AtomicUsize,
    /// Network of the control connection, from which they come.
    network: ClientNetwork,
    /// Address at which the client reached this server; `None` where the socket does not tell.
    server: Option<SocketAddr>,
    /// Connections with the session's cookie from other networks.
    strangers: AtomicUsize,
    /// Queue that takes the connections of a test of requests, without the session's own thread.
    connections: Mutex<Option<Arc<ConnectionQueue>>>,
}

impl SessionInbox {
    /// An empty queue for a session of `client`, which reached this server at `server`.
    pub(super) fn new(client: IpAddr, server: Option<SocketAddr>) -> io::Result<Arc<Self>> {
        let waker = Arc::new(Waker::new().map_err(io::Error::from)?);
        let (expected, strangers) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (queue, network, connections) = (Mutex::default(), ClientNetwork::of(client), Mutex::default());
        Ok(Arc::new(Self { queue, waker, expected, network, server, strangers, connections }))
    }

    /// Number of connections with the session's cookie that came from other networks.
    pub(super) fn strangers(&self) -> usize {
        self.strangers.load(Ordering::Relaxed)
    }

    /// Address at which the client reached this server.
    pub(super) fn server(&self) -> Option<SocketAddr> {
        self.server
    }

    /// Waker of the session, for its streams.
    pub(super) fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// True for an address of the client's network.
    pub(super) fn is_client(&self, address: IpAddr) -> bool {
        self.network == ClientNetwork::of(address)
    }

    /// Adds a message, and wakes the session.
    pub(super) fn deliver(&self, arrived: SessionMessage) {
        let arrived = match (arrived, lock(&self.connections).as_ref()) {
            (SessionMessage::Tcp(AcceptedStream { stream, cipher: None, .. }), Some(connections)) => {
                return connections.push(stream);
            }
            (other, _) => other,
        };
        lock(&self.queue).push_back(arrived);
        self.waker.wake();
    }

    /// Takes the oldest message.
    pub(super) fn take(&self) -> Option<SessionMessage> {
        self.waker.drain();
        let mut queue = lock(&self.queue);
        let first = queue.pop_front();
        if !queue.is_empty() {
            self.waker.wake();
        }
        first
    }

    /// Expects so many data connections.
    pub(super) fn expect(&self, count: usize) {
        self.expected.store(count, Ordering::Relaxed);
    }

    /// Expects one more data connection.
    pub(super) fn expect_another(&self) {
        self.expected.fetch_add(1, Ordering::Relaxed);
    }

    /// Expects so many connections, which go to a queue of their own.
    pub(super) fn expect_connections(&self, count: usize, queue: Arc<ConnectionQueue>) {
        self.expect(count);
        *lock(&self.connections) = Some(queue);
    }

    /// Expects no further connection.
    pub(super) fn expect_no_more(&self) {
        self.expect(0);
        *lock(&self.connections) = None;
    }

    /// True when every expected connection has come.
    pub(super) fn is_complete(&self) -> bool {
        self.expected.load(Ordering::Relaxed) == 0
    }

    /// Counts a connection with the session's cookie from another network.
    pub(super) fn count_stranger(&self) {
        self.strangers.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes one of the expected connections; false when none is left.
    pub(super) fn claim_stream(&self) -> bool {
        self.expected.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |expected| expected.checked_sub(1)).is_ok()
    }
}

impl AsFd for SessionInbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}
