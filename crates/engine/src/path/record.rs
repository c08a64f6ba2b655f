//! State of the measurement: its document and observer.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_documents::run::{PhaseSpan, SampleSeries};
use linerate_model::path::{IdleRtt, PathDirection, PathDocument, PeerKind, SCHEMA, TimeStampSource};
use linerate_model::report::{Outcome, TestTermination};
use linerate_model::tcp_info::TcpInfo;
use linerate_sys::clock;
use linerate_sys::signals::InterruptSignals;
use linerate_sys::time_stamp::StampSource;
use linerate_units::serde::nanoseconds;
use linerate_units::{ByteCount, MonotonicTime};

use super::{BlindStream, PathEvent, PathOptions, PathOutcome, PathPhase};
use crate::phases::{self, AbortReason};
use crate::probe::ProbeError;
use crate::probe::messages::FarFacts;

/// Reason for missing figures of a measurement of hops.
const ONLY_HOPS: &str = "only the hops were measured (--hops)";

/// Reasons for missing figures of a stream without a control connection.
const ONLY_SENT: &str = "only a stream was sent (--bitrate)";
const ONLY_RECEIVED: &str = "only a stream was received (--receive)";

/// The document while it is filled, and its observer.
pub(super) struct PathRecord<'a> {
    pub(super) options: &'a PathOptions,
    pub(super) stop: Option<InterruptSignals>,
    observer: &'a mut dyn FnMut(&PathEvent),
    pub(super) started: MonotonicTime,
    pub(super) document: PathDocument,
    pub(super) series: Vec<SampleSeries>,
    pub(super) phases: Vec<PhaseSpan>,
    pub(super) far: Option<FarFacts>,
    /// `tcp_info` of a connection without restrictions by linerate.
    pub(super) plain_tcp: Option<TcpInfo>,
    traffic: [ByteCount; 2],
}

impl<'a> PathRecord<'a> {
    pub(super) fn new(
        options: &'a PathOptions,
        stop: Option<InterruptSignals>,
        observer: &'a mut dyn FnMut(&PathEvent),
    ) -> Self {
        let document = PathDocument {
            schema: SCHEMA,
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: options.target.host.clone(),
            address: None,
            port: options.target.port.get(),
            peer: PeerKind::Bare,
            peer_version: None,
            started_at_unix_ns: nanoseconds(clock::realtime_now().since_unix_epoch()),
            duration_ns: 0,
            termination: TestTermination::Complete,
            traffic_bytes: None,
            rtt: IdleRtt::default(),
            up: PathDirection::default(),
            down: PathDirection::default(),
            clock: None,
            bdp_up_bytes: None,
            bdp_down_bytes: None,
            tcp: None,
            hops: Vec::new(),
            route: None,
            unknown: Vec::new(),
            notes: Vec::new(),
        };
        Self {
            options,
            stop,
            observer,
            started: clock::monotonic_now(),
            document,
            series: Vec::new(),
            phases: Vec::new(),
            far: None,
            plain_tcp: None,
            traffic: [ByteCount::ZERO; 2],
        }
    }

    /// Starts a phase and ends the previous one.
    pub(super) fn phase(&mut self, phase: PathPhase, expected: Duration) {
        self.end_phase();
        let _ = phases::is_phase_ended(self.stop);
        let now = self.elapsed();
        self.phases.push(PhaseSpan { name: phase.name().to_owned(), start_ns: now, end_ns: now });
        self.tell(&PathEvent::Phase(phase, expected));
    }

    fn end_phase(&mut self) {
        let now = self.elapsed();
        if let Some(last) = self.phases.last_mut() {
            last.end_ns = now;
        }
    }

    /// Nanoseconds since the start.
    pub(super) fn elapsed(&self) -> u64 {
        nanoseconds(clock::monotonic_now().since(self.started))
    }

    pub(super) fn tell(&mut self, event: &PathEvent) {
        (self.observer)(event);
    }

    /// Adds and reports a note, once.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if phases::add_note(&mut self.document.notes, &text) {
            self.tell(&PathEvent::Note(text));
        }
    }

    /// Adds the reason why a key is `null`; the first reason is kept.
    pub(super) fn unknown(&mut self, key: &str, reason: impl Into<String>) {
        phases::add_unknown(&mut self.document.unknown, key, reason);
    }

    /// Adds the reason why a bandwidth-delay product is `null`, if it is.
    pub(super) fn add_unknown_if_missing(&mut self, key: &str, reason: &str) {
        let value = if key == "bdp_up_bytes" { self.document.bdp_up_bytes } else { self.document.bdp_down_bytes };
        if value.is_none() {
            self.unknown(key, reason);
        }
    }

    /// Adds the reason for both directions.
    pub(super) fn add_unknown_both(&mut self, key: &str, reason: &str) {
        self.unknown(&format!("up.{key}"), reason);
        self.unknown(&format!("down.{key}"), reason);
    }

    pub(super) fn direction(&mut self, direction: Direction) -> &mut PathDirection {
        match direction {
            Direction::Up => &mut self.document.up,
            Direction::Down => &mut self.document.down,
        }
    }

    /// Counts bytes of IP packets that the measurement put on the path.
    pub(super) fn count_traffic(&mut self, direction: Direction, bytes: ByteCount) {
        self.traffic[super::linerate::index(direction)] += bytes;
    }

    pub(super) fn check(&self) -> Result<(), AbortReason> {
        phases::check(self.stop)
    }

    /// Sleeps for `time`, or until a signal.
    pub(super) fn wait(&self, time: Duration) -> Result<(), AbortReason> {
        phases::wait(self.stop, time)
    }

    /// Sleeps for `time`, or until the user ends the phase; returns true in that case.
    pub(super) fn wait_phase(&self, time: Duration) -> Result<bool, AbortReason> {
        phases::wait_phase(self.stop, time)
    }

    /// True once after the user has asked to end the present phase.
    pub(super) fn is_phase_ended(&self) -> bool {
        phases::is_phase_ended(self.stop)
    }

    /// Adds the reason of a failed part for each of its keys; fails only when going on is pointless.
    pub(super) fn without(&mut self, keys: &[&str], error: ProbeError) -> Result<(), AbortReason> {
        match error {
            ProbeError::Interrupted => Err(AbortReason::Interrupted),
            ProbeError::Lost(_) => Err(AbortReason::Failed(error)),
            other => {
                for key in keys {
                    self.unknown(key, other.to_string());
                }
                Ok(())
            }
        }
    }

    pub(super) fn finish(mut self, result: Result<(), AbortReason>) -> PathOutcome {
        self.end_phase();
        self.document.duration_ns = self.elapsed();
        let [sent, received] = self.traffic;
        self.document.traffic_bytes = Some((sent + received).get()).filter(|bytes| *bytes > 0);
        let (termination, error) = phases::termination_of(result, self.stop);
        match termination.outcome() {
            Outcome::Complete => {}
            Outcome::Interrupted => self.fill_unknown("the measurement was interrupted before"),
            Outcome::Failed | Outcome::PeerTerminated => self.fill_unknown("the measurement failed before"),
        }
        self.document.termination = termination;
        let reason = match self.options.blind {
            _ if self.options.only_hops => ONLY_HOPS,
            Some(BlindStream::Send { .. }) => ONLY_SENT,
            Some(BlindStream::Receive { .. }) => ONLY_RECEIVED,
            None => super::unknown_reason(self.document.peer),
        };
        self.fill_unknown(reason);
        PathOutcome {
            document: self.document,
            series: self.series,
            phases: self.phases,
            far: self.far,
            sent,
            received,
            error,
        }
    }

    /// Adds a reason for every `null` that has none yet.
    fn fill_unknown(&mut self, reason: &str) {
        let document = &self.document;
        let mut keys: Vec<String> = Vec::new();
        for (name, end) in [("up", &document.up), ("down", &document.down)] {
            let parts = [
                ("mtu", end.mtu.is_none()),
                ("capacity", end.capacity.is_none()),
                ("packets", end.packets.is_none()),
                ("marks", end.marks.is_none()),
                ("policer", end.policer.is_none()),
            ];
            keys.extend(parts.into_iter().filter(|(_, missing)| *missing).map(|(key, _)| format!("{name}.{key}")));
        }
        let rtt = &document.rtt;
        let whole = [
            ("rtt.best", rtt.best.is_none()),
            ("rtt.udp", rtt.udp.is_none()),
            ("rtt.tcp", rtt.tcp.is_none()),
            ("rtt.icmp", rtt.icmp.is_none()),
            ("rtt.handshake", rtt.handshake.is_none()),
            ("clock", document.clock.is_none()),
            ("tcp", document.tcp.is_none()),
            ("hops", document.hops.is_empty()),
            ("route", document.route.is_none()),
            ("bdp_up_bytes", document.bdp_up_bytes.is_none()),
            ("bdp_down_bytes", document.bdp_down_bytes.is_none()),
        ];
        keys.extend(whole.into_iter().filter(|(_, missing)| *missing).map(|(key, _)| key.to_owned()));
        for key in keys {
            self.unknown(&key, reason);
        }
    }
}

/// Source of a time stamp, as the document names it.
pub(super) const fn source(stamp: StampSource) -> TimeStampSource {
    match stamp {
        StampSource::Hardware => TimeStampSource::Hardware,
        StampSource::Kernel => TimeStampSource::Kernel,
        StampSource::Program => TimeStampSource::Program,
    }
}
