//! Rules over facts and measurements: [`audit`] of a host, [`diagnosis`] of a transfer, [`tuning`] proposals, the
//! [`judge`] of their effect, the comparison of TCP and QUIC ([`transport`]), and the values that all of them may propose ([`advisable`]).
//!
//! One rule per file, or one row of a table, listed in one slice per kind. Rules are pure: they read no host and no clock, and write nothing.

#![forbid(unsafe_code)]

pub mod advisable;
pub mod audit;
pub mod diagnosis;
pub mod export;
pub mod flow_state;
pub mod judge;
pub mod transport;
pub mod tuning;

/// Compares two texts in constant expressions, for the lookups of tables.
const fn same_text(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}
