use core::time::Duration;

use linerate_units::{BitRate, ByteCount};

use super::Formula;

pub(super) const FORMULA: Formula =
    Formula { name: "queueing delay", text: "delay = 8 × buffer / rate", citation: "RFC 7567 §1" };

/// The delay that a full buffer in front of a link of this rate adds (RFC 7567 §1). `None` at a rate of nothing.
#[must_use]
pub fn queueing_delay(buffer: ByteCount, rate: BitRate) -> Option<Duration> {
    buffer / rate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_delays() {
        // 45 packets of 1514 bytes at 240 kbit/s: the ADSL modem of the LARTC howto, 2.27 s (measured there: 2.33 s with
        // the line's own 17 ms). 1.5 MB at 300 Mbit/s: 40 ms.
        let table = [(45 * 1514, 240e3, 2271), (1_500_000, 300e6, 40)];
        for (buffer, rate, milliseconds) in table {
            let delay = queueing_delay(ByteCount::new(buffer), BitRate::from_bits_per_second(rate));
            assert_eq!(delay, Some(Duration::from_millis(milliseconds)), "{buffer} B at {rate}");
        }
        assert_eq!(queueing_delay(ByteCount::new(1), BitRate::ZERO), None);
    }
}
