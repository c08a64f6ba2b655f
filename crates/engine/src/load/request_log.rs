//! Requests of an open connection, as they are due and as their responses arrive: no clock, no socket.

use core::time::Duration;

use linerate_units::MonotonicTime;
use linerate_wire::probe::MAX_OPEN_REQUESTS;

use super::evidence::{ProbeFate, ProbeReading};

/// Time after which a request is no longer sent: the process was stopped, or the connection accepts nothing.
const MAX_LATENESS: Duration = Duration::from_secs(1);

/// Requests at equal intervals, which no response delays. Each counts from the time at which it is due.
#[derive(Debug)]
pub(super) struct RequestLog {
    readings: Vec<ProbeReading>,
    next: MonotonicTime,
    interval: Duration,
    in_flight: u32,
}

impl RequestLog {
    /// A log whose first request is due at `first`.
    pub(super) const fn new(first: MonotonicTime, interval: Duration) -> Self {
        Self { readings: Vec::new(), next: first, interval, in_flight: 0 }
    }

    /// Time of the next request.
    pub(super) const fn next(&self) -> MonotonicTime {
        self.next
    }

    /// Number of requests so far.
    pub(super) const fn requests(&self) -> usize {
        self.readings.len()
    }

    /// True while a request that was sent has no response.
    pub(super) const fn is_waiting(&self) -> bool {
        self.in_flight > 0
    }

    pub(super) const fn set_interval(&mut self, interval: Duration) {
        self.interval = interval;
    }

    /// Number of the next request that is to be sent now. One that is too late, or has too many others in flight before it, is
    /// recorded as lost.
    pub(super) fn take_due(&mut self, now: MonotonicTime) -> Option<u64> {
        while self.next <= now {
            let sent = self.next;
            self.next = sent + self.interval;
            self.readings.push(ProbeReading { sent, fate: ProbeFate::Lost(None), up: None, down: None });
            if self.in_flight < MAX_OPEN_REQUESTS && now.since(sent) <= MAX_LATENESS {
                self.in_flight += 1;
                return Some(self.readings.len() as u64 - 1);
            }
        }
        None
    }

    /// Records a response; a second one to the same request is none.
    pub(super) fn answer(&mut self, number: u64, arrived: MonotonicTime) {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        if let Some(reading) = self.readings.get_mut(index).filter(|reading| reading.round_trip().is_none()) {
            reading.fate = ProbeFate::Answered(arrived.since(reading.sent));
            self.in_flight = self.in_flight.saturating_sub(1);
        }
    }

    /// Returns the requests in the order of sending.
    pub(super) fn take(&mut self) -> Vec<ProbeReading> {
        core::mem::take(&mut self.readings)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const INTERVAL: Duration = Duration::from_millis(50);

    const fn at(milliseconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(milliseconds * 1_000_000)
    }

    fn round_trips(log: &mut RequestLog) -> Vec<Option<u64>> {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        log.take().iter().map(|reading| reading.round_trip().map(milliseconds)).collect()
    }

    #[test]
    fn requests_do_not_wait_for_responses_and_count_from_when_they_were_due() {
        let mut log = RequestLog::new(at(100), INTERVAL);
        assert_eq!(log.take_due(at(99)), None);
        // The first one has no response when two others are due; the thread comes late to both.
        assert_eq!(log.take_due(at(100)), Some(0));
        assert_eq!((log.take_due(at(220)), log.take_due(at(220)), log.take_due(at(220))), (Some(1), Some(2), None));
        assert_eq!(log.next(), at(250));
        for (number, arrived) in [(2, 230), (0, 900), (1, 901), (2, 950), (7, 951)] {
            log.answer(number, at(arrived));
        }
        assert!(!log.is_waiting());
        assert_eq!(round_trips(&mut log), [Some(800), Some(751), Some(30)]);
    }

    #[test]
    fn requests_without_response_are_lost_and_those_too_late_are_not_sent() {
        let mut log = RequestLog::new(at(0), INTERVAL);
        assert_eq!(log.take_due(at(10)), Some(0));
        // After a stop of two seconds those of the last second are sent.
        let sent: Vec<u64> = core::iter::from_fn(|| log.take_due(at(2000))).collect();
        assert_eq!((sent.first(), sent.last(), sent.len(), log.requests()), (Some(&20), Some(&40), 21, 41));
        log.answer(20, at(2010));
        assert!(log.is_waiting());
        let trips = round_trips(&mut log);
        assert_eq!((trips[20], trips.iter().flatten().count(), trips.len()), (Some(1010), 1, 41));
    }

    #[test]
    fn another_interval_holds_from_the_next_request_on() {
        let mut log = RequestLog::new(at(0), INTERVAL);
        assert_eq!(log.take_due(at(0)), Some(0));
        log.set_interval(INTERVAL * 10);
        assert_eq!((log.take_due(at(50)), log.next()), (Some(1), at(550)));
    }

    proptest! {
        #[test]
        fn no_more_than_the_limit_are_in_flight(
            steps in proptest::collection::vec((0_u64..3000, 0_u64..4000), 1..200)
        ) {
            let (mut log, mut now, mut sent, mut answered) = (RequestLog::new(at(0), Duration::from_millis(1)), 0, 0, 0);
            for (wait, number) in steps {
                now += wait;
                while log.take_due(at(now)).is_some() {
                    sent += 1;
                }
                let before = log.in_flight;
                log.answer(number, at(now));
                answered += before - log.in_flight;
                prop_assert!(log.in_flight <= MAX_OPEN_REQUESTS);
                prop_assert_eq!(log.in_flight, sent - answered);
            }
        }
    }
}
