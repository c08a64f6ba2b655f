//! The sweep over windows: fractions and multiples of the bandwidth-delay product, achieved and expected throughput.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_analysis::formulas::window_share;
use linerate_documents::rfc6349::{LoadedDirections, WindowTest};
use linerate_model::stream::StreamRole;
use linerate_units::{BitRate, ByteCount, Ratio, StreamCount};

use super::baseline::bottleneck;
use super::metrics::arrived;
use super::record::Rfc6349Record;
use super::transfer::{self, TransferKind, TransferResult};
use crate::phases::AbortReason;

/// Fractions of the bandwidth-delay product.
const WINDOW_FRACTIONS: [f64; 4] = [0.25, 0.5, 1.0, 2.0];

/// Longest time of each transfer.
const TIME: Duration = Duration::from_secs(5);

/// Smallest window in segments: a smaller one tests delayed acknowledgements, not the window.
const MIN_SEGMENTS: f64 = 4.0;

/// One transfer of the sweep.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedWindow {
    direction: Direction,
    window: ByteCount,
    share: Ratio,
}

pub(super) fn plan(record: &mut Rfc6349Record<'_>) -> Vec<PlannedWindow> {
    if !record.options.windows {
        return Vec::new();
    }
    let mut plan = Vec::new();
    for direction in [Direction::Up, Direction::Down] {
        let Some(bottleneck) = bottleneck(record, direction) else {
            record.unknown("windows", "a sweep needs the bandwidth-delay product");
            continue;
        };
        let segment = bottleneck.framing.segment().map_or(1448.0, |segment| f64::from(segment.get()));
        let product = bottleneck.min_window().as_f64();
        let worthwhile = WINDOW_FRACTIONS.into_iter().filter(|part| part * product >= MIN_SEGMENTS * segment);
        let before = plan.len();
        plan.extend(worthwhile.map(|part| PlannedWindow {
            direction,
            window: ByteCount::from_f64(part * product),
            share: Ratio::new(part).unwrap_or_default(),
        }));
        if plan.len() == before {
            record.unknown("windows", "twice the bandwidth-delay product is less than four segments");
        }
    }
    plan
}

/// Runs one transfer with a fixed window, and adds its expected throughput.
pub(super) fn measure(record: &mut Rfc6349Record<'_>, planned: PlannedWindow, left: usize) -> Result<(), AbortReason> {
    let Some(bottleneck) = bottleneck(record, planned.direction) else { return Ok(()) };
    let kind = TransferKind {
        flows: if planned.direction == Direction::Up { LoadedDirections::Up } else { LoadedDirections::Down },
        connections: StreamCount::new(1),
        window: Some(buffer_for(planned.window, bottleneck.framing.segment())),
        time: record.options.time.min(TIME),
    };
    let mut test = WindowTest {
        direction: planned.direction,
        window_bytes: planned.window.get(),
        share_of_bdp: Some(planned.share.get()),
        observed_window_bytes: None,
        expected_bits_per_second: bottleneck.expected_rate(planned.window).map(BitRate::bits_per_second),
        achieved_bits_per_second: None,
        ratio: None,
    };
    match transfer::run(record, kind, left)? {
        Ok(transfer) => {
            let observed = observed(&transfer, planned.direction);
            // The expectation follows from the window that the sender really saw.
            let expected = bottleneck.expected_rate(observed.unwrap_or(planned.window));
            let achieved = arrived(&transfer.report, planned.direction).map(|(bytes, time)| bytes.rate_over(time));
            test.observed_window_bytes = observed.map(ByteCount::get);
            test.expected_bits_per_second = expected.map(BitRate::bits_per_second);
            test.achieved_bits_per_second = achieved.map(BitRate::bits_per_second);
            test.ratio = achieved.zip(expected).and_then(|(achieved, expected)| achieved / expected).map(Ratio::get);
        }
        Err(problem) => {
            let window = linerate_units::display::size(planned.window);
            let way_out = "net.core.rmem_max and net.core.wmem_max at both ends limit the socket buffers";
            record.note(format!("A window of {window} could not be tested: {problem} ({way_out})"));
        }
    }
    record.windows.push(test);
    Ok(())
}

/// Socket buffer for a window of this size: the kernel doubles the requested buffer (socket(7)), and offers the
/// payload's share of it.
fn buffer_for(window: ByteCount, segment: Option<linerate_units::Mss>) -> ByteCount {
    let share = segment.map_or(0.5, |segment| window_share(segment).get()).max(0.1);
    ByteCount::from_f64((window.as_f64() / (2.0 * share)).ceil())
}

/// Largest window that the sender saw: by this end's kernel, or the far one's, where it is a linerate.
fn observed(transfer: &TransferResult, direction: Direction) -> Option<ByteCount> {
    let intervals = match direction {
        Direction::Up => &transfer.intervals,
        Direction::Down => &transfer.report.far.as_ref()?.intervals,
    };
    let senders =
        intervals.iter().flat_map(|interval| &interval.streams).filter(|stream| stream.role == StreamRole::Sender);
    senders.filter_map(|stream| stream.tcp.as_ref()?.send_window).max()
}

#[cfg(test)]
mod tests {
    use linerate_model::report::FarReport;
    use linerate_units::Mss;

    use super::super::Rfc6349Options;
    use super::super::test_support::{capacity, options, second, transfer, with_path};
    use super::*;

    #[test]
    fn the_sweep_has_parts_of_the_bandwidth_delay_product_in_both_directions() {
        let (planned, outcome, _) = with_path(&options(), plan);
        let found: Vec<(Direction, u64)> = planned.iter().map(|one| (one.direction, one.window.get())).collect();
        let of = |direction, product: u64| {
            [product / 4, product / 2, product, product * 2].map(|window| (direction, window))
        };
        let expected: Vec<_> = of(Direction::Up, 75_000).into_iter().chain(of(Direction::Down, 375_000)).collect();
        assert_eq!(found, expected);
        let shares: Vec<f64> = planned.iter().take(4).map(|one| one.share.get()).collect();
        assert_eq!(shares, WINDOW_FRACTIONS);
        assert!(outcome.document.unknown.is_empty());
    }

    #[test]
    fn windows_of_less_than_four_segments_are_left_out() {
        // Four segments are 5792 bytes; the product in bytes is 2500 per Mbit/s.
        for (megabits, count) in [(10.0, 4), (9.2, 3), (4.7, 3), (4.6, 2), (2.4, 2), (2.3, 1), (1.2, 1), (1.1, 0)] {
            let (planned, outcome, _) = with_path(&options(), |record| {
                record.path.as_mut().expect("a path").up.capacity = Some(capacity(megabits));
                plan(record)
            });
            let up = planned.iter().filter(|one| one.direction == Direction::Up).count();
            assert_eq!(up, count, "{megabits} Mbit/s");
            let reason = outcome.document.unknown.first().map(|unknown| unknown.reason.as_str());
            let expected = (count == 0).then_some("twice the bandwidth-delay product is less than four segments");
            assert_eq!(reason, expected, "{megabits} Mbit/s");
        }
    }

    #[test]
    fn without_the_product_there_is_no_sweep_and_a_reason() {
        let (planned, outcome, _) = with_path(&options(), |record| {
            record.path.as_mut().expect("a path").down.capacity = None;
            plan(record)
        });
        assert!(planned.iter().all(|one| one.direction == Direction::Up));
        assert_eq!(outcome.document.unknown[0].reason, "a sweep needs the bandwidth-delay product");
        let off = Rfc6349Options { windows: false, ..options() };
        let (planned, outcome, _) = with_path(&off, plan);
        assert!(planned.is_empty() && outcome.document.unknown.is_empty(), "not requested is not unknown");
    }

    #[test]
    fn the_buffer_is_the_window_over_twice_its_share() {
        let window = ByteCount::new(100_000);
        for segment in [536, 1448, 8948] {
            let segment = Mss::new(segment);
            let share = window_share(segment).get();
            let expected = (100_000.0 / (2.0 * share)).ceil();
            assert_eq!(buffer_for(window, Some(segment)), ByteCount::from_f64(expected));
        }
        assert_eq!(buffer_for(window, None), window, "half of twice the buffer");
        assert_eq!(buffer_for(ByteCount::ZERO, None), ByteCount::ZERO);
    }

    #[test]
    fn the_observed_window_is_the_largest_that_the_sender_saw() {
        let with_window = |role, window: Option<u64>| {
            let mut interval = second(0, false, &[(role, 1, None)]);
            interval.streams[0].tcp.as_mut().expect("TCP").send_window = window.map(ByteCount::new);
            interval
        };
        let sender =
            [Some(10_000), Some(30_000), None, Some(20_000)].map(|window| with_window(StreamRole::Sender, window));
        let mut run = transfer(Vec::new(), sender.to_vec());
        run.intervals.push(with_window(StreamRole::Receiver, Some(99_000)));
        assert_eq!(observed(&run, Direction::Up), Some(ByteCount::new(30_000)));
        assert_eq!(observed(&run, Direction::Down), None, "the far end reports nothing");
        let intervals = vec![with_window(StreamRole::Sender, Some(7000))];
        run.report.far = Some(FarReport { intervals, ..FarReport::default() });
        assert_eq!(observed(&run, Direction::Down), Some(ByteCount::new(7000)));
        assert_eq!(observed(&transfer(Vec::new(), Vec::new()), Direction::Up), None);
    }
}
