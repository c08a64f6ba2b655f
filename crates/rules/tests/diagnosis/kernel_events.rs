//! Events that kernels traced: each note has a case in which it appears and one in which it does not.

use linerate_model::far::{
    EventDelay, FullSocketQueue, KernelEvents, PacketDrops, RetransmissionTriggers, RunQueueDelay, RunQueueOccupant,
    SoftirqTime,
};

use super::*;

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// Ten seconds in which the kernel did nothing remarkable.
fn quiet() -> KernelEvents {
    let occupant = |task: &str, thread, longest_ns| RunQueueOccupant {
        task: task.to_owned(),
        process: None,
        thread,
        is_own: Some(false),
        processor: 1,
        waits: 10,
        total_ns: 10 * longest_ns,
        longest_ns,
    };
    KernelEvents {
        traced_ns: 10 * SECOND,
        run_queue: Some(RunQueueDelay {
            delay: EventDelay {
                count: 1000,
                total_ns: SECOND / 10,
                longest_ns: MILLISECOND,
                histogram: vec![900, 100],
            },
            thread_total_ns: Some(SECOND / 20),
            occupants: vec![occupant("swapper/1", 0, 20 * MILLISECOND), occupant("rt-spinner", 77, MILLISECOND)],
        }),
        softirqs: Some(vec![SoftirqTime {
            processor: 3,
            vector: "NET_RX".to_owned(),
            time_ns: SECOND,
            interrupted_ns: Some(0),
            runs: 5000,
            interrupt: Some("eth0-rx-0".to_owned()),
        }]),
        drops: Some(vec![drop("QDISC_DROP", 9), drop("NO_SOCKET", 5000), drop("SOMETHING_NEW", 5000)]),
        full_sockets: Some(vec![FullSocketQueue { port: Some(5004), packets: 9 }]),
        qdisc: Some(EventDelay {
            count: 100,
            total_ns: 100 * MILLISECOND,
            longest_ns: 9 * MILLISECOND,
            histogram: vec![],
        }),
        retransmissions: Some(RetransmissionTriggers { by_timer: 9, by_acknowledgement: 100 }),
        ..KernelEvents::default()
    }
}

fn drop(reason: &str, packets: u64) -> PacketDrops {
    PacketDrops { reason: reason.to_owned(), location: Some("tbf_enqueue".to_owned()), packets }
}

/// Notes of a transfer whose sender has these events.
fn notes(change: impl FnOnce(&mut KernelEvents)) -> Vec<String> {
    let mut events = quiet();
    change(&mut events);
    let observation = changed(shaped(|_| ()), |o| {
        o.sender.as_mut().expect("there").kernel_events = Some(events);
    });
    diagnose(&observation).notes
}

#[test]
fn a_quiet_host_and_unknown_events_have_no_note() {
    assert_eq!(notes(|_| ()), Vec::<String>::new());
    assert_eq!(notes(|events| *events = KernelEvents::default()), Vec::<String>::new());
    let refused = |events: &mut KernelEvents| {
        events.run_queue.as_mut().expect("there").delay.longest_ns = SECOND;
        events.unavailable = Some("tracing needs root".to_owned());
    };
    assert_eq!(notes(refused), Vec::<String>::new());
}

#[test]
fn a_late_host_has_its_processor_and_the_task_named() {
    let late = notes(|events| {
        let run_queue = events.run_queue.as_mut().expect("there");
        run_queue.delay = EventDelay { longest_ns: 5 * MILLISECOND, total_ns: 2 * SECOND, ..run_queue.delay.clone() };
        run_queue.occupants[1].longest_ns = 5 * MILLISECOND;
    });
    assert_eq!(
        late,
        [
            "The sending host is late: threads of the transfer waited up to 5.00 ms for a processor, 2.00 s in all, longest \
            on processor 1 behind rt-spinner."
        ]
    );
}

#[test]
fn a_processor_full_of_one_software_interrupt_is_named_with_its_device() {
    let busy = notes(|events| events.softirqs.as_mut().expect("there")[0].time_ns = 8 * SECOND);
    assert_eq!(
        busy,
        ["Processor 3 of the sending host spent 80 % of the time in the software interrupt NET_RX (device interrupt \
            eth0-rx-0)."]
    );
}

#[test]
fn full_queues_and_sockets_are_named_with_their_drops() {
    let dropped = notes(|events| events.drops.as_mut().expect("there")[0].packets = 20);
    assert_eq!(
        dropped,
        [
            "The sending host dropped 20 packets at full queues, of this transfer or of other programs (QDISC_DROP: 20 in \
            tbf_enqueue)."
        ]
    );
    let full = notes(|events| events.full_sockets.as_mut().expect("there")[0].packets = 1000);
    assert!(
        full.len() == 1 && full[0].contains("the UDP socket on port 5004 of the sending host was full: 1000"),
        "{full:?}"
    );
    let unnamed = notes(|events| events.full_sockets = Some(vec![FullSocketQueue { port: None, packets: 1000 }]));
    assert!(unnamed[0].contains("The receive queue of a socket of the sending host"), "{unnamed:?}");
}

#[test]
fn long_queues_and_timers_have_their_note() {
    let slow = notes(|events| events.qdisc.as_mut().expect("there").total_ns = 600 * MILLISECOND);
    assert_eq!(
        slow,
        ["Packets waited in the queueing discipline of the sending host for 6.00 ms on average and 9.00 ms at most."]
    );
    let timers = notes(|events| {
        events.retransmissions = Some(RetransmissionTriggers { by_timer: 30, by_acknowledgement: 10 });
    });
    assert!(
        timers.len() == 1
            && timers[0]
                .starts_with("Timers (timeouts, or probes for lost tails) triggered 75 % of the 40 retransmissions"),
        "{timers:?}"
    );
}

#[test]
fn names_of_a_far_end_are_printed_without_control_characters() {
    let notes = notes(|events| {
        let run_queue = events.run_queue.as_mut().expect("there");
        (run_queue.delay.longest_ns, run_queue.occupants[1].task) = (SECOND, "\u{1b}[2J`x`\n".to_owned());
        events.drops = Some(vec![PacketDrops {
            reason: "QDISC_DROP".to_owned(),
            location: Some("\u{202e}\u{7}name".to_owned()),
            packets: u64::MAX,
        }]);
    });
    let all = notes.join(" ");
    assert!(notes.len() == 2 && all.chars().all(|one| !one.is_control() && one != '\u{202e}' && one != '`'), "{all:?}");
}

/// Events of a host whose thread waited this share of the time, most of it behind this task on processor 1.
fn late(share: f64, task: &str, thread: u32, is_own: bool) -> KernelEvents {
    let mut events = quiet();
    let total_ns = Duration::from_secs(10).mul_f64(share).as_nanos().try_into().expect("seconds");
    let run_queue = events.run_queue.as_mut().expect("there");
    run_queue.delay = EventDelay { count: 500, total_ns, longest_ns: 8 * MILLISECOND, histogram: vec![] };
    run_queue.thread_total_ns = Some(total_ns);
    let occupant = RunQueueOccupant {
        task: task.to_owned(),
        thread,
        is_own: Some(is_own),
        processor: 1,
        waits: 400,
        ..RunQueueOccupant::default()
    };
    run_queue.occupants =
        vec![RunQueueOccupant { total_ns: total_ns / 10 * 8, longest_ns: 8 * MILLISECOND, ..occupant }];
    events
}

/// Sender of 40 Mbit/s on a path of 100 whose thread ran and waited for these shares, with these events.
fn late_sender(ran: f64, waited: f64, others: f64, events: Option<KernelEvents>) -> TransferObservation {
    changed(shaped(|shape| (shape.idle, shape.megabits) = (0.3, 40.0)), |o| {
        hosts::sending_thread(o, ran, waited, others);
        o.sender.as_mut().expect("there").kernel_events = events;
    })
}

#[test]
fn a_late_host_is_the_cause_with_its_processor_task_and_gain() {
    let observation = late_sender(0.5, 0.5, 0.3, Some(late(0.5, "rt-spinner", 77, false)));
    let diagnosis = diagnose(&observation);
    let first = &diagnosis.verdicts[0];
    assert_eq!((first.cause, first.confidence), (Cause::HostBusy, Confidence::High), "{diagnosis:?}");
    assert_eq!(
        first.text,
        "The sending host is late: this transfer waited 50.0 % of the time for a processor, 80 % of it behind rt-spinner on \
        processor 1, up to 8.00 ms."
    );
    // A thread that waits half of the time does twice as much without.
    let gain = first.without.expect("estimated").expected.bits_per_second() / diagnosis.goodput.bits_per_second();
    assert!((1.8..2.05).contains(&gain), "{gain}");
    assert_eq!(first.share.map(Ratio::get), Some(0.5));
    assert!(diagnosis.notes.iter().all(|note| !note.contains("is late")), "{:?}", diagnosis.notes);
    // Without events the load of the host names no task.
    let first = diagnose(&late_sender(0.5, 0.5, 0.3, None)).verdicts.swap_remove(0);
    assert!(first.cause == Cause::HostBusy && first.text.starts_with("The sending host is busy"), "{first:?}");
}

#[test]
fn of_a_senders_idle_time_its_waits_are_not_the_programs() {
    let idle = |share| {
        changed(late_sender(0.1, 0.5, 0.3, Some(late(0.5, "rt-spinner", 77, false))), |o| {
            let waits = shaped(|shape| (shape.idle, shape.megabits) = (share, 40.0));
            o.connections[0].sender = waits.connections[0].sender.clone();
        })
    };
    let share = |share: f64| {
        let diagnosis = diagnose(&idle(share));
        let program = diagnosis.verdicts.iter().find(|one| one.cause == Cause::Application).expect("idle");
        (diagnosis.verdicts[0].cause, program.share.map_or(0.0, Ratio::get))
    };
    // Nearly all of it; a tenth and a half beyond.
    assert_eq!(share(0.55), (Cause::HostBusy, 0.5));
    let (first, program) = share(0.65);
    assert!(first == Cause::HostBusy && (0.1..0.2).contains(&program), "{program}");
}

#[test]
fn waits_behind_several_programs_name_the_first_two() {
    let mut events = late(0.5, "worker", 77, false);
    let rows = &mut events.run_queue.as_mut().expect("there").occupants;
    let (whole, row) = (5 * SECOND, rows.swap_remove(0));
    let part = |task: &str, process: Option<&str>, processor, percent: u64| RunQueueOccupant {
        task: task.to_owned(),
        process: process.map(str::to_owned),
        processor,
        total_ns: whole / 100 * percent,
        ..row.clone()
    };
    rows.extend([
        part("sh", None, 0, 25),
        part("worker", Some("backup"), 1, 30),
        part("worker", Some("backup"), 0, 15),
    ]);
    let text = diagnose(&late_sender(0.5, 0.5, 0.3, Some(events))).verdicts.swap_remove(0).text;
    let named = "for a processor, 45 % of it behind worker of backup on processor 1, up to 8.00 ms, 25 % of it behind sh on \
        processor 0, up to 8.00 ms.";
    assert!(text.ends_with(named), "{text}");
}

#[test]
fn one_task_on_one_of_many_processors_is_no_load_of_the_transfer_itself() {
    let cause = |events| diagnose(&late_sender(0.5, 0.5, 0.02, events)).verdicts.swap_remove(0).cause;
    assert_eq!(cause(None), Cause::SenderProcessor);
    assert_eq!(cause(Some(late(0.5, "rt-spinner", 77, false))), Cause::HostBusy);
    assert_eq!(cause(Some(late(0.5, "stream", 78, true))), Cause::SenderProcessor);
    // An idle processor that wakes up late is no load.
    assert_eq!(cause(Some(late(0.5, "swapper/1", 0, false))), Cause::SenderProcessor);
}

#[test]
fn a_process_whose_waits_only_the_events_know_is_late_too() {
    let observation = |events| {
        changed(late_sender(0.0, 0.0, 0.0, events), |o| {
            (o.connections[0].sender_processor, o.connections[0].sender_wait) = (None, None);
        })
    };
    let first = |events| diagnose(&observation(events)).verdicts.swap_remove(0).cause;
    assert_eq!(first(Some(late(0.6, "rt-spinner", 77, false))), Cause::HostBusy);
    assert_ne!(first(None), Cause::HostBusy);
}

/// Events of a late host change no verdict where its lateness costs nothing.
#[test]
fn lateness_that_costs_nothing_is_no_cause() {
    let same = |change: &dyn Fn(&mut TransferObservation), events: &KernelEvents| {
        let verdicts = |events: Option<KernelEvents>| {
            let observation = changed(shaped(|_| ()), |o| {
                change(o);
                o.sender.as_mut().expect("there").kernel_events = events.clone();
                o.receiver.as_mut().expect("there").kernel_events = events;
            });
            diagnose(&observation).verdicts
        };
        let (with, without) = (verdicts(Some(events.clone())), verdicts(None));
        assert_eq!(with, without);
    };
    // A quiet host, and one that is late while its thread sleeps or the path is full.
    same(&|_| (), &quiet());
    same(&|o| hosts::sending_thread(o, 0.02, 0.05, 0.9), &late(0.05, "rt-spinner", 77, false));
    let full = changed(shaped(|shape| shape.queue = Duration::from_millis(20)), |o| {
        hosts::sending_thread(o, 0.1, 0.4, 0.9);
        o.sender.as_mut().expect("there").kernel_events = Some(late(0.4, "rt-spinner", 77, false));
    });
    assert!(diagnose(&full).verdicts.iter().all(|verdict| verdict.cause != Cause::HostBusy));
    // A program that keeps the rate it was asked for.
    let paced = changed(late_sender(0.1, 0.3, 0.3, Some(late(0.3, "rt-spinner", 77, false))), |o| {
        o.asked.rate = Some(TransferEvidence::from_observation(o).steady);
    });
    assert!(diagnose(&paced).verdicts.iter().all(|verdict| verdict.cause != Cause::HostBusy));
}

#[test]
fn a_software_interrupt_on_the_processor_of_a_late_thread_is_named_with_both_readings() {
    let mut events = late(0.5, "ksoftirqd/1", 17, false);
    let softirq = |time_ns, interrupted_ns| SoftirqTime {
        processor: 1,
        vector: "NET_RX".to_owned(),
        time_ns,
        interrupted_ns: Some(interrupted_ns),
        runs: 5000,
        interrupt: Some("eth0-rx-0".to_owned()),
    };
    events.softirqs = Some(vec![softirq(6 * SECOND, SECOND)]);
    let text = diagnose(&late_sender(0.5, 0.5, 0.3, Some(events.clone()))).verdicts.swap_remove(0).text;
    let named = "behind ksoftirqd/1 on processor 1, up to 8.00 ms; processor 1 spent 60 % of the time in the software \
        interrupt NET_RX (device interrupt eth0-rx-0), for packets of this transfer or of others.";
    assert!(text.ends_with(named), "{text}");
    // Interrupts count as time of the thread that they interrupt.
    events.softirqs = Some(vec![softirq(6 * SECOND, 4 * SECOND)]);
    let first = diagnose(&late_sender(0.99, 0.0, 0.0, Some(events))).verdicts.swap_remove(0);
    assert_eq!(first.cause, Cause::SenderProcessor);
    let named = "its thread used 99.0 % of one; 40 % of the time the software interrupt NET_RX (device interrupt eth0-rx-0) on \
        processor 1 interrupted it, for packets of this transfer or of others.";
    assert!(first.text.ends_with(named), "{}", first.text);
}

#[test]
fn the_verdict_of_a_busy_host_has_the_longest_wait() {
    let first = diagnose(&late_sender(0.3, 0.4, 0.7, Some(late(0.4, "rt-spinner", 77, false)))).verdicts.swap_remove(0);
    assert_eq!(first.cause, Cause::HostBusy);
    let figure = "longest wait for a processor: 8.00 ms, on processor 1 behind rt-spinner";
    assert!(first.evidence.iter().any(|line| line == figure), "{:?}", first.evidence);
}
