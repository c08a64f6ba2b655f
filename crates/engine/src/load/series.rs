//! Readings over time, for charts.

use core::time::Duration;

use linerate_model::schema::load::ClassName;
use linerate_model::schema::nanoseconds;
use linerate_model::schema::run::{Panel, Series, Unit};
use linerate_model::schema::throughput::Direction;
use linerate_units::{ByteCount, MonotonicTime};

use super::evidence::{ClassReadings, Connection, Evidence, Reading};
use super::summary::Rest;
use crate::probe::messages::LoadSample;

/// Goodput is shown over so long.
const BIN: Duration = Duration::from_millis(250);

/// The kernel's readings are shown no more often.
const SPACING: Duration = Duration::from_millis(100);

/// All series.
pub(super) fn of(evidence: &Evidence, started: MonotonicTime) -> Vec<Series> {
    let connections: Vec<&Connection> = evidence.phases.iter().flat_map(|phase| &phase.connections).collect();
    let mut all: Vec<Series> = connections.iter().filter_map(|connection| throughput(connection, started)).collect();
    all.extend(evidence.classes.iter().filter_map(|class| latency(class, started)));
    all.extend(one_way(evidence, started));
    for connection in &connections {
        all.extend(kernel(connection, started));
    }
    all.extend(own_queue(evidence, started));
    all
}

fn series(panel: Panel, name: &str, unit: Unit, points: Vec<(u64, Option<f64>)>) -> Option<Series> {
    points.iter().any(|(_, value)| value.is_some()).then(|| {
        let (times_ns, values) = points.into_iter().unzip();
        Series { panel, name: name.to_owned(), direction: None, stream: None, unit, times_ns, values }
    })
}

fn of_connection(connection: &Connection, panel: Panel, unit: Unit, points: Vec<(u64, Option<f64>)>) -> Option<Series> {
    let series = series(panel, &format!("connection {}", connection.number), unit, points)?;
    Some(Series { direction: Some(connection.direction), stream: Some(connection.number), ..series })
}

fn throughput(connection: &Connection, started: MonotonicTime) -> Option<Series> {
    let last = connection.payload.last()?.0;
    let mut points = Vec::new();
    let mut from = connection.started;
    while from + BIN <= connection.started + last {
        let to = from + BIN;
        let rate = connection
            .payload_at(from)
            .zip(connection.payload_at(to))
            .map(|(less, more)| ByteCount::from_f64(more - less).rate_over(BIN).bits_per_second());
        points.push((nanoseconds(to.since(started)), rate));
        from = to;
    }
    of_connection(connection, Panel::Throughput, Unit::BitsPerSecond, points)
}

fn latency(class: &ClassReadings, started: MonotonicTime) -> Option<Series> {
    // The kernel's are shown for each connection.
    if class.class == ClassName::TcpInfo {
        return None;
    }
    let value = |reading: &Reading| {
        let time = reading.round_trip();
        // A probe that was lost leaves a gap; what a connection did not deliver any more is no probe.
        (class.counts_losses || time.is_some()).then(|| (nanoseconds(reading.sent.since(started)), time.map(number)))
    };
    series(Panel::Latency, class.class.title(), Unit::Nanoseconds, class.readings.iter().filter_map(value).collect())
}

fn number(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

fn one_way(evidence: &Evidence, started: MonotonicTime) -> Vec<Series> {
    type Delay = fn(&Rest, &Reading) -> Option<Duration>;
    let Some((idle, class)) = evidence.idle().zip(evidence.class(ClassName::UdpBestEffort)) else { return Vec::new() };
    let rest = Rest::of(&class.within(idle));
    let ways: [(Direction, Delay); 2] = [(Direction::Up, Rest::delay_up), (Direction::Down, Rest::delay_down)];
    let series = ways.into_iter().filter_map(|(direction, delay)| {
        let points = class.readings.iter().filter_map(|reading| {
            Some((nanoseconds(reading.sent.since(started)), Some(number(delay(&rest, reading)?))))
        });
        let series = series(Panel::OneWayDelay, class.class.title(), Unit::Nanoseconds, points.collect())?;
        Some(Series { direction: Some(direction), ..series })
    });
    series.collect()
}

/// What the sender's kernel says of a connection.
fn kernel(connection: &Connection, started: MonotonicTime) -> Vec<Series> {
    let samples = thinned(&connection.samples);
    let points = |value: fn(&LoadSample) -> Option<f64>| -> Vec<(u64, Option<f64>)> {
        let at = |sample: &&LoadSample| nanoseconds((connection.started + sample.time).since(started));
        samples.iter().map(|sample| (at(sample), value(sample))).collect()
    };
    [
        (Panel::Rtt, Unit::Nanoseconds, points(|sample| sample.rtt.map(number))),
        (Panel::CongestionWindow, Unit::Bytes, points(|sample| sample.congestion_window.map(ByteCount::as_f64))),
        (Panel::Retransmissions, Unit::Segments, again(connection, &samples, started)),
        (Panel::Queue, Unit::Bytes, points(|sample| sample.not_sent.map(ByteCount::as_f64))),
    ]
    .into_iter()
    .filter_map(|(panel, unit, points)| of_connection(connection, panel, unit, points))
    .collect()
}

fn thinned(samples: &[LoadSample]) -> Vec<&LoadSample> {
    let mut kept: Vec<&LoadSample> = Vec::new();
    for sample in samples {
        if kept.last().is_none_or(|last| sample.time >= last.time + SPACING) {
            kept.push(sample);
        }
    }
    kept
}

/// Segments sent again since the reading before.
fn again(connection: &Connection, samples: &[&LoadSample], started: MonotonicTime) -> Vec<(u64, Option<f64>)> {
    let pairs = samples.windows(2);
    pairs
        .map(|pair| {
            let grown = pair[0].retransmits.zip(pair[1].retransmits).map(|(less, more)| (more - less).as_f64());
            (nanoseconds((connection.started + pair[1].time).since(started)), grown)
        })
        .collect()
}

fn own_queue(evidence: &Evidence, started: MonotonicTime) -> Option<Series> {
    let readings = evidence.phases.iter().flat_map(|phase| &phase.backlog);
    let points = readings.map(|(time, size)| (nanoseconds(time.since(started)), Some(size.as_f64())));
    series(Panel::Queue, "this host's queue", Unit::Bytes, points.collect())
}
