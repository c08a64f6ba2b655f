use linerate_units::{Mss, Mtu};

use super::goodput_share::{TCP_HEADER, TIMESTAMPS};
use super::{Formula, InternetProtocol};

/// What it is, where it comes from, and what is easily got wrong.
pub const FORMULA: Formula = Formula {
    name: "segment size",
    text: "segment = MTU − IP header − TCP header − options",
    citation: "RFC 9293 §3.7.1; RFC 6691; RFC 7323 appendix A for the 12 bytes of timestamps",
    explanation: "The payload of a full segment: 1460 bytes at an MTU of 1500 with IPv4, and 1448 with the timestamps \
                  that Linux uses. The value in the SYN (advmss) never counts the options; what tcp_info shows as \
                  snd_mss does.\n\n\
                  A Japanese article on iperf wonders why its segment size over loopback was 21 888 and 30 000 could \
                  not be set. Linux also bounds it to half of the largest window that the peer has offered, 43 776 \
                  there, and iperf 3.1.2 had a limit of its own. With an MTU of 65 536 it is 65 483 over loopback \
                  today, since no IP packet is longer than 65 535 bytes.",
};

/// The smallest MTU that carries segments of this size: the inverse of
/// [`Framing::segment`](super::Framing::segment).
#[must_use]
pub fn mtu_for_segment(segment: Mss, protocol: InternetProtocol, timestamps: bool) -> Mtu {
    let options = if timestamps { TIMESTAMPS } else { 0 };
    let packet = u64::from(segment.get()) + protocol.header().get() + TCP_HEADER + options;
    Mtu::new(u32::try_from(packet).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use linerate_units::ByteCount;

    use super::super::Framing;
    use super::*;

    fn segment(mtu: u32, protocol: InternetProtocol, timestamps: bool) -> Option<Mss> {
        Framing { mtu: Mtu::new(mtu), protocol, timestamps, link: ByteCount::ZERO }.segment()
    }

    #[test]
    fn published_sizes() {
        use InternetProtocol::{V4, V6};
        for (mtu, protocol, timestamps, bytes) in [
            (1500, V4, false, 1460),
            (1500, V4, true, 1448),
            (1500, V6, true, 1428),
            (9000, V4, true, 8948),
            (9000, V4, false, 8960),
            (65_535, V4, true, 65_483),
        ] {
            assert_eq!(segment(mtu, protocol, timestamps), Some(Mss::new(bytes)));
            assert_eq!(mtu_for_segment(Mss::new(bytes), protocol, timestamps), Mtu::new(mtu));
        }
    }

    proptest::proptest! {
        #[test]
        fn the_inverse_returns(mss in 1_u32..65_000, v6: bool, timestamps: bool) {
            let protocol = if v6 { InternetProtocol::V6 } else { InternetProtocol::V4 };
            let mtu = mtu_for_segment(Mss::new(mss), protocol, timestamps);
            proptest::prop_assert_eq!(segment(mtu.get(), protocol, timestamps), Some(Mss::new(mss)));
        }
    }
}
