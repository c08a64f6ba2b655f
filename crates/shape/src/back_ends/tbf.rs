//! A token bucket with one short queue.

use linerate_units::BitRate;

use super::builder::Builder;
use super::classify::ROOT;
use super::{BackEnd, Inputs, builder, hierarchy, sizes};
use crate::capability::Feature;
use crate::plan::{Parent, Plan};
use crate::policy::Importance;

pub(super) static BACK_END: BackEnd = BackEnd {
    id: "tbf",
    title: "a token bucket with one short queue for everything",
    explanation: "The last resort: it holds the rate and keeps the one queue at 20 ms or four packets. Nothing goes first and \
                  flows are not told apart, but the modem's seconds of queue are gone.",
    citation: "man tc-tbf; kernel net/sched/sch_tbf.c",
    needs: &[Feature::Discipline("tbf")],
    unsuitable: |_| None,
    automatic: true,
    way_out: "nothing needs less of the kernel",
    make,
};

/// Four packets at least: one flow alone must find room for its bursts.
fn limit(inputs: &Inputs<'_>, rate: BitRate) -> linerate_units::ByteCount {
    sizes::plain_limit(inputs, rate).max(inputs.full_frame() * 4)
}

fn shape(builder: &mut Builder<'_>) {
    let rate = hierarchy::held(builder);
    let inputs = builder.inputs;
    let words = format!(
        "rate {} burst {} limit {}{}",
        sizes::rate_word(rate),
        sizes::burst(inputs, rate).get(),
        limit(inputs, rate).get(),
        sizes::layer_words(inputs.line.layer, inputs.device.header),
    );
    builder.discipline(
        (Parent::Root, ROOT),
        "tbf",
        Some(rate),
        &words,
        "the line's rate, and one short queue before it",
    );
    let queue = builder.rate.time_to_send(limit(inputs, rate)).unwrap_or_default();
    for importance in [Importance::Interactive, Importance::Default] {
        builder.predict(importance, queue, queue);
    }
    builder.note("Nothing goes first: a ping waits in the same queue as an upload.");
}

fn make(inputs: &Inputs<'_>, plan: Plan) -> Plan {
    builder::both(inputs, plan, false, shape)
}
