//! The framework for TCP throughput testing (RFC 6349), as a procedure that runs by itself.
//!
//! | step | what is done | file |
//! |---|---|---|
//! | 1, 2 | path MTU, round trip without load, bottleneck bandwidth: [`crate::path`] | `baseline` |
//! | 3 | TCP transfers over one connection and several, each way and both ways at once | `transfer`, `metrics` |
//! | 3 | the same with windows of parts of the bandwidth-delay product: achieved beside expected | `windows` |
//! | § 5 | traffic management: policed, shaped, or neither | `management` |
//!
//! Expectations are computed by [`linerate_model::rfc6349`]. An interrupted procedure is a partial one, not an error.

mod baseline;
mod management;
mod meaning;
mod metrics;
mod record;
mod transfer;
mod windows;

use core::time::Duration;

use linerate_model::schema::rfc6349::{Flows, Rfc6349Document};
use linerate_model::schema::run::{PhaseSpan, Series};
use linerate_model::schema::throughput::Direction;
use linerate_sys::signals::Interrupts;
use linerate_units::{BitRate, ByteCount, StreamCount};

use crate::course::Halt;
use crate::path::{PathEvent, PathOptions};
use crate::probe::ProbeError;
use crate::probe::messages::FarFacts;
use record::Record;

/// A procedure to run.
#[derive(Clone, Debug)]
pub struct Rfc6349Options {
    /// Steps 1 and 2; the target is that of all steps.
    pub path: PathOptions,
    /// Time of each TCP transfer that counts.
    pub time: Duration,
    /// Connections of the transfers over several; 1 leaves them out.
    pub connections: StreamCount,
    /// Congestion control of the senders; `None` for what each has by default.
    pub congestion_control: Option<String>,
    /// Whether to sweep over windows.
    pub windows: bool,
    /// Whether to look for traffic management.
    pub traffic_management: bool,
}

impl Rfc6349Options {
    /// The whole procedure over the path that these options describe.
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

/// What happens while the procedure runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Rfc6349Event {
    /// Something of steps 1 and 2.
    Path(PathEvent),
    /// A transfer begins.
    Transfer {
        /// What flows.
        flows: Flows,
        /// Connections each way.
        connections: StreamCount,
        /// The window asked for, in the sweep.
        window: Option<ByteCount>,
        /// How long it takes.
        time: Duration,
        /// Transfers that follow it.
        left: usize,
    },
    /// What arrives at present.
    Rate(Direction, BitRate),
    /// Something that a person should know now.
    Note(String),
}

/// A finished procedure.
#[derive(Clone, Debug)]
pub struct Rfc6349Outcome {
    /// All figures.
    pub document: Rfc6349Document,
    /// Readings over time.
    pub series: Vec<Series>,
    /// When which phase was.
    pub phases: Vec<PhaseSpan>,
    /// What a linerate at the far end says of its host.
    pub far: Option<FarFacts>,
    /// What the procedure sent, with headers, at most.
    pub sent: ByteCount,
    /// What was sent to it.
    pub received: ByteCount,
    /// Why nothing, or not all, could be measured; an interrupted procedure has nothing here.
    pub error: Option<ProbeError>,
}

/// Runs the procedure; all that happens is told to `observer`. `stop` ends it early, with what has been measured so far.
pub fn run(
    options: &Rfc6349Options,
    stop: Option<Interrupts>,
    observer: &mut dyn FnMut(&Rfc6349Event),
) -> Rfc6349Outcome {
    let mut record = Record::new(options, stop, observer);
    let result = measure(&mut record);
    record.finish(result)
}

fn measure(record: &mut Record<'_>) -> Result<(), Halt> {
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
