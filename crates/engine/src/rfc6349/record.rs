//! State of the procedure: its document and observer.

use linerate_documents::rfc6349::{Rfc6349Baseline, Rfc6349Document, SCHEMA};
use linerate_documents::run::{PhaseSpan, SampleSeries};
use linerate_model::path::{PathDocument, UnknownValue};
use linerate_model::report::TestTermination;
use linerate_sys::clock;
use linerate_sys::signals::InterruptSignals;
use linerate_units::serde::nanoseconds;
use linerate_units::{ByteCount, MonotonicTime};

use super::{Rfc6349Event, Rfc6349Options, Rfc6349Outcome};
use crate::phases::{self, AbortReason};
use crate::probe::messages::FarFacts;

/// The document while it is filled, and its observer.
pub(super) struct Rfc6349Record<'a> {
    pub(super) options: &'a Rfc6349Options,
    pub(super) stop: Option<InterruptSignals>,
    observer: &'a mut dyn FnMut(&Rfc6349Event),
    started: MonotonicTime,
    started_at: u64,
    pub(super) path: Option<PathDocument>,
    pub(super) baseline: Rfc6349Baseline,
    pub(super) tests: Vec<linerate_documents::rfc6349::TcpTest>,
    pub(super) windows: Vec<linerate_documents::rfc6349::WindowTest>,
    pub(super) management: Vec<linerate_documents::rfc6349::TrafficManagement>,
    unknown: Vec<UnknownValue>,
    notes: Vec<String>,
    pub(super) series: Vec<SampleSeries>,
    pub(super) phases: Vec<PhaseSpan>,
    pub(super) far: Option<FarFacts>,
    pub(super) sent: ByteCount,
    pub(super) received: ByteCount,
}

impl<'a> Rfc6349Record<'a> {
    pub(super) fn new(
        options: &'a Rfc6349Options,
        stop: Option<InterruptSignals>,
        observer: &'a mut dyn FnMut(&Rfc6349Event),
    ) -> Self {
        Self {
            options,
            stop,
            observer,
            started: clock::monotonic_now(),
            started_at: nanoseconds(clock::realtime_now().since_unix_epoch()),
            path: None,
            baseline: Rfc6349Baseline::default(),
            tests: Vec::new(),
            windows: Vec::new(),
            management: Vec::new(),
            unknown: Vec::new(),
            notes: Vec::new(),
            series: Vec::new(),
            phases: Vec::new(),
            far: None,
            sent: ByteCount::ZERO,
            received: ByteCount::ZERO,
        }
    }

    pub(super) fn tell(&mut self, event: &Rfc6349Event) {
        (self.observer)(event);
    }

    /// Observer for a part that reports its own events.
    pub(super) fn observer(&mut self) -> &mut dyn FnMut(&Rfc6349Event) {
        self.observer
    }

    /// Nanoseconds since the start.
    pub(super) fn elapsed(&self) -> u64 {
        nanoseconds(clock::monotonic_now().since(self.started))
    }

    /// Ends a phase that began at `start_ns`.
    pub(super) fn phase(&mut self, name: String, start_ns: u64) {
        let end_ns = self.elapsed();
        self.phases.push(PhaseSpan { name, start_ns, end_ns });
    }

    /// Adds and reports a note, once.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if phases::add_note(&mut self.notes, &text) {
            self.tell(&Rfc6349Event::Note(text));
        }
    }

    /// Adds the reason why a key is `null`; the first reason is kept.
    pub(super) fn unknown(&mut self, key: &str, reason: impl Into<String>) {
        phases::add_unknown(&mut self.unknown, key, reason);
    }

    pub(super) fn check(&self) -> Result<(), AbortReason> {
        phases::check(self.stop)
    }

    pub(super) fn finish(mut self, result: Result<(), AbortReason>) -> Rfc6349Outcome {
        let (termination, error) = phases::termination_of(result, self.stop);
        let target = &self.options.path.target;
        let (host, port) = (target.host.clone(), target.port.get());
        let duration_ns = self.elapsed();
        let path = self.path.take().unwrap_or_else(|| unmeasured_path(&host, port, self.started_at, &termination));
        Rfc6349Outcome {
            document: Rfc6349Document {
                schema: SCHEMA,
                linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
                host,
                port,
                started_at_unix_ns: self.started_at,
                duration_ns,
                termination,
                path,
                baseline: self.baseline,
                tests: self.tests,
                windows: self.windows,
                traffic_management: self.management,
                unknown: self.unknown,
                notes: self.notes,
            },
            series: self.series,
            phases: self.phases,
            far: self.far,
            sent: self.sent,
            received: self.received,
            error,
        }
    }
}

/// Document of an unmeasured path.
fn unmeasured_path(host: &str, port: u16, started_at_unix_ns: u64, termination: &TestTermination) -> PathDocument {
    PathDocument {
        schema: linerate_model::path::SCHEMA,
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        host: host.to_owned(),
        address: None,
        port,
        peer: linerate_model::path::PeerKind::Bare,
        peer_version: None,
        started_at_unix_ns,
        duration_ns: 0,
        termination: termination.clone(),
        traffic_bytes: None,
        rtt: linerate_model::path::IdleRtt::default(),
        up: linerate_model::path::PathDirection::default(),
        down: linerate_model::path::PathDirection::default(),
        clock: None,
        bdp_up_bytes: None,
        bdp_down_bytes: None,
        tcp: None,
        hops: Vec::new(),
        route: None,
        unknown: Vec::new(),
        notes: Vec::new(),
    }
}
