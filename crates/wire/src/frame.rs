//! JSON documents on the control connection: a 32-bit big-endian length, then the bytes (iperf3 `JSON_write`).

use linerate_units::{ByteCount, StreamCount};

/// Bytes of the length field before a document.
pub const HEADER_LENGTH: usize = 4;

/// Largest parameters document that a server accepts: iperf3's limit since 3.18 (`MAX_PARAMS_JSON_STRING`).
pub const PARAMETERS_LIMIT: ByteCount = ByteCount::from_kibibytes(8);

/// Largest results document that a server accepts, without its streams, and for each of these, which take some 300 bytes.
const RESULTS_LIMIT: ByteCount = ByteCount::from_kibibytes(8);
const STREAM_RESULTS_LIMIT: ByteCount = ByteCount::from_kibibytes(1);

/// Largest results document that a server accepts for a test of `streams`.
#[must_use]
pub fn client_results_limit(streams: StreamCount) -> ByteCount {
    RESULTS_LIMIT + STREAM_RESULTS_LIMIT * streams.get()
}

/// Largest results document that a client accepts: it may hold the server's whole output. A day of reports each second
/// from one stream is 7 MiB of text.
pub const SERVER_RESULTS_LIMIT: ByteCount = ByteCount::from_mebibytes(16);

/// Largest message of the extension: the closing message on 256 streams is some 400 KiB.
pub const EXTENSION_LIMIT: ByteCount = ByteCount::from_mebibytes(1);

/// A document whose announced length is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonFrameError {
    /// Length 0: there is no empty JSON document.
    #[error("the peer announced a JSON document of 0 bytes")]
    Empty,
    /// Longer than the limit.
    #[error("the peer announced a JSON document of {} bytes; at most {} are accepted", announced.get(), limit.get())]
    TooLong {
        /// The announced length.
        announced: ByteCount,
        /// The limit.
        limit: ByteCount,
    },
}

/// Encodes a document with its length.
///
/// # Panics
///
/// When the document has 2^32 bytes or more.
#[must_use]
pub fn encode(document: &str) -> Vec<u8> {
    let length = u32::try_from(document.len()).expect("documents are far below 4 GiB");
    let mut bytes = Vec::with_capacity(HEADER_LENGTH + document.len());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(document.as_bytes());
    bytes
}

/// Assembles one document from pieces of any size.
///
/// Memory grows with the bytes received (at most twice as many are held), never with the length announced.
#[derive(Clone, Debug)]
pub struct JsonFrameDecoder {
    limit: ByteCount,
    header: [u8; HEADER_LENGTH],
    header_received: usize,
    body: Vec<u8>,
}

impl JsonFrameDecoder {
    /// Decoder for a document of at most `limit` bytes.
    #[must_use]
    pub const fn new(limit: ByteCount) -> Self {
        Self { limit, header: [0; HEADER_LENGTH], header_received: 0, body: Vec::new() }
    }

    /// Consumes the document's bytes from the front of `bytes`; returns it once it is complete.
    pub fn feed(&mut self, bytes: &mut &[u8]) -> Result<Option<Vec<u8>>, JsonFrameError> {
        let header = split_front(bytes, HEADER_LENGTH - self.header_received);
        self.header[self.header_received..][..header.len()].copy_from_slice(header);
        self.header_received += header.len();
        if self.header_received < HEADER_LENGTH {
            return Ok(None);
        }
        let length = self.announced()?.to_usize();
        self.body.extend_from_slice(split_front(bytes, length - self.body.len()));
        if self.body.len() < length {
            return Ok(None);
        }
        self.header_received = 0;
        Ok(Some(core::mem::take(&mut self.body)))
    }

    /// True when nothing of the document has been received yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.header_received == 0
    }

    /// Memory held for an incomplete document.
    #[must_use]
    pub fn buffered(&self) -> ByteCount {
        ByteCount::from_usize(self.body.capacity())
    }

    fn announced(&self) -> Result<ByteCount, JsonFrameError> {
        let announced = ByteCount::new(u64::from(u32::from_be_bytes(self.header)));
        if announced.is_zero() {
            return Err(JsonFrameError::Empty);
        }
        if announced > self.limit {
            return Err(JsonFrameError::TooLong { announced, limit: self.limit });
        }
        Ok(announced)
    }
}

/// Splits up to `count` bytes off the front.
fn split_front<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (front, rest) = bytes.split_at(count.min(bytes.len()));
    *bytes = rest;
    front
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_fragmentation_gives_the_same_documents() {
        let sent = [encode("{\"a\":1}"), encode("{}")].concat();
        for size in 1..=sent.len() {
            let mut decoder = JsonFrameDecoder::new(PARAMETERS_LIMIT);
            let mut documents = Vec::new();
            for mut piece in sent.chunks(size) {
                while !piece.is_empty() {
                    documents.extend(decoder.feed(&mut piece).expect("good lengths"));
                }
            }
            assert_eq!(documents, [b"{\"a\":1}".to_vec(), b"{}".to_vec()], "pieces of {size}");
            assert!(decoder.is_empty());
        }
    }

    #[test]
    fn bad_lengths_are_refused_as_soon_as_they_are_complete() {
        for (length, expected) in [
            (0_u32, JsonFrameError::Empty),
            (8193, too_long(8193)),
            (0x8000_0000, too_long(0x8000_0000)),
            (0xFFFF_FFFF, too_long(0xFFFF_FFFF)),
        ] {
            let mut decoder = JsonFrameDecoder::new(PARAMETERS_LIMIT);
            let bytes = length.to_be_bytes();
            assert_eq!(decoder.feed(&mut &bytes[..3]), Ok(None));
            assert_eq!(decoder.feed(&mut &bytes[3..]), Err(expected));
            assert!(decoder.buffered().is_zero());
        }
    }

    #[test]
    fn memory_grows_with_the_bytes_received() {
        let mut decoder = JsonFrameDecoder::new(SERVER_RESULTS_LIMIT);
        assert_eq!(decoder.feed(&mut &0x0100_0000_u32.to_be_bytes()[..]), Ok(None));
        assert!(decoder.buffered().is_zero());
        for _ in 0..100 {
            assert_eq!(decoder.feed(&mut &[b' '; 100][..]), Ok(None));
        }
        assert!(decoder.buffered() <= ByteCount::new(20_000), "{:?}", decoder.buffered());
    }

    fn too_long(announced: u64) -> JsonFrameError {
        JsonFrameError::TooLong { announced: ByteCount::new(announced), limit: PARAMETERS_LIMIT }
    }
}
