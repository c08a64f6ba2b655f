//! `--qdisc-options` and `--rtt` reach the kernel in each direction, are read back, and disappear with the shaper.

use super::guest::run;

/// Back end, options, and the parts of `tc qdisc show` up and down.
const CASES: [(&str, &str, &[&str], &[&str]); 5] = [
    (
        "cake",
        "--rtt up=40ms --rtt down=120ms --qdisc-options up:tins=diffserv3,ack-filter=aggressive,memory=4194304 \
         --qdisc-options down:tins=diffserv8,mode=egress,split-gso=off",
        &["diffserv3", "ack-filter-aggressive", "split-gso", "rtt 40ms", "memlimit 4Mb"],
        &["diffserv8", "no-ack-filter", "no-split-gso", "rtt 120ms"],
    ),
    (
        "htb+fq_codel",
        "--rtt up=40ms --qdisc-options up:limit=500,flows=64,quantum=1514,ce-threshold=2ms,memory=1048576 \
         --qdisc-options down:interval=70ms",
        &["limit 500p", "flows 64", "quantum 1514", "ce_threshold 2ms", "memory_limit 1Mb", "target 2ms"],
        &["limit 10240p", "flows 1024", "interval 70ms", "target 10ms"],
    ),
    (
        "htb+fq_pie",
        "--qdisc-options up:limit=500,flows=64,quantum=600,memory=1048576 --ecn down=on",
        &["limit 500p", "flows 64", "quantum 600b", "memory_limit 1Mb"],
        &["limit 10240p", "flows 1024", "ecn"],
    ),
    (
        "htb+sfq",
        "--qdisc-options limit=100,quantum=3028 --qdisc-options down:perturb=60",
        &["limit 100p", "quantum 3028b", "perturb 10sec"],
        &["limit 100p", "quantum 3028b", "perturb 60sec"],
    ),
    ("htb+bfifo", "--qdisc-options up:limit=30000", &["limit 30000b"], &["limit"]),
];

#[test]
fn options_of_queueing_disciplines_are_applied_as_configured() {
    let cases: Vec<String> = CASES
        .iter()
        .map(|(back_end, options, ..)| {
            format!(
                "shape v0 --up 40M --down 200M --back-end {back_end} {options} -q > out 2>&1; echo \"set {back_end}: $?\"; cat out\n\
                 for d in v0 ifb4v0; do echo \"{back_end} $d: $(tc qdisc show dev $d | grep -v ' htb \\| ingress ' | head -n 1)\"; done\n\
                 shape v0 status --once > out 2>&1; echo \"status {back_end}: $?\"\n\
                 shape v0 --up 30M --down 200M --back-end {back_end} {options} --replace -q > out 2>&1; echo \"again {back_end}: $?\"; cat out\n\
                 shape v0 off -q > out 2>&1 || cat out\ncompare '{back_end}'\n"
            )
        })
        .collect();
    let script = format!(
        "ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up
         DEVICE=v0; tree > before
         {}
         shape v0 --up 40M --back-end htb+fq_codel --qdisc-options limit=500,memory=1048576 -q > out 2>&1 || cat out
         tc qdisc change dev v0 parent 1:20 fq_codel limit 900 memory_limit 2000000
         shape v0 status --once > out 2>&1; echo \"changed: $(tr '\\n' ' ' < out)\"
         shape v0 off -q > out 2>&1 || cat out
         shape v0 --up 40M --back-end htb+fq_codel --qdisc-options tins=diffserv3 > out 2>&1; echo \"unknown: $?\"
         echo \"reason: $(tr '\\n' ' ' < out)\"
         shape v0 --up 40M --qdisc-options tins=diffserv3 --dry-run > out 2>&1; echo \"chosen: $(grep -c 'cake' out)\"",
        cases.concat()
    );
    let output = run("lan-1g", &script);
    for (back_end, _, up, down) in CASES {
        for step in ["set", "status", "again"] {
            assert_eq!(output.value(&format!("{step} {back_end}")), "0", "{}", output.whole());
        }
        for (device, parts) in [("v0", up), ("ifb4v0", down)] {
            let shown = output.value(&format!("{back_end} {device}"));
            for part in parts {
                assert!(format!("{shown} ").contains(&format!(" {part} ")), "{back_end} {device}: {part} in {shown}");
            }
        }
    }
    output.assert_trees_equal(CASES.len());
    let changed = output.value("changed");
    assert!(changed.contains("limit 900 instead of 500"), "{changed}");
    assert!(changed.contains("memory 2000000 instead of 1048576"), "{changed}");
    assert_eq!(output.value("unknown"), "2", "{}", output.whole());
    assert!(output.value("reason").contains("it has limit, flows, quantum"), "{}", output.whole());
    assert_ne!(output.value("chosen"), "0", "a back end that has the option is chosen");
}
