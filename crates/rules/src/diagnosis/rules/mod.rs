//! The rules, one per file.

mod application;
mod asymmetric;
mod autotuning_off;
mod black_hole;
mod buffer_too_small;
mod bufferbloat;
mod bursty_loss;
mod congestion_control;
mod corruption;
mod cross_traffic;
mod delay_variation;
mod duplication;
mod ecn_bleached;
mod ecn_marking;
mod host_busy;
mod host_drops;
mod incast;
mod interrupts_on_one_core;
mod kernel_memory;
mod link_negotiation;
mod link_rate;
mod loss;
mod not_enough_data;
mod offload_off;
mod outage;
mod path_dead;
mod policer;
mod processor;
mod receive_window;
mod receiver_processor;
mod reordering;
mod sack_off;
mod send_buffer;
mod sender_processor;
mod sender_queue;
mod short_transfer;
mod slow_reader;
mod slow_start_exit;
mod small_packets;
mod socket_buffer;
mod socket_pacing;
mod timestamps_off;
mod tunnel_overhead;
mod unclear;
mod window_scaling_off;

use super::DiagnosisRule;

pub(super) use autotuning_off::{is_off as is_autotuning_off, sets_receive_buffer};
pub(super) use buffer_too_small::needed as needed_buffer;
pub(super) use congestion_control::{drops_early, grows_after_overflow, overfills_buffer};
pub(super) use cross_traffic::{others_share, passes_both_hosts, shared_at_the_sender};
pub(super) use not_enough_data::is_cut_off;
pub(super) use receive_window::is_behind_a_loss as is_window_behind_a_loss;
pub(super) use reordering::is_seen_without_losses as is_reordering_seen;

/// True when a program's pacing rate is reached.
pub(super) fn is_paced(evidence: &super::TransferEvidence<'_>) -> bool {
    !socket_pacing::RULE.is_silent(evidence)
}

/// True when the program sends at the rate that it was asked for.
pub(super) fn keeps_asked_rate(evidence: &super::TransferEvidence<'_>) -> bool {
    application::is_at_asked_rate(evidence, application::MIN_KEPT_SHARE)
}

/// True when nothing arrived until the end.
pub(super) fn is_path_dead(evidence: &super::TransferEvidence<'_>) -> bool {
    !path_dead::RULE.is_silent(evidence)
}

/// True when other traffic uses the path, too.
pub(super) fn is_path_shared(evidence: &super::TransferEvidence<'_>) -> bool {
    !cross_traffic::RULE.is_silent(evidence)
}

/// All rules. Their order decides nothing but ties: `ranking` compares what each cause costs.
pub const RULES: &[DiagnosisRule] = &[
    black_hole::RULE,
    path_dead::RULE,
    outage::RULE,
    kernel_memory::RULE,
    window_scaling_off::RULE,
    sack_off::RULE,
    short_transfer::RULE,
    incast::RULE,
    socket_pacing::RULE,
    sender_queue::RULE,
    link_negotiation::RULE,
    tunnel_overhead::RULE,
    offload_off::RULE,
    sender_processor::RULE,
    receiver_processor::RULE,
    host_busy::RULE,
    interrupts_on_one_core::RULE,
    application::RULE,
    slow_reader::RULE,
    autotuning_off::RULE,
    socket_buffer::RULE,
    send_buffer::RULE,
    receive_window::RULE,
    policer::RULE,
    corruption::RULE,
    ecn_bleached::RULE,
    ecn_marking::RULE,
    cross_traffic::RULE,
    host_drops::RULE,
    asymmetric::RULE,
    small_packets::RULE,
    congestion_control::RULE,
    buffer_too_small::RULE,
    bursty_loss::RULE,
    loss::RULE,
    slow_start_exit::RULE,
    reordering::RULE,
    duplication::RULE,
    timestamps_off::RULE,
    bufferbloat::RULE,
    delay_variation::RULE,
    link_rate::RULE,
    not_enough_data::RULE,
    unclear::RULE,
];
