//! Interfaces that are renamed, removed or moved to another namespace while changes are in effect, on a real kernel.

use std::time::Duration;

use linerate_change::{ChangeSetState, ChangeTrial, RestoreOutcome, RollbackMode, RollbackReport, roll_back};
use linerate_model::change::{ChangePlan, ChangeTarget, HostChange, LinkAttribute};
use linerate_sys::command;
use linerate_sys::host_access::{HostAccess, RealHost};
use linerate_sys::namespace::NetworkNamespace;
use linerate_units::WallTime;

use crate::support::{Scratch, device_change, options};

fn run(line: &str) -> String {
    let (program, arguments) = line.split_once(' ').expect("a command");
    let arguments: Vec<&str> = arguments.split(' ').collect();
    command::run_checked(program, &arguments, None, Duration::from_secs(300)).expect(line).stdout_text()
}

const SHAPER: &str = "tc qdisc add dev dev1 root handle 1: tbf rate 20mbit burst 10k limit 50000
ip link add name ifb4dev1 type ifb
ip link set dev ifb4dev1 up
tc qdisc add dev ifb4dev1 root handle 1: tbf rate 20mbit burst 10k limit 50000
tc qdisc add dev dev1 handle ffff: ingress
tc filter add dev dev1 parent ffff: protocol all prio 10 u32 match u32 0 0 action mirred egress redirect dev ifb4dev1";

/// Changes of each kind that a virtual device has: `dev0` with all of them, `dev1` with a shaper.
fn changes() -> Vec<HostChange> {
    let dev0 = || "dev0".to_owned();
    let targets = [
        (ChangeTarget::Link { interface: dev0(), attribute: LinkAttribute::Mtu }, "1432"),
        (ChangeTarget::Offload { interface: dev0(), feature: "tx-tcp-segmentation".into() }, "off"),
        (
            ChangeTarget::Queueing { interface: dev0() },
            "qdisc replace dev dev0 root tbf rate 285mbit burst 10k limit 50000",
        ),
        (ChangeTarget::Route { destination: "203.0.113.0/24".into() }, "dev dev0 proto static scope link initcwnd 20"),
        (ChangeTarget::Setting { key: "net.ipv4.conf.dev0.accept_local".into() }, "1"),
        (ChangeTarget::Setting { key: "net.ipv4.tcp_rmem".into() }, "4096 100000 7000000"),
        (ChangeTarget::TrafficControl { interface: "dev1".into() }, SHAPER),
    ];
    targets.map(|(target, to)| device_change(target, to)).into()
}

fn offload(interface: &str) -> String {
    let target = ChangeTarget::Offload { interface: interface.to_owned(), feature: "tx-tcp-segmentation".into() };
    RealHost.read(&target).expect("readable").expect("there")
}

/// Everything that the changes touch, and all interfaces, without numbers that differ.
fn shown() -> String {
    let interfaces = run("ip -o link show");
    let mut text = String::new();
    for line in interfaces.lines() {
        let name = line.split([':', '@']).nth(1).expect("a name").trim();
        let kept = line.split_once(" mtu ").expect("an MTU").1;
        text.extend([name, " ", kept, "\n"]);
        text += &run(&format!("tc qdisc show dev {name}"));
        if name != "lo" {
            text += &offload(name);
            text += &run(&format!("sysctl net.ipv4.conf.{name}.accept_local"));
        }
    }
    text + &run("ip route show") + &run("sysctl net.ipv4.tcp_rmem")
}

/// Two interfaces with changes that are kept; then `event`, and the rollback. Returns what was shown before the changes,
/// and the report.
fn rolled_back_after(event: impl FnOnce() + Send) -> (String, RollbackReport, Scratch) {
    for device in ["dev0", "dev1"] {
        run(&format!("ip link add {device} type veth peer name to{device}"));
        run(&format!("ip link set {device} up"));
        run(&format!("ip link set to{device} up"));
        while !run(&format!("ip link show {device}")).contains("state UP") {
            std::thread::yield_now();
        }
    }
    run("ip route add 203.0.113.0/24 dev dev0 proto static");
    let (before, scratch) = (shown(), Scratch::new());
    let store = scratch.store();
    let plan = ChangePlan { made_at: WallTime::from_unix(Duration::from_secs(1_795_161_279)), changes: changes() };
    let mut trial = ChangeTrial::begin(&store, &RealHost, &plan, &options()).expect("begun");
    trial.apply(|_| true).expect("applied");
    let keep = linerate_change::KeepOptions { file: None, evidence: String::new(), warnings: Vec::new() };
    let id = trial.keep(&keep).expect("kept").id;
    assert!(shown().contains("ifb4dev1") && shown() != before);
    event();
    let report = roll_back(&store, &RealHost, id, RollbackMode::ForReal, "a test").expect("a report");
    (before, report, scratch)
}

fn within<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    NetworkNamespace::create().expect("these tests need root").within(work).expect("entered")
}

/// The names are exchanged: by names alone, each rollback would be of the other interface.
#[test]
#[ignore = "needs root, ip, tc and sysctl: devices in a network namespace"]
fn renamed_interfaces_are_followed() {
    within(|| {
        let (before, report, _scratch) = rolled_back_after(|| {
            for line in ["dev0 name other", "dev1 name dev0", "other name dev1"] {
                run(&format!("ip link set {line}"));
            }
        });
        assert_eq!((report.state, report.is_clean()), (ChangeSetState::RolledBack, true), "{report:?}");
        assert!(report.notes.contains(&"dev0 was renamed to dev1".to_owned()), "{:?}", report.notes);
        for line in ["dev0 name other", "dev1 name dev0", "other name dev1"] {
            run(&format!("ip link set {line}"));
        }
        assert_eq!(shown(), before);
    });
}

#[test]
#[ignore = "needs root, ip, tc and sysctl: devices in a network namespace"]
fn removed_interfaces_leave_nothing() {
    within(|| {
        let (_, report, _scratch) = rolled_back_after(|| {
            run("ip link del dev0");
            run("ip link del dev1");
            // Another interface with that name has its own values, which no change set has written.
            run("ip link add dev0 mtu 1432 type veth peer name again0");
        });
        assert!(report.is_clean(), "{report:?}");
        let gone = report.targets.iter().filter(|target| target.result == RestoreOutcome::Gone).count();
        assert_eq!(gone, 6, "{report:?}");
        let shown = shown();
        assert!(shown.contains("dev0 1432 ") && !shown.contains("ifb4"), "{shown}");
        assert!(!shown.contains("4096 100000 7000000") && !shown.contains("4096\t100000\t7000000"), "{shown}");
    });
}

#[test]
#[ignore = "needs root, ip, tc and sysctl: devices in network namespaces"]
fn an_interface_in_another_namespace_is_named_until_it_is_back() {
    let name = format!("linerate-test-{}", std::process::id());
    run(&format!("ip netns add {name}"));
    within(|| {
        let (_, report, scratch) = rolled_back_after(|| drop(run(&format!("ip link set dev0 netns {name}"))));
        assert_eq!((report.state, report.is_clean()), (ChangeSetState::Partly, false), "{report:?}");
        let moved: Vec<String> = report
            .targets
            .iter()
            .filter(|target| matches!(target.result, RestoreOutcome::Moved { .. }))
            .map(|target| format!("{}: {}", target.target, target.result))
            .collect();
        assert_eq!(moved.len(), 2, "{report:?}");
        assert!(moved[0].contains(&format!("nsenter --net=/run/netns/{name} ip link set dev dev0")), "{moved:?}");
        let there = NetworkNamespace::open(format!("/run/netns/{name}").as_ref()).expect("named");
        let here = std::fs::canonicalize("/proc/thread-self").expect("procfs");
        let thread = here.file_name().and_then(|name| name.to_str()).expect("a number").to_owned();
        there.within(|| run(&format!("ip link set dev dev0 netns {thread}"))).expect("entered");
        let again =
            roll_back(&scratch.store(), &RealHost, report.id, RollbackMode::ForReal, "a test").expect("a report");
        assert!(again.is_clean(), "{again:?}");
        assert!(run("ip link show dev0").contains("mtu 1500") && offload("dev0") == "on");
    });
    run(&format!("ip netns del {name}"));
}
