//! Classes of devices: rates, fairness between hosts, groups, and complete removal.

use super::guest::run;
use crate::support::document::number;
use crate::support::script::ScriptOutput;

/// A second host behind the interface `v0`, whose addresses 10.7.0.0/16 are those of the devices; `client ADDRESS
/// OPTIONS` measures from one of them, `three FILE OPTIONS` from three at once, of which the last has 20 connections.
pub(crate) const DEVICES: &str = r#"
mkfifo ready; unshare -n sh -c 'echo ready > ready; exec sleep 100000' & far=$!; read -r _ < ready
ip link add v0 type veth peer name v1 netns $far
ip address add 10.8.0.1/24 dev v0; ip link set v0 up
for host in 1 2 3 4; do ip address add 10.7.0.$host/32 dev v0; ip -6 address add 2001:db8:7::$host/128 dev v0 nodad; done
in_far() { nsenter -t $far -n "$@"; }
in_far ip address add 10.8.0.2/24 dev v1; in_far ip link set v1 gso_max_segs 1 up; in_far ip link set lo up
in_far ip route add 10.7.0.0/16 via 10.8.0.1
in_far sysctl -qw net.ipv4.tcp_congestion_control=cubic
for port in 1 2 3 4; do in_far "$L" iperf3 -s -p 520$port > server$port 2>&1 & servers="${servers-} $!"; done
until [ "$(cat server? | grep -c listening)" = 4 ]; do sleep 0.1; done
client() { address=$1; shift; "$L" iperf3 -4 -c 10.8.0.2 -B "10.7.0.$address" -p "520$address" -C cubic -J "$@"; }
three() {
  name=$1; shift
  client 1 "$@" > one & one=$!; client 2 "$@" > two & two=$!; client 3 -P 20 "$@" > many & many=$!
  wait $one $two $many; for host in one two many; do echo "== $name $host"; cat $host; done; echo '== end'
}
end() { kill $far $servers; wait $far $servers 2> /dev/null || :; }
"#;

/// Rate that a client received, in bit/s.
fn received(output: &ScriptOutput, part: &str) -> f64 {
    number(&output.document(part), "/end/sum_received/bits_per_second")
}

/// Largest deviation from the mean, as a share of it.
fn unfairness(rates: &[f64]) -> f64 {
    let mean = rates.iter().sum::<f64>() / 3.0;
    rates.iter().map(|rate| (rate - mean).abs() / mean).fold(0.0, f64::max)
}

#[track_caller]
pub(crate) fn assert_fair(output: &ScriptOutput, name: &str, link: f64) {
    let rates = ["one", "two", "many"].map(|host| received(output, &format!("{name} {host}")));
    assert!(unfairness(&rates) <= 0.05, "{name}: {rates:?}");
    // 1448 of 1514 bytes are payload.
    let share = rates.iter().sum::<f64>() * 1514.0 / 1448.0 / link;
    assert!((0.93..=1.01).contains(&share), "{name}: {share:.3} of the link, {rates:?}");
}

/// Three of 200 devices fill the link, of which one has 20 connections: each has a third. docs/shaping.md has the figures
/// of 2,000 devices.
#[test]
fn devices_share_a_link_equally() {
    let script = format!(
        "{DEVICES}
         awk 'BEGIN {{ print \"match,name,group,down,up\"
           for (n = 1; n <= 200; n++) printf \"10.7.%d.%d 2001:db8:7::%x,d%d,,10k:20M,10k:20M\\n\", n / 250, n % 250, n, n }}' > classes.csv
         DEVICE=v0; tree > before
         shape v0 --up 20M --down 20M --classes classes.csv --back-end htb+fq_codel -q > out 2>&1 || cat out
         three shares -R -O 1 -t 4
         shape v0 status --once > out 2>&1; echo \"status: $?\"
         shape v0 off -q > out 2>&1 || cat out
         compare off
         end"
    );
    let output = run("lan-1g", &script);
    output.assert_trees_equal(1);
    assert_eq!(output.value("status"), "0", "{}", output.whole());
    assert_fair(&output, "shares", 20e6);
}

/// Rates of single classes, by address, prefix, mark and codepoint, and of a group; other traffic has what is left.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn each_selector_has_its_rate() {
    let script = format!(
        "{DEVICES}
         cat > classes.csv <<'END'
match,name,group,down,up
group,ACME,,6M,6M
10.7.0.1,first,ACME,2M:6M,2M:6M
10.7.0.2/31,second,ACME,2M:6M,2M:6M
dscp/8,scavenger,,,1M
END
         shape v0 --up 20M --down 20M --classes classes.csv --class 10.7.0.4=3M,2M --back-end htb+fq_codel -q > out 2>&1 || cat out
         client 1 -O 1 -t 3 > part; echo '== alone'; cat part; echo '== end'
         client 1 -O 1 -t 3 > one & client 2 -O 1 -t 3 > part; wait $!; echo '== first'; cat one; echo '== second'; cat part
         client 4 -O 1 -t 3 > part; echo '== option up'; cat part
         client 4 -R -O 1 -t 3 > part; echo '== option down'; cat part
         \"$L\" iperf3 -4 -c 10.8.0.2 -p 5203 -S 0x20 -C cubic -J -O 1 -t 3 > part; echo '== codepoint'; cat part
         \"$L\" iperf3 -4 -c 10.8.0.2 -p 5203 -C cubic -J -O 1 -t 3 > part; echo '== other'; cat part; echo '== end'
         end"
    );
    let output = run("lan-1g", &script);
    for (part, rate) in [
        ("alone", 6e6),
        ("first", 3e6),
        ("second", 3e6),
        ("option up", 2e6),
        ("option down", 3e6),
        ("codepoint", 1e6),
        ("other", 20e6),
    ] {
        let share = received(&output, part) * 1514.0 / 1448.0 / rate;
        assert!((0.93..=1.04).contains(&share), "{part}: {share:.3}\n{}", output.whole());
    }
}

/// A mark of nftables or iptables is looked up by `fw`; the lab's kernel has no connection tracking.
#[test]
fn classes_by_mark_need_the_connection_s_mark_for_received_packets() {
    let script = format!(
        "{DEVICES}
         shape v0 --up 20M --class mark/0x10=2M --back-end htb+fq_codel -q > out 2>&1 || cat out
         tc filter show dev v0 | grep ' fw ' | grep -o 'handle 0x10.*' | sed 's/^/filter: /'
         shape v0 off -q > out 2>&1
         shape v0 --up 20M --down 20M --class mark/0x10=2M --back-end htb+fq_codel > out 2>&1; echo \"code: $?\"
         echo \"message: $(tr '\\n' ' ' < out)\"
         end"
    );
    let output = run("lan-1g", &script);
    assert!(output.value("filter").contains("classid 1:1000"), "{}", output.whole());
    assert_eq!(output.value("code"), "2", "{}", output.whole());
    assert!(output.value("message").contains("CONFIG_NET_ACT_CTINFO"), "{}", output.whole());
}

/// Packets with a socket's mark (`ping -m`) go into the class or tin of the rule; `fwmark` numbers CAKE's tins itself.
#[test]
fn priorities_by_mark_reach_their_class_and_tin() {
    let script = format!(
        "{DEVICES}
         send() {{ ping -q -c 5 -i 0.05 -m \"$1\" 10.8.0.2 > /dev/null; }}
         tins() {{ tc -s qdisc show dev v0 root | awk -v name=\"$1\" '$1 == \"pkts\" {{ print name \": \" $2 }}'; }}
         shape v0 --up 20M --bulk mark/0x20 --back-end htb+fq_codel -q > out 2>&1 || cat out
         send 32; tc -s class show dev v0 classid 1:30 | awk '$1 == \"Sent\" {{ print \"class: \" $4 }}'
         shape v0 off -q > out 2>&1
         shape v0 --up 20M --bulk mark/0x20 --back-end cake -q > out 2>&1 || cat out
         send 32; tins rule; shape v0 off -q > out 2>&1
         shape v0 --up 20M --back-end cake --qdisc-options fwmark=0xf0 > out 2>&1 || cat out
         send 16; tins tin
         shape v0 status --once > out 2>&1; echo \"same: $?\"
         tc qdisc change dev v0 root cake fwmark 0xf; shape v0 status --once > out 2>&1; echo \"status: $?\"
         echo \"message: $(grep -o 'fwmark [^;,]*' out)\"
         end"
    );
    let output = run("lan-1g", &script);
    for (name, expected) in [("class", "5"), ("rule", "5"), ("tin", "5"), ("same", "0"), ("status", "1")] {
        assert_eq!(output.value(name), expected, "{name}\n{}", output.whole());
    }
    assert!(output.value("message").contains("fwmark 0xf instead of 0xf0"), "{}", output.whole());
}
