//! A series of throughput tests as a run.

mod figures;
mod series;

use core::time::Duration;

use linerate_units::WallTime;

use super::{Kind, PhaseSpan, RunDocument, RunEnvironment, RunResult, SCHEMA};
use crate::schema::nanoseconds;
use crate::schema::throughput::{Direction, Termination, ThroughputDocument};
use crate::throughput::{ThroughputResult, ThroughputRun};

/// What a run is besides its measured result.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFacts {
    /// The linerate that measured.
    pub linerate_version: String,
    /// When it began.
    pub started_at: WallTime,
    /// How long it took.
    pub duration: Duration,
    /// The command line, without the program.
    pub arguments: Vec<String>,
    /// How it ended.
    pub termination: Termination,
    /// What came out, in one sentence.
    pub verdict: String,
    /// Where it was measured.
    pub environment: RunEnvironment,
}

impl RunDocument {
    /// The run of `linerate test`: its figures with their intervals of confidence, and its readings over time. The rate of
    /// a direction is resampled in blocks of a second ([`crate::statistics::BLOCK`]), always with the same seed, so that
    /// the same readings give the same document.
    #[must_use]
    pub fn from_throughput(facts: RunFacts, result: &ThroughputResult) -> Self {
        let start = facts.started_at;
        Self {
            schema: SCHEMA,
            kind: Kind::Throughput,
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

/// When a run's counting began, since the whole series began; `None` when it never did.
fn counting_since(start: WallTime, run: &ThroughputRun) -> Option<Duration> {
    let begun = run.start.as_ref()?;
    Some(begun.at.since_unix_epoch().saturating_sub(start.since_unix_epoch()) + begun.parameters.omit)
}

fn phase(start: WallTime, run: &ThroughputRun) -> Option<PhaseSpan> {
    let counting = counting_since(start, run)?;
    let last = run.intervals.iter().filter(|interval| !interval.omitted).map(|interval| interval.end).max();
    let direction = match Direction::from(run.flow) {
        Direction::Up => "up",
        Direction::Down => "down",
    };
    let noun = if run.streams.get() == 1 { "stream" } else { "streams" };
    Some(PhaseSpan {
        name: format!("{direction}, {} {noun}", run.streams),
        start_ns: nanoseconds(counting),
        end_ns: nanoseconds(counting + last?),
    })
}

#[cfg(test)]
mod tests;
