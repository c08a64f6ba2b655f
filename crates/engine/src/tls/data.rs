//! Encryption of a data stream (`--tls-data`): payload in, records out, and the reverse, by the stream's own thread.

use std::io::{self, BufRead as _, Write as _};
use std::net::TcpStream;

use linerate_model::tls::TlsProperties;
use rustls::Connection;

use super::records::RecordReader;
use super::{ServerTrust, TlsError, failure, properties};

/// TLS of a data stream, after its handshake and its cookie.
pub(crate) struct DataCipher {
    connection: Box<Connection>,
    /// Borders of the records that arrive.
    records: RecordReader,
    trust: Option<ServerTrust>,
    has_certificate: bool,
}

impl core::fmt::Debug for DataCipher {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("DataCipher").finish_non_exhaustive()
    }
}

impl DataCipher {
    pub(super) fn new(connection: Box<Connection>, records: RecordReader, trust: Option<ServerTrust>) -> Self {
        Self { connection, records, trust, has_certificate: false }
    }

    pub(super) fn with_certificate(self, has_certificate: bool) -> Self {
        Self { has_certificate, ..self }
    }

    /// Properties of the connection at a client.
    pub(crate) fn properties(&self) -> Option<TlsProperties> {
        properties::of(&self.connection, self.trust.as_ref()?, self.has_certificate)
    }

    /// Encrypts payload for [`Self::write`].
    pub(crate) fn seal(&mut self, payload: &[u8]) -> io::Result<()> {
        self.connection.writer().write_all(payload)
    }

    /// True when the kernel has all that has been encrypted.
    pub(crate) fn is_written(&self) -> bool {
        !self.connection.wants_write()
    }

    /// Gives the kernel as many records as it takes.
    pub(crate) fn write(&mut self, mut socket: &TcpStream) -> io::Result<()> {
        self.connection.write_tls(&mut socket).map(drop)
    }

    /// Decrypts what has arrived, and hands the payload over in pieces; returns its length.
    ///
    /// # Errors
    ///
    /// A record is damaged, or not the peer's.
    pub(crate) fn open(&mut self, bytes: &[u8], take: &mut dyn FnMut(&[u8])) -> Result<usize, TlsError> {
        self.records.follow(bytes);
        let (mut left, mut payload) = (bytes, 0);
        while !left.is_empty() {
            match self.connection.read_tls(&mut left) {
                // What follows the peer's end of TLS is not read.
                Ok(0) => break,
                Ok(_) => {}
                Err(cause) => return Err(TlsError(format!("decrypting the data: {cause}"))),
            }
            let processed = self.connection.process_new_packets();
            processed.map_err(|error| match failure::of_data(&error) {
                Some(text) => TlsError(text),
                None => TlsError(failure::describe(&error, self.trust.as_ref())),
            })?;
            payload += self.hand_over(take);
        }
        Ok(payload)
    }

    /// True when the peer has not sent the end of a record.
    pub(crate) fn is_within_record(&self) -> bool {
        self.records.is_within_record()
    }

    fn hand_over(&mut self, take: &mut dyn FnMut(&[u8])) -> usize {
        let (mut taken, mut reader) = (0, self.connection.reader());
        while let Ok(piece) = reader.fill_buf()
            && !piece.is_empty()
        {
            take(piece);
            let count = piece.len();
            reader.consume(count);
            taken += count;
        }
        taken
    }
}
