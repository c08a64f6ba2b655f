//! State of the measurement: its document, evidence and observer.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_documents::run::PhaseSpan;
use linerate_model::load::{LoadDocument, PhaseKind, SCHEMA};
use linerate_model::path::PeerKind;
use linerate_model::report::TestTermination;
use linerate_sys::clock;
use linerate_sys::signals::InterruptSignals;
use linerate_units::serde::nanoseconds;
use linerate_units::{ByteCount, MonotonicTime};

use super::evidence::{LoadEvidence, PhaseEvidence};
use super::{LoadEvent, LoadTestOptions, LoadTestOutcome, readings, series, verdict};
use crate::phases::{self, AbortReason};
use crate::probe::messages::FarFacts;

/// The document while it is filled.
pub(super) struct LoadRecord<'a> {
    pub(super) options: &'a LoadTestOptions,
    pub(super) stop: Option<InterruptSignals>,
    observer: &'a mut dyn FnMut(&LoadEvent),
    pub(super) started: MonotonicTime,
    pub(super) document: LoadDocument,
    pub(super) evidence: LoadEvidence,
    /// The far end, where it has probe sessions.
    pub(super) peer: Option<SocketAddr>,
    pub(super) far: Option<FarFacts>,
    pub(super) sent: ByteCount,
    pub(super) received: ByteCount,
}

impl<'a> LoadRecord<'a> {
    pub(super) fn new(
        options: &'a LoadTestOptions,
        stop: Option<InterruptSignals>,
        observer: &'a mut dyn FnMut(&LoadEvent),
    ) -> Self {
        let document = LoadDocument {
            schema: SCHEMA,
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: options.target.host.clone(),
            port: options.target.port.get(),
            peer: PeerKind::Bare,
            started_at_unix_ns: nanoseconds(clock::realtime_now().since_unix_epoch()),
            duration_ns: 0,
            termination: TestTermination::Complete,
            congestion_control: None,
            connections: options.connections.get(),
            phases: Vec::new(),
            grade: None,
            ungraded_because: None,
            responsiveness: None,
            http: None,
            queues: Vec::new(),
            dual_queues: Vec::new(),
            profiles: Vec::new(),
            contamination: None,
            unknown: Vec::new(),
            notes: Vec::new(),
        };
        Self {
            options,
            stop,
            observer,
            started: clock::monotonic_now(),
            document,
            evidence: LoadEvidence::default(),
            peer: None,
            far: None,
            sent: ByteCount::ZERO,
            received: ByteCount::ZERO,
        }
    }

    pub(super) fn tell(&mut self, event: &LoadEvent) {
        (self.observer)(event);
    }

    /// Announces the expected duration.
    pub(super) fn announce(&mut self) {
        let (usual, most) = self.options.expected_time();
        self.tell(&LoadEvent::Announcement { usual, most, capacity: self.options.capacity });
    }

    /// A phase begins.
    pub(super) fn phase(&mut self, kind: PhaseKind) {
        let _ = phases::is_phase_ended(self.stop);
        self.evidence.phases.push(PhaseEvidence::new(kind, clock::monotonic_now()));
        self.tell(&LoadEvent::Phase(kind));
    }

    /// The running phase; exists from the first [`LoadRecord::phase`] on.
    pub(super) fn current(&mut self) -> Option<&mut PhaseEvidence> {
        self.evidence.phases.last_mut()
    }

    /// True once after the user has asked to end the present phase.
    pub(super) fn is_phase_ended(&self) -> bool {
        phases::is_phase_ended(self.stop)
    }

    /// Ends the counting of the present phase where the user has asked for its end; returns true in that case.
    pub(super) fn end_counting_on_request(&mut self) -> bool {
        let is_ended = self.is_phase_ended();
        let window = self.current().and_then(|phase| phase.window.as_mut());
        if let Some(window) = window.filter(|_| is_ended) {
            window.to = window.to.min(clock::monotonic_now());
        }
        is_ended
    }

    /// Adds and reports a note, once.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if phases::add_note(&mut self.document.notes, &text) {
            self.tell(&LoadEvent::Note(text));
        }
    }

    /// Adds the reason why a key is `null`; the first reason is kept.
    pub(super) fn unknown(&mut self, key: &str, reason: impl Into<String>) {
        phases::add_unknown(&mut self.document.unknown, key, reason);
    }

    pub(super) fn check(&self) -> Result<(), AbortReason> {
        phases::check(self.stop)
    }

    /// Sleeps for `time`, or until a signal.
    pub(super) fn wait(&self, time: Duration) -> Result<(), AbortReason> {
        phases::wait(self.stop, time)
    }

    /// Sleeps until `time`, or until a signal.
    pub(super) fn wait_until(&self, time: MonotonicTime) -> Result<(), AbortReason> {
        phases::wait_until(self.stop, time)
    }

    pub(super) fn finish(mut self, result: Result<(), AbortReason>) -> LoadTestOutcome {
        let end = clock::monotonic_now();
        self.document.duration_ns = nanoseconds(end.since(self.started));
        let (termination, error) = phases::termination_of(result, self.stop);
        self.document.termination = termination;
        verdict::complete(&mut self.document, &self.evidence, self.started, end);
        LoadTestOutcome {
            series: series::of(&self.evidence, self.started),
            phases: self.document.phases.iter().map(span).collect(),
            readings: readings::of(&self.evidence, self.peer),
            document: self.document,
            far: self.far,
            sent: self.sent,
            received: self.received,
            error,
        }
    }
}

fn span(phase: &linerate_model::load::LoadPhase) -> PhaseSpan {
    PhaseSpan { name: phase.kind.name().to_owned(), start_ns: phase.start_ns, end_ns: phase.end_ns }
}
