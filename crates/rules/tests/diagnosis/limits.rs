//! Limits that others hide: losses before them, other traffic beside them, a second limit at the same rate.

use super::*;

/// Transfer whose send buffer, which is as large as the host allows, is full although this many bytes wait to be sent.
fn full_send_buffer(waits: u64) -> TransferObservation {
    let mut observation = after_early_loss(900);
    senders(&mut observation, |info| {
        info.not_sent = Some(ByteCount::new(waits));
        info.congestion_window = Some(ByteCount::new(600_000));
    });
    for moment in &mut observation.connections[0].sender {
        let memory = moment.socket.memory.as_mut().expect("there");
        (memory.send_buffer, memory.send_queued) = (ByteCount::new(4_194_304), ByteCount::new(3_600_000));
    }
    observation
}

#[test]
fn losses_of_slow_start_hide_no_full_send_buffer() {
    assert!(causes(&full_send_buffer(0)).contains(&Cause::SendBuffer));
    assert!(!causes(&full_send_buffer(100_000)).contains(&Cause::SendBuffer), "data waits for the window");
    let marked = changed(full_send_buffer(30_000), |o| {
        senders(o, |info| info.delivery_rate_application_limited = Some(true));
    });
    assert!(causes(&marked).contains(&Cause::SendBuffer), "the kernel had nothing to send");
    // As many losses, in the second half too.
    let losing = changed(full_send_buffer(0), |o| {
        let sent = o.connections[0].sender.len() as u64;
        for (index, moment) in o.connections[0].sender.iter_mut().enumerate() {
            moment.socket.info.retransmits = Some(SegmentCount::new(2000 * index as u64 / sent));
        }
    });
    assert!(!causes(&losing).contains(&Cause::SendBuffer), "what waits for repairs fills the buffer");
}

#[test]
fn a_program_at_the_rate_it_was_asked_for_limits_whatever_its_window_holds() {
    let asked = |megabits: f64| {
        changed(waiting_window(0.0), |o| {
            o.asked.rate = Some(BitRate::from_bits_per_second(megabits * 1e6));
        })
    };
    let kept = diagnose(&asked(13.8)).verdicts.swap_remove(0);
    assert_eq!(kept.cause, Cause::ApplicationPacing);
    assert!(kept.text.contains("keeps the rate that it was asked for, 13.8 Mbit/s"), "{}", kept.text);
    assert_ne!(causes(&asked(30.0))[0], Cause::ApplicationPacing);
}

#[test]
fn a_writer_that_waits_until_a_third_of_its_buffer_is_free_is_no_slow_program() {
    // Nothing waits to be sent, and the kernel marks the rate as limited by the application.
    let filled = |send_fill: f64| {
        let shape = |shape: &mut TransferShape| {
            (shape.buffers, shape.send_fill, shape.in_flight) = ((4_194_304, true), send_fill, 700_000);
        };
        changed(shaped(shape), |o| {
            senders(o, |info| {
                (info.not_sent, info.delivery_rate_application_limited) = (Some(ByteCount::ZERO), Some(true));
            });
        })
    };
    assert_eq!(causes(&filled(0.67))[0], Cause::SendBuffer);
    let slow = diagnose(&filled(0.6)).verdicts.swap_remove(0);
    // It was asked for no rate: why it writes no sooner is not known.
    assert_eq!((slow.cause, slow.confidence), (Cause::ApplicationPacing, Confidence::Medium));
}

#[test]
fn a_program_that_leaves_a_part_of_the_path_fills_none() {
    let asked = |capacity: f64| {
        changed(shaped(|shape| (shape.megabits, shape.capacity) = (264.0, capacity)), |o| {
            o.asked.rate = Some(BitRate::from_bits_per_second(264e6));
        })
    };
    assert_eq!(causes(&asked(280.0))[0], Cause::ApplicationPacing, "94 % of it");
    assert_eq!(causes(&asked(270.0))[0], Cause::LinkRate);
}

#[test]
fn a_program_that_makes_up_for_a_slow_start_exceeds_its_rate_without_a_contradiction() {
    let asked = |megabits: f64, mean: f64| {
        changed(shaped(|shape| shape.megabits = 90.0), |o| {
            o.asked.rate = Some(BitRate::from_bits_per_second(megabits * 1e6));
            o.received = bytes(mean * 1e6 / 8.0 * 10.0);
        })
    };
    assert_eq!(diagnose(&asked(80.0, 75.0)).contradictions, Vec::<String>::new());
    // Blocks are whole: the last one may exceed the mean.
    assert_eq!(diagnose(&asked(80.0, 82.0)).contradictions, Vec::<String>::new());
    assert_ne!(diagnose(&asked(80.0, 88.0)).contradictions, Vec::<String>::new(), "the mean exceeds the rate, too");
}

/// Transfer at 92 % of its path that always repairs losses, at a queue of this many milliseconds.
fn always_repairing(queue: u64) -> TransferObservation {
    shaped(|shape| (shape.megabits, shape.retransmits, shape.queue) = (264.0, 2000, Duration::from_millis(queue)))
}

#[test]
fn a_queue_that_losses_empty_fills_no_path() {
    assert_ne!(causes(&always_repairing(7))[0], Cause::LinkRate, "a halved window no longer fills it");
    assert_eq!(causes(&always_repairing(25))[0], Cause::LinkRate);
}

/// Lossy transfer at 60 % of its path, beside others' traffic of this share of its own.
fn beside_others(share: f64) -> TransferObservation {
    changed(shaped(|shape| (shape.megabits, shape.retransmits) = (172.0, 1500)), |o| {
        let received = bytes(172e6 / 8.0 * 10.0 * (1.046 + share)).get();
        o.receiver.as_mut().expect("there").interface_bytes = Some((received, 0));
        let packets = path(o).with_data.packets.as_mut().expect("there");
        (packets.sent, packets.loss) = (600, Some(0.01));
    })
}

#[test]
fn probes_at_rest_that_meet_other_traffic_confirm_no_loss() {
    assert_eq!(causes(&beside_others(0.65))[0], Cause::CrossTraffic);
    assert_ne!(causes(&beside_others(0.2))[0], Cause::CrossTraffic);
}

#[test]
fn delays_that_vary_by_the_queue_of_others_come_after_a_full_path() {
    let varying = |others: f64| {
        changed(full(), |o| {
            path(o).usual_round_trip = Some((Duration::from_millis(20), Duration::from_millis(40)));
            let received = bytes(283e6 / 8.0 * 10.0 * (1.046 + others)).get();
            o.receiver.as_mut().expect("there").interface_bytes = Some((received, 0));
        })
    };
    assert_eq!(causes(&varying(0.0))[0], Cause::DelayVariation);
    assert_eq!(causes(&varying(0.06))[0], Cause::LinkRate);
}

#[test]
fn delays_that_vary_while_the_sender_sends_to_others_are_their_queue() {
    let beside = |sent: u64, link: Option<LinkEvidence>| {
        changed(shaped(|shape| shape.megabits = 100.0), |o| {
            path(o).usual_round_trip = Some((Duration::from_millis(30), Duration::from_millis(40)));
            let sender = o.sender.as_mut().expect("there");
            (sender.interface_bytes, sender.link) = (Some((1_000_000, sent)), link);
        })
    };
    let fast = LinkEvidence { speed_bits_per_second: Some(10_000_000_000), ..LinkEvidence::default() };
    let shared = beside(800_000_000, None);
    assert_eq!(causes(&shared)[0], Cause::CrossTraffic);
    let without = diagnose(&shared).verdicts[0].without.expect("the path is known");
    let most = BitRate::from_bits_per_second(300e6);
    assert!(without.expected <= most, "what others send need not pass the bottleneck: {:?}", without.expected);
    assert_ne!(causes(&beside(200_000_000, None))[0], Cause::CrossTraffic, "it sends others less than this transfer");
    assert_ne!(causes(&beside(800_000_000, Some(fast)))[0], Cause::CrossTraffic, "its link is hardly used");
    let through = changed(shared, |o| o.receiver.as_mut().expect("there").interface_bytes = Some((900_000_000, 0)));
    let without = diagnose(&through).verdicts[0].without.expect("the path is known");
    assert!(without.expected > most, "the receiver gets them, too: {:?}", without.expected);
    let steady = changed(beside(800_000_000, None), |o| path(o).usual_round_trip = None);
    assert_ne!(causes(&steady)[0], Cause::CrossTraffic, "delays do not vary");
}

#[test]
fn rules_that_ask_each_other_come_to_an_end() {
    let changes: [fn(&mut TransferObservation); 6] = [
        |o| path(o).usual_round_trip = Some((Duration::from_millis(30), Duration::from_millis(40))),
        |o| path(o).with_data.capacity = None,
        |o| {
            if let Some(found) = &mut path(o).with_data.capacity {
                found.shared = Some(true);
            }
        },
        |o| o.sender.as_mut().expect("there").interface_bytes = Some((1_000_000, 2_000_000_000)),
        |o| o.receiver.as_mut().expect("there").interface_bytes = Some((2_000_000_000, 1_000_000)),
        |o| path(o).with_data.packets.as_mut().expect("there").loss = Some(0.01),
    ];
    let transfers = [(30.0, 0, 0), (30.0, 40, 2000), (280.0, 0, 60), (280.0, 40, 0), (295.0, 40, 60)];
    for ((megabits, queue, retransmits), chosen) in
        transfers.into_iter().flat_map(|transfer| (0..1_u32 << changes.len()).map(move |chosen| (transfer, chosen)))
    {
        let mut observation = shaped(|shape| {
            (shape.megabits, shape.queue) = (megabits, Duration::from_millis(queue));
            shape.retransmits = retransmits;
        });
        for (bit, change) in changes.iter().enumerate() {
            if chosen >> bit & 1 == 1 {
                change(&mut observation);
            }
        }
        assert!(!causes(&observation).is_empty(), "{megabits}, {queue}, {retransmits}, {chosen:b}");
    }
}

/// Transfer that stalls, on a path whose probes of 1401 bytes vanished, after this many acknowledged bytes.
fn stalled_after(acknowledged: u64) -> TransferObservation {
    changed(shaped(|_| ()), |o| {
        senders(o, |info| (info.bytes_acknowledged, info.backoff) = (Some(ByteCount::new(acknowledged)), Some(5)));
        // Without the receiver's count it is the sender's.
        o.received = ByteCount::new(60_000);
        path(o).with_data.mtu.as_mut().expect("there").black_hole_bytes = Some(1401);
    })
}

#[test]
fn segments_that_arrive_refute_a_black_hole_of_their_size() {
    assert!(causes(&stalled_after(1)).contains(&Cause::BlackHole));
    assert!(!causes(&stalled_after(60_000)).contains(&Cause::BlackHole));
}

#[test]
fn reordering_that_costs_a_full_path_nothing_is_said_with_less_confidence() {
    let first = |observation: &TransferObservation| diagnose(observation).verdicts.swap_remove(0);
    let full = first(&changed(full(), |o| senders(o, |info| info.reordering_seen = Some(SegmentCount::new(9000)))));
    assert_eq!((full.cause, full.confidence), (Cause::Reordering, Confidence::Medium));
}

#[test]
fn a_slow_start_that_costs_much_lessens_the_confidence() {
    let slowly = |first: f64| {
        changed(shaped(|shape| (shape.buffers, shape.send_buffer) = ((4_194_304, true), 0.8)), |o| {
            let before = o.received.as_f64();
            for moment in &mut o.connections[0].receiver[..20] {
                moment.bytes = bytes(moment.bytes.as_f64() * first);
            }
            o.received = bytes(before * (1.0 + first) / 2.0);
        })
    };
    let confidence = |first: f64| {
        let verdict = diagnose(&slowly(first)).verdicts.swap_remove(0);
        (verdict.cause, verdict.confidence)
    };
    assert_eq!(confidence(0.9), (Cause::SendBuffer, Confidence::High));
    assert_eq!(confidence(0.5), (Cause::SendBuffer, Confidence::Medium));
}

/// Transfer over an unknown path of this round trip that loses 6 segments at a window smaller than usual.
fn losing_over(round_trip: Duration) -> TransferObservation {
    let shape = |shape: &mut TransferShape| {
        (shape.round_trip, shape.queue, shape.megabits) = (round_trip, Duration::ZERO, 25.0);
    };
    changed(shaped(shape), |o| {
        o.path = None;
        for (index, moment) in o.connections[0].sender.iter_mut().enumerate() {
            let info = &mut moment.socket.info;
            let lost = if index < 30 { 0 } else { 6 };
            let window = if (28..=31).contains(&index) { 40 } else { 400 };
            info.retransmits = Some(SegmentCount::new(lost));
            info.bytes_retransmitted = Some(ByteCount::new(lost * SEGMENT));
            info.unacknowledged = Some(SegmentCount::new(window));
            info.congestion_window = Some(ByteCount::new(window * SEGMENT));
            info.slow_start_threshold = Some(SegmentCount::new(40));
        }
    })
}

#[test]
fn a_loss_that_allows_many_times_the_rate_limits_nothing() {
    assert!(causes(&losing_over(Duration::from_millis(20))).contains(&Cause::Loss));
    assert!(!causes(&losing_over(Duration::from_micros(20))).contains(&Cause::Loss), "within a data centre");
}
