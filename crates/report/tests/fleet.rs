//! Reports of a fleet: the cells of the matrix, the hosts that faults have in common, and a page that is harmless.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use linerate_documents::fleet_result::{FleetResult, SessionOutcome};
use linerate_documents::run::{RunDocument, RunResult};
use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict, TransferDiagnosis};
use linerate_model::direction::Direction;
use linerate_report::fleet::{FleetMatrix, faults, page, summary};
use linerate_report::throughput_text::{TerminalWidth, TextStyle};
use linerate_units::{BitRate, WallTime};

use crate::runs;

/// Run in both directions, each limited by a cause.
fn run(causes: [Cause; 2]) -> RunDocument {
    let mut run = runs::throughput();
    let RunResult::Throughput(throughput) = &mut run.result else { panic!("a throughput run") };
    for test in &mut throughput.runs {
        let cause = causes[usize::from(test.direction == Direction::Down)];
        test.diagnosis = Some(TransferDiagnosis {
            verdicts: vec![DiagnosisVerdict {
                cause,
                confidence: Confidence::High,
                text: cause.explanation().to_owned(),
                share: None,
                without: None,
                together_with: None,
                evidence: Vec::new(),
                advice: Vec::new(),
                tune: None,
            }],
            states: Vec::new(),
            goodput: BitRate::from_bits_per_second(9e7),
            bounds: Vec::new(),
            next: None,
            contradictions: Vec::new(),
            notes: Vec::new(),
        });
    }
    run
}

fn result(source: &str, destination: &str, seconds: u64, causes: Option<[Cause; 2]>) -> FleetResult {
    let run = causes.map(run);
    let at = WallTime::from_unix(Duration::from_secs(seconds));
    FleetResult {
        outcome: if run.is_some() { SessionOutcome::Done } else { SessionOutcome::Skipped },
        reason: run.is_none().then(|| "the server is busy".to_owned()),
        figures: run.as_ref().map(|run| run.figures.clone()).unwrap_or_default(),
        run: run.map(Box::new),
        ..FleetResult::unstarted("goodput", "throughput", [source, destination], at)
    }
}

/// Four hosts: whatever is sent to c is limited by its window, and one other direction by loss.
fn fleet() -> Vec<FleetResult> {
    use Cause::{LinkRate, Loss, ReceiveWindow};
    vec![
        result("a", "b", 1, Some([LinkRate, Loss])),
        result("a", "c", 2, Some([ReceiveWindow, LinkRate])),
        result("a", "d", 3, Some([LinkRate, LinkRate])),
        result("c", "b", 4, Some([LinkRate, ReceiveWindow])),
        result("b", "d", 5, None),
        result("d", "c", 6, Some([ReceiveWindow, LinkRate])),
    ]
}

fn style() -> TextStyle {
    TextStyle { width: TerminalWidth::new(80), ..TextStyle::plain() }
}

#[test]
fn a_fault_is_said_of_the_host_that_its_directions_have_in_common() {
    let results = fleet();
    let matrix = FleetMatrix::new(&results);
    let found: Vec<String> = faults(&matrix).iter().map(|fault| fault.sentence(&matrix)).collect();
    assert_eq!(found, ["the receive window: 3 directions to c", "random loss: b → a"]);
}

#[test]
fn each_direction_has_the_cause_of_its_own_data() {
    let results = fleet();
    let matrix = FleetMatrix::new(&results);
    assert_eq!(matrix.hosts, ["a", "b", "c", "d"]);
    let cause = |from: usize, to: usize| matrix.directions[&(from, to)].latest().and_then(|state| state.cause);
    assert_eq!(cause(0, 1).map(|verdict| verdict.cause), Some(Cause::LinkRate));
    assert_eq!(cause(1, 0).map(|verdict| verdict.cause), Some(Cause::Loss));
    assert_eq!(cause(1, 2).map(|verdict| verdict.cause), Some(Cause::ReceiveWindow));
    assert_eq!(cause(1, 3).map(|verdict| verdict.cause), None);
    assert_eq!(matrix.directions.len(), 12);
}

#[test]
fn the_latest_judgement_counts() {
    use Cause::{LinkRate, Loss};
    let results = [
        result("a", "b", 1, Some([Loss, Loss])),
        result("a", "b", 2, Some([LinkRate, LinkRate])),
        // A light test says nothing of the limit.
        FleetResult { run: None, outcome: SessionOutcome::Done, ..result("a", "b", 3, None) },
    ];
    assert_eq!(faults(&FleetMatrix::new(&results)), []);
}

#[test]
fn a_result_in_another_name_is_in_no_cell() {
    use Cause::{LinkRate, Loss};
    let forged = FleetResult { publisher: Some("c".to_owned()), ..result("a", "b", 2, Some([Loss, Loss])) };
    let results = [result("a", "b", 1, Some([LinkRate, LinkRate])), forged];
    assert_eq!(faults(&FleetMatrix::new(&results)), []);
    let text = summary(&results, &[], style()).replace('\n', " ");
    assert!(text.contains("1 result left out: another member than the source"), "{text}");
}

#[test]
fn the_text_says_what_was_measured_and_the_faults() {
    let text = summary(&fleet(), &[], style());
    for part in [
        "6 results between 4 hosts: 10 of 12 directions measured, 0 failed, 1 skipped.",
        "- the receive window: 3 directions to c",
        "b -> d: skipped: the server is busy",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(summary(&[], &[], style()).starts_with("0 results between 0 hosts"));
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let rest = &text[text.find(start).expect(start) + start.len()..];
    &rest[..rest.find(end).expect(end)]
}

#[test]
fn the_policy_has_the_hashes_of_script_and_style() {
    let page = page("A fleet", &fleet(), &[]);
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"");
    for (name, content) in
        [("script-src", between(&page, "<script>", "</script>")), ("style-src", between(&page, "<style>", "</style>"))]
    {
        let wanted = format!("{name} 'sha256-{}';", STANDARD.encode(digest(&SHA256, content.as_bytes())));
        assert!(policy.contains(&wanted), "crates/report/src/html/policy.rs must contain: {wanted}");
    }
}

#[test]
fn names_of_strangers_stay_text() {
    let page = page("</title><script>alert(1)</script>", &[result("<img src=x>", "\"b\"", 1, None)], &[]);
    for markup in ["<img", "<script>alert", "\"\"b\"\""] {
        assert!(!page.contains(markup), "{markup}");
    }
    assert!(page.contains("&lt;img src=x&gt;"));
}

#[test]
fn every_cell_leads_to_its_direction_and_every_run_to_its_report() {
    let page = page("A fleet", &fleet(), &[]);
    for link in page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().expect("an end")) {
        assert!(page.contains(&format!("id=\"{link}\"")), "{link}");
    }
    assert_eq!(page.matches("class=\"cell c-host\" id=\"cell-").count(), 3);
    assert_eq!(page.matches("<article ").count(), 5);
}

/// Probes of two days: the smoke, the lost ones, the route's change, and bars in the colours of what limits.
#[test]
fn a_direction_has_its_picture_over_time() {
    let mut results = vec![
        result("a", "b", 100, Some([Cause::LinkRate, Cause::Loss])),
        result("a", "b", 90_000, Some([Cause::ReceiveWindow, Cause::Loss])),
    ];
    for (seconds, route, lost) in [(200, "192.0.2.1", 0.0), (86_400, "192.0.2.2", 0.02)] {
        let mut probe = FleetResult { outcome: SessionOutcome::Done, ..result("a", "b", seconds, None) };
        probe.route = vec![route.to_owned()];
        for (name, value) in [("rtt_idle_median", 2e7), ("rtt_idle_min", 1e7), ("rtt_idle_p95", 9e7), ("loss_up", lost)]
        {
            let mut figure = results[0].figures[0].clone();
            (figure.name, figure.value) = (name.to_owned(), Some(value));
            probe.figures.push(figure);
        }
        results.push(probe);
    }
    results.sort_by_key(|result| result.at_unix_ns);
    let page = page("A pair", &results, &[]);
    let picture = between(&page, "id=\"direction-0-1\"", "</svg>");
    for (part, count) in [
        ("class=\"smoke\"", 3),
        ("class=\"lost\"", 1),
        ("class=\"route\"", 1),
        ("<rect class=\"c-full\"", 1),
        ("<rect class=\"c-host\"", 1),
        (">90.0 ms</text>", 1),
    ] {
        assert_eq!(picture.matches(part).count(), count, "{part} in\n{picture}");
    }
    assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
}
