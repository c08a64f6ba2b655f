//! Traffic counters of an interface that do not depend on its driver (`rtnl_link_stats64`).

use linerate_units::PacketCount;

use crate::environment::InterfaceCounters;

/// Traffic and error counters of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Traffic.
    pub traffic: InterfaceCounters,
    /// Receive errors.
    pub receive_errors: ReceiveErrors,
    /// Packets that could not be sent because the link was down (`tx_carrier_errors`).
    pub carrier_lost: PacketCount,
}

/// Receive errors (`Documentation/networking/statistics.rst`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveErrors {
    /// Packets missed because the host did not provide buffers in time (`rx_missed_errors`).
    pub missed: PacketCount,
    /// Packets lost to a full device memory (`rx_fifo_errors`).
    pub fifo: PacketCount,
    /// Packets lost because the device could not keep up (`rx_over_errors`).
    pub overrun: PacketCount,
    /// Frames with a wrong checksum (`rx_crc_errors`).
    pub checksum: PacketCount,
    /// Misaligned frames (`rx_frame_errors`).
    pub frame: PacketCount,
    /// Packets without a handler, for example at the passive member of a bond (`rx_nohandler`).
    pub unwanted: PacketCount,
}

impl ReceiveErrors {
    /// Packets dropped for want of buffers in the host or its device.
    #[must_use]
    pub fn missing_buffers(&self) -> PacketCount {
        PacketCount::new(self.missed.get().saturating_add(self.fifo.get()).saturating_add(self.overrun.get()))
    }
}

impl LinkCounters {
    /// Difference from an earlier sample of the same interface. A counter that was reset counts from zero.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let grown = |now: PacketCount, then: PacketCount| {
            PacketCount::new(now.get().checked_sub(then.get()).unwrap_or(now.get()))
        };
        let (now, then) = (&self.receive_errors, &earlier.receive_errors);
        Self {
            traffic: self.traffic.since(&earlier.traffic),
            receive_errors: ReceiveErrors {
                missed: grown(now.missed, then.missed),
                fifo: grown(now.fifo, then.fifo),
                overrun: grown(now.overrun, then.overrun),
                checksum: grown(now.checksum, then.checksum),
                frame: grown(now.frame, then.frame),
                unwanted: grown(now.unwanted, then.unwanted),
            },
            carrier_lost: grown(self.carrier_lost, earlier.carrier_lost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_since_an_earlier_reading() {
        let reading = |missed, checksum| LinkCounters {
            receive_errors: ReceiveErrors {
                missed: PacketCount::new(missed),
                checksum: PacketCount::new(checksum),
                ..ReceiveErrors::default()
            },
            ..LinkCounters::default()
        };
        assert_eq!(reading(7, 9).since(&reading(4, 9)), reading(3, 0));
        assert_eq!(reading(2, 0).since(&reading(4, 9)), reading(2, 0), "it began anew");
        assert_eq!(reading(7, 9).receive_errors.missing_buffers(), PacketCount::new(7));
    }
}
