//! Faults of a fleet: causes that limit several directions, and the host that these have in common.

use std::collections::BTreeMap;

use linerate_model::diagnosis::{Cause, CauseLocation};

use super::matrix::{DirectedResults, FleetMatrix};

/// Share of a host's directions that have a fault, from which it is the host's.
const COMMON: f64 = 0.75;

/// Direction: indices of the sending and the receiving host.
pub type Ends = (usize, usize);

/// Cause that limits some directions now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetFault<'a> {
    /// Cause.
    pub cause: Cause,
    /// Directions.
    pub directions: Vec<Ends>,
    /// Host that they have in common, and its end of them; `None` without one.
    pub host: Option<(&'a str, FaultEnd)>,
}

/// End of the directions at which a common host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultEnd {
    /// It sends.
    From,
    /// It receives.
    To,
    /// Either.
    Both,
}

/// Faults, that of the most directions first.
#[must_use]
pub fn faults<'a>(matrix: &FleetMatrix<'a>) -> Vec<FleetFault<'a>> {
    let mut by_cause: BTreeMap<Cause, Vec<Ends>> = BTreeMap::new();
    for (ends, direction) in &matrix.directions {
        let latest = direction.latest().filter(|state| state.is_fault());
        if let Some(verdict) = latest.and_then(|state| state.cause) {
            by_cause.entry(verdict.cause).or_default().push(*ends);
        }
    }
    let mut faults: Vec<FleetFault<'_>> = Vec::new();
    for (cause, mut directions) in by_cause {
        // One host after the other is taken out, as long as one explains most of what it is part of.
        while let Some(fault) = common(matrix, cause, &directions) {
            directions.retain(|ends| !fault.directions.contains(ends));
            faults.push(fault);
        }
        if !directions.is_empty() {
            faults.push(FleetFault { cause, directions, host: None });
        }
    }
    faults.sort_by_key(|fault| core::cmp::Reverse(fault.directions.len()));
    faults
}

/// Fault of the host with the most of the directions, when they are most of all its own, and at least two.
fn common<'a>(matrix: &FleetMatrix<'a>, cause: Cause, directions: &[Ends]) -> Option<FleetFault<'a>> {
    // A cause in the sender is at no receiver.
    let ends: &[FaultEnd] = match cause.location() {
        CauseLocation::Sender => &[FaultEnd::From],
        CauseLocation::Receiver => &[FaultEnd::To],
        _ => &[FaultEnd::Both, FaultEnd::From, FaultEnd::To],
    };
    let candidates = (0..matrix.hosts.len()).flat_map(|host| ends.iter().map(move |end| (host, *end)));
    let found = candidates.filter_map(|(host, end)| {
        let own: Vec<_> = directions.iter().copied().filter(|one| is_at(*one, host, end)).collect();
        // Another cause hides this one, and a direction that another host explains says nothing of this host.
        let counts = |(one, results): &(&Ends, &DirectedResults<'_>)| {
            let is_free = results.latest().is_some_and(|state| state.is_judgement() && !state.is_fault());
            is_at(**one, host, end) && (is_free || directions.contains(one))
        };
        let measured = matrix.directions.iter().filter(counts).count();
        #[expect(clippy::cast_precision_loss, reason = "numbers of directions")]
        let is_most = own.len() as f64 >= COMMON * measured as f64;
        let fault = FleetFault { cause, directions: own, host: Some((matrix.hosts[host], end)) };
        (fault.directions.len() >= 2 && is_most).then_some(fault)
    });
    // Of equally many the earlier: both ends before one.
    found.reduce(|best, other| if other.directions.len() > best.directions.len() { other } else { best })
}

fn is_at((from, to): Ends, host: usize, end: FaultEnd) -> bool {
    match end {
        FaultEnd::From => from == host,
        FaultEnd::To => to == host,
        FaultEnd::Both => from == host || to == host,
    }
}

impl FleetFault<'_> {
    /// Sentence, such as `the receive window limits 6 directions to berlin`.
    #[must_use]
    pub fn sentence(&self, matrix: &FleetMatrix<'_>) -> String {
        let title = self.cause.title();
        match (&self.host, self.directions.as_slice()) {
            (Some((host, end)), directions) => {
                let end = match end {
                    FaultEnd::From => "from",
                    FaultEnd::To => "to",
                    FaultEnd::Both => "from and to",
                };
                format!("{title}: {} directions {end} {host}", directions.len())
            }
            (None, [(from, to)]) => format!("{title}: {} → {}", matrix.hosts[*from], matrix.hosts[*to]),
            (None, directions) => format!("{title}: {} directions", directions.len()),
        }
    }
}
