//! CAKE on each transmit queue, one rate for all.

use super::{BackEnd, BackEndId, PlanInputs, builder, cake};
use crate::capability::KernelFeature;
use crate::plan::ShaperPlan;
use linerate_model::direction::Direction;

pub(super) static BACK_END: BackEnd = BackEnd {
    id: BackEndId::CakeMq,
    title: "CAKE on each transmit queue, with one rate for all of them",
    explanation: "One CAKE per transmit queue of the interface, each on its own processor, with a common rate. \
                  Received packets pass an intermediate device, which has one queue and plain CAKE. Since Linux 7.0.",
    citation: "man tc-cake; kernel net/sched/sch_cake.c, cake_mq",
    needs: &[KernelFeature::Discipline("cake_mq"), KernelFeature::Discipline("cake")],
    unsuitable,
    automatic: true,
    remedy: "cake does the same on one processor",
    make,
};

fn unsuitable(inputs: &PlanInputs<'_>) -> Option<String> {
    let queues = inputs.device.transmit_queues;
    if queues.is_none_or(|queues| queues < 2) {
        let many = queues.map_or("an unknown number of".to_owned(), |queues| queues.to_string());
        return Some(format!("{} has {many} transmit queues, and cake_mq needs two or more", inputs.device.name));
    }
    cake::unsuitable(inputs)
}

fn make(inputs: &PlanInputs<'_>, plan: ShaperPlan) -> ShaperPlan {
    builder::shape_both_directions(inputs, plan, true, |builder| {
        let kind = if builder.direction == Direction::Up { "cake_mq" } else { "cake" };
        cake::shape(builder, kind);
    })
}
