//! Foreign traffic at either end of the path.

use linerate_analysis::latency_under_load::InterfaceTraffic;
use linerate_model::direction::Direction;
use linerate_model::load::PhaseKind;
use linerate_model::path::PeerKind;
use linerate_units::ByteCount;

use super::super::evidence::LoadEvidence;
use super::super::traffic::PhaseTraffic;
use super::{DOWN, connection, judged, milliseconds, phases};

/// Bytes in two seconds: counted, and the measurement's own.
const fn traffic(counted: u64, own: u64) -> InterfaceTraffic {
    InterfaceTraffic { counted: ByteCount::new(counted), own: ByteCount::new(own), time: milliseconds(2000) }
}

const CLEAN: InterfaceTraffic = traffic(2_000_000, 2_000_000);

/// Evidence with a download of 1 MB/s.
fn loaded() -> LoadEvidence {
    let mut evidence = phases();
    evidence.phases[1].connections = vec![connection(1, Direction::Down, DOWN.from, 100_000)];
    evidence
}

fn set(evidence: &mut LoadEvidence, kind: PhaseKind, far: bool, sent: InterfaceTraffic, received: InterfaceTraffic) {
    let phase = evidence.phases.iter_mut().find(|phase| phase.kind == kind).expect("it ran");
    *(if far { &mut phase.far } else { &mut phase.near }) = Some(PhaseTraffic { sent, received });
}

#[test]
fn without_counters_it_is_unknown() {
    let document = judged(&loaded(), PeerKind::Linerate);
    assert_eq!(document.contamination, None);
    let reason = document.unknown.iter().find(|unknown| unknown.key == "contamination").expect("a reason");
    assert_eq!(reason.reason, "the counters of the interface could not be read");
}

#[test]
fn clean_ends_are_reported_as_such() {
    let mut evidence = loaded();
    for kind in [PhaseKind::Idle, PhaseKind::Down, PhaseKind::Up] {
        // The measurement's own traffic is estimated generously.
        set(&mut evidence, kind, false, traffic(1_900_000, 2_000_000), CLEAN);
        set(&mut evidence, kind, true, CLEAN, CLEAN);
    }
    let found = judged(&evidence, PeerKind::Linerate).contamination.expect("counted");
    assert_eq!((found.spoils, found.share), (false, 0.0));
    assert_eq!(found.evidence, "no foreign traffic was seen at either end");
}

#[test]
fn under_load_the_share_of_the_counted_bytes_decides() {
    for (own, spoils) in [(1_000_000, true), (1_820_000, true), (1_840_000, false), (1_999_000, false)] {
        let mut evidence = loaded();
        set(&mut evidence, PhaseKind::Down, false, CLEAN, traffic(2_000_000, own));
        let found = judged(&evidence, PeerKind::Linerate).contamination.expect("counted");
        let share = ByteCount::new(2_000_000 - own).as_f64() / 2e6;
        assert_eq!(found.spoils, spoils, "{own}");
        assert!((found.share - share).abs() < 1e-9, "{own}: {}", found.share);
        assert!(found.evidence.starts_with("this host received "), "{}", found.evidence);
        assert!(found.evidence.ends_with(" of foreign traffic while it was loaded down"), "{}", found.evidence);
    }
}

#[test]
fn a_trickle_never_spoils() {
    let mut evidence = loaded();
    // 5000 bytes in two seconds are 20 kbit/s: all that was counted, and still ignored.
    set(&mut evidence, PhaseKind::Up, false, traffic(5000, 0), CLEAN);
    let found = judged(&evidence, PeerKind::Linerate).contamination.expect("counted");
    assert_eq!((found.spoils, found.share), (false, 1.0));
}

#[test]
fn idle_traffic_is_compared_with_the_capacity() {
    // Of 1 MB/s, 3 % are 60 kB in two seconds.
    for (counted, spoils) in [(59_000, false), (61_000, true)] {
        let mut evidence = loaded();
        set(&mut evidence, PhaseKind::Idle, true, traffic(counted, 0), traffic(0, 0));
        let found = judged(&evidence, PeerKind::Linerate).contamination.expect("counted");
        assert_eq!(found.spoils, spoils, "{counted}");
        let share = ByteCount::new(counted).as_f64() / 2e6;
        assert!((found.share - share).abs() < 1e-6, "{counted}: {}", found.share);
        assert!(found.evidence.starts_with("the far host sent "), "{}", found.evidence);
        assert!(found.evidence.ends_with(" of foreign traffic while it was idle"), "{}", found.evidence);
    }
    // Without a load, the capacity is unknown, and so is its share.
    let mut idle = phases();
    set(&mut idle, PhaseKind::Idle, false, traffic(1_000_000, 0), CLEAN);
    assert_eq!(judged(&idle, PeerKind::Linerate).contamination, None);
}

#[test]
fn the_worst_phase_is_the_one_reported() {
    let mut evidence = loaded();
    // A tenth of the capacity while idle spoils; a larger share of a trickle does not.
    set(&mut evidence, PhaseKind::Up, false, traffic(4000, 0), CLEAN);
    set(&mut evidence, PhaseKind::Idle, false, traffic(200_000, 0), traffic(0, 0));
    let found = judged(&evidence, PeerKind::Linerate).contamination.expect("counted");
    assert!(found.spoils);
    assert!(found.evidence.ends_with("while it was idle"), "{}", found.evidence);
    // Among two that spoil, the larger share.
    set(&mut evidence, PhaseKind::Down, true, traffic(2_000_000, 1_000_000), CLEAN);
    let found = judged(&evidence, PeerKind::Linerate).contamination.expect("counted");
    assert_eq!((found.spoils, found.share), (true, 0.5));
    assert_eq!(found.evidence, "the far host sent 4.00 Mbit/s of foreign traffic while it was loaded down");
}
