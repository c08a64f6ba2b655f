use core::time::Duration;
use std::collections::HashSet;

use linerate_units::{MonotonicTime, PacketCount, TypeOfService};

use crate::statistics::SignedDifference;

/// Packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketArrival {
    /// Sequence number: 0 for the first packet of the stream, without a wrap.
    pub sequence: u64,
    /// Send time, by the sender's clock.
    pub sent: MonotonicTime,
    /// Receive time, by the receiver's clock, whose epoch and rate may differ.
    pub received: MonotonicTime,
    /// TTL or hop limit on arrival; `None` when not read.
    pub ttl: Option<u8>,
    /// Type of service or traffic class on arrival; `None` when not read.
    pub type_of_service: Option<TypeOfService>,
}

impl PacketArrival {
    /// Difference of the two time stamps: the delay, plus the unknown offset of the receiver's clock. Without that
    /// offset only its changes are meaningful.
    #[must_use]
    pub fn difference(&self) -> SignedDifference<Duration> {
        let (sent, received) = (self.sent.as_nanos(), self.received.as_nanos());
        SignedDifference { negative: received < sent, magnitude: Duration::from_nanos(received.abs_diff(sent)) }
    }

    /// Same difference in nanoseconds.
    pub(crate) fn difference_nanos(&self) -> i64 {
        self.difference().as_nanos()
    }
}

/// Stream of packets: number sent, and arrivals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketStream {
    /// Number of packets sent, numbered from 0. Arrivals with higher numbers are considered damaged, and left out.
    pub sent: PacketCount,
    /// Arrivals in order, duplicates included.
    pub arrivals: Vec<PacketArrival>,
}

impl PacketStream {
    /// First copy of each packet that arrived, in the order of arrival.
    pub fn first_copies(&self) -> impl Iterator<Item = &PacketArrival> {
        let mut seen = HashSet::with_capacity(self.arrivals.len());
        self.known().filter(move |arrival| seen.insert(arrival.sequence))
    }

    /// Arrivals whose number was sent.
    pub(super) fn known(&self) -> impl Iterator<Item = &PacketArrival> {
        self.arrivals.iter().filter(|arrival| arrival.sequence < self.sent.get())
    }

    /// Smallest difference of the time stamps: that of the least delayed packet.
    pub(super) fn min_difference(&self) -> Option<i64> {
        self.known().map(PacketArrival::difference_nanos).min()
    }
}

/// Test stream: packets sent every millisecond, received after a base delay of 10 ms plus a given one.
#[cfg(test)]
pub(super) fn stream(sent: u64, arrivals: &[(u64, u64)]) -> PacketStream {
    let arrival = |&(sequence, extra_micros): &(u64, u64)| PacketArrival {
        sequence,
        sent: MonotonicTime::from_nanos(sequence * 1_000_000),
        received: MonotonicTime::from_nanos(sequence * 1_000_000 + 10_000_000 + extra_micros * 1000),
        ttl: None,
        type_of_service: None,
    };
    PacketStream { sent: PacketCount::new(sent), arrivals: arrivals.iter().map(arrival).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_and_unknown_numbers_are_left_out() {
        let stream = stream(3, &[(0, 0), (2, 0), (2, 5), (9, 0), (1, 0)]);
        let numbers: Vec<_> = stream.first_copies().map(|arrival| arrival.sequence).collect();
        assert_eq!(numbers, [0, 2, 1]);
    }

    #[test]
    fn clocks_may_be_apart_in_either_direction() {
        let mut arrival = stream(1, &[(0, 0)]).arrivals[0];
        assert_eq!(arrival.difference(), SignedDifference::from_nanos(10_000_000));
        arrival.sent = MonotonicTime::from_nanos(30_000_000);
        assert_eq!(arrival.difference_nanos(), -20_000_000);
    }
}
