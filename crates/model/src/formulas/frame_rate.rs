use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Mtu, PacketCount};

use super::Formula;

/// What it is, where it comes from, and what is easily got wrong.
pub const FORMULA: Formula = Formula {
    name: "frame rate",
    text: "frames per second = rate / (8 × (MTU + framing))",
    citation: "RFC 6349 §4.1.1; IEEE 802.3 for Ethernet's framing of 38 bytes",
    explanation: "How many full packets a link carries each second, and with small ones how many a host must handle: \
                  81 274 at 1 Gbit/s with an MTU of 1500, but 1 488 095 with the smallest frames (46 bytes of IP \
                  packet). The rate of RFC 6349's maximum achievable TCP throughput is this number times the payload \
                  of each.\n\n\
                  RFC 6349 rounds down to whole frames: 8127, 81 274 and 812 743 for 100 Mbit/s, 1 and 10 Gbit/s.",
};

/// How many full packets, with `link` bytes of framing around each, a link of this rate carries in a time: whole ones.
#[must_use]
pub fn frames_in(time: Duration, rate: BitRate, mtu: Mtu, link: ByteCount) -> PacketCount {
    let frame = mtu.byte_count() + link;
    let bits = rate.bits_per_second() * time.as_secs_f64();
    let frames = if frame.is_zero() { 0.0 } else { bits / 8.0 / frame.as_f64() };
    // A count that is whole but for the rounding of doubles is that count.
    PacketCount::new(ByteCount::from_f64((frames * (1.0 + f64::EPSILON)).floor()).get())
}

/// The rate that carries so many full packets in a time: the inverse of [`frames_in`]. `None` when there is no time.
#[must_use]
pub fn rate_of_frames(frames: PacketCount, time: Duration, mtu: Mtu, link: ByteCount) -> Option<BitRate> {
    (!time.is_zero()).then(|| (frames * (mtu.byte_count() + link)).rate_over(time))
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
        assert_eq!(rate_of_frames(PacketCount::new(1), Duration::ZERO, Mtu::new(1500), CABLE), None);
    }

    proptest::proptest! {
        #[test]
        fn the_inverse_returns(frames in 1_u64..1 << 32, mtu in 46_u32..65_536) {
            let frames = PacketCount::new(frames);
            let rate = rate_of_frames(frames, SECOND, Mtu::new(mtu), CABLE).unwrap_or_default();
            proptest::prop_assert_eq!(frames_in(SECOND, rate, Mtu::new(mtu), CABLE), frames);
        }
    }
}
