//! TCP transfers by iperf3's protocol, against a linerate or any iperf3 server.

use core::time::Duration;

use linerate_model::event::Event;
use linerate_model::parameters::{Direction as TestDirection, EndCondition, TestParameters};
use linerate_model::report::TestReport;
use linerate_model::sample::IntervalReport;
use linerate_model::schema::nanoseconds;
use linerate_model::schema::rfc6349::Flows;
use linerate_model::schema::run::{Panel, Series, Unit};
use linerate_model::schema::throughput::Direction;
use linerate_model::stream::Role;
use linerate_units::{ByteCount, StreamCount};

use super::baseline::bottleneck;
use super::record::Record;
use super::{Rfc6349Event, Rfc6349Options};
use crate::client::{self, Acquaintance, ClientOptions};
use crate::course::Halt;

/// Time between reports.
const INTERVAL: Duration = Duration::from_secs(1);

/// Payload of a segment on paths with small packets, and the most that surrounds it.
const SMALL_SEGMENT: u64 = 1200;
const HEADERS: u64 = 100;

/// What a transfer is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) flows: Flows,
    pub(super) connections: StreamCount,
    pub(super) window: Option<ByteCount>,
    pub(super) time: Duration,
}

/// What came of it.
pub(super) struct Transfer {
    pub(super) report: TestReport,
    pub(super) intervals: Vec<IntervalReport>,
}

/// Step 3: over one connection and several, each way by itself and both ways at once.
pub(super) fn plan(record: &Record<'_>) -> Vec<Kind> {
    let Rfc6349Options { connections, time, .. } = *record.options;
    let kind = |flows, connections| Kind { flows, connections, window: None, time };
    let mut plan = vec![kind(Flows::Up, StreamCount::new(1)), kind(Flows::Down, StreamCount::new(1))];
    if connections.get() > 1 {
        plan.extend([kind(Flows::Up, connections), kind(Flows::Down, connections)]);
    }
    plan.push(kind(Flows::Both, connections));
    plan
}

/// Runs one transfer. The reason why it could not be done is no end of the procedure.
pub(super) fn run(record: &mut Record<'_>, kind: Kind, left: usize) -> Result<Result<Transfer, String>, Halt> {
    record.check()?;
    let Kind { flows, connections, window, time } = kind;
    record.tell(&Rfc6349Event::Transfer { flows, connections, window, time, left });
    let start = record.elapsed();
    let options = options(record, kind);
    let stop = record.stop;
    let (error, (report, intervals)) = client::when_free(Acquaintance::Known, stop, || {
        let (mut report, mut intervals) = (None, Vec::new());
        let outcome = client::run(&options, stop.as_ref(), &mut |event| match event {
            Event::Finished(finished) => report = Some((**finished).clone()),
            Event::Interval(interval) => {
                tell_rates(record, interval);
                intervals.push(interval.clone());
            }
            _ => {}
        });
        (outcome.error, (report, intervals))
    });
    record.check()?;
    if let Some(error) = error {
        return Ok(Err(error.to_string()));
    }
    let Some(report) = report else { return Ok(Err("the transfer ended without a result".to_owned())) };
    record.phase(name(kind), start);
    let transfer = Transfer { report, intervals };
    count_traffic(record, &transfer);
    keep_series(record, &transfer, start + nanoseconds(options.parameters.omit));
    Ok(Ok(transfer))
}

fn name(kind: Kind) -> String {
    let flows = match kind.flows {
        Flows::Up => "up",
        Flows::Down => "down",
        Flows::Both => "both ways",
    };
    match (kind.window, kind.connections.get()) {
        (Some(window), _) => format!("{flows}, window {}", linerate_units::display::size(window)),
        (None, 1) => format!("{flows}, 1 connection"),
        (None, many) => format!("{flows}, {many} connections"),
    }
}

fn options(record: &Record<'_>, kind: Kind) -> ClientOptions {
    let target = &record.options.path.target;
    let parameters = TestParameters {
        direction: match kind.flows {
            Flows::Up => TestDirection::Forward,
            Flows::Down => TestDirection::Reverse,
            Flows::Both => TestDirection::Bidirectional,
        },
        end: EndCondition::Time(kind.time),
        omit: omit(record, kind.flows),
        parallel: kind.connections,
        window: kind.window,
        congestion: record.options.congestion_control.clone(),
        ..TestParameters::default()
    };
    ClientOptions::new(target, parameters, Some(INTERVAL))
}

/// TCP is measured in equilibrium (§1.3): twice the time of slow start is left out, a second at least, whole seconds.
fn omit(record: &Record<'_>, flows: Flows) -> Duration {
    let of = |direction| {
        let bottleneck = bottleneck(record, direction)?;
        let segment = bottleneck.framing.segment()?;
        linerate_model::formulas::slow_start_time(bottleneck.rate, bottleneck.round_trip, segment)
    };
    let slow_start = match flows {
        Flows::Up => of(Direction::Up),
        Flows::Down => of(Direction::Down),
        Flows::Both => of(Direction::Up).max(of(Direction::Down)),
    };
    Duration::from_secs((slow_start.unwrap_or_default() * 2).as_secs().clamp(0, 9) + 1)
}

/// Which way the data of a stream flows, seen from here.
pub(super) const fn direction_of(role: Role) -> Direction {
    match role {
        Role::Sender => Direction::Up,
        Role::Receiver => Direction::Down,
    }
}

fn tell_rates(record: &mut Record<'_>, interval: &IntervalReport) {
    for role in [Role::Sender, Role::Receiver] {
        let mut of_role = interval.streams.iter().filter(|stream| stream.role == role).peekable();
        if of_role.peek().is_some() {
            let moved: ByteCount = of_role.map(|stream| stream.bytes).sum();
            record.tell(&Rfc6349Event::Rate(direction_of(role), moved.rate_over(interval.length())));
        }
    }
}

/// What a transfer put on the path, at most: each segment has headers of up to 100 bytes, and one acknowledgement.
fn count_traffic(record: &mut Record<'_>, transfer: &Transfer) {
    for stream in transfer.intervals.iter().flat_map(|interval| &interval.streams) {
        let around = ByteCount::new(stream.bytes.get().div_ceil(SMALL_SEGMENT) * HEADERS);
        let (sent, received) = match stream.role {
            Role::Sender => (stream.bytes + around, around),
            Role::Receiver => (around, stream.bytes + around),
        };
        record.sent += sent;
        record.received += received;
    }
}

/// The throughput of each direction, second by second.
fn keep_series(record: &mut Record<'_>, transfer: &Transfer, start: u64) {
    for role in [Role::Sender, Role::Receiver] {
        let counted = transfer.intervals.iter().filter(|interval| !interval.omitted);
        let readings: Vec<(u64, f64)> = counted
            .filter_map(|interval| {
                let mut of_role = interval.streams.iter().filter(|stream| stream.role == role).peekable();
                of_role.peek()?;
                let moved: ByteCount = of_role.map(|stream| stream.bytes).sum();
                Some((start + nanoseconds(interval.end), moved.rate_over(interval.length()).bits_per_second()))
            })
            .collect();
        if readings.is_empty() {
            continue;
        }
        let direction = direction_of(role);
        let title = if direction == Direction::Up { "TCP up" } else { "TCP down" };
        let known = record.series.iter().position(|series| series.name == title && series.panel == Panel::Throughput);
        let place = known.unwrap_or_else(|| {
            record.series.push(Series {
                panel: Panel::Throughput,
                name: title.to_owned(),
                direction: Some(direction),
                stream: None,
                unit: Unit::BitsPerSecond,
                times_ns: Vec::new(),
                values: Vec::new(),
            });
            record.series.len() - 1
        });
        let series = &mut record.series[place];
        // A gap between transfers is a gap in the line.
        if let Some(last) = series.times_ns.last() {
            series.times_ns.push(last + 1);
            series.values.push(None);
        }
        series.times_ns.extend(readings.iter().map(|(time, _)| *time));
        series.values.extend(readings.iter().map(|(_, rate)| Some(*rate)));
    }
}
