//! A line of 10 and 50 Mbit/s with deep buffers, a shaper on it, and the ways in which that does nothing.

use std::time::Duration;

use linerate_engine::load::{ClassRoundTrips, LoadReadings, PhaseReadings};
use linerate_engine::probe::Target;
use linerate_model::latency_under_load::{Class, InterfaceTraffic};
use linerate_model::schema::load::PhaseKind;
use linerate_model::statistics::{Random, Summary};
use linerate_model::throughput::Flow;
use linerate_shape::back_ends::{DeviceFacts, Inputs, by_id};
use linerate_shape::capability::Capabilities;
use linerate_shape::link::Line;
use linerate_shape::plan::Plan;
use linerate_shape::policy::Policy;
use linerate_shape::read_back::{self, Fault as Differs};
use linerate_shape::verify::{Both, Family, Profile, TreeReading};
use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Port, Ratio};

use super::super::bench::{Bench, Measured, Order, Stopped};
use super::super::trees::{Sampled, both};
use super::super::{Events, VerifySettings, evidence};
use crate::cmd::shape::error::ShapeError;
use crate::cmd::shape::shaped::Shaped;

pub(super) fn megabits(rate: f64) -> BitRate {
    BitRate::from_bits_per_second(rate * 1e6)
}

pub(super) fn settings(quick: bool) -> VerifySettings {
    VerifySettings {
        target: Target::new("far", Port::new(5201).expect("a port")),
        idle: Duration::from_secs(10),
        time: Duration::from_secs(25),
        quick,
        profile: Profile::default(),
    }
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
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

/// A shaper that remembers what was done with it.
pub(super) struct FakeShaped {
    pub(super) line: Line,
    pub(super) plan: Plan,
    pub(super) stands: bool,
    pub(super) log: Vec<&'static str>,
    /// Which of the attempts to set it up is refused.
    pub(super) fails_at: Option<usize>,
    /// A class has another rate than planned.
    pub(super) differs: bool,
}

fn plan(line: &Line) -> Plan {
    let inputs = Inputs {
        line,
        policy: &Policy::default(),
        capabilities: &Capabilities::everything(),
        device: &DeviceFacts::ethernet("eth0"),
    };
    by_id("htb+bfifo").expect("known").plan(&inputs).expect("everything is there")
}

impl FakeShaped {
    /// With these rates in Mbit/s.
    pub(super) fn new(up: f64, down: f64) -> Self {
        let line = Line::new(Some(megabits(up)), Some(megabits(down)));
        Self { plan: plan(&line), line, stands: false, log: Vec::new(), fails_at: None, differs: false }
    }
}

impl Shaped for FakeShaped {
    fn line(&self) -> &Line {
        &self.line
    }

    fn plan(&self) -> &Plan {
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
            return Err(ShapeError::unable("the shaper cannot be set up"));
        }
        self.stands = true;
        Ok(())
    }

    fn take_down(&mut self) -> Result<(), ShapeError> {
        if self.stands {
            self.log.push("take_down");
            self.stands = false;
        }
        Ok(())
    }

    fn set_rates(&mut self, rates: Both<Option<BitRate>>) -> Result<(), ShapeError> {
        self.log.push("set_rates");
        self.line.up = rates.up.or(self.line.up);
        self.line.down = rates.down.or(self.line.down);
        self.plan = plan(&self.line);
        Ok(())
    }

    fn differences(&self) -> Result<Vec<read_back::Difference>, ShapeError> {
        // What was asked is seen by whoever asked.
        let words = "class 1:10 has 5 Mbit/s instead of 9 Mbit/s".to_owned();
        let one = read_back::Difference { device: "eth0".to_owned(), fault: Differs::OtherRate, words };
        Ok(if self.differs { vec![one] } else { Vec::new() })
    }

    fn renew(&mut self, limit: Duration) -> Result<(), ShapeError> {
        assert!(self.stands && limit >= Duration::from_secs(30), "{limit:?}");
        self.log.push("renew");
        Ok(())
    }
}

/// The line.
pub(super) struct FakeBench {
    /// Mbit/s.
    pub(super) capacity: Both<f64>,
    pub(super) fault: Fault,
    /// So many measurements were begun.
    pub(super) measured: u32,
    pub(super) interrupted_at: Option<u32>,
}

/// What the line's own buffer adds when it is full, and our leaves when they are.
const DEEP: f64 = 300.0;
const SHALLOW: f64 = 3.0;
const SECONDS: u64 = 25;

/// How one direction does in one phase.
#[derive(Clone, Copy)]
struct Way {
    /// Payload in Mbit/s; nothing when it is not loaded.
    carried: f64,
    /// What is added, in milliseconds.
    added: f64,
    /// Whether the shaper holds it.
    held: bool,
}

impl FakeBench {
    pub(super) fn new(fault: Fault) -> Self {
        Self { capacity: Both { up: 10.0, down: 50.0 }, fault, measured: 0, interrupted_at: None }
    }

    fn way(&self, shaped: &dyn Shaped, flow: Flow, kind: PhaseKind) -> Way {
        let loaded = kind == PhaseKind::Both || kind == if flow == Flow::Up { PhaseKind::Up } else { PhaseKind::Down };
        let drifted = if self.fault == Fault::Drift && self.measured == 3 { 0.6 } else { 1.0 };
        let capacity = *self.capacity.of(flow) * drifted;
        let line = shaped.line();
        let set = match (flow, self.fault == Fault::Swapped) {
            (Flow::Up, false) | (Flow::Down, true) => line.up,
            _ => line.down,
        };
        let passes_by = match self.fault {
            Fault::WrongInterface => true,
            Fault::NoRedirect | Fault::Bypassed => flow == Flow::Down,
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
        Way { carried, added, held }
    }

    fn class(&self, class: Class, family: Family, ways: Both<Way>, kind: PhaseKind, shaped: bool) -> ClassRoundTrips {
        let fooled = self.fault == Fault::OnlyPrioritised && class.counts() && shaped && kind != PhaseKind::Idle;
        let unshaped = self.fault == Fault::Ipv6 && family == Family::Six && kind != PhaseKind::Idle;
        let added = if fooled || unshaped { DEEP } else { ways.up.added.max(ways.down.added) };
        let seed = u64::from(self.measured) << 16 ^ (class as u64) << 8 ^ (kind as u64) << 4 ^ family as u64;
        let mut random = Random::new(seed);
        let mut draw = || added * (1.0 + 0.1 * random.normal()).max(0.0) + random.unit();
        let milliseconds = |time: f64| Duration::from_secs_f64(time / 1e3);
        let round_trips = (0..SECONDS * 20)
            .map(|number| (MonotonicTime::from_nanos(number * 50_000_000), milliseconds(20.0 + draw())));
        let one_way = |way: Way| Summary::of(&[milliseconds(way.added + 1.0), milliseconds(way.added + 2.0)]);
        let tells = class == Class::UdpBestEffort;
        let (up, down) = (one_way(ways.up).filter(|_| tells), one_way(ways.down).filter(|_| tells));
        ClassRoundTrips { class, round_trips: round_trips.collect(), up, down }
    }

    fn phase(&self, shaped: &dyn Shaped, kind: PhaseKind, family: Family) -> (PhaseReadings, Sampled) {
        let time = Duration::from_secs(SECONDS);
        let ways = both(|flow| self.way(shaped, flow, kind));
        let own = both(|flow| megabits(ways.of(flow).carried.max(0.05) * 1.05) * time);
        let others = if self.fault == Fault::Contaminated && self.measured == 2 { 1.4 } else { 1.0 };
        let traffic = both(|flow| {
            let counted = ByteCount::from_f64(own.of(flow).as_f64() * others);
            InterfaceTraffic { counted, own: *own.of(flow), time }
        });
        let classes = [Class::Icmp, Class::UdpBestEffort, Class::UdpExpedited, Class::TcpInBand];
        let classes = classes.map(|class| self.class(class, family, ways, kind, shaped.is_up()));
        let payload = |way: &Way| (way.carried > 0.0).then(|| megabits(way.carried));
        let readings = PhaseReadings {
            kind,
            counted: (MonotonicTime::from_nanos(0), MonotonicTime::from_nanos(SECONDS * 1_000_000_000)),
            goodput_up: payload(&ways.up),
            goodput_down: payload(&ways.down),
            sent: Some(traffic.up),
            received: Some(traffic.down),
            classes: classes.to_vec(),
        };
        let tree = both(|flow| shaped.is_up().then(|| self.tree(flow, *ways.of(flow), traffic.of(flow).counted)));
        (readings, Sampled { kind, tree, processor: Ratio::new(0.3) })
    }

    fn tree(&self, flow: Flow, way: Way, counted: ByteCount) -> TreeReading {
        let share = match (self.fault, flow) {
            (Fault::WrongInterface, _) => 0.0,
            (Fault::NoRedirect, Flow::Down) => 0.001,
            (Fault::Bypassed, Flow::Down) => 0.2,
            _ => 1.0,
        };
        let bytes = ByteCount::from_f64(counted.as_f64() * share);
        let is_full = way.held && way.carried > 0.0;
        let long = if self.fault == Fault::OnlyPrioritised { 2_000_000 } else { 30_000 };
        TreeReading {
            bytes,
            packets: PacketCount::new(bytes.get() / 1000),
            drops: PacketCount::new(if is_full { 40 } else { 0 }),
            marks: PacketCount::ZERO,
            largest_backlog: Some(ByteCount::new(if is_full { long } else { 0 })),
        }
    }

    fn error(&self, shaped: &dyn Shaped) -> Option<String> {
        match self.fault {
            Fault::NoServer => Some("nobody answers".to_owned()),
            Fault::Dead if shaped.is_up() => Some("the control connection is gone".to_owned()),
            _ => None,
        }
    }
}

impl Bench for FakeBench {
    fn measure(&mut self, shaped: &mut dyn Shaped, order: &Order, _: Events<'_>) -> Result<Measured, Stopped> {
        self.measured += 1;
        if self.interrupted_at == Some(self.measured) {
            return Err(Stopped::Interrupted);
        }
        let error = self.error(shaped);
        let loads = if error.is_some() { &[] } else { order.loads.as_slice() };
        let kinds: Vec<PhaseKind> = std::iter::once(PhaseKind::Idle).chain(loads.iter().copied()).collect();
        let run = |family| {
            let (phases, sampled) = kinds.iter().map(|kind| self.phase(shaped, *kind, family)).unzip();
            (LoadReadings { peer: None, phases }, sampled)
        };
        let (readings, sampled): (LoadReadings, Vec<Sampled>) = run(Family::Four);
        let mut measurement = evidence::measurement(&readings, &sampled, Family::Four);
        let mut families = vec![Family::Four];
        if order.other_family {
            families.push(Family::Six);
            evidence::add_classes(&mut measurement, &run(Family::Six).0, Family::Six);
        }
        let congestion_control = Some("cubic".to_owned());
        Ok(Measured { measurement, error, families, congestion_control, notes: Vec::new() })
    }

    fn is_up(&self, device: &str) -> Option<bool> {
        assert_eq!(device, "ifb4eth0");
        Some(self.fault != Fault::TargetDown)
    }

    fn now(&self) -> MonotonicTime {
        MonotonicTime::from_nanos(u64::from(self.measured) * 90_000_000_000)
    }
}
