//! Options after a base packet, as type, length and value (RFC 8972 §4).
//!
//! Each begins with an octet of flags, in which a reflector reports errors, an octet of type and two of length.
//! [`iterate`] reads the raw options, [`StampTlv`] is a decoded option, [`read_answer_options`] returns the options of an answer
//! that a sender may use.

pub(super) mod location;
mod value;

pub use location::{HardwareAddress, LocationSubTlv, LocationTlv};
pub use value::{
    AccessReport, ClassOfService, DirectMeasurement, FollowUpTelemetry, SynchronizationSource, TimestampInformation,
    TimestampMethod,
};

use super::key::HMAC_LENGTH;
use super::{AuthenticationMode, HmacKey};

/// Type of [`StampTlv::ExtraPadding`].
pub const EXTRA_PADDING: u8 = 1;
/// Type of [`StampTlv::Location`].
pub const LOCATION: u8 = 2;
/// Type of [`StampTlv::TimestampInformation`].
pub const TIMESTAMP_INFORMATION: u8 = 3;
/// Type of [`StampTlv::ClassOfService`].
pub const CLASS_OF_SERVICE: u8 = 4;
/// Type of [`StampTlv::DirectMeasurement`].
pub const DIRECT_MEASUREMENT: u8 = 5;
/// Type of [`StampTlv::AccessReport`].
pub const ACCESS_REPORT: u8 = 6;
/// Type of [`StampTlv::FollowUpTelemetry`].
pub const FOLLOW_UP_TELEMETRY: u8 = 7;
/// Type of [`StampTlv::Hmac`].
pub const HMAC: u8 = 8;

/// Bytes before the value.
pub(super) const HEADER_LENGTH: usize = 4;

/// Flags of an option (RFC 8972 §4). The other five bits are sent as zero and ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TlvFlags {
    /// U: set by the sender, and cleared by a reflector that knows the type.
    pub unrecognized: bool,
    /// M: the length is wrong for the type, or exceeds the packet.
    pub malformed: bool,
    /// I: the HMAC of the options is wrong.
    pub integrity_failed: bool,
}

impl TlvFlags {
    /// Flags of an option sent to a reflector.
    pub const REQUEST: Self = Self { unrecognized: true, malformed: false, integrity_failed: false };

    /// Decodes the octet on the wire.
    #[must_use]
    pub const fn from_octet(octet: u8) -> Self {
        Self { unrecognized: octet & 0x80 != 0, malformed: octet & 0x40 != 0, integrity_failed: octet & 0x20 != 0 }
    }

    /// Encodes the octet on the wire.
    #[must_use]
    pub const fn octet(self) -> u8 {
        (self.unrecognized as u8) << 7 | (self.malformed as u8) << 6 | (self.integrity_failed as u8) << 5
    }
}

/// A raw option of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawTlv<'a> {
    /// Flags of the option.
    pub flags: TlvFlags,
    /// Type of the option.
    pub kind: u8,
    /// Value of the option.
    pub value: &'a [u8],
}

/// An option whose length is wrong for its type, or exceeds the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a STAMP option of type {kind} has a length that is wrong for its type or exceeds the packet")]
pub struct MalformedTlv {
    /// Type of the option.
    pub kind: u8,
}

/// An option.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StampTlv {
    /// Padding; the content is ignored (RFC 8972 §4.1).
    ExtraPadding(Vec<u8>),
    /// Requests the addresses and ports of the packet on arrival (RFC 8972 §4.2).
    Location(LocationTlv),
    /// Requests synchronization source and timestamping method of the reflector (RFC 8972 §4.3).
    TimestampInformation(TimestampInformation),
    /// Requests the class of the packet on arrival, and a class for the answer (RFC 8972 §4.4).
    ClassOfService(ClassOfService),
    /// Counts of data packets in parallel to the test (RFC 8972 §4.5).
    DirectMeasurement(DirectMeasurement),
    /// Reports the access network of the sender (RFC 8972 §4.6).
    AccessReport(AccessReport),
    /// Requests the exact transmit timestamp of the previous answer (RFC 8972 §4.7).
    FollowUpTelemetry(FollowUpTelemetry),
    /// Protects the options before it, truncated HMAC-SHA-256 (RFC 8972 §4.8). Encoding a packet with a key adds it.
    Hmac([u8; HMAC_LENGTH]),
    /// An unknown type.
    Unknown {
        /// Type of the option.
        kind: u8,
        /// Value of the option.
        value: Vec<u8>,
    },
}

impl StampTlv {
    /// Decodes type and value.
    pub fn decode(kind: u8, value: &[u8]) -> Result<Self, MalformedTlv> {
        let malformed = MalformedTlv { kind };
        Ok(match kind {
            EXTRA_PADDING => Self::ExtraPadding(value.to_vec()),
            LOCATION => Self::Location(LocationTlv::decode(value).ok_or(malformed)?),
            TIMESTAMP_INFORMATION => {
                Self::TimestampInformation(TimestampInformation::decode(fixed_value(kind, value)?))
            }
            CLASS_OF_SERVICE => Self::ClassOfService(ClassOfService::decode(fixed_value(kind, value)?)),
            DIRECT_MEASUREMENT => Self::DirectMeasurement(DirectMeasurement::decode(fixed_value(kind, value)?)),
            ACCESS_REPORT => Self::AccessReport(AccessReport::decode(fixed_value(kind, value)?)),
            FOLLOW_UP_TELEMETRY => Self::FollowUpTelemetry(FollowUpTelemetry::decode(fixed_value(kind, value)?)),
            HMAC => Self::Hmac(fixed_value(kind, value)?),
            _ => Self::Unknown { kind, value: value.to_vec() },
        })
    }

    /// Type of the option.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        match self {
            Self::ExtraPadding(_) => EXTRA_PADDING,
            Self::Location(_) => LOCATION,
            Self::TimestampInformation(_) => TIMESTAMP_INFORMATION,
            Self::ClassOfService(_) => CLASS_OF_SERVICE,
            Self::DirectMeasurement(_) => DIRECT_MEASUREMENT,
            Self::AccessReport(_) => ACCESS_REPORT,
            Self::FollowUpTelemetry(_) => FOLLOW_UP_TELEMETRY,
            Self::Hmac(_) => HMAC,
            Self::Unknown { kind, .. } => *kind,
        }
    }

    /// Appends the option as a sender sends it, with at most 65535 bytes of its value.
    pub fn encode(&self, datagram: &mut Vec<u8>) {
        let value = self.value();
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        encode_header(datagram, self.kind(), value.len());
        datagram.extend_from_slice(value);
    }

    fn value(&self) -> Vec<u8> {
        match self {
            Self::ExtraPadding(value) | Self::Unknown { value, .. } => value.clone(),
            Self::Location(location) => location.encode(),
            Self::TimestampInformation(information) => information.encode().to_vec(),
            Self::ClassOfService(class) => class.encode().to_vec(),
            Self::DirectMeasurement(counts) => counts.encode().to_vec(),
            Self::AccessReport(report) => report.encode().to_vec(),
            Self::FollowUpTelemetry(telemetry) => telemetry.encode().to_vec(),
            Self::Hmac(hmac) => hmac.to_vec(),
        }
    }
}

fn fixed_value<const N: usize>(kind: u8, value: &[u8]) -> Result<[u8; N], MalformedTlv> {
    value.try_into().map_err(|_| MalformedTlv { kind })
}

/// Appends the header of an option as a sender sends it; the length saturates at 65535.
pub(super) fn encode_header(datagram: &mut Vec<u8>, kind: u8, length: usize) {
    datagram.extend([TlvFlags::REQUEST.octet(), kind]);
    datagram.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
}

/// Turns `area` into an Extra Padding option, whose content is kept; an area shorter than a header is zeroed.
pub(super) fn write_padding(area: &mut [u8]) {
    let Some((header, content)) = area.split_first_chunk_mut::<HEADER_LENGTH>() else {
        area.fill(0);
        return;
    };
    let [high, low] = u16::try_from(content.len()).unwrap_or(u16::MAX).to_be_bytes();
    *header = [TlvFlags::REQUEST.octet(), EXTRA_PADDING, high, low];
}

/// Reads the options of `area`, the bytes after a base packet ([`super::options`]). The first one that exceeds the
/// packet is the last item; a remainder of three bytes or fewer is not an option.
pub fn iterate(area: &[u8]) -> impl Iterator<Item = Result<RawTlv<'_>, MalformedTlv>> {
    tlv_spans(area).map(|place| match place {
        Ok(place) => Ok(RawTlv {
            flags: TlvFlags::from_octet(area[place.header]),
            kind: place.kind,
            value: &area[place.header + HEADER_LENGTH..place.end],
        }),
        Err((_, malformed)) => Err(malformed),
    })
}

/// Location of an option.
#[derive(Clone, Copy, Debug)]
pub(super) struct TlvSpan {
    pub(super) kind: u8,
    pub(super) header: usize,
    pub(super) end: usize,
}

/// Locations of the options; of one that exceeds the packet, its offset.
pub(super) fn tlv_spans(area: &[u8]) -> impl Iterator<Item = Result<TlvSpan, (usize, MalformedTlv)>> + use<> {
    // Only offsets are collected, so that the bytes may be written during the iteration.
    let mut found = Vec::new();
    let mut header = 0;
    while let Some([_, kind, high, low]) = area.get(header..).and_then(|rest| rest.first_chunk()).copied() {
        let end = header + HEADER_LENGTH + usize::from(u16::from_be_bytes([high, low]));
        if end > area.len() {
            found.push(Err((header, MalformedTlv { kind })));
            break;
        }
        found.push(Ok(TlvSpan { kind, header, end }));
        header = end;
    }
    found.into_iter()
}

/// HMAC of an HMAC option: over the sequence number of the base packet and all options before it (RFC 8972 §4.8).
pub(super) fn sign(sequence: &[u8], before: &[u8], key: &HmacKey) -> [u8; HMAC_LENGTH] {
    key.sign(&[sequence, before])
}

/// Integrity of the options of a packet (RFC 8972 §4.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TlvIntegrity {
    /// The HMAC option is right, or none is needed.
    Good,
    /// The HMAC option is wrong, misplaced or missing, or cannot be verified without a key.
    Failed,
}

/// Checks the HMAC option. It must follow all options but padding; with authentication it is required unless all
/// options are padding.
pub(super) fn check_integrity(datagram: &[u8], mode: AuthenticationMode, key: Option<&HmacKey>) -> TlvIntegrity {
    let area = mode.after_base(datagram);
    let well_formed: Vec<TlvSpan> = tlv_spans(area).filter_map(Result::ok).collect();
    let Some(at) = well_formed.iter().position(|place| place.kind == HMAC) else {
        let needs_one =
            mode == AuthenticationMode::Authenticated && well_formed.iter().any(|place| place.kind != EXTRA_PADDING);
        return if needs_one { TlvIntegrity::Failed } else { TlvIntegrity::Good };
    };
    let place = well_formed[at];
    let only_padding_follows = well_formed[at + 1..].iter().all(|place| place.kind == EXTRA_PADDING);
    let hmac = &area[place.header + HEADER_LENGTH..place.end];
    let is_right = key.is_some_and(|key| key.verify(&[&datagram[..4], &area[..place.header]], hmac));
    if only_padding_follows && is_right { TlvIntegrity::Good } else { TlvIntegrity::Failed }
}

/// Options of an answer that a sender may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerOptions {
    /// Options that the reflector filled in.
    pub options: Vec<StampTlv>,
    /// Types that the reflector does not support. TWAMP Light reflectors, and STAMP ones without RFC 8972, support
    /// none.
    pub unrecognized: Vec<u8>,
    /// True when an option is malformed here or for the reflector: the options after it are ignored.
    pub malformed: bool,
    /// True when the HMAC is wrong here or for the reflector: all options are ignored.
    pub integrity_failed: bool,
}

/// Reads the options of an answer as required of a sender (RFC 8972 §4): none with a wrong HMAC, those before the first
/// malformed one, and without those that the reflector does not support. The base packet must be checked before.
#[must_use]
pub fn read_answer_options(answer: &[u8], mode: AuthenticationMode, key: Option<&HmacKey>) -> AnswerOptions {
    let mut read = AnswerOptions::default();
    let area = mode.after_base(answer);
    let refused = iterate(area).filter_map(Result::ok).any(|tlv| tlv.flags.integrity_failed);
    if refused || check_integrity(answer, mode, key) == TlvIntegrity::Failed {
        read.integrity_failed = true;
        return read;
    }
    for tlv in iterate(area) {
        let decoded = match tlv {
            Ok(tlv) if tlv.flags.unrecognized => {
                read.unrecognized.push(tlv.kind);
                continue;
            }
            Ok(tlv) if !tlv.flags.malformed => StampTlv::decode(tlv.kind, tlv.value).ok(),
            _ => None,
        };
        let Some(option) = decoded else {
            read.malformed = true;
            break;
        };
        read.options.push(option);
    }
    read
}

/// Content of the first Extra Padding option of a packet without authentication; `None` when there is none.
#[must_use]
pub fn first_padding(datagram: &[u8]) -> Option<&[u8]> {
    let padding = |tlv: RawTlv<'_>| tlv.kind == EXTRA_PADDING;
    // Fast path: nearly always the first option.
    let area = AuthenticationMode::Unauthenticated.after_base(datagram);
    let first: [u8; HEADER_LENGTH] = *area.first_chunk()?;
    if first[1] == EXTRA_PADDING {
        let length = usize::from(u16::from_be_bytes([first[2], first[3]]));
        return area.get(HEADER_LENGTH..HEADER_LENGTH + length);
    }
    iterate(area).filter_map(Result::ok).find(|tlv| padding(*tlv)).map(|tlv| tlv.value)
}

#[cfg(test)]
mod tests;
