//! Link layers of a path's links.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Mtu};

use super::types::LinkDirection;

/// Trailer of AAL5 in bytes, which every packet over ATM has (ITU-T I.363.5).
pub(super) const ATM_TRAILER: ByteCount = ByteCount::new(8);

impl LinkDirection {
    /// Rate of the bytes that the link layer counts; `None` for no limit.
    #[must_use]
    pub fn counted_rate(&self) -> Option<BitRate> {
        self.rate.map(|rate| self.layer.counted_rate(rate))
    }

    /// Serialisation time of an IP packet of `size` bytes; zero without a rate.
    #[must_use]
    pub fn serialisation(&self, size: ByteCount) -> Duration {
        self.rate.and_then(|rate| self.layer.serialisation(size, rate)).unwrap_or_default()
    }

    /// Capacity of the queue in bytes as the link layer counts them, on a path with this round trip; `None` without a
    /// rate or a limit.
    #[must_use]
    pub fn buffer_size(&self, round_trip: Duration, mtu: Mtu) -> Option<ByteCount> {
        Some(self.buffer?.size(self.counted_rate()?, round_trip, self.layer.counted(mtu.byte_count())))
    }
}
