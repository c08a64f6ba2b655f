//! The judge: each silent failure of a shaper, with a case that triggers it and one that does not; and the search for
//! the highest rates, on the simulated link.

use linerate_model::address_family::AddressFamily;
use linerate_model::diagnosis::Confidence;
use linerate_model::direction::Direction;
use std::time::Duration;

use linerate_analysis::latency_under_load::{InterfaceTraffic, LatencyClass, LatencyGrade};
use linerate_analysis::statistics::{SampleSummary, SeededRandom, percentile};
use linerate_model::load::PhaseKind;
use linerate_shape::verify::rate_search::{
    PassingRateSearch, RateSearchLimits, RateSearchResult, RateSearchStep, TrialUplift,
};
use linerate_shape::verify::{
    ClassDelays, DelayOrigin, FindingKind, PathMeasurement, PerDirection, PhaseMeasurement, PlanDifferenceKind,
    ReadBackDifference, ShaperEvidence, ShaperRequirements, ShaperVerdict, TreeCounters, verify,
};
use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Ratio};

use crate::simulation::{SimulatedLink, constant};

const CLASSES: [LatencyClass; 4] =
    [LatencyClass::Icmp, LatencyClass::UdpBestEffort, LatencyClass::UdpExpeditedForwarding, LatencyClass::TcpInfo];
const SECONDS: u64 = 25;

fn megabits(rate: f64) -> BitRate {
    BitRate::from_bits_per_second(rate * 1e6)
}

fn milliseconds(time: f64) -> Duration {
    Duration::from_secs_f64(time / 1e3)
}

/// Probes every 50 ms: 20 ms idle, plus this, within a tenth.
fn reading(class: LatencyClass, family: AddressFamily, added: f64, seed: u64) -> ClassDelays {
    let place = CLASSES.iter().position(|other| *other == class).expect("one of them") as u64;
    let mut random = SeededRandom::new(seed ^ place << 8);
    let mut draw = || added * (1.0 + 0.1 * random.normal()).max(0.0) + random.unit();
    let round_trips = (0..SECONDS * 20)
        .map(|number| (MonotonicTime::from_nanos(number * 50_000_000), milliseconds(20.0 + draw())))
        .collect();
    ClassDelays { class, family, round_trips, one_way: None }
}

/// Goodput in Mbit/s, up and down, and delay added to each class, in milliseconds.
fn measurement(
    carried: (f64, f64),
    added: impl Fn(PhaseKind, LatencyClass, AddressFamily) -> f64,
    tree: bool,
    seed: u64,
) -> PathMeasurement {
    let kinds = [PhaseKind::Idle, PhaseKind::Down, PhaseKind::Up, PhaseKind::Both];
    let phases = kinds.into_iter().enumerate().map(|(place, kind)| {
        let (up, down) =
            (matches!(kind, PhaseKind::Up | PhaseKind::Both), matches!(kind, PhaseKind::Down | PhaseKind::Both));
        let rate = |loaded: bool, rate: f64| loaded.then(|| megabits(rate));
        let traffic = |loaded: bool, rate: f64| {
            let own = if loaded { megabits(rate * 1.05) } else { megabits(0.05) } * Duration::from_secs(SECONDS);
            InterfaceTraffic { counted: own, own, time: Duration::from_secs(SECONDS) }
        };
        let (up_traffic, down_traffic) = (traffic(up, carried.0), traffic(down, carried.1));
        let counted = |traffic: InterfaceTraffic, loaded: bool| TreeCounters {
            bytes: traffic.counted,
            packets: PacketCount::new(traffic.counted.get() / 1000),
            drops: PacketCount::new(if loaded { 40 } else { 0 }),
            marks: PacketCount::ZERO,
            largest_backlog: Some(ByteCount::new(if loaded { 30_000 } else { 0 })),
        };
        let classes =
            CLASSES.into_iter().flat_map(|class| [(class, AddressFamily::Ipv4), (class, AddressFamily::Ipv6)]);
        PhaseMeasurement {
            kind,
            classes: classes
                .map(|(class, family)| {
                    let added = if kind == PhaseKind::Idle { 0.0 } else { added(kind, class, family) };
                    reading(class, family, added, seed + place as u64)
                })
                .collect(),
            goodput: PerDirection { up: rate(up, carried.0), down: rate(down, carried.1) },
            traffic: PerDirection { up: Some(up_traffic), down: Some(down_traffic) },
            tree: if tree {
                PerDirection { up: Some(counted(up_traffic, up)), down: Some(counted(down_traffic, down)) }
            } else {
                PerDirection::default()
            },
            processor: Ratio::new(0.3),
        }
    });
    PathMeasurement { phases: phases.collect() }
}

fn before(seed: u64) -> PathMeasurement {
    measurement((10.0, 50.0), |_, _, _| 300.0, false, seed)
}

/// A link of 10/50 Mbit/s with set rates of 9.5/47.5 and a working shaper.
fn good() -> ShaperEvidence {
    ShaperEvidence {
        before: before(1),
        after: measurement((9.1, 45.4), |_, _, _| 4.0, true, 50),
        before_again: Some(before(100)),
        set: PerDirection { up: Some(megabits(9.5)), down: Some(megabits(47.5)) },
        predicted: PerDirection { up: Some(milliseconds(5.0)), down: Some(milliseconds(5.0)) },
        differences: Vec::new(),
        profile: ShaperRequirements::default(),
        seed: 7,
    }
}

/// Changes the tree counters of a direction in each phase with the shaper.
fn tree(evidence: &mut ShaperEvidence, direction: Direction, change: impl Fn(&mut TreeCounters)) {
    for phase in &mut evidence.after.phases {
        if let Some(tree) = phase.tree.of_mut(direction) {
            change(tree);
        }
    }
}

fn share(of: &mut TreeCounters, share: f64) {
    of.bytes = ByteCount::from_f64(of.bytes.as_f64() * share);
}

fn fails_by(evidence: &ShaperEvidence, kind: FindingKind) -> ShaperVerdict {
    let judged = verify(evidence);
    assert!(judged.found(kind), "{kind:?} of {:#?}", judged.findings);
    assert!(!judged.pass, "{kind:?}");
    let finding = judged.findings.iter().find(|finding| finding.kind == kind).expect("found");
    assert!(!finding.words.is_empty());
    judged
}

#[test]
fn a_shaper_that_works_passes() {
    let judged = verify(&good());
    assert!(judged.pass && judged.findings.is_empty(), "{:#?}", judged.findings);
    assert_eq!(judged.confidence, Confidence::High);
    assert!(judged.grades.is_some_and(|(before, after)| before >= LatencyGrade::C && after <= LatencyGrade::A));
    assert_eq!(judged.attribution.location, DelayOrigin::None);
    // Three phases under load, four classes, two protocols; and four rates.
    assert_eq!((judged.delays.len(), judged.rates.len()), (24, 4));
    assert!(
        judged.delays.iter().all(|row| row.grades.is_some() == row.class.counts_for_verdict() && row.median.is_some())
    );
}

#[test]
fn no_redirect() {
    let mut evidence = good();
    // Packets to the device itself: a small share always passes.
    tree(&mut evidence, Direction::Down, |of| share(of, 0.001));
    let judged = fails_by(&evidence, FindingKind::NoRedirect);
    assert!(!judged.found(FindingKind::WrongInterface) && !judged.found(FindingKind::Bypassed));
    let mut evidence = good();
    let text = "no filter on ingress of eth0".to_owned();
    evidence.differences =
        vec![ReadBackDifference { kind: PlanDifferenceKind::RedirectMissing, direction: Direction::Down, text }];
    fails_by(&evidence, FindingKind::NoRedirect);
}

#[test]
fn a_redirect_to_a_device_that_is_down() {
    let mut evidence = good();
    evidence.after = measurement((9.1, 0.1), |_, _, _| 4.0, true, 50);
    tree(&mut evidence, Direction::Down, |of| share(of, 0.0));
    let judged = fails_by(&evidence, FindingKind::RedirectTargetDown);
    assert!(!judged.found(FindingKind::NoRedirect));
    let mut evidence = good();
    let text = "ifb4eth0 is down".to_owned();
    evidence.differences =
        vec![ReadBackDifference { kind: PlanDifferenceKind::RedirectTargetDown, direction: Direction::Down, text }];
    fails_by(&evidence, FindingKind::RedirectTargetDown);
    let text = "class 1:10 has 5 Mbit/s".to_owned();
    evidence.differences =
        vec![ReadBackDifference { kind: PlanDifferenceKind::OtherRate, direction: Direction::Up, text }];
    assert!(!fails_by(&evidence, FindingKind::TreeDiffers).found(FindingKind::RedirectTargetDown));
}

#[test]
fn another_interface() {
    let mut evidence = good();
    tree(&mut evidence, Direction::Up, |of| share(of, 0.0));
    tree(&mut evidence, Direction::Down, |of| share(of, 0.0));
    let judged = fails_by(&evidence, FindingKind::WrongInterface);
    assert!(!judged.found(FindingKind::NoRedirect) && !judged.found(FindingKind::Bypassed));
    // Without counters there is no finding.
    let mut evidence = good();
    evidence.after.phases.iter_mut().for_each(|phase| phase.tree = PerDirection::default());
    assert!(verify(&evidence).pass);
}

#[test]
fn bypassing_flows() {
    for direction in [Direction::Up, Direction::Down] {
        let mut evidence = good();
        tree(&mut evidence, direction, |of| share(of, 0.2));
        let judged = fails_by(&evidence, FindingKind::Bypassed);
        assert!(judged.findings.iter().all(|finding| finding.direction == Some(direction)), "{:?}", judged.findings);
        // Ten percent of headers that only one of them counts.
        let mut evidence = good();
        tree(&mut evidence, direction, |of| share(of, 0.9));
        assert!(verify(&evidence).pass);
    }
}

#[test]
fn a_rate_above_the_capacity() {
    let mut evidence = good();
    evidence.set.down = Some(megabits(60.0));
    evidence.after = measurement((9.1, 50.0), |kind, _, _| if kind == PhaseKind::Up { 4.0 } else { 290.0 }, true, 50);
    tree(&mut evidence, Direction::Down, |of| {
        (of.drops, of.largest_backlog) = (PacketCount::ZERO, Some(ByteCount::new(1514)));
    });
    let judged = fails_by(&evidence, FindingKind::RateAboveCapacity);
    assert!(
        judged
            .findings
            .iter()
            .all(|finding| finding.kind != FindingKind::RateAboveCapacity || finding.direction == Some(Direction::Down))
    );
    assert_eq!(
        (judged.attribution.location, judged.attribution.direction),
        (DelayOrigin::Upstream, Some(Direction::Down))
    );
    assert_eq!(judged.attribution.confidence, Confidence::High);
    // The same delay with packets in our own leaves has another cause.
    tree(&mut evidence, Direction::Down, |of| of.largest_backlog = Some(ByteCount::new(400_000)));
    assert!(!verify(&evidence).found(FindingKind::RateAboveCapacity));
    // Without the backlog, no drops and a rate above the goodput show it as well.
    tree(&mut evidence, Direction::Down, |of| of.largest_backlog = None);
    fails_by(&evidence, FindingKind::RateAboveCapacity);
}

#[test]
fn one_way_delays_show_the_direction_above_the_capacity() {
    let mut evidence = good();
    evidence.after = measurement((9.1, 45.4), |_, _, _| 200.0, true, 50);
    for phase in &mut evidence.after.phases {
        let late = if matches!(phase.kind, PhaseKind::Idle) { 0.0 } else { 200.0 };
        for reading in &mut phase.classes {
            let delays =
                |late: f64| SampleSummary::of(&[milliseconds(1.0 + late), milliseconds(2.0 + late)]).expect("two");
            reading.one_way = Some(PerDirection { up: delays(late), down: delays(0.0) });
        }
        for direction in [Direction::Up, Direction::Down] {
            let tree = phase.tree.of_mut(direction).as_mut().expect("a tree");
            (tree.drops, tree.largest_backlog) = (PacketCount::ZERO, Some(ByteCount::ZERO));
        }
    }
    let judged = fails_by(&evidence, FindingKind::RateAboveCapacity);
    let above = judged.findings.iter().filter(|finding| finding.kind == FindingKind::RateAboveCapacity);
    assert_eq!(above.map(|finding| finding.direction).collect::<Vec<_>>(), [Some(Direction::Up)]);
}

#[test]
fn ipv6_without_filters() {
    let mut evidence = good();
    let six = |_, _, family| if family == AddressFamily::Ipv6 { 280.0 } else { 4.0 };
    evidence.after = measurement((9.1, 45.4), six, true, 50);
    fails_by(&evidence, FindingKind::Ipv6Unshaped);
    // Both protocols as late as before: another fault.
    evidence.after = measurement((9.1, 45.4), |_, _, _| 280.0, true, 50);
    assert!(!verify(&evidence).found(FindingKind::Ipv6Unshaped));
}

#[test]
fn swapped_rates() {
    let mut evidence = good();
    // 9.5 where 47.5 should be; up, 47.5 do not limit a link of 10.
    evidence.after = measurement((10.0, 9.1), |kind, _, _| if kind == PhaseKind::Down { 4.0 } else { 290.0 }, true, 50);
    tree(&mut evidence, Direction::Up, |of| {
        (of.drops, of.largest_backlog) = (PacketCount::ZERO, Some(ByteCount::ZERO));
    });
    fails_by(&evidence, FindingKind::RatesSwapped);
    // A link that carries no more, with its uplink limited, is slow and not swapped.
    evidence.after = measurement((9.1, 9.1), |_, _, _| 4.0, true, 50);
    assert!(!verify(&evidence).found(FindingKind::RatesSwapped));
}

#[test]
fn only_ping_is_fast() {
    let mut evidence = good();
    let fooling = |_, class: LatencyClass, _| if class.counts_for_verdict() { 290.0 } else { 4.0 };
    evidence.after = measurement((9.1, 45.4), fooling, true, 50);
    tree(&mut evidence, Direction::Down, |of| of.largest_backlog = Some(ByteCount::new(1_700_000)));
    tree(&mut evidence, Direction::Up, |of| of.largest_backlog = Some(ByteCount::new(340_000)));
    let judged = fails_by(&evidence, FindingKind::OnlyPrioritisedBetter);
    assert!(judged.grades.is_some_and(|(_, after)| after >= LatencyGrade::C));
    assert_eq!((judged.attribution.location, judged.attribution.confidence), (DelayOrigin::OwnLeaf, Confidence::High));
    // Best effort twice as late as ping, and both good.
    evidence.after = measurement(
        (9.1, 45.4),
        |_, class: LatencyClass, _| if class.counts_for_verdict() { 8.0 } else { 4.0 },
        true,
        50,
    );
    assert!(!verify(&evidence).found(FindingKind::OnlyPrioritisedBetter));
    // Neither was measured: no evidence.
    for of in [&mut evidence.before, &mut evidence.after] {
        of.phases.iter_mut().for_each(|phase| phase.classes.retain(|reading| !reading.class.counts_for_verdict()));
    }
    assert_eq!(fails_by(&evidence, FindingKind::TooFewSamples).grades, None);
}

#[test]
fn traffic_of_others() {
    for (more, spoils) in [(1.3, true), (1.03, false)] {
        let mut evidence = good();
        for phase in &mut evidence.after.phases {
            if let (PhaseKind::Down, Some(traffic)) = (phase.kind, &mut phase.traffic.down) {
                traffic.counted = ByteCount::from_f64(traffic.counted.as_f64() * more);
                let tree = phase.tree.down.as_mut().expect("a tree");
                tree.bytes = traffic.counted;
            }
        }
        let judged = verify(&evidence);
        assert_eq!(judged.found(FindingKind::Contaminated), spoils, "{more}");
        assert_eq!((judged.pass, judged.grades.is_none()), (!spoils, spoils), "{more}");
    }
}

#[test]
fn a_path_that_changed_meanwhile() {
    let mut evidence = good();
    evidence.before_again = Some(measurement((10.0, 50.0), |_, _, _| 120.0, false, 100));
    assert_eq!(fails_by(&evidence, FindingKind::Drift).confidence, Confidence::Low);
    evidence.before_again = Some(measurement((10.0, 35.0), |_, _, _| 300.0, false, 100));
    fails_by(&evidence, FindingKind::Drift);
    evidence.before_again = Some(measurement((10.0, 48.0), |_, _, _| 310.0, false, 100));
    assert!(verify(&evidence).pass);
    evidence.before_again = None;
    let once = verify(&evidence);
    assert!(once.pass && once.confidence == Confidence::Medium);
}

#[test]
fn remaining_delay_and_no_delay_before() {
    let mut evidence = good();
    evidence.after = measurement((9.1, 45.4), |_, _, _| 300.0, true, 50);
    fails_by(&evidence, FindingKind::NotBetter);
    evidence.after = measurement((9.1, 45.4), |_, _, _| 60.0, true, 50);
    let judged = verify(&evidence);
    assert!(
        judged.found(FindingKind::DelayAboveLimit) && judged.found(FindingKind::PredictionMissed),
        "{:?}",
        judged.findings
    );
    let calm = |seed| measurement((10.0, 50.0), |_, _, _| 2.0, false, seed);
    (evidence.before, evidence.before_again) = (calm(1), Some(calm(100)));
    evidence.after = measurement((9.1, 45.4), |_, _, _| 2.0, true, 50);
    let judged = verify(&evidence);
    assert!(judged.pass && judged.found(FindingKind::NothingToGain), "{:?}", judged.findings);
}

#[test]
fn too_little_is_carried() {
    let mut evidence = good();
    evidence.after = measurement((9.1, 30.0), |_, _, _| 4.0, true, 50);
    let judged = fails_by(&evidence, FindingKind::GoodputBelowFloor);
    assert!(judged.found(FindingKind::NotInControl));
    assert_eq!(
        (judged.attribution.location, judged.attribution.direction),
        (DelayOrigin::Burst, Some(Direction::Down))
    );
    evidence.after.phases.iter_mut().for_each(|phase| phase.processor = Ratio::new(0.98));
    let judged = verify(&evidence);
    assert!(judged.found(FindingKind::ProcessorFull));
    assert_eq!(judged.attribution.location, DelayOrigin::Processor);
    // More than the set rate: the shaper does not control it.
    let mut evidence = good();
    (evidence.set.down, evidence.before) = (Some(megabits(30.0)), before(1));
    let judged = fails_by(&evidence, FindingKind::NotInControl);
    assert!(!judged.found(FindingKind::GoodputBelowFloor));
}

#[test]
fn every_kind_has_its_own_name() {
    let names: std::collections::BTreeSet<&str> = FindingKind::ALL.into_iter().map(FindingKind::name).collect();
    assert_eq!(names.len(), FindingKind::ALL.len());
}

/// Loads the simulated link for 20 s at this rate: 95th percentile of the wait in the path's buffer.
fn uplift(up: bool, capacity: f64, rate: BitRate) -> Duration {
    let length = 20_000;
    let capacity = constant(length / 1000, capacity);
    let mut line = SimulatedLink::new(up, capacity, vec![20.0; length], vec![f64::INFINITY; length], 40);
    line.rate = rate.bits_per_second() / 8e3;
    let (mut out, mut waits) = (Vec::new(), Vec::new());
    for now in 0..length {
        if now % 50 == 0 {
            line.probe(now as u64, now);
        }
        out.clear();
        line.step(now, &mut out);
        // The first five seconds are slow start.
        waits.extend(out.iter().filter(|_| now > 5000).map(|(_, waited)| milliseconds(*waited)));
    }
    percentile(&waits, Ratio::new(0.95).expect("a share")).unwrap_or(Duration::MAX)
}

fn searched(
    limits: &RateSearchLimits,
    mut trial: impl FnMut(PerDirection<Option<BitRate>>) -> TrialUplift,
) -> (PerDirection<Option<RateSearchResult>>, u32) {
    let mut search = PassingRateSearch::new(limits);
    for count in 0..40 {
        match search.next() {
            RateSearchStep::Done(found) => return (found, count),
            RateSearchStep::Measure(rates) => search.report(&trial(rates)),
        }
    }
    panic!("no end: {search:?}");
}

fn limits(up: f64, down: f64) -> RateSearchLimits {
    let capacity = PerDirection { up: Some(megabits(up)), down: Some(megabits(down)) };
    RateSearchLimits { capacity, largest_uplift: Duration::from_millis(15), floor: Ratio::new(0.8).expect("a share") }
}

fn rate_of(found: Option<RateSearchResult>) -> f64 {
    match found {
        Some(RateSearchResult::Highest { rate, .. }) => rate.bits_per_second() / 1e6,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_highest_rates_of_the_simulated_link() {
    let limits = limits(10.0, 50.0);
    let (found, count) = searched(&limits, |rates| {
        TrialUplift::OneWay(PerDirection {
            up: uplift(true, 10.0, rates.up.expect("a rate")),
            down: uplift(false, 50.0, rates.down.expect("a rate")),
        })
    });
    // Up, the shaper precedes the buffer: all rates below the capacity pass, with 2 % in reserve.
    assert!((9.7..=9.8 + 1e-9).contains(&rate_of(found.up)), "{found:?}");
    assert!((40.0..=50.0).contains(&rate_of(found.down)), "{found:?}");
    assert!(count <= 12, "{count}");
    assert!(uplift(false, 50.0, megabits(rate_of(found.down))) <= limits.largest_uplift);
}

#[test]
fn the_search_comes_within_its_resolution_of_any_threshold() {
    for true_share in [0.81, 0.84, 0.87, 0.93, 0.955, 0.98, 1.0] {
        let late = |rate: Option<BitRate>, capacity: f64| {
            let fits = rate.is_some_and(|rate| rate <= megabits(capacity * true_share + 1e-6));
            if fits { Duration::ZERO } else { Duration::from_millis(200) }
        };
        let (found, count) = searched(&limits(10.0, 50.0), |rates| {
            TrialUplift::OneWay(PerDirection { up: late(rates.up, 10.0), down: late(rates.down, 50.0) })
        });
        let share = rate_of(found.down) / 50.0;
        // Never more than 98 %.
        let most = true_share.min(0.98);
        assert!(share <= most + 1e-9 && share > most - 0.016, "{share} of {true_share}");
        assert!(count <= 12, "{true_share}: {count}");
    }
}

#[test]
fn nothing_passes_or_only_one_direction_is_shaped() {
    let (found, _) = searched(&limits(10.0, 50.0), |_| TrialUplift::RoundTrip(Duration::from_millis(90)));
    let Some(RateSearchResult::NothingPassed { tried, uplift }) = found.up else { panic!("{found:?}") };
    assert!((tried.bits_per_second() - 8e6).abs() < 1.0);
    assert_eq!(uplift, Duration::from_millis(90));
    let mut limits = limits(10.0, 50.0);
    limits.capacity.down = None;
    let (found, _) = searched(&limits, |rates| {
        assert_eq!(rates.down, None);
        TrialUplift::RoundTrip(Duration::ZERO)
    });
    assert_eq!(found.down, None);
    assert!((rate_of(found.up) - 9.8).abs() < 1e-6);
}

#[test]
fn a_lucky_single_pass_is_not_the_result() {
    let mut count = 0;
    let (found, _) = searched(&limits(10.0, 50.0), |rates| {
        count += 1;
        let down = rates.down.expect("a rate");
        // 95 % pass the first time only.
        let late = down > megabits(46.0) && count > 1;
        TrialUplift::OneWay(PerDirection {
            up: Duration::ZERO,
            down: if late { Duration::from_millis(99) } else { Duration::ZERO },
        })
    });
    assert!(rate_of(found.down) <= 46.0, "{found:?}");
}
