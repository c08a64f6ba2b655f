//! Alerts: each begins once, needs two results in a row, and has its own kind.

use std::time::Duration;

use jiff::tz::TimeZone;
use linerate_documents::fleet_result::{FleetResult, SessionOutcome};
use linerate_documents::run::{FigureUnit, ImprovementDirection, RunFigure};
use linerate_fleet::{AlertKind, MonitorSample, alerts};
use linerate_units::WallTime;

fn result(hour: u64, outcome: SessionOutcome, goodput: Option<f64>) -> FleetResult {
    let at = WallTime::from_unix(Duration::from_secs(hour * 3600));
    let mut figure =
        RunFigure::new("goodput_up", "Goodput up", FigureUnit::BitsPerSecond, ImprovementDirection::Higher);
    figure.value = goodput;
    FleetResult {
        outcome,
        reason: (outcome == SessionOutcome::Failed).then(|| "connection refused".to_owned()),
        figures: vec![figure],
        ..FleetResult::unstarted("test", "throughput", ["here", "there"], at)
    }
}

/// Kinds of the alerts that begin with each result.
fn kinds(results: &[FleetResult]) -> Vec<Vec<AlertKind>> {
    let samples: Vec<MonitorSample> = results.iter().map(MonitorSample::of).collect();
    let show = |name: &str, value: f64| format!("{name} {value}");
    let found = (1..=samples.len()).map(|end| alerts("there", &samples[..end], &TimeZone::UTC, show));
    found.map(|alerts| alerts.iter().map(|alert| alert.kind).collect()).collect()
}

fn begins(results: &[FleetResult]) -> Vec<(usize, AlertKind)> {
    let all = kinds(results).into_iter().enumerate();
    all.flat_map(|(index, kinds)| kinds.into_iter().map(move |kind| (index, kind))).collect()
}

fn goodputs(values: impl IntoIterator<Item = f64>) -> Vec<FleetResult> {
    values.into_iter().zip(0..).map(|(value, hour)| result(hour, SessionOutcome::Done, Some(value))).collect()
}

#[test]
fn two_slow_results_raise_one_alert_and_one_raises_none() {
    let usual = [9.4e8; 30];
    let once = goodputs(usual.into_iter().chain([4e8]).chain(usual));
    assert_eq!(begins(&once), []);
    let lasting = goodputs(usual.into_iter().chain([4e8; 5]));
    assert_eq!(begins(&lasting), [(31, AlertKind::WorseThanUsual)]);
    // Too few results to know what is usual.
    assert_eq!(begins(&goodputs([9.4e8; 15].into_iter().chain([4e8; 3]))), []);
    // Faster is no alert.
    assert_eq!(begins(&goodputs(usual.into_iter().chain([9e9; 3]))), []);
}

#[test]
fn a_host_without_results_raises_one_alert_each_time() {
    let (done, failed, skipped) = (SessionOutcome::Done, SessionOutcome::Failed, SessionOutcome::Skipped);
    let outcomes = [done, failed, done, failed, failed, failed, skipped, failed, done, failed, failed];
    let results: Vec<FleetResult> =
        outcomes.into_iter().zip(0..).map(|(outcome, hour)| result(hour, outcome, None)).collect();
    assert_eq!(begins(&results), [(4, AlertKind::Unreachable), (10, AlertKind::Unreachable)]);
}

#[test]
fn the_sentence_has_the_value_and_what_is_usual() {
    let results = goodputs([9.4e8; 30].into_iter().chain([4e8; 2]));
    let samples: Vec<MonitorSample> = results.iter().map(MonitorSample::of).collect();
    let found = alerts("there", &samples, &TimeZone::UTC, |_, value| format!("{} Mbit/s", value / 1e6));
    assert_eq!(found[0].text, "goodput up 400 Mbit/s, twice in a row, usually 940 Mbit/s (30 results at any hour)");
}
