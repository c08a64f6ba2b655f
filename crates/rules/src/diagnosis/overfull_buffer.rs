//! Send buffer that a single write overfills.
//!
//! The kernel takes a write while its buffer is not full, whatever the size of the write; it takes the next when nearly all
//! of it is acknowledged. Where the buffer is smaller than a write, each is sent at the path's rate, with a pause of a round
//! trip until the next: bursts, which a small buffer of the path drops.

use linerate_model::diagnosis::SocketInterval;
use linerate_units::{BitRate, ByteCount, SegmentCount};

use super::evidence::TransferEvidence;
use super::path_loss::OwnLoss;
use super::steady::steady_moments;

/// Filled share of a send buffer from which a single write does not fit into it.
const MIN_OVERFULL: f64 = 1.5;
/// Share of the rate that writes with pauses allow from which it is the limit.
const MIN_REACHED_SHARE: f64 = 0.75;

impl TransferEvidence<'_> {
    /// Returns the size of the writes that overfill the send buffer, which cannot grow, and the rate that they allow over all
    /// connections: never below the measured one. `None` where the buffer holds a write, where the path's rate is unknown, or
    /// where the transfer is far from that rate although the path drops no bursts.
    pub(super) fn overfilling_write(&self) -> Option<(ByteCount, BitRate)> {
        let (capacity, base) = (self.capacity.filter(|_| self.is_send_buffer_overfull())?, self.base?);
        let connections = &self.observation.connections;
        let moments = connections.iter().flat_map(|connection| steady_moments(&connection.sender));
        let queued = |moment: &SocketInterval| Some(moment.socket.memory?.send_queued);
        let write = moments.filter_map(queued).max()?;
        let all = ByteCount::from_f64(write.as_f64() * SegmentCount::new(connections.len() as u64).as_f64());
        let rate = all.rate_over((all / capacity)? + base);
        let is_reached = self.steady >= rate * MIN_REACHED_SHARE;
        let drops_bursts = self.own_loss() == OwnLoss::Refuted && self.loses_without_queue();
        (is_reached || drops_bursts).then_some((write, rate.max(self.steady)))
    }

    /// True when single writes overfill the send buffer, which cannot grow.
    pub(super) fn is_send_buffer_overfull(&self) -> bool {
        self.is_send_buffer_final() && self.send_fill.is_some_and(|fill| fill.get() >= MIN_OVERFULL)
    }
}
