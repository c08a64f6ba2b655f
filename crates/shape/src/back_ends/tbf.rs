//! Token bucket with one short queue.

use super::builder::DirectionBuilder;
use super::classify::ROOT;
use super::{BackEnd, BackEndId, PlanInputs, builder, htb_tree, sizes};
use crate::capability::KernelFeature;
use crate::plan::{ShaperPlan, TcParent};
use crate::policy::TrafficImportance;
use crate::prediction::ShaperTurn;

pub(super) static BACK_END: BackEnd = BackEnd {
    id: BackEndId::Tbf,
    title: "a token bucket with one short queue for everything",
    explanation: "The last resort: it shapes to the rate and keeps its only queue at 20 ms or four packets. Nothing is \
                  prioritised and flows are not separated, but the modem's queue of seconds is avoided.",
    citation: "man tc-tbf; kernel net/sched/sch_tbf.c",
    needs: &[KernelFeature::Discipline("tbf")],
    unsuitable: |_| None,
    automatic: true,
    remedy: "no back end needs less of the kernel",
    make,
};

/// Mean share of a queue that a flow fills which halves its window whenever the queue is full.
const MEAN_FILL: f64 = 0.6;

fn shape(builder: &mut DirectionBuilder<'_>) {
    let rate = htb_tree::held(builder);
    let inputs = builder.inputs;
    let words = format!(
        "rate {} burst {} limit {}{}",
        sizes::rate_argument(rate),
        sizes::burst(inputs, rate).get(),
        sizes::plain_limit(inputs, rate).get(),
        sizes::link_layer_options(inputs.line.layer, inputs.device.header),
    );
    builder.discipline(
        (TcParent::Root, ROOT),
        "tbf",
        Some(rate),
        &words,
        "the link's rate, and one short queue before it",
    );
    let queue = builder.rate.time_to_send(sizes::plain_limit(inputs, rate)).unwrap_or_default();
    for importance in [TrafficImportance::Interactive, TrafficImportance::Default] {
        builder.predict(importance, (ShaperTurn::Next, queue.mul_f64(MEAN_FILL)), queue);
    }
    builder.note("Nothing is prioritised: a ping waits in the same queue as an upload.");
}

fn make(inputs: &PlanInputs<'_>, plan: ShaperPlan) -> ShaperPlan {
    builder::shape_both_directions(inputs, plan, false, shape)
}
