use core::time::Duration;

use linerate_units::{BitRate, ByteCount, PacketCount};

use super::limits::{HOLD_DURATION, OVERLOAD_DURATION};
use super::simulation::{CrossTraffic, QueueManagement, SimulatedPath, run};
use super::{CapacityBound, CapacityEstimate, FEEDBACK_INTERVAL, PacketLayout, SearchLimiter, SearchLimits};

const MEGABIT: f64 = 1e6;
const GIGABIT: f64 = 1e9;
/// Relative error allowed on every path: 3 %.
const TOLERANCE: f64 = 0.03;

fn limits(max_rate: f64) -> SearchLimits {
    SearchLimits {
        duration: Duration::from_secs(15),
        bytes: ByteCount::new(20_000_000_000),
        max_rate: BitRate::from_bits_per_second(max_rate),
    }
}

fn megabits(outcome: &CapacityEstimate) -> f64 {
    outcome.capacity.map_or(0.0, BitRate::bits_per_second) / MEGABIT
}

/// Searches with some seeds; each must find `expected` bit/s within 3 %.
#[track_caller]
fn finds(name: &str, path: SimulatedPath, expected: f64) -> CapacityEstimate {
    let mut last = None;
    for seed in 1..=3 {
        let (outcome, sent) = run(path, limits(40.0 * GIGABIT), seed);
        let found = outcome.capacity.map_or(0.0, BitRate::bits_per_second);
        let error = found / expected - 1.0;
        assert!(
            error.abs() <= TOLERANCE && outcome.bound == CapacityBound::Path,
            "{name}, seed {seed}: {:.3} Mbit/s, expected {:.3} ({:+.2} %), {:?}, {:?}, {sent:?}",
            found / MEGABIT,
            expected / MEGABIT,
            error * 100.0,
            outcome.bound,
            outcome.elapsed
        );
        last = Some(outcome);
    }
    last.expect("three seeds")
}

#[test]
fn drop_tail_from_tiny_to_huge() {
    for (rate, round_trip, buffer) in [
        (240e3, 0.0183, 45.0 * 1514.0),
        (240e3, 0.0183, 10.0 * 1514.0),
        (950e3, 0.0183, 66e3),
        (300.0 * MEGABIT, 0.0201, 10.0 * 1514.0),
        (300.0 * MEGABIT, 0.0201, 1.5e6),
        (300.0 * MEGABIT, 0.0201, 375e3),
        (6.0 * MEGABIT, 0.07, 0.75e6),
        (20.0 * MEGABIT, 0.6, 1.5e6),
        (100.0 * MEGABIT, 0.0005, 64e3),
        (GIGABIT, 0.053, 2e6),
        (GIGABIT, 0.00005, 100e3),
        (100.0 * MEGABIT, 0.3, 2.3 * 12.5e6),
    ] {
        let path = SimulatedPath::new(rate, round_trip, buffer);
        finds(&format!("{rate} bit/s, {round_trip} s, {buffer} B"), path, path.capacity());
    }
}

/// lab:uplink-loses-acknowledgements: reports wait for retransmissions in the reverse direction.
#[test]
fn late_reports_prolong_the_search() {
    let six = SearchLimits { duration: Duration::from_secs(6), ..limits(40.0 * GIGABIT) };
    for (loss, seed) in (1..=5).flat_map(|seed| [(0.1, seed), (0.3, seed)]) {
        let path = SimulatedPath { report_loss: loss, ..SimulatedPath::new(80.0 * MEGABIT, 0.02, 400e3) };
        let (outcome, sent) = run(path, six, seed);
        let error = outcome.capacity.map_or(0.0, BitRate::bits_per_second) / path.capacity() - 1.0;
        assert!(error.abs() <= TOLERANCE, "{loss}, {seed}: {error}, {:?}", outcome.bound);
        assert_eq!(outcome.bound, CapacityBound::Path, "{loss}, {seed}");
        assert!(outcome.elapsed <= Duration::from_secs(20) && sent <= six.max_traffic(), "{:?}", outcome.elapsed);
    }
}

/// A sender that is slow for as long as requests wait for retransmissions is no slow sender.
#[test]
fn late_requests_do_not_count_as_a_slow_sender() {
    for order_delay in [0.2, 0.4, 0.6] {
        let path = SimulatedPath { order_delay, ..SimulatedPath::new(20.0 * MEGABIT, 0.02, 100e3) };
        finds(&format!("{order_delay} s"), path, path.capacity());
    }
    // The search ends while the next request is on its way, after three that came late.
    let path = SimulatedPath { order_delay: 0.2, ..SimulatedPath::new(20.0 * MEGABIT, 0.02, 100e3) };
    let short = SearchLimits { duration: Duration::from_millis(1500), ..limits(40.0 * GIGABIT) };
    assert_eq!(run(path, short, 1).0.bound, CapacityBound::AtLeast(SearchLimiter::Duration));
    let slow = SimulatedPath { sender: 5e6, ..SimulatedPath::new(20.0 * MEGABIT, 0.02, 100e3) };
    let (outcome, _) = run(slow, limits(40.0 * GIGABIT), 1);
    assert_eq!(outcome.bound, CapacityBound::AtLeast(SearchLimiter::Sender));
}

#[test]
fn stated_intervals_contain_the_true_rate() {
    let mid = SimulatedPath::new(300.0 * MEGABIT, 0.0201, 1.5e6);
    let paths = [
        mid,
        SimulatedPath::new(240e3, 0.0183, 45.0 * 1514.0),
        SimulatedPath::new(950e3, 0.0183, 66e3),
        SimulatedPath::new(6.0 * MEGABIT, 0.07, 0.75e6),
        SimulatedPath::new(100.0 * MEGABIT, 0.0005, 64e3),
        SimulatedPath::new(300.0 * MEGABIT, 0.0201, 10.0 * 1514.0),
        SimulatedPath { burst: 8, ..mid },
        SimulatedPath { jitter: (0.0005, true), ..mid },
        SimulatedPath { management: QueueManagement::Pie, ..mid },
        SimulatedPath { management: QueueManagement::CoDel, ..SimulatedPath::new(20.0 * MEGABIT, 0.03, 0.5e6) },
        SimulatedPath { loss: (0.02, 0.0), ..mid },
        SimulatedPath { loss: (0.0, 0.02), ..mid },
        SimulatedPath { loss: (0.0, 0.05), ..mid },
        SimulatedPath { duplicates: 0.01, ..mid },
    ];
    let (mut inside, mut all, mut missed) = (0_u32, 0_u32, Vec::new());
    for (index, path) in paths.iter().enumerate() {
        for seed in 1..=3 {
            let (outcome, _) = run(*path, limits(40.0 * GIGABIT), seed);
            let layout = PacketLayout { payload: ByteCount::new(1472), headers: ByteCount::new(28) };
            let (low, high) = outcome.interval(&layout).expect("the path limits");
            let truth = BitRate::from_bits_per_second(path.capacity());
            all += 1;
            if low <= truth && truth <= high {
                inside += 1;
            } else {
                missed.push((
                    index,
                    seed,
                    low.bits_per_second() / path.capacity(),
                    high.bits_per_second() / path.capacity(),
                ));
            }
            assert!(high <= low * 1.15, "path {index}, seed {seed}: {low:?} to {high:?} tells little");
        }
    }
    assert!(f64::from(inside) >= 0.95 * f64::from(all), "{inside} of {all}: {missed:?}");
}

#[test]
fn fast_links() {
    for (rate, round_trip, buffer, packet) in [
        (10.0 * GIGABIT, 0.0001, 1e6, 1500.0),
        (10.0 * GIGABIT, 0.117, 146e6, 9000.0),
        (25.0 * GIGABIT, 0.00005, 4e6, 9000.0),
    ] {
        let path = SimulatedPath { packet, burst: 16, ..SimulatedPath::new(rate, round_trip, buffer) };
        let (outcome, _) = run(path, limits(40.0 * GIGABIT), 1);
        let error = outcome.capacity.map_or(0.0, BitRate::bits_per_second) / path.capacity() - 1.0;
        assert!(error.abs() < TOLERANCE && outcome.bound == CapacityBound::Path, "{rate}: {error} {:?}", outcome.bound);
    }
}

#[test]
fn loss_alone_does_not_stop_the_ramp() {
    let base = SimulatedPath::new(300.0 * MEGABIT, 0.0201, 1.5e6);
    for loss in [0.000_1, 0.001, 0.01, 0.02] {
        let path = SimulatedPath { loss: (loss, 0.0), ..base };
        finds(&format!("loss of {loss} before the link"), path, path.capacity());
        // Packets lost behind the link do not arrive.
        let path = SimulatedPath { loss: (0.0, loss), ..base };
        finds(&format!("loss of {loss} behind the link"), path, path.capacity() * (1.0 - loss));
    }
    let path = SimulatedPath { bursty_loss: Some((0.0001, 0.1)), ..base };
    finds("bursts of loss", path, path.capacity());
    let path = SimulatedPath { loss: (0.2, 0.0), ..base };
    finds("a fifth is lost", path, path.capacity());
    let path = SimulatedPath { loss: (0.02, 0.0), ..SimulatedPath::new(2.0 * MEGABIT, 0.05, 30e3) };
    finds("loss on a slow link", path, path.capacity());
}

#[test]
fn duplicates_reordering_and_jitter() {
    let base = SimulatedPath::new(300.0 * MEGABIT, 0.0201, 1.5e6);
    let outcome = finds("duplicates", SimulatedPath { duplicates: 0.01, ..base }, base.capacity());
    assert!(outcome.duplicates > PacketCount::new(100));
    let path = SimulatedPath { jitter: (0.0005, false), ..base };
    let outcome = finds("reordering", path, path.capacity());
    assert!(outcome.reordered > PacketCount::new(1000));
    for (rate, order) in [
        (300.0 * MEGABIT, false),
        (GIGABIT, true),
        (90.0 * MEGABIT, true),
        (13.0 * MEGABIT, false),
        (6.0 * MEGABIT, true),
    ] {
        let path = SimulatedPath { jitter: (0.01, order), ..SimulatedPath::new(rate, 0.1, rate / 8.0 * 0.1) };
        finds(&format!("jitter of 10 ms at {rate}, order kept: {order}"), path, path.capacity());
    }
}

#[test]
fn managed_queues() {
    for management in [QueueManagement::Pie, QueueManagement::CoDel] {
        for (rate, round_trip, buffer) in [
            (4.4 * MEGABIT, 0.065, 660e3),
            (24.0 * MEGABIT, 0.065, 3.6e6),
            (300.0 * MEGABIT, 0.0201, 1.5e6),
            (240e3, 0.018, 1e6),
        ] {
            let path = SimulatedPath { management, ..SimulatedPath::new(rate, round_trip, buffer) };
            finds(&format!("{management:?} at {rate}"), path, path.capacity());
        }
    }
}

#[test]
fn a_queue_that_remembers_its_overload() {
    for (rate, round_trip, buffer) in [
        (124.7 * MEGABIT, 0.0087, 485e3),
        (208.8 * MEGABIT, 0.0021, 121e3),
        (20.0 * MEGABIT, 0.03, 150e3),
        (20.0 * MEGABIT, 0.03, 15e3),
        (950.0 * MEGABIT, 0.002, 250e3),
        (4.0 * MEGABIT, 0.05, 60e3),
    ] {
        // A sender of pairs: one packet of each waits.
        let queue =
            SimulatedPath { management: QueueManagement::Cobalt, ..SimulatedPath::new(rate, round_trip, buffer) };
        let path = SimulatedPath { burst: 2, ..queue };
        finds(&format!("CAKE at {rate}, {buffer} B"), path, path.capacity());
    }
}

#[test]
fn the_sustained_rate_of_a_policer_counts() {
    for (rate, burst, link, round_trip) in [
        (100.0 * MEGABIT, 200e3, 300.0 * MEGABIT, 0.0201),
        (100.0 * MEGABIT, 10_240.0, GIGABIT, 0.03),
        (100.0 * MEGABIT, 5e6, GIGABIT, 0.03),
        (20.0 * MEGABIT, 2e6, 300.0 * MEGABIT, 0.01),
        (950e3, 10e3, 100.0 * MEGABIT, 0.02),
        (10.0 * MEGABIT, 1e6, 20.0 * MEGABIT, 0.05),
    ] {
        let path = SimulatedPath { policer: Some((rate, burst)), ..SimulatedPath::new(link, round_trip, 1.5e6) };
        finds(&format!("policer of {rate} with {burst} B"), path, rate);
    }
}

#[test]
fn cross_traffic() {
    let base = SimulatedPath::new(300.0 * MEGABIT, 0.0201, 1.5e6);
    for others in [100.0, 150.0, 200.0] {
        let path = SimulatedPath { cross_traffic: CrossTraffic::Constant(others * MEGABIT), ..base };
        let outcome =
            finds(&format!("{others} Mbit/s of unresponsive traffic"), path, path.capacity() - others * MEGABIT);
        assert!(outcome.shared);
    }
    // A tenth is partly pushed out: the figure lies between the remaining and the full capacity of the link.
    let path = SimulatedPath { cross_traffic: CrossTraffic::Constant(30.0 * MEGABIT), ..base };
    let found = megabits(&run(path, limits(40.0 * GIGABIT), 1).0);
    assert!((267.2 * (1.0 - TOLERANCE)..297.2).contains(&found), "{found}");
    for others in [75.0, 200.0, 280.0] {
        let path = SimulatedPath { cross_traffic: CrossTraffic::Yielding(others * MEGABIT), ..base };
        let (outcome, _) = run(path, limits(40.0 * GIGABIT), 1);
        let found = megabits(&outcome);
        assert!((270.0..=300.0).contains(&found), "{others} Mbit/s of responsive traffic: {found}");
    }
}

#[test]
fn without_a_path_limit_the_result_is_a_lower_bound() {
    let open = SimulatedPath { rate: None, ..SimulatedPath::new(0.0, 0.01, 0.0) };
    let (outcome, _) = run(open, limits(500.0 * MEGABIT), 1);
    assert_eq!(outcome.bound, CapacityBound::AtLeast(SearchLimiter::MaximumRate));
    assert!((megabits(&outcome) / 500.0 - 1.0).abs() < 0.01, "{}", megabits(&outcome));
    let (outcome, _) = run(SimulatedPath { sender: 700.0 * MEGABIT, ..open }, limits(40.0 * GIGABIT), 1);
    assert_eq!((outcome.bound, outcome.sender_kept_up), (CapacityBound::AtLeast(SearchLimiter::Sender), false));
    assert!((megabits(&outcome) / 700.0 - 1.0).abs() < 0.01, "{}", megabits(&outcome));
    let (outcome, _) = run(SimulatedPath { receiver: 400.0 * MEGABIT, ..open }, limits(40.0 * GIGABIT), 1);
    assert_eq!(outcome.bound, CapacityBound::AtLeast(SearchLimiter::Receiver));
    assert!((megabits(&outcome) / 400.0 - 1.0).abs() < 0.05, "{}", megabits(&outcome));
    // With loss, but without a limit.
    let (outcome, _) = run(SimulatedPath { loss: (0.02, 0.0), ..open }, limits(500.0 * MEGABIT), 1);
    assert_eq!(outcome.bound, CapacityBound::AtLeast(SearchLimiter::MaximumRate));
    let loss = outcome.loss_below_capacity.map_or(0.0, linerate_units::Ratio::get);
    assert!((loss - 0.02).abs() < 0.003, "{loss}");
}

#[test]
fn a_dead_path_gives_no_capacity() {
    let (outcome, sent) =
        run(SimulatedPath { loss: (1.0, 0.0), ..SimulatedPath::new(GIGABIT, 0.01, 1e6) }, limits(GIGABIT), 1);
    assert_eq!((outcome.bound, outcome.capacity), (CapacityBound::Unknown, None));
    assert!(
        outcome.elapsed < Duration::from_secs(8) && sent < ByteCount::new(1_000_000),
        "{:?} {sent:?}",
        outcome.elapsed
    );
}

#[test]
fn limits_hold() {
    let path = SimulatedPath::new(GIGABIT, 0.02, 2.5e6);
    for bytes in [100_000, 2_000_000, 20_000_000, 60_000_000, 150_000_000_u64] {
        let limits = SearchLimits { bytes: ByteCount::new(bytes), ..limits(40.0 * GIGABIT) };
        let (outcome, sent) = run(path, limits, 1);
        assert!(sent <= ByteCount::new(bytes + bytes / 20 + 20_000), "{sent:?} of {bytes}");
        assert!(outcome.asked_for <= ByteCount::new(bytes + bytes / 20 + 20_000), "{:?} of {bytes}", outcome.asked_for);
        let found = megabits(&outcome);
        match outcome.bound {
            CapacityBound::Path => assert!((found / 990.8 - 1.0).abs() < TOLERANCE, "{found} with {bytes} B"),
            CapacityBound::AtLeast(reason) => {
                assert!(reason == SearchLimiter::Bytes && found < 1000.0, "{reason:?} {found}");
            }
            CapacityBound::Unknown => panic!("nothing known with {bytes} B"),
        }
    }
    for milliseconds in [300, 1000, 2000] {
        let limits = SearchLimits { duration: Duration::from_millis(milliseconds), ..limits(40.0 * GIGABIT) };
        let (outcome, _) = run(path, limits, 1);
        assert!(outcome.elapsed <= limits.duration + Duration::from_millis(51), "{:?}", outcome.elapsed);
        assert_ne!(outcome.bound, CapacityBound::Unknown);
    }
}

/// Approximate traffic on a path: the ramp (whose last step is up to twice the capacity, and lasts a round trip and a
/// feedback interval), the overload, and the hold.
fn expected_traffic(capacity: BitRate, round_trip: f64) -> ByteCount {
    let step = Duration::from_secs_f64(round_trip) + FEEDBACK_INTERVAL * 2;
    let (ramp, overload, hold) =
        (capacity * step * 4, (capacity * 1.5) * (step + OVERLOAD_DURATION), (capacity * 1.05) * HOLD_DURATION);
    ramp + overload + hold + (capacity * 1.5) * step
}

#[test]
fn a_search_sends_what_its_steps_take() {
    for (rate, round_trip, buffer) in [
        (300.0 * MEGABIT, 0.0201, 1.5e6),
        (GIGABIT, 0.053, 2e6),
        (20.0 * MEGABIT, 0.6, 1.5e6),
        (GIGABIT, 0.00005, 100e3),
    ] {
        let path = SimulatedPath::new(rate, round_trip, buffer);
        let limits = limits(40.0 * GIGABIT);
        let (outcome, sent) = run(path, limits, 1);
        let expected = expected_traffic(BitRate::from_bits_per_second(path.capacity()), round_trip);
        let share = sent.as_f64() / expected.min(limits.max_traffic()).as_f64();
        assert!((0.5..1.5).contains(&share), "{rate}: {share}, {:?}", outcome.elapsed);
        assert!(sent <= limits.max_traffic());
    }
}

#[test]
fn the_rate_is_the_ip_layer_s() {
    // 300 Mbit/s of Ethernet frames of 1514 bytes carry 297.2 Mbit/s of IP packets.
    let found = megabits(&finds("300 Mbit/s", SimulatedPath::new(300.0 * MEGABIT, 0.0201, 1.5e6), 297.2 * MEGABIT));
    assert!((found / 297.23 - 1.0).abs() < 0.001, "{found}");
    let packet = PacketLayout { payload: ByteCount::new(1472), headers: ByteCount::new(28) };
    assert_eq!(packet.gap(BitRate::from_bits_per_second(12e6)), Some(Duration::from_millis(1)));
    assert_eq!(packet.payload_rate(BitRate::from_bits_per_second(15e6)), BitRate::from_bits_per_second(14.72e6));
}

#[test]
fn reports_without_send_times_suffice() {
    for path in [
        SimulatedPath::new(300.0 * MEGABIT, 0.0201, 1.5e6),
        SimulatedPath::new(240e3, 0.0183, 45.0 * 1514.0),
        SimulatedPath { policer: Some((100.0 * MEGABIT, 200e3)), ..SimulatedPath::new(300.0 * MEGABIT, 0.0201, 1.5e6) },
        SimulatedPath { jitter: (0.01, true), ..SimulatedPath::new(GIGABIT, 0.1, 12.5e6) },
    ] {
        let expected = path.policer.map_or(path.capacity(), |(rate, _)| rate);
        finds("without stamps", SimulatedPath { stamped: false, ..path }, expected);
    }
}

#[test]
fn bursts_of_packets() {
    let path = SimulatedPath { burst: 8, ..SimulatedPath::new(300.0 * MEGABIT, 0.0201, 1.5e6) };
    finds("bursts of eight", path, path.capacity());
    let path = SimulatedPath { burst: 8, ..SimulatedPath::new(300.0 * MEGABIT, 0.0201, 10.0 * 1514.0) };
    finds("bursts of eight into ten packets of buffer", path, path.capacity());
}
