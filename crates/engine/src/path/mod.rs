//! Measures a path: sizes, delays, losses, order, marks, hops, capacity and policers, each way (RFC 6349 steps 1 and 2,
//! the metrics of IPPM).
//!
//! [`run`] goes through the phases of [`PathPhase`] and fills a [`PathDocument`]; what happens on the way is told as
//! [`PathEvent`]s. Against a server with probe sessions ([`crate::probe`]) both directions are measured; against a STAMP
//! reflector, an iperf3 server or a host without any of them, what can be known from this end, and the document says why
//! the rest is not. An interrupted measurement is a partial one, not an error.
//!
//! | file | phase |
//! |---|---|
//! | `linerate` | the order of phases against a linerate |
//! | `mtu` | path MTU, by [`linerate_model::path_mtu`] |
//! | `idle` | round trips, and one-way streams in both directions |
//! | `marks` | ECN codepoints and DSCPs |
//! | `hops` | who answers on the way |
//! | `search` | capacity, by [`linerate_model::capacity`], and what a policer leaves in a stream above it |
//! | `bare`, `stamp`, `iperf3` | other peers |
//! | `echo`, `handshake`, `tcp` | what every host tells |

mod bare;
mod convert;
mod echo;
mod handshake;
mod hops;
mod idle;
mod iperf3;
mod linerate;
mod marks;
mod mtu;
mod policer;
mod record;
mod search;
mod stamp;
mod tcp;

use core::time::Duration;

use linerate_model::schema::path::{PathDocument, Peer};
use linerate_model::schema::run::{PhaseSpan, Series};
use linerate_model::schema::throughput::Direction;
use linerate_sys::signals::Interrupts;
use linerate_units::{BitRate, ByteCount, PacketCount, Port};

use crate::course::{self, FarEnd, Halt};
use crate::probe::messages::FarFacts;
use crate::probe::{ProbeError, Target};
use record::Record;

/// A path to measure.
#[derive(Clone, Debug)]
pub struct PathOptions {
    /// The other end.
    pub target: Target,
    /// Where a STAMP reflector is looked for, when no linerate answers.
    pub stamp_port: Port,
    /// Packets of the one-way streams, each way, at most: a slow line gets fewer.
    pub count: PacketCount,
    /// Mean time between them at least: a slow line gets more.
    pub interval: Duration,
    /// Whether they follow each other at random (RFC 2330 §11.1.1) instead of periodically (RFC 3432).
    pub poisson: bool,
    /// Whether to ask the routers on the way.
    pub hops: bool,
    /// Whether to search for the capacity, which fills the path for some seconds each way.
    pub capacity: bool,
    /// Highest rate to try; `None` for what this host can send.
    pub max_rate: Option<BitRate>,
    /// Most bytes that the search may send each way.
    pub max_traffic: Option<ByteCount>,
}

impl PathOptions {
    /// As `linerate path` does when nothing else is said.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            stamp_port: Port::STAMP,
            count: PacketCount::new(1000),
            interval: Duration::from_millis(5),
            poisson: true,
            hops: true,
            capacity: true,
            max_rate: None,
            max_traffic: None,
        }
    }
}

/// Parts of the measurement, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathPhase {
    /// Who is there.
    Connect,
    /// Path MTU.
    PathMtu,
    /// Without load.
    Idle,
    /// ECN codepoints and DSCPs.
    Marks,
    /// Hops.
    Hops,
    /// Capacity to the far end.
    CapacityUp,
    /// Capacity from the far end.
    CapacityDown,
    /// Whether a policer is on the way.
    Policer,
}

impl PathPhase {
    /// Its name for people and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::PathMtu => "path MTU",
            Self::Idle => "idle",
            Self::Marks => "marks",
            Self::Hops => "hops",
            Self::CapacityUp => "capacity up",
            Self::CapacityDown => "capacity down",
            Self::Policer => "policer",
        }
    }
}

/// What happens while a path is measured.
#[derive(Clone, Debug, PartialEq)]
pub enum PathEvent {
    /// A phase begins; it takes about so long.
    Phase(PathPhase, Duration),
    /// The capacity searches will send no more than this, both ways together.
    Announcement(ByteCount),
    /// A probe came back.
    RoundTrip(Duration),
    /// What arrives in a search at present.
    Rate(Direction, BitRate),
    /// Something that a person should know now.
    Note(String),
}

/// A measured path.
#[derive(Clone, Debug)]
pub struct PathOutcome {
    /// All figures.
    pub document: PathDocument,
    /// Readings over time.
    pub series: Vec<Series>,
    /// When which phase was.
    pub phases: Vec<PhaseSpan>,
    /// What a linerate at the far end says of its host.
    pub far: Option<FarFacts>,
    /// IP bytes of what the measurement sent, as far as it was counted.
    pub sent: ByteCount,
    /// IP bytes of what was sent to it.
    pub received: ByteCount,
    /// Why nothing, or not all, could be measured; an interrupted measurement has nothing here.
    pub error: Option<ProbeError>,
}

/// Measures; all that happens is told to `observer`. `stop` ends it early, with what has been measured so far.
pub fn run(options: &PathOptions, stop: Option<Interrupts>, observer: &mut dyn FnMut(&PathEvent)) -> PathOutcome {
    let mut record = Record::new(options, stop, observer);
    let result = measure(&mut record);
    record.finish(result)
}

fn measure(record: &mut Record<'_>) -> Result<(), Halt> {
    record.phase(PathPhase::Connect, Duration::from_millis(500));
    match course::far_end(&record.options.target, record.stop)? {
        FarEnd::Probes(session) => linerate::measure(record, &session),
        FarEnd::Tests { outdated } => {
            if outdated {
                record.note(course::OUTDATED);
            }
            iperf3::measure(record)
        }
        FarEnd::Neither(ProbeError::Unreachable(reason)) => bare::measure(record, Some(reason)),
        FarEnd::Neither(_) => bare::measure(record, None),
    }
}

/// What a document says of a peer.
const fn protocol_of(peer: Peer) -> &'static str {
    match peer {
        Peer::Linerate => "the far end did not do its part",
        Peer::Iperf3 => "an iperf3 server cannot tell: it needs a linerate (`linerate serve`) at the far end",
        Peer::Stamp => "a STAMP reflector cannot tell: it needs a linerate (`linerate serve`) at the far end",
        Peer::Bare => "the host has no measurement service: it needs a linerate (`linerate serve`) at the far end",
    }
}
