//! Access link: rates, link-layer overhead and round-trip time.

mod keywords;

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::{BitRate, ByteCount, Mtu, StreamCount};

use crate::verify::PerDirection;

pub use linerate_analysis::link_layer::{LinkFraming, LinkLayer};

pub use self::keywords::{KEYWORDS, LinkLayerKeyword, parse_keywords};

/// Access link to shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AccessLink {
    /// Uplink rate on the wire (link layer included); `None` leaves the direction unshaped.
    pub up: Option<BitRate>,
    /// Downlink rate, likewise.
    pub down: Option<BitRate>,
    /// Link layer.
    pub layer: LinkLayer,
    /// MTU: size of the largest IP packet.
    pub mtu: Mtu,
    /// Round-trip time of typical transfers, for which queues of a direction are tuned. CAKE's default is 100 ms.
    pub round_trip: PerDirection<Duration>,
    /// True when the rates follow a variable capacity, which flows have to refill repeatedly.
    pub variable: bool,
    /// Measured round-trip time of the idle link, added to predictions; `None` when not measured.
    pub idle: Option<Duration>,
    /// Number of flows that fill a direction, for which delays are predicted.
    pub flows: StreamCount,
    /// True when the link behind the shaper is much faster, so that nothing waits there; false for an access link, which
    /// runs a little above the shaper's rates.
    pub limits_faster_link: bool,
}

impl AccessLink {
    /// Default round-trip time for tuning queues (CAKE's `internet`).
    pub const USUAL_ROUND_TRIP: Duration = Duration::from_millis(100);

    /// Default number of flows for predictions: as many as a verification opens.
    pub const USUAL_FLOWS: StreamCount = StreamCount::new(4);

    /// Creates a link of these rates, with Ethernet's MTU and without overhead.
    #[must_use]
    pub fn new(up: Option<BitRate>, down: Option<BitRate>) -> Self {
        Self {
            up,
            down,
            layer: LinkLayer::NO_OVERHEAD,
            mtu: Mtu::new(1500),
            round_trip: PerDirection { up: Self::USUAL_ROUND_TRIP, down: Self::USUAL_ROUND_TRIP },
            variable: false,
            idle: None,
            flows: Self::USUAL_FLOWS,
            limits_faster_link: false,
        }
    }

    /// Rate of a direction.
    #[must_use]
    pub const fn rate(&self, direction: Direction) -> Option<BitRate> {
        match direction {
            Direction::Up => self.up,
            Direction::Down => self.down,
        }
    }

    /// Size of the largest packet on the link.
    #[must_use]
    pub fn full_packet(&self) -> ByteCount {
        self.layer.wire_length(self.mtu.byte_count())
    }

    /// Serialisation time of an IP packet of `size` bytes; `None` without a rate in that direction.
    #[must_use]
    pub fn serialisation(&self, direction: Direction, size: ByteCount) -> Option<Duration> {
        self.rate(direction)?.time_to_send(self.layer.wire_length(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_at_220_kilobits() {
        let mut line = AccessLink::new(Some(BitRate::from_bits_per_second(220e3)), None);
        line.layer = LinkLayer { overhead: ByteCount::new(40), framing: LinkFraming::Atm, ..LinkLayer::NO_OVERHEAD };
        // 1749 × 8 / 220 000
        let time = line.serialisation(Direction::Up, ByteCount::new(1500)).expect("there is a rate");
        assert!(time.abs_diff(Duration::from_micros(63_600)) < Duration::from_micros(1), "{time:?}");
        assert_eq!(line.serialisation(Direction::Down, ByteCount::new(1500)), None);
    }
}
