//! Windows that a reader closes, a kernel cuts or an option bounds, and those that hold nothing back.

use super::waits::{after_early_loss, waiting_window};
use super::*;

/// Transfer that loses a lot with a small window, of which this share of the receive buffer is unread.
pub(super) fn small_window(unread: f64) -> TransferObservation {
    shaped(|shape| {
        (shape.queue, shape.retransmits, shape.unread) = (Duration::from_millis(15), 2000, unread);
        (shape.in_flight, shape.congestion_window) = (60_000, 80_000);
    })
}

#[test]
fn a_window_that_closes_often_waits_for_its_reader() {
    let closing = |times: u64| {
        changed(waiting_window(0.35), |o| {
            counters(&mut o.receiver, &[("TcpOutSegs", 1000), ("TcpExtTCPToZeroWindowAdv", times)]);
        })
    };
    assert_eq!(causes(&closing(200))[0], Cause::SlowReader);
    let (often, never) = (diagnose(&closing(200)), diagnose(&closing(0)));
    assert!(often.verdicts[0].text.contains("full of unread data"), "{}", often.verdicts[0].text);
    assert_ne!(often.verdicts[0].text, never.verdicts[0].text, "a full window is no closed one");
}

/// Transfer that waits for a window of four segments, in a buffer of which this share is unread.
fn cut_window(largest: u64, unread: f64) -> TransferObservation {
    changed(
        shaped(|shape| {
            (shape.megabits, shape.receive_window, shape.unread) = (2.3, 1.0, unread);
            (shape.window, shape.in_flight, shape.congestion_window) = (6144, 5792, 90_000);
            (shape.queue, shape.buffers) = (Duration::ZERO, (262_144, true));
        }),
        |o| {
            let first = o.connections[0].sender.first_mut().expect("samples");
            first.socket.info.send_window = Some(ByteCount::new(largest));
        },
    )
}

#[test]
fn a_window_of_four_segments_in_a_large_buffer_is_cut_by_the_kernel() {
    assert_eq!(causes(&cut_window(55_296, 0.0))[0], Cause::KernelMemory);
    assert!(!causes(&cut_window(6144, 0.0)).contains(&Cause::KernelMemory), "it never was larger");
    assert!(!causes(&cut_window(55_296, 0.3)).contains(&Cause::KernelMemory), "the program reads late");
}

#[test]
fn without_window_scaling_a_growing_buffer_offers_no_more() {
    let fixed = |scaled: bool| {
        changed(
            shaped(|shape| {
                (shape.megabits, shape.receive_window) = (22.0, 1.0);
                (shape.window, shape.in_flight, shape.congestion_window) = (65_535, 65_160, 90_000);
                (shape.queue, shape.buffers) = (Duration::ZERO, (131_072, false));
            }),
            |o| {
                let settings = &mut o.receiver.get_or_insert_default().settings;
                settings.insert("net.ipv4.tcp_moderate_rcvbuf".into(), "0".into());
                settings.insert("net.ipv4.tcp_rmem".into(), "4096 131072 6291456".into());
                senders(o, |info| {
                    info.timestamps = Some(true);
                    info.window_scale = scaled.then_some(NegotiatedWindowScale { send: 7, receive: 7 });
                });
            },
        )
    };
    assert_eq!(causes(&fixed(true))[0], Cause::AutotuningOff);
    assert_eq!(causes(&fixed(false))[0], Cause::WindowScalingOff);
    assert!(!causes(&fixed(false)).contains(&Cause::AutotuningOff));
}

#[test]
fn a_window_that_allows_all_of_a_nearly_full_path_holds_nothing_back() {
    let waiting = |megabits: f64, window: u64| {
        shaped(|shape| {
            (shape.megabits, shape.receive_window, shape.queue) = (megabits, 1.0, Duration::ZERO);
            (shape.window, shape.in_flight, shape.congestion_window) = (window, window - 1000, 2 * window);
        })
    };
    assert!(!causes(&waiting(265.0, 900_000)).contains(&Cause::ReceiveWindow));
    assert_eq!(causes(&waiting(250.0, 640_000))[0], Cause::ReceiveWindow);
}

#[test]
fn a_probe_that_overtook_others_is_no_variation_of_the_delay() {
    let usual = |median: u64, high: u64| {
        changed(full(), |o| {
            path(o).usual_round_trip = Some((Duration::from_micros(median), Duration::from_micros(high)));
        })
    };
    assert!(!causes(&usual(27_000, 27_000)).contains(&Cause::DelayVariation));
    assert!(causes(&usual(24_000, 31_000)).contains(&Cause::DelayVariation));
}

#[test]
fn repairs_of_slow_start_count_in_the_whole_transfer() {
    // 240 round trips of 20 ms of ten seconds: 14 Mbit/s in the first half, 150 in the second, where nothing is lost.
    let repaired = |selective: bool| {
        changed(after_early_loss(240), |o| {
            o.received = bytes(82e6 / 8.0 * 10.0);
            let connection = &mut o.connections[0];
            for moments in [&mut connection.sender, &mut connection.receiver] {
                let half = moments.len() / 2;
                for (index, moment) in moments.iter_mut().enumerate() {
                    let megabits = if index < half { 14.0 } else { 150.0 };
                    moment.bytes = bytes(megabits * 1e6 / 8.0 * SAMPLE_INTERVAL.as_secs_f64());
                }
            }
            senders(o, |info| info.selective_acknowledgements = Some(selective));
            below(o, 0.0);
        })
    };
    assert_eq!(causes(&repaired(false))[0], Cause::SackOff);
    assert_eq!(causes(&repaired(true))[0], Cause::BufferTooSmall);
}

/// Transfer of this rate over a path of this capacity and 600 µs, that waits for this window, with that queue.
fn of_two_packets(megabits: f64, capacity: f64, window: u64, queue: u64) -> TransferObservation {
    shaped(|shape| {
        (shape.megabits, shape.capacity, shape.receive_window) = (megabits, capacity, 1.0);
        (shape.round_trip, shape.queue) = (Duration::from_micros(600), Duration::from_micros(queue));
        (shape.window, shape.in_flight, shape.congestion_window) = (window, window.next_multiple_of(SEGMENT), 14_480);
        shape.buffers = (8192, true);
    })
}

#[test]
fn a_window_of_less_than_two_segments_leaves_a_part_of_the_path_idle() {
    assert_eq!(causes(&of_two_packets(3.64, 4.01, 2400, 4100))[0], Cause::ReceiveWindow);
    assert!(
        !causes(&of_two_packets(3.64, 4.01, 5792, 4100)).contains(&Cause::ReceiveWindow),
        "its data waits in a queue"
    );
    // One segment at a time, also where some of them are lost.
    let losing = |window: u64| {
        changed(of_two_packets(2.74, 3.53, window, 3000), |o| {
            senders(o, |info| {
                info.unacknowledged = Some(SegmentCount::new(1));
                info.retransmits = Some(SegmentCount::new(5));
            });
        })
    };
    assert_eq!(causes(&losing(2400))[0], Cause::ReceiveWindow);
    assert!(!causes(&losing(5792)).contains(&Cause::ReceiveWindow), "its data wait behind a loss");
    let nearly = |share: f64| {
        let held = changed(of_two_packets(3.78, 4.01, 2400, 4100), |o| {
            senders(o, |info| info.receive_window_limited = info.busy_time.map(|busy| busy.mul_f64(share)));
        });
        let first = diagnose(&held).verdicts[0].clone();
        (first.cause, first.confidence)
    };
    assert_eq!(nearly(1.0), (Cause::LinkRate, Confidence::Medium), "what it would gain is too little to be sure of");
    assert_eq!(nearly(0.1), (Cause::LinkRate, Confidence::High));
}

#[test]
fn the_time_that_packets_take_is_no_queue_of_others() {
    let shared = |queue: u64, others: u64| {
        changed(of_two_packets(15.3, 38.0, 2400, queue), |o| {
            let sent = o.connections[0].sender.last().and_then(|last| last.socket.info.bytes_sent).expect("sent");
            o.receiver.as_mut().expect("there").interface_bytes = Some((sent.get() * others, 0));
        })
    };
    assert_eq!(causes(&shared(400, 3))[0], Cause::ReceiveWindow);
    assert_eq!(causes(&shared(1400, 3))[0], Cause::CrossTraffic);
}
