use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Mss};

use super::Formula;

pub(super) const FORMULA: Formula = Formula {
    name: "slow start",
    text: "time = round-trip time × log₂(BDP / (segment × initial window))",
    citation: "RFC 5681 §3.1; RFC 6928 for the initial window of 10 segments",
};

/// The initial window in segments (RFC 6928).
pub const INITIAL_WINDOW: u64 = 10;

/// How long slow start takes to fill a path, when nothing ends it early (RFC 5681 §3.1): the window doubles each round
/// trip. Nothing where the initial window fills the path; `None` for segments of no size.
#[must_use]
pub fn slow_start_time(rate: BitRate, round_trip: Duration, segment: Mss) -> Option<Duration> {
    let initial = segment.byte_count() * INITIAL_WINDOW;
    let product: ByteCount = rate * round_trip;
    let doublings = (product / initial)?.get().max(1.0).log2();
    Duration::try_from_secs_f64(round_trip.as_secs_f64() * doublings).ok()
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
}
