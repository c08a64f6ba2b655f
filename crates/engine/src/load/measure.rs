//! The phases against a server with probe sessions.

use core::time::Duration;

use linerate_model::schema::load::{ClassName, PhaseKind};
use linerate_model::schema::path::Peer;
use linerate_model::schema::throughput::Direction;
use linerate_model::statistics::Summary;
use linerate_sys::clock;

use super::echo::Hops;
use super::evidence::{ClassReadings, Fate, Reading, Window};
use super::foreign::ForeignProbes;
use super::probes::Probes;
use super::record::Record;
use super::traffic::{Meter, Own};
use super::{LoadEvent, Progress, stage};
use crate::course::Halt;
use crate::probe::messages::LoadDirection;
use crate::probe::{ApplicationPing, LoadConnection, LoadOptions, ProbeError, ProbeSession};

/// The idle path is looked at so often.
const TICK: Duration = Duration::from_millis(100);

/// What the phases share.
pub(super) struct Test<'s> {
    pub(super) session: &'s ProbeSession,
    pub(super) probes: Probes,
    pub(super) meter: Meter<'s>,
    pub(super) infos: Vec<Reading>,
    /// Round trips up to this are those of the idle path.
    pub(super) idle_limit: Option<Duration>,
    pings: Vec<Reading>,
    congestion_control: Option<String>,
    confirmed: Vec<String>,
    number: u32,
}

/// Measures.
pub(super) fn measure(record: &mut Record<'_>, session: &ProbeSession) -> Result<(), Halt> {
    record.document.peer = Peer::Linerate;
    record.peer = Some(session.peer());
    match session.facts() {
        Ok(facts) => record.far = Some(facts),
        Err(ProbeError::Interrupted) => return Err(Halt::Interrupted),
        Err(error) => record.unknown("environment.far", error.to_string()),
    }
    record.announce();
    let datagrams = match session.open_datagrams() {
        Ok(_) => true,
        Err(error @ (ProbeError::NoDatagrams { .. } | ProbeError::Refused { .. })) => {
            record.note(format!("UDP does not come through, so that only TCP and ICMP tell of the delay: {error}"));
            record.unknown("classes.udp_best_effort", error.to_string());
            record.unknown("classes.udp_expedited_forwarding", error.to_string());
            false
        }
        Err(error) => return Err(error.into()),
    };
    let hops = start_hops(record, session);
    let probes = Probes::start(record, datagrams.then_some(session), session.peer())?;
    let mut test = Test {
        session,
        probes,
        meter: Meter::new(Some(session), session.peer()),
        infos: Vec::new(),
        idle_limit: None,
        pings: Vec::new(),
        congestion_control: record.options.congestion_control.clone(),
        confirmed: Vec::new(),
        number: 0,
    };
    if test.meter.interface().is_none() {
        record.unknown("contamination", "both ends are on this host: its interface counts everything twice");
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

fn start_hops(record: &mut Record<'_>, session: &ProbeSession) -> Option<Hops> {
    if !record.options.hops {
        return None;
    }
    match Hops::start(&record.options.target, session.peer()) {
        Ok(hops) => Some(hops),
        Err(reason) => {
            record.unknown("queues.hops", reason);
            None
        }
    }
}

fn phases(record: &mut Record<'_>, test: &mut Test<'_>) -> Result<(), Halt> {
    for kind in record.options.phases.clone() {
        record.check()?;
        match kind {
            PhaseKind::Idle => idle(record, test)?,
            _ => stage::run(record, test, kind)?,
        }
    }
    Ok(())
}

/// The idle path, with a connection that carries nothing but messages.
fn idle(record: &mut Record<'_>, test: &mut Test<'_>) -> Result<(), Halt> {
    let before = test.meter.read();
    let rounds = test.probes.rounds();
    record.phase(PhaseKind::Idle);
    let interval = test.probes.interval();
    let quiet = test.open_load(record, Direction::Down, Some(interval), Duration::from_secs(1))?;
    let from = clock::monotonic_now();
    let to = from + record.options.idle_time;
    if let Some(phase) = record.current() {
        phase.window = Some(Window { from, to });
    }
    record.tell(&LoadEvent::Counting(PhaseKind::Idle, record.options.idle_time));
    let mut foreign = ForeignProbes::new(&record.options.target, test.session.peer());
    let result = watch_idle(record, test, &quiet, &mut foreign, Window { from, to });
    Test::keep_foreign(record, foreign);
    if let (Err(_), Some(Window { to, .. })) = (&result, record.current().and_then(|phase| phase.window.as_mut())) {
        *to = (*to).min(clock::monotonic_now());
    }
    let own = quiet.tcp_info().as_ref().map(Own::of_socket).unwrap_or_default();
    let outcome = quiet.stop();
    test.take_pings(&outcome.pings);
    result?;
    let latest: Vec<Duration> = test.probes.latest().iter().filter_map(Reading::round_trip).collect();
    test.idle_limit = Summary::of(&latest).map(|summary| summary.p95.mul_f64(1.2) + Duration::from_millis(5));
    let time = clock::monotonic_now().since(from);
    let beside = test.probes.traffic(rounds) + stage::foreign_traffic(record, time);
    let (near, far) = test.meter.since(&before, own.both_ways(beside), linerate_units::ByteCount::ZERO);
    if let Some(phase) = record.current() {
        (phase.near, phase.far) = (near, far);
    }
    Ok(())
}

fn watch_idle(
    record: &mut Record<'_>,
    test: &mut Test<'_>,
    quiet: &LoadConnection,
    foreign: &mut ForeignProbes,
    window: Window,
) -> Result<(), Halt> {
    while clock::monotonic_now() < window.to {
        if record.options.foreign_probes {
            foreign.tick();
        }
        record.wait_until((clock::monotonic_now() + TICK).min(window.to))?;
        let now = clock::monotonic_now();
        if let Some(rtt) = quiet.tcp_info().and_then(|info| info.rtt) {
            test.infos.push(Reading::answered(now, rtt));
        }
        let recent = test.probes.answered_since(window.from);
        let round_trip = Summary::of(&recent).map(|summary| summary.median);
        let left = Some(window.to.since(now));
        record.tell(&LoadEvent::Progress(Progress { round_trip, up: None, down: None, left }));
    }
    // The last messages are answered before the connection ends.
    quiet.set_ping_interval(None);
    let end = clock::monotonic_now() + Duration::from_secs(2);
    let open = || quiet.pings(0).iter().any(|ping| ping.round_trip.is_none()) || !foreign.is_idle();
    while open() && clock::monotonic_now() < end {
        record.wait(Duration::from_millis(20))?;
    }
    Ok(())
}

impl Test<'_> {
    /// Makes a connection of the load. Where an end does not have the congestion control, both take their own.
    pub(super) fn open_load(
        &mut self,
        record: &mut Record<'_>,
        direction: Direction,
        ping_interval: Option<Duration>,
        sampling: Duration,
    ) -> Result<LoadConnection, Halt> {
        let direction = match direction {
            Direction::Up => LoadDirection::Up,
            Direction::Down => LoadDirection::Down,
        };
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
                    "Congestion control {name:?} is not to be had at both ends; each uses its own default: {reason}"
                ));
                Ok(self.session.open_load(&LoadOptions { congestion_control: None, ..options })?)
            }
            other => Ok(other?),
        }
    }

    /// What a sender says that it uses.
    pub(super) fn confirm_congestion_control(&mut self, name: Option<&str>) {
        if let Some(name) = name.filter(|name| !self.confirmed.iter().any(|known| known == name)) {
            self.confirmed.push(name.to_owned());
        }
    }

    /// The next connection's number.
    pub(super) fn next_number(&mut self) -> u32 {
        self.number += 1;
        self.number
    }

    /// Keeps the messages of a connection that has ended.
    pub(super) fn take_pings(&mut self, pings: &[ApplicationPing]) {
        let reading = |ping: &ApplicationPing| Reading {
            sent: ping.sent,
            fate: ping.round_trip.map_or(Fate::Lost(None), Fate::Answered),
            up: None,
            down: None,
        };
        self.pings.extend(pings.iter().map(reading));
    }

    /// Keeps the connections that were made beside the load.
    pub(super) fn keep_foreign(record: &mut Record<'_>, foreign: ForeignProbes) {
        record.evidence.foreign.extend(foreign.take());
    }

    fn finish(self, record: &mut Record<'_>) {
        record.document.congestion_control = Some(self.confirmed.join(", ")).filter(|names| !names.is_empty());
        let mut classes = self.probes.stop();
        let handshakes =
            record.evidence.foreign.iter().filter_map(|probe| Some(Reading::answered(probe.sent, probe.times?.tcp)));
        let handshakes: Vec<Reading> = handshakes.collect();
        for (class, mut readings) in [
            (ClassName::TcpApplication, self.pings),
            (ClassName::TcpInfo, self.infos),
            (ClassName::TcpHandshake, handshakes),
        ] {
            readings.sort_by_key(|reading| reading.sent);
            classes.push(ClassReadings { class, readings, counts_losses: false });
        }
        record.evidence.classes = classes;
    }
}
