//! Link layers: bytes that an IP packet occupies on a link.
//!
//! The extra byte of PTM is counted in one of two ways. [`LinkLayer::wire_length`] adds it to each packet, as CAKE does: for
//! plans and predictions of shapers. [`LinkLayer::counted`] leaves it out, and [`LinkLayer::counted_rate`] lowers the rate
//! instead, as a modem sends blocks across the boundaries of packets: for emulated links, and for shapers of the kernel
//! without PTM (HTB, TBF, policers).

use core::time::Duration;

use linerate_units::{BitRate, ByteCount};
use serde::{Deserialize, Serialize};

use crate::formulas::SegmentFraming;

/// Payload and size of an ATM cell in bytes (ITU-T I.361).
const CELL_PAYLOAD: u64 = 48;
const CELL_SIZE: u64 = 53;

/// PTM's 64/65-octet encapsulation: bytes of frames in a block, which has one more (IEEE 802.3 §61.3.3).
const PTM_BLOCK: u64 = 64;

/// Share of a PTM link that carries frames.
const PTM_SHARE: f64 = 64.0 / 65.0;

/// Framing of packets by a link layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LinkFraming {
    /// None: Ethernet, DOCSIS.
    #[default]
    None,
    /// Cells of 53 bytes that carry 48: ADSL, and some VDSL.
    // The last cell of a packet is padded.
    Atm,
    /// Blocks of 65 bytes that carry 64: VDSL2.
    // They continue across the boundaries of packets.
    Ptm,
}

impl LinkFraming {
    /// All framings.
    pub const ALL: [Self; 3] = [Self::None, Self::Atm, Self::Ptm];

    /// Name in descriptions of paths, in options and in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Atm => "atm",
            Self::Ptm => "ptm",
        }
    }
}

/// Link layer, which determines a packet's size on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkLayer {
    /// Bytes that the link adds to each IP packet, from 0 to 256, in place of the Ethernet header.
    pub overhead: ByteCount,
    /// Minimum packet size, with overhead and before framing; 0 for none.
    pub minimum: ByteCount,
    /// Framing.
    pub framing: LinkFraming,
}

impl LinkLayer {
    /// No overhead: IP packets alone.
    pub const NO_OVERHEAD: Self =
        Self { overhead: ByteCount::ZERO, minimum: ByteCount::ZERO, framing: LinkFraming::None };

    /// Virtual Ethernet as the kernel counts it: the header alone.
    pub const VIRTUAL_ETHERNET: Self =
        Self { overhead: SegmentFraming::ETHERNET_HEADER, minimum: ByteCount::ZERO, framing: LinkFraming::None };

    /// True for virtual Ethernet, which needs no table of sizes.
    #[must_use]
    pub fn is_virtual_ethernet(&self) -> bool {
        *self == Self::VIRTUAL_ETHERNET
    }

    /// Size of an IP packet of `size` bytes on the link, as CAKE computes it (`cake_overhead()`, tc-cake(8)).
    ///
    /// `ceil((size + overhead) / 48) × 53` for ATM, one extra byte per started block of 64 for PTM. `minimum` is
    /// applied to the packet with its overhead, as CAKE and HTB do.
    #[must_use]
    pub fn wire_length(&self, size: ByteCount) -> ByteCount {
        let counted = self.counted(size);
        match self.framing {
            LinkFraming::None | LinkFraming::Atm => counted,
            LinkFraming::Ptm => counted + ByteCount::new(counted.get().div_ceil(PTM_BLOCK)),
        }
    }

    /// Bytes that the link counts for an IP packet of `size` bytes, as size tables of the kernel and HTB do (tc-stab(8)). PTM's
    /// 65th byte is not among them: it belongs to no packet, and lowers the [rate](Self::counted_rate).
    #[must_use]
    pub fn counted(&self, size: ByteCount) -> ByteCount {
        let framed = (size + self.overhead).max(self.minimum);
        match self.framing {
            LinkFraming::None | LinkFraming::Ptm => framed,
            LinkFraming::Atm => ByteCount::new(framed.get().div_ceil(CELL_PAYLOAD) * CELL_SIZE),
        }
    }

    /// Rate of the [counted](Self::counted) bytes on a link of this rate: 64/65 of it for PTM (IEEE 802.3 §61.3.3).
    #[must_use]
    pub fn counted_rate(&self, rate: BitRate) -> BitRate {
        if self.framing == LinkFraming::Ptm { rate * PTM_SHARE } else { rate }
    }

    /// Serialisation time of the counted bytes of an IP packet of `size` bytes on a link of this rate.
    #[must_use]
    pub fn serialisation(&self, size: ByteCount, rate: BitRate) -> Option<Duration> {
        self.counted_rate(rate).time_to_send(self.counted(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(framing: LinkFraming, overhead: u64, minimum: u64) -> LinkLayer {
        LinkLayer { overhead: ByteCount::new(overhead), minimum: ByteCount::new(minimum), framing }
    }

    fn wire(layer: LinkLayer, size: u64) -> u64 {
        layer.wire_length(ByteCount::new(size)).get()
    }

    /// Computed by hand: 1540 / 48 = 32.08, so 33 cells; 33 × 53 = 1749.
    #[test]
    fn cells_are_filled_up() {
        assert_eq!(wire(layer(LinkFraming::Atm, 40, 0), 1500), 1749);
        assert_eq!(wire(layer(LinkFraming::Atm, 0, 0), 48), 53);
        assert_eq!(wire(layer(LinkFraming::Atm, 0, 0), 49), 106);
        // A pure acknowledgement of 52 bytes over PPPoE/LLC: 92 bytes, two cells.
        assert_eq!(wire(layer(LinkFraming::Atm, 40, 0), 52), 106);
        assert_eq!(layer(LinkFraming::Atm, 8, 0).counted(ByteCount::new(40)).get(), 53);
        assert_eq!(layer(LinkFraming::Atm, 8, 0).counted(ByteCount::new(41)).get(), 106);
    }

    /// 1530 / 64 = 23.9, so 24 more.
    #[test]
    fn each_started_block_of_ptm_has_a_byte_more() {
        assert_eq!(wire(layer(LinkFraming::Ptm, 30, 0), 1500), 1554);
        assert_eq!(wire(layer(LinkFraming::Ptm, 0, 0), 64), 65);
        assert_eq!(wire(layer(LinkFraming::Ptm, 0, 0), 65), 67);
    }

    /// 1530 bytes at 64/65 of 8.125 Mbit/s, which is 8 Mbit/s.
    #[test]
    fn a_block_of_ptm_has_a_byte_that_belongs_to_no_packet() {
        let time =
            layer(LinkFraming::Ptm, 30, 0).serialisation(ByteCount::new(1500), BitRate::from_bits_per_second(8.125e6));
        assert_eq!(time, Some(Duration::from_micros(1530)));
    }

    #[test]
    fn short_packets_are_padded() {
        assert_eq!(wire(layer(LinkFraming::None, 38, 84), 40), 84);
        assert_eq!(wire(layer(LinkFraming::None, 38, 84), 46), 84);
        assert_eq!(wire(layer(LinkFraming::None, 38, 84), 47), 85);
        assert_eq!(wire(layer(LinkFraming::None, 38, 84), 1500), 1538);
        assert_eq!(wire(LinkLayer::VIRTUAL_ETHERNET, 28), 42);
    }
}
