//! Conversions, the record of a measurement, and its endings.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_model::direction::Direction;
use linerate_model::path::{PeerKind, TimeStampSource};
use linerate_model::report::Outcome;
use linerate_sys::time_stamp::StampSource;
use linerate_units::{ByteCount, MonotonicTime, PacketCount, Port, TypeOfService, WallTime};

use super::record::{PathRecord, source};
use super::test_support::{options, recorded};
use super::{PathEvent, PathPhase, convert};
use crate::phases::AbortReason;
use crate::probe::ProbeError;
use crate::probe::messages::PacketRecord;

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn wall(nanoseconds: u64) -> WallTime {
    WallTime::from_unix(Duration::from_nanos(nanoseconds))
}

#[test]
fn headers_are_those_of_ip_and_udp() {
    assert_eq!(convert::headers(address("192.0.2.1:1")), ByteCount::new(28));
    assert_eq!(convert::headers(address("[2001:db8::1]:1")), ByteCount::new(48));
}

#[test]
fn civil_times_keep_their_differences() {
    let time = 1_800_000_000_123_456_789;
    assert_eq!(convert::to_monotonic(wall(time)), MonotonicTime::from_nanos(time));
    let gap = convert::to_monotonic(wall(time + 17)).since(convert::to_monotonic(wall(time)));
    assert_eq!(gap, Duration::from_nanos(17));
    // Beyond the range of a monotonic time, the last one.
    let far = WallTime::from_unix(Duration::MAX);
    assert_eq!(convert::to_monotonic(far), MonotonicTime::from_nanos(u64::MAX));
}

#[test]
fn recorded_packets_become_arrivals_in_their_order() {
    let packet = |sequence, sent, arrived| PacketRecord {
        sequence,
        sent: wall(sent),
        arrived: wall(arrived),
        size: ByteCount::new(64),
        time_to_live: Some(61),
        type_of_service: Some(TypeOfService::new(0xB8)),
    };
    let found = convert::stream(PacketCount::new(3), &[packet(2, 20, 35), packet(0, 0, 90)]);
    assert_eq!(found.sent, PacketCount::new(3));
    let arrivals: Vec<_> = found
        .arrivals
        .iter()
        .map(|one| (one.sequence, one.sent.as_nanos(), one.received.as_nanos(), one.ttl))
        .collect();
    assert_eq!(arrivals, [(2, 20, 35, Some(61)), (0, 0, 90, Some(61))]);
    assert!(found.arrivals.iter().all(|one| one.type_of_service == Some(TypeOfService::new(0xB8))));
}

#[test]
fn phases_follow_each_other_without_gaps() {
    let ((), outcome, events) = recorded(&options(), |record| {
        record.phase(PathPhase::Connect, Duration::from_secs(1));
        record.phase(PathPhase::PathMtu, Duration::from_secs(2));
        record.note("a note");
        record.note("a note");
        record.phase(PathPhase::Idle, Duration::from_secs(3));
    });
    let names: Vec<&str> = outcome.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["connect", "path MTU", "idle"]);
    for pair in outcome.phases.windows(2) {
        assert!(pair[0].start_ns <= pair[0].end_ns && pair[0].end_ns <= pair[1].start_ns, "{pair:?}");
    }
    assert!(outcome.phases[2].end_ns <= outcome.document.duration_ns);
    let begin = |phase, seconds| PathEvent::Phase(phase, Duration::from_secs(seconds));
    let expected = [
        begin(PathPhase::Connect, 1),
        begin(PathPhase::PathMtu, 2),
        PathEvent::Note("a note".to_owned()),
        begin(PathPhase::Idle, 3),
    ];
    assert_eq!(events, expected);
}

#[test]
fn traffic_is_counted_per_direction() {
    let ((), outcome, _) = recorded(&options(), |record| {
        record.count_traffic(Direction::Up, ByteCount::new(100));
        record.count_traffic(Direction::Down, ByteCount::new(30));
        record.count_traffic(Direction::Up, ByteCount::new(1));
    });
    assert_eq!((outcome.sent, outcome.received), (ByteCount::new(101), ByteCount::new(30)));
    assert_eq!(outcome.document.traffic_bytes, Some(131));
    assert_eq!(recorded(&options(), |_| ()).1.document.traffic_bytes, None, "unknown, not zero");
}

/// Keys of a document without any figure.
const KEYS: [&str; 21] = [
    "up.mtu",
    "up.capacity",
    "up.packets",
    "up.marks",
    "up.policer",
    "down.mtu",
    "down.capacity",
    "down.packets",
    "down.marks",
    "down.policer",
    "rtt.best",
    "rtt.udp",
    "rtt.tcp",
    "rtt.icmp",
    "rtt.handshake",
    "clock",
    "tcp",
    "hops",
    "route",
    "bdp_up_bytes",
    "bdp_down_bytes",
];

#[test]
fn each_missing_figure_has_the_reason_of_its_peer() {
    for (peer, part) in [
        (PeerKind::Linerate, "the far end did not take part"),
        (PeerKind::Iperf3, "an iperf3 server does not report it"),
        (PeerKind::Stamp, "a STAMP reflector does not report it"),
        (PeerKind::Bare, "the host has no measurement service"),
    ] {
        let ((), outcome, _) = recorded(&options(), |record| record.document.peer = peer);
        let keys: Vec<&str> = outcome.document.unknown.iter().map(|unknown| unknown.key.as_str()).collect();
        assert_eq!(keys, KEYS);
        for unknown in &outcome.document.unknown {
            assert!(unknown.reason.starts_with(part), "{}", unknown.reason);
        }
    }
}

#[test]
fn the_reason_of_an_ending_precedes_that_of_the_peer() {
    let lost = || ProbeError::Lost("gone".to_owned());
    for (result, outcome, reason, error) in [
        (Err(AbortReason::Interrupted), Outcome::Interrupted, "the measurement was interrupted before", None),
        (Err(AbortReason::Failed(lost())), Outcome::Failed, "the measurement failed before", Some(lost())),
    ] {
        let options = options();
        let mut ignore = |_: &PathEvent| {};
        let mut record = PathRecord::new(&options, None, &mut ignore);
        record.add_unknown_both("mtu", "first");
        record.document.bdp_up_bytes = Some(7);
        record.add_unknown_if_missing("bdp_up_bytes", "it is known");
        record.add_unknown_if_missing("bdp_down_bytes", "the capacity is not known");
        let finished = record.finish(result);
        assert_eq!((finished.document.termination.outcome(), finished.error), (outcome, error));
        let reasons: Vec<(&str, &str)> =
            finished.document.unknown.iter().map(|unknown| (unknown.key.as_str(), unknown.reason.as_str())).collect();
        let known = [("up.mtu", "first"), ("down.mtu", "first"), ("bdp_down_bytes", "the capacity is not known")];
        assert_eq!(reasons[..3], known);
        assert!(reasons[3..].iter().all(|(_, found)| *found == reason), "{reasons:?}");
        assert_eq!(reasons.len(), KEYS.len() - 1);
    }
}

#[test]
fn only_a_lost_session_and_an_interrupt_end_a_measurement() {
    let refused = ProbeError::Refused { request: "send".to_owned(), reason: "too many".to_owned() };
    let ((), outcome, _) = recorded(&options(), |record| {
        record.without(&["up.marks", "down.marks"], refused.clone()).expect("the remainder is worthwhile");
        let ended = record.without(&["up.mtu"], ProbeError::Lost("gone".to_owned()));
        assert!(matches!(ended, Err(AbortReason::Failed(ProbeError::Lost(_)))));
        assert!(matches!(record.without(&["up.mtu"], ProbeError::Interrupted), Err(AbortReason::Interrupted)));
    });
    let reason = |key: &str| outcome.document.unknown.iter().find(|unknown| unknown.key == key).map(|one| &one.reason);
    assert_eq!(reason("up.marks"), Some(&refused.to_string()));
    assert_eq!(reason("down.marks"), Some(&refused.to_string()));
    assert_ne!(reason("up.mtu"), Some(&"gone".to_owned()));
}

#[test]
fn time_stamps_are_named_by_their_origin() {
    for (stamp, named) in [
        (StampSource::Hardware, TimeStampSource::Hardware),
        (StampSource::Kernel, TimeStampSource::Kernel),
        (StampSource::Program, TimeStampSource::Program),
    ] {
        assert_eq!(source(stamp), named);
    }
}

#[test]
fn a_host_without_an_address_is_unreachable() {
    let target = crate::probe::ProbeTarget::new("name.invalid", Port::IPERF3);
    let outcome = super::run(&super::PathOptions::new(target), None, &mut |_| {});
    assert!(matches!(&outcome.error, Some(ProbeError::Unreachable(reason)) if reason.contains("name.invalid")));
    assert_eq!(outcome.document.termination.outcome(), Outcome::Failed);
    let message = outcome.error.map(|error| error.to_string());
    assert_eq!(outcome.document.termination.message(), message.as_deref());
}
