//! The framework for TCP throughput testing (RFC 6349), as an automatic procedure.
//!
//! | step | measurement | file |
//! |---|---|---|
//! | 1, 2 | path MTU, round trip without load, bottleneck bandwidth: [`crate::path`] | `baseline` |
//! | 3 | TCP transfers over one connection and several, per direction and in both at once | `transfer`, `metrics` |
//! | 3 | the same with windows of parts of the bandwidth-delay product: achieved and expected | `windows` |
//! | § 5 | traffic management: policed, shaped, or neither | `management` |
//!
//! Expectations are computed by [`linerate_analysis::rfc6349`]. An interrupted procedure is a partial one, not an error.

mod baseline;
mod management;
mod meaning;
mod metrics;
mod record;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;
mod transfer;
mod windows;

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_documents::rfc6349::{LoadedDirections, Rfc6349Document};
use linerate_documents::run::{PhaseSpan, SampleSeries};
use linerate_sys::signals::InterruptSignals;
use linerate_units::{BitRate, ByteCount, StreamCount};

use crate::path::{PathEvent, PathOptions};
use crate::phases::AbortReason;
use crate::probe::ProbeError;
use crate::probe::messages::FarFacts;
use record::Rfc6349Record;

/// Options of a procedure.
#[derive(Clone, Debug)]
pub struct Rfc6349Options {
    /// Steps 1 and 2; the target is that of all steps.
    pub path: PathOptions,
    /// Counted time of each TCP transfer.
    pub time: Duration,
    /// Connections of the multi-connection transfers; 1 skips them.
    pub connections: StreamCount,
    /// Congestion control of the senders; `None` for each host's default.
    pub congestion_control: Option<String>,
    /// True for a sweep over windows.
    pub windows: bool,
    /// True for a test for traffic management.
    pub traffic_management: bool,
}

impl Rfc6349Options {
    /// The whole procedure over the path described by these options.
    #[must_use]
    pub fn new(path: PathOptions) -> Self {
        Self {
            path,
            time: Duration::from_secs(10),
            connections: StreamCount::new(4),
            congestion_control: None,
            windows: true,
            traffic_management: true,
        }
    }
}

/// Progress of the procedure.
#[derive(Clone, Debug, PartialEq)]
pub enum Rfc6349Event {
    /// Progress of steps 1 and 2.
    Path(PathEvent),
    /// A transfer begins.
    Transfer {
        /// Directions of the data.
        flows: LoadedDirections,
        /// Connections per direction.
        connections: StreamCount,
        /// Requested window, in the sweep.
        window: Option<ByteCount>,
        /// Duration.
        time: Duration,
        /// Number of transfers that follow.
        left: usize,
    },
    /// Current receive rate.
    Rate(Direction, BitRate),
    /// Note for the user.
    Note(String),
}

/// A finished procedure.
#[derive(Clone, Debug)]
pub struct Rfc6349Outcome {
    /// All figures.
    pub document: Rfc6349Document,
    /// Samples over time.
    pub series: Vec<SampleSeries>,
    /// Time spans of the phases.
    pub phases: Vec<PhaseSpan>,
    /// Facts about its host that a linerate at the far end reports.
    pub far: Option<FarFacts>,
    /// Bytes sent by the procedure, with headers, at most.
    pub sent: ByteCount,
    /// Bytes received by the procedure.
    pub received: ByteCount,
    /// Reason of a missing or partial result; `None` after an interrupt.
    pub error: Option<ProbeError>,
}

/// Runs the procedure and reports its events to `observer`. `stop` ends it early with a partial result.
pub fn run(
    options: &Rfc6349Options,
    stop: Option<InterruptSignals>,
    observer: &mut dyn FnMut(&Rfc6349Event),
) -> Rfc6349Outcome {
    let mut record = Rfc6349Record::new(options, stop, observer);
    let result = measure(&mut record);
    record.finish(result)
}

fn measure(record: &mut Rfc6349Record<'_>) -> Result<(), AbortReason> {
    baseline::measure(record)?;
    let plan = transfer::plan(record);
    let sweep = windows::plan(record);
    let all = plan.len() + sweep.len();
    for (number, kind) in plan.into_iter().enumerate() {
        metrics::measure(record, kind, all - number - 1)?;
    }
    let before = all - sweep.len();
    for (number, window) in sweep.into_iter().enumerate() {
        windows::measure(record, window, all - before - number - 1)?;
    }
    if record.options.traffic_management {
        management::judge(record);
    }
    Ok(())
}
