//! Queue that the search for the capacity filled: what the path's buffer holds, and how much of the path one flow reaches with it.

use core::time::Duration;

use linerate_units::{ByteCount, SegmentCount};

use super::evidence::TransferEvidence;

/// Queues as shares of the bandwidth-delay product, and shares of the path's rate that one flow then reaches: medians of random
/// paths (docs/truth-random.md). From 0.43 on, CUBIC keeps a link busy.
const FILLED: [(f64, f64); 4] = [(0.06, 0.46), (0.15, 0.72), (0.3, 0.87), (0.43, 1.0)];
/// Share of the path's rate for each share of the bandwidth-delay product, where a queue holds less than the sender's bursts:
/// what they overfill is lost again and again. Medians of the same paths.
const FILLED_BELOW_A_BURST: f64 = 1.9;
/// Largest burst of a sender (`GSO_LEGACY_MAX_SIZE`), the time that its pacing puts into one (`sk_pacing_shift`), and the round
/// trip that halves what is sent beyond (`tcp_tso_rtt_log`).
const MAX_BURST: ByteCount = ByteCount::from_kibibytes(64);
const BURST_TIME: Duration = Duration::from_nanos(1_000_000_000 >> 10);
const HALVING_TIME: Duration = Duration::from_micros(1 << 9);
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
        // A policer has no queue, and its bucket passes what a flow sends above its rate for a while.
        let is_policed = self.path().and_then(|path| path.policer.as_ref()).is_some_and(|policer| policer.present);
        let queue = self.queue_of_search().filter(|_| !paces && !is_policed).zip(self.bandwidth_delay_product());
        let flows = SegmentCount::new(self.observation.connections.len() as u64).as_f64().sqrt();
        queue.map_or(1.0, |(queue, product)| {
            let share = flows * (queue.as_f64() / product.as_f64());
            let small = self.share_below_a_burst(queue).map(|least| least.max(FILLED_BELOW_A_BURST * share));
            filled_share(share).min(small.unwrap_or(1.0))
        })
    }

    /// Share of the path's rate up to which a sender's bursts fit into this queue; `None` where those at the path's rate do.
    ///
    /// A burst is what the sender's pacing sends in [`BURST_TIME`], and more on short round trips (`tcp_tso_autosize()`,
    /// `net/ipv4/tcp_output.c`). Slow start paces at twice the rate.
    fn share_below_a_burst(&self, queue: ByteCount) -> Option<f64> {
        let halvings = u32::try_from(self.base?.as_nanos() / HALVING_TIME.as_nanos()).ok()?;
        let more = ByteCount::new(MAX_BURST.get().checked_shr(halvings).unwrap_or_default());
        let paced = self.capacity? * BURST_TIME;
        let fits = queue.as_f64() >= (paced + more).min(MAX_BURST).as_f64();
        (!fits).then(|| (queue - more).as_f64() / (2.0 * paced.as_f64()))
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
