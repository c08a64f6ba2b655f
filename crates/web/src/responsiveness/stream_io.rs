//! Adapter between hyper and a TLS connection.

use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;
use std::sync::Arc;

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsStream;

use crate::connection::{Connection, MAX_QUANTUM, SocketIo};

/// Bytes of one read: a TLS record.
const READ_SIZE: usize = 16 << 10;

/// A TLS connection as a byte stream of hyper's.
pub(super) struct StreamIo {
    stream: TlsStream<SocketIo>,
    socket: Arc<Connection>,
    buffer: Box<[u8]>,
}

impl StreamIo {
    pub(super) fn new(stream: impl Into<TlsStream<SocketIo>>, socket: Arc<Connection>) -> Self {
        Self { stream: stream.into(), socket, buffer: vec![0; READ_SIZE].into_boxed_slice() }
    }

    /// Limits the encrypted bytes that wait for the kernel, as they delay all that is written later.
    fn limit_queue(&mut self) -> Pin<&mut TlsStream<SocketIo>> {
        let limit = Some(self.socket.quantum().min(MAX_QUANTUM));
        match &mut self.stream {
            TlsStream::Client(stream) => stream.get_mut().1.set_buffer_limit(limit),
            TlsStream::Server(stream) => stream.get_mut().1.set_buffer_limit(limit),
        }
        Pin::new(&mut self.stream)
    }
}

impl Read for StreamIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, buffer, .. } = &mut *self;
        let most = buffer.len().min(cursor.remaining());
        let mut part = ReadBuf::new(&mut buffer[..most]);
        ready!(Pin::new(stream).poll_read(context, &mut part))?;
        cursor.put_slice(part.filled());
        Poll::Ready(Ok(()))
    }
}

impl Write for StreamIo {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.limit_queue().poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.limit_queue().poll_write_vectored(context, slices)
    }
}

/// Executor of hyper's HTTP/2: tasks of the current runtime.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskExecutor;

impl<F> hyper::rt::Executor<F> for TaskExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        tokio::spawn(future);
    }
}
