//! Traffic profiles next to each phase: the traffic of an application, one profile after another, while the load goes on.
//!
//! Each runs after the phase's own window, so that it changes none of the phase's figures, and is judged by its own
//! packets. Records of packets are collected when the load has ended: under load they would wait in the queue as well.

mod packets;
mod streaming;
mod verdict;

use core::time::Duration;

use linerate_analysis::traffic_profiles::{StreamingFigures, TrafficProfile};
use linerate_model::direction::Direction;
use linerate_model::load::PhaseKind;
use linerate_sys::clock;
use linerate_units::{ByteCount, MonotonicTime};

use super::evidence::CountingWindow;
use super::measure::LoadTest;
use super::record::LoadRecord;
use super::traffic::OwnBytes;
use super::{LoadEvent, stage};
use crate::phases::AbortReason;
use crate::probe::messages::PacketRecord;
use crate::probe::{AnsweringService, ProbeError};
pub(super) use verdict::results;

/// Interval of the control loop.
const TICK: Duration = Duration::from_millis(100);

/// Pause between two profiles next to a load, which then recovers its share.
const PAUSE: Duration = Duration::from_secs(1);

/// Waits for a tick until the given time at most, and reports the progress.
pub(super) type Ticker<'t> =
    &'t mut dyn FnMut(&mut LoadRecord<'_>, &LoadTest<'_>, MonotonicTime) -> Result<(), AbortReason>;

/// Measured evidence of a profile in a phase.
#[derive(Clone, Debug)]
pub(super) struct ProfileEvidence {
    pub(super) profile: TrafficProfile,
    pub(super) phase: PhaseKind,
    pub(super) window: CountingWindow,
    /// Its traffic, or the reason why there was none.
    pub(super) traffic: Result<ProfileTraffic, String>,
}

/// Traffic of a profile.
#[derive(Clone, Debug)]
pub(super) enum ProfileTraffic {
    /// Packets to the far end and from it.
    Packets { up: FlowEvidence, down: FlowEvidence },
    /// Segments of a video stream.
    Stream(StreamingFigures),
    /// Payload of a bulk transfer that has arrived, and its time.
    Bulk { payload: ByteCount, time: Duration },
}

/// Packets of one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowEvidence {
    /// Packets sent, numbered from 0.
    pub(super) sent: u64,
    /// Packets that arrived, in the order of arrival.
    pub(super) packets: Vec<PacketRecord>,
}

/// Profile whose records are still to be collected.
pub(super) struct RunningProfile {
    profile: TrafficProfile,
    window: CountingWindow,
    traffic: Result<RunningTraffic, String>,
}

enum RunningTraffic {
    Packets(packets::PacketRun),
    Complete(ProfileTraffic),
}

/// Runs the profiles next to a phase, each for the time of a loaded phase.
pub(super) fn run(
    record: &mut LoadRecord<'_>,
    test: &mut LoadTest<'_>,
    kind: PhaseKind,
    ticker: Ticker<'_>,
) -> Result<Vec<RunningProfile>, AbortReason> {
    let mut all = Vec::new();
    for profile in record.options.profiles.clone() {
        record.check()?;
        let time = profile.duration(record.options.load_time);
        record.tell(&LoadEvent::Profile(kind, profile, time));
        let from = clock::monotonic_now();
        let traffic = match profile {
            TrafficProfile::Streaming => streaming::run(record, test, time, ticker),
            TrafficProfile::Backup => backup(record, test, time, ticker),
            _ => packets::run(record, test, profile, time, ticker).map(RunningTraffic::Packets),
        };
        let window = CountingWindow { from, to: clock::monotonic_now() };
        let traffic = traffic.map(Ok).or_else(own_failure)?;
        all.push(RunningProfile { profile, window, traffic });
        match kind {
            PhaseKind::Idle => stage::drain(record, test, None)?,
            _ => record.wait(PAUSE)?,
        }
    }
    Ok(all)
}

/// Reason of a failure that concerns the profile alone; others end the measurement.
fn own_failure(reason: AbortReason) -> Result<Result<RunningTraffic, String>, AbortReason> {
    match reason {
        AbortReason::Failed(
            error @ (ProbeError::Refused { .. }
            | ProbeError::TimedOut { .. }
            | ProbeError::NoProbeService(_)
            | ProbeError::System(_)
            | ProbeError::Unreachable(_)
            | ProbeError::NotOpened),
        ) => Ok(Err(error.to_string())),
        other => Err(other),
    }
}

/// Collects the records of the profiles of a phase.
pub(super) fn collect(
    record: &mut LoadRecord<'_>,
    test: &LoadTest<'_>,
    phase: PhaseKind,
    profiles: Vec<RunningProfile>,
) -> Result<(), AbortReason> {
    for RunningProfile { profile, window, traffic } in profiles {
        let traffic = match traffic {
            Ok(RunningTraffic::Packets(run)) => run.collect(test.session)?,
            Ok(RunningTraffic::Complete(traffic)) => Ok(traffic),
            Err(reason) => Err(reason),
        };
        record.evidence.profiles.push(ProfileEvidence { profile, phase, window, traffic });
    }
    Ok(())
}

/// Ticks until `end`, until the user ends the phase, or until `is_over`.
fn wait(
    record: &mut LoadRecord<'_>,
    test: &LoadTest<'_>,
    end: MonotonicTime,
    ticker: Ticker<'_>,
    is_over: &dyn Fn() -> bool,
) -> Result<(), AbortReason> {
    while clock::monotonic_now() < end && !is_over() && !record.is_phase_ended() {
        ticker(record, test, end.min(clock::monotonic_now() + TICK))?;
    }
    Ok(())
}

/// Bulk data on one connection, with the load's congestion control.
fn backup(
    record: &mut LoadRecord<'_>,
    test: &mut LoadTest<'_>,
    time: Duration,
    ticker: Ticker<'_>,
) -> Result<RunningTraffic, AbortReason> {
    let connection = test.open_load(record, Direction::Up, None, Duration::from_secs(1))?;
    let start = clock::monotonic_now();
    connection.start()?;
    wait(record, test, start + time, ticker, &|| connection.broken().is_some())?;
    let info = connection.tcp_info();
    let took = clock::monotonic_now().since(start);
    let broken = connection.broken();
    let _ = connection.stop();
    test.profile_bytes = test.profile_bytes.and(info.as_ref().map(OwnBytes::of_socket).unwrap_or_default());
    match (broken, info.and_then(|info| info.bytes_acknowledged)) {
        (None, Some(payload)) => Ok(RunningTraffic::Complete(ProfileTraffic::Bulk { payload, time: took })),
        (broken, _) => {
            let reason = broken.unwrap_or_else(|| "the kernel does not report acknowledged bytes".to_owned());
            Err(ProbeError::System(format!("sending a backup: {reason}")).into())
        }
    }
}

/// Refusal of profiles by a far end without probe sessions, before anything is loaded.
pub(super) fn check_far_end(record: &LoadRecord<'_>, answering: AnsweringService) -> Result<(), AbortReason> {
    if record.options.profiles.is_empty() {
        return Ok(());
    }
    Err(ProbeError::NoProfiles(answering).into())
}
