//! Injected faults on this host, each named by the events.

use core::time::Duration;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;

use linerate_model::flow_events::IntervalEvents;
use linerate_model::parameters::CpuIndex;
use linerate_model::socket::{FlowKey, ProcessId, SocketCookie};

use super::*;
use crate::machine::use_realtime_scheduling;
use crate::process::pin_thread;
use crate::test_network::NamespaceChain;
use crate::{command, namespace};

/// One watch at a time is active.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn traced(interface: Option<u32>, inject: impl FnOnce()) -> KernelEvents {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let watch = KernelEventWatch::start(interface).expect("not run: root and tracepoints are needed");
    inject();
    let events = watch.finish();
    assert_eq!((events.missing.clone(), events.unavailable.clone()), (Vec::new(), None));
    events
}

fn spin(time: Duration) {
    let start = clock::monotonic_now();
    while clock::monotonic_now().since(start) < time {
        core::hint::spin_loop();
    }
}

/// Last processor of this host, and so one that exists.
fn processor() -> CpuIndex {
    CpuIndex(u16::try_from(crate::host::online_processors().expect("known") - 1).expect("a small number"))
}

/// Lets a thread wait behind another one on this processor, ten times for 8 ms.
fn late_thread(cpu: CpuIndex) {
    let done = AtomicBool::new(false);
    let begin = Barrier::new(2);
    thread::scope(|scope| {
        let spinner = || {
            pin_thread(cpu).and_then(|()| use_realtime_scheduling()).expect("root");
            begin.wait();
            for _ in 0..10 {
                spin(Duration::from_millis(8));
                thread::sleep(Duration::from_millis(2));
            }
            done.store(true, Ordering::Release);
        };
        thread::Builder::new().name("rt-spinner".to_owned()).spawn_scoped(scope, spinner).expect("started");
        scope.spawn(|| {
            pin_thread(cpu).and_then(|()| use_realtime_scheduling()).expect("root");
            begin.wait();
            while !done.load(Ordering::Acquire) {
                thread::sleep(Duration::from_micros(500));
            }
        });
    });
}

#[test]
#[ignore = "needs root: traces the kernel's events"]
fn a_thread_that_waits_behind_a_spinner_names_it() {
    let cpu = processor();
    let events = traced(None, || late_thread(cpu));
    let run_queue = events.run_queue.expect("traced");
    assert!(run_queue.delay.longest_ns >= 5_000_000, "{run_queue:?}");
    let late: u64 = run_queue.delay.histogram.iter().skip(13).sum();
    assert!(late >= 5 && run_queue.delay.histogram.iter().sum::<u64>() == run_queue.delay.count, "{run_queue:?}");
    let spinner = run_queue.occupants.iter().find(|one| one.task == "rt-spinner").expect("named");
    assert_eq!((spinner.processor, spinner.is_own), (u32::from(cpu.0), Some(true)));
    assert!(run_queue.thread_total_ns >= Some(25_000_000), "{run_queue:?}");
    assert!(spinner.longest_ns >= 5_000_000 && spinner.waits >= 5, "{spinner:?}");
}

#[test]
#[ignore = "needs root: traces the kernel's events"]
fn packets_on_a_busy_processor_name_it_and_the_vector() {
    /// Most of them that one run of the interrupt takes, where another program holds it up (`net.core.netdev_budget`).
    const BUDGET: u64 = 300;
    const PACKETS: u64 = 5000;
    let cpu = processor();
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("bound");
    let to = receiver.local_addr().expect("known");
    let events = traced(None, || {
        let send = || {
            pin_thread(cpu).expect("it exists");
            let sender = UdpSocket::bind("127.0.0.1:0").expect("bound");
            (0..PACKETS).for_each(|_| drop(sender.send_to(&[0; 100], to)));
        };
        thread::scope(|scope| scope.spawn(send).join().expect("sent"));
    });
    let softirqs = events.softirqs.expect("traced");
    let found = softirqs.iter().find(|one| one.processor == u32::from(cpu.0) && one.vector == "NET_RX").expect("named");
    let least = PACKETS / BUDGET;
    assert!(found.runs >= least && found.time_ns >= 1_000_000 && found.time_ns < events.traced_ns, "{found:?}");
}

#[test]
#[ignore = "needs root: traces the kernel's events"]
fn a_receiver_that_does_not_read_has_its_port_named() {
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("bound");
    let to = receiver.local_addr().expect("known");
    let events = traced(None, || {
        let sender = UdpSocket::bind("127.0.0.1:0").expect("bound");
        (0..2000).for_each(|_| drop(sender.send_to(&[0; 1000], to)));
    });
    let queues = events.full_sockets.expect("traced");
    let full = queues.iter().find(|queue| queue.port == Some(to.port())).expect("named");
    assert!((1000..2000).contains(&full.packets), "{full:?}");
    let drops = events.drops.expect("traced");
    let dropped = drops.iter().find(|drop| drop.reason == "SOCKET_RCVBUFF").expect("named");
    assert!(dropped.packets >= full.packets, "{dropped:?}");
    assert!(dropped.location.as_deref().is_some_and(|name| name.contains("udp")), "{dropped:?}");
}

#[test]
#[ignore = "needs root, ip and tc: a queue in a network namespace"]
fn a_full_queueing_discipline_is_named_with_its_delay() {
    let chain = NamespaceChain::new(1500);
    let events = chain.near.within(|| {
        let limit = ["qdisc", "add", "dev", "near0", "root", "tbf", "rate", "8mbit", "burst", "3kb", "limit", "20kb"];
        command::run_checked("tc", &limit, None, Duration::from_secs(10)).expect("tc");
        let index = namespace::index_of("near0").expect("there");
        traced(Some(index), || {
            let sender = UdpSocket::bind("0.0.0.0:0").expect("bound");
            (0..200).for_each(|_| drop(sender.send_to(&[0; 1000], "10.99.1.2:9")));
            // What waits leaves at 1 MB/s; a packet that passes is behind it.
            spin(Duration::from_millis(40));
        })
    });
    let events = events.expect("entered");
    let drops = events.drops.expect("traced");
    let dropped = drops.iter().find(|drop| drop.reason == "QDISC_DROP").unwrap_or_else(|| panic!("{drops:?}"));
    assert!((100..200).contains(&dropped.packets), "{dropped:?}");
    let sojourn = events.qdisc.expect("traced");
    assert!(sojourn.count >= 10 && sojourn.longest_ns >= 5_000_000, "{sojourn:?}");
}

/// Events of the interval in which faults are injected; waits are those of this process.
fn interval(inject: impl FnOnce()) -> IntervalEvents {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut watch = FlowEventWatch::start().expect("not run: root and tracepoints are needed");
    let own = || core::iter::once(ProcessId(std::process::id()));
    watch.interval(own());
    inject();
    let events = watch.interval(own());
    assert!(events.has_flow_drops && events.has_flow_retransmissions, "{events:?}");
    events
}

#[test]
#[ignore = "needs root: traces the kernel's events"]
fn a_process_of_a_watch_has_its_waits() {
    let cpu = processor();
    let events = interval(|| late_thread(cpu));
    let wait = events.waits.as_ref().expect("traced")[&ProcessId(std::process::id())];
    assert!(wait >= Duration::from_millis(25) && wait <= events.elapsed, "{events:?}");
    let softirqs = events.host.softirqs.expect("traced");
    assert!(softirqs.iter().any(|one| one.runs > 0), "{softirqs:?}");
}

#[test]
#[ignore = "needs root, ip and tc: a queue in a network namespace"]
fn a_flow_has_its_drops_in_queues_and_sockets() {
    let chain = NamespaceChain::new(1500);
    let mut labels = Vec::new();
    let events = chain.near.within(|| {
        let limit = ["qdisc", "add", "dev", "near0", "root", "tbf", "rate", "8mbit", "burst", "3kb", "limit", "20kb"];
        command::run_checked("tc", &limit, None, Duration::from_secs(10)).expect("tc");
        interval(|| {
            for remote in ["10.99.1.2:9", "[fd99:1::2]:9"] {
                let any = if remote.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
                let sender = UdpSocket::bind(any).expect("bound");
                sender.connect(remote).expect("a route");
                // The neighbour's address is looked up first, with a short queue of its own.
                sender.send(&[0; 100]).expect("sent");
                thread::sleep(Duration::from_millis(100));
                (0..200).for_each(|_| drop(sender.send(&[0; 1000])));
                labels.push((sender.local_addr().expect("bound").port(), 9, remote.parse().expect("an address")));
            }
            let receiver = UdpSocket::bind("127.0.0.1:0").expect("bound");
            let to = receiver.local_addr().expect("known");
            let sender = UdpSocket::bind("127.0.0.1:0").expect("bound");
            receiver.connect(sender.local_addr().expect("known")).expect("connected");
            (0..2000).for_each(|_| drop(sender.send_to(&[0; 1000], to)));
            labels.push((to.port(), sender.local_addr().expect("known").port(), sender.local_addr().expect("known")));
        })
    });
    let events = events.expect("entered");
    let of = |(local, port, remote): &(u16, u16, std::net::SocketAddr)| {
        let local = std::net::SocketAddr::new(remote.ip(), *local);
        let remote = std::net::SocketAddr::new(remote.ip(), *port);
        events.of_flow(&FlowKey { local, remote, cookie: SocketCookie(0) }).expect("known")
    };
    for (label, reason) in labels.iter().zip(["QDISC_DROP", "QDISC_DROP", "SOCKET_RCVBUFF"]) {
        let found = of(label);
        let main = found.drops.iter().max_by_key(|(_, packets)| **packets).map(|(reason, _)| reason.as_str());
        assert!(found.dropped() >= 100 && main == Some(reason), "{label:?} {found:?} {events:?}");
    }
}

#[test]
#[ignore = "needs root and ip: a link that goes down in a network namespace"]
fn a_flow_has_its_retransmissions_by_timers() {
    let chain = NamespaceChain::new(1500);
    let listener = chain.far.within(|| TcpListener::bind("10.99.2.2:0").expect("bound")).expect("entered");
    let to = listener.local_addr().expect("bound");
    let mut flow = None;
    let events = chain.near.within(|| {
        interval(|| {
            let mut client = TcpStream::connect(to).expect("connected");
            flow = Some((client.local_addr().expect("bound"), to));
            let down = ["link", "set", "far0", "down"];
            let cut = chain.far.within(|| command::run_checked("ip", &down, None, Duration::from_secs(10)).map(drop));
            cut.expect("entered").expect("ip");
            std::io::Write::write_all(&mut client, &[0; 1000]).expect("buffered");
            // The first timeout is after 200 ms and two round trips, the second after twice as long.
            thread::sleep(Duration::from_millis(1500));
        })
    });
    let (local, remote) = flow.expect("connected");
    let found = events.expect("entered").of_flow(&FlowKey { local, remote, cookie: SocketCookie(0) }).expect("known");
    assert!(found.by_timer >= 1 && found.by_acknowledgement == 0, "{found:?}");
}

#[test]
#[ignore = "needs root: traces the kernel's events"]
fn a_second_watch_is_refused_while_one_is_active() {
    let refusal = core::cell::RefCell::new(String::new());
    traced(None, || {
        let error = KernelEventWatch::start(None).expect_err("one is active");
        *refusal.borrow_mut() = error.to_string();
    });
    assert_eq!(refusal.take(), "tracing the kernel's events: another test of this process traces them");
    // After its end the next one starts.
    traced(None, || ());
}

/// In a child of its own, as giving up root is for a whole process.
#[test]
#[ignore = "needs root: gives it up in a child"]
fn without_privileges_the_refusal_names_them() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the child uses the allocator, which the C library keeps usable after a fork, and no lock of others.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = crate::process::drop_privileges("nobody").is_ok()
            && KernelEventWatch::start(None).is_err_and(|error| error.to_string().contains("needs root"));
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!refused)) };
    }
    let mut status = 0;
    // SAFETY: waits for a child of ours, with a number of ours for its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
}
