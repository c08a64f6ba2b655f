//! Rate limits in the sender's own queueing disciplines.

use linerate_model::far::{QueueEvidence, QueueRateLimit};
use linerate_units::{BitRate, ByteCount, Mss, SegmentCount};

use super::TransferEvidence;
use super::capacity::capacity_of;
use super::host_load::TransferEnd;

/// Kinds whose limits are understood; a far end may report any text.
const KINDS: [&str; 6] = ["tbf", "htb", "hfsc", "fq", "cake", "netem"];
/// Share of the transfer's bytes from which a queue carries it.
const MIN_CARRIED_SHARE: f64 = 0.5;
/// Goodput that a limit explains, as a share of the payload that it lets pass.
const EXPLAINED: core::ops::RangeInclusive<f64> = 0.9..=1.1;
/// Goodput as a share of the payload that a limit lets pass, from which it limits where its queue drops what is lost.
const MIN_LOSSY_SHARE: f64 = 0.5;
/// Share of the samples at which packets waited from which a queue was present.
const MIN_BACKLOG_SHARE: f64 = 0.3;
/// Measured capacity that is the limit of a queue which the search passed, as a share of that limit: a queue that paces each
/// packet is rarely met with one waiting.
const MEASURED: core::ops::RangeInclusive<f64> = 0.97..=1.03;
/// Bytes of the search's packets.
const SEARCH_PACKET: f64 = 1500.0;
/// Headers of IPv4 and TCP with timestamps, and of Ethernet.
const PACKET_HEADERS: f64 = 52.0;
const ETHERNET_HEADER: f64 = 14.0;

/// Queue of the sending host whose rate limit carries the transfer's rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct LimitingQueue<'o> {
    pub(super) queue: &'o QueueEvidence,
    pub(super) limit: QueueRateLimit,
    /// Payload that the limit lets pass, over all connections.
    pub(super) payload: BitRate,
    /// Share of the limit that all packets of the queue used.
    pub(super) used: f64,
}

/// True when a capacity of the IP layer is this limit, which counts Ethernet's header as well.
fn is_rate_of(capacity: BitRate, limit: QueueRateLimit) -> bool {
    let packets = ByteCount::new(limit.bits_per_second).as_f64() * SEARCH_PACKET / (SEARCH_PACKET + ETHERNET_HEADER);
    MEASURED.contains(&(capacity.bits_per_second() / packets.max(1.0)))
}

impl<'o> TransferEvidence<'o> {
    /// Returns the queue of the sending host that limits the transfer; `None` where there is none, or nothing waited in it and
    /// the measured capacity is another.
    ///
    /// A capacity that was measured through the same queue is that of the queue, not of the path.
    pub(super) fn limiting_queue(&self) -> Option<LimitingQueue<'o>> {
        let queues = self.host(TransferEnd::Sender)?.queues.as_ref()?;
        let limiting = queues.iter().filter_map(|queue| self.limited_by(queue));
        limiting.min_by(|one, other| one.payload.bits_per_second().total_cmp(&other.payload.bits_per_second()))
    }

    /// True when a queue of the sending host has a rate limit: what a search sends beyond it waits there.
    pub(super) fn has_own_limit(&self) -> bool {
        let queues = self.host(TransferEnd::Sender).and_then(|host| host.queues.as_ref());
        queues.into_iter().flatten().any(|queue| queue.limit.is_some())
    }

    fn limited_by(&self, queue: &'o QueueEvidence) -> Option<LimitingQueue<'o>> {
        let limit = queue.limit.filter(|limit| limit.bits_per_second > 0)?;
        let sent = ByteCount::new(queue.sent_bytes);
        let carries = sent.as_f64() >= MIN_CARRIED_SHARE * self.observation.received.as_f64();
        let waits = queue.dropped_packets > 0
            || queue.backlog_share.map_or(queue.peak_backlog_bytes > 0, |share| share >= MIN_BACKLOG_SHARE);
        let is_measured = self.path().and_then(capacity_of).is_some_and(|found| is_rate_of(found, limit));
        if !KINDS.contains(&queue.kind.as_str()) || !carries || !(waits || is_measured) {
            return None;
        }
        let connections = SegmentCount::new(self.observation.connections.len() as u64).as_f64().max(1.0);
        let flows = if limit.per_flow { connections } else { 1.0 };
        let bits = ByteCount::new(limit.bits_per_second).as_f64() * flows;
        let payload = BitRate::from_bits_per_second(bits) * self.payload_share();
        let used = sent.rate_over(self.observation.elapsed).bits_per_second() / bits;
        let explains = |rate: BitRate| EXPLAINED.contains(&(rate.bits_per_second() / payload.bits_per_second()));
        // Others' packets in the same queue take their part of it.
        let is_shared = !limit.per_flow && EXPLAINED.contains(&used);
        // What its queue drops keeps the transfer below its limit.
        let is_lossy = is_measured && self.steady >= payload * MIN_LOSSY_SHARE && self.loses_in_own_queue();
        (explains(self.steady) || explains(self.goodput) || is_shared || is_lossy).then_some(LimitingQueue {
            queue,
            limit,
            payload,
            used,
        })
    }

    /// True when the sending host's own queues dropped most of what was retransmitted. A packet may be counted by a queue and by
    /// the one above it.
    fn loses_in_own_queue(&self) -> bool {
        let queues = self.host(TransferEnd::Sender).and_then(|host| host.queues.as_ref());
        let dropped = queues.into_iter().flatten().map(|queue| queue.dropped_packets).max().unwrap_or_default();
        self.retransmits.is_some_and(|sent| dropped > 0 && dropped * 2 >= sent.get())
    }

    /// Payload share of a full packet with the header that a queue counts.
    fn payload_share(&self) -> f64 {
        let payload = f64::from(self.segment.map_or(1448, Mss::get)).max(1.0);
        let header = self.link(TransferEnd::Sender).and_then(|link| link.link_header_bytes);
        payload / (payload + PACKET_HEADERS + header.map_or(ETHERNET_HEADER, f64::from))
    }
}
