use linerate_units::{ByteCount, Mss, SegmentCount};

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "send memory",
    text: "send buffer = factor × window in segments × memory per segment",
    citation: "Linux 6.12, net/ipv4/tcp_input.c tcp_sndbuf_expand; net/ipv4/tcp_bbr.c bbr_sndbuf_expand",
    explanation: "The send buffer that Linux's automatic sizing aims at (up to tcp_wmem's third value): twice the \
                  congestion window, three times for BBR, since the buffer holds what is sent and not yet \
                  acknowledged as well as what is to follow. Each segment counts with its memory, not its payload: \
                  the payload and 640 bytes of headers and structures, rounded up to a power of two, and 256 for the \
                  structure that points to it. 1448 bytes of payload are 4352 of memory; ten segments give 87 040, \
                  which is what a new connection starts with.\n\n\
                  It is a target for the worst case, one segment per structure. With offloaded segmentation less \
                  memory is used, and a connection gets on with less buffer: 281 kB in flight were measured in a \
                  buffer of 375 kB.",
};

/// Memory around the payload of a segment: headroom for headers (320 bytes with a distribution's configuration) and
/// `skb_shared_info` (320).
const HEADER_AND_TAIL_BYTES: u64 = 640;

/// Size of `sk_buff`, rounded up to cache lines.
const SKB_STRUCT_BYTES: u64 = 256;

/// Factor of every congestion control except BBR.
pub const SEND_MEMORY_FACTOR: u64 = 2;

/// Factor of BBR.
pub const SEND_MEMORY_FACTOR_BBR: u64 = 3;

/// Memory that Linux assumes for a segment of this size when it sizes send buffers (x86-64).
#[must_use]
pub fn segment_memory(segment: Mss) -> ByteCount {
    let data = (u64::from(segment.get()) + HEADER_AND_TAIL_BYTES).next_power_of_two();
    ByteCount::new(data + SKB_STRUCT_BYTES)
}

/// Send buffer that Linux aims at for a congestion window of this many segments.
#[must_use]
pub fn send_memory(window: SegmentCount, segment: Mss, factor: u64) -> ByteCount {
    window * segment_memory(segment) * factor
}

/// Congestion window for which a send buffer is the target: the inverse of [`send_memory`], in whole segments. `None`
/// for factor zero.
#[must_use]
pub fn window_of_send_memory(memory: ByteCount, segment: Mss, factor: u64) -> Option<SegmentCount> {
    memory.get().checked_div(segment_memory(segment).get().saturating_mul(factor)).map(SegmentCount::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_connection_starts_with_87_040_bytes() {
        assert_eq!(segment_memory(Mss::new(1448)), ByteCount::new(4352));
        let initial = send_memory(SegmentCount::new(10), Mss::new(1448), SEND_MEMORY_FACTOR);
        assert_eq!(initial, ByteCount::new(87_040));
        assert_eq!(segment_memory(Mss::new(8948)), ByteCount::new(16_640));
        assert_eq!(window_of_send_memory(initial, Mss::new(1448), 0), None);
    }

    proptest::proptest! {
        #[test]
        fn the_inverse_returns(window in 1_u64..1 << 24, mss in 500_u32..65_000, bbr: bool) {
            let factor = if bbr { SEND_MEMORY_FACTOR_BBR } else { SEND_MEMORY_FACTOR };
            let memory = send_memory(SegmentCount::new(window), Mss::new(mss), factor);
            let back = window_of_send_memory(memory, Mss::new(mss), factor);
            proptest::prop_assert_eq!(back, Some(SegmentCount::new(window)));
        }
    }
}
