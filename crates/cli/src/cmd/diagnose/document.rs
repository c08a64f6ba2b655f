//! What is printed and kept.

use std::time::Duration;

use linerate_engine::diagnose::DiagnoseOutcome;
use linerate_model::diagnosis::Diagnosis;
use linerate_model::parameters::Direction as FlowDirection;
use linerate_model::report::Termination;
use linerate_model::schema::diagnose::{Bound, DiagnoseDocument, SCHEMA, StateShare, Verdict};
use linerate_model::schema::nanoseconds;
use linerate_model::schema::path::Unknown;
use linerate_model::schema::run::{Better, Figure, Panel, RunDocument, RunEnvironment, Series, Unit};
use linerate_model::schema::throughput::Direction;
use linerate_rules::diagnosis;
use linerate_sys::clock;
use linerate_units::{ByteCount, MonotonicTime, Port, WallTime};

use crate::cmd::measurement::own_arguments;
use crate::surroundings::{OwnTraffic, Surroundings};

/// Which transfer, as the user wrote it.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) host: &'a str,
    pub(crate) port: Port,
    pub(crate) transfer: &'a [String],
}

/// When it began.
pub(crate) struct Begun {
    pub(crate) at: WallTime,
    since: MonotonicTime,
}

impl Begun {
    pub(crate) fn now() -> Self {
        Self { at: clock::realtime_now(), since: clock::monotonic_now() }
    }

    /// How long it has taken.
    pub(crate) fn lasted(&self) -> Duration {
        clock::monotonic_now().since(self.since)
    }

    pub(crate) fn document(
        &self,
        asked: Asked<'_>,
        outcome: &DiagnoseOutcome,
        diagnosis: &Diagnosis,
    ) -> DiagnoseDocument {
        let termination = outcome.report.as_ref().map_or(Termination::Complete, |report| report.termination.clone());
        let observation = outcome.observation.as_ref();
        DiagnoseDocument {
            schema: SCHEMA,
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: asked.host.to_owned(),
            port: asked.port.get(),
            started_at_unix_ns: nanoseconds(self.at.since_unix_epoch()),
            duration_ns: nanoseconds(self.lasted()),
            termination: (&termination).into(),
            direction: match outcome.parameters.direction {
                FlowDirection::Reverse => Direction::Down,
                FlowDirection::Forward | FlowDirection::Bidirectional => Direction::Up,
            },
            transfer: asked.transfer.to_vec(),
            verdicts: diagnosis.verdicts.iter().map(Verdict::from).collect(),
            states: StateShare::all(diagnosis),
            goodput_bits_per_second: Some(diagnosis.goodput.bits_per_second()),
            bounds: diagnosis.bounds.iter().map(Bound::from).collect(),
            next: diagnosis.next.as_ref().map(Bound::from),
            figures: observation
                .map(|observation| {
                    diagnosis::figures(observation).into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
                })
                .unwrap_or_default(),
            path: outcome.path.as_ref().map(|path| path.document.clone()),
            unknown: unknown(outcome),
            notes: Vec::new(),
        }
    }
}

fn unknown(outcome: &DiagnoseOutcome) -> Vec<Unknown> {
    let mut unknown = Vec::new();
    if !outcome.far_tells {
        let reason = "the far end tells nothing of its sockets and its host: it needs a linerate (`linerate serve`)";
        unknown.push(Unknown { key: "far".to_owned(), reason: reason.to_owned() });
    }
    if outcome.observation.as_ref().is_none_or(|observation| observation.path.is_none()) {
        unknown.push(Unknown { key: "path".to_owned(), reason: "switched off (--no-path)".to_owned() });
    }
    unknown
}

/// The run as it is kept.
pub(super) fn run(document: &DiagnoseDocument, outcome: &DiagnoseOutcome, surroundings: Surroundings) -> RunDocument {
    let observation = outcome.observation.as_ref();
    let moved = observation.map_or(ByteCount::ZERO, |observation| observation.received);
    let (path_received, path_sent) =
        outcome.path.as_ref().map_or((ByteCount::ZERO, ByteCount::ZERO), |path| (path.received, path.sent));
    let traffic = match document.direction {
        Direction::Up => OwnTraffic { received: path_received, sent: path_sent + moved },
        Direction::Down => OwnTraffic { received: path_received + moved, sent: path_sent },
    };
    let far = outcome.path.as_ref().and_then(|path| path.far.as_ref()).map(crate::surroundings::far);
    RunDocument {
        arguments: own_arguments(),
        verdict: document.verdicts.first().map_or_else(String::new, |verdict| verdict.text.clone()),
        figures: figures(document),
        environment: RunEnvironment { near: Some(surroundings.finish(traffic)), far, lab: None },
        series: series(outcome),
        phases: Vec::new(),
        ..RunDocument::from(document.clone())
    }
}

pub(super) fn figures(document: &DiagnoseDocument) -> Vec<Figure> {
    let of = |name: &str| document.figures.get(name).copied().flatten();
    let nanoseconds = |name: &str| of(name).map(|seconds| seconds * 1e9);
    let reason = |value: Option<f64>| value.is_none().then(|| "it was not seen (see the notes)".to_owned());
    let figure = |name: &str, title: &str, unit: Unit, better: Better, value: Option<f64>| Figure {
        value,
        note: reason(value),
        ..Figure::new(name, title, unit, better)
    };
    vec![
        figure("goodput", "Goodput", Unit::BitsPerSecond, Better::Higher, document.goodput_bits_per_second),
        figure(
            "goodput_steady",
            "Goodput of the second half",
            Unit::BitsPerSecond,
            Better::Higher,
            of("steady_bits_per_second"),
        ),
        figure(
            "capacity_payload",
            "Payload that the path carries",
            Unit::BitsPerSecond,
            Better::Higher,
            of("capacity_payload_bits_per_second"),
        ),
        figure(
            "rtt_least",
            "Least round trip",
            Unit::Nanoseconds,
            Better::Lower,
            nanoseconds("round_trip_least_seconds"),
        ),
        figure(
            "rtt_loaded",
            "Round trip under load",
            Unit::Nanoseconds,
            Better::Lower,
            nanoseconds("round_trip_loaded_seconds"),
        ),
        figure("retransmitted", "Sent again", Unit::Share, Better::Lower, of("retransmitted_share")),
    ]
}

/// Rate and round trip of the transfer.
fn series(outcome: &DiagnoseOutcome) -> Vec<Series> {
    let counted = outcome.intervals.iter().filter(|interval| !interval.omitted);
    let rate = |interval: &linerate_model::sample::IntervalReport| {
        let moved: ByteCount = interval.streams.iter().map(|stream| stream.bytes).sum();
        (nanoseconds(interval.end), Some(moved.rate_over(interval.length()).bits_per_second()))
    };
    let (times, values): (Vec<u64>, Vec<Option<f64>>) = counted.map(rate).unzip();
    if times.len() < 2 {
        return Vec::new();
    }
    vec![Series {
        panel: Panel::Throughput,
        name: "transfer".to_owned(),
        unit: Unit::BitsPerSecond,
        direction: None,
        stream: None,
        times_ns: times,
        values,
    }]
}
