//! Bodies of the fuzz targets of the kernel's tables, shared with the short deterministic run among the tests.

use super::interrupts::{InterruptCounts, InterruptSources};
use super::symbols::KernelSymbols;

/// Fuzz target: takes any bytes; panics on a violated invariant.
pub type SysFuzzTarget = fn(&[u8]);

/// Every target by name, as in `fuzz/fuzz_targets` and `fuzz/corpus`.
pub const TARGETS: &[(&str, SysFuzzTarget)] = &[("sys_interrupts", sys_interrupts), ("sys_symbols", sys_symbols)];

/// Parses text of any kind as `/proc/interrupts`: names come from the text, and nothing has grown since the same text.
///
/// # Panics
///
/// When one of these invariants is violated.
pub fn sys_interrupts(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (counts, earlier) = (InterruptCounts::parse(&text), InterruptCounts::default());
    let devices = InterruptSources::of(0..200, text.split_ascii_whitespace().take(8));
    for processor in 0..4 {
        assert_eq!(counts.busiest_since(&counts, processor, &devices), None);
        let busiest = counts.busiest_since(&earlier, processor, &devices);
        assert!(busiest.is_none_or(|name| text.contains(&name)), "{text}");
    }
}

/// Parses text of any kind as `/proc/kallsyms`: names come from the text, and a function does not begin beyond its address.
///
/// # Panics
///
/// When one of these invariants is violated.
pub fn sys_symbols(data: &[u8]) {
    let addresses = [0, 1, 0x2ff, 0xffff_ffff_8100_0010, u64::MAX];
    let symbols = KernelSymbols::parse(data, &addresses);
    assert_eq!(symbols.name_of(0), None, "a hidden address names nothing");
    assert_eq!(symbols.name_of(2), None, "it was not asked for");
    let text = String::from_utf8_lossy(data);
    for address in addresses {
        assert!(symbols.name_of(address).is_none_or(|name| text.contains(name)), "{address:x}");
    }
}
