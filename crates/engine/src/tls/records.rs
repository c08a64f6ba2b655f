//! Reads TLS records one by one: no byte after the last one that is wanted leaves the socket.

use std::io::{self, Read};

/// Length of a record's header (RFC 8446, section 5.1): type, version, length.
const HEADER: usize = 5;

/// Type of the first record of a handshake.
const HANDSHAKE: u8 = 22;

/// State between the reads of a connection.
#[derive(Debug, Default)]
pub(super) struct RecordReader {
    header: [u8; HEADER],
    /// Bytes of the header read so far.
    known: usize,
    /// Bytes of the body to be read.
    left: usize,
    /// All bytes read.
    pub(super) total: usize,
}

impl RecordReader {
    /// True when the first byte is not that of a TLS handshake.
    pub(super) fn is_foreign(&self) -> bool {
        self.total > 0 && self.total <= HEADER && self.header[0] != HANDSHAKE
    }

    /// Reads from `source` at most to the end of the record.
    pub(super) fn read(&mut self, source: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
        let most = if self.left > 0 { self.left } else { HEADER - self.known };
        let most = most.min(buffer.len());
        let count = source.read(&mut buffer[..most])?;
        self.note(&buffer[..count]);
        Ok(count)
    }

    /// Follows bytes that were read in another way.
    pub(super) fn follow(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let most = if self.left > 0 { self.left } else { HEADER - self.known };
            let (noted, rest) = bytes.split_at(most.min(bytes.len()));
            self.note(noted);
            bytes = rest;
        }
    }

    /// True within a record.
    pub(super) fn is_within_record(&self) -> bool {
        self.known > 0 || self.left > 0
    }

    /// Notes bytes of one header or of one body.
    fn note(&mut self, bytes: &[u8]) {
        let count = bytes.len();
        self.total = self.total.saturating_add(count);
        if self.left > 0 {
            self.left -= count;
            return;
        }
        self.header[self.known..self.known + count].copy_from_slice(bytes);
        self.known += count;
        if self.known == HEADER {
            (self.known, self.left) = (0, usize::from(u16::from_be_bytes([self.header[3], self.header[4]])));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_read_goes_beyond_a_record() {
        let mut bytes: &[u8] = &[22, 3, 1, 0, 3, b'a', b'b', b'c', 23, 3, 3, 0, 0, 23, 3, 3, 0, 1, b'd', b'e'];
        let mut reader = RecordReader::default();
        let lengths: Vec<usize> = (0..6).map(|_| reader.read(&mut bytes, &mut [0; 64]).expect("bytes")).collect();
        assert_eq!(lengths, [5, 3, 5, 5, 1, 1]);
        assert_eq!((reader.total, bytes.len()), (20, 0));
    }

    #[test]
    fn the_end_of_a_record_is_known_however_it_arrives() {
        let bytes = [23, 3, 3, 0, 3, b'a', b'b', b'c', 23, 3, 3, 0, 0, 23, 3, 3, 0, 1, b'd'];
        for size in 1..=bytes.len() {
            let mut reader = RecordReader::default();
            let mut seen = 0;
            for part in bytes.chunks(size) {
                reader.follow(part);
                seen += part.len();
                assert_eq!(reader.is_within_record(), ![8, 13, 19].contains(&seen), "{seen} of {size}");
            }
        }
    }

    #[test]
    fn the_first_byte_decides() {
        for (bytes, is_foreign) in [(&b"cookie"[..], true), (&[22, 3, 1][..], false)] {
            let mut reader = RecordReader::default();
            assert!(!reader.is_foreign());
            reader.read(&mut &bytes[..1], &mut [0; 64]).expect("a byte");
            assert_eq!(reader.is_foreign(), is_foreign, "{bytes:?}");
        }
    }
}
