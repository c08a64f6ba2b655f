//! Results for the tests.

use std::time::Duration;

use linerate_documents::fleet_result::{FleetResult, SessionOutcome};
use linerate_documents::run::{FigureUnit, ImprovementDirection, RunFigure};
use linerate_history::result_log::ResultLog;
use linerate_units::WallTime;

pub(crate) fn figure(name: &str, unit: FigureUnit, value: f64) -> RunFigure {
    RunFigure { value: Some(value), ..RunFigure::new(name, name, unit, ImprovementDirection::Higher) }
}

/// Result at a time in seconds since 1970.
pub(crate) fn result(seconds: u64) -> FleetResult {
    let at = WallTime::from_unix(Duration::from_secs(seconds));
    FleetResult {
        outcome: SessionOutcome::Done,
        verdict: "81 Mbit/s up".to_owned(),
        figures: vec![
            figure("goodput_up", FigureUnit::BitsPerSecond, 81e6),
            figure("goodput_down", FigureUnit::BitsPerSecond, 96e6),
            figure("rtt_idle_median", FigureUnit::Nanoseconds, 25e6),
            figure("loss_up", FigureUnit::Share, 0.001),
            figure("added_up_p95", FigureUnit::Nanoseconds, 40e6),
        ],
        ..FleetResult::unstarted("goodput", "throughput", ["a", "b"], at)
    }
}

/// Appends results of these times, and returns their identities.
pub(crate) fn append(log: &ResultLog, times: impl Iterator<Item = u64>) -> Vec<String> {
    times
        .map(|seconds| {
            let result = result(seconds);
            log.append(&result).expect("written");
            result.id
        })
        .collect()
}
