use core::time::Duration;

use linerate_units::{BitRate, ByteCount};

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "Little's law",
    text: "rate = 8 × bytes in flight / round-trip time",
    citation: "J. D. C. Little: A proof for the queuing formula L = λW, Operations Research 9(3), 1961",
    explanation: "What is in flight is what arrives in a round trip. So two of the three figures of any sample of a \
                  connection (in flight, round-trip time, rate) give the third, and a sample in which they do not \
                  agree was not in equilibrium or is wrong.\n\n\
                  A Japanese article on iperf shows a congestion window that stays at 2.48 MB without a \
                  retransmission while 17.9 MB arrive each second, and does not explain why. The law gives the round \
                  trip, 139 ms; and a flat window without loss means that not the network but a buffer at one end was \
                  the limit.",
};

/// Rate for this many bytes in flight (Little 1961). `None` for a round-trip time of zero.
#[must_use]
pub fn little_rate(in_flight: ByteCount, round_trip: Duration) -> Option<BitRate> {
    (!round_trip.is_zero()).then(|| in_flight / round_trip)
}

/// Bytes in flight at a rate: an inverse of [`little_rate`].
#[must_use]
pub fn little_in_flight(rate: BitRate, round_trip: Duration) -> ByteCount {
    rate * round_trip
}

/// Round-trip time for a rate and bytes in flight: another inverse of [`little_rate`]. `None` at rate zero.
#[must_use]
pub fn little_round_trip(in_flight: ByteCount, rate: BitRate) -> Option<Duration> {
    in_flight / rate
}

#[cfg(test)]
mod tests {
    use super::super::near;
    use super::*;

    #[test]
    fn the_round_trip_of_the_japanese_article() {
        let rate = BitRate::from_bits_per_second(17.9e6 * 8.0);
        let time = little_round_trip(ByteCount::new(2_480_000), rate).unwrap_or_default();
        assert!(near(time.as_secs_f64(), 0.139, 0.005), "{time:?}");
        assert_eq!(little_rate(ByteCount::new(1), Duration::ZERO), None);
        assert_eq!(little_round_trip(ByteCount::new(1), BitRate::ZERO), None);
    }

    proptest::proptest! {
        #[test]
        fn the_inverses_return(in_flight in 1000_u64..1 << 40, us in 10_u64..1_000_000) {
            let (in_flight, time) = (ByteCount::new(in_flight), Duration::from_micros(us));
            let rate = little_rate(in_flight, time).unwrap_or_default();
            proptest::prop_assert!(near(little_in_flight(rate, time).as_f64(), in_flight.as_f64(), 1e-6));
            let back = little_round_trip(in_flight, rate).unwrap_or_default();
            proptest::prop_assert!(near(back.as_secs_f64(), time.as_secs_f64(), 1e-3));
        }
    }
}
