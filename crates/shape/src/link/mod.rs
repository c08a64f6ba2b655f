//! Access link: rates, link-layer overhead and round-trip time.

mod keywords;

use core::time::Duration;
use linerate_model::direction::Direction;
use serde::{Deserialize, Serialize};

use linerate_units::{BitRate, ByteCount, Mtu, StreamCount};

use crate::verify::PerDirection;

pub use self::keywords::{KEYWORDS, LinkLayerKeyword, parse_keywords};

/// Payload and size of an ATM cell in bytes (ITU-T I.361).
const CELL_PAYLOAD: u64 = 48;
const CELL_SIZE: u64 = 53;

/// PTM's 64/65-octet encapsulation: one extra byte per started block of 64 (IEEE 802.3 §61.3.3).
const PTM_BLOCK: u64 = 64;

/// Framing of packets by a link layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// None: Ethernet, DOCSIS.
    #[default]
    None,
    /// Cells of 53 bytes that carry 48: ADSL, and some VDSL.
    Atm,
    /// Blocks of 65 bytes that carry 64: VDSL2.
    Ptm,
}

impl Framing {
    /// CAKE's keyword for it.
    #[must_use]
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::None => "noatm",
            Self::Atm => "atm",
            Self::Ptm => "ptm",
        }
    }
}

/// Link layer, which determines a packet's size on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LinkLayer {
    /// Overhead per IP packet, from 0 to 256 bytes.
    pub overhead: ByteCount,
    /// Minimum packet size, with overhead and before framing; 0 for none.
    pub minimum: ByteCount,
    /// Framing.
    pub framing: Framing,
}

impl LinkLayer {
    /// Size of an IP packet of `size` bytes on the link.
    ///
    /// `ceil((size + overhead) / 48) × 53` for ATM, one extra byte per started block of 64 for PTM. `minimum` is
    /// applied to the packet with its overhead, as CAKE and HTB do.
    #[must_use]
    pub fn wire_length(&self, size: ByteCount) -> ByteCount {
        let framed = (size + self.overhead).max(self.minimum).get();
        ByteCount::new(match self.framing {
            Framing::None => framed,
            Framing::Atm => framed.div_ceil(CELL_PAYLOAD) * CELL_SIZE,
            Framing::Ptm => framed + framed.div_ceil(PTM_BLOCK),
        })
    }
}

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
            layer: LinkLayer::default(),
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

    fn layer(overhead: u64, minimum: u64, framing: Framing) -> LinkLayer {
        LinkLayer { overhead: ByteCount::new(overhead), minimum: ByteCount::new(minimum), framing }
    }

    fn wire(layer: LinkLayer, size: u64) -> u64 {
        layer.wire_length(ByteCount::new(size)).get()
    }

    /// Computed by hand: 1540 / 48 = 32.08, so 33 cells; 33 × 53 = 1749.
    #[test]
    fn atm_by_hand() {
        assert_eq!(wire(layer(40, 0, Framing::Atm), 1500), 1749);
        assert_eq!(wire(layer(0, 0, Framing::Atm), 48), 53);
        assert_eq!(wire(layer(0, 0, Framing::Atm), 49), 106);
        // A pure acknowledgement of 52 bytes over PPPoE/LLC: 92 bytes, two cells.
        assert_eq!(wire(layer(40, 0, Framing::Atm), 52), 106);
    }

    /// 1530 / 64 = 23.9, so 24 more.
    #[test]
    fn ptm_by_hand() {
        assert_eq!(wire(layer(30, 0, Framing::Ptm), 1500), 1554);
        assert_eq!(wire(layer(0, 0, Framing::Ptm), 64), 65);
        assert_eq!(wire(layer(0, 0, Framing::Ptm), 65), 67);
    }

    #[test]
    fn short_frames_are_padded() {
        assert_eq!(wire(layer(38, 84, Framing::None), 40), 84);
        assert_eq!(wire(layer(38, 84, Framing::None), 46), 84);
        assert_eq!(wire(layer(38, 84, Framing::None), 47), 85);
        assert_eq!(wire(layer(38, 84, Framing::None), 1500), 1538);
    }

    #[test]
    fn a_packet_at_220_kilobits() {
        let mut line = AccessLink::new(Some(BitRate::from_bits_per_second(220e3)), None);
        line.layer = layer(40, 0, Framing::Atm);
        // 1749 × 8 / 220 000
        let time = line.serialisation(Direction::Up, ByteCount::new(1500)).expect("there is a rate");
        assert!(time.abs_diff(Duration::from_micros(63_600)) < Duration::from_micros(1), "{time:?}");
        assert_eq!(line.serialisation(Direction::Down, ByteCount::new(1500)), None);
    }
}
