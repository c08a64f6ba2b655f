//! Trees of real devices in network namespaces.

use core::time::Duration;

use crate::command;
use crate::namespace::NetworkNamespace;
use crate::test_network::NamespaceChain;
use crate::traffic_control::{check_restorable, read, write};

const PATIENCE: Duration = Duration::from_secs(20);

/// The user's view: all that `tc` shows of these devices, without counters, and `ip link` of all.
fn shown(devices: &[&str]) -> String {
    let mut text = String::new();
    for device in devices {
        for what in ["qdisc", "class", "filter"] {
            text += &run("tc", &[what, "show", "dev", device]);
        }
        for place in ["ingress", "egress", "root"] {
            text += &run("tc", &["filter", "show", "dev", device, place]);
        }
        for line in run("tc", &["class", "show", "dev", device]).lines() {
            let handle = line.split(' ').nth(2).unwrap_or_default();
            text += &run("tc", &["filter", "show", "dev", device, "parent", handle]);
        }
    }
    without_counter(&text) + &run("ip", &["-o", "-d", "link", "show", "type", "ifb"])
}

/// `tc` shows a counter of htb, and of actions how many use them, even when it is not asked for counters.
fn without_counter(text: &str) -> String {
    let mut words = text.split(' ');
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        kept.push(word);
        // A removed action is counted until the kernel frees it.
        if ["direct_packets_stat", "ref", "bind"].contains(&word) {
            words.next();
        }
    }
    kept.join(" ")
}

/// The standard output; that there is nothing to show is no failure.
fn run(program: &str, words: &[&str]) -> String {
    command::run(program, words, None, PATIENCE).expect("it runs").stdout_text()
}

fn batch(lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (program, rest) = line.split_once(' ').expect("a command");
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        command::run_checked(program, &words, None, PATIENCE).expect(line);
    }
}

/// Trees that may have existed before.
const FOREIGN: [&str; 10] = [
    "",
    "tc qdisc add dev near0 root pfifo limit 7",
    "tc qdisc add dev near0 root handle 8007: bfifo limit 12345",
    "tc qdisc add dev near0 root tbf rate 10mbit burst 10k latency 50ms
     tc qdisc add dev near0 clsact
     tc filter add dev near0 egress protocol ip prio 3 u32 match ip dport 80 0xffff flowid 1:7
     tc filter add dev near0 ingress protocol ipv6 prio 4 u32 match ip6 dport 80 0xffff flowid 1:8",
    "tc qdisc add dev near0 root handle 1: htb default 0x12 r2q 7
     tc class add dev near0 parent 1: classid 1:1 htb rate 1gbit
     tc class add dev near0 parent 1:1 classid 1:10 htb rate 100mbit burst 15k prio 1
     tc class add dev near0 parent 1:1 classid 1:12 htb rate 7777kbit ceil 90mbit overhead 40 linklayer atm quantum 1514
     tc qdisc add dev near0 parent 1:10 handle 10: pfifo limit 9
     tc qdisc add dev near0 parent 1:12 handle 12: tbf rate 5mbit burst 1600 limit 30000
     tc filter add dev near0 parent 1: protocol ip prio 10 u32 match ip dsfield 0xb8 0xfc flowid 1:10
     tc filter add dev near0 parent 1: protocol ip prio 10 u32 match ip protocol 1 0xff flowid 1:10
     tc filter add dev near0 parent 1: protocol ipv6 prio 20 u32 match u16 0x0b80 0x0fc0 at 0 flowid 1:10
     tc filter add dev near0 parent 1:1 protocol all prio 1 u32 match u32 0 0 flowid 1:12",
    "tc qdisc add dev near0 root handle 1: stab overhead 40 linklayer atm mpu 53 htb default 1
     tc class add dev near0 parent 1: classid 1:1 htb rate 3mbit
     tc filter add dev near0 parent 1: protocol ip prio 5 handle 7: u32 divisor 16
     tc filter add dev near0 parent 1: protocol ip prio 5 u32 ht 7:3 match ip src 192.0.2.3 flowid 1:1
     tc filter add dev near0 parent 1: protocol ip prio 5 u32 match ip src 192.0.2.0/24 link 7: hashkey mask 0xf at 12",
    "ip link add name ifb4near0 type ifb
     ip link set dev ifb4near0 mtu 1400 txqueuelen 77 alias theirs up
     tc qdisc add dev ifb4near0 root handle 1: htb default 1
     tc class add dev ifb4near0 parent 1: classid 1:1 htb rate 3mbit
     tc qdisc add dev near0 handle ffff: ingress
     tc filter add dev near0 parent ffff: protocol all prio 10 u32 match u32 0 0 action mirred egress redirect dev ifb4near0",
    "ip link add name ifb4near0 type ifb",
    "ip link add name other0 type ifb
     tc qdisc add dev near0 clsact
     tc filter add dev near0 ingress protocol all prio 10 bpf bytecode 1,6\\x200\\x200\\x200 action mirred egress mirror dev other0
     tc filter add dev near0 egress chain 3 protocol ip prio 1 u32 match ip dport 53 0xffff flowid 1:8",
    "tc qdisc add dev near0 handle ffff: ingress
     tc filter add dev near0 ingress protocol ip prio 5 u32 match ip dport 53 0xffff flowid 1:8",
];

/// The plan that replaces them.
const PLAN: &str = "tc qdisc add dev near0 root handle 1: htb default 20
tc class add dev near0 parent 1: classid 1:1 htb rate 9mbit ceil 9mbit burst 10k
tc class add dev near0 parent 1:1 classid 1:10 htb rate 3mbit ceil 9mbit prio 1
tc class add dev near0 parent 1:1 classid 1:20 htb rate 6mbit ceil 9mbit prio 2
tc qdisc add dev near0 parent 1:10 handle 10: bfifo limit 11250
tc qdisc add dev near0 parent 1:20 handle 20: bfifo limit 11250
tc filter add dev near0 parent 1: protocol ip prio 10 u32 match ip dsfield 0xb8 0xfc flowid 1:10
tc filter add dev near0 parent 1: protocol ipv6 prio 11 u32 match u16 0x0b80 0x0fc0 at 0 flowid 1:10
ip link add name ifb4near0 type ifb
ip link set dev ifb4near0 alias line-shaper up
tc qdisc add dev ifb4near0 root handle 1: tbf rate 20mbit burst 10k limit 50000
tc qdisc add dev near0 handle ffff: ingress
tc filter add dev near0 parent ffff: protocol all prio 10 u32 match u32 0 0 action mirred egress redirect dev ifb4near0";

/// Sets up a tree, with the token that has blanks.
fn set_up(tree: &str) {
    for line in tree.lines() {
        if line.contains("\\x20") {
            let words: Vec<String> = line
                .split_ascii_whitespace()
                .skip(1)
                .map(|word| word.replace("\\x20", " ") + if word.starts_with("1,6") { "," } else { "" })
                .collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            command::run_checked("tc", &words, None, PATIENCE).expect("classic BPF");
        } else {
            batch(line);
        }
    }
}

#[test]
#[ignore = "needs root, ip and tc: devices in a network namespace"]
fn foreign_trees_are_restored_exactly() {
    for tree in FOREIGN {
        let chain = NamespaceChain::new(1400);
        let within = || {
            set_up(tree);
            let before = (shown(&["near0", "ifb4near0"]), read("near0").expect("read"));
            check_restorable("near0", &before.1).expect(tree);
            write("near0", Some(PLAN)).expect("set up");
            let during = read("near0").expect("read");
            assert!(during != before.1 && during.contains("kind tbf"), "{during}");
            write("near0", Some(&before.1)).expect(tree);
            let after = (shown(&["near0", "ifb4near0"]), read("near0").expect("read"));
            assert_eq!(after.1, before.1, "{tree}");
            assert_eq!(after.0, before.0, "{tree}");
        };
        chain.near.within(within).expect("entered");
    }
}

#[test]
#[ignore = "needs root, ip and tc: devices in a network namespace"]
fn each_beginning_of_a_plan_is_rolled_back() {
    let lines: Vec<&str> = PLAN.lines().collect();
    for tree in [FOREIGN[0], FOREIGN[4], FOREIGN[6], FOREIGN[7]] {
        let chain = NamespaceChain::new(1400);
        let within = || {
            set_up(tree);
            let before = (shown(&["near0", "ifb4near0"]), read("near0").expect("read"));
            for done in 0..=lines.len() {
                // As when the process is killed behind this many commands.
                if done > 0 {
                    write("near0", Some(&lines[..done].join("\n"))).expect("set up");
                }
                write("near0", Some(&before.1)).expect("rolled back");
                assert_eq!(read("near0").expect("read"), before.1, "{tree} after {done} commands");
                assert_eq!(shown(&["near0", "ifb4near0"]), before.0, "{tree} after {done} commands");
            }
        };
        chain.near.within(within).expect("entered");
    }
}

#[test]
#[ignore = "needs root, ip and tc: devices in a network namespace"]
fn traffic_does_not_change_a_record() {
    let chain = NamespaceChain::new(1400);
    let within = || {
        write("near0", Some(PLAN)).expect("set up");
        let before = read("near0").expect("read");
        let socket = std::net::UdpSocket::bind("10.99.1.1:0").expect("its address");
        for number in 0..200_u8 {
            // The port is closed, so the kernel may report a refusal.
            let _ = socket.send_to(&[number; 1000], "10.99.1.2:9");
        }
        let counters = run("tc", &["-s", "qdisc", "show", "dev", "near0"]);
        assert!(
            !counters
                .contains("htb 1: root refcnt 2 r2q 10 default 0x20 direct_packets_stat 0 direct_qlen 1000\n Sent 0 ")
        );
        assert_eq!(read("near0").expect("read"), before);
    };
    chain.near.within(within).expect("entered");
}

#[test]
#[ignore = "needs root, ip and tc: devices in a network namespace"]
fn several_queues_and_defaults_of_the_kernel() {
    let namespace = NetworkNamespace::create().expect("root");
    let within = || {
        batch("ip link add multi0 numtxqueues 4 numrxqueues 4 type ifb\nip link set multi0 up");
        batch("ip link add idle0 txqueuelen 0 type ifb\nip link set idle0 up");
        let plan = |device: &str| {
            format!(
                "tc qdisc add dev {device} root handle 1: tbf rate 1mbit burst 10k limit 9999\ntc qdisc add dev {device} handle ffff: ingress"
            )
        };
        let mine =
            "tc qdisc add dev multi0 root handle 1: mq\ntc qdisc add dev multi0 parent 1:2 handle 2: pfifo limit 5";
        for (device, tree) in [("multi0", ""), ("multi0", mine), ("idle0", ""), ("lo", "")] {
            batch(tree);
            let before = (shown(&[device]), run("ip", &["link", "show", device]), read(device).expect("read"));
            check_restorable(device, &before.2).expect("it can be");
            write(device, Some(&plan(device))).expect("set up");
            write(device, Some(&before.2)).expect("rolled back");
            let after = (shown(&[device]), run("ip", &["link", "show", device]), read(device).expect("read"));
            assert_eq!(after, before);
        }
    };
    namespace.within(within).expect("entered");
}

#[test]
#[ignore = "needs root, ip and tc: devices in a network namespace"]
fn objects_that_cannot_be_restored_are_refused() {
    let chain = NamespaceChain::new(1400);
    let within = || {
        batch("tc qdisc add dev near0 ingress_block 7 clsact");
        let error = read("near0").expect_err("shared").to_string();
        assert!(error.contains("shared block") && error.contains("clsact of near0"), "{error}");
        batch("tc qdisc del dev near0 clsact\ntc qdisc add dev near0 root estimator 1s 8s pfifo limit 7");
        let error = read("near0").expect_err("an estimator").to_string();
        assert!(error.contains("rate estimator") && error.contains("pfifo of near0"), "{error}");
        batch("tc qdisc del dev near0 root");
        let record = |line: &str| format!("traffic control of near0\n{line}");
        let unknown = record("qdisc dev near0 parent root handle 1: kind of_tomorrow");
        let error = check_restorable("near0", &unknown).expect_err("unknown").to_string();
        assert!(error.contains("of_tomorrow") && error.contains("tc qdisc del dev near0 root"), "{error}");
        // A bfifo accepts and reports its limit, but not the remainder of these options.
        let more = record("qdisc dev near0 parent root handle 1: kind bfifo options 39300000ffffffff");
        let error = check_restorable("near0", &more).expect_err("more").to_string();
        assert!(error.contains("is restored with other options"), "{error}");
        let error = write("near0", Some(&PLAN.replace("20mbit", "nothing"))).expect_err("no rate").to_string();
        assert!(
            error.contains("command 11 of 13, `tc qdisc add dev ifb4near0 root") && error.contains("failed: tc: "),
            "{error}"
        );
        write("near0", None).expect("removed");
        assert!(!run("ip", &["link"]).contains("ifb4near0"));
    };
    chain.near.within(within).expect("entered");
}

#[test]
#[ignore = "needs root, ip and tc: devices in a network namespace"]
fn an_interface_that_is_gone_leaves_nothing_behind() {
    let chain = NamespaceChain::new(1400);
    let within = || {
        let before = read("near0").expect("read");
        write("near0", Some(PLAN)).expect("set up");
        batch("ip link del near0");
        let gone = read("near0").expect_err("gone");
        assert!(crate::host_access::is_gone(&gone), "{gone}");
        let gone = write("near0", Some(&before)).expect_err("gone");
        assert!(crate::host_access::is_gone(&gone), "{gone}");
        assert!(!run("ip", &["link"]).contains("ifb4near0"));
    };
    chain.near.within(within).expect("entered");
}

/// Kinds that not every kernel has; true when they can be restored exactly.
const RARER: [(&str, bool, &str); 17] = [
    ("fq_codel", true, "tc qdisc add dev near0 root fq_codel"),
    (
        "fq_codel with options",
        true,
        "tc qdisc add dev near0 root handle 9: fq_codel limit 999 target 7ms interval 77ms quantum 300 flows 256 noecn memory_limit 4Mb ce_threshold 3ms",
    ),
    ("cake", true, "tc qdisc add dev near0 root cake bandwidth 20mbit diffserv4 overhead 44 mpu 84 rtt 60ms ack-filter dual-srchost"),
    ("cake on atm, for what is received", true, "tc qdisc add dev near0 root cake bandwidth 3mbit besteffort atm overhead 40 ingress wash memlimit 2mb"),
    ("cake without a rate", true, "tc qdisc add dev near0 root cake"),
    ("sfq", true, "tc qdisc add dev near0 root handle 3: sfq perturb 10 quantum 1514 limit 100"),
    ("fq", true, "tc qdisc add dev near0 root fq maxrate 300mbit flow_limit 50"),
    ("fq_pie", true, "tc qdisc add dev near0 root fq_pie target 13ms tupdate 16ms"),
    ("codel", true, "tc qdisc add dev near0 root codel target 3ms interval 33ms"),
    (
        "prio with leaves",
        true,
        "tc qdisc add dev near0 root handle 1: prio bands 3
         tc qdisc add dev near0 parent 1:1 handle 11: sfq
         tc qdisc add dev near0 parent 1:2 handle 12: fq_codel
         tc filter add dev near0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:1",
    ),
    ("netem", true, "tc qdisc add dev near0 root netem delay 10ms loss 1% limit 500"),
    ("netem with jitter", false, "tc qdisc add dev near0 root netem delay 10ms 3ms distribution normal"),
    (
        "police",
        true,
        "tc qdisc add dev near0 handle ffff: ingress
         tc filter add dev near0 parent ffff: protocol ip prio 50 u32 match ip src 0.0.0.0/0 police rate 5mbit burst 20k drop flowid :1
         tc filter add dev near0 parent ffff: protocol ipv6 prio 51 u32 match u32 0 0 action police rate 7mbit burst 20k mtu 2000 conform-exceed drop/pipe",
    ),
    (
        "matchall",
        true,
        "tc qdisc add dev near0 clsact
         tc filter add dev near0 ingress protocol all prio 1 matchall action police rate 5mbit burst 20k drop
         tc filter add dev near0 egress protocol all prio 1 matchall action ok",
    ),
    (
        "flower",
        true,
        "tc qdisc add dev near0 root handle 1: htb default 1
         tc class add dev near0 parent 1: classid 1:1 htb rate 3mbit
         tc filter add dev near0 parent 1: protocol ip prio 3 flower ip_proto tcp dst_port 443 src_ip 192.0.2.0/24 classid 1:1
         tc filter add dev near0 parent 1: protocol ip prio 3 flower ip_proto udp dst_port 53 classid 1:1",
    ),
    (
        "hfsc",
        true,
        "tc qdisc add dev near0 root handle 1: hfsc default 1
         tc class add dev near0 parent 1: classid 1:1 hfsc sc rate 3mbit ul rate 5mbit",
    ),
    (
        "red",
        false,
        "tc qdisc add dev near0 root red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 bandwidth 10mbit probability 0.02",
    ),
];

/// Result for one tree.
fn restored(tree: &str) -> Result<(), String> {
    for line in tree.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().skip(1).collect();
        let output = command::run("tc", &words, None, PATIENCE).expect("not run: tc of the package iproute2 is needed");
        let made = output.status.success();
        assert!(made, "not run: this kernel or tc cannot make it: {}: {}", line.trim(), output.stderr_text());
    }
    let before = shown(&["near0"]);
    let record = read("near0").map_err(|error| error.to_string())?;
    check_restorable("near0", &record).map_err(|error| error.to_string())?;
    write("near0", Some(PLAN)).expect("set up");
    write("near0", Some(&record)).expect("restored");
    assert_eq!(read("near0").expect("read"), record);
    assert_eq!(shown(&["near0"]), before);
    Ok(())
}

/// Runs with the lab's kernel, which has all of these kinds:
///
/// ```text
/// linerate lab run lan-1g -- …/linerate_sys-HASH rarer_kinds_are_restored_exactly_or_refused --ignored
/// ```
#[test]
#[ignore = "long: in a guest of the lab, by the command above"]
fn rarer_kinds_are_restored_exactly_or_refused() {
    for (name, can_be, tree) in RARER {
        let chain = NamespaceChain::new(1400);
        let found = chain.near.within(|| restored(tree)).expect("entered");
        assert_eq!(found.is_ok(), can_be, "{name}: {found:?}");
    }
}
