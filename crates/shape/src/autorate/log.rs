use core::fmt;
use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::{BitRate, MonotonicTime};

use super::{ControllerState, LoadLevel};

/// Reason of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateReason {
    /// No change.
    Hold,
    /// No queue under high load.
    Grow,
    /// Small queue in the path's buffer.
    Lean,
    /// Large queue being drained.
    Drain,
    /// Queue drained: back to the capacity.
    Drained,
    /// Idle: towards the base rate.
    Decay,
    /// The idle delay has changed.
    Rebase,
}

impl RateReason {
    /// Name in the log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Grow => "grow",
            Self::Lean => "lean",
            Self::Drain => "drain",
            Self::Drained => "drained",
            Self::Decay => "decay",
            Self::Rebase => "rebase",
        }
    }
}

/// Log line: inputs and decision of one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AutorateLogLine {
    /// Time.
    pub at: MonotonicTime,
    /// Direction.
    pub direction: Direction,
    /// State of the controller.
    pub state: ControllerState,
    /// Load class.
    pub load: LoadLevel,
    /// Set rate.
    pub rate: BitRate,
    /// Carried rate; `None` before the first sample.
    pub achieved: Option<BitRate>,
    /// Last estimated capacity; `None` before the first queue, and with cake-autorate's law.
    pub capacity: Option<BitRate>,
    /// Queue in the path's buffer, as a time; `None` without samples.
    pub queue: Option<Duration>,
    /// Queue from which the rate falls.
    pub threshold: Duration,
    /// Reason of the rate.
    pub reason: RateReason,
}

impl AutorateLogLine {
    /// Tab-separated columns of [`AutorateLogLine`]'s text: seconds, bit/s and milliseconds; unknown values are empty.
    pub const HEADER: &'static str =
        "seconds\tdirection\tstate\tload\trate\tachieved\tcapacity\tqueue_ms\tthreshold_ms\treason";
}

impl fmt::Display for AutorateLogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.direction {
            Direction::Up => "up",
            Direction::Down => "down",
        };
        write!(f, "{:.3}\t{direction}\t", self.at.since_epoch().as_secs_f64())?;
        write!(f, "{:?}\t{:?}\t{:.0}\t", self.state, self.load, self.rate.bits_per_second())?;
        for rate in [self.achieved, self.capacity] {
            if let Some(rate) = rate {
                write!(f, "{:.0}", rate.bits_per_second())?;
            }
            f.write_str("\t")?;
        }
        if let Some(queue) = self.queue {
            write!(f, "{:.2}", queue.as_secs_f64() * 1e3)?;
        }
        write!(f, "\t{:.2}\t{}", self.threshold.as_secs_f64() * 1e3, self.reason.name())
    }
}
