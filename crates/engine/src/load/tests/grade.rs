//! The grade, its reasons, and the responsiveness.

use linerate_analysis::latency_under_load::LatencyClass;
use linerate_model::direction::Direction;
use linerate_model::load::{LatencyGrade, LoadDocument, PhaseKind, ResponsivenessMethod};
use linerate_model::path::PeerKind;
use linerate_units::ByteCount;

use super::super::evidence::LoadEvidence;
use super::super::traffic::PhaseTraffic;
use super::{BOTH, class, connection, foreign, judged, milliseconds, phase, phases};

fn graded(classes: &[(LatencyClass, [u64; 3])]) -> LoadDocument {
    let classes = classes.iter().map(|(name, times)| class(*name, *times)).collect();
    judged(&LoadEvidence { classes, ..phases() }, PeerKind::Linerate)
}

#[test]
fn the_letter_follows_the_added_delay() {
    for (added, letter) in [
        (0, "A+"),
        (4, "A+"),
        (5, "A"),
        (29, "A"),
        (30, "B"),
        (59, "B"),
        (60, "C"),
        (199, "C"),
        (200, "D"),
        (399, "D"),
        (400, "F"),
        (4000, "F"),
    ] {
        let document = graded(&[(LatencyClass::UdpBestEffort, [20, 20 + added, 20])]);
        let grade = document.grade.expect("a baseline and a load");
        assert_eq!((grade.letter.letter(), grade.added_ns), (letter, added * 1_000_000), "{added} ms");
        assert_eq!(
            (grade.down.map(LatencyGrade::letter), grade.up.map(LatencyGrade::letter)),
            (Some(letter), Some("A+")),
            "{added} ms"
        );
        assert_eq!(document.ungraded_because, None);
        let bounds: Vec<u64> = grade.thresholds.iter().map(|(_, below)| below / 1_000_000).collect();
        assert_eq!(bounds, [5, 30, 60, 200, 400]);
    }
}

#[test]
fn a_load_that_makes_the_path_faster_adds_nothing() {
    let grade = graded(&[(LatencyClass::UdpBestEffort, [50, 20, 30])]).grade.expect("graded");
    assert_eq!((grade.letter.letter(), grade.added_ns), ("A+", 0));
}

#[test]
fn the_worst_direction_and_class_decide() {
    for (udp, tcp, class, direction, added) in [
        ([10, 20, 110], [10, 20, 30], LatencyClass::UdpBestEffort, Direction::Up, 100),
        ([10, 110, 20], [10, 20, 30], LatencyClass::UdpBestEffort, Direction::Down, 100),
        ([10, 20, 30], [10, 310, 30], LatencyClass::TcpInfo, Direction::Down, 300),
        ([10, 20, 30], [10, 20, 90], LatencyClass::TcpInfo, Direction::Up, 80),
    ] {
        let document = graded(&[(LatencyClass::UdpBestEffort, udp), (LatencyClass::TcpInfo, tcp)]);
        let grade = document.grade.expect("graded");
        assert_eq!((grade.class, grade.direction, grade.added_ns), (class, direction, added * 1_000_000));
    }
}

#[test]
fn classes_that_routers_prefer_do_not_count_and_are_named_when_they_flatter() {
    let document = graded(&[
        (LatencyClass::Icmp, [10, 11, 12]),
        (LatencyClass::UdpExpeditedForwarding, [10, 12, 12]),
        (LatencyClass::TcpApplication, [10, 5000, 5000]),
        (LatencyClass::UdpBestEffort, [10, 110, 250]),
    ]);
    let grade = document.grade.expect("graded");
    assert_eq!((grade.letter.letter(), grade.direction), ("D", Direction::Up));
    assert_eq!((grade.down.map(LatencyGrade::letter), grade.up.map(LatencyGrade::letter)), (Some("C"), Some("D")));
    assert_eq!(
        document.notes,
        [
            "Loaded down, ICMP echoes alone would have given A+; UDP best effort give C, which is what applications \
             experience.",
            "Loaded up, ICMP echoes alone would have given A+; UDP best effort give D, which is what applications \
             experience."
        ]
    );
}

#[test]
fn without_a_grade_there_is_a_reason() {
    let udp = || vec![class(LatencyClass::UdpBestEffort, [10, 20, 30])];
    let without_idle = LoadEvidence { phases: phases().phases.split_off(1), classes: udp(), ..LoadEvidence::default() };
    let idle_only =
        LoadEvidence { phases: vec![phases().phases.swap_remove(0)], classes: udp(), ..LoadEvidence::default() };
    let icmp_only = LoadEvidence { classes: vec![class(LatencyClass::Icmp, [10, 20, 290])], ..phases() };
    let nothing = LoadEvidence { classes: Vec::new(), ..phases() };
    for (evidence, peer, reason) in [
        (&without_idle, PeerKind::Linerate, "the idle path was not measured, so that there is no baseline"),
        (&without_idle, PeerKind::Bare, "the idle path was not measured"),
        (&idle_only, PeerKind::Bare, "the host has no measurement service to load the path with"),
        (&idle_only, PeerKind::Linerate, "the measurement ended before a direction had been loaded alone"),
        (
            &icmp_only,
            PeerKind::Iperf3,
            "UDP probes were not answered, no idle connection is available as a baseline, and routers may prioritise \
             ICMP over other traffic (loaded down, ICMP echoes added 10.0 ms, which would be A; loaded up, ICMP echoes \
             added 280 ms, which would be D)",
        ),
        (&nothing, PeerKind::Linerate, "routers may prioritise ICMP over other traffic"),
    ] {
        let document = judged(evidence, peer);
        assert_eq!(document.grade, None);
        let found = document.ungraded_because.expect("a reason");
        assert!(found.contains(reason), "{found}");
    }
}

#[test]
fn foreign_traffic_prevents_a_grade() {
    let mut evidence = LoadEvidence { classes: vec![class(LatencyClass::UdpBestEffort, [10, 20, 30])], ..phases() };
    let traffic = |counted, own| linerate_analysis::latency_under_load::InterfaceTraffic {
        counted: ByteCount::new(counted),
        own: ByteCount::new(own),
        time: milliseconds(2000),
    };
    let clean = traffic(1_000_000, 1_000_000);
    evidence.phases[1].near = Some(PhaseTraffic { sent: clean, received: traffic(1_000_000, 800_000) });
    let document = judged(&evidence, PeerKind::Linerate);
    assert_eq!(document.grade, None);
    // 200 kB in two seconds.
    let expected =
        "foreign traffic was on the path: this host received 800 kbit/s of foreign traffic while it was loaded down";
    assert_eq!(document.ungraded_because.as_deref(), Some(expected));
}

#[test]
fn responsiveness_is_the_mean_of_new_and_loaded_connections() {
    // 20 ms each are 3000 round trips a minute, 60 ms are 1000, 10 ms are 6000.
    for (new, pings, expected) in [
        (Some((20, 20)), [10, 20, 20], 3000.0),
        (Some((20, 20)), [10, 60, 60], 2000.0),
        (Some((10, 30)), [10, 60, 60], 2000.0),
        (None, [10, 60, 60], 1000.0),
    ] {
        let connections = |from| new.map(|(tcp, request)| foreign(from, tcp, request));
        let evidence = LoadEvidence {
            classes: vec![class(LatencyClass::TcpApplication, pings)],
            // Those outside the windows do not count.
            foreign: [connections(3500), connections(6500), Some(foreign(5500, 1, 1))].into_iter().flatten().collect(),
            ..phases()
        };
        let found = judged(&evidence, PeerKind::Linerate).responsiveness.expect("pings under load");
        for value in [found.down, found.up] {
            let value = value.expect("both directions were loaded");
            assert!((value - expected).abs() < 1e-6, "{new:?}, {pings:?}: {value}");
        }
        assert_eq!(found.both, None, "that phase did not run");
        assert_eq!(found.method, ResponsivenessMethod::Draft09);
    }
}

#[test]
fn confidence_is_that_of_the_least_stable_phase() {
    for (goodput, latency, confidence) in [
        ([true, true], [true, true], "high"),
        ([true, true], [true, false], "medium"),
        ([true, false], [true, true], "low"),
        ([false, false], [false, false], "low"),
    ] {
        let mut evidence =
            LoadEvidence { classes: vec![class(LatencyClass::TcpApplication, [10, 20, 20])], ..phases() };
        for (index, phase) in evidence.phases[1..].iter_mut().enumerate() {
            (phase.goodput_stable, phase.latency_stable) = (Some(goodput[index]), Some(latency[index]));
        }
        let found = judged(&evidence, PeerKind::Linerate).responsiveness.expect("pings under load");
        assert_eq!(found.confidence.name(), confidence);
    }
}

#[test]
fn without_pings_responsiveness_is_unknown_with_a_reason() {
    let evidence = LoadEvidence { classes: vec![class(LatencyClass::UdpBestEffort, [10, 20, 20])], ..phases() };
    for (peer, part) in [
        (PeerKind::Linerate, "no probe of this kind was answered"),
        (PeerKind::Iperf3, "an iperf3 server does not answer these probes"),
        (PeerKind::Bare, "the host has no measurement service"),
    ] {
        let document = judged(&evidence, peer);
        assert_eq!(document.responsiveness, None);
        let reason = document.unknown.iter().find(|unknown| unknown.key == "responsiveness").expect("a reason");
        assert!(reason.reason.contains(part), "{}", reason.reason);
    }
}

#[test]
fn a_phase_in_both_directions_has_its_own_responsiveness_and_no_grade() {
    let mut evidence = LoadEvidence { classes: vec![class(LatencyClass::UdpBestEffort, [10, 20, 20])], ..phases() };
    let mut both = phase(PhaseKind::Both, BOTH);
    both.connections = vec![connection(1, Direction::Down, BOTH.from, 1000)];
    evidence.phases.push(both);
    let mut pings = class(LatencyClass::TcpApplication, [10, 20, 20]);
    let slow = super::ProbeReading::answered(BOTH.from, milliseconds(120));
    pings.readings.push(slow);
    evidence.classes.push(pings);
    evidence.classes[0].readings.push(super::ProbeReading::answered(BOTH.from, milliseconds(9000)));
    let document = judged(&evidence, PeerKind::Linerate);
    assert_eq!(document.responsiveness.and_then(|found| found.both), Some(500.0));
    assert_eq!(document.grade.map(|grade| grade.letter), Some(LatencyGrade::A), "the grade is of single directions");
}
