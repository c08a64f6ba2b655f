//! Connections over loopback and sessions of a server, for the tests of this crate.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use linerate_engine::server::{Server, ServerOptions, ServiceAccess};
use linerate_sys::tcp_info;
use linerate_units::ByteCount;
use tokio::runtime::Runtime;

use crate::connection::Connection;

/// Longest wait for an event: only a failing test waits that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Address of a client, of the documentation's range.
pub(crate) fn client(last: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, last).into()
}

/// Sessions and budget of a server with these options, which never runs.
pub(crate) fn access(change: impl FnOnce(&mut ServerOptions)) -> ServiceAccess {
    let address = Some(Ipv4Addr::LOCALHOST.into());
    let mut options = ServerOptions { address, port: None, ..ServerOptions::default() };
    change(&mut options);
    Server::bind(options).expect("a free port").service_access()
}

/// Runtime and sockets of connections.
pub(crate) struct Loopback {
    runtime: Runtime,
    listener: TcpListener,
}

impl Loopback {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        Self { runtime: runtime.expect("a runtime"), listener }
    }

    /// Connection, and the socket of its client.
    pub(crate) fn connect(&self, number: u64) -> (Arc<Connection>, TcpStream) {
        let client = TcpStream::connect(self.listener.local_addr().expect("bound")).expect("it listens");
        client.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        let (stream, peer) = self.listener.accept().expect("it has connected");
        (self.adopt(stream, peer, number), client)
    }

    /// Connection of a socket, as if its client had this address.
    pub(crate) fn adopt(&self, stream: TcpStream, peer: SocketAddr, number: u64) -> Arc<Connection> {
        stream.set_nonblocking(true).expect("an option of all sockets");
        let stream = self.block_on(async {
            let stream = tokio::net::TcpStream::from_std(stream).expect("a free descriptor");
            // The runtime knows no earlier that it may write.
            stream.writable().await.expect("a connection");
            stream
        });
        Connection::new(stream, peer, number)
    }

    /// Runs a future to its end.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        let limited = async { tokio::time::timeout(PATIENCE, future).await };
        self.runtime.block_on(limited).expect("an end in time")
    }

    /// Result of a future that is ready.
    pub(crate) fn poll_once<F: Future>(&self, future: F) -> Poll<F::Output> {
        let _context = self.runtime.enter();
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    /// True when the connection has to end.
    pub(crate) fn is_ended(&self, connection: &Connection) -> bool {
        self.poll_once(connection.ended()).is_ready()
    }
}

/// Waits until `happened`, which another thread or the kernel brings about.
pub(crate) fn wait_until(happened: impl Fn() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < PATIENCE, "it has not happened in time");
        std::thread::yield_now();
    }
}

/// Sends from the client and waits until the kernel of the server has it.
pub(crate) fn send(client: &mut TcpStream, connection: &Connection, count: usize) {
    let received = || tcp_info::read(connection).ok()?.bytes_received;
    let before = received().expect("the kernel counts it");
    client.write_all(&vec![7; count]).expect("sent");
    wait_until(|| received() == Some(before + ByteCount::from_usize(count)));
}

/// Sends to the client and waits until all is acknowledged.
pub(crate) fn answer(connection: &Connection, count: usize) {
    let acknowledged = || tcp_info::read(connection).ok()?.bytes_acknowledged;
    let before = acknowledged().expect("the kernel counts it");
    connection.write_now(&vec![7; count]);
    wait_until(|| acknowledged() == Some(before + ByteCount::from_usize(count)));
}

/// A directory that is removed when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("linerate-web-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
