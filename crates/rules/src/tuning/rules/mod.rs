//! One rule per file.

mod congestion_control;
mod default_queueing;
mod mtu_probing;
mod pacing;
mod receive_autotuning;
mod receive_backlog;
mod receive_budget;
mod receive_buffer;
mod selective_acknowledgements;
mod send_buffer;
mod socket_buffer_limit;
mod tcp_memory;
mod timestamps;
mod unsent_limit;
mod window_scaling;

use super::TuningRule;

pub(super) use congestion_control::planned;

/// All rules, in the order in which their changes are tried: groups one after the other, and within the buffers the total
/// before what has to fit into it.
pub const TUNING_RULES: &[TuningRule] = &[
    window_scaling::RULE,
    selective_acknowledgements::RULE,
    timestamps::RULE,
    tcp_memory::RULE,
    receive_autotuning::RULE,
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
