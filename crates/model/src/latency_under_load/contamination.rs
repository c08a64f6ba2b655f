use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Ratio};

/// Bytes on one interface over some time, in one direction: what its counters say, and what was the measurement's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceTraffic {
    /// What the interface counted: link-layer bytes, headers included.
    pub counted: ByteCount,
    /// What the measurement sent or received there, with all headers, acknowledgements and retransmissions that are known.
    pub own: ByteCount,
    /// The time over which both were counted.
    pub time: Duration,
}

/// Whether traffic of others was on the path's ends while it was measured.
///
/// It is judged beside the phase's own rate: as long as others have less than 8 % of it, figures of goodput and delay
/// hold. A path's middle cannot be seen in this way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contamination {
    /// The rate of others; zero when the counters say less than what is known of the measurement itself.
    pub others: BitRate,
    /// Others, of everything that was counted; `None` when nothing was.
    pub share: Option<Ratio>,
    /// Whether figures of this phase should not be graded.
    pub spoilt: bool,
}

/// The share of others from which a phase at rest is spoilt.
const TOLERATED: f64 = 0.03;

/// The same under load, where the measurement's own headers and retransmissions are only known to a few percent.
const TOLERATED_UNDER_LOAD: f64 = 0.08;

/// What is never worth a word, in bit/s: name look-ups, clock synchronisation, a shell.
const UNNOTICED: f64 = 20e3;

impl Contamination {
    /// The contamination of a phase under load.
    #[must_use]
    pub fn of(traffic: &InterfaceTraffic) -> Self {
        let foreign = traffic.counted - traffic.own;
        let others = foreign.rate_over(traffic.time);
        let share = foreign / traffic.counted;
        let spoilt =
            others.bits_per_second() > UNNOTICED && share.is_some_and(|share| share.get() > TOLERATED_UNDER_LOAD);
        Self { others, share, spoilt }
    }

    /// The contamination of a phase at rest, where the measurement's own traffic is too little to be compared with: others
    /// are set beside what the path carries under load. Above 3 % of that they may queue.
    #[must_use]
    pub fn at_rest(traffic: &InterfaceTraffic, capacity: BitRate) -> Self {
        let mut result = Self::of(traffic);
        let of_capacity = result.others / capacity;
        result.spoilt =
            result.others.bits_per_second() > UNNOTICED && of_capacity.is_some_and(|share| share.get() > TOLERATED);
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
        // 100 MB of which 2 MB are others': 1.6 Mbit/s, 2 %.
        let little = Contamination::of(&traffic(100_000_000, 98_000_000));
        assert_eq!((little.others, little.spoilt), (BitRate::from_bits_per_second(1.6e6), false));
        assert_eq!(little.share, Ratio::new(0.02));
        assert!(Contamination::of(&traffic(100_000_000, 90_000_000)).spoilt);
        // Own headers counted a little too high.
        let none = Contamination::of(&traffic(100_000_000, 100_100_000));
        assert_eq!((none.others, none.spoilt), (BitRate::ZERO, false));
        assert_eq!(Contamination::of(&traffic(0, 0)).share, None);
    }

    #[test]
    fn at_rest() {
        // 1 MB of others' in 10 s: 0.8 Mbit/s. Much for a modem, nothing for a gigabit.
        let others = traffic(1_010_000, 10_000);
        let rate = BitRate::from_bits_per_second;
        assert!(Contamination::at_rest(&others, rate(10e6)).spoilt);
        assert!(!Contamination::at_rest(&others, rate(1e9)).spoilt);
        // 12 kbit/s of name look-ups are 5 % of an old modem's line, and still no traffic.
        assert!(!Contamination::at_rest(&traffic(25_000, 10_000), rate(240e3)).spoilt);
        assert!(!Contamination::at_rest(&others, BitRate::ZERO).spoilt);
    }
}
