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
        thread,
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
            occupants: vec![occupant("swapper/1", 0, 20 * MILLISECOND), occupant("rt-spinner", 77, MILLISECOND)],
        }),
        softirqs: Some(vec![SoftirqTime {
            processor: 3,
            vector: "NET_RX".to_owned(),
            time_ns: SECOND,
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
        ["Processor 3 of the sending host spent 80 % of the time in the software interrupt NET_RX; its interrupt is \
            eth0-rx-0."]
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

#[test]
fn the_verdict_of_a_busy_host_has_the_longest_wait() {
    let observation = changed(shaped(|shape| shape.idle = 0.3), |o| {
        hosts::sending_thread(o, 0.3, 0.4, 0.7);
        o.sender.as_mut().expect("there").kernel_events = Some(quiet());
    });
    let first = diagnose(&observation).verdicts.swap_remove(0);
    assert_eq!(first.cause, Cause::HostBusy);
    let figure = "longest wait for a processor: 1.00 ms, on processor 1 behind rt-spinner";
    assert!(first.evidence.iter().any(|line| line == figure), "{:?}", first.evidence);
}
