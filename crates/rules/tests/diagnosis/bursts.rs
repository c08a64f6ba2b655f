//! Bursts: of slow start, of writes that overfill a buffer and of readers, with what they cost; and limits that show only in
//! what others measured.

use super::*;

/// Transfer that loses a little, over a path whose stream below the capacity lost this share.
fn losing(below_capacity: f64, others: u64) -> TransferObservation {
    changed(
        shaped(|shape| {
            (shape.megabits, shape.in_flight, shape.congestion_window) = (25.0, 60_000, 60_000);
            shape.retransmits = 200;
        }),
        |o| {
            below(o, below_capacity);
            counters(&mut o.sender, &[("TcpExtTCPSackRecovery", 200)]);
            o.receiver.as_mut().expect("there").interface_bytes = Some((others * 31_250_000, 0));
        },
    )
}

#[test]
fn a_stream_that_meets_other_traffic_confirms_no_loss_of_the_path() {
    let is_open = |observation: &TransferObservation| {
        let found = diagnose(observation);
        let loss = found.verdicts.iter().find(|verdict| verdict.cause == Cause::Loss).expect("a verdict").clone();
        loss.advice.iter().any(|advice| advice.contains("sends a stream below the capacity"))
    };
    assert_eq!(causes(&losing(0.006, 1)), [Cause::Loss]);
    assert!(!is_open(&losing(0.006, 1)) && is_open(&losing(0.006, 3)));
}

#[test]
fn the_overshoot_of_slow_start_is_no_burst_of_the_path() {
    // 54 segments in 7 episodes: 48 of them at the end of slow start.
    let episodes = |overshoot: u64| {
        changed(losing(0.0, 1), |o| {
            path(o).with_data.capacity.as_mut().expect("there").packets_below = Some(100);
            o.sender.as_mut().expect("there").counters.clear();
            counters(&mut o.sender, &[("TcpExtTCPSackRecovery", 7)]);
            for (index, moment) in o.connections[0].sender.iter_mut().enumerate() {
                let info = &mut moment.socket.info;
                info.slow_start_threshold = (index > 1).then(|| SegmentCount::new(40));
                let first = if index > 1 { overshoot } else { 0 };
                info.retransmits = Some(SegmentCount::new(first + index as u64 / 5 * (54 - overshoot) / 7));
            }
        })
    };
    assert!(!causes(&episodes(48)).contains(&Cause::BurstyLoss));
    assert!(causes(&episodes(5)).contains(&Cause::BurstyLoss));
}

#[test]
fn losses_that_fall_into_the_repair_of_others_are_no_bursts() {
    let lossy = |episodes: u64| {
        changed(losing(0.02, 1), |o| {
            o.sender.as_mut().expect("there").counters.clear();
            counters(&mut o.sender, &[("TcpExtTCPSackRecovery", episodes)]);
        })
    };
    // 200 segments: 3.3 and 5 in an episode.
    assert_eq!(causes(&lossy(60)), [Cause::Loss]);
    assert_eq!(causes(&lossy(40))[0], Cause::BurstyLoss);
    // The idle path loses single packets, or as many in a stream below the capacity as there were losses here.
    let single = changed(lossy(40), |o| {
        let packets = path(o).with_data.packets.as_mut().expect("there");
        (packets.loss_episodes, packets.longest_loss_packets) = (Some(2), Some(1));
    });
    assert_eq!(causes(&single), [Cause::Loss]);
    let as_often = changed(lossy(40), |o| below(o, 0.002));
    assert_eq!(causes(&as_often), [Cause::Loss]);
}

#[test]
fn a_large_window_has_several_losses_by_chance() {
    // 200 segments of 21,600 in 40 episodes: five in each, of which a window of 414 segments has 3.8 by chance.
    let lossy = |in_flight: u64| {
        changed(losing(0.02, 1), |o| {
            o.sender.as_mut().expect("there").counters.clear();
            counters(&mut o.sender, &[("TcpExtTCPSackRecovery", 40)]);
            senders(o, |info| info.unacknowledged = Some(SegmentCount::new(in_flight / SEGMENT)));
        })
    };
    assert!(causes(&lossy(60_000)).contains(&Cause::BurstyLoss));
    assert!(!causes(&lossy(600_000)).contains(&Cause::BurstyLoss));
}

#[test]
fn losses_as_frequent_as_the_paths_own_are_its_own_although_a_burst_lost_more() {
    // 40 losses of five segments in 21,600; of 5,000 packets below the capacity, 3 and 7 were lost: 13 and 30 of as many.
    let lossy = |below_capacity: f64| {
        changed(losing(below_capacity, 1), |o| {
            o.sender.as_mut().expect("there").counters.clear();
            counters(&mut o.sender, &[("TcpExtTCPSackRecovery", 40)]);
            let packets = path(o).with_data.packets.as_mut().expect("there");
            (packets.loss_episodes, packets.longest_loss_packets) = (Some(2), Some(1));
        })
    };
    assert_ne!(causes(&lossy(0.0006))[0], Cause::Loss);
    assert_eq!(causes(&lossy(0.0014))[0], Cause::Loss);
}

#[test]
fn a_response_that_leaves_next_to_nothing_limits_while_the_window_grows() {
    let cut = |control: &'static str, left: u64| {
        changed(after_early_loss(40), |o| {
            o.congestion_control = Some(control.to_owned());
            senders(o, |info| info.slow_start_threshold = Some(SegmentCount::new(left)));
            below(o, 0.0);
        })
    };
    assert_eq!(causes(&cut("westwood", 7))[0], Cause::CongestionControl);
    assert_eq!(causes(&cut("westwood", 100))[0], Cause::BufferTooSmall);
    assert_eq!(causes(&cut("cubic", 7))[0], Cause::BufferTooSmall, "several losses in a row");
}

#[test]
fn writes_that_overfill_a_buffer_burst_into_a_small_queue() {
    let dropped = |loss: f64| {
        changed(
            shaped(|shape| {
                (shape.megabits, shape.buffers, shape.send_fill) = (10.0, (8192, false), 8.0);
                (shape.retransmits, shape.in_flight) = (150, 800_000);
            }),
            |o| {
                let settings = &mut o.sender.as_mut().expect("there").settings;
                settings.insert("net.ipv4.tcp_wmem".to_owned(), "4096 8192 8192".to_owned());
                below(o, loss);
            },
        )
    };
    let found = diagnose(&dropped(0.0));
    assert_eq!(found.verdicts[0].cause, Cause::SendBuffer, "{:?}", found.verdicts);
    let without = found.verdicts[0].without.expect("an estimate").expected;
    assert!(without.bits_per_second() > 200e6, "the losses end with the bursts: {without:?}");
    assert!(!causes(&dropped(0.02)).contains(&Cause::SendBuffer), "the path loses as many by itself");
}

#[test]
fn gaps_that_a_readers_bursts_cause_leave_its_acknowledgements_countable() {
    let gaps = |loss: Option<f64>| {
        changed(reading(0.4), |o| {
            counters(&mut o.receiver, &[("TcpExtTCPOFOQueue", 1000)]);
            if let Some(loss) = loss {
                below(o, loss);
            }
        })
    };
    assert!(causes(&gaps(Some(0.0))).contains(&Cause::SlowReader));
    assert!(!causes(&gaps(Some(0.02))).contains(&Cause::SlowReader), "gaps of the path");
    assert!(!causes(&gaps(None)).contains(&Cause::SlowReader), "not measured");
}

#[test]
fn a_window_of_one_segment_waits_for_its_reader_alone() {
    let single = |queue: u64| {
        shaped(|shape| {
            (shape.megabits, shape.receive_window) = (0.4, 1.0);
            (shape.window, shape.in_flight, shape.congestion_window) = (1448, 1448, 14_480);
            (shape.queue, shape.buffers) = (Duration::from_millis(queue), (8192, false));
        })
    };
    assert_eq!(causes(&single(15))[0], Cause::SlowReader);
    assert_ne!(causes(&single(1))[0], Cause::SlowReader);
    // The kernel's smallest round trip is of a smaller packet than the probes, which do not vary.
    let narrow = changed(single(15), |o| senders(o, |info| info.min_rtt = Some(Duration::from_millis(17))));
    assert_eq!(causes(&narrow)[0], Cause::SlowReader);
    assert_ne!(causes(&single(41))[0], Cause::SlowReader, "the timer of delayed acknowledgements");
}

#[test]
fn a_queue_that_paces_is_known_by_the_capacity_that_a_search_found_through_it() {
    let paced = |limit: u64| {
        changed(shaped(|shape| (shape.megabits, shape.capacity) = (93.0, 96.0)), |o| {
            let found = path(o).with_data.capacity.as_mut().expect("there");
            found.bits_per_second = 100e6 * 1500.0 / 1514.0;
            o.sender.as_mut().expect("there").queues = Some(vec![QueueEvidence {
                kind: "fq".to_owned(),
                limit: Some(QueueRateLimit { bits_per_second: limit, per_flow: true }),
                sent_bytes: 120_000_000,
                backlog_share: Some(0.1),
                ..QueueEvidence::default()
            }]);
        })
    };
    assert_eq!(causes(&paced(100_000_000))[0], Cause::SenderQueue);
    assert_ne!(causes(&paced(106_000_000))[0], Cause::SenderQueue, "another rate, and nothing waited");
}

#[test]
fn a_program_that_writes_less_than_a_policer_passes_limits_itself() {
    let policed_by = |bucket: u64, megabits: f64, limited: bool, retransmits: u64| {
        let shape = |shape: &mut TransferShape| {
            (shape.megabits, shape.capacity, shape.retransmits) = (megabits, 57.0, retransmits);
        };
        changed(shaped(shape), |o| {
            o.asked.rate = limited.then(|| BitRate::from_bits_per_second(22.1e6));
            senders(o, |info| {
                info.delivery_rate_application_limited = Some(limited);
                info.not_sent = Some(ByteCount::ZERO);
            });
            path(o).with_data.policer = Some(PolicerDetection {
                present: true,
                bits_per_second: Some(59e6),
                burst_bytes: Some(bucket),
                evidence: "none waited".to_owned(),
            });
        })
    };
    let policed = |megabits, limited, retransmits| policed_by(222_000, megabits, limited, retransmits);
    assert_ne!(causes(&policed(22.0, true, 7))[0], Cause::Policer, "the first burst alone was dropped");
    assert_eq!(causes(&policed(40.0, false, 7))[0], Cause::Policer);
    assert_ne!(causes(&policed(22.0, false, 7))[0], Cause::Policer, "far below its rate it drops single bursts");
    assert_eq!(causes(&policed_by(20_000, 22.0, false, 7))[0], Cause::Policer, "its bucket holds no window");
    assert_eq!(causes(&policed(22.0, false, 3000))[0], Cause::Policer, "it drops much of what is sent");
    assert_eq!(causes(&policed(22.0, true, 3000))[0], Cause::Policer, "it drops whatever is written");
}

#[test]
fn the_repair_of_a_few_episodes_costs_more_than_they_do() {
    let repaired = |episodes: u64| {
        changed(losing(0.0, 1), |o| {
            o.sender.as_mut().expect("there").counters.clear();
            counters(&mut o.sender, &[("TcpExtTCPRenoRecovery", episodes)]);
            senders(o, |info| info.selective_acknowledgements = Some(false));
            let again = |info: &mut TcpInfo| {
                info.retransmits = info.retransmits.map(|count| SegmentCount::new(2 * count.get()));
            };
            senders(o, again);
        })
    };
    assert_eq!(causes(&repaired(2))[0], Cause::SackOff);
    assert_eq!(causes(&repaired(200))[0], Cause::BufferTooSmall);
    // The queue holds all that the path does, 720 kB, and was filled once.
    let searched = |milliseconds: u64| {
        changed(repaired(200), |o| {
            o.connections[0].sender[1].socket.info.rtt = Some(Duration::from_millis(20 + milliseconds));
            path(o).with_data.capacity.as_mut().expect("there").queueing_ns = Some(milliseconds * 1_000_000);
        })
    };
    assert_eq!(causes(&searched(22))[0], Cause::SackOff);
    assert_eq!(causes(&searched(5))[0], Cause::BufferTooSmall);
}

#[test]
fn traffic_that_both_hosts_see_passes_the_path() {
    let with = |sent: u64| {
        changed(full(), |o| {
            o.receiver.as_mut().expect("there").interface_bytes = Some((870_000_000, 1_000_000));
            o.sender.as_mut().expect("there").interface_bytes = Some((1_000_000, sent));
        })
    };
    assert_eq!(causes(&with(900_000_000))[0], Cause::CrossTraffic);
    assert_eq!(causes(&with(370_000_000))[0], Cause::LinkRate, "the search came to the same rate: it passes elsewhere");
}
