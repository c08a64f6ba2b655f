//! Transfers of which nothing else was measured but the handshake, as by `linerate test`: no capacity is known.

use super::*;

/// The same transfer without what else was measured of its path.
fn alone(observation: TransferObservation) -> TransferObservation {
    let round_trip = observation.path.as_ref().and_then(|path| path.round_trip);
    TransferObservation { path: Some(PathEvidence { round_trip, ..PathEvidence::default() }), ..observation }
}

fn shape(change: impl FnOnce(&mut TransferShape)) -> TransferObservation {
    alone(shaped(change))
}

fn first(observation: &TransferObservation) -> (Cause, Confidence) {
    let diagnosis = diagnose(observation);
    (diagnosis.verdicts[0].cause, diagnosis.verdicts[0].confidence)
}

/// Transfer with a window of 750 kB that is full all the time, at this queueing delay.
fn at_its_window(queue: Duration, unread: f64) -> TransferObservation {
    shape(|shape| {
        (shape.megabits, shape.window, shape.in_flight) =
            (750.0 * 8.0 / (20.0 + queue.as_secs_f64() * 1e3), 750_000, 750_000);
        (shape.receive_window, shape.queue, shape.unread) = (0.9, queue, unread);
        shape.buffers = (1_200_000, true);
    })
}

#[test]
fn a_window_that_waits_in_a_queue_of_the_path_is_no_limit() {
    assert_eq!(first(&at_its_window(Duration::from_micros(500), 0.0)), (Cause::ReceiveWindow, Confidence::High));
    assert_eq!(first(&at_its_window(Duration::from_millis(8), 0.0)), (Cause::LinkRate, Confidence::Medium));
    let unread = at_its_window(Duration::from_millis(8), 0.5);
    assert_eq!(first(&unread).0, Cause::SlowReader, "it waits for the program, not on the path");
}

#[test]
fn unread_data_fills_no_path() {
    let slow = |unread: f64| {
        shape(|shape| (shape.megabits, shape.queue, shape.unread) = (40.0, Duration::from_millis(10), unread))
    };
    assert_eq!(first(&slow(0.8)).0, Cause::SlowReader);
    assert_eq!(first(&slow(0.0)).0, Cause::LinkRate);
}

#[test]
fn the_wire_of_a_host_is_a_path_that_can_be_full() {
    let on_a_wire = |megabits: f64, kind: Option<&str>| {
        let observation = shape(|shape| {
            (shape.megabits, shape.round_trip, shape.queue) = (megabits, Duration::from_micros(300), Duration::ZERO);
            shape.send_buffer = 0.9;
        });
        changed(observation, |o| {
            let speed = Some(1_000_000_000);
            let kind = kind.map(str::to_owned);
            o.sender.as_mut().expect("there").link =
                Some(LinkEvidence { speed_bits_per_second: speed, kind, ..LinkEvidence::default() });
        })
    };
    assert_eq!(first(&on_a_wire(940.0, None)), (Cause::LinkRate, Confidence::High));
    assert_eq!(first(&on_a_wire(700.0, None)).0, Cause::SendBuffer);
    assert_eq!(first(&on_a_wire(1200.0, None)).0, Cause::SendBuffer, "it was not sent over that wire");
    assert_eq!(first(&on_a_wire(940.0, Some("veth"))).0, Cause::SendBuffer, "a speed that is none");
}

#[test]
fn one_sample_at_the_end_shows_no_usual_state() {
    let ended = |samples: usize| {
        let observation = shape(|shape| (shape.megabits, shape.retransmits, shape.send_fill) = (259.0, 74, 0.9));
        changed(observation, |o| {
            let sender = &mut o.connections[0].sender;
            // The last one is taken when the program has stopped.
            sender.drain(..sender.len() - samples);
            let last = &mut sender.last_mut().expect("there").socket;
            last.info.delivery_rate_application_limited = Some(true);
            last.memory.as_mut().expect("there").send_buffer = ByteCount::new(4_194_304);
        })
    };
    for samples in [1, 2] {
        assert_eq!(first(&ended(samples)), (Cause::Unclear, Confidence::Low), "{samples}");
    }
}

#[test]
fn bbr_without_a_queue_sends_what_the_path_delivers() {
    let paced = |change: fn(&mut TransferShape)| {
        shape(|shape| {
            (shape.megabits, shape.queue, shape.control) = (275.0, Duration::from_micros(500), "bbr");
            change(shape);
        })
    };
    assert_eq!(first(&paced(|_| ())), (Cause::LinkRate, Confidence::Medium));
    assert_eq!(first(&paced(|shape| shape.control = "cubic")).0, Cause::Unclear);
    assert_ne!(first(&paced(|shape| shape.receive_window = 0.5)).0, Cause::LinkRate, "the window holds it");
    assert_ne!(first(&paced(|shape| shape.retransmits = 40_000)).0, Cause::LinkRate, "it loses too much");
}

#[test]
fn causes_of_losses_are_uncertain_while_neither_capacity_nor_own_loss_is_known() {
    let losing = shaped(|shape| {
        (shape.megabits, shape.in_flight, shape.congestion_window, shape.retransmits) = (25.0, 60_000, 60_000, 22);
    });
    let losing = changed(losing, |o| counters(&mut o.sender, &[("TcpExtTCPSackRecovery", 22)]));
    assert_eq!(first(&changed(losing.clone(), |o| below(o, 1e-3))), (Cause::Loss, Confidence::High));
    assert_eq!(first(&alone(losing)).1, Confidence::Low);
}

#[test]
fn a_round_trip_by_timestamps_is_no_queue_of_a_millisecond() {
    let short = |handshake: Option<Duration>| {
        let round_trip = Duration::from_millis(3);
        let observation = shape(|shape| {
            (shape.round_trip, shape.queue) = (round_trip, Duration::from_micros(1100));
        });
        changed(observation, |o| path(o).round_trip = handshake)
    };
    assert_ne!(first(&short(None)).0, Cause::LinkRate, "it may have been 3.9 ms");
    assert_eq!(first(&short(Some(Duration::from_micros(2990)))).0, Cause::LinkRate);
}

#[test]
fn a_program_that_keeps_its_rate_is_the_limit_whatever_queue_it_meets() {
    let asked = |rate: f64| {
        let observation = shape(|shape| (shape.megabits, shape.queue) = (90.0, Duration::from_millis(20)));
        changed(observation, |o| o.asked.rate = Some(BitRate::from_bits_per_second(rate)))
    };
    assert_eq!(first(&asked(90e6)).0, Cause::ApplicationPacing);
    assert_eq!(first(&asked(180e6)).0, Cause::LinkRate);
}

#[test]
fn bufferbloat_may_be_that_of_the_acknowledgements() {
    let bloated = shaped(|shape| (shape.megabits, shape.queue) = (280.0, Duration::from_millis(200)));
    assert_eq!(first(&bloated), (Cause::Bufferbloat, Confidence::High));
    assert_eq!(first(&alone(bloated)), (Cause::Bufferbloat, Confidence::Medium));
}

#[test]
fn probes_that_were_not_sent_arrive_in_no_order() {
    let reordered = shape(|_| ());
    let reordered = changed(reordered, |o| {
        senders(o, |info| info.reordering_seen = Some(SegmentCount::new(5000)));
    });
    let diagnosis = diagnose(&reordered);
    assert_eq!(diagnosis.verdicts[0].cause, Cause::Reordering);
    assert!(!diagnosis.verdicts[0].text.contains("probes"), "{}", diagnosis.verdicts[0].text);
}

#[test]
fn an_idle_handshake_does_not_search_the_path_mtu() {
    let stalled = shape(|_| ());
    let stalled = changed(stalled, |o| {
        senders(o, |info| {
            info.bytes_acknowledged = Some(ByteCount::new(1));
            info.backoff = Some(5);
        });
        o.received = ByteCount::ZERO;
    });
    assert_eq!(first(&stalled), (Cause::BlackHole, Confidence::Low));
}

#[test]
fn connections_that_pass_faster_in_turns_fill_the_path_together() {
    let fastest_in_turns = |turns: usize| {
        let mut several = shape(|shape| {
            (shape.megabits, shape.connections, shape.queue) = (280.0, 4, Duration::from_millis(15));
        });
        for (place, connection) in several.connections.iter_mut().enumerate() {
            for (index, moment) in connection.sender.iter_mut().enumerate() {
                let megabits = if index % turns == place % turns { 200.0 } else { 27.0 };
                moment.socket.info.delivery_rate = Some(BitRate::from_bits_per_second(megabits * 1e6));
            }
        }
        several
    };
    assert_eq!(first(&fastest_in_turns(4)), (Cause::LinkRate, Confidence::Medium));
    assert_eq!(first(&fastest_in_turns(1)).0, Cause::Unclear, "800 Mbit/s all the time");
}
