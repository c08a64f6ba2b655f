use std::net::UdpSocket;

use proptest::prelude::*;

use super::*;
use crate::command;

// Answers of Linux 6.12 in an emulated network, on a little-endian machine: bodies of one message each. The tests
// expect the values that `tc -s` printed at the same time.
const CAKE: &[u8] = include_bytes!("captured/cake.bin");
const FQ_CODEL: &[u8] = include_bytes!("captured/fq_codel.bin");
const FQ_CODEL_FLOW: &[u8] = include_bytes!("captured/fq_codel_flow.bin");
const FQ_PIE: &[u8] = include_bytes!("captured/fq_pie.bin");
const HTB_CLASS: &[u8] = include_bytes!("captured/htb_class.bin");

fn packets(count: u64) -> PacketCount {
    PacketCount::new(count)
}

#[test]
#[cfg(target_endian = "little")]
fn cake_and_its_tins() {
    let cake = parse(CAKE, false).expect("a description");
    assert_eq!((cake.kind.as_str(), cake.handle, cake.parent), ("cake", (1, 0), None));
    assert_eq!((cake.statistics.sent, cake.statistics.packets), (ByteCount::new(58_170), packets(45)));
    assert_eq!((cake.statistics.overlimits, cake.marked), (packets(80), Some(packets(0))));
    let thresholds: Vec<_> = cake.tins.iter().map(|tin| tin.threshold.bits_per_second()).collect();
    assert_eq!(thresholds, [312_496.0, 5e6, 2.5e6, 1.25e6], "bulk, best effort, video, voice");
    let best_effort = &cake.tins[1];
    assert_eq!((best_effort.sent, best_effort.packets), (ByteCount::new(57_680), packets(40)));
    assert_eq!(best_effort.average_delay.as_micros(), 274);
    assert_eq!(best_effort.peak_delay.as_micros() / 10, 208);
    let voice = &cake.tins[3];
    assert_eq!((voice.sent, voice.peak_delay.as_micros()), (ByteCount::new(490), 505));
    assert_eq!((voice.average_delay.as_micros(), voice.base_delay.as_micros()), (7, 2));
}

#[test]
#[cfg(target_endian = "little")]
fn counters_of_other_kinds() {
    let queue = parse(FQ_CODEL, false).expect("a description");
    assert_eq!((queue.kind.as_str(), queue.handle, queue.parent), ("fq_codel", (0x10, 0), Some((1, 0x10))));
    assert_eq!((queue.statistics.packets, queue.marked, queue.tins.len()), (packets(40), Some(packets(0)), 0));
    let queue = parse(FQ_PIE, false).expect("a description");
    assert_eq!((queue.kind.as_str(), queue.handle, queue.marked), ("fq_pie", (0x11, 0), Some(packets(0))));
    let class = parse(HTB_CLASS, true).expect("a description");
    assert_eq!((class.kind.as_str(), class.handle, class.parent), ("htb", (1, 0x10), None));
    assert_eq!((class.statistics.sent, class.statistics.overlimits), (ByteCount::new(57_680), packets(39)));
    assert!(class.is_class && class.marked.is_none());
    assert_eq!(parse(FQ_CODEL_FLOW, true), None, "a single flow has no counters of its own");
}

#[test]
fn where_marks_are_counted() {
    let words = |count: u32| (0..count).flat_map(u32::to_ne_bytes).collect::<Vec<u8>>();
    // Each word's value is its place among the words of the kernel's structure.
    for (kind, word) in [("fq_codel", 3), ("codel", 6), ("fq_pie", 4), ("pie", 9), ("red", 3)] {
        assert_eq!(marked_packets(kind, &words(12), &[]), Some(packets(word)), "{kind}");
        assert_eq!(marked_packets(kind, &words(3), &[]), None, "{kind}, cut off");
    }
    assert_eq!(marked_packets("pfifo", &words(12), &[]), None);
    assert_eq!(marked_packets("cake", &[], &[]), None);
    assert_eq!(marked_packets("fq_codel", &1_u32.to_ne_bytes(), &[]), None, "of a flow");
}

#[test]
fn truncated_messages_are_none_or_partial() {
    for whole in [CAKE, FQ_CODEL, FQ_PIE, HTB_CLASS] {
        for length in 0..whole.len() {
            if let Some(part) = parse(&whole[..length], false) {
                assert!(part.tins.len() <= 4);
            }
        }
    }
    assert_eq!(parse(&CAKE[..200], false), None);
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400), at in 0_usize..1072) {
        let mut damaged = CAKE.to_vec();
        let end = damaged.len().min(at + bytes.len());
        let length = end.saturating_sub(at);
        damaged[at.min(end)..end].copy_from_slice(&bytes[..length]);
        let _ = parse(&damaged, false);
        let _ = parse(&bytes, true);
    }
}

#[test]
fn an_interface_that_is_not_there() {
    let error = read("none-such0").expect_err("no such interface").to_string();
    assert!(error.contains("none-such0"), "{error}");
}

#[test]
#[ignore = "needs root, ip and tc: a device in a network namespace"]
fn a_tree_and_what_passes_it() {
    let chain = crate::test_network::NamespaceChain::new(1400);
    let within = || {
        for line in [
            "qdisc add dev near0 root handle 1: htb default 20",
            "class add dev near0 parent 1: classid 1:1 htb rate 10mbit",
            "class add dev near0 parent 1:1 classid 1:20 htb rate 10mbit",
            "qdisc add dev near0 parent 1:20 handle 20: pfifo limit 100",
            "qdisc add dev near0 handle ffff: ingress",
        ] {
            let words: Vec<_> = line.split(' ').collect();
            command::run_checked("tc", &words, None, Duration::from_secs(10)).expect("tc runs");
        }
        let mut watch = QueueWatch::new("near0").expect("a socket");
        let before = watch.read().expect("read");
        let described: Vec<_> =
            before.iter().map(|one| (one.is_class, one.kind.as_str(), one.handle, one.parent)).collect();
        let root = (false, "htb", (1, 0), None);
        assert_eq!(described[0], root, "{described:?}");
        for expected in [
            (false, "pfifo", (0x20, 0), Some((1, 0x20))),
            (false, "ingress", (0xffff, 0), Some((0xffff, 0xfff1))),
            (true, "htb", (1, 1), None),
            (true, "htb", (1, 0x20), Some((1, 1))),
        ] {
            assert!(described.contains(&expected), "{expected:?} in {described:?}");
        }
        assert_eq!(described.len(), 5, "{described:?}");
        let socket = UdpSocket::bind("0.0.0.0:0").expect("bind");
        let sent = (0..10).filter(|_| socket.send_to(&[0; 1000], "10.99.1.2:9").is_ok()).count();
        assert_eq!(sent, 10);
        let leaf = |readings: &[QueueSample]| {
            let find = |one: &&QueueSample| one.handle == (0x20, 0);
            readings.iter().find(find).map(|one| one.statistics.packets.get()).expect("the leaf")
        };
        // The link layer's address is asked for first, and datagrams wait for the answer.
        let arrived = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            leaf(&watch.read().expect("read")) >= leaf(&before) + 3
        });
        assert!(arrived, "{:?}", watch.read());
    };
    chain.near.within(within).expect("entered");
}

/// A tree of thousands of classes has a plain queue for each: one request lists them all.
#[test]
fn only_disciplines_with_classes_are_asked_for_them() {
    let discipline = |kind: &str, major| QueueSample {
        is_class: false,
        kind: kind.to_owned(),
        handle: (major, 0),
        parent: None,
        statistics: QueueStatistics::default(),
        marked: None,
        tins: Vec::new(),
        limit: None,
    };
    let tree =
        [discipline("htb", 1), discipline("bfifo", 0x1000), discipline("fq_codel", 0x1001), discipline("prio", 5)];
    assert_eq!(with_classes(&tree), [(1, 0), (5, 0)]);
}
