//! One rule per file, and one table of TCP features.

mod congestion_control;
mod default_queueing;
mod features;
mod mtu_probing;
mod pacing;
mod receive_backlog;
mod receive_budget;
mod receive_buffer;
mod send_buffer;
mod socket_buffer_limit;
mod tcp_memory;
mod unsent_limit;

use features::{row, rule as feature};

use super::TuningRule;

pub(super) use congestion_control::planned_congestion_control;

/// All rules, in the order in which their changes are tried: groups one after the other, and within the buffers the
/// total before what has to fit into it.
pub const TUNING_RULES: &[TuningRule] = &[
    feature::<{ row("window-scaling") }>(),
    feature::<{ row("selective-acknowledgements") }>(),
    feature::<{ row("timestamps") }>(),
    tcp_memory::RULE,
    feature::<{ row("receive-autotuning") }>(),
    receive_buffer::RULE,
    send_buffer::RULE,
    socket_buffer_limit::RULE,
    mtu_probing::RULE,
    congestion_control::RULE,
    pacing::RULE,
    unsent_limit::RULE,
    default_queueing::RULE,
    receive_backlog::RULE,
    receive_budget::RULE,
];
