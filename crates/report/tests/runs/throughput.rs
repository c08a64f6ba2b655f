//! Throughput.

use std::time::Duration;

use linerate_documents::run::{
    ChartPanel, FigureUnit, ImprovementDirection, RunDocument, RunKind, RunResult, SampleSeries,
};
use linerate_documents::throughput::{LoadedRtt, SenderLimit, StreamResult, ThroughputDocument, ThroughputTest};
use linerate_model::diagnosis::{BoundKind, Cause, Confidence, DiagnosisVerdict, ThroughputBound, TransferDiagnosis};
use linerate_model::direction::Direction;
use linerate_model::limit::{LimitShares, TransferLimit};
use linerate_model::stream::StreamRole;
use linerate_units::{BitRate, Ratio};

use super::{MILLISECOND, Noise, SECOND, STARTED, complete, figure, real, run, span, times, unknown_figure};

fn stream(id: u32, rate: f64, known: bool) -> StreamResult {
    StreamResult {
        id,
        bits_per_second: Some(rate),
        sent_bytes: Some(123_456_789),
        received_bytes: Some(123_400_000),
        retransmitted_segments: known.then_some(u64::from(id) * 3),
        rtt: known.then(|| times(11.2, 18.9, 45.2, 61.0)),
        limit: known.then(limit),
        client_thread_cpu_ns: None,
        client_tcp_info: None,
        server_tcp_info: None,
    }
}

fn limit() -> SenderLimit {
    let share = |value: f64| Ratio::new(value).expect("a share");
    SenderLimit {
        verdict: TransferLimit::Network,
        shares: LimitShares {
            application: share(0.02),
            send_buffer: share(0.08),
            receive_window: share(0.05),
            network: share(0.85),
            sender_cpu: Some(share(0.12)),
            receiver_cpu: Some(share(0.31)),
            ..LimitShares::default()
        },
    }
}

fn one(direction: Direction, streams: u32, rate: f64, known: bool) -> ThroughputTest {
    let share = rate / f64::from(streams);
    ThroughputTest {
        direction,
        streams: u64::from(streams),
        started_at_unix_ns: Some(STARTED),
        termination: complete(),
        bits_per_second: Some(rate),
        measured_at: Some(StreamRole::Receiver),
        duration_ns: Some(10 * SECOND),
        receive_method: known.then_some(linerate_model::parameters::ReceiveMethod::Discard),
        tls_data: None,
        sent_bytes: Some(1_234_567_890),
        received_bytes: Some(1_234_000_000),
        retransmitted_segments: known.then_some(41),
        loaded_rtt: known
            .then_some(LoadedRtt { median: Duration::from_micros(18_900), p95: Duration::from_micros(45_200) }),
        client_cpu_percent: Some(12.5),
        server_cpu_percent: None,
        sender_congestion_control: Some("cubic".to_owned()),
        receiver_congestion_control: Some("cubic".to_owned()),
        limit: known.then(limit),
        diagnosis: None,
        overlapping_tests: Some(0),
        stream_results: (1..=streams).map(|id| stream(id, share, known)).collect(),
        intervals: Vec::new(),
        server_intervals: None,
    }
}

fn held_back_by_loss() -> TransferDiagnosis {
    let verdict = |cause: Cause, confidence: Confidence, text: &str| DiagnosisVerdict {
        cause,
        confidence,
        text: text.to_owned(),
        share: None,
        without: None,
        together_with: None,
        evidence: Vec::new(),
        advice: Vec::new(),
        tune: None,
    };
    let next = ThroughputBound {
        kind: BoundKind::Path,
        rate: BitRate::from_bits_per_second(957e6),
        arithmetic: String::new(),
    };
    TransferDiagnosis {
        verdicts: vec![
            verdict(Cause::Loss, Confidence::Medium, "0.02 % of the segments were lost without a queue before."),
            verdict(Cause::DelayVariation, Confidence::Low, "The delay varies."),
        ],
        states: Vec::new(),
        goodput: BitRate::from_bits_per_second(213e6),
        bounds: vec![next.clone()],
        next: Some(next),
        contradictions: Vec::new(),
        notes: Vec::new(),
    }
}

fn document(linerate: bool, runs: Vec<ThroughputTest>) -> ThroughputDocument {
    ThroughputDocument {
        schema: 1,
        linerate_version: "0.1.0".to_owned(),
        host: "fra.example.net".to_owned(),
        port: 5201,
        peer_is_linerate: linerate,
        peer_version: linerate.then(|| "0.1.0".to_owned()),
        idle_rtt: Some(times(11.0, 11.4, 12.9, 14.0)),
        runs,
        quic: None,
    }
}

/// Samples of one quantity of one stream.
struct StreamSamples<'a> {
    panel: ChartPanel,
    name: &'a str,
    unit: FigureUnit,
    stream: Option<u32>,
}

impl StreamSamples<'_> {
    fn series(&self, times: &[u64], value: impl FnMut(u64) -> Option<f64>) -> SampleSeries {
        SampleSeries {
            panel: self.panel,
            name: self.name.to_owned(),
            direction: Some(Direction::Up),
            stream: self.stream,
            unit: self.unit,
            times_ns: times.to_vec(),
            values: times.iter().copied().map(value).collect(),
        }
    }
}

/// Samples of `streams` streams every `cadence_ns`: a sawtooth as of CUBIC, with noise.
fn series(streams: u32, seconds: u64, cadence_ns: u64) -> Vec<SampleSeries> {
    let count = seconds * SECOND / cadence_ns;
    let mut all = Vec::new();
    for stream in 1..=streams {
        // Each stream is sampled a little after the one before it.
        let times: Vec<u64> = (1..=count).map(|n| n * cadence_ns + u64::from(stream) * 1_137).collect();
        let name = format!("stream {stream}");
        let mut noise = Noise::new(u64::from(stream));
        let tooth = |time: u64| ((real(time) / 1e9 + f64::from(stream) * 1.7) % 9.0) / 9.0;
        let of = |panel, unit| StreamSamples { panel, name: &name, unit, stream: Some(stream) };
        all.push(
            of(ChartPanel::Throughput, FigureUnit::BitsPerSecond)
                .series(&times, |time| Some((60e6 + 65e6 * tooth(time)) * noise.between(0.93, 1.07))),
        );
        all.push(
            of(ChartPanel::Rtt, FigureUnit::Nanoseconds)
                .series(&times, |time| Some(((18.0 + 22.0 * tooth(time)) * 1e6 * noise.between(0.97, 1.08)).round())),
        );
        all.push(
            of(ChartPanel::CongestionWindow, FigureUnit::Bytes)
                .series(&times, |time| Some(((90.0 + 200.0 * tooth(time)).round()) * 1448.0)),
        );
        all.push(
            of(ChartPanel::Retransmissions, FigureUnit::Segments)
                .series(&times, |time| Some(if tooth(time) < 0.004 { (noise.next() * 30.0).round() } else { 0.0 })),
        );
        all.push(of(ChartPanel::Queue, FigureUnit::Bytes).series(&times, |time| {
            (time % (97 * cadence_ns) > cadence_ns).then(|| (noise.between(0.0, 1.0) * 65_536.0).round())
        }));
        let mut limit = |name: &str, from: f64, to: f64| {
            let reading =
                StreamSamples { panel: ChartPanel::Limits, name, unit: FigureUnit::Share, stream: Some(stream) };
            let mut noise = Noise::new(u64::from(stream) + 100);
            all.push(reading.series(&times, |time| Some((from + (to - from) * tooth(time)) * noise.between(0.9, 1.0))));
        };
        limit("network", 0.55, 0.85);
        limit("receive window", 0.25, 0.05);
        limit("send buffer", 0.1, 0.05);
    }
    all
}

/// Ten seconds up and down to linerate, sampled every 100 ms.
pub(crate) fn throughput() -> RunDocument {
    let runs = vec![
        ThroughputTest { diagnosis: Some(held_back_by_loss()), ..one(Direction::Up, 1, 412e6, true) },
        one(Direction::Up, 4, 941e6, true),
        one(Direction::Down, 4, 936e6, true),
    ];
    let result = RunResult::Throughput(Box::new(document(true, runs)));
    let verdict = "941 Mbit/s up and 936 Mbit/s down over four streams; the network is the limit, one stream alone is \
                   held back by loss.";
    let mut run = run(RunKind::Throughput, 30, &["test", "fra.example.net", "-t", "10s"], verdict, result);
    run.figures = vec![
        figure("goodput_up", "Goodput up", FigureUnit::BitsPerSecond, Some(941e6), ImprovementDirection::Higher),
        figure("goodput_down", "Goodput down", FigureUnit::BitsPerSecond, Some(936e6), ImprovementDirection::Higher),
        figure("rtt_idle_median", "Idle RTT", FigureUnit::Nanoseconds, Some(11.4e6), ImprovementDirection::Lower),
        figure("rtt_loaded_median", "RTT loaded", FigureUnit::Nanoseconds, Some(18.9e6), ImprovementDirection::Lower),
        figure(
            "retransmitted",
            "Retransmitted segments",
            FigureUnit::Segments,
            Some(41.0),
            ImprovementDirection::Lower,
        ),
    ];
    run.series = series(4, 10, 100 * MILLISECOND);
    run.phases = vec![span("up", 0, 10)];
    run
}

/// Down from a stock server, which reports little.
pub(crate) fn throughput_from_stock_server() -> RunDocument {
    let result = RunResult::Throughput(Box::new(document(false, vec![one(Direction::Down, 2, 93.6e6, false)])));
    let verdict = "93.6 Mbit/s down; the limit is unknown, as the server is a stock iperf3.";
    let mut run = run(RunKind::Throughput, 10, &["test", "fra.example.net", "--down"], verdict, result);
    let reason = "a stock iperf3 server does not report its kernel's figures";
    run.figures = vec![
        figure("goodput_down", "Goodput down", FigureUnit::BitsPerSecond, Some(93.6e6), ImprovementDirection::Higher),
        unknown_figure("rtt_loaded_median", "RTT loaded", FigureUnit::Nanoseconds, reason),
    ];
    run.environment.far = None;
    run
}

/// Ten minutes of eight streams, sampled every 10 ms.
pub(crate) fn big() -> RunDocument {
    let result = RunResult::Throughput(Box::new(document(true, vec![one(Direction::Up, 8, 980e6, true)])));
    let verdict = "980 Mbit/s up over eight streams for ten minutes; the network is the limit.";
    let mut run = run(RunKind::Throughput, 600, &["test", "fra.example.net", "-t", "600s", "-P", "8"], verdict, result);
    run.figures = throughput().figures;
    run.series = series(8, 600, 10 * MILLISECOND);
    run.phases = vec![span("up", 0, 600)];
    run
}
