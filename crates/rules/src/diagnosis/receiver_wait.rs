//! Waiting time in the receiver's buffer, told from a queue of the path.
//!
//! A kernel acknowledges data early only if it is read: where the reader is slow and the congestion window small, all that
//! is in flight waits in the receiver's buffer, which never fills, and the round trip grows as by a queue.

use core::time::Duration;

use linerate_units::Ratio;

use super::evidence::TransferEvidence;

/// Loss of the search for the capacity, beyond the path's own, from which it filled the path's queue.
const MIN_SURPLUS_LOSS: f64 = 0.03;
/// Least number of segments in flight: the second of two waits for the timer of delayed acknowledgements (RFC 1122
/// section 4.2.3.2).
const MIN_SEGMENTS: u64 = 3;
/// Share of the bytes in flight that wait unread, and share of the round trip beyond the path's longest queue.
const MIN_UNREAD_SHARE: f64 = 0.5;
const MIN_BEYOND_SHARE: f64 = 0.3;

impl TransferEvidence<'_> {
    /// True when at least half of the bytes in flight wait unread, and round trips are longer than the path's own queue
    /// explains: the search for the capacity filled it, and met less.
    pub(super) fn waits_at_the_receiver(&self) -> bool {
        let beyond = self.beyond_the_queue().zip(self.loaded).is_some_and(|(beyond, (loaded, _))| {
            Ratio::of(beyond.as_secs_f64(), loaded.as_secs_f64()).is_some_and(|share| share.get() >= MIN_BEYOND_SHARE)
        });
        beyond && self.unread_in_flight().is_some_and(|share| share.get() >= MIN_UNREAD_SHARE)
    }

    /// Unread bytes as a share of those in flight.
    fn unread_in_flight(&self) -> Option<Ratio> {
        let (flight, segment) = (self.in_flight?, self.segment?);
        let (buffer, _) = self.receive_buffer?;
        let is_window = flight >= segment.byte_count() * MIN_SEGMENTS;
        Ratio::of(buffer.as_f64() * self.unread?.get(), flight.as_f64()).filter(|_| is_window)
    }

    /// Usual wait under load that exceeds the longest one of the search; `None` where the search filled no queue.
    fn beyond_the_queue(&self) -> Option<Duration> {
        let searched = self.path()?.capacity.as_ref().filter(|found| !found.at_least && found.shared == Some(false))?;
        let surplus = searched.loss? - searched.loss_below.unwrap_or(0.0);
        let longest = searched.queueing_ns.filter(|_| surplus >= MIN_SURPLUS_LOSS).map(Duration::from_nanos)?;
        let (waits, _) = self.queueing().filter(|_| self.limiting_queue().is_none())?;
        Some(waits.saturating_sub(longest))
    }
}
