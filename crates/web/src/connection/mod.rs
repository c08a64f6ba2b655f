//! One TCP connection: bytes between the socket and hyper, and the time of the last of them.
//!
//! The socket is shared, so that `tcp_info` can be read while hyper owns the connection.

#[cfg(test)]
mod tests;

use core::pin::Pin;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use hyper::rt::{Read, ReadBufCursor, Write};
use linerate_sys::clock;
#[cfg(feature = "responsiveness")]
use linerate_units::ByteCount;
use linerate_units::MonotonicTime;
#[cfg(feature = "responsiveness")]
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// Bytes of one read.
const READ_SIZE: usize = 64 << 10;

/// Most bytes of one write, so that other connections have their turn.
const MAX_WRITE: usize = 256 << 10;

/// Time for which unsent bytes wait in the kernel, and the bounds of their number (draft-ietf-ippm-responsiveness, "Client-Side
/// Influence").
#[cfg(feature = "responsiveness")]
const MAX_SEND_DELAY: Duration = Duration::from_millis(5);
#[cfg(feature = "responsiveness")]
const MIN_UNSENT: ByteCount = ByteCount::from_kibibytes(4);
#[cfg(feature = "responsiveness")]
const MAX_UNSENT: ByteCount = ByteCount::from_kibibytes(1024);

/// Largest quantum of a connection whose rate is known: a TLS record, and a frame of HTTP/2.
#[cfg(feature = "responsiveness")]
pub(crate) const MAX_QUANTUM: usize = 16 << 10;

/// A connection, shared by hyper, the table of connections and the samples of a session.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) number: u64,
    /// Nanoseconds of the monotonic clock.
    progress: AtomicU64,
    /// Number of requests that are being answered.
    requests: AtomicUsize,
    /// Bytes written.
    #[cfg(feature = "responsiveness")]
    written: AtomicU64,
    /// Bytes written at the last adjustment of the send buffer.
    #[cfg(feature = "responsiveness")]
    adjusted: AtomicU64,
    /// Most bytes that the program queues at once in each of its layers.
    quantum: AtomicUsize,
    /// Notified when the connection has to end.
    end: Notify,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, peer: SocketAddr, number: u64) -> Arc<Self> {
        let progress = AtomicU64::new(clock::monotonic_now().as_nanos());
        Arc::new(Self {
            stream,
            peer,
            number,
            progress,
            requests: AtomicUsize::new(0),
            #[cfg(feature = "responsiveness")]
            written: AtomicU64::new(0),
            #[cfg(feature = "responsiveness")]
            adjusted: AtomicU64::new(0),
            quantum: AtomicUsize::new(usize::MAX),
            end: Notify::new(),
        })
    }

    /// Time since the last byte moved, or the last request began or ended.
    pub(crate) fn idle_time(&self, now: MonotonicTime) -> Duration {
        now.since(MonotonicTime::from_nanos(self.progress.load(Ordering::Relaxed)))
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    /// Marks the start of a request.
    pub(crate) fn begin_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.mark_progress();
    }

    /// Marks the end of a request that began.
    pub(crate) fn end_request(&self) {
        self.requests.fetch_sub(1, Ordering::Relaxed);
        self.mark_progress();
    }

    /// Limits the unsent bytes in the kernel to those of a few milliseconds at the rate of the last `interval`, as a longer
    /// queue in the sender delays the answers behind it (`TCP_NOTSENT_LOWAT`).
    #[cfg(feature = "responsiveness")]
    pub(crate) fn adjust_send_buffer(&self, interval: Duration) {
        let written = self.written.load(Ordering::Relaxed);
        let moved = written - self.adjusted.swap(written, Ordering::Relaxed);
        if moved == 0 {
            return;
        }
        let rate = ByteCount::new(moved).rate_over(interval);
        let most = (rate * MAX_SEND_DELAY).clamp(MIN_UNSENT, MAX_UNSENT);
        // Without the option, the delay of the sender's buffer is in the measurement.
        let _ = linerate_sys::options::set_not_sent_low_water(self, most);
        let quantum = usize::try_from(most.get() / 2).unwrap_or(MAX_QUANTUM);
        self.quantum.store(quantum.min(MAX_QUANTUM), Ordering::Relaxed);
    }

    /// Writes without waiting, and counts.
    #[cfg(feature = "responsiveness")]
    fn poll_send(&self, context: &mut Context<'_>, slices: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_write_ready(context))?;
            match self.stream.try_write_vectored(slices) {
                Ok(count) => {
                    self.written.fetch_add(count as u64, Ordering::Relaxed);
                    self.mark_moved();
                    return Poll::Ready(Ok(count));
                }
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {}
                Err(cause) => return Poll::Ready(Err(cause)),
            }
        }
    }

    /// Reads without waiting.
    #[cfg(feature = "responsiveness")]
    fn poll_receive(&self, context: &mut Context<'_>, bytes: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.stream.poll_read_ready(context))?;
            match self.stream.try_read(bytes.initialize_unfilled()) {
                Ok(count) => {
                    bytes.advance(count);
                    if count > 0 {
                        self.mark_moved();
                    }
                    return Poll::Ready(Ok(()));
                }
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {}
                Err(cause) => return Poll::Ready(Err(cause)),
            }
        }
    }

    /// Most bytes that the program queues at once in each of its layers.
    pub(crate) fn quantum(&self) -> usize {
        self.quantum.load(Ordering::Relaxed)
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

/// Adapter between TLS and the socket.
#[cfg(feature = "responsiveness")]
#[derive(Debug)]
pub(crate) struct SocketIo(pub(crate) Arc<Connection>);

#[cfg(feature = "responsiveness")]
impl tokio::io::AsyncRead for SocketIo {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.0.poll_receive(context, bytes)
    }
}

#[cfg(feature = "responsiveness")]
impl tokio::io::AsyncWrite for SocketIo {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_send(context, &[io::IoSlice::new(bytes)])
    }

    /// All records at once: where a handshake fails, TLS writes once, and the alert is the last record.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_send(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // An error means that the peer is gone already.
        let _ = linerate_sys::net::shutdown_write(&*self.0);
        Poll::Ready(Ok(()))
    }
}
