//! Connections that the far host opens: a server behind NAT dials this host, which takes its connections instead of making
//! its own.

use core::time::Duration;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, OnceLock, PoisonError};

use socket2::Socket;

use super::{ConnectOptions, accept_nonblocking, canonical};
use crate::clock;
use crate::error::{Error, Result};
use crate::poll::{self, PollInterest, PollItem};
use crate::tcp_info;

/// Time until the server has dialed again, unless the caller limits it.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Listener of this process, for one server.
struct Rendezvous {
    listener: TcpListener,
    server: IpAddr,
    /// First connection, by which the server was found.
    first: Mutex<Option<TcpStream>>,
}

static RENDEZVOUS: OnceLock<Rendezvous> = OnceLock::new();

/// Waits for a server that dials in; returns its address. From then on [`connect_tcp`](super::connect_tcp) to this address
/// takes connections from `listener`. Once per process.
pub fn wait_for_server(listener: TcpListener, cancel: Option<BorrowedFd<'_>>) -> Result<SocketAddr> {
    let failed = |cause| Error::system("waiting for a server that dials in", cause);
    listener.set_nonblocking(true).map_err(failed)?;
    let (stream, peer) = accept(&listener, None, (None, cancel))?;
    let address = canonical(peer);
    let rendezvous = Rendezvous { listener, server: address.ip(), first: Mutex::new(Some(stream)) };
    RENDEZVOUS.set(rendezvous).map_err(|_| failed(io::ErrorKind::AlreadyExists.into()))?;
    Ok(address)
}

/// Takes a connection of the server that dials in; `None` when the destination is another host. The second value is the
/// round trip of the kernel's own handshake.
pub(super) fn take(options: &ConnectOptions, cancel: Option<BorrowedFd<'_>>) -> Option<Result<(TcpStream, Duration)>> {
    let rendezvous = RENDEZVOUS.get()?;
    (canonical(options.remote).ip() == rendezvous.server).then(|| rendezvous.take(options, cancel))
}

impl Rendezvous {
    fn take(&self, options: &ConnectOptions, cancel: Option<BorrowedFd<'_>>) -> Result<(TcpStream, Duration)> {
        let begun = clock::monotonic_now();
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let stream = if let Some(stream) = first.filter(is_open) {
            stream
        } else {
            let limit = options.timeout.unwrap_or(DIAL_TIMEOUT);
            accept(&self.listener, Some(self.server), (Some(limit), cancel))?.0
        };
        let failed = |cause| Error::system(format!("taking a connection of {}", options.remote), cause);
        stream.set_nonblocking(false).map_err(failed)?;
        let socket = Socket::from(stream);
        options.settings.apply_tcp(&socket)?;
        let stream = TcpStream::from(socket);
        let round_trip = tcp_info::read(&stream)?.rtt.unwrap_or_else(|| clock::monotonic_now() - begun);
        Ok((stream, round_trip))
    }
}

/// True when the far end has neither closed the connection nor sent anything.
fn is_open(stream: &TcpStream) -> bool {
    let _ = stream.set_nonblocking(true);
    matches!(stream.peek(&mut [0]), Err(cause) if cause.kind() == io::ErrorKind::WouldBlock)
}

/// Accepts a connection, of this host only if there is one.
fn accept(
    listener: &TcpListener,
    from: Option<IpAddr>,
    (limit, cancel): (Option<Duration>, Option<BorrowedFd<'_>>),
) -> Result<(TcpStream, SocketAddr)> {
    let operation = || "waiting for a connection of a server that dials in".to_owned();
    let deadline = limit.map(|limit| clock::monotonic_now() + limit);
    loop {
        let mut items = vec![PollItem::new(listener, PollInterest::READ)];
        items.extend(cancel.as_ref().map(|cancel| PollItem::new(cancel, PollInterest::READ)));
        let left = deadline.map(|deadline| deadline.since(clock::monotonic_now()));
        let ready = poll::wait(&mut items, left)?;
        if items.get(1).is_some_and(PollItem::is_ready) {
            return Err(Error::Cancelled { operation: operation() });
        }
        if ready == 0 {
            return Err(Error::TimedOut { operation: operation(), after: limit.unwrap_or_default() });
        }
        match accept_nonblocking(listener) {
            // One that has been closed meanwhile is of an earlier run.
            Ok(Some((stream, peer))) if from.is_none_or(|from| from == canonical(peer).ip()) && is_open(&stream) => {
                return Ok((stream, peer));
            }
            Ok(_) => {}
            Err(cause) if cause.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(cause) => return Err(Error::system(operation(), cause)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;
    use crate::net::connect_tcp_timed;

    /// One test, as the listener is that of the process: 127.0.0.9 is no one else's server.
    #[test]
    fn connections_of_a_dialing_server_are_taken_in_place_of_own_ones() {
        let listener = TcpListener::bind("127.0.0.9:0").expect("free");
        let here = listener.local_addr().expect("bound");
        let dial = |text: &'static [u8]| {
            move || {
                let socket = Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
                socket.bind(&SocketAddr::new([127, 0, 0, 10].into(), 0).into()).expect("free");
                socket.connect(&here.into()).expect("it listens");
                let mut stream = TcpStream::from(socket);
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("the client speaks first");
                stream.write_all(text).expect("open");
            }
        };
        let threads = [b"one", b"two"].map(|text| std::thread::spawn(dial(text)));
        let server = wait_for_server(listener, None).expect("it dials");
        assert_eq!(server.ip(), IpAddr::from([127, 0, 0, 10]));
        let mut heard = Vec::new();
        for _ in 0..2 {
            // Its port is that of the NAT, and does not matter.
            let options = ConnectOptions::to(SocketAddr::new(server.ip(), 5201));
            let (mut stream, _) = connect_tcp_timed(&options, None).expect("taken");
            stream.write_all(b"!").expect("open");
            let mut text = String::new();
            stream.read_to_string(&mut text).expect("text");
            heard.push(text);
        }
        heard.sort();
        assert_eq!(heard, ["one", "two"]);
        for thread in threads {
            thread.join().expect("no panic");
        }
    }
}
