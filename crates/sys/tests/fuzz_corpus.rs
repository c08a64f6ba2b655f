//! The fuzz targets on stable: every seed of their corpora, and seeded mutations of them.

#[path = "../../wire/tests/common/corpus.rs"]
mod corpus;

use linerate_sys::kernel_events::fuzzing::TARGETS;

/// Parts of `/proc/interrupts`, and values that are difficult.
const INTERRUPTS: [&[u8]; 10] = [
    b"           CPU0       CPU2\n",
    b"CPU4294967295",
    b" 24: ",
    b"LOC: ",
    b"18446744073709551615",
    b"PCI-MSIX-0000:00:03.0   0-edge      eth0-rx-0\n",
    b"virtio1-req.0",
    b"ERR: 0\n",
    b":",
    b"\xff",
];

#[test]
fn sys_interrupts() {
    let (name, target) = TARGETS[0];
    corpus::run_target(name, target, 20_000, &INTERRUPTS);
}

/// Parts of `/proc/kallsyms`, and values that are difficult.
const SYMBOLS: [&[u8]; 8] = [
    b"0000000000000000 T hidden\n",
    b"ffffffff81000000 T ",
    b"ffffffffffffffff t ",
    b"10000000000000000 t x\n",
    b" w ",
    b"\t[module]\n",
    b"0000000000000001 t x\n",
    b"\xff",
];

#[test]
fn sys_symbols() {
    let (name, target) = TARGETS[1];
    corpus::run_target(name, target, 20_000, &SYMBOLS);
}

#[test]
fn every_corpus_has_a_target() {
    let targets: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(corpus::corpora(|name| name.starts_with("sys_")), targets);
}
