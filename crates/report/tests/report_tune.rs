//! Reports of runs that change hosts.

use linerate_documents::run::{RunDocument, RunResult};
use linerate_documents::tune::TuneDocument;
use linerate_report::presentation::{ChartPlot, Presentation, ReportTable, TableCell, present};
use linerate_report::throughput_text::TextStyle;
use linerate_report::{html, markdown, text};
use linerate_units::BitRate;
use proptest::prelude::*;

use crate::runs;

fn table<'a>(presentation: &'a Presentation<'_>, name: &str) -> &'a ReportTable {
    presentation.tables.iter().find(|table| table.name == name).unwrap_or_else(|| panic!("no table {name}"))
}

fn document(run: &RunDocument) -> &TuneDocument {
    match &run.result {
        RunResult::Tune(document) => document,
        RunResult::Doctor(document) => document.tune.as_deref().expect("a tuning"),
        other => panic!("{other:?}"),
    }
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn changes_on_an_emulated_path_need_no_undoing() {
    let mut run = RunDocument { host: "far.example".to_owned(), ..runs::tune() };
    let presentation = present(&run);
    assert!(!presentation.settings.undo.is_empty(), "{:?}", presentation.settings);
    assert_eq!(presentation.next.as_deref(), Some("sudo linerate tune undo"));
    run.host = "lab:300m-20ms".to_owned();
    let presentation = present(&run);
    assert!(!presentation.settings.settings.is_empty());
    assert_eq!((presentation.settings.undo.as_slice(), presentation.next.as_deref()), (&[][..], None));
}

#[test]
fn names_are_unique() {
    for (name, run) in runs::all() {
        let presentation = present(&run);
        let tables = presentation.tables.iter().chain(&presentation.environment).map(|table| table.name.as_str());
        for names in [tables.collect::<Vec<_>>(), presentation.charts.iter().map(|chart| chart.name.as_str()).collect()]
        {
            let mut unique = names.clone();
            unique.sort_unstable();
            unique.dedup();
            assert_eq!(unique.len(), names.len(), "{name}: {names:?}");
        }
    }
}

#[test]
fn every_format_has_each_change_on_one_line() {
    for run in [runs::tune(), runs::tune_planned(), runs::doctor()] {
        let presentation = [present(&run)];
        let changes = document(&run).rounds.iter().flat_map(|round| &round.changes);
        let forms = [
            text::render(&presentation, TextStyle::plain()),
            markdown::render(&presentation).replace('\\', ""),
            html::render(&presentation),
        ];
        for one in changes.filter(|one| !one.change.to.contains('\n')) {
            for form in &forms {
                // On one line: a wrapped value cannot be copied.
                assert!(form.lines().any(|line| line.contains(&one.change.to)), "{} in {form}", one.change.to);
                let arithmetic = one.change.reason.arithmetic.as_deref().expect("each has it");
                assert!(flat(form).contains(arithmetic), "{arithmetic} in {form}");
            }
        }
    }
}

#[test]
fn each_measurement_of_a_trial_is_drawn_in_order() {
    let run = runs::tune();
    let presentation = present(&run);
    let chart = presentation.charts.iter().find(|chart| chart.name == "trial_1_goodput").expect("the chart");
    let ChartPlot::Bars(bars) = &chart.plot else { panic!("{chart:?}") };
    let drawn: Vec<f64> = bars.rows.iter().flat_map(|row| row.bars.iter().filter_map(|(value, _)| *value)).collect();
    let pairs = &document(&run).rounds[0].trials[0].pairs;
    let measured: Vec<f64> =
        pairs.iter().flat_map(|pair| [&pair.before, &pair.after]).map(|one| one.goodput.bits_per_second()).collect();
    assert_eq!(drawn, measured);
    let excluded: Vec<bool> = bars.rows.iter().map(|row| row.label.contains("excluded")).collect();
    assert_eq!(excluded, pairs.iter().map(|pair| pair.fault.is_some()).collect::<Vec<_>>());
}

#[test]
fn an_alternative_that_was_tried_is_named() {
    let mut run = runs::tune();
    let note = |run: &RunDocument| table(&present(run), "trial_1").note.clone().expect("the sentence");
    assert!(!note(&run).contains("Tried:"), "the plan has it already");
    let RunResult::Tune(document) = &mut run.result else { panic!("a tuning") };
    document.rounds[0].trials[0].name = "near net.ipv4.tcp_wmem = 4096 16384 134217728".to_owned();
    assert!(note(&run).contains("Tried: near net.ipv4.tcp_wmem = 4096 16384 134217728."), "{}", note(&run));
}

#[test]
fn the_undo_command_of_each_host_is_shown() {
    let run = runs::tune();
    let text = flat(&text::render(&[present(&run)], TextStyle::plain()));
    for wanted in ["near to undo linerate rollback 7 far", "far to undo ssh far linerate rollback 3"] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
}

#[test]
fn unknown_values_of_a_tuning_have_reasons() {
    let run = runs::tune_broken_off();
    let presentation = present(&run);
    let reason = |name: &str, row: usize, cell: usize| match &table(&presentation, name).rows[row].cells[cell] {
        TableCell::Unknown(reason) => reason.clone(),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(reason("limits", 0, 0), "the measurement before was not recorded");
    assert_eq!(reason("trial_1", 0, 0), "no valid pair of measurements");
    assert!(reason("effects", 0, 3).starts_with("an interval needs one trial"));
    let without = runs::doctor_without_change();
    let text = flat(&text::render(&[present(&without)], TextStyle::plain()));
    for wanted in ["the recommendation was not tried", "the trains were too short", "nothing was changed"] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
}

#[test]
fn the_recommendation_is_compared_with_the_kept_changes() {
    let run = runs::doctor();
    let presentation = present(&run);
    let rates: Vec<f64> = table(&presentation, "comparison")
        .rows
        .iter()
        .filter_map(|row| row.cells.first().and_then(TableCell::quantity))
        .map(|quantity| quantity.value)
        .collect();
    assert_eq!(rates, [267e6, 574e6, 664e6, 9.41e9, 9.49e9]);
    let drawn = presentation.charts.iter().filter(|chart| chart.name.starts_with("distribution_")).count();
    assert_eq!(drawn, 1, "of the class that decides the grade");
    let latency = table(&presentation, "latency_both");
    assert_eq!(latency.rows.iter().map(|row| row.label.as_str()).collect::<Vec<_>>(), ["idle", "down", "up", "both"]);
}

#[test]
fn a_plan_without_a_far_end_names_none() {
    let run = runs::tune_planned();
    let presentation = present(&run);
    assert_eq!(presentation.title, "Tuning");
    assert!(presentation.tables.iter().all(|table| table.name != "limits"));
    assert_eq!(table(&presentation, "plan_2").title, "Plan 2 against loss");
}

#[test]
fn hostile_text_of_a_tuning_stays_text() {
    let mut run = runs::tune();
    let RunResult::Tune(document) = &mut run.result else { panic!("a tuning") };
    let round = &mut document.rounds[0];
    let (proposed, tried) = (&mut round.changes[0], &mut round.trials[0]);
    let change = &mut proposed.change;
    for text in [
        &mut change.to,
        &mut change.reason.text,
        &mut round.refusals[0].text,
        &mut tried.sentence,
        &mut document.kept[0].persistent[0],
    ] {
        runs::HOSTILE.clone_into(text);
    }
    let presentation = [present(&run)];
    assert!(!html::render(&presentation).contains("<img"));
    let text = text::render(&presentation, TextStyle::plain());
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
}

/// Rates and their differences, up to future network speeds.
fn any_numbers() -> impl Strategy<Value = [Option<f64>; 5]> {
    proptest::array::uniform5(proptest::option::of(-1e15..1e15_f64))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Text fits and tables keep their shape for any document.
    #[test]
    fn any_numbers_and_words_are_shown(numbers in any_numbers(), words in any::<[String; 4]>(), rate in 0.0..1e15_f64) {
        let mut run = runs::doctor();
        let RunResult::Doctor(document) = &mut run.result else { panic!("a guided run") };
        let [before, after, difference, low, high] = numbers;
        let [to, sentence, name, lasting] = words;
        let effect = &mut document.effects[0];
        (effect.before, effect.after, effect.difference) = (before, after, difference);
        (effect.low, effect.high) = (low, high);
        let other = document.comparison.as_mut().expect("it is there");
        (other.predicted_bits_per_second, other.capacity_bits_per_second) = (low, high);
        let tune = document.tune.as_mut().expect("it is there");
        tune.kept[0].persistent = vec![lasting];
        let round = &mut tune.rounds[0];
        round.changes[0].change.to = to;
        let trial = &mut round.trials[0];
        (trial.sentence, trial.name) = (sentence, name);
        trial.pairs[0].before.goodput = BitRate::from_bits_per_second(rate);
        let presentation = [present(&run)];
        for line in text::render(&presentation, TextStyle::plain()).lines() {
            prop_assert!(line.chars().count() <= 80, "{line}");
        }
        let page = html::render(&presentation);
        for element in ["table", "tr", "td", "svg", "pre"] {
            let opened = page.matches(&format!("<{element} ")).count() + page.matches(&format!("<{element}>")).count();
            prop_assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{}", element);
        }
    }
}
