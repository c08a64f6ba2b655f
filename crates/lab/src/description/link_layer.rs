//! Link layers: bytes that an IP packet occupies on a link.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Mtu};

use super::types::LinkDirection;

/// Bytes of the Ethernet header, which the kernel's queues and shapers count with each IP packet; the checksum and the
/// gap between frames do not exist on virtual Ethernet.
pub const ETHERNET_HEADER: ByteCount = ByteCount::new(14);

/// Payload and size of an ATM cell in bytes (ITU-T I.361).
const CELL_PAYLOAD: u64 = 48;
const CELL_SIZE: u64 = 53;

/// Trailer of AAL5 in bytes, which every packet over ATM has (ITU-T I.363.5).
pub(super) const ATM_TRAILER: ByteCount = ByteCount::new(8);

/// Share of a PTM link that carries frames: 64 of 65 bytes (IEEE 802.3 §61.3.3).
const PTM_SHARE: f64 = 64.0 / 65.0;

/// Framing of packets on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkFraming {
    /// None: Ethernet, DOCSIS.
    #[default]
    None,
    /// Cells of 53 bytes that carry 48, of which the last one is padded: ADSL.
    Atm,
    /// Blocks of 65 bytes that carry 64, across the boundaries of packets: VDSL2.
    Ptm,
}

impl LinkFraming {
    /// All framings.
    pub const ALL: [Self; 3] = [Self::None, Self::Atm, Self::Ptm];

    /// Name in descriptions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Atm => "atm",
            Self::Ptm => "ptm",
        }
    }
}

/// Link layer of a link's direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLayer {
    /// Framing.
    pub framing: LinkFraming,
    /// Bytes that the link adds to each IP packet, in place of the Ethernet header.
    pub overhead: ByteCount,
    /// Minimum packet size with the overhead, before framing; 0 for none.
    pub minimum: ByteCount,
}

impl Default for LinkLayer {
    /// Virtual Ethernet as the kernel counts it.
    fn default() -> Self {
        Self { framing: LinkFraming::None, overhead: ETHERNET_HEADER, minimum: ByteCount::ZERO }
    }
}

impl LinkLayer {
    /// True for virtual Ethernet, which needs no table of sizes.
    #[must_use]
    pub fn is_ethernet_header(&self) -> bool {
        *self == Self::default()
    }

    /// Bytes that the link counts for an IP packet of `size` bytes. PTM's 65th byte is not among them: it belongs to no
    /// packet, and lowers the [rate](Self::counted_rate).
    #[must_use]
    pub fn counted(&self, size: ByteCount) -> ByteCount {
        let framed = (size + self.overhead).max(self.minimum);
        match self.framing {
            LinkFraming::None | LinkFraming::Ptm => framed,
            LinkFraming::Atm => ByteCount::new(framed.get().div_ceil(CELL_PAYLOAD) * CELL_SIZE),
        }
    }

    /// Rate of the counted bytes on a link of this rate.
    #[must_use]
    pub fn counted_rate(&self, rate: BitRate) -> BitRate {
        if self.framing == LinkFraming::Ptm { rate * PTM_SHARE } else { rate }
    }

    /// Serialisation time of an IP packet of `size` bytes on a link of this rate.
    #[must_use]
    pub fn serialisation(&self, size: ByteCount, rate: BitRate) -> Option<Duration> {
        self.counted_rate(rate).time_to_send(self.counted(size))
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(framing: LinkFraming, overhead: u64, minimum: u64, size: u64) -> u64 {
        let layer = LinkLayer { framing, overhead: ByteCount::new(overhead), minimum: ByteCount::new(minimum) };
        layer.counted(ByteCount::new(size)).get()
    }

    /// `PPPoE` over LLC/SNAP: 1540 bytes in 33 cells; an acknowledgement of 52 bytes in two.
    #[test]
    fn cells_are_filled_up() {
        assert_eq!(counted(LinkFraming::Atm, 40, 0, 1500), 33 * 53);
        assert_eq!(counted(LinkFraming::Atm, 40, 0, 52), 2 * 53);
        assert_eq!(counted(LinkFraming::Atm, 8, 0, 40), 53);
        assert_eq!(counted(LinkFraming::Atm, 8, 0, 41), 106);
    }

    #[test]
    fn short_packets_are_padded() {
        assert_eq!(counted(LinkFraming::None, 38, 84, 46), 84);
        assert_eq!(counted(LinkFraming::None, 38, 84, 47), 85);
        assert_eq!(counted(LinkFraming::None, 14, 0, 28), 42);
    }

    /// 1530 bytes at 64/65 of 8.125 Mbit/s, which is 8 Mbit/s.
    #[test]
    fn a_block_of_ptm_has_a_byte_that_belongs_to_no_packet() {
        let layer = LinkLayer { framing: LinkFraming::Ptm, overhead: ByteCount::new(30), minimum: ByteCount::ZERO };
        let time = layer.serialisation(ByteCount::new(1500), BitRate::from_bits_per_second(8.125e6));
        assert_eq!(time, Some(Duration::from_micros(1530)));
    }
}
