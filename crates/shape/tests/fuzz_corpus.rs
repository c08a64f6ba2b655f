//! The fuzz targets on stable: every seed of its corpus, and seeded mutations of them.

#![expect(clippy::disallowed_methods, reason = "the seeds are files; the crate itself does no IO")]

#[path = "../../wire/tests/common/corpus.rs"]
mod corpus;

use linerate_shape::fuzzing::TARGETS;

/// Parts of files of classes, and values that are difficult.
const DICTIONARY: [&[u8]; 18] = [
    b"match,name,group,down,up\n",
    b"up,match\n",
    b"group,A,,1G,1G\n",
    b"group,B,A,1M:2M,\n",
    b"192.0.2.0/24",
    b"0.0.0.0/0",
    b"::/0",
    b"2001:db8::/129",
    b"mark/0xffffffff",
    b"mark/0",
    b"dscp/ef",
    b",,",
    b"1k",
    b"1T:1T",
    b"1e308",
    b"\xef\xbb\xbf",
    b"# \n",
    b"\"",
];

#[test]
fn shape_classes() {
    let (name, target) = TARGETS[0];
    corpus::run_target(name, target, 20_000, &DICTIONARY);
}

/// Names, values and separators of the options of a dual queue.
const DUAL_QUEUE: [&[u8]; 12] = [
    b"tupdate=",
    b"alpha=",
    b"beta=",
    b"coupling=",
    b"step=",
    b"protection=",
    b"drop=enqueue",
    b"overload=overflow",
    b"split-gso=on",
    b"1ms",
    b"0.16",
    b",",
];

#[test]
fn shape_dual_queue() {
    let (name, target) = TARGETS[1];
    corpus::run_target(name, target, 20_000, &DUAL_QUEUE);
}

/// Options, keys of presets and values of wondershaper.
const WONDERSHAPER: [&[u8]; 16] = [
    b"-a ",
    b"-d ",
    b"-u 512",
    b"-c",
    b"-s ",
    b"-pf ",
    b"--",
    b"clear ",
    b" 18446744073709551616",
    b"\nIFACE=\"eth1\"\n",
    b"\nIFACE=-e",
    b"DSPEED=\"2048\" # ",
    b"USPEED=",
    b"HIPRIODST=(",
    b"NOPRIOPORTDST=\"--up\"",
    b"\"'",
];

#[test]
fn shape_wondershaper() {
    let (name, target) = TARGETS[2];
    corpus::run_target(name, target, 20_000, &WONDERSHAPER);
}

#[test]
fn every_corpus_has_a_target() {
    let targets: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(corpus::corpora(|name| name.starts_with("shape_")), targets);
}

/// Statements, quotes and separators of configuration files of `OpenWrt`.
const UCI: [&[u8]; 14] = [
    b"config shaper 'eth0'\n",
    b"config a\n",
    b"\toption up '20M'\n",
    b"\tlist options '--nat'\n",
    b"package linerate\n",
    b"'\\''",
    b"\"a\\\"b\"",
    b"\\",
    b"; ",
    b"# ",
    b"\r\n",
    b"\x0c",
    b"'",
    b"\"",
];

#[test]
fn shape_uci() {
    let (name, target) = TARGETS[3];
    corpus::run_target(name, target, 20_000, &UCI);
}

/// Names, values and separators of the options of queueing disciplines.
const QDISC_OPTIONS: [&[u8]; 14] = [
    b"limit=1000",
    b"flows=65536",
    b"quantum=256",
    b"perturb=0",
    b"interval=100ms",
    b"ce-threshold=1.5us",
    b"memory=4M",
    b"tins=diffserv3",
    b"ack-filter=aggressive",
    b"split-gso=off",
    b"mode=ingress",
    b",",
    b"=4294967296",
    b"0.0000001s",
];

#[test]
fn shape_qdisc_options() {
    let (name, target) = TARGETS[2];
    corpus::run_target(name, target, 20_000, &QDISC_OPTIONS);
}
