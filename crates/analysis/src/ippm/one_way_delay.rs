use core::time::Duration;

use super::{ClockRelation, PacketArrival, PacketStream};
use crate::statistics::{SampleSummary, SignedDifference};

/// One-way delay of a stream (RFC 7679), always with its error bound.
///
/// All samples share one error, that of the clocks: their differences are more accurate than the bound, their level is
/// not.
#[derive(Clone, Debug, PartialEq)]
pub struct OneWayDelay {
    /// Delay of the first copies. Negative results become zero: they are within the error.
    pub delay: SampleSummary<Duration>,
    /// Maximum error of these delays.
    pub error_bound: Duration,
}

impl OneWayDelay {
    /// Computes the delay of a stream from the near to the far host; `None` when nothing arrived.
    #[must_use]
    pub fn to_far(stream: &PacketStream, clocks: &ClockRelation) -> Option<Self> {
        Self::of(stream, clocks, |arrival| clocks.delay_to_far(arrival.sent, arrival.received))
    }

    /// Computes the delay of a stream from the far to the near host; `None` when nothing arrived.
    #[must_use]
    pub fn to_near(stream: &PacketStream, clocks: &ClockRelation) -> Option<Self> {
        Self::of(stream, clocks, |arrival| clocks.delay_to_near(arrival.sent, arrival.received))
    }

    fn of(
        stream: &PacketStream,
        clocks: &ClockRelation,
        delay: impl Fn(&PacketArrival) -> SignedDifference<Duration>,
    ) -> Option<Self> {
        let delays: Vec<Duration> = stream.first_copies().map(|arrival| delay(arrival).allow_zero()).collect();
        Some(Self { delay: SampleSummary::of(&delays)?, error_bound: clocks.error_bound })
    }
}

#[cfg(test)]
mod tests {
    use linerate_units::MonotonicTime;

    use super::super::{RoundTrip, stream::stream};
    use super::*;

    #[test]
    fn a_path_of_ten_milliseconds_per_direction() {
        // The far clock is an hour ahead; the streams of both directions take 10 ms and up to 1 ms more.
        let hour = Duration::from_secs(3600);
        let near = |millis: u64| MonotonicTime::from_nanos(millis * 1_000_000);
        let probe = |at: u64| RoundTrip {
            sent: near(at),
            far_received: near(at + 10) + hour,
            far_sent: near(at + 10) + hour,
            received: near(at + 20),
        };
        let clocks = ClockRelation::of(&[probe(0), probe(50)]).expect("probes");
        assert_eq!(clocks.offset, SignedDifference { negative: false, magnitude: hour });
        let mut out = stream(3, &[(0, 0), (1, 400), (2, 1000)]);
        let mut back = out.clone();
        out.arrivals.iter_mut().for_each(|arrival| arrival.received = arrival.received + hour);
        back.arrivals.iter_mut().for_each(|arrival| arrival.sent = arrival.sent + hour);
        let (there, here) = (OneWayDelay::to_far(&out, &clocks), OneWayDelay::to_near(&back, &clocks));
        assert_eq!(there, here);
        let delay = there.expect("arrivals");
        assert_eq!((delay.delay.min, delay.delay.max), (Duration::from_millis(10), Duration::from_millis(11)));
        assert_eq!(delay.error_bound, Duration::from_millis(10));
        assert_eq!(OneWayDelay::to_far(&stream(3, &[]), &clocks), None);
    }
}
