//! Conversion of a series of throughput tests to a run.

mod figures;
mod series;

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::{WallTime, display};

use super::{PhaseSpan, RunDocument, RunEnvironment, RunKind, RunResult, SCHEMA};
use crate::nanoseconds;
use crate::throughput::ThroughputDocument;
use linerate_model::report::TestTermination;
use linerate_model::throughput::{ThroughputResult, ThroughputRun};

/// Facts of a run in addition to its measured result.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFacts {
    /// Version of linerate that measured.
    pub linerate_version: String,
    /// Start time.
    pub started_at: WallTime,
    /// Duration.
    pub duration: Duration,
    /// Arguments of the command line, without the program.
    pub arguments: Vec<String>,
    /// Outcome of the run.
    pub termination: TestTermination,
    /// Result in one sentence.
    pub verdict: String,
    /// Hosts and path of the run.
    pub environment: RunEnvironment,
}

impl RunDocument {
    /// Creates the run of `linerate test`: its figures with their confidence intervals, and its samples over time. The
    /// rate of a direction is resampled in blocks of a second (`BLOCK`), always with the same
    /// seed, so that the same samples give the same document.
    #[must_use]
    pub fn from_throughput(facts: RunFacts, result: &ThroughputResult) -> Self {
        let start = facts.started_at;
        Self {
            schema: SCHEMA,
            kind: RunKind::Throughput,
            started_at_unix_ns: nanoseconds(start.since_unix_epoch()),
            duration_ns: nanoseconds(facts.duration),
            host: result.host.clone(),
            port: result.port.get(),
            arguments: facts.arguments,
            termination: facts.termination,
            verdict: facts.verdict,
            figures: figures::of(result),
            environment: facts.environment,
            series: series::of(start, result),
            phases: result.runs.iter().filter_map(|run| phase(start, run)).collect(),
            result: RunResult::Throughput(Box::new(ThroughputDocument::new(&facts.linerate_version, result))),
            linerate_version: facts.linerate_version,
        }
    }
}

/// Start of a run's counting, since the start of the series; `None` when it never started.
fn counting_since(start: WallTime, run: &ThroughputRun) -> Option<Duration> {
    let begun = run.start.as_ref()?;
    Some(begun.at.since_unix_epoch().saturating_sub(start.since_unix_epoch()) + begun.parameters.omit)
}

fn phase(start: WallTime, run: &ThroughputRun) -> Option<PhaseSpan> {
    let counting = counting_since(start, run)?;
    let last = run.intervals.iter().filter(|interval| !interval.omitted).map(|interval| interval.end).max();
    let direction = match run.direction {
        Direction::Up => "up",
        Direction::Down => "down",
    };
    Some(PhaseSpan {
        name: format!("{direction}, {}", display::counted(run.streams.get(), "stream")),
        start_ns: nanoseconds(counting),
        end_ns: nanoseconds(counting + last?),
    })
}

#[cfg(test)]
mod tests;
