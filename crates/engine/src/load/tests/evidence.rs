//! Phases of the document, from their evidence.

use linerate_analysis::latency_under_load::LatencyClass;
use linerate_model::direction::Direction;
use linerate_model::load::PhaseKind;
use linerate_model::path::{PeerKind, UnknownValue};
use linerate_units::{BitRate, SegmentCount};

use super::super::evidence::{ClassSamples, LoadEvidence, PhaseEvidence, ProbeReading};
use super::super::verdict;
use super::{
    BOTH, DOWN, IDLE, UP, at, class, connection, document, judged, lost, milliseconds, phases, sample, window,
};

#[test]
fn phases_have_their_times_since_the_start() {
    let mut evidence = phases();
    evidence.phases[1].began = at(2500);
    evidence.phases[1].goodput_stable = Some(false);
    evidence.phases.push(PhaseEvidence::new(PhaseKind::Both, at(8500)));
    let phases = judged(&evidence, PeerKind::Linerate).phases;
    let times: Vec<_> = phases
        .iter()
        .map(|phase| {
            [Some(phase.start_ns), phase.stable_ns, Some(phase.end_ns)].map(|time| time.map(|time| time / 1_000_000))
        })
        .collect();
    assert_eq!(times[0], [Some(0), Some(0), Some(2000)]);
    assert_eq!(times[1], [Some(2500), Some(3000), Some(5000)]);
    assert_eq!(times[2], [Some(6000), Some(6000), Some(8000)]);
    assert_eq!(times[3], [Some(8500), None, Some(12_000)], "an aborted phase ends with the measurement");
    assert_eq!(phases.iter().map(|phase| phase.stable).collect::<Vec<_>>(), [None, Some(false), Some(true), None]);
    // An aborted phase ends where the next one begins.
    evidence.phases[2].window = None;
    assert_eq!(judged(&evidence, PeerKind::Linerate).phases[2].end_ns, 8_500_000_000);
}

#[test]
fn goodput_is_the_sum_of_a_directions_connections() {
    let mut evidence = phases();
    evidence.phases[1].connections = vec![
        connection(1, Direction::Down, DOWN.from, 100_000),
        connection(2, Direction::Down, DOWN.from, 25_000),
        connection(3, Direction::Up, DOWN.from, 1000),
    ];
    let phase = &judged(&evidence, PeerKind::Linerate).phases[1];
    assert_eq!(phase.goodput_down_bits_per_second, Some(10e6));
    assert_eq!(phase.goodput_up_bits_per_second, Some(80e3));
    let idle = &judged(&evidence, PeerKind::Linerate).phases[0];
    assert_eq!((idle.goodput_down_bits_per_second, idle.goodput_up_bits_per_second), (None, None));
}

#[test]
fn a_connection_of_which_too_little_is_known_has_no_rate() {
    // The payload is known from 0 to 2000 ms after the start.
    for (from, to, known) in [
        (0, 2000, true),
        (0, 4000, true),
        (0, 4001, false),
        (1000, 3000, true),
        (1001, 3000, false),
        (2000, 3000, false),
    ] {
        let found = connection(1, Direction::Up, at(0), 1000).rate(window(from, to));
        assert_eq!(found, known.then(|| BitRate::from_bits_per_second(80e3)), "{from} to {to}");
    }
    let mut empty = connection(1, Direction::Up, at(0), 1000);
    empty.payload.clear();
    assert_eq!(empty.rate(IDLE), None);
}

#[test]
fn retransmissions_are_those_within_the_window() {
    let retransmits = |counts: &[(u64, Option<u64>)]| {
        let samples = counts.iter().map(|(time, count)| {
            let mut sample = sample(*time);
            sample.retransmits = count.map(SegmentCount::new);
            sample
        });
        samples.collect::<Vec<_>>()
    };
    let mut evidence = phases();
    let mut one = connection(1, Direction::Down, at(2000), 1000);
    // The window is from 1000 to 3000 ms after the start.
    one.samples =
        retransmits(&[(0, Some(3)), (999, Some(7)), (1000, Some(8)), (2000, None), (2999, Some(20)), (3000, Some(99))]);
    let mut other = connection(2, Direction::Down, at(3000), 1000);
    other.samples = retransmits(&[(100, Some(5))]);
    evidence.phases[1].connections = vec![one, other];
    assert_eq!(judged(&evidence, PeerKind::Linerate).phases[1].retransmitted_segments, Some(12));
    evidence.phases[1].connections[0].samples = retransmits(&[(1500, None)]);
    evidence.phases[1].connections[1].samples.clear();
    assert_eq!(judged(&evidence, PeerKind::Linerate).phases[1].retransmitted_segments, None, "unknown, not zero");
}

#[test]
fn classes_have_their_counts_per_phase() {
    let mut udp = class(LatencyClass::UdpBestEffort, [20, 40, 30]);
    udp.readings.extend([lost(3010, Some(Direction::Up)), lost(3020, Some(Direction::Down)), lost(5000, None)]);
    let mut pings = class(LatencyClass::TcpApplication, [20, 50, 60]);
    pings.counts_losses = false;
    pings.readings.push(lost(6010, None));
    let kernel = class(LatencyClass::TcpInfo, [20, 41, 31]);
    let evidence = LoadEvidence { classes: vec![udp, pings, kernel], ..phases() };
    let phases = judged(&evidence, PeerKind::Linerate).phases;
    let counts = |phase: usize, class: usize| {
        let found = &phases[phase].classes[class];
        (found.class, found.sent, found.lost, found.lost_up, found.lost_down)
    };
    assert_eq!(counts(0, 0), (LatencyClass::UdpBestEffort, Some(40), Some(0), Some(0), Some(0)));
    assert_eq!(counts(1, 0), (LatencyClass::UdpBestEffort, Some(42), Some(2), Some(1), Some(1)));
    // The loss at the end of the window is outside, and so is its unknown direction.
    assert_eq!(counts(2, 0), (LatencyClass::UdpBestEffort, Some(40), Some(0), Some(0), Some(0)));
    assert_eq!(counts(2, 1), (LatencyClass::TcpApplication, Some(40), None, None, None), "only answered pings count");
    assert_eq!(counts(1, 2), (LatencyClass::TcpInfo, None, None, None, None), "the kernel's samples are not sent");
    let uplifts: Vec<_> = phases[1].classes.iter().map(|class| class.uplift_median_ns).collect();
    assert_eq!(uplifts, [Some(20_000_000), Some(30_000_000), Some(21_000_000)]);
    assert!(phases[0].classes.iter().all(|class| class.uplift_median_ns.is_none()));
}

#[test]
fn each_missing_value_has_one_reason() {
    let evidence = LoadEvidence {
        classes: vec![
            class(LatencyClass::UdpBestEffort, [20, 40, 30]),
            ClassSamples { class: LatencyClass::Icmp, readings: vec![lost(0, None)], counts_losses: true },
        ],
        ..phases()
    };
    let mut document = document(PeerKind::Linerate);
    let known = UnknownValue { key: "classes.tcp_info".to_owned(), reason: "an earlier reason".to_owned() };
    document.unknown.push(known.clone());
    verdict::complete(&mut document, &evidence, at(0), at(12_000));
    let keys: Vec<&str> = document.unknown.iter().map(|unknown| unknown.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "classes.tcp_info",
            "classes.icmp",
            "classes.udp_expedited_forwarding",
            "classes.tcp_application",
            "classes.tcp_handshake",
            "responsiveness",
            "contamination",
            "congestion_control",
            "queues.down.one_way_confirms",
            "queues.up.one_way_confirms",
        ]
    );
    assert_eq!(document.unknown[0], known, "the first reason is kept");
    assert_eq!(document.unknown[1].reason, "no ICMP echo was answered");
}

#[test]
fn windows_include_their_start_and_exclude_their_end() {
    let readings = [2999, 3000, 4999, 5000].map(|sent| ProbeReading::answered(at(sent), milliseconds(1)));
    let class = ClassSamples { class: LatencyClass::Icmp, readings: readings.to_vec(), counts_losses: true };
    let sent: Vec<_> = class.within(DOWN).iter().map(|reading| reading.sent).collect();
    assert_eq!(sent, [at(3000), at(4999)]);
    for window in [IDLE, DOWN, UP, BOTH] {
        assert_eq!(window.length(), milliseconds(2000));
    }
}
