//! Latency under load: probes of several classes while TCP fills the path down, up, and both ways.
//!
//! [`run`] goes through the phases and fills a [`LoadDocument`]; what happens on the way is told as [`LoadEvent`]s. Probes
//! run through the whole measurement at the same distances, so that phases differ by nothing but the load; what each
//! phase is judged by are the probes sent while its load stood still. An interrupted measurement is a partial one, not an
//! error.
//!
//! | file | what it does |
//! |---|---|
//! | `measure` | the phases against a linerate (`linerate serve`) |
//! | `iperf3`, `bare` | other peers |
//! | `stage` | one loaded phase: connections, and when counting begins |
//! | `probes`, `echo`, `foreign` | the probes |
//! | `traffic` | what went through the interfaces, and what of it was the measurement's own |
//! | `evidence` | what was seen |
//! | `summary`, `verdict`, `series`, `readings` | what follows from it: no clocks, no sockets |

mod bare;
mod echo;
mod evidence;
mod foreign;
mod iperf3;
mod measure;
mod probes;
mod readings;
mod record;
mod series;
mod stage;
mod summary;
mod traffic;
mod verdict;

use core::time::Duration;

use linerate_model::schema::load::{LoadDocument, PhaseKind};
use linerate_model::schema::run::{PhaseSpan, Series};
use linerate_sys::signals::Interrupts;
use linerate_units::{BitRate, ByteCount, StreamCount};

use crate::course::{self, FarEnd, Halt};
use crate::probe::messages::FarFacts;
use crate::probe::{ProbeError, Target};
use record::Record;

pub use readings::{ClassRoundTrips, LoadReadings, PhaseReadings};

/// A measurement of latency under load.
#[derive(Clone, Debug)]
pub struct LoadTestOptions {
    /// The other end.
    pub target: Target,
    /// Congestion control of the load at both ends, by the kernel's name; `None` for what each has by default.
    pub congestion_control: Option<String>,
    /// Connections of the load in each direction.
    pub connections: StreamCount,
    /// The phases in their order. Without [`PhaseKind::Idle`] at the front there is nothing to compare with, and no grade.
    pub phases: Vec<PhaseKind>,
    /// How long the idle path is probed.
    pub idle_time: Duration,
    /// How long a loaded phase counts.
    pub load_time: Duration,
    /// How long the load may take to become stable; after that it counts as it is.
    pub ramp_limit: Duration,
    /// Time between two probes of one class.
    pub probe_interval: Duration,
    /// Whether probes become rarer where they would be more than a tenth of the packets.
    pub spare_slow_paths: bool,
    /// Whether new connections are made while the path is loaded, to measure what they cost.
    pub foreign_probes: bool,
    /// Whether the hops next to this host are probed, to find where the queue stands.
    pub hops: bool,
}

impl LoadTestOptions {
    /// As `linerate load` does when nothing else is said.
    #[must_use]
    pub fn new(target: Target) -> Self {
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
            hops: true,
        }
    }

    /// How long it takes when the load becomes stable after about five seconds, as on most paths, and at most: with the
    /// longest ramps, and queues that drain slowly.
    #[must_use]
    pub fn expected_time(&self) -> (Duration, Duration) {
        let each = |kind: &PhaseKind, ramp: Duration, drain: Duration| match kind {
            PhaseKind::Idle => self.idle_time,
            _ => ramp + self.load_time + drain,
        };
        let total = |ramp: Duration, drain: Duration| self.phases.iter().map(|kind| each(kind, ramp, drain)).sum();
        let usual = self.ramp_limit.min(Duration::from_secs(5));
        (total(usual, Duration::from_secs(1)), total(self.ramp_limit, stage::LONGEST_DRAIN))
    }
}

/// What happens while latency under load is measured.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadEvent {
    /// The other end is there, and this is about to take so long: usually, and at most.
    Announcement {
        /// With loads that become stable soon.
        usual: Duration,
        /// With the longest ramps.
        most: Duration,
    },
    /// A phase begins; its load may take some time before it counts.
    Phase(PhaseKind),
    /// The load stands still, or has had its time: from now on it counts, for so long.
    Counting(PhaseKind, Duration),
    /// How it stands, a few times a second.
    Progress(Progress),
    /// Something that a person should know now.
    Note(String),
}

/// How it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Median of the round trips of the last moment.
    pub round_trip: Option<Duration>,
    /// Goodput of the load to the far end.
    pub up: Option<BitRate>,
    /// Goodput of the load from the far end.
    pub down: Option<BitRate>,
    /// What is left of the phase, where that is known.
    pub left: Option<Duration>,
}

/// Measured latency under load.
#[derive(Clone, Debug)]
pub struct LoadTestOutcome {
    /// All figures.
    pub document: LoadDocument,
    /// Readings over time.
    pub series: Vec<Series>,
    /// When which phase was.
    pub phases: Vec<PhaseSpan>,
    /// What the phases saw, reading by reading.
    pub readings: LoadReadings,
    /// What a linerate at the far end says of its host.
    pub far: Option<FarFacts>,
    /// Bytes that the measurement sent over this host's interface, headers estimated generously.
    pub sent: ByteCount,
    /// The same, received.
    pub received: ByteCount,
    /// Why nothing, or not all, could be measured; an interrupted measurement has nothing here.
    pub error: Option<ProbeError>,
}

/// Measures; all that happens is told to `observer`. `stop` ends it early, with what has been measured so far.
pub fn run(
    options: &LoadTestOptions,
    stop: Option<Interrupts>,
    observer: &mut dyn FnMut(&LoadEvent),
) -> LoadTestOutcome {
    let mut record = Record::new(options, stop, observer);
    let result = measure(&mut record);
    record.finish(result)
}

fn measure(record: &mut Record<'_>) -> Result<(), Halt> {
    match course::far_end(&record.options.target, record.stop)? {
        FarEnd::Probes(session) => measure::measure(record, &session),
        FarEnd::Tests { outdated } => {
            if outdated {
                record.note(course::OUTDATED);
            }
            iperf3::measure(record)
        }
        FarEnd::Neither(error) => bare::measure(record, &error.to_string()),
    }
}
