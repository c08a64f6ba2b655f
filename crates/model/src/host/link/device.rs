//! Device attributes that ethtool reads and sets.

use core::fmt;
use core::time::Duration;

/// Offload of a device (`ethtool -k`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffloadState {
    /// True when it is active.
    pub active: bool,
    /// True when it is requested.
    pub wanted: bool,
    /// True when it can be changed; ethtool prints `[fixed]` otherwise.
    pub changeable: bool,
}

impl OffloadState {
    /// True when it is off, but could be on.
    #[must_use]
    pub const fn could_be_on(self) -> bool {
        !self.active && self.changeable
    }
}

/// Duplex mode of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DuplexMode {
    /// One end at a time.
    Half,
    /// Both ends at once.
    Full,
}

/// Rings of a device, in descriptors, each of a packet or a part of one (`ethtool -g`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DescriptorRings {
    /// Present sizes.
    pub current: RingSizes,
    /// Maximum sizes of the driver.
    pub most: RingSizes,
}

/// Ring sizes in descriptors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingSizes {
    /// Receive ring.
    pub receive: u32,
    /// Transmit ring.
    pub transmit: u32,
}

/// Queues of a device (`ethtool -l`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceChannels {
    /// Receive-only queues.
    pub receive: u32,
    /// Transmit-only queues.
    pub transmit: u32,
    /// Combined queues.
    pub combined: u32,
    /// Maximum number of combined queues.
    pub most_combined: u32,
    /// Maximum number of receive-only queues.
    pub most_receive: u32,
}

impl DeviceChannels {
    /// Number of queues that receive.
    #[must_use]
    pub const fn receiving(&self) -> u32 {
        self.receive.saturating_add(self.combined)
    }
}

/// Interrupt coalescing (`ethtool -c`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterruptCoalescing {
    /// Maximum delay of a receive interrupt.
    pub receive_delay: Duration,
    /// Received packets that trigger an interrupt before the delay; 0 means any number.
    pub receive_packets: u32,
    /// Maximum delay of a transmit interrupt.
    pub transmit_delay: Duration,
    /// Sent packets that trigger an interrupt before the delay; 0 means any number.
    pub transmit_packets: u32,
    /// True when the driver adapts the receive delay to the traffic.
    pub adapts_receive: bool,
    /// True when the driver adapts the transmit delay to the traffic.
    pub adapts_transmit: bool,
}

/// Settings of Ethernet flow control (`ethtool -a`, IEEE 802.3 annex 31B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseSettings {
    /// True when both ends negotiate it.
    pub negotiated: bool,
    /// True when received pause frames stop transmission.
    pub heeds: bool,
    /// True when pause frames are sent.
    pub asks: bool,
}

impl fmt::Display for DuplexMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Half => "half",
            Self::Full => "full",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_that_receive() {
        let channels = DeviceChannels { receive: 2, combined: 3, most_combined: 8, ..DeviceChannels::default() };
        assert_eq!(channels.receiving(), 5);
        assert!(OffloadState { changeable: true, ..OffloadState::default() }.could_be_on());
        assert!(!OffloadState::default().could_be_on());
    }
}
