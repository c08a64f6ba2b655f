//! What may follow a base packet: options as type, length and value (RFC 8972 §4).
//!
//! Each begins with an octet of flags, by which a reflector says what became of it, an octet of type and two of length.
//! [`iterate`] reads them as they stand, [`Tlv`] is what they mean, [`read_answer`] is what a sender may take from an
//! answer.

pub(super) mod location;
mod value;

pub use location::{HardwareAddress, Location, LocationPart};
pub use value::{
    AccessReport, ClassOfService, DirectMeasurement, FollowUpTelemetry, SynchronizationSource, TimestampInformation,
    TimestampMethod,
};

use super::key::HMAC_LENGTH;
use super::{HmacKey, Mode};

/// Type of [`Tlv::ExtraPadding`].
pub const EXTRA_PADDING: u8 = 1;
/// Type of [`Tlv::Location`].
pub const LOCATION: u8 = 2;
/// Type of [`Tlv::TimestampInformation`].
pub const TIMESTAMP_INFORMATION: u8 = 3;
/// Type of [`Tlv::ClassOfService`].
pub const CLASS_OF_SERVICE: u8 = 4;
/// Type of [`Tlv::DirectMeasurement`].
pub const DIRECT_MEASUREMENT: u8 = 5;
/// Type of [`Tlv::AccessReport`].
pub const ACCESS_REPORT: u8 = 6;
/// Type of [`Tlv::FollowUpTelemetry`].
pub const FOLLOW_UP_TELEMETRY: u8 = 7;
/// Type of [`Tlv::Hmac`].
pub const HMAC: u8 = 8;

/// Bytes before the value.
pub(super) const HEADER_LENGTH: usize = 4;

/// The flags of an option (RFC 8972 §4). Its other five bits are sent as zero and not looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// U: set by the sender, and cleared by a reflector that knows the type.
    pub unrecognized: bool,
    /// M: the length is none that the type has, or goes beyond the packet.
    pub malformed: bool,
    /// I: the HMAC of the options is wrong.
    pub integrity_failed: bool,
}

impl Flags {
    /// Of an option that is sent to a reflector.
    pub const REQUEST: Self = Self { unrecognized: true, malformed: false, integrity_failed: false };

    /// From the octet on the wire.
    #[must_use]
    pub const fn from_octet(octet: u8) -> Self {
        Self { unrecognized: octet & 0x80 != 0, malformed: octet & 0x40 != 0, integrity_failed: octet & 0x20 != 0 }
    }

    /// The octet on the wire.
    #[must_use]
    pub const fn octet(self) -> u8 {
        (self.unrecognized as u8) << 7 | (self.malformed as u8) << 6 | (self.integrity_failed as u8) << 5
    }
}

/// An option as it stands in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawTlv<'a> {
    /// Its flags.
    pub flags: Flags,
    /// Its type.
    pub kind: u8,
    /// Its value.
    pub value: &'a [u8],
}

/// An option whose length is none that its type has, or goes beyond the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a STAMP option of type {kind} has a length that the type or the packet does not allow")]
pub struct Malformed {
    /// Its type.
    pub kind: u8,
}

/// An option.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tlv {
    /// Makes the packet longer; the content means nothing (RFC 8972 §4.1).
    ExtraPadding(Vec<u8>),
    /// Asks where the packet arrived (RFC 8972 §4.2).
    Location(Location),
    /// Asks how the reflector's clock is set, and where its times are taken (RFC 8972 §4.3).
    TimestampInformation(TimestampInformation),
    /// Asks with which class the packet arrived, and for a class of the answer (RFC 8972 §4.4).
    ClassOfService(ClassOfService),
    /// Counts of data packets beside the test (RFC 8972 §4.5).
    DirectMeasurement(DirectMeasurement),
    /// Says which access network the sender uses (RFC 8972 §4.6).
    AccessReport(AccessReport),
    /// Asks when the answer before this one really left (RFC 8972 §4.7).
    FollowUpTelemetry(FollowUpTelemetry),
    /// Protects the options before it, truncated HMAC-SHA-256 (RFC 8972 §4.8). Encoding a packet with a key adds it.
    Hmac([u8; HMAC_LENGTH]),
    /// A type that is not known here.
    Unknown {
        /// Its type.
        kind: u8,
        /// Its value.
        value: Vec<u8>,
    },
}

impl Tlv {
    /// What type and value mean.
    pub fn decode(kind: u8, value: &[u8]) -> Result<Self, Malformed> {
        let malformed = Malformed { kind };
        Ok(match kind {
            EXTRA_PADDING => Self::ExtraPadding(value.to_vec()),
            LOCATION => Self::Location(Location::decode(value).ok_or(malformed)?),
            TIMESTAMP_INFORMATION => Self::TimestampInformation(TimestampInformation::decode(exactly(kind, value)?)),
            CLASS_OF_SERVICE => Self::ClassOfService(ClassOfService::decode(exactly(kind, value)?)),
            DIRECT_MEASUREMENT => Self::DirectMeasurement(DirectMeasurement::decode(exactly(kind, value)?)),
            ACCESS_REPORT => Self::AccessReport(AccessReport::decode(exactly(kind, value)?)),
            FOLLOW_UP_TELEMETRY => Self::FollowUpTelemetry(FollowUpTelemetry::decode(exactly(kind, value)?)),
            HMAC => Self::Hmac(exactly(kind, value)?),
            _ => Self::Unknown { kind, value: value.to_vec() },
        })
    }

    /// Its type.
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

    /// Appends the option as a sender sends it. Of a value, the first 65535 bytes are.
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

fn exactly<const N: usize>(kind: u8, value: &[u8]) -> Result<[u8; N], Malformed> {
    value.try_into().map_err(|_| Malformed { kind })
}

/// Appends the header of an option as a sender sends it; lengths above 65535 are that.
pub(super) fn encode_header(datagram: &mut Vec<u8>, kind: u8, length: usize) {
    datagram.extend([Flags::REQUEST.octet(), kind]);
    datagram.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
}

/// Makes the whole of `area` an Extra Padding option, whose content stays. Less than a header is made zero.
pub(super) fn write_padding(area: &mut [u8]) {
    let Some((header, content)) = area.split_first_chunk_mut::<HEADER_LENGTH>() else {
        area.fill(0);
        return;
    };
    let [high, low] = u16::try_from(content.len()).unwrap_or(u16::MAX).to_be_bytes();
    *header = [Flags::REQUEST.octet(), EXTRA_PADDING, high, low];
}

/// Reads the options of `area`, what follows a base packet ([`super::options`]). The first one that goes beyond the
/// packet is the last item; three bytes or fewer at the end are no option.
pub fn iterate(area: &[u8]) -> impl Iterator<Item = Result<RawTlv<'_>, Malformed>> {
    places(area).map(|place| match place {
        Ok(place) => Ok(RawTlv {
            flags: Flags::from_octet(area[place.header]),
            kind: place.kind,
            value: &area[place.header + HEADER_LENGTH..place.end],
        }),
        Err((_, malformed)) => Err(malformed),
    })
}

/// Where an option stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) kind: u8,
    pub(super) header: usize,
    pub(super) end: usize,
}

/// Where the options stand; of one that goes beyond the packet, where it begins.
pub(super) fn places(area: &[u8]) -> impl Iterator<Item = Result<Place, (usize, Malformed)>> + use<> {
    // The headers alone are kept, so that the bytes may be written while they are walked through.
    let mut found = Vec::new();
    let mut header = 0;
    while let Some([_, kind, high, low]) = area.get(header..).and_then(|rest| rest.first_chunk()).copied() {
        let end = header + HEADER_LENGTH + usize::from(u16::from_be_bytes([high, low]));
        if end > area.len() {
            found.push(Err((header, Malformed { kind })));
            break;
        }
        found.push(Ok(Place { kind, header, end }));
        header = end;
    }
    found.into_iter()
}

/// The HMAC of an HMAC option: over the sequence number of the base packet and all options before it (RFC 8972 §4.8).
pub(super) fn sign(sequence: &[u8], before: &[u8], key: &HmacKey) -> [u8; HMAC_LENGTH] {
    key.sign(&[sequence, before])
}

/// Whether the options of a packet may be believed (RFC 8972 §4.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Integrity {
    /// The HMAC option is right, or none is needed.
    Good,
    /// It is wrong, in the wrong place, missing, or there is no key to check it by.
    Failed,
}

/// Checks the HMAC option of `area`. It must follow all options but padding; with authentication it must be there
/// unless all is padding.
pub(super) fn check_integrity(datagram: &[u8], mode: Mode, key: Option<&HmacKey>) -> Integrity {
    let area = mode.after_base(datagram);
    let well_formed: Vec<Place> = places(area).filter_map(Result::ok).collect();
    let Some(at) = well_formed.iter().position(|place| place.kind == HMAC) else {
        let needs_one = mode == Mode::Authenticated && well_formed.iter().any(|place| place.kind != EXTRA_PADDING);
        return if needs_one { Integrity::Failed } else { Integrity::Good };
    };
    let place = well_formed[at];
    let only_padding_follows = well_formed[at + 1..].iter().all(|place| place.kind == EXTRA_PADDING);
    let hmac = &area[place.header + HEADER_LENGTH..place.end];
    let is_right = key.is_some_and(|key| key.verify(&[&datagram[..4], &area[..place.header]], hmac));
    if only_padding_follows && is_right { Integrity::Good } else { Integrity::Failed }
}

/// What a sender may take from the options of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerOptions {
    /// What the reflector filled in.
    pub options: Vec<Tlv>,
    /// Types that the reflector does not know. TWAMP Light reflectors, and STAMP ones without RFC 8972, know none.
    pub unrecognized: Vec<u8>,
    /// An option is malformed, or the reflector found it so: what follows it is not looked at.
    pub malformed: bool,
    /// The HMAC is wrong, or the reflector found it so: no option is believed.
    pub integrity_failed: bool,
}

/// Reads the options of an answer as a sender must (RFC 8972 §4): with a wrong HMAC none, up to the first malformed one,
/// and without those that the reflector does not know. The base packet has been read and checked before.
#[must_use]
pub fn read_answer(answer: &[u8], mode: Mode, key: Option<&HmacKey>) -> AnswerOptions {
    let mut read = AnswerOptions::default();
    let area = mode.after_base(answer);
    let refused = iterate(area).filter_map(Result::ok).any(|tlv| tlv.flags.integrity_failed);
    if refused || check_integrity(answer, mode, key) == Integrity::Failed {
        read.integrity_failed = true;
        return read;
    }
    for tlv in iterate(area) {
        let decoded = match tlv {
            Ok(tlv) if tlv.flags.unrecognized => {
                read.unrecognized.push(tlv.kind);
                continue;
            }
            Ok(tlv) if !tlv.flags.malformed => Tlv::decode(tlv.kind, tlv.value).ok(),
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

/// The content of the first Extra Padding option of a packet without authentication; `None` when there is none.
#[must_use]
pub fn first_padding(datagram: &[u8]) -> Option<&[u8]> {
    let padding = |tlv: RawTlv<'_>| tlv.kind == EXTRA_PADDING;
    // Nearly always the first; the rest of a long list is not worth a walk for each packet.
    let area = Mode::Unauthenticated.after_base(datagram);
    let first: [u8; HEADER_LENGTH] = *area.first_chunk()?;
    if first[1] == EXTRA_PADDING {
        let length = usize::from(u16::from_be_bytes([first[2], first[3]]));
        return area.get(HEADER_LENGTH..HEADER_LENGTH + length);
    }
    iterate(area).filter_map(Result::ok).find(|tlv| padding(*tlv)).map(|tlv| tlv.value)
}

#[cfg(test)]
mod tests;
