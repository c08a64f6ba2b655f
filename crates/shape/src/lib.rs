//! From a line and what matters on it to a plan of queueing disciplines, and the checks that it does what it says.
//!
//! Everything here computes: the plan is plain data, the script is text, what stands on a host comes in as `tc -j` prints
//! it, and the controller of variable lines is told the time.
//!
//! ```text
//!   Line + Policy + Capabilities + DeviceFacts ─► choose ─► BACK_ENDS ─► Plan ─► commands, script, read_back
//! ```

#![forbid(unsafe_code)]

pub mod autorate;

pub mod back_ends;
pub mod capability;
pub mod link;
pub mod mtu;
pub mod plan;
pub mod policy;
pub mod prediction;
pub mod read_back;
pub mod refusal;
pub mod script;
pub mod verify;

#[cfg(test)]
mod tests;
