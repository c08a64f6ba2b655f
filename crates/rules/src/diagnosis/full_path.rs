//! Signs of a transfer that fills its path: a share of the measured capacity, a queue that stays, or a full wire.

use core::time::Duration;

use linerate_model::diagnosis::{Confidence, SenderState};
use linerate_units::Ratio;

use super::counterfactual::time_in;
use super::evidence::{MIN_RECOVERING_SHARE, TIMESTAMP_UNIT, TransferEvidence, is_whole_timestamp};

/// Share of the capacity from which a path is full, unless a cause gains by its removal: windows, queues and
/// retransmissions take the remainder.
pub(crate) const FULL: f64 = 0.9;
/// Share of the capacity from which no removal of a cause can gain a twentieth.
const FULL_DESPITE_ALL: f64 = 0.95;
/// Share of the time with a queue from which the queue alone shows that the path is full.
const MIN_QUEUED_SHARE: f64 = 0.6;
/// Share of the time under limits of a host up to which a queue belongs to the path.
const MAX_HELD_SHARE: f64 = 0.2;
/// Queueing delay that a full path has at least, and the same as a share of the round trip.
const MIN_QUEUE_DELAY: Duration = Duration::from_millis(1);
const MIN_QUEUE_SHARE: f64 = 0.2;
/// The same of a queue that bursts alone do not explain.
const MIN_LONG_QUEUE_SHARE: f64 = 0.5;
/// Queueing delay as a share of the round trip that a queue has left at its shortest.
const MIN_LEFT_SHARE: f64 = 0.02;

impl TransferEvidence<'_> {
    /// True when the transfer is known to fill the path, so that no removal of a cause would gain anything: 95 % of the
    /// capacity; of the lower end of its interval, while packets queue; or nine tenths, while they always do.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let Some((used, most)) = self.used().zip(self.used_at_most()) else {
            return self.is_full_by_its_queue();
        };
        used >= FULL_DESPITE_ALL
            || most >= FULL_DESPITE_ALL && self.usually_queues()
            || used >= FULL && self.has_standing_queue() && !self.runs_empty_after_losses()
    }

    /// True when the transfer fills the path although a window or buffer limits it for part of the time: nine tenths of
    /// the capacity, or 95 % where it limits most of the time. A queue shows it where the capacity is unknown.
    #[must_use]
    pub fn fills_path_despite(&self, limited: Ratio) -> bool {
        let least = if limited.get() >= 0.5 { FULL_DESPITE_ALL } else { FULL };
        self.used().map_or_else(|| self.is_full_by_its_queue(), |used| used >= least)
    }

    /// True when the transfer fills a path of unknown capacity: the wire of a host, or a queue that stays. That of bursts is empty
    /// between them.
    fn is_full_by_its_queue(&self) -> bool {
        let stays = || self.has_standing_queue() || self.queues_at_its_window();
        // What waits for the send buffer leaves in bursts, which queue for a part of the time.
        let is_of_bursts = || self.idles_between_bursts() || self.waits_for_send_buffer() && !self.has_long_queue();
        self.filled_wire().is_some() || stays() && !is_of_bursts()
    }

    /// True when the path has a queue most of the time, no host holds the transfer back, and nothing passes faster: then
    /// the path is full at the transfer's own rate, whatever its capacity. Data that waits unread delays acknowledgements, too.
    #[must_use]
    pub fn has_standing_queue(&self) -> bool {
        let states = super::states::shares(self);
        let queued = time_in(&states, &[SenderState::Queueing, SenderState::Recovery]);
        let held = time_in(&states, &[SenderState::Application, SenderState::SendBuffer, SenderState::ReceiveWindow]);
        let stays = self.usually_queues() || self.capacity.is_none() && self.never_runs_empty();
        let is_queue = self.is_queue_long() && stays && queued >= MIN_QUEUED_SHARE;
        is_queue && held <= MAX_HELD_SHARE && !self.passes_faster() && !self.is_buffer_unread()
    }

    /// True when a window or a buffer holds more in flight than the path, whose capacity is not measured: the excess waits in
    /// the path's queue, where more of it would only wait longer.
    fn queues_at_its_window(&self) -> bool {
        let states = super::states::shares(self);
        let held = time_in(&states, &[SenderState::SendBuffer, SenderState::ReceiveWindow]);
        let is_queue = self.may_wait_in_a_queue() && self.is_queue_long();
        let is_elsewhere =
            self.waits_at_the_receiver() || self.late_acknowledgements().is_some() || self.limiting_queue().is_some();
        held > MAX_HELD_SHARE && is_queue && !is_elsewhere && !self.passes_faster()
    }

    /// True when round trips take longer than at rest where no capacity is known: a window may then wait in a queue of the path,
    /// too short to show that it is full.
    fn may_wait_in_a_queue(&self) -> bool {
        let waits = self.loaded.zip(self.rest_of_full_packets());
        let is_longer = waits.is_some_and(|((median, _), rest)| median > rest.mul_f64(1.0 + MIN_QUEUE_SHARE));
        self.used().is_none() && is_longer && !self.is_buffer_unread()
    }

    /// Returns the confidence in a window or a buffer as the limit: high where its own figures leave no doubt.
    pub(super) fn confidence_in_a_window(&self, is_certain: bool) -> Confidence {
        match (is_certain, self.may_wait_in_a_queue()) {
            (_, true) => Confidence::Low,
            (true, false) => Confidence::High,
            (false, false) => Confidence::Medium,
        }
    }

    /// True when a queue is left whenever it is shortest: then the link behind it never idles.
    fn never_runs_empty(&self) -> bool {
        let least = self.loaded_low.zip(self.rest_of_full_packets());
        least.is_some_and(|(low, rest)| low > rest + MIN_QUEUE_DELAY.max(rest.mul_f64(MIN_LEFT_SHARE)))
    }

    /// True when packets usually queue for a fifth of the round trip.
    fn usually_queues(&self) -> bool {
        let queue = self.queueing().zip(self.rest());
        queue.is_some_and(|((median, _), rest)| median > rest.mul_f64(MIN_QUEUE_SHARE))
    }

    /// True when packets usually queue for half of the round trip.
    fn has_long_queue(&self) -> bool {
        let queue = self.queueing().zip(self.rest());
        queue.is_some_and(|((median, _), rest)| median > rest.mul_f64(MIN_LONG_QUEUE_SHARE))
    }

    /// True when packets usually wait longer than round trips vary by their measurement: kernels count those by TCP timestamps
    /// in whole milliseconds.
    fn is_queue_long(&self) -> bool {
        let is_cut = self.base.is_some_and(is_whole_timestamp);
        let least = MIN_QUEUE_DELAY + if is_cut { TIMESTAMP_UNIT } else { Duration::ZERO };
        self.queueing().is_some_and(|(median, _)| median > least)
    }

    /// True when the transfer always repairs losses, and the queue holds less than a round trip: a window that a loss halves
    /// no longer fills the path (Appenzeller and others 2004), although every sample meets a queue.
    fn runs_empty_after_losses(&self) -> bool {
        let recovering = time_in(&super::states::shares(self), &[SenderState::Recovery]);
        let is_short = self.queueing().zip(self.base).is_some_and(|((_, high), base)| high < base);
        recovering >= MIN_RECOVERING_SHARE && is_short
    }
}
