//! Builder of the steps of one direction.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::{BitRate, ByteCount, display};

use super::{PlanInputs, ingress};
use crate::plan::{
    AggregatedPackets, DeviceName, FilterProtocol, FilterTarget, PlanStep, PlannedClass, PlannedDiscipline,
    PlannedFilter, PlannedObject, PlannedOffload, QdiscHandle, ShaperPlan, TcParent, arguments,
};
use crate::policy::{TrafficImportance, known_options};
use crate::prediction::{ClassBehaviour, L4S_MEAN_QUEUE, ShaperTurn};

/// Size of aggregated packets from segmentation and receive offload.
const AGGREGATE_SIZE: ByteCount = ByteCount::new(65_536);

/// Maximum serialisation time of an aggregated packet.
const MAX_AGGREGATE_TIME: Duration = Duration::from_millis(5);

/// Packets of a flow that wait in its own queue below HTB.
pub(super) const OWN_PACKETS: u32 = 4;

/// Packets per flow that wait where many flows share a slow link: of received ones more, as the kernel holds back those of
/// this host's connections (in the lab with 64 flows at 19 Mbit/s: 0.7 to 0.8, and 1.8 with CAKE).
const fn crowded_packets(direction: Direction) -> f64 {
    match direction {
        Direction::Up => 0.8,
        Direction::Down => 1.6,
    }
}

/// Packets that the kernel queues of a connection of this host.
const SMALL_QUEUE_PACKETS: f64 = 3.0;

/// Acknowledgement with timestamps over IPv4.
const ACKNOWLEDGEMENT: ByteCount = ByteCount::new(52);

/// Options that are compared when a queueing discipline is read back, asked for or not.
const ALWAYS_COMPARED: [&str; 4] = ["rtt", "target", "interval", "ecn"];

/// Steps of one direction on one device.
pub(super) struct DirectionBuilder<'a> {
    pub(super) inputs: &'a PlanInputs<'a>,
    pub(super) direction: Direction,
    pub(super) device: String,
    /// Requested rate of the link.
    pub(super) rate: BitRate,
    steps: Vec<PlanStep>,
    behaviours: Vec<ClassBehaviour>,
    notes: Vec<String>,
}

impl<'a> DirectionBuilder<'a> {
    pub(super) fn new(inputs: &'a PlanInputs<'a>, direction: Direction, device: &str, rate: BitRate) -> Self {
        let device = device.to_owned();
        Self { inputs, direction, device, rate, steps: vec![], behaviours: vec![], notes: vec![] }
    }

    pub(super) fn push(&mut self, part: PlannedObject, reason: impl Into<String>) {
        self.steps.push(PlanStep { part, direction: self.direction, reason: reason.into() });
    }

    pub(super) fn make_device(&mut self, reason: &str) {
        self.push(PlannedObject::Create(DeviceName(self.device.clone())), reason);
    }

    pub(super) fn set_up_device(&mut self, reason: &str) {
        self.push(PlannedObject::SetUp(DeviceName(self.device.clone())), reason);
    }

    pub(super) fn discipline(
        &mut self,
        (parent, handle): (TcParent, QdiscHandle),
        kind: &'static str,
        rate: Option<BitRate>,
        options: &str,
        reason: impl Into<String>,
    ) {
        let device = self.device.clone();
        let known = known_options(kind);
        let asked = self.inputs.policy.queues.qdisc.of(self.direction).names().filter(|name| known.contains(name));
        let requested = ALWAYS_COMPARED.into_iter().chain(asked).collect();
        let options = arguments(options);
        let discipline = PlannedDiscipline { device, parent, handle, kind, rate, options, requested };
        self.push(PlannedObject::Discipline(discipline), reason);
    }

    pub(super) fn class(&mut self, class: PlannedClass, reason: impl Into<String>) {
        self.push(PlannedObject::Class(class), reason);
    }

    pub(super) fn filter(
        &mut self,
        parent: TcParent,
        (protocol, preference): (FilterProtocol, u16),
        (kind, options): (&'static str, &str),
        target: Option<FilterTarget>,
        reason: impl Into<String>,
    ) {
        let device = self.device.clone();
        let filter = PlannedFilter { device, parent, protocol, preference, kind, target, options: arguments(options) };
        self.push(PlannedObject::Filter(filter), reason);
    }

    pub(super) fn note(&mut self, sentence: impl Into<String>) {
        self.notes.push(sentence.into());
    }

    /// Records how a class treats a sparse flow, and a flow that fills it, for the predictions.
    pub(super) fn predict(
        &mut self,
        importance: TrafficImportance,
        (turn, shared_queue): (ShaperTurn, Duration),
        own_queue: Duration,
    ) {
        let (direction, packet, acknowledgements) = (self.direction, self.packet_time(), self.acknowledgement_time());
        self.behaviours.push(ClassBehaviour {
            direction,
            importance,
            l4s: false,
            packet,
            turn,
            acknowledgements,
            shared_queue,
            own_queue,
        });
    }

    /// Records how a dual queue treats packets with ECT(1), each of which it marks from a delay of `step` on.
    pub(super) fn predict_l4s(&mut self, step: Duration) {
        let own_queue = step + self.packet_time();
        self.predict(TrafficImportance::Default, (ShaperTurn::Next, step.mul_f64(L4S_MEAN_QUEUE)), own_queue);
        if let Some(behaviour) = self.behaviours.last_mut() {
            behaviour.l4s = true;
        }
    }

    /// Time of the acknowledgements of the other direction that accumulate during one full packet and themselves: one for
    /// every two packets (RFC 5681 §4.2). At most a packet, the quantum of their class.
    fn acknowledgement_time(&self) -> Duration {
        let line = self.inputs.line;
        let other = match self.direction {
            Direction::Up => line.down,
            Direction::Down => line.up,
        };
        let own_header = self.inputs.device.header;
        let size = line.layer.wire_length(ACKNOWLEDGEMENT).max(ACKNOWLEDGEMENT + own_header);
        let needed = other.map_or(0.0, |other| {
            size.as_f64() / (2.0 * self.inputs.full_packet().as_f64())
                * (other.bits_per_second() / self.rate.bits_per_second())
        });
        self.packet_time().mul_f64((needed / (1.0 - needed.min(0.5))).min(1.0))
    }

    /// Delay of a flow that fills the link, in its own queue that aims at `target`.
    ///
    /// However short the target is, one flow keeps `packets` waiting: no control takes the packet in transmission, the
    /// two that an acknowledgement releases, and the one by which the window grows. Of this host's own connections the
    /// kernel queues no more (TCP small queues). The windows of several flows vary independently, so that together they
    /// need a queue that grows with the square root of their number; where their packets alone exceed the target, drops
    /// leave each about one.
    pub(super) fn own_queue(&self, packets: u32, target: Duration) -> Duration {
        let (packet, flows) = (self.packet_time(), self.inputs.line.flows.as_f64());
        let is_crowded = packet.mul_f64(flows) > target * 2;
        let count = if is_crowded {
            f64::from(packets).max(crowded_packets(self.direction) * flows)
        } else {
            f64::from(packets) * flows.sqrt()
        };
        packet.mul_f64(count).max(target)
    }

    /// As [`own_queue`](Self::own_queue), for a queue of each flow that drops at its end only: received packets fill it,
    /// and drain at the flow's share of the link; of this host's own, each flow has three in it.
    pub(super) fn own_tail_drop_queue(&self, full: Duration) -> Duration {
        let flows = self.inputs.line.flows.as_f64();
        if self.direction == Direction::Down {
            return full.mul_f64(flows);
        }
        self.packet_time().mul_f64(f64::from(OWN_PACKETS).max(SMALL_QUEUE_PACKETS * flows))
    }

    /// Serialisation time of a full packet.
    pub(super) fn packet_time(&self) -> Duration {
        self.rate.time_to_send(self.inputs.full_packet()).unwrap_or_default()
    }

    /// Adds the collected steps to a plan.
    pub(super) fn finish(self, plan: &mut ShaperPlan) {
        plan.steps.extend(self.steps);
        plan.behaviours.extend(self.behaviours);
        for note in self.notes {
            if !plan.notes.contains(&note) {
                plan.notes.push(note);
            }
        }
    }
}

/// Shapes both directions alike: egress on the interface, ingress on its intermediate device, or as far as the kernel
/// allows. `splits`: true when the back end itself splits aggregated packets.
pub(super) fn shape_both_directions(
    inputs: &PlanInputs<'_>,
    mut plan: ShaperPlan,
    splits: bool,
    shape: impl Fn(&mut DirectionBuilder<'_>),
) -> ShaperPlan {
    if let Some(rate) = inputs.line.up.filter(|rate| !rate.is_zero()) {
        let mut builder = DirectionBuilder::new(inputs, Direction::Up, &inputs.device.name, rate);
        shape(&mut builder);
        builder.finish(&mut plan);
        if !splits {
            keep_out(&mut plan, inputs, rate, AggregatedPackets::Sent);
        }
    }
    if let Some(rate) = inputs.line.down.filter(|rate| !rate.is_zero()) {
        ingress::add(inputs, &mut plan, rate, splits, &shape);
        if !splits {
            keep_out(&mut plan, inputs, rate, AggregatedPackets::Received);
        }
    }
    plan
}

/// Keeps out aggregated packets that would add delay.
pub(super) fn keep_out(plan: &mut ShaperPlan, inputs: &PlanInputs<'_>, rate: BitRate, aggregates: AggregatedPackets) {
    let time = rate.time_to_send(AGGREGATE_SIZE).unwrap_or_default();
    if time < MAX_AGGREGATE_TIME {
        return;
    }
    let reason = format!("an aggregated packet of 64 KiB would occupy the link for {}", display::duration(time));
    plan.offloads.push(PlannedOffload { device: inputs.device.name.clone(), aggregates, reason });
}
