//! Location of the queue that the load fills.

use linerate_analysis::latency_under_load::LatencyClass;
use linerate_model::direction::Direction;
use linerate_model::load::{QueueFinding, QueueHost};
use linerate_model::path::PeerKind;
use linerate_units::ByteCount;

use super::super::evidence::{HopSamples, LoadEvidence};
use super::{UP, class, connection, hop, judged, milliseconds, phases};

/// Locations for a path whose round trip grows from 20 ms to 120 ms up.
fn located(hops: Vec<HopSamples>, far_distance: Option<u8>, backlog: Option<u64>) -> Vec<QueueFinding> {
    let mut evidence =
        LoadEvidence { classes: vec![class(LatencyClass::Icmp, [20, 21, 120])], hops, far_distance, ..phases() };
    // 1 MB/s up.
    evidence.phases[2].connections = vec![connection(1, Direction::Up, UP.from, 100_000)];
    if let Some(backlog) = backlog {
        evidence.phases[2].backlog = vec![(UP.from, ByteCount::new(backlog)); 3];
    }
    judged(&evidence, PeerKind::Linerate).queues
}

fn up(queues: &[QueueFinding]) -> &QueueFinding {
    queues.iter().find(|queue| queue.direction == Direction::Up).expect("loaded up")
}

#[test]
fn the_queue_is_before_the_first_hop_whose_round_trip_grows() {
    let (calm, grown) = (Some([2, 2, 3]), Some([2, 2, 102]));
    for (hops, far_distance, place) in [
        (vec![hop(1, grown), hop(2, grown)], None, QueueHost::NextHop),
        (vec![hop(1, calm), hop(2, grown)], None, QueueHost::Beyond),
        (vec![hop(1, calm), hop(2, None)], None, QueueHost::Beyond),
        (vec![hop(1, None), hop(2, grown)], None, QueueHost::Unknown),
        (vec![hop(1, None)], None, QueueHost::Unknown),
        (Vec::new(), None, QueueHost::Unknown),
        (Vec::new(), Some(1), QueueHost::NextHop),
        // Half of the growth is enough; less is not.
        (vec![hop(1, Some([2, 2, 52]))], None, QueueHost::NextHop),
        (vec![hop(1, Some([2, 2, 51]))], None, QueueHost::Beyond),
    ] {
        let distances: Vec<u8> = hops.iter().map(|hop| hop.distance).collect();
        let queues = located(hops, far_distance, None);
        assert_eq!(up(&queues).location, place, "{distances:?}, far end at {far_distance:?}");
        assert_eq!(up(&queues).added_ns, Some(100_000_000));
    }
}

#[test]
fn a_direction_without_added_delay_has_no_queue() {
    let queues = located(vec![hop(1, Some([2, 2, 102]))], None, None);
    let down = queues.iter().find(|queue| queue.direction == Direction::Down).expect("loaded down");
    assert_eq!((down.location, down.added_ns), (QueueHost::Nowhere, Some(1_000_000)));
}

#[test]
fn a_backlog_of_this_host_that_takes_half_of_the_delay_to_leave_is_the_queue() {
    for (backlog, place) in [
        (50_000, QueueHost::ThisHost),
        (100_000, QueueHost::ThisHost),
        (49_000, QueueHost::NextHop),
        (0, QueueHost::NextHop),
    ] {
        let queues = located(vec![hop(1, Some([2, 2, 102]))], None, Some(backlog));
        let queue = up(&queues);
        assert_eq!(queue.location, place, "{backlog} bytes at 1 MB/s");
        assert!(queue.evidence.contains("this host's own queue took"), "{}", queue.evidence);
    }
}

#[test]
fn the_evidence_names_the_class_and_each_hop_that_answered() {
    let queues = located(vec![hop(1, Some([2, 2, 3])), hop(2, None), hop(3, Some([5, 5, 105]))], None, None);
    let queue = up(&queues);
    assert_eq!(
        queue.evidence,
        "ICMP echoes took 100 ms longer (median); hop 1 (192.0.2.1) 1.00 ms longer; hop 3 (192.0.2.3) 100 ms longer"
    );
    let hops: Vec<(u8, Option<u128>)> =
        queue.hops.iter().map(|hop| (hop.distance, hop.rtt.map(|rtt| rtt.median.as_millis()))).collect();
    assert_eq!(hops, [(1, Some(3)), (3, Some(105))], "silent hops are left out");
    let silent = located(vec![hop(1, None)], None, None);
    assert!(
        up(&silent).evidence.ends_with("no hop before the far end answered while it was idle and while it was loaded")
    );
    let direct = located(Vec::new(), Some(1), None);
    assert!(up(&direct).evidence.ends_with("the far end is the next hop itself"));
}

#[test]
fn echoes_locate_before_other_probes() {
    let (echoes, udp, tcp) = (LatencyClass::Icmp, LatencyClass::UdpBestEffort, LatencyClass::TcpInfo);
    for (classes, name, added) in [
        (vec![(tcp, 90), (udp, 80), (echoes, 70)], "ICMP echoes", 60),
        (vec![(tcp, 90), (udp, 80)], "UDP best effort", 70),
        (vec![(tcp, 90)], "the loaded connections themselves", 80),
    ] {
        let classes = classes.into_iter().map(|(name, loaded)| class(name, [10, 10, loaded])).collect();
        let queues = judged(&LoadEvidence { classes, ..phases() }, PeerKind::Linerate).queues;
        let queue = up(&queues);
        assert!(queue.evidence.starts_with(&format!("{name} took {added}.0 ms longer")), "{}", queue.evidence);
    }
    let handshakes = LoadEvidence { classes: vec![class(LatencyClass::TcpHandshake, [10, 10, 90])], ..phases() };
    assert!(judged(&handshakes, PeerKind::Linerate).queues.is_empty(), "other classes locate nothing");
}

#[test]
fn one_way_delays_confirm_when_only_the_loaded_direction_grows() {
    for (own, other, confirms) in
        [(80, 0, true), (80, 19, true), (80, 20, false), (4, 0, false), (5, 4, true), (5, 5, false)]
    {
        let mut udp = class(LatencyClass::UdpBestEffort, [20, 20, 100]);
        for reading in &mut udp.readings {
            let grown = |time: i64| if UP.contains(reading.sent) { time * 1_000_000 } else { 0 };
            // The far clock is ahead: only differences count.
            (reading.up, reading.down) = (Some(7_000_000_000 + grown(own)), Some(-6_000_000_000 + grown(other)));
        }
        let queues = judged(&LoadEvidence { classes: vec![udp], ..phases() }, PeerKind::Linerate).queues;
        assert_eq!(up(&queues).one_way_confirms, Some(confirms), "{own} ms up, {other} ms down");
        let down = queues.iter().find(|queue| queue.direction == Direction::Down).expect("loaded down");
        assert_eq!(down.one_way_confirms, Some(false), "nothing grew");
    }
}

#[test]
fn without_one_way_times_confirmation_is_unknown_with_a_reason() {
    let evidence = LoadEvidence { classes: vec![class(LatencyClass::UdpBestEffort, [20, 20, 100])], ..phases() };
    let document = judged(&evidence, PeerKind::Iperf3);
    assert_eq!(up(&document.queues).one_way_confirms, None);
    let keys: Vec<&str> = document.unknown.iter().map(|unknown| unknown.key.as_str()).collect();
    for key in ["queues.up.one_way_confirms", "queues.down.one_way_confirms"] {
        assert!(keys.contains(&key), "{keys:?}");
    }
}

#[test]
fn only_loaded_directions_are_located() {
    let mut evidence = LoadEvidence { classes: vec![class(LatencyClass::Icmp, [20, 120, 120])], ..phases() };
    evidence.phases.remove(2);
    let queues = judged(&evidence, PeerKind::Linerate).queues;
    assert_eq!(queues.iter().map(|queue| queue.direction).collect::<Vec<_>>(), [Direction::Down]);
    evidence.phases[1].window = None;
    assert!(judged(&evidence, PeerKind::Linerate).queues.is_empty(), "an aborted phase shows nothing");
    // Without any round trip of this host's queue the backlog has no meaning down.
    let mut backlog = LoadEvidence { classes: vec![class(LatencyClass::Icmp, [20, 120, 120])], ..phases() };
    backlog.phases[1].backlog = vec![(super::DOWN.from, ByteCount::from_mebibytes(10))];
    backlog.phases[1].connections = vec![connection(1, Direction::Down, super::DOWN.from, 100_000)];
    let queues = judged(&backlog, PeerKind::Linerate).queues;
    assert_eq!(queues[0].location, QueueHost::Unknown);
    assert!(!queues[0].evidence.contains("own queue"), "{}", queues[0].evidence);
    assert_eq!(queues[0].added_ns, Some(u64::try_from(milliseconds(100).as_nanos()).expect("small")));
}
