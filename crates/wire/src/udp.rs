//! UDP streams: the header of each datagram, and the handshake that opens a stream (iperf3 `iperf_udp.c`).

use linerate_units::{ByteCount, MonotonicTime};

/// Width of the packet number in the header, which determines the header's length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CounterWidth {
    /// 32 bits; after 2^32 − 1 comes 0.
    #[default]
    Bits32,
    /// 64 bits (`--udp-counters-64bit`).
    Bits64,
}

impl CounterWidth {
    /// Width for a test.
    #[must_use]
    pub const fn new(counters_64bit: bool) -> Self {
        if counters_64bit { Self::Bits64 } else { Self::Bits32 }
    }

    /// Bytes of the header.
    #[must_use]
    #[inline]
    pub const fn header_length(self) -> ByteCount {
        match self {
            Self::Bits32 => ByteCount::new(12),
            Self::Bits64 => ByteCount::new(16),
        }
    }
}

/// First bytes of a datagram: seconds, microseconds and number, big-endian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramHeader {
    /// Sending time on the sender's monotonic clock; whole microseconds on the wire, and seconds modulo 2^32.
    pub sent_at: MonotonicTime,
    /// Number of the datagram within its stream, from 1; with a 32-bit counter, its lower bits only.
    pub number: u64,
}

/// A buffer that is shorter than a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a datagram of {} bytes is too short for a header of {}", available.get(), needed.get())]
pub struct HeaderTooShort {
    /// Bytes available.
    pub available: ByteCount,
    /// Bytes of the header.
    pub needed: ByteCount,
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;
const NANOS_PER_MICRO: u64 = 1000;

impl DatagramHeader {
    /// Writes the header to the front of a datagram.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the wire has the lower 32 bits")]
    pub fn encode(self, width: CounterWidth, datagram: &mut [u8]) -> Result<(), HeaderTooShort> {
        let available = ByteCount::from_usize(datagram.len());
        let nanos = self.sent_at.as_nanos();
        let seconds = nanos / NANOS_PER_SECOND;
        let micros = nanos % NANOS_PER_SECOND / NANOS_PER_MICRO;
        let time = (seconds << 32) | micros;
        let written = match (width, datagram.split_first_chunk_mut::<8>()) {
            (CounterWidth::Bits32, Some((front, rest))) => rest.first_chunk_mut().map(|number| {
                *front = time.to_be_bytes();
                *number = (self.number as u32).to_be_bytes();
            }),
            (CounterWidth::Bits64, Some((front, rest))) => rest.first_chunk_mut().map(|number| {
                *front = time.to_be_bytes();
                *number = self.number.to_be_bytes();
            }),
            (_, None) => None,
        };
        written.ok_or(HeaderTooShort { available, needed: width.header_length() })
    }

    /// Reads the header from the front of a datagram; `None` when it is too short.
    #[inline]
    #[must_use]
    pub fn decode(width: CounterWidth, datagram: &[u8]) -> Option<Self> {
        let (time, rest) = datagram.split_first_chunk::<8>()?;
        let number = match width {
            CounterWidth::Bits32 => u64::from(u32::from_be_bytes(*rest.first_chunk()?)),
            CounterWidth::Bits64 => u64::from_be_bytes(*rest.first_chunk()?),
        };
        let time = u64::from_be_bytes(*time);
        let (seconds, micros) = (time >> 32, time & 0xFFFF_FFFF);
        // At most 2^32 s and 2^32 µs: below 2^63 ns.
        let sent_at = MonotonicTime::from_nanos(seconds * NANOS_PER_SECOND + micros * NANOS_PER_MICRO);
        Some(Self { sent_at, number })
    }
}

/// Request that opens a stream, as a little-endian host sends it (iperf3 since 3.12).
pub const REQUEST: [u8; 4] = *b"9876";
/// Reply to [`REQUEST`].
pub const REPLY: [u8; 4] = *b"6789";
/// Request of iperf3 before 3.12: 123456789, little-endian.
pub const LEGACY_REQUEST: [u8; 4] = 123_456_789_u32.to_le_bytes();
/// Reply to [`LEGACY_REQUEST`]: 987654321, little-endian.
pub const LEGACY_REPLY: [u8; 4] = 987_654_321_u32.to_le_bytes();

/// A datagram that opens a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamRequest {
    /// The four bytes of the handshake, of either generation and either byte order.
    Magic {
        /// Reply that this client expects, in its byte order.
        reply: [u8; 4],
    },
    /// Repeated request in the form of data ([`write_retry`]), sent because the first one or its reply was lost.
    Retry,
}

impl StreamRequest {
    /// Request in a client's first datagram; `None` when it is not a request.
    ///
    /// iperf3 accepts any datagram as a request, so that a stray one can claim a stream. Both byte orders are accepted:
    /// iperf3 sends in the order of its host.
    #[must_use]
    pub fn recognize(datagram: &[u8], block_size: ByteCount, width: CounterWidth) -> Option<Self> {
        if let Ok(magic) = <[u8; 4]>::try_from(datagram) {
            return reply_to(magic).map(|reply| Self::Magic { reply });
        }
        let header = DatagramHeader::decode(width, datagram)?;
        (ByteCount::from_usize(datagram.len()) == block_size && header.number == 0).then_some(Self::Retry)
    }

    /// Reply to the request.
    #[must_use]
    pub const fn reply(self) -> [u8; 4] {
        match self {
            Self::Magic { reply } => reply,
            Self::Retry => REPLY,
        }
    }
}

/// Reply to a magic. A big-endian host sends the bytes reversed, which for the current magics is the other magic.
fn reply_to(request: [u8; 4]) -> Option<[u8; 4]> {
    let reversed = |mut bytes: [u8; 4]| {
        bytes.reverse();
        bytes
    };
    match request {
        REQUEST => Some(REPLY),
        REPLY => Some(REQUEST),
        LEGACY_REQUEST => Some(LEGACY_REPLY),
        other if other == reversed(LEGACY_REQUEST) => Some(reversed(LEGACY_REPLY)),
        _ => None,
    }
}

/// True when a datagram is a server's reply, of either generation and either byte order.
#[must_use]
pub fn is_reply(datagram: &[u8]) -> bool {
    let Ok(bytes) = <[u8; 4]>::try_from(datagram) else { return false };
    let mut reversed = bytes;
    reversed.reverse();
    [bytes, reversed].iter().any(|answer| *answer == REPLY || *answer == LEGACY_REPLY)
}

/// Turns `datagram`, which must have the test's block size, into a request that is safe to repeat.
///
/// A lost request must not be repeated as it is: if the first one has arrived, the surplus four bytes reach the
/// server's stream socket, iperf3 joins them with the next datagram, and misreads all later headers. A whole block with
/// packet number 0 is a request to iperf3 (it ignores the content), and as a surplus costs one datagram out of order
/// and nothing else.
pub fn write_retry(width: CounterWidth, datagram: &mut [u8], now: MonotonicTime) -> Result<(), HeaderTooShort> {
    DatagramHeader { sent_at: now, number: 0 }.encode(width, datagram)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_iperf3s_layout() {
        let header = DatagramHeader { sent_at: MonotonicTime::from_nanos(1_000_002_003_999), number: 0x1_0000_0007 };
        let mut datagram = [0xAA; 20];
        header.encode(CounterWidth::Bits32, &mut datagram).expect("long enough");
        assert_eq!(datagram[..13], [0, 0, 3, 232, 0, 0, 7, 211, 0, 0, 0, 7, 0xAA]);
        header.encode(CounterWidth::Bits64, &mut datagram).expect("long enough");
        assert_eq!(datagram[..17], [0, 0, 3, 232, 0, 0, 7, 211, 0, 0, 0, 1, 0, 0, 0, 7, 0xAA]);
        let read = DatagramHeader::decode(CounterWidth::Bits64, &datagram).expect("long enough");
        assert_eq!(
            read,
            DatagramHeader { sent_at: MonotonicTime::from_nanos(1_000_002_003_000), number: 0x1_0000_0007 }
        );
    }

    #[test]
    fn short_datagrams_have_no_header() {
        for (width, needed) in [(CounterWidth::Bits32, 12), (CounterWidth::Bits64, 16)] {
            for length in 0..needed {
                let mut datagram = vec![7; length];
                assert_eq!(DatagramHeader::decode(width, &datagram), None, "{length}");
                let error = DatagramHeader::default().encode(width, &mut datagram).expect_err("too short");
                assert_eq!((error.available.to_usize(), error.needed), (length, width.header_length()));
                assert_eq!(datagram, vec![7; length], "nothing half-written");
            }
            assert!(DatagramHeader::decode(width, &vec![0xFF; needed]).is_some());
        }
    }

    #[test]
    fn every_generation_and_byte_order_opens_a_stream() {
        let recognize = |datagram: &[u8]| {
            StreamRequest::recognize(datagram, ByteCount::new(100), CounterWidth::Bits32).map(StreamRequest::reply)
        };
        assert_eq!(recognize(&[0x39, 0x38, 0x37, 0x36]), Some([0x36, 0x37, 0x38, 0x39]));
        assert_eq!(recognize(&[0x36, 0x37, 0x38, 0x39]), Some([0x39, 0x38, 0x37, 0x36]));
        assert_eq!(recognize(&[0x15, 0xcd, 0x5b, 0x07]), Some([0xb1, 0x68, 0xde, 0x3a]));
        assert_eq!(recognize(&[0x07, 0x5b, 0xcd, 0x15]), Some([0x3a, 0xde, 0x68, 0xb1]));
        for stray in [&b""[..], b"987", b"98765", b"xxxx", &[0; 99], &[1; 100]] {
            assert_eq!(recognize(stray), None);
        }
    }

    #[test]
    fn replies_are_recognized() {
        for answer in
            [[0x36, 0x37, 0x38, 0x39], [0x39, 0x38, 0x37, 0x36], [0xb1, 0x68, 0xde, 0x3a], [0x3a, 0xde, 0x68, 0xb1]]
        {
            assert!(is_reply(&answer));
        }
        for other in [&b"6780"[..], b"678", b"67890", b"", &LEGACY_REQUEST] {
            assert!(!is_reply(other));
        }
    }

    #[test]
    fn a_retry_is_a_request() {
        for width in [CounterWidth::Bits32, CounterWidth::Bits64] {
            let mut datagram = vec![0x55; 1448];
            write_retry(width, &mut datagram, MonotonicTime::from_nanos(5_000_000_000)).expect("long enough");
            let request = StreamRequest::recognize(&datagram, ByteCount::new(1448), width);
            assert_eq!(request, Some(StreamRequest::Retry));
            assert_eq!(StreamRequest::recognize(&datagram, ByteCount::new(1449), width), None);
            assert_eq!(DatagramHeader::decode(width, &datagram).map(|header| header.number), Some(0));
        }
    }
}
