//! The report in Markdown.

use linerate_documents::run::RunResult;
use linerate_model::diagnosis::{Cause, GoodputEstimate};
use linerate_report::markdown;
use linerate_report::presentation::{compare, present};
use linerate_units::BitRate;

use crate::runs;

#[test]
fn tables_have_one_shape() {
    for (name, run) in runs::all() {
        let text = markdown::render(&[present(&run)]);
        let mut width = None;
        for line in text.lines() {
            if !line.starts_with('|') {
                width = None;
                continue;
            }
            let bars = line.replace("\\|", "").matches('|').count();
            assert_eq!(*width.get_or_insert(bars), bars, "{name}: {line}");
        }
    }
}

#[test]
fn the_verdict_is_the_first_paragraph_and_hostile_text_stays_text() {
    let mut run = runs::load(1);
    run.verdict = runs::HOSTILE.to_owned();
    let text = markdown::render(&[present(&run)]);
    let verdict = text.split("\n\n").nth(1).expect("it is there");
    assert!(verdict.starts_with("**F: \\<"), "{verdict}");
    assert!(!text.replace("\\<", "").contains("<img") && !text.contains('\u{1b}'));
}

#[test]
fn several_runs_follow_each_other_and_reasons_are_numbered() {
    let (one, other) = (runs::path_to_bare_host(), runs::load(2));
    let text = markdown::render(&[present(&one), present(&other), compare(&other, &other).expect("one subject")]);
    assert_eq!(text.matches("\n---\n").count(), 2);
    assert!(text.contains("1. the far end answers no measurement protocol"), "{text}");
    assert!(text.contains("| Before | Value |"), "{text}");
}

#[test]
fn an_estimate_without_two_causes_names_the_other_one() {
    let shown = |together_with: Option<Cause>| {
        let mut run = runs::diagnose();
        let RunResult::Diagnose(document) = &mut run.result else { panic!("a diagnosis") };
        let rate = BitRate::from_bits_per_second(940e6);
        let first = document.verdicts.first_mut().expect("a verdict");
        first.without = Some(GoodputEstimate { low: rate, expected: rate, high: rate });
        first.together_with = together_with;
        markdown::render(&[present(&run)])
    };
    let (alone, both) = (shown(None), shown(Some(Cause::SendBuffer)));
    assert!(alone.contains("| estimated goodput without this cause | 940 Mbit/s"), "{alone}");
    assert!(both.contains("| estimated goodput without this cause and without send-buffer | 940 Mbit/s"), "{both}");
}
