//! The phases against a server with probe sessions.

use core::time::Duration;
use linerate_analysis::latency_under_load::LatencyClass;
use linerate_model::direction::Direction;
use linerate_units::{CompactSort, MonotonicTime};

use linerate_analysis::statistics::SampleSummary;
use linerate_model::load::PhaseKind;
use linerate_model::path::PeerKind;
use linerate_sys::clock;

use super::echo::HopProbes;
use super::evidence::{ClassSamples, CountingWindow, ProbeFate, ProbeReading};
use super::foreign::ForeignProbes;
use super::probes::RunningProbes;
use super::record::LoadRecord;
use super::traffic::{OwnBytes, TrafficMeter};
use super::{LoadEvent, LoadFigures, profiles, stage};
use crate::phases::AbortReason;
use crate::probe::{ApplicationPing, LoadConnection, LoadOptions, ProbeError, ProbeSession};

/// Polling interval of the idle phase.
const TICK: Duration = Duration::from_millis(100);

/// Time whose round trips are shown next to a profile, in nanoseconds.
const RECENT: u64 = 500_000_000;

/// State shared by the phases.
pub(super) struct LoadTest<'s> {
    pub(super) session: &'s ProbeSession,
    pub(super) probes: RunningProbes,
    pub(super) meter: TrafficMeter<'s>,
    pub(super) infos: Vec<ProbeReading>,
    /// Upper bound of the round trips of the idle path.
    pub(super) idle_limit: Option<Duration>,
    /// Traffic of the profiles of the present phase.
    pub(super) profile_bytes: OwnBytes,
    pings: Vec<ProbeReading>,
    congestion_control: Option<String>,
    confirmed: Vec<String>,
    number: u32,
}

/// Runs the measurement.
pub(super) fn measure(record: &mut LoadRecord<'_>, session: &ProbeSession) -> Result<(), AbortReason> {
    record.document.peer = PeerKind::Linerate;
    record.peer = Some(session.peer());
    match session.facts() {
        Ok(facts) => record.far = Some(facts),
        Err(ProbeError::Interrupted) => return Err(AbortReason::Interrupted),
        Err(error) => record.unknown("environment.far", error.to_string()),
    }
    record.announce();
    let datagrams = match session.open_datagrams() {
        Ok(_) => true,
        Err(
            error @ (ProbeError::NoDatagrams { .. } | ProbeError::NoDatagramsToDialer(_) | ProbeError::Refused { .. }),
        ) => {
            record.note(error.without_datagrams("measure the delay"));
            record.unknown("classes.udp_best_effort", error.to_string());
            record.unknown("classes.udp_expedited_forwarding", error.to_string());
            false
        }
        Err(error) => return Err(error.into()),
    };
    let hops = start_hops(record, session);
    let mut probes = RunningProbes::start(record, datagrams.then_some(session), session.peer())?;
    probes.add_requests(record)?;
    let mut test = LoadTest {
        session,
        probes,
        meter: TrafficMeter::new(Some(session), session.peer()),
        infos: Vec::new(),
        idle_limit: None,
        profile_bytes: OwnBytes::default(),
        pings: Vec::new(),
        congestion_control: record.options.congestion_control.clone(),
        confirmed: Vec::new(),
        number: 0,
    };
    if test.meter.interface().is_none() {
        record.unknown("contamination", "both ends are on this host, whose interface counts everything twice");
    }
    let result = phases(record, &mut test);
    let facts = session.facts().ok();
    record.far = facts.or(record.far.take());
    if let Some(hops) = hops {
        (record.evidence.hops, record.evidence.far_distance) = hops.stop();
    }
    test.finish(record);
    result
}

fn start_hops(record: &mut LoadRecord<'_>, session: &ProbeSession) -> Option<HopProbes> {
    if !record.options.hops {
        return None;
    }
    match HopProbes::start(&record.options.target, session.peer()) {
        Ok(hops) => Some(hops),
        Err(reason) => {
            record.unknown("queues.hops", reason);
            None
        }
    }
}

fn phases(record: &mut LoadRecord<'_>, test: &mut LoadTest<'_>) -> Result<(), AbortReason> {
    for kind in record.options.phases.clone() {
        record.check()?;
        match kind {
            PhaseKind::Idle => idle(record, test)?,
            _ => stage::run(record, test, kind)?,
        }
    }
    Ok(())
}

/// The idle path, with a connection that carries only pings.
fn idle(record: &mut LoadRecord<'_>, test: &mut LoadTest<'_>) -> Result<(), AbortReason> {
    let before = test.meter.read();
    let rounds = test.probes.rounds();
    record.phase(PhaseKind::Idle);
    let interval = test.probes.interval();
    let quiet = test.open_load(record, Direction::Down, Some(interval), Duration::from_secs(1))?;
    let from = clock::monotonic_now();
    let to = from + record.options.idle_time;
    if let Some(phase) = record.current() {
        phase.window = Some(CountingWindow { from, to });
    }
    record.tell(&LoadEvent::Counting(PhaseKind::Idle, record.options.idle_time));
    let mut foreign = ForeignProbes::new(&record.options.target, test.session.peer());
    let result = watch_idle(record, test, &quiet, &mut foreign, CountingWindow { from, to });
    LoadTest::store_foreign(record, foreign);
    if let (Err(_), Some(CountingWindow { to, .. })) =
        (&result, record.current().and_then(|phase| phase.window.as_mut()))
    {
        *to = (*to).min(clock::monotonic_now());
    }
    let own = quiet.tcp_info().as_ref().map(OwnBytes::of_socket).unwrap_or_default();
    let outcome = quiet.stop();
    test.store_pings(&outcome.pings);
    result?;
    let latest: Vec<Duration> = test.probes.latest().iter().filter_map(ProbeReading::round_trip).collect();
    test.idle_limit = SampleSummary::of(&latest).map(|summary| summary.p95.mul_f64(1.2) + Duration::from_millis(5));
    let running = profiles::run(record, test, PhaseKind::Idle, &mut |record, test, end| {
        record.wait_until(end)?;
        report_idle(record, test, MonotonicTime::from_nanos(end.as_nanos().saturating_sub(RECENT)), None);
        Ok(())
    })?;
    profiles::collect(record, test, PhaseKind::Idle, running)?;
    let time = clock::monotonic_now().since(from);
    let beside = test.probes.traffic(rounds) + stage::foreign_traffic(record, time);
    let own = own.and(test.take_profile_bytes(record));
    let (near, far) = test.meter.since(&before, own.both_ways(beside), linerate_units::ByteCount::ZERO);
    if let Some(phase) = record.current() {
        (phase.near, phase.far) = (near, far);
    }
    Ok(())
}

/// Reports the median of the round trips since `since`.
fn report_idle(record: &mut LoadRecord<'_>, test: &LoadTest<'_>, since: MonotonicTime, left: Option<Duration>) {
    let recent = test.probes.answered_since(since);
    let round_trip = SampleSummary::of(&recent).map(|summary| summary.median);
    record.tell(&LoadEvent::Progress(LoadFigures { round_trip, left, ..LoadFigures::default() }));
}

fn watch_idle(
    record: &mut LoadRecord<'_>,
    test: &mut LoadTest<'_>,
    quiet: &LoadConnection,
    foreign: &mut ForeignProbes,
    window: CountingWindow,
) -> Result<(), AbortReason> {
    while clock::monotonic_now() < window.to {
        if record.options.foreign_probes {
            foreign.tick();
        }
        record.wait_until((clock::monotonic_now() + TICK).min(window.to))?;
        let now = clock::monotonic_now();
        if record.end_counting_on_request() {
            break;
        }
        if let Some(rtt) = quiet.tcp_info().and_then(|info| info.rtt) {
            test.infos.push(ProbeReading::answered(now, rtt));
        }
        report_idle(record, test, window.from, Some(window.to.since(now)));
    }
    // The last pings are answered before the connection ends.
    quiet.set_ping_interval(None);
    let end = clock::monotonic_now() + Duration::from_secs(2);
    let open = || quiet.pings(0).iter().any(|ping| ping.round_trip.is_none()) || !foreign.is_idle();
    while open() && clock::monotonic_now() < end {
        record.wait(Duration::from_millis(20))?;
    }
    Ok(())
}

impl LoadTest<'_> {
    /// Opens a connection of the load. If the congestion control is missing at one end, both use their default.
    pub(super) fn open_load(
        &mut self,
        record: &mut LoadRecord<'_>,
        direction: Direction,
        ping_interval: Option<Duration>,
        sampling: Duration,
    ) -> Result<LoadConnection, AbortReason> {
        let options = LoadOptions {
            congestion_control: self.congestion_control.clone(),
            sampling,
            ping_interval,
            ..LoadOptions::new(direction)
        };
        match self.session.open_load(&options) {
            Err(ProbeError::Refused { reason, .. } | ProbeError::System(reason))
                if self.congestion_control.is_some() =>
            {
                let name = self.congestion_control.take().unwrap_or_default();
                record.note(format!(
                    "Congestion control {name:?} is not available on both hosts; each uses its default: {reason}"
                ));
                Ok(self.session.open_load(&LoadOptions { congestion_control: None, ..options })?)
            }
            other => Ok(other?),
        }
    }

    /// Stores the congestion control that a sender reports.
    pub(super) fn confirm_congestion_control(&mut self, name: Option<&str>) {
        if let Some(name) = name.filter(|name| !self.confirmed.iter().any(|known| known == name)) {
            self.confirmed.push(name.to_owned());
        }
    }

    /// Takes the traffic of the present phase's profiles, and adds it to that of the measurement.
    pub(super) fn take_profile_bytes(&mut self, record: &mut LoadRecord<'_>) -> OwnBytes {
        let own = core::mem::take(&mut self.profile_bytes);
        record.sent += own.sent;
        record.received += own.received;
        own
    }

    /// The next connection's number.
    pub(super) fn next_number(&mut self) -> u32 {
        self.number += 1;
        self.number
    }

    /// Stores the pings of a connection that has ended.
    pub(super) fn store_pings(&mut self, pings: &[ApplicationPing]) {
        let reading = |ping: &ApplicationPing| ProbeReading {
            sent: ping.sent,
            fate: ping.round_trip.map_or(ProbeFate::Lost(None), ProbeFate::Answered),
            up: None,
            down: None,
        };
        self.pings.extend(pings.iter().map(reading));
    }

    /// Stores the connections that were made during the load.
    pub(super) fn store_foreign(record: &mut LoadRecord<'_>, foreign: ForeignProbes) {
        record.evidence.foreign.extend(foreign.take());
    }

    fn finish(mut self, record: &mut LoadRecord<'_>) {
        record.document.congestion_control = Some(self.confirmed.join(", ")).filter(|names| !names.is_empty());
        record.evidence.clocks = self.probes.clocks();
        let requests = self.probes.stop_requests(record);
        let (mut classes, ect1) = self.probes.stop();
        classes.extend(requests);
        record.evidence.ect1 = ect1;
        let handshakes = record
            .evidence
            .foreign
            .iter()
            .filter_map(|probe| Some(ProbeReading::answered(probe.sent, probe.times?.tcp)));
        let handshakes: Vec<ProbeReading> = handshakes.collect();
        for (class, mut readings) in [
            (LatencyClass::TcpApplication, self.pings),
            (LatencyClass::TcpInfo, self.infos),
            (LatencyClass::TcpHandshake, handshakes),
        ] {
            readings.sort_compactly_by_key(|reading| reading.sent);
            classes.push(ClassSamples { class, readings, counts_losses: false });
        }
        record.evidence.classes = classes;
    }
}
