//! Figures by name, for documents.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Ratio, SegmentCount};

use super::TransferEvidence;
use super::host_load::TransferEnd;

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64())
}

fn bytes(size: Option<ByteCount>) -> Option<f64> {
    size.map(ByteCount::as_f64)
}

fn share(ratio: Option<Ratio>) -> Option<f64> {
    ratio.map(Ratio::get)
}

/// Returns all figures with their names.
pub(super) fn named_figures(evidence: &TransferEvidence<'_>) -> Vec<(&'static str, Option<f64>)> {
    let shares = evidence.shares.as_ref();
    let losses = evidence.losses();
    let count = |events| SegmentCount::new(events).as_f64();
    let sender = evidence.sender();
    let others = |end| evidence.processor_load(end).and_then(|load| load.others);
    let interrupts = |end| evidence.processor_load(end).map(|load| load.interrupts);
    let flag = |flag: Option<bool>| flag.map(|flag| if flag { 1.0 } else { 0.0 });
    vec![
        ("goodput_bits_per_second", Some(evidence.goodput.bits_per_second())),
        ("steady_bits_per_second", Some(evidence.steady.bits_per_second())),
        ("capacity_payload_bits_per_second", evidence.capacity.map(BitRate::bits_per_second)),
        ("capacity_back_bits_per_second", evidence.capacity_back.map(BitRate::bits_per_second)),
        ("used_share", evidence.used()),
        ("round_trip_least_seconds", seconds(evidence.base)),
        ("round_trip_loaded_seconds", seconds(evidence.loaded.map(|(median, _)| median))),
        ("round_trip_loaded_p95_seconds", seconds(evidence.loaded.map(|(_, high)| high))),
        ("product_bytes", bytes(evidence.bandwidth_delay_product())),
        ("segment_bytes", evidence.segment.map(|segment| f64::from(segment.get()))),
        ("sender_mtu_bytes", evidence.sender_mtu.map(|mtu| f64::from(mtu.get()))),
        ("window_bytes", bytes(evidence.window)),
        ("largest_window_bytes", bytes(evidence.largest_window)),
        ("in_flight_bytes", bytes(evidence.in_flight)),
        ("largest_in_flight_bytes", bytes(evidence.largest_in_flight)),
        ("congestion_window_bytes", bytes(evidence.congestion_window)),
        ("application_share", share(shares.map(|shares| shares.application))),
        ("send_buffer_share", share(shares.map(|shares| shares.send_buffer))),
        ("receive_window_share", share(shares.map(|shares| shares.receive_window))),
        ("network_share", share(shares.map(|shares| shares.network))),
        ("sender_processor_share", share(shares.and_then(|shares| shares.sender_cpu))),
        ("receiver_processor_share", share(shares.and_then(|shares| shares.receiver_cpu))),
        ("sender_wait_share", share(shares.and_then(|shares| shares.sender_wait))),
        ("receiver_wait_share", share(shares.and_then(|shares| shares.receiver_wait))),
        ("sender_host_busy_share", evidence.host(TransferEnd::Sender).and_then(|host| host.busy)),
        ("receiver_host_busy_share", evidence.host(TransferEnd::Receiver).and_then(|host| host.busy)),
        ("sender_host_others_share", others(TransferEnd::Sender)),
        ("receiver_host_others_share", others(TransferEnd::Receiver)),
        ("sender_host_interrupts_share", interrupts(TransferEnd::Sender)),
        ("receiver_host_interrupts_share", interrupts(TransferEnd::Receiver)),
        (
            "sender_queue_payload_bits_per_second",
            evidence.limiting_queue().map(|queue| queue.payload.bits_per_second()),
        ),
        ("unread_share", share(evidence.unread)),
        ("receive_buffer_bytes", bytes(evidence.receive_buffer.map(|(size, _)| size))),
        ("receive_buffer_changed", flag(evidence.receive_buffer.map(|(_, changed)| changed))),
        ("send_buffer_bytes", bytes(evidence.send_buffer.map(|(size, _)| size))),
        ("send_buffer_changed", flag(evidence.send_buffer.map(|(_, changed)| changed))),
        ("send_fill_share", share(evidence.send_fill)),
        ("not_sent_bytes", bytes(evidence.not_sent)),
        ("application_limited_share", share(evidence.application_limited)),
        ("retransmitted_share", share(evidence.retransmitted)),
        ("retransmits", evidence.retransmits.map(SegmentCount::as_f64)),
        ("loss_events_after_queue", Some(count(losses.queue))),
        ("loss_events_at_full_window", Some(count(losses.window))),
        ("loss_events_at_random", Some(count(losses.random))),
        ("spurious_share", share(evidence.spurious())),
        ("segments", evidence.segments.map(SegmentCount::as_f64)),
        ("longest_stall_seconds", Some(evidence.longest_stall.as_secs_f64())),
        ("reordering_seen", sender.and_then(|info| info.reordering_seen).map(SegmentCount::as_f64)),
        ("duplicate_sacks", sender.and_then(|info| info.duplicate_sacks).map(SegmentCount::as_f64)),
        ("congestion_marks", sender.and_then(|info| info.delivered_with_congestion_mark).map(SegmentCount::as_f64)),
        ("max_pacing_bits_per_second", sender.and_then(|info| info.max_pacing_rate).map(BitRate::bits_per_second)),
    ]
}
