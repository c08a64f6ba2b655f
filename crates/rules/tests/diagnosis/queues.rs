//! Queues of the path: what they hold, who fills them, and what waits in them without a gain.

use super::*;

/// Transfer that loses packets at a queue of so many milliseconds and does not fill the path, whose search for the capacity made
/// packets wait for more.
fn dropped(at: u64, searched: u64) -> TransferObservation {
    let shape = |shape: &mut TransferShape| {
        (shape.megabits, shape.queue, shape.retransmits) = (240.0, Duration::from_millis(at), 60);
        (shape.in_flight, shape.congestion_window) = (800_000, 800_000);
    };
    changed(shaped(shape), |o| {
        let found = path(o).with_data.capacity.as_mut().expect("there");
        found.queueing_ns = Some(searched * 1_000_000);
    })
}

#[test]
fn a_queue_that_drops_early_is_no_small_buffer() {
    let long = || dropped(7, 40);
    let early = diagnose(&long()).verdicts.swap_remove(0);
    assert_eq!(early.cause, Cause::CongestionControl);
    assert!(early.without.is_some_and(|without| without.expected.bits_per_second() > 280e6), "{:?}", early.without);
    assert!(!causes(&long()).contains(&Cause::BufferTooSmall));
    assert!(early.text.contains("drops packets early, at a queue of 7.00 ms"), "{}", early.text);
    assert_eq!(causes(&dropped(7, 13))[0], Cause::BufferTooSmall, "it holds hardly more");
    assert_eq!(causes(&dropped(1, 8))[0], Cause::BufferTooSmall, "less than CUBIC needs");
    let varies = changed(long(), |o| {
        path(o).usual_round_trip = Some((Duration::from_millis(20), Duration::from_millis(50)));
    });
    assert!(!causes(&varies).contains(&Cause::CongestionControl), "packets wait without a queue");
    let reorders = changed(long(), |o| {
        path(o).with_data.packets.as_mut().expect("there").reordering = Some(0.001);
    });
    assert!(!causes(&reorders).contains(&Cause::CongestionControl), "others overtake them");
    let shared = changed(long(), |o| {
        o.receiver.as_mut().expect("there").interface_bytes = Some((500_000_000, 0));
    });
    assert!(!causes(&shared).contains(&Cause::CongestionControl), "others fill it, too");
}

#[test]
fn a_queue_of_a_few_packets_does_not_show_what_it_holds() {
    // The path holds two packets, and its queue eight.
    let shape = |shape: &mut TransferShape| {
        (shape.megabits, shape.round_trip, shape.queue) =
            (150.0, Duration::from_micros(80), Duration::from_micros(120));
        (shape.retransmits, shape.in_flight, shape.congestion_window) = (600, 5000, 5000);
    };
    let few =
        changed(shaped(shape), |o| path(o).with_data.capacity.as_mut().expect("there").queueing_ns = Some(320_000));
    assert_eq!(causes(&few)[0], Cause::BufferTooSmall);
}

#[test]
fn a_search_through_a_queue_of_the_host_measures_no_queue_of_the_path() {
    let own = changed(dropped(7, 40), |o| {
        let limit = QueueRateLimit { bits_per_second: 300_000_000, per_flow: false };
        let queue = QueueEvidence { kind: "fq_codel".to_owned(), limit: Some(limit), ..QueueEvidence::default() };
        o.sender.as_mut().expect("there").queues = Some(vec![queue]);
    });
    assert!(!causes(&own).contains(&Cause::CongestionControl));
}
