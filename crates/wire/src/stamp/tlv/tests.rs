use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linerate_units::{ByteCount, Dscp, Port};
use proptest::prelude::*;

use super::*;
use crate::stamp::{ReflectorPacket, SenderPacket, StampTimestamp};

fn encoded(option: &StampTlv) -> Vec<u8> {
    let mut bytes = Vec::new();
    option.encode(&mut bytes);
    bytes
}

fn codepoint(codepoint: u8) -> Dscp {
    Dscp::new(codepoint).expect("below 64")
}

#[test]
fn fixed_options_have_the_layout_of_their_figures() {
    let class = ClassOfService {
        requested: codepoint(46),
        received: codepoint(0b10_0001),
        arrived_ecn: 0b11,
        reverse_path: 1,
        requested_ecn: 0,
    };
    // Figure 12: 101110 100001 11 01, then 16 bits reserved, of which the first two request ECN.
    assert_eq!(encoded(&StampTlv::ClassOfService(class)), [0x80, 4, 0, 4, 0b1011_1010, 0b0001_1101, 0, 0]);
    let class = ClassOfService { requested_ecn: 0b01, ..class };
    assert_eq!(encoded(&StampTlv::ClassOfService(class)), [0x80, 4, 0, 4, 0b1011_1010, 0b0001_1101, 0b0100_0000, 0]);
    let information = TimestampInformation {
        arrival_source: Some(SynchronizationSource::Ptp),
        arrival_method: Some(TimestampMethod::Hardware),
        departure_source: Some(SynchronizationSource::FreeRunning),
        departure_method: Some(TimestampMethod::Software),
    };
    assert_eq!(encoded(&StampTlv::TimestampInformation(information)), [0x80, 3, 0, 4, 2, 1, 5, 2]);
    let counts = DirectMeasurement { sender_transmitted: 1, reflector_received: 2, reflector_transmitted: 0x0300_0000 };
    assert_eq!(encoded(&StampTlv::DirectMeasurement(counts)), [0x80, 5, 0, 12, 0, 0, 0, 1, 0, 0, 0, 2, 3, 0, 0, 0]);
    let report = AccessReport { access: 2, return_code: 1 };
    assert_eq!(encoded(&StampTlv::AccessReport(report)), [0x80, 6, 0, 4, 0x20, 1, 0, 0]);
    let telemetry = FollowUpTelemetry {
        sequence: 0x0102_0304,
        timestamp: StampTimestamp::from_bits(0x1112_1314_1516_1718),
        method: Some(TimestampMethod::Software),
    };
    let expected = [0x80, 7, 0, 16, 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 2, 0, 0, 0];
    assert_eq!(encoded(&StampTlv::FollowUpTelemetry(telemetry)), expected);
    assert_eq!(encoded(&StampTlv::Hmac([9; 16]))[..5], [0x80, 8, 0, 16, 9]);
    assert_eq!(encoded(&StampTlv::ExtraPadding(vec![7; 2])), [0x80, 1, 0, 2, 7, 7]);
}

#[test]
fn a_location_has_ports_and_parts() {
    let asked = encoded(&StampTlv::Location(LocationTlv::request()));
    // Figure 7 and 10: ports of zero, then parts of 20 bytes each, types 4 and 7.
    assert_eq!(asked[..12], [0x80, 2, 0, 44, 0, 0, 0, 0, 0x80, 4, 0, 16]);
    assert_eq!(asked[28..32], [0x80, 7, 0, 16]);
    assert!(asked[12..28].iter().chain(&asked[32..]).all(|byte| *byte == 0));
    let answered = LocationTlv {
        destination_port: Port::new(862),
        source_port: Port::new(40000),
        parts: vec![
            LocationSubTlv::SourceHardware(Some(HardwareAddress::Eui48([1, 2, 3, 4, 5, 6]))),
            LocationSubTlv::SourceHardware(Some(HardwareAddress::Eui64([0; 8]))),
            LocationSubTlv::Destination(Some(Ipv4Addr::new(192, 0, 2, 1).into())),
            LocationSubTlv::Source(Some(Ipv6Addr::LOCALHOST.into())),
            LocationSubTlv::Unknown { kind: 200, value: vec![1] },
        ],
    };
    let bytes = encoded(&StampTlv::Location(answered.clone()));
    assert_eq!(bytes[4..8], [3, 94, 156, 64]);
    assert_eq!(bytes[8..20], [0x80, 2, 0, 8, 1, 2, 3, 4, 5, 6, 0, 0]);
    assert_eq!(bytes[32..41], [0x80, 5, 0, 16, 192, 0, 2, 1, 0]);
    assert_eq!(StampTlv::decode(LOCATION, &bytes[4..]), Ok(StampTlv::Location(answered)));
    assert_eq!(StampTlv::decode(LOCATION, &[0; 3]), Err(MalformedTlv { kind: LOCATION }));
    assert_eq!(StampTlv::decode(LOCATION, &[0, 0, 0, 0, 0x80, 4, 0, 16, 1]), Err(MalformedTlv { kind: LOCATION }));
}

#[test]
fn wrong_lengths_are_malformed() {
    let lengths = [(3, 4), (4, 4), (5, 12), (6, 4), (7, 16), (8, 16)];
    for (kind, length) in lengths {
        for other in [0, length - 1, length + 1, 40] {
            assert_eq!(StampTlv::decode(kind, &vec![0; other]), Err(MalformedTlv { kind }), "{kind} of {other}");
        }
        assert_eq!(StampTlv::decode(kind, &vec![0; length]).map(|option| option.kind()), Ok(kind));
    }
}

#[test]
fn an_option_that_exceeds_the_packet_is_the_last() {
    let area = [0x80, 200, 0, 1, 7, 0x80, 1, 0, 9, 1, 2];
    let read: Vec<_> = iterate(&area).collect();
    let first = RawTlv { flags: TlvFlags::REQUEST, kind: 200, value: &[7] };
    assert_eq!(read, [Ok(first), Err(MalformedTlv { kind: 1 })]);
    assert_eq!(iterate(&area[..8]).count(), 1, "three bytes are not an option");
}

#[test]
fn a_sender_uses_options_that_the_reflector_filled_in() {
    let class = ClassOfService { requested: codepoint(46), ..ClassOfService::default() };
    let asked = [
        StampTlv::ClassOfService(class),
        StampTlv::Unknown { kind: 99, value: vec![] },
        StampTlv::ExtraPadding(vec![0; 4]),
    ];
    let mut answer = ReflectorPacket::default().encode_with(&asked, ByteCount::ZERO, None);
    answer[44] = 0;
    answer[56] = 0;
    let read = read_answer_options(&answer, AuthenticationMode::Unauthenticated, None);
    assert_eq!(read.options, [asked[0].clone(), asked[2].clone()]);
    assert_eq!((read.unrecognized, read.malformed, read.integrity_failed), (vec![99], false, false));
    // M: nothing after it. I: nothing at all.
    answer[44] = 0x40;
    let read = read_answer_options(&answer, AuthenticationMode::Unauthenticated, None);
    assert_eq!((read.options.len(), read.malformed), (0, true));
    answer[56] = 0x20;
    let read = read_answer_options(&answer, AuthenticationMode::Unauthenticated, None);
    assert_eq!((read.options.len(), read.malformed, read.integrity_failed), (0, false, true));
}

#[cfg(feature = "auth")]
#[test]
fn an_hmac_is_valid_at_its_position_only() {
    let key = HmacKey::new(&[3; 32]).expect("a key");
    let asked = [StampTlv::AccessReport(AccessReport { access: 1, return_code: 1 })];
    let sent = SenderPacket::default().encode_with(&asked, ByteCount::new(200), Some(&key));
    let check = |datagram: &[u8]| check_integrity(datagram, AuthenticationMode::Authenticated, Some(&key));
    assert_eq!(check(&sent), TlvIntegrity::Good);
    assert_eq!(check_integrity(&sent, AuthenticationMode::Authenticated, None), TlvIntegrity::Failed, "no key");
    for at in [3, 113, 117, 125] {
        let mut changed = sent.clone();
        changed[at] ^= 1;
        assert_eq!(check(&changed), TlvIntegrity::Failed, "byte {at}");
    }
    let mut followed = sent[..140].to_vec();
    asked[0].encode(&mut followed);
    assert_eq!(check(&followed), TlvIntegrity::Failed, "an option after the HMAC");
    assert_eq!(check(&sent[..120]), TlvIntegrity::Failed, "options without an HMAC");
    assert_eq!(check(&SenderPacket::default().encode_with(&[], ByteCount::new(300), Some(&key))), TlvIntegrity::Good);
}

#[test]
fn padding_is_found_at_any_position() {
    let token = [5; 16];
    let class = StampTlv::ClassOfService(ClassOfService::default());
    for options in
        [vec![StampTlv::ExtraPadding(token.to_vec())], vec![class.clone(), StampTlv::ExtraPadding(token.to_vec())]]
    {
        let datagram = SenderPacket::default().encode_with(&options, ByteCount::new(300), None);
        assert_eq!(datagram.len(), 300);
        assert_eq!(first_padding(&datagram), Some(&token[..]));
    }
    assert_eq!(first_padding(&SenderPacket::default().encode_with(&[class], ByteCount::ZERO, None)), None);
    assert_eq!(first_padding(&SenderPacket::default().encode(ByteCount::new(47))), None);
    assert_eq!(first_padding(&[0; 10]), None);
}

fn any_option() -> impl Strategy<Value = StampTlv> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..40);
    let fixed = (any::<[u8; 16]>(), 3_u8..=8).prop_map(|(bytes, kind)| {
        let length = [4, 4, 12, 4, 16, 16][usize::from(kind - 3)];
        StampTlv::decode(kind, &bytes[..length]).expect("of its length")
    });
    let location =
        (any::<u16>(), any::<[u8; 16]>(), any::<[u8; 4]>(), 0_u8..4).prop_map(|(port, wide, narrow, which)| {
            let address = if which & 1 == 0 { IpAddr::from(wide) } else { IpAddr::from(narrow) };
            let part =
                if which & 2 == 0 { LocationSubTlv::Source(Some(address)) } else { LocationSubTlv::Destination(None) };
            StampTlv::Location(LocationTlv { destination_port: Port::new(port), source_port: None, parts: vec![part] })
        });
    prop_oneof![
        bytes().prop_map(StampTlv::ExtraPadding),
        (9_u8..=255, bytes()).prop_map(|(kind, value)| StampTlv::Unknown { kind, value }),
        fixed,
        location,
    ]
}

proptest! {
    #[test]
    fn options_round_trip(options in proptest::collection::vec(any_option(), 0..6), size in 0_u64..400) {
        let datagram = SenderPacket::default().encode_with(&options, ByteCount::new(size), None);
        prop_assert!(datagram.len() as u64 >= size);
        let read: Vec<StampTlv> = iterate(AuthenticationMode::Unauthenticated.after_base(&datagram))
            .map(|tlv| {
                let tlv = tlv.expect("well formed");
                assert_eq!(tlv.flags, TlvFlags::REQUEST);
                StampTlv::decode(tlv.kind, tlv.value).expect("well formed")
            })
            .collect();
        prop_assert_eq!(&read[..options.len()], &options[..]);
        prop_assert!(read[options.len()..].iter().all(|option| matches!(option, StampTlv::ExtraPadding(_))));
    }

    #[test]
    fn any_bytes_are_read(area in proptest::collection::vec(any::<u8>(), 0..120)) {
        let mut total = 0;
        for tlv in iterate(&area) {
            let Ok(tlv) = tlv else { break };
            total += HEADER_LENGTH + tlv.value.len();
            if let Ok(option) = StampTlv::decode(tlv.kind, tlv.value) {
                prop_assert_eq!(option.kind(), tlv.kind);
            }
        }
        prop_assert!(total <= area.len());
        let mut answer = vec![0; 44];
        answer.extend(&area);
        let _ = read_answer_options(&answer, AuthenticationMode::Unauthenticated, None);
        let _ = first_padding(&answer);
    }
}
