//! Fairness between hosts without CAKE, and the treatment of codepoints.

use super::classes::{DEVICES, assert_fair};
use super::guest::run;

/// One of three hosts has 20 connections: it has a third of the link all the same.
#[test]
fn hosts_share_a_link_equally_without_cake() {
    let script = format!(
        "{DEVICES}
         DEVICE=v0; tree > before
         for b in htb+fq_codel htb+bfifo; do
           shape v0 --up 20M --down 20M --per-host --back-end $b -q > out 2>&1 || cat out
           if [ $b = htb+bfifo ]; then three $b -R -O 1 -t 4; else three $b -O 1 -t 4; fi
           shape v0 status --once > out 2>&1; echo \"status $b: $?\"
           shape v0 off -q > out 2>&1 || cat out
           compare $b
         done
         end"
    );
    let output = run("lan-1g", &script);
    output.assert_trees_equal(2);
    for back_end in ["htb+fq_codel", "htb+bfifo"] {
        assert_eq!(output.value(&format!("status {back_end}")), "0", "{}", output.whole());
        assert_fair(&output, back_end, 20e6);
    }
}

/// The answer to a ping has the codepoint of the request as it was received: a class counts those that still have it.
#[test]
fn received_codepoints_are_washed() {
    let script = format!(
        "{DEVICES}
         ip -6 address add 2001:db8:8::1/64 dev v0 nodad; in_far ip -6 address add 2001:db8:8::2/64 dev v1 nodad
         in_far ping -q -c 1 -W 5 2001:db8:8::1 > out 2>&1 || cat out
         DEVICE=v0; tree > before
         marked() {{ tc -s class show dev v0 classid 1:1000 | awk '/Sent/ {{ print $4; exit }}'; }}
         for how in '' --wash; do
           shape v0 --up 20M --down 20M --class dscp/46=1M --back-end htb+fq_codel $how -q > out 2>&1 || cat out
           for host in 10.8.0.1 2001:db8:8::1; do
             was=$(marked); in_far ping -q -c 5 -i 0.05 -Q 0xb8 $host > out 2>&1 || cat out
             echo \"marked $how $host: $(($(marked) - was))\"
           done
           shape v0 off -q > out 2>&1 || cat out
           compare \"${{how:-untouched}}\"
         done
         shape v0 --up 2M --down 20M --back-end cake --ack-filter --target up=20ms -q > out 2>&1 || cat out
         tc qdisc show dev v0 root | grep -o 'rtt [^ ]*\\|[a-z-]*ack-filter' | tr '\\n' ' ' | sed 's/^/cake: /'; echo
         shape v0 off -q > out 2>&1
         shape v0 --up 20M --down 20M --back-end htb+fq_codel --ecn up=off --target down=12ms -q > out 2>&1 || cat out
         echo \"ecn up: $(tc qdisc show dev v0 parent 1:20 | grep -c ecn)\"
         echo \"target down: $(tc qdisc show dev ifb4v0 parent 1:20 | grep -o 'target [^ ]*')\"
         shape v0 off -q > out 2>&1
         shape v0 --up 20M --down 20M --back-end htb+fq_codel --restore-dscp > out 2>&1; echo \"restore: $?\"; echo \"message: $(tr '\\n' ' ' < out)\"
         shape v0 --up 20M --back-end htb+sfq --ack-filter > out 2>&1; echo \"filter: $?\"; echo \"reason: $(tr '\\n' ' ' < out)\"
         end"
    );
    let output = run("lan-1g", &script);
    output.assert_trees_equal(2);
    for (how, expected) in [("", "5"), ("--wash", "0")] {
        for host in ["10.8.0.1", "2001:db8:8::1"] {
            assert_eq!(output.value(&format!("marked {how} {host}")), expected, "{}", output.whole());
        }
    }
    let cake = output.value("cake");
    assert!(cake.contains("rtt 400ms") && cake.contains("ack-filter") && !cake.contains("no-ack"), "{cake}");
    assert_eq!((output.value("ecn up"), output.value("target down")), ("0", "target 12ms"), "{}", output.whole());
    assert_eq!((output.value("restore"), output.value("filter")), ("2", "2"), "{}", output.whole());
    assert!(output.value("message").contains("CONFIG_NET_ACT_CTINFO"), "{}", output.whole());
    assert!(output.value("reason").contains("--ack-filter"), "{}", output.whole());
}
