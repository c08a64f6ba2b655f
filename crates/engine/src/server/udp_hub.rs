//! Socket that receives the first datagram of each UDP stream.
//!
//! It is bound only while a session waits for streams. The socket that receives a request becomes the stream itself,
//! connected to its client, and a new one replaces it: so no datagram of the client is misdirected. Requests of other
//! clients queued on it meanwhile are read and served in turn. A request from an unknown address is kept until it may
//! be assigned: a stock client does not repeat it.

use core::time::Duration;
use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use linerate_sys::net::{self, UdpOptions};
use linerate_sys::{clock, options};
use linerate_units::{ByteCount, MonotonicTime, Port};
use linerate_wire::udp::{CounterWidth, StreamRequest};

use super::inbox::SessionMessage;
use super::registry::{RequestOwner, SessionRegistry};
use super::{ServerObserver, ServerOptions};

/// Most bytes of a request: a whole block of a repeated one.
const LARGEST: usize = 65536;

/// Most requests read at once; others wait in the socket.
const MAX_REQUEST_BATCH: usize = 256;

/// Most requests from unknown addresses that are kept.
const MAX_UNKNOWN_REQUESTS: usize = 64;

/// Pause after a failure to bind.
const BIND_RETRY_PAUSE: Duration = Duration::from_millis(200);

pub(super) struct UdpHub {
    options: Arc<ServerOptions>,
    address: SocketAddr,
    socket: Option<UdpSocket>,
    failed_at: Option<MonotonicTime>,
    /// Requests from unknown addresses, with the time from which each may be served.
    strangers: VecDeque<(MonotonicTime, DatagramArrival)>,
}

struct DatagramArrival {
    source: SocketAddr,
    request: StreamRequest,
    /// Size of a repeated request.
    size: Option<ByteCount>,
}

impl UdpHub {
    pub(super) fn new(options: Arc<ServerOptions>, address: SocketAddr) -> Self {
        Self { options, address, socket: None, failed_at: None, strangers: VecDeque::new() }
    }

    pub(super) fn socket(&self) -> Option<&UdpSocket> {
        self.socket.as_ref()
    }

    /// Binds or closes the socket, as needed.
    pub(super) fn keep_bound_while(&mut self, needed: bool, observer: &dyn ServerObserver) {
        if !needed {
            self.socket = None;
            self.strangers.clear();
            return;
        }
        let now = clock::monotonic_now();
        if self.socket.is_some() || self.failed_at.is_some_and(|at| now.since(at) < BIND_RETRY_PAUSE) {
            return;
        }
        match self.bind() {
            Ok(socket) => (self.socket, self.failed_at) = (Some(socket), None),
            Err(cause) => {
                observer.problem(&cause.to_string());
                self.failed_at = Some(now);
            }
        }
    }

    fn bind(&self) -> linerate_sys::Result<UdpSocket> {
        let socket = net::bind_udp(&UdpOptions {
            address: self.options.address,
            port: Port::new(self.address.port()),
            family: self.options.family,
            device: self.options.device.clone(),
            reuse_address: true,
            ..UdpOptions::default()
        })?;
        // Only `recv` after `poll` uses it until it becomes a stream, which blocks with a timeout.
        let _ = socket.set_nonblocking(true);
        Ok(socket)
    }

    /// Time of the next call of [`UdpHub::serve`] even without a new request.
    pub(super) fn next_deadline(&self) -> Option<MonotonicTime> {
        self.strangers.iter().map(|(time, _)| *time).min()
    }

    /// Serves the received requests.
    pub(super) fn serve(&mut self, registry: &SessionRegistry) {
        let mut waiting = self.take_due_requests();
        if let Some(socket) = &self.socket {
            read_requests(socket, &mut waiting);
        }
        let mut served = 0;
        while let Some(arrival) = waiting.pop_front() {
            served += 1;
            if served > MAX_REQUEST_BATCH {
                return;
            }
            let source = net::canonical(arrival.source).ip();
            match registry.session_for_request(source, arrival.size, clock::monotonic_now()) {
                RequestOwner::Session(inbox) => {
                    if let Some(stream) = self.open_stream(&arrival, inbox.server(), &mut waiting) {
                        inbox.deliver(SessionMessage::Udp(stream));
                    }
                }
                RequestOwner::NotBefore(time) => self.keep_request(time, arrival),
                RequestOwner::NoSession => {}
            }
        }
    }

    fn take_due_requests(&mut self) -> VecDeque<DatagramArrival> {
        let now = clock::monotonic_now();
        let (due, early) = self.strangers.drain(..).partition(|(time, _)| *time <= now);
        self.strangers = early;
        let due: VecDeque<_> = due;
        due.into_iter().map(|(_, arrival)| arrival).collect()
    }

    fn keep_request(&mut self, time: MonotonicTime, arrival: DatagramArrival) {
        let known = self.strangers.iter().any(|(_, other)| other.source == arrival.source);
        if !known && self.strangers.len() < MAX_UNKNOWN_REQUESTS {
            self.strangers.push_back((time, arrival));
        }
    }

    /// Opens the stream of a request by a client that reached this host at `server`.
    fn open_stream(
        &mut self,
        arrival: &DatagramArrival,
        server: Option<SocketAddr>,
        waiting: &mut VecDeque<DatagramArrival>,
    ) -> Option<UdpSocket> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => self.bind().ok()?,
        };
        net::connect_bound_udp(&socket, arrival.source).ok()?;
        self.socket = self.bind().ok();
        // Datagrams of other clients that arrived before the socket was connected belong to them, not to the stream.
        read_requests(&socket, waiting);
        waiting.retain(|other| other.source != arrival.source);
        let socket = server.and_then(|server| self.socket_at(server, arrival.source, &socket)).unwrap_or(socket);
        socket.set_nonblocking(false).ok()?;
        let _ = options::set_receive_timeout(&socket, Some(Duration::from_millis(100)));
        socket.send(&arrival.request.reply()).ok()?;
        Some(socket)
    }

    /// Socket for a client that reached this host at `server`, where the kernel chose another source for `chosen`: the client
    /// accepts no datagram from there, and what it sends would not be received. `None` where the source is right.
    fn socket_at(&self, server: SocketAddr, client: SocketAddr, chosen: &UdpSocket) -> Option<UdpSocket> {
        let source = net::canonical(chosen.local_addr().ok()?);
        if source.ip() == server.ip() && net::scope_of(source) == net::scope_of(server) {
            return None;
        }
        let socket = net::bind_udp(&UdpOptions {
            address: Some(server.ip()),
            scope: net::scope_of(server),
            port: Port::new(self.address.port()),
            device: self.options.device.clone(),
            reuse_address: true,
            ..UdpOptions::default()
        });
        let socket = socket.ok()?;
        net::connect_bound_udp(&socket, net::canonical(client)).ok()?;
        Some(socket)
    }
}

/// Reads all queued datagrams; those that are no requests are dropped.
fn read_requests(socket: &UdpSocket, waiting: &mut VecDeque<DatagramArrival>) {
    let mut buffer = vec![0; LARGEST];
    for _ in 0..MAX_REQUEST_BATCH {
        let Ok((length, source)) = socket.recv_from(&mut buffer) else { return };
        let datagram = &buffer[..length];
        // A repeated request has the block size of its test, which is unknown before it is claimed: any size is
        // accepted.
        let size = ByteCount::from_usize(length);
        let request = [CounterWidth::Bits32, CounterWidth::Bits64]
            .into_iter()
            .find_map(|width| StreamRequest::recognize(datagram, size, width));
        if let Some(request) = request {
            let repeated = request == StreamRequest::Retry;
            waiting.push_back(DatagramArrival { source, request, size: repeated.then_some(size) });
        }
    }
}
