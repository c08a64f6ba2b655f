//! A guided run on the long fat path.

use linerate_documents::doctor::{DoctorDocument, DoctorStage, DoctorStep, RecommendationComparison};
use linerate_documents::run::{FigureUnit, ImprovementDirection, RunDocument, RunKind, RunResult};
use linerate_documents::tune::{MeasuredEffect, TuneOutcome};
use linerate_model::path::UnknownValue;

use super::{SECOND, STARTED, complete, figure, run, unknown_figure};

fn step(name: DoctorStage, seconds: u64, resumed: bool, text: &str) -> DoctorStep {
    DoctorStep { name, text: text.to_owned(), duration_ns: seconds * SECOND, resumed }
}

fn document() -> DoctorDocument {
    let tune = super::tune::document();
    DoctorDocument {
        schema: 1,
        linerate_version: "0.1.0".to_owned(),
        host: tune.host.clone(),
        port: 5201,
        started_at_unix_ns: STARTED,
        duration_ns: 402 * SECOND,
        termination: complete(),
        sentence: "The receive window held it at 267 Mbit/s; with 403 MB it is 9.41 Gbit/s, and the link is full."
            .to_owned(),
        steps: vec![
            step(DoctorStage::Path, 41, true, "10.0 Gbit/s per direction at 117 ms, nothing lost."),
            step(DoctorStage::Load, 40, false, "The load adds 0.4 ms: grade A+."),
            step(DoctorStage::Diagnose, 12, false, "The receive window limits (high confidence): 267 Mbit/s."),
            step(DoctorStage::Plan, 0, false, "Three changes, two of them on the far host."),
            step(DoctorStage::Trial, 214, false, "Kept: goodput 267 Mbit/s -> 9.41 Gbit/s in 4 pairs."),
            step(DoctorStage::Verify, 40, false, "9.41 Gbit/s, and the load adds 1.2 ms."),
        ],
        path: Some(Box::new(super::path::document())),
        load_before: Some(Box::new(super::load::document(0.01))),
        load_after: Some(Box::new(super::load::document(0.012))),
        comparison: Some(RecommendationComparison {
            source: "RHEL guide, TCP throughput".to_owned(),
            settings: vec![
                "net.ipv4.tcp_rmem = 4096 131072 16777216".to_owned(),
                "net.ipv4.tcp_wmem = 4096 16384 16777216".to_owned(),
            ],
            arithmetic: "16 MiB as printed there, for any path: half of it is window, 8.39 MB x 8 / 117 ms = 574 \
                         Mbit/s; the path needs 146 MB of window"
                .to_owned(),
            predicted_bits_per_second: Some(574e6),
            measured_bits_per_second: Some(664e6),
            capacity_bits_per_second: Some(9.49e9),
        }),
        effects: tune.effects.clone(),
        tune: Some(Box::new(tune)),
        unknown: Vec::new(),
        notes: vec!["Everything was measured in the lab.".to_owned()],
    }
}

fn of(document: DoctorDocument) -> RunDocument {
    let (verdict, host) = (document.sentence.clone(), document.host.clone());
    let result = RunResult::Doctor(Box::new(document));
    let mut run = run(RunKind::Doctor, 402, &["doctor", &host, "--yes"], &verdict, result);
    run.host = host;
    run.figures =
        vec![figure("goodput", "Goodput", FigureUnit::BitsPerSecond, Some(9.41e9), ImprovementDirection::Higher)];
    run
}

/// Everything ran.
pub(crate) fn doctor() -> RunDocument {
    of(document())
}

/// A path that no host limits: nothing was tried, not even the recommendation.
pub(crate) fn doctor_without_change() -> RunDocument {
    let mut document = document();
    document.sentence = "The path is full at 9.41 Gbit/s: there is nothing to change on a host.".into();
    document.steps.truncate(3);
    document.load_after = None;
    document.effects = vec![MeasuredEffect {
        after: None,
        difference: None,
        low: None,
        high: None,
        ..super::tune::effects().remove(0)
    }];
    if let Some(tune) = &mut document.tune {
        tune.outcome = TuneOutcome::NothingToChange;
        tune.rounds.clear();
        tune.contributions.clear();
        tune.kept.clear();
        tune.after = None;
    }
    if let Some(comparison) = &mut document.comparison {
        comparison.measured_bits_per_second = None;
        comparison.capacity_bits_per_second = None;
    }
    let unknown = |key: &str, reason: &str| UnknownValue { key: key.to_owned(), reason: reason.to_owned() };
    document.unknown = vec![
        unknown("comparison.capacity_bits_per_second", "the trains were too short for this path"),
        unknown("effects.goodput", "nothing was changed"),
    ];
    let mut run = of(document);
    run.figures =
        vec![unknown_figure("added_up", "Added delay up", FigureUnit::Nanoseconds, "it was not measured again")];
    run
}
