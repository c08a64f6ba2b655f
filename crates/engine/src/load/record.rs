//! What is known so far, and who watches.

use core::time::Duration;

use linerate_model::schema::load::{LoadDocument, PhaseKind, SCHEMA};
use linerate_model::schema::path::{Peer, Unknown};
use linerate_model::schema::run::PhaseSpan;
use linerate_model::schema::throughput::{Outcome, Termination};
use linerate_sys::clock;
use linerate_sys::poll::{self, Interest};
use linerate_sys::signals::{Interrupts, Signal};
use linerate_units::{ByteCount, MonotonicTime};

use super::evidence::{Evidence, PhaseEvidence};
use super::{LoadEvent, LoadTestOptions, LoadTestOutcome, series, verdict};
use crate::probe::ProbeError;
use crate::probe::messages::FarFacts;

/// Why the measurement goes no further.
#[derive(Debug)]
pub(super) enum Halt {
    /// The user has had enough.
    Interrupted,
    /// The rest would make no sense.
    Failed(ProbeError),
}

impl From<ProbeError> for Halt {
    fn from(error: ProbeError) -> Self {
        match error {
            ProbeError::Interrupted => Self::Interrupted,
            error => Self::Failed(error),
        }
    }
}

/// The document while it is filled.
pub(super) struct Record<'a> {
    pub(super) options: &'a LoadTestOptions,
    pub(super) stop: Option<Interrupts>,
    observer: &'a mut dyn FnMut(&LoadEvent),
    pub(super) started: MonotonicTime,
    pub(super) document: LoadDocument,
    pub(super) evidence: Evidence,
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
            started_at_unix_ns: nanos(clock::realtime_now().since_unix_epoch()),
            duration_ns: 0,
            termination: Termination { outcome: Outcome::Complete, signal: None, message: None },
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
        if !self.document.notes.contains(&text) {
            self.tell(&LoadEvent::Note(text.clone()));
            self.document.notes.push(text);
        }
    }

    /// Why a key stays `null`; the first reason holds.
    pub(super) fn unknown(&mut self, key: &str, reason: impl Into<String>) {
        if !self.document.unknown.iter().any(|unknown| unknown.key == key) {
            self.document.unknown.push(Unknown { key: key.to_owned(), reason: reason.into() });
        }
    }

    pub(super) fn check(&self) -> Result<(), Halt> {
        if self.stop.and_then(|stop| stop.pending()).is_some() { Err(Halt::Interrupted) } else { Ok(()) }
    }

    /// Lets time pass.
    pub(super) fn wait(&self, time: Duration) -> Result<(), Halt> {
        let Some(stop) = self.stop else {
            clock::sleep_until(clock::monotonic_now() + time);
            return Ok(());
        };
        let _ = poll::wait_for(&stop, Interest::READ, Some(time));
        self.check()
    }

    /// Lets time pass until then.
    pub(super) fn wait_until(&self, time: MonotonicTime) -> Result<(), Halt> {
        let left = time.since(clock::monotonic_now());
        if left.is_zero() { self.check() } else { self.wait(left) }
    }

    pub(super) fn finish(mut self, result: Result<(), Halt>) -> LoadTestOutcome {
        let end = clock::monotonic_now();
        self.document.duration_ns = nanos(end.since(self.started));
        let error = match result {
            Ok(()) => None,
            Err(Halt::Interrupted) => {
                let signal = self.stop.and_then(|stop| stop.pending()).map(Signal::describe);
                self.document.termination = Termination { outcome: Outcome::Interrupted, signal, message: None };
                None
            }
            Err(Halt::Failed(error)) => {
                let message = Some(error.to_string());
                self.document.termination = Termination { outcome: Outcome::Failed, signal: None, message };
                Some(error)
            }
        };
        verdict::complete(&mut self.document, &self.evidence, self.started, end);
        LoadTestOutcome {
            series: series::of(&self.evidence, self.started),
            phases: self.document.phases.iter().map(span).collect(),
            document: self.document,
            far: self.far,
            sent: self.sent,
            received: self.received,
            error,
        }
    }
}

fn span(phase: &linerate_model::schema::load::Phase) -> PhaseSpan {
    PhaseSpan { name: name(phase.kind).to_owned(), start_ns: phase.start_ns, end_ns: phase.end_ns }
}

/// A phase's name in documents.
pub(super) const fn name(kind: PhaseKind) -> &'static str {
    match kind {
        PhaseKind::Idle => "idle",
        PhaseKind::Down => "down",
        PhaseKind::Up => "up",
        PhaseKind::Both => "both",
    }
}

/// Whole nanoseconds.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
