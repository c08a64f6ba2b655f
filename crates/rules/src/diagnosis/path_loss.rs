//! Loss of the path itself, measured without a full queue, against the transfer's losses.

use linerate_model::diagnosis::Confidence;
use linerate_units::{PacketCount, Ratio, SegmentCount};

use super::evidence::TransferEvidence;
use super::rules::is_path_shared;

/// Least number of lost packets that is no accident.
const MIN_LOST: f64 = 2.0;

/// Share of the loss events that the path's own loss brings about by chance, from which it explains them.
const MIN_EXPLAINED_EVENTS: f64 = 0.7;

/// Packets for each loss event that the path's own loss takes, above which it takes several at once.
const MAX_SINGLE_LOSSES: f64 = 2.0;

/// Share of the transfer's losses from which the path's own loss explains them.
const MIN_EXPLAINED_SHARE: f64 = 0.3;

/// Share of the transfer's losses below which the path's own loss does not explain them; the upper end of its interval
/// counts.
const MAX_EXPLAINED_SHARE: f64 = 0.5;

/// Upper end of the 95 % interval of a count: 3 for none (Hanley and Lippman-Hand 1983), two standard deviations more for
/// others.
fn most(lost: f64) -> f64 {
    lost + 2.0 * lost.sqrt() + 3.0
}

/// Measurement that tells losses by chance from those of a small buffer.
pub(crate) const SEPARATING_MEASUREMENT: &str = "`linerate path HOST` sends a stream below the capacity: if it loses \
    packets, too, they are lost by chance; if not, a buffer drops them that holds too few";

/// Part of the path's own loss in the transfer's losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnLoss {
    /// The path loses packets without a queue about as often as the transfer lost them.
    Confirmed,
    /// It loses them much less often: what the transfer lost was lost at a queue that was full.
    Refuted,
    /// Too few packets to tell.
    Unknown,
}

impl TransferEvidence<'_> {
    /// Compares the losses of streams that filled no queue with those of the transfer.
    pub(crate) fn own_loss(&self) -> OwnLoss {
        // What slow start lost at once, it lost to its own overshoot; part of that may have been sent after a timeout.
        let all = self.retransmits.map_or(1.0, SegmentCount::as_f64).max(1.0);
        let needless = SegmentCount::new(self.overshoots().0.max(self.go_back_n_retransmits())).as_f64() / all;
        let repaired = self.retransmitted.map(|share| share.get() * (1.0 - needless.min(1.0)));
        let of_transfer = repaired.zip(self.spurious().map(Ratio::get));
        let of_transfer = of_transfer.map(|(lost, spurious)| lost * (1.0 - spurious)).filter(|lost| *lost > 0.0);
        let Some((of_transfer, (lost, sent))) = of_transfer.zip(self.probes()) else { return OwnLoss::Unknown };
        let explains_events = self.own_losses_per_event().is_some_and(|losses| losses >= MIN_EXPLAINED_EVENTS);
        if lost >= MIN_LOST && (lost / sent >= MIN_EXPLAINED_SHARE * of_transfer || explains_events) {
            OwnLoss::Confirmed
        } else if most(lost) / sent < MAX_EXPLAINED_SHARE * of_transfer {
            OwnLoss::Refuted
        } else {
            OwnLoss::Unknown
        }
    }

    /// Returns the confidence in a cause of losses: with neither the path's own loss nor its capacity, those by chance look like
    /// those of a small buffer.
    pub(crate) fn confidence_in_losses(&self) -> Confidence {
        let is_open = self.capacity.is_none() && self.own_loss() == OwnLoss::Unknown;
        if is_open { Confidence::Low } else { Confidence::Medium }
    }

    /// Packets that the path's own loss takes from as many as this transfer sent, for each of its loss events: a burst that
    /// overflows a buffer is one event of many lost packets, a random loss is one of one.
    fn own_losses_per_event(&self) -> Option<f64> {
        let (lost, sent) = self.probes().filter(|(lost, _)| *lost >= MIN_LOST)?;
        let events = self.loss_events().events().max(self.episodes().unwrap_or_default());
        let events = SegmentCount::new(events).as_f64();
        (events > 0.0).then_some(lost / sent * self.segments?.as_f64() / events)
    }

    /// True when the path's own loss, one packet at a time, takes about as many as there were loss events.
    pub(super) fn loses_singly(&self) -> bool {
        self.own_losses_per_event().is_some_and(|losses| (MIN_EXPLAINED_EVENTS..=MAX_SINGLE_LOSSES).contains(&losses))
    }

    /// Number of retransmissions of go-back-N: without selective acknowledgements, a timeout retransmits the whole window (RFC
    /// 5681 section 3.1), whatever was lost.
    pub(super) fn go_back_n_retransmits(&self) -> u64 {
        let is_off = self.sender().is_some_and(|info| info.selective_acknowledgements == Some(false));
        let sent = self.sender_counter("TcpExtTCPSlowStartRetrans").filter(|_| is_off);
        sent.unwrap_or_default().min(self.retransmits.map_or(0, SegmentCount::get))
    }

    /// Packets that were lost without a full queue, and the number sent: probes of the idle path, and a stream below its
    /// capacity. Where other traffic uses the path, those that lose some may have met its queue.
    fn probes(&self) -> Option<(f64, f64)> {
        let path = self.path()?;
        let count = |packets: u64| PacketCount::new(packets).as_f64();
        let idle = path.packets.as_ref().and_then(|packets| Some((packets.loss?, count(packets.sent))));
        let stream = path.capacity.as_ref().and_then(|found| Some((found.loss_below?, count(found.packets_below?))));
        let all = [idle, stream].into_iter().flatten().filter(|(share, _)| *share <= 0.0 || !is_path_shared(self));
        let (lost, sent) = all.fold((0.0, 0.0), |(lost, sent), (share, count)| (lost + share * count, sent + count));
        (sent > 0.0).then_some((lost, sent))
    }
}

#[cfg(test)]
mod tests {
    use super::most;

    #[test]
    fn no_loss_in_a_few_packets_refutes_little() {
        // The rule of three: none of 600 leaves half a per cent possible.
        assert!((most(0.0) / 600.0 - 0.005).abs() < 1e-9);
        assert!((most(4.0) - 11.0).abs() < 1e-9);
    }
}
