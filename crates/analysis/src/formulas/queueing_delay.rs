use core::time::Duration;

use linerate_units::{BitRate, ByteCount};

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "queueing delay",
    text: "delay = 8 × buffer / rate",
    citation: "RFC 7567 §1",
    explanation: "A full buffer in front of a link delays every packet by the time that the link takes to empty it. \
                  TCP fills whatever buffer it finds, so this is the latency under load of a link without queue \
                  management: 45 packets of 1514 bytes at 240 kbit/s are 2.27 s, the modem of the LARTC howto, where \
                  2.33 s were measured including the idle link's 17 ms.",
};

/// Delay of a full buffer in front of a link of this rate (RFC 7567 §1). `None` at rate zero.
#[must_use]
pub fn queueing_delay(buffer: ByteCount, rate: BitRate) -> Option<Duration> {
    buffer / rate
}

/// Buffer that adds this delay: an inverse of [`queueing_delay`]. The other, its rate, is `buffer / delay`.
#[must_use]
pub fn buffer_of_delay(delay: Duration, rate: BitRate) -> ByteCount {
    rate * delay
}

#[cfg(test)]
mod tests {
    use super::super::near;
    use super::*;

    #[test]
    fn published_delays() {
        // 45 packets of 1514 bytes at 240 kbit/s: the ADSL modem of the LARTC howto, 2.27 s (measured there: 2.33 s
        // including the idle link's 17 ms). 1.5 MB at 300 Mbit/s: 40 ms.
        let table = [(45 * 1514, 240e3, 2271), (1_500_000, 300e6, 40)];
        for (buffer, rate, milliseconds) in table {
            let delay = queueing_delay(ByteCount::new(buffer), BitRate::from_bits_per_second(rate));
            assert_eq!(delay, Some(Duration::from_millis(milliseconds)), "{buffer} B at {rate}");
        }
        assert_eq!(queueing_delay(ByteCount::new(1), BitRate::ZERO), None);
    }

    proptest::proptest! {
        #[test]
        fn the_inverses_return(buffer in 1500_u64..1 << 40, rate in 1e4_f64..1e12) {
            let (buffer, rate) = (ByteCount::new(buffer), BitRate::from_bits_per_second(rate));
            let delay = queueing_delay(buffer, rate).unwrap_or_default();
            proptest::prop_assume!(delay > Duration::from_micros(1));
            proptest::prop_assert!(near(buffer_of_delay(delay, rate).as_f64(), buffer.as_f64(), 1e-3));
            proptest::prop_assert!(near((buffer / delay).bits_per_second(), rate.bits_per_second(), 1e-3));
        }
    }
}
