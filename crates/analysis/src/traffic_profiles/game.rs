use core::time::Duration;

use linerate_units::{CompactSort, PacketCount, Ratio};

use crate::latency_under_load::LatencyGrade;

/// Longest reaction that players of a shooter do not notice (Claypool and Claypool 2006).
const DEADLINE: Duration = Duration::from_millis(100);

/// Reaction from which players leave a server (Armitage 2003: 150 to 180 ms), and one and a half times that.
const MAX_TOLERATED_REACTION: Duration = Duration::from_millis(150);
const MAX_PLAYABLE_REACTION: Duration = Duration::from_millis(250);

/// Input of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GameInput {
    /// Time of sending, by the player's clock.
    pub sent: Duration,
    /// Arrival, by the server's clock; `None` when it was lost.
    pub arrived: Option<Duration>,
}

/// Update of the server that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GameUpdate {
    /// Time of sending, by the server's clock.
    pub sent: Duration,
    /// Arrival, by the player's clock.
    pub arrived: Duration,
}

/// Reactions to the inputs of a player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GameSession {
    /// Time from each input to the arrival of the first update that was sent after its arrival; `None` for a lost input,
    /// and where no update came. Each clock is compared with itself only.
    pub reactions: Vec<Option<Duration>>,
}

impl GameSession {
    /// Deadline of a reaction.
    pub const DEADLINE: Duration = DEADLINE;

    /// Reactions to `inputs` by `updates`, in any order.
    #[must_use]
    pub fn of(inputs: &[GameInput], updates: &[GameUpdate]) -> Self {
        let mut shown: Vec<GameUpdate> = updates.to_vec();
        shown.sort_compactly_by_key(|update| update.sent);
        // A later update may overtake an earlier one.
        let mut earliest = Duration::MAX;
        for update in shown.iter_mut().rev() {
            earliest = earliest.min(update.arrived);
            update.arrived = earliest;
        }
        let reaction = |input: &GameInput| {
            let known = input.arrived?;
            let update = shown.get(shown.partition_point(|update| update.sent < known))?;
            Some(update.arrived.saturating_sub(input.sent))
        };
        Self { reactions: inputs.iter().map(reaction).collect() }
    }

    /// Number of inputs without a reaction within the deadline.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.reactions.iter().filter(|reaction| reaction.is_none_or(|time| time > DEADLINE)).count() as u64
    }

    /// Share of inputs without a reaction within the deadline; `None` without inputs.
    #[must_use]
    pub fn missed_share(&self) -> Option<Ratio> {
        let number = |count: u64| PacketCount::new(count).as_f64();
        Ratio::of(number(self.missed()), number(self.reactions.len() as u64))
    }

    /// Grade: A up to 1 % beyond the deadline, B up to 5 %, C when 95 % of the reactions take at most 150 ms, D 250 ms;
    /// F above. `None` without inputs.
    #[must_use]
    pub fn grade(&self) -> Option<LatencyGrade> {
        let missed = self.missed_share()?.percent();
        let mut times: Vec<Duration> = self.reactions.iter().map(|time| time.unwrap_or(Duration::MAX)).collect();
        times.sort_unstable();
        let p95 = times.get((times.len() * 95).div_ceil(100).checked_sub(1)?)?;
        Some(match missed {
            missed if missed <= 1.0 => LatencyGrade::A,
            missed if missed <= 5.0 => LatencyGrade::B,
            _ if *p95 <= MAX_TOLERATED_REACTION => LatencyGrade::C,
            _ if *p95 <= MAX_PLAYABLE_REACTION => LatencyGrade::D,
            _ => LatencyGrade::F,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// Inputs and updates each 20 ms, of a path with these delays; the server's clock is 5 s ahead.
    fn session(up: u64, down: u64) -> GameSession {
        let inputs: Vec<GameInput> = (0..100)
            .map(|number| GameInput { sent: ms(number * 20), arrived: Some(ms(5000 + number * 20 + up)) })
            .collect();
        let updates: Vec<GameUpdate> = (0..200)
            .map(|number| GameUpdate { sent: ms(5000 + number * 20), arrived: ms(number * 20 + down) })
            .collect();
        GameSession::of(&inputs, &updates)
    }

    #[test]
    fn a_reaction_waits_for_the_next_update() {
        // The input arrives after 15 ms, the next update leaves at 20 ms and takes 25 ms.
        let session = session(15, 25);
        assert!(session.reactions.iter().all(|time| *time == Some(ms(45))), "{:?}", session.reactions[0]);
        assert_eq!((session.missed(), session.grade()), (0, Some(LatencyGrade::A)));
    }

    #[test]
    fn grades_follow_the_deadline_and_the_slowest_reactions() {
        for (up, down, grade) in [
            (40, 50, LatencyGrade::A),
            (80, 60, LatencyGrade::C),
            (160, 60, LatencyGrade::D),
            (1000, 20, LatencyGrade::F),
        ] {
            assert_eq!(session(up, down).grade(), Some(grade), "{up} and {down} ms");
        }
        let mut few = session(10, 10);
        few.reactions[3..6].fill(None);
        assert_eq!((few.missed(), few.grade()), (3, Some(LatencyGrade::B)));
        assert_eq!(GameSession::of(&[], &[]).grade(), None);
        let lost = GameSession::of(&[GameInput { sent: ms(1), arrived: None }], &[]);
        assert_eq!((lost.missed_share(), lost.grade()), (Ratio::new(1.0), Some(LatencyGrade::F)));
    }

    #[test]
    fn an_update_that_overtakes_counts() {
        let input = GameInput { sent: ms(0), arrived: Some(ms(10)) };
        let updates =
            [(10, 90), (30, 50), (50, 80)].map(|(sent, arrived)| GameUpdate { sent: ms(sent), arrived: ms(arrived) });
        assert_eq!(GameSession::of(&[input], &updates).reactions, [Some(ms(50))]);
    }

    proptest! {
        #[test]
        fn further_updates_never_delay_a_reaction(
            inputs in proptest::collection::vec((0_u64..500, 0_u64..500), 1..20),
            updates in proptest::collection::vec((0_u64..1000, 0_u64..500), 0..40),
        ) {
            let inputs: Vec<GameInput> = inputs.iter()
                .map(|(sent, delay)| GameInput { sent: ms(*sent), arrived: Some(ms(sent + delay)) }).collect();
            let updates: Vec<GameUpdate> = updates.iter()
                .map(|(sent, delay)| GameUpdate { sent: ms(*sent), arrived: ms(sent + delay) }).collect();
            let fewer = GameSession::of(&inputs, &updates[..updates.len() / 2]);
            let more = GameSession::of(&inputs, &updates);
            for (fewer, more) in fewer.reactions.iter().zip(&more.reactions) {
                prop_assert!(fewer.is_none_or(|time| more.is_some_and(|better| better <= time)));
            }
        }
    }
}
