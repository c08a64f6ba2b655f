//! Attribution of loss events: to a queue that was full, to the window's size, or to chance.

use core::time::Duration;

use linerate_model::diagnosis::{ObservedConnection, SocketInterval};
use linerate_units::{ByteCount, Ratio, SegmentCount};

use super::evidence::TransferEvidence;
use super::path_loss::OwnLoss;

/// Queueing delay before a loss, as a share of the smallest round trip, from which the queue was full.
const MIN_QUEUE_SHARE: f64 = 0.3;

/// Queueing delay before a loss, as a share of the full queue's, from which that queue dropped it: where a queue comes and
/// goes, as bursts of a few packets make it, losses by chance meet any part of it.
const MIN_FILLED_SHARE: f64 = 0.5;

/// Share of the bandwidth-delay product from which the window's size causes the loss; CUBIC keeps 0.7 of it, and samples
/// are older than the loss.
const MIN_PRODUCT_SHARE: f64 = 0.75;

/// Share of the largest window from which losses without a known product recur at one size.
const MIN_RECURRING_SHARE: f64 = 0.7;

/// Share of the loss events at windows below the bandwidth-delay product from which chance is a cause.
pub(crate) const MIN_RANDOM_SHARE: f64 = 0.2;

/// Share of the window that CUBIC keeps after a loss.
const CUBIC_DECREASE: f64 = 0.7;

/// Segments that slow start loses at once where it overflows a buffer: it sends at twice the rate.
pub(super) const MIN_OVERSHOOT: u64 = 8;

/// Needless share of the retransmissions from which nothing was lost: acknowledgements were late.
const MIN_NEEDLESS_SHARE: f64 = 0.9;

/// Loss up to which BBR keeps its rate (draft-ietf-ccwg-bbr, `BBR.LossThresh`; its first version keeps it up to 20 %).
const MAX_TOLERATED_LOSS: f64 = 0.02;

/// Shortest time without acknowledgements whose retransmissions belong to an outage.
const MIN_OUTAGE: Duration = Duration::from_secs(1);

/// Number of loss events by their origin, over all connections. An event is a run of samples with retransmissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LossAttribution {
    /// After a queue: congestion.
    pub(crate) queue: u64,
    /// Without a queue, at a window of the bandwidth-delay product: the buffer holds no more.
    pub(crate) window: u64,
    /// Without a queue, at a smaller window: chance.
    pub(crate) random: u64,
}

impl LossAttribution {
    /// Attributes the events of all senders.
    pub(super) fn of(connections: &[ObservedConnection], base: Option<Duration>, product: Option<ByteCount>) -> Self {
        let each =
            product.map(|product| product.as_f64() / SegmentCount::new(connections.len().max(1) as u64).as_f64());
        let mut sum = Self::default();
        for connection in connections {
            let largest = connection.sender.iter().filter_map(flight).fold(0.0, f64::max);
            let limit = each.map_or(largest * MIN_RECURRING_SHARE, |each| each * MIN_PRODUCT_SHARE);
            sum.add(&connection.sender, base, limit);
        }
        sum
    }

    fn add(&mut self, samples: &[SocketInterval], base: Option<Duration>, limit: f64) {
        let largest = samples.iter().filter_map(flight).fold(0.0, f64::max);
        let full = base.and_then(|base| full_queue(samples, base)).unwrap_or_default();
        let events = events(samples);
        let is_only = events.len() == 1;
        for (number, event) in events.into_iter().enumerate() {
            let before = &samples[event.first].socket.info;
            let around = &samples[event.first..=event.first + 1];
            let window = around.iter().filter_map(flight).chain(window_at_loss(around)).fold(0.0, f64::max);
            let queue = before.rtt.zip(base).map(|(rtt, base)| (rtt.saturating_sub(base), base));
            // Slow start sends at twice the rate: the first overshoot of a small buffer comes early, and loses much.
            let overshot =
                number == 0 && event.segments >= MIN_OVERSHOOT && (is_only || window >= MIN_RECURRING_SHARE * largest);
            let is_full = |queue: Duration, base: Duration| {
                queue > base.mul_f64(MIN_QUEUE_SHARE) && queue >= full.mul_f64(MIN_FILLED_SHARE)
            };
            let kind = if queue.is_some_and(|(queue, base)| is_full(queue, base)) {
                &mut self.queue
            } else if window >= limit || overshot {
                &mut self.window
            } else {
                &mut self.random
            };
            *kind += 1;
        }
    }

    /// Number of events.
    pub(crate) const fn events(self) -> u64 {
        self.queue + self.window + self.random
    }

    /// Share of one kind in all events; `None` without an event.
    pub(crate) fn share(self, events: u64) -> Option<Ratio> {
        Ratio::of(SegmentCount::new(events).as_f64(), SegmentCount::new(self.events()).as_f64())
    }
}

impl TransferEvidence<'_> {
    /// Attributes the loss events of this transfer by their windows and queues alone.
    pub(super) fn loss_events(&self) -> LossAttribution {
        LossAttribution::of(&self.observation.connections, self.base, self.bandwidth_delay_product())
    }

    /// Attributes the loss events of this transfer. What the path loses without a full queue decides where it is known.
    pub(crate) fn losses(&self) -> LossAttribution {
        let found = self.loss_events();
        match self.own_loss() {
            OwnLoss::Confirmed => LossAttribution { queue: 0, window: 0, random: found.events() },
            OwnLoss::Refuted => LossAttribution { window: found.window + found.random, random: 0, ..found },
            OwnLoss::Unknown if self.loses_at_any_window() => {
                LossAttribution { queue: 0, window: 0, random: found.events() }
            }
            OwnLoss::Unknown if self.has_met_sufficient_queue() => {
                let window = found.window.min(self.overshoots().1);
                LossAttribution { window, random: found.random + found.window - window, ..found }
            }
            OwnLoss::Unknown if self.overflows_early() => {
                LossAttribution { queue: 0, window: found.events(), random: 0 }
            }
            OwnLoss::Unknown => found,
        }
    }

    /// True when the path's queue holds what one flow needs, and this transfer met it: it dropped nothing of what was lost
    /// without it.
    fn has_met_sufficient_queue(&self) -> bool {
        let met = self.longest_queueing().zip(self.capacity).map(|(longest, capacity)| capacity * longest);
        let is_met = self.queue_of_search().zip(met).is_some_and(|(queue, met)| met * 2 >= queue);
        is_met && self.searched_queue_suffices()
    }

    /// Returns the segments that slow start lost at once in the first events of the connections, and the number of these
    /// events: an overshoot is no burst of the path.
    pub(super) fn overshoots(&self) -> (u64, u64) {
        let first = |connection: &ObservedConnection| {
            let event = events(&connection.sender).into_iter().next()?;
            let grows = connection.sender.get(event.first)?.socket.info.slow_start_threshold.is_none();
            (grows && event.segments >= MIN_OVERSHOOT).then_some(event.segments)
        };
        let all = self.observation.connections.iter().filter_map(first);
        all.fold((0, 0), |(segments, events), one| (segments + one, events + 1))
    }

    /// Returns the share of the retransmissions that were needless, by the receiver's reports of duplicates (RFC 2883)
    /// and the sender's undone recoveries.
    pub(crate) fn spurious(&self) -> Option<Ratio> {
        let info = self.sender()?;
        let sent = self.retransmits?.as_f64();
        Ratio::of(info.duplicate_sacks?.as_f64().min(sent), sent)
    }

    /// True when the receiver had nearly all that was retransmitted. It reports what the path duplicates in the same way.
    pub(super) fn retransmits_needlessly(&self) -> bool {
        let duplicates =
            self.path().and_then(|path| path.packets.as_ref()?.duplication).is_some_and(|share| share > 0.0);
        !duplicates && self.spurious().is_some_and(|share| share.get() >= MIN_NEEDLESS_SHARE)
    }

    /// True when the congestion control does not slow down for losses this rare.
    pub(super) fn tolerates_losses(&self) -> bool {
        let is_bbr = self.observation.congestion_control.as_deref().is_some_and(|name| name.starts_with("bbr"));
        is_bbr && self.retransmitted.is_some_and(|share| share.get() < MAX_TOLERATED_LOSS)
    }
}

/// Returns the queueing delay of a connection that a twentieth of its samples exceed.
fn full_queue(samples: &[SocketInterval], base: Duration) -> Option<Duration> {
    let mut times: Vec<Duration> = samples.iter().filter_map(|sample| sample.socket.info.rtt).collect();
    times.sort_unstable();
    Some(times.get(times.len() * 95 / 100)?.saturating_sub(base))
}

/// Run of samples with retransmissions: a recovery, as far as samples show.
struct LossEvent {
    /// Sample before it.
    first: usize,
    segments: u64,
}

/// Returns the events of a connection, without those of outages.
fn events(samples: &[SocketInterval]) -> Vec<LossEvent> {
    let outages = outages(samples);
    let mut events: Vec<LossEvent> = Vec::new();
    let mut goes_on = false;
    for (first, pair) in samples.windows(2).enumerate() {
        let is_outage = outages.iter().any(|(from, to)| pair[1].to >= *from && pair[0].from <= *to);
        let segments = retransmitted(&pair[1]).saturating_sub(retransmitted(&pair[0]));
        if segments == 0 || is_outage {
            goes_on = false;
            continue;
        }
        match events.last_mut().filter(|_| goes_on) {
            Some(event) => event.segments += segments,
            None => events.push(LossEvent { first, segments }),
        }
        // Samples further apart than recoveries show one event each.
        let round_trip = pair[1].socket.info.rtt.unwrap_or_default();
        goes_on = pair[1].to.saturating_sub(pair[0].to) < round_trip * 2;
    }
    events
}

/// Returns the times without acknowledgements that are too long for a lost packet.
fn outages(samples: &[SocketInterval]) -> Vec<(Duration, Duration)> {
    let is_stalled = |pair: &[SocketInterval]| {
        let (before, now) = (&pair[0].socket.info, &pair[1].socket.info);
        before.bytes_acknowledged == now.bytes_acknowledged && now.unacknowledged.is_some_and(|count| !count.is_zero())
    };
    let mut found: Vec<(Duration, Duration)> = Vec::new();
    for pair in samples.windows(2).filter(|pair| is_stalled(pair)) {
        match found.last_mut() {
            Some((_, to)) if *to == pair[1].from => *to = pair[1].to,
            _ => found.push((pair[1].from, pair[1].to)),
        }
    }
    found.retain(|(from, to)| to.saturating_sub(*from) >= MIN_OUTAGE);
    found
}

pub(super) fn retransmitted(sample: &SocketInterval) -> u64 {
    sample.socket.info.retransmits.map_or(0, SegmentCount::get)
}

/// Window at a loss, by the slow start threshold that it set (RFC 9438 section 4.6): samples are rarely taken at the loss
/// itself.
pub(super) fn window_at_loss(around: &[SocketInterval]) -> Option<f64> {
    let threshold = |sample: &SocketInterval| sample.socket.info.slow_start_threshold;
    let (before, after) = (around.first()?, around.last()?);
    let set = threshold(after).filter(|after| threshold(before) != Some(*after))?;
    Some((after.socket.info.send_mss?.byte_count() * set.get()).as_f64() / CUBIC_DECREASE)
}

pub(super) fn flight(sample: &SocketInterval) -> Option<f64> {
    let info = &sample.socket.info;
    Some((info.send_mss?.byte_count() * info.unacknowledged?.get()).as_f64())
}

#[cfg(test)]
mod tests {
    use linerate_model::sample::SocketSample;
    use linerate_model::tcp_info::TcpInfo;
    use linerate_units::Mss;

    use super::*;

    const BASE: Duration = Duration::from_millis(20);

    fn samples(figures: &[(u64, u64, u64)]) -> ObservedConnection {
        let sample = |(index, (segments, extra, retransmits)): (usize, &(u64, u64, u64))| {
            let info = TcpInfo {
                send_mss: Some(Mss::new(1000)),
                unacknowledged: Some(SegmentCount::new(*segments)),
                rtt: Some(BASE + Duration::from_millis(*extra)),
                retransmits: Some(SegmentCount::new(*retransmits)),
                ..TcpInfo::default()
            };
            let from = Duration::from_millis(100 * u64::try_from(index).expect("small"));
            SocketInterval {
                from,
                to: from + Duration::from_millis(100),
                bytes: ByteCount::ZERO,
                socket: SocketSample { info, memory: None },
            }
        };
        ObservedConnection { sender: figures.iter().enumerate().map(sample).collect(), ..ObservedConnection::default() }
    }

    fn attributed(figures: &[(u64, u64, u64)], product: Option<u64>) -> (u64, u64, u64) {
        let all = LossAttribution::of(&[samples(figures)], Some(BASE), product.map(ByteCount::new));
        (all.queue, all.window, all.random)
    }

    #[test]
    fn an_event_belongs_to_what_preceded_it() {
        // Samples a tenth of a second apart, five round trips: each with retransmissions is an event.
        // Two events after a queue of 10 and 8 ms, one at the product, one at a tenth of it.
        let figures = [(150, 10, 0), (100, 8, 3), (70, 0, 5), (100, 1, 5), (80, 0, 9), (10, 0, 9), (7, 0, 10)];
        assert_eq!(attributed(&figures, Some(100_000)), (2, 1, 1));
        assert_eq!(attributed(&figures[..1], Some(100_000)), (0, 0, 0));
        assert_eq!(attributed(&[], None), (0, 0, 0));
    }

    #[test]
    fn without_a_product_the_largest_window_decides() {
        let same = [(90, 0, 0), (90, 0, 1), (70, 0, 1), (95, 0, 1), (80, 0, 2)];
        assert_eq!(attributed(&same, None), (0, 2, 0));
        let spread = [(90, 0, 0), (20, 0, 0), (15, 0, 1), (30, 0, 1), (25, 0, 2)];
        assert_eq!(attributed(&spread, None), (0, 0, 2));
    }

    #[test]
    fn shares_are_of_all_events() {
        let losses = LossAttribution { queue: 1, window: 2, random: 1 };
        assert_eq!((losses.events(), losses.share(losses.window)), (4, Ratio::new(0.5)));
        assert_eq!(LossAttribution::default().share(0), None);
    }
}
