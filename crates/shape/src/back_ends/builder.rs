//! Collects the steps of one direction.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, display};

use super::{Inputs, receiving};
use crate::link::Direction;
use crate::plan::{
    Class, Device, Discipline, Filter, Goal, Handle, Offload, Parent, Part, Plan, Protocol, Step, words,
};
use crate::policy::Importance;
use crate::prediction::ClassPrediction;

/// Packets of this size are what segmentation and receive offload hand to a queueing discipline.
const AGGREGATE: ByteCount = ByteCount::new(65_536);

/// One of them may keep the line busy for so long without being in anybody's way.
const HARMLESS: Duration = Duration::from_millis(5);

/// The steps of one direction on one device.
pub(super) struct Builder<'a> {
    pub(super) inputs: &'a Inputs<'a>,
    pub(super) direction: Direction,
    pub(super) device: String,
    /// What the line takes, as it was asked for.
    pub(super) rate: BitRate,
    steps: Vec<Step>,
    predictions: Vec<ClassPrediction>,
    notes: Vec<String>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(inputs: &'a Inputs<'a>, direction: Direction, device: &str, rate: BitRate) -> Self {
        let device = device.to_owned();
        Self { inputs, direction, device, rate, steps: vec![], predictions: vec![], notes: vec![] }
    }

    pub(super) fn push(&mut self, part: Part, reason: impl Into<String>) {
        self.steps.push(Step { part, direction: self.direction, reason: reason.into() });
    }

    pub(super) fn make_device(&mut self, reason: &str) {
        self.push(Part::Create(Device(self.device.clone())), reason);
    }

    pub(super) fn set_up_device(&mut self, reason: &str) {
        self.push(Part::SetUp(Device(self.device.clone())), reason);
    }

    pub(super) fn discipline(
        &mut self,
        (parent, handle): (Parent, Handle),
        kind: &'static str,
        rate: Option<BitRate>,
        options: &str,
        reason: impl Into<String>,
    ) {
        let device = self.device.clone();
        let discipline = Discipline { device, parent, handle, kind, rate, options: words(options) };
        self.push(Part::Discipline(discipline), reason);
    }

    pub(super) fn class(&mut self, class: Class, reason: impl Into<String>) {
        self.push(Part::Class(class), reason);
    }

    pub(super) fn filter(
        &mut self,
        parent: Parent,
        (protocol, preference): (Protocol, u16),
        (kind, options): (&'static str, &str),
        target: Option<Goal>,
        reason: impl Into<String>,
    ) {
        let device = self.device.clone();
        let filter = Filter { device, parent, protocol, preference, kind, target, options: words(options) };
        self.push(Part::Filter(filter), reason);
    }

    pub(super) fn note(&mut self, sentence: impl Into<String>) {
        self.notes.push(sentence.into());
    }

    /// What a class adds for a flow that does not fill it, and for one that does.
    pub(super) fn predict(&mut self, importance: Importance, leaf: Duration, own_queue: Duration) {
        let of = (self.direction, importance);
        self.predictions.extend(ClassPrediction::new(
            self.inputs.line,
            self.inputs.full_packet(),
            of,
            (leaf, own_queue),
        ));
    }

    /// How long a full packet takes.
    pub(super) fn packet_time(&self) -> Duration {
        self.rate.time_to_send(self.inputs.full_packet()).unwrap_or_default()
    }

    /// Adds what was collected to a plan.
    pub(super) fn finish(self, plan: &mut Plan) {
        plan.steps.extend(self.steps);
        plan.prediction.classes.extend(self.predictions);
        for note in self.notes {
            if !plan.notes.contains(&note) {
                plan.notes.push(note);
            }
        }
    }
}

/// Shapes both directions alike: what is sent on the interface, what is received on its intermediate device, or as far as
/// the kernel allows. `splits` tells whether the back end itself cuts aggregated packets up.
pub(super) fn both(inputs: &Inputs<'_>, mut plan: Plan, splits: bool, shape: impl Fn(&mut Builder<'_>)) -> Plan {
    if let Some(rate) = inputs.line.up.filter(|rate| !rate.is_zero()) {
        let mut builder = Builder::new(inputs, Direction::Up, &inputs.device.name, rate);
        shape(&mut builder);
        builder.finish(&mut plan);
        if !splits {
            offloads(&mut plan, inputs, rate, &SENDING);
        }
    }
    if let Some(rate) = inputs.line.down.filter(|rate| !rate.is_zero()) {
        receiving::add(inputs, &mut plan, rate, &shape);
        if !splits {
            offloads(&mut plan, inputs, rate, &RECEIVING);
        }
    }
    plan
}

const SENDING: [(&str, &str); 2] = [("tso", "tcp-segmentation-offload"), ("gso", "generic-segmentation-offload")];
pub(super) const RECEIVING: [(&str, &str); 1] = [("gro", "generic-receive-offload")];

/// Switches off what makes packets so large that one of them is a delay.
pub(super) fn offloads(plan: &mut Plan, inputs: &Inputs<'_>, rate: BitRate, features: &[(&'static str, &'static str)]) {
    let time = rate.time_to_send(AGGREGATE).unwrap_or_default();
    if time < HARMLESS {
        return;
    }
    let reason = format!("an aggregated packet of 64 KiB would keep the line busy for {}", display::duration(time));
    plan.offloads.extend(features.iter().map(|(feature, long_name)| Offload {
        device: inputs.device.name.clone(),
        feature,
        long_name,
        reason: reason.clone(),
    }));
}
