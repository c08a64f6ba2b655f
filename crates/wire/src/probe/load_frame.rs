//! What travels on a load connection: frames of bulk data, and pings and pongs between them.
//!
//! A frame is a kind (one byte), the length of its content (32 bits, big-endian), and the content. An application's
//! message that waits its turn between two frames of bulk data sees the delay that the load makes, at the sender's
//! buffer too: the "self-induced" part of draft-ietf-ippm-responsiveness.

use linerate_units::ByteCount;

use super::orders::ConnectionNumber;

/// Bytes before a frame's content.
pub const HEADER_LENGTH: usize = 5;

/// Most content of a frame of bulk data.
pub const MOST_BULK: ByteCount = ByteCount::from_mebibytes(1);

/// Content of pings and pongs.
const ID_LENGTH: u32 = 8;

const JOIN: u8 = 1;
const BULK: u8 = 2;
const PING: u8 = 3;
const PONG: u8 = 4;

/// A small frame, whole, or the beginning of one of bulk data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The client says which connection this is: its first frame.
    Join(ConnectionNumber),
    /// So many bytes of bulk data follow.
    Bulk(ByteCount),
    /// To be answered at once, before more bulk data.
    Ping(u64),
    /// The answer to the ping with that number.
    Pong(u64),
}

/// A frame that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a load connection carries a frame of kind {kind} and {length} bytes, which is none")]
pub struct UnknownFrame {
    /// Its first byte.
    pub kind: u8,
    /// Its announced length.
    pub length: u32,
}

impl Frame {
    /// Appends the frame to `bytes`; of bulk data, only the beginning.
    pub fn encode(self, bytes: &mut Vec<u8>) {
        let (kind, length) = match self {
            Self::Join(_) => (JOIN, 4),
            Self::Bulk(size) => (BULK, u32::try_from(size.get()).unwrap_or(u32::MAX)),
            Self::Ping(_) => (PING, ID_LENGTH),
            Self::Pong(_) => (PONG, ID_LENGTH),
        };
        bytes.push(kind);
        bytes.extend_from_slice(&length.to_be_bytes());
        match self {
            Self::Join(ConnectionNumber(number)) => bytes.extend_from_slice(&number.to_be_bytes()),
            Self::Ping(id) | Self::Pong(id) => bytes.extend_from_slice(&id.to_be_bytes()),
            Self::Bulk(_) => {}
        }
    }
}

/// Finds the frames in a stream of bytes, however it is cut up.
#[derive(Clone, Debug, Default)]
pub struct Parser {
    /// The beginning of a frame that has not come whole.
    held: [u8; HEADER_LENGTH + ID_LENGTH as usize],
    length: usize,
    /// Content of bulk data that is still to come.
    bulk: u64,
}

/// What a parser found at the front of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A frame; for bulk data, its beginning.
    Frame(Frame),
    /// So many bytes of bulk data.
    BulkBytes(ByteCount),
    /// The bytes are used up.
    Nothing,
}

impl Parser {
    /// Bulk data that the present frame still has to bring: it may be taken off the connection unread, and told by
    /// [`Parser::skip_bulk`].
    #[must_use]
    pub fn bulk_left(&self) -> ByteCount {
        ByteCount::new(self.bulk)
    }

    /// So many bytes of [`Parser::bulk_left`] have been taken off the connection.
    pub fn skip_bulk(&mut self, count: ByteCount) {
        self.bulk = self.bulk.saturating_sub(count.get());
    }

    /// The bytes to read next so that no byte beyond the present frame is taken, bulk data aside.
    #[must_use]
    pub fn wanted(&self) -> usize {
        if self.length < HEADER_LENGTH {
            return HEADER_LENGTH - self.length;
        }
        HEADER_LENGTH + self.content() as usize - self.length
    }

    fn content(&self) -> u32 {
        u32::from_be_bytes([self.held[1], self.held[2], self.held[3], self.held[4]])
    }

    /// Takes what it can off the front of `bytes`. Call it until it finds nothing.
    ///
    /// # Errors
    ///
    /// A kind that does not exist, or a length that it cannot have: the connection makes no sense from here on.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Found, UnknownFrame> {
        if self.bulk > 0 {
            let count = usize::try_from(self.bulk).unwrap_or(usize::MAX).min(bytes.len());
            *bytes = &bytes[count..];
            self.bulk -= count as u64;
            return Ok(if count == 0 { Found::Nothing } else { Found::BulkBytes(ByteCount::from_usize(count)) });
        }
        while !bytes.is_empty() {
            // After an error, the length in the held header may be anything.
            let count = self.wanted().min(bytes.len()).min(self.held.len() - self.length);
            self.held[self.length..self.length + count].copy_from_slice(&bytes[..count]);
            (self.length, *bytes) = (self.length + count, &bytes[count..]);
            if self.length >= HEADER_LENGTH
                && let Some(frame) = self.complete()?
            {
                self.length = 0;
                return Ok(Found::Frame(frame));
            }
        }
        Ok(Found::Nothing)
    }

    fn complete(&mut self) -> Result<Option<Frame>, UnknownFrame> {
        let (kind, length) = (self.held[0], self.content());
        let expected = match kind {
            BULK if u64::from(length) <= MOST_BULK.get() => {
                self.bulk = u64::from(length);
                return Ok(Some(Frame::Bulk(ByteCount::new(self.bulk))));
            }
            JOIN => 4,
            PING | PONG => ID_LENGTH,
            _ => return Err(UnknownFrame { kind, length }),
        };
        if length != expected {
            return Err(UnknownFrame { kind, length });
        }
        if self.length < HEADER_LENGTH + length as usize {
            return Ok(None);
        }
        let content = &self.held[HEADER_LENGTH..];
        let id = content.iter().take(8).fold(0, |id, byte| id << 8 | u64::from(*byte));
        Ok(Some(match kind {
            JOIN => Frame::Join(ConnectionNumber(u32::from_be_bytes([content[0], content[1], content[2], content[3]]))),
            PING => Frame::Ping(id),
            _ => Frame::Pong(id),
        }))
    }
}
