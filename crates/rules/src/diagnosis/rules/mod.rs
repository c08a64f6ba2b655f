//! The rules, one per file.

mod application;
mod asymmetric;
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
mod host_drops;
mod incast;
mod kernel_memory;
mod link_rate;
mod loss;
mod not_enough_data;
mod outage;
mod path_dead;
mod policer;
mod receive_window;
mod receiver_processor;
mod reordering;
mod sack_off;
mod send_buffer;
mod sender_processor;
mod short_transfer;
mod slow_reader;
mod slow_start_exit;
mod small_packets;
mod socket_buffer;
mod socket_pacing;
mod timestamps_off;
mod unclear;
mod window_scaling_off;

use super::DiagnosisRule;

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
    application::RULE,
    sender_processor::RULE,
    receiver_processor::RULE,
    slow_reader::RULE,
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
