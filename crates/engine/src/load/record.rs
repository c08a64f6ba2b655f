//! What is known so far, and who watches.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_model::schema::load::{LoadDocument, PhaseKind, SCHEMA};
use linerate_model::schema::nanoseconds;
use linerate_model::schema::path::Peer;
use linerate_model::schema::run::PhaseSpan;
use linerate_sys::clock;
use linerate_sys::signals::Interrupts;
use linerate_units::{ByteCount, MonotonicTime};

use super::evidence::{Evidence, PhaseEvidence};
use super::{LoadEvent, LoadTestOptions, LoadTestOutcome, readings, series, verdict};
use crate::course::{self, Halt};
use crate::probe::messages::FarFacts;

/// The document while it is filled.
pub(super) struct Record<'a> {
    pub(super) options: &'a LoadTestOptions,
    pub(super) stop: Option<Interrupts>,
    observer: &'a mut dyn FnMut(&LoadEvent),
    pub(super) started: MonotonicTime,
    pub(super) document: LoadDocument,
    pub(super) evidence: Evidence,
    /// The far end, where it has probe sessions.
    pub(super) peer: Option<SocketAddr>,
    pub(super) far: Option<FarFacts>,
    pub(super) sent: ByteCount,
    pub(super) received: ByteCount,
}

impl<'a> Record<'a> {
    pub(super) fn new(
        options: &'a LoadTestOptions,
        stop: Option<Interrupts>,
        observer: &'a mut dyn FnMut(&LoadEvent),
    ) -> Self {
        let document = LoadDocument {
            schema: SCHEMA,
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: options.target.host.clone(),
            port: options.target.port.get(),
            peer: Peer::Bare,
            started_at_unix_ns: nanoseconds(clock::realtime_now().since_unix_epoch()),
            duration_ns: 0,
            termination: course::complete(),
            congestion_control: None,
            connections: options.connections.get(),
            phases: Vec::new(),
            grade: None,
            ungraded_because: None,
            responsiveness: None,
            queues: Vec::new(),
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
            evidence: Evidence::default(),
            peer: None,
            far: None,
            sent: ByteCount::ZERO,
            received: ByteCount::ZERO,
        }
    }

    pub(super) fn tell(&mut self, event: &LoadEvent) {
        (self.observer)(event);
    }

    /// Says how long it is going to take.
    pub(super) fn announce(&mut self) {
        let (usual, most) = self.options.expected_time();
        self.tell(&LoadEvent::Announcement { usual, most });
    }

    /// A phase begins.
    pub(super) fn phase(&mut self, kind: PhaseKind) {
        self.evidence.phases.push(PhaseEvidence::new(kind, clock::monotonic_now()));
        self.tell(&LoadEvent::Phase(kind));
    }

    /// The phase that runs. There is one from the first [`Record::phase`] on.
    pub(super) fn current(&mut self) -> Option<&mut PhaseEvidence> {
        self.evidence.phases.last_mut()
    }

    /// What a reader should know, said once.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if course::add_note(&mut self.document.notes, &text) {
            self.tell(&LoadEvent::Note(text));
        }
    }

    /// Why a key stays `null`; the first reason holds.
    pub(super) fn unknown(&mut self, key: &str, reason: impl Into<String>) {
        course::add_unknown(&mut self.document.unknown, key, reason);
    }

    pub(super) fn check(&self) -> Result<(), Halt> {
        course::check(self.stop)
    }

    /// Lets time pass.
    pub(super) fn wait(&self, time: Duration) -> Result<(), Halt> {
        course::wait(self.stop, time)
    }

    /// Lets time pass until then.
    pub(super) fn wait_until(&self, time: MonotonicTime) -> Result<(), Halt> {
        course::wait_until(self.stop, time)
    }

    pub(super) fn finish(mut self, result: Result<(), Halt>) -> LoadTestOutcome {
        let end = clock::monotonic_now();
        self.document.duration_ns = nanoseconds(end.since(self.started));
        let (termination, error) = course::ending(result, self.stop);
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

fn span(phase: &linerate_model::schema::load::Phase) -> PhaseSpan {
    PhaseSpan { name: phase.kind.name().to_owned(), start_ns: phase.start_ns, end_ns: phase.end_ns }
}
