//! Losses by chance and those of a small buffer, where the path was not measured; and paths that are not as full as their
//! queue looks.

use super::*;

/// Transfer of 3.5 Mbit/s whose path was not measured: windows in segments and waits in milliseconds alternate, and a loss
/// falls into every second sample.
fn alternating(windows: &[u64], waits: &[u64], fastest: f64) -> TransferObservation {
    let mut observation = shaped(|shape| shape.megabits = 3.5);
    observation.path = None;
    counters(&mut observation.sender, &[("TcpExtTCPSackRecovery", 20)]);
    for (index, moment) in observation.connections[0].sender.iter_mut().enumerate() {
        let info = &mut moment.socket.info;
        let window = windows[index % windows.len()];
        info.unacknowledged = Some(SegmentCount::new(window));
        info.congestion_window = Some(ByteCount::new(window * SEGMENT));
        info.rtt = Some(Duration::from_millis(20 + waits[index % waits.len()]));
        info.retransmits = Some(SegmentCount::new(index as u64 / 2));
        info.bytes_retransmitted = Some(ByteCount::new(index as u64 / 2 * SEGMENT));
        let rate = if index % 5 == 0 { fastest } else { 3.5 };
        info.delivery_rate = Some(BitRate::from_bits_per_second(rate * 1e6));
    }
    observation
}

#[test]
fn losses_at_any_window_are_no_small_buffer() {
    let (windows, waits) = ([4, 6, 9, 14, 7, 5, 12], [3, 5, 2, 8, 4, 3, 7]);
    let by_chance = alternating(&windows, &waits, 6.0);
    assert_eq!(causes(&by_chance), [Cause::Loss]);
    // A queue that is always there, and nothing faster: the path is full.
    assert_eq!(causes(&alternating(&windows, &[12, 14], 3.6))[0], Cause::LinkRate);
    // The same queue, but data passed much faster at times.
    assert!(!causes(&alternating(&windows, &[12, 14], 6.0)).contains(&Cause::LinkRate));
}

#[test]
fn what_is_sent_after_timeouts_without_selective_acknowledgements_was_not_lost() {
    // 2.6 % retransmitted, where the path loses 0.25 %.
    let lossy = |after_timeouts: u64| {
        let losing = shaped(|shape| {
            (shape.megabits, shape.in_flight, shape.congestion_window) = (25.0, 60_000, 60_000);
            shape.retransmits = 560;
        });
        changed(losing, |o| {
            senders(o, |info| info.selective_acknowledgements = Some(false));
            o.sender.as_mut().expect("there").counters.clear();
            let counted = [("TcpExtTCPSlowStartRetrans", after_timeouts), ("TcpExtTCPRenoRecovery", 100)];
            counters(&mut o.sender, &counted);
            below(o, 0.0025);
        })
    };
    let found = causes(&lossy(400));
    assert!(found.contains(&Cause::Loss) && !found.contains(&Cause::BurstyLoss), "{found:?}");
    assert!(!causes(&lossy(0)).contains(&Cause::Loss), "the path loses a tenth of that");
}

#[test]
fn what_the_receiver_had_already_was_not_lost() {
    // A sender that waits for a processor retransmits what is acknowledged late.
    let late = |duplicates: u64| {
        let losing = shaped(|shape| {
            (shape.megabits, shape.in_flight, shape.congestion_window) = (25.0, 60_000, 60_000);
            shape.retransmits = 100;
        });
        changed(losing, |o| senders(o, |info| info.duplicate_sacks = Some(SegmentCount::new(duplicates))))
    };
    let is_lost = |found: &[Cause]| found.contains(&Cause::Loss) || found.contains(&Cause::BurstyLoss);
    assert!(is_lost(&causes(&late(0))), "{:?}", causes(&late(0)));
    assert!(!is_lost(&causes(&late(95))), "{:?}", causes(&late(95)));
    let duplicated = changed(late(95), |o| path(o).with_data.packets.as_mut().expect("there").duplication = Some(0.01));
    assert!(is_lost(&causes(&duplicated)), "the receiver reports duplicates of the path as well");
}

#[test]
fn bbr_keeps_its_rate_at_rare_losses() {
    let lossy = |control: &'static str, retransmits| {
        shaped(|shape| {
            (shape.megabits, shape.in_flight, shape.congestion_window) = (25.0, 60_000, 60_000);
            (shape.control, shape.retransmits) = (control, retransmits);
        })
    };
    let is_lost = |control, retransmits| {
        let found = causes(&lossy(control, retransmits));
        found.contains(&Cause::Loss) || found.contains(&Cause::BurstyLoss)
    };
    // 21,600 segments: 0.5 % and 4 %.
    assert!(is_lost("cubic", 108) && !is_lost("bbr", 108));
    assert!(is_lost("bbr", 860));
}

#[test]
fn losses_that_recur_at_one_window_are_of_a_small_buffer() {
    // After each loss the queue of four packets is empty.
    let sawtooth = alternating(&[14, 20, 16, 20], &[1, 7, 2, 7], 6.0);
    assert_eq!(causes(&sawtooth)[0], Cause::BufferTooSmall);
    // Where the same delays come at other moments than the losses, no queue dropped the packets.
    assert!(!causes(&alternating(&[5, 20, 12, 18], &[7, 1, 7, 2], 6.0)).contains(&Cause::BufferTooSmall));
}

#[test]
fn a_full_path_with_others_on_it_may_pass_more_at_times() {
    let mut shared = alternating(&[14, 20], &[12, 14], 6.0);
    let sent = shared.connections[0].sender.last().expect("samples").socket.info.bytes_sent.expect("known").get();
    shared.receiver.as_mut().expect("there").interface_bytes = Some((sent * 2, 0));
    assert!(causes(&shared).contains(&Cause::LinkRate), "{:?}", causes(&shared));
}
