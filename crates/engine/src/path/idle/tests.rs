//! Schedules and conclusions of the measurement without load, from made-up probes and streams.

use linerate_model::path::TimeStampSource;
use linerate_sys::time_stamp::{StampSource, TimeStamp};
use linerate_units::WallTime;
use proptest::prelude::*;

use super::super::PathOptions;
use super::super::test_support::{options, recorded, session, stream, way};
use super::metrics::{ReorderingMetrics, smoothed_jitter};
use super::*;
use crate::probe::ProbeAnswer;

const fn milliseconds(time: u64) -> Duration {
    Duration::from_millis(time)
}

fn stamp(nanoseconds: u64) -> TimeStamp {
    TimeStamp {
        wall: WallTime::from_unix(Duration::from_nanos(nanoseconds)),
        monotonic: MonotonicTime::from_nanos(nanoseconds),
        source: StampSource::Kernel,
    }
}

/// A probe sent at this time, answered after these times up, at the far end, and down, by a clock that is ahead.
fn probe(sent: u64, times: Option<[u64; 3]>, ahead: u64) -> ProbeResult {
    let answer = times.map(|[up, inside, down]| ProbeAnswer {
        received: stamp(sent + up + inside + down),
        round_trip: Duration::from_nanos(up + down),
        far_received: Some(stamp(sent + up + ahead).wall),
        far_sent: Some(stamp(sent + up + inside + ahead).wall),
        far_sequence: 0,
        up_time_to_live: Some(61),
        down_time_to_live: Some(64),
        up_type_of_service: None,
        down_type_of_service: None,
    });
    ProbeResult { sequence: 0, sent: stamp(sent), answer, too_large: false, no_room: false, duplicates: 0 }
}

fn measured(
    round_trips: Vec<ProbeResult>,
    paced: [PacketStream; 2],
    close: [Option<PacketStream>; 2],
) -> IdleMeasurement {
    IdleMeasurement { round_trips, paced, close, dropped: [None; 2], icmp: Ok(Vec::new()), tcp: Ok(Vec::new()) }
}

fn nothing() -> IdleMeasurement {
    measured(Vec::new(), [stream(0, &[]), stream(0, &[])], [None, None])
}

fn planned(options: &PathOptions, megabits: [Option<f64>; 2]) -> StreamSchedule {
    let session = session();
    recorded(options, |record| StreamSchedule::new(record, &way(&session, megabits))).0
}

#[test]
fn on_a_fast_link_the_plan_is_the_users() {
    for rates in [[None, None], [Some(1000.0), Some(100.0)]] {
        let plan = planned(&options(), rates);
        assert_eq!((plan.interval, plan.count), (milliseconds(5), PacketCount::new(1000)));
        assert_eq!((plan.round_trip_interval, plan.close_gap), (milliseconds(20), Duration::from_micros(150)));
        assert_eq!((plan.close_count, plan.duration()), (PacketCount::new(300), Duration::from_secs(5)));
    }
    let long = PathOptions { count: PacketCount::new(100_000), interval: Duration::ZERO, ..options() };
    let plan = planned(&long, [None, None]);
    assert_eq!(plan.interval, Duration::from_micros(100), "the shortest interval");
    let long = PathOptions { count: PacketCount::new(100_000), ..options() };
    assert_eq!(planned(&long, [None, None]).count, PacketCount::new(100_000), "a requested count is kept");
}

#[test]
fn a_slow_link_gets_fewer_and_rarer_packets() {
    // 64 bytes with 28 of headers and 18 of the link are 880 bits: at 3 % of the slower rate.
    for megabits in [0.05, 0.1, 1.0, 4.0] {
        let plan = planned(&options(), [Some(1000.0), Some(megabits)]);
        let interval = 880.0 / (0.03 * megabits * 1e6);
        assert!((plan.interval.as_secs_f64() - interval).abs() < 1e-8, "{megabits}: {:?}", plan.interval);
        let fitting = ByteCount::from_f64((6.0 / interval).floor()).get().clamp(50, 1000);
        assert_eq!(plan.count, PacketCount::new(fitting), "{megabits} Mbit/s");
        assert_eq!(plan.round_trip_interval, plan.interval.max(milliseconds(20)));
        let gap = (880.0 / (0.5 * megabits * 1e6)).max(150e-6);
        assert!((plan.close_gap.as_secs_f64() - gap).abs() < 1e-8);
        let close = ByteCount::from_f64((1.5 / gap).floor()).get().clamp(10, 300);
        assert_eq!(plan.close_count, PacketCount::new(close), "{megabits} Mbit/s");
    }
}

proptest! {
    /// Probes that begin after the wait are at least a quarter of the interval away from both other kinds.
    #[test]
    fn probes_of_one_interval_stay_apart(elapsed in 0_u64..10_000_000_000, interval in 1000_u64..1_000_000_000) {
        let wait = apart(Duration::from_nanos(elapsed), Duration::from_nanos(interval));
        let wait = u64::try_from(wait.as_nanos()).expect("short");
        let distance = |from: u64| {
            let phase = from % interval;
            phase.min(interval - phase)
        };
        // From the probes that begin now, and from those that began `elapsed` ago.
        prop_assert!(wait <= interval);
        prop_assert!(distance(wait) + 2 >= interval / 4, "{wait} of {interval}");
        prop_assert!(distance(elapsed % interval + wait) + 2 >= interval / 4, "{wait} after {elapsed} of {interval}");
    }
}

#[test]
fn jitter_is_smoothed_by_a_sixteenth() {
    assert_eq!(smoothed_jitter(&stream(3, &[])), None);
    assert_eq!(smoothed_jitter(&stream(3, &[(0, 0)])), None, "one packet has no neighbour");
    assert_eq!(smoothed_jitter(&stream(3, &[(0, 7), (1, 7), (2, 7)])), Some(0));
    // 1600 µs, then 1600 µs back: J = 100, then 100 + 1500 / 16.
    assert_eq!(smoothed_jitter(&stream(3, &[(0, 0), (1, 1600)])), Some(100_000));
    assert_eq!(smoothed_jitter(&stream(3, &[(0, 0), (1, 1600), (2, 0)])), Some(193_750));
    // A copy is no neighbour.
    assert_eq!(smoothed_jitter(&stream(3, &[(0, 0), (0, 900), (1, 1600)])), Some(100_000));
}

#[test]
fn order_is_judged_over_both_streams() {
    let straight = stream(4, &[(0, 0), (1, 0), (2, 0), (3, 0)]);
    let found = ReorderingMetrics::of(&straight, None);
    assert_eq!((found.copies, found.reordered, found.extent), (0, 0, None));
    assert_eq!((found.duplication, found.reordering, found.three_reordering), (Some(0.0), Some(0.0), Some(0.0)));
    // Packet 0 arrives after three later ones, and 2 arrives twice.
    let mixed = stream(4, &[(1, 0), (2, 0), (2, 0), (3, 0), (0, 0)]);
    let found = ReorderingMetrics::of(&mixed, Some(&straight));
    assert_eq!((found.copies, found.reordered, found.extent), (1, 1, Some(3)));
    assert_eq!(found.reordering, Some(1.0 / 8.0));
    assert_eq!(found.three_reordering, Some(1.0 / 8.0));
    let empty = ReorderingMetrics::of(&stream(4, &[]), None);
    assert_eq!((empty.duplication, empty.reordering), (None, None), "unknown, not zero");
}

#[test]
fn the_best_round_trip_is_the_most_direct_one() {
    let distribution = |time: u64| convert::distribution(&[milliseconds(time)]);
    let all = [(RttMethod::Udp, 4), (RttMethod::Tcp, 3), (RttMethod::Icmp, 2), (RttMethod::Handshake, 1)];
    for skipped in 0..=all.len() {
        let ((), outcome, _) = recorded(&options(), |record| {
            for (method, time) in &all[skipped..] {
                let rtt = &mut record.document.rtt;
                match *method {
                    RttMethod::Udp => rtt.udp = distribution(*time),
                    RttMethod::Tcp => rtt.tcp = distribution(*time),
                    RttMethod::Icmp => rtt.icmp = distribution(*time),
                    RttMethod::Handshake => rtt.handshake = distribution(*time),
                }
            }
            choose_best(record);
        });
        let rtt = outcome.document.rtt;
        let expected = all.get(skipped);
        assert_eq!(rtt.method, expected.map(|(method, _)| *method));
        assert_eq!(rtt.best, expected.and_then(|(_, time)| distribution(*time)));
    }
}

#[test]
fn round_trips_of_each_kind_have_their_series_or_reason() {
    let tcp = vec![(MonotonicTime::from_nanos(5), milliseconds(3))];
    let mut some = nothing();
    some.round_trips = vec![probe(0, Some([1_000_000, 7, 2_000_000]), 0), probe(9, None, 0)];
    some.tcp = Ok(tcp);
    let ((), outcome, _) = recorded(&options(), |record| {
        record.started = MonotonicTime::from_nanos(0);
        round_trips(record, &some);
    });
    let rtt = &outcome.document.rtt;
    assert_eq!(
        rtt.udp.map(|udp| (udp.count, udp.min)),
        Some((1, Duration::from_millis(3))),
        "without the far end's time"
    );
    assert_eq!((rtt.tcp.map(|tcp| tcp.min), rtt.method), (Some(Duration::from_millis(3)), Some(RttMethod::Udp)));
    let names: Vec<&str> = outcome.series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["UDP", "TCP"]);
    let mut none = nothing();
    none.icmp = Err("no permission".to_owned());
    none.tcp = Err(ProbeError::NotOpened);
    let ((), outcome, _) = recorded(&options(), |record| round_trips(record, &none));
    let reason = |key: &str| {
        let found = outcome.document.unknown.iter().find(|unknown| unknown.key == key);
        found.map(|unknown| unknown.reason.clone()).expect("a reason")
    };
    assert_eq!(reason("rtt.icmp"), "no permission");
    assert_eq!(reason("rtt.udp"), "no probe was answered");
    assert_eq!(reason("rtt.tcp"), ProbeError::NotOpened.to_string());
    assert!(outcome.series.is_empty());
}

#[test]
fn the_offset_of_the_far_clock_is_within_its_error() {
    let ahead = 5_000_000_000_u64;
    let probes = (0..20).map(|step| probe(step * 20_000_000, Some([1_000_000, 50_000, 1_000_000]), ahead));
    let all = measured(probes.collect(), [stream(0, &[]), stream(0, &[])], [None, None]);
    let (relation, outcome, _) = recorded(&options(), |record| clocks(record, &all));
    assert!(relation.is_some());
    let clock = outcome.document.clock.expect("stamped");
    let error = (clock.offset_ns - ahead.cast_signed()).unsigned_abs();
    assert!(error <= clock.error_ns, "{clock:?}");
    assert!(clock.error_ns >= 1_000_000, "half of the round trip may be in either direction");
    assert_eq!(clock.time_stamps, TimeStampSource::Kernel);
    let (relation, outcome, _) = recorded(&options(), |record| clocks(record, &nothing()));
    assert!(relation.is_none() && outcome.document.clock.is_none());
}

#[test]
fn routers_are_counted_from_the_usual_hop_limit() {
    let with_limit = |limit: Option<u8>| {
        let mut one = probe(0, Some([1, 1, 1]), 0);
        one.answer.as_mut().expect("answered").up_time_to_live = limit;
        one
    };
    for (limits, expected) in [
        (vec![Some(64)], Some(0)),
        (vec![Some(52)], Some(12)),
        (vec![None, Some(60)], Some(4)),
        (vec![Some(65)], None),
        (vec![Some(128)], None),
        (vec![None], None),
    ] {
        let mut probes = vec![probe(0, None, 0)];
        probes.extend(limits.iter().map(|limit| with_limit(*limit)));
        assert_eq!(routers(&probes), expected, "{limits:?}");
    }
}

#[test]
fn metrics_are_those_of_their_direction() {
    let session = session();
    let (plan, way) = (planned(&options(), [None, None]), way(&session, [None, None]));
    // Of ten packets up, 3 to 5 and 9 are lost; down nothing is.
    let up = stream(10, &[(0, 0), (1, 0), (2, 0), (6, 0), (7, 0), (8, 0)]);
    let down = stream(10, &(0..10).map(|number| (number, 100 * (number % 2))).collect::<Vec<_>>());
    let all = measured(Vec::new(), [up, down], [None, Some(stream(2, &[(1, 0), (0, 0)]))]);
    let up = metrics(&way, &plan, &all, Direction::Up, None);
    assert_eq!((up.sent, up.received, up.loss), (10, Some(6), Some(0.4)));
    assert_eq!((up.loss_episodes, up.longest_loss_packets), (Some(2), Some(3)));
    assert!(up.loss_low < up.loss && up.loss < up.loss_high, "{up:?}");
    assert_eq!((up.one_way_delay, up.one_way_delay_error_ns), (None, None), "the clocks are unknown");
    assert_eq!((up.packet_bytes, up.interval_ns), (92, 5_000_000));
    let down = metrics(&way, &plan, &all, Direction::Down, None);
    assert_eq!((down.received, down.loss, down.longest_loss_packets), (Some(10), Some(0.0), Some(0)));
    assert_eq!(down.reordered, Some(1), "in the dense stream");
    assert_eq!(
        down.delay_variation.map(|variation| (variation.min, variation.max)),
        Some((Duration::ZERO, Duration::from_micros(100)))
    );
    assert_eq!(down.ipdv_mean_ns, Some(100_000));
}

#[test]
fn one_way_delays_are_shown_above_the_smallest() {
    let delays = stream(4, &[(1, 300), (0, 100), (3, 150), (3, 900)]);
    let ((), outcome, _) = recorded(&options(), |record| {
        record.document.started_at_unix_ns = 0;
        one_way_series(record, &delays, Direction::Up, None);
        one_way_series(record, &delays, Direction::Down, None);
        one_way_series(record, &stream(4, &[]), Direction::Up, None);
    });
    assert_eq!(outcome.series.len(), 1, "down needs the relation of the clocks");
    let series = &outcome.series[0];
    assert_eq!((series.name.as_str(), series.direction), ("UDP up", Some(Direction::Up)));
    assert_eq!(series.times_ns, [0, 1_000_000, 3_000_000], "in the order of sending, without copies");
    assert_eq!(series.values, [Some(0.0), Some(200_000.0), Some(50_000.0)]);
}
