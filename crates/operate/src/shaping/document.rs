//! JSON document of a shaper.

use std::collections::BTreeMap;

use linerate_documents::shape::ShapeVerification;
use linerate_documents::shaper::{
    AccessLinkDescription, IngressTreatment, MtuAdvice, PlannedTrafficClass, PredictedDelay, RejectedBackEnd, SCHEMA,
    ShaperDocument, ShaperOutcome, ShaperStep, TrafficClassIdentity, TrafficClassRates,
};
use linerate_model::direction::Direction;
use linerate_shape::capability::ChosenBackEnd;
use linerate_shape::link::AccessLink;
use linerate_shape::mtu;
use linerate_shape::plan::{CodepointTable, IngressControl, PlannedClass, ShaperPlan};
use linerate_shape::prediction::ClassPrediction;
use linerate_shape::traffic_classes::TrafficClasses;
use linerate_units::serde::nanoseconds;

use super::line::RecordedShaper;

/// Outcome of a shaper setup.
pub struct SetupOutcome {
    /// Outcome.
    pub outcome: ShaperOutcome,
    /// Number of its changes.
    pub changes: Option<u64>,
    /// Differences of the active tree from the plan.
    pub differences: Vec<String>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// Verification, if there was one.
    pub verification: Option<Box<ShapeVerification>>,
}

impl SetupOutcome {
    /// Outcome without further figures.
    pub const fn without_figures(outcome: ShaperOutcome) -> Self {
        Self { outcome, changes: None, differences: Vec::new(), notes: Vec::new(), verification: None }
    }
}

/// Builds the document.
pub fn of(
    recorded: &RecordedShaper,
    choice: &ChosenBackEnd,
    (line, classes): (&AccessLink, &TrafficClasses),
    became: SetupOutcome,
) -> ShaperDocument {
    let plan = &choice.plan;
    let rejected = choice.rejected.iter();
    ShaperDocument {
        schema: SCHEMA,
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        device: plan.device.clone(),
        arguments: recorded.arguments(),
        outcome: became.outcome,
        changes: became.changes,
        back_end: plan.back_end,
        rejected: rejected.map(|one| RejectedBackEnd { back_end: one.back_end, reason: one.reason.clone() }).collect(),
        link: link_description(line),
        traffic_classes: traffic_classes(plan, classes),
        receiving: receiving(&plan.receiving),
        steps: steps(plan),
        prediction: plan.prediction.classes.iter().map(predicted_delay).collect(),
        advice: mtu::advice(line).iter().map(mtu_advice).collect(),
        differences: became.differences,
        verification: became.verification,
        notes: plan.notes.iter().cloned().chain(became.notes).collect(),
    }
}

fn traffic_classes(plan: &ShaperPlan, classes: &TrafficClasses) -> Vec<PlannedTrafficClass> {
    let [up, down] = [Direction::Up, Direction::Down].map(|direction| plan.traffic_classes(direction));
    let rates = |planned: &BTreeMap<usize, &PlannedClass>, place| planned.get(&place).map(|class| class_rates(class));
    let all = (0..classes.list().len()).map(|place| PlannedTrafficClass {
        class: class_identity(classes, place),
        up: rates(&up, place),
        down: rates(&down, place),
    });
    all.collect()
}

/// Name, selectors and group of the class at this position.
pub(crate) fn class_identity(classes: &TrafficClasses, place: usize) -> TrafficClassIdentity {
    let class = &classes.list()[place];
    TrafficClassIdentity {
        name: class.name.clone(),
        selectors: class.selectors.iter().map(ToString::to_string).collect(),
        group: class.group.map(|group| classes.list()[group].title()),
    }
}

/// Rates that are configured for a class.
pub(crate) fn class_rates(class: &PlannedClass) -> TrafficClassRates {
    TrafficClassRates {
        guaranteed_bits_per_second: class.rate.bits_per_second(),
        ceiling_bits_per_second: class.ceiling.unwrap_or(class.rate).bits_per_second(),
    }
}

const fn receiving(receiving: &IngressControl) -> IngressTreatment {
    match receiving {
        IngressControl::NotAsked => IngressTreatment::NotAsked,
        IngressControl::Redirected => IngressTreatment::Redirected,
        IngressControl::Policed => IngressTreatment::Policed,
        IngressControl::Uncontrolled(_) => IngressTreatment::Uncontrolled,
    }
}

fn link_description(line: &AccessLink) -> AccessLinkDescription {
    AccessLinkDescription {
        up_bits_per_second: line.up.map(linerate_units::BitRate::bits_per_second),
        down_bits_per_second: line.down.map(linerate_units::BitRate::bits_per_second),
        overhead_bytes: line.layer.overhead.get(),
        minimum_bytes: line.layer.minimum.get(),
        framing: line.layer.framing,
        mtu: line.mtu.get(),
        round_trip_ns: nanoseconds(line.round_trip.up.max(line.round_trip.down)),
        up_round_trip_ns: nanoseconds(line.round_trip.up),
        down_round_trip_ns: nanoseconds(line.round_trip.down),
    }
}

fn steps(plan: &ShaperPlan) -> Vec<ShaperStep> {
    let offloads = plan.offloads.iter().map(|offload| ShaperStep {
        command: offload.command().to_string(),
        direction: None,
        reason: offload.reason.clone(),
    });
    let steps = plan.steps.iter().map(|step| ShaperStep {
        command: step.part.command().to_string(),
        direction: Some(step.direction),
        reason: step.reason.clone(),
    });
    let table = plan.table.iter().flat_map(CodepointTable::commands).map(|command| ShaperStep {
        command: command.to_string(),
        direction: Some(Direction::Up),
        reason: CodepointTable::REASON.to_owned(),
    });
    offloads.chain(steps).chain(table).collect()
}

fn predicted_delay(class: &ClassPrediction) -> PredictedDelay {
    PredictedDelay {
        load: class.load,
        importance: class.importance,
        l4s: class.l4s,
        includes_idle: class.idle.is_some(),
        packet_ns: nanoseconds(class.serialisation),
        mean_ns: nanoseconds(class.mean),
        longest_ns: nanoseconds(class.max),
        own_queue_ns: nanoseconds(class.own_queue),
        arithmetic: class.arithmetic.clone(),
    }
}

fn mtu_advice(advice: &mtu::MtuOffer) -> MtuAdvice {
    MtuAdvice {
        direction: advice.direction,
        mtu: advice.mtu.get(),
        mean_gain_ns: nanoseconds(advice.mean_gain),
        longest_gain_ns: nanoseconds(advice.longest_gain),
        goodput_cost: advice.goodput_cost.get(),
        notes: advice.notes.clone(),
    }
}
