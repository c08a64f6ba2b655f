//! Figures that are worse than usual: where they begin, how long they last, and what changed around it.

use std::time::Duration;

use jiff::tz::TimeZone;
use linerate_documents::fleet_report::{UnusualFigure, UsualBasis};
use linerate_documents::fleet_result::{FleetResult, ResultHost, SessionOutcome};
use linerate_documents::run::{FigureUnit, ImprovementDirection, RunFigure};
use linerate_fleet::{MonitorSample, alerts, unusual_figures};
use linerate_units::WallTime;
use proptest::prelude::*;

const MINUTE: u64 = 60;

fn result(task: &str, name: &str, seconds: u64, value: f64) -> FleetResult {
    let at = WallTime::from_unix(Duration::from_secs(seconds));
    let unit = if name.starts_with("goodput") { FigureUnit::BitsPerSecond } else { FigureUnit::Nanoseconds };
    let mut figure = RunFigure::new(name, name, unit, ImprovementDirection::Neither);
    figure.value = Some(value);
    FleetResult {
        outcome: SessionOutcome::Done,
        figures: vec![figure],
        host: Some(ResultHost {
            linerate_version: "0.2.0".to_owned(),
            kernel: Some("6.12".to_owned()),
            ..ResultHost::default()
        }),
        ..FleetResult::unstarted(task, "throughput", ["here", "there"], at)
    }
}

/// Results every quarter of an hour.
fn goodputs(values: impl IntoIterator<Item = f64>) -> Vec<FleetResult> {
    values.into_iter().zip(1..).map(|(value, index)| result("test", "goodput_up", index * 15 * MINUTE, value)).collect()
}

fn unusual(results: &[FleetResult]) -> Vec<UnusualFigure> {
    unusual_figures(results, &TimeZone::UTC)
}

#[test]
fn a_pair_is_slower_than_usual_from_the_first_slow_result_on() {
    let found = unusual(&goodputs([9.4e8; 40].into_iter().chain([4e8, 4.2e8, 3.9e8, 4.1e8, 9.4e8])));
    assert_eq!(found.len(), 1, "{found:#?}");
    let figure = &found[0];
    assert_eq!((figure.value, figure.usual, figure.count, figure.usual_count), (4.1e8, 9.4e8, 5, 40));
    assert_eq!(figure.since_unix_ns, 41 * 15 * MINUTE * 1_000_000_000);
    assert_eq!((figure.figure.as_str(), figure.usual_basis), ("goodput_up", UsualBasis::AnyHour));
    assert_eq!(figure.changes, []);
}

#[test]
fn it_lasts_until_two_results_are_as_usual() {
    let usual = [9.4e8; 30];
    let slow = [4e8; 100];
    for (values, is_unusual) in [
        (vec![&usual[..]], false),
        (vec![&usual, &slow[..1]], false),
        (vec![&usual, &slow[..2]], true),
        // A long time later it is still slower than it was, also after one fast result.
        (vec![&usual, &slow, &usual[..1]], true),
        (vec![&usual, &slow, &usual[..2]], false),
        (vec![&usual, &slow[..3], &usual[..2], &slow[..1]], false),
        (vec![&usual, &slow[..2], &usual, &slow[..2]], true),
        // Too few to know what is usual.
        (vec![&usual[..18], &slow[..10]], false),
    ] {
        let values: Vec<f64> = values.concat();
        assert_eq!(!unusual(&goodputs(values.iter().copied())).is_empty(), is_unusual, "{values:?}");
    }
}

#[test]
fn after_five_weeks_it_is_usual() {
    let of_days = |days: u64| (0..40 + days * 96).map(|index| if index < 40 { 9.4e8 } else { 4e8 });
    assert_eq!(unusual(&goodputs(of_days(34))).len(), 1);
    assert_eq!(unusual(&goodputs(of_days(36))), []);
}

#[test]
fn a_result_that_another_test_disturbed_counts_nowhere() {
    let mut results = goodputs([9.4e8; 30].into_iter().chain([4e8; 4]));
    for result in &mut results[30..] {
        result.reason = Some("a test of this monitor ran at the same time".to_owned());
    }
    assert_eq!(unusual(&results), []);
}

#[test]
fn what_changed_when_it_began_is_listed() {
    let mut results = goodputs([9.4e8; 30].into_iter().chain([4e8; 4]));
    for (index, result) in results.iter_mut().enumerate() {
        let is_late = index >= 30;
        let host = result.host.as_mut().expect("a host");
        host.kernel = Some(if is_late { "6.13" } else { "6.12" }.to_owned());
        host.linerate_version = if index >= 10 { "0.3.0" } else { "0.2.0" }.to_owned();
        host.congestion_control = Some("cubic".to_owned());
        host.interface_mtu_bytes = is_late.then_some(1400);
    }
    // Routes and path MTUs are those of the probes of the same pair.
    for (minutes, route, mtu) in [(2, "a", 9000.0), (440, "b", 1500.0), (470, "c", 1400.0)] {
        let probe = result("probe", "mtu_up", minutes * MINUTE, mtu);
        results.push(FleetResult { route: vec![route.to_owned()], host: None, ..probe });
    }
    results.sort_by_key(|result| result.at_unix_ns);
    let found = unusual(&results);
    let change = |key: &str| {
        let change = found[0].changes.iter().find(|change| change.key == key)?;
        Some((change.before.clone()?, change.after.clone()?))
    };
    let pair = |before: &str, after: &str| Some((before.to_owned(), after.to_owned()));
    assert_eq!(change("near.kernel"), pair("6.12", "6.13"));
    assert_eq!(change("route"), pair("b", "c"));
    assert_eq!(change("mtu_up_bytes"), pair("1500", "1400"));
    // It changed long before, it did not change, and it was unknown before.
    assert_eq!(found[0].changes.len(), 3, "{found:#?}");
}

/// The alerts of a monitor and the report decide the same.
fn begins_with_an_alert(values: &[f64]) -> bool {
    let results = goodputs(values.iter().copied());
    let samples: Vec<MonitorSample> = results.iter().map(MonitorSample::of).collect();
    let show = |_: &str, value: f64| value.to_string();
    (1..=samples.len()).any(|end| !alerts("there", &samples[..end], &TimeZone::UTC, show).is_empty())
}

proptest! {
    #[test]
    fn what_is_unusual_had_an_alert(values in proptest::collection::vec(prop_oneof![Just(1e9), Just(9e8), Just(3e8)], 0..80)) {
        if !unusual(&goodputs(values.iter().copied())).is_empty() {
            prop_assert!(begins_with_an_alert(&values));
        }
    }
}

/// The time of 50,000 values is that of this test: a decision for each from all before it would take minutes.
#[test]
fn five_weeks_of_probes_are_judged_at_once() {
    let count = 35 * 24 * 60;
    let mut results: Vec<FleetResult> = (0..count)
        .map(|minute| {
            result(
                "probe",
                "rtt_idle_median",
                minute * MINUTE,
                2e7 + f64::from(u32::try_from(minute % 97).expect("small")) * 1e4,
            )
        })
        .collect();
    for result in results.iter_mut().rev().take(30) {
        result.figures[0].value = Some(9e7);
    }
    let found = unusual(&results);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].count, found[0].usual_basis), (30, UsualBasis::HourOfWeek));
}
