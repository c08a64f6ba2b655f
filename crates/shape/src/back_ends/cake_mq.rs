//! CAKE on each transmit queue, one rate for all.

use super::{BackEnd, Inputs, builder, cake};
use crate::capability::Feature;
use crate::link::Direction;
use crate::plan::Plan;

pub(super) static BACK_END: BackEnd = BackEnd {
    id: "cake_mq",
    title: "CAKE on each transmit queue, with one rate for all of them",
    explanation: "CAKE of one processor each for the transmit queues of the interface, which keep one rate together. What is \
                  received passes an intermediate device, which has one queue, and so the plain CAKE. Linux has it since 7.0.",
    citation: "man tc-cake; kernel net/sched/sch_cake.c, cake_mq",
    needs: &[Feature::Discipline("cake_mq"), Feature::Discipline("cake")],
    unsuitable,
    automatic: true,
    way_out: "cake does the same on one processor",
    make,
};

fn unsuitable(inputs: &Inputs<'_>) -> Option<String> {
    let queues = inputs.device.transmit_queues;
    if queues.is_none_or(|queues| queues < 2) {
        let many = queues.map_or("an unknown number of".to_owned(), |queues| queues.to_string());
        return Some(format!("{} has {many} transmit queues, and it needs two or more", inputs.device.name));
    }
    if inputs.policy.has_own_rules() {
        return Some("its filters cannot choose tins, which the policy's own rules need".to_owned());
    }
    cake::unsuitable(inputs)
}

fn make(inputs: &Inputs<'_>, plan: Plan) -> Plan {
    builder::both(inputs, plan, true, |builder| {
        let kind = if builder.direction == Direction::Up { "cake_mq" } else { "cake" };
        cake::shape(builder, kind);
    })
}
