//! A host without a measurement service: no load is possible there, so that only the idle path is measured.

use linerate_analysis::statistics::SampleSummary;
use linerate_model::load::PhaseKind;
use linerate_model::path::PeerKind;
use linerate_sys::{clock, net};

use super::evidence::{CountingWindow, ProbeReading};
use super::probes::RunningProbes;
use super::record::LoadRecord;
use super::{LoadEvent, LoadFigures};
use crate::phases::AbortReason;
use crate::probe::ProbeError;

/// Measures the idle path by ICMP. `refusal` is the failure of the search for a server.
pub(super) fn measure(record: &mut LoadRecord<'_>, refusal: &str) -> Result<(), AbortReason> {
    let target = &record.options.target;
    let peer = match net::resolve(target.address(), target.port, target.family) {
        Ok(addresses) => addresses.into_iter().next(),
        Err(error) => return Err(AbortReason::Failed(ProbeError::Unreachable(error.to_string()))),
    };
    let Some(peer) = peer else { return Err(AbortReason::Failed(ProbeError::Unreachable(refusal.to_owned()))) };
    record.document.peer = PeerKind::Bare;
    let probes = RunningProbes::start(record, None, peer)?;
    let result = idle(record, &probes);
    let (readings, _) = probes.stop();
    let answered = readings.iter().any(|class| class.readings.iter().any(|reading| reading.round_trip().is_some()));
    record.evidence.classes = readings;
    if !answered && result.is_ok() {
        return Err(AbortReason::Failed(ProbeError::Unreachable(refusal.to_owned())));
    }
    let why = format!("no server to exchange a load with: {refusal}");
    for phase in ["down", "up", "both"] {
        record.unknown(&format!("phases.{phase}"), why.clone());
    }
    record.unknown("contamination", "without a load there is no measurement to contaminate");
    result
}

/// The idle path.
pub(super) fn idle(record: &mut LoadRecord<'_>, probes: &RunningProbes) -> Result<(), AbortReason> {
    record.phase(PhaseKind::Idle);
    let from = clock::monotonic_now();
    let to = from + record.options.idle_time;
    if let Some(phase) = record.current() {
        phase.window = Some(CountingWindow { from, to });
    }
    record.tell(&LoadEvent::Counting(PhaseKind::Idle, record.options.idle_time));
    while clock::monotonic_now() < to {
        let next = clock::monotonic_now() + core::time::Duration::from_millis(100);
        let waited = record.wait_until(next.min(to));
        let now = clock::monotonic_now();
        if let Err(halt) = waited {
            if let Some(CountingWindow { to, .. }) = record.current().and_then(|phase| phase.window.as_mut()) {
                *to = now;
            }
            return Err(halt);
        }
        if record.end_counting_on_request() {
            break;
        }
        let times: Vec<_> = probes.latest().iter().filter_map(ProbeReading::round_trip).collect();
        let round_trip = SampleSummary::of(&times).map(|summary| summary.median);
        record.tell(&LoadEvent::Progress(LoadFigures {
            round_trip,
            left: Some(to.since(now)),
            ..LoadFigures::default()
        }));
    }
    Ok(())
}
