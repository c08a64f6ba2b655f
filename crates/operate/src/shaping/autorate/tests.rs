//! The loop on the loopback device, and (by hand) on a lab path of variable capacity.

use std::fmt::Write as _;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::Duration;

use linerate_shape::autorate::{AutorateBounds, AutorateLogLine, ControlLaw};
use linerate_shape::back_ends::{BackEndId, DeviceProperties, PlanInputs};
use linerate_shape::capability::KernelCapabilities;
use linerate_shape::link::AccessLink;
use linerate_shape::plan::{PlanCommand, ShaperPlan, changes};
use linerate_shape::policy::TrafficPolicy;
use linerate_shape::read_back::QueueingDifference;
use linerate_shape::verify::PerDirection;
use linerate_sys::command;
use linerate_sys::command_reader::TrafficControl;
use linerate_sys::namespace::NetworkNamespace;
use linerate_sys::signals::InterruptSignals;
use linerate_units::BitRate;

use super::run;
use super::settings::{AutorateSettings, ReflectorAddress};
use crate::shaping::error::ShapeError;
use crate::shaping::shaped::ShaperControl;

/// A shaper that runs its commands or only records them.
struct TestShaper {
    facts: DeviceProperties,
    line: AccessLink,
    plan: ShaperPlan,
    back_end: BackEndId,
    really: bool,
    control: Option<TrafficControl>,
    rates: Vec<PerDirection<Option<BitRate>>>,
    up: bool,
}

fn plan(line: &AccessLink, facts: &DeviceProperties, back_end: BackEndId) -> ShaperPlan {
    let (policy, capabilities) = (TrafficPolicy::default(), KernelCapabilities::all_features());
    let inputs = PlanInputs { line, policy: &policy, capabilities: &capabilities, device: facts };
    back_end.back_end().plan(&inputs).expect("a plan")
}

impl TestShaper {
    fn new(device: &str, rates: PerDirection<BitRate>, back_end: BackEndId, really: bool) -> Self {
        let line = AccessLink::new(Some(rates.up), Some(rates.down));
        let facts = DeviceProperties::ethernet(device);
        let plan = plan(&line, &facts, back_end);
        Self { facts, line, plan, back_end, really, control: None, rates: Vec::new(), up: false }
    }

    fn carry_out(&self, commands: &[PlanCommand]) {
        for command in commands.iter().filter(|command| self.really && !command.words.is_empty()) {
            let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
            let program = command.program;
            command::run_checked(program, &words, None, Duration::from_secs(10)).expect("the command runs");
        }
    }
}

impl ShaperControl for TestShaper {
    fn line(&self) -> &AccessLink {
        &self.line
    }

    fn plan(&self) -> &ShaperPlan {
        &self.plan
    }

    fn is_up(&self) -> bool {
        self.up
    }

    fn set_up(&mut self) -> Result<(), ShapeError> {
        let commands: Vec<_> = self.plan.steps.iter().map(|step| step.part.command()).collect();
        self.carry_out(&commands);
        self.up = true;
        Ok(())
    }

    fn remove(&mut self) -> Result<(), ShapeError> {
        self.carry_out(&self.plan.removal());
        self.up = false;
        Ok(())
    }

    fn set_rates(&mut self, rates: PerDirection<Option<BitRate>>) -> Result<(), ShapeError> {
        self.rates.push(rates);
        self.line.up = rates.up.or(self.line.up);
        self.line.down = rates.down.or(self.line.down);
        let new = plan(&self.line, &self.facts, self.back_end);
        let commands = changes(&self.plan, &new).expect("in place");
        let lines: Vec<String> = commands.iter().map(|command| command.words.join(" ")).collect();
        if self.really {
            let control = self.control.get_or_insert_with(|| TrafficControl::start().expect("tc runs"));
            control.run(lines.iter().map(String::as_str), Duration::from_secs(10))?;
        }
        self.plan = new;
        Ok(())
    }

    fn differences(&self) -> Result<Vec<QueueingDifference>, ShapeError> {
        Ok(Vec::new())
    }

    fn renew(&mut self, _limit: Duration) -> Result<(), ShapeError> {
        Ok(())
    }
}

fn settings(reflector: ReflectorAddress, time: Duration) -> AutorateSettings {
    AutorateSettings {
        law: ControlLaw::Linerate,
        bounds: PerDirection { up: AutorateBounds::default(), down: AutorateBounds::default() },
        reflectors: vec![reflector],
        log: None,
        time: Some(time),
        off_at_end: true,
    }
}

fn megabits(number: f64) -> BitRate {
    BitRate::from_bits_per_second(number * 1e6)
}

#[test]
#[ignore = "needs root or ping sockets: asks the loopback device for echoes"]
fn the_loop_probes_logs_and_sets_rates() {
    let directory = std::env::temp_dir().join(format!("linerate-autorate-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let log = directory.join("log");
    let stop = InterruptSignals::install().expect("signals can be caught");
    let mut shaped =
        TestShaper::new("lo", PerDirection { up: megabits(50.0), down: megabits(50.0) }, BackEndId::Cake, false);
    let mut settings = settings(ReflectorAddress::Echo([127, 0, 0, 1].into()), Duration::from_millis(1500));
    settings.log = Some(log.clone());
    run(&mut shaped, &settings, stop, &mut |_| {}).expect("follows");
    assert!(!shaped.up);
    // Without given rates it starts with its own.
    let first = shaped.rates.first().expect("rates were set");
    assert!(first.up.is_some_and(|rate| rate < megabits(50.0)), "{first:?}");
    let text = std::fs::read_to_string(&log).expect("a log");
    let queue = |line: &str| line.split('\t').nth(7).is_some_and(|queue| !queue.is_empty());
    assert_eq!(text.lines().next(), Some(AutorateLogLine::HEADER));
    assert!(text.lines().skip(1).any(queue), "answers came: {text}");
    std::fs::remove_dir_all(&directory).expect("removed");
}

/// Measurements during the session.
#[derive(Default)]
struct PathRecording {
    /// Send time and round trip of each ping.
    pings: Vec<(Duration, Duration)>,
    /// End of each interval, with the bytes sent and received in it.
    carried: Vec<(Duration, [f64; 2])>,
}

/// Pings far and samples the interface until stopped.
fn watch(begun: linerate_units::MonotonicTime, stop: &std::sync::atomic::AtomicBool) -> PathRecording {
    use linerate_sys::icmp::{EchoEvent, EchoOptions, EchoSocket};
    use linerate_sys::interface::{InterfaceWatch, NetworkInterface};

    let far = linerate_sys::net::resolve(
        "far",
        linerate_units::Port::new(1).expect("a port"),
        Some(linerate_model::address_family::AddressFamily::Ipv4),
    );
    let mut echo =
        EchoSocket::open(far.expect("the lab's hosts have names")[0], &EchoOptions::default()).expect("a socket");
    let mut counters =
        InterfaceWatch::new(NetworkInterface::by_name("eth0").expect("the lab's").index).expect("a socket");
    let (mut seen, mut last) = (PathRecording::default(), counters.read().expect("counters"));
    let mut round = 0_u32;
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        let next = begun + Duration::from_millis(20) * round;
        linerate_sys::clock::sleep_until(next);
        let _ = echo.send(&[0; 56]);
        while let Ok(Some(event)) = echo.next_event(Some(Duration::ZERO)) {
            if let EchoEvent::Reply(reply) = event
                && let (Some(round_trip), Some(sent)) = (reply.round_trip(), reply.sent)
            {
                seen.pings.push((sent.monotonic.since(begun), round_trip));
            }
        }
        if round.is_multiple_of(5) {
            let now = counters.read().expect("counters");
            let passed = now.since(&last);
            last = now;
            let at = linerate_sys::clock::monotonic_now().since(begun);
            seen.carried.push((at, [passed.sent.bytes.as_f64(), passed.received.bytes.as_f64()]));
        }
        round += 1;
    }
    seen
}

/// Runs on a lab path under load, in the lab:
///
/// ```text
/// linerate lab run variable-20-5-40 -- sh -c 'export LINERATE=… NAME=variable-20-5-40 LOAD=down REFLECTOR=linerate:far
///     BACK_END=cake; exec …/linerate_operate-HASH on_a_path_of_the_lab --ignored --nocapture'
/// ```
#[test]
#[ignore = "long: in a guest of the lab, by the command above"]
fn on_a_path_of_the_lab() {
    use std::sync::atomic::{AtomicBool, Ordering};

    use linerate_lab::description::LinkDirection;

    let begun = linerate_sys::clock::monotonic_now();
    let variable =
        |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: runs in the lab only"));
    let path = linerate_lab::library::find(&variable("NAME")).expect("in the library").description().expect("readable");
    let (load, reflector) = (variable("LOAD"), variable("REFLECTOR"));
    let back_end = BackEndId::from_name(&variable("BACK_END")).expect("a back end");
    let link = &path.links[0];
    let rate = |direction: &LinkDirection| direction.rate.expect("the link's");
    let mut shaped =
        TestShaper::new("eth0", PerDirection { up: rate(&link.forward), down: rate(&link.backward) }, back_end, true);
    let address = match reflector.strip_prefix("linerate:") {
        Some(host) => ReflectorAddress::Server(host.to_owned(), linerate_units::Port::new(5201).expect("a port")),
        None => ReflectorAddress::Echo(reflector.parse().expect("an address")),
    };
    let mut settings = settings(address, Duration::from_secs(90));
    if std::env::var("DISCOVER").is_err() {
        settings.bounds.up.base = Some(rate(&link.forward));
        settings.bounds.down.base = Some(rate(&link.backward));
    }
    if std::env::var("LAW").is_ok_and(|law| law == "cake-autorate") {
        settings.law = ControlLaw::CakeAutorate;
        for bounds in [&mut settings.bounds.up, &mut settings.bounds.down] {
            (bounds.minimum, bounds.maximum) = (Some(megabits(1.0)), Some(megabits(100.0)));
        }
    }
    settings.log = std::env::var_os("LOG").map(Into::into);
    let stop = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(begun, &stop));
        for (which, more) in [("down", &["-R"][..]), ("up", &[][..])] {
            if load == which || load == "both" {
                let linerate = variable("LINERATE");
                scope.spawn(move || {
                    let words: Vec<&str> = ["iperf3", "-c", "far", "-t", "88", "-C", "cubic", "-i", "0", "-P", "4"]
                        .iter()
                        .chain(more)
                        .copied()
                        .collect();
                    let ended = command::run(&linerate, &words, None, Duration::from_secs(120)).expect("runs");
                    assert!(ended.status.success(), "{}", ended.stderr_text());
                });
            }
        }
        let signals = InterruptSignals::install().expect("signals can be caught");
        run(&mut shaped, &settings, signals, &mut |_| {}).expect("follows");
        stop.store(true, Ordering::Relaxed);
        watcher.join().expect("watches")
    });
    let loaded = [load != "down", load != "up"];
    report(&path, loaded, &seen);
}

/// Delays and shares outside 5 s from the beginning, and 2 s after a step of more than a third.
#[expect(clippy::print_stdout, reason = "the figures are what the test is run for")]
fn report(path: &linerate_lab::description::PathDescription, loaded: [bool; 2], seen: &PathRecording) {
    let link = &path.links[0];
    let mut excluded = vec![(Duration::ZERO, Duration::from_secs(5)), (Duration::from_secs(88), Duration::MAX)];
    for direction in [&link.forward, &link.backward] {
        let mut before = direction.rate.expect("the link's").bits_per_second();
        for step in &direction.steps {
            let now = step.rate.bits_per_second();
            if now / before > 4.0 / 3.0 || now / before < 2.0 / 3.0 {
                excluded.push((step.at, step.at + Duration::from_secs(2)));
            }
            before = now;
        }
    }
    let counts = |at: Duration| excluded.iter().all(|(from, to)| at < *from || at >= *to);
    let idle = path.propagation();
    let mut uplift: Vec<f64> = seen
        .pings
        .iter()
        .filter(|(at, _)| counts(*at))
        .map(|(_, round_trip)| (round_trip.as_secs_f64() - idle.as_secs_f64()) * 1e3)
        .collect();
    uplift.sort_by(f64::total_cmp);
    let part = |share: usize| uplift[(uplift.len() * share / 100).min(uplift.len() - 1)];
    let mut text = format!(
        "pings {}: uplift p50 {:.1} p95 {:.1} p99 {:.1} max {:.1} ms\n",
        uplift.len(),
        part(50),
        part(95),
        part(99),
        part(100)
    );
    let mut used = [None; 2];
    for (index, direction) in
        [&link.forward, &link.backward].into_iter().enumerate().filter(|(index, _)| loaded[*index])
    {
        let capacity = |at: Duration| {
            let step = direction.steps.iter().rev().find(|step| step.at <= at);
            step.map_or(direction.rate.expect("the link's"), |step| step.rate).bits_per_second()
        };
        let (mut carried, mut possible, mut before) = (0.0, 0.0, Duration::ZERO);
        for (at, bytes) in &seen.carried {
            if counts(*at) && counts(before) {
                carried += bytes[index] * 8.0;
                possible += capacity(before) * at.saturating_sub(before).as_secs_f64();
            }
            before = *at;
        }
        used[index] = Some(carried / possible);
        let _ = writeln!(
            text,
            "{}: {:.1} % of {:.1} Mbit/s on average",
            ["up", "down"][index],
            carried / possible * 100.0,
            possible / 83e6
        );
    }
    print!("{text}");
    assert!(part(95) <= 30.0, "p95 of the uplift: {:.1} ms", part(95));
    assert!(used.iter().flatten().all(|share| *share >= 0.85), "{used:?}");
}

/// Runs a program of iproute2.
fn iproute2(program: &str, line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    command::run_checked(program, &words, None, Duration::from_secs(10)).expect("it runs");
}

/// A namespace with the device `v0`, 10.98.1.1, whose other end is 10.98.1.2 in the namespace that is returned second.
fn pair() -> (NetworkNamespace, NetworkNamespace) {
    let near = NetworkNamespace::create().expect("root");
    let far = NetworkNamespace::create().expect("root");
    let there = format!("/proc/{}/fd/{}", std::process::id(), far.as_fd().as_raw_fd());
    let near_side = || {
        iproute2("ip", &format!("link add v0 type veth peer name v1 netns {there}"));
        iproute2("ip", "address add 10.98.1.1/24 dev v0");
        iproute2("ip", "link set v0 up");
    };
    near.within(near_side).expect("entered");
    let far_side = || {
        iproute2("ip", "address add 10.98.1.2/24 dev v1");
        iproute2("ip", "link set v1 up");
    };
    far.within(far_side).expect("entered");
    (near, far)
}

#[test]
#[ignore = "needs root, ip, tc, tbf and ifb: a pair of devices in network namespaces, for six seconds"]
fn a_link_outage_is_survived() {
    let directory = std::env::temp_dir().join(format!("linerate-autorate-link-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let log = directory.join("log");
    let (near, _far) = pair();
    let stop = InterruptSignals::install().expect("signals can be caught");
    let mut settings = settings(ReflectorAddress::Echo([10, 98, 1, 2].into()), Duration::from_secs(6));
    settings.log = Some(log.clone());
    let within = || {
        // Threads inherit the namespace of their creator.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for (after, state) in [(2000, "down"), (1500, "up")] {
                    std::thread::sleep(Duration::from_millis(after));
                    iproute2("ip", &format!("link set v0 {state}"));
                }
            });
            let mut shaped =
                TestShaper::new("v0", PerDirection { up: megabits(20.0), down: megabits(20.0) }, BackEndId::Tbf, true);
            run(&mut shaped, &settings, stop, &mut |_| {}).expect("follows");
            assert!(!shaped.rates.is_empty() && !shaped.up);
        });
    };
    near.within(within).expect("entered");
    let text = std::fs::read_to_string(&log).expect("a log");
    let lines: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split('\t').collect()).collect();
    let went = lines.iter().position(|line| line[2] == "LinkDown").expect("it is noticed");
    let back = went + lines[went..].iter().position(|line| line[2] == "Running").expect("it is noticed");
    let answered = |lines: &[Vec<&str>]| lines.iter().any(|line| !line[7].is_empty());
    assert!(answered(&lines[..went]) && answered(&lines[back..]), "{text}");
    // Bytes from before the outage are not in the first sample after it.
    let carried = |line: &Vec<&str>| line[5].parse::<f64>().unwrap_or_default();
    assert!(lines[back..].iter().all(|line| carried(line) < 20e6), "{text}");
    std::fs::remove_dir_all(&directory).expect("removed");
}
