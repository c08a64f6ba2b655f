//! Acknowledgements on a narrow reverse direction: the rate that they allow, and the time that each takes.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount};

use super::evidence::TransferEvidence;

/// Ethernet's 14 bytes, IPv4's 20 and TCP's 32.
const ACKNOWLEDGEMENT: ByteCount = ByteCount::new(66);
/// Segments for each acknowledgement (RFC 9293 section 3.8.6.3).
const ACKNOWLEDGED_SEGMENTS: u64 = 2;
/// Share of the rate that acknowledgements allow from which they queue.
const MIN_QUEUEING_SHARE: f64 = 0.75;
/// Share of the round trip at rest from which the time to send an acknowledgement lengthens it.
const MIN_TIME_SHARE: f64 = 0.25;

impl TransferEvidence<'_> {
    /// Returns the goodput at which acknowledgements fill the reverse direction.
    pub(super) fn acknowledged_rate(&self) -> Option<BitRate> {
        let data = self.segment?.byte_count() * ACKNOWLEDGED_SEGMENTS;
        Some(self.capacity_back? * (data.as_f64() / ACKNOWLEDGEMENT.as_f64()))
    }

    /// Returns the time that an acknowledgement takes to send in the reverse direction.
    pub(super) fn acknowledgement_time(&self) -> Option<Duration> {
        self.capacity_back?.time_to_send(ACKNOWLEDGEMENT)
    }

    /// True when the transfer's acknowledgements fill the reverse direction.
    pub(super) fn fills_reverse(&self) -> bool {
        self.acknowledged_rate().is_some_and(|allowed| self.steady >= allowed * MIN_QUEUEING_SHARE)
    }

    /// True when one window leaves for each round trip, of which a large part is the time to send an acknowledgement.
    pub(super) fn is_slowed_by_acknowledgement(&self) -> bool {
        let times = self.acknowledgement_time().zip(self.base);
        self.is_window_per_rtt() && times.is_some_and(|(time, base)| time >= base.mul_f64(MIN_TIME_SHARE))
    }

    /// True when acknowledgements make round trips longer.
    pub(super) fn lengthens_round_trips(&self) -> bool {
        self.waits_in_reverse() || self.fills_reverse() || self.is_slowed_by_acknowledgement()
    }

    /// Returns the loaded round trip as a multiple of that of full packets at rest, as it is now and with acknowledgements
    /// that take no time.
    pub(super) fn stretches(&self) -> (f64, f64) {
        let Some(((loaded, _), rest)) = self.loaded.zip(self.rest_of_full_packets()) else { return (1.0, 1.0) };
        let stretch = |rest: Duration| loaded.as_secs_f64() / rest.as_secs_f64().max(1e-9);
        (stretch(rest), stretch(rest.saturating_sub(self.acknowledgement_time().unwrap_or_default())))
    }
}
