//! Paths that carry nothing for a time, or until the end.

use linerate_model::diagnosis::SenderState;
use linerate_model::report::Outcome;

use super::*;

#[test]
fn a_path_that_stops_again_at_the_end_was_interrupted() {
    let stopped = |first: usize| {
        changed(shaped(|shape| shape.in_flight = 60_000), |o| {
            // Nothing is acknowledged for this many samples, and for the last three seconds.
            let samples = &mut o.connections[0].sender;
            for (from, to) in [(10, 10 + first), (28, samples.len() - 1)] {
                let before = samples[from].socket.info.bytes_acknowledged;
                samples[from + 1..=to].iter_mut().for_each(|one| one.socket.info.bytes_acknowledged = before);
            }
            samples.last_mut().expect("samples").socket.info.backoff = Some(3);
        })
    };
    let first = diagnose(&stopped(8)).verdicts.swap_remove(0);
    assert_eq!(first.cause, Cause::Outage);
    assert!(first.text.contains("went on in between"), "{}", first.text);
    assert!(!causes(&stopped(0)).contains(&Cause::Outage), "it never went on");
    let failed = changed(stopped(8), |o| o.outcome = Some(Outcome::Failed));
    assert_eq!(causes(&failed), [Cause::PathDead], "it went on, but not at last");
}

/// Transfer of ten seconds in which nothing is acknowledged from these samples' first to their last.
fn stopped(shape: impl FnOnce(&mut TransferShape), samples: core::ops::Range<usize>) -> TransferObservation {
    changed(shaped(shape), |o| {
        let moments = &mut o.connections[0].sender;
        let before = moments[samples.start - 1].socket.info.bytes_acknowledged;
        moments[samples].iter_mut().for_each(|one| one.socket.info.bytes_acknowledged = before);
    })
}

fn time_in(observation: &TransferObservation, state: SenderState) -> f64 {
    let states = diagnose(observation).states;
    states.iter().find(|one| one.state == state).map_or(0.0, |one| one.share.get())
}

/// Share of the transfer that the text of an outage names, in percent.
fn outage_percent(observation: &TransferObservation) -> f64 {
    let found = diagnose(observation).verdicts.into_iter().find(|one| one.cause == Cause::Outage).expect("an outage");
    let (_, share) = found.text.split_once('(').expect("a share");
    share.split_once(" %").expect("percent").0.parse().expect("a number")
}

#[test]
fn an_outage_counts_whatever_limit_the_last_send_met() {
    let limited = |receive_window: f64, send_buffer: f64| {
        stopped(
            |shape| {
                (shape.receive_window, shape.send_buffer) = (receive_window, send_buffer);
                shape.in_flight = 60_000;
            },
            11..23,
        )
    };
    for observation in [limited(0.0, 0.0), limited(1.0, 0.0), limited(0.0, 1.0)] {
        let percent = outage_percent(&observation);
        assert!((30.0..32.0).contains(&percent), "3 s of 10 s: {percent}");
        let stalled = time_in(&observation, SenderState::Stalled);
        assert!((0.30..0.32).contains(&stalled), "{stalled}");
        let sum: f64 = diagnose(&observation).states.iter().map(|one| one.share.get()).sum();
        assert!((sum - 1.0).abs() < 1e-3, "{sum}");
    }
    let window = time_in(&limited(1.0, 0.0), SenderState::ReceiveWindow);
    assert!((0.68..0.70).contains(&window), "the window limits the rest: {window}");
}

#[test]
fn the_share_of_an_outage_agrees_with_its_stall() {
    let of_one =
        |connections: usize| stopped(|shape| (shape.connections, shape.in_flight) = (connections, 60_000), 11..23);
    assert!(outage_percent(&of_one(1)) >= 30.0);
    assert!(outage_percent(&of_one(4)) >= 30.0, "the others went on");
    let old_kernel = changed(of_one(1), |o| senders(o, |info| info.busy_time = None));
    assert!((outage_percent(&old_kernel) - 30.0).abs() < 1.0, "{}", outage_percent(&old_kernel));
}

#[test]
fn data_beyond_a_closed_window_is_no_outage() {
    let closed = |window: u64| {
        changed(stopped(|shape| (shape.receive_window, shape.in_flight) = (1.0, 60_000), 11..23), |o| {
            for moment in &mut o.connections[0].sender[11..23] {
                moment.socket.info.send_window = Some(ByteCount::new(window));
            }
        })
    };
    assert!(causes(&closed(64_000)).contains(&Cause::Outage));
    assert!(!causes(&closed(0)).contains(&Cause::Outage));
    assert!(time_in(&closed(0), SenderState::Stalled) < 0.01);
    assert!(time_in(&closed(0), SenderState::ReceiveWindow) > 0.99);
}

/// Transfer of ten seconds in which nothing is acknowledged from these samples' first to the last, and that ends so.
fn dead(
    shape: impl FnOnce(&mut TransferShape),
    samples: core::ops::Range<usize>,
    outcome: Outcome,
) -> TransferObservation {
    changed(stopped(shape, samples.clone()), |o| {
        o.outcome = Some(outcome);
        let last = &mut o.connections[0].sender[samples.end - 1].socket.info;
        last.backoff = Some(3);
        // The receiving host could not report.
        (o.receiver, o.path) = (None, None);
        o.connections[0].receiver.truncate(samples.start);
    })
}

/// Transfers that died after five seconds, under the limits of hosts that their last send met.
fn dead_transfers(outcome: Outcome) -> Vec<TransferObservation> {
    let window = |shape: &mut TransferShape| {
        shape.receive_window = 0.97;
        (shape.window, shape.in_flight, shape.congestion_window) = (446_000, 445_000, 900_000);
    };
    let buffer = |shape: &mut TransferShape| {
        (shape.send_buffer, shape.send_fill, shape.buffers) = (0.9, 0.9, (4_194_304, true));
    };
    let idle = |shape: &mut TransferShape| (shape.idle, shape.in_flight) = (0.3, 60_000);
    vec![
        dead(|shape| shape.in_flight = 60_000, 20..40, outcome),
        dead(window, 20..40, outcome),
        dead(buffer, 20..40, outcome),
        dead(idle, 20..40, outcome),
    ]
}

#[test]
fn a_path_that_died_is_the_only_cause() {
    for outcome in [Outcome::Failed, Outcome::Interrupted] {
        for observation in dead_transfers(outcome) {
            let diagnosis = diagnose(&observation);
            assert_eq!(causes(&observation), [Cause::PathDead]);
            let first = &diagnosis.verdicts[0];
            assert_eq!(first.text, "Nothing arrived for the last 5.00 s: the path or the far host is gone.");
            assert_eq!((first.confidence, first.tune, first.without), (Confidence::Medium, None, None));
            let share = first.share.expect("a share").get();
            assert!((share - 0.5).abs() < 0.01, "{share}");
            let advice = first.advice.join("; ");
            assert!(!advice.contains("tune") && !advice.contains("net."), "{advice}");
            assert_eq!(diagnosis.next, None);
        }
    }
    // Over a path that is known as well.
    let known = changed(dead(|_| (), 35..40, Outcome::Failed), |o| o.path = full().path);
    let diagnosis = diagnose(&known);
    assert_eq!((causes(&known), diagnosis.next.clone()), (vec![Cause::PathDead], None));
    assert!(diagnosis.verdicts[0].text.ends_with("is gone."), "{}", diagnosis.verdicts[0].text);
}

#[test]
fn a_path_without_enough_retransmissions_is_dead_only_where_the_test_failed() {
    let at_last = |outcome: Option<Outcome>, backoff: u8| {
        changed(dead(|shape| shape.in_flight = 60_000, 35..40, Outcome::Failed), |o| {
            o.outcome = outcome;
            o.connections[0].sender[39].socket.info.backoff = Some(backoff);
        })
    };
    let is_dead = |observation: &TransferObservation| causes(observation).contains(&Cause::PathDead);
    assert!(is_dead(&at_last(Some(Outcome::Failed), 2)));
    assert!(!is_dead(&at_last(None, 2)), "a connection that is watched may go on");
    assert!(is_dead(&at_last(None, 3)));
}

#[test]
fn a_transfer_that_goes_on_or_waits_for_a_host_is_not_dead() {
    let one = |outcome: Outcome| dead(|shape| shape.in_flight = 60_000, 30..40, outcome);
    let is_dead = |observation: &TransferObservation| causes(observation).contains(&Cause::PathDead);
    assert!(is_dead(&one(Outcome::Failed)));
    let complete = one(Outcome::Complete);
    assert!(!is_dead(&complete));
    let text = diagnose(&complete).verdicts.swap_remove(0).text;
    assert!(text.contains("26 % of the transfer") && text.contains("was completed afterwards"), "{text}");
    let last = |change: fn(&mut TcpInfo)| {
        changed(one(Outcome::Failed), |o| {
            o.connections[0].sender[30..].iter_mut().for_each(|moment| change(&mut moment.socket.info));
        })
    };
    assert!(!is_dead(&last(|info| info.send_window = Some(ByteCount::ZERO))), "the receiver closed its window");
    assert!(!is_dead(&last(|info| info.unacknowledged = Some(SegmentCount::ZERO))), "the sender has no data");
    let another = changed(one(Outcome::Failed), |o| {
        let other = shaped(|shape| shape.in_flight = 60_000).connections.swap_remove(0);
        o.connections.push(other);
    });
    assert!(!is_dead(&another), "another connection goes on");
    let short = dead(|shape| shape.in_flight = 60_000, 37..40, Outcome::Failed);
    assert!(!is_dead(&short), "750 ms are a loss");
    let vanish = changed(one(Outcome::Failed), |o| {
        o.path = full().path;
        path(o).with_data.mtu.as_mut().expect("there").black_hole_bytes = Some(1401);
    });
    assert!(!is_dead(&vanish), "only large packets vanish");
    let finished = changed(shaped(|shape| shape.in_flight = 60_000), |o| {
        o.asked.bytes = Some(o.received);
        o.outcome = Some(Outcome::Complete);
        // All was acknowledged after half of the time that was allowed.
        for moment in &mut o.connections[0].sender[20..] {
            let info = &mut moment.socket.info;
            (info.bytes_acknowledged, info.unacknowledged) = (Some(ByteCount::new(1)), Some(SegmentCount::ZERO));
        }
    });
    assert!(!is_dead(&finished));
}

/// Download whose receiver gets nothing after this sample, and whose sender's reports end at the same time.
fn dead_download(arrived: usize, outcome: Outcome) -> TransferObservation {
    changed(shaped(|shape| (shape.idle, shape.in_flight) = (0.33, 60_000)), |o| {
        (o.asked.from_far, o.outcome, o.sender, o.path) = (true, Some(outcome), None, None);
        let connection = &mut o.connections[0];
        connection.sender.truncate(arrived);
        connection.receiver[arrived..].iter_mut().for_each(|moment| moment.bytes = ByteCount::ZERO);
    })
}

#[test]
fn a_download_that_ends_in_silence_has_a_dead_path() {
    let download = dead_download(20, Outcome::Failed);
    let diagnosis = diagnose(&download);
    assert_eq!(causes(&download), [Cause::PathDead]);
    let first = &diagnosis.verdicts[0];
    assert_eq!(first.text, "Nothing arrived for the last 5.00 s: the path or the far host is gone.");
    assert_eq!((first.share.map(Ratio::get), first.tune, diagnosis.next.clone()), (Some(0.5), None, None));
    let unseen = changed(dead_download(20, Outcome::Failed), |o| o.connections[0].sender.clear());
    assert_eq!(causes(&unseen), [Cause::PathDead], "reports of the sender come at the end only");
}

#[test]
fn a_download_that_failed_has_no_limit_of_a_host() {
    let only = |observation: &TransferObservation| {
        let diagnosis = diagnose(observation);
        assert_eq!(causes(observation), [Cause::NotEnoughData], "{diagnosis:#?}");
        assert_eq!((diagnosis.next.clone(), diagnosis.verdicts[0].tune), (None, None));
        diagnosis.verdicts[0].text.clone()
    };
    let crashed = only(&dead_download(40, Outcome::Failed));
    assert_eq!(
        crashed,
        "The test failed after 10.0 s, and the sender's last reports are missing, so its limit is unknown."
    );
    // The path still carries the sender's reports.
    let reported = changed(dead_download(20, Outcome::Failed), |o| {
        o.connections[0].sender = shaped(|shape| shape.idle = 0.5).connections.swap_remove(0).sender;
    });
    only(&reported);
    let unread = changed(dead_download(20, Outcome::Failed), |o| {
        let memory = o.connections[0].receiver[39].socket.memory.as_mut().expect("there");
        memory.receive_allocated = memory.receive_buffer;
    });
    only(&unread);
    assert_eq!(causes(&dead_download(40, Outcome::Complete))[0], Cause::Application, "a download that did not fail");
}
