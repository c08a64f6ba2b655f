use core::time::Duration;

use linerate_units::Ratio;

use super::{PacketArrival, PacketStream};
use crate::statistics::{SampleSummary, percentile};

/// Delay variation of a stream. A constant clock offset does not matter; a drift of 50 parts in a million adds 0.5 ms
/// in ten seconds, and should be removed before.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayVariation {
    /// Packet delay variation (PDV, RFC 5481 §4.2): delay of each packet above that of the fastest one. A de-jitter
    /// buffer must cover it.
    pub pdv: SampleSummary<Duration>,
    /// Inter-packet delay variation (IPDV, RFC 3393) of consecutively sent packets: mean absolute value; `None` when no
    /// two neighbours arrived.
    pub ipdv_mean: Option<Duration>,
    /// 95th percentile of its absolute value.
    pub ipdv_p95: Option<Duration>,
    /// Interquartile range of the delay: the "delay spread" of draft-ietf-ippm-reporting.
    pub spread: Duration,
}

impl DelayVariation {
    /// Computes the variation of the first copies' delay; `None` when nothing arrived.
    #[must_use]
    pub fn of(stream: &PacketStream) -> Option<Self> {
        let least = stream.min_difference()?;
        let mut delays: Vec<(u64, i64)> =
            stream.first_copies().map(|arrival| (arrival.sequence, PacketArrival::difference_nanos(arrival))).collect();
        let above: Vec<Duration> =
            delays.iter().map(|(_, difference)| Duration::from_nanos(difference.abs_diff(least))).collect();
        let pdv = SampleSummary::of(&above)?;
        delays.sort_unstable();
        let between: Vec<Duration> = delays
            .windows(2)
            .filter(|pair| pair[1].0 == pair[0].0 + 1)
            .map(|pair| Duration::from_nanos(pair[1].1.abs_diff(pair[0].1)))
            .collect();
        Some(Self {
            spread: pdv.interquartile_range,
            pdv,
            ipdv_mean: SampleSummary::of(&between).map(|summary| summary.mean),
            ipdv_p95: percentile(&between, Ratio::from_percent(95.0)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use linerate_units::MonotonicTime;
    use proptest::prelude::*;

    use super::super::stream::stream;
    use super::*;

    #[test]
    fn relative_to_the_fastest_and_between_neighbours() {
        // Delays above 10 ms, in microseconds: 300, 100, (2 lost) 500, 200.
        let variation = DelayVariation::of(&stream(5, &[(0, 300), (1, 100), (3, 500), (4, 200)])).expect("arrivals");
        let micros = Duration::from_micros;
        assert_eq!((variation.pdv.min, variation.pdv.median, variation.pdv.max), (micros(0), micros(100), micros(400)));
        // Neighbours: 0 and 1 (200), 3 and 4 (300); 1 and 3 are none.
        assert_eq!((variation.ipdv_mean, variation.ipdv_p95), (Some(micros(250)), Some(micros(300))));
        // 25th percentile 0, 75th 200.
        assert_eq!(variation.spread, micros(200));
        assert_eq!(DelayVariation::of(&stream(5, &[])), None);
        let one = DelayVariation::of(&stream(5, &[(3, 9)])).expect("an arrival");
        assert_eq!((one.pdv.max, one.ipdv_mean), (Duration::ZERO, None));
    }

    proptest! {
        #[test]
        fn the_offset_of_the_clocks_does_not_matter(
            extra in proptest::collection::vec(0_u64..100_000, 1..100), ahead in 0_u64..1_000_000_000
        ) {
            let arrivals: Vec<(u64, u64)> = (0..).zip(extra.iter().copied()).collect();
            let plain = stream(extra.len() as u64, &arrivals);
            let mut shifted = plain.clone();
            for arrival in &mut shifted.arrivals {
                // The sender's clock far ahead: differences are negative.
                arrival.sent = arrival.sent + Duration::from_micros(ahead);
            }
            prop_assert_eq!(DelayVariation::of(&plain), DelayVariation::of(&shifted));
            let variation = DelayVariation::of(&plain).expect("arrivals");
            prop_assert_eq!(variation.pdv.min, Duration::ZERO);
            prop_assert!(variation.ipdv_mean.unwrap_or_default() <= variation.pdv.max);
            prop_assert_eq!(plain.arrivals[0].received > MonotonicTime::default(), true);
        }
    }
}
