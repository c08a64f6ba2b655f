//! Tests of the host side of a verdict: busy processors, and a rate limit in the sender's own queue, over real network
//! namespaces.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::document::{array, text};
use crate::support::namespace::Namespace;
use crate::support::process::{FinishedChild, Process, eventually, run};

const LIMIT: Duration = Duration::from_secs(300);
const PORT: u16 = 5201;
const FAR: &str = "10.92.2.1";
/// Rate of the bucket, and the payload that it leaves: 1448 of 1514 bytes of each packet.
const BUCKET: &str = "root tbf rate 100mbit burst 32k latency 50ms";
const PAYLOAD: f64 = 100e6 * 1448.0 / 1514.0;

/// Two hosts with a router between them, each a network namespace.
struct Bed {
    near: Namespace,
    router: Namespace,
    far: Namespace,
}

fn command(namespace: &Namespace, line: &str) {
    let mut words = line.split(' ');
    let program = words.next().expect("a program");
    let done = namespace.command(program).args(words).output().expect("it runs");
    assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
}

impl Bed {
    fn new() -> Self {
        let bed = Self { near: Namespace::new(), router: Namespace::new(), far: Namespace::new() };
        for (host, device, subnet) in [(&bed.near, "toward-near", 1), (&bed.far, "toward-far", 2)] {
            let pair = format!("ip link add {device} type veth peer name eth0 netns {}", host.id());
            command(&bed.router, &pair);
            command(&bed.router, &format!("ip addr add 10.92.{subnet}.2/24 dev {device}"));
            command(&bed.router, &format!("ip link set {device} up"));
            for line in ["ip link set lo up", "ip link set eth0 up"] {
                command(host, line);
            }
            command(host, &format!("ip addr add 10.92.{subnet}.1/24 dev eth0"));
            command(host, &format!("ip route add default via 10.92.{subnet}.2"));
        }
        command(&bed.router, "sysctl -qw net.ipv4.ip_forward=1");
        bed
    }

    /// Server of the far host, which listens.
    fn serve(&self) -> Process {
        self.serve_with(&[])
    }

    /// The same with further options.
    fn serve_with(&self, options: &[&str]) -> Process {
        let port = PORT.to_string();
        let arguments = [&["serve", "--port", &port], options].concat();
        let mut server = Process::start(linerate_in(&self.far, &arguments));
        let port = format!(":{PORT:04X} ");
        let tables = ["tcp", "tcp6"].map(|table| format!("/proc/{}/net/{table}", self.far.id()));
        let listens =
            || tables.iter().any(|table| std::fs::read_to_string(table).is_ok_and(|text| text.contains(&port)));
        assert!(eventually(LIMIT, || listens() || !server.is_running()), "no server: {}", server.stderr());
        server
    }

    /// Run of `linerate` at the near host.
    fn run(&self, arguments: &[&str]) -> FinishedChild {
        run(linerate_in(&self.near, arguments), LIMIT)
    }

    /// Upload of one connection.
    fn upload(&self, more: &[&str]) -> FinishedChild {
        self.run(&[&["test", FAR, "--up", "-P", "1", "--time", "3s"], more].concat()).expect_code(0)
    }
}

fn linerate_in(namespace: &Namespace, arguments: &[&str]) -> Command {
    let mut command = namespace.command(env!("CARGO_BIN_EXE_linerate"));
    command.args(arguments).env("LINERATE_HISTORY", "off");
    command
}

/// Twice as many busy loops as there are processors, and four at least.
fn busy_loops() -> Vec<Process> {
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    let start = |_| {
        let mut command = Command::new("nice");
        // One process, which the test ends; it ends by itself, should the test be killed.
        command.args(["sh", "-c", "i=0; while [ $i -lt 300000000 ]; do i=$((i+1)); done"]);
        Process::start(command)
    };
    (0..(2 * processors).max(4)).map(start).collect()
}

fn causes(run: &Value) -> Vec<&str> {
    array(run, "/diagnosis/verdicts").iter().map(|verdict| text(verdict, "/cause")).collect()
}

#[test]
#[ignore = "needs root, ip, tc and nsenter: three network namespaces"]
fn busy_processors_do_not_hide_a_full_path() {
    let bed = Bed::new();
    command(&bed.router, &format!("tc qdisc add dev toward-far {BUCKET}"));
    let _server = bed.serve();
    let _loops = busy_loops();
    let document = bed.upload(&["--json"]).json();
    let run = &document["runs"][0];
    let rate = run["bits_per_second"].as_f64().expect("a rate");
    assert!((0.85..1.05).contains(&(rate / PAYLOAD)), "{rate}");
    for verdict in array(run, "/diagnosis/verdicts") {
        let location = text(verdict, "/location");
        assert!(["network", "nowhere", "unknown"].contains(&location), "{verdict}");
    }
    assert!(text(run, "/diagnosis/verdicts/0/text").contains("queue"), "{run}");
    assert_eq!(text(run, "/limit/verdict"), "network", "{run}");
    // The thread's own share is small, whatever the host's is.
    let thread = run["limit"]["sender_cpu"].as_f64().expect("measured");
    assert!(thread < 0.3, "{thread}");
    let notes = array(run, "/diagnosis/notes");
    assert_eq!(notes.len(), 2, "{notes:?}");
    for (note, host) in notes.iter().zip(["sending", "receiving"]) {
        let note = note.as_str().expect("text");
        assert!(note.starts_with("Other processes ") && note.contains(&format!("{host} host")), "{note}");
    }
    let shown = bed.upload(&[]).stdout;
    assert!(shown.contains("Other processes") && shown.contains("network-limited"), "{shown}");
    assert!(!shown.contains("CPU busy") && !shown.contains("sender-limited"), "{shown}");
}

#[test]
#[ignore = "needs root, ip, tc and nsenter: three network namespaces"]
fn a_shaper_on_the_sender_is_not_the_path() {
    let bed = Bed::new();
    command(&bed.near, &format!("tc qdisc add dev eth0 {BUCKET}"));
    let _server = bed.serve();
    let document = bed.upload(&["--json"]).json();
    let run = &document["runs"][0];
    assert_eq!(causes(run).first(), Some(&"sender-queue"), "{run}");
    let said = text(run, "/diagnosis/verdicts/0/text");
    assert!(said.contains("tbf") && said.contains("of eth0") && said.contains("100 Mbit/s"), "{said}");
    // The same limit at the receiving host carries acknowledgements only.
    command(&bed.near, "tc qdisc del dev eth0 root");
    command(&bed.far, &format!("tc qdisc add dev eth0 {BUCKET}"));
    let document = bed.upload(&["--json"]).json();
    assert!(!causes(&document["runs"][0]).contains(&"sender-queue"), "{document}");
    // The far host sends: its report names its own queue.
    let arguments = ["test", FAR, "--down", "-P", "1", "--time", "3s", "--json"];
    let document = bed.run(&arguments).expect_code(0).json();
    let run = &document["runs"][0];
    assert_eq!(causes(run).first(), Some(&"sender-queue"), "{run}");
}

#[test]
#[ignore = "needs root, ip, tc and nsenter: three network namespaces"]
fn a_class_is_named_with_its_ceiling() {
    let bed = Bed::new();
    for line in [
        "tc qdisc add dev eth0 root handle 1: htb default 20",
        "tc class add dev eth0 parent 1: classid 1:1 htb rate 1gbit",
        "tc class add dev eth0 parent 1:1 classid 1:10 htb rate 10mbit ceil 800mbit",
        "tc class add dev eth0 parent 1:1 classid 1:20 htb rate 5mbit ceil 50mbit",
    ] {
        command(&bed.near, line);
    }
    let _server = bed.serve();
    let document = bed.run(&["diagnose", FAR, "--json", "--no-capacity", "--", "-t", "3"]).expect_code(1).json();
    let first = &array(&document, "/verdicts")[0];
    assert_eq!(text(first, "/cause"), "sender-queue", "{document}");
    assert!(text(first, "/text").contains("htb 1:20 of eth0 limits all packets to 50.0 Mbit/s"), "{first}");
    // Nothing else in the document takes the load of a host for that of a thread.
    assert!(document["figures"].as_object().is_some_and(|figures| figures.contains_key("sender_wait_share")));
}

#[test]
#[ignore = "needs root, ip, tc and nsenter: three network namespaces"]
fn kernel_events_name_a_queue_that_drops() {
    let bed = Bed::new();
    command(&bed.near, "tc qdisc add dev eth0 root tbf rate 100mbit burst 32k limit 60k");
    let _server = bed.serve();
    let arguments = ["diagnose", FAR, "--kernel-events", "--no-path", "--json", "--", "-t", "2", "-C", "cubic"];
    let document = bed.run(&arguments).expect_code(1).json();
    let hosts: Vec<&str> = array(&document, "/kernel_events").iter().map(|host| text(host, "/host")).collect();
    assert_eq!(hosts, ["sender", "receiver"], "not run: root and tracepoints are needed: {}", document["unknown"]);
    let sender = &document["kernel_events"][0];
    let dropped = array(sender, "/drops").iter().find(|drop| text(drop, "/reason") == "QDISC_DROP").expect("named");
    assert!(dropped["packets"].as_u64() >= Some(3), "{sender}");
    assert!(sender["qdisc"]["count"].as_u64() >= Some(100), "{sender}");
    assert!(sender["run_queue"]["delay"]["count"].as_u64() >= Some(10), "{sender}");
    let notes = array(&document, "/notes");
    let is_named = |note: &Value| note.as_str().is_some_and(|note| note.contains("at full queues"));
    assert!(notes.iter().any(is_named), "{notes:?}");
}

/// Lines of a program that has a processor for 8 ms of each 10 ms, for a minute at most.
const SPINNER: &str = "import time\nend = time.time() + 60\nwhile time.time() < end:\n  at = time.perf_counter() + 0.008\n  \
    while time.perf_counter() < at: pass\n  time.sleep(0.002)";

#[test]
#[ignore = "needs root, ip, chrt, taskset, python3 and nsenter: three network namespaces"]
fn a_late_host_is_the_cause_with_its_processor_and_the_program() {
    let bed = Bed::new();
    let processor = std::thread::available_parallelism().map_or(1, usize::from) - 1;
    let on = processor.to_string();
    let _server = bed.serve();
    let mut spinner = Command::new("chrt");
    spinner.args(["-f", "50", "taskset", "-c", &on, "python3", "-c", SPINNER]);
    let _spinner = Process::start(spinner);
    let mut diagnose = bed.near.command("taskset");
    diagnose.args(["-c", &on, env!("CARGO_BIN_EXE_linerate"), "--no-history", "diagnose", FAR, "--kernel-events"]);
    diagnose.args(["--no-path", "--json", "--", "-t", "3", "-C", "cubic"]);
    let document = run(diagnose, LIMIT).json();
    // Where other programs take the receiver's processor, too, that may come first.
    let late = array(&document, "/verdicts").iter().find(|verdict| text(verdict, "/cause") == "host-busy");
    let said = text(late.unwrap_or_else(|| panic!("{document}")), "/text");
    assert!(said.starts_with("The sending host is late"), "{said}");
    assert!(said.contains(&format!("behind python3 on processor {processor}")), "{said}");
    let sender = array(&document, "/kernel_events").iter().find(|host| text(host, "/host") == "sender");
    let sender = sender.expect("traced");
    let wait = sender["run_queue"]["thread_total_ns"].as_f64().expect("known");
    assert!(wait >= 0.3 * sender["traced_ns"].as_f64().expect("known"), "{sender}");
}

#[test]
#[ignore = "needs root, ip, tc and nsenter: three network namespaces"]
fn kernel_events_that_are_refused_have_their_reason_and_fail_nothing() {
    let bed = Bed::new();
    let _server = bed.serve_with(&["--user", "nobody"]);
    let arguments = ["diagnose", FAR, "--kernel-events", "--no-path", "--json", "--", "-t", "1", "-C", "cubic"];
    let document = bed.run(&arguments).json();
    assert_eq!(array(&document, "/kernel_events").len(), 1, "{document}");
    let unknown = array(&document, "/unknown");
    let refused = unknown.iter().find(|one| text(one, "/key") == "kernel events of the receiver").expect("listed");
    assert!(text(refused, "/reason").contains("tracing needs root"), "{refused}");
}
