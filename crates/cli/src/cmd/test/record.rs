//! The history's record of a series: its start, its surroundings and its end.

use linerate_documents::run::{RunDocument, RunEnvironment, RunFacts};
use linerate_engine::surroundings::{LocalEnvironment, OwnTraffic};
use linerate_model::direction::Direction;
use linerate_model::report::TestTermination;
use linerate_model::throughput::ThroughputResult;
use linerate_report::throughput_text;
use linerate_sys::clock;
use linerate_units::{ByteCount, MonotonicTime, Mss, SegmentCount, WallTime};

use super::TestArguments;
use crate::cmd::measurement::own_arguments;

/// Start of the series.
pub(super) struct SeriesStart {
    at: WallTime,
    since: MonotonicTime,
    surroundings: LocalEnvironment,
}

impl SeriesStart {
    pub(super) fn now(arguments: &TestArguments) -> Self {
        let surroundings = arguments.common.local_environment(arguments.host());
        Self { at: clock::realtime_now(), since: clock::monotonic_now(), surroundings }
    }

    /// History record of the series.
    pub(super) fn finish(self, result: &ThroughputResult, termination: TestTermination) -> RunDocument {
        let duration = clock::monotonic_now().since(self.since);
        let near = self.surroundings.finish(own_traffic(result));
        let facts = RunFacts {
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: self.at,
            duration,
            arguments: own_arguments(),
            termination,
            verdict: throughput_text::sentence(result),
            environment: RunEnvironment { near: Some(near), far: None, lab: None },
        };
        RunDocument::from_throughput(facts, result)
    }
}

/// Termination of the series: that of the first incomplete run, else the error that prevented another.
pub(super) fn ending(result: &ThroughputResult, failure: Option<String>) -> TestTermination {
    let of_runs = result.runs.iter().map(|run| &run.report.termination);
    let broken = of_runs.into_iter().find(|termination| **termination != TestTermination::Complete).cloned();
    let failed = || Some(TestTermination::Failed { message: failure? });
    broken.or_else(failed).unwrap_or(TestTermination::Complete)
}

/// Largest traffic of the series on the interface.
fn own_traffic(result: &ThroughputResult) -> OwnTraffic {
    /// Minimum segment size of IPv4.
    const MIN_SEGMENT_SIZE: Mss = Mss::new(536);
    let mut own = OwnTraffic::default();
    for run in &result.runs {
        let moved: ByteCount =
            run.intervals.iter().flat_map(|interval| &interval.streams).map(|stream| stream.bytes).sum();
        let infos = || run.report.streams.iter().filter_map(|stream| stream.tcp.as_ref()?.last_info.as_ref());
        let segment = match run.direction {
            Direction::Up => infos().filter_map(|info| info.send_mss).min(),
            Direction::Down => infos().filter_map(|info| info.receive_mss).min(),
        };
        let segment = ByteCount::new(u64::from(segment.unwrap_or(MIN_SEGMENT_SIZE).get()));
        let retransmitted = segment * run.retransmits().map_or(0, SegmentCount::get);
        let traffic = match run.direction {
            Direction::Up => OwnTraffic::of_tcp(ByteCount::ZERO, moved + retransmitted, segment),
            Direction::Down => OwnTraffic::of_tcp(moved + retransmitted, ByteCount::ZERO, segment),
        };
        own = OwnTraffic { received: own.received + traffic.received, sent: own.sent + traffic.sent };
    }
    own
}
