//! Queues of the path: what they hold, who fills them, and what waits in them without a gain.

use linerate_model::summary::DurationDistribution;

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
    assert_eq!(causes(&dropped(1, 7))[0], Cause::BufferTooSmall, "less than CUBIC needs");
    let varies = changed(long(), |o| {
        path(o).usual_round_trip = Some((Duration::from_millis(20), Duration::from_millis(50)));
    });
    assert!(!causes(&varies).contains(&Cause::CongestionControl), "packets wait without a queue");
    let reorders = changed(long(), |o| {
        path(o).with_data.packets.as_mut().expect("there").reordering = Some(0.001);
    });
    assert!(!causes(&reorders).contains(&Cause::CongestionControl), "others overtake them");
    let filled = changed(long(), |o| {
        o.connections[0].sender[1].socket.info.rtt = Some(Duration::from_millis(55));
    });
    assert!(!causes(&filled).contains(&Cause::CongestionControl), "slow start filled it before a packet was lost");
    assert!(!causes(&filled).contains(&Cause::BufferTooSmall), "and it holds six times what was met later");
    let shared = changed(long(), |o| {
        o.receiver.as_mut().expect("there").interface_bytes = Some((500_000_000, 0));
    });
    assert!(!causes(&shared).contains(&Cause::CongestionControl), "others fill it, too");
}

#[test]
fn early_drops_keep_the_window_small_for_the_rest_of_a_transfer() {
    // One loss at the size of the path, in the first seconds: the window has not grown back since.
    let once = |searched: u64| {
        let shape = |shape: &mut TransferShape| {
            (shape.megabits, shape.queue) = (200.0, Duration::from_millis(1));
            (shape.in_flight, shape.congestion_window) = (500_000, 500_000);
        };
        changed(shaped(shape), |o| {
            path(o).with_data.capacity.as_mut().expect("there").queueing_ns = Some(searched * 1_000_000);
            for (index, moment) in o.connections[0].sender.iter_mut().enumerate() {
                let info = &mut moment.socket.info;
                info.slow_start_threshold = Some(SegmentCount::new(if index < 8 { 800 } else { 500 }));
                info.retransmits = Some(SegmentCount::new(u64::from(index >= 8) * 2));
            }
        })
    };
    assert_eq!(causes(&once(40))[0], Cause::CongestionControl);
    assert!(!causes(&once(1)).contains(&Cause::CongestionControl));
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
    // None was dropped: the receiver had all that was retransmitted.
    let had = changed(few, |o| senders(o, |info| info.duplicate_sacks = Some(SegmentCount::new(590))));
    assert!(!causes(&had).contains(&Cause::BufferTooSmall), "{:?}", causes(&had));
}

#[test]
fn a_packet_that_overtakes_others_makes_no_queue_of_the_search() {
    // The fastest of the packets at rest is this much faster than half of them, as is that of the search.
    let overtaken = |millis: [u64; 3]| {
        changed(dropped(7, 40), |o| {
            let mut delays = millis.map(Duration::from_millis);
            path(o).with_data.packets.as_mut().expect("there").delay_variation = DurationDistribution::of(&mut delays);
        })
    };
    assert!(causes(&overtaken([0, 0, 33])).contains(&Cause::CongestionControl));
    assert!(!causes(&overtaken([0, 33, 33])).contains(&Cause::CongestionControl));
}

#[test]
fn a_search_through_a_queue_of_the_host_measures_no_queue_of_the_path() {
    // Also where the path is narrower: the search sends more than either.
    for bits_per_second in [300_000_000, 400_000_000] {
        let own = changed(dropped(7, 40), |o| {
            let limit = QueueRateLimit { bits_per_second, per_flow: false };
            let queue = QueueEvidence { kind: "fq_codel".to_owned(), limit: Some(limit), ..QueueEvidence::default() };
            o.sender.as_mut().expect("there").queues = Some(vec![queue]);
        });
        assert!(!causes(&own).contains(&Cause::CongestionControl), "{bits_per_second}");
    }
}

#[test]
fn a_queue_of_the_host_that_drops_what_is_lost_limits_below_its_rate() {
    let own = |dropped_packets: u64, bits_per_second: u64| {
        changed(dropped(7, 40), |o| {
            // The search found 297 Mbit/s of IP packets: the limit less Ethernet's headers.
            let limit = QueueRateLimit { bits_per_second, per_flow: false };
            let class = QueueEvidence {
                kind: "htb".to_owned(),
                limit: Some(limit),
                sent_bytes: 310_000_000,
                ..QueueEvidence::default()
            };
            let queue = QueueEvidence { kind: "fq_codel".to_owned(), dropped_packets, ..QueueEvidence::default() };
            o.sender.as_mut().expect("there").queues = Some(vec![class, queue]);
        })
    };
    assert_eq!(causes(&own(40, 300_000_000))[0], Cause::SenderQueue);
    assert_ne!(causes(&own(10, 300_000_000))[0], Cause::SenderQueue, "most of 60 were lost elsewhere");
    assert_ne!(causes(&own(40, 600_000_000))[0], Cause::SenderQueue, "the path carries less than it");
}

#[test]
fn what_slow_start_lost_at_once_refutes_no_loss_of_the_path() {
    let losing = |overshot: u64| {
        let shape = |shape: &mut TransferShape| {
            (shape.control, shape.megabits, shape.queue) = ("reno", 33.0, Duration::from_micros(400));
            (shape.in_flight, shape.congestion_window) = (60_000, 60_000);
        };
        changed(shaped(shape), |o| {
            below(o, 0.0015);
            counters(&mut o.sender, &[("TcpExtTCPSackRecovery", 40)]);
            for (index, moment) in o.connections[0].sender.iter_mut().enumerate() {
                let info = &mut moment.socket.info;
                let lost = if index == 0 { 0 } else { overshot + index as u64 };
                info.slow_start_threshold = (index > 0).then_some(SegmentCount::new(40));
                info.retransmits = Some(SegmentCount::new(lost));
                info.bytes_retransmitted = Some(ByteCount::new(lost * SEGMENT));
            }
        })
    };
    assert_eq!(causes(&losing(0))[0], Cause::Loss);
    assert_eq!(causes(&losing(600))[0], Cause::Loss, "a hundred times as many, at once");
}

#[test]
fn a_small_queue_that_slow_start_overflows_once_is_named_after_few_losses() {
    let once = |lost: u64, searched: Option<u64>| {
        let shape = |shape: &mut TransferShape| {
            shape.megabits = 142.0;
            (shape.in_flight, shape.congestion_window) = (350_000, 355_000);
        };
        changed(shaped(shape), |o| {
            path(o).with_data.capacity.as_mut().expect("there").queueing_ns = searched.map(|time| time * 1_000_000);
            for (index, moment) in o.connections[0].sender.iter_mut().enumerate() {
                let info = &mut moment.socket.info;
                let lost = if index == 0 { 0 } else { lost };
                info.slow_start_threshold = (index > 0).then_some(SegmentCount::new(140));
                info.retransmits = Some(SegmentCount::new(lost));
                info.bytes_retransmitted = Some(ByteCount::new(lost * SEGMENT));
            }
        })
    };
    assert_eq!(causes(&once(12, Some(6)))[0], Cause::BufferTooSmall);
    assert!(!causes(&once(12, Some(20))).contains(&Cause::BufferTooSmall), "the queue holds what one flow needs");
    assert!(!causes(&once(12, None)).contains(&Cause::BufferTooSmall), "nothing is known of the queue");
    assert_eq!(causes(&once(3, Some(6)))[0], Cause::BufferTooSmall, "at a window that the queue does not hold");
    assert!(!causes(&once(2, Some(6))).contains(&Cause::BufferTooSmall), "an overflow drops more at once");
    // A queue that slow start filled, and that suffices, leaves the growth of the window.
    let grows = changed(once(31, Some(20)), |o| {
        o.connections[0].sender[0].socket.info.rtt = Some(Duration::from_millis(35));
    });
    let first = diagnose(&grows).verdicts.swap_remove(0);
    assert_eq!(first.cause, Cause::CongestionControl);
    assert!(first.text.starts_with("Slow start overflowed a queue that holds 718 kB"), "{}", first.text);
    assert!(first.without.is_some_and(|without| without.expected.bits_per_second() > 200e6), "{:?}", first.without);
    let bbr = changed(grows, |o| o.congestion_control = Some("bbr".to_owned()));
    assert!(!causes(&bbr).contains(&Cause::CongestionControl));
    // The window grows since, whatever both hosts' others send meanwhile.
    let beside = changed(once(31, Some(6)), |o| {
        let all = Some((bytes(142e6 / 8.0 * 10.0 * 2.8).get(), 0));
        (o.sender.as_mut().expect("there").interface_bytes, o.receiver.as_mut().expect("there").interface_bytes) =
            (all, all);
    });
    assert_eq!(causes(&beside)[0], Cause::BufferTooSmall);
}

#[test]
fn others_keep_their_rate_when_a_transfer_slows_down() {
    let slowed = changed(shaped(|shape| (shape.megabits, shape.capacity) = (20.0, 100.0)), |o| {
        for (index, moment) in o.connections[0].receiver.iter_mut().enumerate() {
            moment.bytes = bytes(if index < 20 { 38e6 } else { 2e6 } / 8.0 * SAMPLE_INTERVAL.as_secs_f64());
        }
        o.receiver.as_mut().expect("there").interface_bytes = Some((bytes(81e6 / 8.0 * 10.0).get(), 0));
    });
    let verdicts = diagnose(&slowed).verdicts;
    let others = verdicts.iter().find(|verdict| verdict.cause == Cause::CrossTraffic).expect("60 of 80 Mbit/s");
    let without = others.without.expect("the path is known").expected.bits_per_second();
    assert!((55e6..70e6).contains(&without), "{without}");
}

/// Transfer at 93 % of the path that always waits for a window of this size, with this queue.
fn waiting_for_window(window: u64, queue: Duration) -> TransferObservation {
    shaped(|shape| {
        (shape.megabits, shape.queue, shape.receive_window) = (267.0, queue, 1.0);
        (shape.window, shape.in_flight, shape.congestion_window) = (window, window - 3000, 4_000_000);
    })
}

#[test]
fn a_window_that_waits_in_the_queue_of_a_full_path_limits_nothing() {
    assert_eq!(causes(&waiting_for_window(1_600_000, Duration::from_millis(27)))[0], Cause::LinkRate);
    assert_eq!(causes(&waiting_for_window(700_000, Duration::from_micros(100)))[0], Cause::ReceiveWindow);
}

#[test]
fn of_two_buffers_the_one_that_is_waited_for_longer_comes_first() {
    let waits = |send_buffer: f64, in_flight: u64| {
        let shape = |shape: &mut TransferShape| {
            (shape.megabits, shape.send_buffer, shape.receive_window) = (130.0, send_buffer, 1.0 - send_buffer);
            (shape.window, shape.in_flight, shape.congestion_window) = (350_000, in_flight, 900_000);
        };
        causes(&shaped(shape))[0]
    };
    assert_eq!(waits(0.68, 328_000), Cause::SendBuffer);
    assert_eq!(waits(0.32, 328_000), Cause::ReceiveWindow);
    assert_eq!(waits(0.68, 340_000), Cause::ReceiveWindow, "the window is full as well");
}
