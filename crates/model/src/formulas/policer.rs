use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Mtu, Ratio};

use super::Formula;

/// What it is, where it comes from, and what is easily got wrong.
pub const FORMULA: Formula = Formula {
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

/// The most that a policer lets pass in a time: a full bucket, and what flows into it (RFC 2697 §3).
#[must_use]
pub fn policed_volume(rate: BitRate, burst: ByteCount, time: Duration) -> ByteCount {
    burst + rate * time
}

/// How long a policer takes to let so much pass: an inverse of [`policed_volume`]. Nothing for what fits the bucket; `None`
/// where the bucket is not enough and nothing flows into it.
#[must_use]
pub fn policed_time(rate: BitRate, burst: ByteCount, volume: ByteCount) -> Option<Duration> {
    let rest = volume - burst;
    if rest.is_zero() { Some(Duration::ZERO) } else { rest / rate }
}

/// The rate of a policer that has let so much pass in a time: an inverse of [`policed_volume`]. `None` where less passed
/// than its bucket holds, or no time has.
#[must_use]
pub fn policer_rate(volume: ByteCount, burst: ByteCount, time: Duration) -> Option<BitRate> {
    volume.checked_sub(burst).filter(|_| !time.is_zero()).map(|rest| rest.rate_over(time))
}

/// The bucket of a policer that has let so much pass in a time: an inverse of [`policed_volume`]. `None` where its rate
/// alone gives more.
#[must_use]
pub fn policer_burst(rate: BitRate, volume: ByteCount, time: Duration) -> Option<ByteCount> {
    volume.checked_sub(rate * time)
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

    #[test]
    fn what_cannot_be_has_no_answer() {
        let (rate, burst) = (BitRate::from_bits_per_second(1e6), ByteCount::new(10_000));
        assert_eq!(policed_time(rate, burst, ByteCount::new(9_999)), Some(Duration::ZERO));
        assert_eq!(policed_time(BitRate::ZERO, burst, ByteCount::new(10_001)), None);
        assert_eq!(policer_rate(ByteCount::new(9_999), burst, Duration::from_secs(1)), None);
        assert_eq!(policer_rate(ByteCount::new(20_000), burst, Duration::ZERO), None);
        assert_eq!(policer_burst(rate, ByteCount::new(100), Duration::from_secs(1)), None);
    }

    proptest::proptest! {
        #[test]
        fn the_inverses_return(rate in 1e5_f64..1e11, burst in 1500_u64..10_000_000, ms in 1_u64..100_000) {
            let (rate, burst) = (BitRate::from_bits_per_second(rate), ByteCount::new(burst));
            let time = Duration::from_millis(ms);
            let volume = policed_volume(rate, burst, time);
            proptest::prop_assume!((volume - burst).get() > 1000);
            let back = policed_time(rate, burst, volume).unwrap_or_default();
            proptest::prop_assert!(near(back.as_secs_f64(), time.as_secs_f64(), 1e-3));
            let back = policer_rate(volume, burst, time).unwrap_or_default();
            proptest::prop_assert!(near(back.bits_per_second(), rate.bits_per_second(), 1e-3));
            proptest::prop_assert_eq!(policer_burst(rate, volume, time), Some(burst));
        }
    }
}
