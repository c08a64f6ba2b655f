//! Results of the latest rounds at one distance.

use core::time::Duration;
use std::collections::VecDeque;

use linerate_units::MonotonicTime;

use super::prober::PATIENCE;

/// Rounds that are kept: four minutes at one a second, and the columns of a wide chart.
const MAX_ROUNDS: usize = 240;

/// Result of a round at one hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopRound {
    /// Number of the round, from 0.
    pub round: u64,
    /// Round trip; `None` without a reply.
    pub round_trip: Option<Duration>,
}

/// Probes of the latest rounds to one distance.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentRounds(VecDeque<RecentProbe>);

/// Probe of a round.
#[derive(Clone, Debug)]
struct RecentProbe {
    /// Identity, which the answer has, too.
    number: u64,
    sent: MonotonicTime,
    result: HopRound,
}

impl RecentRounds {
    pub(super) fn sent(&mut self, number: u64, round: u64, sent: MonotonicTime) {
        if self.0.len() == MAX_ROUNDS {
            self.0.pop_front();
        }
        self.0.push_back(RecentProbe { number, sent, result: HopRound { round, round_trip: None } });
    }

    pub(super) fn answered(&mut self, number: u64, round_trip: Duration) {
        if let Some(probe) = self.0.iter_mut().rfind(|probe| probe.number == number) {
            probe.result.round_trip = Some(round_trip);
        }
    }

    /// Results without those whose answers may still come.
    pub(super) fn settled(&self, now: MonotonicTime) -> Vec<HopRound> {
        let is_settled = |probe: &&RecentProbe| probe.result.round_trip.is_some() || now.since(probe.sent) >= PATIENCE;
        self.0.iter().filter(is_settled).map(|probe| probe.result).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn a_probe_in_flight_is_no_loss_and_a_late_answer_ends_one() {
        let mut rounds = RecentRounds::default();
        (0..3).for_each(|round| rounds.sent(100 + round, round, at(round * 500)));
        let round_trip = Duration::from_millis(10);
        rounds.answered(101, round_trip);
        let lost = |round| HopRound { round, round_trip: None };
        let answered = |round| HopRound { round, round_trip: Some(round_trip) };
        assert_eq!(rounds.settled(at(1100)), [lost(0), answered(1)]);
        rounds.answered(100, round_trip);
        rounds.answered(7, round_trip);
        assert_eq!(rounds.settled(at(1800)), [answered(0), answered(1), lost(2)]);
    }

    #[test]
    fn a_day_of_rounds_is_bounded() {
        let mut rounds = RecentRounds::default();
        (0..86_400).for_each(|round| rounds.sent(round, round, at(round * 1000)));
        let kept = rounds.settled(at(90_000_000));
        assert_eq!((kept.len(), kept[0].round), (MAX_ROUNDS, 86_400 - 240));
    }
}
