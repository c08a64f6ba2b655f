//! Figures of synthetic samples.

use std::collections::BTreeMap;
use std::time::Duration;

use linerate_documents::shaper_status::ShaperClassName;
use linerate_model::direction::Direction;
use linerate_model::environment::{DirectionCounters, InterfaceCounters, QueueStatistics};
use linerate_shape::back_ends::{BackEndId, DeviceProperties, PlanInputs};
use linerate_shape::capability::{KernelCapabilities, choose};
use linerate_shape::link::AccessLink;
use linerate_shape::plan::ShaperPlan;
use linerate_shape::policy::{TrafficImportance, TrafficPolicy};
use linerate_shape::traffic_classes::{TrafficClasses, parse_class_file};
use linerate_sys::queue_statistics::{CakeTin, QueueSample};
use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount};

use super::figures::{ShaperFigures, of};
use super::sample::ShaperSample;

fn line() -> AccessLink {
    AccessLink::new(Some(BitRate::from_bits_per_second(8e6)), Some(BitRate::from_bits_per_second(80e6)))
}

fn plan(back_end: BackEndId) -> ShaperPlan {
    plan_with(back_end, TrafficClasses::default())
}

fn plan_with(back_end: BackEndId, classes: TrafficClasses) -> ShaperPlan {
    let (line, policy) = (line(), TrafficPolicy { trust_marks: true, classes, ..TrafficPolicy::default() });
    let (capabilities, device) = (KernelCapabilities::all_features(), DeviceProperties::ethernet("eth0"));
    let inputs = PlanInputs { line: &line, policy: &policy, capabilities: &capabilities, device: &device };
    choose(&inputs, Some(back_end)).expect("a plan").plan
}

fn queue(is_class: bool, handle: (u16, u16), parent: Option<(u16, u16)>, sent: u64) -> QueueSample {
    QueueSample {
        is_class,
        kind: "htb".to_owned(),
        handle,
        parent,
        statistics: QueueStatistics { sent: ByteCount::new(sent), ..QueueStatistics::default() },
        marked: None,
        tins: Vec::new(),
        limit: None,
    }
}

fn sample(seconds: u64, interface: u64, up: Vec<QueueSample>) -> ShaperSample {
    let bytes = |count| DirectionCounters { bytes: ByteCount::new(count), ..DirectionCounters::default() };
    ShaperSample {
        at: MonotonicTime::from_nanos(0) + Duration::from_secs(seconds),
        interface: Some(InterfaceCounters { sent: bytes(interface), received: bytes(0) }),
        up,
        down: Vec::new(),
        processors: BTreeMap::new(),
    }
}

fn figures(back_end: BackEndId, before: &ShaperSample, after: &ShaperSample) -> ShaperFigures {
    of((&plan(back_end), &TrafficClasses::default()), &line(), before, after)
}

/// 1 500 000 bytes in two seconds are 6 Mbit/s: three quarters of 8.
#[test]
fn rates_and_backlogs_of_classes() {
    let plan = plan(BackEndId::HtbFqCodel);
    let class = plan.classes().find(|class| class.importance == Some(TrafficImportance::Bulk)).expect("there is one");
    let place = (class.handle.major, class.handle.minor);
    let tree = |sent| vec![queue(false, (1, 0), None, sent), queue(true, place, Some((1, 1)), sent)];
    let mut after = tree(1_500_000);
    after[1].statistics.backlog = ByteCount::new(10_000);
    let mut leaf = queue(false, (0x30, 0), Some(place), 0);
    (leaf.statistics.dropped, leaf.marked) = (PacketCount::new(7), Some(PacketCount::new(3)));
    after.push(leaf);
    let figures = figures(BackEndId::HtbFqCodel, &sample(0, 0, tree(0)), &sample(2, 1_500_000, after));
    let up = &figures.directions[0];
    assert!((up.carried_bits_per_second - 6e6).abs() < 1.0 && (up.realised - 0.75).abs() < 1e-9, "{up:?}");
    let bulk = up.classes.iter().find(|class| class.name == ShaperClassName::Bulk).expect("listed");
    assert!((bulk.carried_bits_per_second - 6e6).abs() < 1.0);
    // 80 000 bits at the class's ceiling of 8 Mbit/s.
    assert_eq!((bulk.backlog_bytes, bulk.delay_ns), (10_000, 10_000_000));
    assert_eq!((bulk.dropped, bulk.dropped_now, bulk.marked), (7, 7, Some(3)));
    let others = up.classes.iter().filter(|class| class.name != ShaperClassName::Bulk);
    assert!(others.map(|class| class.carried_bits_per_second).sum::<f64>() < 1.0);
    assert!(figures.warnings.is_empty(), "{:?}", figures.warnings);
}

#[test]
fn bypassing_traffic_is_warned_of() {
    let tree = |sent| vec![queue(false, (1, 0), None, sent)];
    let warned = |through: u64| {
        let figures = figures(BackEndId::Tbf, &sample(0, 0, tree(0)), &sample(1, 1_000_000, tree(through)));
        figures.warnings.iter().any(|text| text.contains("bypass"))
    };
    assert!(warned(0) && warned(700_000) && !warned(900_000));
}

/// A new tree counts from zero.
#[test]
fn restarted_counters_are_no_gap() {
    let tree = |sent| vec![queue(false, (1, 0), None, sent)];
    let figures = figures(BackEndId::Tbf, &sample(0, 0, tree(9_000_000)), &sample(1, 500_000, tree(500_000)));
    assert!((figures.directions[0].carried_bits_per_second - 4e6).abs() < 1.0);
}

#[test]
fn tins_have_names_and_their_own_delays() {
    let tin = |sent: u64, delay| CakeTin {
        threshold: BitRate::ZERO,
        sent: ByteCount::new(sent),
        packets: PacketCount::new(0),
        backlog: ByteCount::ZERO,
        dropped: PacketCount::new(sent / 1000),
        marked: PacketCount::new(0),
        peak_delay: Duration::from_millis(delay * 2),
        average_delay: Duration::from_millis(delay),
        base_delay: Duration::ZERO,
    };
    let tree = |factor: u64| {
        let mut root = queue(false, (1, 0), None, 10_000 * factor);
        root.tins = (0..4).map(|number| tin(1000 * number * factor, number)).collect();
        vec![root]
    };
    let figures = figures(BackEndId::Cake, &sample(0, 0, tree(1)), &sample(1, 10_000, tree(2)));
    let classes = &figures.directions[0].classes;
    let names: Vec<&str> = classes.iter().map(|class| class.name.title()).collect();
    assert_eq!(names, ["bulk", "best effort", "video", "voice"]);
    let voice = &classes[3];
    assert!((voice.carried_bits_per_second - 24_000.0).abs() < 1e-6);
    assert_eq!((voice.delay_ns, voice.peak_delay_ns, voice.dropped_now), (3_000_000, Some(6_000_000), 3));
}

/// The kernel counts what a group sends, but not what waits or is dropped below it.
#[test]
fn traffic_classes_have_their_own_figures() {
    let file = "match,name,group,down,up\ngroup,ACME,,20M,2M:4M\n192.0.2.7,office,ACME,20M,1M:4M\n192.0.2.8,,,,1M\n";
    let classes = parse_class_file(file).expect("good");
    let plan = plan_with(BackEndId::HtbBfifo, classes.clone());
    let planned = plan.traffic_classes(Direction::Up);
    let place = |number| (planned[&number].handle.major, planned[&number].handle.minor);
    let tree = |sent: u64, dropped: u64| {
        let mut group = queue(true, place(0), Some((1, 1)), sent);
        let mut member = queue(true, place(1), Some(place(0)), sent);
        member.statistics.dropped = PacketCount::new(dropped);
        member.statistics.backlog = ByteCount::new(4500);
        member.statistics.backlog_packets = PacketCount::new(3);
        (group.statistics.packets, member.statistics.packets) =
            (PacketCount::new(sent / 1500), PacketCount::new(sent / 1500));
        vec![queue(false, (1, 0), None, sent), group, member]
    };
    let (before, after) = (sample(0, 0, tree(0, 1)), sample(1, 375_000, tree(375_000, 8)));
    let figures = of((&plan, &classes), &line(), &before, &after);
    let up = &figures.directions[0];
    assert!(
        up.classes.iter().all(|class| class.carried_bits_per_second < 1.0),
        "not among the others: {:?}",
        up.classes
    );
    let [group, office, other] = &up.traffic_classes[..] else { panic!("{:?}", up.traffic_classes) };
    for class in [group, office] {
        assert!((class.carried_bits_per_second - 3e6).abs() < 1.0, "{class:?}");
        assert_eq!((class.sent_bytes, class.sent_packets), (Some(375_000), Some(250)));
        assert_eq!((class.dropped, class.dropped_now, class.backlog_bytes), (Some(8), Some(7), Some(4500)));
        assert_eq!(class.backlog_packets, Some(3));
    }
    assert_eq!((group.class.selectors.len(), office.class.group.as_deref()), (0, Some("ACME")));
    assert_eq!((office.rates.guaranteed_bits_per_second, office.rates.ceiling_bits_per_second), (1e6, 4e6));
    assert_eq!((other.class.selectors[0].as_str(), other.sent_bytes), ("192.0.2.8", None), "not in the sample");
    assert_eq!(figures.directions[1].traffic_classes.len(), 2, "the third has no rate down");
}
