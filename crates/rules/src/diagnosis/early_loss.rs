//! Loss that ended slow start far below the path's rate, and after which nothing was lost for long: what limits then is
//! the time in which the congestion control lets its window grow.
//!
//! Random losses fall anywhere. That the first comes in the first packets, and none in many times as many afterwards, is no
//! chance: slow start caused it. A queue that overflows loses many segments at once; one that drops early, before it is
//! full, loses one or two, and a larger buffer gains nothing. After many losses the window has far to grow where the response
//! left hardly any of it.

use core::time::Duration;

use linerate_model::diagnosis::{ObservedConnection, SocketInterval};
use linerate_units::{ByteCount, Ratio, SegmentCount};

use super::evidence::TransferEvidence;
use super::losses::{MIN_OVERSHOOT, flight, retransmitted, window_at_loss};
use super::path_loss::OwnLoss;

/// Segments lost at once, from which a queue overflowed: one that drops early drops one or two.
const MIN_OVERFLOW: u64 = 3;
/// Probability up to which a position of random losses is no chance.
const MAX_CHANCE: f64 = 0.05;
/// Share of the bandwidth-delay product up to which the window at the loss is far below it.
const MAX_WINDOW_SHARE: f64 = 0.5;
/// Share of the window up to which a response leaves far less than any loss asks for: RFC 5681 halves it, and one that
/// estimates the rate while slow start still grows (TCP Westwood) may come to a few packets.
const MAX_LEFT_SHARE: f64 = 0.15;
/// Share of the transfer without another loss from which its growth limits the whole.
const MIN_GROWTH_SHARE: f64 = 0.25;
/// Share of the time under limits of a host up to which the window is the limit.
const MAX_HELD_SHARE: f64 = 0.2;

/// First loss of a transfer, with the time without another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EarlyLoss {
    /// Segments lost.
    pub(super) lost: u64,
    /// Window at the loss.
    pub(super) window: ByteCount,
    /// Window that the response left.
    pub(super) left: ByteCount,
    /// Probability of its position, if losses were random.
    pub(super) chance: f64,
    /// Window at the end of the time without losses.
    pub(super) grown: ByteCount,
    /// Beginning and end of that time.
    pub(super) from: Duration,
    pub(super) to: Duration,
}

impl TransferEvidence<'_> {
    /// Returns the loss that ended slow start of each connection early, if that is what limits: the figures of the first.
    pub(super) fn early_loss(&self) -> Option<EarlyLoss> {
        let connections = &self.observation.connections;
        let is_slowed = self.observation.congestion_control.as_deref().is_none_or(|name| !name.starts_with("bbr"));
        // A delay that grew ended slow start before any loss.
        let exits = ["TcpExtTCPHystartTrainDetect", "TcpExtTCPHystartDelayDetect"];
        let ended_before = exits.iter().any(|name| self.sender_counter(name).is_some_and(|count| count > 0));
        if !is_slowed || ended_before || self.is_full() || self.is_held() || self.own_loss() == OwnLoss::Confirmed {
            return None;
        }
        let product = self.bandwidth_delay_product()?.as_f64() / SegmentCount::new(connections.len() as u64).as_f64();
        let whole = self.observation.elapsed;
        // Several losses in a row leave as little where each leaves a fixed share.
        let is_multiplicative = self.uses("cubic") || self.uses("reno");
        let is_early = |found: &EarlyLoss| {
            let drops_early = self.queue_of_search().is_none_or(|queue| queue.as_f64() > found.window.as_f64());
            let is_single = found.lost < MIN_OVERSHOOT && drops_early && found.chance <= MAX_CHANCE;
            let is_single = is_single && found.window.as_f64() <= product * MAX_WINDOW_SHARE;
            let is_cut =
                !is_multiplicative && found.left.as_f64() <= MAX_LEFT_SHARE * found.window.as_f64().min(product);
            (is_single || is_cut) && found.to.saturating_sub(found.from) >= whole.mul_f64(MIN_GROWTH_SHARE)
        };
        let all: Option<Vec<EarlyLoss>> =
            connections.iter().map(|connection| first_loss(connection).filter(is_early)).collect();
        all?.first().copied()
    }

    /// Share of the second half in which the window grew after an early loss.
    pub(super) fn growth_share(&self, found: &EarlyLoss) -> f64 {
        let half = self.observation.elapsed / 2;
        let grows = found.to.saturating_sub(half.max(found.from));
        Ratio::of(grows.as_secs_f64(), half.as_secs_f64()).map_or(0.0, Ratio::get)
    }

    /// True when each connection lost segments in its first packets alone, at a window that the queue of the search does not
    /// hold: that many at once overflow it.
    pub(super) fn overflows_early(&self) -> bool {
        let Some(queue) = self.queue_of_search() else { return false };
        let all = self.observation.connections.iter().map(|connection| {
            let overflows = |found: &EarlyLoss| found.chance <= MAX_CHANCE && found.window > queue;
            first_loss(connection).filter(overflows).map(|found| found.lost)
        });
        let lost: Option<u64> = all.sum();
        lost.is_some_and(|lost| lost >= MIN_OVERFLOW && self.retransmits == Some(SegmentCount::new(lost)))
    }

    fn is_held(&self) -> bool {
        let held = |limits: &linerate_model::limit::LimitShares| {
            limits.application.get() + limits.send_buffer.get() + limits.receive_window.get()
        };
        self.shares.as_ref().is_some_and(|shares| held(shares) > MAX_HELD_SHARE)
    }
}

/// Returns the first loss of a connection.
fn first_loss(connection: &ObservedConnection) -> Option<EarlyLoss> {
    let samples = &connection.sender;
    let first = samples.iter().position(|sample| retransmitted(sample) > 0)?;
    // The repair goes on from sample to sample.
    let grows =
        |index: usize| samples.get(index + 1).is_some_and(|next| retransmitted(next) > retransmitted(&samples[index]));
    let repaired = (first..samples.len()).find(|index| !grows(*index))?;
    let lost = retransmitted(&samples[repaired]);
    let clean = samples[repaired..].partition_point(|sample| retransmitted(sample) == lost);
    let end = samples.get((repaired + clean).checked_sub(1)?)?;
    let sent = |sample: &SocketInterval| sample.socket.info.bytes_sent.map(ByteCount::as_f64);
    let chance = Ratio::of(sent(&samples[repaired])?, sent(end)?)?;
    let around = &samples[first.saturating_sub(1)..=repaired];
    // The response may go on after the last retransmission was sent.
    let left = samples[repaired..repaired + clean].iter().filter_map(threshold).reduce(f64::min)?;
    let known = window_at_loss(around).unwrap_or(left);
    let window = around.iter().filter_map(flight).fold(known, f64::max);
    Some(EarlyLoss {
        lost,
        window: ByteCount::from_f64(window),
        left: ByteCount::from_f64(left),
        chance: chance.get(),
        grown: end.socket.info.congestion_window?,
        from: samples[repaired].to,
        to: end.to,
    })
}

/// Window that a loss left.
fn threshold(sample: &SocketInterval) -> Option<f64> {
    let info = &sample.socket.info;
    Some((info.send_mss?.byte_count() * info.slow_start_threshold?.get()).as_f64())
}

#[cfg(test)]
mod tests {
    use linerate_model::sample::SocketSample;
    use linerate_model::tcp_info::TcpInfo;
    use linerate_units::Mss;

    use super::*;

    /// Samples of a quarter of a second: packets sent in each, and the segments retransmitted so far.
    fn connection(figures: &[(u64, u64)]) -> ObservedConnection {
        let mut sent = 0;
        let sample = |(index, (packets, retransmits)): (usize, &(u64, u64))| {
            sent += packets * 1000;
            let info = TcpInfo {
                send_mss: Some(Mss::new(1000)),
                congestion_window: Some(ByteCount::new(packets * 1000)),
                slow_start_threshold: (*retransmits > 0).then(|| SegmentCount::new(70)),
                retransmits: Some(SegmentCount::new(*retransmits)),
                bytes_sent: Some(ByteCount::new(sent)),
                ..TcpInfo::default()
            };
            let from = Duration::from_millis(250 * u64::try_from(index).expect("small"));
            SocketInterval {
                from,
                to: from + Duration::from_millis(250),
                bytes: ByteCount::ZERO,
                socket: SocketSample { info, memory: None },
            }
        };
        ObservedConnection { sender: figures.iter().enumerate().map(sample).collect(), ..ObservedConnection::default() }
    }

    #[test]
    fn a_loss_in_the_first_packets_alone_is_no_chance() {
        let mut figures = vec![(40, 0), (60, 1)];
        figures.extend((0..30).map(|index| (100 + index, 1)));
        let found = first_loss(&connection(&figures)).expect("in the first hundredth");
        assert_eq!((found.lost, found.window, found.grown), (1, ByteCount::new(100_000), ByteCount::new(129_000)));
        assert_eq!((found.from, found.to), (Duration::from_millis(500), Duration::from_secs(8)));
        // Another loss ends the time without losses: a twentieth of the packets must precede.
        figures.push((90, 3));
        assert_eq!(first_loss(&connection(&figures)), Some(found));
        let short = first_loss(&connection(&figures[..10])).expect("a loss");
        assert!(found.chance <= MAX_CHANCE && short.chance > MAX_CHANCE, "a twentieth of the packets preceded");
        assert_eq!(first_loss(&connection(&[(40, 0), (60, 0)])), None);
        assert_eq!(first_loss(&connection(&[])), None);
    }

    #[test]
    fn a_repair_over_several_samples_is_one_loss() {
        let mut figures = vec![(10, 2), (10, 4), (10, 5)];
        figures.extend(vec![(100, 5); 20]);
        let found = first_loss(&connection(&figures)).expect("early");
        // The window before the first sample is not known: the threshold is what is left of it.
        assert_eq!((found.lost, found.window, found.left), (5, ByteCount::new(70_000), ByteCount::new(70_000)));
    }
}
