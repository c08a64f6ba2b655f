//! The receiver's accounting against a simple model with unlimited memory.

use std::collections::HashSet;
use std::time::Duration;

use linerate_units::{MonotonicTime, PacketCount};
use linerate_wire::sequence::{DatagramCounts, REORDER_WINDOW, SequenceTracker};
use linerate_wire::udp::CounterWidth;
use proptest::prelude::*;

fn record_all(width: CounterWidth, numbers: impl IntoIterator<Item = u64>) -> DatagramCounts {
    let mut tracker = SequenceTracker::new(width);
    for number in numbers {
        tracker.record(number, MonotonicTime::default(), MonotonicTime::default());
    }
    tracker.snapshot()
}

/// Received, expected, lost, out of order, duplicates.
fn figures(counts: &DatagramCounts) -> [u64; 5] {
    [
        counts.received.get(),
        counts.expected.get(),
        counts.lost().get(),
        counts.out_of_order.get(),
        counts.duplicates.get(),
    ]
}

fn all_widths() -> [CounterWidth; 2] {
    [CounterWidth::Bits32, CounterWidth::Bits64]
}

#[test]
fn short_sequences() {
    for (numbers, expected) in [
        (&[][..], [0, 0, 0, 0, 0]),
        (&[1, 2, 3], [3, 3, 0, 0, 0]),
        (&[3], [1, 3, 2, 0, 0]),
        (&[1, 4, 5], [3, 5, 2, 0, 0]),
        (&[1, 3, 2, 4], [4, 4, 0, 1, 0]),
        (&[1, 2, 2, 3], [4, 3, 0, 0, 1]),
        (&[1, 4, 2, 2, 5], [5, 5, 1, 1, 1]),
        (&[5, 4, 3, 2, 1, 1], [6, 5, 0, 4, 1]),
    ] {
        for width in all_widths() {
            let counts = record_all(width, numbers.iter().copied());
            assert_eq!(figures(&counts), expected, "{numbers:?}");
        }
    }
}

#[test]
fn iperf3s_own_figures() {
    // A duplicate hides a loss from iperf3.
    let counts = record_all(CounterWidth::Bits32, [1, 4, 4, 5]);
    assert_eq!((counts.lost().get(), counts.iperf3_lost.get()), (2, 1));
    assert_eq!((counts.out_of_order.get(), counts.iperf3_out_of_order.get()), (0, 1));
    // A surplus handshake costs one datagram out of order, and no loss.
    let counts = record_all(CounterWidth::Bits32, [0, 1, 2]);
    assert_eq!(figures(&counts), [2, 2, 0, 0, 0]);
    assert_eq!((counts.strays.get(), counts.iperf3_lost.get(), counts.iperf3_out_of_order.get()), (1, 0, 1));
}

#[test]
fn the_edge_of_the_window() {
    for width in all_widths() {
        // Number 1 skipped; it arrives when the highest is WINDOW (just inside) or WINDOW + 1 (just outside).
        let in_time = record_all(width, (2..=REORDER_WINDOW).chain([1]));
        assert_eq!(figures(&in_time), [REORDER_WINDOW, REORDER_WINDOW, 0, 1, 0]);
        let too_late = record_all(width, (2..=REORDER_WINDOW + 1).chain([1]));
        assert_eq!(figures(&too_late), [REORDER_WINDOW + 1, REORDER_WINDOW + 1, 1, 0, 0]);
        assert_eq!(too_late.too_late, PacketCount::new(1));
        // The bit of a number is not confused with that of the number one window before.
        let reused = record_all(width, (1..=REORDER_WINDOW).chain([REORDER_WINDOW + 10, REORDER_WINDOW + 5]));
        assert_eq!(figures(&reused), [REORDER_WINDOW + 2, REORDER_WINDOW + 10, 8, 1, 0]);
        let jump =
            record_all(width, (1..=10).chain([3 * REORDER_WINDOW, 3 * REORDER_WINDOW - 1, 3 * REORDER_WINDOW - 1]));
        assert_eq!(figures(&jump), [13, 3 * REORDER_WINDOW, 3 * REORDER_WINDOW - 12, 1, 1]);
    }
}

#[test]
fn a_32_bit_counter_wraps() {
    let mut tracker = SequenceTracker::new(CounterWidth::Bits32);
    let time = MonotonicTime::default();
    // To 2^32 - 3 in plausible jumps.
    let mut number = 0_u64;
    while number < (1 << 32) - 3 {
        number = (number + (1 << 20)).min((1 << 32) - 3);
        tracker.record(number, time, time);
    }
    let before = tracker.snapshot();
    assert_eq!(before.expected.get(), (1 << 32) - 3);
    for number in [0xFFFF_FFFE, 0xFFFF_FFFF, 0, 1, 3, 2, 2] {
        tracker.record(number, time, time);
    }
    let since = tracker.snapshot().since(&before);
    assert_eq!(figures(&since), [7, 6, 0, 1, 1]);
    assert_eq!(tracker.snapshot().expected.get(), (1 << 32) + 3);
}

#[test]
fn one_forged_number_has_no_effect() {
    for (width, forged) in [
        (CounterWidth::Bits32, 1 << 30),
        (CounterWidth::Bits32, 0x7FFF_FFFF),
        (CounterWidth::Bits32, 0x8000_0010),
        (CounterWidth::Bits32, 0xFFFF_FFFF),
        (CounterWidth::Bits64, 1 << 31),
        (CounterWidth::Bits64, 1 << 62),
        (CounterWidth::Bits64, 1 << 63),
        (CounterWidth::Bits64, u64::MAX),
    ] {
        let counts = record_all(width, (1..=10).chain([forged]).chain(11..=20));
        assert_eq!(figures(&counts), [20, 20, 0, 0, 0], "{forged:#x}");
        assert_eq!(counts.strays, PacketCount::new(1), "{forged:#x}");
        let first = record_all(width, [forged, 1, 2]);
        assert_eq!(figures(&first), [2, 2, 0, 0, 0], "{forged:#x}");
    }
}

#[test]
fn a_long_outage_is_accepted_after_a_second_number() {
    for width in all_widths() {
        let after = 1 << 30;
        let counts = record_all(width, (1..=10).chain(after..after + 5));
        assert_eq!(figures(&counts), [15, after + 4, after - 11, 0, 0]);
        assert_eq!(counts.strays, PacketCount::ZERO);
    }
}

#[test]
fn extreme_jumps_cost_nothing_and_do_not_overflow() {
    let mut tracker = SequenceTracker::new(CounterWidth::Bits64);
    let (early, late) = (MonotonicTime::default(), MonotonicTime::from_nanos(u64::MAX));
    let mut number = 0_u64;
    for round in 0..10_000_u64 {
        number = number.wrapping_add(u64::MAX / 3 + round);
        for offset in [0, 1, 0, u64::MAX] {
            let (sent_at, arrived_at) = if offset == 1 { (early, late) } else { (late, early) };
            tracker.record(number.wrapping_add(offset), sent_at, arrived_at);
        }
    }
    let counts = tracker.snapshot();
    assert_eq!(counts.received.get() + counts.strays.get(), 40_000);
}

#[test]
fn jitter_is_that_of_rfc_1889() {
    let mut tracker = SequenceTracker::new(CounterWidth::Bits32);
    let mut expected = 0.0_f64;
    let mut previous: Option<f64> = None;
    for number in 1..=1000_u64 {
        let sent = Duration::from_micros(number * 100);
        let delay = Duration::from_micros(500 + number * 7919 % 300);
        let at = |time: Duration| MonotonicTime::default() + time;
        tracker.record(number, at(sent), at(sent + delay));
        let transit = delay.as_secs_f64();
        if let Some(previous) = previous {
            expected += ((transit - previous).abs() - expected) / 16.0;
        }
        previous = Some(transit);
    }
    let jitter = tracker.snapshot().jitter.as_secs_f64();
    assert!((jitter - expected).abs() < 1e-8, "{jitter} instead of {expected}");
    assert!(jitter > 50e-6);
}

/// Jitter of bursts of `length` datagrams whose delay varies from burst to burst.
fn jitter_of_bursts(
    length: u64,
    record: impl Fn(&mut SequenceTracker, u64, u64, MonotonicTime, MonotonicTime),
) -> Duration {
    let mut tracker = SequenceTracker::new(CounterWidth::Bits64);
    for burst in 0..500_u64 {
        let sent = MonotonicTime::from_nanos((burst + 1) * 1_000_000);
        let arrived = sent + Duration::from_micros(500 + burst * 7919 % 300);
        record(&mut tracker, burst * length + 1, length, sent, arrived);
    }
    assert_eq!(tracker.snapshot().received, PacketCount::new(500 * length));
    tracker.snapshot().jitter
}

#[test]
fn bursts_give_one_jitter_sample_each() {
    let at_once = |tracker: &mut SequenceTracker, first, length, sent, arrived| {
        tracker.record_run(first, PacketCount::new(length), sent, arrived);
    };
    // One sending time; the link's serialisation lies between the arrivals.
    let apart = |tracker: &mut SequenceTracker, first: u64, length, sent, arrived: MonotonicTime| {
        for offset in 0..length {
            tracker.record(first + offset, sent, arrived + Duration::from_micros(offset));
        }
    };
    // Another sender's datagrams, sent apart and coalesced by the receiver's kernel.
    let coalesced = |tracker: &mut SequenceTracker, first: u64, length, sent: MonotonicTime, arrived| {
        for offset in 0..length {
            tracker.record(first + offset, sent + Duration::from_micros(offset), arrived);
        }
    };
    let single = jitter_of_bursts(1, at_once);
    assert!(single > Duration::from_micros(50), "{single:?}");
    for length in [2, 4, 8, 16, 44] {
        assert_eq!(jitter_of_bursts(length, at_once), single, "{length} at once");
        assert_eq!(jitter_of_bursts(length, apart), single, "{length} apart");
        assert_eq!(jitter_of_bursts(length, coalesced), single, "{length} coalesced");
    }
}

#[test]
fn the_clocks_need_not_agree() {
    let delays = [500, 700, 400, 900, 500];
    let jitter = |offset: i64| {
        let mut tracker = SequenceTracker::new(CounterWidth::Bits32);
        for (number, delay) in (1_u64..).zip(delays) {
            let sent = MonotonicTime::from_nanos(number * 1_000_000 + 5_000_000_000);
            let arrived = (number * 1_000_000 + 5_000_000_000 + delay * 1000).wrapping_add_signed(offset);
            tracker.record(number, sent, MonotonicTime::from_nanos(arrived));
        }
        tracker.snapshot().jitter
    };
    assert!(jitter(0) > Duration::from_micros(10));
    assert_eq!(jitter(0), jitter(-4_999_000_000));
    assert_eq!(jitter(0), jitter(1 << 62));
}

#[test]
fn intervals_are_differences() {
    let mut tracker = SequenceTracker::new(CounterWidth::Bits32);
    let time = MonotonicTime::default();
    for number in [1, 2, 5] {
        tracker.record(number, time, time);
    }
    let first = tracker.snapshot();
    for number in [3, 6, 8] {
        tracker.record(number, time, time);
    }
    let since = tracker.snapshot().since(&first);
    assert_eq!(figures(&since), [3, 3, 0, 1, 0], "one late, one lost");
    assert_eq!((since.skipped.get(), tracker.snapshot().lost().get()), (1, 2));
}

/// Numbers of a stream with loss, duplicates and reordering, from (fate, delay) of each number.
fn traffic() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec((0_u8..20, 0_usize..12), 0..600).prop_map(|fates| {
        let mut arrivals: Vec<(usize, u64)> = Vec::new();
        for (index, (fate, delay)) in fates.into_iter().enumerate() {
            let number = index as u64 + 1;
            match fate {
                0 => {}
                1 => arrivals.extend([(index, number), (index + delay, number)]),
                2 => arrivals.push((index + delay, number)),
                _ => arrivals.push((index, number)),
            }
        }
        arrivals.sort_by_key(|(at, _)| *at);
        arrivals.into_iter().map(|(_, number)| number).collect()
    })
}

proptest! {
    #[test]
    fn the_bitmap_agrees_with_a_set(numbers in traffic()) {
        let (mut seen, mut highest, mut out_of_order, mut duplicates) = (HashSet::new(), 0, 0, 0);
        let (mut iperf3_count, mut iperf3_lost, mut iperf3_out_of_order) = (0, 0_u64, 0);
        for &number in &numbers {
            if !seen.insert(number) {
                duplicates += 1;
            } else if number < highest {
                out_of_order += 1;
            }
            highest = highest.max(number);
            if number > iperf3_count {
                iperf3_lost += number - iperf3_count - 1;
                iperf3_count = number;
            } else {
                iperf3_out_of_order += 1;
                iperf3_lost = iperf3_lost.saturating_sub(1);
            }
        }
        let lost = highest - seen.len() as u64;
        for width in all_widths() {
            let counts = record_all(width, numbers.iter().copied());
            prop_assert_eq!(figures(&counts), [numbers.len() as u64, highest, lost, out_of_order, duplicates]);
            prop_assert_eq!(counts.iperf3_lost.get(), iperf3_lost);
            prop_assert_eq!(counts.iperf3_out_of_order.get(), iperf3_out_of_order);
        }
    }

    #[test]
    fn a_run_equals_its_single_datagrams(
        runs in proptest::collection::vec((0_u64..200, 0_u64..130, 0_u64..5000, 0_u64..5000), 0..60),
        wide in any::<bool>(),
    ) {
        let width = CounterWidth::new(wide);
        let (mut one_by_one, mut at_once) = (SequenceTracker::new(width), SequenceTracker::new(width));
        let mut next = 1_u64;
        for (distance, count, sent, arrived) in runs {
            // Mostly in sequence, sometimes ahead, sometimes behind.
            let first = if distance < 150 { next } else { (next + distance).saturating_sub(175) };
            let (sent, arrived) = (MonotonicTime::from_nanos(sent), MonotonicTime::from_nanos(arrived));
            for number in first..first + count {
                one_by_one.record(number, sent, arrived);
            }
            at_once.record_run(first, PacketCount::new(count), sent, arrived);
            prop_assert_eq!(one_by_one.snapshot(), at_once.snapshot());
            next = next.max(first + count);
        }
    }

    #[test]
    fn any_numbers_and_times_add_up(
        datagrams in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 0..200),
        wide in any::<bool>(),
    ) {
        let mut tracker = SequenceTracker::new(CounterWidth::new(wide));
        for (number, sent, arrived) in &datagrams {
            tracker.record(*number, MonotonicTime::from_nanos(*sent), MonotonicTime::from_nanos(*arrived));
        }
        let counts = tracker.snapshot();
        prop_assert_eq!(counts.received.get() + counts.strays.get(), datagrams.len() as u64);
        prop_assert!(counts.out_of_order <= counts.skipped);
    }
}
