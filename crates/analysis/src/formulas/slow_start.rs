use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Mss, Ratio, SegmentCount};

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "slow start",
    text: "time = round-trip time × log₂(BDP / (segment × initial window))",
    citation: "RFC 5681 §3.1; RFC 6928 for the initial window of 10 segments",
    explanation: "The window doubles each round trip until it fills the path or something is lost. A transfer that is \
                  over before never reaches the path's rate, whatever the buffers are: on 10 Gbit/s over 117 ms that \
                  takes 13.3 round trips, 1.56 s and some 237 MB. So a test should last at least ten times as long, \
                  and leave out the first two of these times.\n\n\
                  A Japanese article on iperf claims that -O disables slow start. It omits the first seconds from the \
                  figures; TCP starts slowly all the same.",
};

/// Initial window in segments (RFC 6928).
pub const INITIAL_WINDOW: u64 = 10;

/// Time in which slow start fills a path, when nothing ends it early (RFC 5681 §3.1): the window doubles each round
/// trip. Zero where the initial window fills the path; `None` for segments of no size.
#[must_use]
pub fn slow_start_time(rate: BitRate, round_trip: Duration, segment: Mss) -> Option<Duration> {
    let doublings = slow_start_rounds(rate, round_trip, segment, SegmentCount::new(INITIAL_WINDOW))?;
    Duration::try_from_secs_f64(round_trip.as_secs_f64() * doublings.get()).ok()
}

/// Number of round trips in which slow start fills a path from this initial window. Zero where that fills the path;
/// `None` for an initial window of zero.
#[must_use]
pub fn slow_start_rounds(rate: BitRate, round_trip: Duration, segment: Mss, initial: SegmentCount) -> Option<Ratio> {
    let product: ByteCount = rate * round_trip;
    Ratio::new((product / (initial * segment.byte_count()))?.get().max(1.0).log2())
}

/// Volume sent when the window of slow start first fills the path: the windows of the whole round trips until then,
/// each twice the previous one. `None` as for [`slow_start_rounds`].
#[must_use]
pub fn slow_start_volume(
    rate: BitRate,
    round_trip: Duration,
    segment: Mss,
    initial: SegmentCount,
) -> Option<ByteCount> {
    let rounds = slow_start_rounds(rate, round_trip, segment, initial)?.get().ceil();
    Some(ByteCount::from_f64((initial * segment.byte_count()).as_f64() * (rounds.exp2() - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::super::near;
    use super::*;

    fn seconds(rate: f64, milliseconds: u64) -> f64 {
        let time =
            slow_start_time(BitRate::from_bits_per_second(rate), Duration::from_millis(milliseconds), Mss::new(1448));
        time.map_or(f64::NAN, |time| time.as_secs_f64())
    }

    #[test]
    fn published_times() {
        // 1 Gbit/s × 53 ms: 8.8 round trips, 0.47 s; 10 Gbit/s × 117 ms: 13.3, 1.56 s.
        assert!(near(seconds(1e9, 53), 0.47, 0.01), "{}", seconds(1e9, 53));
        assert!(near(seconds(10e9, 117), 1.56, 0.01), "{}", seconds(10e9, 117));
        assert!(near(seconds(1e6, 10), 0.0, 0.0), "the initial window is more than this path holds");
        assert_eq!(slow_start_time(BitRate::ZERO, Duration::ZERO, Mss::new(0)), None);
    }

    #[test]
    fn published_rounds_and_volume() {
        let (long, initial) = (Duration::from_millis(117), SegmentCount::new(INITIAL_WINDOW));
        let rate = BitRate::from_bits_per_second(10e9);
        let rounds = slow_start_rounds(rate, long, Mss::new(1448), initial).map_or(0.0, Ratio::get);
        assert!(near(rounds, 13.3, 0.005), "{rounds}");
        // 14480 × (2^14 − 1): 237 MB before the full rate.
        let volume = slow_start_volume(rate, long, Mss::new(1448), initial);
        assert_eq!(volume, Some(ByteCount::new(14_480 * 16_383)));
    }

    #[test]
    fn impossible_inputs_give_none() {
        let none = SegmentCount::ZERO;
        let (second, rate) = (Duration::from_secs(1), BitRate::from_bits_per_second(1e9));
        assert_eq!(slow_start_volume(rate, second, Mss::new(1448), none), None);
    }
}
