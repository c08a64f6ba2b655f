//! A host without a measurement service: nobody there takes a load, so that only the idle path is known.

use linerate_model::schema::load::PhaseKind;
use linerate_model::schema::path::Peer;
use linerate_model::statistics::Summary;
use linerate_sys::{clock, net};

use super::evidence::{Reading, Window};
use super::probes::Probes;
use super::record::Record;
use super::{LoadEvent, Progress};
use crate::course::Halt;
use crate::probe::ProbeError;

/// Measures the idle path by ICMP. `refusal` is what was said where a server was looked for.
pub(super) fn measure(record: &mut Record<'_>, refusal: &str) -> Result<(), Halt> {
    let target = &record.options.target;
    let peer = match net::resolve(&target.host, target.port, target.family) {
        Ok(addresses) => addresses.into_iter().next(),
        Err(error) => return Err(Halt::Failed(ProbeError::Unreachable(error.to_string()))),
    };
    let Some(peer) = peer else { return Err(Halt::Failed(ProbeError::Unreachable(refusal.to_owned()))) };
    record.document.peer = Peer::Bare;
    let probes = Probes::start(record, None, peer)?;
    let result = idle(record, &probes);
    let readings = probes.stop();
    let answered = readings.iter().any(|class| class.readings.iter().any(|reading| reading.round_trip().is_some()));
    record.evidence.classes = readings;
    if !answered && result.is_ok() {
        return Err(Halt::Failed(ProbeError::Unreachable(refusal.to_owned())));
    }
    let why = format!("there is nobody to exchange a load with: {refusal}");
    for phase in ["down", "up", "both"] {
        record.unknown(&format!("phases.{phase}"), why.clone());
    }
    record.unknown("contamination", "without a load there is nothing to spoil");
    result
}

/// The idle path.
pub(super) fn idle(record: &mut Record<'_>, probes: &Probes) -> Result<(), Halt> {
    record.phase(PhaseKind::Idle);
    let from = clock::monotonic_now();
    let to = from + record.options.idle_time;
    if let Some(phase) = record.current() {
        phase.window = Some(Window { from, to });
    }
    record.tell(&LoadEvent::Counting(PhaseKind::Idle, record.options.idle_time));
    while clock::monotonic_now() < to {
        let next = clock::monotonic_now() + core::time::Duration::from_millis(100);
        let waited = record.wait_until(next.min(to));
        let now = clock::monotonic_now();
        if let Err(halt) = waited {
            if let Some(Window { to, .. }) = record.current().and_then(|phase| phase.window.as_mut()) {
                *to = now;
            }
            return Err(halt);
        }
        let times: Vec<_> = probes.latest().iter().filter_map(Reading::round_trip).collect();
        let round_trip = Summary::of(&times).map(|summary| summary.median);
        record.tell(&LoadEvent::Progress(Progress { round_trip, up: None, down: None, left: Some(to.since(now)) }));
    }
    Ok(())
}
