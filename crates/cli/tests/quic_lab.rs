//! `linerate test --quic` on paths of the lab where TCP and QUIC differ, and on one where they do not: the verdict names the cause.
//!
//! Processing takes no virtual time: `cli/quic` has the cost of a full processor, over loopback.

use std::time::Duration;

use serde_json::Value;

use crate::support::document::{array, number, text};
use crate::support::lab::{OwnPath, in_parallel, lab, lab_command};
use crate::support::process::run;

const LIMIT: Duration = Duration::from_secs(300);

/// A path without a limit of its rate: the packets of one call arrive at once. The server has the port that QUIC has in the web.
const BURSTS: &str = "[host.near]\n[host.far]\nserver = [\"--quic-port\", \"443\"]\n\
                      [[link]]\nbetween = [\"near\", \"far\"]\ndelay = \"10 ms\"\n";

/// A link of 100 Mbit/s that treats all packets alike; a faster one would have more packets, and the same verdicts.
const LINK: &str = "[host.near]\n[host.far]\n\
                    [[link]]\nbetween = [\"near\", \"far\"]\nrate = \"100 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"500 kB\"\n";

/// The same with losses at random up, which BBR of TCP does not take for a full queue, and CUBIC of QUIC does; none down.
const LOSS: &str = "[host.near]\ncongestion_control = \"bbr\"\n[host.far]\ncongestion_control = \"bbr\"\n\
                    [[link]]\nbetween = [\"near\", \"far\"]\nrate = \"100 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"500 kB\"\n\
                    [link.forward]\nloss = \"0.1 %\"\n";

/// Filter that handles all UDP packets of a direction at near.
const BLOCK: &str = "tc qdisc add dev eth0 clsact
    tc filter add dev eth0 egress protocol ip u32 match ip protocol 17 0xff match ip dport 443 0xffff action drop";
const POLICE: &str = "tc qdisc add dev eth0 clsact
    for way in egress ingress; do
        tc filter add dev eth0 $way protocol ip u32 match ip protocol 17 0xff action police rate 20mbit burst 100k drop
    done";

/// Buffers of two datagrams for a client without the privilege to have larger ones.
const SMALL_BUFFER: &str = "sysctl -q -w net.core.rmem_max=4608";
const UNPRIVILEGED: &str = "setpriv --bounding-set=-all --inh-caps=-all --reuid=65534 --clear-groups";

/// Path, preparations at near, program before linerate, options, and the verdicts up and down.
struct Case<'a> {
    path: &'a str,
    preparation: &'a str,
    wrapper: &'a str,
    options: &'a str,
    verdicts: &'a [(&'a str, &'a str)],
}

fn measure(case: &Case<'_>) -> Value {
    let Case { path, preparation, wrapper, options, .. } = case;
    let test = format!("exec {wrapper} linerate --no-history test far --quic -P 1 -t 2s --json --quiet {options}");
    let script = format!("set -e; {preparation}\n{test}");
    run(lab_command(path, &["sh", "-c", &script]), LIMIT).expect_code(0).json()
}

fn verdicts(document: &Value) -> Vec<(&str, &str)> {
    array(document, "/quic/verdicts")
        .iter()
        .map(|verdict| (verdict["direction"].as_str().unwrap_or("both"), text(verdict, "/cause")))
        .collect()
}

#[test]
fn each_path_has_the_verdict_of_its_cause() {
    let [bursts, link, loss] = [BURSTS, LINK, LOSS].map(OwnPath::new);
    let [bursts, link, loss] = [&bursts, &link, &loss].map(|path| path.file.as_str());
    let plain = Case { path: link, preparation: "true", wrapper: "", options: "-C cubic", verdicts: &[] };
    let cases = [
        Case { path: bursts, preparation: BLOCK, verdicts: &[("both", "udp_blocked")], ..plain },
        Case { preparation: POLICE, verdicts: &[("up", "udp_throttled"), ("down", "udp_throttled")], ..plain },
        Case {
            path: bursts,
            preparation: SMALL_BUFFER,
            wrapper: UNPRIVILEGED,
            verdicts: &[("up", "quic_faster"), ("down", "udp_buffer_small")],
            ..plain
        },
        Case { path: loss, options: "", verdicts: &[("up", "slower_unexplained"), ("down", "same")], ..plain },
        Case { verdicts: &[("up", "same"), ("down", "same")], ..plain },
    ];
    let documents = in_parallel(&cases, measure);
    for (case, document) in cases.iter().zip(&documents) {
        assert_eq!(verdicts(document), case.verdicts, "{}\n{}", case.path, document["quic"]);
    }
    let [blocked, throttled, small, controls, _] = &documents[..] else { panic!("five cases") };
    let first = |document: &Value| text(document, "/quic/verdicts/0/text").to_owned();
    assert!(first(blocked).starts_with("UDP port 443 is blocked"), "{}", first(blocked));
    let rate = |document: &Value, end: &str| number(document, &format!("/quic/runs/0/{end}/bytes")) * 8.0 / 2.0;
    let policed = rate(throttled, "server");
    assert!((12e6..20e6).contains(&policed), "below the policer: {policed}");
    assert!(number(small, "/quic/runs/1/client/buffer_drops") > 0.0, "{}", small["quic"]);
    assert!(first(controls).contains("with cubic instead of bbr"), "{}", first(controls));
}

/// 1 Gbit/s and 600 ms: 75 MB are in flight, half of what 10 Gbit/s and 117 ms have, at a tenth of the packets.
const LONG_AND_FAT: &str = "[host.near]\n[host.far]\n\
                            [[link]]\nbetween = [\"near\", \"far\"]\nrate = \"1 Gbit/s\"\ndelay = \"300 ms\"\n";

#[test]
fn a_long_fat_path_is_filled_by_one_connection() {
    let path = OwnPath::new(LONG_AND_FAT);
    let test = [
        "linerate",
        "--no-history",
        "test",
        "far",
        "--quic",
        "-P",
        "1",
        "-t",
        "11s",
        "-C",
        "cubic",
        "--json",
        "--quiet",
    ];
    let document = lab(&path.file, &test).json();
    for (run, receiver) in array(&document, "/quic/runs").iter().zip(["server", "client"]) {
        let samples = array(run, &format!("/{receiver}/sample_bytes"));
        // The last second: slow start takes 13 round trips.
        let bits = samples.iter().rev().take(5).filter_map(Value::as_f64).sum::<f64>() * 8.0;
        assert!((0.9e9..1e9).contains(&bits), "{receiver}: {bits} bit/s\n{samples:?}");
    }
    assert_eq!(document.pointer("/quic/failure"), Some(&Value::Null));
}
