//! Body of the fuzz target, shared with the short deterministic run among the tests.

use crate::host::tracepoint::{MAX_RECORD_SIZE, TracepointFormat};

/// Fuzz target: takes any bytes; panics on a violated invariant.
pub type ModelFuzzTarget = fn(&[u8]);

/// Every target by name, as in `fuzz/fuzz_targets` and `fuzz/corpus`.
pub const TARGETS: &[(&str, ModelFuzzTarget)] = &[("model_tracepoint", model_tracepoint)];

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
