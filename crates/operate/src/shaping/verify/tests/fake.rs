//! A link of 10 and 50 Mbit/s with deep buffers, its shaper, and the shaper's faults.

use linerate_model::address_family::AddressFamily;
use linerate_model::direction::Direction;
use std::time::Duration;

use linerate_analysis::latency_under_load::{InterfaceTraffic, LatencyClass};
use linerate_analysis::statistics::{SampleSummary, SeededRandom};
use linerate_engine::load::{ClassRoundTrips, LoadTestSamples, PhaseSamples};
use linerate_engine::probe::ProbeTarget;
use linerate_model::load::PhaseKind;
use linerate_shape::back_ends::{BackEndId, DeviceProperties, PlanInputs};
use linerate_shape::capability::KernelCapabilities;
use linerate_shape::link::AccessLink;
use linerate_shape::plan::ShaperPlan;
use linerate_shape::policy::TrafficPolicy;
use linerate_shape::read_back::{self, QueueingFault as Differs};
use linerate_shape::verify::{PerDirection, ShaperRequirements, TreeCounters};
use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Port, Ratio};

use crate::shaping::error::ShapeError;
use crate::shaping::shaped::ShaperControl;

use super::super::measurement::{MeasurementPlan, MeasurementResult, PathMeasurer, StopReason};
use super::super::tree_sampler::{SampledPhase, both};
use super::super::{VerifyObserver, VerifySettings, evidence};

pub(super) fn megabits(rate: f64) -> BitRate {
    BitRate::from_bits_per_second(rate * 1e6)
}

pub(super) fn settings(quick: bool) -> VerifySettings {
    VerifySettings {
        target: ProbeTarget::new("far", Port::new(5201).expect("a port")),
        idle: Duration::from_secs(10),
        time: Duration::from_secs(25),
        quick,
        profile: ShaperRequirements::default(),
    }
}

/// Fault of the shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueingFault {
    None,
    NoRedirect,
    TargetDown,
    Bypassed,
    WrongInterface,
    Swapped,
    Ipv6,
    OnlyPrioritised,
    Contaminated,
    Drift,
    ReadBack,
    Dead,
    NoServer,
}

/// A shaper that records its operations.
pub(super) struct FakeShaper {
    pub(super) line: AccessLink,
    pub(super) plan: ShaperPlan,
    pub(super) stands: bool,
    pub(super) log: Vec<&'static str>,
    /// Number of the setup that fails.
    pub(super) fails_at: Option<usize>,
    /// True when a class has another rate than planned.
    pub(super) differs: bool,
}

fn plan(line: &AccessLink) -> ShaperPlan {
    let inputs = PlanInputs {
        line,
        policy: &TrafficPolicy::default(),
        capabilities: &KernelCapabilities::all_features(),
        device: &DeviceProperties::ethernet("eth0"),
    };
    BackEndId::HtbBfifo.back_end().plan(&inputs).expect("everything is there")
}

impl FakeShaper {
    /// Creates one with these rates in Mbit/s.
    pub(super) fn new(up: f64, down: f64) -> Self {
        let line = AccessLink::new(Some(megabits(up)), Some(megabits(down)));
        Self { plan: plan(&line), line, stands: false, log: Vec::new(), fails_at: None, differs: false }
    }
}

impl ShaperControl for FakeShaper {
    fn line(&self) -> &AccessLink {
        &self.line
    }

    fn plan(&self) -> &ShaperPlan {
        &self.plan
    }

    fn is_up(&self) -> bool {
        self.stands
    }

    fn set_up(&mut self) -> Result<(), ShapeError> {
        if self.stands {
            return Ok(());
        }
        self.log.push("set_up");
        let attempts = self.log.iter().filter(|one| **one == "set_up").count();
        if self.fails_at == Some(attempts) {
            return Err(ShapeError::impossible("the shaper cannot be set up"));
        }
        self.stands = true;
        Ok(())
    }

    fn remove(&mut self) -> Result<(), ShapeError> {
        if self.stands {
            self.log.push("take_down");
            self.stands = false;
        }
        Ok(())
    }

    fn set_rates(&mut self, rates: PerDirection<Option<BitRate>>) -> Result<(), ShapeError> {
        self.log.push("set_rates");
        self.line.up = rates.up.or(self.line.up);
        self.line.down = rates.down.or(self.line.down);
        self.plan = plan(&self.line);
        Ok(())
    }

    fn differences(&self) -> Result<Vec<read_back::QueueingDifference>, ShapeError> {
        // The difference that the test requested.
        let words = "class 1:10 has 5 Mbit/s instead of 9 Mbit/s".to_owned();
        let one = read_back::QueueingDifference { device: "eth0".to_owned(), fault: Differs::OtherRate, words };
        Ok(if self.differs { vec![one] } else { Vec::new() })
    }

    fn renew(&mut self, limit: Duration) -> Result<(), ShapeError> {
        assert!(limit >= Duration::from_secs(30), "{limit:?}");
        self.log.push("renew");
        Ok(())
    }
}

/// Simulated link.
pub(super) struct FakeMeasurer {
    /// Capacity in Mbit/s.
    pub(super) capacity: PerDirection<f64>,
    pub(super) fault: QueueingFault,
    /// Number of measurements begun.
    pub(super) measured: u32,
    pub(super) interrupted_at: Option<u32>,
}

/// Delay of the link's full buffer, and of our full leaves, in milliseconds.
const DEEP: f64 = 300.0;
const SHALLOW: f64 = 3.0;
const SECONDS: u64 = 25;

/// Load of one direction in one phase.
#[derive(Clone, Copy)]
struct FakeDirectionLoad {
    /// Payload in Mbit/s; zero without load.
    carried: f64,
    /// Added delay in milliseconds.
    added: f64,
    /// True when the shaper controls it.
    held: bool,
}

impl FakeMeasurer {
    pub(super) fn new(fault: QueueingFault) -> Self {
        Self { capacity: PerDirection { up: 10.0, down: 50.0 }, fault, measured: 0, interrupted_at: None }
    }

    fn way(&self, shaped: &dyn ShaperControl, flow: Direction, kind: PhaseKind) -> FakeDirectionLoad {
        let loaded =
            kind == PhaseKind::Both || kind == if flow == Direction::Up { PhaseKind::Up } else { PhaseKind::Down };
        let drifted = if self.fault == QueueingFault::Drift && self.measured == 3 { 0.6 } else { 1.0 };
        let capacity = *self.capacity.of(flow) * drifted;
        let line = shaped.line();
        let set = match (flow, self.fault == QueueingFault::Swapped) {
            (Direction::Up, false) | (Direction::Down, true) => line.up,
            _ => line.down,
        };
        let passes_by = match self.fault {
            QueueingFault::WrongInterface => true,
            QueueingFault::NoRedirect | QueueingFault::Bypassed => flow == Direction::Down,
            _ => false,
        };
        let set = set.map(|rate| rate.bits_per_second() / 1e6).filter(|_| shaped.is_up() && !passes_by);
        let held = set.is_some_and(|set| set <= capacity * 0.99 + 1e-9);
        let rate = if held { set.unwrap_or(capacity) } else { capacity };
        let carried = if loaded { rate * 0.957 } else { 0.0 };
        let added = match (loaded, held) {
            (false, _) => 0.0,
            (true, true) => SHALLOW,
            (true, false) => DEEP,
        };
        FakeDirectionLoad { carried, added, held }
    }

    fn class(
        &self,
        class: LatencyClass,
        family: AddressFamily,
        ways: PerDirection<FakeDirectionLoad>,
        kind: PhaseKind,
        shaped: bool,
    ) -> ClassRoundTrips {
        let fooled = self.fault == QueueingFault::OnlyPrioritised
            && class.counts_for_verdict()
            && shaped
            && kind != PhaseKind::Idle;
        let unshaped = self.fault == QueueingFault::Ipv6 && family == AddressFamily::Ipv6 && kind != PhaseKind::Idle;
        let added = if fooled || unshaped { DEEP } else { ways.up.added.max(ways.down.added) };
        let seed = u64::from(self.measured) << 16 ^ (class as u64) << 8 ^ (kind as u64) << 4 ^ family as u64;
        let mut random = SeededRandom::new(seed);
        let mut draw = || added * (1.0 + 0.1 * random.normal()).max(0.0) + random.unit();
        let milliseconds = |time: f64| Duration::from_secs_f64(time / 1e3);
        let round_trips = (0..SECONDS * 20)
            .map(|number| (MonotonicTime::from_nanos(number * 50_000_000), milliseconds(20.0 + draw())));
        let one_way =
            |way: FakeDirectionLoad| SampleSummary::of(&[milliseconds(way.added + 1.0), milliseconds(way.added + 2.0)]);
        let tells = class == LatencyClass::UdpBestEffort;
        let (up, down) = (one_way(ways.up).filter(|_| tells), one_way(ways.down).filter(|_| tells));
        ClassRoundTrips { class, round_trips: round_trips.collect(), up, down }
    }

    fn phase(
        &self,
        shaped: &dyn ShaperControl,
        kind: PhaseKind,
        family: AddressFamily,
    ) -> (PhaseSamples, SampledPhase) {
        let time = Duration::from_secs(SECONDS);
        let ways = both(|flow| self.way(shaped, flow, kind));
        let own = both(|flow| megabits(ways.of(flow).carried.max(0.05) * 1.05) * time);
        let others = if self.fault == QueueingFault::Contaminated && self.measured == 2 { 1.4 } else { 1.0 };
        let traffic = both(|flow| {
            let counted = ByteCount::from_f64(own.of(flow).as_f64() * others);
            InterfaceTraffic { counted, own: *own.of(flow), time }
        });
        let classes = [
            LatencyClass::Icmp,
            LatencyClass::UdpBestEffort,
            LatencyClass::UdpExpeditedForwarding,
            LatencyClass::TcpInfo,
        ];
        let classes = classes.map(|class| self.class(class, family, ways, kind, shaped.is_up()));
        let payload = |way: &FakeDirectionLoad| (way.carried > 0.0).then(|| megabits(way.carried));
        let readings = PhaseSamples {
            kind,
            counted: (MonotonicTime::from_nanos(0), MonotonicTime::from_nanos(SECONDS * 1_000_000_000)),
            goodput_up: payload(&ways.up),
            goodput_down: payload(&ways.down),
            sent: Some(traffic.up),
            received: Some(traffic.down),
            classes: classes.to_vec(),
        };
        let tree = both(|flow| shaped.is_up().then(|| self.tree(flow, *ways.of(flow), traffic.of(flow).counted)));
        (readings, SampledPhase { kind, tree, processor: Ratio::new(0.3) })
    }

    fn tree(&self, flow: Direction, way: FakeDirectionLoad, counted: ByteCount) -> TreeCounters {
        let share = match (self.fault, flow) {
            (QueueingFault::WrongInterface, _) => 0.0,
            (QueueingFault::NoRedirect, Direction::Down) => 0.001,
            (QueueingFault::Bypassed, Direction::Down) => 0.2,
            _ => 1.0,
        };
        let bytes = ByteCount::from_f64(counted.as_f64() * share);
        let is_full = way.held && way.carried > 0.0;
        let long = if self.fault == QueueingFault::OnlyPrioritised { 2_000_000 } else { 30_000 };
        TreeCounters {
            bytes,
            packets: PacketCount::new(bytes.get() / 1000),
            drops: PacketCount::new(if is_full { 40 } else { 0 }),
            marks: PacketCount::ZERO,
            largest_backlog: Some(ByteCount::new(if is_full { long } else { 0 })),
        }
    }

    fn error(&self, shaped: &dyn ShaperControl) -> Option<String> {
        match self.fault {
            QueueingFault::NoServer => Some("no server answers".to_owned()),
            QueueingFault::Dead if shaped.is_up() => Some("the control connection is gone".to_owned()),
            _ => None,
        }
    }
}

impl PathMeasurer for FakeMeasurer {
    fn measure(
        &mut self,
        shaped: &mut dyn ShaperControl,
        order: &MeasurementPlan,
        _: VerifyObserver<'_>,
    ) -> Result<MeasurementResult, StopReason> {
        self.measured += 1;
        if self.interrupted_at == Some(self.measured) {
            return Err(StopReason::Interrupted);
        }
        let error = self.error(shaped);
        let loads = if error.is_some() { &[] } else { order.loads.as_slice() };
        let kinds: Vec<PhaseKind> = std::iter::once(PhaseKind::Idle).chain(loads.iter().copied()).collect();
        let run = |family| {
            let (phases, sampled) = kinds.iter().map(|kind| self.phase(shaped, *kind, family)).unzip();
            (LoadTestSamples { peer: None, phases }, sampled)
        };
        let (readings, sampled): (LoadTestSamples, Vec<SampledPhase>) = run(AddressFamily::Ipv4);
        let mut measurement = evidence::measurement(&readings, &sampled, AddressFamily::Ipv4);
        let mut families = vec![AddressFamily::Ipv4];
        if order.other_family {
            families.push(AddressFamily::Ipv6);
            evidence::add_classes(&mut measurement, &run(AddressFamily::Ipv6).0, AddressFamily::Ipv6);
        }
        let congestion_control = Some("cubic".to_owned());
        Ok(MeasurementResult { measurement, error, families, congestion_control, notes: Vec::new() })
    }

    fn is_up(&self, device: &str) -> Option<bool> {
        assert_eq!(device, "ifb4eth0");
        Some(self.fault != QueueingFault::TargetDown)
    }

    fn now(&self) -> MonotonicTime {
        MonotonicTime::from_nanos(u64::from(self.measured) * 90_000_000_000)
    }
}
