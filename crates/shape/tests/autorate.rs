//! The controller of variable lines on a simulated one: both laws side by side, with bounds.

#![expect(clippy::disallowed_macros, clippy::print_stdout, reason = "the table is what the test is for")]
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "milliseconds")]

#[path = "simulation/driver.rs"]
mod driver;
#[allow(dead_code, reason = "shared with verify.rs")]
mod simulation;

use driver::{Outcome, Scenario, megabits, run};
use linerate_shape::autorate::{Bounds, Law, State};
use linerate_model::statistics::Random;
use simulation::{Line, bytes, constant, steps, wobble};

const SECONDS: usize = 120;

/// Which direction varies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Varies {
    Up,
    Down,
    Both,
}

fn given() -> Bounds {
    Bounds { minimum: megabits(2.0), base: megabits(10.0), maximum: megabits(100.0) }
}

/// A scenario with this capacity in the loaded direction, 20 Mbit/s without load in the other, 40 ms of round trip.
fn scenario(name: &str, varies: Varies, capacity: &[f64]) -> Scenario {
    let length = capacity.len();
    let loaded = |yes: bool| vec![if yes { f64::INFINITY } else { 0.0 }; length];
    let of = |yes: bool| if yes { capacity.to_vec() } else { constant(length / 1000, 20.0) };
    let (up, down) = (varies != Varies::Down, varies != Varies::Up);
    Scenario {
        name: format!("{name} {varies:?}"),
        up: Line::new(true, of(up), vec![20.0; length], loaded(up), 40),
        down: Line::new(false, of(down), vec![20.0; length], loaded(down), 40),
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

fn stepped(varies: Varies) -> Scenario {
    let mut result = scenario("steps 20/5/40", varies, &steps(SECONDS, &[20.0, 5.0, 40.0]));
    result.steps = (0..SECONDS / 20).map(|step| step * 20_000).collect();
    result
}

fn trace(outcome: &Outcome) {
    for (place, row) in outcome.trace.iter().enumerate() {
        println!("{:.1}\t{}", place as f64 / 10.0, row.map(|figure| format!("{figure:.1}")).join("\t"));
    }
}

#[test]
#[ignore = "prints a trace for looking at"]
fn trace_of_steps() {
    trace(&run(deaths(Varies::Up, 6), Law::Linerate));
}

/// Satellites: every 15 s another capacity and another path.
fn satellites(varies: Varies) -> Scenario {
    let (mut random, mut capacity, mut rest) = (Random::new(9), Vec::new(), Vec::new());
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
fn idle_times(varies: Varies) -> Scenario {
    let mut result = scenario("idle times", varies, &constant(SECONDS, 20.0));
    let demand = |now: usize| [f64::INFINITY, 0.0, bytes(1.0)][now / 20_000 % 3];
    let line = if varies == Varies::Up { &mut result.up } else { &mut result.down };
    line.demand = (0..SECONDS * 1000).map(demand).collect();
    result
}

fn stall(varies: Varies) -> Scenario {
    let mut result = scenario("stall of 5 s", varies, &constant(SECONDS, 20.0));
    for line in [&mut result.up, &mut result.down] {
        line.capacity[60_000..65_000].fill(0.0);
    }
    result.steps = vec![60_000, 62_000, 64_000, 65_000];
    result
}

fn clock(varies: Varies, ahead: f64) -> Scenario {
    let mut result = scenario("clock 1 s", varies, &constant(SECONDS, 20.0));
    result.clock = Some((60_000, ahead));
    result
}

fn deaths(varies: Varies, below: u32) -> Scenario {
    let mut result = scenario(&format!("{below} of 6 die"), varies, &constant(SECONDS, 20.0));
    result.deaths = Some((40_000, below));
    result
}

fn longer_path(varies: Varies) -> Scenario {
    let mut result = scenario("path 30 ms longer", varies, &constant(SECONDS, 20.0));
    result.up.rest[60_000..].fill(35.0);
    result.down.rest[60_000..].fill(35.0);
    result.steps = vec![60_000];
    result
}

fn discovery(varies: Varies, mut scenario: Scenario) -> Scenario {
    scenario.name = format!("nothing given {varies:?}");
    scenario.bounds = Bounds::default();
    scenario
}

fn jittery(varies: Varies) -> Scenario {
    let mut result = scenario("LTE, jitter 5 ms", varies, &wobble(SECONDS, (5.0, 40.0), 0.2, 1));
    result.jitter = 5.0;
    result
}

fn round_trips(varies: Varies) -> Scenario {
    let mut result = stepped(varies);
    result.name = format!("steps, ping only {varies:?}");
    result.round_trips = true;
    result
}

fn all() -> Vec<Scenario> {
    let mut all = Vec::new();
    for varies in [Varies::Up, Varies::Down, Varies::Both] {
        all.push(scenario("constant 20", varies, &constant(SECONDS, 20.0)));
        all.push(stepped(varies));
        for seed in 1..=6 {
            all.push(scenario(&format!("LTE {seed}"), varies, &wobble(SECONDS, (5.0, 40.0), 0.2, seed)));
        }
    }
    for varies in [Varies::Up, Varies::Down] {
        all.extend([satellites(varies), idle_times(varies), stall(varies), clock(varies, 1000.0), clock(varies, -1000.0)]);
        all.extend([deaths(varies, 3), deaths(varies, 6), longer_path(varies), discovery(varies, stepped(varies))]);
        all.extend([jittery(varies), round_trips(varies)]);
    }
    all
}

#[test]
fn table() {
    println!("{:24} {:>28} {:>28}", "", "cake-autorate", "linerate");
    println!("{:24} {:>8} {:>9} {:>9} {:>8} {:>9} {:>9}", "scenario", "p50 ms", "p95 ms", "used %", "p50 ms", "p95 ms", "used %");
    for scenario in all() {
        let name = scenario.name.clone();
        let [baseline, ours] = [Law::CakeAutorate, Law::Linerate].map(|law| run(scenario.clone(), law));
        let row = |outcome: &Outcome| format!("{:8.1} {:9.1} {:9.1} {:?} {:?} {:?} {}", outcome.median, outcome.p95, outcome.used * 100.0, outcome.lowest, outcome.states, outcome.replaced, outcome.changes);
        println!("{name:24} {} {}", row(&baseline), row(&ours));
    }
}
