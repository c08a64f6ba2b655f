use core::fmt;
use core::time::Duration;

use linerate_model::throughput::Flow;
use linerate_units::{BitRate, MonotonicTime};

use super::{Load, State};

/// Why a rate is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Nothing changes.
    Hold,
    /// All clean under high load.
    Grow,
    /// A small queue stands in the path's buffer.
    Lean,
    /// A large one is being drained.
    Drain,
    /// It is drained: back to the capacity.
    Drained,
    /// Nobody sends: towards the base rate.
    Decay,
    /// The delay at rest is another one now.
    Rebase,
}

impl Reason {
    /// Its name in the log.
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

/// One line of the log: what was known in one direction, and what was made of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogLine {
    /// When.
    pub at: MonotonicTime,
    /// Which direction.
    pub direction: Flow,
    /// What the controller does.
    pub state: State,
    /// How much is used.
    pub load: Load,
    /// The rate that is set.
    pub rate: BitRate,
    /// What is carried; `None` before it was told.
    pub achieved: Option<BitRate>,
    /// The capacity as last estimated; `None` before the first queue, and with cake-autorate's law.
    pub capacity: Option<BitRate>,
    /// The queue in the path's buffer as a time; `None` without samples.
    pub queue: Option<Duration>,
    /// The queue from which the rate falls.
    pub threshold: Duration,
    /// Why the rate is what it is.
    pub reason: Reason,
}

impl LogLine {
    /// The columns of [`LogLine`]'s text, tab-separated: seconds, bit/s and milliseconds; what is not known is empty.
    pub const HEADER: &'static str =
        "seconds\tdirection\tstate\tload\trate\tachieved\tcapacity\tqueue_ms\tthreshold_ms\treason";
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.direction {
            Flow::Up => "up",
            Flow::Down => "down",
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
