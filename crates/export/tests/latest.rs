//! Latest results as Prometheus reads them.

use std::collections::HashSet;

use linerate_documents::fleet_result::{FleetResult, SessionOutcome};
use linerate_export::{Exposition, LatestResults, archive_document};
use proptest::prelude::*;

use crate::support::{any_result, diagnosis, result};

fn page(results: &[FleetResult]) -> String {
    let mut latest = LatestResults::default();
    for result in results {
        latest.add(result);
    }
    let mut page = Exposition::default();
    latest.expose(&mut page);
    page.finish()
}

/// Series with these parts, without the labels of the pair.
fn series(page: &str, part: &str) -> Vec<String> {
    let pair = r#"source="a",destination="b",task="limits",test="diagnose""#;
    page.lines()
        .filter(|line| !line.starts_with('#') && line.contains(part))
        .map(|line| line.replace(pair, ""))
        .collect()
}

#[test]
fn the_last_value_of_each_pair_has_base_units_and_its_time() {
    let measured = FleetResult { run: Some(diagnosis("down", "policer")), ..result(100, SessionOutcome::Done) };
    let page = page(&[measured]);
    for (part, line) in [
        ("goodput", r#"linerate_goodput_bytes_per_second{,direction="down",figure="goodput_down"} 1000000"#),
        ("rtt", r#"linerate_rtt_seconds{,figure="rtt_idle_median"} 0.025"#),
        ("loss", r#"linerate_loss_ratio{,direction="up",figure="loss_up"} 0.125"#),
        ("last_run", "linerate_last_run_timestamp_seconds{} 100"),
        ("verdict", r#"linerate_verdict{,direction="down",verdict="policer"} 1"#),
        ("duration", "linerate_run_duration_seconds{} 12.5"),
        ("results_total{outcome=\"done\"", "linerate_results_total{outcome=\"done\"} 1"),
        ("last_outcome", ""),
    ] {
        let found = series(&page, part);
        let expected = if line.is_empty() { 3 } else { 1 };
        assert!(
            found.len() == expected + usize::from(part == "goodput") && found[0].contains(line),
            "{part}: {found:?}"
        );
    }
}

#[test]
fn a_failed_test_leaves_the_last_values_and_their_time() {
    let mut failed = result(200, SessionOutcome::Failed);
    failed.figures.clear();
    // An older result of a log that is read late changes nothing.
    let page = page(&[result(100, SessionOutcome::Done), failed, result(50, SessionOutcome::Skipped)]);
    assert_eq!(series(&page, "last_run"), ["linerate_last_run_timestamp_seconds{} 200"]);
    assert_eq!(series(&page, "last_success"), ["linerate_last_success_timestamp_seconds{} 100"]);
    assert_eq!(series(&page, "linerate_rtt_seconds").len(), 1, "{page}");
    let outcomes = series(&page, "last_outcome");
    let expected = [("done", 0), ("failed", 1), ("skipped", 0)]
        .map(|(name, value)| format!("linerate_last_outcome{{,outcome=\"{name}\"}} {value}"));
    assert_eq!(outcomes, expected);
}

#[test]
fn a_time_has_all_its_digits() {
    let mut late = result(0, SessionOutcome::Done);
    late.at_unix_ns = 1_795_161_279_123_456_789;
    let expected = "linerate_last_run_timestamp_seconds{} 1795161279.123456789";
    assert_eq!(series(&page(&[late]), "last_run"), [expected]);
}

/// Splits a line of the format into the series and the value, and checks quotes and escapes.
fn parse(line: &str) -> Option<(String, f64)> {
    let (name, after) = match line.find(['{', ' '])? {
        end if line[end..].starts_with(' ') => return Some((line[..end].to_owned(), line[end + 1..].parse().ok()?)),
        end => (&line[..end], &line[end + 1..]),
    };
    let (mut is_quoted, mut is_escaped) = (false, false);
    let end = after.char_indices().find_map(|(index, character)| {
        let is_end = !is_quoted && character == '}';
        is_quoted ^= character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        is_end.then_some(index)
    })?;
    let value = after[end + 1..].strip_prefix(' ')?.parse().ok()?;
    Some((format!("{name}{}", &after[..end]), value))
}

proptest! {
    #[test]
    fn any_results_give_distinct_series_with_finite_values(results in proptest::collection::vec(any_result(), 0..6)) {
        let page = page(&results);
        let mut known = HashSet::new();
        for line in page.split('\n').filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let parsed = parse(line);
            prop_assert!(parsed.as_ref().is_some_and(|(_, value)| value.is_finite()), "{line:?}");
            prop_assert!(known.insert(parsed.map(|(series, _)| series)), "twice: {line:?}");
        }
        // Bounded: a figure, a cause, a time and three outcomes of each pair.
        prop_assert!(known.len() <= 3 + results.len() * (8 + 3 + 3 + 2), "{} series", known.len());
        for result in &results {
            let document = archive_document(result, "2026-11-26T00:00:00Z");
            prop_assert_eq!(document["result"]["succeeded"].as_bool(), Some(result.outcome == SessionOutcome::Done));
            prop_assert_eq!(document["id"].as_str(), Some(result.id.as_str()));
        }
    }
}

#[test]
fn an_archive_gets_the_form_of_a_finished_task() {
    let document = archive_document(&result(100, SessionOutcome::Done), "1970-01-01T00:01:40Z");
    for (pointer, expected) in [
        ("/test/type", "diagnose"),
        ("/test/spec/source", "a"),
        ("/test/spec/dest", "b"),
        ("/tool/name", "linerate"),
        ("/schedule/start", "1970-01-01T00:01:40Z"),
        ("/schedule/duration", "PT0S"),
        ("/result/diags", "The receive window limits it."),
        ("/result/units/goodput_down", "bit/s"),
    ] {
        assert_eq!(document.pointer(pointer).and_then(|value| value.as_str()), Some(expected), "{pointer}");
    }
    assert_eq!(document["result"]["figures"]["goodput_down"], 8e6);
}
