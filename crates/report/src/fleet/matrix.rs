//! Matrix of a fleet: for each ordered pair of hosts the states of that direction, in the order of their times.

use std::collections::BTreeMap;
use std::time::Duration;

use linerate_documents::fleet_result::{FleetResult, SessionOutcome};
use linerate_model::diagnosis::{CauseLocation, DiagnosisVerdict};
use linerate_model::direction::Direction;
use linerate_units::{BitRate, Ratio, WallTime};

/// Results of a fleet by direction.
#[derive(Debug)]
pub struct FleetMatrix<'a> {
    /// Names of the hosts, in alphabetical order.
    pub hosts: Vec<&'a str>,
    /// Directions that have results, by the indices of the sending and the receiving host.
    pub directions: BTreeMap<(usize, usize), DirectedResults<'a>>,
    /// Number of results.
    pub count: usize,
    /// Number of those that are left out: another member than their source published them.
    pub foreign: usize,
}

/// States of one direction, the earliest first.
#[derive(Debug, Default)]
pub struct DirectedResults<'a> {
    /// States.
    pub states: Vec<CellState<'a>>,
}

/// Result of one test for one direction.
#[derive(Clone, Debug)]
pub struct CellState<'a> {
    /// Planned time.
    pub at: WallTime,
    /// Result.
    pub result: &'a FleetResult,
    /// Cause that limits this direction; `None` when the test looks for none.
    pub cause: Option<&'a DiagnosisVerdict>,
    /// Goodput of this direction.
    pub goodput: Option<BitRate>,
    /// Delay that a load of this direction adds to the round trip.
    pub added_delay: Option<Duration>,
    /// Idle round trip.
    pub round_trip: Option<Duration>,
    /// Lost share of the probes of this direction.
    pub loss: Option<Ratio>,
}

impl<'a> FleetMatrix<'a> {
    /// Matrix of results, which are in the order of their times.
    #[must_use]
    pub fn new(results: &'a [FleetResult]) -> Self {
        let own = || results.iter().filter(|result| result.publisher.is_none());
        let mut hosts: Vec<&str> =
            own().flat_map(|result| [result.source.as_str(), result.destination.as_str()]).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let mut matrix = Self { hosts, directions: BTreeMap::new(), count: results.len(), foreign: 0 };
        matrix.foreign = results.len() - own().count();
        for result in own() {
            let [Some(source), Some(destination)] =
                [&result.source, &result.destination].map(|name| matrix.hosts.binary_search(&name.as_str()).ok())
            else {
                continue;
            };
            for (direction, ends) in [(Direction::Up, (source, destination)), (Direction::Down, (destination, source))]
            {
                if let Some(state) = CellState::new(result, direction) {
                    matrix.directions.entry(ends).or_default().states.push(state);
                }
            }
        }
        matrix
    }
}

impl<'a> CellState<'a> {
    /// State of a direction; `None` when the test did not measure it.
    fn new(result: &'a FleetResult, direction: Direction) -> Option<Self> {
        let name = direction.name();
        let figure = |name: &str| result.figure(name);
        let time = |name: &str| figure(name).and_then(|value| Duration::try_from_secs_f64(value / 1e9).ok());
        let goodput = figure(&format!("goodput_{name}"));
        let run = result.run.as_deref();
        let cause = run.and_then(|run| run.first_cause(direction));
        let round_trip = time("rtt_idle_median");
        let loaded = time(&format!("rtt_loaded_{name}"));
        let added = loaded.zip(round_trip).map(|(loaded, idle)| loaded.saturating_sub(idle));
        let loss = figure(&format!("loss_{name}"));
        let is_light = run.is_none() && result.outcome == SessionOutcome::Done;
        let is_other_direction =
            result.outcome == SessionOutcome::Done && !is_light && goodput.is_none() && cause.is_none();
        (!is_other_direction).then_some(Self {
            at: result.at(),
            result,
            cause,
            goodput: goodput.map(BitRate::from_bits_per_second),
            added_delay: time(&format!("added_{name}_p95")).or(added),
            round_trip,
            loss: loss.and_then(Ratio::new),
        })
    }

    /// True for a result that says what limits the direction, or why there is none.
    #[must_use]
    pub fn is_judgement(&self) -> bool {
        self.cause.is_some() || self.goodput.is_some() || self.result.outcome != SessionOutcome::Done
    }

    /// True when something other than the path's full use limits the direction.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        self.cause
            .is_some_and(|verdict| !matches!(verdict.cause.location(), CauseLocation::Nowhere | CauseLocation::Unknown))
    }
}

impl<'a> DirectedResults<'a> {
    /// Latest state that says what limits the direction.
    #[must_use]
    pub fn latest(&self) -> Option<&CellState<'a>> {
        self.states.iter().rev().find(|state| state.is_judgement()).or_else(|| self.states.last())
    }
}
