//! Transfers that wait: for a window that was cut early, for a reader, for the next write; and figures that agree with them.

use linerate_model::diagnosis::SenderState;
use linerate_model::summary::DurationDistribution;

use super::*;

/// Transfer with this many segments lost in the first sample, and none later.
pub(super) fn after_early_loss(lost: u64) -> TransferObservation {
    let mut observation = shaped(|shape| (shape.in_flight, shape.congestion_window) = (220_000, 225_000));
    senders(&mut observation, |info| {
        info.retransmits = Some(SegmentCount::new(lost));
        info.bytes_retransmitted = Some(ByteCount::new(lost * SEGMENT));
        info.slow_start_threshold = Some(SegmentCount::new(100));
    });
    observation
}

/// Transfer that a small buffer limits as well, with this many acknowledgements for each segment.
pub(super) fn reading(acknowledged: f64) -> TransferObservation {
    changed(small_window(0.0), |o| {
        let sent = bytes(10_000.0 * acknowledged).get();
        counters(&mut o.receiver, &[("TcpInSegs", 10_000), ("TcpOutSegs", sent)]);
    })
}

/// Transfer that sends one window per round trip, 17 ms longer than at rest, of which this share of the buffer is unread.
pub(super) fn waiting_window(unread: f64) -> TransferObservation {
    shaped(|shape| {
        (shape.megabits, shape.receive_window, shape.unread) = (13.8, 1.0, unread);
        (shape.window, shape.in_flight, shape.congestion_window) = (64_000, 63_712, 90_000);
        (shape.queue, shape.buffers) = (Duration::from_millis(17), (131_072, false));
    })
}

#[test]
fn a_transfer_within_the_interval_of_a_capacity_contradicts_nothing() {
    let measured = |high: Option<f64>| {
        changed(full(), |o| {
            let found = path(o).with_data.capacity.as_mut().expect("there");
            (found.bits_per_second, found.high_bits_per_second) = (200e6, high);
        })
    };
    let refuted = diagnose(&measured(Some(210e6)));
    assert!(refuted.contradictions[0].contains("the path measurement reported"), "{:?}", refuted.contradictions);
    let within = diagnose(&measured(Some(300e6)));
    assert_eq!(within.contradictions, Vec::<String>::new());
    assert!(
        within.bounds.iter().all(|bound| bound.kind != BoundKind::Path),
        "no bound that is refuted: {:?}",
        within.bounds
    );
}

#[test]
fn a_send_buffer_that_a_write_overfills_limits_at_the_rate_of_writes_with_pauses() {
    let overfull = |megabits: f64| {
        changed(
            shaped(|shape| (shape.megabits, shape.buffers, shape.send_fill) = (megabits, (8192, false), 8.0)),
            |o| {
                let settings = &mut o.sender.as_mut().expect("there").settings;
                settings.insert("net.ipv4.tcp_wmem".to_owned(), "4096 8192 8192".to_owned());
            },
        )
    };
    // 65.5 kB in 1.8 ms, and a pause of 20 ms: 24 Mbit/s.
    let found = diagnose(&overfull(21.0));
    assert_eq!(found.verdicts[0].cause, Cause::SendBuffer);
    let bound = found.bounds.iter().find(|bound| bound.kind == BoundKind::SendBuffer).expect("a bound");
    assert!((bound.rate.bits_per_second() / 24.0e6 - 1.0).abs() < 0.02, "{bound:?}");
    assert_ne!(diagnose(&overfull(10.0)).verdicts[0].cause, Cause::SendBuffer, "far below that rate");
}

/// Search of a 10 Mbit/s limit that lost 5 %, after which a packet of 1.2 ms waited `queueing`; delays vary by `spread` at rest.
fn searched(queueing: u64, spread: u64, retransmits: u64) -> TransferObservation {
    changed(shaped(|shape| (shape.megabits, shape.capacity, shape.retransmits) = (8.0, 9.65, retransmits)), |o| {
        let path = path(o);
        let found = path.with_data.capacity.as_mut().expect("there");
        (found.loss, found.queueing_ns) = (Some(0.05), Some(queueing * 1000));
        let delay = |micros| Duration::from_micros(10_000 + micros);
        let (min, most) = (delay(0), delay(spread));
        let delays = DurationDistribution { count: 100, min, median: min, mean: min, p95: most, p99: most, max: most };
        path.with_data.packets.as_mut().expect("there").one_way_delay = Some(delays);
    })
}

#[test]
fn no_queue_hides_in_a_variation_of_a_few_packets() {
    let first = |queueing, spread| diagnose(&searched(queueing, spread, 60)).verdicts[0].clone();
    let certain = first(500, 0);
    assert_eq!((certain.cause, certain.confidence), (Cause::Policer, Confidence::High));
    // The wait is no longer than delays vary at rest, by two packets' time.
    let varying = first(2600, 2400);
    assert_eq!((varying.cause, varying.confidence), (Cause::Policer, Confidence::Medium));
    let losing = |share: f64| {
        let lost =
            changed(searched(10, 0, 60), |o| path(o).with_data.capacity.as_mut().expect("there").loss = Some(share));
        causes(&lost)[0]
    };
    assert_eq!(
        (losing(0.028), losing(0.01) == Cause::Policer),
        (Cause::Policer, false),
        "the surplus is lost, or little"
    );
    // A longer one is a queue; and in a variation of ten packets' time a queue can hide.
    assert_ne!(first(6000, 2400).cause, Cause::Policer);
    assert_ne!(first(12_000, 12_000).cause, Cause::Policer);
    // Nor is a transfer far below that rate held by it: other traffic makes delays vary.
    let slow = changed(searched(2600, 2400, 60), |o| {
        let found = path(o).with_data.capacity.as_mut().expect("there");
        (found.bits_per_second, found.queueing_ns) = (60e6, Some(450_000));
        path(o).with_data.packets.as_mut().expect("there").one_way_delay.as_mut().expect("there").p99 =
            Duration::from_micros(10_400);
    });
    assert_ne!(diagnose(&slow).verdicts[0].cause, Cause::Policer);
}

#[test]
fn a_share_of_a_fair_queue_is_no_policer() {
    let shared = |queueing: u64, others: u64| {
        changed(searched(queueing, 0, 60), |o| {
            let sent = o.connections[0].sender.last().and_then(|last| last.socket.info.bytes_sent).expect("sent");
            o.receiver.as_mut().expect("there").interface_bytes = Some((sent.get() * others, 0));
        })
    };
    assert_eq!(causes(&shared(500, 1))[0], Cause::Policer);
    assert!(!causes(&shared(500, 4)).contains(&Cause::Policer));
    assert_eq!(causes(&shared(10, 4))[0], Cause::Policer, "no turn is waited for");
}

#[test]
fn a_full_buffer_is_pruned_for_its_reader_and_for_no_lack_of_memory() {
    let pruned = |unread: f64| {
        changed(shaped(|shape| (shape.unread, shape.receive_window) = (unread, 0.97)), |o| {
            counters(&mut o.receiver, &[("TcpExtPruneCalled", 1)]);
        })
    };
    assert_eq!(causes(&pruned(0.9))[0], Cause::SlowReader);
    assert_eq!(causes(&pruned(0.1))[0], Cause::KernelMemory);
}

#[test]
fn counters_that_any_socket_of_the_host_raises_are_no_lack_of_memory() {
    let transfer = |name: &'static str| {
        changed(shaped(|shape| (shape.unread, shape.receive_window) = (0.1, 0.0)), |o| {
            counters(&mut o.receiver, &[(name, 9)]);
        })
    };
    for name in ["TcpExtTCPRcvQDrop", "TcpExtPruneCalled"] {
        assert!(!causes(&transfer(name)).contains(&Cause::KernelMemory), "{name}");
    }
    assert!(causes(&transfer("TcpExtTCPMemoryPressures")).contains(&Cause::KernelMemory));
}

#[test]
fn a_policer_that_a_pacing_rate_stays_below_drops_single_bursts() {
    let paced = |megabits: f64| {
        changed(searched(500, 0, 4), |o| {
            o.received = bytes(megabits * 1e6 / 8.0 * 10.0);
            for moment in o.connections.iter_mut().flat_map(|one| one.sender.iter_mut().chain(&mut one.receiver)) {
                moment.bytes = bytes(megabits * 1e6 / 8.0 * SAMPLE_INTERVAL.as_secs_f64());
            }
            senders(o, |info| info.max_pacing_rate = Some(BitRate::from_bits_per_second(4e6)));
        })
    };
    assert_eq!(causes(&paced(4.0))[0], Cause::SocketPacing);
    assert_eq!(causes(&searched(500, 0, 60))[0], Cause::Policer);
}

#[test]
fn a_slow_start_that_ended_early_costs_nothing_once_the_window_has_grown() {
    let ended = |window: u64| {
        changed(after_early_loss(1), |o| {
            counters(&mut o.sender, &[("TcpExtTCPHystartDelayDetect", 1)]);
            senders(o, |info| info.congestion_window = Some(ByteCount::new(window)));
        })
    };
    assert_eq!(causes(&ended(225_000))[0], Cause::SlowStartExit);
    let grown = diagnose(&ended(900_000));
    let exit = grown.verdicts.iter().find(|verdict| verdict.cause == Cause::SlowStartExit);
    assert!(exit.is_none_or(|verdict| verdict.share.is_none()), "{exit:?}");
}

#[test]
fn data_behind_gaps_that_are_repaired_slowly_waits_for_no_program() {
    let behind = |gaps: u64, selective: bool| {
        changed(waiting_window(0.3), |o| {
            senders(o, |info| info.selective_acknowledgements = Some(selective));
            counters(&mut o.receiver, &[("TcpInSegs", 10_000), ("TcpExtTCPOFOQueue", gaps)]);
        })
    };
    for (gaps, selective, reads_late) in [(100, false, true), (2000, false, false), (2000, true, true)] {
        let found = causes(&behind(gaps, selective)).contains(&Cause::SlowReader);
        assert_eq!(found, reads_late, "{gaps} gaps, SACK {selective}");
    }
}

#[test]
fn needless_retransmissions_are_no_loss_that_ended_slow_start() {
    let ended = |duplicates: u64| {
        changed(after_early_loss(20), |o| {
            counters(&mut o.sender, &[("TcpExtTCPHystartDelayDetect", 1)]);
            senders(o, |info| info.duplicate_sacks = Some(SegmentCount::new(duplicates)));
        })
    };
    assert_eq!(causes(&ended(20))[0], Cause::SlowStartExit);
    assert!(!causes(&ended(4)).contains(&Cause::SlowStartExit), "packets were lost");
}

#[test]
fn bbr_overfills_a_buffer_that_holds_a_product() {
    let lossy = |control: &'static str, queue: u64| {
        shaped(|shape| {
            (shape.control, shape.megabits, shape.retransmits) = (control, 200.0, 30_000);
            (shape.queue, shape.in_flight) = (Duration::from_millis(queue), 1_400_000);
        })
    };
    assert_eq!(causes(&lossy("bbr", 25))[0], Cause::CongestionControl);
    assert!(!causes(&lossy("cubic", 25)).contains(&Cause::CongestionControl));
    assert!(!causes(&lossy("bbr", 10)).contains(&Cause::CongestionControl), "the buffer holds less than a product");
}

#[test]
fn memory_pressure_comes_before_the_losses_that_it_causes() {
    let lossy = |pressures: u64| {
        changed(shaped(|shape| (shape.retransmits, shape.in_flight) = (246, 740_000)), |o| {
            counters(&mut o.sender, &[("TcpExtTCPMemoryPressures", pressures), ("TcpExtTCPSackRecovery", 5)]);
            below(o, 0.0);
        })
    };
    let first = diagnose(&lossy(1)).verdicts.swap_remove(0);
    assert_eq!(first.cause, Cause::KernelMemory);
    let without = first.without.expect("the path is known").expected.bits_per_second();
    assert!(without > 270e6, "the losses go with it: {without}");
    assert_eq!(causes(&lossy(0))[0], Cause::BufferTooSmall);
    // Of the ten seconds.
    let pressed = |millis: u64| {
        causes(&changed(lossy(1), |o| counters(&mut o.receiver, &[("TcpExtTCPMemoryPressuresChrono", millis)])))[0]
    };
    assert_eq!((pressed(4000), pressed(400)), (Cause::KernelMemory, Cause::BufferTooSmall));
    // A pressure that passed has cut the window in which the transfer waits.
    let cut = changed(shaped(|shape| (shape.megabits, shape.receive_window) = (30.0, 0.9)), |o| {
        let grown = [("TcpExtTCPMemoryPressures", 1), ("TcpExtTCPMemoryPressuresChrono", 400)];
        counters(&mut o.sender, &grown);
    });
    assert_eq!(causes(&cut)[0], Cause::KernelMemory);
}

#[test]
fn a_program_that_never_has_a_window_to_send_limits_all_of_the_time() {
    let without = |window: u64| {
        let bursts = shaped(|shape| {
            (shape.megabits, shape.idle, shape.queue) = (60.0, 0.45, Duration::ZERO);
            (shape.in_flight, shape.congestion_window) = (29_000, window);
        });
        let first = diagnose(&bursts).verdicts.swap_remove(0);
        assert_eq!(first.cause, Cause::Application);
        first.without.expect("the path is known").expected.bits_per_second() / 1e6
    };
    assert!(without(58_000) > 270.0, "{}", without(58_000));
    assert!(without(29_000) < 200.0, "the window is full: {}", without(29_000));
}

#[test]
fn acknowledgements_that_wait_longer_than_the_queue_of_the_data_are_the_limit() {
    // The search filled the queue of the data in 1 ms; the reverse direction is 300 times narrower.
    let waiting = |queue: u64| {
        changed(shaped(|shape| (shape.megabits, shape.retransmits) = (20.0, 40)), |o| {
            senders(o, |info| info.rtt = Some(Duration::from_millis(20 + queue)));
            path(o).with_acknowledgements.capacity = Some(capacity(1.0));
            let found = path(o).with_data.capacity.as_mut().expect("there");
            (found.loss, found.queueing_ns) = (Some(0.05), Some(1_000_000));
            below(o, 0.0);
        })
    };
    assert_eq!(causes(&waiting(25))[0], Cause::Asymmetric);
    assert_ne!(causes(&waiting(1))[0], Cause::Asymmetric);
    // Probes at rest that took longer than the fastest packet met a queue, but not where packets overtake each other.
    let at_rest = |reordering: f64| {
        changed(waiting(11), |o| {
            let high = Duration::from_millis(30);
            (path(o).round_trip, path(o).usual_round_trip) = (Some(high), Some((high, high)));
            path(o).with_data.packets.as_mut().expect("there").reordering = Some(reordering);
        })
    };
    assert_eq!(causes(&at_rest(0.0))[0], Cause::Asymmetric);
    assert_ne!(causes(&at_rest(0.01))[0], Cause::Asymmetric);
}

#[test]
fn a_round_trip_longer_than_the_samples_is_no_stall() {
    let slow = |round_trip: u64| {
        changed(shaped(|shape| shape.megabits = 1.0), |o| {
            for (index, moment) in o.connections[0].sender.iter_mut().enumerate() {
                // An acknowledgement comes with every fourth sample.
                let info = &mut moment.socket.info;
                info.bytes_acknowledged = Some(ByteCount::new(index as u64 / 4 * 100_000));
                info.rtt = Some(Duration::from_millis(round_trip));
            }
        })
    };
    let stalled = |observation: &TransferObservation| {
        let states = diagnose(observation).states;
        states.iter().find(|one| one.state == SenderState::Stalled).map_or(0.0, |one| one.share.get())
    };
    assert!(stalled(&slow(20)) > 0.5, "{}", stalled(&slow(20)));
    assert!(stalled(&slow(1200)) < 0.1, "{}", stalled(&slow(1200)));
}

#[test]
fn a_policer_that_drops_much_limits_whatever_the_reader_does() {
    let late = |retransmits| {
        changed(searched(500, 0, retransmits), |o| {
            counters(&mut o.receiver, &[("TcpInSegs", 10_000), ("TcpOutSegs", 4500)]);
        })
    };
    assert_eq!(diagnose(&late(2000)).verdicts[0].cause, Cause::Policer);
    let slow = changed(late(2000), |o| path(o).with_data.capacity.as_mut().expect("there").bits_per_second = 60e6);
    assert_ne!(diagnose(&slow).verdicts[0].cause, Cause::Policer, "only bursts reach it");
    assert_ne!(diagnose(&late(4)).verdicts[0].cause, Cause::Policer, "the reader keeps the rate below it");
}

#[test]
fn a_full_window_that_comes_back_as_on_an_idle_path_waits_for_no_reader() {
    let late = |queue: u64| {
        changed(
            shaped(|shape| {
                (shape.megabits, shape.receive_window) = (25.0, 1.0);
                (shape.window, shape.in_flight, shape.congestion_window) = (64_000, 63_712, 90_000);
                (shape.queue, shape.buffers) = (Duration::from_micros(queue), (131_072, false));
            }),
            |o| counters(&mut o.receiver, &[("TcpInSegs", 10_000), ("TcpOutSegs", 4000)]),
        )
    };
    assert!(!causes(&late(200)).contains(&Cause::SlowReader));
    assert!(causes(&late(9000)).contains(&Cause::SlowReader), "it comes back late");
}

#[test]
fn data_behind_a_gap_waits_for_its_repair_and_for_no_reader() {
    let unread =
        |lost: u64| changed(small_window(0.6), |o| senders(o, |info| info.lost = Some(SegmentCount::new(lost))));
    assert!(!causes(&unread(1)).contains(&Cause::SlowReader));
    assert!(causes(&unread(0)).contains(&Cause::SlowReader));
}
