//! What an interface counts, whatever its driver (`rtnl_link_stats64`).

use linerate_units::PacketCount;

use crate::environment::InterfaceCounters;

/// What has passed through an interface, and what was wrong on the way in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// What has passed.
    pub passed: InterfaceCounters,
    /// What was wrong on the way in.
    pub faults: ReceiveFaults,
    /// Packets that could not be sent because the link was lost (`tx_carrier_errors`).
    pub carrier_lost: PacketCount,
}

/// What was wrong with received packets (`Documentation/networking/statistics.rst`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveFaults {
    /// The host had no room for them in time (`rx_missed_errors`).
    pub missed: PacketCount,
    /// The device's own memory was full (`rx_fifo_errors`).
    pub fifo: PacketCount,
    /// The device could not keep up (`rx_over_errors`).
    pub overrun: PacketCount,
    /// The checksum of the frame was wrong (`rx_crc_errors`).
    pub checksum: PacketCount,
    /// The frame was misaligned (`rx_frame_errors`).
    pub frame: PacketCount,
    /// They came where nobody wanted them, for example at the passive part of a bond (`rx_nohandler`).
    pub unwanted: PacketCount,
}

impl ReceiveFaults {
    /// Packets for which the host or its device had no room.
    #[must_use]
    pub fn no_room(&self) -> PacketCount {
        PacketCount::new(self.missed.get().saturating_add(self.fifo.get()).saturating_add(self.overrun.get()))
    }
}

impl LinkCounters {
    /// What has changed since an earlier reading of the same interface. A counter that began anew counts from there on.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let grown = |now: PacketCount, then: PacketCount| {
            PacketCount::new(now.get().checked_sub(then.get()).unwrap_or(now.get()))
        };
        let (now, then) = (&self.faults, &earlier.faults);
        Self {
            passed: self.passed.since(&earlier.passed),
            faults: ReceiveFaults {
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
            faults: ReceiveFaults {
                missed: PacketCount::new(missed),
                checksum: PacketCount::new(checksum),
                ..ReceiveFaults::default()
            },
            ..LinkCounters::default()
        };
        assert_eq!(reading(7, 9).since(&reading(4, 9)), reading(3, 0));
        assert_eq!(reading(2, 0).since(&reading(4, 9)), reading(2, 0), "it began anew");
        assert_eq!(reading(7, 9).faults.no_room(), PacketCount::new(7));
    }
}
