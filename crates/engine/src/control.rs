//! The control connection: bytes in, bytes out, never blocking for long.

use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use linerate_sys::poll::{self, Interest};
use linerate_sys::{clock, options};

/// The control connection is for small messages; a peer that does not take them within this time is gone.
const WRITE_LIMIT: Duration = Duration::from_secs(10);

/// A control connection in non-blocking mode.
#[derive(Debug)]
pub(crate) struct Control {
    stream: TcpStream,
}

/// What a read brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// That many bytes.
    Bytes(usize),
    /// Nothing yet.
    Nothing,
    /// The peer has closed, or is gone.
    Closed,
}

impl Control {
    /// Takes over a connected socket.
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        // State bytes must not wait for the acknowledgement of those before them (iperf3 `iperf_connect`). A kernel that
        // refuses only makes it slower.
        let _ = options::set_no_delay(&stream, true);
        Ok(Self { stream })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Incoming {
        loop {
            return match self.stream.read(buffer) {
                Ok(0) => Incoming::Closed,
                Ok(count) => Incoming::Bytes(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if poll::would_block(&error) => Incoming::Nothing,
                Err(_) => Incoming::Closed,
            };
        }
    }

    /// Sends all of `bytes`.
    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let deadline = clock::monotonic_now() + WRITE_LIMIT;
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if poll::would_block(&error) => {
                    let left = deadline.since(clock::monotonic_now());
                    if left.is_zero() || !poll::wait_for(&self.stream, Interest::WRITE, Some(left))? {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
