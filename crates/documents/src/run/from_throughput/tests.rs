use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::{ByteCount, Port, Ratio, SegmentCount, StreamCount};

use super::*;
use crate::run::{ChartPanel, FigureUnit};
use linerate_model::event::TestStart;
use linerate_model::limit::LimitShares;
use linerate_model::parameters::TestParameters;
use linerate_model::report::{FarReport, SideReport, StreamReport, TcpReport, TestReport};
use linerate_model::sample::{IntervalReport, StreamInterval, TcpInterval};
use linerate_model::stream::{EndpointRole, StreamDescription, StreamId, StreamRole};
use linerate_model::summary::DurationDistribution;

const BEGUN: Duration = Duration::from_secs(1_795_000_000);
const STEP: Duration = Duration::from_millis(200);

fn description(index: usize, role: StreamRole) -> StreamDescription {
    let id = StreamId::nth(index);
    StreamDescription { id, socket: 5, local: ([10, 0, 0, 1], 1).into(), remote: ([10, 0, 0, 2], 2).into(), role }
}

fn sender(rtt: u64) -> TcpInterval {
    let time = Duration::from_millis(rtt);
    TcpInterval {
        retransmits: Some(SegmentCount::new(2)),
        congestion_window: Some(ByteCount::new(100_000)),
        rtt_samples: Some(DurationDistribution {
            count: 9,
            min: time,
            median: time,
            mean: time,
            p95: time,
            p99: time,
            max: time,
        }),
        limits: Some(LimitShares { network: Ratio::new(0.75).expect("a share"), ..LimitShares::default() }),
        not_sent: Some(ByteCount::new(7)),
        ..TcpInterval::default()
    }
}

/// Intervals of 200 ms, with this many bytes on each of two streams.
fn intervals(bytes: &[u64], role: StreamRole) -> Vec<IntervalReport> {
    let interval = |(bytes, index): (&u64, u32)| IntervalReport {
        start: STEP * index,
        end: STEP * (index + 1),
        omitted: false,
        streams: (0..2)
            .map(|stream| StreamInterval {
                stream: StreamId::nth(stream),
                role,
                bytes: ByteCount::new(*bytes),
                tcp: (role == StreamRole::Sender).then(|| sender(20 + u64::from(index))),
                udp: None,
                socket: None,
            })
            .collect(),
    };
    bytes.iter().zip(0..).map(interval).collect()
}

fn run(flow: Direction, after: Duration, near: Vec<IntervalReport>, far: Option<Vec<IntervalReport>>) -> ThroughputRun {
    let counted = far.as_ref().filter(|_| flow == Direction::Up).unwrap_or(&near);
    let bytes: u64 = counted.iter().flat_map(|interval| &interval.streams).map(|stream| stream.bytes.get()).sum();
    let side = SideReport { bytes: ByteCount::new(bytes / 2), duration: counted.last().expect("intervals").end };
    let stream = |index| StreamReport {
        description: description(index, if flow == Direction::Up { StreamRole::Sender } else { StreamRole::Receiver }),
        sent: Some(side),
        received: Some(side),
        tcp: Some(TcpReport { retransmits: Some(SegmentCount::new(50)), ..TcpReport::default() }),
        udp: None,
        thread_cpu: None,
    };
    let start = TestStart {
        side: EndpointRole::Client,
        parameters: TestParameters::default(),
        cookie: String::new(),
        at: WallTime::from_unix(BEGUN + after),
        streams: Vec::new(),
        interval: Some(STEP),
        send_buffer: None,
        receive_buffer: None,
        derived_block_size: None,
        tls_data: None,
        target_rate: linerate_units::BitRate::ZERO,
        peer: None,
        peer_is_linerate: far.is_some(),
    };
    let report = TestReport {
        streams: vec![stream(0), stream(1)],
        local_cpu: None,
        remote_cpu: None,
        local_congestion: None,
        remote_congestion: None,
        server_output: None,
        file: None,
        overlapping_tests: None,
        far: far.map(|intervals| FarReport { intervals, ..FarReport::default() }),
        host: None,
        termination: TestTermination::Complete,
    };
    ThroughputRun {
        direction: flow,
        streams: StreamCount::new(2),
        start: Some(start),
        intervals: near,
        report,
        diagnosis: None,
    }
}

fn document(runs: Vec<ThroughputRun>) -> RunDocument {
    let facts = RunFacts {
        linerate_version: "0.1.0".to_owned(),
        started_at: WallTime::from_unix(BEGUN),
        duration: Duration::from_secs(12),
        arguments: vec!["test".to_owned(), "far".to_owned()],
        termination: TestTermination::Complete,
        verdict: "Fine.".to_owned(),
        environment: RunEnvironment::default(),
    };
    let result = ThroughputResult {
        host: "far".to_owned(),
        port: Port::IPERF3,
        dialed_in: false,
        peer_is_linerate: true,
        idle_rtt: DurationDistribution::of(&mut (1..=8).map(Duration::from_millis).collect::<Vec<_>>()),
        runs,
        quic: None,
    };
    RunDocument::from_throughput(facts, &result)
}

/// Ten seconds at 1 Mbit/s on each of two streams, with every third interval 10 % above and below.
fn bytes() -> Vec<u64> {
    (0..50).map(|index| [25_000, 27_500, 22_500][index % 3]).collect()
}

#[test]
fn the_receivers_rates_are_the_figures_of_the_run() {
    let lies = intervals(&[1; 50], StreamRole::Sender);
    let both =
        document(vec![run(Direction::Up, Duration::ZERO, lies, Some(intervals(&bytes(), StreamRole::Receiver)))]);
    let goodput = &both.figures[0];
    assert_eq!((goodput.name.as_str(), goodput.unit), ("goodput_up_parallel", FigureUnit::BitsPerSecond));
    let (value, low, high) =
        (goodput.value.expect("known"), goodput.low.expect("ten blocks"), goodput.high.expect("so"));
    // 50 intervals end with one of 25000 and one of 27500 bytes too many for the mean of 25000.
    assert!((value - 2.002e6).abs() < 1e4, "{value}");
    assert!(low <= value && value <= high && high - low > 0.0 && high - low < 0.2 * value, "{low} {value} {high}");
    assert_eq!(goodput.count, Some(10), "blocks of a second");
    let rates = both.series.iter().filter(|series| series.panel == ChartPanel::Throughput);
    let names: Vec<&str> = rates.clone().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["all streams", "stream 1", "stream 2"]);
    let all = rates.clone().next().expect("all streams");
    assert_eq!(all.values[0], Some(2e6));
    assert_eq!(all.times_ns[..2], [200_000_000, 400_000_000]);
}

#[test]
fn sender_figures_come_from_the_sender() {
    let near = intervals(&bytes(), StreamRole::Receiver);
    let down = document(vec![run(
        Direction::Down,
        Duration::ZERO,
        near.clone(),
        Some(intervals(&bytes(), StreamRole::Sender)),
    )]);
    for panel in [
        ChartPanel::Rtt,
        ChartPanel::CongestionWindow,
        ChartPanel::Retransmissions,
        ChartPanel::Limits,
        ChartPanel::Queue,
    ] {
        let series = down.series.iter().filter(|series| series.panel == panel);
        assert_eq!(series.count(), if panel == ChartPanel::Limits { 4 } else { 2 }, "{panel:?}");
    }
    let network = down.series.iter().find(|series| series.name == "network").expect("a limit");
    assert!(network.values.iter().all(|share| *share == Some(0.75)));
    let again = down.figures.iter().find(|figure| figure.name == "retransmissions_down_parallel").expect("a figure");
    assert_eq!(again.value, Some(100.0));
    assert!(again.low.expect("ten blocks") <= 100.0);
    // A stock server does not report that.
    let stock = document(vec![run(Direction::Down, Duration::ZERO, near, None)]);
    assert!(stock.series.iter().all(|series| series.panel == ChartPanel::Throughput));
    let rtt = stock.figures.iter().find(|figure| figure.name == "rtt_loaded_down_parallel").expect("a figure");
    assert_eq!((rtt.value, rtt.low, rtt.high), (None, None, None));
    assert!(rtt.note.is_some(), "why it is unknown");
}

#[test]
fn runs_follow_each_other_with_a_gap() {
    let near = || intervals(&[25_000; 10], StreamRole::Sender);
    let two = document(vec![
        run(Direction::Up, Duration::from_secs(1), near(), None),
        run(Direction::Up, Duration::from_secs(5), near(), None),
    ]);
    for series in &two.series {
        assert!(series.times_ns.is_sorted_by(|one, next| one < next), "{series:?}");
        assert_eq!(series.times_ns.len(), series.values.len());
        assert_eq!(series.values.iter().filter(|value| value.is_none()).count(), 1, "{series:?}");
    }
    let spans: Vec<_> = two.phases.iter().map(|phase| (phase.name.as_str(), phase.start_ns, phase.end_ns)).collect();
    assert_eq!(
        spans,
        [("up, 2 streams", 1_000_000_000, 3_000_000_000), ("up, 2 streams", 5_000_000_000, 7_000_000_000)]
    );
}

#[test]
fn few_handshakes_give_no_interval() {
    let idle = |count: u64| {
        let mut times: Vec<Duration> = (1..=count).map(Duration::from_millis).collect();
        let result = ThroughputResult {
            host: "far".to_owned(),
            port: Port::IPERF3,
            dialed_in: false,
            peer_is_linerate: false,
            idle_rtt: DurationDistribution::of(&mut times),
            runs: Vec::new(),
            quic: None,
        };
        figures::of(&result).remove(0)
    };
    assert_eq!((idle(5).low, idle(5).high), (None, None));
    assert_eq!((idle(6).low, idle(6).high), (Some(1e6), Some(6e6)));
}

#[test]
fn the_same_samples_give_the_same_document() {
    let once = || document(vec![run(Direction::Up, Duration::ZERO, intervals(&bytes(), StreamRole::Sender), None)]);
    assert_eq!(once(), once());
}
