use core::time::Duration;
use std::collections::HashSet;

use linerate_units::{MonotonicTime, PacketCount, TypeOfService};

use crate::statistics::Signed;

/// One packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its number: the first packet of the stream is 0, each next one more, without a wrap.
    pub sequence: u64,
    /// When it was sent, by the sender's clock.
    pub sent: MonotonicTime,
    /// When it was received, by the receiver's clock, whose epoch and pace may be others.
    pub received: MonotonicTime,
    /// Time to live or hop limit on arrival; `None` when not read.
    pub ttl: Option<u8>,
    /// Type of service or traffic class on arrival; `None` when not read.
    pub type_of_service: Option<TypeOfService>,
}

impl Arrival {
    /// Difference of the two clocks' readings: the delay, plus what the receiver's clock is ahead of the sender's. Only
    /// its changes mean something while that is not known.
    #[must_use]
    pub fn difference(&self) -> Signed<Duration> {
        let (sent, received) = (self.sent.as_nanos(), self.received.as_nanos());
        Signed { negative: received < sent, magnitude: Duration::from_nanos(received.abs_diff(sent)) }
    }

    /// The same in nanoseconds.
    pub(crate) fn difference_nanos(&self) -> i64 {
        self.difference().as_nanos()
    }
}

/// A stream of packets: how many were sent, and which arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// How many were sent, numbered from 0. Arrivals with higher numbers are taken for damaged, and left out.
    pub sent: PacketCount,
    /// What arrived, in the order of arrival, duplicates included.
    pub arrivals: Vec<Arrival>,
}

impl Stream {
    /// The first copy of each packet that arrived, in the order of arrival.
    pub fn first_copies(&self) -> impl Iterator<Item = &Arrival> {
        let mut seen = HashSet::with_capacity(self.arrivals.len());
        self.known().filter(move |arrival| seen.insert(arrival.sequence))
    }

    /// The arrivals whose number was sent.
    pub(super) fn known(&self) -> impl Iterator<Item = &Arrival> {
        self.arrivals.iter().filter(|arrival| arrival.sequence < self.sent.get())
    }

    /// The smallest difference of the clocks' readings: of the packet that was least delayed.
    pub(super) fn least_difference(&self) -> Option<i64> {
        self.known().map(Arrival::difference_nanos).min()
    }
}

/// Packets for tests: sent every millisecond, received after a base delay of 10 ms and what is added to it.
#[cfg(test)]
pub(super) fn stream(sent: u64, arrivals: &[(u64, u64)]) -> Stream {
    let arrival = |&(sequence, extra_micros): &(u64, u64)| Arrival {
        sequence,
        sent: MonotonicTime::from_nanos(sequence * 1_000_000),
        received: MonotonicTime::from_nanos(sequence * 1_000_000 + 10_000_000 + extra_micros * 1000),
        ttl: None,
        type_of_service: None,
    };
    Stream { sent: PacketCount::new(sent), arrivals: arrivals.iter().map(arrival).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_and_strangers_are_left_out() {
        let stream = stream(3, &[(0, 0), (2, 0), (2, 5), (9, 0), (1, 0)]);
        let numbers: Vec<_> = stream.first_copies().map(|arrival| arrival.sequence).collect();
        assert_eq!(numbers, [0, 2, 1]);
    }

    #[test]
    fn clocks_may_be_apart_in_either_direction() {
        let mut arrival = stream(1, &[(0, 0)]).arrivals[0];
        assert_eq!(arrival.difference(), Signed::from_nanos(10_000_000));
        arrival.sent = MonotonicTime::from_nanos(30_000_000);
        assert_eq!(arrival.difference_nanos(), -20_000_000);
    }
}
