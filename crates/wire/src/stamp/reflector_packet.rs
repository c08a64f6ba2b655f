use linerate_units::ByteCount;

use super::packet::{self, PacketError, SessionIdentifier, need, read, read_error_estimate, read_timestamp, write};
use super::tlv::Tlv;
use super::{ErrorEstimate, HmacKey, Mode, Timestamp};

/// The base of a session-reflector's answer (RFC 8762 §4.3, RFC 8972 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReflectorPacket {
    /// The reflector's own count of the session's answers, from 0; a reflector without state repeats the sender's.
    pub sequence: u32,
    /// When the answer was sent (T3), on the reflector's clock.
    pub timestamp: Timestamp,
    /// How good that clock is, and the format of both times of the reflector.
    pub error_estimate: ErrorEstimate,
    /// Copy of the sender's name of the session; none of a reflector that does not know RFC 8972.
    pub session: SessionIdentifier,
    /// When the sender's packet arrived (T2), on the reflector's clock.
    pub received_at: Timestamp,
    /// Copy of the sender's number.
    pub sender_sequence: u32,
    /// Copy of the sender's time (T1).
    pub sender_timestamp: Timestamp,
    /// Copy of the sender's error estimate.
    pub sender_error_estimate: ErrorEstimate,
    /// Time to live, or hop limit, that the sender's packet arrived with; 255 also where the reflector cannot know
    /// (RFC 5357 §4.2.1).
    pub sender_ttl: u8,
}

/// Bytes of the answer of a TWAMP Light reflector, which has no zeros at its end (RFC 5357 §4.2.1).
const LIGHT_LENGTH: ByteCount = ByteCount::new(41);

/// Where the fields stand.
struct Places {
    timestamp: usize,
    error_estimate: usize,
    session: usize,
    received_at: usize,
    sender_sequence: usize,
    sender_timestamp: usize,
    sender_error_estimate: usize,
    sender_ttl: usize,
}

const fn places(mode: Mode) -> Places {
    match mode {
        Mode::Unauthenticated => Places {
            timestamp: 4,
            error_estimate: 12,
            session: 14,
            received_at: 16,
            sender_sequence: 24,
            sender_timestamp: 28,
            sender_error_estimate: 36,
            sender_ttl: 40,
        },
        Mode::Authenticated => Places {
            timestamp: 16,
            error_estimate: 24,
            session: 26,
            received_at: 32,
            sender_sequence: 48,
            sender_timestamp: 64,
            sender_error_estimate: 72,
            sender_ttl: 80,
        },
    }
}

impl ReflectorPacket {
    /// A datagram of `size` bytes (UDP payload), without authentication, filled up by an Extra Padding TLV of zeros. It
    /// has at least [`super::BASE_LENGTH`].
    #[must_use]
    pub fn encode(&self, size: ByteCount) -> Vec<u8> {
        self.encode_with(&[], size, None)
    }

    /// A datagram with options behind the base packet, of at least `size` bytes; in the authenticated mode with a key.
    #[must_use]
    pub fn encode_with(&self, options: &[Tlv], size: ByteCount, key: Option<&HmacKey>) -> Vec<u8> {
        packet::build(|base, mode| self.write_fields(base, mode), options, size, key)
    }

    /// Writes the base packet to the front of a datagram, and leaves what follows as it is. The HMAC of the authenticated
    /// mode is not written: [`super::reflector::Reflector::finish`] does that when the time is known.
    pub fn encode_into(&self, datagram: &mut [u8], mode: Mode) -> Result<(), PacketError> {
        need(datagram, mode.base_length())?;
        let base = &mut datagram[..mode.base_length().to_usize()];
        base.fill(0);
        self.write_fields(base, mode);
        Ok(())
    }

    /// Writes the time at which an answer leaves, the last field to be known.
    #[inline]
    pub(super) fn write_timestamp(datagram: &mut [u8], timestamp: Timestamp, mode: Mode) {
        write(datagram, places(mode).timestamp, timestamp.bits().to_be_bytes());
    }

    /// Reads an answer without authentication, also the 41 bytes of a TWAMP Light reflector.
    pub fn decode(datagram: &[u8]) -> Result<Self, PacketError> {
        need(datagram, LIGHT_LENGTH)?;
        Ok(Self::read_fields(datagram, Mode::Unauthenticated))
    }

    /// Reads an answer with authentication. The options behind it are not looked at: they have an HMAC of their own.
    pub fn decode_authenticated(datagram: &[u8], key: &HmacKey) -> Result<Self, PacketError> {
        packet::check_seal(datagram, key)?;
        Ok(Self::read_fields(datagram, Mode::Authenticated))
    }

    fn write_fields(&self, datagram: &mut [u8], mode: Mode) {
        let at = places(mode);
        write(datagram, packet::SEQUENCE, self.sequence.to_be_bytes());
        write(datagram, at.timestamp, self.timestamp.bits().to_be_bytes());
        write(datagram, at.error_estimate, self.error_estimate.bits().to_be_bytes());
        write(datagram, at.session, self.session.get().to_be_bytes());
        write(datagram, at.received_at, self.received_at.bits().to_be_bytes());
        write(datagram, at.sender_sequence, self.sender_sequence.to_be_bytes());
        write(datagram, at.sender_timestamp, self.sender_timestamp.bits().to_be_bytes());
        write(datagram, at.sender_error_estimate, self.sender_error_estimate.bits().to_be_bytes());
        write(datagram, at.sender_ttl, [self.sender_ttl]);
    }

    fn read_fields(datagram: &[u8], mode: Mode) -> Self {
        let at = places(mode);
        let [sender_ttl] = read(datagram, at.sender_ttl);
        Self {
            sequence: u32::from_be_bytes(read(datagram, packet::SEQUENCE)),
            timestamp: read_timestamp(datagram, at.timestamp),
            error_estimate: read_error_estimate(datagram, at.error_estimate),
            session: SessionIdentifier::new(u16::from_be_bytes(read(datagram, at.session))),
            received_at: read_timestamp(datagram, at.received_at),
            sender_sequence: u32::from_be_bytes(read(datagram, at.sender_sequence)),
            sender_timestamp: read_timestamp(datagram, at.sender_timestamp),
            sender_error_estimate: read_error_estimate(datagram, at.sender_error_estimate),
            sender_ttl,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stamp::BASE_LENGTH;

    fn example() -> ReflectorPacket {
        ReflectorPacket {
            sequence: 0x0102_0304,
            timestamp: Timestamp::from_bits(0x1112_1314_1516_1718),
            error_estimate: ErrorEstimate::from_bits(0x8123),
            session: SessionIdentifier::new(0xABCD),
            received_at: Timestamp::from_bits(0x2122_2324_2526_2728),
            sender_sequence: 0x3132_3334,
            sender_timestamp: Timestamp::from_bits(0x4142_4344_4546_4748),
            sender_error_estimate: ErrorEstimate::from_bits(0x4255),
            sender_ttl: 61,
        }
    }

    #[test]
    fn fields_stand_where_figure_5_has_them() {
        let expected = [
            0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x81, 0x23, 0xAB, 0xCD, // 16
            0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x31, 0x32, 0x33, 0x34, // 28
            0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x42, 0x55, 0, 0, 61, 0, 0, 0,
        ];
        let datagram = example().encode(BASE_LENGTH);
        assert_eq!(datagram, expected);
        assert_eq!(ReflectorPacket::decode(&datagram), Ok(example()));
        assert_eq!(ReflectorPacket::decode(&datagram[..41]), Ok(example()), "TWAMP Light");
        assert!(ReflectorPacket::decode(&datagram[..40]).is_err());
    }

    #[cfg(feature = "auth")]
    #[test]
    fn fields_stand_where_figure_7_has_them() {
        let key = HmacKey::new(b"any key").expect("a key");
        let datagram = example().encode_with(&[], ByteCount::ZERO, Some(&key));
        let fields = [0..4, 16..28, 32..40, 48..52, 64..74, 80..81, 96..112];
        let plain = example().encode(BASE_LENGTH);
        let places = [0..4, 4..16, 16..24, 24..28, 28..38, 40..41];
        for (field, place) in fields.iter().zip(places) {
            assert_eq!(datagram[field.clone()], plain[place], "{field:?}");
        }
        let is_zero = |at: usize| fields.iter().any(|field| field.contains(&at)) || datagram[at] == 0;
        assert!((0..112).all(is_zero));
        assert_eq!(ReflectorPacket::decode_authenticated(&datagram, &key), Ok(example()));
        for at in [0, 16, 95, 96, 111] {
            let mut changed = datagram.clone();
            changed[at] ^= 1;
            assert_eq!(ReflectorPacket::decode_authenticated(&changed, &key), Err(PacketError::NotAuthentic));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..120), size in 0_u64..300) {
            let Ok(read) = ReflectorPacket::decode(&bytes) else {
                prop_assert!(bytes.len() < 41);
                return Ok(());
            };
            let written = read.encode(ByteCount::new(size));
            prop_assert_eq!(&written[..38], &bytes[..38]);
            prop_assert_eq!(written[40], bytes[40]);
            prop_assert_eq!(written.len() as u64, size.max(44));
            let mut buffer = vec![0x55; 60];
            read.encode_into(&mut buffer, Mode::Unauthenticated).expect("long enough");
            prop_assert_eq!(&buffer[..44], &written[..44]);
            prop_assert!(buffer[44..].iter().all(|byte| *byte == 0x55));
        }
    }
}
