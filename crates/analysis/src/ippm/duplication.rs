use std::collections::HashMap;

use linerate_units::{PacketCount, Ratio};

use super::PacketStream;

/// Duplication of a stream (RFC 5560).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketDuplication {
    /// Packets that arrived at least once.
    pub arrived: PacketCount,
    /// Packets that arrived more than once.
    pub duplicated: PacketCount,
    /// Copies beyond the first, of all packets together.
    pub copies: PacketCount,
    /// Maximum number of copies of one packet, the first included; zero when nothing arrived.
    pub most: PacketCount,
    /// Copies beyond the first, relative to packets that arrived (`Type-P-one-way-packet-duplication-fraction`, §5.1);
    /// `None` when none did.
    pub fraction: Option<Ratio>,
    /// Packets with copies, of packets that arrived (`Type-P-one-way-replicated-packet-rate`, §5.2).
    pub replicated: Option<Ratio>,
}

impl PacketDuplication {
    /// Computes the duplication of a stream. Lost packets are ignored.
    #[must_use]
    pub fn of(stream: &PacketStream) -> Self {
        let mut counts = HashMap::<u64, u64>::with_capacity(stream.arrivals.len());
        for arrival in stream.known() {
            *counts.entry(arrival.sequence).or_default() += 1;
        }
        let arrived = PacketCount::new(counts.len() as u64);
        let duplicated = PacketCount::new(counts.values().filter(|count| **count > 1).count() as u64);
        let copies = PacketCount::new(counts.values().map(|count| count - 1).sum());
        Self {
            arrived,
            duplicated,
            copies,
            most: PacketCount::new(counts.values().copied().max().unwrap_or_default()),
            fraction: copies.share_of(arrived),
            replicated: duplicated.share_of(arrived),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::stream::stream;
    use super::*;

    #[test]
    fn copies_of_copies() {
        // Packet 1 three times, packet 3 twice, packet 2 lost: 3 copies of 4 arrived packets, 2 of which were
        // replicated.
        let stream = stream(5, &[(0, 0), (1, 0), (1, 3), (3, 0), (1, 9), (4, 0), (3, 1)]);
        let duplication = PacketDuplication::of(&stream);
        assert_eq!((duplication.arrived, duplication.most), (PacketCount::new(4), PacketCount::new(3)));
        assert_eq!(duplication.fraction, Ratio::new(0.75));
        assert_eq!(duplication.replicated, Ratio::new(0.5));
    }

    #[test]
    fn nothing_arrived() {
        let duplication = PacketDuplication::of(&stream(5, &[]));
        assert_eq!((duplication.fraction, duplication.most), (None, PacketCount::ZERO));
    }

    proptest! {
        #[test]
        fn first_copies_and_further_ones_are_all(numbers in proptest::collection::vec(0_u64..50, 0..200)) {
            let arrivals: Vec<_> = numbers.iter().map(|number| (*number, 0)).collect();
            let duplication = PacketDuplication::of(&stream(50, &arrivals));
            prop_assert_eq!(duplication.arrived.get() + duplication.copies.get(), numbers.len() as u64);
            prop_assert!(duplication.duplicated <= duplication.copies);
        }
    }
}
