use core::time::Duration;

use linerate_model::statistics::Signed;
use linerate_model::throughput::Flow;
use linerate_units::{BitRate, ByteCount};

use super::LogLine;
use super::constants::{DENSE_SPACING, PROBE, PROBES_SHARE, SPACING};

/// The name of a reflector; the caller knows which address it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReflectorId(u32);

impl ReflectorId {
    /// The reflector of this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// How rates are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Law {
    /// cake-autorate's, to compare with.
    CakeAutorate,
    /// By estimates of the capacity.
    #[default]
    Linerate,
}

/// Within which rates a direction is held. What is `None` is found out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Never below it; `None`: half of the lowest capacity that was seen, and not below 100 kbit/s.
    pub minimum: Option<BitRate>,
    /// Where it starts, and goes back to when nobody sends. `None`: it starts at 2 Mbit/s and doubles while all is clean;
    /// later this is a mean of the capacities that were seen.
    pub base: Option<BitRate>,
    /// Never above it; `None`: no bound but the path's.
    pub maximum: Option<BitRate>,
}

/// What a controller is made with.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How rates are chosen.
    pub law: Law,
    /// Towards the path.
    pub up: Bounds,
    /// From it.
    pub down: Bounds,
    /// Reflectors that are probed.
    pub reflectors: Vec<ReflectorId>,
    /// Reflectors that can take the place of one that fails, best first.
    pub spare: Vec<ReflectorId>,
    /// Time between two probes, of whichever reflectors: [`probe_interval`].
    pub probe_interval: Duration,
    /// The largest packet on the line, with its link layer's overhead: its time is added to each threshold.
    pub largest_packet: ByteCount,
}

/// How long to wait between two probes, of whichever reflectors, on a line of these rates: 50 ms with cake-autorate's law
/// (six reflectors, each every 300 ms), half of that with linerate's where the slower direction has 1.6 Mbit/s or more.
#[must_use]
pub fn probe_interval(law: Law, rates: [Option<BitRate>; 2]) -> Duration {
    let slower = rates.into_iter().flatten().min();
    let lasts = slower.and_then(|rate| (rate * PROBES_SHARE).time_to_send(PROBE));
    match law {
        Law::CakeAutorate => SPACING,
        Law::Linerate => lasts.unwrap_or(DENSE_SPACING).clamp(DENSE_SPACING, SPACING),
    }
}

/// One answer to a probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Who answered.
    pub reflector: ReflectorId,
    /// The probe's number; an answer older than the last one of the same reflector is left out.
    pub sequence: u64,
    /// What it says.
    pub delay: Delay,
}

/// The delay of one probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Delay {
    /// Both ways. Clocks of the two ends need not agree, so either may be negative; their sum is the round trip, and has to
    /// be measured with a clock that nobody sets: a probe that is on its way when one is set would be late by all of it.
    OneWay {
        /// From here to the reflector.
        up: Signed<Duration>,
        /// And back.
        down: Signed<Duration>,
    },
    /// The round trip only: which direction is late cannot be told.
    RoundTrip(Duration),
}

/// What a controller is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Input {
    /// An answer came.
    Sample(Sample),
    /// No answer came in time (one second).
    Lost {
        /// From whom.
        reflector: ReflectorId,
    },
    /// What the interface carried since the last time, 100 to 200 ms: up what was sent to the path (after the shaper), down
    /// what came from it (before the shaper).
    Achieved {
        /// Sent.
        up: ByteCount,
        /// Received.
        down: ByteCount,
        /// Over which time.
        over: Duration,
    },
    /// What waits in our own tree.
    Backlog {
        /// Which tree.
        direction: Flow,
        /// Bytes in all leaves.
        backlog: ByteCount,
    },
    /// The host's clock was set: one-way delays from before mean nothing any more.
    ClockStepped,
    /// The link has come up or gone down.
    Link {
        /// Whether it is up.
        up: bool,
    },
    /// Time has passed; needed at least every 200 ms when nothing else comes.
    Tick,
}

/// What the controller is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Follows the path.
    Running,
    /// Nobody has sent for a minute: probing may pause until somebody does.
    Idle,
    /// Nothing comes back and nothing is carried: rates are held, nobody is blamed.
    Stalled,
    /// Data is carried, but no reflector answers: rates are held at or below the base.
    Blind,
    /// The link is down.
    LinkDown,
}

/// How much of the set rate is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Load {
    /// Below 2 Mbit/s, and below the share that is high.
    Idle,
    /// Some of it.
    Low,
    /// More than 75 %, or packets wait in our own tree.
    High,
}

/// What the caller should do, or may write down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Output {
    /// Set this rate, in place.
    SetRate {
        /// Whose.
        direction: Flow,
        /// To what.
        rate: BitRate,
    },
    /// The state is another one.
    State(State),
    /// Probe another reflector in place of one.
    Replace {
        /// Probed until now; it goes to the end of the spare ones.
        old: ReflectorId,
        /// To be probed from now on.
        new: ReflectorId,
    },
    /// A line of the log.
    Log(LogLine),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_leave_slow_lines_to_others() {
        let interval = |law, rates: [f64; 2]| {
            probe_interval(law, rates.map(|rate| Some(BitRate::from_bits_per_second(rate)))).as_millis()
        };
        // 800 bits are 2 % of 1.25 Mbit/s each 32 ms.
        let cases = [([20e6, 8e6], 25), ([20e6, 1.6e6], 25), ([20e6, 1.25e6], 32), ([20e6, 220e3], 50)];
        for (rates, expected) in cases {
            assert_eq!(interval(Law::Linerate, rates), expected, "{rates:?}");
            assert_eq!(interval(Law::CakeAutorate, rates), 50);
        }
        assert_eq!(probe_interval(Law::Linerate, [None, None]).as_millis(), 25);
    }
}
