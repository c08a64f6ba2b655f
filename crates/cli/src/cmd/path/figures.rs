//! The numbers that stand for a path, with their intervals.

use std::time::Duration;

use linerate_engine::path::PathOutcome;
use linerate_model::schema::path::{PathDirection, PathDocument};
use linerate_model::schema::run::{Better, Figure, Panel, Unit};
use linerate_model::statistics::{BLOCK, Bootstrap, Sample, Statistic};
use linerate_units::MonotonicTime;

/// The same run gives the same intervals.
const SEED: u64 = 8337;

pub(super) fn of(outcome: &PathOutcome) -> Vec<Figure> {
    let document = &outcome.document;
    let mut figures = vec![round_trip(outcome)];
    let ends = [("up", &document.up), ("down", &document.down)];
    figures.extend(ends.map(|(name, end)| capacity(document, name, end)));
    figures.extend(ends.map(|(name, end)| loss(document, name, end)));
    figures.extend(ends.map(|(name, end)| jitter(document, name, end)));
    figures.extend(ends.map(|(name, end)| reordering(document, name, end)));
    figures.extend(ends.map(|(name, end)| mtu(document, name, end)));
    figures
}

/// The figure, with the reason where it has no value.
fn reasoned(document: &PathDocument, mut figure: Figure, key: &str) -> Figure {
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

fn round_trip(outcome: &PathOutcome) -> Figure {
    let rtt = &outcome.document.rtt;
    let mut figure = Figure::new("rtt_idle_median", "Idle round trip", Unit::Nanoseconds, Better::Lower);
    figure.value = rtt.best.as_ref().map(|best| number(best.median_ns));
    figure.count = rtt.best.as_ref().map(|best| best.count);
    figure.note = rtt.method.as_ref().map(|method| format!("by {}", method_name(method)));
    let wanted = rtt.method.as_deref().map(series_names).unwrap_or_default();
    let series =
        outcome.series.iter().find(|series| series.panel == Panel::Latency && wanted.contains(&series.name.as_str()));
    if let Some(series) = series {
        let readings: Vec<(MonotonicTime, Duration)> = series
            .times_ns
            .iter()
            .zip(&series.values)
            .filter_map(|(time, value)| {
                let value = Duration::try_from_secs_f64((*value)? / 1e9).ok()?;
                Some((MonotonicTime::from_nanos(*time), value))
            })
            .collect();
        let estimate = Sample::timed(&readings, BLOCK).estimate(Statistic::Median, &Bootstrap::with_seed(SEED));
        if let Some(interval) = estimate.and_then(|estimate| estimate.interval) {
            figure.low = Some(interval.low.as_secs_f64() * 1e9);
            figure.high = Some(interval.high.as_secs_f64() * 1e9);
        }
    }
    reasoned(&outcome.document, figure, "rtt.best")
}

fn method_name(method: &str) -> &str {
    match method {
        "udp" => "UDP probes",
        "tcp" => "small messages over TCP",
        "icmp" => "ICMP echoes",
        "handshake" => "TCP handshakes",
        other => other,
    }
}

fn series_names(method: &str) -> &'static [&'static str] {
    match method {
        "udp" => &["UDP", "STAMP"],
        "tcp" => &["TCP"],
        "icmp" => &["ICMP"],
        "handshake" => &["TCP handshake"],
        _ => &[],
    }
}

fn capacity(document: &PathDocument, name: &str, end: &PathDirection) -> Figure {
    let title = format!("Capacity {name}");
    let mut figure = Figure::new(format!("capacity_{name}"), title, Unit::BitsPerSecond, Better::Higher);
    if let Some(capacity) = &end.capacity {
        figure.value = Some(capacity.bits_per_second);
        figure.low = capacity.low_bits_per_second;
        figure.high = capacity.high_bits_per_second;
        let limited = capacity.limited_by.as_deref().unwrap_or("what could be sent");
        figure.note = capacity.at_least.then(|| format!("at least: limited by {limited}"));
    }
    reasoned(document, figure, &format!("{name}.capacity"))
}

fn loss(document: &PathDocument, name: &str, end: &PathDirection) -> Figure {
    let mut figure = Figure::new(format!("loss_{name}"), format!("Loss {name}"), Unit::Share, Better::Lower);
    if let Some(packets) = &end.packets {
        (figure.value, figure.low, figure.high) = (packets.loss, packets.loss_low, packets.loss_high);
        figure.count = Some(packets.sent);
    }
    reasoned(document, figure, &format!("{name}.packets"))
}

fn jitter(document: &PathDocument, name: &str, end: &PathDirection) -> Figure {
    let title = format!("Jitter {name}");
    let mut figure = Figure::new(format!("jitter_{name}"), title, Unit::Nanoseconds, Better::Lower);
    if let Some(packets) = &end.packets {
        figure.value = packets.spread_ns.or(packets.rfc3550_jitter_ns).map(number);
        figure.count = packets.received;
        let which =
            if packets.spread_ns.is_some() { "third minus first quartile of the delays" } else { "as RFC 3550 has it" };
        figure.note = Some(which.to_owned());
    }
    reasoned(document, figure, &format!("{name}.packets"))
}

fn reordering(document: &PathDocument, name: &str, end: &PathDirection) -> Figure {
    let title = format!("Reordered {name}");
    let mut figure = Figure::new(format!("reordering_{name}"), title, Unit::Share, Better::Lower);
    figure.value = end.packets.as_ref().and_then(|packets| packets.reordering);
    figure.count = end.packets.as_ref().and_then(|packets| packets.received);
    reasoned(document, figure, &format!("{name}.packets"))
}

fn mtu(document: &PathDocument, name: &str, end: &PathDirection) -> Figure {
    let mut figure = Figure::new(format!("mtu_{name}"), format!("Path MTU {name}"), Unit::Bytes, Better::Higher);
    if let Some(mtu) = &end.mtu {
        // Found by probing to the byte.
        let bytes = Some(number(mtu.bytes));
        (figure.value, figure.low, figure.high) = (bytes, bytes, bytes);
        figure.note = mtu.black_hole_bytes.map(|size| format!("black hole: {size} B vanish without a word"));
    }
    reasoned(document, figure, &format!("{name}.mtu"))
}
