use core::time::Duration;
use linerate_model::address_family::AddressFamily;
use linerate_model::direction::Direction;
use serde::{Deserialize, Serialize};

use linerate_analysis::latency_under_load::{InterfaceTraffic, LatencyClass, LatencyUplift};
use linerate_analysis::statistics::{BlockSample, DEFAULT_BLOCK, SampleSummary};
use linerate_model::load::PhaseKind;
use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Ratio};

/// A value per direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerDirection<T> {
    /// Towards the path.
    pub up: T,
    /// From it.
    pub down: T,
}

impl<T> PerDirection<T> {
    /// Value of one direction.
    #[must_use]
    pub const fn of(&self, direction: Direction) -> &T {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// Mutable value of one direction.
    pub const fn of_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }
}

/// Delays of one class of probes in one phase.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassDelays {
    /// Class.
    pub class: LatencyClass,
    /// IP version.
    pub family: AddressFamily,
    /// Arrival time and round trip of each answer.
    pub round_trips: Vec<(MonotonicTime, Duration)>,
    /// One-way delays above the minimum of the idle phase; `None` when the far end does not report them.
    pub one_way: Option<PerDirection<SampleSummary<Duration>>>,
}

impl ClassDelays {
    /// Order statistics of the round trips; `None` without any.
    #[must_use]
    pub fn summary(&self) -> Option<SampleSummary<Duration>> {
        let times: Vec<Duration> = self.round_trips.iter().map(|(_, time)| *time).collect();
        SampleSummary::of(&times)
    }

    /// Round trips in blocks of a second.
    #[must_use]
    pub fn sample(&self) -> BlockSample<Duration> {
        BlockSample::timed(&self.round_trips, DEFAULT_BLOCK)
    }
}

/// Counters of one tree during a phase: its root is on the device (up) or on the intermediate device (down).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeCounters {
    /// Bytes sent.
    pub bytes: ByteCount,
    /// Packets sent.
    pub packets: PacketCount,
    /// Packets dropped by its leaves.
    pub drops: PacketCount,
    /// Packets marked (ECN) by its leaves.
    pub marks: PacketCount,
    /// Largest observed backlog of its leaves; `None` when not sampled.
    pub largest_backlog: Option<ByteCount>,
}

/// Phase of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseMeasurement {
    /// Kind of load.
    pub kind: PhaseKind,
    /// Delays of the probes.
    pub classes: Vec<ClassDelays>,
    /// Goodput of the load's connections; `None` in a direction without load.
    pub goodput: PerDirection<Option<BitRate>>,
    /// Counters of the interface; `None` when not sampled.
    pub traffic: PerDirection<Option<InterfaceTraffic>>,
    /// Counters of our trees; `None` without a tree.
    pub tree: PerDirection<Option<TreeCounters>>,
    /// Utilisation of the busiest processor; `None` when not sampled.
    pub processor: Option<Ratio>,
}

impl PhaseMeasurement {
    /// True when this direction was loaded.
    #[must_use]
    pub const fn loads(&self, direction: Direction) -> bool {
        matches!(
            (self.kind, direction),
            (PhaseKind::Both, _) | (PhaseKind::Up, Direction::Up) | (PhaseKind::Down, Direction::Down)
        )
    }
}

/// Measurement of all phases.
#[derive(Clone, Debug, PartialEq)]
pub struct PathMeasurement {
    /// Phases, in order.
    pub phases: Vec<PhaseMeasurement>,
}

impl PathMeasurement {
    /// Phase of this kind.
    #[must_use]
    pub fn phase(&self, kind: PhaseKind) -> Option<&PhaseMeasurement> {
        self.phases.iter().find(|phase| phase.kind == kind)
    }

    /// Delays of a class in a phase.
    #[must_use]
    pub fn class_delays(&self, kind: PhaseKind, class: LatencyClass, family: AddressFamily) -> Option<&ClassDelays> {
        let classes = &self.phase(kind)?.classes;
        classes.iter().find(|reading| reading.class == class && reading.family == family)
    }

    /// Delay that load adds to a class over the idle phase; `None` when either was not measured.
    #[must_use]
    pub fn uplift(&self, kind: PhaseKind, class: LatencyClass, family: AddressFamily) -> Option<LatencyUplift> {
        let rest = self.class_delays(PhaseKind::Idle, class, family)?.summary()?;
        Some(LatencyUplift::of(&rest, &self.class_delays(kind, class, family)?.summary()?))
    }

    /// Goodput of a direction loaded alone, or of both loaded if that was not measured.
    #[must_use]
    pub fn goodput(&self, direction: Direction) -> Option<BitRate> {
        let of = |kind| self.phase(kind).and_then(|phase| *phase.goodput.of(direction));
        of(loading_phase(direction)).or_else(|| of(PhaseKind::Both))
    }
}

/// Phase that loads a direction alone.
pub(super) const fn loading_phase(direction: Direction) -> PhaseKind {
    match direction {
        Direction::Up => PhaseKind::Up,
        Direction::Down => PhaseKind::Down,
    }
}

/// Kind of a difference between the kernel's state and the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanDifferenceKind {
    /// The filter that redirects received packets to the intermediate device is missing.
    RedirectMissing,
    /// The target device of the redirect is down: the kernel drops the packets.
    RedirectTargetDown,
    /// A queueing discipline, class or filter is missing.
    Missing,
    /// An object has another kind.
    OtherKind,
    /// An object has another rate.
    OtherRate,
    /// Other difference.
    Other,
}

/// Difference between a qdisc in the kernel and the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadBackDifference {
    /// Kind.
    pub kind: PlanDifferenceKind,
    /// Affected direction.
    pub direction: Direction,
    /// Description.
    pub text: String,
}

/// Requirements on the shaper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShaperRequirements {
    /// Minimum goodput as a share of the earlier one. A loss of 20 % is hardly noticeable.
    pub goodput_floor: Ratio,
    /// Maximum uplift (95th percentile) that passes. 30 ms: grade A.
    pub largest_uplift: Duration,
    /// True when somebody asked for this uplift: a larger one is a missed limit, not a remark.
    pub is_uplift_asked: bool,
}

impl Default for ShaperRequirements {
    fn default() -> Self {
        Self {
            goodput_floor: Ratio::new(0.8).unwrap_or_default(),
            largest_uplift: Duration::from_millis(30),
            is_uplift_asked: false,
        }
    }
}

/// Evidence for the judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct ShaperEvidence {
    /// Measurement without the shaper.
    pub before: PathMeasurement,
    /// Measurement with the shaper.
    pub after: PathMeasurement,
    /// Second measurement without the shaper; `None` when skipped.
    pub before_again: Option<PathMeasurement>,
    /// Set rates; `None` in a direction that is not shaped.
    pub set: PerDirection<Option<BitRate>>,
    /// Predicted mean delay above idle of best-effort probes, with only that direction loaded.
    pub predicted: PerDirection<Option<Duration>>,
    /// Differences between the kernel's state and the plan.
    pub differences: Vec<ReadBackDifference>,
    /// Requirements.
    pub profile: ShaperRequirements,
    /// Seed of all random numbers.
    pub seed: u64,
}
