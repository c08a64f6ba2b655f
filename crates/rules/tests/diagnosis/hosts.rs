//! Causes in the hosts: processors, queues, links and buffers.

use super::*;

/// Load of four processors.
fn load(others: f64, interrupts: [f64; 2]) -> ProcessorLoad {
    ProcessorLoad {
        processors: 4,
        others: Some(others),
        interrupts: interrupts[0] / 4.0,
        most_interrupted: Some(InterruptedProcessor {
            number: 2,
            interrupts: interrupts[0],
            busy: interrupts[0] + 0.05,
        }),
        interrupts_elsewhere: Some(interrupts[1]),
        ..ProcessorLoad::default()
    }
}

fn sender(observation: &mut TransferObservation) -> &mut HostEvidence {
    observation.sender.as_mut().expect("there")
}

fn receiver(observation: &mut TransferObservation) -> &mut HostEvidence {
    observation.receiver.as_mut().expect("there")
}

/// Share of its time that the thread of an end ran and waited, and the load of that host by others.
pub(crate) fn sending_thread(observation: &mut TransferObservation, ran: f64, waited: f64, others: f64) {
    let connection = &mut observation.connections[0];
    (connection.sender_processor, connection.sender_wait) = (Ratio::new(ran), Ratio::new(waited));
    sender(observation).processors = Some(load(others, [0.02, 0.01]));
    sender(observation).busy = Some(0.99);
}

/// A shaper that passed the transfer.
fn shaper(kind: &str, megabits: f64, backlog_share: f64) -> QueueEvidence {
    QueueEvidence {
        kind: kind.to_owned(),
        handle: "1:".to_owned(),
        limit: Some(QueueRateLimit { bits_per_second: bytes(megabits * 1e6).get(), per_flow: kind == "fq" }),
        sent_bytes: 117_000_000,
        backlog_share: Some(backlog_share),
        peak_backlog_bytes: 60_000,
        ..QueueEvidence::default()
    }
}

fn gigabit_link() -> LinkEvidence {
    LinkEvidence {
        interface: "eth0".to_owned(),
        speed_bits_per_second: Some(1_000_000_000),
        max_speed_bits_per_second: Some(1_000_000_000),
        is_half_duplex: Some(false),
        mtu_bytes: Some(1500),
        offloads: ["tx-tcp-segmentation", "tx-generic-segmentation", "rx-gro", "rx-checksum"]
            .map(|name| (name.to_owned(), true))
            .into(),
        ..LinkEvidence::default()
    }
}

/// The same at 100 Mbit/s.
fn slow_link() -> LinkEvidence {
    LinkEvidence { speed_bits_per_second: Some(100_000_000), ..gigabit_link() }
}

/// Observations of hosts with the expected cause of the first verdict.
pub(crate) fn host_cases() -> Vec<(Cause, TransferObservation)> {
    let window_limited =
        |size| shaped(move |shape| (shape.megabits, shape.buffers, shape.receive_window) = (30.0, (size, false), 0.8));
    vec![
        // Of 90 Mbit/s of goodput, 94.2 pass.
        (Cause::SenderQueue, changed(shaped(|_| ()), |o| sender(o).queues = Some(vec![shaper("tbf", 94.2, 0.9)]))),
        // The capacity was measured through the same limit.
        (
            Cause::SenderQueue,
            changed(TransferShape { megabits: 90.0, capacity: 91.0, ..TransferShape::default() }.observation(), |o| {
                sender(o).queues = Some(vec![shaper("htb", 94.2, 0.9)]);
            }),
        ),
        (Cause::HostBusy, changed(shaped(|shape| shape.idle = 0.3), |o| sending_thread(o, 0.3, 0.4, 0.7))),
        (
            Cause::HostBusy,
            changed(shaped(|shape| (shape.unread, shape.receive_window) = (0.6, 0.9)), |o| {
                o.connections[0].receiver_wait = Ratio::new(0.5);
                receiver(o).processors = Some(load(0.8, [0.02, 0.01]));
            }),
        ),
        // Others take a little of the processor that the sending thread needs.
        (Cause::SenderProcessor, changed(shaped(|shape| shape.idle = 0.2), |o| sending_thread(o, 0.86, 0.12, 0.3))),
        // Eight threads of the transfer share four processors.
        (Cause::SenderProcessor, changed(shaped(|_| ()), |o| sending_thread(o, 0.5, 0.49, 0.02))),
        (
            Cause::InterruptsOnOneCore,
            changed(shaped(|_| ()), |o| receiver(o).processors = Some(load(0.0, [0.98, 0.1]))),
        ),
        (
            Cause::OffloadOff,
            changed(shaped(|_| ()), |o| {
                sending_thread(o, 0.99, 0.0, 0.0);
                let mut link = gigabit_link();
                link.offloads.insert("tx-generic-segmentation".to_owned(), false);
                sender(o).link = Some(link);
            }),
        ),
        (Cause::LinkNegotiation, changed(shaped(|_| ()), |o| receiver(o).link = Some(slow_link()))),
        (
            Cause::LinkNegotiation,
            changed(shaped(|shape| shape.megabits = 40.0), |o| {
                sender(o).link = Some(LinkEvidence { is_half_duplex: Some(true), ..slow_link() });
            }),
        ),
        (
            Cause::TunnelOverhead,
            changed(shaped(|_| ()), |o| {
                sender(o).link = Some(LinkEvidence { kind: Some("vxlan".to_owned()), ..gigabit_link() });
                counters(&mut o.sender, &[("IpFragOKs", 70_000)]);
            }),
        ),
        (
            Cause::AutotuningOff,
            changed(window_limited(131_072), |o| {
                receiver(o).settings.insert("net.ipv4.tcp_moderate_rcvbuf".to_owned(), "0".to_owned());
            }),
        ),
        (
            Cause::SocketBuffer,
            changed(window_limited(131_072), |o| {
                receiver(o).settings.insert("net.ipv4.tcp_moderate_rcvbuf".to_owned(), "0".to_owned());
                o.asked.buffer = Some(ByteCount::new(65_536));
            }),
        ),
    ]
}

fn causes(observation: &TransferObservation) -> Vec<Cause> {
    diagnose(observation).verdicts.iter().map(|verdict| verdict.cause).collect()
}

#[test]
fn host_causes_need_their_evidence() {
    let with = |change: fn(&mut TransferObservation)| changed(shaped(|_| ()), change);
    for (absent, observation) in vec![
        // Nothing waits in the shaper; it has another rate; it passed another transfer.
        (Cause::SenderQueue, with(|o| sender(o).queues = Some(vec![shaper("tbf", 94.2, 0.0)]))),
        (Cause::SenderQueue, with(|o| sender(o).queues = Some(vec![shaper("tbf", 300.0, 0.9)]))),
        (
            Cause::SenderQueue,
            with(|o| {
                let little = QueueEvidence { sent_bytes: 1_000_000, ..shaper("tbf", 94.2, 0.9) };
                sender(o).queues = Some(vec![little]);
            }),
        ),
        // The receiver's own shaper passes acknowledgements only.
        (Cause::SenderQueue, with(|o| receiver(o).queues = Some(vec![shaper("tbf", 94.2, 0.9)]))),
        // Others keep the host busy, and the thread sleeps.
        (Cause::HostBusy, with(|o| sending_thread(o, 0.02, 0.05, 0.9))),
        (Cause::SenderProcessor, with(|o| sending_thread(o, 0.02, 0.05, 0.9))),
        // The thread waits at times, and the path's queue is never empty.
        (
            Cause::HostBusy,
            changed(shaped(|shape| shape.queue = Duration::from_millis(20)), |o| sending_thread(o, 0.1, 0.4, 0.9)),
        ),
        // All processors handle packets.
        (Cause::InterruptsOnOneCore, with(|o| receiver(o).processors = Some(load(0.0, [0.9, 0.8])))),
        // Offloads are off, and no processor is saturated; or they are on.
        (
            Cause::OffloadOff,
            with(|o| {
                let mut link = gigabit_link();
                link.offloads.insert("tx-generic-segmentation".to_owned(), false);
                sender(o).link = Some(link);
            }),
        ),
        (
            Cause::OffloadOff,
            with(|o| {
                sending_thread(o, 0.99, 0.0, 0.0);
                sender(o).link = Some(gigabit_link());
            }),
        ),
        // A slow link that the transfer does not fill, one without anything faster, and the loopback device.
        (
            Cause::LinkNegotiation,
            changed(shaped(|shape| shape.megabits = 40.0), |o| receiver(o).link = Some(slow_link())),
        ),
        (
            Cause::LinkNegotiation,
            with(|o| {
                receiver(o).link = Some(LinkEvidence { max_speed_bits_per_second: Some(100_000_000), ..slow_link() });
            }),
        ),
        (
            Cause::LinkNegotiation,
            with(|o| receiver(o).link = Some(LinkEvidence { kind: Some("tun".to_owned()), ..slow_link() })),
        ),
        // A tunnel on a path that is not full, and without fragments.
        (
            Cause::TunnelOverhead,
            with(|o| sender(o).link = Some(LinkEvidence { kind: Some("gre".to_owned()), ..gigabit_link() })),
        ),
        // The setting is off, and the buffer is no limit.
        (
            Cause::AutotuningOff,
            with(|o| {
                receiver(o).settings.insert("net.ipv4.tcp_moderate_rcvbuf".to_owned(), "0".to_owned());
            }),
        ),
    ] {
        let found = causes(&observation);
        assert!(!found.contains(&absent), "{absent}: {found:?}");
    }
}

#[test]
fn a_tunnel_takes_a_part_of_a_full_path() {
    let found = diagnose(&changed(full(), |o| {
        sender(o).link = Some(LinkEvidence { kind: Some("wireguard".to_owned()), ..gigabit_link() });
    }));
    let tunnel = found.verdicts.iter().find(|verdict| verdict.cause == Cause::TunnelOverhead).expect("named");
    assert!(tunnel.text.contains("wireguard") && tunnel.text.contains("about 4 %"), "{}", tunnel.text);
}

#[test]
fn a_busy_host_that_does_not_limit_is_a_note() {
    let busy = |waited: f64| {
        changed(shaped(|shape| shape.queue = Duration::from_millis(20)), |o| sending_thread(o, 0.01, waited, 0.9))
    };
    let quiet = diagnose(&shaped(|shape| shape.queue = Duration::from_millis(20)));
    assert!(quiet.notes.is_empty(), "{:?}", quiet.notes);
    let [note] = &diagnose(&busy(0.001)).notes[..] else { panic!("one host is busy") };
    assert_eq!(
        note,
        "Other processes keep all 4 processors of the sending host busy; this transfer did not wait for them."
    );
    let note = diagnose(&busy(0.3)).notes.swap_remove(0);
    assert!(note.contains("waited 30 % of the time for a processor, which is not its limit"), "{note}");
    // A verdict about the same processors says it already.
    let limited = diagnose(&changed(shaped(|shape| shape.idle = 0.3), |o| sending_thread(o, 0.3, 0.4, 0.7)));
    assert_eq!((limited.verdicts[0].cause, limited.notes.len()), (Cause::HostBusy, 0));
}

#[test]
fn late_acknowledgements_of_a_host_that_others_keep_busy_are_no_slow_reader_first() {
    let first = |ran: f64, waited: f64, others: f64| {
        let slow = shaped(|shape| (shape.megabits, shape.queue) = (100.0, Duration::from_micros(200)));
        let late = changed(slow, |o| {
            counters(&mut o.receiver, &[("TcpInSegs", 10_000), ("TcpOutSegs", 3000)]);
            let connection = &mut o.connections[0];
            (connection.receiver_processor, connection.receiver_wait) = (Ratio::new(ran), Ratio::new(waited));
            receiver(o).processors = Some(load(others, [0.02, 0.01]));
        });
        diagnose(&late).verdicts.swap_remove(0).cause
    };
    assert_eq!(first(0.1, 0.5, 0.8), Cause::HostBusy);
    assert_eq!(first(0.5, 0.3, 0.8), Cause::SlowReader, "its own work takes longer");
    assert_eq!(first(0.1, 0.5, 0.2), Cause::SlowReader, "others take little");
    assert_eq!(first(0.1, 0.12, 0.8), Cause::SlowReader, "it hardly waits");
}

#[test]
fn late_acknowledgements_beside_a_queue_are_no_slow_reader_on_a_busy_host() {
    let causes = |waited: f64, others: f64| {
        // The sender has nothing to send now and then: a path of unknown capacity has no standing queue then.
        let full = shaped(|shape| (shape.megabits, shape.queue, shape.idle) = (95.0, Duration::from_millis(15), 0.25));
        let late = changed(full, |o| {
            path(o).with_data.capacity = None;
            counters(&mut o.receiver, &[("TcpInSegs", 10_000), ("TcpOutSegs", 3100)]);
            let connection = &mut o.connections[0];
            (connection.receiver_processor, connection.receiver_wait) = (Ratio::new(0.04), Ratio::new(waited));
            receiver(o).processors = Some(load(others, [0.02, 0.01]));
        });
        diagnose(&late).verdicts.iter().map(|verdict| verdict.cause).collect::<Vec<_>>()
    };
    let busy = causes(0.2, 0.9);
    assert!(busy.iter().all(|cause| *cause != Cause::SlowReader), "{busy:?}");
    assert!(causes(0.2, 0.1).contains(&Cause::SlowReader), "others take little");
    assert!(causes(0.01, 0.9).contains(&Cause::SlowReader), "it hardly waits");
}

#[test]
fn a_thread_that_never_sleeps_is_limited_by_its_processor() {
    let idle = |ran: f64, waited: f64| {
        diagnose(&changed(shaped(|shape| shape.idle = 0.2), |o| sending_thread(o, ran, waited, 0.3)))
    };
    let found = idle(0.86, 0.12);
    assert_eq!(
        found.verdicts[0].text,
        "The sender's processor is saturated: its thread used 86.0 % of one, and waited 12.0 % of the time for it."
    );
    let of_program = |cause: Cause| matches!(cause, Cause::Application | Cause::ApplicationPacing);
    assert!(found.verdicts.iter().all(|verdict| !of_program(verdict.cause)), "{:?}", found.verdicts);
    assert_eq!(idle(0.6, 0.12).verdicts[0].cause, Cause::Application, "it sleeps");
}

#[test]
fn the_load_of_a_host_is_not_that_of_a_thread() {
    for (ran, waited) in [(0.0024, 0.01), (0.0024, 0.4)] {
        let busy = changed(shaped(|shape| shape.queue = Duration::from_millis(20)), |o| {
            sending_thread(o, ran, waited, 0.99);
            sender(o).busy = Some(1.0);
        });
        let found = diagnose(&busy);
        assert!(found.verdicts.iter().all(|verdict| !verdict.text.contains("thread used")), "{:?}", found.verdicts);
        assert!(found.verdicts.iter().all(|verdict| !verdict.cause.is_of_a_host()), "{:?}", found.verdicts);
    }
}

#[test]
fn a_buffer_is_a_programs_only_where_that_is_known() {
    let locked = |locked: Option<LockedBuffers>, asked: Option<u64>| {
        changed(shaped(|shape| (shape.buffers, shape.receive_window) = ((425_984, false), 0.8)), |o| {
            for moment in &mut o.connections[0].receiver {
                moment.socket.memory.as_mut().expect("there").locked = locked;
            }
            o.asked.buffer = asked.map(ByteCount::new);
            receiver(o).settings.insert("net.core.rmem_max".to_owned(), "212992".to_owned());
        })
    };
    let set = LockedBuffers { send: false, receive: true };
    let first = |observation: &TransferObservation| diagnose(observation).verdicts.swap_remove(0);
    let by_program = first(&locked(Some(set), None));
    assert_eq!((by_program.cause, by_program.confidence), (Cause::SocketBuffer, Confidence::High));
    assert!(by_program.text.contains("net.core.rmem_max cut the request"), "{}", by_program.text);
    let asked = first(&locked(None, Some(400_000)));
    assert!(asked.text.contains("net.core.rmem_max cut the request"), "{}", asked.text);
    let less = first(&locked(Some(set), Some(212_992)));
    assert!(!less.text.contains("cut"), "{}", less.text);
    // The kernel knows that no program set it.
    assert!(!causes(&locked(Some(LockedBuffers::default()), None)).contains(&Cause::SocketBuffer));
    let unknown = first(&locked(None, None));
    assert_eq!((unknown.cause, unknown.confidence), (Cause::SocketBuffer, Confidence::Low));
    assert!(unknown.text.contains("or the kernel did not grow it"), "{}", unknown.text);
    // A window without scaling needs no larger buffer.
    let unscaled = changed(locked(None, None), |o| senders(o, |info| info.window_scale = None));
    assert!(!causes(&unscaled).contains(&Cause::SocketBuffer));
}

#[test]
fn names_that_a_far_end_reports_are_printed_without_control_characters() {
    let forged = changed(shaped(|_| ()), |o| {
        let mut queue = shaper("tbf", 94.2, 0.9);
        queue.handle = "1:\u{1b}[2J`rm`\n".to_owned();
        sender(o).queues = Some(vec![queue]);
        sender(o).link =
            Some(LinkEvidence { interface: "eth0\n\u{202e}; reboot now please".to_owned(), ..gigabit_link() });
    });
    let first = diagnose(&forged).verdicts.swap_remove(0);
    assert_eq!(first.cause, Cause::SenderQueue);
    let all = [vec![first.text], first.evidence, first.advice].concat().join(" ");
    assert!(all.chars().all(|character| !character.is_control() && character != '\u{202e}'), "{all:?}");
}

#[test]
fn drops_before_the_network_stack_are_the_hosts() {
    let dropping = changed(
        shaped(|shape| {
            (shape.megabits, shape.in_flight, shape.congestion_window, shape.retransmits) = (25.0, 60_000, 60_000, 22);
            shape.queue = Duration::from_millis(9);
        }),
        |o| receiver(o).receiving = Some(ReceivingEvidence { processors: 4, dropped: 20, squeezed: 0 }),
    );
    assert_eq!(causes(&dropping).first(), Some(&Cause::HostDrops));
}

#[test]
fn a_queue_that_others_pass_as_well_limits_with_less_confidence() {
    let beside = |received: u64| {
        let observation = changed(shaped(|_| ()), |o| {
            sender(o).queues = Some(vec![shaper("tbf", 94.2, 0.9)]);
            receiver(o).interface_bytes = Some((received, 0));
        });
        let first = diagnose(&observation).verdicts.swap_remove(0);
        (first.cause, first.confidence)
    };
    assert_eq!(beside(118_000_000), (Cause::SenderQueue, Confidence::High));
    assert_eq!(beside(140_000_000), (Cause::SenderQueue, Confidence::Medium));
}
