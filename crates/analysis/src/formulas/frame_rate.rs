use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Mtu, PacketCount};

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "frame rate",
    text: "frames per second = rate / (8 × (MTU + framing))",
    citation: "RFC 6349 §4.1.1; IEEE 802.3 for Ethernet's framing of 38 bytes",
    explanation: "Full packets that a link carries each second; small ones show how many a host must handle: \
                  81 274 at 1 Gbit/s with an MTU of 1500, but 1 488 095 with the smallest frames (46 bytes of IP \
                  packet). The rate of RFC 6349's maximum achievable TCP throughput is this number times the payload \
                  of each.\n\n\
                  RFC 6349 rounds down to whole frames: 8127, 81 274 and 812 743 for 100 Mbit/s, 1 and 10 Gbit/s.",
};

/// Number of full packets, with `link` bytes of framing around each, that a link of this rate carries in a time.
#[must_use]
pub fn frames_in(time: Duration, rate: BitRate, mtu: Mtu, link: ByteCount) -> PacketCount {
    let frame = mtu.byte_count() + link;
    let bits = rate.bits_per_second() * time.as_secs_f64();
    let frames = if frame.is_zero() { 0.0 } else { bits / 8.0 / frame.as_f64() };
    // A count that is whole except for the rounding of doubles is that count.
    PacketCount::new(ByteCount::from_f64((frames * (1.0 + f64::EPSILON)).floor()).get())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const CABLE: ByteCount = ByteCount::new(38);

    #[test]
    fn published_counts() {
        // RFC 6349 §4.1.1, and the smallest frames of Ethernet at 1 Gbit/s.
        for (rate, mtu, frames) in [
            (100e6, 1500, 8127),
            (1e9, 1500, 81_274),
            (10e9, 1500, 812_743),
            (1e9, 46, 1_488_095),
            (10e9, 46, 14_880_952),
        ] {
            let count = frames_in(SECOND, BitRate::from_bits_per_second(rate), Mtu::new(mtu), CABLE);
            assert_eq!(count, PacketCount::new(frames), "{rate}");
        }
    }

    #[test]
    fn nothing_of_no_size() {
        assert_eq!(
            frames_in(SECOND, BitRate::from_bits_per_second(1.0), Mtu::new(0), ByteCount::ZERO),
            PacketCount::ZERO
        );
    }
}
