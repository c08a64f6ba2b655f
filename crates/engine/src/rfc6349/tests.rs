//! Record of the procedure, the judgement of traffic management, and a whole run over loopback.

use core::time::Duration;

use linerate_documents::rfc6349::{LoadedDirections, ManagementVerdict, TrafficManagement};
use linerate_model::direction::Direction;
use linerate_model::path::{PathDocument, PeerKind, PolicerDetection};
use linerate_model::report::Outcome;
use linerate_units::{BitRate, ByteCount, PacketCount, StreamCount};

use super::record::Rfc6349Record;
use super::test_support::{options, path, recorded, tcp_test, with_path};
use super::{Rfc6349Event, Rfc6349Options, management};

use crate::path::{PathEvent, PathOptions};

use crate::server::ServerOptions;
use crate::tests::support::{TestServer, endings, target};

fn policer(present: bool) -> PolicerDetection {
    PolicerDetection { present, bits_per_second: Some(1e6), burst_bytes: Some(1000), evidence: "a bucket".to_owned() }
}

/// Judgement of the uplink.
fn judged(policer: Option<PolicerDetection>, tests: &[(Option<f64>, Option<f64>)]) -> TrafficManagement {
    let ((), outcome, _) = with_path(&options(), |record| {
        let known = record.path.as_mut().expect("a path");
        known.up.policer = policer;
        record.tests.extend(tests.iter().map(|(efficiency, delay)| tcp_test(Direction::Up, *efficiency, *delay)));
        management::judge(record);
    });
    let judged = outcome.document.traffic_management;
    assert_eq!(judged.iter().map(|one| one.direction).collect::<Vec<_>>(), [Direction::Up, Direction::Down]);
    judged.into_iter().next().expect("both directions")
}

#[test]
fn a_policer_precedes_every_other_evidence() {
    let found = judged(Some(policer(true)), &[(Some(1.0), Some(5.0))]);
    assert_eq!((found.verdict, found.evidence.as_str()), (ManagementVerdict::Policed, "a bucket"));
    assert_eq!(found.policer, Some(policer(true)));
}

#[test]
fn the_buffer_delay_of_the_last_transfer_shows_a_shaper() {
    for (known, tests, verdict, part) in [
        (
            false,
            vec![(Some(1.0), Some(0.2))],
            ManagementVerdict::Shaped,
            "grows by 20 %, 0.00 % retransmitted: packets wait in a queue with almost no drops",
        ),
        (
            false,
            vec![(Some(0.995), Some(3.0))],
            ManagementVerdict::Shaped,
            "300 %, 0.50 % retransmitted: packets wait in a queue with almost no drops",
        ),
        (
            false,
            vec![(Some(0.99), Some(0.5))],
            ManagementVerdict::Shaped,
            "1.00 % retransmitted: packets wait in a queue until it overflows",
        ),
        (
            false,
            vec![(None, Some(0.5))],
            ManagementVerdict::Shaped,
            "grows by 50 %: packets wait in a queue until it overflows",
        ),
        (true, vec![(Some(1.0), Some(0.19))], ManagementVerdict::Neither, "the round trip grows by 19 % only"),
        (false, vec![(Some(1.0), Some(0.9)), (Some(1.0), Some(0.1))], ManagementVerdict::Neither, "10 % only"),
        (true, vec![(Some(1.0), None)], ManagementVerdict::Neither, "the round trip under load is unknown"),
        (true, Vec::new(), ManagementVerdict::Neither, "no policer was found; the round trip under load is unknown"),
        (
            false,
            Vec::new(),
            ManagementVerdict::Unknown,
            "neither the policer test nor the round trip under load is available",
        ),
    ] {
        let found = judged(known.then(|| policer(false)), &tests);
        assert_eq!(found.verdict, verdict, "{tests:?}");
        assert!(found.evidence.contains(part), "{}", found.evidence);
        assert_eq!(found.policer, None);
    }
}

#[test]
fn failed_transfers_and_the_other_direction_show_nothing() {
    let ((), outcome, _) = with_path(&options(), |record| {
        record.tests.push(tcp_test(Direction::Up, Some(1.0), Some(0.5)));
        let mut failed = tcp_test(Direction::Up, Some(1.0), Some(0.0));
        failed.problem = Some("refused".to_owned());
        record.tests.push(failed);
        record.tests.push(tcp_test(Direction::Down, Some(1.0), Some(0.0)));
        management::judge(record);
    });
    let verdicts: Vec<ManagementVerdict> = outcome.document.traffic_management.iter().map(|one| one.verdict).collect();
    assert_eq!(verdicts, [ManagementVerdict::Shaped, ManagementVerdict::Neither]);
}

#[test]
fn each_ending_is_a_document_of_the_steps_so_far() {
    for (result, outcome, error) in endings() {
        let options = options();
        let mut ignore = |_: &Rfc6349Event| {};
        let mut record = Rfc6349Record::new(&options, None, &mut ignore);
        record.tests.push(tcp_test(Direction::Up, None, None));
        record.unknown("windows", "first");
        record.unknown("windows", "second");
        let start = record.elapsed();
        record.phase("up".to_owned(), start);
        let finished = record.finish(result);
        let document = &finished.document;
        assert_eq!((document.termination.outcome(), &finished.error), (outcome, &error));
        assert_eq!((document.tests.len(), document.unknown.len()), (1, 1));
        assert_eq!(document.unknown[0].reason, "first");
        assert_eq!((document.host.as_str(), document.port), ("192.0.2.1", 5201));
        // The path was not measured, and ended as the procedure did.
        assert_eq!((document.path.peer, document.path.termination.outcome()), (PeerKind::Bare, outcome));
        assert_eq!(document.path.started_at_unix_ns, document.started_at_unix_ns);
        assert!(finished.phases[0].start_ns <= finished.phases[0].end_ns);
        assert!(finished.phases[0].end_ns <= document.duration_ns);
    }
}

#[test]
fn a_measured_path_stays_in_the_document() {
    let measured = path();
    let ((), outcome, events) = recorded(&options(), |record| {
        record.path = Some(measured.clone());
        record.note("a note");
        record.note("a note");
    });
    assert_eq!(outcome.document.path, measured);
    assert_eq!(outcome.document.notes, ["a note"]);
    assert_eq!(events, [Rfc6349Event::Note("a note".to_owned())]);
}

/// Loopback delays, loses and changes nothing.
fn assert_path_of_loopback(path: &PathDocument) {
    assert_eq!((path.peer, path.address.as_deref()), (PeerKind::Linerate, Some("127.0.0.1")));
    let best = path.rtt.best.expect("answers");
    assert_eq!((path.rtt.method, path.rtt.udp), (Some(linerate_model::path::RttMethod::Udp), Some(best)));
    for side in [&path.up, &path.down] {
        let mtu = side.mtu.as_ref().expect("packets arrive");
        assert_eq!((mtu.black_hole_bytes, mtu.icmp_bytes), (None, None));
        assert_eq!(
            (Some(mtu.bytes), mtu.limited_by_interface),
            (mtu.interface_bytes.map(|most| most.min(65_535)), true)
        );
        let packets = side.packets.as_ref().expect("streams");
        assert_eq!((packets.sent, packets.packet_bytes), (50, 64 + 28));
        assert_eq!(packets.duplicates, Some(0));
        let marks = side.marks.as_ref().expect("packets arrive");
        assert_eq!((marks.ecn.len(), marks.dscp.len()), (4, 15));
        for mark in marks.ecn.iter().chain(&marks.dscp) {
            assert_eq!(mark.arrived, Some(mark.sent), "{}", mark.name);
        }
        assert_eq!((&side.capacity, &side.policer), (&None, &None));
    }
    // Both ends have one clock.
    let clock = path.clock.expect("stamped on both sides");
    assert!(clock.offset_ns.unsigned_abs() <= clock.error_ns, "{clock:?}");
    assert!(path.tcp.as_ref().is_some_and(|tcp| tcp.syn_options_arrived.is_some()));
    let reason =
        |key: &str| path.unknown.iter().find(|unknown| unknown.key == key).map(|unknown| unknown.reason.as_str());
    assert_eq!(reason("up.capacity"), Some("switched off (--no-capacity)"));
    assert_eq!(reason("bdp_down_bytes"), Some("the capacity is not known"));
    assert!(path.traffic_bytes.is_some_and(|bytes| bytes > 4 * 50 * (64 + 28)), "{:?}", path.traffic_bytes);
}

#[test]
fn the_procedure_runs_over_loopback() {
    let server = TestServer::start(ServerOptions::default());
    let path = PathOptions {
        count: PacketCount::new(50),
        hops: false,
        capacity: false,
        ..PathOptions::new(target(server.address))
    };
    let options =
        Rfc6349Options { time: Duration::from_secs(1), connections: StreamCount::new(1), ..Rfc6349Options::new(path) };
    let mut events = Vec::new();
    let outcome = super::run(&options, None, &mut |event| events.push(event.clone()));
    assert_eq!(outcome.error, None);
    let document = &outcome.document;
    assert_eq!(document.termination.outcome(), Outcome::Complete);
    assert_path_of_loopback(&document.path);
    let flows: Vec<_> = document.tests.iter().map(|test| (test.flows, test.direction)).collect();
    let (up, down, both) = (LoadedDirections::Up, LoadedDirections::Down, LoadedDirections::Both);
    let expected = [(up, Direction::Up), (down, Direction::Down), (both, Direction::Up), (both, Direction::Down)];
    assert_eq!(flows, expected);
    for test in &document.tests {
        assert_eq!(test.problem, None);
        let (bytes, time) = (test.bytes.expect("arrived"), test.duration_ns.expect("timed"));
        let rate = ByteCount::new(bytes).rate_over(Duration::from_nanos(time));
        assert_eq!(test.goodput_bits_per_second.map(BitRate::from_bits_per_second), Some(rate));
        // Without the capacity there is no ideal to compare with.
        assert_eq!((test.transfer_time_ratio, test.share_of_achievable), (None, None));
        assert!(test.meaning.contains("bandwidth"), "{}", test.meaning);
    }
    assert!(document.windows.is_empty());
    let reasons: Vec<&str> = document.unknown.iter().map(|unknown| unknown.key.as_str()).collect();
    for key in ["baseline.achievable_up_bits_per_second", "baseline.achievable_down_bits_per_second", "windows"] {
        assert!(reasons.contains(&key), "{reasons:?}");
    }
    let names: Vec<&str> = outcome.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["path", "up, 1 connection", "down, 1 connection", "both directions, 1 connection"]);
    let left: Vec<usize> = events
        .iter()
        .filter_map(|event| match event {
            Rfc6349Event::Transfer { left, .. } => Some(*left),
            _ => None,
        })
        .collect();
    assert_eq!(left, [2, 1, 0]);
    assert!(matches!(&events[0], Rfc6349Event::Path(PathEvent::Phase(..))), "{:?}", events[0]);
    let moved: u64 = document.tests.iter().filter_map(|test| test.bytes).sum();
    assert!((outcome.sent + outcome.received).get() > moved, "the traffic includes headers");
}
