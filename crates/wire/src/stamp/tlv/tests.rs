use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linerate_units::{ByteCount, Dscp, Port};
use proptest::prelude::*;

use super::*;
use crate::stamp::{ReflectorPacket, SenderPacket, Timestamp};

fn encoded(option: &Tlv) -> Vec<u8> {
    let mut bytes = Vec::new();
    option.encode(&mut bytes);
    bytes
}

fn codepoint(codepoint: u8) -> Dscp {
    Dscp::new(codepoint).expect("below 64")
}

#[test]
fn fixed_options_have_their_figures_layout() {
    let class =
        ClassOfService { wanted: codepoint(46), arrived: codepoint(0b10_0001), arrived_ecn: 0b11, reverse_path: 1 };
    // Figure 12: 101110 100001 11 01, then 16 bits reserved.
    assert_eq!(encoded(&Tlv::ClassOfService(class)), [0x80, 4, 0, 4, 0b1011_1010, 0b0001_1101, 0, 0]);
    let information = TimestampInformation {
        arrival_source: Some(SynchronizationSource::Ptp),
        arrival_method: Some(TimestampMethod::Hardware),
        departure_source: Some(SynchronizationSource::FreeRunning),
        departure_method: Some(TimestampMethod::Software),
    };
    assert_eq!(encoded(&Tlv::TimestampInformation(information)), [0x80, 3, 0, 4, 2, 1, 5, 2]);
    let counts = DirectMeasurement { sender_transmitted: 1, reflector_received: 2, reflector_transmitted: 0x0300_0000 };
    assert_eq!(encoded(&Tlv::DirectMeasurement(counts)), [0x80, 5, 0, 12, 0, 0, 0, 1, 0, 0, 0, 2, 3, 0, 0, 0]);
    let report = AccessReport { access: 2, return_code: 1 };
    assert_eq!(encoded(&Tlv::AccessReport(report)), [0x80, 6, 0, 4, 0x20, 1, 0, 0]);
    let telemetry = FollowUpTelemetry {
        sequence: 0x0102_0304,
        timestamp: Timestamp::from_bits(0x1112_1314_1516_1718),
        method: Some(TimestampMethod::Software),
    };
    let expected = [0x80, 7, 0, 16, 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 2, 0, 0, 0];
    assert_eq!(encoded(&Tlv::FollowUpTelemetry(telemetry)), expected);
    assert_eq!(encoded(&Tlv::Hmac([9; 16]))[..5], [0x80, 8, 0, 16, 9]);
    assert_eq!(encoded(&Tlv::ExtraPadding(vec![7; 2])), [0x80, 1, 0, 2, 7, 7]);
}

#[test]
fn a_location_has_ports_and_parts() {
    let asked = encoded(&Tlv::Location(Location::request()));
    // Figure 7 and 10: ports of zero, then parts of 20 bytes each, types 4 and 7.
    assert_eq!(asked[..12], [0x80, 2, 0, 44, 0, 0, 0, 0, 0x80, 4, 0, 16]);
    assert_eq!(asked[28..32], [0x80, 7, 0, 16]);
    assert!(asked[12..28].iter().chain(&asked[32..]).all(|byte| *byte == 0));
    let answered = Location {
        destination_port: Port::new(862),
        source_port: Port::new(40000),
        parts: vec![
            LocationPart::SourceHardware(Some(HardwareAddress::Eui48([1, 2, 3, 4, 5, 6]))),
            LocationPart::SourceHardware(Some(HardwareAddress::Eui64([0; 8]))),
            LocationPart::Destination(Some(Ipv4Addr::new(192, 0, 2, 1).into())),
            LocationPart::Source(Some(Ipv6Addr::LOCALHOST.into())),
            LocationPart::Unknown { kind: 200, value: vec![1] },
        ],
    };
    let bytes = encoded(&Tlv::Location(answered.clone()));
    assert_eq!(bytes[4..8], [3, 94, 156, 64]);
    assert_eq!(bytes[8..20], [0x80, 2, 0, 8, 1, 2, 3, 4, 5, 6, 0, 0]);
    assert_eq!(bytes[32..41], [0x80, 5, 0, 16, 192, 0, 2, 1, 0]);
    assert_eq!(Tlv::decode(LOCATION, &bytes[4..]), Ok(Tlv::Location(answered)));
    assert_eq!(Tlv::decode(LOCATION, &[0; 3]), Err(Malformed { kind: LOCATION }));
    assert_eq!(Tlv::decode(LOCATION, &[0, 0, 0, 0, 0x80, 4, 0, 16, 1]), Err(Malformed { kind: LOCATION }));
}

#[test]
fn lengths_that_a_type_does_not_have_are_malformed() {
    let lengths = [(3, 4), (4, 4), (5, 12), (6, 4), (7, 16), (8, 16)];
    for (kind, length) in lengths {
        for other in [0, length - 1, length + 1, 40] {
            assert_eq!(Tlv::decode(kind, &vec![0; other]), Err(Malformed { kind }), "{kind} of {other}");
        }
        assert_eq!(Tlv::decode(kind, &vec![0; length]).map(|option| option.kind()), Ok(kind));
    }
}

#[test]
fn an_option_beyond_the_packet_is_the_last() {
    let area = [0x80, 200, 0, 1, 7, 0x80, 1, 0, 9, 1, 2];
    let read: Vec<_> = iterate(&area).collect();
    let first = RawTlv { flags: Flags::REQUEST, kind: 200, value: &[7] };
    assert_eq!(read, [Ok(first), Err(Malformed { kind: 1 })]);
    assert_eq!(iterate(&area[..8]).count(), 1, "three bytes are no option");
}

#[test]
fn a_sender_takes_what_the_reflector_filled_in() {
    let class = ClassOfService { wanted: codepoint(46), ..ClassOfService::default() };
    let asked = [Tlv::ClassOfService(class), Tlv::Unknown { kind: 99, value: vec![] }, Tlv::ExtraPadding(vec![0; 4])];
    let mut answer = ReflectorPacket::default().encode_with(&asked, ByteCount::ZERO, None);
    answer[44] = 0;
    answer[56] = 0;
    let read = read_answer(&answer, Mode::Unauthenticated, None);
    assert_eq!(read.options, [asked[0].clone(), asked[2].clone()]);
    assert_eq!((read.unrecognized, read.malformed, read.integrity_failed), (vec![99], false, false));
    // M: nothing after it. I: nothing at all.
    answer[44] = 0x40;
    let read = read_answer(&answer, Mode::Unauthenticated, None);
    assert_eq!((read.options.len(), read.malformed), (0, true));
    answer[56] = 0x20;
    let read = read_answer(&answer, Mode::Unauthenticated, None);
    assert_eq!((read.options.len(), read.malformed, read.integrity_failed), (0, false, true));
}

#[cfg(feature = "auth")]
#[test]
fn an_hmac_is_right_in_its_place_only() {
    let key = HmacKey::new(&[3; 32]).expect("a key");
    let asked = [Tlv::AccessReport(AccessReport { access: 1, return_code: 1 })];
    let sent = SenderPacket::default().encode_with(&asked, ByteCount::new(200), Some(&key));
    let check = |datagram: &[u8]| check_integrity(datagram, Mode::Authenticated, Some(&key));
    assert_eq!(check(&sent), Integrity::Good);
    assert_eq!(check_integrity(&sent, Mode::Authenticated, None), Integrity::Failed, "no key");
    for at in [3, 113, 117, 125] {
        let mut changed = sent.clone();
        changed[at] ^= 1;
        assert_eq!(check(&changed), Integrity::Failed, "byte {at}");
    }
    let mut followed = sent[..140].to_vec();
    asked[0].encode(&mut followed);
    assert_eq!(check(&followed), Integrity::Failed, "an option behind the HMAC");
    assert_eq!(check(&sent[..120]), Integrity::Failed, "options without an HMAC");
    assert_eq!(check(&SenderPacket::default().encode_with(&[], ByteCount::new(300), Some(&key))), Integrity::Good);
}

#[test]
fn padding_is_found_wherever_it_stands() {
    let token = [5; 16];
    let class = Tlv::ClassOfService(ClassOfService::default());
    for options in [vec![Tlv::ExtraPadding(token.to_vec())], vec![class.clone(), Tlv::ExtraPadding(token.to_vec())]] {
        let datagram = SenderPacket::default().encode_with(&options, ByteCount::new(300), None);
        assert_eq!(datagram.len(), 300);
        assert_eq!(first_padding(&datagram), Some(&token[..]));
    }
    assert_eq!(first_padding(&SenderPacket::default().encode_with(&[class], ByteCount::ZERO, None)), None);
    assert_eq!(first_padding(&SenderPacket::default().encode(ByteCount::new(47))), None);
    assert_eq!(first_padding(&[0; 10]), None);
}

fn any_option() -> impl Strategy<Value = Tlv> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..40);
    let fixed = (any::<[u8; 16]>(), 3_u8..=8).prop_map(|(bytes, kind)| {
        let length = [4, 4, 12, 4, 16, 16][usize::from(kind - 3)];
        Tlv::decode(kind, &bytes[..length]).expect("of its length")
    });
    let location =
        (any::<u16>(), any::<[u8; 16]>(), any::<[u8; 4]>(), 0_u8..4).prop_map(|(port, wide, narrow, which)| {
            let address = if which & 1 == 0 { IpAddr::from(wide) } else { IpAddr::from(narrow) };
            let part =
                if which & 2 == 0 { LocationPart::Source(Some(address)) } else { LocationPart::Destination(None) };
            Tlv::Location(Location { destination_port: Port::new(port), source_port: None, parts: vec![part] })
        });
    prop_oneof![
        bytes().prop_map(Tlv::ExtraPadding),
        (9_u8..=255, bytes()).prop_map(|(kind, value)| Tlv::Unknown { kind, value }),
        fixed,
        location,
    ]
}

proptest! {
    #[test]
    fn options_come_back(options in proptest::collection::vec(any_option(), 0..6), size in 0_u64..400) {
        let datagram = SenderPacket::default().encode_with(&options, ByteCount::new(size), None);
        prop_assert!(datagram.len() as u64 >= size);
        let read: Vec<Tlv> = iterate(Mode::Unauthenticated.after_base(&datagram))
            .map(|tlv| {
                let tlv = tlv.expect("well formed");
                assert_eq!(tlv.flags, Flags::REQUEST);
                Tlv::decode(tlv.kind, tlv.value).expect("well formed")
            })
            .collect();
        prop_assert_eq!(&read[..options.len()], &options[..]);
        prop_assert!(read[options.len()..].iter().all(|option| matches!(option, Tlv::ExtraPadding(_))));
    }

    #[test]
    fn any_bytes_are_read(area in proptest::collection::vec(any::<u8>(), 0..120)) {
        let mut total = 0;
        for tlv in iterate(&area) {
            let Ok(tlv) = tlv else { break };
            total += HEADER_LENGTH + tlv.value.len();
            if let Ok(option) = Tlv::decode(tlv.kind, tlv.value) {
                prop_assert_eq!(option.kind(), tlv.kind);
            }
        }
        prop_assert!(total <= area.len());
        let mut answer = vec![0; 44];
        answer.extend(&area);
        let _ = read_answer(&answer, Mode::Unauthenticated, None);
        let _ = first_padding(&answer);
    }
}
