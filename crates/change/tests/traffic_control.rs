//! Replacing and restoring the traffic control of an interface of a real kernel, in a network namespace.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use linerate_change::{
    ChangeError, ChangeSetState, ChangeStore, ChangeTrial, RestoreOutcome, RollbackMode, WriteOutcome, recover,
    roll_back,
};
use linerate_model::change::{ChangePlan, ChangeTarget, InterfaceIdentity, intermediate_device};
use linerate_sys::command;
use linerate_sys::host_access::{HostAccess, HostIdentity, InterfaceLocation, RealHost};
use linerate_sys::namespace::NetworkNamespace;
use linerate_units::WallTime;

use crate::support::{Scratch, device_change, options};

const DEVICE: &str = "dev0";
/// Environment of the process that is killed: its directory, and the number of commands before it is killed.
const DIRECTORY_VARIABLE: &str = "LINERATE_TEST_PLACE";
const COMMANDS_VARIABLE: &str = "LINERATE_TEST_COMMANDS";

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

/// Traffic control installed by another program before.
const FOREIGN: &str = "tc qdisc add dev dev0 root handle 5: htb default 1
tc class add dev dev0 parent 5: classid 5:1 htb rate 100mbit
tc filter add dev dev0 parent 5: protocol ip prio 7 u32 match ip src 192.0.2.0/24 flowid 5:1
tc qdisc add dev dev0 clsact
tc filter add dev dev0 ingress protocol ip prio 7 u32 match ip src 192.0.2.0/24 flowid 5:1";

fn run(line: &str) -> String {
    let (program, arguments) = line.split_once(' ').expect("a command");
    let arguments: Vec<&str> = arguments.split(' ').collect();
    command::run_checked(program, &arguments, None, Duration::from_secs(300)).expect(line).stdout_text()
}

fn shown_traffic_control() -> String {
    let shows = ["qdisc", "class", "filter"].map(|what| run(&format!("tc {what} show dev {DEVICE}")));
    let hooks = ["ingress", "egress"].map(|hook| run(&format!("tc filter show dev {DEVICE} {hook}")));
    let text = shows.concat() + &hooks.concat() + &run("ip -o link show");
    // A counter that is printed without `-s`.
    let mut tokens = text.split(' ');
    let mut kept = Vec::new();
    while let Some(token) = tokens.next() {
        kept.push(token);
        if token == "direct_packets_stat" {
            tokens.next();
        }
    }
    kept.join(" ")
}

fn target() -> ChangeTarget {
    ChangeTarget::TrafficControl { interface: DEVICE.to_owned() }
}

fn plan(to: &str) -> ChangePlan {
    let change = device_change(target(), to);
    ChangePlan { made_at: WallTime::from_unix(Duration::from_secs(1_795_161_279)), changes: vec![change] }
}

/// Runs `work` in a network namespace with an interface on which `before` was run.
fn with_device<T: Send>(before: &str, work: impl FnOnce() -> T + Send) -> T {
    let namespace = NetworkNamespace::create().expect("these tests need root");
    let within = || {
        // The peer provides its carrier.
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
fn kept(store: &ChangeStore) -> linerate_change::ChangeId {
    let mut trial = ChangeTrial::begin(store, &RealHost, &plan(SHAPER), &options()).expect("begun");
    let done = trial.apply(|_| true).expect("applied");
    assert_eq!(done[0].written, WriteOutcome::Written, "{:?}", trial.set().items[0].message);
    let kept = trial.keep(&linerate_change::KeepOptions { file: None, evidence: String::new(), warnings: Vec::new() });
    kept.expect("kept").id
}

#[test]
#[ignore = "needs root, ip and tc: devices in a network namespace"]
fn it_is_restored_even_after_rate_changes() {
    for before in ["", FOREIGN] {
        with_device(before, || {
            let (was, scratch) = (shown_traffic_control(), Scratch::new());
            let id = kept(&scratch.store());
            assert!(shown_traffic_control().contains("ifb4dev0") && shown_traffic_control().contains("htb 1:"));
            run("tc class change dev dev0 parent 1:1 classid 1:20 htb rate 2mbit ceil 5mbit prio 2");
            let report =
                roll_back(&scratch.store(), &RealHost, id, RollbackMode::ForReal, "a test").expect("rolled back");
            assert_eq!(
                (report.state, &report.targets[0].result),
                (ChangeSetState::RolledBack, &RestoreOutcome::Restored)
            );
            assert_eq!(shown_traffic_control(), was);
        });
    }
}

#[test]
#[ignore = "needs root, ip and tc: devices in a network namespace"]
fn traffic_control_of_others_is_left_alone() {
    with_device("", || {
        let scratch = Scratch::new();
        let id = kept(&scratch.store());
        run("tc qdisc replace dev dev0 root handle 9: pfifo limit 3");
        let report = roll_back(&scratch.store(), &RealHost, id, RollbackMode::ForReal, "a test").expect("a report");
        let result = &report.targets[0].result;
        assert!(
            matches!(result, RestoreOutcome::ChangedByOthers { now: Some(now) } if now.contains("pfifo")),
            "{result}"
        );
        let short = result.with_display_values(&target()).to_string();
        assert!(short.contains("to \"pfifo, ingress with 1 filter, ifb4dev0 with tbf\""), "{short}");
        assert!(shown_traffic_control().contains("pfifo 9:"));
    });
}

#[test]
#[ignore = "needs root, ip and tc: devices in a network namespace"]
fn a_removed_interface_removes_its_intermediate_device() {
    with_device("", || {
        let scratch = Scratch::new();
        let id = kept(&scratch.store());
        run("ip link del dev0");
        assert!(run("ip -o link show").contains("ifb4dev0"));
        let report = roll_back(&scratch.store(), &RealHost, id, RollbackMode::ForReal, "a test").expect("a report");
        assert_eq!(report.targets[0].result, RestoreOutcome::Gone);
        assert!(!run("ip -o link show").contains("ifb4dev0"));
    });
}

#[test]
#[ignore = "needs root, ip and tc: devices in a network namespace"]
fn a_plan_that_fails_changes_nothing() {
    with_device(FOREIGN, || {
        let (was, scratch) = (shown_traffic_control(), Scratch::new());
        let store = scratch.store();
        let wrong = SHAPER.replace("limit 50000", "limit nothing");
        let mut trial = ChangeTrial::begin(&store, &RealHost, &plan(&wrong), &options()).expect("begun");
        let error = trial.apply(|_| true).expect_err("no limit").to_string();
        assert!(error.contains("command 11 of 13"), "{error}");
        assert_eq!(shown_traffic_control(), was);
        drop(trial);
        // A configuration that could not be restored is not replaced.
        run("tc qdisc del dev dev0 clsact");
        run("tc qdisc add dev dev0 ingress_block 3 clsact");
        let shared = shown_traffic_control();
        let refused = ChangeTrial::begin(&store, &RealHost, &plan(SHAPER), &options());
        assert!(
            matches!(&refused, Err(ChangeError::Host(error)) if error.to_string().contains("shared block")),
            "{:?}",
            refused.err()
        );
        assert_eq!(shown_traffic_control(), shared);
    });
}

/// The real host, on which this process is killed after some of the commands of the first write.
struct KilledHost(usize);

impl HostAccess for KilledHost {
    fn read(&self, target: &ChangeTarget) -> linerate_sys::Result<Option<String>> {
        RealHost.read(target)
    }

    fn write(&self, target: &ChangeTarget, value: Option<&str>) -> linerate_sys::Result<()> {
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

    fn identity(&self) -> linerate_sys::Result<HostIdentity> {
        RealHost.identity()
    }

    fn way_into_namespace(&self, namespace: u64) -> Option<String> {
        RealHost.way_into_namespace(namespace)
    }

    fn interface_identity(&self, name: &str) -> linerate_sys::Result<Option<InterfaceIdentity>> {
        RealHost.interface_identity(name)
    }

    fn modules(&self) -> BTreeSet<String> {
        RealHost.modules()
    }

    fn locate_interface(&self, interface: &InterfaceIdentity) -> linerate_sys::Result<InterfaceLocation> {
        RealHost.locate_interface(interface)
    }
}

#[test]
#[ignore = "needs root, ip and tc: devices in a network namespace"]
fn killed_after_any_command() {
    assert_eq!(intermediate_device(DEVICE), "ifb4dev0");
    let own = std::env::current_exe().expect("this program").display().to_string();
    with_device(FOREIGN, || {
        let was = shown_traffic_control();
        for commands in 0..=SHAPER.lines().count() {
            let scratch = Scratch::new();
            let place = format!("{DIRECTORY_VARIABLE}={}", scratch.path().display());
            let count = format!("{COMMANDS_VARIABLE}={commands}");
            let arguments = [&place, &count, &own, "--ignored", "--exact", "traffic_control::child_that_is_killed"];
            let child = command::run("env", &arguments, None, Duration::from_secs(300)).expect("started");
            assert!(!child.status.success(), "{}", child.stdout_text());
            assert!(commands == 0 || shown_traffic_control() != was, "{commands}: {}", child.stdout_text());
            let reports = recover(&scratch.store(), &RealHost).expect("recovered");
            assert_eq!(
                (reports.len(), reports[0].state),
                (1, ChangeSetState::RolledBack),
                "{:?}",
                reports[0].targets[0].result
            );
            assert_eq!(shown_traffic_control(), was, "after {commands} commands");
        }
    });
}

#[test]
#[ignore = "child of killed_after_any_command"]
fn child_that_is_killed() {
    let Some(place) = std::env::var_os(DIRECTORY_VARIABLE) else { return };
    let commands = std::env::var(COMMANDS_VARIABLE).expect("set by the parent").parse().expect("a number");
    let (store, host) = (ChangeStore::at(Path::new(&place)), KilledHost(commands));
    let mut trial = ChangeTrial::begin(&store, &host, &plan(SHAPER), &options()).expect("begun");
    let done = trial.apply(|_| true);
    panic!("it should be dead: {done:?}");
}
