//! Body of the fuzz target, shared with the short deterministic run among the tests.

use crate::autonomous_systems::AutonomousSystemTable;
use crate::host::tracepoint::{MAX_RECORD_SIZE, TracepointFormat};

/// Fuzz target: takes any bytes; panics on a violated invariant.
pub type ModelFuzzTarget = fn(&[u8]);

/// Every target by name, as in `fuzz/fuzz_targets` and `fuzz/corpus`.
pub const TARGETS: &[(&str, ModelFuzzTarget)] =
    &[("model_autonomous_systems", model_autonomous_systems), ("model_tracepoint", model_tracepoint)];

/// Parses text of any kind as the format of a tracepoint: accepted fields lie within a record, and names of values come
/// from the text.
///
/// # Panics
///
/// When one of these invariants is violated.
pub fn model_tracepoint(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Some(format) = TracepointFormat::parse(&text) else { return };
    for (name, field) in format.fields() {
        let end = field.offset.checked_add(field.size).expect("within a record");
        assert!(end <= MAX_RECORD_SIZE && text.contains(name), "{name}: {field:?}");
        assert_eq!(format.field(name), Some(field));
        for symbol in format.symbols(name).values() {
            assert!(text.contains(symbol.as_str()), "{symbol}");
        }
    }
}

/// Reads text of any kind as a table of autonomous systems: whatever it has as an address is found or not, in bounded time.
///
/// # Panics
///
/// When one of these invariants is violated.
pub fn model_autonomous_systems(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let lines = text.lines().count();
    let table = match AutonomousSystemTable::parse(&text) {
        Ok(table) => table,
        Err(error) => {
            assert!((1..=lines).contains(&error.line), "{error:?}");
            return;
        }
    };
    assert!(table.len() <= lines);
    for line in text.lines() {
        let Some(first) = line.split('\t').next().and_then(|field| field.trim().parse().ok()) else { continue };
        if let Some(found) = table.find(first) {
            assert_ne!(found.number, 0);
        }
    }
}
