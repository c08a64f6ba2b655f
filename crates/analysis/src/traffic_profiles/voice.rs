use core::time::Duration;

use linerate_units::{PacketCount, Ratio};

use crate::formulas::{TransmissionRating, VoiceCodec};
use crate::latency_under_load::LatencyGrade;

/// Time that a packet takes to fill, before it is sent.
const PACKET_TIME: Duration = Duration::from_millis(20);

/// Smallest share of the packets that a buffer against jitter waits for, in percent.
const MIN_PLAYED_PERCENT: usize = 50;

/// One direction of a call after the buffer against jitter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayedVoice {
    /// Time from sending to playing, the same for all packets.
    pub playout: Duration,
    /// Packets sent.
    pub sent: u64,
    /// Packets that did not arrive.
    pub lost: u64,
    /// Packets that arrived after their playout.
    pub late: u64,
    /// Mean length of runs of packets not played, relative to random loss (G.107 §7.5).
    pub burst_ratio: Ratio,
}

impl PlayedVoice {
    /// Plays packets, given by their delays in the order of sending (`None` for a lost one), with the playout that gives
    /// the best rating: the limit that adaptive buffers approach. `None` when none arrived.
    #[must_use]
    pub fn best(delays: &[Option<Duration>]) -> Option<Self> {
        let mut arrived: Vec<Duration> = delays.iter().copied().flatten().collect();
        arrived.sort_unstable();
        let last = arrived.len().checked_sub(1)?;
        let candidates = (MIN_PLAYED_PERCENT..=100).map(|percent| arrived[last * percent / 100]);
        let rated = candidates.map(|playout| {
            let played = Self::at(delays, playout);
            (played.rating(playout + PACKET_TIME), played)
        });
        rated.max_by(|(one, _), (other, _)| one.get().total_cmp(&other.get())).map(|(_, played)| played)
    }

    /// Plays packets at this time after their sending.
    #[must_use]
    pub fn at(delays: &[Option<Duration>], playout: Duration) -> Self {
        let is_played = |delay: &Option<Duration>| delay.is_some_and(|delay| delay <= playout);
        let lost = delays.iter().filter(|delay| delay.is_none()).count();
        let missing = delays.iter().filter(|delay| !is_played(delay)).count();
        let runs = delays.chunk_by(|one, other| is_played(one) == is_played(other));
        let runs = runs.filter(|run| run.first().is_some_and(|delay| !is_played(delay))).count();
        let number = |count: usize| PacketCount::new(count as u64).as_f64();
        // Random loss with probability p has runs of 1 / (1 − p) packets.
        let played_share = number(delays.len() - missing) / number(delays.len()).max(1.0);
        let burst_ratio = Ratio::of(number(missing) * played_share, number(runs)).unwrap_or_default();
        Self {
            playout,
            sent: delays.len() as u64,
            lost: lost as u64,
            late: (missing - lost) as u64,
            burst_ratio: burst_ratio.max(Ratio::new(1.0).unwrap_or_default()),
        }
    }

    /// Share of the packets that were not played.
    #[must_use]
    pub fn loss(&self) -> Ratio {
        let number = |count: u64| PacketCount::new(count).as_f64();
        Ratio::of(number(self.lost + self.late), number(self.sent)).unwrap_or_default()
    }

    fn rating(&self, delay: Duration) -> TransmissionRating {
        TransmissionRating::of(&VoiceCodec::G711, delay, self.loss(), self.burst_ratio)
    }
}

/// Telephone call: both directions, `None` where nothing arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VoiceCall {
    /// To the far end.
    pub up: Option<PlayedVoice>,
    /// From the far end.
    pub down: Option<PlayedVoice>,
}

impl VoiceCall {
    /// Call whose packets have these delays, as in [`PlayedVoice::best`].
    #[must_use]
    pub fn of(up: &[Option<Duration>], down: &[Option<Duration>]) -> Self {
        Self { up: PlayedVoice::best(up), down: PlayedVoice::best(down) }
    }

    /// One-way delay from mouth to ear, the mean of both directions: both sides wait for the sum of them. `None` when a
    /// direction played nothing.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        Some((self.up?.playout + self.down?.playout) / 2 + PACKET_TIME)
    }

    /// Rating of a direction: what its listener hears. Zero when nothing arrived there, or no answer came.
    #[must_use]
    pub fn rating(&self, played: Option<PlayedVoice>) -> TransmissionRating {
        let rating = played.zip(self.delay()).map(|(played, delay)| played.rating(delay));
        rating.unwrap_or(TransmissionRating::new(0.0))
    }

    /// Rating of the worse direction.
    #[must_use]
    pub fn worse_rating(&self) -> TransmissionRating {
        let (up, down) = (self.rating(self.up), self.rating(self.down));
        if up < down { up } else { down }
    }

    /// Grade by the bands of G.107 Annex B: users very satisfied from 90 on, satisfied from 80, some dissatisfied from 70,
    /// many from 60, nearly all below.
    #[must_use]
    pub fn grade(&self) -> LatencyGrade {
        match self.worse_rating().get() {
            rating if rating >= 90.0 => LatencyGrade::A,
            rating if rating >= 80.0 => LatencyGrade::B,
            rating if rating >= 70.0 => LatencyGrade::C,
            rating if rating >= 60.0 => LatencyGrade::D,
            _ => LatencyGrade::F,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn delays(milliseconds: &[Option<u64>]) -> Vec<Option<Duration>> {
        milliseconds.iter().map(|delay| delay.map(Duration::from_millis)).collect()
    }

    #[test]
    fn an_even_delay_is_played_at_once() {
        let even = delays(&[Some(30); 500]);
        let call = VoiceCall::of(&even, &even);
        assert_eq!(call.delay(), Some(Duration::from_millis(50)));
        assert!(call.worse_rating().mean_opinion_score() > 4.35, "{:?}", call.worse_rating());
        assert_eq!(call.grade(), LatencyGrade::A);
    }

    #[test]
    fn rare_stragglers_are_given_up_and_frequent_ones_waited_for() {
        let mut packets = vec![Some(30); 100];
        packets[50] = Some(900);
        let rare = PlayedVoice::best(&delays(&packets)).expect("packets");
        assert_eq!((rare.playout, rare.late, rare.lost), (Duration::from_millis(30), 1, 0));
        let frequent: Vec<Option<u64>> = (0..100).map(|number| Some(if number % 3 == 0 { 80 } else { 30 })).collect();
        let frequent = PlayedVoice::best(&delays(&frequent)).expect("packets");
        assert_eq!((frequent.playout, frequent.late), (Duration::from_millis(80), 0));
    }

    #[test]
    fn runs_of_lost_packets_have_a_burst_ratio() {
        // Four runs of two among 80: 2 × (72 / 80).
        let packets: Vec<Option<u64>> = (0..80).map(|number| (number % 20 > 1).then_some(10)).collect();
        let played = PlayedVoice::at(&delays(&packets), Duration::from_millis(10));
        assert_eq!((played.lost, played.burst_ratio), (8, Ratio::new(1.8).expect("1.8")));
        assert!((played.loss().percent() - 10.0).abs() < 1e-9);
        // Evenly spaced losses count as random ones.
        let packets: Vec<Option<u64>> = (0..80).map(|number| (number % 10 > 0).then_some(10)).collect();
        assert_eq!(PlayedVoice::at(&delays(&packets), Duration::from_secs(1)).burst_ratio.get().to_string(), "1");
    }

    #[test]
    fn a_long_queue_in_one_direction_spoils_the_call_for_both() {
        let call = VoiceCall::of(&delays(&[Some(1500); 100]), &delays(&[Some(20); 100]));
        assert_eq!(call.grade(), LatencyGrade::F);
        assert!(call.rating(call.down).mean_opinion_score() < 2.5);
        let silent = VoiceCall::of(&delays(&[None; 100]), &delays(&[Some(20); 100]));
        assert_eq!((silent.up, silent.worse_rating().mean_opinion_score()), (None, 1.0));
    }

    proptest! {
        #[test]
        fn the_best_playout_is_at_least_as_good_as_waiting_for_all(
            packets in proptest::collection::vec(proptest::option::weighted(0.9, 1_u64..400), 1..200)
        ) {
            let packets = delays(&packets);
            let Some(best) = PlayedVoice::best(&packets) else { return Ok(()) };
            let longest = packets.iter().copied().flatten().max().unwrap_or_default();
            let all = PlayedVoice::at(&packets, longest);
            prop_assert_eq!(all.late, 0);
            let rating = |played: &PlayedVoice| played.rating(played.playout + PACKET_TIME).get();
            prop_assert!(rating(&best) >= rating(&all));
            prop_assert!(best.lost + best.late <= best.sent);
        }
    }
}
