//! Measures a path: sizes, delays, losses, order, marks, hops, capacity and policers, per direction (RFC 6349 steps 1
//! and 2, the metrics of IPPM).
//!
//! [`run`] goes through the phases of [`PathPhase`], fills a [`PathDocument`] and reports progress as [`PathEvent`]s.
//! Against a server with probe sessions ([`crate::probe`]) both directions are measured; against a STAMP reflector, an
//! iperf3 server or a host without any of them, the figures that this end can measure, and the document gives the
//! reason for each missing one. An interrupted measurement is a partial one, not an error.
//!
//! | file | phase |
//! |---|---|
//! | `linerate` | the order of phases against a linerate |
//! | `mtu` | path MTU, by [`linerate_analysis::path_mtu`] |
//! | `idle` | round trips, and one-way streams in both directions |
//! | `marks` | ECN codepoints and DSCPs |
//! | `hops` | routers of the path |
//! | `search`, `policer` | capacity, by [`linerate_analysis::capacity`], and policers, by a stream above it |
//! | `bare`, `stamp`, `iperf3` | other peers |
//! | `blind` | a stream at a rate without a control connection, sent or received |
//! | `echo`, `handshake`, `tcp` | measurements that every host allows |

mod bare;
mod below_capacity;
mod blind;
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
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_documents::run::{PhaseSpan, SampleSeries};
use linerate_model::path::{PathDocument, PeerKind};
use linerate_sys::signals::InterruptSignals;
use linerate_units::{BitRate, ByteCount, PacketCount, Port};

use crate::phases::{self, AbortReason, FarService};
use crate::probe::messages::FarFacts;
use crate::probe::{ProbeError, ProbeTarget};
pub use blind::BlindStream;
pub use hops::{HopOptions, HopRound, HopsSnapshot, LabelOptions};
use record::PathRecord;

/// Options of a path measurement.
#[derive(Clone, Debug)]
pub struct PathOptions {
    /// The other end.
    pub target: ProbeTarget,
    /// Port of a STAMP reflector, used when no linerate answers.
    pub stamp_port: Port,
    /// Packets of the one-way streams per direction, at most: a slow link gets fewer.
    pub count: PacketCount,
    /// Mean time between them at least: a slow link gets more.
    pub interval: Duration,
    /// True for random intervals (RFC 2330 §11.1.1) instead of periodic ones (RFC 3432).
    pub poisson: bool,
    /// True when the path MTU is searched.
    pub path_mtu: bool,
    /// True when the routers of the path are probed.
    pub hops: bool,
    /// Options of their measurement.
    pub route: Box<HopOptions>,
    /// True when nothing but the routers is measured.
    pub only_hops: bool,
    /// Stream that is sent or received as the whole measurement, without a control connection.
    pub blind: Option<BlindStream>,
    /// True when the capacity is searched, which fills the path for some seconds per direction.
    pub capacity: bool,
    /// Highest rate to try; `None` for the limit of this host.
    pub max_rate: Option<BitRate>,
    /// Most bytes that the search may send per direction.
    pub max_traffic: Option<ByteCount>,
}

impl PathOptions {
    /// Defaults of `linerate path`.
    #[must_use]
    pub fn new(target: ProbeTarget) -> Self {
        Self {
            target,
            stamp_port: Port::STAMP,
            count: PacketCount::new(1000),
            interval: Duration::from_millis(5),
            poisson: true,
            path_mtu: true,
            hops: true,
            route: Box::default(),
            only_hops: false,
            blind: None,
            capacity: true,
            max_rate: None,
            max_traffic: None,
        }
    }
}

/// Parts of the measurement, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathPhase {
    /// Detection of the server.
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
    /// Policer detection.
    Policer,
    /// The wait for the first packet of a stream.
    Waiting,
    /// A stream at a rate, sent or received.
    Stream,
}

impl PathPhase {
    /// Name in the output and in documents.
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
            Self::Waiting => "waiting",
            Self::Stream => "stream",
        }
    }
}

/// Progress of a path measurement.
#[derive(Clone, Debug, PartialEq)]
pub enum PathEvent {
    /// A phase begins, with its expected duration; zero where it has none, but ends by itself or when it is stopped.
    Phase(PathPhase, Duration),
    /// Most bytes that the capacity searches will send, both directions together.
    Announcement(ByteCount),
    /// A probe was answered.
    RoundTrip(Duration),
    /// Current receive rate of a search.
    Rate(Direction, BitRate),
    /// Hops after a round, where nothing else is measured.
    Hops(Box<HopsSnapshot>),
    /// Note for the user.
    Note(String),
}

/// A measured path.
#[derive(Clone, Debug)]
pub struct PathOutcome {
    /// All figures.
    pub document: PathDocument,
    /// Samples over time.
    pub series: Vec<SampleSeries>,
    /// Time spans of the phases.
    pub phases: Vec<PhaseSpan>,
    /// Facts about its host that a linerate at the far end reports.
    pub far: Option<FarFacts>,
    /// IP bytes sent by the measurement, as far as counted.
    pub sent: ByteCount,
    /// IP bytes received by the measurement.
    pub received: ByteCount,
    /// Reason of a missing or partial result; `None` after an interrupt.
    pub error: Option<ProbeError>,
}

/// Runs the measurement and reports its events to `observer`. `stop` ends it early with a partial result.
pub fn run(options: &PathOptions, stop: Option<InterruptSignals>, observer: &mut dyn FnMut(&PathEvent)) -> PathOutcome {
    let mut record = PathRecord::new(options, stop, observer);
    let result = measure(&mut record);
    record.finish(result)
}

fn measure(record: &mut PathRecord<'_>) -> Result<(), AbortReason> {
    if record.options.only_hops {
        return hops::measure_alone(record);
    }
    if let Some(stream) = record.options.blind {
        return blind::measure(record, stream);
    }
    record.phase(PathPhase::Connect, Duration::from_millis(500));
    match phases::far_end(&record.options.target, record.stop)? {
        FarService::Probes(session) => linerate::measure(record, &session),
        FarService::Tests { outdated } => {
            if outdated {
                record.note(phases::OUTDATED_NOTE);
            }
            iperf3::measure(record)
        }
        FarService::Neither(ProbeError::Unreachable(reason)) => bare::measure(record, Some(reason)),
        FarService::Neither(_) => bare::measure(record, None),
    }
}

/// Reason for missing figures of a peer.
const fn unknown_reason(peer: PeerKind) -> &'static str {
    match peer {
        PeerKind::Linerate => "the far end did not take part",
        PeerKind::Iperf3 => "an iperf3 server does not report it: start a linerate at the far end (`linerate serve`)",
        PeerKind::Stamp => "a STAMP reflector does not report it: start a linerate at the far end (`linerate serve`)",
        PeerKind::StampSender => "nothing was sent to the sender of the stream (--receive)",
        PeerKind::Bare | PeerKind::Http => {
            "the host has no measurement service: start a linerate at the far end (`linerate serve`)"
        }
    }
}
