//! Adapter between hyper and a TLS connection.

use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of one read: a TLS record.
const READ_SIZE: usize = 16 << 10;

/// A byte stream of tokio's as one of hyper's.
#[derive(Debug)]
pub(super) struct StreamIo<S> {
    stream: S,
    buffer: Box<[u8]>,
}

impl<S> StreamIo<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, buffer: vec![0; READ_SIZE].into_boxed_slice() }
    }
}

impl<S: AsyncRead + Unpin> Read for StreamIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, buffer } = &mut *self;
        let most = buffer.len().min(cursor.remaining());
        let mut part = ReadBuf::new(&mut buffer[..most]);
        ready!(Pin::new(stream).poll_read(context, &mut part))?;
        cursor.put_slice(part.filled());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Write for StreamIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
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
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
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
