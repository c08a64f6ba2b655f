//! The judge: each way in which a shaper silently does nothing, with a case that fires and one that does not; and the search
//! for the highest rates, on the simulated line.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "milliseconds"
)]

#[allow(dead_code, reason = "shared with autorate.rs")]
mod simulation;

use std::time::Duration;

use linerate_model::latency_under_load::{Class, Grade, InterfaceTraffic};
use linerate_model::schema::load::PhaseKind;
use linerate_model::statistics::{Random, Summary, percentile};
use linerate_model::throughput::Flow;
use linerate_shape::verify::margin::{Found, Limits, Next, Search, Trial};
use linerate_shape::verify::{
    Both, ClassReading, Confidence, Difference, DifferenceKind, Evidence, Family, Kind, Measurement, PhaseReading,
    Place, Profile, TreeReading, Verification, verify,
};
use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Ratio};
use simulation::{Line, constant};

const CLASSES: [Class; 4] = [Class::Icmp, Class::UdpBestEffort, Class::UdpExpedited, Class::TcpInBand];
const SECONDS: u64 = 25;

fn megabits(rate: f64) -> BitRate {
    BitRate::from_bits_per_second(rate * 1e6)
}

fn milliseconds(time: f64) -> Duration {
    Duration::from_secs_f64(time / 1e3)
}

/// Probes each 50 ms: 20 ms at rest, and this much more, give or take a tenth.
fn reading(class: Class, family: Family, added: f64, seed: u64) -> ClassReading {
    let mut random = Random::new(seed ^ (class as u64) << 8);
    let mut draw = || added * (1.0 + 0.1 * random.normal()).max(0.0) + random.unit();
    let round_trips = (0..SECONDS * 20)
        .map(|number| (MonotonicTime::from_nanos(number * 50_000_000), milliseconds(20.0 + draw())))
        .collect();
    ClassReading { class, family, round_trips, one_way: None }
}

/// What is carried, in Mbit/s, up and down, and what load adds to each class, in milliseconds.
fn measurement(
    carried: (f64, f64),
    added: impl Fn(PhaseKind, Class, Family) -> f64,
    tree: bool,
    seed: u64,
) -> Measurement {
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
        let counted = |traffic: InterfaceTraffic, loaded: bool| TreeReading {
            bytes: traffic.counted,
            packets: PacketCount::new(traffic.counted.get() / 1000),
            drops: PacketCount::new(if loaded { 40 } else { 0 }),
            marks: PacketCount::ZERO,
            largest_backlog: Some(ByteCount::new(if loaded { 30_000 } else { 0 })),
        };
        let classes = CLASSES.into_iter().flat_map(|class| [(class, Family::Four), (class, Family::Six)]);
        PhaseReading {
            kind,
            classes: classes
                .map(|(class, family)| {
                    let added = if kind == PhaseKind::Idle { 0.0 } else { added(kind, class, family) };
                    reading(class, family, added, seed + place as u64)
                })
                .collect(),
            goodput: Both { up: rate(up, carried.0), down: rate(down, carried.1) },
            traffic: Both { up: Some(up_traffic), down: Some(down_traffic) },
            tree: if tree {
                Both { up: Some(counted(up_traffic, up)), down: Some(counted(down_traffic, down)) }
            } else {
                Both::default()
            },
            processor: Ratio::new(0.3),
        }
    });
    Measurement { phases: phases.collect() }
}

fn before(seed: u64) -> Measurement {
    measurement((10.0, 50.0), |_, _, _| 300.0, false, seed)
}

/// A line of 10/50 Mbit/s on which 9.5/47.5 are set, and that is good afterwards.
fn good() -> Evidence {
    Evidence {
        before: before(1),
        after: measurement((9.1, 45.4), |_, _, _| 4.0, true, 50),
        before_again: Some(before(100)),
        set: Both { up: Some(megabits(9.5)), down: Some(megabits(47.5)) },
        predicted: Both { up: Some(milliseconds(5.0)), down: Some(milliseconds(5.0)) },
        differences: Vec::new(),
        profile: Profile::default(),
        seed: 7,
    }
}

/// Changes what the tree of a direction counted in each phase of the measurement after.
fn tree(evidence: &mut Evidence, direction: Flow, change: impl Fn(&mut TreeReading)) {
    for phase in &mut evidence.after.phases {
        if let Some(tree) = phase.tree.of_mut(direction) {
            change(tree);
        }
    }
}

fn share(of: &mut TreeReading, share: f64) {
    of.bytes = ByteCount::from_f64(of.bytes.as_f64() * share);
}

fn fails_by(evidence: &Evidence, kind: Kind) -> Verification {
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
    assert!(judged.grades.is_some_and(|(before, after)| before >= Grade::C && after <= Grade::A));
    assert_eq!(judged.attribution.place, Place::None);
    // Three phases under load, four classes, two protocols; and four rates.
    assert_eq!((judged.delays.len(), judged.rates.len()), (24, 4));
    assert!(judged.delays.iter().all(|row| row.grades.is_some() == row.class.counts() && row.median.is_some()));
}

#[test]
fn no_redirect() {
    let mut evidence = good();
    // Packets of others' to the device itself: a little always passes.
    tree(&mut evidence, Flow::Down, |of| share(of, 0.001));
    let judged = fails_by(&evidence, Kind::NoRedirect);
    assert!(!judged.found(Kind::WrongInterface) && !judged.found(Kind::Bypassed));
    let mut evidence = good();
    let words = "no filter on ingress of eth0".to_owned();
    evidence.differences = vec![Difference { kind: DifferenceKind::RedirectMissing, direction: Flow::Down, words }];
    fails_by(&evidence, Kind::NoRedirect);
}

#[test]
fn a_redirect_to_a_device_that_is_down() {
    let mut evidence = good();
    evidence.after = measurement((9.1, 0.1), |_, _, _| 4.0, true, 50);
    tree(&mut evidence, Flow::Down, |of| share(of, 0.0));
    let judged = fails_by(&evidence, Kind::RedirectTargetDown);
    assert!(!judged.found(Kind::NoRedirect));
    let mut evidence = good();
    let words = "ifb4eth0 is down".to_owned();
    evidence.differences = vec![Difference { kind: DifferenceKind::RedirectTargetDown, direction: Flow::Down, words }];
    fails_by(&evidence, Kind::RedirectTargetDown);
    let words = "class 1:10 has 5 Mbit/s".to_owned();
    evidence.differences = vec![Difference { kind: DifferenceKind::OtherRate, direction: Flow::Up, words }];
    assert!(!fails_by(&evidence, Kind::TreeDiffers).found(Kind::RedirectTargetDown));
}

#[test]
fn another_interface() {
    let mut evidence = good();
    tree(&mut evidence, Flow::Up, |of| share(of, 0.0));
    tree(&mut evidence, Flow::Down, |of| share(of, 0.0));
    let judged = fails_by(&evidence, Kind::WrongInterface);
    assert!(!judged.found(Kind::NoRedirect) && !judged.found(Kind::Bypassed));
    // Nobody looked at the counters: nothing is claimed.
    let mut evidence = good();
    evidence.after.phases.iter_mut().for_each(|phase| phase.tree = Both::default());
    assert!(verify(&evidence).pass);
}

#[test]
fn flows_that_pass_by() {
    for direction in [Flow::Up, Flow::Down] {
        let mut evidence = good();
        tree(&mut evidence, direction, |of| share(of, 0.2));
        let judged = fails_by(&evidence, Kind::Bypassed);
        assert!(judged.findings.iter().all(|finding| finding.direction == Some(direction)), "{:?}", judged.findings);
        // Ten percent of headers that one of both does not count.
        let mut evidence = good();
        tree(&mut evidence, direction, |of| share(of, 0.9));
        assert!(verify(&evidence).pass);
    }
}

#[test]
fn a_rate_above_the_line() {
    let mut evidence = good();
    evidence.set.down = Some(megabits(60.0));
    evidence.after = measurement((9.1, 50.0), |kind, _, _| if kind == PhaseKind::Up { 4.0 } else { 290.0 }, true, 50);
    tree(&mut evidence, Flow::Down, |of| {
        (of.drops, of.largest_backlog) = (PacketCount::ZERO, Some(ByteCount::new(1514)));
    });
    let judged = fails_by(&evidence, Kind::AboveTheLine);
    assert!(
        judged
            .findings
            .iter()
            .all(|finding| finding.kind != Kind::AboveTheLine || finding.direction == Some(Flow::Down))
    );
    assert_eq!((judged.attribution.place, judged.attribution.direction), (Place::Upstream, Some(Flow::Down)));
    assert_eq!(judged.attribution.confidence, Confidence::High);
    // The same delay with packets in our own leaves is not that.
    tree(&mut evidence, Flow::Down, |of| of.largest_backlog = Some(ByteCount::new(400_000)));
    assert!(!verify(&evidence).found(Kind::AboveTheLine));
    // Nobody looked at the backlog: that nothing was dropped and the rate is above what was carried says it too.
    tree(&mut evidence, Flow::Down, |of| of.largest_backlog = None);
    fails_by(&evidence, Kind::AboveTheLine);
}

#[test]
fn one_way_delays_say_which_direction_is_above_the_line() {
    let mut evidence = good();
    evidence.after = measurement((9.1, 45.4), |_, _, _| 200.0, true, 50);
    for phase in &mut evidence.after.phases {
        let late = if matches!(phase.kind, PhaseKind::Idle) { 0.0 } else { 200.0 };
        for reading in &mut phase.classes {
            let delays = |late: f64| Summary::of(&[milliseconds(1.0 + late), milliseconds(2.0 + late)]).expect("two");
            reading.one_way = Some(Both { up: delays(late), down: delays(0.0) });
        }
        for direction in [Flow::Up, Flow::Down] {
            let tree = phase.tree.of_mut(direction).as_mut().expect("a tree");
            (tree.drops, tree.largest_backlog) = (PacketCount::ZERO, Some(ByteCount::ZERO));
        }
    }
    let judged = fails_by(&evidence, Kind::AboveTheLine);
    let above = judged.findings.iter().filter(|finding| finding.kind == Kind::AboveTheLine);
    assert_eq!(above.map(|finding| finding.direction).collect::<Vec<_>>(), [Some(Flow::Up)]);
}

#[test]
fn ipv6_is_forgotten() {
    let mut evidence = good();
    let six = |_, _, family| if family == Family::Six { 280.0 } else { 4.0 };
    evidence.after = measurement((9.1, 45.4), six, true, 50);
    fails_by(&evidence, Kind::Ipv6Unshaped);
    // Both protocols as late as before: that is another fault.
    evidence.after = measurement((9.1, 45.4), |_, _, _| 280.0, true, 50);
    assert!(!verify(&evidence).found(Kind::Ipv6Unshaped));
}

#[test]
fn exchanged_rates() {
    let mut evidence = good();
    // 9.5 where 47.5 should be; up, 47.5 are no bound on a line of 10.
    evidence.after = measurement((10.0, 9.1), |kind, _, _| if kind == PhaseKind::Down { 4.0 } else { 290.0 }, true, 50);
    tree(&mut evidence, Flow::Up, |of| (of.drops, of.largest_backlog) = (PacketCount::ZERO, Some(ByteCount::ZERO)));
    fails_by(&evidence, Kind::RatesSwapped);
    // A line that carries no more, with the rate up held, is slow and not exchanged.
    evidence.after = measurement((9.1, 9.1), |_, _, _| 4.0, true, 50);
    assert!(!verify(&evidence).found(Kind::RatesSwapped));
}

#[test]
fn only_ping_is_fast() {
    let mut evidence = good();
    let fooling = |_, class: Class, _| if class.counts() { 290.0 } else { 4.0 };
    evidence.after = measurement((9.1, 45.4), fooling, true, 50);
    tree(&mut evidence, Flow::Down, |of| of.largest_backlog = Some(ByteCount::new(1_700_000)));
    tree(&mut evidence, Flow::Up, |of| of.largest_backlog = Some(ByteCount::new(340_000)));
    let judged = fails_by(&evidence, Kind::OnlyPrioritisedBetter);
    assert!(judged.grades.is_some_and(|(_, after)| after >= Grade::C));
    assert_eq!((judged.attribution.place, judged.attribution.confidence), (Place::OwnLeaf, Confidence::High));
    // Best effort twice as late as ping, and both good.
    evidence.after = measurement((9.1, 45.4), |_, class: Class, _| if class.counts() { 8.0 } else { 4.0 }, true, 50);
    assert!(!verify(&evidence).found(Kind::OnlyPrioritisedBetter));
    // Neither was measured: nothing is proven.
    for of in [&mut evidence.before, &mut evidence.after] {
        of.phases.iter_mut().for_each(|phase| phase.classes.retain(|reading| !reading.class.counts()));
    }
    assert_eq!(fails_by(&evidence, Kind::TooFewReadings).grades, None);
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
        assert_eq!(judged.found(Kind::Contaminated), spoils, "{more}");
        assert_eq!((judged.pass, judged.grades.is_none()), (!spoils, spoils), "{more}");
    }
}

#[test]
fn a_path_that_changed_meanwhile() {
    let mut evidence = good();
    evidence.before_again = Some(measurement((10.0, 50.0), |_, _, _| 120.0, false, 100));
    assert_eq!(fails_by(&evidence, Kind::Drift).confidence, Confidence::Low);
    evidence.before_again = Some(measurement((10.0, 35.0), |_, _, _| 300.0, false, 100));
    fails_by(&evidence, Kind::Drift);
    evidence.before_again = Some(measurement((10.0, 48.0), |_, _, _| 310.0, false, 100));
    assert!(verify(&evidence).pass);
    evidence.before_again = None;
    let once = verify(&evidence);
    assert!(once.pass && once.confidence == Confidence::Medium);
}

#[test]
fn delay_that_stays_and_delay_that_was_never_there() {
    let mut evidence = good();
    evidence.after = measurement((9.1, 45.4), |_, _, _| 300.0, true, 50);
    fails_by(&evidence, Kind::NotBetter);
    evidence.after = measurement((9.1, 45.4), |_, _, _| 60.0, true, 50);
    let judged = verify(&evidence);
    assert!(judged.found(Kind::StillLate) && judged.found(Kind::PredictionMissed), "{:?}", judged.findings);
    let calm = |seed| measurement((10.0, 50.0), |_, _, _| 2.0, false, seed);
    (evidence.before, evidence.before_again) = (calm(1), Some(calm(100)));
    evidence.after = measurement((9.1, 45.4), |_, _, _| 2.0, true, 50);
    let judged = verify(&evidence);
    assert!(judged.pass && judged.found(Kind::NothingToGain), "{:?}", judged.findings);
}

#[test]
fn too_little_is_carried() {
    let mut evidence = good();
    evidence.after = measurement((9.1, 30.0), |_, _, _| 4.0, true, 50);
    let judged = fails_by(&evidence, Kind::GoodputBelowFloor);
    assert!(judged.found(Kind::NotInControl));
    assert_eq!((judged.attribution.place, judged.attribution.direction), (Place::Burst, Some(Flow::Down)));
    evidence.after.phases.iter_mut().for_each(|phase| phase.processor = Ratio::new(0.98));
    let judged = verify(&evidence);
    assert!(judged.found(Kind::ProcessorFull));
    assert_eq!(judged.attribution.place, Place::Processor);
    // More than is set: whoever holds the rate, it is not the shaper.
    let mut evidence = good();
    (evidence.set.down, evidence.before) = (Some(megabits(30.0)), before(1));
    let judged = fails_by(&evidence, Kind::NotInControl);
    assert!(!judged.found(Kind::GoodputBelowFloor));
}

#[test]
fn every_kind_has_its_own_name() {
    let names: std::collections::BTreeSet<&str> = Kind::ALL.into_iter().map(Kind::name).collect();
    assert_eq!(names.len(), Kind::ALL.len());
}

/// Both directions of the simulated line loaded for 20 s at these rates: 95th percentile of the wait in the path's buffer.
fn uplift(up: bool, capacity: f64, rate: BitRate) -> Duration {
    let length = 20_000;
    let capacity = constant(length / 1000, capacity);
    let mut line = Line::new(up, capacity, vec![20.0; length], vec![f64::INFINITY; length], 40);
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

fn searched(limits: &Limits, mut trial: impl FnMut(Both<Option<BitRate>>) -> Trial) -> (Both<Option<Found>>, u32) {
    let mut search = Search::new(limits);
    for count in 0..40 {
        match search.next() {
            Next::Done(found) => return (found, count),
            Next::Measure(rates) => search.report(&trial(rates)),
        }
    }
    panic!("no end: {search:?}");
}

fn limits(up: f64, down: f64) -> Limits {
    let capacity = Both { up: Some(megabits(up)), down: Some(megabits(down)) };
    Limits { capacity, largest_uplift: Duration::from_millis(15), floor: Ratio::new(0.8).expect("a share") }
}

fn rate_of(found: Option<Found>) -> f64 {
    match found {
        Some(Found::Highest { rate, .. }) => rate.bits_per_second() / 1e6,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_highest_rates_of_the_simulated_line() {
    let limits = limits(10.0, 50.0);
    let (found, count) = searched(&limits, |rates| {
        Trial::OneWay(Both {
            up: uplift(true, 10.0, rates.up.expect("a rate")),
            down: uplift(false, 50.0, rates.down.expect("a rate")),
        })
    });
    // Going up, the shaper comes first: all below the capacity passes, and 2 % stay in reserve.
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
            Trial::OneWay(Both { up: late(rates.up, 10.0), down: late(rates.down, 50.0) })
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
    let (found, _) = searched(&limits(10.0, 50.0), |_| Trial::RoundTrip(Duration::from_millis(90)));
    let Some(Found::NothingPassed { tried, uplift }) = found.up else { panic!("{found:?}") };
    assert!((tried.bits_per_second() - 8e6).abs() < 1.0);
    assert_eq!(uplift, Duration::from_millis(90));
    let mut limits = limits(10.0, 50.0);
    limits.capacity.down = None;
    let (found, _) = searched(&limits, |rates| {
        assert_eq!(rates.down, None);
        Trial::RoundTrip(Duration::ZERO)
    });
    assert_eq!(found.down, None);
    assert!((rate_of(found.up) - 9.8).abs() < 1e-6);
}

#[test]
fn what_passed_once_by_luck_is_not_the_result() {
    let mut count = 0;
    let (found, _) = searched(&limits(10.0, 50.0), |rates| {
        count += 1;
        let down = rates.down.expect("a rate");
        // 95 % pass the first time only.
        let late = down > megabits(46.0) && count > 1;
        Trial::OneWay(Both { up: Duration::ZERO, down: if late { Duration::from_millis(99) } else { Duration::ZERO } })
    });
    assert!(rate_of(found.down) <= 46.0, "{found:?}");
}
