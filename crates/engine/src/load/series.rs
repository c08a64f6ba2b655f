//! Samples over time, for charts.

use core::time::Duration;
use linerate_analysis::latency_under_load::LatencyClass;
use linerate_model::direction::Direction;

use linerate_documents::run::{ChartPanel, FigureUnit, SampleSeries};
use linerate_units::serde::nanoseconds;
use linerate_units::{ByteCount, MonotonicTime};

use super::evidence::{ALL_CONNECTIONS, ClassSamples, ConnectionEvidence, LoadEvidence, ProbeReading};
use super::summary::IdleBaseline;
use crate::probe::messages::LoadSample;

/// Averaging time of the goodput.
const GOODPUT_BIN: Duration = Duration::from_millis(250);

/// Shortest spacing of the kernel's samples shown.
const MIN_SAMPLE_SPACING: Duration = Duration::from_millis(100);

/// All series.
pub(super) fn of(evidence: &LoadEvidence, started: MonotonicTime) -> Vec<SampleSeries> {
    let connections: Vec<&ConnectionEvidence> = evidence.phases.iter().flat_map(|phase| &phase.connections).collect();
    let mut all: Vec<SampleSeries> =
        connections.iter().filter_map(|connection| throughput(connection, started)).collect();
    all.extend(evidence.classes.iter().filter_map(|class| latency(class, started)));
    all.extend(one_way(evidence, started));
    for connection in &connections {
        all.extend(kernel(connection, started));
    }
    all.extend(own_queue(evidence, started));
    all
}

fn series(panel: ChartPanel, name: &str, unit: FigureUnit, points: Vec<(u64, Option<f64>)>) -> Option<SampleSeries> {
    points.iter().any(|(_, value)| value.is_some()).then(|| {
        let (times_ns, values) = points.into_iter().unzip();
        SampleSeries { panel, name: name.to_owned(), direction: None, stream: None, unit, times_ns, values }
    })
}

fn of_connection(
    connection: &ConnectionEvidence,
    panel: ChartPanel,
    unit: FigureUnit,
    points: Vec<(u64, Option<f64>)>,
) -> Option<SampleSeries> {
    let name = match connection.number {
        ALL_CONNECTIONS => "all connections".to_owned(),
        number => format!("connection {number}"),
    };
    let series = series(panel, &name, unit, points)?;
    Some(SampleSeries { direction: Some(connection.direction), stream: Some(connection.number), ..series })
}

fn throughput(connection: &ConnectionEvidence, started: MonotonicTime) -> Option<SampleSeries> {
    let last = connection.payload.last()?.0;
    let mut points = Vec::new();
    let mut from = connection.started;
    while from + GOODPUT_BIN <= connection.started + last {
        let to = from + GOODPUT_BIN;
        let rate = connection
            .payload_at(from)
            .zip(connection.payload_at(to))
            .map(|(less, more)| ByteCount::from_f64(more - less).rate_over(GOODPUT_BIN).bits_per_second());
        points.push((nanoseconds(to.since(started)), rate));
        from = to;
    }
    of_connection(connection, ChartPanel::Throughput, FigureUnit::BitsPerSecond, points)
}

fn latency(class: &ClassSamples, started: MonotonicTime) -> Option<SampleSeries> {
    // The kernel's samples are shown for each connection.
    if class.class == LatencyClass::TcpInfo {
        return None;
    }
    let value = |reading: &ProbeReading| {
        let time = reading.round_trip();
        // A lost probe leaves a gap; a ping that a connection did not deliver is no loss.
        (class.counts_losses || time.is_some()).then(|| (nanoseconds(reading.sent.since(started)), time.map(number)))
    };
    series(
        ChartPanel::Latency,
        class.class.title(),
        FigureUnit::Nanoseconds,
        class.readings.iter().filter_map(value).collect(),
    )
}

fn number(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

fn one_way(evidence: &LoadEvidence, started: MonotonicTime) -> Vec<SampleSeries> {
    type DelayFunction = fn(&IdleBaseline, &ProbeReading) -> Option<Duration>;
    let Some((idle, class)) = evidence.idle().zip(evidence.class(LatencyClass::UdpBestEffort)) else {
        return Vec::new();
    };
    let rest = IdleBaseline::of(&class.within(idle));
    let ways: [(Direction, DelayFunction); 2] =
        [(Direction::Up, IdleBaseline::delay_up), (Direction::Down, IdleBaseline::delay_down)];
    let series = ways.into_iter().filter_map(|(direction, delay)| {
        let points = class.readings.iter().filter_map(|reading| {
            Some((nanoseconds(reading.sent.since(started)), Some(number(delay(&rest, reading)?))))
        });
        let series = series(ChartPanel::OneWayDelay, class.class.title(), FigureUnit::Nanoseconds, points.collect())?;
        Some(SampleSeries { direction: Some(direction), ..series })
    });
    series.collect()
}

/// Samples of the sender's kernel for a connection.
fn kernel(connection: &ConnectionEvidence, started: MonotonicTime) -> Vec<SampleSeries> {
    let samples = thinned(&connection.samples);
    let points = |value: fn(&LoadSample) -> Option<f64>| -> Vec<(u64, Option<f64>)> {
        let at = |sample: &&LoadSample| nanoseconds((connection.started + sample.time).since(started));
        samples.iter().map(|sample| (at(sample), value(sample))).collect()
    };
    [
        (ChartPanel::Rtt, FigureUnit::Nanoseconds, points(|sample| sample.rtt.map(number))),
        (
            ChartPanel::CongestionWindow,
            FigureUnit::Bytes,
            points(|sample| sample.congestion_window.map(ByteCount::as_f64)),
        ),
        (ChartPanel::Retransmissions, FigureUnit::Segments, again(connection, &samples, started)),
        (ChartPanel::Queue, FigureUnit::Bytes, points(|sample| sample.not_sent.map(ByteCount::as_f64))),
    ]
    .into_iter()
    .filter_map(|(panel, unit, points)| of_connection(connection, panel, unit, points))
    .collect()
}

fn thinned(samples: &[LoadSample]) -> Vec<&LoadSample> {
    let mut kept: Vec<&LoadSample> = Vec::new();
    for sample in samples {
        if kept.last().is_none_or(|last| sample.time >= last.time + MIN_SAMPLE_SPACING) {
            kept.push(sample);
        }
    }
    kept
}

/// Segments retransmitted since the previous sample.
fn again(connection: &ConnectionEvidence, samples: &[&LoadSample], started: MonotonicTime) -> Vec<(u64, Option<f64>)> {
    let pairs = samples.windows(2);
    pairs
        .map(|pair| {
            let grown = pair[0].retransmits.zip(pair[1].retransmits).map(|(less, more)| (more - less).as_f64());
            (nanoseconds((connection.started + pair[1].time).since(started)), grown)
        })
        .collect()
}

fn own_queue(evidence: &LoadEvidence, started: MonotonicTime) -> Option<SampleSeries> {
    let readings = evidence.phases.iter().flat_map(|phase| &phase.backlog);
    let points = readings.map(|(time, size)| (nanoseconds(time.since(started)), Some(size.as_f64())));
    series(ChartPanel::Queue, "this host's queue", FigureUnit::Bytes, points.collect())
}
