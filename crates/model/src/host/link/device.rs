//! What ethtool reads and sets of a device.

use core::fmt;
use core::time::Duration;

/// An offload of a device (`ethtool -k`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// Whether it is on.
    pub active: bool,
    /// Whether somebody wants it on.
    pub wanted: bool,
    /// Whether it can be switched; ethtool says `[fixed]` of those that cannot.
    pub changeable: bool,
}

impl Offload {
    /// Off, though it could be on.
    #[must_use]
    pub const fn could_be_on(self) -> bool {
        !self.active && self.changeable
    }
}

/// Who may send when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Duplex {
    /// One at a time.
    Half,
    /// Both ends at once.
    Full,
}

/// Rings of a device, in descriptors, which hold a packet or a part of one (`ethtool -g`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rings {
    /// As they are.
    pub current: RingSizes,
    /// The largest that the driver takes.
    pub most: RingSizes,
}

/// Descriptors of the rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingSizes {
    /// For receiving.
    pub receive: u32,
    /// For sending.
    pub transmit: u32,
}

/// Queues of a device (`ethtool -l`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    /// Queues that only receive.
    pub receive: u32,
    /// Queues that only send.
    pub transmit: u32,
    /// Queues that do both.
    pub combined: u32,
    /// The most queues that do both.
    pub most_combined: u32,
    /// The most queues that only receive.
    pub most_receive: u32,
}

impl Channels {
    /// Queues that receive.
    #[must_use]
    pub const fn receiving(&self) -> u32 {
        self.receive.saturating_add(self.combined)
    }

    /// The most queues that can receive.
    #[must_use]
    pub fn most_receiving(&self) -> u32 {
        self.most_receive.max(self.most_combined)
    }
}

/// When a device interrupts (`ethtool -c`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coalescing {
    /// The longest wait for more received packets.
    pub receive_delay: Duration,
    /// Received packets after which it does not wait for more; 0 means any number.
    pub receive_packets: u32,
    /// The longest wait for more sent packets.
    pub transmit_delay: Duration,
    /// Sent packets after which it does not wait for more; 0 means any number.
    pub transmit_packets: u32,
    /// Whether the driver changes the delay for receiving by what comes in.
    pub adapts_receive: bool,
    /// Whether the driver changes the delay for sending by what goes out.
    pub adapts_transmit: bool,
}

/// Ethernet's flow control as it is set (`ethtool -a`, IEEE 802.3 annex 31B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// Whether both ends agree on it.
    pub negotiated: bool,
    /// Whether it stops sending when the other end asks for it.
    pub heeds: bool,
    /// Whether it asks the other end to stop.
    pub asks: bool,
}

impl fmt::Display for Duplex {
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
        let channels = Channels { receive: 2, combined: 3, most_combined: 8, ..Channels::default() };
        assert_eq!((channels.receiving(), channels.most_receiving()), (5, 8));
        assert!(Offload { changeable: true, ..Offload::default() }.could_be_on());
        assert!(!Offload::default().could_be_on());
    }
}
