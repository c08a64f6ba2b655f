//! Requests and responses.

use linerate_documents::rr::{LatencyBucket, LatencySummary, RrDocument, RrInterval, RrSchedule, SCHEMA};
use linerate_documents::run::{
    ChartPanel, FigureUnit, ImprovementDirection, RunDocument, RunKind, RunResult, SampleSeries,
};
use linerate_model::path::UnknownValue;
use linerate_model::report::TestTermination;
use linerate_model::rr::RrMode;

use super::{MILLISECOND, SECOND, STARTED, complete, figure, real, run};

fn summary(p50_us: u64, p99_us: u64, max_us: u64) -> LatencySummary {
    let micros = |time: u64| time * 1000;
    LatencySummary {
        count: 10_000,
        min_ns: micros(180),
        mean_ns: micros(p50_us + 20),
        p50_ns: micros(p50_us),
        p90_ns: micros(p50_us + 40),
        p99_ns: micros(p99_us),
        p99_9_ns: micros(p99_us + (max_us - p99_us) / 2),
        max_ns: micros(max_us),
    }
}

fn histogram() -> Vec<LatencyBucket> {
    let counts = [(100, 200, 2000), (200, 500, 7500), (500, 1000, 20), (1000, 2000, 10), (2000, 100_000, 470)];
    let bucket =
        |(from, below, count): (u64, u64, u64)| LatencyBucket { from_ns: from * 1000, below_ns: below * 1000, count };
    counts.map(bucket).to_vec()
}

fn document() -> RrDocument {
    let intervals = (0..10).map(|second| RrInterval {
        start_ns: second * SECOND,
        end_ns: (second + 1) * SECOND,
        transactions: 1000,
        lost: u64::from(second == 4),
        mean_ns: Some(2 * MILLISECOND + second),
        max_ns: Some(99 * MILLISECOND),
    });
    RrDocument {
        schema: SCHEMA,
        linerate_version: "0.1.0".to_owned(),
        host: "fra.example.net".to_owned(),
        port: 5201,
        peer_version: Some("0.1.0".to_owned()),
        started_at_unix_ns: STARTED,
        duration_ns: 11 * SECOND,
        termination: complete(),
        mode: RrMode::Udp,
        handshake: None,
        request_bytes: 64,
        response_bytes: 1200,
        flows: 4,
        schedule: RrSchedule::Poisson,
        scheduled_per_second: Some(1000.0),
        measured_ns: Some(10 * SECOND),
        transactions: 10_000,
        transactions_per_second: Some(1000.0),
        lost: Some(1),
        unfinished: 3,
        latency: Some(summary(225, 80_100, 99_600)),
        service_time: Some(summary(220, 1_100, 1_300)),
        histogram: histogram(),
        intervals: intervals.collect(),
        near_processor_ns: Some(9_200.0),
        far_processor_ns: Some(7_900.0),
        failures: Vec::new(),
        unknown: Vec::new(),
        notes: Vec::new(),
    }
}

fn of(document: RrDocument, verdict: &str) -> RunDocument {
    let rate = document.transactions_per_second;
    let latency = document.latency.map(|latency| real(latency.p99_ns));
    let result = RunResult::Rr(Box::new(document));
    let mut run = run(RunKind::Rr, 11, &["rr", "fra.example.net", "--udp", "--rate", "1000/s"], verdict, result);
    run.figures = vec![
        figure("transactions", "Transactions", FigureUnit::PerSecond, rate, ImprovementDirection::Neither),
        figure("latency_p99", "Latency, p99", FigureUnit::Nanoseconds, latency, ImprovementDirection::Lower),
    ];
    run
}

/// Everything ran.
pub(crate) fn rr() -> RunDocument {
    let mut run = of(document(), "1000/s UDP transactions over 4 flows, latency 225 µs (median), 80.1 ms (p99).");
    run.series = vec![SampleSeries {
        panel: ChartPanel::Latency,
        name: "mean of 1 s".to_owned(),
        direction: None,
        stream: None,
        unit: FigureUnit::Nanoseconds,
        times_ns: (1..=10).map(|second| second * SECOND).collect(),
        values: (1..=10).map(|second| Some(2e6 + f64::from(second))).collect(),
    }];
    run
}

/// No transaction was completed.
pub(crate) fn rr_without_response() -> RunDocument {
    let reason = || "no transaction was completed".to_owned();
    let unknown = |key: &str| UnknownValue { key: key.to_owned(), reason: reason() };
    let nothing = RrDocument {
        termination: TestTermination::Interrupted { signal: Some("SIGINT".to_owned()) },
        measured_ns: None,
        transactions: 0,
        transactions_per_second: None,
        lost: Some(4),
        latency: None,
        service_time: None,
        histogram: Vec::new(),
        intervals: Vec::new(),
        near_processor_ns: None,
        far_processor_ns: None,
        failures: vec!["waiting for a response: the server closed the connection".to_owned()],
        unknown: vec![unknown("latency"), unknown("transactions_per_second")],
        ..document()
    };
    of(nothing, "No transaction was completed.")
}
