use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Ratio};

/// Bytes on one interface over some time, in one direction: counted, and caused by the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceTraffic {
    /// Interface counter: link-layer bytes, headers included.
    pub counted: ByteCount,
    /// Bytes of the measurement, with all known headers, acknowledgements and retransmissions.
    pub own: ByteCount,
    /// Time over which both were counted.
    pub time: Duration,
}

/// Cross traffic at the ends of the path during a measurement.
///
/// It is compared with the phase's own rate: below 8 % of it, figures of goodput and delay remain valid. Cross traffic
/// in the middle of a path is not visible in this way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficContamination {
    /// Rate of cross traffic; zero when the counters show less than the known traffic of the measurement.
    pub others: BitRate,
    /// Share of cross traffic in the counted bytes; `None` when nothing was counted.
    pub share: Option<Ratio>,
    /// True when figures of this phase should not be graded.
    pub spoils: bool,
}

/// Share of cross traffic from which an idle phase is invalid.
const MAX_IDLE_SHARE: f64 = 0.03;

/// Same share under load, where the measurement's own headers and retransmissions are only known to a few percent.
const MAX_LOADED_SHARE: f64 = 0.08;

/// Rate of cross traffic that is always ignored, in bit/s: name look-ups, clock synchronisation, a shell.
const MAX_IGNORED_RATE: f64 = 20e3;

impl TrafficContamination {
    /// Evaluates a phase under load.
    #[must_use]
    pub fn of(traffic: &InterfaceTraffic) -> Self {
        let foreign = traffic.counted - traffic.own;
        let others = foreign.rate_over(traffic.time);
        let share = foreign / traffic.counted;
        let spoils =
            others.bits_per_second() > MAX_IGNORED_RATE && share.is_some_and(|share| share.get() > MAX_LOADED_SHARE);
        Self { others, share, spoils }
    }

    /// Evaluates an idle phase, where the measurement's own traffic is too little for a comparison: cross traffic is
    /// compared with the path's capacity. Above 3 % of that it may cause queues.
    #[must_use]
    pub fn when_idle(traffic: &InterfaceTraffic, capacity: BitRate) -> Self {
        let mut result = Self::of(traffic);
        let of_capacity = result.others / capacity;
        result.spoils = result.others.bits_per_second() > MAX_IGNORED_RATE
            && of_capacity.is_some_and(|share| share.get() > MAX_IDLE_SHARE);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(counted: u64, own: u64) -> InterfaceTraffic {
        InterfaceTraffic { counted: ByteCount::new(counted), own: ByteCount::new(own), time: Duration::from_secs(10) }
    }

    #[test]
    fn under_load() {
        // 100 MB of which 2 MB are cross traffic: 1.6 Mbit/s, 2 %.
        let little = TrafficContamination::of(&traffic(100_000_000, 98_000_000));
        assert_eq!((little.others, little.spoils), (BitRate::from_bits_per_second(1.6e6), false));
        assert_eq!(little.share, Ratio::new(0.02));
        assert!(TrafficContamination::of(&traffic(100_000_000, 90_000_000)).spoils);
        // Own headers counted a little too high.
        let none = TrafficContamination::of(&traffic(100_000_000, 100_100_000));
        assert_eq!((none.others, none.spoils), (BitRate::ZERO, false));
        assert_eq!(TrafficContamination::of(&traffic(0, 0)).share, None);
    }

    #[test]
    fn at_rest() {
        // 1 MB of cross traffic in 10 s: 0.8 Mbit/s. Much for a modem, negligible for a gigabit.
        let others = traffic(1_010_000, 10_000);
        let rate = BitRate::from_bits_per_second;
        assert!(TrafficContamination::when_idle(&others, rate(10e6)).spoils);
        assert!(!TrafficContamination::when_idle(&others, rate(1e9)).spoils);
        // 12 kbit/s of name look-ups are 5 % of an old modem link, and still ignored.
        assert!(!TrafficContamination::when_idle(&traffic(25_000, 10_000), rate(240e3)).spoils);
        assert!(!TrafficContamination::when_idle(&others, BitRate::ZERO).spoils);
    }
}
