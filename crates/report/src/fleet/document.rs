//! Report of results as a JSON document.

use linerate_documents::fleet_report::{self, CommonFault, FleetDirection, FleetReport, UnusualFigure};
use linerate_documents::fleet_result::{FleetResult, SessionOutcome};
use linerate_documents::nanoseconds;
use linerate_units::{BitRate, Ratio};

use super::faults::faults;
use super::matrix::{CellState, FleetMatrix};

/// Document of results, which are in the order of their times.
#[must_use]
pub fn document(results: &[FleetResult], unusual: &[UnusualFigure]) -> FleetReport {
    let matrix = FleetMatrix::new(results);
    let of = |outcome| results.iter().filter(|result| result.outcome == outcome).count() as u64;
    let name = |host: usize| matrix.hosts[host].to_owned();
    let latest = matrix.directions.iter().filter_map(|(ends, direction)| Some((*ends, direction.latest()?)));
    let fault = |fault: &super::FleetFault<'_>| CommonFault {
        cause: fault.cause,
        text: fault.sentence(&matrix),
        host: fault.host.map(|(host, _)| host.to_owned()),
        directions: fault.directions.iter().map(|(from, to)| [name(*from), name(*to)]).collect(),
    };
    FleetReport {
        schema: fleet_report::SCHEMA,
        results: results.len() as u64,
        failed: of(SessionOutcome::Failed),
        skipped: of(SessionOutcome::Skipped),
        hosts: matrix.hosts.iter().map(|host| (*host).to_owned()).collect(),
        directions: latest.map(|((from, to), state)| direction([name(from), name(to)], state)).collect(),
        faults: faults(&matrix).iter().map(fault).collect(),
        unusual: unusual.to_vec(),
    }
}

fn direction([sender, receiver]: [String; 2], state: &CellState<'_>) -> FleetDirection {
    let result = state.result;
    FleetDirection {
        sender,
        receiver,
        result: result.id.clone(),
        at_unix_ns: result.at_unix_ns,
        outcome: result.outcome,
        reason: result.reason.clone(),
        cause: state.cause.map(|verdict| verdict.cause),
        goodput_bits_per_second: state.goodput.map(BitRate::bits_per_second),
        rtt_ns: state.round_trip.map(nanoseconds),
        added_delay_ns: state.added_delay.map(nanoseconds),
        loss_ratio: state.loss.map(Ratio::get),
    }
}
