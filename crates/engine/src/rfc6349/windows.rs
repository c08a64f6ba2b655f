//! The sweep over windows: what parts and multiples of the bandwidth-delay product achieve, beside what they should.

use core::time::Duration;

use linerate_model::formulas::window_share;
use linerate_model::schema::rfc6349::{Flows, WindowTest};
use linerate_model::schema::throughput::Direction;
use linerate_model::stream::Role;
use linerate_units::{BitRate, ByteCount, Ratio, StreamCount};

use super::baseline::bottleneck;
use super::metrics::arrived;
use super::record::Record;
use super::transfer::{self, Kind, Transfer};
use crate::course::Halt;

/// Parts of the bandwidth-delay product.
const PARTS: [f64; 4] = [0.25, 0.5, 1.0, 2.0];

/// Time of each transfer, at most.
const TIME: Duration = Duration::from_secs(5);

/// A window smaller than this many segments tests delayed acknowledgements, not the window.
const FEWEST_SEGMENTS: f64 = 4.0;

/// One transfer of the sweep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    direction: Direction,
    window: ByteCount,
    share: Ratio,
}

pub(super) fn plan(record: &mut Record<'_>) -> Vec<Planned> {
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
        let product = bottleneck.least_window().as_f64();
        let worthwhile = PARTS.into_iter().filter(|part| part * product >= FEWEST_SEGMENTS * segment);
        let before = plan.len();
        plan.extend(worthwhile.map(|part| Planned {
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

/// Runs one transfer with a fixed window, and puts it beside its expectation.
pub(super) fn measure(record: &mut Record<'_>, planned: Planned, left: usize) -> Result<(), Halt> {
    let Some(bottleneck) = bottleneck(record, planned.direction) else { return Ok(()) };
    let kind = Kind {
        flows: if planned.direction == Direction::Up { Flows::Up } else { Flows::Down },
        connections: StreamCount::new(1),
        window: Some(buffer_for(planned.window, bottleneck.framing.segment())),
        time: record.options.time.min(TIME),
    };
    let mut test = WindowTest {
        direction: planned.direction,
        window_bytes: planned.window.get(),
        share_of_bdp: Some(planned.share.get()),
        observed_window_bytes: None,
        expected_bits_per_second: bottleneck.expected(planned.window).map(BitRate::bits_per_second),
        achieved_bits_per_second: None,
        ratio: None,
    };
    match transfer::run(record, kind, left)? {
        Ok(transfer) => {
            let observed = observed(&transfer, planned.direction);
            // What the sender really saw is what can be expected of it.
            let expected = bottleneck.expected(observed.unwrap_or(planned.window));
            let achieved = arrived(&transfer.report, planned.direction).map(|(bytes, time)| bytes.rate_over(time));
            test.observed_window_bytes = observed.map(ByteCount::get);
            test.expected_bits_per_second = expected.map(BitRate::bits_per_second);
            test.achieved_bits_per_second = achieved.map(BitRate::bits_per_second);
            test.ratio = achieved.zip(expected).and_then(|(achieved, expected)| achieved / expected).map(Ratio::get);
        }
        Err(problem) => {
            let window = linerate_units::display::size(planned.window);
            let way_out =
                "net.core.rmem_max and net.core.wmem_max at both ends say how large a buffer may be asked for";
            record.note(format!("A window of {window} could not be tried: {problem} ({way_out})"));
        }
    }
    record.windows.push(test);
    Ok(())
}

/// The buffer to ask for, so that the window comes to this: the kernel doubles what is asked for (socket(7)), and offers
/// the payload's share of it.
fn buffer_for(window: ByteCount, segment: Option<linerate_units::Mss>) -> ByteCount {
    let share = segment.map_or(0.5, |segment| window_share(segment).get()).max(0.1);
    ByteCount::from_f64((window.as_f64() / (2.0 * share)).ceil())
}

/// The largest window that the sender saw: by this end's kernel, or the far one's, where it is a linerate.
fn observed(transfer: &Transfer, direction: Direction) -> Option<ByteCount> {
    let intervals = match direction {
        Direction::Up => &transfer.intervals,
        Direction::Down => &transfer.report.far.as_ref()?.intervals,
    };
    let senders = intervals.iter().flat_map(|interval| &interval.streams).filter(|stream| stream.role == Role::Sender);
    senders.filter_map(|stream| stream.tcp.as_ref()?.send_window).max()
}
