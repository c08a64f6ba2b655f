//! A shaper as a document.

use linerate_model::schema::nanoseconds;
use linerate_model::schema::shape::ShapeVerification;
use linerate_model::schema::shaper::{
    LineDescription, MtuAdvice, PredictedDelay, RejectedBackEnd, SCHEMA, ShaperDocument, ShaperOutcome, ShaperStep,
};
use linerate_shape::capability::Choice;
use linerate_shape::link::{Framing, Line};
use linerate_shape::mtu;
use linerate_shape::plan::{Plan, Receiving};
use linerate_shape::prediction::ClassPrediction;

use super::line::Recorded;

/// What has become of it.
pub(crate) struct Became {
    pub(crate) outcome: ShaperOutcome,
    pub(crate) changes: Option<u64>,
    pub(crate) differences: Vec<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) verification: Option<Box<ShapeVerification>>,
}

impl Became {
    /// Nothing but this is known.
    pub(crate) const fn only(outcome: ShaperOutcome) -> Self {
        Self { outcome, changes: None, differences: Vec::new(), notes: Vec::new(), verification: None }
    }
}

/// The document.
pub(crate) fn of(recorded: &Recorded, choice: &Choice, line: &Line, became: Became) -> ShaperDocument {
    let plan = &choice.plan;
    let rejected = choice.rejected.iter();
    ShaperDocument {
        schema: SCHEMA,
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        device: plan.device.clone(),
        words: recorded.words(),
        outcome: became.outcome,
        changes: became.changes,
        back_end: plan.back_end.to_owned(),
        rejected: rejected
            .map(|one| RejectedBackEnd { back_end: one.back_end.to_owned(), reason: one.reason.clone() })
            .collect(),
        line: of_line(line),
        receiving: receiving(&plan.receiving).to_owned(),
        steps: steps(plan),
        prediction: plan.prediction.classes.iter().map(of_prediction).collect(),
        advice: mtu::advice(line).iter().map(of_advice).collect(),
        differences: became.differences,
        verification: became.verification,
        notes: plan.notes.iter().cloned().chain(became.notes).collect(),
    }
}

const fn receiving(receiving: &Receiving) -> &'static str {
    match receiving {
        Receiving::NotAsked => "not_asked",
        Receiving::Redirected => "redirected",
        Receiving::Policed => "policed",
        Receiving::Uncontrolled(_) => "uncontrolled",
    }
}

fn of_line(line: &Line) -> LineDescription {
    LineDescription {
        up_bits_per_second: line.up.map(linerate_units::BitRate::bits_per_second),
        down_bits_per_second: line.down.map(linerate_units::BitRate::bits_per_second),
        overhead_bytes: line.layer.overhead.get(),
        minimum_bytes: line.layer.minimum.get(),
        framing: match line.layer.framing {
            Framing::None => "none",
            Framing::Atm => "atm",
            Framing::Ptm => "ptm",
        }
        .to_owned(),
        mtu: line.mtu.get(),
        round_trip_ns: nanoseconds(line.round_trip),
    }
}

fn steps(plan: &Plan) -> Vec<ShaperStep> {
    let offloads = plan.offloads.iter().map(|offload| ShaperStep {
        command: offload.command().to_string(),
        direction: None,
        reason: offload.reason.clone(),
    });
    let steps = plan.steps.iter().map(|step| ShaperStep {
        command: step.part.command().to_string(),
        direction: Some(step.direction.name().to_owned()),
        reason: step.reason.clone(),
    });
    offloads.chain(steps).collect()
}

fn of_prediction(class: &ClassPrediction) -> PredictedDelay {
    PredictedDelay {
        direction: class.direction.name().to_owned(),
        importance: class.importance.name().to_owned(),
        includes_idle: class.idle.is_some(),
        packet_ns: nanoseconds(class.serialisation),
        mean_ns: nanoseconds(class.mean),
        longest_ns: nanoseconds(class.longest),
        own_queue_ns: nanoseconds(class.own_queue),
        arithmetic: class.arithmetic.clone(),
    }
}

fn of_advice(advice: &mtu::Advice) -> MtuAdvice {
    MtuAdvice {
        direction: advice.direction.name().to_owned(),
        mtu: advice.mtu.get(),
        mean_gain_ns: nanoseconds(advice.mean_gain),
        longest_gain_ns: nanoseconds(advice.longest_gain),
        goodput_cost: advice.goodput_cost.get(),
        notes: advice.notes.clone(),
    }
}
