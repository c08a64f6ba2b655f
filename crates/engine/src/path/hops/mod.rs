//! Hops of the path: rounds of datagrams whose hop limit ends at the first router, the second one, and so on.
//!
//! All probes of a flow have the same addresses and ports, so that routers which choose among routes of equal cost by flow
//! send them over one route ("Paris"); each round uses the next flow, with a source port of its own, so that the other
//! routes are seen, too ("Dublin"). A round is one probe for each hop: most routers answer one packet a second to each
//! host. The probe's identity is in its payload ([`HopProbe`]), which routers quote.
//!
//! [`HopProbe`]: linerate_wire::hop_probe::HopProbe

mod flow;
mod labels;
mod mtu;
mod prober;
mod report;
mod rounds;
mod tally;
#[cfg(test)]
mod tests;

use core::time::Duration;
use std::net::SocketAddr;

use linerate_model::route::{PathHop, RouteReport};
use linerate_sys::net;

use super::record::PathRecord;
use super::{PathPhase, idle};
use crate::phases::AbortReason;
use crate::probe::ProbeError;

pub use labels::LabelOptions;
use prober::HopProber;
pub use rounds::HopRound;

/// Options of the measurement of hops.
#[derive(Clone, Debug)]
pub struct HopOptions {
    /// Flows, each with a source port of its own, at least 1.
    pub flows: u16,
    /// Rounds; `None` until an interrupt.
    pub rounds: Option<u64>,
    /// Time from one round to the next.
    pub interval: Duration,
    /// Names and autonomous systems of the addresses.
    pub labels: LabelOptions,
}

impl Default for HopOptions {
    /// Those of a measurement of the whole path: six routes of equal cost are seen in less than a second.
    fn default() -> Self {
        Self { flows: 6, rounds: Some(6), interval: Duration::from_millis(100), labels: LabelOptions::default() }
    }
}

/// Hops so far.
#[derive(Clone, Debug, PartialEq)]
pub struct HopsSnapshot {
    /// Hops, nearest first.
    pub hops: Vec<PathHop>,
    /// Route as a whole.
    pub route: RouteReport,
    /// Results of the latest 240 rounds at most, of each of `hops`, oldest first.
    pub rounds: Vec<Vec<HopRound>>,
}

/// Measures the hops; `routers` is their number, where it is known from the received hop limits. What was measured before an
/// interrupt is in the document.
pub(super) fn measure(record: &mut PathRecord<'_>, peer: SocketAddr, routers: Option<u8>) -> Result<(), AbortReason> {
    let mut prober = match HopProber::open(record, peer, routers) {
        Ok(prober) => prober,
        Err(reason) => {
            record.unknown("hops", reason);
            return Ok(());
        }
    };
    let result = prober.run(record);
    prober.finish(record);
    result
}

/// Measures nothing but the hops.
pub(super) fn measure_alone(record: &mut PathRecord<'_>) -> Result<(), AbortReason> {
    let (target, options) = (&record.options.target, &record.options.route);
    let unreachable = |reason: String| AbortReason::Failed(ProbeError::Unreachable(reason));
    let addresses = net::resolve(target.address(), target.port, target.family);
    let addresses = addresses.map_err(|error| unreachable(error.to_string()))?;
    let peer = *addresses.first().ok_or_else(|| unreachable(format!("{} has no address", target.host)))?;
    record.document.address = Some(peer.ip().to_string());
    let rounds = u32::try_from(options.rounds.unwrap_or(0)).unwrap_or(u32::MAX);
    let is_endless = options.rounds.is_none();
    let expected = options.interval.saturating_mul(rounds) + Duration::from_secs(2);
    record.phase(PathPhase::Hops, if is_endless { Duration::ZERO } else { expected });
    let result = measure(record, peer, None);
    idle::choose_best(record);
    if record.document.hops.is_empty() && result.is_ok() {
        let known = record.document.unknown.iter().find(|unknown| unknown.key == "hops");
        let silence = || format!("neither {} nor a router on the path to it answers", peer.ip());
        return Err(unreachable(known.map_or_else(silence, |unknown| unknown.reason.clone())));
    }
    match result {
        Err(AbortReason::Interrupted) if is_endless && !record.document.hops.is_empty() => Ok(()),
        result => result,
    }
}
