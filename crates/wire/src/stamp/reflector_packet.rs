use linerate_units::ByteCount;

use super::packet::{
    self, PacketError, SessionIdentifier, need, read_error_estimate, read_field, read_timestamp, write_field,
};
use super::tlv::StampTlv;
use super::{AuthenticationMode, ErrorEstimate, HmacKey, StampTimestamp};

/// Base of a Session-Reflector packet (RFC 8762 §4.3, RFC 8972 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReflectorPacket {
    /// Sequence number of the reflector in the session, from 0; a stateless reflector repeats the sender's.
    pub sequence: u32,
    /// Transmit timestamp (T3), on the reflector's clock.
    pub timestamp: StampTimestamp,
    /// Error estimate of that clock, and format of both timestamps of the reflector.
    pub error_estimate: ErrorEstimate,
    /// Copy of the sender's session identifier; none from a reflector without RFC 8972.
    pub session: SessionIdentifier,
    /// Receive timestamp (T2), on the reflector's clock.
    pub received_at: StampTimestamp,
    /// Copy of the sender's sequence number.
    pub sender_sequence: u32,
    /// Copy of the sender's timestamp (T1).
    pub sender_timestamp: StampTimestamp,
    /// Copy of the sender's error estimate.
    pub sender_error_estimate: ErrorEstimate,
    /// Time to live, or hop limit, of the sender's packet on arrival; also 255 when unknown to the reflector (RFC 5357
    /// §4.2.1).
    pub sender_ttl: u8,
}

/// Bytes of a TWAMP Light reflector's packet, without trailing zeros (RFC 5357 §4.2.1).
const TWAMP_LIGHT_LENGTH: ByteCount = ByteCount::new(41);

/// Offsets of the fields.
struct ReflectorOffsets {
    timestamp: usize,
    error_estimate: usize,
    session: usize,
    received_at: usize,
    sender_sequence: usize,
    sender_timestamp: usize,
    sender_error_estimate: usize,
    sender_ttl: usize,
}

const fn offsets(mode: AuthenticationMode) -> ReflectorOffsets {
    match mode {
        AuthenticationMode::Unauthenticated => ReflectorOffsets {
            timestamp: 4,
            error_estimate: 12,
            session: 14,
            received_at: 16,
            sender_sequence: 24,
            sender_timestamp: 28,
            sender_error_estimate: 36,
            sender_ttl: 40,
        },
        AuthenticationMode::Authenticated => ReflectorOffsets {
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
    /// Encodes a datagram of `size` bytes (UDP payload), at least [`super::BASE_LENGTH`], without authentication,
    /// filled up with an Extra Padding TLV of zeros.
    #[must_use]
    pub fn encode(&self, size: ByteCount) -> Vec<u8> {
        self.encode_with(&[], size, None)
    }

    /// Encodes a datagram with options, of at least `size` bytes; in the authenticated mode with a key.
    #[must_use]
    pub fn encode_with(&self, options: &[StampTlv], size: ByteCount, key: Option<&HmacKey>) -> Vec<u8> {
        packet::build_datagram(|base, mode| self.write_fields(base, mode), options, size, key)
    }

    /// Writes the base packet to the front of a datagram, and keeps the bytes after it. The HMAC of the authenticated
    /// mode is written by `Reflector::finish`, when the timestamp is known.
    pub fn encode_into(&self, datagram: &mut [u8], mode: AuthenticationMode) -> Result<(), PacketError> {
        need(datagram, mode.base_length())?;
        let base = &mut datagram[..mode.base_length().to_usize()];
        base.fill(0);
        self.write_fields(base, mode);
        Ok(())
    }

    /// Writes the transmit timestamp, the last field to be known.
    #[inline]
    pub(super) fn write_timestamp(datagram: &mut [u8], timestamp: StampTimestamp, mode: AuthenticationMode) {
        write_field(datagram, offsets(mode).timestamp, timestamp.bits().to_be_bytes());
    }

    /// Decodes a packet without authentication, including the 41 bytes of a TWAMP Light reflector.
    pub fn decode(datagram: &[u8]) -> Result<Self, PacketError> {
        need(datagram, TWAMP_LIGHT_LENGTH)?;
        Ok(Self::read_fields(datagram, AuthenticationMode::Unauthenticated))
    }

    /// Decodes a packet with authentication. The options are not checked: they have an HMAC of their own.
    pub fn decode_authenticated(datagram: &[u8], key: &HmacKey) -> Result<Self, PacketError> {
        packet::check_seal(datagram, key)?;
        Ok(Self::read_fields(datagram, AuthenticationMode::Authenticated))
    }

    fn write_fields(&self, datagram: &mut [u8], mode: AuthenticationMode) {
        let at = offsets(mode);
        write_field(datagram, packet::SEQUENCE, self.sequence.to_be_bytes());
        write_field(datagram, at.timestamp, self.timestamp.bits().to_be_bytes());
        write_field(datagram, at.error_estimate, self.error_estimate.bits().to_be_bytes());
        write_field(datagram, at.session, self.session.get().to_be_bytes());
        write_field(datagram, at.received_at, self.received_at.bits().to_be_bytes());
        write_field(datagram, at.sender_sequence, self.sender_sequence.to_be_bytes());
        write_field(datagram, at.sender_timestamp, self.sender_timestamp.bits().to_be_bytes());
        write_field(datagram, at.sender_error_estimate, self.sender_error_estimate.bits().to_be_bytes());
        write_field(datagram, at.sender_ttl, [self.sender_ttl]);
    }

    fn read_fields(datagram: &[u8], mode: AuthenticationMode) -> Self {
        let at = offsets(mode);
        let [sender_ttl] = read_field(datagram, at.sender_ttl);
        Self {
            sequence: u32::from_be_bytes(read_field(datagram, packet::SEQUENCE)),
            timestamp: read_timestamp(datagram, at.timestamp),
            error_estimate: read_error_estimate(datagram, at.error_estimate),
            session: SessionIdentifier::new(u16::from_be_bytes(read_field(datagram, at.session))),
            received_at: read_timestamp(datagram, at.received_at),
            sender_sequence: u32::from_be_bytes(read_field(datagram, at.sender_sequence)),
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
            timestamp: StampTimestamp::from_bits(0x1112_1314_1516_1718),
            error_estimate: ErrorEstimate::from_bits(0x8123),
            session: SessionIdentifier::new(0xABCD),
            received_at: StampTimestamp::from_bits(0x2122_2324_2526_2728),
            sender_sequence: 0x3132_3334,
            sender_timestamp: StampTimestamp::from_bits(0x4142_4344_4546_4748),
            sender_error_estimate: ErrorEstimate::from_bits(0x4255),
            sender_ttl: 61,
        }
    }

    #[test]
    fn fields_are_at_the_offsets_of_figure_5() {
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
    fn fields_are_at_the_offsets_of_figure_7() {
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
        fn any_bytes_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..120), size in 0_u64..300) {
            let Ok(read) = ReflectorPacket::decode(&bytes) else {
                prop_assert!(bytes.len() < 41);
                return Ok(());
            };
            let written = read.encode(ByteCount::new(size));
            prop_assert_eq!(&written[..38], &bytes[..38]);
            prop_assert_eq!(written[40], bytes[40]);
            prop_assert_eq!(written.len() as u64, size.max(44));
            let mut buffer = vec![0x55; 60];
            read.encode_into(&mut buffer, AuthenticationMode::Unauthenticated).expect("long enough");
            prop_assert_eq!(&buffer[..44], &written[..44]);
            prop_assert!(buffer[44..].iter().all(|byte| *byte == 0x55));
        }
    }
}
