use std::collections::HashSet;

use linerate_units::{MonotonicTime, PacketCount};

use super::{PacketArrival, PacketStream, RoundTrip};

/// Packet that a reflector returned (RFC 8762 §4.3), with the numbers and times of both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReflectedPacket {
    /// Sequence number of the sender, from 0.
    pub sequence: u64,
    /// Sequence number of the reflector; a stateless one repeats the sender's.
    pub far_sequence: u64,
    /// Send time, by the near clock.
    pub sent: MonotonicTime,
    /// Time of arrival at the reflector, by the far clock.
    pub far_received: MonotonicTime,
    /// Time of its return, by the far clock.
    pub far_sent: MonotonicTime,
    /// Time of arrival of the returned packet, by the near clock.
    pub received: MonotonicTime,
}

/// Packets of a direction that a sender knows of, by what a reflector returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectionCount {
    /// Packets sent in that direction, as far as the fate of each is known.
    pub sent: PacketCount,
    /// Packets that arrived.
    pub received: PacketCount,
    /// Further copies that arrived.
    pub duplicates: PacketCount,
}

/// Stream that a reflector returned, packet by packet.
///
/// A stateful reflector numbers the packets that it returns: a number of the sender that is skipped without one of the
/// reflector was lost to the far end, and a number of the reflector that is skipped was lost on its return. The packets
/// before the first and after the last returned one have no such numbers around them, and stay undecided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReflectedStream {
    sent: PacketCount,
    counted: bool,
    /// Returned packets in the order of their arrival.
    returned: Vec<ReflectedPacket>,
    /// Those that reached the reflector and whose return arrived, each once, in the order of their arrival there.
    reached: Vec<ReflectedPacket>,
    distinct: usize,
}

impl ReflectedStream {
    /// A stream of `sent` packets, of which these returned, copies included. Numbers that cannot belong to it are left
    /// out: what is computed has a size in proportion to `sent`.
    #[must_use]
    pub fn new(sent: PacketCount, returned: impl IntoIterator<Item = ReflectedPacket>) -> Self {
        let mut returned: Vec<_> = returned.into_iter().filter(|packet| packet.sequence < sent.get()).collect();
        let base = returned.first().map_or(0, |packet| packet.far_sequence);
        let span = sent.get().saturating_mul(2).saturating_add(16);
        returned.retain(|packet| packet.far_sequence.abs_diff(base) <= span);
        let counted = returned.iter().any(|packet| packet.far_sequence != packet.sequence);
        let mut reached = returned.clone();
        reached.sort_by_key(|packet| if counted { packet.far_sequence } else { packet.far_received.as_nanos() });
        let mut seen = HashSet::with_capacity(reached.len());
        reached.retain(|packet| seen.insert(packet.far_sequence));
        let distinct = reached.iter().map(|packet| packet.sequence).collect::<HashSet<_>>().len();
        Self { sent, counted, returned, reached, distinct }
    }

    /// Times of each packet that returned, without copies made on the return.
    #[must_use]
    pub fn round_trips(&self) -> Vec<RoundTrip> {
        let round_trip = |packet: &ReflectedPacket| RoundTrip {
            sent: packet.sent,
            far_received: packet.far_received,
            far_sent: packet.far_sent,
            received: packet.received,
        };
        self.reached.iter().map(round_trip).collect()
    }

    /// True when the reflector numbers its packets. Without a loss or a copy it cannot be told apart from one that does
    /// not, and then it does not matter.
    #[must_use]
    pub const fn is_counted(&self) -> bool {
        self.counted
    }

    /// Packets that returned.
    #[must_use]
    pub fn returned(&self) -> PacketCount {
        PacketCount::new(self.distinct as u64)
    }

    fn is_complete(&self) -> bool {
        self.returned() == self.sent
    }

    /// Packets before the first and after the last returned one: lost in an unknown direction.
    #[must_use]
    pub fn undecided(&self) -> PacketCount {
        let known = self.to_far().map_or(PacketCount::ZERO, |count| count.sent);
        PacketCount::new(self.sent.get().saturating_sub(known.get()))
    }

    /// Packets sent to the far end; `None` when the direction of losses is unknown.
    #[must_use]
    pub fn to_far(&self) -> Option<DirectionCount> {
        let copies = (self.reached.len() - self.distinct) as u64;
        let duplicates = PacketCount::new(copies);
        if self.is_complete() {
            return Some(DirectionCount { sent: self.sent, received: self.sent, duplicates });
        }
        let (first, last) = bounds(self.reached.iter().map(|packet| packet.sequence))?;
        let far = self.far_bounds()?;
        let sent = last - first + 1;
        let received = (far.1 - far.0 + 1).saturating_sub(copies).clamp(self.returned().get(), sent);
        Some(DirectionCount { sent: PacketCount::new(sent), received: PacketCount::new(received), duplicates })
    }

    /// Packets of the far end as a stream to the near one; `None` when the direction of losses is unknown.
    #[must_use]
    pub fn to_near(&self) -> Option<PacketStream> {
        let (base, sent) = match self.far_bounds() {
            Some((first, last)) => (first, PacketCount::new(last - first + 1)),
            None if self.is_complete() => (0, self.sent),
            None => return None,
        };
        let arrival = |packet: &ReflectedPacket| arrival(packet.far_sequence - base, packet.far_sent, packet.received);
        Some(PacketStream { sent, arrivals: self.returned.iter().map(arrival).collect() })
    }

    /// Arrivals at the far end whose return arrived, too, in the order of arrival there: for delays and order, not for
    /// losses.
    #[must_use]
    pub fn arrivals_at_far(&self) -> PacketStream {
        let arrival = |packet: &ReflectedPacket| arrival(packet.sequence, packet.sent, packet.far_received);
        PacketStream { sent: self.sent, arrivals: self.reached.iter().map(arrival).collect() }
    }

    /// First and last number of a stateful reflector.
    fn far_bounds(&self) -> Option<(u64, u64)> {
        bounds(self.reached.iter().map(|packet| packet.far_sequence)).filter(|_| self.counted)
    }
}

const fn arrival(sequence: u64, sent: MonotonicTime, received: MonotonicTime) -> PacketArrival {
    PacketArrival { sequence, sent, received, ttl: None, type_of_service: None }
}

fn bounds(numbers: impl Iterator<Item = u64> + Clone) -> Option<(u64, u64)> {
    Some((numbers.clone().min()?, numbers.max()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Packets sent every millisecond, by the numbers of both ends.
    fn packets(numbers: &[(u64, u64)]) -> Vec<ReflectedPacket> {
        let at = |millis: u64| MonotonicTime::from_nanos(millis * 1_000_000);
        let packet = |&(sequence, far_sequence): &(u64, u64)| ReflectedPacket {
            sequence,
            far_sequence,
            sent: at(sequence),
            far_received: at(sequence + 10),
            far_sent: at(sequence + 11),
            received: at(sequence + 30),
        };
        numbers.iter().map(packet).collect()
    }

    fn count(sent: u64, received: u64, duplicates: u64) -> DirectionCount {
        let [sent, received, duplicates] = [sent, received, duplicates].map(PacketCount::new);
        DirectionCount { sent, received, duplicates }
    }

    fn stream(sent: u64, numbers: &[(u64, u64)]) -> ReflectedStream {
        ReflectedStream::new(PacketCount::new(sent), packets(numbers))
    }

    #[test]
    fn skipped_numbers_have_a_direction() {
        // One before (a first packet that is not of the stream); 2 lost to the far end, 4 on its return.
        let stream = stream(7, &[(0, 1), (1, 2), (3, 3), (5, 5), (6, 6)]);
        assert!(stream.is_counted());
        assert_eq!(stream.to_far(), Some(count(7, 6, 0)));
        let back = stream.to_near().expect("counted");
        assert_eq!((back.sent, back.arrivals.len()), (PacketCount::new(6), 5));
        assert_eq!(stream.undecided(), PacketCount::ZERO);
        assert_eq!(stream.round_trips()[0].time(), core::time::Duration::from_millis(29));
    }

    #[test]
    fn the_ends_are_undecided() {
        let stream = stream(10, &[(2, 3), (3, 4), (5, 5)]);
        assert_eq!((stream.to_far(), stream.undecided()), (Some(count(4, 3, 0)), PacketCount::new(6)));
    }

    #[test]
    fn a_stateless_reflector_hides_the_direction() {
        let lossy = stream(4, &[(0, 0), (1, 1), (3, 3)]);
        assert_eq!((lossy.to_far(), lossy.to_near(), lossy.undecided()), (None, None, PacketCount::new(4)));
        let whole = stream(3, &[(0, 0), (2, 2), (1, 1), (1, 1)]);
        assert_eq!(whole.to_far(), Some(count(3, 3, 0)));
        let back = whole.to_near().expect("nothing was lost");
        assert_eq!((back.sent, back.arrivals.len()), (PacketCount::new(3), 4));
        assert_eq!(stream(3, &[]).to_far(), None);
    }

    #[test]
    fn copies_have_a_direction() {
        // 1 was duplicated to the far end, which answered twice; the answer to 2 was duplicated on its return.
        let stream = stream(4, &[(0, 1), (1, 2), (1, 3), (2, 4), (2, 4), (3, 5)]);
        assert_eq!(stream.to_far(), Some(count(4, 4, 1)));
        assert_eq!(stream.to_near().expect("counted").arrivals.len(), 6);
        assert_eq!(stream.returned(), PacketCount::new(4));
        assert_eq!(stream.arrivals_at_far().arrivals.len(), 5);
    }

    #[test]
    fn forged_numbers_take_no_memory() {
        let stream = stream(3, &[(0, 1), (1, u64::from(u32::MAX)), (7, 2), (2, 3)]);
        assert_eq!(stream.to_near().expect("counted").sent, PacketCount::new(3));
        assert_eq!(stream.to_far(), Some(count(3, 3, 0)));
    }

    proptest! {
        /// With a packet before the stream, and its ends returned, each loss is found in its direction.
        #[test]
        fn losses_are_found(lost in proptest::collection::vec(0_u8..6, 1..200)) {
            let (mut numbers, mut next) = (vec![(0, 1)], 2);
            let (mut up, mut down) = (0, 0);
            for (sequence, fate) in (1..).zip(&lost) {
                match fate {
                    0 => up += 1,
                    1 => (down, next) = (down + 1, next + 1),
                    _ => {
                        numbers.push((sequence, next));
                        next += 1;
                    }
                }
            }
            let sent = lost.len() as u64 + 2;
            numbers.push((sent - 1, next));
            let stream = stream(sent, &numbers);
            prop_assert_eq!(stream.to_far(), Some(count(sent, sent - up, 0)));
            let back = stream.to_near().expect("counted");
            prop_assert_eq!(back.sent.get() - back.arrivals.len() as u64, down);
        }

        #[test]
        fn any_numbers_are_evaluated(
            sent in 0_u64..50, numbers in proptest::collection::vec((0_u64..60, 0_u64..1 << 32), 0..100)
        ) {
            let stream = stream(sent, &numbers);
            let back = stream.to_near().unwrap_or_default();
            prop_assert!(back.sent.get() <= 4 * sent + 33);
            prop_assert!(back.arrivals.iter().all(|arrival| arrival.sequence < back.sent.get()));
            if let Some(count) = stream.to_far() {
                prop_assert!(count.received <= count.sent && count.sent <= PacketCount::new(sent));
            }
            prop_assert!(stream.undecided() <= PacketCount::new(sent));
        }
    }
}
