use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
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

#[cfg(test)]
mod tests {
    use linerate_units::{ByteCount, Mss, Mtu};

    use super::super::{InternetProtocol, SegmentFraming};

    fn segment(mtu: u32, protocol: InternetProtocol, timestamps: bool) -> Option<Mss> {
        SegmentFraming { mtu: Mtu::new(mtu), protocol, timestamps, link: ByteCount::ZERO }.segment()
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
        }
    }
}
