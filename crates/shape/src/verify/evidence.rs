use core::time::Duration;

use linerate_model::latency_under_load::{Class, InterfaceTraffic, Uplift};
use linerate_model::schema::load::PhaseKind;
use linerate_model::statistics::{BLOCK, Sample, Summary};
use linerate_model::throughput::Flow;
use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Ratio};

/// One of a thing for each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Both<T> {
    /// Towards the path.
    pub up: T,
    /// From it.
    pub down: T,
}

impl<T> Both<T> {
    /// That of one direction.
    #[must_use]
    pub const fn of(&self, direction: Flow) -> &T {
        match direction {
            Flow::Up => &self.up,
            Flow::Down => &self.down,
        }
    }

    /// The same, to be changed.
    pub const fn of_mut(&mut self, direction: Flow) -> &mut T {
        match direction {
            Flow::Up => &mut self.up,
            Flow::Down => &mut self.down,
        }
    }
}

/// Which version of the Internet Protocol probes used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    Four,
    /// IPv6.
    Six,
}

/// What one class of probes saw in one phase.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassReading {
    /// Which class.
    pub class: Class,
    /// Over which protocol.
    pub family: Family,
    /// When each answer came, and the round trip.
    pub round_trips: Vec<(MonotonicTime, Duration)>,
    /// One-way delays above the least of the phase at rest; `None` where the far end does not tell them.
    pub one_way: Option<Both<Summary<Duration>>>,
}

impl ClassReading {
    /// The round trips' order statistics; `None` of none.
    #[must_use]
    pub fn summary(&self) -> Option<Summary<Duration>> {
        let times: Vec<Duration> = self.round_trips.iter().map(|(_, time)| *time).collect();
        Summary::of(&times)
    }

    /// The round trips in blocks of a second.
    #[must_use]
    pub fn sample(&self) -> Sample<Duration> {
        Sample::timed(&self.round_trips, BLOCK)
    }
}

/// What one of our trees counted during a phase: the root on the device (up), or on the intermediate device (down).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeReading {
    /// Bytes that left it.
    pub bytes: ByteCount,
    /// Packets that left it.
    pub packets: PacketCount,
    /// Packets that its leaves dropped.
    pub drops: PacketCount,
    /// Packets that its leaves marked (ECN).
    pub marks: PacketCount,
    /// The most that was seen to wait in its leaves; `None` when nobody looked.
    pub largest_backlog: Option<ByteCount>,
}

/// One phase of one measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseReading {
    /// What was loaded.
    pub kind: PhaseKind,
    /// What probes saw.
    pub classes: Vec<ClassReading>,
    /// What the load's connections carried as payload; `None` in a direction without load.
    pub goodput: Both<Option<BitRate>>,
    /// What the interface counted; `None` when nobody looked.
    pub traffic: Both<Option<InterfaceTraffic>>,
    /// What our trees counted; `None` before they stand, and where none is planned.
    pub tree: Both<Option<TreeReading>>,
    /// The share of the busiest processor that was in use; `None` when nobody looked.
    pub processor: Option<Ratio>,
}

impl PhaseReading {
    /// Whether this direction was loaded.
    #[must_use]
    pub const fn loads(&self, direction: Flow) -> bool {
        matches!(
            (self.kind, direction),
            (PhaseKind::Both, _) | (PhaseKind::Up, Flow::Up) | (PhaseKind::Down, Flow::Down)
        )
    }
}

/// All phases, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// In the order in which they ran.
    pub phases: Vec<PhaseReading>,
}

impl Measurement {
    /// The phase of this kind.
    #[must_use]
    pub fn phase(&self, kind: PhaseKind) -> Option<&PhaseReading> {
        self.phases.iter().find(|phase| phase.kind == kind)
    }

    /// What a class saw in a phase.
    #[must_use]
    pub fn reading(&self, kind: PhaseKind, class: Class, family: Family) -> Option<&ClassReading> {
        let classes = &self.phase(kind)?.classes;
        classes.iter().find(|reading| reading.class == class && reading.family == family)
    }

    /// What load adds to a class beside the phase at rest; `None` when either was not measured.
    #[must_use]
    pub fn uplift(&self, kind: PhaseKind, class: Class, family: Family) -> Option<Uplift> {
        let rest = self.reading(PhaseKind::Idle, class, family)?.summary()?;
        Some(Uplift::of(&rest, &self.reading(kind, class, family)?.summary()?))
    }

    /// What was carried in a direction while it alone was loaded; while both were, if that was not measured.
    #[must_use]
    pub fn goodput(&self, direction: Flow) -> Option<BitRate> {
        let of = |kind| self.phase(kind).and_then(|phase| *phase.goodput.of(direction));
        of(own_phase(direction)).or_else(|| of(PhaseKind::Both))
    }
}

/// The phase in which a direction alone is loaded.
pub(super) const fn own_phase(direction: Flow) -> PhaseKind {
    match direction {
        Flow::Up => PhaseKind::Up,
        Flow::Down => PhaseKind::Down,
    }
}

/// How what stands in the kernel differs from the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DifferenceKind {
    /// The filter that sends incoming packets to the intermediate device is not there.
    RedirectMissing,
    /// The device it sends them to is down: the kernel drops them.
    RedirectTargetDown,
    /// A queueing discipline, class or filter is not there.
    Missing,
    /// It is of another kind.
    OtherKind,
    /// Its rate is another one.
    OtherRate,
    /// Anything else.
    Other,
}

/// One such difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What it is.
    pub kind: DifferenceKind,
    /// Which direction it concerns.
    pub direction: Flow,
    /// As whoever compared them says it.
    pub words: String,
}

/// What is asked of the shaper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// The least goodput that must be left, of what was carried before. 80 % is what a user hardly notices.
    pub goodput_floor: Ratio,
    /// The largest uplift (95th percentile) that counts as good. 30 ms: grade A.
    pub largest_uplift: Duration,
}

impl Default for Profile {
    fn default() -> Self {
        Self { goodput_floor: Ratio::new(0.8).unwrap_or_default(), largest_uplift: Duration::from_millis(30) }
    }
}

/// Everything that is judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Without the shaper.
    pub before: Measurement,
    /// With it.
    pub after: Measurement,
    /// Without it again; `None` when there was no time for it.
    pub before_again: Option<Measurement>,
    /// The rates that are set; `None` in a direction that is not shaped.
    pub set: Both<Option<BitRate>>,
    /// The mean delay that the plan predicts for best-effort probes while the direction alone is loaded, above rest.
    pub predicted: Both<Option<Duration>>,
    /// How what was read back differs from the plan.
    pub differences: Vec<Difference>,
    /// What is asked.
    pub profile: Profile,
    /// All that is drawn at random follows from it.
    pub seed: u64,
}
