use linerate_units::{ByteCount, Dscp, Port};
use proptest::prelude::*;

use super::*;
use crate::stamp::tlv::{self, LocationSubTlv, LocationTlv, StampTlv, read_answer_options};
use crate::stamp::{ReflectorPacket, SenderPacket, SessionIdentifier, StampTimestamp, TimestampFormat};

const ARRIVES: u64 = 1_700_000_000;

fn wall(seconds: u64) -> WallTime {
    WallTime::from_unix(Duration::from_secs(seconds))
}

fn now(seconds: u64) -> MonotonicTime {
    MonotonicTime::default() + Duration::from_secs(seconds)
}

fn received(bytes: &[u8]) -> ReceivedDatagram<'_> {
    ReceivedDatagram {
        bytes,
        source: "192.0.2.7:40000".parse().expect("an address"),
        destination: "192.0.2.1:862".parse().expect("an address"),
        at: wall(ARRIVES),
        method: TimestampMethod::Software,
        ttl: Some(57),
        type_of_service: Some(TypeOfService::new(46 << 2 | 1)),
    }
}

fn reflector() -> StampReflector {
    StampReflector::new(ReflectorOptions::default(), ReflectorClock::default())
}

fn packet(sequence: u32, session: u16) -> SenderPacket {
    SenderPacket {
        sequence,
        timestamp: StampTimestamp::from_bits(0x1234_5678_9ABC_DEF0),
        error_estimate: ErrorEstimate::from_bits(0x8A01),
        session: SessionIdentifier::new(session),
    }
}

fn answer(reflector: &mut StampReflector, bytes: &[u8]) -> Vec<u8> {
    let mut answer = reflector.handle(now(1), &received(bytes)).expect("answered");
    reflector.finish(&mut answer, wall(ARRIVES + 1)).to_vec()
}

fn base(reflector: &mut StampReflector, bytes: &[u8]) -> ReflectorPacket {
    ReflectorPacket::decode(&answer(reflector, bytes)).expect("an answer")
}

#[test]
fn an_answer_copies_the_packet_and_adds_its_fields() {
    let packet = packet(77, 5);
    let read = base(&mut reflector(), &packet.encode(ByteCount::ZERO));
    let expected = ReflectorPacket {
        sequence: 0,
        timestamp: StampTimestamp::from_wall(wall(ARRIVES + 1), TimestampFormat::Ntp),
        error_estimate: ErrorEstimate::default(),
        session: packet.session,
        received_at: StampTimestamp::from_wall(wall(ARRIVES), TimestampFormat::Ntp),
        sender_sequence: 77,
        sender_timestamp: packet.timestamp,
        sender_error_estimate: packet.error_estimate,
        sender_ttl: 57,
    };
    assert_eq!(read, expected);
}

#[test]
fn each_session_has_its_own_count() {
    let mut reflector = reflector();
    for count in 0..3 {
        for session in [0, 1, 2] {
            let read = base(&mut reflector, &packet(10 * count, session).encode(ByteCount::ZERO));
            assert_eq!((read.sequence, read.sender_sequence), (count, 10 * count));
        }
    }
    let bytes = packet(9, 1).encode(ByteCount::ZERO);
    let elsewhere = ReceivedDatagram { source: "192.0.2.7:40001".parse().expect("an address"), ..received(&bytes) };
    let mut other = reflector.handle(now(1), &elsewhere).expect("answered");
    assert_eq!(ReflectorPacket::decode(reflector.finish(&mut other, wall(0))).map(|read| read.sequence), Ok(0));
}

#[test]
fn a_stateless_reflector_repeats_the_senders_number() {
    let options = ReflectorOptions { stateful: false, ..ReflectorOptions::default() };
    let mut reflector = StampReflector::new(options, ReflectorClock::default());
    assert_eq!(base(&mut reflector, &packet(77, 5).encode(ByteCount::ZERO)).sequence, 77);
    assert_eq!(reflector.sessions.count(), 0);
}

#[test]
fn idle_sessions_are_removed_and_their_number_is_bounded() {
    let options = ReflectorOptions { most_sessions: 3, ..ReflectorOptions::default() };
    let idle = options.session_idle;
    let mut reflector = StampReflector::new(options, ReflectorClock::default());
    let mut ask = |time: MonotonicTime, session: u16| {
        let bytes = packet(0, session).encode(ByteCount::ZERO);
        let mut answer = reflector.handle(time, &received(&bytes)).expect("answered");
        let read = ReflectorPacket::decode(reflector.finish(&mut answer, wall(0))).expect("an answer");
        (read.sequence, reflector.sessions.count())
    };
    for session in 1..=3 {
        assert_eq!(ask(now(10), session), (0, usize::from(session)));
    }
    assert_eq!(ask(now(10), 1), (1, 3));
    assert_eq!(ask(now(10), 4), (0, 3), "answered without a session");
    // Sessions of a single packet are replaced first.
    assert_eq!(ask(now(12), 4), (0, 2));
    assert_eq!(ask(now(12), 1), (2, 2));
    let later = now(12) + idle + Duration::from_secs(1);
    assert_eq!(ask(later, 1), (0, 2), "begun anew");
    assert_eq!(ask(later, 5), (0, 2), "4 was idle");
}

#[test]
fn forged_sources_with_several_packets_neither_silence_others_nor_keep_their_sessions() {
    let options = ReflectorOptions { most_sessions: 50, ..ReflectorOptions::default() };
    let mut reflector = StampReflector::new(options, ReflectorClock::default());
    let mut ask = |time: MonotonicTime, sequence: u32, session: u16| {
        let bytes = packet(sequence, session).encode(ByteCount::ZERO);
        let mut answer = reflector.handle(time, &received(&bytes)).expect("answered");
        ReflectorPacket::decode(reflector.finish(&mut answer, wall(0))).expect("an answer").sequence
    };
    for forged in 1..=50 {
        assert_eq!((ask(now(10), 7, forged), ask(now(10), 7, forged)), (0, 1));
    }
    assert_eq!(ask(now(11), 77, 99), 77, "the sender's number: all sessions are in use");
    assert_eq!((ask(now(20), 78, 99), ask(now(20), 79, 99)), (0, 1), "a session of its own after ten seconds");
}

#[test]
fn twamp_light_senders_get_a_base_packet_and_no_more() {
    let whole = packet(3, 0).encode(ByteCount::ZERO);
    for length in 14..=44 {
        let answer = answer(&mut reflector(), &whole[..length]);
        assert_eq!(answer.len(), 44);
        let read = ReflectorPacket::decode(&answer).expect("an answer");
        assert_eq!((read.sender_sequence, read.sequence), (3, 0));
    }
    for length in 0..14 {
        let ignored = reflector().handle(now(1), &received(&whole[..length])).map(drop);
        assert_eq!(ignored, Err(IgnoredReason::TooShort));
    }
}

#[test]
fn the_padding_of_twamp_light_is_returned_unchanged() {
    let mut reflector = reflector();
    for (count, seed) in [3_u8, 11, 200].into_iter().enumerate() {
        let mut random = packet(1, 0).encode(ByteCount::ZERO)[..14].to_vec();
        random.extend((0..100_u8).map(|index| index.wrapping_mul(seed) ^ seed));
        let answer = answer(&mut reflector, &random);
        assert_eq!(answer[44..], random[44..]);
        let read = ReflectorPacket::decode(&answer).expect("an answer");
        assert_eq!(read.sequence as usize, count, "the padding is not a session identifier");
    }
    let mut zeros = packet(1, 0).encode(ByteCount::ZERO);
    zeros.resize(300, 0);
    assert_eq!(answer(&mut reflector, &zeros)[44..], zeros[44..]);
}

#[test]
fn answers_have_the_requested_or_the_received_class() {
    let ask = |asked: &[StampTlv]| {
        let mut reflector = reflector();
        let bytes = packet(0, 1).encode_with(asked, ByteCount::ZERO, None);
        let mut answer = reflector.handle(now(1), &received(&bytes)).expect("answered");
        let read =
            read_answer_options(reflector.finish(&mut answer, wall(0)), AuthenticationMode::Unauthenticated, None);
        (answer.type_of_service().get(), read.options)
    };
    assert_eq!(ask(&[]).0, 46 << 2, "without ECN");
    let dscp = |codepoint| Dscp::new(codepoint).expect("below 64");
    let asked = tlv::ClassOfService { requested: dscp(10), ..tlv::ClassOfService::default() };
    let reported = tlv::ClassOfService { received: dscp(46), arrived_ecn: 1, ..asked };
    let (octet, options) = ask(&[StampTlv::ClassOfService(asked)]);
    assert_eq!((octet, options), (10 << 2, vec![StampTlv::ClassOfService(reported)]));
    let asked = tlv::ClassOfService { requested_ecn: 1, ..asked };
    let reported = tlv::ClassOfService { requested_ecn: 1, ..reported };
    let (octet, options) = ask(&[StampTlv::ClassOfService(asked)]);
    assert_eq!((octet, options), (10 << 2 | 1, vec![StampTlv::ClassOfService(reported)]), "ECT(1) on request");
}

#[test]
fn options_are_filled_in() {
    let clock = ReflectorClock { source: Some(SynchronizationSource::Ntp), ..ReflectorClock::default() };
    let mut reflector = StampReflector::new(ReflectorOptions::default(), clock);
    let asked = [
        StampTlv::Location(LocationTlv::request()),
        StampTlv::TimestampInformation(tlv::TimestampInformation::default()),
        StampTlv::DirectMeasurement(tlv::DirectMeasurement {
            sender_transmitted: 9,
            ..tlv::DirectMeasurement::default()
        }),
        StampTlv::FollowUpTelemetry(tlv::FollowUpTelemetry::default()),
        StampTlv::AccessReport(tlv::AccessReport { access: 1, return_code: 2 }),
        StampTlv::AccessReport(tlv::AccessReport { access: 7, return_code: 2 }),
        StampTlv::Unknown { kind: 77, value: vec![1, 2, 3] },
        StampTlv::ExtraPadding(vec![5; 7]),
    ];
    let bytes = packet(0, 1).encode_with(&asked, ByteCount::new(400), None);
    let first = answer(&mut reflector, &bytes);
    let second = answer(&mut reflector, &bytes);
    assert_eq!((first.len(), second.len()), (bytes.len(), bytes.len()));
    let read = read_answer_options(&second, AuthenticationMode::Unauthenticated, None);
    assert_eq!(read.unrecognized, [tlv::ACCESS_REPORT, 77]);
    let location = LocationTlv {
        destination_port: Some(Port::STAMP),
        source_port: Port::new(40000),
        parts: vec![
            LocationSubTlv::Destination(Some(Ipv4Addr::new(192, 0, 2, 1).into())),
            LocationSubTlv::Source(Some(Ipv4Addr::new(192, 0, 2, 7).into())),
        ],
    };
    let information = tlv::TimestampInformation {
        arrival_source: Some(SynchronizationSource::Ntp),
        arrival_method: Some(TimestampMethod::Software),
        departure_source: Some(SynchronizationSource::Ntp),
        departure_method: Some(TimestampMethod::Software),
    };
    let counts = tlv::DirectMeasurement { sender_transmitted: 9, reflector_received: 2, reflector_transmitted: 2 };
    let follow_up = tlv::FollowUpTelemetry {
        sequence: 0,
        timestamp: StampTimestamp::from_wall(wall(ARRIVES + 1), TimestampFormat::Ntp),
        method: Some(TimestampMethod::Software),
    };
    let expected = [
        StampTlv::Location(location),
        StampTlv::TimestampInformation(information),
        StampTlv::DirectMeasurement(counts),
        StampTlv::FollowUpTelemetry(follow_up),
        asked[4].clone(),
        asked[7].clone(),
    ];
    assert_eq!(read.options[..6], expected);
}

#[test]
fn options_after_a_malformed_one_are_not_filled_in() {
    let class = StampTlv::ClassOfService(tlv::ClassOfService::default());
    let mut bytes = packet(0, 1).encode_with(core::slice::from_ref(&class), ByteCount::ZERO, None);
    bytes.extend([0x80, tlv::FOLLOW_UP_TELEMETRY, 0, 3, 7, 7, 7]);
    class.encode(&mut bytes);
    let answer = answer(&mut reflector(), &bytes);
    assert_eq!((answer[44], answer[52], answer[59]), (0, 0x40, 0x80));
    assert_eq!(answer[56..59], [0; 3], "RFC 8972 §4.7 has it zeroed");
    assert_eq!(answer[60..], bytes[60..]);
    let mut beyond = packet(0, 1).encode(ByteCount::ZERO);
    beyond.extend([0x80, tlv::EXTRA_PADDING, 0, 9, 1, 2]);
    assert_eq!(self::answer(&mut reflector(), &beyond)[44..], [0x40, tlv::EXTRA_PADDING, 0, 9, 1, 2]);
}

#[test]
fn only_one_host_is_answered() {
    let bytes = packet(0, 1).encode(ByteCount::ZERO);
    let try_from = |source: &str, destination: &str| {
        let parse = |text: &str| text.parse().expect("an address");
        let received = ReceivedDatagram { source: parse(source), destination: parse(destination), ..received(&bytes) };
        reflector().handle(now(1), &received).map(drop)
    };
    assert_eq!(try_from("192.0.2.7:1", "0.0.0.0:862"), Ok(()));
    assert_eq!(try_from("[2001:db8::7]:862", "[2001:db8::1]:862"), Ok(()), "the port alone does not matter");
    let refused = [
        ("192.0.2.7:0", "192.0.2.1:862"),
        ("224.0.0.1:5000", "192.0.2.1:862"),
        ("[::ffff:224.0.0.1]:5000", "[::]:862"),
        ("[ff02::1]:5000", "[2001:db8::1]:862"),
        ("255.255.255.255:5000", "192.0.2.1:862"),
        ("0.0.0.0:5000", "192.0.2.1:862"),
        ("[::]:5000", "[2001:db8::1]:862"),
        ("192.0.2.7:5000", "255.255.255.255:862"),
        ("192.0.2.7:5000", "239.1.1.1:862"),
        ("192.0.2.1:862", "192.0.2.1:862"),
    ];
    for (source, destination) in refused {
        assert_eq!(try_from(source, destination), Err(IgnoredReason::Address), "{source} to {destination}");
    }
}

#[test]
fn answers_are_not_answered() {
    for size in [44, 41, 300] {
        let mut bytes = answer(&mut reflector(), &packet(0, 1).encode(ByteCount::new(size)));
        bytes.truncate(usize::try_from(size).expect("small").max(41));
        assert_eq!(reflector().handle(now(1), &received(&bytes)).map(drop), Err(IgnoredReason::IsAnswer), "{size}");
    }
}

#[test]
fn a_source_has_a_rate_limit() {
    let options = ReflectorOptions { rate_per_source: PacketCount::new(10), ..ReflectorOptions::default() };
    let mut reflector = StampReflector::new(options, ReflectorClock::default());
    let bytes = packet(0, 1).encode(ByteCount::ZERO);
    let answered = (0..100).filter(|_| reflector.handle(now(1), &received(&bytes)).is_ok()).count();
    assert_eq!(answered, 10);
    assert_eq!(reflector.handle(now(1), &received(&bytes)).map(drop), Err(IgnoredReason::TooMany));
    assert!(reflector.handle(now(2), &received(&bytes)).is_ok());
}

#[cfg(feature = "auth")]
mod authenticated {
    use super::*;

    fn keys() -> [HmacKey; 2] {
        [HmacKey::new(&[1; 32]).expect("a key"), HmacKey::new(&[2; 32]).expect("a key")]
    }

    fn reflector(mode: AuthenticationMode) -> StampReflector {
        let options = ReflectorOptions { mode, keys: keys().to_vec(), ..ReflectorOptions::default() };
        StampReflector::new(options, ReflectorClock::default())
    }

    #[test]
    fn packets_with_a_known_key_are_answered_with_that_key() {
        for key in &keys() {
            let asked = [StampTlv::TimestampInformation(tlv::TimestampInformation::default())];
            let bytes = packet(4, 1).encode_with(&asked, ByteCount::new(300), Some(key));
            let answer = answer(&mut reflector(AuthenticationMode::Authenticated), &bytes);
            assert_eq!(answer.len(), 300);
            let read = ReflectorPacket::decode_authenticated(&answer, key).expect("authentic");
            assert_eq!((read.sequence, read.sender_sequence, read.sender_ttl), (0, 4, 57));
            assert_eq!(read.timestamp, StampTimestamp::from_wall(wall(ARRIVES + 1), TimestampFormat::Ntp));
            let options = read_answer_options(&answer, AuthenticationMode::Authenticated, Some(key));
            assert!(!options.integrity_failed && options.options.len() == 3, "{options:?}");
        }
    }

    #[test]
    fn packets_without_a_known_key_are_ignored() {
        let mut reflector = reflector(AuthenticationMode::Authenticated);
        let stranger = HmacKey::new(&[3; 32]).expect("a key");
        let bytes = packet(4, 1).encode_with(&[], ByteCount::ZERO, Some(&stranger));
        assert_eq!(reflector.handle(now(1), &received(&bytes)).map(drop), Err(IgnoredReason::NotAuthentic));
        let plain = packet(4, 1).encode(ByteCount::new(200));
        assert_eq!(reflector.handle(now(1), &received(&plain)).map(drop), Err(IgnoredReason::NotAuthentic));
        assert_eq!(reflector.handle(now(1), &received(&plain[..111])).map(drop), Err(IgnoredReason::TooShort));
        let [key, _] = keys();
        let answer = answer(&mut reflector, &packet(0, 1).encode_with(&[], ByteCount::ZERO, Some(&key)));
        assert_eq!(reflector.handle(now(1), &received(&answer)).map(drop), Err(IgnoredReason::IsAnswer));
    }

    #[test]
    fn options_with_a_wrong_hmac_are_returned_and_flagged() {
        let [key, _] = keys();
        let asked = [StampTlv::ClassOfService(tlv::ClassOfService::default())];
        let mut bytes = packet(4, 1).encode_with(&asked, ByteCount::new(150), Some(&key));
        bytes[117] ^= 0xFF;
        let answer = answer(&mut reflector(AuthenticationMode::Authenticated), &bytes);
        assert_eq!((answer[112], answer[120], answer[140]), (0x20, 0x20, 0x20), "I of all three");
        assert_eq!(answer[113..120], bytes[113..120]);
        assert!(read_answer_options(&answer, AuthenticationMode::Authenticated, Some(&key)).integrity_failed);
    }

    #[test]
    fn options_may_have_an_hmac_without_authentication() {
        let [_, key] = keys();
        let mut bytes = packet(4, 1).encode(ByteCount::ZERO);
        StampTlv::ClassOfService(tlv::ClassOfService::default()).encode(&mut bytes);
        let hmac = tlv::sign(&bytes[..4], &bytes[44..], &key);
        StampTlv::Hmac(hmac).encode(&mut bytes);
        let good = answer(&mut reflector(AuthenticationMode::Unauthenticated), &bytes);
        let read = read_answer_options(&good, AuthenticationMode::Unauthenticated, Some(&key));
        assert_eq!((read.options.len(), read.integrity_failed), (2, false));
        // A reflector without the key cannot verify them.
        let unchecked = answer(&mut super::reflector(), &bytes);
        assert_eq!((unchecked[44], unchecked[52]), (0x20, 0x20));
    }
}

proptest! {
    /// Never more bytes than received, except for the base packet; never a panic; the same option lengths.
    #[test]
    fn any_datagram(bytes in proptest::collection::vec(any::<u8>(), 0..200), zeros: bool, twice: bool) {
        let mut bytes = bytes;
        if zeros && bytes.len() >= 44 {
            bytes[16..44].fill(0);
        }
        let mut reflector = reflector();
        for _ in 0..=usize::from(twice) {
            let Ok(mut answer) = reflector.handle(now(1), &received(&bytes)) else { continue };
            let sent = reflector.finish(&mut answer, wall(ARRIVES)).to_vec();
            prop_assert_eq!(sent.len(), bytes.len().max(44));
            let read = ReflectorPacket::decode(&sent).expect("an answer");
            let asked = SenderPacket::decode(&bytes).expect("long enough");
            prop_assert_eq!(read.sender_sequence, asked.sequence);
            let headers = |bytes: &[u8]| {
                let area = bytes.get(44..).unwrap_or_default().to_vec();
                tlv::iterate(&area).map(|tlv| tlv.map(|tlv| tlv.value.len())).collect::<Vec<_>>()
            };
            prop_assert_eq!(headers(&sent), headers(&bytes));
        }
    }

    /// Answers to any options are readable by a sender.
    #[test]
    fn answers_are_read(kinds in proptest::collection::vec((1_u8..12, 0_usize..24), 0..6)) {
        let options: Vec<StampTlv> =
            kinds.iter().map(|(kind, length)| StampTlv::Unknown { kind: *kind, value: vec![0; *length] }).collect();
        let bytes = packet(0, 1).encode_with(&options, ByteCount::ZERO, None);
        let sent = answer(&mut reflector(), &bytes);
        let read = read_answer_options(&sent, AuthenticationMode::Unauthenticated, None);
        prop_assert!(read.options.len() + read.unrecognized.len() <= kinds.len());
        let hmac = kinds.iter().any(|(kind, _)| *kind == tlv::HMAC);
        prop_assert_eq!(read.integrity_failed, hmac);
    }
}
