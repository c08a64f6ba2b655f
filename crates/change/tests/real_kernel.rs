//! Faults at every write of a trial on a real kernel: the process is killed, the interface is renamed or removed, another
//! program writes. Afterwards the namespace is as if there had been no trial.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use linerate_change::{
    ChangeSetState, ChangeStore, ChangeTrial, KeepOptions, RollbackMode, recover, roll_back, unfinished,
};
use linerate_model::change::{ChangePlan, ChangeTarget, HostChange, InterfaceIdentity, LinkAttribute};
use linerate_sys::command;
use linerate_sys::host_access::{HostAccess, HostIdentity, InterfaceLocation, RealHost};
use linerate_sys::namespace::NetworkNamespace;
use linerate_units::WallTime;

use crate::support::{Scratch, device_change, options};

/// Environment of the process that is killed: its directory, and the write before or after which it is killed.
const DIRECTORY_VARIABLE: &str = "LINERATE_TEST_PLACE";
const WRITE_VARIABLE: &str = "LINERATE_TEST_WRITE";

fn run(line: &str) -> String {
    run_with_input(line, None)
}

fn run_with_input(line: &str, input: Option<&[u8]>) -> String {
    let (program, arguments) = line.split_once(' ').expect("a command");
    let arguments: Vec<&str> = arguments.split(' ').collect();
    command::run_checked(program, &arguments, input, Duration::from_secs(300)).expect(line).stdout_text()
}

/// Two devices, of which one has four queues, with default routes of both families; commands of one `ip`, as there are
/// hundreds of these networks.
const NETWORK: &str = "link set lo up
link add dev0 type veth peer name peer0
link set dev0 up
link set peer0 up
address add 192.0.2.1/24 dev dev0
address add fd99::1/64 dev dev0 nodad
route add default via 192.0.2.2 dev dev0 proto static
route add default via fd99::2 dev dev0 proto static
link add multi0 numtxqueues 4 numrxqueues 4 type veth peer name many0 numtxqueues 4 numrxqueues 4
link set multi0 up
link set many0 up
";

fn changes() -> Vec<HostChange> {
    let dev0 = || "dev0".to_owned();
    let route = |destination: &str| ChangeTarget::Route { destination: destination.to_owned() };
    let leaf = |queue| format!("qdisc replace dev multi0 parent 1:{queue} pfifo limit 33");
    let tree = ["qdisc replace dev multi0 root handle 1: mq".to_owned()].into_iter().chain((1..=4).map(leaf));
    let many_queues = tree.collect::<Vec<_>>().join("\n");
    let targets = [
        (ChangeTarget::Link { interface: dev0(), attribute: LinkAttribute::Mtu }, "1432"),
        (ChangeTarget::Offload { interface: dev0(), feature: "tx-tcp-segmentation".into() }, "off"),
        (ChangeTarget::Queueing { interface: dev0() }, "qdisc replace dev dev0 root pfifo limit 33"),
        (ChangeTarget::Queueing { interface: "multi0".into() }, &many_queues),
        (route("default"), "via 192.0.2.2 dev dev0 proto static initcwnd 20"),
        (route("::/0"), "via fd99::2 dev dev0 proto static metric 1024 initcwnd 20 congctl reno pref medium"),
        (ChangeTarget::Setting { key: "net.ipv4.conf.dev0.accept_local".into() }, "1"),
        (ChangeTarget::Setting { key: "net.ipv4.tcp_rmem".into() }, "4096 100000 7000000"),
        (ChangeTarget::File { path: "/proc/sys/net/ipv4/tcp_retries2".into() }, "13"),
    ];
    targets.map(|(target, to)| device_change(target, to)).into()
}

/// Setting of this namespace, by its path below `/proc/sys`.
fn setting(path: &str) -> String {
    std::fs::read_to_string(format!("/proc/sys/{path}")).expect(path)
}

/// Everything that the changes touch, without numbers that differ.
fn shown() -> String {
    let mut text = run("tc qdisc show");
    for line in run("ip -o link show").lines() {
        let name = line.split([':', '@']).nth(1).expect("a name").trim();
        let mtu = line.split_once(" mtu ").and_then(|(_, rest)| rest.split(' ').next()).expect("an MTU");
        text += &[name, " ", mtu, "\n"].concat();
        if name != "lo" {
            let target = ChangeTarget::Offload { interface: name.into(), feature: "tx-tcp-segmentation".into() };
            text += &RealHost.read(&target).expect("readable").expect("there");
            text += &setting(&format!("net/ipv4/conf/{name}/accept_local"));
        }
    }
    text + &run("ip route show")
        + &run("ip -6 route show default")
        + &setting("net/ipv4/tcp_rmem")
        + &setting("net/ipv4/tcp_retries2")
}

/// The real host, on which an event comes at one of the writes.
struct EventfulHost<E: Fn()> {
    /// Twice the number of the write, and one more for an event after it.
    at: usize,
    step: Cell<usize>,
    event: E,
}

impl<E: Fn()> EventfulHost<E> {
    fn new(at: usize, event: E) -> Self {
        Self { at, step: Cell::new(0), event }
    }

    fn step(&self) {
        if self.step.replace(self.step.get() + 1) == self.at {
            (self.event)();
        }
    }

    fn has_come(&self) -> bool {
        self.step.get() > self.at
    }
}

impl<E: Fn()> HostAccess for EventfulHost<E> {
    fn read(&self, target: &ChangeTarget) -> linerate_sys::Result<Option<String>> {
        RealHost.read(target)
    }

    fn write(&self, target: &ChangeTarget, value: Option<&str>) -> linerate_sys::Result<()> {
        self.step();
        let written = RealHost.write(target, value);
        self.step();
        written
    }

    fn read_file(&self, path: &Path) -> linerate_sys::Result<Option<String>> {
        RealHost.read_file(path)
    }

    fn replace_file(&self, path: &Path, contents: Option<&str>) -> linerate_sys::Result<()> {
        self.step();
        let written = RealHost.replace_file(path, contents);
        self.step();
        written
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

/// Applied, rolled back, applied again, kept, and rolled back on request.
fn trial(store: &ChangeStore, host: &dyn HostAccess, file: &Path) -> linerate_change::Result<()> {
    let plan = ChangePlan { made_at: WallTime::from_unix(Duration::from_secs(1_795_161_279)), changes: changes() };
    let mut trial = ChangeTrial::begin(store, host, &plan, &options())?;
    trial.apply(|_| true)?;
    trial.roll_back_selected(|_| true);
    trial.apply(|_| true)?;
    let keep = KeepOptions { file: Some(file.to_owned()), evidence: String::new(), warnings: Vec::new() };
    let id = trial.keep(&keep)?.id;
    roll_back(store, host, id, RollbackMode::ForReal, "a test").map(drop)
}

/// As the next start and the user do.
fn roll_back_the_rest(store: &ChangeStore) {
    recover(store, &RealHost).expect("recovered");
    let here = RealHost.identity().expect("procfs");
    for (id, set) in store.list().expect("readable") {
        if set.expect("readable").state(&here) != ChangeSetState::RolledBack {
            roll_back(store, &RealHost, id, RollbackMode::ForReal, "a test").expect("rolled back");
        }
    }
    assert!(unfinished(store, &RealHost).expect("readable").is_empty());
}

/// A network of its own; the result of `work` in it.
fn within<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let namespace = NetworkNamespace::create().expect("these tests need root");
    let prepared = || {
        run_with_input("ip -batch -", Some(NETWORK.as_bytes()));
        while run("ip -o link show").matches("state UP").count() < 4 {
            std::thread::yield_now();
        }
        work()
    };
    namespace.within(prepared).expect("entered")
}

/// Number of cases: the event before and after every write of a trial. Afterwards all is as if only the event had come, or
/// as `allowed`.
fn with_event_at_every_write(event: impl Fn() + Sync, allowed: Option<&str>) -> usize {
    let expected = within(|| {
        event();
        shown()
    });
    for at in 0.. {
        let has_come = within(|| {
            let (scratch, host) = (Scratch::new(), EventfulHost::new(at, &event));
            let (store, file) = (scratch.store(), scratch.path().join("90-linerate.conf"));
            // It ends with or without an error.
            let ended = trial(&store, &host, &file);
            roll_back_the_rest(&store);
            let (is_removed, now) = (!file.exists(), shown());
            let is_expected = is_removed && (now == expected || allowed == Some(&now));
            assert!(!host.has_come() || is_expected, "{at}: {ended:?}\n{now}\n{expected}");
            assert!(host.has_come() || ended.is_ok(), "{ended:?}");
            host.has_come()
        });
        if !has_come {
            return at;
        }
    }
    0
}

/// Two for each write of the trial: nine when it is applied, rolled back, and applied again, one of the file, and ten when
/// it is rolled back. Events may end a trial earlier.
const MIN_CASES: usize = 60;

#[test]
#[ignore = "needs root, ip, tc and sysctl: devices in network namespaces"]
fn an_interface_renamed_at_any_write() {
    assert!(with_event_at_every_write(|| drop(run("ip link set dev0 name wan0")), None) >= MIN_CASES);
}

#[test]
#[ignore = "needs root, ip, tc and sysctl: devices in network namespaces"]
fn an_interface_removed_at_any_write() {
    assert!(with_event_at_every_write(|| drop(run("ip link del dev0")), None) >= MIN_CASES);
}

#[test]
#[ignore = "needs root, ip, tc and sysctl: devices in network namespaces"]
fn a_setting_written_by_another_program_at_any_write() {
    let event = || std::fs::write("/proc/sys/net/ipv4/tcp_retries2", "11").expect("this namespace's");
    // A value that comes between the look at the setting and the write to it is overwritten.
    assert!(with_event_at_every_write(event, Some(&within(shown))) >= MIN_CASES);
}

#[test]
#[ignore = "needs root, ip, tc and sysctl: devices in network namespaces"]
fn a_process_killed_at_any_write() {
    let own = std::env::current_exe().expect("this program").display().to_string();
    let expected = within(shown);
    for at in 0.. {
        let was_killed = within(|| {
            let scratch = Scratch::new();
            let place = format!("{DIRECTORY_VARIABLE}={}", scratch.path().display());
            let arguments = [
                &place,
                &format!("{WRITE_VARIABLE}={at}"),
                &own,
                "--ignored",
                "--exact",
                "real_kernel::child_that_is_killed",
            ];
            let child = command::run("env", &arguments, None, Duration::from_secs(300)).expect("started");
            roll_back_the_rest(&scratch.store());
            let is_removed = !scratch.path().join("90-linerate.conf").exists();
            assert!(is_removed && shown() == expected, "{at}: {}\n{}\n{expected}", child.stdout_text(), shown());
            !child.status.success()
        });
        if !was_killed {
            assert!(at >= MIN_CASES, "{at}");
            return;
        }
    }
}

#[test]
#[ignore = "child of a_process_killed_at_any_write"]
fn child_that_is_killed() {
    let Some(place) = std::env::var_os(DIRECTORY_VARIABLE) else { return };
    let at = std::env::var(WRITE_VARIABLE).expect("set by the parent").parse().expect("a number");
    let (place, store) = (Path::new(&place), ChangeStore::at(Path::new(&place)));
    let host = EventfulHost::new(at, || drop(run(&format!("kill -9 {}", std::process::id()))));
    trial(&store, &host, &place.join("90-linerate.conf")).expect("nothing fails");
}
