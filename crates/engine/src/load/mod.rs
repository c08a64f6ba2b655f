//! Latency under load: probes of several classes while TCP fills the path down, up, and in both directions.
//!
//! [`run`] goes through the phases, fills a [`LoadDocument`] and reports progress as [`LoadEvent`]s. Probes run
//! throughout the measurement at the same intervals, so that phases differ only in the load; each phase is judged by
//! the probes sent while its load was stable. An interrupted measurement is a partial one, not an error.
//!
//! | file | purpose |
//! |---|---|
//! | `measure` | the phases against a linerate (`linerate serve`) |
//! | `iperf3`, `bare` | other peers |
//! | `http` | conclusions from a test over HTTP/2, which another crate runs |
//! | `stage` | one loaded phase: connections, and when counting begins |
//! | `probes`, `echo`, `foreign`, `requests`, `request_log` | the probes |
//! | `profiles` | traffic of applications next to each phase |
//! | `traffic` | interface traffic, and the measurement's own share of it |
//! | `evidence` | measured evidence |
//! | `summary`, `verdict`, `dual_queue`, `series`, `readings` | conclusions from it: no clocks, no sockets |

mod bare;
mod dual_queue;
mod echo;
mod evidence;
mod foreign;
pub mod http;
mod iperf3;
mod measure;
mod probes;
mod profiles;
mod readings;
mod record;
mod request_log;
mod requests;
mod series;
mod stage;
mod summary;
#[cfg(test)]
mod tests;
mod traffic;
mod verdict;

use core::time::Duration;
use std::sync::Arc;

use linerate_analysis::traffic_profiles::TrafficProfile;
use linerate_documents::run::{PhaseSpan, SampleSeries};
use linerate_model::limit::LimitShares;
use linerate_model::load::{LoadDocument, PhaseKind};
use linerate_sys::signals::InterruptSignals;
use linerate_units::{BitRate, ByteCount, StreamCount};

use crate::phases::{self, AbortReason, FarService};
use crate::probe::messages::FarFacts;
use crate::probe::{AnsweringService, ProbeError, ProbeTarget};
use crate::rr::QuicTransactions;
use record::LoadRecord;

pub use readings::{ClassRoundTrips, LoadTestSamples, PhaseSamples};
pub use requests::RequestTransport;

/// Time between two profiles.
const PROFILE_SETUP: Duration = Duration::from_secs(2);

/// Options of a measurement of latency under load.
#[derive(Clone, Debug)]
pub struct LoadTestOptions {
    /// The other end.
    pub target: ProbeTarget,
    /// Congestion control of the load at both ends, by the kernel's name; `None` for each host's default.
    pub congestion_control: Option<String>,
    /// Connections of the load in each direction.
    pub connections: StreamCount,
    /// The phases in their order. Without [`PhaseKind::Idle`] at the front there is no baseline, and no grade.
    pub phases: Vec<PhaseKind>,
    /// Duration of the idle phase.
    pub idle_time: Duration,
    /// Counted duration of a loaded phase.
    pub load_time: Duration,
    /// Longest ramp of the load; after that it counts even if it is unstable.
    pub ramp_limit: Duration,
    /// Time between two probes of one class.
    pub probe_interval: Duration,
    /// True when probes become rarer where they would exceed a tenth of the packets.
    pub spare_slow_paths: bool,
    /// True when new connections are made while the path is loaded, to measure their cost.
    pub foreign_probes: bool,
    /// True when the ECN codepoints are probed, too, to find a dual queue.
    pub codepoints: bool,
    /// True when the hops next to this host are probed, to locate the queue.
    pub hops: bool,
    /// Traffic profiles that run next to each phase, each for the time of a loaded phase; streams for 20 s at least.
    pub profiles: Vec<TrafficProfile>,
    /// Open connections whose requests are probes, too.
    pub requests: Vec<RequestTransport>,
    /// QUIC of this process; `None` is none.
    pub quic: Option<Arc<dyn QuicTransactions>>,
    /// Capacity of the path if measured before, for the announced amount of data.
    pub capacity: Option<BitRate>,
}

impl LoadTestOptions {
    /// Defaults of `linerate load`.
    #[must_use]
    pub fn new(target: ProbeTarget) -> Self {
        Self {
            target,
            congestion_control: Some("cubic".to_owned()),
            connections: StreamCount::new(4),
            phases: vec![PhaseKind::Idle, PhaseKind::Down, PhaseKind::Up, PhaseKind::Both],
            idle_time: Duration::from_secs(6),
            load_time: Duration::from_secs(10),
            ramp_limit: Duration::from_secs(20),
            probe_interval: Duration::from_millis(50),
            spare_slow_paths: true,
            foreign_probes: true,
            codepoints: false,
            hops: true,
            profiles: Vec::new(),
            requests: Vec::new(),
            quic: None,
            capacity: None,
        }
    }

    /// Expected duration: when the load becomes stable after about five seconds, as on most paths, and at most, with
    /// the longest ramps and queues that drain slowly.
    #[must_use]
    pub fn expected_time(&self) -> (Duration, Duration) {
        let profiles: Duration =
            self.profiles.iter().map(|profile| profile.duration(self.load_time) + PROFILE_SETUP).sum();
        let each = |kind: &PhaseKind, ramp: Duration, drain: Duration| match kind {
            PhaseKind::Idle => self.idle_time + profiles,
            _ => ramp + self.load_time + profiles + drain,
        };
        let total = |ramp: Duration, drain: Duration| self.phases.iter().map(|kind| each(kind, ramp, drain)).sum();
        let usual = self.ramp_limit.min(Duration::from_secs(5));
        (total(usual, Duration::from_secs(1)), total(self.ramp_limit, stage::LONGEST_DRAIN))
    }
}

/// Progress of a measurement of latency under load.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadEvent {
    /// The other end answers; the usual and the longest duration of the measurement, and the path's known capacity.
    Announcement {
        /// With loads that become stable soon.
        usual: Duration,
        /// With the longest ramps.
        most: Duration,
        /// [`LoadTestOptions::capacity`].
        capacity: Option<BitRate>,
    },
    /// A phase begins; its load needs some time before it counts.
    Phase(PhaseKind),
    /// The load is stable, or its ramp has ended: it counts from now on, for this duration.
    Counting(PhaseKind, Duration),
    /// A traffic profile begins next to the load of the phase, for this duration.
    Profile(PhaseKind, TrafficProfile, Duration),
    /// Current figures, a few times a second.
    Progress(LoadFigures),
    /// Note for the user.
    Note(String),
}

/// Current figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadFigures {
    /// Median of the latest round trips.
    pub round_trip: Option<Duration>,
    /// Goodput of the load to the far end.
    pub up: Option<BitRate>,
    /// Goodput of the load from the far end.
    pub down: Option<BitRate>,
    /// Limits of the connections that send from here, in the last half second; `None` where the far end sends.
    pub limits: Option<LimitShares>,
    /// Remaining time of the phase, where known.
    pub left: Option<Duration>,
}

/// Result of a measurement of latency under load.
#[derive(Clone, Debug)]
pub struct LoadTestOutcome {
    /// All figures.
    pub document: LoadDocument,
    /// Samples over time.
    pub series: Vec<SampleSeries>,
    /// Time spans of the phases.
    pub phases: Vec<PhaseSpan>,
    /// Samples of the phases.
    pub readings: LoadTestSamples,
    /// Facts about its host that a linerate at the far end reports.
    pub far: Option<FarFacts>,
    /// Bytes sent over this host's interface by the measurement, headers estimated generously.
    pub sent: ByteCount,
    /// The same, received.
    pub received: ByteCount,
    /// Reason of a missing or partial result; `None` after an interrupt.
    pub error: Option<ProbeError>,
}

/// Runs the measurement and reports its events to `observer`. `stop` ends it early with a partial result.
pub fn run(
    options: &LoadTestOptions,
    stop: Option<InterruptSignals>,
    observer: &mut dyn FnMut(&LoadEvent),
) -> LoadTestOutcome {
    let mut record = LoadRecord::new(options, stop, observer);
    let result = measure(&mut record);
    record.finish(result)
}

fn measure(record: &mut LoadRecord<'_>) -> Result<(), AbortReason> {
    match phases::far_end(&record.options.target, record.stop)? {
        FarService::Probes(session) => measure::measure(record, &session),
        FarService::Tests { outdated } => {
            let answering = if outdated { AnsweringService::WithoutProbes } else { AnsweringService::Iperf3 };
            profiles::check_far_end(record, answering)?;
            requests::check_far_end(record, answering)?;
            if outdated {
                record.note(phases::OUTDATED_NOTE);
            }
            iperf3::measure(record)
        }
        FarService::Neither(error) => {
            profiles::check_far_end(record, AnsweringService::Silence)?;
            requests::check_far_end(record, AnsweringService::Silence)?;
            bare::measure(record, &error.to_string())
        }
    }
}
