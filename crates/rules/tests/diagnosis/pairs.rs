//! Pairs of causes: what the removal of each gains while the other one stays.

use super::*;

/// Expected goodput without the cause of this verdict, in Mbit/s.
fn without(observation: &TransferObservation, cause: Cause) -> f64 {
    let verdicts = diagnose(observation).verdicts;
    let verdict = verdicts.iter().find(|verdict| verdict.cause == cause).expect("a verdict");
    verdict.without.expect("the path is known").expected.bits_per_second() / 1e6
}

/// Transfer of this rate through a fixed receive buffer, with this reverse direction. Rates in Mbit/s.
fn windowed(megabits: f64, back: f64, change: impl Fn(&mut TransferShape)) -> TransferObservation {
    let shape = |shape: &mut TransferShape| {
        (shape.megabits, shape.receive_window) = (megabits, 0.9);
        change(shape);
        (shape.in_flight, shape.congestion_window) = (shape.window, shape.window * 2);
    };
    changed(shaped(shape), |o| {
        o.asked.buffer = Some(ByteCount::new(1));
        path(o).with_acknowledgements.capacity = Some(capacity(back));
    })
}

#[test]
fn a_window_behind_acknowledgements_that_fill_their_direction_gains_less_than_they_do() {
    // A window takes 57 ms instead of 20; acknowledgements of 85 Mbit/s fill 2 Mbit/s.
    let waiting = |back: f64| {
        windowed(90.0, back, |shape| {
            (shape.queue, shape.window, shape.buffers) = (Duration::from_millis(37), 641_000, (2_000_000, false));
        })
    };
    let filled = waiting(2.0);
    let first = diagnose(&filled).verdicts.swap_remove(0);
    assert_eq!((first.cause, first.confidence), (Cause::Asymmetric, Confidence::Medium));
    assert!(without(&filled, Cause::Asymmetric) > 2.0 * without(&filled, Cause::SocketBuffer));
    assert_eq!(causes(&waiting(100.0))[0], Cause::SocketBuffer);
}

#[test]
fn a_window_of_a_segment_waits_for_the_time_of_an_acknowledgement() {
    // 66 bytes take 6.2 of the 7.6 ms. Acknowledgements of larger windows fill their direction at 3.7 Mbit/s.
    let waiting = |back: f64| {
        windowed(1.5, back, |shape| {
            (shape.round_trip, shape.capacity) = (Duration::from_micros(7600), 14.0);
            (shape.window, shape.buffers) = (1448, (8192, false));
        })
    };
    let slow = waiting(0.088);
    assert_eq!(causes(&slow)[0], Cause::Asymmetric);
    let (acknowledged, windowed) = (without(&slow, Cause::Asymmetric), without(&slow, Cause::SocketBuffer));
    assert!((4.5..5.5).contains(&acknowledged) && (3.4..4.0).contains(&windowed), "{acknowledged}, {windowed}");
    assert_eq!(causes(&waiting(8.8))[0], Cause::SocketBuffer);
}

#[test]
fn without_its_limit_a_flow_does_not_fill_a_path_with_a_small_queue() {
    let paced = |control: &'static str, queue: Option<u64>, connections: usize| {
        let observation = changed(shaped(|shape| (shape.control, shape.connections) = (control, connections)), |o| {
            let each = 92e6 / SegmentCount::new(connections as u64).as_f64();
            senders(o, |info| info.max_pacing_rate = Some(BitRate::from_bits_per_second(each)));
            path(o).with_data.capacity.as_mut().expect("there").queueing_ns = queue.map(|millis| millis * 1_000_000);
        });
        assert_eq!(causes(&observation)[0], Cause::SocketPacing);
        without(&observation, Cause::SocketPacing)
    };
    // A queue of a twentieth of the 20 ms holds CUBIC at less than half of the 287 Mbit/s.
    assert!((110.0..140.0).contains(&paced("cubic", Some(1), 1)), "{}", paced("cubic", Some(1), 1));
    assert!(paced("cubic", Some(4), 1) > 1.3 * paced("cubic", Some(1), 1));
    assert!(paced("cubic", Some(1), 16) > 1.3 * paced("cubic", Some(1), 1), "sixteen need a quarter of it");
    for (control, queue) in [("cubic", Some(20)), ("cubic", None), ("bbr", Some(1))] {
        assert!(paced(control, queue, 1) > 270.0, "{control} {queue:?}");
    }
}

#[test]
fn without_its_bursts_a_flow_does_not_fill_a_path_with_a_small_queue_either() {
    let late = |queue: u64| {
        let observation = changed(reading(0.3), |o| {
            path(o).with_data.capacity.as_mut().expect("there").queueing_ns = Some(queue * 1_000_000);
        });
        assert_eq!(causes(&observation)[0], Cause::SlowReader);
        without(&observation, Cause::SlowReader)
    };
    // Queues of a twentieth and of half of the 20 ms.
    assert!((110.0..140.0).contains(&late(1)), "{}", late(1));
    assert!(late(10) > 270.0, "{}", late(10));
}

#[test]
fn bursts_overfill_a_queue_that_holds_less_of_them() {
    // Queues of 2.9 and 4.3 kB. In 400 µs a sender's bursts are of 64 KiB, in 20 ms of 35 kB.
    let without_pacing = |round_trip: u64, nanos: u64| {
        let quick = shaped(|shape| {
            (shape.megabits, shape.round_trip, shape.queue) = (92.0, Duration::from_micros(round_trip), Duration::ZERO);
            (shape.in_flight, shape.congestion_window) = (20_000, 40_000);
        });
        let observation = changed(quick, |o| {
            senders(o, |info| info.max_pacing_rate = Some(BitRate::from_bits_per_second(92e6)));
            path(o).with_data.capacity.as_mut().expect("there").queueing_ns = Some(nanos);
        });
        without(&observation, Cause::SocketPacing)
    };
    let (small, larger) = (without_pacing(400, 80_000), without_pacing(400, 120_000));
    assert!((1.4..1.6).contains(&(larger / small)), "it grows with the queue: {small}, {larger}");
    assert!(without_pacing(20_000, 4_000_000) > 1.5 * small, "the same share of a long round trip");
}

#[test]
fn a_policer_is_filled_without_a_queue() {
    let policed = |present: bool| {
        let observation = changed(shaped(|_| ()), |o| {
            senders(o, |info| info.max_pacing_rate = Some(BitRate::from_bits_per_second(92e6)));
            let data = &mut path(o).with_data;
            data.capacity.as_mut().expect("there").queueing_ns = Some(1_000_000);
            data.policer = Some(PolicerDetection {
                present,
                bits_per_second: Some(287e6),
                burst_bytes: Some(1_000_000),
                evidence: String::new(),
            });
        });
        without(&observation, Cause::SocketPacing)
    };
    assert!(policed(true) > 270.0 && policed(false) < 140.0, "{}, {}", policed(true), policed(false));
}

/// Transfer through a buffer that a program set, at a receiver whose kernel grows buffers or does not.
fn set_buffer(moderates: bool) -> TransferObservation {
    let fixed = windowed(100.0, 287.0, |shape| {
        (shape.receive_window, shape.window, shape.buffers) = (1.0, 250_000, (500_000, false));
    });
    changed(fixed, |o| {
        let settings = &mut o.receiver.get_or_insert_default().settings;
        settings.insert("net.ipv4.tcp_moderate_rcvbuf".into(), u8::from(moderates).to_string());
        settings.insert("net.ipv4.tcp_rmem".into(), "4096 131072 6291456".into());
    })
}

#[test]
fn a_set_buffer_and_a_kernel_that_grows_none_have_to_go_together() {
    let alone = diagnose(&set_buffer(true)).verdicts.swap_remove(0);
    assert_eq!((alone.cause, alone.together_with), (Cause::SocketBuffer, None));
    assert!(without(&set_buffer(true), Cause::SocketBuffer) > 250.0);
    let both = diagnose(&set_buffer(false)).verdicts;
    let pair = [(both[0].cause, both[0].together_with), (both[1].cause, both[1].together_with)];
    let (set, grows) = (Cause::SocketBuffer, Cause::AutotuningOff);
    assert!(pair == [(grows, Some(set)), (set, Some(grows))], "{pair:?}");
    assert!(both[0].text.contains("has to go as well"), "{}", both[0].text);
    assert_eq!(both[0].without, both[1].without, "the estimate is without both");
    assert!(both[0].without.expect("the path is known").expected.bits_per_second() > 250e6);
    assert!(!both.iter().any(|verdict| verdict.cause == Cause::ReceiveWindow), "a larger tcp_rmem changes nothing");
}

/// Transfer of 100 of 287 Mbit/s that waits for its window, beside others that send this many times as much.
fn windowed_beside_others(share: f64) -> TransferObservation {
    let fixed = windowed(100.0, 287.0, |shape| {
        (shape.receive_window, shape.window, shape.buffers) = (1.0, 250_000, (500_000, false));
    });
    changed(fixed, |o| {
        let received = bytes(100e6 / 8.0 * 10.0 * (1.046 + share)).get();
        o.receiver.as_mut().expect("there").interface_bytes = Some((received, 0));
    })
}

#[test]
fn others_leave_a_window_that_always_holds_its_share_of_the_path() {
    for (share, least, most) in [(0.5, 220.0, 240.0), (4.0, 120.0, 145.0)] {
        let held = windowed_beside_others(share);
        assert_eq!(causes(&held)[0], Cause::SocketBuffer);
        let rate = without(&held, Cause::SocketBuffer);
        assert!((least..most).contains(&rate), "{share}: {rate}");
    }
}

#[test]
fn a_cause_that_another_takes_over_from_is_said_with_less_confidence() {
    let first = |observation: &TransferObservation| {
        let verdict = diagnose(observation).verdicts.swap_remove(0);
        (verdict.cause, verdict.confidence)
    };
    let losing = |receive_window: f64| {
        let lossy = shaped(|shape| {
            (shape.megabits, shape.in_flight, shape.congestion_window) = (12.0, 30_000, 30_000);
            (shape.retransmits, shape.receive_window, shape.window) = (22, receive_window, 65_535);
        });
        changed(lossy, |o| {
            below(o, 0.001);
            counters(&mut o.sender, &[("TcpExtTCPSackRecovery", 20)]);
            senders(o, |info| info.window_scale = None);
        })
    };
    let held = |overflowed: u64| {
        let fixed = windowed(19.0, 287.0, |shape| {
            (shape.window, shape.buffers, shape.receive_window) = (48_000, (96_000, false), 0.86);
        });
        changed(fixed, |o| {
            senders(o, |info| {
                info.retransmits = Some(SegmentCount::new(overflowed));
                info.bytes_retransmitted = Some(ByteCount::new(overflowed * SEGMENT));
                info.slow_start_threshold = Some(SegmentCount::new(40));
            });
            path(o).with_data.capacity.as_mut().expect("there").queueing_ns = Some(500_000);
        })
    };
    assert_eq!(first(&losing(0.1)), (Cause::Loss, Confidence::High));
    assert_eq!(first(&losing(0.3)), (Cause::Loss, Confidence::Medium));
    assert_eq!(first(&held(0)), (Cause::SocketBuffer, Confidence::High));
    assert_eq!(first(&held(38)), (Cause::SocketBuffer, Confidence::Medium));
}

#[test]
fn others_take_from_a_window_that_no_host_holds() {
    let exited = changed(shaped(|shape| (shape.in_flight, shape.congestion_window) = (220_000, 225_000)), |o| {
        counters(&mut o.sender, &[("TcpExtTCPHystartDelayDetect", 1)]);
        senders(o, |info| info.slow_start_threshold = Some(SegmentCount::new(100)));
        let received = bytes(90e6 / 8.0 * 10.0 * (1.046 + 4.0)).get();
        o.receiver.as_mut().expect("there").interface_bytes = Some((received, 0));
    });
    assert_eq!(causes(&exited)[..2], [Cause::CrossTraffic, Cause::SlowStartExit]);
}
