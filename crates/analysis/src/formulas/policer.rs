use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Mtu, Ratio};

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "policer",
    text: "volume ≤ burst + rate × time / 8",
    citation: "RFC 2697 §3 (token bucket); RFC 2475 §2.3.3.4",
    explanation: "A policer drops what exceeds a bucket of tokens; it never queues. So it shows as loss without \
                  delay: CUBIC got 80 Mbit/s through a policer of 100 Mbit/s while the round trip stayed at 20.45 ms. \
                  Pacing at 95 % of its rate carried 94.1 Mbit/s with 63 retransmissions where BBR had 7610.\n\n\
                  The LARTC howto polices arrivals with a burst of 10 kB. At today's rates that is far below a \
                  bandwidth-delay product, and each burst of TCP is cut; a burst of rate × round-trip time / 8 lets \
                  one through.",
};

/// Maximum volume that a policer passes in a time: a full bucket, and the tokens added since (RFC 2697 §3).
#[must_use]
pub fn policed_volume(rate: BitRate, burst: ByteCount, time: Duration) -> ByteCount {
    burst + rate * time
}

/// Goodput of a long transfer through a policer that counts IP bytes, with `payload` bytes in each packet of `mtu`.
/// `None` for packets of no size.
#[must_use]
pub fn policed_goodput(rate: BitRate, payload: ByteCount, mtu: Mtu) -> Option<BitRate> {
    let share: Ratio = (payload / mtu.byte_count())?;
    Some(rate * share.get())
}

#[cfg(test)]
mod tests {
    use super::super::near;
    use super::*;

    #[test]
    fn measured_volumes_and_rates() {
        let rate = BitRate::from_bits_per_second(100e6);
        let volume = policed_volume(rate, ByteCount::new(200_000), Duration::from_secs(10));
        assert_eq!(volume, ByteCount::new(125_200_000));
        // Datagrams of 1448 bytes in packets of 1476: 98.1 Mbit/s, measured in the lab.
        let goodput = policed_goodput(rate, ByteCount::new(1448), Mtu::new(1476)).unwrap_or_default();
        assert!(near(goodput.bits_per_second(), 98.1e6, 1e-3), "{goodput}");
        assert_eq!(policed_goodput(rate, ByteCount::new(1), Mtu::new(0)), None);
    }
}
