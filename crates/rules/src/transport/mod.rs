//! Comparison of TCP and QUIC over one path: which of them is slower, and why.
//!
//! One rule per file, in the order of `RULES`: the first that applies is the verdict of a direction. A cause on a host
//! goes before one of the path, since it also makes losses; a full processor before a full buffer, since it leaves packets there.

mod blocked;
mod buffer_small;
mod processor_bound;
mod speed;
mod throttled;

use core::time::Duration;

use linerate_model::direction::Direction;
use linerate_model::quic::{QuicResult, QuicRun, TransportCause, TransportVerdict};
use linerate_model::throughput::{ThroughputResult, ThroughputRun};
use linerate_units::{BitRate, Port, Ratio, SegmentCount, StreamCount, display};

/// Ratio of the rates below which QUIC is slower, and above whose inverse it is faster.
const MIN_SAME: f64 = 0.9;

/// Figures of TCP and of QUIC in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct TransportObservation {
    /// Direction; `None` when no transfer over QUIC was possible.
    pub direction: Option<Direction>,
    /// UDP port of the server.
    pub port: Port,
    /// TCP over one connection.
    pub tcp: Option<TcpFigures>,
    /// QUIC over one connection.
    pub quic: Option<QuicRun>,
    /// True when no QUIC packet was answered.
    pub unanswered: bool,
}

/// Figures of TCP over one connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TcpFigures {
    /// Goodput.
    pub rate: BitRate,
    /// Retransmitted share of its segments; `None` when the sender did not report it.
    pub retransmitted: Option<Ratio>,
    /// Median of its round trips under load.
    pub loaded_rtt: Option<Duration>,
    /// Congestion control of the sender.
    pub congestion_control: Option<String>,
}

impl TransportObservation {
    /// Goodput of QUIC as a share of TCP's.
    fn ratio(&self) -> Option<f64> {
        let (tcp, quic) = (self.tcp.as_ref()?.rate, self.quic.as_ref()?.rate()?);
        (!tcp.is_zero()).then(|| quic.bits_per_second() / tcp.bits_per_second())
    }

    fn is_slower(&self) -> bool {
        self.ratio().is_some_and(|ratio| ratio < MIN_SAME)
    }

    /// `QUIC carries 430 Mbit/s up, TCP 941 Mbit/s`.
    fn rates(&self) -> Option<String> {
        let (tcp, quic) = (self.tcp.as_ref()?.rate, self.quic.as_ref()?.rate()?);
        let direction = self.direction.map_or("", Direction::name);
        Some(format!("QUIC carries {} {direction}, TCP {}", display::rate(quic), display::rate(tcp)))
    }
}

/// Text of a verdict, and its remedy.
type VerdictText = (String, Option<String>);

/// A rule of the comparison.
struct TransportRule {
    cause: TransportCause,
    /// Returns the verdict where it applies.
    check: fn(&TransportObservation) -> Option<VerdictText>,
}

/// All rules; the first that applies decides.
const RULES: &[TransportRule] = &[
    blocked::RULE,
    processor_bound::RULE,
    buffer_small::RULE,
    throttled::RULE,
    speed::SLOWER,
    speed::FASTER,
    speed::SAME,
];

/// Compares the transports of a series; at most one verdict per direction.
#[must_use]
pub fn compare(result: &ThroughputResult, quic: &QuicResult) -> Vec<TransportVerdict> {
    let observed = |direction: Option<Direction>| TransportObservation {
        direction,
        port: quic.port,
        tcp: result.runs.iter().filter(|run| direction.is_none_or(|one| run.direction == one)).find_map(figures),
        quic: quic
            .runs
            .iter()
            .find(|run| Some(run.direction) == direction && run.streams == 1 && !run.interrupted)
            .cloned(),
        unanswered: quic.unanswered,
    };
    let whole = verdict(&observed(None)).filter(|verdict| verdict.cause == TransportCause::UdpBlocked);
    match whole {
        Some(whole) => vec![whole],
        None => Direction::BOTH.into_iter().filter_map(|direction| verdict(&observed(Some(direction)))).collect(),
    }
}

/// Verdict of one direction; `None` when one of the two was not measured.
#[must_use]
pub fn verdict(observation: &TransportObservation) -> Option<TransportVerdict> {
    RULES.iter().find_map(|rule| {
        let (text, remedy) = (rule.check)(observation)?;
        Some(TransportVerdict { direction: observation.direction, cause: rule.cause, text, remedy })
    })
}

fn figures(run: &ThroughputRun) -> Option<TcpFigures> {
    let single = run.streams == StreamCount::new(1);
    let rate = single.then(|| run.rate()).flatten()?.rate;
    let control = match run.direction {
        Direction::Up => &run.report.local_congestion,
        Direction::Down => &run.report.remote_congestion,
    };
    Some(TcpFigures {
        rate,
        retransmitted: retransmitted(run),
        loaded_rtt: run.loaded_rtt().map(|rtt| rtt.median),
        congestion_control: control.clone(),
    })
}

/// Retransmitted share of the segments, of the size of Ethernet's.
fn retransmitted(run: &ThroughputRun) -> Option<Ratio> {
    const SEGMENT: f64 = 1448.0;
    let (segments, bytes) = (run.retransmits().map(SegmentCount::as_f64)?, run.received().or(run.sent())?);
    let all = bytes.as_f64() / SEGMENT + segments;
    Ratio::of(segments, all)
}
