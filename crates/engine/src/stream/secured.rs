//! Payload that leaves as TLS records (`--tls-data`).

use core::time::Duration;
use std::io;
use std::net::TcpStream;

use linerate_sys::{clock, poll};

use super::payload::TransferFile;
use super::{StreamFailure, StreamJob};
use crate::tls::DataCipher;

/// Payload of the largest record (RFC 8446 section 5.1), and of the smallest write.
const RECORD: usize = 16 << 10;

/// Payload of the largest write: eight records, which a system call takes and the cache holds.
const MAX_WRITE: usize = 8 * RECORD;

/// Time of a write after which the next one is smaller, so that the counters stay current on slow paths …
const MAX_WRITE_TIME: Duration = Duration::from_millis(5);

/// … and below which it is larger.
const MIN_WRITE_TIME: Duration = Duration::from_millis(1);

/// Sender of records.
pub(super) struct RecordSender {
    cipher: Box<DataCipher>,
    socket: TcpStream,
    /// Payload of the next write.
    size: usize,
}

impl RecordSender {
    pub(super) fn new(job: &StreamJob, cipher: Box<DataCipher>) -> Result<Self, StreamFailure> {
        let socket = job.socket.try_clone().map_err(StreamFailure::SetUp)?;
        Ok(Self { cipher, socket: socket.into(), size: MAX_WRITE })
    }

    /// Encrypts a part of `payload`, and sends it; returns its length. What the kernel has not taken when the test stops is not
    /// counted.
    pub(super) fn send(&mut self, job: &StreamJob, payload: &[u8]) -> io::Result<usize> {
        let part = &payload[..payload.len().min(self.size)];
        let start = clock::monotonic_now();
        self.cipher.seal(part)?;
        while !self.cipher.is_written() {
            match self.cipher.write(&self.socket) {
                Ok(()) => {}
                Err(error) if poll::is_temporary(&error) && job.shared.stopping() => return Ok(0),
                Err(error) if poll::is_temporary(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let elapsed = clock::monotonic_now().since(start);
        if elapsed > MAX_WRITE_TIME {
            self.size = (self.size / 2).max(RECORD);
        } else if elapsed < MIN_WRITE_TIME {
            self.size = (self.size * 2).min(MAX_WRITE);
        }
        Ok(part.len())
    }
}

/// Receiver of records: what arrives is decrypted, and discarded or kept in a file.
pub(super) struct RecordReceiver(pub(super) Box<DataCipher>);

impl RecordReceiver {
    /// Decrypts bytes that have arrived, and appends their payload to the file; returns its length.
    pub(super) fn open(&mut self, bytes: &[u8], file: Option<&TransferFile>) -> Result<usize, StreamFailure> {
        let mut failed = None;
        let mut keep = |piece: &[u8]| {
            if let (Some(file), None) = (file, &failed) {
                failed = file.append(piece).err();
            }
        };
        let opened = self.0.open(bytes, &mut keep);
        let payload = opened.map_err(|error| StreamFailure::Read(io::Error::other(error.to_string())))?;
        failed.map_or(Ok(payload), |error| Err(StreamFailure::File(error)))
    }

    /// Failure for the end of a connection: within a record something has cut it.
    pub(super) fn end(&self) -> StreamFailure {
        if !self.0.is_within_record() {
            return StreamFailure::Closed;
        }
        StreamFailure::Read(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the connection ended within a TLS record: something on the path cut it, or the peer ended early",
        ))
    }
}
