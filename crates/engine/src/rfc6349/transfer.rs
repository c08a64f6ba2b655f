//! TCP transfers by iperf3's protocol, against a linerate or any iperf3 server.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_documents::rfc6349::LoadedDirections;
use linerate_documents::run::{ChartPanel, FigureUnit, SampleSeries};
use linerate_model::event::TestEvent;
use linerate_model::parameters::{EndCondition, TestDirection, TestParameters};
use linerate_model::report::TestReport;
use linerate_model::sample::IntervalReport;
use linerate_model::stream::StreamRole;
use linerate_units::serde::nanoseconds;
use linerate_units::{ByteCount, StreamCount};

use super::baseline::bottleneck;
use super::record::Rfc6349Record;
use super::{Rfc6349Event, Rfc6349Options};
use crate::client::{self, ClientOptions, PriorContact};
use crate::phases::AbortReason;

/// Interval of the reports.
const INTERVAL: Duration = Duration::from_secs(1);

/// Payload of a segment on paths with small packets, and an upper bound of its headers.
const SMALL_SEGMENT: u64 = 1200;
const MAX_HEADERS: u64 = 100;

/// Parameters of a transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransferKind {
    pub(super) flows: LoadedDirections,
    pub(super) connections: StreamCount,
    pub(super) window: Option<ByteCount>,
    pub(super) time: Duration,
}

/// Result of a transfer.
pub(super) struct TransferResult {
    pub(super) report: TestReport,
    pub(super) intervals: Vec<IntervalReport>,
}

/// Step 3: transfers over one connection and several, per direction and in both at once.
pub(super) fn plan(record: &Rfc6349Record<'_>) -> Vec<TransferKind> {
    let Rfc6349Options { connections, time, .. } = *record.options;
    let kind = |flows, connections| TransferKind { flows, connections, window: None, time };
    let mut plan =
        vec![kind(LoadedDirections::Up, StreamCount::new(1)), kind(LoadedDirections::Down, StreamCount::new(1))];
    if connections.get() > 1 {
        plan.extend([kind(LoadedDirections::Up, connections), kind(LoadedDirections::Down, connections)]);
    }
    plan.push(kind(LoadedDirections::Both, connections));
    plan
}

/// Runs one transfer. A failed transfer does not end the procedure.
pub(super) fn run(
    record: &mut Rfc6349Record<'_>,
    kind: TransferKind,
    left: usize,
) -> Result<Result<TransferResult, String>, AbortReason> {
    record.check()?;
    let TransferKind { flows, connections, window, time } = kind;
    record.tell(&Rfc6349Event::Transfer { flows, connections, window, time, left });
    let start = record.elapsed();
    let options = options(record, kind);
    let stop = record.stop;
    let (error, (report, intervals)) = client::retry_while_busy(PriorContact::Known, stop, || {
        let (mut report, mut intervals) = (None, Vec::new());
        let outcome = client::run(&options, stop.as_ref(), &mut |event| match event {
            TestEvent::Finished(finished) => report = Some((**finished).clone()),
            TestEvent::Interval(interval) => {
                report_rates(record, interval);
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
    let transfer = TransferResult { report, intervals };
    count_traffic(record, &transfer);
    add_series(record, &transfer, start + nanoseconds(options.parameters.omit));
    Ok(Ok(transfer))
}

fn name(kind: TransferKind) -> String {
    let flows = match kind.flows {
        LoadedDirections::Up => "up",
        LoadedDirections::Down => "down",
        LoadedDirections::Both => "both directions",
    };
    match (kind.window, kind.connections.get()) {
        (Some(window), _) => format!("{flows}, window {}", linerate_units::display::size(window)),
        (None, 1) => format!("{flows}, 1 connection"),
        (None, many) => format!("{flows}, {many} connections"),
    }
}

fn options(record: &Rfc6349Record<'_>, kind: TransferKind) -> ClientOptions {
    let target = &record.options.path.target;
    let parameters = TestParameters {
        direction: match kind.flows {
            LoadedDirections::Up => TestDirection::Forward,
            LoadedDirections::Down => TestDirection::Reverse,
            LoadedDirections::Both => TestDirection::Bidirectional,
        },
        end: EndCondition::Time(kind.time),
        omit: omit(record, kind.flows),
        parallel: kind.connections,
        window: kind.window,
        congestion: record.options.congestion_control.clone(),
        ..TestParameters::discarding()
    };
    ClientOptions::new(target, parameters, Some(INTERVAL))
}

/// Omitted time, as TCP is measured in equilibrium (§1.3): twice the time of slow start, a second at least, whole
/// seconds.
fn omit(record: &Rfc6349Record<'_>, flows: LoadedDirections) -> Duration {
    let of = |direction| {
        let bottleneck = bottleneck(record, direction)?;
        let segment = bottleneck.framing.segment()?;
        linerate_analysis::formulas::slow_start_time(bottleneck.rate, bottleneck.round_trip, segment)
    };
    let slow_start = match flows {
        LoadedDirections::Up => of(Direction::Up),
        LoadedDirections::Down => of(Direction::Down),
        LoadedDirections::Both => of(Direction::Up).max(of(Direction::Down)),
    };
    Duration::from_secs((slow_start.unwrap_or_default() * 2).as_secs().clamp(0, 9) + 1)
}

/// Direction of a stream's data, seen from here.
pub(super) const fn direction_of(role: StreamRole) -> Direction {
    match role {
        StreamRole::Sender => Direction::Up,
        StreamRole::Receiver => Direction::Down,
    }
}

fn report_rates(record: &mut Rfc6349Record<'_>, interval: &IntervalReport) {
    for role in [StreamRole::Sender, StreamRole::Receiver] {
        let mut of_role = interval.streams.iter().filter(|stream| stream.role == role).peekable();
        if of_role.peek().is_some() {
            let moved: ByteCount = of_role.map(|stream| stream.bytes).sum();
            record.tell(&Rfc6349Event::Rate(direction_of(role), moved.rate_over(interval.length())));
        }
    }
}

/// Counts the traffic of a transfer, at most: each segment has headers of up to 100 bytes, and one acknowledgement.
fn count_traffic(record: &mut Rfc6349Record<'_>, transfer: &TransferResult) {
    for stream in transfer.intervals.iter().flat_map(|interval| &interval.streams) {
        let around = ByteCount::new(stream.bytes.get().div_ceil(SMALL_SEGMENT) * MAX_HEADERS);
        let (sent, received) = match stream.role {
            StreamRole::Sender => (stream.bytes + around, around),
            StreamRole::Receiver => (around, stream.bytes + around),
        };
        record.sent += sent;
        record.received += received;
    }
}

/// Adds the throughput of each direction, second by second.
fn add_series(record: &mut Rfc6349Record<'_>, transfer: &TransferResult, start: u64) {
    for role in [StreamRole::Sender, StreamRole::Receiver] {
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
        let known =
            record.series.iter().position(|series| series.name == title && series.panel == ChartPanel::Throughput);
        let place = known.unwrap_or_else(|| {
            record.series.push(SampleSeries {
                panel: ChartPanel::Throughput,
                name: title.to_owned(),
                direction: Some(direction),
                stream: None,
                unit: FigureUnit::BitsPerSecond,
                times_ns: Vec::new(),
                values: Vec::new(),
            });
            record.series.len() - 1
        });
        let series = &mut record.series[place];
        // A gap between transfers is a gap in the curve.
        if let Some(last) = series.times_ns.last() {
            series.times_ns.push(last + 1);
            series.values.push(None);
        }
        series.times_ns.extend(readings.iter().map(|(time, _)| *time));
        series.values.extend(readings.iter().map(|(_, rate)| Some(*rate)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::{capacity, options as procedure, second, transfer, with_path};
    use super::*;

    fn kind(flows: LoadedDirections, connections: u64) -> TransferKind {
        TransferKind { flows, connections: StreamCount::new(connections), window: None, time: Duration::from_secs(10) }
    }

    #[test]
    fn the_plan_has_one_connection_then_several_then_both_directions() {
        use LoadedDirections::{Both, Down, Up};
        for (connections, expected) in
            [(1, vec![(Up, 1), (Down, 1), (Both, 1)]), (4, vec![(Up, 1), (Down, 1), (Up, 4), (Down, 4), (Both, 4)])]
        {
            let procedure = Rfc6349Options { connections: StreamCount::new(connections), ..procedure() };
            let (planned, ..) = with_path(&procedure, |record| plan(record));
            let found: Vec<_> = planned.iter().map(|kind| (kind.flows, kind.connections.get())).collect();
            assert_eq!(found, expected);
            assert!(planned.iter().all(|kind| kind.window.is_none() && kind.time == Duration::from_secs(10)));
        }
    }

    #[test]
    fn a_transfer_is_a_test_with_these_parameters() {
        let procedure = Rfc6349Options { congestion_control: Some("cubic".to_owned()), ..procedure() };
        for (flows, direction) in [
            (LoadedDirections::Up, TestDirection::Forward),
            (LoadedDirections::Down, TestDirection::Reverse),
            (LoadedDirections::Both, TestDirection::Bidirectional),
        ] {
            let window = Some(ByteCount::new(50_000));
            let (found, ..) =
                with_path(&procedure, |record| options(record, TransferKind { window, ..kind(flows, 3) }));
            let parameters = &found.parameters;
            assert_eq!((parameters.direction, parameters.window), (direction, window));
            assert_eq!(parameters.end, EndCondition::Time(Duration::from_secs(10)));
            assert_eq!((parameters.parallel, parameters.congestion.as_deref()), (StreamCount::new(3), Some("cubic")));
            assert_eq!((found.host.as_str(), found.interval), ("192.0.2.1", Some(INTERVAL)));
        }
    }

    #[test]
    fn the_omitted_time_covers_twice_the_slow_start() {
        // Slow start doubles ten segments each round trip.
        for (megabits, milliseconds) in [(30.0, 20), (1000.0, 20), (1000.0, 300), (10_000.0, 900), (0.1, 1)] {
            let (found, ..) = with_path(&procedure(), |record| {
                record.path.as_mut().expect("a path").up.capacity = Some(capacity(megabits));
                record.baseline.rtt_ns = Some(milliseconds * 1_000_000);
                omit(record, LoadedDirections::Up)
            });
            let time = Duration::from_millis(milliseconds).as_secs_f64();
            let doublings = (megabits * 1e6 * time / 8.0 / 14_480.0).max(1.0).log2();
            let expected = (2.0 * time * doublings).floor().min(9.0) + 1.0;
            assert!((found.as_secs_f64() - expected).abs() < 1e-9, "{megabits} Mbit/s, {milliseconds} ms: {found:?}");
        }
        let (found, ..) =
            super::super::test_support::recorded(&procedure(), |record| omit(record, LoadedDirections::Both));
        assert_eq!(found, Duration::from_secs(1), "a second at least");
    }

    #[test]
    fn names_have_directions_connections_and_windows() {
        let window = |bytes| TransferKind { window: Some(ByteCount::new(bytes)), ..kind(LoadedDirections::Down, 1) };
        assert_eq!(name(kind(LoadedDirections::Up, 1)), "up, 1 connection");
        assert_eq!(name(kind(LoadedDirections::Both, 4)), "both directions, 4 connections");
        let shown = linerate_units::display::size(ByteCount::new(65_536));
        assert_eq!(name(window(65_536)), format!("down, window {shown}"));
    }

    #[test]
    fn traffic_includes_headers_and_acknowledgements() {
        let run = transfer(
            Vec::new(),
            vec![
                second(0, true, &[(StreamRole::Sender, 1200, None)]),
                second(0, false, &[(StreamRole::Sender, 1201, None), (StreamRole::Receiver, 12_000, None)]),
            ],
        );
        let ((), outcome, _) = with_path(&procedure(), |record| count_traffic(record, &run));
        // Segments: 1 and 2 up, 10 down; the omitted part is on the path, too.
        assert_eq!(outcome.sent, ByteCount::new(1200 + 100 + 1201 + 200 + 1000));
        assert_eq!(outcome.received, ByteCount::new(100 + 200 + 12_000 + 1000));
    }

    #[test]
    fn a_series_goes_on_after_a_gap() {
        let run = transfer(
            Vec::new(),
            vec![
                second(0, true, &[(StreamRole::Sender, 9, None)]),
                second(0, false, &[(StreamRole::Sender, 1000, None), (StreamRole::Sender, 250, None)]),
                second(1, false, &[(StreamRole::Sender, 500, None)]),
            ],
        );
        let ((), outcome, _) = with_path(&procedure(), |record| {
            add_series(record, &run, 5_000_000_000);
            add_series(record, &run, 9_000_000_000);
        });
        assert_eq!(outcome.series.len(), 1);
        let series = &outcome.series[0];
        assert_eq!((series.name.as_str(), series.direction), ("TCP up", Some(Direction::Up)));
        assert_eq!(series.times_ns, [6_000_000_000, 7_000_000_000, 7_000_000_001, 10_000_000_000, 11_000_000_000]);
        assert_eq!(series.values, [Some(10_000.0), Some(4000.0), None, Some(10_000.0), Some(4000.0)]);
    }

    #[test]
    fn rates_are_reported_per_direction() {
        let interval = second(3, false, &[(StreamRole::Sender, 1000, None), (StreamRole::Receiver, 250, None)]);
        let ((), _, events) = with_path(&procedure(), |record| report_rates(record, &interval));
        let rate = |bytes: u64| ByteCount::new(bytes).rate_over(Duration::from_secs(1));
        let expected = [Rfc6349Event::Rate(Direction::Up, rate(1000)), Rfc6349Event::Rate(Direction::Down, rate(250))];
        assert_eq!(events, expected);
    }
}
