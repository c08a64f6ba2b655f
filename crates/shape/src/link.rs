//! A line: its two rates, what its link layer adds to a packet, and how long it is.

mod keywords;

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Mtu};

pub use self::keywords::{KEYWORDS, Keyword, keyword};

/// Payload and size of an ATM cell in bytes (ITU-T I.361).
const CELL_PAYLOAD: u64 = 48;
const CELL: u64 = 53;

/// PTM's 64/65-octet encapsulation: one byte more for each 64 begun (IEEE 802.3 §61.3.3).
const PTM_BLOCK: u64 = 64;

/// How a link layer cuts packets up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Framing {
    /// Not at all: Ethernet, DOCSIS.
    #[default]
    None,
    /// Into cells of 53 bytes that carry 48: ADSL, and some VDSL.
    Atm,
    /// Into blocks of 65 bytes that carry 64: VDSL2.
    Ptm,
}

impl Framing {
    /// CAKE's word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "noatm",
            Self::Atm => "atm",
            Self::Ptm => "ptm",
        }
    }
}

/// What a packet of so many bytes occupies on a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LinkLayer {
    /// Bytes that the line adds to an IP packet, from 0 to 256.
    pub overhead: ByteCount,
    /// The least that a packet occupies, overhead included and before cells are counted; 0 for none.
    pub minimum: ByteCount,
    /// How it is cut up.
    pub framing: Framing,
}

impl LinkLayer {
    /// What an IP packet of `size` bytes occupies, in bytes on the line.
    ///
    /// `ceil((size + overhead) / 48) × 53` for ATM, one byte more for each 64 begun for PTM. `minimum` is applied to the
    /// packet with its overhead, as CAKE and HTB do.
    #[must_use]
    pub fn wire_length(&self, size: ByteCount) -> ByteCount {
        let framed = (size + self.overhead).max(self.minimum).get();
        ByteCount::new(match self.framing {
            Framing::None => framed,
            Framing::Atm => framed.div_ceil(CELL_PAYLOAD) * CELL,
            Framing::Ptm => framed + framed.div_ceil(PTM_BLOCK),
        })
    }
}

/// A direction of a line, seen from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// What the host sends.
    Up,
    /// What the host receives.
    Down,
}

impl Direction {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Up, Self::Down];

    /// `up` or `down`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// The line that is to be shaped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// What may be sent, in bit/s on the line (link layer included); `None` leaves that direction alone.
    pub up: Option<BitRate>,
    /// What may be received, likewise.
    pub down: Option<BitRate>,
    /// What the line makes of a packet.
    pub layer: LinkLayer,
    /// The largest IP packet.
    pub mtu: Mtu,
    /// The round-trip time for which queues are tuned: that of the usual transfers. CAKE's default is 100 ms.
    pub round_trip: Duration,
    /// Whether its capacity changes and the rates follow it: then flows have to refill it again and again.
    pub variable: bool,
    /// The measured round-trip time of the idle line, to which predictions add; `None` when nobody measured.
    pub idle: Option<Duration>,
}

impl Line {
    /// The round-trip time that queues are tuned for unless told otherwise (CAKE's `internet`).
    pub const USUAL_ROUND_TRIP: Duration = Duration::from_millis(100);

    /// A line of these rates, of Ethernet's MTU, without overhead.
    #[must_use]
    pub fn new(up: Option<BitRate>, down: Option<BitRate>) -> Self {
        Self {
            up,
            down,
            layer: LinkLayer::default(),
            mtu: Mtu::new(1500),
            round_trip: Self::USUAL_ROUND_TRIP,
            variable: false,
            idle: None,
        }
    }

    /// The rate of a direction.
    #[must_use]
    pub const fn rate(&self, direction: Direction) -> Option<BitRate> {
        match direction {
            Direction::Up => self.up,
            Direction::Down => self.down,
        }
    }

    /// What the largest packet occupies on the line.
    #[must_use]
    pub fn full_packet(&self) -> ByteCount {
        self.layer.wire_length(self.mtu.byte_count())
    }

    /// How long an IP packet of `size` bytes keeps the line busy; `None` without a rate in that direction.
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

    /// Worked by hand: 1540 / 48 = 32.08, so 33 cells; 33 × 53 = 1749.
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
    fn short_frames_are_filled_up() {
        assert_eq!(wire(layer(38, 84, Framing::None), 40), 84);
        assert_eq!(wire(layer(38, 84, Framing::None), 46), 84);
        assert_eq!(wire(layer(38, 84, Framing::None), 47), 85);
        assert_eq!(wire(layer(38, 84, Framing::None), 1500), 1538);
    }

    #[test]
    fn a_packet_at_220_kilobits() {
        let mut line = Line::new(Some(BitRate::from_bits_per_second(220e3)), None);
        line.layer = layer(40, 0, Framing::Atm);
        // 1749 × 8 / 220 000
        let time = line.serialisation(Direction::Up, ByteCount::new(1500)).expect("there is a rate");
        assert!(time.abs_diff(Duration::from_micros(63_600)) < Duration::from_micros(1), "{time:?}");
        assert_eq!(line.serialisation(Direction::Down, ByteCount::new(1500)), None);
    }
}
