//! Figures of a recorded stream: loss, order, copies, one-way delay and its variation.

use core::time::Duration;

use linerate_analysis::ippm::{
    ClockRelation, DelayVariation, OneWayDelay, PacketDuplication, PacketLoss, PacketStream, StreamReordering,
};
use linerate_analysis::statistics::StatisticalQuantity as _;
use linerate_documents::run::{ChartPanel, FigureUnit, SampleSeries};
use linerate_model::direction::Direction;
use linerate_model::path::PacketMetrics;
use linerate_model::summary::DurationDistribution;
use linerate_units::serde::nanoseconds;
use linerate_units::{CompactSort, MonotonicTime, PacketCount, Ratio, WallTime};

use crate::pace::whole;
use crate::path::convert::to_monotonic;
use crate::path::linerate::name;
use crate::path::record::PathRecord;

/// Figures of a stream; order and copies also by a `close` one.
pub(in crate::path) fn stream_metrics(
    paced: &PacketStream,
    close: Option<&PacketStream>,
    direction: Direction,
    clocks: Option<&ClockRelation>,
) -> PacketMetrics {
    let loss = PacketLoss::of(paced, Duration::from_secs(2));
    let variation = DelayVariation::of(paced);
    let order = ReorderingMetrics::of(paced, close);
    let delay = clocks.and_then(|clocks| match direction {
        Direction::Up => OneWayDelay::to_far(paced, clocks),
        Direction::Down => OneWayDelay::to_near(paced, clocks),
    });
    PacketMetrics {
        sent: loss.sent.get(),
        received: Some(loss.sent.get() - loss.lost.get()),
        loss: loss.ratio.map(Ratio::get),
        loss_low: loss.interval.map(|interval| interval.low.get()),
        loss_high: loss.interval.map(|interval| interval.high.get()),
        loss_episodes: Some(loss.runs.len() as u64),
        longest_loss_packets: Some(loss.longest_run.get()),
        duplicates: Some(order.copies),
        duplication: order.duplication,
        reordered: Some(order.reordered),
        reordering: order.reordering,
        reordering_extent_packets: order.extent,
        three_reordering: order.three_reordering,
        one_way_delay: delay.as_ref().map(|delay| DurationDistribution::from(&delay.delay)),
        one_way_delay_error_ns: delay.as_ref().map(|delay| nanoseconds(delay.error_bound)),
        delay_variation: variation.as_ref().map(|variation| DurationDistribution::from(&variation.pdv)),
        ipdv_mean_ns: variation.as_ref().and_then(|variation| variation.ipdv_mean).map(nanoseconds),
        spread_ns: variation.as_ref().map(|variation| nanoseconds(variation.spread)),
        rfc3550_jitter_ns: smoothed_jitter(paced),
        ..PacketMetrics::default()
    }
}

/// Reordering and duplication, over both streams of a direction.
pub(super) struct ReorderingMetrics {
    pub(super) copies: u64,
    pub(super) duplication: Option<f64>,
    pub(super) reordered: u64,
    pub(super) reordering: Option<f64>,
    pub(super) extent: Option<u64>,
    pub(super) three_reordering: Option<f64>,
}

impl ReorderingMetrics {
    pub(super) fn of(paced: &PacketStream, close: Option<&PacketStream>) -> Self {
        let streams: Vec<&PacketStream> = [Some(paced), close].into_iter().flatten().collect();
        let duplications: Vec<PacketDuplication> = streams.iter().map(|stream| PacketDuplication::of(stream)).collect();
        let orders: Vec<StreamReordering> = streams.iter().map(|stream| StreamReordering::of(stream)).collect();
        let arrived: u64 = duplications.iter().map(|one| one.arrived.get()).sum();
        let copies: u64 = duplications.iter().map(|one| one.copies.get()).sum();
        let received: u64 = orders.iter().map(|one| one.received.get()).sum();
        let reordered: u64 = orders.iter().map(|one| one.reordered.get()).sum();
        let three: u64 = orders.iter().map(|one| one.three_reordered.get()).sum();
        let share = |part: u64, of: u64| {
            Ratio::of(PacketCount::new(part).as_f64(), PacketCount::new(of).as_f64()).map(Ratio::get)
        };
        let extents = orders.iter().filter_map(|one| Some(one.extent.as_ref()?.max));
        Self {
            copies,
            duplication: share(copies, arrived),
            reordered,
            reordering: share(reordered, received),
            extent: extents.reduce(f64::max).map(whole),
            three_reordering: share(three, received),
        }
    }
}

/// RFC 3550 §6.4.1 and A.8: each difference between the delays of neighbours has a weight of a sixteenth.
pub(super) fn smoothed_jitter(stream: &PacketStream) -> Option<u64> {
    let differences: Vec<f64> = stream.first_copies().map(|arrival| arrival.difference().number()).collect();
    let jitter =
        differences.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(None::<f64>, |jitter, difference| {
            let jitter = jitter.unwrap_or(0.0);
            Some(jitter + (difference - jitter) / 16.0)
        })?;
    Some(nanoseconds(Duration::from_number(jitter)))
}

/// One-way delays above the smallest, over time.
pub(in crate::path) fn one_way_series(
    record: &mut PathRecord<'_>,
    stream: &PacketStream,
    direction: Direction,
    clocks: Option<&ClockRelation>,
) {
    let base = stream.arrivals.iter().map(|arrival| arrival.difference().as_nanos()).min();
    let (Some(base), Some(zero)) = (base, start_on_sender_clock(record, direction, clocks)) else { return };
    let mut arrivals: Vec<_> = stream.first_copies().collect();
    arrivals.sort_compactly_by_key(|arrival| arrival.sent);
    record.series.push(SampleSeries {
        panel: ChartPanel::OneWayDelay,
        name: format!("UDP {}", name(direction)),
        direction: Some(direction),
        stream: None,
        unit: FigureUnit::Nanoseconds,
        times_ns: arrivals.iter().map(|arrival| nanoseconds(arrival.sent.since(zero))).collect(),
        values: arrivals
            .iter()
            .map(|arrival| Some(Duration::from_nanos((arrival.difference().as_nanos() - base).unsigned_abs()).number()))
            .collect(),
    });
}

/// Start of the measurement, on the clock of the direction's sender.
fn start_on_sender_clock(
    record: &PathRecord<'_>,
    direction: Direction,
    clocks: Option<&ClockRelation>,
) -> Option<MonotonicTime> {
    let near = to_monotonic(WallTime::from_unix(Duration::from_nanos(record.document.started_at_unix_ns)));
    match direction {
        Direction::Up => Some(near),
        Direction::Down => {
            let offset = clocks?.offset_at(near);
            let far = if offset.negative {
                near.as_nanos().saturating_sub(nanoseconds(offset.magnitude))
            } else {
                near.as_nanos().saturating_add(nanoseconds(offset.magnitude))
            };
            Some(MonotonicTime::from_nanos(far))
        }
    }
}
