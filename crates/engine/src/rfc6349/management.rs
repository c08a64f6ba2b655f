//! The traffic-management test (RFC 6349 §5): a direction is policed, shaped, or neither.

use linerate_documents::rfc6349::{ManagementVerdict, TcpTest, TrafficManagement};
use linerate_model::direction::Direction;
use linerate_model::path::PolicerDetection;

use super::record::Rfc6349Record;

/// Smallest buffer delay at which packets count as held back instead of dropped.
const MIN_BUFFER_DELAY: f64 = 0.2;

/// Smallest efficiency of a shaper, which drops almost nothing.
const MIN_SHAPER_EFFICIENCY: f64 = 0.995;

/// Judges both directions by the policer test of the path and the transfers over several connections.
pub(super) fn judge(record: &mut Rfc6349Record<'_>) {
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

fn judgement(direction: Direction, policer: Option<PolicerDetection>, busiest: Option<&TcpTest>) -> TrafficManagement {
    let known = policer.is_some();
    if let Some(policer) = policer.filter(|policer| policer.present) {
        let evidence = policer.evidence.clone();
        return TrafficManagement { direction, verdict: ManagementVerdict::Policed, policer: Some(policer), evidence };
    }
    let queue = busiest.and_then(|test| Some((test.buffer_delay?, test.efficiency)));
    let (verdict, evidence) = match queue {
        Some((delay, efficiency)) if delay >= MIN_BUFFER_DELAY => {
            let clean = efficiency.is_some_and(|efficiency| efficiency >= MIN_SHAPER_EFFICIENCY);
            let retransmitted =
                efficiency.map(|efficiency| format!(", {:.2} % retransmitted", 100.0 * (1.0 - efficiency)));
            let evidence = format!(
                "under load the round trip grows by {:.0} %{}: packets wait in a queue{}",
                100.0 * delay,
                retransmitted.unwrap_or_default(),
                if clean { " with almost no drops" } else { " until it overflows" },
            );
            (ManagementVerdict::Shaped, evidence)
        }
        Some((delay, _)) => (
            ManagementVerdict::Neither,
            format!("no policer was found, and the round trip grows by {:.0} % only", 100.0 * delay),
        ),
        None if known => {
            (ManagementVerdict::Neither, "no policer was found; the round trip under load is unknown".to_owned())
        }
        None => (
            ManagementVerdict::Unknown,
            "neither the policer test nor the round trip under load is available".to_owned(),
        ),
    };
    TrafficManagement { direction, verdict, policer: None, evidence }
}
