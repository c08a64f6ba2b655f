use core::time::Duration;

use crate::statistics::SignedDifference;

/// Round-trip time that load adds to one hop of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopUplift {
    /// Distance in hops: 1 is the next one.
    pub hop: u8,
    /// Median under load minus idle median; `None` when the hop does not answer.
    pub uplift: Option<SignedDifference<Duration>>,
}

/// Location of the queue that the load fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLocation {
    /// No significant queue.
    Nowhere,
    /// In this host: its queueing discipline or network card.
    ThisHost,
    /// At the next hop, usually a router or modem under the user's control: its round trip grows, while this host's own
    /// queue is short.
    NextHop,
    /// Further away: after this hop, the last one whose round trip does not grow.
    Beyond(u8),
    /// Undetermined: too few hops answer.
    Unknown,
}

/// Added delay below which there is no significant queue.
const MIN_QUEUEING_DELAY: Duration = Duration::from_millis(5);

impl QueueLocation {
    /// Locates the queue from the uplift to the far host, the part of it in this host (its backlog divided by its rate,
    /// or `None` when not read), and the uplift to each hop on the path, nearest first.
    ///
    /// A hop counts as behind the queue when its round trip grows by at least half of the total growth. Routers may
    /// answer slowly, but not faster than their queue allows: one that grows less is before it.
    #[must_use]
    pub fn of(whole: SignedDifference<Duration>, this_host: Option<Duration>, hops: &[HopUplift]) -> Self {
        let whole = whole.allow_zero();
        if whole < MIN_QUEUEING_DELAY {
            return Self::Nowhere;
        }
        if this_host.is_some_and(|own| own >= whole / 2) {
            return Self::ThisHost;
        }
        let answers: Vec<(u8, bool)> = hops
            .iter()
            .filter_map(|hop| hop.uplift.map(|uplift| (hop.hop, uplift.allow_zero() >= whole / 2)))
            .collect();
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

    fn signed(milliseconds: i64) -> SignedDifference<Duration> {
        SignedDifference::from_nanos(milliseconds * 1_000_000)
    }

    fn place(whole: i64, own: Option<u64>, hops: &[Option<i64>]) -> QueueLocation {
        let hops: Vec<_> = (1..).zip(hops).map(|(hop, uplift)| HopUplift { hop, uplift: uplift.map(signed) }).collect();
        QueueLocation::of(signed(whole), own.map(Duration::from_millis), &hops)
    }

    #[test]
    fn the_queue_is_before_the_first_hop_that_grows() {
        assert_eq!(place(3, None, &[Some(3)]), QueueLocation::Nowhere);
        assert_eq!(place(-3, None, &[]), QueueLocation::Nowhere);
        assert_eq!(place(200, Some(180), &[Some(190), Some(195)]), QueueLocation::ThisHost);
        assert_eq!(place(200, Some(10), &[Some(190), Some(195)]), QueueLocation::NextHop);
        assert_eq!(place(200, None, &[Some(1), Some(195)]), QueueLocation::Beyond(1));
        // The second hop does not answer.
        assert_eq!(place(200, None, &[Some(1), None, Some(195)]), QueueLocation::Beyond(1));
        assert_eq!(place(200, Some(0), &[None, Some(195)]), QueueLocation::Unknown);
        assert_eq!(place(200, Some(0), &[]), QueueLocation::Unknown);
        // A router that answers slowly is still before the queue: the next one does not grow.
        assert_eq!(place(200, Some(0), &[Some(150), Some(2), Some(199)]), QueueLocation::Beyond(2));
    }
}
