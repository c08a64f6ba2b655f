//! Answers of a STAMP reflector, one for each packet that was sent.

use std::collections::BTreeMap;
use std::time::Duration;

use linerate_fleet::pscheduler::LatencySamples;

/// Answer to a packet.
#[derive(Clone, Debug, Default)]
pub(super) struct StampAnswer {
    /// One-way delay in seconds; negative when the clocks differ by more than it.
    pub(super) delay: Option<f64>,
    pub(super) hop_limit: Option<u8>,
    /// Bound of the reflector's clock error.
    pub(super) error: Option<Duration>,
}

/// First answers to the packets sent so far, by their sequence numbers: whatever arrives, there is one for each packet at most.
#[derive(Debug, Default)]
pub(super) struct StampAnswers {
    answers: Vec<Option<StampAnswer>>,
    answered: usize,
    duplicates: u64,
    reordered: u64,
    /// Largest sequence number that was answered.
    last: Option<u32>,
}

impl StampAnswers {
    /// Adds a packet that was sent: the next sequence number, from 0 on.
    pub(super) fn add_packet(&mut self) {
        self.answers.push(None);
    }

    /// Takes the answer to a packet; one to a packet that was never sent has no effect.
    pub(super) fn take(&mut self, number: u32, answer: StampAnswer) {
        let Some(slot) = self.answers.get_mut(number as usize) else { return };
        if slot.is_some() {
            self.duplicates += 1;
            return;
        }
        *slot = Some(answer);
        self.answered += 1;
        self.reordered += u64::from(self.last.is_some_and(|last| last > number));
        self.last = self.last.max(Some(number));
    }

    /// True when every packet was answered.
    pub(super) fn is_complete(&self) -> bool {
        self.answered == self.answers.len()
    }

    /// True when no packet was answered.
    pub(super) fn is_empty(&self) -> bool {
        self.answered == 0
    }

    /// Samples of the answers, with the error of this host's clock.
    pub(super) fn samples(&self, clock_error: Option<Duration>) -> LatencySamples {
        let answers = || self.answers.iter().flatten();
        let mut hop_limits = BTreeMap::<u8, u64>::new();
        for hops in answers().filter_map(|answer| answer.hop_limit) {
            *hop_limits.entry(hops).or_default() += 1;
        }
        let reflectors: Option<Vec<Duration>> = answers().map(|answer| answer.error).collect();
        let reflectors = reflectors.and_then(|errors| errors.into_iter().max());
        LatencySamples {
            delays_seconds: answers().filter_map(|answer| answer.delay).collect(),
            sent: self.answers.len() as u64,
            duplicates: self.duplicates,
            reordered: self.reordered,
            hop_limits: hop_limits.into_iter().collect(),
            clock_error: clock_error.zip(reflectors).map(|(own, reflectors)| own + reflectors),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(sent: u32, arrived: &[u32]) -> StampAnswers {
        let mut answers = StampAnswers::default();
        (0..sent).for_each(|_| answers.add_packet());
        for number in arrived {
            let answer = StampAnswer { delay: Some(f64::from(*number)), hop_limit: Some(64), error: None };
            answers.take(*number, answer);
        }
        answers
    }

    #[test]
    fn packets_that_were_never_sent_have_no_answers() {
        let answers = answers(2, &[2, 7, u32::MAX]);
        assert!(answers.is_empty());
        assert_eq!(answers.samples(None), LatencySamples { sent: 2, ..LatencySamples::default() });
    }

    #[test]
    fn repeated_answers_take_neither_memory_nor_the_turn_of_missing_ones() {
        let mut answers = answers(3, &[0; 1000]);
        assert_eq!((answers.answers.len(), answers.is_complete()), (3, false));
        answers.take(2, StampAnswer::default());
        answers.take(1, StampAnswer::default());
        assert!(answers.is_complete());
        let samples = answers.samples(None);
        assert_eq!((samples.sent, samples.duplicates, samples.reordered), (3, 999, 1));
        assert_eq!((samples.delays_seconds, samples.hop_limits), (vec![0.0], vec![(64, 1)]));
    }

    #[test]
    fn clocks_of_both_ends_bound_the_error() {
        let mut answers = answers(2, &[]);
        let answer = |error| StampAnswer { error: Some(Duration::from_millis(error)), ..StampAnswer::default() };
        answers.take(0, answer(2));
        answers.take(1, answer(5));
        assert_eq!(answers.samples(Some(Duration::from_millis(1))).clock_error, Some(Duration::from_millis(6)));
        assert_eq!(answers.samples(None).clock_error, None);
    }
}
