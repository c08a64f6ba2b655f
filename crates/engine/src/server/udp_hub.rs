//! The socket that receives the first datagram of each UDP stream.
//!
//! It is bound only while a session waits for streams. The socket that a request arrives on becomes the stream itself,
//! connected to its client, and a new one takes its place: so no datagram of the client can come between. Requests of
//! others that were queued on it meanwhile are read off and served in turn. A request from an address that no client has
//! is kept until it may be looked at: its sender, if it is a stock client, does not repeat it.

use core::time::Duration;
use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use linerate_sys::net::{self, UdpOptions};
use linerate_sys::{clock, options};
use linerate_units::{ByteCount, MonotonicTime, Port};
use linerate_wire::udp::{CounterWidth, Request};

use super::registry::{Arrived, Registry, RequestOwner};
use super::{ServerObserver, ServerOptions};

/// Largest request looked at: a whole block of a repeated one.
const LARGEST: usize = 65536;

/// Most requests read at once; more wait in the socket.
const MOST_AT_ONCE: usize = 256;

/// Most requests from unknown addresses that are kept.
const MOST_STRANGERS: usize = 64;

/// After a failure to bind, the next attempt waits this long.
const RETRY: Duration = Duration::from_millis(200);

pub(super) struct UdpHub {
    options: Arc<ServerOptions>,
    address: SocketAddr,
    socket: Option<UdpSocket>,
    failed_at: Option<MonotonicTime>,
    /// Requests from unknown addresses, with the time from which each may be served.
    strangers: VecDeque<(MonotonicTime, Arrival)>,
}

struct Arrival {
    source: SocketAddr,
    request: Request,
    /// Of a repeated request.
    size: Option<ByteCount>,
}

impl UdpHub {
    pub(super) fn new(options: Arc<ServerOptions>, address: SocketAddr) -> Self {
        Self { options, address, socket: None, failed_at: None, strangers: VecDeque::new() }
    }

    pub(super) fn socket(&self) -> Option<&UdpSocket> {
        self.socket.as_ref()
    }

    /// Binds or gives up the port, as it is needed or not.
    pub(super) fn keep_bound_while(&mut self, needed: bool, observer: &dyn ServerObserver) {
        if !needed {
            self.socket = None;
            self.strangers.clear();
            return;
        }
        let now = clock::monotonic_now();
        if self.socket.is_some() || self.failed_at.is_some_and(|at| now.since(at) < RETRY) {
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
        // Only `recv` after `poll` uses it until it becomes a stream, which blocks with a time-out.
        let _ = socket.set_nonblocking(true);
        Ok(socket)
    }

    /// When to call [`UdpHub::serve`] even if nothing has come.
    pub(super) fn next_deadline(&self) -> Option<MonotonicTime> {
        self.strangers.iter().map(|(time, _)| *time).min()
    }

    /// Serves the requests that have come.
    pub(super) fn serve(&mut self, registry: &Registry) {
        let mut waiting = self.take_due_strangers();
        if let Some(socket) = &self.socket {
            read_requests(socket, &mut waiting);
        }
        let mut served = 0;
        while let Some(arrival) = waiting.pop_front() {
            served += 1;
            if served > MOST_AT_ONCE {
                return;
            }
            let source = net::canonical(arrival.source).ip();
            match registry.session_for_request(source, arrival.size, clock::monotonic_now()) {
                RequestOwner::Session(inbox) => {
                    if let Some(stream) = self.open_stream(&arrival, &mut waiting) {
                        inbox.deliver(Arrived::Udp(stream));
                    }
                }
                RequestOwner::NotBefore(time) => self.keep_stranger(time, arrival),
                RequestOwner::Nobody => {}
            }
        }
    }

    fn take_due_strangers(&mut self) -> VecDeque<Arrival> {
        let now = clock::monotonic_now();
        let (due, early) = self.strangers.drain(..).partition(|(time, _)| *time <= now);
        self.strangers = early;
        let due: VecDeque<_> = due;
        due.into_iter().map(|(_, arrival)| arrival).collect()
    }

    fn keep_stranger(&mut self, time: MonotonicTime, arrival: Arrival) {
        let known = self.strangers.iter().any(|(_, other)| other.source == arrival.source);
        if !known && self.strangers.len() < MOST_STRANGERS {
            self.strangers.push_back((time, arrival));
        }
    }

    fn open_stream(&mut self, arrival: &Arrival, waiting: &mut VecDeque<Arrival>) -> Option<UdpSocket> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => self.bind().ok()?,
        };
        net::connect_bound_udp(&socket, arrival.source).ok()?;
        self.socket = self.bind().ok();
        // What others had sent to this socket before it was connected is theirs, not the stream's.
        read_requests(&socket, waiting);
        waiting.retain(|other| other.source != arrival.source);
        socket.set_nonblocking(false).ok()?;
        let _ = options::set_receive_timeout(&socket, Some(Duration::from_millis(100)));
        socket.send(&arrival.request.reply()).ok()?;
        Some(socket)
    }
}

/// Reads all that is there; what is no request is dropped.
fn read_requests(socket: &UdpSocket, waiting: &mut VecDeque<Arrival>) {
    let mut buffer = vec![0; LARGEST];
    for _ in 0..MOST_AT_ONCE {
        let Ok((length, source)) = socket.recv_from(&mut buffer) else { return };
        let datagram = &buffer[..length];
        // A repeated request has the block size of its test, which nobody knows before it is claimed: any will do.
        let size = ByteCount::from_usize(length);
        let request = [CounterWidth::Bits32, CounterWidth::Bits64]
            .into_iter()
            .find_map(|width| Request::recognize(datagram, size, width));
        if let Some(request) = request {
            let repeated = request == Request::Retry;
            waiting.push_back(Arrival { source, request, size: repeated.then_some(size) });
        }
    }
}
