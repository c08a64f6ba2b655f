//! One TCP connection: bytes between the socket and hyper, and the time of the last of them.
//!
//! The socket is shared, so that `tcp_info` can be read while hyper owns the connection.

use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use hyper::rt::{Read, ReadBufCursor, Write};
use linerate_sys::clock;
use linerate_units::MonotonicTime;
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// Bytes of one read.
const READ_SIZE: usize = 64 << 10;

/// Most bytes of one write, so that other connections have their turn.
const MAX_WRITE: usize = 256 << 10;

/// A connection, shared by hyper, the table of connections and the samples of a session.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) number: u64,
    /// Nanoseconds of the monotonic clock.
    progress: AtomicU64,
    /// True while a request is being answered.
    busy: AtomicBool,
    /// Notified when the connection has to end.
    end: Notify,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, peer: SocketAddr, number: u64) -> Arc<Self> {
        let progress = AtomicU64::new(clock::monotonic_now().as_nanos());
        Arc::new(Self { stream, peer, number, progress, busy: AtomicBool::new(false), end: Notify::new() })
    }

    /// Time since the last byte moved, or the last request began or ended.
    pub(crate) fn idle_time(&self, now: MonotonicTime) -> Duration {
        now.since(MonotonicTime::from_nanos(self.progress.load(Ordering::Relaxed)))
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// Marks the start or the end of a request.
    pub(crate) fn set_busy(&self, busy: bool) {
        self.busy.store(busy, Ordering::Relaxed);
        self.mark_progress();
    }

    /// Ends the connection.
    pub(crate) fn end(&self) {
        self.end.notify_one();
    }

    /// Waits until the connection has to end.
    pub(crate) async fn ended(&self) {
        self.end.notified().await;
    }

    /// Writes what the kernel takes at once.
    pub(crate) fn write_now(&self, bytes: &[u8]) {
        // A new connection takes a few hundred bytes, or is gone.
        let _ = self.stream.try_write(bytes);
    }

    /// Reads and discards until the peer closes.
    pub(crate) async fn discard_until_end(&self) {
        let mut bytes = [0; 4096];
        while self.stream.readable().await.is_ok() {
            match self.stream.try_read(&mut bytes) {
                Ok(1..) => {}
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {}
                _ => return,
            }
        }
    }

    /// Records progress. While a request is awaited, received bytes are none: else one byte at a time would hold the
    /// connection for ever.
    fn mark_progress(&self) {
        self.progress.store(clock::monotonic_now().as_nanos(), Ordering::Relaxed);
    }

    fn mark_moved(&self) {
        if self.is_busy() {
            self.mark_progress();
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Adapter between hyper and the socket.
#[derive(Debug)]
pub(crate) struct ConnectionIo {
    connection: Arc<Connection>,
    buffer: Box<[u8]>,
}

impl ConnectionIo {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        // Grows with the first read that fills it: most connections only send small requests.
        Self { connection, buffer: vec![0; READ_SIZE / 16].into_boxed_slice() }
    }
}

impl Read for ConnectionIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            ready!(this.connection.stream.poll_read_ready(context))?;
            let length = this.buffer.len().min(cursor.remaining());
            match this.connection.stream.try_read(&mut this.buffer[..length]) {
                Ok(count) => {
                    if count > 0 {
                        this.connection.mark_moved();
                    }
                    cursor.put_slice(&this.buffer[..count]);
                    if count == this.buffer.len() && count < READ_SIZE {
                        this.buffer = vec![0; READ_SIZE].into_boxed_slice();
                    }
                    return Poll::Ready(Ok(()));
                }
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {}
                Err(cause) => return Poll::Ready(Err(cause)),
            }
        }
    }
}

impl Write for ConnectionIo {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.connection.stream.poll_write_ready(context))?;
            match self.connection.stream.try_write(&bytes[..bytes.len().min(MAX_WRITE)]) {
                Ok(count) => {
                    self.connection.mark_moved();
                    return Poll::Ready(Ok(count));
                }
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {}
                Err(cause) => return Poll::Ready(Err(cause)),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // An error means that the peer is gone already.
        let _ = linerate_sys::net::shutdown_write(&*self.connection);
        Poll::Ready(Ok(()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.connection.stream.poll_write_ready(context))?;
            match self.connection.stream.try_write_vectored(slices) {
                Ok(count) => {
                    self.connection.mark_moved();
                    return Poll::Ready(Ok(count));
                }
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {}
                Err(cause) => return Poll::Ready(Err(cause)),
            }
        }
    }
}
