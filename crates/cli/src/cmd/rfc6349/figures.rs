//! The numbers that stand for a procedure.

use linerate_engine::rfc6349::Rfc6349Outcome;
use linerate_model::schema::rfc6349::{Flows, Rfc6349Document, TcpTest};
use linerate_model::schema::run::{Better, Figure, Unit};
use linerate_model::schema::throughput::Direction;

pub(super) fn of(outcome: &Rfc6349Outcome) -> Vec<Figure> {
    let document = &outcome.document;
    let mut figures = vec![Figure::new("rtt_baseline", "Baseline round trip", Unit::Nanoseconds, Better::Lower)];
    figures[0].value = document.baseline.rtt_ns.map(number);
    for (direction, name, words) in [(Direction::Up, "up", "up"), (Direction::Down, "down", "down")] {
        let bandwidth = match direction {
            Direction::Up => document.baseline.bandwidth_up_bits_per_second,
            Direction::Down => document.baseline.bandwidth_down_bits_per_second,
        };
        let mut bottleneck = Figure::new(
            format!("bandwidth_{name}"),
            format!("Bottleneck bandwidth {words}"),
            Unit::BitsPerSecond,
            Better::Higher,
        );
        bottleneck.value = bandwidth;
        figures.push(bottleneck);
        for (kind, title, many) in [("single", "1 connection", false), ("parallel", "several connections", true)] {
            figures.extend(metrics(document, direction, name, kind, title, many));
        }
    }
    figures
}

/// The metrics of one transfer; none where it was not planned.
fn metrics(
    document: &Rfc6349Document,
    direction: Direction,
    way: &str,
    kind: &str,
    title: &str,
    many: bool,
) -> Vec<Figure> {
    let is_it =
        |test: &&TcpTest| test.direction == direction && test.flows != Flows::Both && (test.connections > 1) == many;
    let Some(test) = document.tests.iter().find(is_it) else { return Vec::new() };
    let of = |name: &str, words: &str, unit, better, value: Option<f64>| Figure {
        value,
        note: test.problem.clone(),
        ..Figure::new(format!("{name}_{way}_{kind}"), format!("{words} {way}, {title}"), unit, better)
    };
    vec![
        of("goodput", "Goodput", Unit::BitsPerSecond, Better::Higher, test.goodput_bits_per_second),
        of("transfer_time_ratio", "Transfer time ratio", Unit::One, Better::Lower, test.transfer_time_ratio),
        of("efficiency", "TCP efficiency", Unit::Share, Better::Higher, test.efficiency),
        of("buffer_delay", "Buffer delay", Unit::Share, Better::Lower, test.buffer_delay),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "times of a measurement stay below 2^53 ns")]
fn number(value: u64) -> f64 {
    value as f64
}
