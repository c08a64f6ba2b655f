use linerate_units::ByteCount;

use super::packet::{
    self, PacketError, SessionIdentifier, need, read_error_estimate, read_field, read_timestamp, write_field,
};
use super::tlv::{self, StampTlv};
use super::{
    AUTHENTICATED_LENGTH, AuthenticationMode, BASE_LENGTH, ErrorEstimate, HmacKey, MIN_SENDER_LENGTH, StampTimestamp,
};

/// Base of a Session-Sender packet (RFC 8762 §4.2, RFC 8972 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderPacket {
    /// Sequence number in the session, from 0; wraps after 2^32 − 1.
    pub sequence: u32,
    /// Transmit timestamp (T1), on the sender's clock.
    pub timestamp: StampTimestamp,
    /// Error estimate of that clock, and format of the timestamp.
    pub error_estimate: ErrorEstimate,
    /// Identifier of the sender's session.
    pub session: SessionIdentifier,
}

/// Offsets of the fields.
struct SenderOffsets {
    timestamp: usize,
    error_estimate: usize,
    session: usize,
}

const fn offsets(mode: AuthenticationMode) -> SenderOffsets {
    match mode {
        AuthenticationMode::Unauthenticated => SenderOffsets { timestamp: 4, error_estimate: 12, session: 14 },
        AuthenticationMode::Authenticated => SenderOffsets { timestamp: 16, error_estimate: 24, session: 26 },
    }
}

impl SenderPacket {
    /// Encodes a datagram of `size` bytes (UDP payload), at least [`BASE_LENGTH`], without authentication, filled up
    /// with an Extra Padding TLV of zeros (RFC 8972 §4.1).
    #[must_use]
    pub fn encode(&self, size: ByteCount) -> Vec<u8> {
        self.encode_with(&[], size, None)
    }

    /// Encodes a datagram with options, of at least `size` bytes; in the authenticated mode with a key.
    ///
    /// With a key, an HMAC TLV is added to the options, before the padding.
    #[must_use]
    pub fn encode_with(&self, options: &[StampTlv], size: ByteCount, key: Option<&HmacKey>) -> Vec<u8> {
        packet::build_datagram(|base, mode| self.write_fields(base, mode), options, size, key)
    }

    /// Writes a datagram without authentication into a buffer: the base packet, then an Extra Padding TLV of the
    /// remaining length, whose content is kept.
    pub fn encode_into(&self, datagram: &mut [u8]) -> Result<(), PacketError> {
        need(datagram, BASE_LENGTH)?;
        let (base, rest) = datagram.split_at_mut(BASE_LENGTH.to_usize());
        base.fill(0);
        self.write_fields(base, AuthenticationMode::Unauthenticated);
        tlv::write_padding(rest);
        Ok(())
    }

    /// Replaces number and timestamp of a datagram of [`SenderPacket::encode`] or [`SenderPacket::encode_into`]: twelve
    /// bytes, for batches that are reused. Does nothing to a shorter buffer.
    #[inline]
    pub fn renumber(datagram: &mut [u8], sequence: u32, timestamp: StampTimestamp) {
        if let Some(front) = datagram.first_chunk_mut::<12>() {
            let both = u128::from(sequence) << 64 | u128::from(timestamp.bits());
            front.copy_from_slice(&both.to_be_bytes()[4..]);
        }
    }

    /// Decodes a packet without authentication, from [`MIN_SENDER_LENGTH`] on. A packet shorter than [`BASE_LENGTH`] is
    /// from a TWAMP Light sender and has no session identifier.
    pub fn decode(datagram: &[u8]) -> Result<Self, PacketError> {
        need(datagram, MIN_SENDER_LENGTH)?;
        let mut packet = Self::read_fields(datagram, AuthenticationMode::Unauthenticated);
        if datagram.len() < BASE_LENGTH.to_usize() {
            packet.session = SessionIdentifier::NONE;
        }
        Ok(packet)
    }

    /// Decodes a packet with authentication. The options are not checked: they have an HMAC of their own.
    pub fn decode_authenticated(datagram: &[u8], key: &HmacKey) -> Result<Self, PacketError> {
        packet::check_seal(datagram, key)?;
        Ok(Self::read_fields(datagram, AuthenticationMode::Authenticated))
    }

    /// True when the 28 bytes that are zero in STAMP are not: the packet is then from a TWAMP Light sender, whose
    /// padding begins at byte 14 and may have any content (RFC 5357 §4.1.2). It has neither a session identifier nor
    /// options.
    pub(super) fn is_padded(datagram: &[u8]) -> bool {
        datagram.get(16..BASE_LENGTH.to_usize()).is_none_or(|zeros| zeros.iter().any(|byte| *byte != 0))
    }

    fn write_fields(&self, datagram: &mut [u8], mode: AuthenticationMode) {
        let at = offsets(mode);
        write_field(datagram, packet::SEQUENCE, self.sequence.to_be_bytes());
        write_field(datagram, at.timestamp, self.timestamp.bits().to_be_bytes());
        write_field(datagram, at.error_estimate, self.error_estimate.bits().to_be_bytes());
        write_field(datagram, at.session, self.session.get().to_be_bytes());
    }

    fn read_fields(datagram: &[u8], mode: AuthenticationMode) -> Self {
        let at = offsets(mode);
        Self {
            sequence: u32::from_be_bytes(read_field(datagram, packet::SEQUENCE)),
            timestamp: read_timestamp(datagram, at.timestamp),
            error_estimate: read_error_estimate(datagram, at.error_estimate),
            session: SessionIdentifier::new(u16::from_be_bytes(read_field(datagram, at.session))),
        }
    }
}

/// Bytes after the base packet of a datagram of either direction.
#[must_use]
pub fn options(datagram: &[u8], mode: AuthenticationMode) -> &[u8] {
    mode.after_base(datagram)
}

const _: () = assert!(AUTHENTICATED_LENGTH.get() == packet::HMAC as u64 + super::key::HMAC_LENGTH as u64);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stamp::TimestampFormat;

    fn example() -> SenderPacket {
        SenderPacket {
            sequence: 0x0102_0304,
            timestamp: StampTimestamp::from_bits(0x1112_1314_1516_1718),
            error_estimate: ErrorEstimate::from_bits(0x8123),
            session: SessionIdentifier::new(0xABCD),
        }
    }

    #[test]
    fn fields_are_at_the_offsets_of_figure_2() {
        let datagram = example().encode(BASE_LENGTH);
        let mut expected = vec![1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x81, 0x23, 0xAB, 0xCD];
        expected.resize(44, 0);
        assert_eq!(datagram, expected);
        assert_eq!(SenderPacket::decode(&datagram), Ok(example()));
        assert!(!SenderPacket::is_padded(&datagram));
    }

    #[test]
    fn larger_packets_are_filled_by_a_padding_option() {
        for size in [48, 49, 100, 1472, 65507] {
            let datagram = example().encode(ByteCount::new(size));
            assert_eq!(datagram.len() as u64, size);
            let length = u16::try_from(size - 48).expect("fits").to_be_bytes();
            assert_eq!(datagram[44..48], [0x80, 1, length[0], length[1]], "U, type 1, length");
            let mut reused = vec![0x55; datagram.len()];
            example().encode_into(&mut reused).expect("long enough");
            assert_eq!(reused[..48], datagram[..48]);
            assert!(reused[48..].iter().all(|byte| *byte == 0x55));
        }
        assert_eq!(example().encode(ByteCount::ZERO).len(), 44);
        assert_eq!(example().encode(ByteCount::new(47))[44..], [0; 3]);
    }

    #[test]
    fn short_packets_are_of_twamp_light() {
        let datagram = example().encode(BASE_LENGTH);
        for length in 0..44 {
            let read = SenderPacket::decode(&datagram[..length]);
            let expected = SenderPacket { session: SessionIdentifier::NONE, ..example() };
            match read {
                Ok(packet) => assert!(length >= 14 && packet == expected, "{length}"),
                Err(error) => {
                    let available = ByteCount::from_usize(length);
                    assert!(length < 14, "{length}");
                    assert_eq!(error, PacketError::TooShort { available, needed: MIN_SENDER_LENGTH });
                }
            }
            assert!(SenderPacket::is_padded(&datagram[..length]));
        }
    }

    #[cfg(feature = "auth")]
    #[test]
    fn fields_are_at_the_offsets_of_figure_4() {
        let key = HmacKey::new(&[7; 32]).expect("a key");
        let datagram = example().encode_with(&[], ByteCount::ZERO, Some(&key));
        assert_eq!(datagram.len(), 112);
        assert_eq!(datagram[..4], [1, 2, 3, 4]);
        assert_eq!(datagram[16..28], [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x81, 0x23, 0xAB, 0xCD]);
        let zeros = datagram[4..16].iter().chain(&datagram[28..96]);
        assert!(zeros.copied().all(|byte| byte == 0));
        assert_eq!(datagram[96..], key.sign(&[&datagram[..96]]));
        assert_eq!(SenderPacket::decode_authenticated(&datagram, &key), Ok(example()));
        let other = HmacKey::new(&[8; 32]).expect("a key");
        assert_eq!(SenderPacket::decode_authenticated(&datagram, &other), Err(PacketError::NotAuthentic));
        assert!(SenderPacket::decode_authenticated(&datagram[..111], &key).is_err());
    }

    #[cfg(feature = "auth")]
    #[test]
    fn options_have_an_hmac_of_their_own_before_the_padding() {
        let key = HmacKey::new(&[7; 32]).expect("a key");
        let asked = StampTlv::TimestampInformation(tlv::TimestampInformation::default());
        let datagram =
            example().encode_with(&[StampTlv::ExtraPadding(vec![9; 5]), asked], ByteCount::new(200), Some(&key));
        assert_eq!(datagram.len(), 200);
        let kinds: Vec<u8> = tlv::iterate(&datagram[112..]).map(|tlv| tlv.expect("well formed").kind).collect();
        assert_eq!(kinds, [tlv::TIMESTAMP_INFORMATION, tlv::HMAC, tlv::EXTRA_PADDING, tlv::EXTRA_PADDING]);
        assert_eq!(datagram[124..140], key.sign(&[&datagram[..4], &datagram[112..120]]));
        // Padding alone needs none.
        let padded = example().encode_with(&[], ByteCount::new(200), Some(&key));
        assert_eq!(tlv::iterate(&padded[112..]).count(), 1);
    }

    proptest! {
        #[test]
        fn packets_round_trip(sequence: u32, time: u64, error: u16, session: u16, size in 0_u64..2000) {
            let packet = SenderPacket {
                sequence,
                timestamp: StampTimestamp::from_bits(time),
                error_estimate: ErrorEstimate::from_bits(error),
                session: SessionIdentifier::new(session),
            };
            let mut datagram = packet.encode(ByteCount::new(size));
            prop_assert_eq!(datagram.len() as u64, size.max(44));
            prop_assert_eq!(SenderPacket::decode(&datagram), Ok(packet));
            SenderPacket::renumber(&mut datagram, sequence ^ 5, StampTimestamp::from_bits(!time));
            let renumbered = SenderPacket { sequence: sequence ^ 5, timestamp: StampTimestamp::from_bits(!time), ..packet };
            prop_assert_eq!(&datagram, &renumbered.encode(ByteCount::new(size)));
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let read = SenderPacket::decode(&bytes);
            prop_assert_eq!(read.is_ok(), bytes.len() >= 14);
            if let Ok(packet) = read {
                prop_assert_eq!(&packet.encode(BASE_LENGTH)[..14], &bytes[..14]);
                let _ = packet.error_estimate.format() == TimestampFormat::Ntp;
            }
        }
    }
}
