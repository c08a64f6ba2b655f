//! Simulated runs of `linerate test`, compared by the code that `linerate history compare` runs.
//!
//! Shared by the tests of the bounds and by `cargo xtask simulate`.

use std::time::Duration;

use linerate_analysis::statistics::SeededRandom;
use linerate_documents::run::{FigureJudgement, RunComparison, RunDocument, RunEnvironment, RunFacts};
use linerate_model::direction::Direction;
use linerate_model::event::TestStart;
use linerate_model::parameters::TestParameters;
use linerate_model::report::{SideReport, StreamReport, TcpReport, TestReport, TestTermination};
use linerate_model::sample::{IntervalReport, StreamInterval, TcpInterval};
use linerate_model::stream::{EndpointRole, StreamDescription, StreamId, StreamRole};
use linerate_model::summary::DurationDistribution;
use linerate_model::throughput::{ThroughputResult, ThroughputRun};
use linerate_units::{BitRate, ByteCount, Port, SegmentCount, StreamCount, WallTime};

/// Largest share of comparisons of equal runs that may call any figure different.
pub(crate) const MAX_FALSE_DIFFERENCE: f64 = 0.05;
/// Largest share of comparisons of different runs that may call them equal.
pub(crate) const MAX_FALSE_EQUAL: f64 = 0.05;

const SECOND: Duration = Duration::from_secs(1);

/// Variation of runs of one path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunVariation {
    /// Coefficient of variation of the seconds of a run.
    pub(crate) within: f64,
    /// Autocorrelation of neighbouring seconds.
    pub(crate) autocorrelation: f64,
    /// Coefficient of variation of the runs' true rates.
    pub(crate) between: f64,
    /// Seconds of a run.
    pub(crate) seconds: u32,
}

/// Series of factors around one.
struct Series<'a> {
    random: &'a mut SeededRandom,
    variation: RunVariation,
    level: f64,
    state: f64,
}

impl<'a> Series<'a> {
    fn new(random: &'a mut SeededRandom, variation: RunVariation) -> Self {
        let level = (1.0 + variation.between * random.normal()).max(0.05);
        let state = random.normal();
        Self { random, variation, level, state }
    }

    fn next(&mut self) -> f64 {
        let coefficient = self.variation.autocorrelation;
        self.state = coefficient * self.state + (1.0 - coefficient * coefficient).sqrt() * self.random.normal();
        self.level * (1.0 + self.variation.within * self.state).max(0.02)
    }
}

fn description() -> StreamDescription {
    StreamDescription {
        id: StreamId::nth(0),
        socket: 5,
        local: ([10, 0, 0, 1], 1).into(),
        remote: ([10, 0, 0, 2], 2).into(),
        role: StreamRole::Sender,
    }
}

fn whole(number: f64) -> u64 {
    ByteCount::from_f64(number.max(0.0)).get()
}

/// One upload at about this rate, with round trips of 40 ms and 20 retransmissions a second.
pub(crate) fn run(variation: RunVariation, rate: BitRate, seed: u64) -> RunDocument {
    let mut random = SeededRandom::new(seed);
    let bytes: Vec<u64> = {
        let mut series = Series::new(&mut random, variation);
        (0..variation.seconds).map(|_| whole(rate.bits_per_second() / 8.0 * series.next())).collect()
    };
    let times: Vec<Duration> = {
        let calm = RunVariation { within: variation.within / 4.0, between: variation.between / 4.0, ..variation };
        let mut series = Series::new(&mut random, calm);
        bytes.iter().map(|_| Duration::from_secs_f64(0.040 * series.next())).collect()
    };
    let again: Vec<u64> = {
        let mut series = Series::new(&mut random, variation);
        bytes.iter().map(|_| whole(20.0 * series.next())).collect()
    };
    let interval = |((index, bytes), (time, again)): ((u32, u64), (Duration, u64))| IntervalReport {
        start: SECOND * index,
        end: SECOND * (index + 1),
        omitted: false,
        streams: vec![StreamInterval {
            stream: StreamId::nth(0),
            role: StreamRole::Sender,
            bytes: ByteCount::new(bytes),
            tcp: Some(TcpInterval {
                retransmits: Some(SegmentCount::new(again)),
                rtt_samples: DurationDistribution::of(&mut [time; 3]),
                ..TcpInterval::default()
            }),
            udp: None,
            socket: None,
        }],
    };
    let figures = (0_u32..).zip(bytes.iter().copied()).zip(times.into_iter().zip(again.iter().copied()));
    let intervals: Vec<IntervalReport> = figures.map(interval).collect();
    let sent = SideReport { bytes: ByteCount::new(bytes.iter().sum()), duration: SECOND * variation.seconds };
    document(intervals, sent, SegmentCount::new(again.iter().sum()))
}

fn document(intervals: Vec<IntervalReport>, sent: SideReport, retransmits: SegmentCount) -> RunDocument {
    let begun = WallTime::from_unix(Duration::from_secs(1_795_000_000));
    let start = TestStart {
        side: EndpointRole::Client,
        parameters: TestParameters::default(),
        cookie: String::new(),
        at: begun,
        streams: Vec::new(),
        interval: Some(SECOND),
        send_buffer: None,
        receive_buffer: None,
        derived_block_size: None,
        tls_data: None,
        target_rate: BitRate::ZERO,
        peer: None,
        peer_is_linerate: true,
    };
    let stream = StreamReport {
        description: description(),
        sent: Some(sent),
        received: Some(sent),
        tcp: Some(TcpReport { retransmits: Some(retransmits), ..TcpReport::default() }),
        udp: None,
        thread_cpu: None,
    };
    let report = TestReport {
        streams: vec![stream],
        local_cpu: None,
        remote_cpu: None,
        local_congestion: None,
        remote_congestion: None,
        server_output: None,
        file: None,
        overlapping_tests: None,
        far: None,
        host: None,
        termination: TestTermination::Complete,
    };
    let run = ThroughputRun {
        direction: Direction::Up,
        streams: StreamCount::new(1),
        start: Some(start),
        intervals,
        report,
        diagnosis: None,
    };
    let facts = RunFacts {
        linerate_version: "0.1.0".to_owned(),
        started_at: begun,
        duration: sent.duration,
        arguments: Vec::new(),
        termination: TestTermination::Complete,
        verdict: String::new(),
        environment: RunEnvironment::default(),
    };
    let result = ThroughputResult {
        host: "far".to_owned(),
        port: Port::IPERF3,
        dialed_in: false,
        peer_is_linerate: true,
        idle_rtt: None,
        runs: vec![run],
        quic: None,
    };
    RunDocument::from_throughput(facts, &result)
}

/// Shares of comparisons.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ComparisonRates {
    /// That call any figure better, worse or different.
    pub(crate) different: f64,
    /// That call the goodput worse.
    pub(crate) worse: f64,
    /// That call the goodput equal.
    pub(crate) equal: f64,
}

/// Compares groups of this many runs, the later ones at `factor` of the rate.
pub(crate) fn rates(variation: RunVariation, runs: u64, factor: f64, comparisons: u32, seed: u64) -> ComparisonRates {
    let rate = BitRate::from_bits_per_second(50e6);
    let mut found = ComparisonRates::default();
    for index in 0..u64::from(comparisons) {
        let side = |which: u64, rate: BitRate| -> Vec<RunDocument> {
            let first = seed.wrapping_mul(1_000_003).wrapping_add(index * 2 + which).wrapping_mul(1_009);
            (0..runs).map(|number| run(variation, rate, first + number)).collect()
        };
        let (before, after) = (side(0, rate), side(1, rate * factor));
        let comparison = RunComparison::of(&before.iter().collect::<Vec<_>>(), &after.iter().collect::<Vec<_>>());
        let judgements: Vec<FigureJudgement> =
            comparison.iter().flat_map(|comparison| &comparison.figures).map(|figure| figure.judgement).collect();
        let share = |is: bool| f64::from(u8::from(is)) / f64::from(comparisons);
        let differs =
            |judgement: &FigureJudgement| !matches!(judgement, FigureJudgement::Equal | FigureJudgement::CannotTell);
        found.different += share(judgements.iter().any(differs));
        found.worse += share(judgements.first() == Some(&FigureJudgement::Worse));
        found.equal += share(judgements.first() == Some(&FigureJudgement::Equal));
    }
    found
}
