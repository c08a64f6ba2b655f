//! Common parts of the packets of both directions.

use core::fmt;

use linerate_units::ByteCount;

use super::tlv::{self, StampTlv};
use super::{AUTHENTICATED_LENGTH, BASE_LENGTH, ErrorEstimate, HmacKey, StampTimestamp};

/// Identifier of a sender's session (SSID): two octets (RFC 8972 §3). Zero means none: the peer supports RFC 8762 only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionIdentifier(u16);

impl SessionIdentifier {
    /// No identifier.
    pub const NONE: Self = Self(0);

    /// Identifier from a number; 0 is [`SessionIdentifier::NONE`].
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for SessionIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Mode of the packets. Both hosts must be configured: packets do not indicate it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AuthenticationMode {
    /// Unauthenticated mode (RFC 8762 §4.2.1, §4.3.1).
    #[default]
    Unauthenticated,
    /// Authenticated mode: the base packet ends with an HMAC under a shared key (RFC 8762 §4.2.2, §4.3.2).
    Authenticated,
}

impl AuthenticationMode {
    /// Mode of a host with an optional key.
    #[must_use]
    pub const fn of(key: Option<&HmacKey>) -> Self {
        if key.is_some() { Self::Authenticated } else { Self::Unauthenticated }
    }

    /// Bytes of a base packet, of either direction.
    #[must_use]
    pub const fn base_length(self) -> ByteCount {
        match self {
            Self::Unauthenticated => BASE_LENGTH,
            Self::Authenticated => AUTHENTICATED_LENGTH,
        }
    }

    /// Bytes after the base packet.
    pub(super) fn after_base(self, datagram: &[u8]) -> &[u8] {
        datagram.get(self.base_length().to_usize()..).unwrap_or_default()
    }
}

/// A packet that cannot be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// The packet is shorter than its fields.
    #[error("a STAMP packet of {} bytes is too short: {} are needed", available.get(), needed.get())]
    TooShort {
        /// Bytes available.
        available: ByteCount,
        /// Bytes of the fields.
        needed: ByteCount,
    },
    /// The HMAC does not match the key and the content.
    #[error("the HMAC of a STAMP packet is wrong: the two hosts have different keys, or the packet was altered")]
    NotAuthentic,
}

pub(super) const SEQUENCE: usize = 0;
/// Offset of the HMAC in the base packets of the authenticated mode, equal to the number of bytes that it covers: six
/// blocks (RFC 8762 §4.4).
pub(super) const HMAC: usize = 96;

/// Reads a field at a fixed offset. Callers check the length; beyond the end, a read gives zeros and a write does
/// nothing.
pub(super) fn read_field<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    bytes.get(offset..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

pub(super) fn write_field<const N: usize>(bytes: &mut [u8], offset: usize, field: [u8; N]) {
    if let Some(place) = bytes.get_mut(offset..).and_then(|rest| rest.first_chunk_mut()) {
        *place = field;
    }
}

pub(super) fn read_timestamp(bytes: &[u8], offset: usize) -> StampTimestamp {
    StampTimestamp::from_bits(u64::from_be_bytes(read_field(bytes, offset)))
}

pub(super) fn read_error_estimate(bytes: &[u8], offset: usize) -> ErrorEstimate {
    ErrorEstimate::from_bits(u16::from_be_bytes(read_field(bytes, offset)))
}

pub(super) fn need(bytes: &[u8], needed: ByteCount) -> Result<(), PacketError> {
    let available = ByteCount::from_usize(bytes.len());
    if available < needed { Err(PacketError::TooShort { available, needed }) } else { Ok(()) }
}

/// Writes the HMAC of a base packet after its six blocks.
pub(crate) fn seal(datagram: &mut [u8], key: &HmacKey) {
    if let Some((blocks, rest)) = datagram.split_at_mut_checked(HMAC) {
        write_field(rest, 0, key.sign(&[blocks]));
    }
}

/// Checks the HMAC of a packet of the authenticated mode.
pub(super) fn check_seal(datagram: &[u8], key: &HmacKey) -> Result<(), PacketError> {
    need(datagram, AUTHENTICATED_LENGTH)?;
    let (blocks, rest) = datagram.split_at(HMAC);
    let hmac = rest.get(..super::key::HMAC_LENGTH).unwrap_or_default();
    if key.verify(&[blocks], hmac) { Ok(()) } else { Err(PacketError::NotAuthentic) }
}

/// Builds a datagram: a base packet whose fields `write_fields` writes, sealed with the key if there is one, and its
/// options ([`append_options`]).
pub(super) fn build_datagram(
    write_fields: impl FnOnce(&mut [u8], AuthenticationMode),
    options: &[StampTlv],
    size: ByteCount,
    key: Option<&HmacKey>,
) -> Vec<u8> {
    let mode = AuthenticationMode::of(key);
    let mut datagram = vec![0; mode.base_length().to_usize()];
    write_fields(&mut datagram, mode);
    if let Some(key) = key {
        seal(&mut datagram, key);
    }
    append_options(&mut datagram, options, size, key);
    datagram
}

/// Appends options to a base packet and fills up to `size` with an Extra Padding TLV. With a key, options other than a
/// single padding get an HMAC TLV, before the padding (RFC 8972 §4.8). A remainder of three bytes or fewer is zeros, as
/// no TLV is that short.
fn append_options(datagram: &mut Vec<u8>, options: &[StampTlv], size: ByteCount, key: Option<&HmacKey>) {
    let base = datagram.len();
    let (padding, others): (Vec<&StampTlv>, Vec<&StampTlv>) =
        options.iter().partition(|option| matches!(option, StampTlv::ExtraPadding(_)));
    let sealed = key.filter(|_| !others.is_empty() || padding.len() > 1);
    // In their order; padding is moved to the end only when an HMAC precedes it.
    let before: Vec<&StampTlv> = if sealed.is_some() { others } else { options.iter().collect() };
    for option in before {
        option.encode(datagram);
    }
    if let Some(key) = sealed {
        let hmac = tlv::sign(&datagram[..4], &datagram[base..], key);
        StampTlv::Hmac(hmac).encode(datagram);
        for option in padding {
            option.encode(datagram);
        }
    }
    let missing = size.to_usize().saturating_sub(datagram.len());
    if missing >= tlv::HEADER_LENGTH {
        let whole = datagram.len() + missing;
        tlv::encode_header(datagram, tlv::EXTRA_PADDING, missing - tlv::HEADER_LENGTH);
        datagram.resize(whole, 0);
    } else {
        datagram.resize(datagram.len() + missing, 0);
    }
}
