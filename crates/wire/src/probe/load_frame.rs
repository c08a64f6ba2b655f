//! Frames on a load connection: bulk data, with pings and pongs between.
//!
//! A frame is a kind (one byte), the length of its content (32 bits, big-endian), and the content. An application
//! message queued between two frames of bulk data experiences the delay that the load causes, including the sender's
//! buffer: the "self-induced" part of draft-ietf-ippm-responsiveness.

use linerate_units::ByteCount;

use super::orders::ConnectionNumber;

/// Bytes before a frame's content.
pub const HEADER_LENGTH: usize = 5;

/// Maximum content of a frame of bulk data.
pub const MAX_BULK_LENGTH: ByteCount = ByteCount::from_mebibytes(1);

/// Length of the content of pings and pongs.
const PING_LENGTH: u32 = 8;

const JOIN: u8 = 1;
const BULK: u8 = 2;
const PING: u8 = 3;
const PONG: u8 = 4;

/// A small frame, complete, or the beginning of a frame of bulk data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadFrame {
    /// Number of this connection: the client's first frame.
    Join(ConnectionNumber),
    /// Number of bytes of bulk data that follow.
    Bulk(ByteCount),
    /// A ping, to be answered at once, before more bulk data.
    Ping(u64),
    /// The reply to the ping with that number.
    Pong(u64),
}

/// An invalid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid frame on a load connection: kind {kind}, {length} bytes")]
pub struct InvalidLoadFrame {
    /// First byte of the frame.
    pub kind: u8,
    /// Announced length.
    pub length: u32,
}

impl LoadFrame {
    /// Appends the frame to `bytes`; of bulk data, only the beginning.
    pub fn encode(self, bytes: &mut Vec<u8>) {
        let (kind, length) = match self {
            Self::Join(_) => (JOIN, 4),
            Self::Bulk(size) => (BULK, u32::try_from(size.get()).unwrap_or(u32::MAX)),
            Self::Ping(_) => (PING, PING_LENGTH),
            Self::Pong(_) => (PONG, PING_LENGTH),
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

/// Parses frames from a byte stream in pieces of any size.
#[derive(Clone, Debug, Default)]
pub struct LoadFrameParser {
    /// The beginning of an incomplete frame.
    held: [u8; HEADER_LENGTH + PING_LENGTH as usize],
    length: usize,
    /// Bulk data of the present frame not yet received.
    bulk: u64,
}

/// Result of one parsing step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseStep {
    /// A frame; for bulk data, its beginning.
    Frame(LoadFrame),
    /// Number of bytes of bulk data.
    BulkBytes(ByteCount),
    /// No bytes are left.
    Nothing,
}

impl LoadFrameParser {
    /// Bulk data of the present frame not yet received: the caller may read it from the connection directly, and report
    /// it with [`LoadFrameParser::skip_bulk`].
    #[must_use]
    pub fn bulk_left(&self) -> ByteCount {
        ByteCount::new(self.bulk)
    }

    /// Reports that `count` bytes of [`LoadFrameParser::bulk_left`] have been read from the connection.
    pub fn skip_bulk(&mut self, count: ByteCount) {
        self.bulk = self.bulk.saturating_sub(count.get());
    }

    /// Number of bytes to read next without reading beyond the present frame, except for bulk data.
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

    /// Consumes bytes from the front of `bytes`. Call it until it returns [`ParseStep::Nothing`].
    ///
    /// # Errors
    ///
    /// An unknown kind or an invalid length: the connection is unusable from here on.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<ParseStep, InvalidLoadFrame> {
        if self.bulk > 0 {
            let count = usize::try_from(self.bulk).unwrap_or(usize::MAX).min(bytes.len());
            *bytes = &bytes[count..];
            self.bulk -= count as u64;
            return Ok(if count == 0 {
                ParseStep::Nothing
            } else {
                ParseStep::BulkBytes(ByteCount::from_usize(count))
            });
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
                return Ok(ParseStep::Frame(frame));
            }
        }
        Ok(ParseStep::Nothing)
    }

    fn complete(&mut self) -> Result<Option<LoadFrame>, InvalidLoadFrame> {
        let (kind, length) = (self.held[0], self.content());
        let expected = match kind {
            BULK if u64::from(length) <= MAX_BULK_LENGTH.get() => {
                self.bulk = u64::from(length);
                return Ok(Some(LoadFrame::Bulk(ByteCount::new(self.bulk))));
            }
            JOIN => 4,
            PING | PONG => PING_LENGTH,
            _ => return Err(InvalidLoadFrame { kind, length }),
        };
        if length != expected {
            return Err(InvalidLoadFrame { kind, length });
        }
        if self.length < HEADER_LENGTH + length as usize {
            return Ok(None);
        }
        let content = &self.held[HEADER_LENGTH..];
        let id = content.iter().take(8).fold(0, |id, byte| id << 8 | u64::from(*byte));
        Ok(Some(match kind {
            JOIN => {
                LoadFrame::Join(ConnectionNumber(u32::from_be_bytes([content[0], content[1], content[2], content[3]])))
            }
            PING => LoadFrame::Ping(id),
            _ => LoadFrame::Pong(id),
        }))
    }
}
