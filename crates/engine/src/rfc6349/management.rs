//! The traffic-management test (RFC 6349 §5): whether a direction is policed, shaped, or neither.

use linerate_model::schema::path::Policer;
use linerate_model::schema::rfc6349::{TcpTest, TrafficManagement};
use linerate_model::schema::throughput::Direction;

use super::record::Record;

/// From this buffer delay on, something holds packets back instead of dropping them.
const HELD_BACK: f64 = 0.2;

/// A shaper's rate is reached nearly without loss.
const WITHOUT_LOSS: f64 = 0.995;

/// Judges both directions by the policer test of the path and the transfers over several connections.
pub(super) fn judge(record: &mut Record<'_>) {
    for direction in [Direction::Up, Direction::Down] {
        let policer = record.path.as_ref().and_then(|path| match direction {
            Direction::Up => path.up.policer.clone(),
            Direction::Down => path.down.policer.clone(),
        });
        let busiest = record.tests.iter().rev().find(|test| test.direction == direction && test.problem.is_none());
        let judged = judgement(direction, policer, busiest);
        record.management.push(judged);
    }
}

fn judgement(direction: Direction, policer: Option<Policer>, busiest: Option<&TcpTest>) -> TrafficManagement {
    let known = policer.is_some();
    if let Some(policer) = policer.filter(|policer| policer.present) {
        let evidence = policer.evidence.clone();
        return TrafficManagement { direction, verdict: "policed".to_owned(), policer: Some(policer), evidence };
    }
    let queue = busiest.and_then(|test| Some((test.buffer_delay?, test.efficiency)));
    let (verdict, evidence) = match queue {
        Some((delay, efficiency)) if delay >= HELD_BACK => {
            let clean = efficiency.is_some_and(|efficiency| efficiency >= WITHOUT_LOSS);
            let sent_again = efficiency.map(|efficiency| format!(", {:.2} % sent again", 100.0 * (1.0 - efficiency)));
            let evidence = format!(
                "under load the round trip grows by {:.0} %{}: packets wait in a queue{}",
                100.0 * delay,
                sent_again.unwrap_or_default(),
                if clean { " and are hardly dropped" } else { " until it overflows" },
            );
            ("shaped", evidence)
        }
        Some((delay, _)) => {
            ("neither", format!("no policer was found, and the round trip grows by {:.0} % only", 100.0 * delay))
        }
        None if known => ("neither", "no policer was found; the round trip under load is not known".to_owned()),
        None => ("unknown", "neither the policer test nor the round trip under load could be had".to_owned()),
    };
    TrafficManagement { direction, verdict: verdict.to_owned(), policer: None, evidence }
}
