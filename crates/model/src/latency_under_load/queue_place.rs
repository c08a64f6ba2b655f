use core::time::Duration;

use crate::statistics::Signed;

/// What load adds to the round trip to one hop of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopUplift {
    /// How many hops away: 1 is the next one.
    pub hop: u8,
    /// The median under load less the median at rest; `None` when the hop does not answer.
    pub uplift: Option<Signed<Duration>>,
}

/// Where the queue stands that the load fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePlace {
    /// No queue worth a word.
    Nowhere,
    /// In this host: its queueing discipline or network card.
    ThisHost,
    /// At the next hop, usually the router or modem that one can do something about: its round trip grows, while this
    /// host's own queue is short.
    NextHop,
    /// Further away: after this hop, the last one whose round trip does not grow.
    Beyond(u8),
    /// The round trips of the hops do not tell: too few answer.
    Unknown,
}

/// Below this there is no queue worth a word, in any place.
const NOTHING: Duration = Duration::from_millis(5);

impl QueuePlace {
    /// The place, from the uplift to the far end, what of it stands in this host (its backlog divided by its rate, or
    /// `None` when not read), and the uplift to each hop on the way, nearest first.
    ///
    /// A hop counts as behind the queue when its round trip grows by at least half of the whole growth. Routers answer
    /// slowly at times, but not faster than their queue is: one that grows less stands before it.
    #[must_use]
    pub fn of(whole: Signed<Duration>, this_host: Option<Duration>, hops: &[HopUplift]) -> Self {
        let whole = whole.or_zero();
        if whole < NOTHING {
            return Self::Nowhere;
        }
        if this_host.is_some_and(|own| own >= whole / 2) {
            return Self::ThisHost;
        }
        let answers: Vec<(u8, bool)> =
            hops.iter().filter_map(|hop| hop.uplift.map(|uplift| (hop.hop, uplift.or_zero() >= whole / 2))).collect();
        let last_before = answers.iter().filter(|(_, grows)| !grows).map(|(hop, _)| *hop).max();
        let first_behind = answers.iter().find(|(_, grows)| *grows).map(|(hop, _)| *hop);
        match (last_before, first_behind) {
            (Some(before), _) => Self::Beyond(before),
            (None, Some(1)) => Self::NextHop,
            (None, _) => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(milliseconds: i64) -> Signed<Duration> {
        Signed::from_nanos(milliseconds * 1_000_000)
    }

    fn place(whole: i64, own: Option<u64>, hops: &[Option<i64>]) -> QueuePlace {
        let hops: Vec<_> = (1..).zip(hops).map(|(hop, uplift)| HopUplift { hop, uplift: uplift.map(signed) }).collect();
        QueuePlace::of(signed(whole), own.map(Duration::from_millis), &hops)
    }

    #[test]
    fn the_queue_stands_before_the_first_hop_that_grows() {
        assert_eq!(place(3, None, &[Some(3)]), QueuePlace::Nowhere);
        assert_eq!(place(-3, None, &[]), QueuePlace::Nowhere);
        assert_eq!(place(200, Some(180), &[Some(190), Some(195)]), QueuePlace::ThisHost);
        assert_eq!(place(200, Some(10), &[Some(190), Some(195)]), QueuePlace::NextHop);
        assert_eq!(place(200, None, &[Some(1), Some(195)]), QueuePlace::Beyond(1));
        // The second hop does not answer.
        assert_eq!(place(200, None, &[Some(1), None, Some(195)]), QueuePlace::Beyond(1));
        assert_eq!(place(200, Some(0), &[None, Some(195)]), QueuePlace::Unknown);
        assert_eq!(place(200, Some(0), &[]), QueuePlace::Unknown);
        // A router that answers slowly for itself stands before the queue all the same: the next one does not grow.
        assert_eq!(place(200, Some(0), &[Some(150), Some(2), Some(199)]), QueuePlace::Beyond(2));
    }
}
