//! Results for the tests.

use linerate_documents::fleet_result::{FleetResult, SessionOutcome};
use linerate_documents::run::{FigureUnit, ImprovementDirection, RunFigure};
use linerate_units::WallTime;
use proptest::prelude::*;

mod diagnosis;

pub(crate) use diagnosis::diagnosis;

pub(crate) fn figure(name: &str, unit: FigureUnit, value: f64) -> RunFigure {
    RunFigure { value: Some(value), ..RunFigure::new(name, name, unit, ImprovementDirection::Higher) }
}

pub(crate) fn result(seconds: u64, outcome: SessionOutcome) -> FleetResult {
    let at = WallTime::from_unix(core::time::Duration::from_secs(seconds));
    FleetResult {
        outcome,
        verdict: "The receive window limits it.".to_owned(),
        figures: vec![
            figure("goodput_down", FigureUnit::BitsPerSecond, 8e6),
            figure("rtt_idle_median", FigureUnit::Nanoseconds, 25e6),
            figure("loss_up", FigureUnit::Share, 0.125),
            figure("mtu_up", FigureUnit::Bytes, 1500.0),
            figure("goodput_up", FigureUnit::Nanoseconds, 5e8),
        ],
        ..FleetResult::unstarted("limits", "diagnose", ["a", "b"], at)
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{0,5}", "(?s).{0,12}", Just("\"\\\n\r\u{0}{}=".to_owned())]
}

fn any_figure() -> impl Strategy<Value = RunFigure> {
    let names = prop_oneof!["(goodput|rtt|loss|rpm|mtu|capacity)_(up|down|both|idle)(_parallel)?", text()];
    let units = proptest::sample::select(FigureUnit::ALL.to_vec());
    (names, units, proptest::option::of(any::<f64>())).prop_map(|(name, unit, value)| RunFigure {
        value,
        ..RunFigure::new(name.clone(), name, unit, ImprovementDirection::Neither)
    })
}

pub(crate) fn any_result() -> impl Strategy<Value = FleetResult> {
    let outcome = proptest::sample::select(vec![SessionOutcome::Done, SessionOutcome::Failed, SessionOutcome::Skipped]);
    let texts = proptest::collection::vec(text(), 6);
    let figures = proptest::collection::vec(any_figure(), 0..8);
    let run = prop_oneof![
        Just(None),
        Just(Some(diagnosis("up", "receive-window"))),
        Just(Some(diagnosis("down", "policer")))
    ];
    (texts, any::<u64>(), outcome, figures, run, proptest::option::of(text())).prop_map(
        |(texts, at_unix_ns, outcome, figures, run, reason)| {
            let [id, task, test, source, destination, verdict] = <[String; 6]>::try_from(texts).expect("six texts");
            let at = WallTime::from_unix(core::time::Duration::from_nanos(at_unix_ns));
            let unstarted = FleetResult::unstarted(&task, test, [&source, &destination], at);
            FleetResult { id, outcome, reason, verdict, figures, run, ..unstarted }
        },
    )
}
