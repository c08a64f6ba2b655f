//! The controller on a simulated variable link: both laws compared, with bounds.

#![expect(clippy::disallowed_macros, clippy::print_stdout, reason = "the test prints a table")]

use linerate_model::direction::Direction;
use std::time::Duration;

use linerate_analysis::statistics::{SeededRandom, SignedDifference};
use linerate_shape::autorate::{
    AutorateBounds, AutorateLogLine, ControlLaw, ControllerInput, ControllerOutput, ControllerSettings,
    ControllerState, ProbeDelay, RateController, ReflectorId, ReflectorSample,
};
use linerate_units::{BitRate, ByteCount, MonotonicTime};
use proptest::prelude::*;

use crate::simulation::driver::{SimulationOutcome, SimulationScenario, megabits, run};
use crate::simulation::{SimulatedLink, bytes, constant, steps, wobble};

const SECONDS: usize = 120;

/// Varying directions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum VaryingDirection {
    Up,
    Down,
    Both,
}

fn given() -> AutorateBounds {
    AutorateBounds { minimum: Some(megabits(2.0)), base: Some(megabits(10.0)), maximum: Some(megabits(100.0)) }
}

/// A scenario with this capacity in the loaded direction, 20 Mbit/s without load in the other, 40 ms of round trip.
fn scenario(name: &str, varies: VaryingDirection, capacity: &[f64]) -> SimulationScenario {
    let length = capacity.len();
    let loaded = |yes: bool| vec![if yes { f64::INFINITY } else { 0.0 }; length];
    let of = |yes: bool| if yes { capacity.to_vec() } else { constant(length / 1000, 20.0) };
    let (up, down) = (varies != VaryingDirection::Down, varies != VaryingDirection::Up);
    SimulationScenario {
        name: format!("{name} {varies:?}"),
        up: SimulatedLink::new(true, of(up), vec![20.0; length], loaded(up), 40),
        down: SimulatedLink::new(false, of(down), vec![20.0; length], loaded(down), 40),
        bounds: given(),
        steps: Vec::new(),
        jitter: 1.0,
        clock: None,
        deaths: None,
        round_trips: false,
        seed: 1,
        counts: [up, down],
    }
}

fn stepped(varies: VaryingDirection) -> SimulationScenario {
    let mut result = scenario("steps 20/5/40", varies, &steps(SECONDS, &[20.0, 5.0, 40.0]));
    result.steps = (0..SECONDS / 20).map(|step| step * 20_000).collect();
    result
}

/// Satellites: a new capacity and path every 15 s.
fn satellites(varies: VaryingDirection) -> SimulationScenario {
    let (mut random, mut capacity, mut rest) = (SeededRandom::new(9), Vec::new(), Vec::new());
    for _ in 0..SECONDS / 15 {
        capacity.extend(vec![bytes(20.0 + 60.0 * random.unit()); 15_000]);
        rest.extend(vec![12.0 + 16.0 * random.unit(); 15_000]);
    }
    let mut result = scenario("satellites, 15 s", varies, &capacity);
    (result.up.rest, result.down.rest) = (rest.clone(), rest);
    result.steps = (0..SECONDS / 15).map(|step| step * 15_000).collect();
    result
}

/// Twenty seconds each of full load, none, a little (1 Mbit/s), and full load again.
fn idle_times(varies: VaryingDirection) -> SimulationScenario {
    let mut result = scenario("idle times", varies, &constant(SECONDS, 20.0));
    let demand = |now: usize| [f64::INFINITY, 0.0, bytes(1.0)][now / 20_000 % 3];
    let line = if varies == VaryingDirection::Up { &mut result.up } else { &mut result.down };
    line.demand = (0..SECONDS * 1000).map(demand).collect();
    result
}

fn stall(varies: VaryingDirection) -> SimulationScenario {
    let mut result = scenario("stall of 5 s", varies, &constant(SECONDS, 20.0));
    for line in [&mut result.up, &mut result.down] {
        line.capacity[60_000..65_000].fill(0.0);
    }
    result.steps = vec![60_000, 62_000, 64_000, 65_000];
    result
}

fn clock(varies: VaryingDirection, ahead: f64) -> SimulationScenario {
    let mut result = scenario("clock 1 s", varies, &constant(SECONDS, 20.0));
    result.clock = Some((60_000, ahead));
    result
}

fn deaths(varies: VaryingDirection, below: u32) -> SimulationScenario {
    let mut result = scenario(&format!("{below} of 6 die"), varies, &constant(SECONDS, 20.0));
    result.deaths = Some((40_000, below));
    result
}

fn longer_path(varies: VaryingDirection) -> SimulationScenario {
    let mut result = scenario("path 30 ms longer", varies, &constant(SECONDS, 20.0));
    result.up.rest[60_000..].fill(35.0);
    result.down.rest[60_000..].fill(35.0);
    result.steps = vec![60_000];
    result
}

fn discovery(varies: VaryingDirection) -> SimulationScenario {
    let mut result = stepped(varies);
    result.name = format!("nothing given {varies:?}");
    result.bounds = AutorateBounds::default();
    result
}

fn jittery(varies: VaryingDirection) -> SimulationScenario {
    let mut result = scenario("LTE, jitter 5 ms", varies, &wobble(SECONDS, (5.0, 40.0), 0.2, 1));
    result.jitter = 5.0;
    result
}

/// Steps at other rates, and on a longer path.
fn scaled(name: &str, varies: VaryingDirection, megabits_of: [f64; 3], rest: f64) -> SimulationScenario {
    let mut result = stepped(varies);
    result.name = format!("{name} {varies:?}");
    let round_trip = 2.0 * rest;
    let (capacity, other) = (steps(SECONDS, &megabits_of), constant(SECONDS, megabits_of[0]));
    let of = |yes: bool| if yes { capacity.clone() } else { other.clone() };
    let rests = vec![rest; SECONDS * 1000];
    let (up, down) = (result.up.demand.clone(), result.down.demand.clone());
    result.up = SimulatedLink::new(true, of(varies != VaryingDirection::Down), rests.clone(), up, round_trip as usize);
    result.down = SimulatedLink::new(false, of(varies != VaryingDirection::Up), rests, down, round_trip as usize);
    let bound = |share: f64| Some(megabits(megabits_of[0] * share));
    result.bounds = AutorateBounds { minimum: bound(0.1), base: bound(0.5), maximum: bound(5.0) };
    result
}

fn round_trips(varies: VaryingDirection) -> SimulationScenario {
    let mut result = stepped(varies);
    result.name = format!("steps, ping only {varies:?}");
    result.round_trips = true;
    result
}

/// Required performance of linerate's law.
#[derive(Clone, Copy)]
struct PerformanceBound {
    p95: f64,
    used: f64,
}

/// Requirement: at most 30 ms at the 95th percentile, at least 85 % of the capacity.
const ISSUE: PerformanceBound = PerformanceBound { p95: 30.0, used: 0.85 };
/// On a link without variation.
const STEADY: PerformanceBound = PerformanceBound { p95: 20.0, used: 0.90 };
/// Both directions lose capacity simultaneously, and the round trip shows both queues.
const BOTH_WOBBLE: PerformanceBound = PerformanceBound { p95: 60.0, used: 0.85 };
/// One packet takes 30 ms at 0.4 Mbit/s.
const SLOW: PerformanceBound = PerformanceBound { p95: 80.0, used: 0.85 };
/// Four CUBIC senders need longer than a step to fill these links at any rate.
const FAR_OR_FAST: PerformanceBound = PerformanceBound { p95: 20.0, used: 0.72 };
/// Five milliseconds of jitter hide small queues.
const JITTERY: PerformanceBound = PerformanceBound { p95: 30.0, used: 0.80 };

fn all() -> Vec<(SimulationScenario, PerformanceBound)> {
    let mut all = Vec::new();
    for varies in [VaryingDirection::Up, VaryingDirection::Down, VaryingDirection::Both] {
        all.push((scenario("constant 20", varies, &constant(SECONDS, 20.0)), STEADY));
        all.push((stepped(varies), ISSUE));
        // The law's constants were chosen with the first three; the others were checked afterwards.
        for seed in [1, 2, 3, 101, 103, 107] {
            let bound = if varies == VaryingDirection::Both { BOTH_WOBBLE } else { ISSUE };
            let capacity = wobble(SECONDS, (5.0, 40.0), 0.2, seed);
            all.push((scenario(&format!("LTE, seed {seed}"), varies, &capacity), bound));
        }
    }
    for varies in [VaryingDirection::Up, VaryingDirection::Down] {
        let steady =
            [satellites(varies), idle_times(varies), stall(varies), clock(varies, 1000.0), clock(varies, -1000.0)];
        all.extend(steady.map(|scenario| (scenario, STEADY)));
        all.extend([deaths(varies, 3), deaths(varies, 6), longer_path(varies)].map(|scenario| (scenario, STEADY)));
        all.extend([discovery(varies), round_trips(varies)].map(|scenario| (scenario, ISSUE)));
        all.push((jittery(varies), JITTERY));
        all.push((scaled("steps 1/0.4/2", varies, [1.0, 0.4, 2.0], 20.0), SLOW));
        all.push((scaled("steps 200/50/400", varies, [200.0, 50.0, 400.0], 20.0), FAR_OR_FAST));
        all.push((scaled("steps, 120 ms", varies, [20.0, 5.0, 40.0], 60.0), FAR_OR_FAST));
    }
    all
}

fn both_laws(scenario: &SimulationScenario) -> [SimulationOutcome; 2] {
    [ControlLaw::CakeAutorate, ControlLaw::Linerate].map(|law| run(scenario.clone(), law))
}

#[test]
fn both_laws_compared() {
    println!("{:26}{:^28}{:^28}", "", "cake-autorate", "linerate");
    println!(
        "{:26}{:>8}{:>10}{:>9} {:>8}{:>10}{:>9}",
        "scenario", "p50 ms", "p95 ms", "used %", "p50 ms", "p95 ms", "used %"
    );
    for (scenario, bound) in all() {
        let name = scenario.name.clone();
        let [baseline, ours] = both_laws(&scenario);
        let row = |of: &SimulationOutcome| format!("{:8.1}{:10.1}{:9.1}", of.median, of.p95, of.used * 100.0);
        println!("{name:26}{} {}", row(&baseline), row(&ours));
        assert!(ours.p95 <= bound.p95 && ours.used >= bound.used, "{name}: {} {}", ours.p95, ours.used);
        assert!(ours.p95 < baseline.p95, "{name}: {} against {}", ours.p95, baseline.p95);
    }
}

#[test]
fn a_clock_step_does_not_throttle() {
    for ahead in [1000.0, -1000.0, 40.0] {
        let [baseline, ours] = both_laws(&clock(VaryingDirection::Both, ahead));
        let least = |outcome: &SimulationOutcome| outcome.lowest[0].min(outcome.lowest[1]);
        // Both start at 10 Mbit/s; the minimum is 2.
        assert!(least(&ours) >= 9.5, "{ahead} ms: {:?}", ours.lowest);
        assert!(least(&baseline) < 5.0, "{ahead} ms: {:?}", baseline.lowest);
    }
}

#[test]
fn dead_reflectors_are_replaced() {
    let three = run(deaths(VaryingDirection::Down, 3), ControlLaw::Linerate);
    assert_eq!(three.replaced, [(0, 6), (1, 7), (2, 8)]);
    assert!(three.states.is_empty(), "{:?}", three.states);
    let all = run(deaths(VaryingDirection::Down, 6), ControlLaw::Linerate);
    assert_eq!(all.replaced.len(), 6);
    assert_eq!(
        all.states.iter().map(|(_, state)| *state).collect::<Vec<_>>(),
        [ControllerState::Blind, ControllerState::Running]
    );
    assert!(all.controller.reflectors().iter().all(|reflector| reflector.get() >= 6));
}

#[test]
fn no_reflector_answers() {
    let outcome = run(deaths(VaryingDirection::Up, 100), ControlLaw::Linerate);
    // Neither above the base nor throttled to the minimum.
    assert!((outcome.last[0] - 10.0).abs() < 0.1, "{:?}", outcome.last);
    assert_eq!(outcome.controller.state(), ControllerState::Blind);
}

#[test]
fn a_stall_is_waited_for() {
    let outcome = run(stall(VaryingDirection::Down), ControlLaw::Linerate);
    let states: Vec<ControllerState> = outcome.states.iter().map(|(_, state)| *state).collect();
    assert_eq!(states, [ControllerState::Stalled, ControllerState::Running]);
    assert!(outcome.states[0].0 < 61_500 && outcome.states[1].0 < 66_000, "{:?}", outcome.states);
    assert!(outcome.replaced.is_empty(), "{:?}", outcome.replaced);
}

#[test]
fn bounds_are_found_by_measurement() {
    for varies in [VaryingDirection::Up, VaryingDirection::Down] {
        let outcome = run(discovery(varies), ControlLaw::Linerate);
        let found =
            outcome.controller.discovered(if varies == VaryingDirection::Up { Direction::Up } else { Direction::Down });
        let rate = |rate: Option<BitRate>| rate.map_or(0.0, BitRate::bits_per_second) / 1e6;
        // The link has 20, 5 and 40 Mbit/s.
        assert!((36.0..=44.0).contains(&rate(found.largest_clean)), "{found:?}");
        assert!((1.0..=5.5).contains(&rate(found.smallest_capacity)), "{found:?}");
        assert!((10.0..=35.0).contains(&rate(found.mean_capacity)), "{found:?}");
    }
}

#[test]
fn nothing_stalls_on_a_good_link() {
    let outcome = run(scenario("constant 20", VaryingDirection::Both, &constant(30, 20.0)), ControlLaw::Linerate);
    assert!(outcome.states.is_empty() && outcome.replaced.is_empty(), "{:?}", outcome.states);
    // Fewer than samples.
    assert!(outcome.changes < 30 * 20, "{}", outcome.changes);
}

fn controller(bounds: AutorateBounds) -> RateController {
    let settings = ControllerSettings {
        law: ControlLaw::Linerate,
        up: bounds,
        down: bounds,
        reflectors: (0..3).map(ReflectorId::new).collect(),
        spare: Vec::new(),
        probe_interval: Duration::from_millis(50),
        largest_packet: ByteCount::new(1514),
    };
    RateController::new(&settings, MonotonicTime::default())
}

fn drained(controller: &mut RateController) -> Vec<ControllerOutput> {
    std::iter::from_fn(|| controller.poll()).collect()
}

#[test]
fn a_minute_without_load_and_a_lost_link() {
    let mut controller = controller(given());
    let first = drained(&mut controller);
    let set = |direction| ControllerOutput::SetRate { direction, rate: BitRate::from_bits_per_second(10e6) };
    assert!(first.contains(&set(Direction::Up)) && first.contains(&set(Direction::Down)));
    let mut states = Vec::new();
    for step in 1..=1_000_u64 {
        let now = MonotonicTime::from_nanos(step * 100_000_000);
        let delay = ProbeDelay::RoundTrip(Duration::from_millis(20));
        let reflector = ReflectorId::new(u32::try_from(step % 3).unwrap_or(0));
        controller.handle(ControllerInput::Sample(ReflectorSample { reflector, sequence: step, delay }), now);
        let busy = if step > 900 { ByteCount::new(100_000) } else { ByteCount::ZERO };
        controller.handle(ControllerInput::Achieved { up: busy, down: busy, over: Duration::from_millis(100) }, now);
        if step == 950 {
            controller.handle(ControllerInput::Link { up: false }, now);
        }
        if step == 980 {
            controller.handle(ControllerInput::Link { up: true }, now);
        }
        for output in drained(&mut controller) {
            if let ControllerOutput::State(state) = output {
                states.push((step, state));
            }
        }
    }
    let expected = [
        (601, ControllerState::Idle),
        (901, ControllerState::Running),
        (950, ControllerState::LinkDown),
        (980, ControllerState::Running),
    ];
    assert_eq!(states, expected);
}

#[test]
fn lines_of_the_log_have_all_columns() {
    let mut controller = controller(AutorateBounds::default());
    let lines: Vec<String> = drained(&mut controller)
        .into_iter()
        .filter_map(|output| if let ControllerOutput::Log(line) = output { Some(line.to_string()) } else { None })
        .collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        assert_eq!(line.split('\t').count(), AutorateLogLine::HEADER.split('\t').count(), "{line}");
    }
}

fn any_input() -> impl Strategy<Value = ControllerInput> {
    let delay = || (-2_000_000_000_i64..2_000_000_000).prop_map(SignedDifference::from_nanos);
    let bytes = || (0_u64..10_000_000).prop_map(ByteCount::new);
    prop_oneof![
        8 => (0_u32..4, 0_u64..1000, delay(), delay()).prop_map(|(reflector, sequence, up, down)| {
            let reflector = ReflectorId::new(reflector);
            ControllerInput::Sample(ReflectorSample { reflector, sequence, delay: ProbeDelay::OneWay { up, down } })
        }),
        2 => (0_u32..4, 0_u64..1000, 0_u64..3_000).prop_map(|(reflector, sequence, milliseconds)| {
            let delay = ProbeDelay::RoundTrip(Duration::from_millis(milliseconds));
            ControllerInput::Sample(ReflectorSample { reflector: ReflectorId::new(reflector), sequence, delay })
        }),
        4 => (bytes(), bytes(), 0_u64..300).prop_map(|(up, down, milliseconds)| ControllerInput::Achieved {
            up,
            down,
            over: Duration::from_millis(milliseconds),
        }),
        1 => Just(ControllerInput::Tick),
        1 => Just(ControllerInput::ClockStepped),
        1 => any::<bool>().prop_map(|up| ControllerInput::Link { up }),
        1 => (0_u32..4).prop_map(|reflector| ControllerInput::Lost { reflector: ReflectorId::new(reflector) }),
        1 => bytes().prop_map(|backlog| ControllerInput::Backlog { direction: Direction::Up, backlog }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rates_stay_in_their_bounds(inputs in proptest::collection::vec((any_input(), 0_u64..200_000_000), 1..400)) {
        let bounds = given();
        let mut controller = controller(bounds);
        let mut now = 0;
        for (input, later) in inputs {
            now += later;
            controller.handle(input, MonotonicTime::from_nanos(now));
            for output in drained(&mut controller) {
                if let ControllerOutput::SetRate { rate, .. } = output {
                    prop_assert!(Some(rate) >= bounds.minimum && Some(rate) <= bounds.maximum, "{rate:?}");
                }
            }
        }
    }

    #[test]
    fn unpolled_outputs_are_bounded(inputs in proptest::collection::vec(any_input(), 1..1000)) {
        let mut controller = controller(AutorateBounds::default());
        for (step, input) in inputs.into_iter().enumerate() {
            controller.handle(input, MonotonicTime::from_nanos(step as u64 * 250_000_000));
        }
        prop_assert!(drained(&mut controller).len() <= 256);
    }
}
