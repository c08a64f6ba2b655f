//! Fills in the options of an answer, in place: they keep their lengths (RFC 8972 §4).

use core::net::IpAddr;

use linerate_units::TypeOfService;

use super::ReceivedDatagram;
use crate::stamp::tlv::location::{PORTS_LENGTH, address_octets, kind};
use crate::stamp::tlv::{
    self, AccessReport, ClassOfService, DirectMeasurement, FollowUpTelemetry, HEADER_LENGTH, SynchronizationSource,
    TimestampInformation, TimestampMethod, TlvFlags, TlvIntegrity, TlvSpan,
};
use crate::stamp::{AuthenticationMode, HmacKey, SenderPacket, StampTimestamp};

/// Facts that options may request.
pub(super) struct OptionFacts<'a> {
    pub(super) received: &'a ReceivedDatagram<'a>,
    pub(super) mode: AuthenticationMode,
    /// Key that matches the packet, or its options.
    pub(super) key: Option<&'a HmacKey>,
    pub(super) clock_source: Option<SynchronizationSource>,
    /// Packets received in the session, this one included, and number and timestamp of the previous answer; `None` when
    /// stateless.
    pub(super) session: Option<(u32, Option<(u32, StampTimestamp)>)>,
}

/// Fills in the options of an answer, a copy of the packet after its base; returns the requested codepoint, if any. The
/// answer's own sequence number must be written before.
pub(super) fn fill_in(answer: &mut [u8], facts: &OptionFacts<'_>) -> Option<TypeOfService> {
    let base = facts.mode.base_length().to_usize();
    let area = answer.get(base..).unwrap_or_default();
    // Zeros are the padding of a TWAMP Light sender, not options of the reserved type 0; bytes after its random padding
    // are padding, too. Both are returned unchanged.
    let light = facts.mode == AuthenticationMode::Unauthenticated && SenderPacket::is_padded(facts.received.bytes);
    if light || area.iter().all(|byte| *byte == 0) {
        return None;
    }
    let places: Vec<_> = tlv::tlv_spans(area).collect();
    if tlv::check_integrity(facts.received.bytes, facts.mode, facts.key) == TlvIntegrity::Failed {
        flag_all(&mut answer[base..], &places);
        return None;
    }
    let mut wanted = None;
    for place in places {
        let (sequence_and_base, area) = answer.split_at_mut(base);
        match place {
            Err((header, _)) => {
                set_flags(area, header, TlvFlags { malformed: true, ..TlvFlags::default() });
                break;
            }
            Ok(place) if place.kind == tlv::HMAC => {
                let Some(key) = facts.key else { break };
                set_flags(area, place.header, TlvFlags::default());
                let hmac = tlv::sign(&sequence_and_base[..4], &area[..place.header], key);
                area[place.header + HEADER_LENGTH..place.end].copy_from_slice(&hmac);
            }
            Ok(place) => {
                let flags = fill_in_option(area, place, facts, &mut wanted);
                set_flags(area, place.header, flags);
                if flags.malformed {
                    break;
                }
            }
        }
    }
    wanted
}

fn flag_all(area: &mut [u8], places: &[Result<TlvSpan, (usize, tlv::MalformedTlv)>]) {
    for place in places {
        let (header, unrecognized) = match place {
            Ok(place) => (place.header, !is_known(place.kind)),
            Err((header, malformed)) => (*header, !is_known(malformed.kind)),
        };
        set_flags(area, header, TlvFlags { unrecognized, malformed: place.is_err(), integrity_failed: true });
    }
}

const fn is_known(kind: u8) -> bool {
    matches!(kind, tlv::EXTRA_PADDING..=tlv::HMAC)
}

fn set_flags(area: &mut [u8], header: usize, flags: TlvFlags) {
    if let Some(octet) = area.get_mut(header) {
        *octet = flags.octet();
    }
}

/// Fills in the value of an option; returns its flags.
fn fill_in_option(
    area: &mut [u8],
    place: TlvSpan,
    facts: &OptionFacts<'_>,
    wanted: &mut Option<TypeOfService>,
) -> TlvFlags {
    let value = &mut area[place.header + HEADER_LENGTH..place.end];
    let fitted = match place.kind {
        tlv::EXTRA_PADDING => true,
        tlv::LOCATION => fill_in_location(value, facts),
        tlv::TIMESTAMP_INFORMATION => replace_value(value, |_: [u8; 4]| timestamp_information(facts).encode()),
        tlv::CLASS_OF_SERVICE => replace_value(value, |asked| class_of_service(asked, facts, wanted).encode()),
        tlv::DIRECT_MEASUREMENT => replace_value(value, |asked| direct_measurement(asked, facts).encode()),
        tlv::FOLLOW_UP_TELEMETRY => fill_in_follow_up(value, facts),
        tlv::ACCESS_REPORT => match <[u8; 4]>::try_from(&*value) {
            // "MUST be discarded" (RFC 8972 §4.6): the sender skips it, and the packet keeps its length.
            Ok(report) if !AccessReport::decode(report).is_valid() => {
                return TlvFlags { unrecognized: true, ..TlvFlags::default() };
            }
            report => report.is_ok(),
        },
        _ => return TlvFlags { unrecognized: true, ..TlvFlags::default() },
    };
    TlvFlags { malformed: !fitted, ..TlvFlags::default() }
}

/// Replaces the value; returns true when the length is right.
fn replace_value<const N: usize>(value: &mut [u8], with: impl FnOnce([u8; N]) -> [u8; N]) -> bool {
    match <&mut [u8; N]>::try_from(value) {
        Ok(value) => {
            *value = with(*value);
            true
        }
        Err(_) => false,
    }
}

fn timestamp_information(facts: &OptionFacts<'_>) -> TimestampInformation {
    TimestampInformation {
        arrival_source: facts.clock_source,
        arrival_method: Some(facts.received.method),
        departure_source: facts.clock_source,
        departure_method: Some(TimestampMethod::Software),
    }
}

fn class_of_service(asked: [u8; 4], facts: &OptionFacts<'_>, wanted: &mut Option<TypeOfService>) -> ClassOfService {
    let asked = ClassOfService::decode(asked);
    let arrived = facts.received.type_of_service.unwrap_or_default();
    *wanted = Some(TypeOfService::new(asked.requested.get() << 2 | asked.requested_ecn & 3));
    // Any requested codepoint may be used, so RP stays zero.
    ClassOfService {
        requested: asked.requested,
        received: arrived.dscp(),
        arrived_ecn: arrived.get() & 3,
        reverse_path: 0,
        requested_ecn: asked.requested_ecn,
    }
}

fn direct_measurement(asked: [u8; 12], facts: &OptionFacts<'_>) -> DirectMeasurement {
    let packets = facts.session.map_or(0, |(packets, _)| packets);
    let sender_transmitted = DirectMeasurement::decode(asked).sender_transmitted;
    DirectMeasurement { sender_transmitted, reflector_received: packets, reflector_transmitted: packets }
}

fn fill_in_follow_up(value: &mut [u8], facts: &OptionFacts<'_>) -> bool {
    let previous = facts.session.and_then(|(_, previous)| previous);
    let telemetry = previous.map_or_else(FollowUpTelemetry::default, |(sequence, timestamp)| FollowUpTelemetry {
        sequence,
        timestamp,
        method: Some(TimestampMethod::Software),
    });
    let fitted = replace_value(value, |_: [u8; 16]| telemetry.encode());
    if !fitted {
        // RFC 8972 §4.7, with erratum 8339.
        let fields = value.len().min(12);
        value[..fields].fill(0);
    }
    fitted
}

fn fill_in_location(value: &mut [u8], facts: &OptionFacts<'_>) -> bool {
    let Some((ends, parts)) = value.split_at_mut_checked(PORTS_LENGTH) else { return false };
    let ReceivedDatagram { source, destination, .. } = facts.received;
    ends.copy_from_slice(&[destination.port().to_be_bytes(), source.port().to_be_bytes()].concat());
    for place in tlv::tlv_spans(parts) {
        match place {
            Ok(place) => {
                let flags = fill_in_sub_tlv(parts, place, facts);
                set_flags(parts, place.header, flags);
            }
            Err((header, _)) => {
                set_flags(parts, header, TlvFlags { malformed: true, ..TlvFlags::default() });
                return false;
            }
        }
    }
    true
}

/// Fills in a sub-TLV: the general type becomes the type of the address family (RFC 8972 §4.2.2).
fn fill_in_sub_tlv(parts: &mut [u8], place: TlvSpan, facts: &OptionFacts<'_>) -> TlvFlags {
    let ReceivedDatagram { source, destination, .. } = facts.received;
    let (families, address) = match place.kind {
        kind::DESTINATION => ((kind::DESTINATION_IPV4, kind::DESTINATION_IPV6), destination.ip().to_canonical()),
        kind::SOURCE => ((kind::SOURCE_IPV4, kind::SOURCE_IPV6), source.ip().to_canonical()),
        // Unknown to a UDP socket: the RFC specifies an EUI-64 of zeros.
        kind::SOURCE_HARDWARE => {
            let value = &mut parts[place.header + HEADER_LENGTH..place.end];
            value.fill(0);
            let fits = value.len() == 8;
            parts[place.header + 1] = if fits { kind::SOURCE_EUI64 } else { place.kind };
            return TlvFlags { malformed: !fits, ..TlvFlags::default() };
        }
        _ => return TlvFlags { unrecognized: true, ..TlvFlags::default() },
    };
    let value = &mut parts[place.header + HEADER_LENGTH..place.end];
    if value.len() != 16 {
        return TlvFlags { malformed: true, ..TlvFlags::default() };
    }
    if address.is_unspecified() {
        value.fill(0);
    } else {
        value.copy_from_slice(&address_octets(address));
    }
    parts[place.header + 1] = if matches!(address, IpAddr::V4(_)) { families.0 } else { families.1 };
    TlvFlags::default()
}
