use linerate_units::{ByteCount, Mss, Ratio};

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "usable window",
    text: "window = buffer × ⌊256 × segment / (segment + overhead)⌋ / 256",
    citation: "Linux 6.6 and later: tcp_scaling_ratio, net/ipv4/tcp_input.c tcp_measure_rcv_mss",
    explanation: "A receive buffer holds the kernel's own structures next to the payload, so the window that it offers \
                  is smaller. Linux learns the share from the first full segments: 0.63 with segments of 1448 bytes \
                  that came one by one over virtual Ethernet, 0.91 with 8948. Network cards differ: 0.625 was \
                  measured at an MTU of 1500, 0.70 at 9000 and 0.94 on a card that splits headers from data. --share \
                  takes a measured one.\n\n\
                  Where a program set SO_RCVBUF (-w), kernels 6.6 to 6.10 do not learn: the share stays at a quarter, and \
                  at a half in 6.10, until 6.11 and 6.6.47 (commit a2cbb1603943). Kernels before 6.6 have a fixed share \
                  by tcp_adv_win_scale, a half by default; enterprise kernels may have either.\n\n\
                  This is why a buffer of one bandwidth-delay product carries only about 60 % of the link, and why \
                  the guides' rule of two to three products is right.\n\n\
                  A guide for Red Hat Enterprise Linux states that the third value of tcp_rmem is also the most that a \
                  program may ask for with SO_RCVBUF. It is not: net.core.rmem_max alone bounds that, and a program \
                  that sets its buffer turns the automatic sizing off.",
};

/// Kernel memory per segment of a virtual Ethernet device in addition to its payload: 840 bytes, measured on Linux
/// 6.12.
const SEGMENT_OVERHEAD: u64 = 840;

/// Share of a receive buffer that Linux offers as window, when it was filled with segments of this size that arrived
/// from a virtual Ethernet device one by one.
///
/// Linux counts buffers with its own structures, and learns their share of the memory from the first full segment. On
/// real network cards the overhead depends on the driver's memory: 0.625 at an MTU of 1500, but 0.70 at 9000.
#[must_use]
pub fn window_share(segment: Mss) -> Ratio {
    let segment = u64::from(segment.get());
    let parts = ByteCount::new(256 * segment / (segment + SEGMENT_OVERHEAD));
    Ratio::of(parts.as_f64(), 256.0).unwrap_or_default()
}

/// Window of a receive buffer, at this share of payload.
#[must_use]
pub fn usable_window(buffer: ByteCount, share: Ratio) -> ByteCount {
    ByteCount::from_f64((buffer.as_f64() * share.get()).floor())
}

/// Receive buffer for a window: the inverse of [`usable_window`]. `None` for a share of zero.
#[must_use]
pub fn receive_buffer_for(window: ByteCount, share: Ratio) -> Option<ByteCount> {
    Ratio::of(window.as_f64(), share.get()).map(|bytes| ByteCount::from_f64(bytes.get().ceil()))
}

#[cfg(test)]
mod tests {
    use super::super::near;
    use super::*;

    #[test]
    fn the_shares_are_those_that_were_measured() {
        // (segment, buffer, window offered by Linux 6.12 over virtual Ethernet without offloads)
        for (segment, buffer, window) in
            [(1448, 1_500_000, 948_192), (1448, 6_291_456, 3_980_672), (8948, 1_500_000, 1_367_936)]
        {
            let computed = usable_window(ByteCount::new(buffer), window_share(Mss::new(segment))).as_f64();
            assert!(near(computed, f64::from(window), 0.005), "{segment}, {buffer}: {computed} against {window}");
        }
    }

    #[test]
    fn a_buffer_of_one_product_is_too_small_and_the_inverse_gives_the_required_size() {
        let share = window_share(Mss::new(1448));
        let product = ByteCount::new(146_250_000);
        let buffer = receive_buffer_for(product, share).unwrap_or_default();
        assert!(near(buffer.as_f64() / product.as_f64(), 1.58, 0.01), "{buffer:?}");
        assert_eq!(usable_window(buffer, share), product);
        assert_eq!(receive_buffer_for(product, Ratio::ZERO), None);
    }
}
