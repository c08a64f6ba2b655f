//! Filling in the options of an answer, in place: they keep their lengths (RFC 8972 §4).

use core::net::IpAddr;

use linerate_units::Dscp;

use super::Received;
use crate::stamp::tlv::location::{PORTS_LENGTH, address_octets, kind};
use crate::stamp::tlv::{
    self, AccessReport, ClassOfService, DirectMeasurement, Flags, FollowUpTelemetry, HEADER_LENGTH, Integrity, Place,
    SynchronizationSource, TimestampInformation, TimestampMethod,
};
use crate::stamp::{HmacKey, Mode, SenderPacket, Timestamp};

/// What options may ask for.
pub(super) struct Facts<'a> {
    pub(super) received: &'a Received<'a>,
    pub(super) mode: Mode,
    /// The key that fits the packet, or that its options may be checked by.
    pub(super) key: Option<&'a HmacKey>,
    pub(super) clock_source: Option<SynchronizationSource>,
    /// Packets of the session received, this one included, and number and time of the answer before; `None` without
    /// state.
    pub(super) session: Option<(u32, Option<(u32, Timestamp)>)>,
}

/// Fills in the options of an answer, a copy of the packet behind its base; gives the codepoint that is asked for, if
/// one is. The answer's own sequence number already stands in it.
pub(super) fn fill_in(answer: &mut [u8], facts: &Facts<'_>) -> Option<Dscp> {
    let base = facts.mode.base_length().to_usize();
    let area = answer.get(base..).unwrap_or_default();
    // Zeros are the padding of a TWAMP Light sender, not options of the reserved type 0; so is what follows the random
    // padding of one. Both go back as they came.
    let light = facts.mode == Mode::Unauthenticated && SenderPacket::is_padded(facts.received.bytes);
    if light || area.iter().all(|byte| *byte == 0) {
        return None;
    }
    let places: Vec<_> = tlv::places(area).collect();
    if tlv::check_integrity(facts.received.bytes, facts.mode, facts.key) == Integrity::Failed {
        refuse_all(&mut answer[base..], &places);
        return None;
    }
    let mut wanted = None;
    for place in places {
        let (sequence_and_base, area) = answer.split_at_mut(base);
        match place {
            Err((header, _)) => {
                set_flags(area, header, Flags { malformed: true, ..Flags::default() });
                break;
            }
            Ok(place) if place.kind == tlv::HMAC => {
                let Some(key) = facts.key else { break };
                set_flags(area, place.header, Flags::default());
                let hmac = tlv::sign(&sequence_and_base[..4], &area[..place.header], key);
                area[place.header + HEADER_LENGTH..place.end].copy_from_slice(&hmac);
            }
            Ok(place) => {
                let flags = fill_in_one(area, place, facts, &mut wanted);
                set_flags(area, place.header, flags);
                if flags.malformed {
                    break;
                }
            }
        }
    }
    wanted
}

fn refuse_all(area: &mut [u8], places: &[Result<Place, (usize, tlv::Malformed)>]) {
    for place in places {
        let (header, unrecognized) = match place {
            Ok(place) => (place.header, !is_known(place.kind)),
            Err((header, malformed)) => (*header, !is_known(malformed.kind)),
        };
        set_flags(area, header, Flags { unrecognized, malformed: place.is_err(), integrity_failed: true });
    }
}

const fn is_known(kind: u8) -> bool {
    matches!(kind, tlv::EXTRA_PADDING..=tlv::HMAC)
}

fn set_flags(area: &mut [u8], header: usize, flags: Flags) {
    if let Some(octet) = area.get_mut(header) {
        *octet = flags.octet();
    }
}

/// Fills in the value of an option; what became of it.
fn fill_in_one(area: &mut [u8], place: Place, facts: &Facts<'_>, wanted: &mut Option<Dscp>) -> Flags {
    let value = &mut area[place.header + HEADER_LENGTH..place.end];
    let fitted = match place.kind {
        tlv::EXTRA_PADDING => true,
        tlv::LOCATION => fill_in_location(value, facts),
        tlv::TIMESTAMP_INFORMATION => replace(value, |_: [u8; 4]| timestamp_information(facts).encode()),
        tlv::CLASS_OF_SERVICE => replace(value, |asked| class_of_service(asked, facts, wanted).encode()),
        tlv::DIRECT_MEASUREMENT => replace(value, |asked| direct_measurement(asked, facts).encode()),
        tlv::FOLLOW_UP_TELEMETRY => fill_in_follow_up(value, facts),
        tlv::ACCESS_REPORT => match <[u8; 4]>::try_from(&*value) {
            // "MUST be discarded" (RFC 8972 §4.6): the sender skips it, and the packet keeps its length.
            Ok(report) if !AccessReport::decode(report).is_valid() => {
                return Flags { unrecognized: true, ..Flags::default() };
            }
            report => report.is_ok(),
        },
        _ => return Flags { unrecognized: true, ..Flags::default() },
    };
    Flags { malformed: !fitted, ..Flags::default() }
}

/// Puts a new value in the place of the old one; whether the length is right.
fn replace<const N: usize>(value: &mut [u8], with: impl FnOnce([u8; N]) -> [u8; N]) -> bool {
    match <&mut [u8; N]>::try_from(value) {
        Ok(value) => {
            *value = with(*value);
            true
        }
        Err(_) => false,
    }
}

fn timestamp_information(facts: &Facts<'_>) -> TimestampInformation {
    TimestampInformation {
        arrival_source: facts.clock_source,
        arrival_method: Some(facts.received.method),
        departure_source: facts.clock_source,
        departure_method: Some(TimestampMethod::Software),
    }
}

fn class_of_service(asked: [u8; 4], facts: &Facts<'_>, wanted: &mut Option<Dscp>) -> ClassOfService {
    let asked = ClassOfService::decode(asked);
    let arrived = facts.received.type_of_service.unwrap_or_default();
    *wanted = Some(asked.wanted);
    // Any wish may be used here, so that RP stays zero.
    ClassOfService { wanted: asked.wanted, arrived: arrived.dscp(), arrived_ecn: arrived.get() & 3, reverse_path: 0 }
}

fn direct_measurement(asked: [u8; 12], facts: &Facts<'_>) -> DirectMeasurement {
    let packets = facts.session.map_or(0, |(packets, _)| packets);
    let sender_transmitted = DirectMeasurement::decode(asked).sender_transmitted;
    DirectMeasurement { sender_transmitted, reflector_received: packets, reflector_transmitted: packets }
}

fn fill_in_follow_up(value: &mut [u8], facts: &Facts<'_>) -> bool {
    let previous = facts.session.and_then(|(_, previous)| previous);
    let telemetry = previous.map_or_else(FollowUpTelemetry::default, |(sequence, timestamp)| FollowUpTelemetry {
        sequence,
        timestamp,
        method: Some(TimestampMethod::Software),
    });
    let fitted = replace(value, |_: [u8; 16]| telemetry.encode());
    if !fitted {
        // RFC 8972 §4.7, with erratum 8339.
        let fields = value.len().min(12);
        value[..fields].fill(0);
    }
    fitted
}

fn fill_in_location(value: &mut [u8], facts: &Facts<'_>) -> bool {
    let Some((ends, parts)) = value.split_at_mut_checked(PORTS_LENGTH) else { return false };
    let Received { source, destination, .. } = facts.received;
    ends.copy_from_slice(&[destination.port().to_be_bytes(), source.port().to_be_bytes()].concat());
    for place in tlv::places(parts) {
        match place {
            Ok(place) => {
                let flags = fill_in_part(parts, place, facts);
                set_flags(parts, place.header, flags);
            }
            Err((header, _)) => {
                set_flags(parts, header, Flags { malformed: true, ..Flags::default() });
                return false;
            }
        }
    }
    true
}

/// The general question becomes the answer of the address's family, in type and value (RFC 8972 §4.2.2).
fn fill_in_part(parts: &mut [u8], place: Place, facts: &Facts<'_>) -> Flags {
    let Received { source, destination, .. } = facts.received;
    let (families, address) = match place.kind {
        kind::DESTINATION => ((kind::DESTINATION_IPV4, kind::DESTINATION_IPV6), destination.ip().to_canonical()),
        kind::SOURCE => ((kind::SOURCE_IPV4, kind::SOURCE_IPV6), source.ip().to_canonical()),
        // A UDP socket does not see it, for which the RFC has an EUI-64 of zeros.
        kind::SOURCE_HARDWARE => {
            let value = &mut parts[place.header + HEADER_LENGTH..place.end];
            value.fill(0);
            let fits = value.len() == 8;
            parts[place.header + 1] = if fits { kind::SOURCE_EUI64 } else { place.kind };
            return Flags { malformed: !fits, ..Flags::default() };
        }
        _ => return Flags { unrecognized: true, ..Flags::default() },
    };
    let value = &mut parts[place.header + HEADER_LENGTH..place.end];
    if value.len() != 16 {
        return Flags { malformed: true, ..Flags::default() };
    }
    if address.is_unspecified() {
        value.fill(0);
    } else {
        value.copy_from_slice(&address_octets(address));
    }
    parts[place.header + 1] = if matches!(address, IpAddr::V4(_)) { families.0 } else { families.1 };
    Flags::default()
}
