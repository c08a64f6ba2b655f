//! Taking over the traffic control of an interface of a real kernel, in a network namespace, and giving it back.

mod support;

use std::path::Path;
use std::time::Duration;

use linerate_change::{Back, ChangeError, Mode, State, Store, Trial, Written, recover, roll_back};
use linerate_model::change::{Change, Group, Plan, Reason, TakesEffect, Target, intermediate_device};
use linerate_sys::command;
use linerate_sys::host_access::{Host, Identity, RealHost};
use linerate_sys::namespace::NetworkNamespace;
use linerate_units::WallTime;
use support::{Scratch, options};

const DEVICE: &str = "dev0";
/// Variables that tell the process that is killed where it works, and behind how many commands it dies.
const PLACE: &str = "LINERATE_TEST_PLACE";
const COMMANDS: &str = "LINERATE_TEST_COMMANDS";

const SHAPER: &str = "tc qdisc add dev dev0 root handle 1: htb default 20
tc class add dev dev0 parent 1: classid 1:1 htb rate 9mbit ceil 9mbit burst 10k
tc class add dev dev0 parent 1:1 classid 1:10 htb rate 3mbit ceil 9mbit prio 1
tc class add dev dev0 parent 1:1 classid 1:20 htb rate 6mbit ceil 9mbit prio 2
tc qdisc add dev dev0 parent 1:10 handle 10: bfifo limit 11250
tc qdisc add dev dev0 parent 1:20 handle 20: bfifo limit 11250
tc filter add dev dev0 parent 1: protocol ip prio 10 u32 match ip dsfield 0xb8 0xfc flowid 1:10
tc filter add dev dev0 parent 1: protocol ipv6 prio 11 u32 match u16 0x0b80 0x0fc0 at 0 flowid 1:10
ip link add name ifb4dev0 type ifb
ip link set dev ifb4dev0 up
tc qdisc add dev ifb4dev0 root handle 1: tbf rate 20mbit burst 10k limit 50000
tc qdisc add dev dev0 handle ffff: ingress
tc filter add dev dev0 parent ffff: protocol all prio 10 u32 match u32 0 0 action mirred egress redirect dev ifb4dev0";

/// What somebody had set up there before.
const FOREIGN: &str = "tc qdisc add dev dev0 root handle 5: htb default 1
tc class add dev dev0 parent 5: classid 5:1 htb rate 100mbit
tc filter add dev dev0 parent 5: protocol ip prio 7 u32 match ip src 192.0.2.0/24 flowid 5:1
tc qdisc add dev dev0 clsact
tc filter add dev dev0 ingress protocol ip prio 7 u32 match ip src 192.0.2.0/24 flowid 5:1";

fn run(line: &str) -> String {
    let (program, words) = line.split_once(' ').expect("a command");
    let words: Vec<&str> = words.split(' ').collect();
    command::run_checked(program, &words, None, Duration::from_secs(20)).expect(line).stdout_text()
}

fn shown() -> String {
    let shows = ["qdisc", "class", "filter"].map(|what| run(&format!("tc {what} show dev {DEVICE}")));
    let hooks = ["ingress", "egress"].map(|hook| run(&format!("tc filter show dev {DEVICE} {hook}")));
    let text = shows.concat() + &hooks.concat() + &run("ip -o link show");
    // A counter that is shown even when nobody asked for it.
    let mut words = text.split(' ');
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        kept.push(word);
        if word == "direct_packets_stat" {
            words.next();
        }
    }
    kept.join(" ")
}

fn target() -> Target {
    Target::TrafficControl { interface: DEVICE.to_owned() }
}

fn plan(to: &str) -> Plan {
    let change = Change {
        target: target(),
        from: None,
        to: to.to_owned(),
        group: Group::Queueing,
        takes_effect: TakesEffect::Now,
        reason: Reason { text: "a test says so".to_owned(), ..Reason::default() },
    };
    Plan { made_at: WallTime::from_unix(Duration::from_secs(1_795_161_279)), changes: vec![change] }
}

/// Does something in a network namespace with an interface, which somebody has set up.
fn with_device<T: Send>(before: &str, work: impl FnOnce() -> T + Send) -> T {
    let namespace = NetworkNamespace::create().expect("these tests need root");
    let within = || {
        // Its pair keeps it from being a device without a carrier.
        run("ip link add dev0 type veth peer name peer0");
        run("ip link set dev0 up");
        run("ip link set peer0 up");
        // The carrier comes a moment later.
        while ["dev0", "peer0"].iter().any(|device| !run(&format!("ip link show {device}")).contains("state UP")) {
            std::thread::yield_now();
        }
        before.lines().for_each(|line| drop(run(line)));
        work()
    };
    namespace.within(within).expect("entered")
}

/// Sets the shaper up and keeps it.
fn kept(store: &Store) -> linerate_change::ChangeId {
    let mut trial = Trial::begin(store, &RealHost, &plan(SHAPER), &options()).expect("begun");
    let done = trial.apply(|_| true).expect("applied");
    assert_eq!(done[0].written, Written::Written, "{:?}", trial.set().items[0].message);
    let kept = trial.keep(&linerate_change::Keep { file: None, evidence: String::new(), warnings: Vec::new() });
    kept.expect("kept").id
}

#[test]
#[ignore = "needs root, ip and tc: devices in a network namespace"]
fn it_is_given_back_as_it_was_even_after_other_rates() {
    for before in ["", FOREIGN] {
        with_device(before, || {
            let (was, scratch) = (shown(), Scratch::new());
            let id = kept(&scratch.store());
            assert!(shown().contains("ifb4dev0") && shown().contains("htb 1:"));
            run("tc class change dev dev0 parent 1:1 classid 1:20 htb rate 2mbit ceil 5mbit prio 2");
            let report = roll_back(&scratch.store(), &RealHost, id, Mode::ForReal, "a test").expect("taken back");
            assert_eq!((report.state, &report.targets[0].result), (State::RolledBack, &Back::Restored));
            assert_eq!(shown(), was);
        });
    }
}

#[test]
#[ignore = "needs root, ip and tc: devices in a network namespace"]
fn what_others_have_put_there_since_is_left_alone() {
    with_device("", || {
        let scratch = Scratch::new();
        let id = kept(&scratch.store());
        run("tc qdisc replace dev dev0 root handle 9: pfifo limit 3");
        let report = roll_back(&scratch.store(), &RealHost, id, Mode::ForReal, "a test").expect("an answer");
        let result = &report.targets[0].result;
        assert!(matches!(result, Back::ChangedByOthers { now: Some(now) } if now.contains("pfifo")), "{result}");
        let short = result.shown(&target()).to_string();
        assert!(short.contains("to \"pfifo, ingress with 1 filter, ifb4dev0 with tbf\""), "{short}");
        assert!(shown().contains("pfifo 9:"));
    });
}

#[test]
#[ignore = "needs root, ip and tc: devices in a network namespace"]
fn an_interface_that_went_takes_its_intermediate_device_along() {
    with_device("", || {
        let scratch = Scratch::new();
        let id = kept(&scratch.store());
        run("ip link del dev0");
        assert!(run("ip -o link show").contains("ifb4dev0"));
        let report = roll_back(&scratch.store(), &RealHost, id, Mode::ForReal, "a test").expect("an answer");
        assert_eq!(report.targets[0].result, Back::Gone);
        assert!(!run("ip -o link show").contains("ifb4dev0"));
    });
}

#[test]
#[ignore = "needs root, ip and tc: devices in a network namespace"]
fn a_plan_that_fails_leaves_what_was_there() {
    with_device(FOREIGN, || {
        let (was, scratch) = (shown(), Scratch::new());
        let store = scratch.store();
        let wrong = SHAPER.replace("limit 50000", "limit nothing");
        let mut trial = Trial::begin(&store, &RealHost, &plan(&wrong), &options()).expect("begun");
        let error = trial.apply(|_| true).expect_err("no limit").to_string();
        assert!(error.contains("command 11 of 13"), "{error}");
        assert_eq!(shown(), was);
        drop(trial);
        // What could not be put back is not even begun with.
        run("tc qdisc del dev dev0 clsact");
        run("tc qdisc add dev dev0 ingress_block 3 clsact");
        let shared = shown();
        let refused = Trial::begin(&store, &RealHost, &plan(SHAPER), &options());
        assert!(
            matches!(&refused, Err(ChangeError::Host(error)) if error.to_string().contains("shared block")),
            "{:?}",
            refused.err()
        );
        assert_eq!(shown(), shared);
    });
}

/// The real host, on which this process is killed behind some of the commands of the first write.
struct Killed(usize);

impl Host for Killed {
    fn read(&self, target: &Target) -> linerate_sys::Result<Option<String>> {
        RealHost.read(target)
    }

    fn write(&self, target: &Target, value: Option<&str>) -> linerate_sys::Result<()> {
        let commands: Vec<&str> = value.unwrap_or_default().lines().take(self.0).collect();
        if !commands.is_empty() {
            RealHost.write(target, Some(&commands.join("\n"))).expect("the first commands");
        }
        run(&format!("kill -9 {}", std::process::id()));
        Ok(())
    }

    fn read_file(&self, path: &Path) -> linerate_sys::Result<Option<String>> {
        RealHost.read_file(path)
    }

    fn replace_file(&self, path: &Path, contents: Option<&str>) -> linerate_sys::Result<()> {
        RealHost.replace_file(path, contents)
    }

    fn identity(&self) -> linerate_sys::Result<Identity> {
        RealHost.identity()
    }

    fn way_into_namespace(&self, namespace: u64) -> Option<String> {
        RealHost.way_into_namespace(namespace)
    }
}

#[test]
#[ignore = "needs root, ip and tc: devices in a network namespace"]
fn killed_behind_any_command() {
    assert_eq!(intermediate_device(DEVICE), "ifb4dev0");
    let own = std::env::current_exe().expect("this program").display().to_string();
    with_device(FOREIGN, || {
        let was = shown();
        for commands in 0..=SHAPER.lines().count() {
            let scratch = Scratch::new();
            let place = format!("{PLACE}={}", scratch.path().display());
            let count = format!("{COMMANDS}={commands}");
            let words = [&place, &count, &own, "--ignored", "--exact", "child_that_is_killed"];
            let child = command::run("env", &words, None, Duration::from_secs(60)).expect("started");
            assert!(!child.status.success(), "{}", child.stdout_text());
            assert!(commands == 0 || shown() != was, "{commands}: {}", child.stdout_text());
            let reports = recover(&scratch.store(), &RealHost).expect("recovered");
            assert_eq!((reports.len(), reports[0].state), (1, State::RolledBack), "{:?}", reports[0].targets[0].result);
            assert_eq!(shown(), was, "behind {commands} commands");
        }
    });
}

#[test]
#[ignore = "the part of killed_behind_any_command that is killed"]
fn child_that_is_killed() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let commands = std::env::var(COMMANDS).expect("how many").parse().expect("a number");
    let (store, host) = (Store::at(Path::new(&place)), Killed(commands));
    let mut trial = Trial::begin(&store, &host, &plan(SHAPER), &options()).expect("begun");
    let done = trial.apply(|_| true);
    panic!("it should be dead: {done:?}");
}
