//! Conclusions from a responsiveness test over HTTP/2: samples in, the document of a measurement of latency under load out.
//!
//! The test itself needs an asynchronous HTTP client, which this crate has not.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_analysis::latency_under_load::{ForeignProbe, LatencyClass, Responsiveness, trimmed_mean};
use linerate_model::diagnosis::Confidence;
use linerate_model::direction::Direction;
use linerate_model::load::{HttpLoad, HttpLoadPhase, PhaseKind, PhaseResponsiveness, ResponsivenessMethod};
use linerate_model::path::PeerKind;
use linerate_sys::signals::InterruptSignals;
use linerate_units::serde::nanoseconds;
use linerate_units::{ByteCount, MonotonicTime};
use linerate_wire::probe::LoadSample;

use super::evidence::{
    ALL_CONNECTIONS, ClassSamples, ConnectionEvidence, CountingWindow, ForeignConnection, ProbeReading,
};
use super::record::LoadRecord;
use super::{LoadEvent, LoadTestOptions, LoadTestOutcome};
use crate::phases::AbortReason;
use crate::probe::ProbeError;

/// Load in one direction, over all its connections.
#[derive(Clone, Debug)]
pub struct HttpLoadSamples {
    /// Direction.
    pub direction: Direction,
    /// Start: the zero of the times below.
    pub started: MonotonicTime,
    /// Payload since the start, over time.
    pub payload: Vec<(Duration, ByteCount)>,
    /// Sums of `tcp_info` over the connections; empty where the far end sends.
    pub samples: Vec<LoadSample>,
}

/// Part of a probe on a new connection.
type ProbePart = fn(&ForeignProbe) -> Option<Duration>;

/// A probe with the time of its end.
pub type TimedProbe<T> = (MonotonicTime, Option<T>);

/// Samples of one phase.
#[derive(Clone, Debug)]
pub struct HttpPhaseSamples {
    /// Window whose probes and payload count.
    pub counted: (MonotonicTime, MonotonicTime),
    /// Load per direction; empty for the idle phase.
    pub loads: Vec<HttpLoadSamples>,
    /// Connections per direction at the end.
    pub connections: u64,
    /// Intervals until the end.
    pub intervals: u64,
    /// Confidence in the goodput.
    pub goodput: Confidence,
    /// Confidence in the responsiveness.
    pub responsiveness: Confidence,
    /// Probes on new connections; `None` for one that failed.
    pub foreign: Vec<TimedProbe<ForeignProbe>>,
    /// Probes on connections that exist; `None` for one that failed.
    pub loaded: Vec<TimedProbe<Duration>>,
}

/// Reason for an early end of a test.
#[derive(Debug)]
pub enum HttpTestEnd {
    /// Interrupted by a signal.
    Interrupted,
    /// Failed: the operation, the reason and the remedy.
    Failed(String),
}

/// Record of a test while it runs.
pub struct HttpLoadRecord<'a> {
    record: LoadRecord<'a>,
    http: Option<HttpLoad>,
}

impl<'a> HttpLoadRecord<'a> {
    /// Begins a test.
    pub fn new(
        options: &'a LoadTestOptions,
        stop: Option<InterruptSignals>,
        observer: &'a mut dyn FnMut(&LoadEvent),
    ) -> Self {
        let mut record = LoadRecord::new(options, stop, observer);
        record.document.peer = PeerKind::Http;
        record.document.connections = 0;
        Self { record, http: None }
    }

    /// Records the server, and announces the duration.
    pub fn server(&mut self, address: SocketAddr, tls_version: &str) {
        let (address, tls_version) = (address.to_string(), tls_version.to_owned());
        self.http = Some(HttpLoad { address, tls_version, phases: Vec::new() });
        self.record.announce();
    }

    /// Reports progress.
    pub fn report(&mut self, event: &LoadEvent) {
        self.record.tell(event);
    }

    /// Adds a note.
    pub fn note(&mut self, text: impl Into<String>) {
        self.record.note(text);
    }

    /// Records the congestion control of this host's connections.
    pub fn congestion_control(&mut self, name: Option<String>) {
        self.record.document.congestion_control = name;
    }

    /// Begins a phase.
    pub fn begin(&mut self, kind: PhaseKind) {
        self.record.phase(kind);
    }

    /// True once after the user has asked to end the present phase.
    pub fn is_phase_ended(&self) -> bool {
        self.record.is_phase_ended()
    }

    /// Ends the present phase.
    pub fn end(&mut self, samples: HttpPhaseSamples) {
        let window = CountingWindow { from: samples.counted.0, to: samples.counted.1 };
        let Some(phase) = self.record.current() else { return };
        let kind = phase.kind;
        phase.window = Some(window);
        if kind != PhaseKind::Idle {
            phase.goodput_stable = Some(samples.goodput == Confidence::High);
            phase.latency_stable = Some(samples.responsiveness == Confidence::High);
            let summary = summary(kind, &samples, window);
            self.record.document.connections = self.record.document.connections.max(samples.connections);
            if let Some(http) = &mut self.http {
                http.phases.push(summary);
            }
        }
        self.keep(samples);
    }

    fn keep(&mut self, samples: HttpPhaseSamples) {
        for load in samples.loads {
            let last = load.payload.last().map_or(ByteCount::ZERO, |(_, bytes)| *bytes);
            match load.direction {
                Direction::Up => self.record.sent += last,
                Direction::Down => self.record.received += last,
            }
            let connection = ConnectionEvidence {
                number: ALL_CONNECTIONS,
                direction: load.direction,
                started: load.started,
                payload: load.payload,
                samples: load.samples,
            };
            if let Some(phase) = self.record.current() {
                phase.connections.push(connection);
            }
        }
        let parts: [(LatencyClass, ProbePart); 3] = [
            (LatencyClass::TcpHandshake, |probe| Some(probe.tcp)),
            (LatencyClass::TlsHandshake, |probe| probe.tls),
            (LatencyClass::HttpRequest, |probe| Some(probe.request)),
        ];
        for (class, part) in parts {
            let answered = samples.foreign.iter().filter_map(|(sent, probe)| Some((*sent, part(probe.as_ref()?)?)));
            self.add(class, answered.collect());
        }
        self.add(LatencyClass::TcpApplication, answered(&samples.loaded));
        let foreign = samples.foreign.into_iter().map(|(sent, times)| ForeignConnection { sent, times });
        self.record.evidence.foreign.extend(foreign);
    }

    fn add(&mut self, class: LatencyClass, times: Vec<(MonotonicTime, Duration)>) {
        let readings = times.into_iter().map(|(sent, time)| ProbeReading::answered(sent, time));
        let classes = &mut self.record.evidence.classes;
        match classes.iter_mut().find(|samples| samples.class == class) {
            Some(samples) => samples.readings.extend(readings),
            None => classes.push(ClassSamples { class, readings: readings.collect(), counts_losses: false }),
        }
    }

    /// Gives the reasons of figures that this test has not.
    fn explain(&mut self) {
        let measured: Vec<PhaseKind> = self.record.evidence.phases.iter().map(|phase| phase.kind).collect();
        for kind in &measured {
            let key = |name: &str| format!("phases.{}.{name}", kind.name());
            for name in ["lost", "lost_up", "lost_down"] {
                self.record.unknown(&key(name), "TCP retransmits what is lost");
            }
            self.record.unknown(&key("retransmitted_segments"), "only the sender knows it, which is the server here");
        }
        for kind in [PhaseKind::Down, PhaseKind::Up, PhaseKind::Both] {
            if !measured.contains(&kind) {
                self.record.unknown(&format!("responsiveness.{}", kind.name()), "this phase was not requested");
            }
        }
    }

    /// Ends the test.
    #[must_use]
    pub fn finish(mut self, result: Result<(), HttpTestEnd>) -> LoadTestOutcome {
        let result = result.map_err(|end| match end {
            HttpTestEnd::Interrupted => AbortReason::Interrupted,
            HttpTestEnd::Failed(text) => AbortReason::Failed(ProbeError::Unreachable(text)),
        });
        self.explain();
        let mut outcome = self.record.finish(result);
        if let Some(http) = self.http {
            let least = http.phases.iter().map(|phase| phase.responsiveness_confidence).min();
            outcome.document.responsiveness = outcome.document.responsiveness.map(|found| PhaseResponsiveness {
                method: ResponsivenessMethod::Draft09Http2,
                confidence: least.unwrap_or(Confidence::Low),
                ..found
            });
            outcome.document.http = Some(http);
        }
        outcome
    }
}

/// Probes with an answer.
fn answered<T: Copy>(probes: &[TimedProbe<T>]) -> Vec<(MonotonicTime, T)> {
    probes.iter().filter_map(|(sent, probe)| Some((*sent, (*probe)?))).collect()
}

fn summary(kind: PhaseKind, samples: &HttpPhaseSamples, window: CountingWindow) -> HttpLoadPhase {
    let foreign: Vec<ForeignProbe> = within(&samples.foreign, window);
    let loaded: Vec<Duration> = within(&samples.loaded, window);
    let parts = |part: ProbePart| trimmed_mean(&foreign.iter().filter_map(part).collect::<Vec<_>>()).map(nanoseconds);
    let found = Responsiveness::of(&foreign, &loaded);
    let failed = samples.foreign.iter().filter(|(_, probe)| probe.is_none()).count()
        + samples.loaded.iter().filter(|(_, probe)| probe.is_none()).count();
    HttpLoadPhase {
        kind,
        connections: samples.connections,
        intervals: samples.intervals,
        goodput_confidence: samples.goodput,
        responsiveness_confidence: samples.responsiveness,
        foreign_round_trips_per_minute: found.foreign,
        loaded_round_trips_per_minute: found.loaded,
        tcp_handshake_ns: parts(|probe| Some(probe.tcp)),
        tls_handshake_ns: parts(|probe| probe.tls),
        foreign_request_ns: parts(|probe| Some(probe.request)),
        loaded_request_ns: trimmed_mean(&loaded).map(nanoseconds),
        foreign_probes: foreign.len() as u64,
        loaded_probes: loaded.len() as u64,
        failed_probes: failed as u64,
    }
}

fn within<T: Copy>(probes: &[TimedProbe<T>], window: CountingWindow) -> Vec<T> {
    answered(probes).into_iter().filter(|(sent, _)| window.contains(*sent)).map(|(_, probe)| probe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::ProbeTarget;

    const fn at(milliseconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(milliseconds * 1_000_000)
    }

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn phase(from: u64, time: u64, loads: Vec<HttpLoadSamples>) -> HttpPhaseSamples {
        let foreign = ForeignProbe { tcp: ms(time), tls: Some(ms(time)), request: ms(time) };
        HttpPhaseSamples {
            counted: (at(from), at(from + 1000)),
            loads,
            connections: 7,
            intervals: 9,
            goodput: Confidence::High,
            responsiveness: Confidence::Medium,
            foreign: (0..20).map(|number| (at(from + number * 20), (number > 0).then_some(foreign))).collect(),
            loaded: (0..20).map(|number| (at(from + number * 20), Some(ms(time * 2)))).collect(),
        }
    }

    #[test]
    fn a_test_becomes_a_document() {
        let options =
            LoadTestOptions::new(ProbeTarget::new("https://example.net/config", linerate_units::Port::IPERF3));
        let mut ignore = |_: &LoadEvent| {};
        let mut record = HttpLoadRecord::new(&options, None, &mut ignore);
        record.server("192.0.2.1:443".parse().expect("an address"), "1.3");
        record.begin(PhaseKind::Idle);
        record.end(phase(0, 20, Vec::new()));
        record.begin(PhaseKind::Down);
        let payload = [(0, 0), (2000, 2_000_000)].map(|(time, bytes)| (ms(time), ByteCount::new(bytes)));
        record.end(phase(
            2000,
            60,
            vec![HttpLoadSamples {
                direction: Direction::Down,
                started: at(1500),
                payload: payload.to_vec(),
                samples: Vec::new(),
            }],
        ));
        let outcome = record.finish(Err(HttpTestEnd::Failed("the server is gone".to_owned())));
        let document = outcome.document;
        // Foreign 60000 / 60 = 1000, loaded 60000 / 120 = 500.
        let found = document.responsiveness.expect("probes");
        assert_eq!((found.down, found.up, found.both), (Some(750.0), None, None));
        assert_eq!((found.method, found.confidence), (ResponsivenessMethod::Draft09Http2, Confidence::Medium));
        let http = document.http.expect("a server");
        let down = &http.phases[0];
        assert_eq!((down.kind, down.connections, down.failed_probes), (PhaseKind::Down, 7, 1));
        assert_eq!((down.tcp_handshake_ns, down.loaded_request_ns), (Some(60_000_000), Some(120_000_000)));
        assert_eq!(document.phases[1].goodput_down_bits_per_second, Some(8e6));
        let classes: Vec<_> = document.phases[1].classes.iter().map(|class| class.class).collect();
        let expected = [
            LatencyClass::TcpHandshake,
            LatencyClass::TlsHandshake,
            LatencyClass::HttpRequest,
            LatencyClass::TcpApplication,
        ];
        assert_eq!(classes, expected);
        assert_eq!(document.phases[1].classes[0].uplift_median_ns, Some(40_000_000));
        assert!(document.grade.is_none() && document.ungraded_because.is_some());
        assert!(outcome.error.is_some_and(|error| error.to_string().contains("is gone")));
        assert_eq!(outcome.received, ByteCount::new(2_000_000));
    }
}
