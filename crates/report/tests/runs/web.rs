//! A test in a browser.

use linerate_documents::run::{
    ChartPanel, FigureUnit, ImprovementDirection, RunDocument, RunKind, RunResult, SampleSeries,
};
use linerate_documents::web::{SCHEMA, WebDocument, WebGrade, WebPhase};
use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_model::direction::Direction;
use linerate_model::load::{LatencyGrade, PhaseKind};
use linerate_model::path::UnknownValue;
use linerate_units::Ratio;

use super::{MILLISECOND, Noise, SECOND, STARTED, complete, figure, run, span, times};

fn phase(kind: PhaseKind, start: u64, end: u64, added: Option<i64>) -> WebPhase {
    let sends = kind == PhaseKind::Down;
    let loads = kind != PhaseKind::Idle;
    let verdict = DiagnosisVerdict {
        cause: Cause::LinkRate,
        confidence: Confidence::Medium,
        text: "The path is full: at 95.6 Mbit/s it has a persistent queue of 16.1 ms.".to_owned(),
        share: Ratio::new(0.9),
        without: None,
        together_with: None,
        evidence: vec!["queueing: 16.1 ms".to_owned()],
        advice: Vec::new(),
        tune: None,
    };
    WebPhase {
        kind,
        start_ns: start * SECOND,
        end_ns: end * SECOND,
        connections: if loads { 4 } else { 0 },
        goodput_bits_per_second: loads.then_some(95.6e6),
        bytes: loads.then_some(95_000_000),
        browser_rtt: Some(if loads { times(20.0, 36.5, 39.9, 41.0) } else { times(20.0, 20.1, 20.3, 21.0) }),
        browser_added_median_ns: added.map(|added| added - 3_000_000),
        browser_added_p95_ns: added,
        kernel_rtt: sends.then(|| times(20.0, 36.9, 39.8, 40.0)),
        kernel_rtt_min_ns: sends.then_some(20 * MILLISECOND),
        congestion_window_bytes: sends.then_some(460_000),
        retransmitted_segments: sends.then_some(167),
        retransmitted_share: sends.then_some(0.0019),
        limits: None,
        verdicts: if sends { vec![verdict] } else { Vec::new() },
    }
}

/// Everything ran.
pub(crate) fn web() -> RunDocument {
    let verdict = "95.6 Mbit/s down, 95.6 Mbit/s up. Grade A: the upload adds 19.8 ms (95th percentile, browser).";
    let document = WebDocument {
        schema: SCHEMA,
        linerate_version: "0.1.0".to_owned(),
        host: "192.0.2.7".to_owned(),
        port: 8080,
        started_at_unix_ns: STARTED,
        duration_ns: 20 * SECOND,
        termination: complete(),
        browser: Some("Mozilla/5.0 (X11; Linux x86_64) Example/1".to_owned()),
        congestion_control: Some("cubic".to_owned()),
        rate_limit_bits_per_second: None,
        phases: vec![
            phase(PhaseKind::Idle, 0, 3, None),
            phase(PhaseKind::Down, 3, 11, Some(19_700_000)),
            phase(PhaseKind::Up, 12, 20, Some(19_800_000)),
        ],
        grade: Some(WebGrade {
            letter: LatencyGrade::A,
            added_ns: 19_800_000,
            direction: Direction::Up,
            is_on_path: None,
            up: Some(LatencyGrade::A),
            down: Some(LatencyGrade::A),
            thresholds: vec![(LatencyGrade::APlus, 5 * MILLISECOND), (LatencyGrade::A, 30 * MILLISECOND)],
        }),
        ungraded_because: None,
        unknown: vec![UnknownValue {
            key: "phases.up.kernel_rtt".to_owned(),
            reason: "only the sender knows it, which is the browser's host here".to_owned(),
        }],
        notes: vec!["Bytes, rates and connections are the server's own counts.".to_owned()],
    };
    let mut web = run(RunKind::Web, 20, &[], verdict, RunResult::Web(Box::new(document)));
    (web.host, web.port) = ("192.0.2.7".to_owned(), 8080);
    web.figures = vec![
        figure("goodput_down", "Goodput down", FigureUnit::BitsPerSecond, Some(95.6e6), ImprovementDirection::Higher),
        figure(
            "added_up_p95",
            "Added by load up, p95",
            FigureUnit::Nanoseconds,
            Some(19.8e6),
            ImprovementDirection::Lower,
        ),
    ];
    web.phases = vec![span("idle", 0, 3), span("down", 3, 11), span("up", 12, 20)];
    web.series = series();
    web
}

fn series() -> Vec<SampleSeries> {
    let mut noise = Noise::new(8);
    let mut of = |panel, name: &str, direction, unit, [from, to]: [u64; 2], [low, high]: [f64; 2]| {
        let times_ns: Vec<u64> = (from * 10..to * 10).map(|tenth| tenth * 100 * MILLISECOND).collect();
        let values = times_ns.iter().map(|_| Some(noise.between(low, high))).collect();
        SampleSeries { panel, name: name.to_owned(), direction, stream: None, unit, times_ns, values }
    };
    let (bits, nanoseconds) = (FigureUnit::BitsPerSecond, FigureUnit::Nanoseconds);
    vec![
        of(ChartPanel::Throughput, "all connections", Some(Direction::Down), bits, [4, 11], [95e6, 96e6]),
        of(ChartPanel::Throughput, "all connections", Some(Direction::Up), bits, [13, 20], [95e6, 96e6]),
        of(ChartPanel::Latency, "HTTP, by the browser", None, nanoseconds, [0, 20], [20e6, 40e6]),
    ]
}
