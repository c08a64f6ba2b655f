//! Compiled form of each feature of a description, as lines that were run in the lab's kernel.

use super::*;
use crate::plan::{FAR, NEAR, WIRE};

/// A path of one link, with lines for both hosts and the link, and lines that follow.
fn description(near: &str, far: &str, link: &str) -> PathDescription {
    let text = format!(
        "story = \"A test.\"\nsource = \"This file.\"\nlabel = \"none\"\nscenario = \"test far\"\n[host.near]\n{near}\n\
         [host.far]\n{far}\n[[link]]\nbetween = [\"near\", \"far\"]\n{link}\n"
    );
    PathDescription::parse("test", &text).unwrap_or_else(|error| panic!("{error}"))
}

fn plan(near: &str, far: &str, link: &str) -> PathPlan {
    compile(&description(near, far, link))
}

fn namespace<'a>(plan: &'a PathPlan, name: &str) -> &'a NamespacePlan {
    plan.namespaces.iter().find(|namespace| namespace.name == name).unwrap_or_else(|| panic!("no namespace {name}"))
}

/// Lines of `tc` in the wire for a link whose forward direction has these keys, without those of every link.
fn forward(link: &str) -> Vec<String> {
    let plan = plan("", "", &format!("[link.forward]\n{link}"));
    let every = ["clsact", "0xff000000", "dev l0b ingress"];
    let is_own = |line: &&String| every.iter().all(|word| !line.contains(word));
    namespace(&plan, WIRE).tc.iter().filter(is_own).cloned().collect()
}

const STRAIGHT_ON: &str =
    "filter add dev l0a ingress prio 9 protocol all matchall action mirred egress redirect dev l0b";
const TO_QUEUE: &str =
    "filter add dev l0a ingress prio 9 protocol all matchall action mirred egress redirect dev l0-ab-queue";
const FROM_QUEUE: &str =
    "filter add dev l0-ab-after-q ingress prio 9 protocol all matchall action mirred egress redirect dev l0b";
const RELEASE: &str = "qdisc add dev l0-ab-queue root handle 1: netem limit 1000000000 rate 1000tbit";

#[test]
fn a_link_without_keys_passes_everything_on() {
    assert_eq!(forward(""), [STRAIGHT_ON]);
}

/// Keys of a direction, and their lines.
const STAGES: &[(&str, &str)] = &[
    ("delay = \"58.5 ms\"", "netem limit 1000000000 delay 58500us"),
    ("rate = \"10 Gbit/s\"", "netem limit 1000000000 rate 10000000000bit"),
    ("rate = \"1.5 Mbit/s\"\ndelay = \"1 ms\"", "netem limit 1000000000 delay 1000us rate 1500000bit"),
    ("delay = \"10 ms\"\njitter = \"2 ms\"", "netem limit 1000000000 delay 10000us 2000us"),
    (
        "delay = \"10 ms\"\njitter = \"2 ms\"\ndistribution = \"pareto\"",
        "netem limit 1000000000 delay 10000us 2000us distribution pareto",
    ),
    ("loss = \"0.1 %\"", "netem limit 1000000000 loss random 0.1%"),
    (
        "loss = { gilbert_elliott = { good_to_bad = \"1 %\", bad_to_good = \"20 %\", loss_in_bad = \"80 %\" } }",
        "netem limit 1000000000 loss gemodel 1% 20% 80% 0%",
    ),
    ("duplicate = \"0.5 %\"", "netem limit 1000000000 duplicate 0.5%"),
    ("corrupt = \"0.01 %\"", "netem limit 1000000000 corrupt 0.01%"),
];

#[test]
fn rate_delay_and_impairments_are_at_the_end_of_the_wire() {
    for (keys, words) in STAGES {
        let expected = [format!("qdisc add dev l0b root handle 1: {words}"), STRAIGHT_ON.to_owned()];
        assert_eq!(forward(keys), expected, "{keys}");
    }
}

/// A table of sizes at the root counts for the queue below it, too; PTM's blocks lower the rate instead.
#[test]
fn a_link_layer_is_a_table_of_sizes() {
    let atm = "rate = \"1 Mbit/s\"\nlink_layer = { framing = \"atm\", overhead = \"40 B\" }";
    let table = "stab overhead 26 linklayer atm mtu 1540 tsize 1541 ";
    let last = format!("qdisc add dev l0b root handle 1: {table}netem limit 1000000000 rate 1000000bit");
    assert_eq!(forward(atm), [last.as_str(), STRAIGHT_ON]);
    let queue = forward(&format!("{atm}\nbuffer = \"10 packets\""));
    assert!(queue.contains(&RELEASE.replace("netem", &format!("{table}netem"))), "{queue:?}");
    let shaper = "qdisc add dev l0-ab-queue parent 1:1 handle 10: tbf rate 1000000bit burst 1750 limit 17490";
    assert!(queue.iter().any(|line| line == shaper), "{queue:?}");
    let ptm =
        forward("rate = \"65 Mbit/s\"\nlink_layer = { framing = \"ptm\", overhead = \"8 B\", minimum = \"68 B\" }");
    let last = "qdisc add dev l0b root handle 1: stab overhead -6 mpu 68 linklayer ethernet mtu 1508 tsize 1509 netem \
                limit 1000000000 rate 64000000bit";
    assert_eq!(ptm, [last, STRAIGHT_ON]);
}

/// Keys of a direction, and their filter.
const FILTERS: &[(&str, &str)] = &[
    (
        "policer = { rate = \"100 Mbit/s\", burst = \"200 kB\" }",
        "prio 2 protocol all matchall action police rate 100000000bit burst 200000 mtu 65535 conform-exceed drop/continue",
    ),
    ("drop_larger_than = \"1400 B\"", "prio 3 protocol all basic match meta(pkt_len gt 1400) action drop"),
    ("loss = { every = 10 }", "prio 4 protocol all matchall action gact continue random determ drop 10"),
    (
        "loss = { every = 36000 }",
        "prio 4 protocol all matchall action gact continue random determ pipe 9000 action gact continue random determ drop 4",
    ),
];

#[test]
fn filters_are_where_packets_arrive() {
    for (keys, words) in FILTERS {
        let expected = [format!("filter add dev l0a ingress {words}"), STRAIGHT_ON.to_owned()];
        assert_eq!(forward(keys), expected, "{keys}");
    }
}

#[test]
fn ecn_is_bleached_for_both_protocols_and_the_checksum_corrected() {
    let lines = forward("bleach_ecn = true");
    let ipv4 = "filter add dev l0a ingress prio 5 protocol ip matchall action pedit ex munge ip tos set 0 retain 0x3 pipe \
                action csum ip continue";
    let ipv6 = "filter add dev l0a ingress prio 6 protocol ipv6 matchall action pedit ex munge ip6 traffic_class set 0 \
                retain 0x3 continue";
    assert_eq!(lines, [ipv4, ipv6, STRAIGHT_ON]);
}

#[test]
fn ect1_is_rewritten_for_both_protocols_and_the_checksum_corrected() {
    let lines = forward("rewrite_ect1 = true");
    let ipv4 = "filter add dev l0a ingress prio 7 protocol ip u32 match ip tos 0x1 0x3 action pedit ex munge ip tos set 2 \
                retain 0x3 pipe action csum ip continue";
    let ipv6 = "filter add dev l0a ingress prio 8 protocol ipv6 u32 match ip6 priority 0x1 0x3 action pedit ex munge ip6 \
                traffic_class set 2 retain 0x3 continue";
    assert_eq!(lines, [ipv4, ipv6, STRAIGHT_ON]);
}

/// Keys in addition to a rate of 100 Mbit/s and a delay that makes the BDP 250 kB, and the lines of the queue.
const QUEUES: &[(&str, &[&str])] = &[
    ("buffer = \"1.5 MB\"", &["handle 10: tbf rate 100000000bit burst 1564 limit 1500000"]),
    ("buffer = \"2 BDP\"", &["handle 10: tbf rate 100000000bit burst 1564 limit 500000"]),
    ("buffer = \"50 ms\"", &["handle 10: tbf rate 100000000bit burst 1564 limit 625000"]),
    (
        "buffer = \"45 packets\"",
        &["handle 10: tbf rate 100000000bit burst 1564 limit 68130", "handle 100: pfifo limit 45"],
    ),
    (
        "queue = \"fq_codel\"",
        &["handle 10: tbf rate 100000000bit burst 1564 limit 4294967295", "handle 100: fq_codel ecn"],
    ),
    (
        "queue = \"fq_codel\"\nbuffer = \"1 MB\"\necn_threshold = \"125 kB\"",
        &[
            "handle 10: tbf rate 100000000bit burst 1564 limit 1000000",
            "handle 100: fq_codel limit 660 ecn ce_threshold 10000us",
        ],
    ),
    (
        "queue = \"codel\"\nbuffer = \"1000 packets\"",
        &["handle 10: tbf rate 100000000bit burst 1564 limit 1514000", "handle 100: codel limit 1000 ecn"],
    ),
    ("queue = \"dualpi2\"", &["handle 10: tbf rate 100000000bit burst 1564 limit 4294967295", "handle 100: dualpi2"]),
    ("queue = \"pie\"", &["handle 10: tbf rate 100000000bit burst 1564 limit 4294967295", "handle 100: pie ecn"]),
    ("queue = \"fq_pie\"", &["handle 10: tbf rate 100000000bit burst 1564 limit 4294967295", "handle 100: fq_pie ecn"]),
    (
        "queue = \"sfq\"\nbuffer = \"100000 packets\"",
        &["handle 10: tbf rate 100000000bit burst 1564 limit 151400000", "handle 100: sfq limit 65408"],
    ),
    ("queue = \"cake\"\nbuffer = \"1 MB\"", &["handle 10: cake bandwidth 100000000bit memlimit 1000000"]),
    (
        "queue = \"red\"\nbuffer = \"600 kB\"",
        &[
            "handle 10: tbf rate 100000000bit burst 1564 limit 600000",
            "handle 100: red limit 600000 min 100000 max 300000 avpkt 1514 burst 111 probability 0.02 bandwidth 100000000bit \
             ecn",
        ],
    ),
    (
        "queue = \"red\"\nbuffer = \"1 MB\"\necn_threshold = \"65 kB\"",
        &[
            "handle 10: tbf rate 100000000bit burst 1564 limit 1000000",
            "handle 100: red limit 1000000 min 65000 max 65001 avpkt 1548 burst 42 probability 1 bandwidth 100000000bit ecn",
        ],
    ),
];

#[test]
fn a_queue_is_before_the_rate() {
    for (keys, words) in QUEUES {
        let lines = forward(&format!("rate = \"100 Mbit/s\"\ndelay = \"20 ms\"\n{keys}"));
        let parents = ["1:1", "10:1"];
        let queue = parents
            .iter()
            .zip(*words)
            .map(|(parent, words)| format!("qdisc add dev l0-ab-queue parent {parent} {words}"));
        let end = "qdisc add dev l0b root handle 1: netem limit 1000000000 delay 20000us rate 100000000bit".to_owned();
        let expected: Vec<String> = [TO_QUEUE, RELEASE]
            .map(str::to_owned)
            .into_iter()
            .chain(queue)
            .chain([end, FROM_QUEUE.to_owned()])
            .collect();
        assert_eq!(lines, expected, "{keys}");
    }
}

#[test]
fn overtaking_is_a_stage_of_its_own_and_the_delays_add_up() {
    let lines =
        forward("rate = \"1 Gbit/s\"\ndelay = \"10 ms\"\nloss = \"1 %\"\nreorder = { share = \"5 %\", by = \"2 ms\" }");
    let expected = [
        "filter add dev l0a ingress prio 9 protocol all matchall action mirred egress redirect dev l0-ab-delay",
        "qdisc add dev l0-ab-delay root handle 1: netem limit 1000000000 delay 8000us loss random 1% rate 1000000000bit",
        "qdisc add dev l0b root handle 1: netem limit 1000000000 delay 2000us reorder 5%",
        "filter add dev l0-ab-after-d ingress prio 9 protocol all matchall action mirred egress redirect dev l0b",
    ];
    assert_eq!(lines, expected);
    // All of the delay is the overtaking: then there is one stage.
    let lines = forward("delay = \"2 ms\"\nreorder = { share = \"5 %\", by = \"2 ms\" }");
    assert_eq!(lines, ["qdisc add dev l0b root handle 1: netem limit 1000000000 delay 2000us reorder 5%", STRAIGHT_ON]);
}

#[test]
fn every_random_stage_has_a_seed_of_its_own_and_no_other_has_one() {
    let plan_of = |keys: &str| plan("", "", &format!("delay = \"10 ms\"\n{keys}"));
    for keys in ["", "rate = \"1 Gbit/s\"\nbuffer = \"1 MB\"", "loss = { every = 10 }", "bleach_ecn = true"] {
        assert!(namespace(&plan_of(keys), WIRE).seeds.is_empty(), "{keys}");
    }
    for keys in ["loss = \"1 %\"", "jitter = \"1 ms\"", "duplicate = \"1 %\"", "corrupt = \"1 %\""] {
        let plan = plan_of(keys);
        let seeds = &namespace(&plan, WIRE).seeds;
        let devices: Vec<&str> = seeds.iter().map(|seed| seed.device.as_str()).collect();
        assert_eq!(devices, ["l0b", "l0a"], "{keys}");
        assert_eq!([seeds[0].seed, seeds[1].seed], [netem_seed(1, 0, true, 0), netem_seed(1, 0, false, 0)]);
        assert!(seeds.iter().all(|seed| seed.handle == "1:"));
    }
    let plan = plan_of("loss = \"1 %\"\nreorder = { share = \"5 %\", by = \"2 ms\" }");
    let devices: Vec<&str> = namespace(&plan, WIRE).seeds.iter().map(|seed| seed.device.as_str()).collect();
    assert_eq!(devices, ["l0-ab-delay", "l0b", "l0-ba-delay", "l0a"]);
}

#[test]
fn devices_are_there_before_they_are_named() {
    let plan = plan(
        "",
        "",
        "rate = \"1 Gbit/s\"\nbuffer = \"1 MB\"\ndelay = \"9 ms\"\nreorder = { share = \"1 %\", by = \"1 ms\" }",
    );
    let devices: Vec<&str> = plan
        .pairs
        .iter()
        .flat_map(|pair| [&pair.a, &pair.b])
        .filter(|end| end.namespace == WIRE)
        .map(|end| end.device.as_str())
        .collect();
    assert_eq!(devices.len(), 10);
    let wire = namespace(&plan, WIRE);
    for line in wire.tc.iter().chain(&wire.ip).filter(|line| !line.ends_with("lo up")) {
        let named: Vec<&str> = line.split("dev ").skip(1).filter_map(|rest| rest.split(' ').next()).collect();
        assert!(!named.is_empty() && named.iter().all(|device| devices.contains(device)), "{line}");
    }
    // A filter needs the hook for filters, and every stage leads on.
    for (index, line) in wire.tc.iter().enumerate().filter(|(_, line)| line.starts_with("filter")) {
        let device = line.split(' ').nth(3).unwrap_or_default();
        let place = format!("qdisc add dev {device} clsact");
        assert!(wire.tc[..index].contains(&place), "{line}");
    }
    for device in ["l0a", "l0b", "l0-ab-queue", "l0-ba-queue", "l0-ab-delay", "l0-ba-delay"] {
        assert!(wire.tc.iter().any(|line| line.ends_with(&format!("redirect dev {device}"))), "{device}");
    }
    let mut macs: Vec<&str> = plan.pairs.iter().flat_map(|pair| [pair.a.mac.as_str(), pair.b.mac.as_str()]).collect();
    let count = macs.len();
    macs.sort_unstable();
    macs.dedup();
    assert_eq!(macs.len(), count);
    assert!(plan.pairs.iter().flat_map(|pair| [&pair.a, &pair.b]).all(|end| end.device.len() <= 15));
}

/// A path with two routers.
const CHAIN: &str = "story = \"s\"\nsource = \"s\"\nlabel = \"none\"\nscenario = \"test far\"\n[host.near]\n[host.r1]\n[host.r2]\n\
                     [host.far]\n[[link]]\nbetween = [\"near\", \"r1\"]\n[[link]]\nbetween = [\"r1\", \"r2\"]\n[[link]]\nbetween = \
                     [\"r2\", \"far\"]\nmtu = 1400\n";

fn chain() -> PathPlan {
    compile(&PathDescription::parse("chain", CHAIN).unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn routers_forward_and_every_host_has_the_routes() {
    let plan = chain();
    let names: Vec<&str> = plan.namespaces.iter().map(|namespace| namespace.name.as_str()).collect();
    assert_eq!(names, ["near", "r1", "r2", "far", "wire"]);
    for (name, forwards) in [("near", "0"), ("r1", "1"), ("r2", "1"), ("far", "0")] {
        let sysctls = &namespace(&plan, name).sysctls;
        for key in ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"] {
            assert!(sysctls.iter().any(|setting| setting.key == key && setting.value == forwards), "{name} {key}");
        }
    }
    let routes = |name| -> Vec<String> {
        let lines = namespace(&plan, name).ip.iter().filter(|line| line.starts_with("route add 10."));
        lines.map(|line| line["route add ".len()..].to_owned()).collect()
    };
    assert_eq!(routes("near"), ["10.0.1.0/30 via 10.0.0.2", "10.0.2.0/30 via 10.0.0.2"]);
    assert_eq!(routes("r1"), ["10.0.2.0/30 via 10.0.1.2"]);
    assert_eq!(routes("r2"), ["10.0.0.0/30 via 10.0.1.1"]);
    assert_eq!(routes("far"), ["10.0.0.0/30 via 10.0.2.1", "10.0.1.0/30 via 10.0.2.1"]);
    assert!(namespace(&plan, "near").ip.contains(&"route add fd00:0:0:2::/64 via fd00::2".to_owned()));
}

#[test]
fn addresses_names_and_neighbours() {
    let plan = chain();
    let expected = [
        "127.0.0.1 localhost",
        "::1 localhost",
        "10.0.0.1 near",
        "fd00::1 near6",
        "10.0.0.2 r1",
        "fd00::2 r16",
        "10.0.1.2 r2",
        "fd00:0:0:1::2 r26",
        "10.0.2.2 far",
        "fd00:0:0:2::2 far6",
    ];
    assert_eq!(plan.names, expected);
    let expected = [
        "link set dev lo up",
        "link set dev eth0 mtu 1400 addrgenmode none",
        "link set dev eth0 up",
        "addr add 10.0.2.2/30 dev eth0",
        "neigh replace 10.0.2.1 lladdr 02:00:00:00:02:01 dev eth0 nud permanent",
        "addr add fd00:0:0:2::2/64 dev eth0 nodad",
        "neigh replace fd00:0:0:2::1 lladdr 02:00:00:00:02:01 dev eth0 nud permanent",
    ];
    assert_eq!(namespace(&plan, FAR).ip[..7], expected);
    let near = plan.pairs.iter().find(|pair| pair.a.namespace == NEAR).unwrap_or_else(|| panic!("near"));
    assert_eq!((near.a.device.as_str(), near.a.mac.as_str()), ("eth0", "02:00:00:00:00:01"));
    assert_eq!((near.b.namespace.as_str(), near.b.device.as_str()), (WIRE, "l0a"));
    let r1: Vec<&str> =
        plan.pairs.iter().filter(|pair| pair.a.namespace == "r1").map(|pair| pair.a.device.as_str()).collect();
    assert_eq!(r1, ["eth0", "eth1"]);
}

#[test]
fn below_its_smallest_mtu_there_is_no_ipv6() {
    let plan = plan("", "", "mtu = 1279\nbleach_ecn = true");
    let everything = serde_json::to_string(&plan).unwrap_or_default();
    assert!(!everything.contains("fd00") && !everything.contains("protocol ipv6") && !everything.contains("near6"));
    assert!(!everything.contains("addrgenmode"));
    let sysctls = &namespace(&plan, NEAR).sysctls;
    assert!(sysctls.iter().any(|setting| setting.key == "net.ipv6.conf.all.disable_ipv6" && setting.value == "1"));
}

fn value<'a>(settings: &'a [SysctlSetting], key: &str) -> Option<&'a str> {
    settings.iter().find(|setting| setting.key == key).map(|setting| setting.value.as_str())
}

#[test]
fn settings_are_those_of_the_host_or_of_the_system() {
    let near = "congestion_control = \"bbr\"\nsysctl = { \"net.ipv4.tcp_rmem\" = \"4096 131072 438750000\", \
                \"net.core.rmem_max\" = 4194304, \"net.core.default_qdisc\" = \"fq\", \"net.ipv4.tcp_sack\" = 0 }";
    let plan = plan(near, "congestion_control = \"reno\"", "");
    assert_eq!(value(&plan.system, "net.core.rmem_max"), Some("4194304"));
    assert_eq!(value(&plan.system, "net.core.wmem_max"), Some("212992"));
    assert_eq!(value(&plan.system, "net.core.default_qdisc"), Some("fq"));
    assert_eq!(value(&plan.system, "net.ipv4.tcp_allowed_congestion_control"), Some("reno cubic bbr"));
    assert!(value(&plan.system, "net.ipv4.tcp_mem").is_some());
    assert_eq!(value(&plan.system, "net.ipv4.tcp_sack"), None);
    let near = &namespace(&plan, NEAR).sysctls;
    assert_eq!(value(near, "net.ipv4.tcp_rmem"), Some("4096 131072 438750000"));
    assert_eq!(value(near, "net.ipv4.tcp_wmem"), Some("4096 16384 4194304"));
    assert_eq!(value(near, "net.ipv4.tcp_congestion_control"), Some("bbr"));
    assert_eq!(value(near, "net.ipv4.tcp_sack"), Some("0"));
    assert_eq!(value(near, "net.core.rmem_max"), None);
    let far = &namespace(&plan, FAR).sysctls;
    assert_eq!(value(far, "net.ipv4.tcp_rmem"), Some("4096 131072 6291456"));
    assert_eq!(value(far, "net.ipv4.tcp_congestion_control"), Some("reno"));
    assert_eq!(value(far, "net.ipv4.tcp_sack"), None);
}

#[test]
fn no_setting_is_written_twice() {
    let near = "sysctl = { \"net.ipv4.tcp_mem\" = \"1 2 3\", \"net.ipv4.tcp_no_metrics_save\" = 0 }";
    let plan = plan(near, "", "");
    assert_eq!(value(&plan.system, "net.ipv4.tcp_mem"), Some("1 2 3"));
    assert_eq!(value(&namespace(&plan, NEAR).sysctls, "net.ipv4.tcp_no_metrics_save"), Some("0"));
    for settings in plan.namespaces.iter().map(|namespace| &namespace.sysctls).chain([&plan.system]) {
        let mut keys: Vec<&str> = settings.iter().map(|setting| setting.key.as_str()).collect();
        keys.sort_unstable();
        let count = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }
}

#[test]
fn hosts_have_their_queueing_and_their_servers() {
    let plan = plan("queueing = \"fq\"\nserver = []", "server = [\"--read-rate\", \"5MB/s\"]", "");
    assert_eq!(namespace(&plan, NEAR).tc, ["qdisc replace dev eth0 root handle 1: fq"]);
    assert_eq!(namespace(&plan, NEAR).server, Some(vec![]));
    assert_eq!(namespace(&plan, FAR).tc, Vec::<String>::new());
    assert_eq!(namespace(&plan, FAR).server, Some(vec!["--read-rate".to_owned(), "5MB/s".to_owned()]));
    assert_eq!(namespace(&plan, WIRE).server, None);
}

#[test]
fn hosts_have_a_rate_of_their_own() {
    let lines = |keys: &str| namespace(&plan(keys, "", ""), NEAR).tc.clone();
    let fair = lines("queueing = \"fq\"\nqueueing_rate = \"50 Mbit/s\"");
    assert_eq!(fair, ["qdisc replace dev eth0 root handle 1: fq maxrate 50000000bit"]);
    let class = [
        "qdisc replace dev eth0 root handle 1: htb default 1",
        "class add dev eth0 parent 1: classid 1:1 htb rate 50000000bit quantum 60000",
        "qdisc add dev eth0 parent 1:1 handle 10: codel",
    ];
    assert_eq!(lines("queueing_rate = \"50 Mbit/s\""), class[..2]);
    assert_eq!(lines("queueing = \"codel\"\nqueueing_rate = \"50 Mbit/s\""), class);
}

/// A host's line, a link's keys, and whether near has offloads.
const OFFLOADS: &[(&str, &str, bool)] = &[
    ("", "rate = \"10 Gbit/s\"\ndelay = \"58.5 ms\"", true),
    ("", "rate = \"10 Gbit/s\"\ndelay = \"58.5 ms\"\nbuffer = \"1 BDP\"", true),
    ("", "", true),
    ("", "rate = \"100 Mbit/s\"", false),
    ("", "rate = \"10 Gbit/s\"\nbuffer = \"1 MB\"", false),
    ("", "rate = \"10 Gbit/s\"\nbuffer = \"10000 packets\"", false),
    ("", "rate = \"10 Gbit/s\"\nqueue = \"fq_codel\"", false),
    ("", "delay = \"1 ms\"\njitter = \"1 ms\"", false),
    ("", "loss = \"0.001 %\"", false),
    ("", "loss = { every = 36000 }", false),
    ("", "drop_larger_than = \"1400 B\"", false),
    ("", "bleach_ecn = true", false),
    ("", "rewrite_ect1 = true", false),
    ("", "policer = { rate = \"1 Gbit/s\", burst = \"1 MB\" }", false),
    ("offload = true", "loss = \"0.001 %\"", true),
    ("offload = false", "", false),
];

#[test]
fn super_packets_only_where_nothing_counts_packets() {
    for (near, link, expected) in OFFLOADS {
        let plan = plan(near, "", link);
        let without = &namespace(&plan, NEAR).without_offloads;
        let expected: &[&str] = if *expected { &[] } else { &["eth0"] };
        assert_eq!(without, expected, "{near} {link}");
    }
}

#[test]
fn a_shaper_takes_the_largest_packet_that_comes() {
    // 50 B are what 100 Mbit/s send in 4 µs.
    for (near, mtu, burst) in [("", 1500, 1564), ("", 9000, 9064), ("offload = true", 1500, 70_050)] {
        let plan = plan(near, "", &format!("mtu = {mtu}\nrate = \"100 Mbit/s\"\nbuffer = \"1 MB\""));
        let lines = &namespace(&plan, WIRE).tc;
        let shaper = format!("tbf rate 100000000bit burst {burst} limit 1000000");
        assert_eq!(lines.iter().filter(|line| line.ends_with(&shaper)).count(), 2, "{near} {mtu}");
    }
}

/// Keys of a flow from near, and the client's arguments after the address and port.
const FLOWS: &[(&str, &str)] = &[
    ("kind = \"bulk\"", "-t 0 -P 1"),
    ("kind = \"bulk\"\nstreams = 4\ncongestion_control = \"bbr\"\nduration = \"30 s\"", "-t 30 -P 4 -C bbr"),
    ("kind = \"slow-reader\"\nrate = \"40 Mbit/s\"", "-t 0 -P 1"),
    ("kind = \"paced\"\nrate = \"8 Mbit/s\"\nstreams = 2", "-t 0 -P 2 --fq-rate 4000000"),
    ("kind = \"paced\"\nrate = \"8 Mbit/s\"\nprotocol = \"udp\"", "-t 0 -P 1 -u -b 8000000"),
    ("kind = \"application-paced\"\nrate = \"50 Mbit/s\"", "-t 0 -P 1 -b 50000000 -l 62500"),
    (
        "kind = \"on-off\"\nrate = \"80 Mbit/s\"\non = \"1 s\"\noff = \"3 s\"",
        // 10 MB in 1 s of each 4 s: a thousand blocks of 10000 bytes.
        "-t 0 -P 1 -b 20000000/1000 -l 10000 --fq-rate 80000000",
    ),
];

#[test]
fn traffic_is_made_by_linerate_itself() {
    for (keys, arguments) in FLOWS {
        let text = format!("[[traffic]]\nfrom = \"near\"\nto = \"far\"\nstart = \"1.5 s\"\n{keys}");
        let plan = plan("", "", &text);
        let traffic = &plan.traffic[0];
        assert_eq!(traffic.client_arguments.join(" "), format!("iperf3 -c 10.0.0.2 -p 5301 {arguments}"), "{keys}");
        assert_eq!((traffic.client.as_str(), traffic.server.as_str(), traffic.start_milliseconds), (NEAR, FAR, 1500));
        let reads = if keys.contains("slow-reader") { " --read-rate 40000000" } else { "" };
        assert_eq!(traffic.server_arguments.join(" "), format!("serve --port 5301{reads}"));
    }
}

#[test]
fn every_flow_has_a_port_of_its_own_and_far_can_send_too() {
    let text = "[[traffic]]\nkind = \"bulk\"\nfrom = \"near\"\nto = \"far\"\n[[traffic]]\nkind = \"bulk\"\nfrom = \"far\"\nto = \
                \"near\"";
    let plan = plan("", "", text);
    assert_eq!(plan.traffic[1].client_arguments.join(" "), "iperf3 -c 10.0.0.1 -p 5302 -t 0 -P 1");
    assert_eq!((plan.traffic[1].client.as_str(), plan.traffic[1].server.as_str()), (FAR, NEAR));
}

#[test]
fn the_plan_round_trips_into_the_guest() {
    let plan = plan("", "", "rate = \"1 Gbit/s\"\nbuffer = \"1 MB\"\nloss = \"1 %\"");
    let text = serde_json::to_string(&plan).unwrap_or_default();
    let back: PathPlan = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(back, plan);
}

#[test]
fn a_rate_that_changes_is_changed_in_place() {
    let keys = "rate = \"20 Mbit/s\"\nbuffer = \"500 ms\"\ndelay = \"1 ms\"\nsteps = [{ at = \"30 s\", rate = \"5 Mbit/s\" }, { at = \
                \"60.5 s\", rate = \"40 Mbit/s\" }]";
    let plan = plan("", "", &format!("[link.forward]\n{keys}\n[link.backward]\n{}", keys.replace("30 s", "31 s")));
    let line = |rate: u32| {
        // What it sends in 4 µs, to the nearest byte.
        let burst = 1514 + (rate + 1_000_000) / 2_000_000;
        format!("qdisc change dev l0-ab-queue parent 1:1 handle 10: tbf rate {rate}bit burst {burst} limit 1250000")
    };
    let of = |change: &crate::plan::PlanChange| (change.at_milliseconds, change.tc.clone(), change.namespace.clone());
    let changes: Vec<_> = plan.changes.iter().map(of).collect();
    let expected = |at: u64, line: String| (at, line, WIRE.to_owned());
    let back = |rate: u32| line(rate).replace("-ab-", "-ba-");
    assert_eq!(
        changes,
        [
            expected(30_000, line(5_000_000)),
            expected(31_000, back(5_000_000)),
            expected(60_500, line(40_000_000)),
            expected(60_500, back(40_000_000)),
        ]
    );
    let end = "qdisc add dev l0b root handle 1: netem limit 1000000000 delay 1000us rate 1000tbit".to_owned();
    assert!(namespace(&plan, WIRE).tc.contains(&end), "the stage behind keeps the order only");
    let cake = compile(&description(
        "",
        "",
        "queue = \"cake\"\nrate = \"9 Mbit/s\"\nsteps = [{ at = \"1 s\", rate = \"5 Mbit/s\" }]",
    ));
    assert_eq!(cake.changes[0].tc, "qdisc change dev l0-ab-queue parent 1:1 handle 10: cake bandwidth 5000000bit");
}
