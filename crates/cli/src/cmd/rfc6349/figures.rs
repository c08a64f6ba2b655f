//! Figures of an RFC 6349 run.

use linerate_documents::rfc6349::{LoadedDirections, Rfc6349Document, TcpTest};
use linerate_documents::run::{FigureUnit, ImprovementDirection, RunFigure};
use linerate_engine::rfc6349::Rfc6349Outcome;
use linerate_model::direction::Direction;

pub(super) fn all_figures(outcome: &Rfc6349Outcome) -> Vec<RunFigure> {
    let document = &outcome.document;
    let mut figures = vec![RunFigure::new(
        "rtt_baseline",
        "Baseline round trip",
        FigureUnit::Nanoseconds,
        ImprovementDirection::Lower,
    )];
    figures[0].value = document.baseline.rtt_ns.map(number);
    for (direction, name, label) in [(Direction::Up, "up", "up"), (Direction::Down, "down", "down")] {
        let bandwidth = match direction {
            Direction::Up => document.baseline.bandwidth_up_bits_per_second,
            Direction::Down => document.baseline.bandwidth_down_bits_per_second,
        };
        let mut bottleneck = RunFigure::new(
            format!("bandwidth_{name}"),
            format!("Bottleneck bandwidth {label}"),
            FigureUnit::BitsPerSecond,
            ImprovementDirection::Higher,
        );
        bottleneck.value = bandwidth;
        figures.push(bottleneck);
        for (kind, title, many) in [("single", "1 connection", false), ("parallel", "several connections", true)] {
            figures.extend(metrics(document, direction, name, kind, title, many));
        }
    }
    figures
}

/// Metrics of one transfer; empty if it was not planned.
fn metrics(
    document: &Rfc6349Document,
    direction: Direction,
    direction_name: &str,
    kind: &str,
    title: &str,
    many: bool,
) -> Vec<RunFigure> {
    let is_it = |test: &&TcpTest| {
        test.direction == direction && test.flows != LoadedDirections::Both && (test.connections > 1) == many
    };
    let Some(test) = document.tests.iter().find(is_it) else { return Vec::new() };
    let of = |name: &str, label: &str, unit, better, value: Option<f64>| RunFigure {
        value,
        note: test.problem.clone(),
        ..RunFigure::new(
            format!("{name}_{direction_name}_{kind}"),
            format!("{label} {direction_name}, {title}"),
            unit,
            better,
        )
    };
    vec![
        of("goodput", "Goodput", FigureUnit::BitsPerSecond, ImprovementDirection::Higher, test.goodput_bits_per_second),
        of(
            "transfer_time_ratio",
            "Transfer time ratio",
            FigureUnit::One,
            ImprovementDirection::Lower,
            test.transfer_time_ratio,
        ),
        of("efficiency", "TCP efficiency", FigureUnit::Share, ImprovementDirection::Higher, test.efficiency),
        of("buffer_delay", "Buffer delay", FigureUnit::Share, ImprovementDirection::Lower, test.buffer_delay),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "times of a measurement stay below 2^53 ns")]
fn number(value: u64) -> f64 {
    value as f64
}
