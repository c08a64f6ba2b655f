//! Waiting time in the receiver's buffer, told from a queue of the path.
//!
//! A kernel acknowledges data early only if it is read: where the reader is slow and the congestion window small, all that
//! is in flight waits in the receiver's buffer, which never fills, and the round trip grows as by a queue.

use core::time::Duration;

use linerate_units::{ByteCount, Ratio, SegmentCount};

use super::bounds::DEFAULT_WINDOW_SHARE;
use super::evidence::TransferEvidence;
use super::path_loss::OwnLoss;
use super::rules::is_path_shared;

/// Loss of the search for the capacity, beyond the path's own, from which it filled the path's queue.
const MIN_SURPLUS_LOSS: f64 = 0.03;
/// Least number of segments in flight: the second of two waits for the timer of delayed acknowledgements (RFC 1122
/// section 4.2.3.2).
const MIN_SEGMENTS: u64 = 3;
/// Least time after which a kernel acknowledges what no program has read (`TCP_DELACK_MIN`).
const DELAYED_ACKNOWLEDGEMENT: Duration = Duration::from_millis(40);
/// Share of the bytes in flight that wait unread, and share of the round trip beyond the path's longest queue.
const MIN_UNREAD_SHARE: f64 = 0.5;
const MIN_BEYOND_SHARE: f64 = 0.3;
/// Unread share of the receive buffer that leaves little space for a window: the receiving program is slow.
const MIN_UNREAD_BUFFER_SHARE: f64 = 0.4;
/// The same where the window closes often, and the share of the acknowledgements that close it from which it does.
const MIN_UNREAD_OF_CLOSED: f64 = 0.2;
const MIN_CLOSED_SHARE: f64 = 0.05;
/// Share of the wait under load that unread data explains, from which the wait is at the receiver.
const MIN_EXPLAINED_SHARE: f64 = 0.6;
/// Acknowledgements for each segment below which the program reads late, and the segments from which that is no chance.
const MIN_ACKNOWLEDGED_SHARE: f64 = 0.48;
const MIN_SEGMENTS_RECEIVED: f64 = 200.0;
/// Longest wait as a share of the round trip at rest that costs a window nothing.
const MAX_STRETCH_AT_REST: f64 = 0.05;

/// Share of the segments that arrived behind a gap above which acknowledgements say nothing of the program, unless its own
/// bursts caused the gaps: the kernel also leaves some out until the gap is filled.
const MAX_SHARE_BEHIND_GAPS: f64 = 0.05;

impl TransferEvidence<'_> {
    /// True when at least half of the bytes in flight wait unread, and round trips are longer than the path's own queue
    /// explains: the search for the capacity filled it, and met less; or as long as the unread data explains alone. Or a
    /// window of a segment or two waits longer than the path takes to send it.
    pub(super) fn waits_at_the_receiver(&self) -> bool {
        let is_long = |wait: Option<Duration>| wait.is_some_and(|wait| self.is_long_wait(wait));
        let is_elsewhere = is_long(self.beyond_the_queue()) || is_long(self.unread_wait());
        is_long(self.wait_of_few()) || is_elsewhere && self.waits_unread() && !self.waits_for_repairs()
    }

    /// Counter of the receiver's kernel.
    fn received_count(&self, name: &str) -> Option<f64> {
        self.receiver_counter(name).map(|count| SegmentCount::new(count).as_f64())
    }

    /// True when data waits behind gaps, not for the program: without selective acknowledgements each gap takes a round trip.
    fn waits_for_repairs(&self) -> bool {
        let repairs_slowly = self.sender().is_some_and(|info| info.selective_acknowledgements == Some(false));
        let behind = self.received_count("TcpExtTCPOFOQueue").zip(self.received_count("TcpInSegs"));
        repairs_slowly && behind.is_some_and(|(behind, segments)| behind > segments * MAX_SHARE_BEHIND_GAPS)
    }

    /// True when a wait takes much of the round trip under load.
    fn is_long_wait(&self, wait: Duration) -> bool {
        let share = self.loaded.and_then(|(loaded, _)| Ratio::of(wait.as_secs_f64(), loaded.as_secs_f64()));
        share.is_some_and(|share| share.get() >= MIN_BEYOND_SHARE)
    }

    /// True when at least half of the bytes in flight wait unread.
    fn waits_unread(&self) -> bool {
        self.unread_in_flight().is_some_and(|share| share.get() >= MIN_UNREAD_SHARE)
    }

    /// True when so much of the receive buffer is unread that it leaves little space for a window, or so often none that the
    /// receiver closes it.
    pub(super) fn is_buffer_unread(&self) -> bool {
        let least = if self.closes_window() { MIN_UNREAD_OF_CLOSED } else { MIN_UNREAD_BUFFER_SHARE };
        self.unread.is_some_and(|unread| unread.get() >= least)
    }

    /// True when many acknowledgements close the window: a kernel offers at least a segment while the program reads.
    fn closes_window(&self) -> bool {
        let closed = self.received_count("TcpExtTCPToZeroWindowAdv").zip(self.received_count("TcpOutSegs"));
        closed.and_then(|(closed, sent)| Ratio::of(closed, sent)).is_some_and(|share| share.get() >= MIN_CLOSED_SHARE)
    }

    /// Usual wait of a window of one or two segments, beyond the time that the path takes to send them: they fill no queue, and
    /// an acknowledgement that comes before the timer of delayed ones comes with a read. `None` with losses, or where other
    /// traffic may fill a queue.
    pub(super) fn wait_of_few(&self) -> Option<Duration> {
        let (flight, segment) = (self.in_flight?, self.segment?.byte_count());
        let is_few = flight < segment * MIN_SEGMENTS && self.is_window_per_rtt();
        let is_quiet = !is_path_shared(self) && !self.queues_at_rest() && self.limiting_queue().is_none();
        let sending = (flight.max(segment) / self.capacity?)?;
        let (waits, _) = self.queueing().filter(|_| is_few && is_quiet)?;
        Some(waits.saturating_sub(sending)).filter(|waits| *waits < DELAYED_ACKNOWLEDGEMENT)
    }

    /// Usual wait under load, where unread data explains it: by Little's law it waits for its bytes over their rate. The
    /// sender waits for the window then: where the congestion window limits, samples meet data that is just being read.
    fn unread_wait(&self) -> Option<Duration> {
        let (buffer, _) = self.receive_buffer.filter(|_| self.is_window_per_rtt())?;
        // The buffer counts the kernel's structures as well.
        let unread = ByteCount::from_f64(buffer.as_f64() * self.unread?.get() * DEFAULT_WINDOW_SHARE);
        let (waits, _) = self.queueing()?;
        Some(waits).filter(|waits| (unread / self.steady).is_some_and(|own| own >= waits.mul_f64(MIN_EXPLAINED_SHARE)))
    }

    /// Returns the acknowledgements that the receiver sent for each segment, if they are so few that it read late: a kernel
    /// acknowledges at least every second segment (RFC 5681 section 4.2) while the program reads. They leave in bursts
    /// then, and so does the data. Counted are packets as the kernel received them, coalesced or not, and the
    /// acknowledgements that it left out because of gaps; with many gaps there is an answer
    /// only where the path loses nothing by itself. Late reads cost nothing where a full window comes back within a round trip
    /// at rest.
    pub(super) fn late_acknowledgements(&self) -> Option<Ratio> {
        if self.is_window_at_rest() {
            return None;
        }
        let segments = self.received_count("TcpInSegs").filter(|segments| *segments >= MIN_SEGMENTS_RECEIVED)?;
        let behind_gaps = self.received_count("TcpExtTCPOFOQueue").unwrap_or_default();
        if behind_gaps > segments * MAX_SHARE_BEHIND_GAPS && self.own_loss() != OwnLoss::Refuted {
            return None;
        }
        let sent = self.received_count("TcpOutSegs")? + self.received_count("TcpExtTCPAckCompressed")?;
        Ratio::of(sent, segments).filter(|share| share.get() < MIN_ACKNOWLEDGED_SHARE)
    }

    /// True when the window is in flight all the time, and acknowledged as soon as on an idle path.
    fn is_window_at_rest(&self) -> bool {
        let stretch = self
            .loaded
            .zip(self.rest())
            .and_then(|((loaded, _), rest)| Ratio::of(loaded.saturating_sub(rest).as_secs_f64(), rest.as_secs_f64()));
        self.is_window_per_rtt() && stretch.is_some_and(|stretch| stretch.get() <= MAX_STRETCH_AT_REST)
    }

    /// True when round trips are longer than the path of the data explains: what is in flight takes no longer to pass it,
    /// and hardly any waits unread. Then acknowledgements wait.
    pub(super) fn waits_in_reverse(&self) -> bool {
        let own = self.in_flight.zip(self.capacity).and_then(|(flight, capacity)| flight / capacity);
        let waits = self.queueing().map(|(median, _)| median);
        waits.zip(own).zip(self.rest()).is_some_and(|((waits, own), rest)| waits > own + rest) && !self.waits_unread()
    }

    /// True when round trips are longer than the path's own queue explains, which the search filled, and hardly any of what
    /// is in flight waits unread.
    pub(super) fn waits_beyond_the_queue(&self) -> bool {
        self.beyond_the_queue().is_some_and(|wait| self.is_long_wait(wait)) && !self.waits_unread()
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
