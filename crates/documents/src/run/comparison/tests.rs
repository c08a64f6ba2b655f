use linerate_model::direction::Direction;
use linerate_model::report::TestTermination;
use proptest::prelude::*;

use super::*;
use crate::diagnose::DiagnoseDocument;
use crate::run::{FigureUnit, ImprovementDirection, LabPath, RunKind};

fn figure(value: f64, spread: f64, better: ImprovementDirection, unit: FigureUnit) -> RunFigure {
    RunFigure {
        value: Some(value),
        low: Some(value - spread),
        high: Some(value + spread),
        count: Some(10),
        ..RunFigure::new("figure", "Figure", unit, better)
    }
}

fn run(figures: Vec<RunFigure>) -> RunDocument {
    let document = DiagnoseDocument {
        schema: 1,
        linerate_version: "0.1.0".to_owned(),
        host: "far".to_owned(),
        port: 5201,
        started_at_unix_ns: 0,
        duration_ns: 0,
        termination: TestTermination::Complete,
        direction: Direction::Up,
        transfer: Vec::new(),
        verdicts: Vec::new(),
        states: Vec::new(),
        goodput_bits_per_second: None,
        bounds: Vec::new(),
        next: None,
        contradictions: Vec::new(),
        figures: std::collections::BTreeMap::new(),
        path: None,
        observation: None,
        kernel_events: Vec::new(),
        unknown: Vec::new(),
        notes: Vec::new(),
    };
    RunDocument { figures, ..RunDocument::from(document) }
}

fn compared(before: &[RunFigure], after: &[RunFigure]) -> FigureComparison {
    let [before, after] =
        [before, after].map(|figures| figures.iter().map(|figure| run(vec![figure.clone()])).collect::<Vec<_>>());
    let comparison = RunComparison::of(&before.iter().collect::<Vec<_>>(), &after.iter().collect::<Vec<_>>());
    comparison.expect("one subject").figures.remove(0)
}

fn judged(before: (f64, f64), after: (f64, f64), better: ImprovementDirection) -> FigureJudgement {
    let of = |(value, spread)| figure(value, spread, better, FigureUnit::BitsPerSecond);
    compared(&[of(before)], &[of(after)]).judgement
}

#[test]
fn each_judgement_is_given() {
    let (higher, lower) = (ImprovementDirection::Higher, ImprovementDirection::Lower);
    assert_eq!(judged((1000.0, 3.0), (1800.0, 3.0), higher), FigureJudgement::Better);
    assert_eq!(judged((1000.0, 3.0), (1800.0, 3.0), lower), FigureJudgement::Worse);
    assert_eq!(judged((1800.0, 3.0), (1000.0, 3.0), higher), FigureJudgement::Worse);
    assert_eq!(judged((1000.0, 3.0), (1800.0, 3.0), ImprovementDirection::Neither), FigureJudgement::Different);
    // Less than the variation between runs that is assumed: 10 % of each.
    assert_eq!(judged((1000.0, 3.0), (1200.0, 3.0), higher), FigureJudgement::CannotTell);
    // An interval around zero is not "equal", whatever its width beyond the margin.
    assert_eq!(judged((1000.0, 80.0), (1010.0, 80.0), higher), FigureJudgement::CannotTell);
    assert_eq!(judged((1000.0, 5.0), (1005.0, 5.0), higher), FigureJudgement::Equal);
    let mut bare = figure(100.0, 1.0, higher, FigureUnit::BitsPerSecond);
    bare.low = None;
    assert_eq!(
        compared(std::slice::from_ref(&bare), std::slice::from_ref(&bare)).judgement,
        FigureJudgement::CannotTell
    );
    assert_eq!(judged((0.0, 0.0), (0.0, 0.0), lower), FigureJudgement::Equal, "no retransmissions in either");
}

#[test]
fn several_runs_a_side_measure_their_variation() {
    let of = |values: &[f64]| -> Vec<RunFigure> {
        let better = ImprovementDirection::Higher;
        values.iter().map(|value| figure(*value, 0.1, better, FigureUnit::BitsPerSecond)).collect()
    };
    let judged = |before: &[f64], after: &[f64]| compared(&of(before), &of(after)).judgement;
    // 5 % less, and runs that vary by 1 %.
    assert_eq!(judged(&[99.0, 100.0, 101.0, 100.0], &[94.0, 95.0, 96.0, 95.0]), FigureJudgement::Worse);
    assert_eq!(judged(&[99.0, 100.0, 101.0], &[80.0, 115.0, 90.0]), FigureJudgement::CannotTell);
    assert_eq!(judged(&[100.0, 100.1, 99.9, 100.0], &[100.0, 99.9, 100.1, 100.2]), FigureJudgement::Equal);
    let found = compared(&of(&[99.0, 100.0, 101.0]), &of(&[109.0, 110.0, 111.0]));
    assert_eq!((found.before.value, found.after.value, found.difference), (Some(100.0), Some(110.0), Some(10.0)));
    // Welch: standard error sqrt(2/3), four degrees of freedom, t = 2.776.
    assert!(found.low.is_some_and(|low| (low - (10.0 - 2.267)).abs() < 0.01), "{found:?}");
    // Two runs a side do not show it.
    assert_eq!(judged(&[100.0, 100.0], &[95.0, 95.0]), FigureJudgement::CannotTell);
    // Counts vary at least as independent events do.
    let counts = |values: &[f64]| -> Vec<RunFigure> {
        values.iter().map(|value| figure(*value, 0.0, ImprovementDirection::Lower, FigureUnit::Segments)).collect()
    };
    assert_eq!(compared(&counts(&[0.0; 3]), &counts(&[1.0; 3])).judgement, FigureJudgement::CannotTell);
}

#[test]
fn many_figures_are_tested_together() {
    let better = ImprovementDirection::Higher;
    // A ratio of 1.38: p = 0.023 by itself, too likely for one of six.
    let figures = |last: f64| -> Vec<RunFigure> {
        let named = |index: usize, value: f64| RunFigure {
            name: format!("figure {index}"),
            ..figure(value, 1.0, better, FigureUnit::BitsPerSecond)
        };
        (0..6).map(|index| named(index, if index == 5 { last } else { 1000.0 })).collect()
    };
    let last = |count: usize| {
        let [before, after] = [1000.0, 1380.0].map(|value| run(figures(value).split_off(6 - count)));
        RunComparison::of(&[&before], &[&after]).expect("one subject").figures.pop().expect("a figure").judgement
    };
    assert_eq!((last(1), last(6)), (FigureJudgement::Better, FigureJudgement::CannotTell));
}

#[test]
fn runs_of_different_subjects_are_refused() {
    let of = || run(vec![figure(100.0, 1.0, ImprovementDirection::Higher, FigureUnit::BitsPerSecond)]);
    let refused = |after: &RunDocument| RunComparison::of(&[&of()], &[after]).expect_err("another subject").to_string();
    let kind = RunDocument { kind: RunKind::Path, ..of() };
    assert!(refused(&kind).contains("different kinds (linerate diagnose, linerate path)"), "{}", refused(&kind));
    let host = RunDocument { host: "near".to_owned(), ..of() };
    assert!(refused(&host).contains("different targets (far, near)"), "{}", refused(&host));
    let mut path = of();
    path.environment.lab = Some(LabPath { name: "lte".to_owned(), description: "rate = 1".to_owned(), seed: 1 });
    assert!(refused(&path).contains("different paths"), "{}", refused(&path));
    let mut seeds = [path.clone(), path];
    seeds[1].environment.lab.as_mut().expect("a path").seed = 2;
    assert!(RunComparison::of(&[&seeds[0]], &[&seeds[1]]).is_ok(), "another seed is the same path");
    let mut reversed = of();
    if let crate::run::RunResult::Diagnose(document) = &mut reversed.result {
        document.direction = Direction::Down;
    }
    assert!(refused(&reversed).contains("different directions (up, down)"), "{}", refused(&reversed));
    let mut protocol = of();
    if let crate::run::RunResult::Diagnose(document) = &mut protocol.result {
        document.transfer = vec!["-u".to_owned()];
    }
    assert!(refused(&protocol).contains("different protocols (TCP, UDP)"), "{}", refused(&protocol));
    let other = run(vec![RunFigure::new("other", "Other", FigureUnit::One, ImprovementDirection::Neither)]);
    assert!(refused(&other).contains("no figure in common (before: figure; after: other)"), "{}", refused(&other));
    assert!(RunComparison::of(&[], &[&of()]).is_err());
}

#[test]
fn a_tenth_of_a_millisecond_does_not_matter() {
    let of = |value| figure(value, 1e3, ImprovementDirection::Lower, FigureUnit::Nanoseconds);
    assert_eq!(compared(&[of(50e3)], &[of(120e3)]).judgement, FigureJudgement::Equal);
    assert_eq!(compared(&[of(50e3)], &[of(390e3)]).judgement, FigureJudgement::Worse);
}

#[test]
fn intervals_that_are_not_symmetric_keep_their_sides() {
    let mut before = figure(100.0, 0.0, ImprovementDirection::Higher, FigureUnit::BitsPerSecond);
    (before.low, before.high) = (Some(97.0), Some(104.0));
    let mut after = figure(110.0, 0.0, ImprovementDirection::Higher, FigureUnit::BitsPerSecond);
    (after.low, after.high) = (Some(106.0), Some(113.0));
    let comparison = compared(&[before], &[after]);
    // Down √(4² + 4²), up √(3² + 3²).
    assert!((comparison.low.expect("known") - (10.0 - 32.0_f64.sqrt())).abs() < 1e-9);
    assert!((comparison.high.expect("known") - (10.0 + 18.0_f64.sqrt())).abs() < 1e-9);
}

proptest! {
    /// Reversed, better becomes worse and everything else stays.
    #[test]
    fn both_orders_agree(was in 0.0..1e10, is in 0.0..1e10, spread in 0.0..1e9, other in 0.0..1e9) {
        let there = judged((was, spread), (is, other), ImprovementDirection::Higher);
        let back = judged((is, other), (was, spread), ImprovementDirection::Higher);
        prop_assert_eq!(back, match there {
            FigureJudgement::Better => FigureJudgement::Worse,
            FigureJudgement::Worse => FigureJudgement::Better,
            same => same,
        });
    }

    #[test]
    fn a_run_equals_itself_where_it_is_sure(value in 1.0..1e10, share in 0.0..0.01_f64) {
        prop_assert_eq!(judged((value, value * share), (value, value * share), ImprovementDirection::Higher), FigureJudgement::Equal);
    }
}
