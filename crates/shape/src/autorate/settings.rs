use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_analysis::statistics::SignedDifference;
use linerate_units::{BitRate, ByteCount};

use super::AutorateLogLine;
use super::constants::{DENSE_PROBE_INTERVAL, MAX_PROBE_SHARE, PROBE_INTERVAL, PROBE_SIZE};

/// Id of a reflector; the caller maps it to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReflectorId(u32);

impl ReflectorId {
    /// Id with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// Control law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ControlLaw {
    /// Law of cake-autorate, for comparison.
    CakeAutorate,
    /// Estimates of the capacity.
    #[default]
    Linerate,
}

/// Rate bounds of a direction. `None` is discovered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AutorateBounds {
    /// Minimum; `None`: half of the lowest estimated capacity, at least 100 kbit/s.
    pub minimum: Option<BitRate>,
    /// Start rate, also the target while idle. `None`: starts at 2 Mbit/s and doubles without a queue; later a mean of
    /// the estimated capacities.
    pub base: Option<BitRate>,
    /// Maximum; `None`: only the path's.
    pub maximum: Option<BitRate>,
}

/// Settings of a controller.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerSettings {
    /// Control law.
    pub law: ControlLaw,
    /// Bounds towards the path.
    pub up: AutorateBounds,
    /// Bounds from the path.
    pub down: AutorateBounds,
    /// Probed reflectors.
    pub reflectors: Vec<ReflectorId>,
    /// Spare reflectors, best first.
    pub spare: Vec<ReflectorId>,
    /// Interval between two probes, over all reflectors: [`probe_interval`].
    pub probe_interval: Duration,
    /// Largest packet with link-layer overhead; its serialisation time is added to each threshold.
    pub largest_packet: ByteCount,
}

/// Interval between two probes, over all reflectors, on a link of these rates: 50 ms with cake-autorate's law (six
/// reflectors, each every 300 ms), half of that with linerate's where the slower direction has 1.6 Mbit/s or more.
#[must_use]
pub fn probe_interval(law: ControlLaw, rates: [Option<BitRate>; 2]) -> Duration {
    let slower = rates.into_iter().flatten().min();
    let lasts = slower.and_then(|rate| (rate * MAX_PROBE_SHARE).time_to_send(PROBE_SIZE));
    match law {
        ControlLaw::CakeAutorate => PROBE_INTERVAL,
        ControlLaw::Linerate => lasts.unwrap_or(DENSE_PROBE_INTERVAL).clamp(DENSE_PROBE_INTERVAL, PROBE_INTERVAL),
    }
}

/// Answer to a probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReflectorSample {
    /// Reflector.
    pub reflector: ReflectorId,
    /// Number of the probe; answers older than the last one of the same reflector are dropped.
    pub sequence: u64,
    /// Measured delay.
    pub delay: ProbeDelay,
}

/// Delay of one probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProbeDelay {
    /// One-way delays. The clocks need not agree, so either may be negative; their sum is the round trip, which must be
    /// measured with a monotonic clock: otherwise a clock step delays the probes in flight.
    OneWay {
        /// From here to the reflector.
        up: SignedDifference<Duration>,
        /// From the reflector to here.
        down: SignedDifference<Duration>,
    },
    /// Round trip only: the late direction is unknown.
    RoundTrip(Duration),
}

/// Input of a controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ControllerInput {
    /// An answer arrived.
    Sample(ReflectorSample),
    /// No answer in time (one second).
    Lost {
        /// Reflector.
        reflector: ReflectorId,
    },
    /// Bytes carried by the interface since the last input, over 100 to 200 ms: up towards the path (after the shaper),
    /// down from the path (before the shaper).
    Achieved {
        /// Sent.
        up: ByteCount,
        /// Received.
        down: ByteCount,
        /// Duration.
        over: Duration,
    },
    /// Backlog of our own tree.
    Backlog {
        /// Direction of the tree.
        direction: Direction,
        /// Bytes in all leaves.
        backlog: ByteCount,
    },
    /// The host's clock was stepped: earlier one-way delays are void.
    ClockStepped,
    /// The link has come up or gone down.
    Link {
        /// True when the link is up.
        up: bool,
    },
    /// Time has passed; needed at least every 200 ms without other inputs.
    Tick,
}

/// State of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ControllerState {
    /// Follows the path.
    Running,
    /// No traffic for a minute: probing may pause until traffic resumes.
    Idle,
    /// No answers and no traffic: rates are held, and no reflector is blamed.
    Stalled,
    /// Traffic, but no answers: rates are held at or below the base.
    Blind,
    /// The link is down.
    LinkDown,
}

/// Utilisation of the set rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoadLevel {
    /// Below 2 Mbit/s, and below the high share.
    Idle,
    /// Between idle and high.
    Low,
    /// More than 75 %, or a backlog in our own tree.
    High,
}

/// Output of a controller: action or log line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ControllerOutput {
    /// Set this rate in place.
    SetRate {
        /// Direction.
        direction: Direction,
        /// Rate.
        rate: BitRate,
    },
    /// The state has changed.
    State(ControllerState),
    /// Replace a reflector.
    Replace {
        /// Replaced reflector; it becomes the last spare one.
        old: ReflectorId,
        /// New reflector.
        new: ReflectorId,
    },
    /// Log line.
    Log(AutorateLogLine),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_use_little_of_slow_links() {
        let interval = |law, rates: [f64; 2]| {
            probe_interval(law, rates.map(|rate| Some(BitRate::from_bits_per_second(rate)))).as_millis()
        };
        // 800 bits are 2 % of 1.25 Mbit/s each 32 ms.
        let cases = [([20e6, 8e6], 25), ([20e6, 1.6e6], 25), ([20e6, 1.25e6], 32), ([20e6, 220e3], 50)];
        for (rates, expected) in cases {
            assert_eq!(interval(ControlLaw::Linerate, rates), expected, "{rates:?}");
            assert_eq!(interval(ControlLaw::CakeAutorate, rates), 50);
        }
        assert_eq!(probe_interval(ControlLaw::Linerate, [None, None]).as_millis(), 25);
    }
}
