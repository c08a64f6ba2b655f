use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Mtu, Ratio};

use super::Formula;

pub(super) const FORMULA: Formula = Formula {
    name: "policer",
    text: "volume ≤ burst + rate × time / 8",
    citation: "RFC 2697 §3 (token bucket); RFC 2475 §2.3.3.4",
};

/// The most that a policer lets pass in a time: a full bucket, and what flows into it (RFC 2697 §3).
#[must_use]
pub fn policed_volume(rate: BitRate, burst: ByteCount, time: Duration) -> ByteCount {
    burst + rate * time
}

/// The payload of a long transfer through a policer that counts IP bytes, with `payload` bytes in each packet of `mtu`.
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
