//! JSON document and history record.

use linerate_model::direction::Direction;
use std::time::Duration;

use linerate_documents::diagnose::{DiagnoseDocument, HostKernelEvents, SCHEMA};
use linerate_documents::run::{
    ChartPanel, FigureUnit, ImprovementDirection, RunDocument, RunEnvironment, RunFigure, SampleSeries,
};
use linerate_engine::diagnose::DiagnoseOutcome;
use linerate_engine::path::PathOptions;
use linerate_engine::probe::ProbeTarget;
use linerate_engine::surroundings::{LocalEnvironment, OwnTraffic};
use linerate_model::diagnosis::TransferDiagnosis;
use linerate_model::parameters::TestDirection;
use linerate_model::path::UnknownValue;
use linerate_model::report::TestTermination;
use linerate_rules::diagnosis;
use linerate_sys::clock;
use linerate_units::serde::nanoseconds;
use linerate_units::{ByteCount, MonotonicTime, PacketCount, Port, WallTime};

/// The probes of the path: fewer than `linerate path` sends, as the transfer tells the rest.
const PROBES: u64 = 600;
const PROBE_INTERVAL: Duration = Duration::from_millis(5);

/// Options of the path measurement that a diagnosis needs.
pub fn path_options(target: ProbeTarget, capacity: bool) -> PathOptions {
    PathOptions {
        count: PacketCount::new(PROBES),
        interval: PROBE_INTERVAL,
        hops: false,
        capacity,
        ..PathOptions::new(target)
    }
}

/// Transfer as the user requested it.
#[derive(Clone, Copy)]
pub struct TransferRequest<'a> {
    /// Far end.
    pub host: &'a str,
    /// Its port.
    pub port: Port,
    /// Options of the transfer, as iperf3 has them.
    pub transfer: &'a [String],
}

/// Start time of the run.
pub struct RunStart {
    /// Time of day.
    pub at: WallTime,
    since: MonotonicTime,
}

impl RunStart {
    /// Now.
    pub fn now() -> Self {
        Self { at: clock::realtime_now(), since: clock::monotonic_now() }
    }

    /// Time since the start.
    pub fn lasted(&self) -> Duration {
        clock::monotonic_now().since(self.since)
    }

    /// Composes the document of a diagnosis that has ended.
    pub fn document(
        &self,
        asked: TransferRequest<'_>,
        outcome: &DiagnoseOutcome,
        diagnosis: &TransferDiagnosis,
    ) -> DiagnoseDocument {
        let termination =
            outcome.report.as_ref().map_or(TestTermination::Complete, |report| report.termination.clone());
        let observation = outcome.observation.as_ref();
        DiagnoseDocument {
            schema: SCHEMA,
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: asked.host.to_owned(),
            port: asked.port.get(),
            started_at_unix_ns: nanoseconds(self.at.since_unix_epoch()),
            duration_ns: nanoseconds(self.lasted()),
            termination,
            direction: match outcome.parameters.direction {
                TestDirection::Reverse => Direction::Down,
                TestDirection::Forward | TestDirection::Bidirectional => Direction::Up,
            },
            transfer: asked.transfer.to_vec(),
            verdicts: diagnosis.verdicts.clone(),
            states: diagnosis.states.clone(),
            goodput_bits_per_second: Some(diagnosis.goodput.bits_per_second()),
            bounds: diagnosis.bounds.clone(),
            next: diagnosis.next.clone(),
            contradictions: diagnosis.contradictions.clone(),
            figures: observation
                .map(|observation| {
                    diagnosis::figures(observation).into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
                })
                .unwrap_or_default(),
            path: outcome.path.as_ref().map(|path| path.document.clone()),
            observation: None,
            kernel_events: observation.map(HostKernelEvents::of).unwrap_or_default(),
            unknown: unknown(outcome),
            notes: diagnosis.notes.clone(),
        }
    }
}

fn unknown(outcome: &DiagnoseOutcome) -> Vec<UnknownValue> {
    let mut unknown = Vec::new();
    if !outcome.far_tells {
        let reason = "the server reports nothing of its sockets and its host: it must be a linerate (`linerate serve`)";
        unknown.push(UnknownValue { key: "far".to_owned(), reason: reason.to_owned() });
    }
    if outcome.observation.as_ref().is_none_or(|observation| observation.path.is_none()) {
        unknown.push(UnknownValue { key: "path".to_owned(), reason: "switched off (--no-path)".to_owned() });
    }
    if outcome.parameters.kernel_events {
        unknown.extend(outcome.observation.iter().flat_map(HostKernelEvents::refusals));
    }
    unknown
}

/// History record of the run.
pub fn run(
    document: &DiagnoseDocument,
    outcome: &DiagnoseOutcome,
    surroundings: LocalEnvironment,
    arguments: Vec<String>,
) -> RunDocument {
    let observation = outcome.observation.as_ref();
    let moved = observation.map_or(ByteCount::ZERO, |observation| observation.received);
    let (path_received, path_sent) =
        outcome.path.as_ref().map_or((ByteCount::ZERO, ByteCount::ZERO), |path| (path.received, path.sent));
    let traffic = match document.direction {
        Direction::Up => OwnTraffic { received: path_received, sent: path_sent + moved },
        Direction::Down => OwnTraffic { received: path_received + moved, sent: path_sent },
    };
    let far = outcome.path.as_ref().and_then(|path| path.far.as_ref()).map(linerate_engine::surroundings::far);
    RunDocument {
        arguments,
        verdict: document.verdicts.first().map_or_else(String::new, |verdict| verdict.text.clone()),
        figures: figures(document),
        environment: RunEnvironment { near: Some(surroundings.finish(traffic)), far, lab: None },
        series: series(outcome),
        phases: Vec::new(),
        ..RunDocument::from(document.clone())
    }
}

/// Figures by which runs are compared.
pub fn figures(document: &DiagnoseDocument) -> Vec<RunFigure> {
    let of = |name: &str| document.figures.get(name).copied().flatten();
    let nanoseconds = |name: &str| of(name).map(|seconds| seconds * 1e9);
    let reason = |value: Option<f64>| value.is_none().then(|| "not observed (see the notes)".to_owned());
    let figure = |name: &str, title: &str, unit: FigureUnit, better: ImprovementDirection, value: Option<f64>| {
        RunFigure { value, note: reason(value), ..RunFigure::new(name, title, unit, better) }
    };
    vec![
        figure(
            "goodput",
            "Goodput",
            FigureUnit::BitsPerSecond,
            ImprovementDirection::Higher,
            document.goodput_bits_per_second,
        ),
        figure(
            "goodput_steady",
            "Goodput of the second half",
            FigureUnit::BitsPerSecond,
            ImprovementDirection::Higher,
            of("steady_bits_per_second"),
        ),
        figure(
            "capacity_payload",
            "Payload that the path carries",
            FigureUnit::BitsPerSecond,
            ImprovementDirection::Higher,
            of("capacity_payload_bits_per_second"),
        ),
        figure(
            "rtt_least",
            "Least round trip",
            FigureUnit::Nanoseconds,
            ImprovementDirection::Lower,
            nanoseconds("round_trip_least_seconds"),
        ),
        figure(
            "rtt_loaded",
            "Round trip under load",
            FigureUnit::Nanoseconds,
            ImprovementDirection::Lower,
            nanoseconds("round_trip_loaded_seconds"),
        ),
        figure(
            "retransmitted",
            "Retransmitted",
            FigureUnit::Share,
            ImprovementDirection::Lower,
            of("retransmitted_share"),
        ),
    ]
}

/// Rate of the transfer over time.
fn series(outcome: &DiagnoseOutcome) -> Vec<SampleSeries> {
    let counted = outcome.intervals.iter().filter(|interval| !interval.omitted);
    let rate = |interval: &linerate_model::sample::IntervalReport| {
        let moved: ByteCount = interval.streams.iter().map(|stream| stream.bytes).sum();
        (nanoseconds(interval.end), Some(moved.rate_over(interval.length()).bits_per_second()))
    };
    let (times, values): (Vec<u64>, Vec<Option<f64>>) = counted.map(rate).unzip();
    if times.len() < 2 {
        return Vec::new();
    }
    vec![SampleSeries {
        panel: ChartPanel::Throughput,
        name: "transfer".to_owned(),
        unit: FigureUnit::BitsPerSecond,
        direction: None,
        stream: None,
        times_ns: times,
        values,
    }]
}
