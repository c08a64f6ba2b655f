//! Figures of a path, with their confidence intervals.

use std::time::Duration;

use linerate_analysis::statistics::{BlockSample, BootstrapSettings, DEFAULT_BLOCK, SampleStatistic};
use linerate_documents::run::{ChartPanel, FigureUnit, ImprovementDirection, RunFigure};
use linerate_engine::path::PathOutcome;
use linerate_model::path::{CapacityLimiter, PathDirection, PathDocument, RttMethod};
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, MonotonicTime, display};

/// Seed of the bootstrap; the same run gives the same intervals.
const BOOTSTRAP_SEED: u64 = 8337;

pub(super) fn all_figures(outcome: &PathOutcome) -> Vec<RunFigure> {
    let document = &outcome.document;
    let mut figures = vec![round_trip(outcome)];
    if document.is_route_only() {
        figures.push(route_loss(document));
        return figures;
    }
    let ends = [("up", &document.up), ("down", &document.down)];
    if document.is_stream_only() {
        figures.extend(ends.map(|(name, end)| arrival_rate(document, name, end)));
        figures.extend(ends.map(|(name, end)| loss(document, name, end)));
        figures.extend(ends.map(|(name, end)| jitter(document, name, end)));
        figures.extend(ends.map(|(name, end)| reordering(document, name, end)));
        return figures;
    }
    figures.extend(ends.map(|(name, end)| capacity(document, name, end)));
    figures.extend(ends.map(|(name, end)| loss(document, name, end)));
    figures.extend(ends.map(|(name, end)| jitter(document, name, end)));
    figures.extend(ends.map(|(name, end)| reordering(document, name, end)));
    figures.extend(ends.map(|(name, end)| mtu(document, name, end)));
    figures
}

/// Adds the reason to a figure without a value.
fn with_reason(document: &PathDocument, mut figure: RunFigure, key: &str) -> RunFigure {
    if figure.value.is_none() {
        let known = document.unknown.iter().find(|unknown| unknown.key == key);
        figure.note = known.map(|unknown| unknown.reason.clone());
    }
    figure
}

#[expect(clippy::cast_precision_loss, reason = "times and sizes of a measurement stay below 2^53")]
fn number(value: u64) -> f64 {
    value as f64
}

fn round_trip(outcome: &PathOutcome) -> RunFigure {
    let rtt = &outcome.document.rtt;
    // A stream at a rate may queue.
    let is_stream = outcome.document.is_stream_only();
    let (id, title) = if is_stream { ("rtt_median", "Round trip") } else { ("rtt_idle_median", "Idle round trip") };
    let mut figure = RunFigure::new(id, title, FigureUnit::Nanoseconds, ImprovementDirection::Lower);
    figure.value = rtt.best.as_ref().map(|best| number(nanoseconds(best.median)));
    figure.count = rtt.best.as_ref().map(|best| best.count);
    figure.note = rtt.method.map(|method| format!("measured with {method}"));
    let wanted = rtt.method.map(series_names).unwrap_or_default();
    let series = outcome
        .series
        .iter()
        .find(|series| series.panel == ChartPanel::Latency && wanted.contains(&series.name.as_str()));
    if let Some(series) = series {
        let samples: Vec<(MonotonicTime, Duration)> = series
            .times_ns
            .iter()
            .zip(&series.values)
            .filter_map(|(time, value)| {
                let value = Duration::try_from_secs_f64((*value)? / 1e9).ok()?;
                Some((MonotonicTime::from_nanos(*time), value))
            })
            .collect();
        let estimate = BlockSample::timed(&samples, DEFAULT_BLOCK)
            .estimate(SampleStatistic::Median, &BootstrapSettings::with_seed(BOOTSTRAP_SEED));
        if let Some(interval) = estimate.and_then(|estimate| estimate.interval) {
            figure.low = Some(interval.low.as_secs_f64() * 1e9);
            figure.high = Some(interval.high.as_secs_f64() * 1e9);
        }
    }
    with_reason(&outcome.document, figure, "rtt.best")
}

const fn series_names(method: RttMethod) -> &'static [&'static str] {
    match method {
        RttMethod::Udp => &["UDP", "STAMP"],
        RttMethod::Tcp => &["TCP"],
        RttMethod::Icmp => &["ICMP"],
        RttMethod::Handshake => &["TCP handshake"],
    }
}

fn capacity(document: &PathDocument, name: &str, end: &PathDirection) -> RunFigure {
    let title = format!("Capacity {name}");
    let mut figure =
        RunFigure::new(format!("capacity_{name}"), title, FigureUnit::BitsPerSecond, ImprovementDirection::Higher);
    if let Some(capacity) = &end.capacity {
        figure.value = Some(capacity.bits_per_second);
        figure.low = capacity.low_bits_per_second;
        figure.high = capacity.high_bits_per_second;
        let limiter = capacity.limited_by.unwrap_or(CapacityLimiter::Unknown);
        figure.note = capacity.at_least.then(|| format!("at least: limited by {}", limiter.title()));
    }
    with_reason(document, figure, &format!("{name}.capacity"))
}

fn loss(document: &PathDocument, name: &str, end: &PathDirection) -> RunFigure {
    let mut figure =
        RunFigure::new(format!("loss_{name}"), format!("Loss {name}"), FigureUnit::Share, ImprovementDirection::Lower);
    if let Some(packets) = &end.packets {
        (figure.value, figure.low, figure.high) = (packets.loss, packets.loss_low, packets.loss_high);
        figure.count = Some(packets.sent);
    }
    with_reason(document, figure, &format!("{name}.packets"))
}

/// Rate at which a stream arrived; as much as was sent at most.
fn arrival_rate(document: &PathDocument, name: &str, end: &PathDirection) -> RunFigure {
    let title = format!("Arrived {name}");
    let mut figure =
        RunFigure::new(format!("arrived_{name}"), title, FigureUnit::BitsPerSecond, ImprovementDirection::Higher);
    if let Some(packets) = &end.packets {
        figure.value = packets.received_bits_per_second;
        let shown = |rate| display::rate(BitRate::from_bits_per_second(rate));
        figure.note = packets.sent_bits_per_second.map(|rate| format!("of {} that were sent", shown(rate)));
    }
    with_reason(document, figure, &format!("{name}.packets"))
}

/// Loss to the destination and back, by probes of the hops.
fn route_loss(document: &PathDocument) -> RunFigure {
    let title = "Loss there and back";
    let mut figure = RunFigure::new("loss_route", title, FigureUnit::Share, ImprovementDirection::Lower);
    if let Some(route) = &document.route {
        (figure.value, figure.low, figure.high) = (route.loss, route.loss_low, route.loss_high);
        figure.count = Some(route.rounds);
        figure.note = route.loss_from.map(|hop| format!("persists from hop {hop} on"));
    }
    if figure.value.is_none() {
        figure.note = Some("the destination answers no probe".to_owned());
    }
    figure
}

fn jitter(document: &PathDocument, name: &str, end: &PathDirection) -> RunFigure {
    let title = format!("Jitter {name}");
    let mut figure =
        RunFigure::new(format!("jitter_{name}"), title, FigureUnit::Nanoseconds, ImprovementDirection::Lower);
    if let Some(packets) = &end.packets {
        figure.value = packets.spread_ns.or(packets.rfc3550_jitter_ns).map(number);
        figure.count = packets.received;
        let which = if packets.spread_ns.is_some() {
            "third minus first quartile of the delays"
        } else {
            "as defined in RFC 3550"
        };
        figure.note = Some(which.to_owned());
    }
    with_reason(document, figure, &format!("{name}.packets"))
}

fn reordering(document: &PathDocument, name: &str, end: &PathDirection) -> RunFigure {
    let title = format!("Reordered {name}");
    let mut figure =
        RunFigure::new(format!("reordering_{name}"), title, FigureUnit::Share, ImprovementDirection::Lower);
    figure.value = end.packets.as_ref().and_then(|packets| packets.reordering);
    figure.count = end.packets.as_ref().and_then(|packets| packets.received);
    with_reason(document, figure, &format!("{name}.packets"))
}

fn mtu(document: &PathDocument, name: &str, end: &PathDirection) -> RunFigure {
    let mut figure = RunFigure::new(
        format!("mtu_{name}"),
        format!("Path MTU {name}"),
        FigureUnit::Bytes,
        ImprovementDirection::Higher,
    );
    if let Some(mtu) = &end.mtu {
        // Exact to the byte, from probing.
        let bytes = Some(number(mtu.bytes));
        (figure.value, figure.low, figure.high) = (bytes, bytes, bytes);
        figure.note = mtu
            .black_hole_bytes
            .map(|size| format!("black hole: packets of {size} B are dropped without an ICMP error"));
    }
    with_reason(document, figure, &format!("{name}.mtu"))
}
