//! Queue that the search for the capacity filled: what the path's buffer holds, and how much of the path one flow reaches with it.

use core::time::Duration;

use linerate_units::{ByteCount, SegmentCount};

use super::evidence::TransferEvidence;

/// Queues as shares of the bandwidth-delay product, and shares of the path's rate that one flow then reaches: medians of random
/// paths (docs/truth-random.md). From 0.43 on, CUBIC keeps a link busy.
const FILLED: [(f64, f64); 4] = [(0.06, 0.46), (0.15, 0.72), (0.3, 0.87), (0.43, 1.0)];
/// Share of the buffer that one flow needs, with which it fills the path but for a hundredth.
const MIN_NEEDED_SHARE: f64 = 0.9;

/// Packets of a queue from which its size says what it holds.
const MIN_QUEUE_PACKETS: u64 = 10;

impl TransferEvidence<'_> {
    /// Bytes that the search for the capacity made wait before packets were lost, beyond what delays vary by; `None` where it
    /// filled no queue, or may have filled one of the sending host.
    pub(super) fn queue_of_search(&self) -> Option<ByteCount> {
        let found = self.path()?.capacity.as_ref().filter(|found| !found.at_least && found.shared == Some(false))?;
        if self.has_own_limit() {
            return None;
        }
        let path = self.observation.path.as_ref();
        let varies = path.and_then(|path| Some(path.usual_round_trip?.1.saturating_sub(path.round_trip?)));
        // The search counts from its fastest packet, which may have overtaken all others.
        let spread = self.path()?.packets.as_ref().and_then(|packets| packets.delay_variation.as_ref());
        let overtaken = spread.map_or(Duration::ZERO, |spread| spread.median);
        let rest = varies.unwrap_or_default().max(overtaken);
        let waits = Duration::from_nanos(found.queueing_ns?).saturating_sub(rest);
        Some(self.capacity? * waits)
    }

    /// True when the search for the capacity filled a queue that holds what one flow needs; a queue of a few packets does not
    /// show what it holds.
    pub(super) fn searched_queue_suffices(&self) -> bool {
        let few = self.segment.map(|segment| (segment.byte_count() * MIN_QUEUE_PACKETS).as_f64());
        let least = super::rules::needed_buffer(self).map(|needed| MIN_NEEDED_SHARE * needed.as_f64()).zip(few);
        self.queue_of_search().zip(least).is_some_and(|(queue, (needed, few))| queue.as_f64() >= needed.max(few))
    }

    /// Returns the share of the path's rate that this transfer reaches with the path's queue when nothing else limits, as far as the
    /// search filled a queue. Of n flows, a queue of 1 / √n does (Appenzeller et al., SIGCOMM 2004).
    pub(super) fn filled_share(&self) -> f64 {
        let paces = self.observation.congestion_control.as_deref().is_some_and(|name| name.starts_with("bbr"));
        let queue = self.queue_of_search().filter(|_| !paces).zip(self.bandwidth_delay_product());
        let flows = SegmentCount::new(self.observation.connections.len() as u64).as_f64().sqrt();
        queue.map_or(1.0, |(queue, product)| filled_share(queue.as_f64() * flows / product.as_f64()))
    }
}

/// Share of a path's rate that a flow without any other limit reaches, for a queue of this share of the bandwidth-delay product:
/// linear between the points of [`FILLED`].
fn filled_share(queue: f64) -> f64 {
    let next = FILLED.iter().position(|(point, _)| queue <= *point).unwrap_or(FILLED.len());
    match (next.checked_sub(1).and_then(|before| FILLED.get(before)), FILLED.get(next)) {
        (Some((low, one)), Some((high, other))) => one + (other - one) * (queue - low) / (high - low),
        (None, Some((_, first))) => *first,
        (_, None) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::filled_share;

    #[test]
    fn one_flow_reaches_more_the_larger_the_queue() {
        let shares = [0.0, 0.06, 0.105, 0.15, 0.3, 0.43, 2.0].map(filled_share);
        assert!(shares.is_sorted(), "{shares:?}");
        assert!((shares[2] - 0.59).abs() < 1e-9, "half-way between two points: {shares:?}");
        assert_eq!((shares[0], shares[1], shares[5], shares[6]), (0.46, 0.46, 1.0, 1.0));
    }
}
