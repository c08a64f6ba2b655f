use linerate_sys::clock;
use proptest::prelude::*;

use super::*;
use crate::test_support::{Loopback, answer, send};

const DOWN: Direction = Direction::Down;
const UP: Direction = Direction::Up;

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn bytes(record: &SessionRecord, direction: Direction) -> Vec<u64> {
    record.points_of(direction).iter().map(|point| point.bytes.get()).collect()
}

#[test]
fn each_direction_counts_what_the_kernel_counts_since_it_began() {
    let loopback = Loopback::new();
    let (connection, mut client) = loopback.connect(1);
    let begun = clock::monotonic_now();
    let mut record = SessionRecord::new(begun);
    let mut now = begun;
    for (direction, expected) in [(DOWN, [1000, 3000]), (UP, [1000, 3000])] {
        // Before the phase: not its bytes.
        send(&mut client, &connection, 500);
        answer(&connection, 500);
        record.join(direction, &connection, now);
        for count in [1000, 2000] {
            match direction {
                Direction::Down => answer(&connection, count),
                Direction::Up => send(&mut client, &connection, count),
            }
            now = now + SAMPLING_INTERVAL;
            record.sample(now);
        }
        assert_eq!(bytes(&record, direction), expected);
    }
    let summary: Vec<_> =
        record.phases.iter().map(|phase| (phase.direction, phase.bytes().get(), phase.connections())).collect();
    assert_eq!(summary, [(DOWN, 3000, 1), (UP, 3000, 1)]);
    assert_eq!(record.phases[1].duration(), 2 * SAMPLING_INTERVAL);
    assert!(record.points_of(DOWN).iter().all(|point| point.rtt.is_some() && point.congestion_window.is_some()));
}

#[test]
fn a_connection_without_data_carries_nothing() {
    let loopback = Loopback::new();
    let (connection, mut client) = loopback.connect(1);
    let (silent, _silent_client) = loopback.connect(2);
    let begun = clock::monotonic_now();
    let mut record = SessionRecord::new(begun);
    record.join(UP, &connection, begun);
    record.join(UP, &silent, begun);
    record.join(UP, &connection, begun);
    send(&mut client, &connection, 1000);
    record.sample(begun + SAMPLING_INTERVAL);
    assert_eq!((record.phases[0].connections(), record.phases[0].ends().count()), (1, 2), "each joins once");
}

#[test]
fn the_bytes_of_a_closed_connection_stay_and_its_window_is_unknown() {
    let loopback = Loopback::new();
    let (connection, mut client) = loopback.connect(1);
    let begun = clock::monotonic_now();
    let mut record = SessionRecord::new(begun);
    record.join(UP, &connection, begun);
    send(&mut client, &connection, 1000);
    record.sample(begun + SAMPLING_INTERVAL);
    drop(connection);
    record.sample(begun + 2 * SAMPLING_INTERVAL);
    let points = record.points_of(UP);
    assert!(points[0].congestion_window.is_some() && points[0].rtt.is_some());
    assert_eq!((points[1].bytes.get(), points[1].rtt, points[1].congestion_window), (1000, None, None));
}

#[test]
fn a_direction_that_begins_again_after_a_pause_begins_anew() {
    let loopback = Loopback::new();
    let (connection, mut client) = loopback.connect(1);
    let begun = clock::monotonic_now();
    for (pause, goes_on) in [(MAX_PAUSE, true), (MAX_PAUSE + milliseconds(1), false)] {
        let mut record = SessionRecord::new(begun);
        record.join(DOWN, &connection, begun);
        record.sample(begun + SAMPLING_INTERVAL);
        record.join(UP, &connection, begun);
        send(&mut client, &connection, 1000);
        let last = begun + SAMPLING_INTERVAL;
        record.sample(last);
        record.join(UP, &connection, last + pause);
        let started = if goes_on { begun } else { last + pause };
        assert_eq!(record.phases[1].started, started);
        assert_eq!(bytes(&record, UP), if goes_on { vec![1000] } else { vec![] });
        assert_eq!(bytes(&record, DOWN), [0], "the other direction stays");
    }
}

#[test]
fn a_phase_has_no_more_connections_and_a_session_no_more_points_than_the_limits() {
    let loopback = Loopback::new();
    let connections: Vec<_> = (0..40).map(|number| loopback.connect(number)).collect();
    let begun = clock::monotonic_now();
    let mut record = SessionRecord::new(begun);
    for (connection, _) in &connections {
        record.join(DOWN, connection, begun);
    }
    assert_eq!(record.phases[0].ends().count(), MAX_CONNECTIONS);
    // Evidence is due at every second sample.
    (1..=4).for_each(|index| record.sample(begun + index * SAMPLING_INTERVAL));
    assert_eq!(record.phases[0].round_trips().len(), 2 * MAX_OBSERVED);
    let mut record = SessionRecord::new(begun);
    record.join(DOWN, &connections[0].0, begun);
    (1..=2000).for_each(|index| record.sample(begun + index * SAMPLING_INTERVAL));
    assert_eq!((record.points.len(), record.phases[0].round_trips().len()), (MAX_POINTS, MAX_EVIDENCE));
    assert_eq!(record.phases[0].duration(), 2000 * SAMPLING_INTERVAL, "its end is known all the same");
}

#[test]
fn an_observation_has_the_intervals_of_the_connections_that_moved_data() {
    let loopback = Loopback::new();
    let (connection, mut client) = loopback.connect(1);
    let (silent, _silent_client) = loopback.connect(2);
    let begun = clock::monotonic_now();
    let mut record = SessionRecord::new(begun);
    record.join(UP, &connection, begun);
    record.join(UP, &silent, begun);
    for index in 1..=3 {
        send(&mut client, &connection, 1000);
        record.sample(begun + 2 * index * SAMPLING_INTERVAL);
    }
    let observation = record.phases[0].observation();
    assert_eq!((observation.received, observation.elapsed), (ByteCount::new(3000), 6 * SAMPLING_INTERVAL));
    assert_eq!(observation.congestion_control, None, "the sender is the browser's host");
    let [observed] = &observation.connections[..] else { panic!("one connection: {observation:?}") };
    assert!(observed.sender.is_empty());
    let intervals: Vec<_> =
        observed.receiver.iter().map(|part| (part.from.as_millis(), part.to.as_millis(), part.bytes.get())).collect();
    assert_eq!(intervals, [(0, 200, 1000), (200, 400, 1000), (400, 600, 1000)]);
    assert!(record.phases[0].receiver_limit().is_some());
}

#[test]
fn pauses_are_a_share_of_the_time_of_all_connections() {
    let loopback = Loopback::new();
    let mut connections = [1, 2].map(|number| loopback.connect(number));
    let begun = clock::monotonic_now();
    let mut record = SessionRecord::new(begun);
    record.add_pause(UP, milliseconds(100));
    for (connection, client) in &mut connections {
        record.join(UP, connection, begun);
        send(client, connection, 100);
    }
    record.add_pause(DOWN, milliseconds(100));
    let share = |record: &SessionRecord| record.phases[0].paused_share().get();
    assert!(share(&record).abs() < 1e-9, "no time has passed");
    record.sample(begun + milliseconds(500));
    record.add_pause(UP, milliseconds(250));
    assert!((share(&record) - 0.25).abs() < 1e-9, "of half a second of two connections");
    record.add_pause(UP, milliseconds(5000));
    assert!((share(&record) - 1.0).abs() < 1e-9);
}

/// A record of one phase with these points: milliseconds since the session began, and bytes.
fn record_of(direction: Direction, started: u64, points: &[(u64, u64)]) -> SessionRecord {
    let at = |time: u64| MonotonicTime::from_nanos(1) + milliseconds(time);
    let ended = at(points.last().map_or(started, |(time, _)| *time));
    let (paused, congestion_control, connections) = Default::default();
    let phase = PhaseRecord { direction, started: at(started), ended, paused, congestion_control, connections };
    let point = |(time, bytes): &(u64, u64)| SamplePoint {
        at: milliseconds(*time),
        direction,
        bytes: ByteCount::new(*bytes),
        rtt: None,
        congestion_window: None,
        retransmitted: None,
    };
    SessionRecord { started: at(0), points: points.iter().map(point).collect(), phases: vec![phase] }
}

#[test]
fn goodput_is_that_after_the_ramp_of_a_long_phase() {
    let goodput = |started, points: &[(u64, u64)]| {
        let record = record_of(DOWN, started, points);
        record.goodput(&record.phases[0]).map(BitRate::bits_per_second)
    };
    // A slow start of a second, then 1000 bytes in each: 8 kbit/s.
    let long = [(2100, 10), (3000, 100), (4000, 1100), (5000, 2100)];
    assert_eq!(goodput(2000, &long), Some(8000.0), "of 3 s");
    // A short phase counts from its first sample.
    assert_eq!(goodput(2000, &[(2100, 100), (2600, 600), (3100, 1100)]), Some(8000.0));
    assert_eq!(goodput(2000, &[(2100, 100), (2199, 600)]), None, "less than a sampling interval");
    assert_eq!(goodput(2000, &[(2100, 100)]), None);
    assert_eq!(goodput(2000, &[]), None);
}

proptest! {
    #[test]
    fn goodput_is_within_the_rates_of_the_intervals(
        steps in proptest::collection::vec((100..400_u64, 0..1_000_000_u64), 2..60),
    ) {
        let (mut time, mut bytes, mut points) = (0, 0, Vec::new());
        let mut rates = Vec::new();
        for (pause, moved) in steps {
            (time, bytes) = (time + pause, bytes + moved);
            points.push((time, bytes));
            rates.push(ByteCount::new(moved).rate_over(milliseconds(pause)).bits_per_second());
        }
        let record = record_of(UP, 0, &points);
        let Some(goodput) = record.goodput(&record.phases[0]) else { return Ok(()) };
        let most = rates.iter().copied().fold(0.0, f64::max);
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        prop_assert!((least * 0.999..=most * 1.001).contains(&goodput.bits_per_second()));
    }
}
